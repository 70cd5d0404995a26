//! Selects the cases to run.

use crate::cases;
use crate::proven::{Passed, Trial, Verdict, Verdicts};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs all cases that have `ROTINI_CASE` in their names and are not [proven](crate::proven). No
/// case of this test needs to match if one of another test does.
///
/// # Panics
///
/// If any fails, or nothing is selected.
#[expect(clippy::print_stdout, reason = "what is left out is told")]
#[expect(clippy::panic, reason = "a test that cannot be set up has failed")]
pub(crate) fn expect<'a, T: Sync>(
    all: &'a [T],
    trial: impl Fn(&'a T) -> Trial<'a> + Sync,
    on_gpu: bool,
    verdicts: Option<&Verdicts>,
    run: impl Fn(&'a T) -> anyhow::Result<()> + Sync,
) {
    let only = std::env::var("ROTINI_CASE").unwrap_or_default();
    let name = |one: &'a T| &trial(one).case.name;
    let chosen: Vec<&T> = all.iter().filter(|one| name(one).contains(&only)).collect();
    if chosen.len() < all.len() {
        println!("ROTINI_CASE={only}: {} of {} cases", chosen.len(), all.len());
    }
    assert!(
        !chosen.is_empty() || is_in_a_name(&only, &names(on_gpu)),
        "there is no case to run: ROTINI_CASE={only} is in no case's name"
    );
    let [executed, voided] = [0, 0].map(AtomicUsize::new);
    let keep = |trials: Vec<(Trial<'_>, Option<Verdict>)>| {
        let kept = verdicts.map_or(Ok(()), |verdicts| verdicts.record(trials));
        kept.unwrap_or_else(|error| panic!("the verdicts cannot be written: {error:#}"));
    };
    // The verdict on a case, or its error.
    let outcomes: Vec<Result<Option<Verdict>, String>> = chosen
        .par_iter()
        .map(|one| {
            let verdict = verdicts.and_then(|verdicts| {
                let trial = trial(one);
                let verdict = verdicts.verdict(&trial)?;
                Some((verdicts.passed(&trial, &verdict), verdict))
            });
            match verdict {
                Some((Some(Passed::Proven), verdict)) => return Ok(Some(verdict)),
                Some((Some(Passed::Voided), _)) => {
                    voided.fetch_add(1, Relaxed);
                    return Ok(None);
                }
                _ => {}
            }
            executed.fetch_add(1, Relaxed);
            match run(one) {
                Ok(()) => {
                    let verdict = verdict.map(|(_, verdict)| verdict);
                    // Recorded at once: an interrupted run keeps its results.
                    keep(vec![(trial(one), verdict.clone())]);
                    Ok(verdict)
                }
                Err(error) => Err(format!("{}: {error:#}", name(one))),
            }
        })
        .collect();
    if verdicts.is_some() {
        println!(
            "{executed:?} of {} cases executed; {voided:?} not, though the judge or the processor changed since they were right; the \
             others are proven",
            chosen.len()
        );
        // Recorded again all together: covers cases that share a name, and those that fail now.
        let found = outcomes.iter().map(|outcome| outcome.clone().ok().flatten());
        keep(chosen.iter().map(|one| trial(one)).zip(found).collect());
    }
    let failures: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        chosen.len(),
        failures.join("\n")
    );
}

/// Returns true if a name contains these letters; false for no letters.
fn is_in_a_name(letters: &str, names: &[String]) -> bool {
    !letters.is_empty() && names.iter().any(|name| name.contains(letters))
}

/// Returns the names of all cases of the conformance suite on a device, whatever their test.
fn names(on_gpu: bool) -> Vec<String> {
    let mut names: Vec<String> = cases::all().into_iter().map(|case| case.name).collect();
    let data = cases::with_data().unwrap_or_default();
    names.extend(data.into_iter().map(|data| data.case.name));
    if on_gpu {
        let declined = cases::declined().into_iter().map(|(case, _)| case);
        let executed = declined.filter(|case| case.name == "f64");
        names.extend(executed.chain(cases::resnet50(1)).map(|case| case.name));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_of_something() {
        let [cpu, gpu] = [false, true].map(names);
        assert!(is_in_a_name("pw_ADD", &cpu) && is_in_a_name("pw_ADD", &gpu));
        assert!(is_in_a_name("n1_64to64", &gpu) && !is_in_a_name("n1_64to64", &cpu));
        assert!(!is_in_a_name("typo", &gpu) && !is_in_a_name("", &gpu));
    }

    #[test]
    #[should_panic(expected = "there is no case to run")]
    fn nothing_is_not_right() {
        expect::<()>(&[], |()| unreachable!("there is none"), false, None, |()| Ok(()));
    }
}
