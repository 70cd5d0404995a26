//! The process of one engine: it loads the plugin, executes what it is told to, and answers with times.
//!
//! A process of its own, so that an engine that crashes, hangs or writes wildly spoils nothing but its own figures. Requests come by
//! stdin, answers go to what was stdout; whatever the plugin prints goes to stderr.

use crate::buffer::{Buffer, Place, pack};
use crate::protocol::{Answer, Device, Request, contents, split};
use rotini_graph::Graph;
use rotini_host::gpu::{Api, Driver, Event, GpuError, Stream};
use rotini_host::{Context, DeviceBuffer, Handle, HostError, Plugin, engine_config};
use rotini_reference::{Buffers, UNTOUCHED};
use std::ffi::{CStr, OsStr, c_char};
use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// The most executions in a captured graph: more make its instantiation slow.
const MOST_CAPTURED: usize = 200;
/// The most executions of one round.
const MOST_EXECUTIONS: usize = 1_000_000;
/// The most sets of buffers that take turns.
const MOST_SETS: usize = 2048;

/// What went wrong with a request.
#[derive(Debug, thiserror::Error)]
enum ServerError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Gpu(#[from] GpuError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Reference(#[from] rotini_reference::ReferenceError),
    #[error(transparent)]
    Wire(#[from] rotini_wire::DecodeError),
    /// What the engine must not do.
    #[error("{0}")]
    Wrong(String),
    #[error("{0} was asked for too early")]
    Order(&'static str),
}

type Result<T, E = ServerError> = std::result::Result<T, E>;

/// Serves one engine until stdin ends.
///
/// # Errors
///
/// If the streams cannot be set up, or the other side is gone.
pub fn serve() -> std::io::Result<()> {
    // The plugin may print; only answers may reach the bench.
    let mut answers = File::from(rustix::io::dup(rustix::stdio::stdout())?);
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    let mut state = State::default();
    for line in std::io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?)?;
        let answer = state.answer(request).unwrap_or_else(|error| match error {
            ServerError::Wrong(reason) => Answer::Wrong { reason },
            error => Answer::Failed {
                reason: error.to_string(),
            },
        });
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        answers.write_all(&line)?;
    }
    Ok(())
}

#[derive(Default)]
struct State {
    // Dropped first, then what they need.
    job: Option<Job>,
    engine: Option<Engine>,
}

/// A loaded plugin on its device.
struct Engine {
    handle: Handle,
    place: Place,
    stream: Option<Stream>,
    plugin: Plugin,
}

/// A graph with its context.
struct Job {
    context: Context,
    graph: Graph,
    workspace: usize,
}

impl State {
    fn answer(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Load {
                plugin,
                device,
                library,
            } => {
                // Unloaded, if it is loaded.
                self.job = None;
                self.engine = None;
                let (engine, answer) = Engine::load(&plugin, device, library.as_deref())?;
                self.engine = Some(engine);
                Ok(answer)
            }
            Request::Create { graph, engine } => self.create(&graph, engine),
            Request::Execute {
                seed,
                inputs,
                results,
                captured,
            } => self.with_job(|engine, job| job.execute(engine, seed, inputs.as_deref(), &results, captured)),
            Request::Round {
                seed,
                rotate,
                microseconds,
            } => self.with_job(|engine, job| job.round(engine, seed, rotate, microseconds)),
            Request::Calls { seed, calls } => self.with_job(|engine, job| job.calls(engine, seed, calls)),
            Request::Drop => {
                self.job = None;
                Ok(Answer::Dropped)
            }
        }
    }

    fn with_job(&mut self, body: impl FnOnce(&Engine, &mut Job) -> Result<Answer>) -> Result<Answer> {
        let engine = self.engine.as_ref().ok_or(ServerError::Order("an execution"))?;
        body(engine, self.job.as_mut().ok_or(ServerError::Order("an execution"))?)
    }

    fn create(&mut self, file: &Path, id: i64) -> Result<Answer> {
        let engine = self.engine.as_ref().ok_or(ServerError::Order("a context"))?;
        self.job = None;
        let bytes = std::fs::read(file)?;
        let graph = rotini_wire::decode(&bytes)?;
        messages().clear();
        let applicable = engine.handle.applicable(&bytes)?;
        if !applicable.contains(&id) {
            let said = messages().last().cloned();
            let reason = said.unwrap_or_else(|| "the engine does not say why".to_owned());
            return Ok(Answer::Declined { reason });
        }
        let started = Instant::now();
        let context = engine.handle.context(&engine_config(id), &bytes)?;
        let microseconds = micros(started);
        let workspace = context.workspace()?;
        self.job = Some(Job {
            context,
            graph,
            workspace,
        });
        Ok(Answer::Created {
            microseconds,
            workspace: workspace as u64,
        })
    }
}

impl Engine {
    fn load(path: &Path, device: Device, library: Option<&str>) -> Result<(Self, Answer)> {
        let api = match device {
            Device::Cpu => None,
            Device::Hip => Some(Api::Hip),
            Device::Cuda => Some(Api::Cuda),
        };
        let mut name = "CPU".to_owned();
        let mut emulated = false;
        let (place, stream) = match api {
            None => (Place::Host, None),
            Some(api) => {
                // SAFETY: the library is the device's, by the one who asked.
                let driver = unsafe { Driver::load(api, library.map(OsStr::new)) }?;
                emulated = driver.is_emulated();
                let gpu = driver.gpu(0)?;
                name = gpu.name()?;
                let stream = gpu.stream()?;
                (Place::Gpu(gpu), Some(stream))
            }
        };
        // SAFETY: a plugin that the user named, or one of an installed ROCm.
        let plugin = unsafe { Plugin::load(path) }?;
        let answer = Answer::Loaded {
            name: plugin.name()?,
            version: plugin.version()?,
            api_version: plugin.api_version()?,
            engines: plugin
                .engine_ids()?
                .into_iter()
                .map(|id| Ok((id, plugin.engine_name(id)?)))
                .collect::<Result<_>>()?,
            device: name,
            emulated,
        };
        const INFO: i32 = 0;
        plugin.set_logging(Some(log), INFO)?;
        let handle = plugin.handle()?;
        if let Some(stream) = &stream {
            // SAFETY: the stream is the GPU's and lives as long as the engine.
            unsafe { handle.set_stream(stream.raw()) }?;
        }
        Ok((
            Engine {
                handle,
                place,
                stream,
                plugin,
            },
            answer,
        ))
    }

    /// Returns when what was started is done.
    fn finish(&self) -> Result<()> {
        if let Some(stream) = &self.stream {
            stream.synchronize()?;
        }
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The callback is this program's, and the plugin may outlive it in its own threads. There is no one to tell that it failed.
        let _ = self.plugin.set_logging(None, 0);
    }
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
    /// As many sets of buffers as have `rotate` bytes together, but at least one.
    fn memory(&self, engine: &Engine, seed: u64, rotate: u64) -> Result<Memory> {
        self.memory_of(engine, &rotini_reference::fill_all(&self.graph, seed)?, rotate)
    }

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

    fn call(&self, workspace: *mut std::ffi::c_void, set: &Set) -> Result<(), HostError> {
        // SAFETY: there is a buffer for every tensor that is in one, filled over the tensor's span, and a workspace of the size that the
        // context tells; all are where the engine's device works and outlive the work, which `finish` waits for.
        unsafe { self.context.execute(workspace, &set.pack) }
    }

    fn execute(
        &mut self,
        engine: &Engine,
        seed: u64,
        inputs: Option<&Path>,
        results: &Path,
        captured: bool,
    ) -> Result<Answer> {
        let mut memory = match inputs {
            Some(file) => self.memory_of(engine, &split(&self.graph, &std::fs::read(file)?), 0)?,
            None => self.memory(engine, seed, 0)?,
        };
        let workspace = memory.workspace.pointer();
        let Some(set) = memory.sets.first_mut() else {
            return Err(ServerError::Order("an execution"));
        };
        let started = Instant::now();
        match (&engine.stream, captured) {
            (Some(stream), true) => {
                let graph = stream.capture(|| -> Result<()> { Ok(self.call(workspace, set)?) })?;
                // SAFETY: what was captured is alive until its work is done, which `finish` waits for.
                unsafe { graph.launch(stream) }?;
                engine.finish()?;
            }
            (None, true) => return Err(ServerError::Order("a capture on the CPU")),
            (_, false) => {
                self.call(workspace, set)?;
                engine.finish()?;
            }
        }
        let microseconds = micros(started);
        memory.workspace.fetch()?;
        if !memory.workspace.is_intact() {
            return Err(ServerError::Wrong("memory around the workspace was written".to_owned()));
        }
        let mut file = std::io::BufWriter::new(File::create(results)?);
        for (uid, _) in contents(&self.graph) {
            let found = set.tensors.iter_mut().find(|(of, _)| *of == uid);
            let Some((_, buffer)) = found else { continue };
            buffer.fetch()?;
            if !buffer.is_intact() {
                return Err(ServerError::Wrong(format!("memory around tensor {uid} was written")));
            }
            file.write_all(buffer.bytes())?;
        }
        file.flush()?;
        Ok(Answer::Executed { microseconds })
    }

    fn round(&mut self, engine: &Engine, seed: u64, rotate: u64, microseconds: f64) -> Result<Answer> {
        let mut memory = self.memory(engine, seed, rotate)?;
        let workspace = memory.workspace.pointer();
        // One that is not timed: pages are touched, pointers bound.
        for set in &memory.sets {
            self.call(workspace, set)?;
        }
        engine.finish()?;
        let sets = memory.sets.len();
        let turn = || -> Result<()> { memory.sets.iter().try_for_each(|set| Ok(self.call(workspace, set)?)) };
        let (time, captured) = match (&engine.stream, &engine.place) {
            (Some(stream), Place::Gpu(gpu)) => {
                let started = Instant::now();
                turn()?;
                engine.finish()?;
                let turns = (microseconds / micros(started).max(0.1)).ceil() as usize;
                let turns = turns.clamp(1, MOST_EXECUTIONS.div_ceil(sets));
                let events = [gpu.event(true)?, gpu.event(true)?];
                let (time, captured) = on_stream(stream, &events, &turn, turns, sets)?;
                (time, Some(captured))
            }
            _ => (on_cpu(&turn, microseconds)? / sets as f64, None),
        };
        Ok(Answer::Round {
            microseconds: time,
            captured,
        })
    }

    fn calls(&mut self, engine: &Engine, seed: u64, calls: u32) -> Result<Answer> {
        /// Fewer than a queue of a GPU takes before calls wait.
        const BETWEEN_WAITS: u32 = 25;
        let mut memory = self.memory(engine, seed, 0)?;
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

/// The time of one turn, of so many that they take about so long together.
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
        // The clock is looked at a few times only, and a turn that was held up does not decide how many there are.
        next = (((microseconds - time) / one.max(0.01)).ceil() as usize).clamp(1, 2 * done);
    }
}

/// The time of one execution in a captured graph of turns of `sets` executions, by events around its launches: nothing of the host is in
/// it. Where the engine cannot be captured, by events around its calls. Also tells which it was.
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

fn micros(started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64 / 1e3
}

/// What the plugin has said since the last question.
static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn messages() -> std::sync::MutexGuard<'static, Vec<String>> {
    MESSAGES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Takes the plugin's log messages.
///
/// # Safety
///
/// `message` is a terminated text that is valid during the call.
unsafe extern "C" fn log(severity: i32, message: *const c_char) {
    const MOST: usize = 100;
    if message.is_null() {
        return;
    }
    // SAFETY: by this function's contract.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    // There is nobody to tell if stderr is closed.
    let _ = writeln!(std::io::stderr(), "[{severity}] {message}");
    let mut messages = messages();
    if messages.len() < MOST {
        messages.push(message.into_owned());
    }
}
