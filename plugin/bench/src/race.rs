//! Races between candidates for one graph: each is verified against the reference, then the
//! verified ones take turns until the fastest is known.
//!
//! Each candidate runs in its own process, so a crash or a hang affects no other. In each round the
//! candidates take turns in random order. Buffers rotate, and the first execution on each set of
//! buffers is not timed. A candidate leaves the race once it is slower than the leader with 95 %
//! confidence, by the ratios of the rounds.

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

/// The limits of a race.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The seed of the inputs and of the order of turns.
    pub seed: u64,
    /// The duration of one turn, in microseconds.
    pub turn: f64,
    /// The least total size of the rotating buffers, in bytes.
    pub rotate: u64,
    /// The most rounds.
    pub most_rounds: u32,
}

/// Rounds before a conclusion: fewer samples give no interval of 95 % confidence.
const LEAST_ROUNDS: u32 = 6;
/// After this many rounds, a candidate is out if it took this many times as long as the leader in
/// each of them. One quiet round keeps it: a burst of foreign load must not decide.
const HOPELESS: (u32, f64) = (4, 1.5);
/// The ratio of two times below which candidates count as equal.
const EQUAL: f64 = 1.01;

/// Creates the context of a graph, executes it once, and verifies the results against the
/// reference. Returns the bytes of all buffers.
///
/// # Errors
///
/// The outer error: the process cannot be started. The inner error: the engine failed, or
/// [`Outcome::Wrong`] if its results are wrong.
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

/// The result of a race for one candidate.
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

/// Races candidates whose contexts exist already. `progress` receives the number of the round and
/// of the candidates that are left. Returns the times of each candidate, or why there are none.
///
/// # Errors
///
/// A process cannot be reached.
pub fn race(
    sessions: &mut [Session<'_>],
    rules: &Rules,
    mut progress: impl FnMut(u32, usize),
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
        progress(round, order.len());
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

/// Removes the candidates that are slower than the leader. Returns true if the race is over.
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
        let (after, times) = HOPELESS;
        let is_hopeless = rounds >= after && ratios.iter().all(|&ratio| ratio > times);
        let Some((_, low, high)) = interval(&[ratios]) else {
            continue;
        };
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
        let leader = [10.0, 11.0, 10.0, 10.5];
        let disturbed = [40.0, 40.0, 10.5, 40.0];
        let mut runners = [runner(&leader), runner(&[20.0, 21.0, 20.0, 20.0]), runner(&disturbed)];
        assert!(!conclude(&mut runners, 4));
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
