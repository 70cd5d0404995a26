//! Compilation in worker processes: a compiler that crashes, hangs or needs too much memory then
//! only causes an error.
//!
//! ```text
//! Worker (pool)                      thread of the pool                rotini-compile-worker
//! compile() -> queue -> event fd  -> starts, feeds, limits, ends   ->  watch: ends with the host
//!           <- channel            <- one process                   <-  compile: InProcess,
//!                                                                      on a large stack
//! ```
//!
//! Each process belongs to one thread of the pool, which starts it when there is work, waits for
//! its answers and ends it when it fails, when it has been idle for long, or when the pool is
//! dropped. The connection is a pair of sockets, one of which is the worker's standard input; it
//! carries frames. The output of the worker and its library goes to a pipe, and the thread keeps
//! the last part of it.
//!
//! A process is ended by a signal to its process group, which also contains the linker that the
//! compiler runs; its temporary files are in a separate directory.

mod frame;
mod message;
mod process;
mod serve;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
};

use super::error::is_out_of_memory;
use super::{CompileError, CompileRequest, Compiled, Compiler, discover};
use frame::FrameError;
use message::{Answer, Failure, Output, Ready, Request, Setup};
use process::{Fault, Process, Stage};

pub use serve::serve;

/// Prefix of the names of the directories for workers' temporary files.
const DIRECTORY_PREFIX: &str = "rotini-worker-";

/// Settings of the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Path of `rotini-compile-worker`; see [`find_worker`](super::find_worker).
    pub program: PathBuf,
    /// Path of `libIREECompiler.so`; see [`find_library`](super::find_library).
    pub library: PathBuf,
    /// Maximum number of processes at a time, at least 1. Further requests wait.
    pub workers: usize,
    /// Time limit of one compilation, and of the start of a worker.
    pub timeout: Duration,
    /// Bytes of data that one worker may have (`RLIMIT_DATA`), without the compiler's library and
    /// without stacks: the worker adds the size of its stacks to the limit.
    pub memory_bytes: u64,
    /// Idle time after which a worker ends.
    pub idle: Duration,
}

/// A compiler that compiles in worker processes, which are started when they are needed.
///
/// Dropping this value ends the processes and the threads, and waits for both.
#[derive(Debug)]
pub struct Worker {
    pool: Arc<Pool>,
    /// Id of the process that created this value: threads are not inherited by a fork.
    owner: u32,
}

#[derive(Debug)]
struct Pool {
    options: WorkerOptions,
    identity: String,
    /// An event descriptor that counts the jobs in the queue, so that a thread can wait for a job
    /// and for its process at once.
    wake: OwnedFd,
    state: Mutex<State>,
    /// Number of requests so far.
    requests: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    /// Handles of all threads that have not been joined; some may have ended.
    threads: Vec<JoinHandle<()>>,
    /// Number of threads that have not ended, and of those that have a job.
    live: usize,
    busy: usize,
    closed: bool,
}

#[derive(Debug)]
struct Job {
    task: Task,
    reply: mpsc::SyncSender<Result<Reply, CompileError>>,
}

#[derive(Debug)]
enum Task {
    Describe,
    /// A frame to send, and the number that its answer must have.
    Compile(u64, Vec<u8>),
}

#[derive(Debug)]
enum Reply {
    Described(String),
    Compiled(Compiled),
}

impl Worker {
    /// Creates a pool without starting a worker.
    ///
    /// # Errors
    ///
    /// [`CompileError::Io`] if the library cannot be read; [`CompileError::Unavailable`] if the
    /// system has no descriptor left.
    pub fn new(options: WorkerOptions) -> Result<Self, CompileError> {
        let absolute = |path: PathBuf| std::path::absolute(&path).map_err(CompileError::io("resolve", &path));
        let options = WorkerOptions {
            program: absolute(options.program)?,
            library: absolute(options.library)?,
            workers: options.workers.max(1),
            ..options
        };
        let identity = discover::identity(&options.library)?;
        Self::with_identity(options, identity)
    }

    fn with_identity(options: WorkerOptions, identity: String) -> Result<Self, CompileError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        let wake = eventfd(0, flags).map_err(|error| CompileError::Unavailable {
            program: options.program.clone(),
            reason: error.to_string(),
            source: Some(error.into()),
        })?;
        Ok(Self {
            pool: Arc::new(Pool {
                options,
                identity,
                wake,
                state: Mutex::default(),
                requests: AtomicU64::new(0),
            }),
            owner: std::process::id(),
        })
    }

    /// Hands a job to a thread of the pool and waits for its result.
    fn ask(&self, task: Task) -> Result<Reply, CompileError> {
        let unavailable = |reason: &str, source| CompileError::Unavailable {
            program: self.pool.options.program.clone(),
            reason: reason.to_owned(),
            source,
        };
        if self.owner != std::process::id() {
            // Checked before the lock is taken, since the lock may have been held at the moment of
            // the fork.
            return Err(unavailable(
                "this process was forked from the one that prepared it",
                None,
            ));
        }
        let (reply, result) = mpsc::sync_channel(1);
        {
            let mut state = self.pool.state();
            state.queue.push_back(Job { task, reply });
            if state.queue.len() > state.live.saturating_sub(state.busy) && state.live < self.pool.options.workers {
                state.join_ended();
                let pool = Arc::clone(&self.pool);
                match thread::Builder::new()
                    .name("rotini-compile".into())
                    .spawn(move || pool.run())
                {
                    Ok(thread) => {
                        state.threads.push(thread);
                        state.live += 1;
                    }
                    // The existing threads will do the job.
                    Err(_) if state.live > 0 => {}
                    Err(error) => {
                        state.queue.pop_back();
                        return Err(unavailable("no thread can be started", Some(error)));
                    }
                }
            }
        }
        self.pool.wake(1);
        result
            .recv()
            .unwrap_or_else(|_| Err(unavailable("its thread has ended", None)))
    }
}

impl Compiler for Worker {
    fn identity(&self) -> &str {
        &self.pool.identity
    }

    fn describe(&self) -> String {
        let program = self.pool.options.program.display();
        let said = match self.ask(Task::Describe) {
            Ok(Reply::Described(text)) => text,
            Ok(Reply::Compiled(_)) => String::new(),
            Err(error) => error.to_string(),
        };
        format!("workers {program}: {said}")
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        let number = self.pool.requests.fetch_add(1, Ordering::Relaxed);
        let frame = frame::encode(&Request::new(number, request)?);
        let frame = frame.map_err(|error| CompileError::Request(error.to_string()))?;
        match self.ask(Task::Compile(number, frame))? {
            Reply::Compiled(compiled) => Ok(compiled),
            Reply::Described(_) => Err(CompileError::Worker {
                reason: "has described itself instead".to_owned(),
            }),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return;
        }
        let threads = {
            let mut state = self.pool.state();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        self.pool.wake(threads.len() as u64);
        for thread in threads {
            // A panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl State {
    /// Joins the threads that have ended, so that nothing of them remains.
    fn join_ended(&mut self) {
        for thread in self.threads.extract_if(.., |thread| thread.is_finished()) {
            // A panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes `count` threads to look at the queue.
    fn wake(&self, count: u64) {
        // The write fails if the counter is full, which takes more jobs than there is memory for.
        let _ = rustix::io::write(&self.wake, &count.to_ne_bytes());
    }

    /// Runs one thread of the pool, with its process.
    fn run(&self) {
        block_signals();
        let mut running = None;
        while let Some(job) = self.next(&mut running) {
            let result = self.work(&mut running, &job.task);
            // The thread is marked free before the reply is sent, so that a caller that asks again
            // after this answer finds it free.
            self.state().busy -= 1;
            // The receiver is gone if its thread panicked.
            let _ = job.reply.send(result);
        }
    }

    /// Waits for the next job; returns `None` when the thread is to end. Meanwhile a process that
    /// has died is cleaned up.
    fn next(&self, running: &mut Option<Running>) -> Option<Job> {
        let until = Instant::now().checked_add(self.options.idle);
        loop {
            if rustix::io::read(&self.wake, &mut [0; 8]).is_ok() {
                let mut state = self.state();
                if state.closed {
                    state.live -= 1;
                    return None;
                }
                if let Some(job) = state.queue.pop_front() {
                    state.busy += 1;
                    return Some(job);
                }
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            // A time that the system cannot represent counts as no limit.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut ready = vec![PollFd::new(&self.wake, PollFlags::IN)];
            ready.extend(
                running
                    .as_ref()
                    .map(|running| PollFd::new(running.process.channel(), PollFlags::IN)),
            );
            let count = poll(&mut ready, timeout.as_ref());
            // The process has ended, or has sent something unasked.
            let is_lost = ready.get(1).is_some_and(|channel| !channel.revents().is_empty());
            if is_lost {
                *running = None;
            }
            match count {
                Ok(0) => {}
                Ok(_) | Err(Errno::INTR) => continue,
                // If `poll` fails, the thread cannot wait and gives up like after its idle time.
                Err(_) => {}
            }
            *running = None;
            let mut state = self.state();
            if state.queue.is_empty() {
                state.live -= 1;
                return None;
            }
        }
    }

    /// Executes one job.
    fn work(&self, running: &mut Option<Running>, task: &Task) -> Result<Reply, CompileError> {
        loop {
            let warm = running.take().filter(|worker| worker.process.is_quiet());
            let is_warm = warm.is_some();
            let mut worker = match warm {
                Some(worker) => worker,
                None => self.start()?,
            };
            let Task::Compile(number, frame) = task else {
                let description = worker.description.clone();
                *running = Some(worker);
                return Ok(Reply::Described(description));
            };
            let answer = match self.exchange::<Answer>(&mut worker.process, frame) {
                Ok(answer) if answer.number == *number => answer,
                // The worker has answered an earlier request twice, which is no fault of this
                // request: another worker is asked.
                Ok(_) if is_warm => continue,
                Ok(_) => {
                    let fault = Fault::Frame(FrameError::Unasked);
                    return Err(worker.process.fail(fault, Stage::Compiling, &self.options));
                }
                Err(fault) => return Err(worker.process.fail(fault, Stage::Compiling, &self.options)),
            };
            let words = worker.process.take_words();
            if !answer.is_last {
                *running = Some(worker);
            }
            let Output {
                vmfb,
                statistics,
                mut diagnostics,
            } = answer.result.map_err(|failure| self.explain(failure))?;
            diagnostics.push_str(&words);
            return Ok(Reply::Compiled(Compiled {
                vmfb,
                statistics,
                diagnostics,
            }));
        }
    }

    /// Starts a worker and waits until it is ready.
    fn start(&self) -> Result<Running, CompileError> {
        let setup = frame::encode(&Setup {
            library: self.options.library.as_path().into(),
            identity: self.identity.clone(),
            memory_bytes: self.options.memory_bytes,
        });
        let setup = setup.map_err(|error| CompileError::Request(error.to_string()))?;
        let mut process = Process::start(&self.options)?;
        match self.exchange::<Ready>(&mut process, &setup) {
            Ok(Ok(description)) => Ok(Running { process, description }),
            Ok(Err(failure)) => Err(self.explain(failure)),
            Err(fault) => Err(process.fail(fault, Stage::Starting, &self.options)),
        }
    }

    /// Sends a message and reads the answer, within the time limit.
    fn exchange<T: serde::de::DeserializeOwned>(&self, process: &mut Process, frame: &[u8]) -> Result<T, Fault> {
        let deadline = Instant::now().checked_add(self.options.timeout);
        let payload = process.exchange(frame, deadline)?;
        frame::decode(&payload).map_err(Fault::Frame)
    }

    /// Converts a failure that a worker has reported.
    fn explain(&self, failure: Failure) -> CompileError {
        match failure {
            Failure::Rejected { diagnostics } => CompileError::Rejected { diagnostics },
            Failure::Request(reason) => CompileError::Request(reason),
            Failure::Library { reason, .. } if is_out_of_memory(&reason) => CompileError::Memory {
                limit: self.options.memory_bytes,
                diagnostics: reason,
            },
            Failure::Library { path, reason } => CompileError::Library {
                path: path.into(),
                reason,
                source: None,
            },
            Failure::Identity(found) => CompileError::Setup {
                source: Box::new(CompileError::Protocol {
                    reason: format!(
                        "its library is {found}, while {} was {} at first",
                        self.options.library.display(),
                        self.identity
                    ),
                    diagnostics: String::new(),
                }),
            },
            Failure::Other(reason) => CompileError::Worker { reason },
        }
    }
}

/// A worker that is ready for requests.
#[derive(Debug)]
struct Running {
    process: Process,
    description: String,
}

/// Blocks all signals in this thread, so that the host's signals are delivered to the host's
/// threads.
fn block_signals() {
    // SAFETY: the set is initialised before it is used, and only this thread is affected.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}
