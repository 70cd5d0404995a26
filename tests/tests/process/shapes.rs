//! A context whose shapes keep changing. Executions of known shapes do not wait for new ones.

use crate::{counted, directory};
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_host::{Context, DeviceBuffer, HostError, ShapeOverride, engine_config};
use rotini_plugin::serialized::Serialized;
use rotini_tests::harness::{Memory, Runner};
use rotini_tests::process::{Notes, command, part, run, wait_until};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Number of sets of shapes, more than a context keeps, from two threads.
const SETS: &str = "1100";
const THREADS: i64 = 2;
/// Number of columns of these shapes; the executions beside them have another number.
const COLUMNS: i64 = 3;
const ROWS: i64 = 1 << 16;
/// Number of sets that a context keeps.
const KEPT: usize = 1024;

/// Builds a graph that takes a while to execute.
fn declared() -> Graph {
    let dims = [ROWS, 8];
    let mut b = GraphBuilder::new("declared");
    let x = b.buffer("x", DataType::F32, &dims);
    let mut last = x;
    for step in 0..2 {
        let next = b.virtual_tensor(&format!("t{step}"), DataType::F32, &dims);
        b.pointwise(DataType::F32, PointwiseMode::TanhFwd, &[last], next);
        last = next;
    }
    let y = b.buffer("y", DataType::F32, &dims);
    b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[last], y);
    let mut graph = b.build();
    graph.override_shapes = true;
    graph.min_api_version = [1, 1, 0];
    graph
}

/// Executes with these extents of both buffers, on separate memory.
fn execute(context: &Context, graph: &Graph, dims: [i64; 2], memory: &mut [Memory; 2]) -> Result<(), HostError> {
    let ends = [graph.tensors.first(), graph.tensors.last()].map(|tensor| tensor.unwrap().uid);
    let overrides = ends.map(|uid| ShapeOverride {
        uid,
        dims: dims.to_vec(),
        strides: vec![dims[1], 1],
    });
    let pointers = memory.each_mut().map(|memory| memory.pointer().cast());
    let pack: Vec<DeviceBuffer> = ends
        .iter()
        .zip(pointers)
        .map(|(&uid, ptr)| DeviceBuffer { uid, ptr })
        .collect();
    // SAFETY: the memory has the size of the declared shapes, which are the largest; such graphs
    // need no workspace.
    unsafe { context.execute_with_overrides(std::ptr::null_mut(), &pack, &overrides) }
}

fn memory() -> [Memory; 2] {
    [(); 2].map(|()| Memory::new(&vec![0; ROWS as usize * 8 * 4], 64))
}

/// Returns the time that the calling thread has waited for a processor so far; zero if the system
/// does not report it.
fn queued() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Computes for about as long as an execution, without any call.
fn count() {
    let mut number = 1_u64;
    for _ in 0..100_000 {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= std::hint::black_box(number) << 17;
    }
}

/// Runs two functions alternately while `is_going`; returns the times of each in ascending order,
/// without the time for which no processor was available.
fn timed(mut works: [&mut dyn FnMut(); 2], mut is_going: impl FnMut() -> bool) -> [Vec<Duration>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    while is_going() {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let (waited, started) = (queued(), Instant::now());
            work();
            times.push(started.elapsed().saturating_sub(queued() - waited));
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    times
}

fn median(times: &[Duration]) -> Duration {
    times[times.len() / 2]
}

/// Executes known shapes alone, and then beside threads that create all sets of shapes. Prints
/// these times, and those of a compute loop for comparison.
fn beside_others(context: &Context, graph: &Graph, sets: i64) {
    let started = Instant::now();
    let mut own = memory();
    let mut known = || execute(context, graph, [ROWS, 7], &mut own).unwrap();
    let mut rounds = 0..200;
    let [alone, _] = timed([&mut known, &mut count], || rounds.next().is_some());
    let is_over = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut own = memory();
            let mut known = || execute(context, graph, [ROWS, 7], &mut own).unwrap();
            timed([&mut known, &mut count], || !is_over.load(Ordering::Acquire))
        });
        let others: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut memory = memory();
                    for rows in (1 + thread..=sets).step_by(THREADS as usize) {
                        if let Err(error) = execute(context, graph, [rows, COLUMNS], &mut memory) {
                            // The execution reached the code, which is compiled for another set of
                            // shapes.
                            assert!(error.to_string().contains("dimension 0 mismatch"), "{error}");
                        }
                    }
                })
            })
            .collect();
        let others: Vec<_> = others.into_iter().map(|other| other.join()).collect();
        is_over.store(true, Ordering::Release);
        let beside = beside.join().unwrap();
        assert!(others.iter().all(Result::is_ok), "a set of shapes failed");
        beside
    });
    println!(
        "{sets} sets of shapes in {:?}; {:?} is the median alone",
        started.elapsed(),
        median(&alone)
    );
    for (what, times) in ["executions", "loops that call nothing"].iter().zip(&beside) {
        let (median, longest) = (median(times), times.last().unwrap());
        let ratio = longest.as_secs_f64() / median.as_secs_f64();
        println!("{what} beside: median {median:?}, longest {longest:?}, {ratio:.1} × the median");
    }
    let [alone, median] = [&alone, &beside[0]].map(|times| median(times));
    assert!(median < 10 * alone, "executions wait for sets of shapes that are made");
}

/// All sets share one code, which is compiled for the first of them; otherwise the test would
/// consist of 1,100 runs of the compiler. Each set is lowered, cached and loaded separately
/// nevertheless; at execution the code refuses the other sets.
///
/// The longest execution is printed and not judged, because the machine affects it. Its possible
/// causes are judged: a context that drops everything when it is full would lose the set that is
/// used all the time (tested here); one that ends code under its lock (tested in
/// `rotini_plugin::context`); one that compiles under it (tested below).
#[test]
fn a_full_context_keeps_what_is_used() {
    let Some(sets) = part() else {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command(SETS, &directory.path().join("cache")).unwrap();
        counted(&mut command, &directory.path().join("log"))
            .env("ROTINI_TEST_COMPILER_MEMO", directory.path())
            .env("ROTINI_TEST_COMPILER_FAULT", format!("x{COLUMNS}xf32=alike"));
        println!("{}", run(&mut command).unwrap());
        return;
    };
    let (runner, graph, sets) = (Runner::cpu().unwrap(), declared(), sets.parse().unwrap());
    let context = runner
        .handle()
        .context(&engine_config(runner.engine()), &rotini_wire::encode(&graph))
        .unwrap();
    beside_others(&context, &graph, sets);
    let serialized = Serialized::decode(&context.serialize(None).unwrap()).unwrap();
    let known = serialized.shapes.unwrap().known;
    let has = |dims: [i64; 2]| known.iter().any(|(numbers, _)| numbers[2..4] == dims);
    assert_eq!(known.len(), KEPT);
    assert!(has([ROWS, 7]), "the set that was always used is gone");
    assert!(
        has([sets, COLUMNS]) && !has([1, COLUMNS]),
        "others went than the oldest"
    );
}

/// The test does not depend on time: a set of shapes is compiled only after others have been
/// executed.
#[test]
fn executions_do_not_wait_for_a_set_that_is_compiled() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command("hold", &directory.path().join("cache")).unwrap();
        counted(&mut command, &directory.path().join("log"))
            .env("ROTINI_TEST_DIRECTORY", directory.path())
            .env("ROTINI_TEST_COMPILER_GATE", directory.path().join("gate"))
            .env("ROTINI_TEST_COMPILER_FAULT", format!("x{COLUMNS}xf32=hold"));
        run(&mut command).unwrap();
        return;
    }
    let (runner, graph) = (Runner::cpu().unwrap(), declared());
    let context = runner
        .handle()
        .context(&engine_config(runner.engine()), &rotini_wire::encode(&graph))
        .unwrap();
    let mut own = memory();
    execute(&context, &graph, [ROWS, 7], &mut own).unwrap();
    let log = Notes::new(directory().join("log"));
    let compiled = log.lines().len();
    let (done, is_done) = mpsc::channel();
    let held = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let (context, graph, held) = (&context, &graph, &held);
        scope.spawn(move || {
            execute(context, graph, [5, COLUMNS], &mut memory()).unwrap();
            held.store(false, Ordering::Release);
        });
        wait_until("a set is compiled", || log.lines().len() > compiled).unwrap();
        scope.spawn(move || {
            for _ in 0..20 {
                execute(context, graph, [ROWS, 7], &mut own).unwrap();
            }
            done.send(()).unwrap();
        });
        let result = is_done.recv_timeout(Duration::from_secs(60));
        let was_held = held.load(Ordering::Acquire);
        fs::write(directory().join("gate"), "").unwrap();
        result.expect("executions wait for a set that is compiled");
        assert!(was_held, "nothing was held");
    });
}
