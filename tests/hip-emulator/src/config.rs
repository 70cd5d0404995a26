//! Configures the emulator: from environment variables, or from the same names through `hipemu_set`
//! before the first call.

use crate::calls::Failure;
use rotini_gfx::Sample;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The known variables; any other variable with their prefix causes a warning.
const NAMES: &[&str] = &[
    "HIPEMU_DEVICES",
    "HIPEMU_FAIL",
    "HIPEMU_LIMIT",
    "HIPEMU_MEMORY",
    "HIPEMU_NOOP",
    "HIPEMU_QUARANTINE",
    "HIPEMU_REPORT",
    "HIPEMU_SAMPLE",
    "HIPEMU_SEED",
    "HIPEMU_STRICT",
    "HIPEMU_THREADS",
    "HIPEMU_TRACE",
    "HIPEMU_WINDOW",
];

/// The configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// Architectures of the devices, with optional features and names.
    pub(crate) devices: String,
    /// Failures to inject.
    pub(crate) failures: Vec<Failure>,
    /// Bytes that a device can allocate.
    pub(crate) memory: u64,
    /// Whether kernels do nothing.
    pub(crate) noop: bool,
    /// Bytes of freed memory that keep their poison.
    pub(crate) quarantine: u64,
    /// File that receives reports of launches.
    pub(crate) report: Option<PathBuf>,
    /// Seed of the adversarial scheduler; `None` turns it off.
    pub(crate) seed: Option<u64>,
    /// Whether behaviour that the hardware leaves undefined is a fault.
    pub(crate) strict: bool,
    /// Threads per launch.
    pub(crate) threads: usize,
    /// Maximum number of instructions that a wave may run in loops.
    pub(crate) limit: Option<u64>,
    /// Workgroups of a launch that are run and counted for the time model; `None`: all are run.
    pub(crate) sample: Option<Sample>,
    /// File that receives the trace of calls.
    pub(crate) trace: Option<PathBuf>,
    /// The reason why the configuration is unusable.
    pub(crate) error: Option<String>,
}

static OVERRIDES: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);
static CONFIG: OnceLock<Config> = OnceLock::new();

/// Overrides an environment variable. Returns `false` if it is too late or no such variable exists.
pub(crate) fn set(name: &str, value: &str) -> bool {
    if CONFIG.get().is_some() || !NAMES.contains(&name) {
        return false;
    }
    let mut overrides = OVERRIDES.lock().unwrap_or_else(PoisonError::into_inner);
    overrides
        .get_or_insert_default()
        .insert(name.to_owned(), value.to_owned());
    true
}

/// Returns the configuration, which is read at the first call.
pub(crate) fn get() -> &'static Config {
    CONFIG.get_or_init(|| {
        for (name, _) in std::env::vars_os() {
            if let Some(name) = name.to_str()
                && name.starts_with("HIPEMU_")
                && !NAMES.contains(&name)
            {
                warn(&format!("no variable {name}: there are {}", NAMES.join(", ")));
            }
        }
        let overrides = OVERRIDES.lock().unwrap_or_else(PoisonError::into_inner).take();
        Config::read(|name| match overrides.as_ref().and_then(|set| set.get(name)) {
            Some(value) => Some(value.clone()),
            None => std::env::var(name).ok(),
        })
    })
}

impl Config {
    fn read(get: impl Fn(&str) -> Option<String>) -> Config {
        let mut errors = Vec::new();
        // An empty variable counts as unset, except for the devices: an empty list means no device.
        let given = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut number = |name: &str| {
            given(name).and_then(|value| {
                let number = bytes(&value);
                if number.is_none() {
                    errors.push(format!("{name}={value} is no number"));
                }
                number
            })
        };
        let seed = number("HIPEMU_SEED");
        let memory = number("HIPEMU_MEMORY").unwrap_or(16 << 30);
        let quarantine = number("HIPEMU_QUARANTINE").unwrap_or(64 << 20);
        let threads = number("HIPEMU_THREADS").and_then(|threads| usize::try_from(threads).ok());
        let limit = number("HIPEMU_LIMIT");
        let window = number("HIPEMU_WINDOW");
        let sample = number("HIPEMU_SAMPLE").map(|workgroups| Sample {
            workgroups,
            window,
            enough: Sample::ENOUGH,
        });
        let mut flag = |name: &str, default: bool| match given(name).as_deref() {
            None => default,
            Some("0") => false,
            Some("1") => true,
            Some(other) => {
                errors.push(format!("{name}={other} is neither 0 nor 1"));
                default
            }
        };
        let noop = flag("HIPEMU_NOOP", false);
        let strict = flag("HIPEMU_STRICT", true);
        let failures = Failure::parse(&given("HIPEMU_FAIL").unwrap_or_default()).unwrap_or_else(|error| {
            errors.push(format!("HIPEMU_FAIL: {error}"));
            Vec::new()
        });
        Config {
            devices: get("HIPEMU_DEVICES").unwrap_or_else(|| "gfx942".to_owned()),
            failures,
            memory,
            noop,
            quarantine,
            report: given("HIPEMU_REPORT").map(PathBuf::from),
            seed,
            strict,
            limit,
            sample,
            threads: threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            trace: given("HIPEMU_TRACE").map(PathBuf::from),
            error: (!errors.is_empty()).then(|| errors.join("; ")),
        }
    }
}

/// Parses a number with an optional suffix `K`, `M` or `G` for KiB, MiB or GiB.
fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Prints a warning to stderr: a library that replaces another has no other channel to its user.
pub(crate) fn warn(text: &str) {
    // One write, so that lines of several threads do not interleave.
    let _ = std::io::stderr().write_all(format!("hipemu: {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_an_error() {
        let read = |name: &'static str, value: &'static str| {
            Config::read(|other| (other == name).then(|| value.to_owned())).error
        };
        assert_eq!(read("HIPEMU_SEED", "17"), None);
        assert_eq!(read("HIPEMU_MEMORY", "2G"), None);
        for (name, value) in [
            ("HIPEMU_SEED", "x"),
            ("HIPEMU_MEMORY", "99999999999G"),
            ("HIPEMU_NOOP", "yes"),
            ("HIPEMU_FAIL", "hipFoo=hipErrorUnknown"),
        ] {
            assert!(
                read(name, value).is_some_and(|error| error.contains(name)),
                "{name}={value}"
            );
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(
            (bytes("12"), bytes("2K"), bytes("3G"), bytes("G"), bytes("")),
            (Some(12), Some(2048), Some(3 << 30), None, None)
        );
    }
}
