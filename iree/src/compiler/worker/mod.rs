//! Compiling in other processes: a compiler that crashes, hangs or wants too much memory is then an
//! error and no more.
//!
//! ```text
//! Worker (pool)                      thread of the pool                rotini-compile-worker
//! compile() -> queue -> event fd  -> starts, feeds, limits, ends   ->  watch: ends with the host
//!           <- channel            <- one process                   <-  compile: InProcess on a large stack
//! ```
//!
//! Each process belongs to one thread of the pool, which starts it when there is work, waits for
//! its answers and ends it when it fails, has been idle for long, or the pool is dropped. The
//! connection is a pair of sockets, the worker's standard input; frames go over it. What the worker
//! and its library write goes to a pipe that the thread keeps the end of.
//!
//! A process is ended by a signal to its group, in which there is also the linker that the compiler
//! runs; its temporary files are in a separate directory.

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

/// Names of the directories of workers' temporary files begin with this.
const DIRECTORY_PREFIX: &str = "rotini-worker-";

/// How workers are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// `rotini-compile-worker`; see [`find_worker`](super::find_worker).
    pub program: PathBuf,
    /// `libIREECompiler.so`; see [`find_library`](super::find_library).
    pub library: PathBuf,
    /// How many processes there may be at once, at least 1. More requests than that wait.
    pub workers: usize,
    /// Time that one compilation may take, and that a worker may take to start.
    pub timeout: Duration,
    /// Bytes of data that one worker may have (`RLIMIT_DATA`): heap and stacks, without the
    /// compiler's library.
    pub memory_bytes: u64,
    /// An idle worker ends after this.
    pub idle: Duration,
}

/// Compiles in worker processes, which are started when they are needed.
///
/// Dropping it ends them and its threads, and waits for both.
#[derive(Debug)]
pub struct Worker {
    pool: Arc<Pool>,
    /// The process that this belongs to: threads are not inherited by a fork.
    owner: u32,
}

#[derive(Debug)]
struct Pool {
    options: WorkerOptions,
    identity: String,
    /// Counts the jobs in the queue, for threads that also wait for their process.
    wake: OwnedFd,
    state: Mutex<State>,
    /// How many requests there have been.
    requests: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    /// Handles of all threads, some of which may have ended.
    threads: Vec<JoinHandle<()>>,
    /// Threads that have not ended, and those of them with a job.
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
    /// Send this frame, and take an answer of this number.
    Compile(u64, Vec<u8>),
}

#[derive(Debug)]
enum Reply {
    Described(String),
    Compiled(Compiled),
}

impl Worker {
    /// Prepares for workers and starts none.
    ///
    /// # Errors
    ///
    /// [`CompileError::Io`] when the library cannot be read; [`CompileError::Unavailable`] when the
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

    /// Has a thread of the pool do a job.
    fn ask(&self, task: Task) -> Result<Reply, CompileError> {
        let unavailable = |reason: &str, source| CompileError::Unavailable {
            program: self.pool.options.program.clone(),
            reason: reason.to_owned(),
            source,
        };
        if self.owner != std::process::id() {
            // Before the lock, which may have been held at that moment.
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
                    // Others will do it.
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
    /// Joins the threads that have ended, so that nothing of them is left.
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
        // Fails when the counter is full, which takes more jobs than there is memory for.
        let _ = rustix::io::write(&self.wake, &count.to_ne_bytes());
    }

    /// One thread of the pool, with its process.
    fn run(&self) {
        block_signals();
        let mut running = None;
        while let Some(job) = self.next(&mut running) {
            let result = self.work(&mut running, &job.task);
            // First, so that whoever asks again after this answer finds the thread free.
            self.state().busy -= 1;
            // Nobody waits for it if they panicked.
            let _ = job.reply.send(result);
        }
    }

    /// The next job; `None` when the thread is to end. Meanwhile a process that has died is cleared
    /// away.
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
            // What is longer than the system can express is as good as for ever.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut ready = vec![PollFd::new(&self.wake, PollFlags::IN)];
            ready.extend(
                running
                    .as_ref()
                    .map(|running| PollFd::new(running.process.channel(), PollFlags::IN)),
            );
            let count = poll(&mut ready, timeout.as_ref());
            // It has ended, or sends something unasked.
            let is_lost = ready.get(1).is_some_and(|channel| !channel.revents().is_empty());
            if is_lost {
                *running = None;
            }
            match count {
                Ok(0) => {}
                Ok(_) | Err(Errno::INTR) => continue,
                // Without waiting there is no way to work.
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

    /// Does one job.
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
                // It has answered an earlier request twice, which is no fault of this one: another
                // worker is asked.
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

    /// A worker that is ready.
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

    /// Sends a message and reads the answer, within the limit.
    fn exchange<T: serde::de::DeserializeOwned>(&self, process: &mut Process, frame: &[u8]) -> Result<T, Fault> {
        let deadline = Instant::now().checked_add(self.options.timeout);
        let payload = process.exchange(frame, deadline)?;
        frame::decode(&payload).map_err(Fault::Frame)
    }

    /// What a worker has reported.
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

/// Leaves the host's signals to the host's threads.
fn block_signals() {
    // SAFETY: the set is initialised before it is used, and only this thread is affected.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}
