//! Candidates for one graph: each is held against the reference, then those that are right take
//! turns until it is clear which one is the fastest.
//!
//! Each candidate has a process, so that one that crashes or hangs spoils nothing else. In each
//! round the candidates take turns in an order that chance decides. Buffers rotate, and one
//! execution of each set of them is not timed. A candidate leaves the race when it is slower than
//! the leader with 95 % confidence, round by round.

use crate::client::LaunchError;
use crate::judge::{Judgement, Reference};
use crate::protocol::{Answer, Request, Values, Way, split};
use crate::results::{Outcome, Times};
use crate::session::{Session, unexpected};
use crate::statistics::{interval, times};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rotini_graph::Graph;
use std::path::Path;

/// How long a race is.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The seed of the inputs and of the order of turns.
    pub seed: u64,
    /// How long one turn takes, in microseconds.
    pub turn: f64,
    /// How many bytes the rotating buffers have together at least.
    pub rotate: u64,
    /// The most rounds.
    pub most_rounds: u32,
}

/// Rounds before anything is concluded: with fewer samples no interval has a confidence of 95 %.
const LEAST_ROUNDS: u32 = 6;
/// After this many rounds, who takes this many times as long as the leader is out.
const HOPELESS: (u32, f64) = (2, 1.5);
/// Candidates that are this close are as good as equal.
const EQUAL: f64 = 1.01;

/// Creates the context of a graph, executes it once, and holds the results against the reference.
/// Returns the bytes of all buffers.
///
/// # Errors
///
/// No process. What the engine does is the inner error: [`Outcome::Wrong`] if its results are.
pub fn verify(
    session: &mut Session<'_>,
    (file, graph): (&Path, &Graph),
    reference: &Reference<'_>,
    seed: u64,
) -> Result<Result<Vec<u8>, Outcome>, LaunchError> {
    if let Err(outcome) = session.create(file)? {
        return Ok(Err(outcome));
    }
    let bytes = match session.execute_once(seed, None, Way::Called)? {
        Ok((_, bytes)) => bytes,
        Err(outcome) => return Ok(Err(outcome)),
    };
    Ok(judged(graph, reference, &bytes).map(|()| bytes))
}

fn judged(graph: &Graph, reference: &Reference<'_>, bytes: &[u8]) -> Result<(), Outcome> {
    let got = split(graph, bytes);
    match reference.judge(|uid| got.get(&uid).map(Vec::as_slice)) {
        Ok((Judgement::Right, _)) => Ok(()),
        Ok((Judgement::Wrong(reason), _)) => Err(Outcome::Wrong(reason)),
        Ok((Judgement::Unchecked(reason), _)) => Err(Outcome::Unjudged(reason)),
        Err(error) => Err(Outcome::Unjudged(error.to_string())),
    }
}

/// What a race says of a candidate.
#[derive(Clone, Debug)]
pub struct Raced {
    /// Its times, in microseconds.
    pub times: Times,
    /// Whether it was slower than the leader with 95 % confidence, or hopelessly slow.
    pub is_beaten: bool,
}

/// A candidate in a race.
struct Runner {
    /// One sample for each round, in microseconds.
    samples: Vec<f64>,
    /// Why it is out, if something went wrong.
    failed: Option<Outcome>,
    is_out: bool,
}

/// Lets candidates take turns. Each has the context of the graph already. `told` hears the number
/// of the round and how many candidates are left. Returns the times of each, or why there are none.
///
/// # Errors
///
/// No process.
pub fn race(
    sessions: &mut [Session<'_>],
    rules: &Rules,
    mut told: impl FnMut(u32, usize),
) -> Result<Vec<Result<Raced, Outcome>>, LaunchError> {
    let runner = |_: &Session<'_>| Runner {
        samples: Vec::new(),
        failed: None,
        is_out: false,
    };
    let mut runners: Vec<Runner> = sessions.iter().map(runner).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(rules.seed);
    let request = Request::Round {
        seed: rules.seed,
        values: Values::Exact,
        rotate: rules.rotate,
        microseconds: rules.turn,
    };
    for round in 0..rules.most_rounds {
        let mut order: Vec<usize> = (0..runners.len()).filter(|&index| !runners[index].is_out).collect();
        told(round, order.len());
        if order.is_empty() || order.len() < 2 && round >= LEAST_ROUNDS.min(rules.most_rounds) {
            break;
        }
        order.shuffle(&mut rng);
        for index in order {
            let answer = sessions[index].ask(&request)?;
            let runner = &mut runners[index];
            match answer {
                Ok(Answer::Round { microseconds, .. }) => runner.samples.push(microseconds),
                Ok(_) => runner.failed = Some(unexpected()),
                Err(outcome) => runner.failed = Some(outcome),
            }
            runner.is_out |= runner.failed.is_some();
        }
        if conclude(&mut runners, round + 1) {
            break;
        }
    }
    let result = |runner: Runner| match runner.failed {
        Some(outcome) => Err(outcome),
        None => {
            let times = times(&[runner.samples]).ok_or_else(|| Outcome::Failed("it had no turn".to_owned()))?;
            Ok(Raced {
                times,
                is_beaten: runner.is_out,
            })
        }
    };
    Ok(runners.into_iter().map(result).collect())
}

/// Takes those out of the race that are slower than the leader; whether the race is over.
fn conclude(runners: &mut [Runner], rounds: u32) -> bool {
    let median = |samples: &[f64]| interval(&[samples.to_vec()]).map(|(median, ..)| median);
    let left: Vec<usize> = (0..runners.len()).filter(|&index| !runners[index].is_out).collect();
    let medians = left
        .iter()
        .filter_map(|&index| Some((index, median(&runners[index].samples)?)));
    let Some((leader, _)) = medians.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
        return true;
    };
    let first = runners[leader].samples.clone();
    let mut is_clear = rounds >= LEAST_ROUNDS;
    for index in left.into_iter().filter(|&index| index != leader) {
        let runner = &mut runners[index];
        // Round by round: what slows both down is in both.
        let ratios: Vec<f64> = runner
            .samples
            .iter()
            .zip(&first)
            .map(|(own, first)| own / first)
            .collect();
        let Some((ratio, low, high)) = interval(&[ratios]) else {
            continue;
        };
        let (after, times) = HOPELESS;
        let is_hopeless = rounds >= after && ratio > times;
        runner.is_out = is_hopeless || rounds >= LEAST_ROUNDS && low > 1.0;
        is_clear &= runner.is_out || high < EQUAL;
    }
    is_clear
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(samples: &[f64]) -> Runner {
        Runner {
            samples: samples.to_vec(),
            failed: None,
            is_out: false,
        }
    }

    #[test]
    fn who_is_clearly_slower_is_out() {
        let mut runners = [runner(&[10.0, 11.0]), runner(&[20.0, 21.0]), runner(&[12.0, 10.5])];
        assert!(!conclude(&mut runners, 2));
        assert_eq!(runners.map(|runner| runner.is_out), [false, true, false]);
        // A load that doubles some rounds doubles them for both.
        let slow = [10.2, 20.5, 10.3, 20.6, 10.2, 20.4];
        let mut runners = [runner(&[10.0, 20.0, 10.0, 20.0, 10.0, 20.0]), runner(&slow)];
        assert!(conclude(&mut runners, 6));
        assert_eq!(runners.map(|runner| runner.is_out), [false, true]);
    }

    #[test]
    fn who_may_be_as_fast_stays() {
        let noisy = [10.0, 12.0, 9.0, 14.0, 10.5, 9.5];
        let mut runners = [runner(&[10.0, 11.0, 9.9, 12.0, 10.0, 10.4]), runner(&noisy)];
        assert!(!conclude(&mut runners, 6));
        assert!(!runners.iter().any(|runner| runner.is_out));
    }
}
