//! Two runs side by side.

use crate::generated::{CRASHED, DECLINED, WRONG, results};
use rotini_bench::compare::{Changes, Kind, compare};
use rotini_bench::results::{Clock, Outcome, Results, Times};

/// What changed if a run is changed so.
fn changed(change: impl FnOnce(&mut Results)) -> Changes {
    let before = results(Clock::Cpu);
    let mut after = before.clone();
    change(&mut after);
    compare(&before, &after)
}

/// The only change.
fn only(changes: &Changes) -> (Kind, bool) {
    assert_eq!(changes.changes.len(), 1, "{changes}");
    assert_eq!(changes.is_regression(), changes.changes[0].regression);
    (changes.changes[0].kind, changes.changes[0].regression)
}

fn scale(times: &mut Times, factor: f64) {
    for time in [&mut times.median, &mut times.low, &mut times.high]
        .into_iter()
        .chain(&mut times.samples)
    {
        *time *= factor;
    }
}

/// The hot time of the first engine on the first graph.
fn hot(results: &mut Results) -> &mut Times {
    results.rows[0].measurements[0].hot.as_mut().expect("it was measured")
}

#[test]
fn a_run_is_the_same_as_itself() {
    let changes = changed(|_| {});
    assert!(changes.changes.is_empty() && changes.warnings.is_empty(), "{changes}");
    assert_eq!(changes.same, 33 * 2);
    assert!(!changes.is_regression());
}

#[test]
fn a_time_differs_only_beyond_the_intervals_and_two_percent() {
    let slower = changed(|after| scale(hot(after), 1.2));
    assert_eq!(only(&slower), (Kind::Slower, true));
    assert!(slower.to_string().contains("1.20 × the time"), "{slower}");
    assert!(slower.to_string().contains("(hot, CPU)"), "{slower}");
    assert_eq!(only(&changed(|after| scale(hot(after), 0.8))), (Kind::Faster, false));

    // Apart by 10 %, but not sure.
    for factor in [1.1, 0.9] {
        let unsure = changed(|after| {
            let times = hot(after);
            scale(times, factor);
            (times.low, times.high) = (times.median / 1.2, times.median * 1.2);
        });
        assert!(unsure.changes.is_empty(), "{unsure}");
    }

    // Sure, but apart by less than 2 % or just by more.
    for (factor, differs) in [(1.019, false), (1.021, true), (0.981, false), (0.979, true)] {
        let mut before = results(Clock::Cpu);
        let times = hot(&mut before);
        (times.low, times.high) = (times.median * 0.9999, times.median * 1.0001);
        let mut after = before.clone();
        scale(hot(&mut after), factor);
        let changes = compare(&before, &after);
        assert_eq!(changes.changes.len(), usize::from(differs), "{factor}: {changes}");
    }
}

#[test]
fn outcomes_that_are_worse_are_regressions() {
    let to = |outcome: Outcome| only(&changed(|after| after.rows[0].measurements[0].outcome = outcome));
    let why = || "why".to_owned();
    assert_eq!(to(Outcome::Wrong(why())), (Kind::Wrong, true));
    assert_eq!(to(Outcome::Declined(why())), (Kind::Declined, true));
    assert_eq!(to(Outcome::Failed(why())), (Kind::Failed, true));
    assert_eq!(to(Outcome::Crashed(why())), (Kind::Crashed, true));
    assert_eq!(to(Outcome::Hung(why())), (Kind::Hung, true));
    assert_eq!(to(Outcome::Unjudged(why())), (Kind::NotJudged, false));

    for (row, engine) in [DECLINED, WRONG, CRASHED] {
        let repaired = changed(|after| after.rows[row].measurements[engine].outcome = Outcome::Right);
        assert!(
            repaired.changes.iter().any(|change| change.kind == Kind::Right),
            "{repaired}"
        );
        assert!(!repaired.is_regression(), "{repaired}");
    }
    // To decline is better than to be wrong, and worse than nothing else here.
    let better = changed(|after| after.rows[WRONG.0].measurements[WRONG.1].outcome = Outcome::Declined(why()));
    assert_eq!(only(&better), (Kind::Declined, false));
}

#[test]
fn graphs_and_engines_come_and_go() {
    assert_eq!(only(&changed(|after| after.rows.truncate(11))), (Kind::Gone, true));
    let renamed = changed(|after| after.rows[2].graph = "another".to_owned());
    let kinds: Vec<Kind> = renamed.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [Kind::Gone, Kind::New]);

    let gone = changed(|after| {
        after.engines.remove(1);
        after.rows.iter_mut().for_each(|row| drop(row.measurements.remove(1)));
    });
    assert_eq!(only(&gone), (Kind::Gone, true));
    // The engine behind it is still compared with itself.
    assert_eq!(gone.same, (12 + 10) * 2);
    let unusable = changed(|after| after.engines[1].unusable = Some("no such file".to_owned()));
    assert_eq!(only(&unusable), (Kind::Gone, true));
    assert_eq!(
        only(&changed(|after| after.rows[0].measurements[0].hot = None)),
        (Kind::Gone, true)
    );

    // Two graphs of one name are distinguished by their order.
    let mut twice = results(Clock::Cpu);
    twice.rows[1].graph = twice.rows[0].graph.clone();
    assert!(compare(&twice, &twice).changes.is_empty());
}

#[test]
fn runs_that_cannot_be_compared_are_told() {
    let other = changed(|after| {
        after.machine.device = "another".to_owned();
        after.machine.facts[0].1 = "another processor".to_owned();
        after.machine.facts[2].1 = "0.5".to_owned();
        after.seed = 43;
        after.engines[0].version = "1.3.0".to_owned();
        after.rows[0].bytes += 1;
    });
    assert_eq!(other.warnings.len(), 5, "{other}");
    assert_eq!(other.same, (33 - 3) * 2, "{other}");
    assert!(
        other
            .to_string()
            .contains("warning: the machines differ: device CPU before, another after"),
        "{other}"
    );
    assert!(!other.is_regression(), "{other}");

    for (before, after) in [(Clock::Emulated, Clock::Emulated), (Clock::Cpu, Clock::Gpu)] {
        let (before, mut after) = (results(before), results(after));
        scale(hot(&mut after), 3.0);
        after.rows[1].measurements[0].outcome = Outcome::Wrong("why".to_owned());
        let changes = compare(&before, &after);
        assert_eq!(only(&changes), (Kind::Wrong, true));
        assert!(changes.warnings[0].ends_with("they are not compared"), "{changes}");
    }
}

#[test]
fn the_text_is_short_and_the_json_is_whole() {
    let changes = changed(|after| {
        scale(hot(after), 1.5);
        after.rows[5].graph = "\u{1b}[2Jnew".to_owned();
    });
    let text = changes.to_string();
    assert!(text.ends_with("1 gone, 1 slower, 1 new, 59 times the same\n"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let json = serde_json::to_value(&changes).expect("it is written");
    assert_eq!(json["changes"][1]["kind"], "slower");
    assert_eq!(json["changes"][1]["engine"], "rotini");
    assert_eq!(json["changes"][1]["regression"], true);
}
