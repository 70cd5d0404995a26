//! No bytes make the plugin crash, hang, leak or violate the protocol.
//!
//! From fixed seeds, 20,000 graphs (100,000 in a full run) and as many engine configs are damaged
//! as a careless or hostile host could. They go through every function of the ABI that takes bytes.
//! A failure names its round, and the same round fails again. A graph that is still accepted must
//! be right: a sample of them is compiled, executed and judged.

#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use rotini_graph::{Graph, TensorKind};
use rotini_host::{Handle, HostError, engine_config};
use rotini_reference::{ReferenceError, span_bytes};
use rotini_tests::cases::{self, Case};
use rotini_tests::damage::damage;
use rotini_tests::harness::Runner;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const ROUNDS: [u64; 2] = [5_000, 100_000];
/// Maximum number of accepted mutants that are compiled, and executed if their buffers are small.
const COMPILED: usize = 40;
const SMALL_BYTES: usize = 1 << 20;
/// Time after which a single cheap call counts as a hang. Such calls take microseconds; the limit
/// allows for busy machines.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the whole test, including compilation.
const TEST_LIMIT: Duration = Duration::from_secs(600);
/// Bytes by which the heaps may grow when half of the rounds are repeated: the caches of two
/// threads take 54 KiB.
const GROWTH_LIMIT: usize = 256 << 10;

const BAD_PARAM: i32 = 1;
const INVALID_VALUE: i32 = 2;
const NOT_APPLICABLE: i32 = 5;

/// Returns hipDNN's own serializations, every case, and the declined graphs.
fn originals() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/hipdnn");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fb"))
        .collect();
    paths.sort();
    let samples = paths.iter().map(|path| std::fs::read(path).unwrap());
    let declined = cases::declined().into_iter().map(|(case, _)| case);
    samples
        .chain(
            cases::all()
                .into_iter()
                .chain(declined)
                .map(|case| rotini_wire::encode(&case.graph)),
        )
        .collect()
}

fn mutant(round: u64, stream: u64, originals: &[Vec<u8>]) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(round);
    rng.set_stream(stream);
    let mut bytes = originals.choose(&mut rng).unwrap().clone();
    for _ in 0..rng.random_range(1..4) {
        damage(&mut bytes, originals, &mut rng);
    }
    bytes
}

/// The totals of all rounds.
#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    malformed: AtomicU64,
    unsupported: AtomicU64,
    configs_accepted: AtomicU64,
    slowest_nanos: AtomicU64,
}

impl Counts {
    /// Times a call that must be quick.
    fn timed<T>(&self, round: u64, call: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = call();
        let took = started.elapsed();
        assert!(took < CALL_LIMIT, "round {round}: a call took {took:?}");
        self.slowest_nanos
            .fetch_max(u64::try_from(took.as_nanos()).unwrap(), Relaxed);
        result
    }
}

/// Returns the status of a call. A caught panic fails the test.
fn status<T>(round: u64, result: Result<T, HostError>) -> i32 {
    match result {
        Ok(_) => 0,
        Err(HostError::Status { function, status, text }) => {
            assert!(
                !text.is_empty() && !text.contains("panicked"),
                "round {round}: {function}: {text}"
            );
            status
        }
        Err(other) => panic!("round {round}: {other}"),
    }
}

/// Passes one mutant to the functions that take a graph. Returns whether it is accepted.
fn graph_round(handle: &Handle, engine: i64, round: u64, bytes: &[u8], counts: &Counts) -> bool {
    let config = engine_config(engine);
    let engines = counts.timed(round, || handle.applicable(bytes));
    // An error would end the search in every plugin.
    let engines = engines.unwrap_or_else(|error| panic!("round {round}: {error}"));
    let estimate = status(round, counts.timed(round, || handle.workspace_estimate(&config, bytes)));
    counts
        .timed(round, || handle.details(engine, bytes))
        .unwrap_or_else(|error| panic!("round {round}: {error}"));
    let accepted = engines == [engine];
    if accepted {
        assert_eq!(estimate, 0, "round {round}: accepted, and no workspace is told");
        counts.accepted.fetch_add(1, Relaxed);
    } else {
        assert!(engines.is_empty(), "round {round}: {engines:?}");
        // The refusal names the right reason, before anything is compiled.
        let created = status(round, counts.timed(round, || handle.context(&config, bytes)));
        assert_eq!(created, estimate, "round {round}");
        match created {
            INVALID_VALUE => counts.malformed.fetch_add(1, Relaxed),
            NOT_APPLICABLE => counts.unsupported.fetch_add(1, Relaxed),
            other => panic!("round {round}: status {other} for a graph that was declined"),
        };
    }
    accepted
}

fn config_round(handle: &Handle, round: u64, config: &[u8], graph: &[u8], counts: &Counts) {
    let estimate = status(round, counts.timed(round, || handle.workspace_estimate(config, graph)));
    match estimate {
        0 => {
            counts.configs_accepted.fetch_add(1, Relaxed);
        }
        BAD_PARAM | INVALID_VALUE => {
            assert_eq!(
                status(round, counts.timed(round, || handle.context(config, graph))),
                estimate,
                "round {round}"
            );
        }
        other => panic!("round {round}: status {other} for an engine config"),
    }
}

/// Ends the process if the test takes too long: a thread that hangs in the plugin cannot be ended
/// otherwise.
fn watch() -> mpsc::Sender<()> {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        if wait.recv_timeout(TEST_LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("the test takes more than {TEST_LIMIT:?}: some call hangs");
            std::process::abort();
        }
    });
    done
}

/// Returns the allocated bytes of all heaps of this process, including the plugin's. Resident bytes
/// would depend on fragmentation, and on what the system reclaims.
fn allocated() -> usize {
    // SAFETY: the function has no requirements.
    let heaps = unsafe { libc::mallinfo2() };
    heaps.uordblks + heaps.hblkhd
}

fn is_small(graph: &Graph) -> bool {
    let buffers = graph
        .tensors
        .iter()
        .filter(|tensor| tensor.kind != TensorKind::RuntimeScalar);
    buffers
        .map(|tensor| span_bytes(tensor).unwrap_or(usize::MAX))
        .fold(0, usize::saturating_add)
        < SMALL_BYTES
}

/// Returns the key of an accepted graph: mutants that differ only in names, uids or unread bytes
/// have the same key.
fn key(bytes: &[u8]) -> Option<Vec<u8>> {
    rotini_wire::decode(bytes)
        .ok()
        .map(|graph| graph.normalise().0.canonical_bytes().unwrap())
}

#[test]
fn damaged_bytes_do_no_harm() {
    let (done, total) = (watch(), rotini_tests::scaled(ROUNDS));
    let started = Instant::now();
    let runner = Runner::cpu().unwrap();
    let (handle, engine) = (runner.handle(), runner.engine());
    let (originals, configs) = (originals(), [engine_config(engine), vec![0; 24]]);
    let graph = rotini_wire::encode(&cases::all()[0].graph);
    // The first call searches for the compiler.
    assert_eq!(handle.applicable(&graph).unwrap(), [engine]);
    let counts = Counts::default();
    let rounds = |rounds: std::ops::Range<u64>| -> Vec<u64> {
        rounds
            .into_par_iter()
            .filter(|&round| {
                config_round(handle, round, &mutant(round, 1, &configs), &graph, &counts);
                graph_round(handle, engine, round, &mutant(round, 0, &originals), &counts)
            })
            .collect()
    };
    let mut accepted = rounds(0..total / 2);
    let before = allocated();
    let again = rounds(0..total / 2);
    let growth = allocated().saturating_sub(before);
    assert_eq!(accepted, again);
    accepted.append(&mut rounds(total / 2..total));
    let slowest = Duration::from_nanos(counts.slowest_nanos.load(Relaxed));
    println!(
        "{total} graphs: {} accepted, {} malformed, {} unsupported; {total} engine configs: {} accepted; slowest call {slowest:?}; \
         {} KiB more memory for {} rounds again; {:?}",
        accepted.len(),
        counts.malformed.load(Relaxed),
        counts.unsupported.load(Relaxed),
        counts.configs_accepted.load(Relaxed),
        growth / 1024,
        total / 2,
        started.elapsed(),
    );
    // Each kind of damage occurred: a test that only reaches the verifier would show little.
    for count in [
        &counts.accepted,
        &counts.malformed,
        &counts.unsupported,
        &counts.configs_accepted,
    ] {
        assert!(count.load(Relaxed) > total / 200);
    }
    assert!(growth < GROWTH_LIMIT, "{growth} bytes");

    // The accepted mutants, each once, without graphs that other tests execute.
    let known: Vec<_> = originals.iter().filter_map(|bytes| key(bytes)).collect();
    let mut fresh: BTreeMap<Vec<u8>, u64> = accepted
        .iter()
        .filter_map(|&round| Some((key(&mutant(round, 0, &originals))?, round)))
        .collect();
    fresh.retain(|key, _| !known.contains(key));
    let step = fresh.len().div_ceil(COMPILED).max(1);
    let sample: Vec<u64> = fresh.into_values().step_by(step).collect();
    assert!(sample.len() > COMPILED / 2, "{sample:?}");
    let (executed, skipped) = (AtomicU64::new(0), AtomicU64::new(0));
    let run = |round: u64| -> anyhow::Result<()> {
        let bytes = mutant(round, 0, &originals);
        drop(handle.context(&engine_config(engine), &bytes)?);
        let graph = rotini_wire::decode(&bytes)?;
        if is_small(&graph) {
            let case = Case {
                name: format!("round {round}"),
                graph,
            };
            match runner.run(&case, 16) {
                Ok(_) => drop(executed.fetch_add(1, Relaxed)),
                // The reference recognises bodies of custom operations by their text, in which a
                // letter may have changed.
                Err(error) if matches!(error.downcast_ref(), Some(ReferenceError::Unsupported { .. })) => {
                    skipped.fetch_add(1, Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    let failures: Vec<String> = sample
        .par_iter()
        .filter_map(|&round| {
            run(round)
                .err()
                .map(|error| format!("round {round} is accepted, but: {error:#}"))
        })
        .collect();
    println!(
        "{} accepted mutants compiled, {executed:?} of them executed; {:?}",
        sample.len(),
        started.elapsed()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let (executed, skipped) = (executed.into_inner(), skipped.into_inner());
    assert!(
        executed > skipped,
        "{executed} executed, {skipped} unknown to the reference"
    );
    drop(done);
}
