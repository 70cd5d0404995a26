//! The plugin's work is in order on the caller's streams. It sees what was enqueued before it, and
//! later work sees its results, whatever the order in which a GPU reaches them.
//!
//! A schedule is a seeded program of a host: producers fill inputs, the plugin executes, consumers
//! take outputs away. It uses one or several streams with events between them, and changes streams,
//! contexts and handles on the way. Every result is judged. On the emulated MI300, each schedule
//! also seeds the emulator's scheduler, which delays and reorders everything that the API allows.
//!
//! A last test shows that a missing wait would be noticed: without the producer's event, schedules
//! fail.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use crate::contents;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_graph::{Graph, TensorId};
use rotini_host::gpu::{Allocation, Driver, Event, Gpu, Stream};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, engine_config};
use rotini_reference::{Buffers, Evaluation, evaluate, fill_all};
use rotini_tests::cases;
use rotini_tests::harness;
use std::sync::OnceLock;

/// Number of executions in a schedule, on each of its streams.
const ROUNDS: usize = 4;
/// Number of fillings of the inputs that executions choose from: a stale read gives another
/// filling's result.
const FILLINGS: usize = 3;

/// A machine, the plugin on it, and the graphs that schedules execute: one of a single kernel, one
/// of two with a workspace between.
struct Bench {
    gpu: Gpu,
    plugin: Plugin,
    engine: i64,
    subjects: Vec<Subject>,
    seed_scheduler: Option<unsafe extern "C" fn(u64)>,
}

struct Subject {
    bytes: Vec<u8>,
    inputs: Vec<i64>,
    outputs: Vec<(i64, TensorId)>,
    fillings: Vec<(Buffers, Evaluation<'static>)>,
}

impl Subject {
    fn new(name: &str) -> Self {
        let mut graph = cases::named(name).unwrap().graph;
        let bytes = rotini_wire::encode(&graph);
        graph.validate().unwrap();
        // Leaked, since evaluations borrow it, and subjects live as long as the process.
        let graph: &'static Graph = Box::leak(Box::new(graph));
        let (inputs, outputs) = harness::stored(graph)
            .into_iter()
            .partition::<Vec<_>, _>(|&(_, is_output)| !is_output);
        let uid = |id| graph.tensor(id).unwrap().uid;
        Subject {
            bytes,
            inputs: inputs.into_iter().map(|(id, _)| uid(id)).collect(),
            outputs: outputs.into_iter().map(|(id, _)| (uid(id), id)).collect(),
            fillings: (0..FILLINGS as u64)
                .map(|seed| {
                    let filling = fill_all(graph, seed).unwrap();
                    let evaluation = evaluate(graph, &filling).unwrap();
                    (filling, evaluation)
                })
                .collect(),
        }
    }

    /// Checks that a result is that of a filling.
    fn judge(&self, filling: usize, (uid, id): (i64, TensorId), result: &[u8]) -> Result<(), String> {
        let (before, evaluation) = &self.fillings[filling];
        evaluation
            .judge(id, result, &before[&uid])
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| {
        let gpu = harness::gpu().expect("there is a GPU, real or emulated");
        // SAFETY: the plugin that this workspace builds.
        let plugin = unsafe { Plugin::load(rotini_tests::plugin::path().unwrap()) }.unwrap();
        let engine = plugin.engine_ids().unwrap()[0];
        let seed_scheduler = seed_function(gpu.driver());
        Bench {
            gpu,
            plugin,
            engine,
            subjects: ["conv_odd_nhwc_f32", "two_convs_nhwc"].map(Subject::new).into(),
            seed_scheduler,
        }
    })
}

/// Returns the emulator's function that seeds its scheduler; a real GPU has none.
fn seed_function(driver: &Driver) -> Option<unsafe extern "C" fn(u64)> {
    // SAFETY: the emulator declares this signature.
    let function = unsafe { driver.function("hipemu_set_seed") }.ok();
    let is_real = std::env::var_os("ROTINI_TEST_DEVICE").is_some();
    assert!(function.is_some() || is_real, "the emulator has no scheduler");
    function
}

/// The waits that a schedule's host omits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Careful,
    ForgetsProducer,
    ForgetsConsumer,
}

/// The memory of one stream's executions.
struct Lane<'a> {
    subject: &'a Subject,
    /// `None` once the host has destroyed them.
    engine: Option<(Handle, Context)>,
    /// Indexed by filling, then by input.
    sources: Vec<Vec<Allocation>>,
    inputs: Vec<Allocation>,
    outputs: Vec<Allocation>,
    /// Indexed by round, then by output.
    results: Vec<Vec<Allocation>>,
    workspace: Option<Allocation>,
    chosen: Vec<usize>,
    /// Recorded after the last consumer: the buffers may be written again.
    free: Event,
}

impl<'a> Lane<'a> {
    fn new(bench: &'a Bench, subject: &'a Subject, handle: Handle, has_workspace: bool) -> Self {
        let gpu = &bench.gpu;
        let filled = |bytes: &[u8]| crate::filled(gpu, bytes);
        let (first, _) = &subject.fillings[0];
        let outputs = || subject.outputs.iter().map(|(uid, _)| filled(&first[uid])).collect();
        let context = handle.context(&engine_config(bench.engine), &subject.bytes).unwrap();
        let workspace = context.workspace().unwrap();
        Lane {
            subject,
            sources: subject
                .fillings
                .iter()
                .map(|(filling, _)| subject.inputs.iter().map(|uid| filled(&filling[uid])).collect())
                .collect(),
            // Before the first producer they hold the inputs of another filling.
            inputs: subject.inputs.iter().map(|uid| filled(&first[uid])).collect(),
            outputs: outputs(),
            results: (0..ROUNDS).map(|_| outputs()).collect(),
            // Without a workspace, executions share memory of the plugin's.
            workspace: (workspace > 0 && has_workspace).then(|| gpu.allocate(workspace).unwrap()),
            chosen: Vec::new(),
            free: gpu.event(false).unwrap(),
            engine: Some((handle, context)),
        }
    }

    /// Runs one round: produce on one stream, execute on a second, consume on a third; these may be
    /// the same.
    fn round(&mut self, bench: &Bench, rng: &mut ChaCha8Rng, streams: &[Stream], host: Host) {
        let gpu = &bench.gpu;
        let round = self.chosen.len();
        let pick = |rng: &mut ChaCha8Rng| rng.random_range(0..streams.len());
        let (producer, executor, consumer) = (pick(rng), pick(rng), pick(rng));
        // Never the filling of the previous round: a stale read would be right by accident.
        let filling = match self.chosen.last() {
            Some(&last) => (last + rng.random_range(1..FILLINGS)) % FILLINGS,
            None => rng.random_range(1..FILLINGS),
        };
        let between = |from: usize, to: usize| {
            if from != to {
                let event = gpu.event(false).unwrap();
                event.record(&streams[from]).unwrap();
                streams[to].wait(&event).unwrap();
            }
        };

        if round > 0 {
            streams[producer].wait(&self.free).unwrap();
        }
        for (input, source) in self.inputs.iter().zip(&self.sources[filling]) {
            // SAFETY: both live until the schedule's end, which waits.
            unsafe { streams[producer].copy(input, source, source.bytes()) }.unwrap();
        }
        if host != Host::ForgetsProducer {
            between(producer, executor);
        }

        // SAFETY: the stream lives until the schedule's end, which waits.
        unsafe { self.set_stream(&streams[executor]) };
        if rng.random_ratio(1, 8) {
            // The previous round's context is destroyed while its work may be pending.
            let (handle, context) = self.engine.as_mut().unwrap();
            *context = handle
                .context(&engine_config(bench.engine), &self.subject.bytes)
                .unwrap();
        }
        // SAFETY: the lane lives until the schedule's end, which waits; its rounds are ordered by
        // events.
        unsafe { self.execute() };
        // Another stream, before the work is done: it affects the next execution, not this one.
        // SAFETY: as above.
        unsafe { self.set_stream(&streams[pick(rng)]) };

        if host != Host::ForgetsConsumer {
            between(executor, consumer);
        }
        for (output, result) in self.outputs.iter().zip(&self.results[round]) {
            // SAFETY: as above.
            unsafe { streams[consumer].copy(result, output, output.bytes()) }.unwrap();
        }
        // All other dependencies are kept, since this schedule tests only the omitted wait.
        between(executor, consumer);
        self.free.record(&streams[consumer]).unwrap();
        self.chosen.push(filling);
    }

    /// Sends the following executions to another stream.
    ///
    /// # Safety
    ///
    /// The stream lives until their work is done.
    unsafe fn set_stream(&self, stream: &Stream) {
        // SAFETY: by this function's contract.
        unsafe { self.engine.as_ref().unwrap().0.set_stream(stream.raw()) }.unwrap();
    }

    /// Executes on the handle's stream.
    ///
    /// # Safety
    ///
    /// The lane lives until the work is done, and no other execution of it is in flight meanwhile:
    /// they share the workspace.
    unsafe fn execute(&self) {
        let outputs = self.subject.outputs.iter().map(|(uid, _)| uid);
        let pack: Vec<DeviceBuffer> = (self.subject.inputs.iter().zip(&self.inputs))
            .chain(outputs.zip(&self.outputs))
            .map(|(&uid, memory)| DeviceBuffer {
                uid,
                ptr: memory.pointer(),
            })
            .collect();
        let workspace = self
            .workspace
            .as_ref()
            .map_or(std::ptr::null_mut(), Allocation::pointer);
        // SAFETY: the buffers have the spans of their tensors, the workspace its size; the rest by
        // this function's contract.
        unsafe { self.engine.as_ref().unwrap().1.execute(workspace, &pack) }.unwrap();
    }

    /// Checks the results, after all work is done.
    fn verdict(&self) -> Result<(), String> {
        for (round, (&filling, results)) in self.chosen.iter().zip(&self.results).enumerate() {
            for (&output, result) in self.subject.outputs.iter().zip(results) {
                self.subject
                    .judge(filling, output, &contents(result))
                    .map_err(|error| format!("round {round}: {error}"))?;
            }
        }
        Ok(())
    }
}

/// Runs the host's program of a seed.
fn schedule(bench: &Bench, seed: u64, streams: usize, lanes: usize, host: Host) -> Result<(), String> {
    bench.gpu.select().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    if let Some(seed_scheduler) = bench.seed_scheduler {
        // SAFETY: takes a number.
        unsafe { seed_scheduler(rng.next_u64()) };
    }
    let streams: Vec<Stream> = (0..streams).map(|_| bench.gpu.stream().unwrap()).collect();
    // One handle for several contexts, or one for each.
    let shared = bench.plugin.handle().unwrap();
    let mut lanes: Vec<Lane> = (0..lanes)
        .map(|_| {
            let handle = if rng.random() {
                shared.clone()
            } else {
                bench.plugin.handle().unwrap()
            };
            let subject = &bench.subjects[rng.random_range(0..bench.subjects.len())];
            let has_workspace = rng.random();
            Lane::new(bench, subject, handle, has_workspace)
        })
        .collect();
    drop(shared);
    for _ in 0..ROUNDS {
        for lane in &mut lanes {
            lane.round(bench, &mut rng, &streams, host);
        }
    }
    if rng.random() {
        // Contexts and handles are dropped while their work is in flight, including the last one.
        lanes.iter_mut().for_each(|lane| drop(lane.engine.take()));
    }
    for stream in &streams {
        stream.synchronize().map_err(|error| error.to_string())?;
    }
    lanes.iter().try_for_each(Lane::verdict)
}

/// Runs one in ten of the schedules, others each time; all in a full run.
fn no_stale_read(schedules: u64, streams: usize, lanes: usize) {
    let bench = bench();
    let every = rotini_tests::scaled([10, 1]);
    let first = rotini_tests::seed() % every;
    let failures: Vec<String> = (first..schedules)
        .step_by(usize::try_from(every).unwrap())
        .filter_map(|seed| {
            schedule(bench, seed, streams, lanes, Host::Careful)
                .err()
                .map(|error| format!("seed {seed}: {error}"))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {schedules} schedules on {streams} streams:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn one_stream() {
    no_stale_read(700, 1, 1);
}

#[test]
fn two_streams() {
    no_stale_read(700, 2, 2);
}

#[test]
fn eight_streams() {
    no_stale_read(600, 8, 4);
}

/// Eight threads, each with its own streams, on one plugin.
#[test]
fn eight_threads() {
    let bench = bench();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for seed in 0..25 {
                    let seed = 1_000_000 * (thread + 1) + seed;
                    if let Err(error) = schedule(bench, seed, 2, 2, Host::Careful) {
                        panic!("seed {seed}: {error}");
                    }
                }
            });
        }
    });
}

/// If the host omits a wait, or the plugin's work goes to a stream without it, the emulator's
/// scheduler exposes the error. A real GPU gives no such guarantee.
#[test]
fn a_missing_wait_is_seen() {
    let bench = bench();
    if bench.seed_scheduler.is_none() {
        println!("skipped: a missing wait shows for certain only on the emulator");
        return;
    }
    for host in [Host::ForgetsProducer, Host::ForgetsConsumer] {
        let seen = (0..50).find(|&seed| schedule(bench, seed, 2, 1, host).is_err());
        assert!(seen.is_some(), "50 schedules without the wait, and none failed");
    }
}

/// A captured graph of producer, plugin and consumer runs again with the buffers' current contents.
#[test]
fn captured_graphs_replay() {
    let bench = bench();
    bench.gpu.select().unwrap();
    for subject in &bench.subjects {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let stream = [bench.gpu.stream().unwrap()];
        let handle = bench.plugin.handle().unwrap();
        let mut lane = Lane::new(bench, subject, handle, false);
        let graph = stream[0]
            .capture(|| -> Result<(), rotini_host::gpu::GpuError> {
                lane.round(bench, &mut rng, &stream, Host::Careful);
                Ok(())
            })
            .unwrap();
        let captured = lane.chosen[0];
        for filling in [captured, (captured + 1) % FILLINGS, captured] {
            // The graph's producer copies from here.
            for (source, uid) in lane.sources[captured].iter().zip(&subject.inputs) {
                source.write(0, &subject.fillings[filling].0[uid]).unwrap();
            }
            for (result, (uid, _)) in lane.results[0].iter().zip(&subject.outputs) {
                result.write(0, &subject.fillings[0].0[uid]).unwrap();
            }
            // SAFETY: the lane lives on.
            unsafe { graph.launch(&stream[0]) }.unwrap();
            stream[0].synchronize().unwrap();
            lane.chosen[0] = filling;
            lane.verdict().unwrap();
        }
    }
}

/// The null stream is a stream like any other.
#[test]
fn the_null_stream_is_the_default() {
    let bench = bench();
    bench.gpu.select().unwrap();
    let subject = &bench.subjects[0];
    let handle = bench.plugin.handle().unwrap();
    let lane = Lane::new(bench, subject, handle, false);
    for (input, uid) in lane.inputs.iter().zip(&subject.inputs) {
        input.write(0, &subject.fillings[1].0[uid]).unwrap();
    }
    // SAFETY: the lane outlives the wait below.
    unsafe { lane.execute() };
    // Reading waits for the null stream.
    for (&output, memory) in subject.outputs.iter().zip(&lane.outputs) {
        subject.judge(1, output, &contents(memory)).unwrap();
    }
}
