//! The settings of the plugin, read once from the environment.
//!
//! A value that is not understood is never guessed at: the default is used, and the log says so.

use crate::abi::{LogSeverity, logging};
use crate::settings::{PREFIX, is_known};
pub use crate::settings::{Reader, SETTINGS, Setting, document};
use bytesize::ByteSize;
use rotini_emit::{Level, Target};
use rotini_iree::compiler::{has_raised_privileges, own_file};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables that name a program, a library or a directory. They are ignored in a process with
/// raised privileges, because the user who started it must not choose these.
const PLACES: [&str; 8] = [
    "ROTINI_HIP_LIBRARY",
    "ROTINI_COMPILE_WORKER",
    "ROTINI_IREE_COMPILE",
    "ROTINI_IREE_COMPILER_LIB",
    "ROTINI_CACHE_DIR",
    "ROTINI_CACHE_PATH",
    "ROTINI_REPRODUCERS",
    "ROTINI_TUNE",
];

/// The devices that graphs run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// AMD GPUs if there are any, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// AMD GPUs.
    Hip,
    /// NVIDIA GPUs.
    #[cfg(feature = "cuda")]
    Cuda,
}

/// The way in which the compiler is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerMode {
    /// Through its library, in worker processes that are kept for the next graph.
    Worker,
    /// Through its library, in this process.
    InProcess,
    /// Through the program `iree-compile`, in a new process for each graph.
    Cli,
}

/// The settings of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The devices that graphs run on.
    pub device: DeviceChoice,
    /// The target to compile for, if not the one that the device reports.
    pub target: Option<Target>,
    /// The CPU to compile for, if graphs run on the CPU.
    pub cpu: Target,
    /// Whether all schedules are left to the compiler.
    pub unscheduled: bool,
    /// The HIP library, if it is not to be searched for.
    pub hip_library: Option<String>,
    /// The way in which the compiler is called.
    pub compiler: CompilerMode,
    /// Maximum number of graphs that are compiled at a time.
    pub compile_workers: usize,
    /// Time limit for one graph, in a worker or the compiler's program.
    pub compile_timeout: Duration,
    /// Memory limit of one worker, in bytes.
    pub compile_memory: u64,
    /// The directory of compiled graphs; `None` keeps them in memory only.
    pub cache_dir: Option<PathBuf>,
    /// Directories of graphs that were compiled ahead of time.
    pub cache_path: Vec<PathBuf>,
    /// Maximum size of the cache directory, in bytes.
    pub cache_size: u64,
    /// Maximum bytes of workspace that an execution takes from the plugin's own memory if the
    /// caller passes none.
    pub own_workspace: u64,
    /// The directory for reproducers of graphs that do not compile; `None` keeps none.
    pub reproducers: Option<PathBuf>,
    /// The `rotini` program that measures graphs before their first use; `None` measures nothing.
    pub tune: Option<PathBuf>,
    /// Settings that were not understood, for the log.
    pub complaints: Vec<String>,
}

impl Config {
    /// Reads the environment.
    #[must_use]
    pub fn from_env() -> Self {
        Self::read(std::env::vars_os(), has_raised_privileges())
    }

    /// Reads the settings from the given variables. A value that is not understood is reported, and
    /// its default used. With raised privileges, settings that name a place are ignored.
    #[must_use]
    pub fn read(variables: impl IntoIterator<Item = (OsString, OsString)>, is_raised: bool) -> Self {
        let variables = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX));
        Values::new(variables, is_raised).config()
    }
}

/// Returns the severity that `ROTINI_LOG` asks for. Not part of [`Config`], because logging is set
/// up before anything else.
#[must_use]
pub fn log_level() -> Option<LogSeverity> {
    logging::level_by_name(&std::env::var("ROTINI_LOG").ok()?)
}

/// The variables that are set, and the complaints about them.
struct Values {
    values: Vec<(String, OsString)>,
    is_raised: bool,
    complaints: Vec<String>,
}

impl Values {
    fn new(values: impl Iterator<Item = (String, OsString)>, is_raised: bool) -> Self {
        let mut values: Vec<_> = values.collect();
        let unknown: BTreeSet<_> = values.iter().filter(|(name, _)| !is_known(name)).collect();
        let mut complaints: Vec<_> = unknown
            .iter()
            .map(|(name, _)| {
                format!("{name} is set, but rotini has no such setting; docs/settings.md lists all of them")
            })
            .collect();
        if is_raised {
            let ignored: Vec<_> = values
                .extract_if(.., |(name, value)| {
                    // The compiler's library reads environment variables itself, so it is kept out
                    // of this process.
                    PLACES.contains(&name.as_str()) || (name == "ROTINI_COMPILER" && *value == *"in-process")
                })
                .map(|(name, _)| format!(" {name} is not followed."))
                .collect();
            complaints.push(format!(
                "this process has raised privileges, so no variable names a library, a program or a directory, and graphs are kept in memory \
                 only.{}",
                ignored.concat()
            ));
        }
        Values {
            values,
            is_raised,
            complaints,
        }
    }

    fn config(mut self) -> Config {
        let cuda = if cfg!(feature = "cuda") { ", cuda" } else { "" };
        let cache_dir = match self.path("ROTINI_CACHE_DIR") {
            Some(dir) => dir,
            // The default directory depends on the home directory, which is a variable too.
            None if self.is_raised => None,
            None => rotini_cache::default_dir(),
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Config {
            device: self
                .parsed("ROTINI_DEVICE", &format!("auto, cpu, hip{cuda}"), |value| {
                    Some(match value {
                        "auto" => DeviceChoice::Auto,
                        "cpu" => DeviceChoice::Cpu,
                        "hip" => DeviceChoice::Hip,
                        #[cfg(feature = "cuda")]
                        "cuda" => DeviceChoice::Cuda,
                        _ => return None,
                    })
                })
                .unwrap_or(DeviceChoice::Auto),
            target: self.parsed("ROTINI_TARGET", "cpu, gfx…, mi…, sm_…", |value| {
                Target::parse(value).filter(|target| !matches!(target, Target::X86(_)))
            }),
            cpu: self
                .parsed("ROTINI_CPU", "host, x86-64-v3, x86-64-v4", |value| match value {
                    "host" => Some(Target::Cpu),
                    level => Level::parse(level).map(Target::X86),
                })
                .unwrap_or(Target::Cpu),
            unscheduled: self
                .parsed("ROTINI_SCHEDULES", "predicted, compiler", |value| match value {
                    "predicted" => Some(false),
                    "compiler" => Some(true),
                    _ => None,
                })
                .unwrap_or(false),
            hip_library: self.parsed("ROTINI_HIP_LIBRARY", "paths and names", |value| Some(value.to_owned())),
            compiler: self
                .parsed("ROTINI_COMPILER", "worker, in-process, cli", |value| {
                    Some(match value {
                        "worker" => CompilerMode::Worker,
                        "in-process" => CompilerMode::InProcess,
                        "cli" => CompilerMode::Cli,
                        _ => return None,
                    })
                })
                .unwrap_or(CompilerMode::Worker),
            compile_workers: self
                .parsed("ROTINI_COMPILE_WORKERS", "numbers from 1", |value| {
                    value.parse().ok().filter(|&count: &usize| count > 0)
                })
                .unwrap_or(cores.min(4)),
            compile_timeout: self
                .parsed("ROTINI_COMPILE_TIMEOUT", "seconds from 1", |value| {
                    value.parse().ok().filter(|&seconds: &u32| seconds > 0)
                })
                .map_or(Duration::from_secs(120), |seconds| {
                    Duration::from_secs(u64::from(seconds))
                }),
            compile_memory: self.bytes("ROTINI_COMPILE_MEMORY").unwrap_or(8 << 30),
            reproducers: match self.path("ROTINI_REPRODUCERS") {
                Some(directory) => directory,
                None => cache_dir.as_ref().map(|dir| dir.join("reproducers")),
            },
            cache_dir,
            cache_path: self
                .value("ROTINI_CACHE_PATH")
                .map(|directories| {
                    std::env::split_paths(directories)
                        .filter(|directory| !directory.as_os_str().is_empty())
                        .collect()
                })
                .unwrap_or_else(|| own_file().and_then(|file| shipped_kernels(&file)).into_iter().collect()),
            cache_size: self.bytes("ROTINI_CACHE_SIZE").unwrap_or(4 << 30),
            own_workspace: self.bytes("ROTINI_OWN_WORKSPACE").unwrap_or(1 << 20),
            tune: self.path("ROTINI_TUNE").flatten(),
            complaints: {
                self.parsed("ROTINI_LOG", "off, fatal, error, warn, info", |value| {
                    logging::level_by_name(value)
                });
                self.complaints
            },
        }
    }

    fn value(&self, name: &str) -> Option<&OsString> {
        self.values.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns a value as `parse` understands it. An empty value counts as not set.
    fn parsed<T>(&mut self, name: &str, known: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.value(name)?.to_string_lossy().into_owned();
        if value.is_empty() {
            return None;
        }
        let parsed = parse(&value);
        if parsed.is_none() {
            self.complaints
                .push(format!("{name}={value} is not understood; known are {known}"));
        }
        parsed
    }

    fn bytes(&mut self, name: &str) -> Option<u64> {
        self.parsed(name, "bytes, as in 1048576, 512 MiB or 4 GiB", |value| {
            value.parse::<ByteSize>().ok().map(|size| size.as_u64())
        })
    }

    /// Returns a path, or `Some(None)` if the variable is set but empty.
    fn path(&self, name: &str) -> Option<Option<PathBuf>> {
        let value = self.value(name)?;
        Some((!value.is_empty()).then(|| PathBuf::from(value)))
    }
}

/// Returns the directory of graphs that were compiled ahead of time, in the installation prefix of
/// `file`, which is the plugin or the command.
fn shipped_kernels(file: &Path) -> Option<PathBuf> {
    const KERNELS: &str = "share/rotini/kernels";
    let directory = file.parent()?;
    let prefix = if directory.ends_with("lib/hipdnn_plugins/engines") {
        directory.ancestors().nth(3)?
    } else if directory.ends_with("bin") || directory.ends_with("libexec") {
        directory.parent()?
    } else {
        return None;
    };
    Some(prefix.join(KERNELS)).filter(|kernels| kernels.is_dir())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
