//! Every setting, read in one place, once.
//!
//! | Variable | Values | Default |
//! |---|---|---|
//! | `ROTINI_DEVICE` | `auto`, `cpu`, `hip`; with the cargo feature `cuda` also `cuda` | `auto`: AMD GPUs if there are any, else the CPU |
//! | `ROTINI_TARGET` | what to compile for: `cpu`, `gfx942`, `mi300x`, … | the device's own |
//! | `ROTINI_HIP_LIBRARY` | the HIP library, a path or a name | the one that is loaded already, else `libamdhip64.so` as the system finds it |
//! | `ROTINI_COMPILER` | `auto`, `program`, `in-process` | `auto`: the compiler as a program, so that its crashes are not the host's; its library in this process where there is no program |
//! | `ROTINI_CACHE_DIR` | a folder, or empty for none | the user's cache folder |
//! | `ROTINI_IREE_COMPILE`, `ROTINI_IREE_COMPILER_LIB` | where the compiler is | found beside Python's packages |
//! | `ROTINI_LOG` | `off`, `fatal`, `error`, `warn`, `info` | what the host asks for |

use std::path::PathBuf;

/// Where kernels run.
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

/// How the compiler is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerChoice {
    /// As a program, or in this process where there is no program.
    Auto,
    /// As a program.
    Program,
    /// In this process.
    InProcess,
}

/// The settings of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where kernels run.
    pub device: DeviceChoice,
    /// What to compile for, if not for the device as it says it is.
    pub target: Option<rotini_emit::Target>,
    /// The HIP library, if not the one that is found.
    pub hip_library: Option<String>,
    /// How the compiler is called.
    pub compiler: CompilerChoice,
    /// The folder of compiled kernels; `None` keeps them in memory only.
    pub cache_dir: Option<PathBuf>,
    /// What was set and not understood, for the log.
    pub complaints: Vec<String>,
}

impl Config {
    /// Reads the environment.
    #[must_use]
    pub fn from_env() -> Self {
        Self::read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Reads the settings from anywhere. A value that is not understood is reported and its default used.
    #[must_use]
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let mut complaints = Vec::new();
        let mut complain = |name: &str, value: &str, known: &str| {
            complaints.push(format!("{name}={value} is not understood; known are {known}"));
        };
        let device = match get("ROTINI_DEVICE").as_deref() {
            None | Some("auto" | "") => DeviceChoice::Auto,
            Some("cpu") => DeviceChoice::Cpu,
            Some("hip") => DeviceChoice::Hip,
            #[cfg(feature = "cuda")]
            Some("cuda") => DeviceChoice::Cuda,
            Some(other) => {
                let cuda = if cfg!(feature = "cuda") { ", cuda" } else { "" };
                complain("ROTINI_DEVICE", other, &format!("auto, cpu, hip{cuda}"));
                DeviceChoice::Auto
            }
        };
        let compiler = match get("ROTINI_COMPILER").as_deref() {
            None | Some("auto" | "") => CompilerChoice::Auto,
            Some("program") => CompilerChoice::Program,
            Some("in-process") => CompilerChoice::InProcess,
            Some(other) => {
                complain("ROTINI_COMPILER", other, "auto, program, in-process");
                CompilerChoice::Auto
            }
        };
        let target = get("ROTINI_TARGET")
            .filter(|value| !value.is_empty())
            .and_then(|value| {
                let target = rotini_emit::Target::parse(&value);
                if target.is_none() {
                    complain("ROTINI_TARGET", &value, "cpu, gfx…, mi…, sm_…");
                }
                target
            });
        let cache_dir = match get("ROTINI_CACHE_DIR") {
            Some(value) if value.is_empty() => None,
            Some(value) => Some(PathBuf::from(value)),
            None => rotini_cache::default_dir(),
        };
        Config {
            device,
            target,
            hip_library: get("ROTINI_HIP_LIBRARY").filter(|value| !value.is_empty()),
            compiler,
            cache_dir,
            complaints,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Config {
        Config::read(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn defaults_and_values() {
        let config = read(&[]);
        assert_eq!(
            (config.device, config.compiler),
            (DeviceChoice::Auto, CompilerChoice::Auto)
        );
        assert_eq!(config.target, None);
        let config = read(&[
            ("ROTINI_DEVICE", "cpu"),
            ("ROTINI_CACHE_DIR", ""),
            ("ROTINI_TARGET", "gfx942"),
            ("ROTINI_HIP_LIBRARY", "libamdhip64.so.7"),
        ]);
        assert_eq!(config.device, DeviceChoice::Cpu);
        assert_eq!(config.cache_dir, None);
        assert_eq!(config.hip_library.as_deref(), Some("libamdhip64.so.7"));
        assert_eq!(config.target, Some(rotini_emit::Target::Rocm { arch: "gfx942".into() }));
        assert!(config.complaints.is_empty());
    }

    #[test]
    fn nonsense_is_reported_and_harmless() {
        let config = read(&[
            ("ROTINI_DEVICE", "abacus"),
            ("ROTINI_TARGET", "--flag"),
            ("ROTINI_COMPILER", "x"),
        ]);
        assert_eq!(config.device, DeviceChoice::Auto);
        assert_eq!(config.complaints.len(), 3);
    }
}
