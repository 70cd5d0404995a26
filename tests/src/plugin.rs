//! Locates the plugin under test.

use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;

/// Returns the shared library: `ROTINI_PLUGIN`, else the one that Cargo built beside this test.
///
/// # Errors
///
/// If it is missing. Never skipped: a suite without its subject proves nothing.
pub fn path() -> Result<PathBuf> {
    built("ROTINI_PLUGIN", "librotini_plugin.so", "rotini-artifact")
}

/// Returns the emulated HIP library: `ROTINI_HIP_EMULATOR`, else the one that Cargo built beside
/// this test.
///
/// # Errors
///
/// If it is missing.
pub fn emulator() -> Result<PathBuf> {
    built("ROTINI_HIP_EMULATOR", "libamdhip64.so", "rotini-hip-emulator")
}

/// Returns another engine of `benches`, `reference`, `faulty` or `onnxruntime`, as Cargo built it
/// beside this test.
///
/// # Errors
///
/// If it is missing.
pub fn engine(name: &str) -> Result<PathBuf> {
    beside(&format!("lib{name}_engine.so"), &format!("rotini-{name}-engine"))
}

fn built(variable: &str, name: &str, package: &str) -> Result<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) => Ok(PathBuf::from(path)),
        None => beside(name, package),
    }
}

/// Returns a library that Cargo built beside this test.
fn beside(name: &str, package: &str) -> Result<PathBuf> {
    let executable = std::env::current_exe().context("this test has no path")?;
    let places = executable
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(name));
    match places.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("{name} is not there: cargo build -p {package} makes it"),
    }
}
