//! Runs kernels: gives rotini-gfx access to the emulator's memory, turns faults into HIP's errors,
//! and writes reports.

use crate::config;
use crate::device::Device;
use crate::memory::{Allocation, Table, Use};
use crate::runtime::Runtime;
use crate::sys;
use crate::work::{Failed, Launch};
use rotini_gfx::report::Class;
use rotini_gfx::{Block, Fault, Memory, Report, Trap};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The memory that a device's kernels may access.
struct View {
    table: Arc<Table>,
    device: usize,
    peers: BTreeSet<usize>,
}

impl View {
    fn sees(&self, allocation: &Allocation) -> bool {
        allocation.usage != Use::Device || allocation.device == self.device || self.peers.contains(&allocation.device)
    }
}

impl Memory for View {
    fn block(&self, address: u64) -> Option<Block> {
        let allocation = self.table.find(address).filter(|allocation| self.sees(allocation))?;
        Some(Block {
            address: allocation.address,
            bytes: allocation.bytes,
            host: allocation.host,
        })
    }
}

/// Seed of the order in which a launch's workgroups start, if any.
static ORDER: Mutex<Option<u64>> = Mutex::new(None);

/// Sets the seed of the order in which workgroups start; `None`: in the order of their numbers.
pub(crate) fn set_order(seed: Option<u64>) {
    *ORDER.lock().unwrap_or_else(PoisonError::into_inner) = seed;
}

fn order() -> Option<u64> {
    *ORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Executes a launch.
pub(crate) fn run(runtime: &Runtime, device: &Device, launch: &Launch) -> Result<(), Failed> {
    let kernel = &launch.function.kernel;
    let Some(program) = &kernel.program else {
        return Err(Failed {
            error: sys::hipErrorNotSupported,
            text: format!(
                "kernel {}: code for {} is not executed",
                kernel.name, device.architecture
            ),
        });
    };
    let config = config::get();
    let view = View {
        table: runtime.memory.table(),
        device: device.ordinal,
        peers: device.peers.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    };
    let run = rotini_gfx::Launch {
        kernel: program,
        grid: launch.grid,
        block: launch.block,
        dynamic_lds: launch.shared,
        kernarg: &launch.kernarg,
        memory: &view,
        strict: config.strict,
        threads: config.threads,
        order: order(),
        limit: config.limit,
        sample: config.sample,
    };
    match run.run() {
        Ok(done) => {
            report(device, &done);
            Ok(())
        }
        Err(fault) => Err(failed(runtime, &view, &fault)),
    }
}

/// Converts a fault to HIP's error, and adds what the emulator knows about the address.
fn failed(runtime: &Runtime, view: &View, fault: &Fault) -> Failed {
    match fault {
        Fault::Trap {
            trap: Trap::Bounds { address, .. },
            ..
        } => {
            let why = match runtime.memory.table().find(*address) {
                Some(allocation) if !view.sees(allocation) => format!(
                    "{address:#x} is memory of device {}, which this device may not access",
                    allocation.device
                ),
                _ => runtime.memory.explain(*address),
            };
            Failed {
                error: sys::hipErrorIllegalAddress,
                text: format!("{fault}; {why}"),
            }
        }
        _ => Failed {
            error: sys::hipErrorLaunchFailure,
            text: fault.to_string(),
        },
    }
}

/// Appends a launch's report to `HIPEMU_REPORT`.
fn report(device: &Device, report: &Report) {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let path = config::get().report.as_ref()?;
        match File::options().create(true).append(true).open(path) {
            Ok(file) => Some(Mutex::new(file)),
            Err(error) => {
                config::warn(&format!("cannot write {}: {error}", path.display()));
                None
            }
        }
    });
    let Some(file) = file else { return };
    let mut line = serde_json::json!({
        "device": device.ordinal,
        "kernel": report.kernel,
        "workgroups": report.workgroups,
        "waves": report.waves,
        "instructions": {
            "salu": report.count(Class::Salu),
            "smem": report.count(Class::Smem),
            "valu": report.count(Class::Valu),
            "mfma": report.count(Class::Mfma),
            "load": report.count(Class::Load),
            "store": report.count(Class::Store),
            "scratch": report.count(Class::Scratch),
            "lds": report.count(Class::Lds),
            "control": report.count(Class::Control),
        },
        "mfma_operations": report.mfma_operations,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "lds_bank_conflicts": report.lds_bank_conflicts,
        "vgprs": report.vgprs,
        "agprs": report.agprs,
        "sgprs": report.sgprs,
        "lds_bytes": report.lds_bytes,
        "scratch_bytes": report.scratch_bytes,
        "occupancy": report.occupancy,
        "seconds": report.time.as_secs_f64(),
    });
    if let (Some(record), Some(fields)) = (&report.record, line.as_object_mut()) {
        fields.insert("record".to_owned(), serde_json::json!(**record));
    }
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = writeln!(file, "{line}") {
        config::warn(&format!("a report is lost: {error}"));
    }
}
