//! The environment variables that the plugin reads at load. They are set once, before that.

use anyhow::{Result, bail, ensure};
use rotini_host::gpu::{Api, Driver, Gpu};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use tempfile::TempDir;

/// Sets the environment that the plugin reads at load: the CPU, and a cache directory that is
/// removed when the process ends.
///
/// # Errors
///
/// Without a temporary directory; if this process is set up for a GPU.
pub fn cpu_only() -> Result<()> {
    environment("cpu", None, Workspace::AsShipped)
}

/// Owner of the workspace of executions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Workspace {
    /// The plugin, if little is needed.
    AsShipped,
    /// Always the test, which fills and guards it.
    TheTests,
}

/// Sets the environment as [`cpu_only`] does, for tests that inspect the workspace.
pub(super) fn cpu_with(workspace: Workspace) -> Result<()> {
    environment("cpu", None, workspace)
}

/// Returns the GPU that the tests use, and sets the environment for it: the emulated MI300, or the
/// device in `ROTINI_TEST_DEVICE` (`cuda`: an NVIDIA GPU; `hip`: an AMD GPU of this machine).
///
/// # Errors
///
/// Without the GPU or its library; if this process is set up for another device.
pub fn gpu() -> Result<Gpu> {
    gpu_with(Workspace::AsShipped)
}

/// Returns the GPU as [`gpu`] does, for tests that inspect the workspace.
pub(super) fn gpu_with(workspace: Workspace) -> Result<Gpu> {
    let device = std::env::var("ROTINI_TEST_DEVICE").unwrap_or_default();
    let (api, path) = match device.as_str() {
        "" => (Api::Hip, Some(crate::plugin::emulator()?.into_os_string())),
        "hip" => (Api::Hip, None),
        "cuda" => (Api::Cuda, None),
        other => bail!("ROTINI_TEST_DEVICE={other}"),
    };
    let name = match api {
        Api::Hip => "hip",
        Api::Cuda => "cuda",
    };
    environment(name, path.as_deref(), workspace)?;
    // SAFETY: the emulator that this workspace builds, or the library of the machine's driver.
    let driver = unsafe { Driver::load(api, path.as_deref()) }?;
    Ok(driver.gpu(0)?)
}

/// The device that this process is set up for.
static CHOSEN: OnceLock<std::io::Result<String>> = OnceLock::new();

/// Leaves all schedules to the compiler, in a process that is not set up yet.
///
/// # Errors
///
/// If the process is set up already.
pub(super) fn without_schedules() -> Result<()> {
    ensure!(CHOSEN.get().is_none(), "this process is set up already, with schedules");
    // SAFETY: the process is not set up, so nothing that reads the environment is loaded; a test
    // calls this before anything else.
    unsafe { std::env::set_var("ROTINI_SCHEDULES", "compiler") };
    Ok(())
}

/// Sets up this process for a device.
fn environment(device: &str, hip_library: Option<&OsStr>, workspace: Workspace) -> Result<()> {
    let chosen = CHOSEN.get_or_init(|| {
        if crate::process::part().is_some() {
            // The parent process has already set the environment.
            return Ok(std::env::var("ROTINI_DEVICE").unwrap_or_default());
        }
        let cache = cache_directory()?;
        // SAFETY: done once, before the plugin is loaded; nothing else in these tests reads or
        // writes the environment meanwhile. The function takes nothing, and lives as long as the
        // process.
        unsafe {
            std::env::set_var("ROTINI_DEVICE", device);
            std::env::set_var("ROTINI_CACHE_DIR", cache);
            std::env::set_var("ROTINI_CACHE_SIZE", CACHE_SIZE);
            if let Some(library) = hip_library {
                std::env::set_var("ROTINI_HIP_LIBRARY", library);
            }
            if workspace == Workspace::TheTests {
                std::env::set_var("ROTINI_OWN_WORKSPACE", "0");
            }
            libc::atexit(remove_cache);
        }
        Ok(device.to_owned())
    });
    match chosen {
        Ok(chosen) if chosen == device => Ok(()),
        Ok(chosen) => bail!("this process is set up for {chosen}, not for {device}"),
        Err(error) => bail!("no temporary directory: {error}"),
    }
}

/// Size limit of the persistent directory: some runs of all cases.
const CACHE_SIZE: &str = "2 GiB";

/// Returns a cache directory for this process; or `ROTINI_TEST_CACHE`, which all tests share and
/// later runs reuse: keys are content hashes.
fn cache_directory() -> std::io::Result<PathBuf> {
    let shared = std::env::var_os("ROTINI_TEST_CACHE").filter(|directory| !directory.is_empty());
    if let Some(directory) = shared {
        std::fs::create_dir_all(&directory)?;
        return std::fs::canonicalize(directory);
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().to_owned();
    *CACHE.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
    Ok(path)
}

/// The cache directory of this process, which [`remove_cache`] removes: a static is never dropped.
static CACHE: Mutex<Option<TempDir>> = Mutex::new(None);

extern "C" fn remove_cache() {
    drop(CACHE.lock().unwrap_or_else(PoisonError::into_inner).take());
}
