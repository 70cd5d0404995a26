//! The pool's side of one worker process.

use std::{
    io::{self, PipeReader, Read},
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::SendFlags,
    process::{Pid, Signal, WaitId, WaitIdOptions},
};
use tempfile::TempDir;

use super::{
    DIRECTORY_PREFIX, WorkerOptions,
    frame::{FrameError, Incoming},
};
use crate::compiler::{
    CompileError,
    discover::{clean, has_raised_privileges},
    error::{first_error, is_out_of_memory},
};

/// Bytes of a worker's output that are kept: the last ones.
const WORDS: usize = 64 << 10;
/// Time in which a worker that has closed its connection may exit by itself, so that its exit
/// status is known.
const GRACE: Duration = Duration::from_secs(1);

/// A running worker process. Dropping this value ends the process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    channel: UnixStream,
    incoming: Incoming,
    /// The pipe of standard output and standard error, until the worker closes both.
    output: Option<PipeReader>,
    words: Vec<u8>,
    ended: bool,
    /// Directory for the temporary files of the worker and the linkers that it starts.
    _directory: Option<TempDir>,
}

/// The reason why a worker gave no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The time limit was exceeded.
    Timeout,
    /// The worker closed the connection after it had sent this many bytes of an answer.
    Closed(usize),
    /// The worker sent something other than an answer.
    Frame(FrameError),
    /// The system refused to wait for the worker.
    System(io::Error),
}

/// The stage in which a worker failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Starting,
    Compiling,
}

impl Process {
    /// Starts a worker. The calling thread has to outlive the worker, which ends with the thread
    /// that started it.
    pub(super) fn start(options: &WorkerOptions) -> Result<Self, CompileError> {
        // Without a directory, the worker's temporary files are in the system's usual one.
        let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir().ok();
        let spawn = || {
            let (channel, theirs) = UnixStream::pair()?;
            channel.set_nonblocking(true)?;
            let (output, words) = io::pipe()?;
            rustix::io::ioctl_fionbio(&output, true)?;
            let mut command = Command::new(&options.program);
            clean(&mut command, has_raised_privileges());
            // Libraries that were injected into the host are not for the worker.
            command.env_remove("LD_PRELOAD").env_remove("LD_AUDIT");
            if let Some(directory) = &directory {
                command.env("TMPDIR", directory.path());
            }
            // None of these settings makes the standard library use `fork`, which would copy the
            // page tables of the host, which may be large. The worker makes all other preparations
            // itself.
            let child = command
                .stdin(OwnedFd::from(theirs))
                .stdout(words.try_clone()?)
                .stderr(words)
                // A separate process group, so that a terminal's interrupt reaches only the host,
                // and the worker's linker ends with the worker.
                .process_group(0)
                .spawn()?;
            Ok((child, channel, output))
        };
        let (child, channel, output) = spawn().map_err(|source: io::Error| CompileError::Unavailable {
            program: options.program.clone(),
            reason: source.to_string(),
            source: Some(source),
        })?;
        Ok(Self {
            child,
            channel,
            incoming: Incoming::default(),
            output: Some(output),
            words: Vec::new(),
            ended: false,
            _directory: directory,
        })
    }

    /// Returns the connection, to be polled: nothing arrives on it while the worker is idle and
    /// healthy.
    pub(super) fn channel(&self) -> &UnixStream {
        &self.channel
    }

    /// Returns whether the worker is alive and has sent nothing since its last answer. A worker
    /// that has must not be used again.
    pub(super) fn is_quiet(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.incoming.pending() == 0 && poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], Some(&now)) == Ok(0)
    }

    /// Sends a frame and waits for the payload of the answer.
    pub(super) fn exchange(&mut self, frame: &[u8], deadline: Option<Instant>) -> Result<Vec<u8>, Fault> {
        let mut unsent = frame;
        loop {
            if let Some(payload) = self.incoming.next().map_err(Fault::Frame)? {
                self.listen();
                // Anything after the answer is detected by `is_quiet`, whenever it arrives.
                return match unsent {
                    [] => Ok(payload),
                    _ => Err(Fault::Frame(FrameError::Unasked)),
                };
            }
            let left = match deadline.map(|deadline| deadline.checked_duration_since(Instant::now())) {
                None => None,
                Some(None) => return Err(Fault::Timeout),
                // A time that the system cannot represent counts as no limit.
                Some(Some(left)) => Timespec::try_from(left).ok(),
            };
            let wanted = match unsent {
                [] => PollFlags::IN,
                _ => PollFlags::IN | PollFlags::OUT,
            };
            let mut ready = vec![PollFd::new(&self.channel, wanted)];
            ready.extend(self.output.as_ref().map(|output| PollFd::new(output, PollFlags::IN)));
            match poll(&mut ready, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::System(error.into())),
            }
            self.listen();
            if !unsent.is_empty() {
                // Without `NOSIGNAL`, writing to a closed connection would send `SIGPIPE` to the
                // host.
                match rustix::net::send(&self.channel, unsent, SendFlags::NOSIGNAL) {
                    Ok(count) => unsent = unsent.get(count..).unwrap_or_default(),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    // The worker may still have sent an answer or a reason: it is read next.
                    Err(_) => unsent = &[],
                }
            }
            let mut buffer = [0; 1 << 14];
            match (&self.channel).read(&mut buffer) {
                Ok(0) => return Err(Fault::Closed(self.incoming.pending())),
                Ok(count) => self.incoming.push(buffer.get(..count).unwrap_or_default()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // The connection was reset, since the worker ended before it had read everything.
                Err(_) => return Err(Fault::Closed(self.incoming.pending())),
            }
        }
    }

    /// Returns the worker's output since the last call.
    pub(super) fn take_words(&mut self) -> String {
        let words = std::mem::take(&mut self.words);
        String::from_utf8_lossy(&words).into_owned()
    }

    /// Reads the output that the worker has written so far.
    fn listen(&mut self) {
        let mut buffer = [0; 1 << 12];
        while let Some(output) = &mut self.output {
            match output.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    self.words.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    let surplus = self.words.len().saturating_sub(WORDS);
                    self.words.drain(..surplus);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => self.output = None,
            }
        }
    }

    /// Ends the worker after a fault, and returns the error that describes it.
    pub(super) fn fail(self, fault: Fault, stage: Stage, options: &WorkerOptions) -> CompileError {
        match (self.explain(fault, stage, options), stage) {
            (error @ CompileError::Unavailable { .. }, _) | (error, Stage::Compiling) => error,
            (error, Stage::Starting) => CompileError::Setup {
                source: Box::new(error),
            },
        }
    }

    fn explain(mut self, fault: Fault, stage: Stage, options: &WorkerOptions) -> CompileError {
        let end = match fault {
            Fault::Closed(_) => self.finish(),
            _ => {
                self.end();
                End::Killed
            }
        };
        self.listen();
        let diagnostics = self.take_words();
        let protocol = |reason: String, diagnostics| CompileError::Protocol { reason, diagnostics };
        match (fault, end) {
            (Fault::Timeout, _) => CompileError::Timeout {
                seconds: options.timeout.as_secs_f64(),
                diagnostics,
            },
            (Fault::Frame(error), _) => protocol(error.to_string(), diagnostics),
            (Fault::System(error), _) => CompileError::Worker {
                reason: format!("cannot be waited for: {error}"),
            },
            (Fault::Closed(_), End::Killed) => protocol("it closed the connection and went on".to_owned(), diagnostics),
            (Fault::Closed(_), End::Itself(status)) if failed(status) && is_out_of_memory(&diagnostics) => {
                CompileError::Memory {
                    limit: options.memory_bytes,
                    diagnostics,
                }
            }
            (Fault::Closed(_), End::Itself(status))
                if signal(status).is_some_and(|signal| stage == Stage::Compiling || signal != libc::SIGSYS) =>
            {
                CompileError::Crashed { status, diagnostics }
            }
            // The compiler ends the process in this way if it does not know a flag that was set for
            // the whole process.
            (Fault::Closed(0), End::Itself(status))
                if stage == Stage::Compiling
                    && failed(status)
                    && diagnostics.contains("nknown command line argument") =>
            {
                CompileError::Rejected { diagnostics }
            }
            (Fault::Closed(1..), End::Itself(None)) => CompileError::Crashed {
                status: None,
                diagnostics,
            },
            (Fault::Closed(bytes @ 1..), End::Itself(_)) => {
                protocol(format!("its answer breaks off after {bytes} bytes"), diagnostics)
            }
            (Fault::Closed(0), End::Itself(status)) if stage == Stage::Starting => CompileError::Unavailable {
                program: options.program.clone(),
                reason: match status {
                    Some(status) => format!("it ended at once ({status}): {}", first_error(&diagnostics)),
                    None => format!("it ended at once: {}", first_error(&diagnostics)),
                },
                source: None,
            },
            (Fault::Closed(0), End::Itself(status)) if failed(status) => CompileError::Crashed { status, diagnostics },
            (Fault::Closed(0), End::Itself(_)) => protocol("it ended without an answer".to_owned(), diagnostics),
        }
    }

    /// Waits up to [`GRACE`] for the worker to exit by itself, and then kills it. Returns how it
    /// ended.
    fn finish(&mut self) -> End {
        let id = Pid::from_child(&self.child);
        let start = Instant::now();
        // The worker is left as a zombie, so that its process id is not reused before the group is
        // killed.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(id), look) {
                Ok(Some(_)) => return End::Itself(self.end()),
                Ok(None) if start.elapsed() < GRACE => thread::sleep(Duration::from_millis(1)),
                Err(Errno::INTR) => {}
                Ok(None) => {
                    self.end();
                    return End::Killed;
                }
                // Another part of the host has waited for the worker, so its process id may belong
                // to another process.
                Err(_) => {
                    self.ended = true;
                    return End::Itself(None);
                }
            }
        }
    }

    /// Kills the worker and all processes that it has started, and waits until the worker is gone.
    fn end(&mut self) -> Option<ExitStatus> {
        if self.ended {
            return None;
        }
        self.ended = true;
        // Fails if all of them are gone already.
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // Fails if another part of the host waits for the worker.
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The way in which a worker ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    /// By itself, with its exit status if the host lets it be known.
    Itself(Option<ExitStatus>),
}

fn signal(status: Option<ExitStatus>) -> Option<i32> {
    status.and_then(|status| status.signal())
}

fn failed(status: Option<ExitStatus>) -> bool {
    !status.is_some_and(|status| status.success())
}
