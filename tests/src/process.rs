//! Tests of several processes: a test starts itself again, and the environment tells the child its
//! part.
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

/// In a child: the part that it plays in its test, which is the only one that it runs.
const CHILD: &str = "ROTINI_TEST_CHILD";

/// The part that this process plays in its test; `None` in the process that started it all. A part
/// ends with the test that started it, also when that fails.
#[must_use]
pub fn part() -> Option<String> {
    let part = std::env::var(CHILD).ok()?;
    // Where it cannot be, only a test that fails leaves processes.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    Some(part)
}

/// The name of the test that runs on this thread.
///
/// # Errors
///
/// If it is no test's own thread, but one that a test has started.
pub fn this_test() -> Result<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| name.contains("::"));
    Ok(name.context("this thread has no test's name")?.to_owned())
}

/// A test in another process.
///
/// # Errors
///
/// If this program has no path.
pub fn test_command(test: &str, part: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([test, "--exact", "--nocapture"]).env(CHILD, part);
    Ok(command)
}

/// The test of this thread in another process, on the CPU, with a cache directory.
///
/// # Errors
///
/// If this program has no path, or as [`this_test`].
pub fn command(part: &str, cache: &Path) -> Result<Command> {
    command_of(&this_test()?, part, cache)
}

/// As [`command`], for threads that a test has started.
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

/// Waits for a process that is to succeed, and tells what it wrote.
///
/// # Errors
///
/// If it fails, or ran no test.
pub fn finish(child: Child) -> Result<String> {
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{status}\n{stdout}{stderr}");
    // A filter that matches nothing is a success too.
    ensure!(stdout.contains("1 passed"), "no test was run: {stdout}");
    Ok(stdout.into_owned())
}

/// Runs a process to its end, as [`finish`].
///
/// # Errors
///
/// As [`finish`].
pub fn run(command: &mut Command) -> Result<String> {
    finish(command.spawn().context("the test cannot be started again")?)
}

/// A graph that compiles quickly: `y = max(x + b, 0)` over as many elements.
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

/// Longer than any machine needs for what tests wait for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
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

/// Lines that processes leave for each other in a file. One small append is one write: lines do not
/// mix.
#[derive(Clone, Debug)]
pub struct Notes(PathBuf);

impl Notes {
    /// The notes in a file, which need not be there.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Notes(path)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves a line.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn add(&self, line: &str) -> Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        Ok(file.write_all(format!("{line}\n").as_bytes())?)
    }

    /// All lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often a line is there.
    #[must_use]
    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|one| *one == line).count()
    }
}

/// The processes that run with a cache directory, whoever started them, by their command lines.
///
/// # Errors
///
/// If the system does not list processes.
pub fn running_with(cache: &Path) -> Result<Vec<String>> {
    let wanted = [b"ROTINI_CACHE_DIR=", cache.as_os_str().as_encoded_bytes()].concat();
    let mut running = Vec::new();
    for item in fs::read_dir("/proc")? {
        let directory = item?.path();
        // What is no process, is not ours or has ended has none.
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted) {
            let command = fs::read(directory.join("cmdline")).unwrap_or_default();
            running.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    Ok(running)
}
