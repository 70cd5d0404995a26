//! What streams do: the commands and how each is carried out.

use crate::device::{Device, Submitter};
use crate::handle::Handle;
use crate::kernels;
use crate::memory::{Allocation, Use};
use crate::module::Function;
use crate::runtime::{self, Runtime};
use crate::stream::{Event, Record, Stream};
use crate::sys::{self, hipError_t};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A command.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Kernel(Box<Launch>),
    Copy(Box<Copy>),
    Fill(Fill),
    /// `hipLaunchHostFunc`.
    Host(unsafe extern "C" fn(*mut c_void), UserData),
    /// `hipStreamAddCallback`.
    Callback(
        unsafe extern "C" fn(sys::hipStream_t, hipError_t, *mut c_void),
        &'static Handle<Stream>,
        UserData,
    ),
    /// One record of an event.
    Event(Arc<Record>),
    /// A node that records an event whenever its graph is launched.
    Record(&'static Handle<Event>),
    /// A node that waits for what an event last recorded when its graph is launched.
    Await(&'static Handle<Event>),
    /// `hipFreeAsync`: the memory goes when the stream gets here.
    Free(u64),
    /// Nothing but waiting.
    Nothing,
}

/// A pointer that is the caller's business.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserData(pub(crate) *mut c_void);

// SAFETY: it is only handed back, to a function that its owner said may be called from another thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// A kernel's launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) function: &'static Handle<Function>,
    /// Workgroups.
    pub(crate) grid: [u32; 3],
    /// Work items of a workgroup.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic LDS.
    pub(crate) shared: u32,
    pub(crate) kernarg: SmallVec<[u8; 128]>,
}

/// One side of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Memory that the emulator knows, looked up when the copy runs.
    Known(u64),
    /// The host's own.
    Host(UserData),
    /// What the host's held when the copy was submitted.
    Staged(Arc<[u8]>),
}

/// Rows of bytes to copy; one row is a plain copy.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) to: Place,
    pub(crate) to_pitch: usize,
    pub(crate) from: Place,
    pub(crate) from_pitch: usize,
    pub(crate) width: usize,
    pub(crate) rows: usize,
}

/// Rows of elements to fill with a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) to: u64,
    /// Bytes from row to row.
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub(crate) element: usize,
    /// Elements of a row.
    pub(crate) width: usize,
    pub(crate) rows: usize,
}

/// Why a command failed.
pub(crate) struct Failed {
    pub(crate) error: hipError_t,
    pub(crate) text: String,
}

/// Bytes from the first to behind the last of some rows.
pub(crate) fn extent(width: usize, rows: usize, pitch: usize) -> Option<usize> {
    match rows.checked_sub(1) {
        None => Some(0),
        Some(others) => others.checked_mul(pitch)?.checked_add(width),
    }
}

impl Work {
    /// A number per kind, for the identity of an order.
    pub(crate) fn kind(&self) -> u64 {
        match self {
            Work::Kernel(_) => 1,
            Work::Copy(_) => 2,
            Work::Fill(_) => 3,
            Work::Host(..) | Work::Callback(..) => 4,
            Work::Event(_) | Work::Record(_) => 5,
            Work::Free(_) => 6,
            Work::Await(_) | Work::Nothing => 7,
        }
    }

    /// Whether it calls a function of the host's, which may do anything.
    pub(crate) fn calls_host(&self) -> bool {
        matches!(self, Work::Host(..) | Work::Callback(..))
    }

    /// Carries it out. A failure stays with the stream's device, which does nothing more.
    pub(crate) fn run(self, stream: &'static Stream, submitter: Submitter) {
        let device = stream.device;
        if let Work::Event(record) = self {
            record.complete();
            return;
        }
        if device.check().is_err() {
            return;
        }
        let Ok(runtime) = runtime::get() else { return };
        // A panic must not leave the stream unable to go on, which would let its waiters hang.
        let done = catch_unwind(AssertUnwindSafe(|| self.carry_out(runtime, device))).unwrap_or_else(|_| {
            Err(Failed {
                error: sys::hipErrorUnknown,
                text: "the emulator panicked".to_owned(),
            })
        });
        if let Err(failed) = done {
            device.fail(submitter, failed.error, failed.text);
        }
    }

    fn carry_out(self, runtime: &Runtime, device: &Device) -> Result<(), Failed> {
        match self {
            Work::Kernel(launch) => launch.run(runtime, device),
            Work::Copy(copy) => copy.run(runtime),
            Work::Fill(fill) => fill.run(runtime),
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
}

impl Launch {
    fn run(&self, runtime: &Runtime, device: &Device) -> Result<(), Failed> {
        let kernel = &self.function.kernel;
        let unloaded = || Failed {
            error: sys::hipErrorIllegalAddress,
            text: format!("kernel {} runs after its module was unloaded", kernel.name),
        };
        if !self.function.module.is_alive() {
            return Err(unloaded());
        }
        if !runtime.is_noop() {
            kernels::run(runtime, device, self)?;
        }
        // On a GPU the code would have gone from under it.
        if self.function.module.is_alive() {
            Ok(())
        } else {
            Err(unloaded())
        }
    }
}

/// Where the bytes of known memory are, if all of them are in one live allocation.
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

impl Copy {
    fn run(&self, runtime: &Runtime) -> Result<(), Failed> {
        let span = |pitch| {
            extent(self.width, self.rows, pitch).ok_or(Failed {
                error: sys::hipErrorInvalidValue,
                text: "a copy's extent overflows".to_owned(),
            })
        };
        let to = match &self.to {
            Place::Known(address) => known(runtime, "copy to", *address, span(self.to_pitch)?)?,
            Place::Host(pointer) => pointer.0.cast(),
            Place::Staged(_) => return Ok(()),
        };
        let from = match &self.from {
            Place::Known(address) => known(runtime, "copy from", *address, span(self.from_pitch)?)?.cast_const(),
            Place::Host(pointer) => pointer.0.cast_const().cast(),
            Place::Staged(bytes) => bytes.as_ptr(),
        };
        for row in 0..self.rows {
            // SAFETY: known memory has that many bytes and keeps its backing mapped, staged bytes were made for this copy, and the host
            // vouched for its own when it called. The two may overlap.
            unsafe {
                std::ptr::copy(from.add(row * self.from_pitch), to.add(row * self.to_pitch), self.width);
            }
        }
        Ok(())
    }
}

impl Fill {
    /// Bytes of a row.
    pub(crate) fn row(&self) -> Option<usize> {
        self.width.checked_mul(self.element)
    }

    fn run(&self, runtime: &Runtime) -> Result<(), Failed> {
        let overflow = || Failed {
            error: sys::hipErrorInvalidValue,
            text: "a fill's extent overflows".to_owned(),
        };
        let row = self.row().ok_or_else(overflow)?;
        let span = extent(row, self.rows, self.pitch).ok_or_else(overflow)?;
        let to = known(runtime, "fill", self.to, span)?;
        let pattern = self.value.to_le_bytes();
        for index in 0..self.rows {
            // SAFETY: the rows lie in one allocation, whose backing stays mapped.
            let start = unsafe { to.add(index * self.pitch) };
            if self.element == 1 {
                // SAFETY: as above.
                unsafe { start.write_bytes(pattern[0], row) };
                continue;
            }
            for element in 0..self.width {
                // SAFETY: as above; an element is at most the pattern's four bytes.
                unsafe {
                    start
                        .add(element * self.element)
                        .copy_from_nonoverlapping(pattern.as_ptr(), self.element);
                }
            }
        }
        Ok(())
    }
}

/// Where a caller's pointer points: `bytes` from there are one live allocation's, or the host's own.
pub(crate) fn classify(
    runtime: &Runtime,
    pointer: *mut c_void,
    bytes: usize,
) -> Result<(Place, Option<Allocation>), hipError_t> {
    let address = pointer.addr() as u64;
    let table = runtime.memory.table();
    match table.find(address) {
        Some(allocation) if bytes as u64 <= allocation.bytes - (address - allocation.address) => {
            Ok((Place::Known(address), Some(*allocation)))
        }
        Some(_) => Err(sys::hipErrorInvalidValue),
        None if runtime.memory.is_device(address) => {
            crate::config::warn(&runtime.memory.explain(address));
            Err(sys::hipErrorInvalidValue)
        }
        None => Ok((Place::Host(UserData(pointer)), None)),
    }
}

/// Whether memory is the host's own, or pinned.
pub(crate) fn host_sees(allocation: Option<&Allocation>) -> bool {
    allocation.is_none_or(Allocation::on_host)
}
