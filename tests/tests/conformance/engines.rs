//! The engines that rotini is measured against: a comparison with one that is wrong would say nothing.

#![expect(clippy::panic, reason = "a test that cannot be set up has failed")]

use rotini_tests::cases;
use rotini_tests::engines::Other;
use rotini_tests::harness::Runner;

/// Every so many of all cases are tried on the plain engine: it computes with the judge's own code, so this is about how it gets at buffers.
const EVERY: usize = 23;

#[test]
fn the_plain_engine_is_right() {
    let runner = Runner::cpu().unwrap_or_else(|error| panic!("{error:#}"));
    let plain = Other::load("reference").unwrap_or_else(|error| panic!("{error:#}"));
    let mut declined = Vec::new();
    let mut right = 0;
    for mut case in cases::all().into_iter().step_by(EVERY) {
        let name = case.name.clone();
        let mut run = || -> anyhow::Result<bool> {
            case.graph.validate()?;
            if !plain.is_applicable(&case.graph)? {
                return Ok(false);
            }
            runner.judge(&case, &plain.context(&case.graph)?, 16)?;
            Ok(true)
        };
        match run() {
            Ok(true) => right += 1,
            Ok(false) => declined.push(name),
            Err(error) => panic!("{name}: {error:#}"),
        }
    }
    assert!(
        declined.len() * 20 <= right,
        "{right} are right, and declined are {declined:?}"
    );
}
