//! Executes the commands of streams.

use crate::device::{Device, Submitter};
use crate::kernels;
use crate::memory::Use;
use crate::runtime::{self, Runtime};
use crate::stream::Stream;
use crate::sys;
use crate::work::{Copy, Failed, Fill, Launch, Place, Work, extent};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Executes a command. A failure puts the stream's device into an error state, in which it executes
/// nothing more.
pub(crate) fn run(work: Work, stream: &'static Stream, submitter: Submitter) {
    let device = stream.device;
    if let Work::Event(record) = work {
        record.complete();
        return;
    }
    if device.check().is_err() {
        return;
    }
    let Ok(runtime) = runtime::get() else { return };
    // A panic must not stop the stream: its waiters would hang.
    let done = catch_unwind(AssertUnwindSafe(|| carry_out(work, runtime, device))).unwrap_or_else(|_| {
        Err(Failed {
            error: sys::hipErrorUnknown,
            text: "the emulator panicked".to_owned(),
        })
    });
    if let Err(failed) = done {
        device.fail(submitter, failed.error, failed.text);
    }
}

fn carry_out(work: Work, runtime: &Runtime, device: &Device) -> Result<(), Failed> {
    match work {
        Work::Kernel(launch) => run_kernel(&launch, runtime, device),
        Work::Copy(copy) => run_copy(&copy, runtime),
        Work::Fill(fill) => run_fill(&fill, runtime),
        Work::Host(function, data) => {
            // SAFETY: the caller of `hipLaunchHostFunc` gave both for this call.
            unsafe { function(data.0) };
            Ok(())
        }
        Work::Callback(function, stream, data) => {
            // SAFETY: the caller of `hipStreamAddCallback` gave both for this call.
            unsafe { function(stream.raw(), sys::hipSuccess, data.0) };
            Ok(())
        }
        Work::Free(address) => {
            let allocation = runtime.memory.remove(address, &[Use::Device]).map_err(|error| Failed {
                error,
                text: format!("hipFreeAsync: {}", runtime.memory.explain(address)),
            })?;
            if let Some(owner) = runtime.devices.get(allocation.device) {
                runtime.memory.release(owner, &allocation);
            }
            Ok(())
        }
        // Nodes of graphs become events and waits when the graph is launched.
        Work::Event(_) | Work::Record(_) | Work::Await(_) | Work::Nothing => Ok(()),
    }
}

fn run_kernel(launch: &Launch, runtime: &Runtime, device: &Device) -> Result<(), Failed> {
    let kernel = &launch.function.kernel;
    let unloaded = || Failed {
        error: sys::hipErrorIllegalAddress,
        text: format!("kernel {} runs after its module was unloaded", kernel.name),
    };
    if !launch.function.module.is_alive() {
        return Err(unloaded());
    }
    if !runtime.is_noop() {
        kernels::run(runtime, device, launch)?;
    }
    // If the module was unloaded during the launch, a GPU's code memory would have been freed.
    if launch.function.module.is_alive() {
        Ok(())
    } else {
        Err(unloaded())
    }
}

/// Returns the host address of device bytes, if all of them lie in one live allocation.
fn known(runtime: &Runtime, what: &str, address: u64, bytes: usize) -> Result<*mut u8, Failed> {
    let failed = |text| Failed {
        error: sys::hipErrorIllegalAddress,
        text: format!("{what}: {text}"),
    };
    let table = runtime.memory.table();
    let allocation = table
        .find(address)
        .ok_or_else(|| failed(runtime.memory.explain(address)))?;
    let offset = address - allocation.address;
    if bytes as u64 > allocation.bytes - offset {
        return Err(failed(format!(
            "{bytes} bytes at {offset} of an allocation of {}",
            allocation.bytes
        )));
    }
    let offset = usize::try_from(offset).map_err(|error| failed(error.to_string()))?;
    Ok(allocation.host.wrapping_add(offset))
}

fn run_copy(copy: &Copy, runtime: &Runtime) -> Result<(), Failed> {
    let span = |pitch| {
        extent(copy.width, copy.rows, pitch).ok_or(Failed {
            error: sys::hipErrorInvalidValue,
            text: "a copy's extent overflows".to_owned(),
        })
    };
    let to = match &copy.to {
        Place::Known(address) => known(runtime, "copy to", *address, span(copy.to_pitch)?)?,
        Place::Host(pointer) => pointer.0.cast(),
        Place::Staged(_) => return Ok(()),
    };
    let from = match &copy.from {
        Place::Known(address) => known(runtime, "copy from", *address, span(copy.from_pitch)?)?.cast_const(),
        Place::Host(pointer) => pointer.0.cast_const().cast(),
        Place::Staged(bytes) => bytes.as_ptr(),
    };
    for row in 0..copy.rows {
        // SAFETY: known memory has that many bytes and keeps its backing mapped, staged bytes were
        // made for this copy, and the caller vouched for the host's memory. The two ranges may
        // overlap.
        unsafe {
            std::ptr::copy(from.add(row * copy.from_pitch), to.add(row * copy.to_pitch), copy.width);
        }
    }
    Ok(())
}

fn run_fill(fill: &Fill, runtime: &Runtime) -> Result<(), Failed> {
    let overflow = || Failed {
        error: sys::hipErrorInvalidValue,
        text: "a fill's extent overflows".to_owned(),
    };
    let row = fill.row().ok_or_else(overflow)?;
    let span = extent(row, fill.rows, fill.pitch).ok_or_else(overflow)?;
    let to = known(runtime, "fill", fill.to, span)?;
    let pattern = fill.value.to_le_bytes();
    for index in 0..fill.rows {
        // SAFETY: the rows lie in one allocation, whose backing stays mapped.
        let start = unsafe { to.add(index * fill.pitch) };
        if fill.element == 1 {
            // SAFETY: as above.
            unsafe { start.write_bytes(pattern[0], row) };
            continue;
        }
        for element in 0..fill.width {
            // SAFETY: as above; an element is at most the pattern's four bytes.
            unsafe {
                start
                    .add(element * fill.element)
                    .copy_from_nonoverlapping(pattern.as_ptr(), fill.element);
            }
        }
    }
    Ok(())
}
