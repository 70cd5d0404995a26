//! Where the plugin under test is.

use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;

/// The shared library: `ROTINI_PLUGIN`, else the one that Cargo built beside this test.
///
/// # Errors
///
/// If it is not there. Never skipped: a suite without its subject proves nothing.
pub fn path() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ROTINI_PLUGIN") {
        return Ok(PathBuf::from(path));
    }
    let executable = std::env::current_exe().context("this test has no path")?;
    let built = executable
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("librotini_plugin.so"));
    match built.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("librotini_plugin.so is not there: cargo build -p rotini-artifact makes it"),
    }
}
