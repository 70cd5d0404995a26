//! `iree-compile` for tests: counts its runs and misbehaves on demand. Otherwise it runs the real
//! program.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `ROTINI_TEST_COMPILER` | the real program |
//! | `ROTINI_TEST_COMPILER_LOG` | a file that gets a line per run: a hash of the module |
//! | `ROTINI_TEST_COMPILER_FAULT` | `MARKER=FAULT`: the fault for modules that contain the marker |
//! | `ROTINI_TEST_COMPILER_GATE` | a file, for `hold` |
//! | `ROTINI_TEST_COMPILER_MEMO` | a directory of compiled modules, shared by tests |
//!
//! | Fault | Meaning |
//! |---|---|
//! | `alike` | modules that differ only in numbers get the code of the first one compiled |
//! | `hold` | waits until the gate exists, or the caller is gone |
//! | `crash` | a segmentation fault |
//! | `reject` | an error line, and exit code 1 |

#![expect(clippy::print_stderr, reason = "compilers write there")]

use anyhow::{Context as _, Result, ensure};
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, OpenOptions};
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::Path;
use std::process::{Command, exit};
use std::time::Duration;

/// The file that the compiler writes into its current directory besides the module.
const STATISTICS: &str = "statistics.json";
const OUTPUT: &str = "module.vmfb";

fn main() -> Result<()> {
    let parent = parent_id();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let source = arguments.iter().find(|argument| argument.ends_with(".mlir"));
    let module = match source {
        Some(source) => fs::read_to_string(source)?,
        None => String::new(),
    };
    let fault = std::env::var("ROTINI_TEST_COMPILER_FAULT").unwrap_or_default();
    let fault = fault.split_once('=').filter(|(marker, _)| module.contains(marker));
    let fault = fault.map(|(_, fault)| fault);
    let mut hasher = DefaultHasher::new();
    match fault {
        Some("alike") => module
            .replace(|letter: char| letter.is_ascii_digit(), "")
            .hash(&mut hasher),
        _ => module.hash(&mut hasher),
    }
    if let Ok(log) = std::env::var("ROTINI_TEST_COMPILER_LOG")
        && source.is_some()
    {
        let line = format!("{:016x}\n", hasher.finish());
        let mut log = OpenOptions::new().append(true).create(true).open(log)?;
        log.write_all(line.as_bytes())?;
    }
    match fault {
        None | Some("alike") => {}
        Some("hold") => {
            let gate = std::env::var_os("ROTINI_TEST_COMPILER_GATE").context("there is no gate")?;
            while !Path::new(&gate).exists() {
                ensure!(parent_id() == parent, "nobody waits for this any more");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Some("reject") => {
            eprintln!("rotini.mlir:7:3: error: this test rejects the module");
            exit(1);
        }
        // SAFETY: with the default action instead of Rust's handler, which would return, the signal
        // ends this process.
        Some(_) => unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::raise(libc::SIGSEGV);
        },
    }
    let real = std::env::var_os("ROTINI_TEST_COMPILER").context("ROTINI_TEST_COMPILER is not set")?;
    let mut real = Command::new(real);
    real.args(&arguments);
    match std::env::var_os("ROTINI_TEST_COMPILER_MEMO") {
        Some(memo) if source.is_some() => {
            arguments.hash(&mut hasher);
            remember(&Path::new(&memo).join(format!("{:016x}", hasher.finish())), &mut real)
        }
        _ => Err(real.exec().into()),
    }
}

/// Copies the contents of `memo` into the current directory; if there is no memo, runs the compiler
/// and saves its output there.
fn remember(memo: &Path, real: &mut Command) -> Result<()> {
    if !memo.is_dir() {
        let status = real.status()?;
        if !status.success() {
            exit(status.code().unwrap_or(1));
        }
        // Written to a temporary directory and renamed, so that the memo is complete even if this
        // process is killed or runs beside others.
        let parent = memo.parent().context("the memo is no directory")?;
        let directory = tempfile::tempdir_in(parent)?;
        for file in [OUTPUT, STATISTICS] {
            fs::copy(file, directory.path().join(file))?;
        }
        // If another process was faster, the memo exists already, with the same contents.
        let _ = fs::rename(directory.path(), memo);
        return Ok(());
    }
    for file in [OUTPUT, STATISTICS] {
        fs::copy(memo.join(file), file).with_context(|| format!("{file} is not kept"))?;
    }
    Ok(())
}
