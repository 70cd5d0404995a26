//! The plain engine on a GPU.

#![expect(clippy::panic, reason = "a test that cannot be set up has failed")]

use rotini_tests::cases;
use rotini_tests::engines::Other;
use rotini_tests::harness::Runner;

#[test]
fn the_plain_engine_works_in_a_gpus_memory() {
    let runner = Runner::gpu().unwrap_or_else(|error| panic!("{error:#}"));
    let plain = Other::load("reference").unwrap_or_else(|error| panic!("{error:#}"));
    for mut case in cases::all().into_iter().step_by(211) {
        let mut run = || -> anyhow::Result<()> {
            case.graph.validate()?;
            if plain.is_applicable(&case.graph)? {
                runner.judge(&case, &plain.context(&case.graph)?, 16)?;
            }
            Ok(())
        };
        run().unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    }
}
