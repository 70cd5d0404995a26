//! The plugin as hipDNN loads it: located, identified, and given a logging callback.

use crate::args::PluginArgs;
use crate::failure::Failure;
use anyhow::{Context as _, Result, bail};
use rotini_host::{Handle, HostError};
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::{env, fmt};

/// The file name of the plugin.
pub(crate) const FILE: &str = "librotini_plugin.so";
/// The directory of engine plugins below hipDNN's installation prefix.
const ENGINES: &str = "lib/hipdnn_plugins/engines";
/// `hipdnnPluginType_t` of engine plugins.
const TYPE_ENGINE: i32 = 1;

/// An engine of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The engine's id.
    pub(crate) id: i64,
    /// The engine's name, of which the id is a hash.
    pub(crate) name: String,
}

/// A loaded plugin.
pub(crate) struct Plugin {
    library: rotini_host::Plugin,
    /// Path of the library.
    pub(crate) path: PathBuf,
    /// Name that the plugin reports.
    pub(crate) name: String,
    /// Version of the plugin.
    pub(crate) version: String,
    /// Version of the engine API that the plugin implements.
    pub(crate) api_version: String,
    /// The plugin's engines.
    pub(crate) engines: Vec<Engine>,
}

impl Plugin {
    /// Locates and loads the plugin, and queries what hipDNN queries first, in the same order.
    ///
    /// The plugin's log messages become events of this process's log.
    ///
    /// # Errors
    ///
    /// Fails if the plugin does not exist, or for any reason for which hipDNN would reject it.
    pub(crate) fn load(args: &PluginArgs, verbose: bool) -> Result<Self> {
        let path = locate(args.plugin.as_deref())?;
        // SAFETY: the file is this project's own plugin, or one that the user named to be run.
        let library = unsafe { rotini_host::Plugin::load(&path) }?;
        let kind = library.kind()?;
        if kind != TYPE_ENGINE {
            bail!(Failure::Environment(format!(
                "{} is no engine plugin, but of type {kind}",
                path.display()
            )));
        }
        let name = library.name()?;
        let version = library.version()?;
        library.set_logging(Some(log), if verbose { SEVERITY_INFO } else { SEVERITY_WARN })?;
        let api_version = library.api_version()?;
        let engine = |id| {
            Ok(Engine {
                id,
                name: library.engine_name(id)?,
            })
        };
        let engines = library
            .engine_ids()?
            .into_iter()
            .map(engine)
            .collect::<Result<_, HostError>>()?;
        Ok(Plugin {
            library,
            path,
            name,
            version,
            api_version,
            engines,
        })
    }

    /// Creates a handle on the plugin's device.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub(crate) fn handle(&self) -> Result<Handle> {
        self.library.handle().context("the plugin gives no handle")
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plugin {
            path,
            name,
            version,
            api_version,
            ..
        } = self;
        write!(f, "{}: {name} {version}, engine API {api_version}", path.display())
    }
}

/// Locates the plugin: the named path; else beside this program; else hipDNN's plugin directory in
/// the prefix that this program is installed in.
pub(crate) fn locate(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        // Made absolute, because dlopen searches the system's directories for a name without a
        // directory.
        return std::path::absolute(path).with_context(|| format!("{} is no path", path.display()));
    }
    let program = env::current_exe().context("this program's own path is not known")?;
    let beside = program.with_file_name(FILE);
    if beside.is_file() {
        return Ok(beside);
    }
    let installed = program
        .parent()
        .and_then(Path::parent)
        .map(|prefix| prefix.join(ENGINES).join(FILE));
    if let Some(path) = installed.as_ref().filter(|path| path.is_file()) {
        return Ok(path.clone());
    }
    let or_installed = installed.map_or_else(String::new, |path| format!(" nor at {}", path.display()));
    bail!(Failure::Environment(format!(
        "there is no plugin at {}{or_installed}; scripts/build makes it, and --plugin names another one",
        beside.display()
    )));
}

const SEVERITY_INFO: i32 = 0;
const SEVERITY_WARN: i32 = 1;

/// Receives the plugin's log messages.
///
/// # Safety
///
/// `message` must be a null-terminated string that is valid during the call.
unsafe extern "C" fn log(severity: i32, message: *const c_char) {
    // SAFETY: by this function's contract.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    match severity {
        SEVERITY_INFO => tracing::info!("{message}"),
        SEVERITY_WARN => tracing::warn!("{message}"),
        // The text of an error is also returned with its status, and reported then.
        _ => tracing::info!("error: {message}"),
    }
}
