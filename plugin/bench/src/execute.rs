//! One graph in an engine's process: its context, its buffers, its executions and their times.

use crate::buffer::{Buffer, Place, pack};
use crate::inputs::Filled;
use crate::protocol::{Answer, Values, Way, contents, split};
use crate::sensors;
use crate::server::{Engine, Result, ServerError};
use rotini_graph::Graph;
use rotini_host::gpu::{Event, Gpu, Stream};
use rotini_host::{Context, DeviceBuffer, HostError};
use rotini_reference::{Buffers, UNTOUCHED};
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The most executions in a captured graph: more make its instantiation slow.
const MOST_CAPTURED: usize = 200;
/// The most executions of one round.
const MOST_EXECUTIONS: usize = 1_000_000;
/// Microseconds of a round from which on the sensors are read. The driver updates them some times a
/// second.
const SENSED: f64 = 5e5;
/// The most sets of buffers that take turns.
const MOST_SETS: usize = 2048;

/// A graph with its context.
pub(crate) struct Job {
    context: Context,
    graph: Graph,
    /// The serialized graph.
    bytes: Vec<u8>,
    /// The engine config that it was created with.
    config: Vec<u8>,
    workspace: usize,
    inputs: Filled,
}

/// One set of buffers.
struct Set {
    tensors: Vec<(i64, Buffer)>,
    pack: Vec<DeviceBuffer>,
}

impl Set {
    fn new(place: &Place, graph: &Graph, inputs: &Buffers) -> Result<Self> {
        let mut tensors = place.tensors(graph, inputs)?;
        let pack = pack(&mut tensors);
        Ok(Set { tensors, pack })
    }
}

/// The memory of a round: sets of buffers, and the workspace.
struct Memory {
    sets: Vec<Set>,
    workspace: Buffer,
}

impl Job {
    /// Returns a job for a graph, its serialized `bytes`, and a context that was created with
    /// `config`.
    pub(crate) fn new(context: Context, graph: Graph, bytes: Vec<u8>, config: Vec<u8>) -> Result<Self> {
        Ok(Job {
            workspace: context.workspace()?,
            context,
            graph,
            bytes,
            config,
            inputs: Filled::default(),
        })
    }

    /// Returns the size of the workspace in bytes.
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }

    /// Returns sets of buffers with at least `rotate` bytes in total, but no more than `MOST_SETS`:
    /// one set for 0, else at least two.
    fn memory_of(&self, engine: &Engine, inputs: &Buffers, rotate: u64) -> Result<Memory> {
        let bytes: u64 = inputs.values().map(|bytes| bytes.len() as u64).sum();
        let wanted = rotate.div_ceil(bytes.max(1)).max(if rotate == 0 { 1 } else { 2 });
        let count = usize::try_from(wanted).unwrap_or(MOST_SETS).clamp(1, MOST_SETS);
        Ok(Memory {
            sets: (0..count)
                .map(|_| Set::new(&engine.place, &self.graph, inputs))
                .collect::<Result<_>>()?,
            workspace: engine.place.buffer(&vec![UNTOUCHED; self.workspace])?,
        })
    }

    fn call(&self, workspace: *mut c_void, set: &Set) -> Result<(), HostError> {
        // SAFETY: there is a buffer for every tensor that is in one, filled over the tensor's span,
        // and a workspace of the size that the context tells; all are where the engine's device
        // works and outlive the work, which `finish` waits for.
        unsafe { self.context.execute(workspace, &set.pack) }
    }

    pub(crate) fn execute(
        &mut self,
        engine: &Engine,
        seed: u64,
        inputs: Option<&Path>,
        results: &Path,
        way: Way,
    ) -> Result<Answer> {
        let inputs = match inputs {
            Some(file) => Arc::new(split(&self.graph, &std::fs::read(file)?)),
            None => self.inputs.get(&self.graph, seed, Values::Exact)?,
        };
        let started = Instant::now();
        let bytes = if way == Way::Threads {
            self.on_threads(engine, &inputs)?
        } else {
            let mut memory = self.memory_of(engine, &inputs, 0)?;
            let workspace = memory.workspace.pointer();
            let set = memory.sets.first_mut().ok_or(ServerError::Order("an execution"))?;
            match (&engine.stream, &engine.place, way) {
                (Some(stream), _, Way::Captured) => {
                    let graph = stream.capture(|| self.call(workspace, set).map_err(ServerError::from))?;
                    // SAFETY: what was captured is alive until its work is done, which `finish`
                    // waits for.
                    unsafe { graph.launch(stream) }?;
                    engine.finish()?;
                }
                (Some(stream), Place::Gpu(gpu), Way::Ordered) => self.late(stream, gpu, workspace, set)?,
                (_, _, Way::Captured | Way::Ordered) => return Err(ServerError::Order("a stream on the CPU")),
                _ => {
                    self.call(workspace, set)?;
                    engine.finish()?;
                }
            }
            self.left(set, &mut memory.workspace)?
        };
        let microseconds = micros(started);
        std::fs::write(results, bytes)?;
        Ok(Answer::Executed { microseconds })
    }

    /// Executes with inputs that the stream brings, after work that takes longer than a call.
    fn late(&self, stream: &Stream, gpu: &Gpu, workspace: *mut c_void, set: &Set) -> Result<()> {
        /// Size and number of the copies before the call: milliseconds on a GPU.
        const DELAY: usize = 32 << 20;
        const COPIES: usize = 100;
        let [from, to] = [gpu.allocate(DELAY)?, gpu.allocate(DELAY)?];
        let held = set.tensors.iter().map(|(_, buffer)| buffer.hold_back(gpu));
        let held = held.collect::<Result<Vec<_>, _>>()?;
        for _ in 0..COPIES {
            // SAFETY: both live until the end of this function, which waits.
            unsafe { stream.copy(&to, &from, DELAY) }?;
        }
        for held in held.iter().flatten() {
            // SAFETY: likewise, and the buffers outlive it.
            unsafe { held.release(stream) }?;
        }
        let called = self.call(workspace, set);
        // Whatever came of it: the stream still reads and writes.
        stream.synchronize()?;
        Ok(called?)
    }

    /// Creates a context on each of several threads and executes it several times. Returns the
    /// results of the first thread, if those of the others are equal.
    fn on_threads(&self, engine: &Engine, inputs: &Buffers) -> Result<Vec<u8>> {
        const THREADS: usize = 4;
        const EXECUTIONS: usize = 3;
        let one = || -> Result<Vec<u8>> {
            let handle = engine.plugin.handle()?;
            let stream = match &engine.place {
                Place::Host => None,
                Place::Gpu(gpu) => {
                    gpu.select()?;
                    Some(gpu.stream()?)
                }
            };
            if let Some(stream) = &stream {
                // SAFETY: the stream outlives the handle's last work, which is waited for below.
                unsafe { handle.set_stream(stream.raw()) }?;
            }
            let context = handle.context(&self.config, &self.bytes)?;
            let own = Job::new(context, self.graph.clone(), Vec::new(), self.config.clone())?;
            let mut memory = own.memory_of(engine, inputs, 0)?;
            let workspace = memory.workspace.pointer();
            let set = memory.sets.first_mut().ok_or(ServerError::Order("an execution"))?;
            let called = (0..EXECUTIONS).try_for_each(|_| own.call(workspace, set));
            if let Some(stream) = &stream {
                stream.synchronize()?;
            }
            called?;
            own.left(set, &mut memory.workspace)
        };
        let all: Vec<Result<Vec<u8>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
            let ends = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<u8>>>| {
                thread.join().unwrap_or(Err(ServerError::Order("a thread that ended")))
            };
            threads.into_iter().map(ends).collect()
        });
        let mut all = all.into_iter();
        let first = all.next().ok_or(ServerError::Order("a thread"))??;
        for other in all {
            if other? != first {
                return Err(ServerError::Wrong(
                    "threads that execute at the same time get different results".to_owned(),
                ));
            }
        }
        Ok(first)
    }

    /// Returns the bytes of all buffers, if their guard zones are unchanged. The work must be done.
    fn left(&self, set: &mut Set, workspace: &mut Buffer) -> Result<Vec<u8>> {
        workspace.fetch()?;
        if !workspace.is_intact() {
            return Err(ServerError::Wrong("memory around the workspace was written".to_owned()));
        }
        let mut bytes = Vec::new();
        for (uid, _) in contents(&self.graph) {
            let found = set.tensors.iter_mut().find(|(of, _)| *of == uid);
            let Some((_, buffer)) = found else { continue };
            buffer.fetch()?;
            if !buffer.is_intact() {
                return Err(ServerError::Wrong(format!("memory around tensor {uid} was written")));
            }
            bytes.extend(buffer.bytes());
        }
        Ok(bytes)
    }

    pub(crate) fn round(
        &mut self,
        engine: &Engine,
        (seed, values): (u64, Values),
        rotate: u64,
        microseconds: f64,
    ) -> Result<Answer> {
        let inputs = self.inputs.get(&self.graph, seed, values)?;
        let mut memory = self.memory_of(engine, &inputs, rotate)?;
        let workspace = memory.workspace.pointer();
        // One that is not timed: pages are touched, pointers bound.
        for set in &memory.sets {
            self.call(workspace, set)?;
        }
        engine.finish()?;
        let sets = memory.sets.len();
        let turn = || -> Result<()> { memory.sets.iter().try_for_each(|set| Ok(self.call(workspace, set)?)) };
        let (time, captured, load) = match (&engine.stream, &engine.place) {
            (Some(stream), Place::Gpu(gpu)) => {
                let started = Instant::now();
                turn()?;
                engine.finish()?;
                let turns = (microseconds / micros(started).max(0.1)).ceil() as usize;
                let turns = turns.clamp(1, MOST_EXECUTIONS.div_ceil(sets));
                let events = [gpu.event(true)?, gpu.event(true)?];
                let timed = || on_stream(stream, &events, &turn, turns, sets);
                let (timed, load) = if microseconds >= SENSED {
                    sensors::during(Path::new(sensors::CARDS), timed)
                } else {
                    (timed(), None)
                };
                let (time, captured) = timed?;
                (time, Some(captured), load)
            }
            _ => (on_cpu(&turn, microseconds)? / sets as f64, None, None),
        };
        Ok(Answer::Round {
            microseconds: time,
            captured,
            load,
        })
    }

    pub(crate) fn calls(&mut self, engine: &Engine, seed: u64, calls: u32) -> Result<Answer> {
        /// Fewer than a queue of a GPU takes before calls wait.
        const BETWEEN_WAITS: u32 = 25;
        let inputs = self.inputs.get(&self.graph, seed, Values::Exact)?;
        let mut memory = self.memory_of(engine, &inputs, 0)?;
        let workspace = memory.workspace.pointer();
        let Some(set) = memory.sets.first() else {
            return Err(ServerError::Order("an execution"));
        };
        let mut times = Vec::new();
        for call in 0..calls.max(1) {
            let started = Instant::now();
            self.call(workspace, set)?;
            times.push(micros(started));
            if call % BETWEEN_WAITS == BETWEEN_WAITS - 1 {
                engine.finish()?;
            }
        }
        engine.finish()?;
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get(((times.len() - 1) as f64 * share) as usize).copied();
        Ok(Answer::Calls {
            p50: at(0.5).unwrap_or_default(),
            p99: at(0.99).unwrap_or_default(),
        })
    }
}

/// Returns the time of one turn, measured over enough turns to take about `microseconds` together.
fn on_cpu(turn: &impl Fn() -> Result<()>, microseconds: f64) -> Result<f64> {
    let started = Instant::now();
    let (mut done, mut next) = (0, 1);
    loop {
        for _ in 0..next {
            turn()?;
        }
        done += next;
        let time = micros(started);
        let one = time / done as f64;
        if time >= microseconds || done >= MOST_EXECUTIONS {
            return Ok(one);
        }
        // The clock is looked at a few times only, and a turn that was held up does not decide how
        // many there are.
        next = (((microseconds - time) / one.max(0.01)).ceil() as usize).clamp(1, 2 * done);
    }
}

/// Returns the time of one execution, by events around the launches of a captured graph of turns of
/// `sets` executions, which excludes the host's work. An engine that cannot be captured is timed by
/// events around its calls. Also returns whether it was captured.
fn on_stream(
    stream: &Stream,
    [start, end]: &[Event; 2],
    turn: &impl Fn() -> Result<()>,
    turns: usize,
    sets: usize,
) -> Result<(f64, bool)> {
    let captured_turns = turns.min(MOST_CAPTURED.div_ceil(sets)).max(1);
    let launches = turns.div_ceil(captured_turns);
    let all = || (0..captured_turns).try_for_each(|_| turn());
    let captured = stream.capture(all).ok();
    let launch = || match &captured {
        // SAFETY: what was captured is alive.
        Some(graph) => Ok(unsafe { graph.launch(stream) }?),
        None => all(),
    };
    launch()?;
    stream.synchronize()?;
    start.record(stream)?;
    for _ in 0..launches {
        launch()?;
    }
    end.record(stream)?;
    end.synchronize()?;
    let microseconds = f64::from(end.milliseconds_since(start)?) * 1e3;
    let executions = launches * captured_turns * sets;
    Ok((microseconds / executions as f64, captured.is_some()))
}

pub(crate) fn micros(started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64 / 1e3
}
