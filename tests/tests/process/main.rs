//! Tests between real processes: the plugin in each, the real compiler, and faults around it.
//!
//! | Module | Assertion |
//! |---|---|
//! | `abi` | symbols, dependencies, errors, statuses, workspace, threads, a host in C |
//! | `cold` | processes that request the same graphs at once compile each only once |
//! | `kills` | processes that are killed at any moment leave nothing wrong, stuck or behind |
//! | `disk` | full, read-only, vanishing directories, damaged entries: results stay right |
//! | `engines` | an engine with a fault has this fault and no other |
//! | `failures` | graphs that do not compile: messages, reproducers, and later declines |
//! | `forks` | children of a process that uses the plugin: results or clear errors, no waiting |
//! | `serialized` | contexts as bytes: no compiler, no cache, any damage is detected |
//! | `shapes` | ever-changing shapes delay no execution of others |
//! | `shipped` | directories of compiled graphs on machines without a compiler |
//! | `rounds` | memory and descriptors over ten thousand contexts |
//! | `shortage` | temporary exhaustion of descriptors and processes has no lasting effect |
//! | `privileges` | in a host with raised privileges the environment names no code and no path |
//! | `stale` | code of an older lowering serves its own build and no other |
//! | `unload` | closing the library leaves nothing of it in the process |
//! | `workers` | compile workers that crash, hang or send garbage; untrusted programs |
//! | `workspace` | code that needs more workspace than was reported is refused once |

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed, and children tell their parents what they saw"
)]

mod abi;
mod cold;
mod disk;
mod engines;
mod failures;
mod forks;
mod kills;
mod privileges;
mod rounds;
mod serialized;
mod shapes;
mod shipped;
mod shortage;
mod stale;
mod unload;
mod workers;
mod workspace;

use rotini_host::{Context, HostError, Plugin, engine_config};
use rotini_tests::cases::Case;
use rotini_tests::harness::Runner;
use rotini_tests::process::small_graph;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

const INVALID_VALUE: i32 = 2;
const INTERNAL_ERROR: i32 = 3;
const NOT_APPLICABLE: i32 = 5;

/// A case of a graph that compiles quickly.
fn small(elements: i64) -> Case {
    Case {
        name: format!("small_{elements}"),
        graph: small_graph(elements),
    }
}

fn bytes(case: &Case) -> Vec<u8> {
    rotini_wire::encode(&case.graph)
}

fn create(runner: &Runner, case: &Case) -> Result<Context, HostError> {
    runner.handle().context(&engine_config(runner.engine()), &bytes(case))
}

/// Creates a context, executes it and judges the outputs.
fn expect_right(runner: &Runner, case: &Case) {
    let context = create(runner, case).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let judged = runner.judge(case, &context, 64);
    judged.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
}

#[track_caller]
fn expect_status<T>(result: Result<T, HostError>, expected: i32) -> String {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(HostError::Status { status, text, .. }) => {
            assert_eq!(status, expected, "{text}");
            text
        }
        Err(other) => panic!("{other}"),
    }
}

/// The plugin's log in this process: severities and texts.
static LOG: Mutex<Vec<(i32, String)>> = Mutex::new(Vec::new());

unsafe extern "C" fn log(severity: i32, message: *const c_char) {
    // SAFETY: the plugin passes a NUL-terminated string.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    LOG.lock().unwrap().push((severity, text));
}

/// Returns a runner on the CPU whose plugin logs to `LOG`.
fn logging() -> Runner {
    logging_on(Runner::cpu)
}

/// Returns a runner whose plugin logs to `LOG`.
fn logging_on(open: impl FnOnce() -> anyhow::Result<Runner>) -> Runner {
    let _library = logging_library();
    open().unwrap()
}

/// Loads the library; it logs to `LOG` until its last user closes it.
fn logging_library() -> Plugin {
    // SAFETY: the file is the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(rotini_tests::plugin::path().unwrap()) }.unwrap();
    plugin.set_logging(Some(log), 0).unwrap();
    plugin
}

/// Returns the log lines that contain a word.
fn logged(word: &str) -> Vec<(i32, String)> {
    let log = LOG.lock().unwrap();
    log.iter().filter(|(_, text)| text.contains(word)).cloned().collect()
}

/// Part of the warning about a compiler that is not the one installed for tests.
const UNPROVEN: &str = "not the build that rotini is proven with";

/// Returns the warnings and errors since the last call, except for the one that a test's own
/// program is not the proven compiler.
fn warnings() -> Vec<String> {
    let log = std::mem::take(&mut *LOG.lock().unwrap());
    let is_counted = std::env::var_os("ROTINI_TEST_COMPILER").is_some();
    let bad = log.into_iter().filter(|(severity, _)| *severity > 0);
    bad.map(|(_, text)| text)
        .filter(|text| !(is_counted && text.contains(UNPROVEN)))
        .collect()
}

/// In a child: returns the directory that it shares with its parent.
fn directory() -> PathBuf {
    std::env::var_os("ROTINI_TEST_DIRECTORY").unwrap().into()
}

/// Replaces a process's compiler by a program that counts compilations, and misbehaves if the
/// environment says so.
fn counted<'a>(command: &'a mut Command, log: &std::path::Path) -> &'a mut Command {
    let real = rotini_iree::compiler::find_program().unwrap();
    command
        .env("ROTINI_COMPILER", "cli")
        .env("ROTINI_IREE_COMPILE", env!("CARGO_BIN_EXE_rotini-test-compiler"))
        .env("ROTINI_TEST_COMPILER", real)
        .env("ROTINI_TEST_COMPILER_LOG", log)
}

/// Returns the files in a directory with this suffix.
fn files(directory: &std::path::Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    files
}
