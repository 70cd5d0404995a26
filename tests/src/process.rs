//! Tests of several processes: a test starts itself again, and an environment variable gives the
//! child its part.
//!
//! No test spells its own name for that: the standard test harness runs each test on a thread with
//! the test's name.

use anyhow::{Context as _, Result, ensure};
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Variable that is set in a child: the part that it plays in its test, the only test that it runs.
const CHILD: &str = "ROTINI_TEST_CHILD";

/// Returns the part that this process plays in its test; `None` in the parent. A child dies with
/// its parent, also when the test fails.
#[must_use]
pub fn part() -> Option<String> {
    let part = std::env::var(CHILD).ok()?;
    // If this is not supported, only a failing test leaves processes behind.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    Some(part)
}

/// Returns the name of the test that runs on this thread.
///
/// # Errors
///
/// If the thread is not a test's own, but one that a test has started.
pub fn this_test() -> Result<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| name.contains("::"));
    Ok(name.context("this thread has no test's name")?.to_owned())
}

/// Returns a command that runs a test in another process.
///
/// # Errors
///
/// If this program has no path.
pub fn test_command(test: &str, part: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([test, "--exact", "--nocapture"]).env(CHILD, part);
    Ok(command)
}

/// Returns a command that runs this thread's test in another process, on the CPU, with a cache
/// directory.
///
/// # Errors
///
/// If this program has no path, or as [`this_test`].
pub fn command(part: &str, cache: &Path) -> Result<Command> {
    command_of(&this_test()?, part, cache)
}

/// Returns a command as [`command`] does, for threads that a test has started.
///
/// # Errors
///
/// If this program has no path.
pub fn command_of(test: &str, part: &str, cache: &Path) -> Result<Command> {
    let mut command = test_command(test, part)?;
    command
        .env("ROTINI_DEVICE", "cpu")
        .env("ROTINI_CACHE_DIR", cache)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// Makes every compiler unreachable for a process.
pub fn without_compiler(command: &mut Command) -> &mut Command {
    let nowhere = OsStr::new("/nonexistent");
    command
        .env("ROTINI_IREE_COMPILE", nowhere)
        .env("ROTINI_IREE_COMPILER_LIB", nowhere)
        .env("ROTINI_COMPILE_WORKER", nowhere)
}

/// Waits for a process that must succeed, and returns its output.
///
/// # Errors
///
/// If it fails, or ran no test.
pub fn finish(child: Child) -> Result<String> {
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{status}\n{stdout}{stderr}");
    // A filter that matches nothing succeeds too.
    ensure!(stdout.contains("1 passed"), "no test was run: {stdout}");
    Ok(stdout.into_owned())
}

/// Runs a process to its end, as [`finish`] does.
///
/// # Errors
///
/// As [`finish`].
pub fn run(command: &mut Command) -> Result<String> {
    finish(command.spawn().context("the test cannot be started again")?)
}

/// Returns a graph that compiles quickly: `y = max(x + b, 0)` over this number of elements.
#[must_use]
pub fn small_graph(elements: i64) -> Graph {
    let mut builder = GraphBuilder::new("small");
    let x = builder.buffer("x", DataType::F32, &[1, elements]);
    let b = builder.buffer("b", DataType::F32, &[1, elements]);
    let sum = builder.virtual_tensor("sum", DataType::F32, &[1, elements]);
    let y = builder.buffer("y", DataType::F32, &[1, elements]);
    builder.pointwise(DataType::F32, PointwiseMode::Add, &[x, b], sum);
    builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[sum], y);
    builder.build()
}

/// Timeout that no correct run reaches on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
///
/// # Errors
///
/// If that takes too long.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) -> Result<()> {
    let started = Instant::now();
    while !condition() {
        ensure!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A file of lines through which processes communicate. One small append is one write, so lines do
/// not interleave.
#[derive(Clone, Debug)]
pub struct Notes(PathBuf);

impl Notes {
    /// Opens the notes in a file, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Notes(path)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Appends a line.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn add(&self, line: &str) -> Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        Ok(file.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Returns all lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the number of occurrences of a line.
    #[must_use]
    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|one| *one == line).count()
    }
}

/// Returns the command lines of the processes that run with a cache directory, whoever started
/// them.
///
/// # Errors
///
/// If the system does not list processes.
pub fn running_with(cache: &Path) -> Result<Vec<String>> {
    let wanted = [b"ROTINI_CACHE_DIR=", cache.as_os_str().as_encoded_bytes()].concat();
    let mut running = Vec::new();
    for item in fs::read_dir("/proc")? {
        let directory = item?.path();
        // Entries that are no process, belong to another user or have ended have no readable
        // environment.
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted) {
            let command = fs::read(directory.join("cmdline")).unwrap_or_default();
            running.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    Ok(running)
}
