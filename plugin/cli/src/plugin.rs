//! The plugin as hipDNN loads it: found, asked for its identity, and given a logging callback.

use crate::args::PluginArgs;
use crate::failure::Failure;
use anyhow::{Context as _, Result, bail};
use rotini_host::{Handle, HostError};
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::{env, fmt};

/// The file name of the plugin.
pub(crate) const FILE: &str = "librotini_plugin.so";
/// Where hipDNN looks for engine plugins in the prefix that it is installed in.
const ENGINES: &str = "lib/hipdnn_plugins/engines";
/// `hipdnnPluginType_t` of engine plugins.
const TYPE_ENGINE: i32 = 1;

/// An engine of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The id, as it is passed around.
    pub(crate) id: i64,
    /// The name that the id is the hash of.
    pub(crate) name: String,
}

/// A loaded plugin.
pub(crate) struct Plugin {
    library: rotini_host::Plugin,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it calls itself.
    pub(crate) name: String,
    /// Its own version.
    pub(crate) version: String,
    /// The engine API that it implements.
    pub(crate) api_version: String,
    /// Its engines.
    pub(crate) engines: Vec<Engine>,
}

impl Plugin {
    /// Finds and loads the plugin and asks it what hipDNN asks first, in the same order.
    ///
    /// Its log messages become events of this process's log.
    ///
    /// # Errors
    ///
    /// If it is not there, or every reason for which hipDNN would not take it.
    pub(crate) fn load(args: &PluginArgs, verbose: bool) -> Result<Self> {
        let path = locate(args.plugin.as_deref())?;
        // SAFETY: the file is this project's own plugin, or what the user named as a plugin to be
        // run.
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

    /// A handle on the plugin's device.
    ///
    /// # Errors
    ///
    /// The plugin's.
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

/// Where the plugin is: where it is said to be, beside this program, or where hipDNN looks in the
/// prefix that both are installed in.
pub(crate) fn locate(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        // dlopen would look for a name without a directory in the system's directories.
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

/// Takes the plugin's log messages.
///
/// # Safety
///
/// `message` is a terminated text that is valid during the call.
unsafe extern "C" fn log(severity: i32, message: *const c_char) {
    // SAFETY: by this function's contract.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    match severity {
        SEVERITY_INFO => tracing::info!("{message}"),
        SEVERITY_WARN => tracing::warn!("{message}"),
        // An error's text comes back with its status too, and is reported then.
        _ => tracing::info!("error: {message}"),
    }
}
