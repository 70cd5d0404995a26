//! The `iree-compile` program.

use std::{
    fs,
    io::{self, Read},
    os::{fd::AsFd, unix::process::ExitStatusExt},
    path::{Component, Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{CompileError, CompileRequest, Compiled, Compiler, Statistics, discover};

/// A compiler that runs `iree-compile`, so that a crash of it is only an error.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    identity: String,
    /// Time limit of one module; `None` for no limit.
    timeout: Option<Duration>,
}

impl Program {
    /// Prepares the program at `path`.
    ///
    /// The program is not run: it is a stub around the library beside it, whose build is the
    /// compiler's identity.
    ///
    /// # Errors
    ///
    /// [`CompileError::Io`] if the program does not exist or cannot be read.
    pub fn new(path: &Path) -> Result<Self, CompileError> {
        // Compilations run in a separate directory, so the path must not depend on the current one.
        let path = fs::canonicalize(path).map_err(CompileError::io("find", path))?;
        let library = path.with_file_name(discover::LIBRARY);
        let identity = discover::identity(if library.is_file() { &library } else { &path })?;
        Ok(Self {
            path,
            identity,
            timeout: None,
        })
    }

    /// Limits the time of a compilation: a process that exceeds it is killed.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// Returns the version and revision that the program reports.
    ///
    /// # Errors
    ///
    /// [`CompileError::Io`] if the program cannot be run, [`CompileError::Rejected`] if it is not
    /// `iree-compile`.
    pub fn version(&self) -> Result<String, CompileError> {
        let output = self
            .command()
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(CompileError::io("run", &self.path))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("IREE compiler version"));
        version
            .map(|version| version.trim().to_owned())
            .ok_or_else(|| CompileError::Rejected {
                diagnostics: format!(
                    "{} does not answer `--version` like iree-compile: {text}{}",
                    self.path.display(),
                    String::from_utf8_lossy(&output.stderr)
                ),
            })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        discover::clean(&mut command, discover::has_raised_privileges());
        command
    }

    /// Returns the program's absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Compiler for Program {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        let version = self.version().unwrap_or_else(|error| error.to_string());
        format!("{}, a program, {version}", self.path.display())
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        const OUTPUT: &str = "module.vmfb";
        const STATISTICS: &str = "statistics.json";
        let plain = matches!(
            Path::new(request.name).components().collect::<Vec<_>>()[..],
            [Component::Normal(_)]
        );
        if !plain || request.name.starts_with('-') || [OUTPUT, STATISTICS].contains(&request.name) {
            return Err(CompileError::Request(format!(
                "`{}` is no plain file name",
                request.name
            )));
        }
        // The source file gets the name that is to be in the output, and is passed relative to its
        // directory, since the compiler writes the path that it was given into the vmfb.
        let directory = tempfile::tempdir().map_err(CompileError::io("make a directory in", &std::env::temp_dir()))?;
        let source = directory.path().join(request.name);
        fs::write(&source, request.mlir).map_err(CompileError::io("write", &source))?;
        let running = self
            .command()
            .current_dir(directory.path())
            .args(request.flags(STATISTICS)?)
            .args([request.name, "-o", OUTPUT])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| CompileError::Unavailable {
                program: self.path.clone(),
                reason: source.to_string(),
                source: Some(source),
            })?;
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut diagnostics = Vec::new();
        let status = Running(running)
            .finish(deadline, &mut diagnostics)
            .map_err(CompileError::io("run", &self.path))?;
        let diagnostics = String::from_utf8_lossy(&diagnostics).into_owned();
        let Some(status) = status else {
            return Err(CompileError::Timeout {
                seconds: self.timeout.unwrap_or_default().as_secs_f64(),
                diagnostics,
            });
        };
        if status.signal().is_some() {
            return Err(CompileError::Crashed {
                status: Some(status),
                diagnostics,
            });
        }
        if !status.success() {
            return Err(CompileError::Rejected { diagnostics });
        }
        let read = |name: &str| {
            let path = directory.path().join(name);
            fs::read(&path).map_err(CompileError::io("read", &path))
        };
        Ok(Compiled {
            vmfb: read(OUTPUT)?,
            statistics: Statistics::parse(&read(STATISTICS)?)?,
            diagnostics,
        })
    }
}

/// A compiler process, which is killed when this is dropped.
struct Running(Child);

impl Running {
    /// Reads the process's standard error until the process ends. Returns its status, or `None` if
    /// it still runs at the deadline.
    fn finish(mut self, deadline: Option<Instant>, diagnostics: &mut Vec<u8>) -> io::Result<Option<ExitStatus>> {
        if let Some(mut stderr) = self.0.stderr.take() {
            let mut buffer = [0; 1 << 12];
            while is_ready(&stderr, deadline)? {
                match stderr.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => diagnostics.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        // The process may have closed its standard error and still run, so its end is awaited
        // separately.
        match pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()) {
            Ok(process) if is_ready(&process, deadline)? => self.0.wait().map(Some),
            Ok(_) => Ok(None),
            // Linux before 5.3 has no process descriptors, and a process may have none left.
            Err(_) => self.ask(deadline),
        }
    }

    /// Asks for the process's status again and again until it has ended; returns `None` at the
    /// deadline.
    fn ask(&mut self, deadline: Option<Instant>) -> io::Result<Option<ExitStatus>> {
        /// Time between two questions.
        const PAUSE: Duration = Duration::from_millis(10);
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(status);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Waits until a descriptor has something to read, or a process has ended; returns false at the
/// deadline.
fn is_ready(descriptor: &impl AsFd, deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A time that the system cannot represent counts as no limit.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing for a process that has been waited for, and a failure could not be
        // reported to anyone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
