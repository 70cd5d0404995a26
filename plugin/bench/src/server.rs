//! The process of one engine: it loads the plugin, executes what is requested, and answers with
//! times.
//!
//! It is a separate process, so that an engine that crashes, hangs or writes wildly spoils nothing
//! but its own figures. Requests come by stdin, answers go to what was stdout; whatever the plugin
//! prints goes to stderr.

use crate::buffer::Place;
use crate::execute::{Job, micros};
use crate::protocol::{Answer, Device, Request};
use rotini_host::gpu::{Api, Driver, GpuError, Stream};
use rotini_host::{Handle, HostError, Plugin, engine_config_with};
use std::ffi::{CStr, OsStr, c_char};
use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// What went wrong with a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
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
    /// A forbidden act of the engine.
    #[error("{0}")]
    Wrong(String),
    #[error("{0} was asked for too early")]
    Order(&'static str),
}

pub(crate) type Result<T, E = ServerError> = std::result::Result<T, E>;

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
pub(crate) struct Engine {
    handle: Handle,
    pub(crate) place: Place,
    pub(crate) stream: Option<Stream>,
    pub(crate) plugin: Plugin,
}

impl State {
    fn answer(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Load {
                plugin,
                device,
                library,
                gpu,
            } => {
                // Unloaded, if it is loaded.
                self.job = None;
                self.engine = None;
                let (engine, answer) = Engine::load(&plugin, device, library.as_deref(), gpu)?;
                self.engine = Some(engine);
                Ok(answer)
            }
            Request::Create { graph, engine, knobs } => self.create(&graph, engine, &knobs),
            Request::Execute {
                seed,
                inputs,
                results,
                way,
            } => self.with_job(|engine, job| job.execute(engine, seed, inputs.as_deref(), &results, way)),
            Request::Round {
                seed,
                values,
                rotate,
                microseconds,
            } => self.with_job(|engine, job| job.round(engine, (seed, values), rotate, microseconds)),
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

    fn create(&mut self, file: &Path, id: i64, knobs: &[(String, String)]) -> Result<Answer> {
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
        let config = engine_config_with(id, knobs);
        let context = engine.handle.context(&config, &bytes)?;
        let microseconds = micros(started);
        let job = Job::new(context, graph, bytes, config)?;
        let workspace = job.workspace();
        self.job = Some(job);
        Ok(Answer::Created {
            microseconds,
            workspace: workspace as u64,
        })
    }
}

impl Engine {
    fn load(path: &Path, device: Device, library: Option<&str>, ordinal: usize) -> Result<(Self, Answer)> {
        let api = match device {
            Device::Cpu => None,
            Device::Hip => Some(Api::Hip),
            Device::Cuda => Some(Api::Cuda),
        };
        let mut name = "CPU".to_owned();
        let mut emulated = false;
        let mut gpus = 0;
        let (place, stream) = match api {
            None => (Place::Host, None),
            Some(api) => {
                // SAFETY: the library is the device's, by the one who asked.
                let driver = unsafe { Driver::load(api, library.map(OsStr::new)) }?;
                emulated = driver.is_emulated();
                gpus = driver.devices()?;
                let gpu = driver.gpu(ordinal)?;
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
            gpus,
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

    /// Waits for all work that was started.
    pub(crate) fn finish(&self) -> Result<()> {
        if let Some(stream) = &self.stream {
            stream.synchronize()?;
        }
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The callback is this program's, and the plugin may outlive it in its own threads. There
        // is no one to tell that it failed.
        let _ = self.plugin.set_logging(None, 0);
    }
}

/// Returns the plugin's messages since the last request.
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
