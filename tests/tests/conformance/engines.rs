//! Tests of the engines that rotini is measured against: a comparison with a wrong engine would be
//! meaningless.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up has failed, and what is left out is told"
)]

use rotini_tests::cases;
use rotini_tests::engines::{Other, finite, judge};
use rotini_tests::harness::Runner;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Sampling interval of cases on the plain engine: it computes with the judge's own code, so this
/// only tests its access to buffers.
const EVERY: [usize; 2] = [141, 23];

#[test]
fn the_plain_engine_is_right() {
    let runner = Runner::cpu().unwrap_or_else(|error| panic!("{error:#}"));
    let plain = Other::load("reference").unwrap_or_else(|error| panic!("{error:#}"));
    let mut declined = Vec::new();
    let mut right = 0;
    for mut case in cases::all().into_iter().step_by(rotini_tests::scaled(EVERY)) {
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

/// Operations that ONNX Runtime's engine runs: none may lose its last case.
const KINDS: [&str; 11] = [
    "batchnorm inference",
    "pointwise",
    "convolution fprop",
    "convolution dgrad",
    "batchnorm inference with variance",
    "matmul",
    "RMSNorm",
    "layernorm",
    "SDPA",
    "reduction",
    "resample forward",
];

#[test]
fn onnx_runtime_is_right() {
    onnx_runtime();
}

#[test]
fn onnx_runtime_is_right_when_it_takes_weights_for_constants() {
    // SAFETY: nothing else in this test reads or writes the environment.
    unsafe { std::env::set_var("ONNXRUNTIME_ENGINE_CONSTANTS", "1") };
    onnx_runtime();
}

/// Runs the cases that the engine accepts, each context with new values after the first execution:
/// all in a full run, else one in 32 and the first of each kind. The engine is a peer of the
/// benches, and only its own code can break it.
fn onnx_runtime() {
    if std::env::var_os("ROTINI_ONNXRUNTIME").is_none_or(|path| !Path::new(&path).exists()) {
        let reason = "ONNX Runtime is not installed (scripts/setup --test installs it)";
        assert!(std::env::var_os("ROTINI_TEST_REQUIRE_ALL").is_none(), "{reason}");
        println!("skipped: {reason}");
        return;
    }
    let other = Other::load("onnxruntime").unwrap_or_else(|error| panic!("{error:#}"));
    let mut right: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    let every = rotini_tests::scaled([32, 1]);
    let first = rotini_tests::seed() % every;
    for (index, mut case) in (0..).zip(cases::all()) {
        let is_first = case.graph.nodes.iter().any(|node| !right.contains_key(node.op.kind()));
        if index % every != first && !is_first {
            continue;
        }
        let mut run = || -> anyhow::Result<bool> {
            case.graph.validate()?;
            if !other.is_applicable(&case.graph)? {
                return Ok(false);
            }
            let context = other.context(&case.graph)?;
            for seed in [1, 2] {
                judge(&case, &context, &finite(&case.graph, seed)?)?;
            }
            Ok(true)
        };
        match run() {
            Ok(true) => {
                for node in &case.graph.nodes {
                    *right.entry(node.op.kind()).or_default() += 1;
                }
            }
            Ok(false) => {}
            Err(error) => failures.push(format!("{}: {error:#}", case.name)),
        }
    }
    println!("{right:?}");
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(right.keys().copied().collect::<BTreeSet<_>>(), KINDS.into());
}
