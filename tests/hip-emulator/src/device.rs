//! Owns the emulated GPUs: names, properties, failures, contexts and memory pools.

use crate::config;
use crate::handle::{Handle, Kind};
use crate::status::Result;
use crate::stream::Stream;
use crate::sys::{self, hipError_t};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Properties that programs query and that differ between architectures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) product: &'static str,
    pub(crate) compute_units: i32,
    pub(crate) wave: i32,
    /// Maximum bytes of LDS per workgroup.
    pub(crate) lds: usize,
    /// True for architectures with matrix cores, whose devices report SRAM-ECC on and XNACK off.
    server: bool,
}

/// Returns an architecture's properties from AMD's data sheets; `None` if it is not emulated.
fn model(arch: &str) -> Option<Model> {
    let (product, compute_units, wave, lds, server) = match arch {
        "gfx908" => ("AMD Instinct MI100", 120, 64, 64 << 10, true),
        "gfx90a" => ("AMD Instinct MI250X", 110, 64, 64 << 10, true),
        "gfx942" => ("AMD Instinct MI300X", 304, 64, 64 << 10, true),
        "gfx950" => ("AMD Instinct MI350X", 256, 64, 160 << 10, true),
        "gfx1030" => ("AMD Radeon RX 6900 XT", 40, 32, 64 << 10, false),
        "gfx1100" => ("AMD Radeon RX 7900 XTX", 48, 32, 64 << 10, false),
        "gfx1201" => ("AMD Radeon RX 9070 XT", 32, 32, 64 << 10, false),
        _ => return None,
    };
    Some(Model {
        product,
        compute_units,
        wave,
        lds,
        server,
    })
}

/// An architecture with its features as LLVM writes them: `gfx942:sramecc+:xnack-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    pub(crate) base: String,
    pub(crate) sramecc: Option<bool>,
    pub(crate) xnack: Option<bool>,
}

impl Architecture {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let mut architecture = Architecture {
            base: parts.next().unwrap_or_default().to_owned(),
            sramecc: None,
            xnack: None,
        };
        for feature in parts {
            match feature {
                "sramecc+" => architecture.sramecc = Some(true),
                "sramecc-" => architecture.sramecc = Some(false),
                "xnack+" => architecture.xnack = Some(true),
                "xnack-" => architecture.xnack = Some(false),
                other => return Err(format!("'{text}' has the unknown feature '{other}'")),
            }
        }
        Ok(architecture)
    }

    /// Returns true if code for `code` runs on this architecture: a feature that the code does not
    /// name may be on or off.
    pub(crate) fn runs(&self, code: &Architecture) -> bool {
        let fits = |own: Option<bool>, asked: Option<bool>| asked.is_none() || own == asked;
        self.base == code.base && fits(self.sramecc, code.sramecc) && fits(self.xnack, code.xnack)
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.base)?;
        for (name, state) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(on) = state {
                write!(f, ":{name}{}", if on { '+' } else { '-' })?;
            }
        }
        Ok(())
    }
}

/// A device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) ordinal: usize,
    pub(crate) architecture: Architecture,
    pub(crate) name: String,
    pub(crate) model: Model,
    /// Bytes that can be allocated in total.
    pub(crate) memory: u64,
    /// Bytes allocated.
    pub(crate) used: AtomicU64,
    /// Devices whose memory this one's kernels may use.
    pub(crate) peers: Mutex<BTreeSet<usize>>,
    /// Incomplete commands in streams that wait for the null stream.
    pub(crate) blocking: AtomicU64,
    /// Retains of the primary context.
    pub(crate) retained: AtomicU32,
    pub(crate) flags: AtomicU32,
    /// Zero, or the error that every use returns since a kernel or copy failed.
    failed: AtomicU32,
    /// Failures, oldest first.
    faults: Mutex<Vec<Fault>>,
    null: OnceLock<&'static Handle<Stream>>,
    context: OnceLock<&'static Handle<Context>>,
    pub(crate) default_pool: OnceLock<&'static Handle<Pool>>,
    pub(crate) pool: Mutex<Option<&'static Handle<Pool>>>,
}

/// A command that failed.
#[derive(Debug)]
struct Fault {
    submitter: Submitter,
    text: String,
}

/// The thread of the host that submitted a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitter(u64);

impl Submitter {
    /// Returns the calling thread. Unlike the system's thread ids, numbers are never reused.
    pub(crate) fn current() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        // The number may be unavailable in a thread that is about to end.
        Submitter(NUMBER.try_with(|number| *number).unwrap_or(0))
    }
}

/// A device's primary context, the only one it has.
#[derive(Debug)]
pub(crate) struct Context(pub(crate) usize);

impl Kind for Context {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipCtx\0\0");
    const INVALID: hipError_t = sys::hipErrorInvalidContext;
}

/// A memory pool. It caches nothing: memory allocated from it comes from its device and returns
/// there at once.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: &'static Device,
    /// `hipMemPoolAttrReleaseThreshold`, stored only to be queried.
    pub(crate) threshold: AtomicU64,
    /// The reuse attributes, indexed by the enum's value.
    pub(crate) reuse: [AtomicU64; 8],
}

impl Kind for Pool {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipPool\0");
    const INVALID: hipError_t = sys::hipErrorInvalidValue;
}

impl Device {
    /// Parses an entry of `HIPEMU_DEVICES`: an architecture, with optional features and an optional
    /// `=name`.
    pub(crate) fn parse(ordinal: usize, text: &str, memory: u64) -> Result<Self, String> {
        let (architecture, name) = match text.split_once('=') {
            Some((architecture, name)) => (architecture, Some(name)),
            None => (text, None),
        };
        let mut architecture = Architecture::parse(architecture)?;
        let model =
            model(&architecture.base).ok_or(format!("the architecture '{}' is not known", architecture.base))?;
        if model.server {
            architecture.sramecc.get_or_insert(true);
            architecture.xnack.get_or_insert(false);
        }
        Ok(Device {
            ordinal,
            architecture,
            name: name.unwrap_or(model.product).to_owned(),
            model,
            memory,
            used: AtomicU64::new(0),
            peers: Mutex::default(),
            blocking: AtomicU64::new(0),
            retained: AtomicU32::new(0),
            flags: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            faults: Mutex::default(),
            null: OnceLock::new(),
            context: OnceLock::new(),
            default_pool: OnceLock::new(),
            pool: Mutex::default(),
        })
    }

    /// Returns the null stream.
    pub(crate) fn null(&'static self) -> &'static Handle<Stream> {
        self.null.get_or_init(|| Stream::null(self))
    }

    pub(crate) fn context(&self) -> &'static Handle<Context> {
        self.context.get_or_init(|| Handle::new(Context(self.ordinal)))
    }

    /// Returns the error of a kernel or copy that failed earlier.
    #[inline]
    pub(crate) fn check(&self) -> Result {
        match self.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(error),
        }
    }

    /// Records a failure; the first one's error stays until the device is reset.
    pub(crate) fn fail(&self, submitter: Submitter, error: hipError_t, text: String) {
        config::warn(&format!("device {}: {text}", self.ordinal));
        let mut faults = self.faults();
        if self.failed.load(Ordering::Acquire) == 0 {
            self.failed.store(error, Ordering::Release);
        }
        faults.push(Fault { submitter, text });
    }

    /// Returns the oldest failure that no thread has taken.
    pub(crate) fn fault(&self) -> Option<String> {
        self.faults().first().map(|fault| fault.text.clone())
    }

    /// Removes the failures of a thread's commands and returns the oldest. The device keeps its
    /// error state.
    pub(crate) fn take_fault(&self, submitter: Submitter) -> Option<String> {
        let mut faults = self.faults();
        let own = faults.extract_if(.., |fault| fault.submitter == submitter);
        own.map(|fault| fault.text).reduce(|first, _| first)
    }

    /// Forgets all failures.
    pub(crate) fn forgive(&self) {
        let mut faults = self.faults();
        faults.clear();
        self.failed.store(0, Ordering::Release);
    }

    fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns 16 bytes that are unique per device.
    pub(crate) fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"hipemu-device-00";
        let digits = format!("{:02}", self.ordinal % 100);
        if let Some(last) = uuid.last_chunk_mut::<2>() {
            last.copy_from_slice(&digits.as_bytes()[..2]);
        }
        uuid
    }

    /// Returns the PCI bus number; each device has its own.
    pub(crate) fn bus(&self) -> i32 {
        i32::try_from(self.ordinal).unwrap_or(0) * 0x10 + 0x0c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read() {
        let device = |text| Device::parse(0, text, 1 << 30);
        let mi300 = device("gfx942").unwrap();
        assert_eq!(mi300.architecture.to_string(), "gfx942:sramecc+:xnack-");
        assert_eq!(
            (mi300.name.as_str(), mi300.model.compute_units),
            ("AMD Instinct MI300X", 304)
        );
        assert_eq!(
            device("gfx942:xnack+").unwrap().architecture.to_string(),
            "gfx942:sramecc+:xnack+"
        );
        assert_eq!(
            device("gfx942=AMD Instinct MI300A").unwrap().name,
            "AMD Instinct MI300A"
        );
        assert_eq!(device("gfx1100").unwrap().architecture.to_string(), "gfx1100");
        assert!(device("gfx000").is_err());
        assert!(device("gfx942:wave+").is_err());
    }

    #[test]
    fn code_runs_where_its_features_fit() {
        let device = Device::parse(0, "gfx942", 0).unwrap().architecture;
        let runs = |code| device.runs(&Architecture::parse(code).unwrap());
        assert!(runs("gfx942") && runs("gfx942:xnack-") && runs("gfx942:sramecc+:xnack-"));
        assert!(!runs("gfx942:xnack+") && !runs("gfx90a") && !runs("gfx942:sramecc-"));
    }
}
