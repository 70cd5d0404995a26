//! One worker process, as the pool sees it.

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

/// How much of what a worker writes is kept: the last.
const WORDS: usize = 64 << 10;
/// How long a worker that has closed its connection may take to end by itself, so that the system
/// can tell how.
const GRACE: Duration = Duration::from_secs(1);

/// A running worker. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    channel: UnixStream,
    incoming: Incoming,
    /// Standard output and standard error, until they end.
    output: Option<PipeReader>,
    words: Vec<u8>,
    ended: bool,
    /// Temporary files of the worker and the linkers it starts.
    _directory: Option<TempDir>,
}

/// Why a worker gave no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// It took too long.
    Timeout,
    /// It closed the connection after it had sent this many bytes of an answer.
    Closed(usize),
    /// It sent something else.
    Frame(FrameError),
    /// The system refused to wait for it.
    System(io::Error),
}

/// What a worker was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Starting,
    Compiling,
}

impl Process {
    /// Starts a worker. Its thread has to outlive it: the worker ends with the thread that started
    /// it.
    pub(super) fn start(options: &WorkerOptions) -> Result<Self, CompileError> {
        // Without one, the worker's temporary files are where everybody's are.
        let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir().ok();
        let spawn = || {
            let (channel, theirs) = UnixStream::pair()?;
            channel.set_nonblocking(true)?;
            let (output, words) = io::pipe()?;
            rustix::io::ioctl_fionbio(&output, true)?;
            let mut command = Command::new(&options.program);
            clean(&mut command, has_raised_privileges());
            // What others have put into the host is not for the worker.
            command.env_remove("LD_PRELOAD").env_remove("LD_AUDIT");
            if let Some(directory) = &directory {
                command.env("TMPDIR", directory.path());
            }
            // Nothing here makes the standard library fork: it would copy the page tables of the
            // host, which may be large. The worker sees to the rest itself.
            let child = command
                .stdin(OwnedFd::from(theirs))
                .stdout(words.try_clone()?)
                .stderr(words)
                // Its own, so that a terminal's interrupt is the host's, and its linker ends with
                // it.
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

    /// The connection, to wait on: it has nothing to say while the worker is idle and well.
    pub(super) fn channel(&self) -> &UnixStream {
        &self.channel
    }

    /// Whether the worker is there and has sent nothing since its last answer. One that has is not
    /// to be asked again.
    pub(super) fn is_quiet(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.incoming.pending() == 0 && poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], Some(&now)) == Ok(0)
    }

    /// Sends a frame and waits for one.
    pub(super) fn exchange(&mut self, frame: &[u8], deadline: Option<Instant>) -> Result<Vec<u8>, Fault> {
        let mut unsent = frame;
        loop {
            if let Some(payload) = self.incoming.next().map_err(Fault::Frame)? {
                self.listen();
                // What comes after it is seen by `is_quiet`, whenever it comes.
                return match unsent {
                    [] => Ok(payload),
                    _ => Err(Fault::Frame(FrameError::Unasked)),
                };
            }
            let left = match deadline.map(|deadline| deadline.checked_duration_since(Instant::now())) {
                None => None,
                Some(None) => return Err(Fault::Timeout),
                // What is longer than the system can express is as good as no limit.
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
                // A signal on a closed connection would be the host's.
                match rustix::net::send(&self.channel, unsent, SendFlags::NOSIGNAL) {
                    Ok(count) => unsent = unsent.get(count..).unwrap_or_default(),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    // There may be an answer yet, or a reason.
                    Err(_) => unsent = &[],
                }
            }
            let mut buffer = [0; 1 << 14];
            match (&self.channel).read(&mut buffer) {
                Ok(0) => return Err(Fault::Closed(self.incoming.pending())),
                Ok(count) => self.incoming.push(buffer.get(..count).unwrap_or_default()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // Reset, since it was gone before it had read everything.
                Err(_) => return Err(Fault::Closed(self.incoming.pending())),
            }
        }
    }

    /// What the worker has written since it was last asked.
    pub(super) fn take_words(&mut self) -> String {
        let words = std::mem::take(&mut self.words);
        String::from_utf8_lossy(&words).into_owned()
    }

    /// Takes in what the worker has written by now.
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

    /// Ends the worker after a fault, and says what happened.
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
            // So the compiler ends a process that was given a flag for all of it.
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

    /// Waits a while for the worker to end by itself, and then sees to it. Returns how it ended.
    fn finish(&mut self) -> End {
        let id = Pid::from_child(&self.child);
        let start = Instant::now();
        // Left to be waited for, so that its number stays its own.
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
                // Someone else has waited for it, and its number is no longer its own.
                Err(_) => {
                    self.ended = true;
                    return End::Itself(None);
                }
            }
        }
    }

    /// Ends the worker with all that it has started, and waits until it is gone.
    fn end(&mut self) -> Option<ExitStatus> {
        if self.ended {
            return None;
        }
        self.ended = true;
        // Fails if all are gone already.
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // Fails if someone else waits for it.
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// How a worker ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    /// By itself, with its status if the host leaves that to be known.
    Itself(Option<ExitStatus>),
}

fn signal(status: Option<ExitStatus>) -> Option<i32> {
    status.and_then(|status| status.signal())
}

fn failed(status: Option<ExitStatus>) -> bool {
    !status.is_some_and(|status| status.success())
}
