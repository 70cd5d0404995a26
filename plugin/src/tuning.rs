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
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Maximum number of characters of the program's error output that a warning quotes.
const MOST_QUOTED: usize = 500;

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
    let ran = on_own_thread(|| run(program, device, bytes));
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

fn run(program: &Path, device: &str, graph: &[u8]) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let plugin = own_file().ok_or("this library's file is unknown")?;
    let mut file = tempfile::Builder::new().suffix(".fb").tempfile().map_err(text)?;
    file.write_all(graph).map_err(text)?;
    let output = Command::new(program)
        .args(["tune", "--device", device, "--plugin"])
        .arg(plugin)
        .arg(file.path())
        // The plugin that the child process loads must not tune in turn.
        .env_remove("ROTINI_TUNE")
        .stdin(Stdio::null())
        .output()
        .map_err(text)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.trim().chars().take(MOST_QUOTED).collect();
    Err(format!("{}: {said}", output.status))
}
