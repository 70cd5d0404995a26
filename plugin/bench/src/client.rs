//! The bench's side of an engine's process: starts it, asks it, and notices when it crashes or
//! hangs.

use crate::protocol::{Answer, Device, Request};
use crate::results::Outcome;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Seek as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// An engine as the user asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSpec {
    /// Its name in tables.
    pub label: String,
    /// The plugin's shared library.
    pub plugin: PathBuf,
    /// Environment variables of its process.
    pub settings: Vec<(String, String)>,
    /// Knobs that contexts are created with.
    pub knobs: Vec<(String, String)>,
}

/// How processes of engines are started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments, which then calls [`crate::serve`].
    pub command: Vec<OsString>,
    /// Where graphs run.
    pub device: Device,
    /// The library of the device's API, if not the usual one.
    pub library: Option<String>,
    /// Which of its GPUs.
    pub gpu: usize,
    /// The cores of its process; empty: all.
    pub cores: Vec<usize>,
    /// How long an answer may take.
    pub patience: Duration,
}

/// The process of an engine. It ends with this.
pub(crate) struct Process {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<std::io::Result<String>>,
    messages: std::fs::File,
    patience: Duration,
}

/// Why the process of an engine cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("the process of an engine cannot be started: {0}")]
pub struct LaunchError(#[from] std::io::Error);

impl Process {
    /// Starts the process of an engine; nothing is loaded yet. What engines keep on disk goes to
    /// `home`.
    ///
    /// # Errors
    ///
    /// If the process cannot be started.
    pub(crate) fn start(launch: &Launch, spec: &EngineSpec, home: &std::path::Path) -> Result<Self, LaunchError> {
        let messages = tempfile::tempfile()?;
        let [program, arguments @ ..] = launch.command.as_slice() else {
            return Err(LaunchError(std::io::ErrorKind::InvalidInput.into()));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            // What was kept by earlier runs would make a cold creation warm.
            .env("ROTINI_CACHE_DIR", home.join("rotini"))
            .env("MIOPEN_USER_DB_PATH", home.join("miopen"))
            .env("MIOPEN_CUSTOM_CACHE_DIR", home.join("miopen-cache"))
            .env(
                "ROTINI_DEVICE",
                match launch.device {
                    Device::Cpu => "cpu",
                    Device::Hip => "hip",
                    Device::Cuda => "cuda",
                },
            )
            .envs(spec.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(messages.try_clone()?)
            // So that the processes that it starts end with it.
            .process_group(0);
        if let Some(library) = &launch.library {
            command.env("ROTINI_HIP_LIBRARY", library);
        }
        let mut set = rustix::thread::CpuSet::new();
        for &core in &launch.cores {
            set.set(core);
        }
        let is_bound = !launch.cores.is_empty();
        let prepare = move || {
            // However this process ends, its engines end too: one that hangs does not notice a
            // closed stdin.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            if is_bound {
                rustix::thread::sched_setaffinity(None, &set)?;
            }
            Ok(())
        };
        // SAFETY: system calls alone, which are safe between fork and exec.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        let requests = child.stdin.take();
        let (sender, answers) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(output).lines();
                lines.try_for_each(|line| sender.send(line))
            });
        }
        Ok(Process {
            child,
            requests,
            answers,
            messages,
            patience: launch.patience,
        })
    }

    /// Asks, and waits for the answer. An engine that gives none, or a bad one, is out of the row:
    /// the outcome says why.
    ///
    /// # Errors
    ///
    /// The outcome of the row. After a crash or a hang, the process is gone.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Answer, Outcome> {
        let sent = serde_json::to_vec(request).map_err(|error| Outcome::Failed(error.to_string()))?;
        if let Some(requests) = &mut self.requests {
            // If nobody reads it, the wait for the answer tells why.
            let _ = requests.write_all(&sent).and_then(|()| requests.write_all(b"\n"));
        }
        match self.answers.recv_timeout(self.patience) {
            Ok(Ok(line)) => match serde_json::from_str(&line) {
                Ok(Answer::Failed { reason }) => Err(Outcome::Failed(reason)),
                Ok(Answer::Wrong { reason }) => Err(Outcome::Wrong(reason)),
                Ok(Answer::Declined { reason }) => Err(Outcome::Declined(reason)),
                Ok(answer) => Ok(answer),
                Err(error) => Err(Outcome::Failed(format!("an answer that nobody understands: {error}"))),
            },
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(Outcome::Crashed(self.death())),
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                Err(Outcome::Hung(format!("no answer after {} s", self.patience.as_secs())))
            }
        }
    }

    /// How the process ended, with the last line that it wrote.
    fn death(&mut self) -> String {
        // It may have closed its output and live on.
        self.kill();
        let how = match self.child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        match self.last_words() {
            Some(words) => format!("{how}; the last that it wrote: {words}"),
            None => how,
        }
    }

    fn last_words(&mut self) -> Option<String> {
        const MOST: usize = 200;
        self.messages.rewind().ok()?;
        let lines = BufReader::new(&self.messages).lines().map_while(Result::ok);
        let last = lines.filter(|line| !line.trim().is_empty()).last()?;
        Some(last.chars().filter(|letter| !letter.is_control()).take(MOST).collect())
    }

    fn kill(&mut self) {
        let group = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // It may have ended.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without requests it ends by itself, and destroys what it has made.
        self.requests = None;
        for _ in 0..200 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        // It may have been waited for.
        let _ = self.child.wait();
    }
}

fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => match rustix::process::Signal::from_named_raw(signal) {
            Some(rustix::process::Signal::SEGV) => "a segmentation fault".to_owned(),
            Some(rustix::process::Signal::ABORT) => "it aborted".to_owned(),
            Some(rustix::process::Signal::KILL) => "it was killed".to_owned(),
            Some(rustix::process::Signal::BUS) => "a bus error".to_owned(),
            Some(rustix::process::Signal::ILL) => "an illegal instruction".to_owned(),
            Some(rustix::process::Signal::FPE) => "an arithmetic fault".to_owned(),
            _ => format!("it was ended by signal {signal}"),
        },
        None => format!("it ended with {status}"),
    }
}
