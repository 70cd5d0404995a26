//! Tuning on demand: with `ROTINI_TUNE` set, `rotini tune` measures each graph that has no record
//! on this device before the graph is used for the first time.
//!
//! The measurement runs in a separate process, one graph at a time. That process writes the record
//! into the cache, where [`crate::tuned`] reads it. If the program is missing or fails, a warning
//! is logged and the graph is used in its usual form.

use crate::compile::tuned_keys;
use crate::device::Device;
use crate::error::Error;
use crate::own_thread::on_own_thread;
use crate::runtime::Runtime;
use crate::tuned;
use rotini_cache::Key;
use rotini_emit::Target;
use rotini_graph::NormalGraph;
use rotini_iree::compiler::own_file;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum number of characters of the program's error output that a warning quotes.
const MOST_QUOTED: usize = 500;
/// Time limit of the program for one graph. It is generous: each answer of a candidate may take
/// five minutes, but most take seconds.
const LONGEST: Duration = Duration::from_secs(2 * 3600);

/// Runs `rotini tune` on a graph if `ROTINI_TUNE` names the program and the graph has no record.
/// `bytes` is the graph as the host gave it.
pub(crate) fn tune(runtime: &Runtime, device: &dyn Device, (graph, bytes): (&NormalGraph, &[u8])) {
    let Some(program) = &runtime.config.tune else {
        return;
    };
    let Ok(keys) = tuned_keys(runtime, graph, device) else {
        return;
    };
    // A graph that this process has already used keeps the form that it was used in.
    let is_settled = || {
        keys.iter()
            .any(|key| runtime.winners.get(key).is_some() || is_measured(runtime, key))
    };
    if is_settled() {
        return;
    }
    let _turn = runtime.winners.turn();
    // Another thread may have measured the same graph meanwhile.
    if is_settled() {
        return;
    }
    let device = match device.compiled_for().target {
        Target::Cpu | Target::X86(_) => "cpu",
        Target::Rocm { .. } => "hip",
        Target::Cuda { .. } => "cuda",
    };
    // Starting a process leaves thread-local state behind, so it must not happen on a host thread.
    let ran = on_own_thread(|| run(program, device, bytes, LONGEST));
    match ran.map_err(|error| Error::Internal(error.to_string())) {
        Ok(Ok(())) => {}
        // The program also exits with an error if a candidate computes wrong results. The record
        // was written all the same, and is used.
        Ok(Err(reason)) if is_settled() => tracing::warn!("ROTINI_TUNE: {}: {reason}", program.display()),
        Ok(Err(reason)) => tracing::warn!("ROTINI_TUNE: {} measured nothing: {reason}", program.display()),
        Err(error) => tracing::warn!("ROTINI_TUNE: {error}"),
    }
}

fn is_measured(runtime: &Runtime, key: &Key) -> bool {
    tuned::read(runtime, key).is_some_and(|record| record.winner.is_some())
}

fn run(program: &Path, device: &str, graph: &[u8], longest: Duration) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let plugin = own_file().ok_or("this library's file is unknown")?;
    let mut file = tempfile::Builder::new().suffix(".fb").tempfile().map_err(text)?;
    file.write_all(graph).map_err(text)?;
    let mut stderr = tempfile::tempfile().map_err(text)?;
    let mut child = Command::new(program)
        .args(["tune", "--device", device, "--plugin"])
        .arg(plugin)
        .arg(file.path())
        // The plugin that the child process loads must not tune in turn.
        .env_remove("ROTINI_TUNE")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr.try_clone().map_err(text)?)
        .spawn()
        .map_err(text)?;
    let status = match finish(&mut child, longest).map_err(text)? {
        Some(status) if status.success() => return Ok(()),
        Some(status) => status.to_string(),
        None => format!("it was stopped after {} s", longest.as_secs()),
    };
    let mut said = Vec::new();
    stderr.rewind().map_err(text)?;
    stderr.read_to_end(&mut said).map_err(text)?;
    let said: String = String::from_utf8_lossy(&said)
        .trim()
        .chars()
        .take(MOST_QUOTED)
        .collect();
    Err(format!("{status}: {said}"))
}

/// Waits for a child process, and kills it if it runs longer than `longest`: then the result is
/// `None`.
fn finish(child: &mut Child, longest: Duration) -> std::io::Result<Option<ExitStatus>> {
    const INTERVAL: Duration = Duration::from_millis(20);
    let start = Instant::now();
    loop {
        let status = child.try_wait()?;
        if status.is_some() {
            return Ok(status);
        }
        if start.elapsed() >= longest {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let write = |text: &str| std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        write("exec sleep 600");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&program, mode).unwrap();
        let error = run(&program, "cpu", b"graph", Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("stopped after 1 s"), "{error}");
        write("echo refused >&2; exit 3");
        let error = run(&program, "cpu", b"graph", LONGEST).unwrap_err();
        assert!(error.contains("exit status: 3") && error.contains("refused"), "{error}");
        write("exit 0");
        assert_eq!(run(&program, "cpu", b"graph", LONGEST), Ok(()));
    }
}
