//! Owns the commands that streams carry out.

use crate::handle::Handle;
use crate::module::Function;
use crate::stream::{Event, Record, Stream};
use crate::sys::{self, hipError_t};
use smallvec::SmallVec;
use std::ffi::c_void;
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
    /// A graph node that records an event at each launch of its graph.
    Record(&'static Handle<Event>),
    /// A graph node that waits, at each launch of its graph, for the event's last record.
    Await(&'static Handle<Event>),
    /// `hipFreeAsync`: frees the memory when the stream reaches this command.
    Free(u64),
    /// No action: only waits for its dependencies.
    Nothing,
}

/// A pointer that belongs to the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserData(pub(crate) *mut c_void);

// SAFETY: the pointer is never dereferenced, only passed back to a function that its owner allowed
// to be called from another thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// A kernel's launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) function: &'static Handle<Function>,
    /// Workgroups in x, y, z.
    pub(crate) grid: [u32; 3],
    /// Work items of a workgroup in x, y, z.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic LDS.
    pub(crate) shared: u32,
    pub(crate) kernarg: SmallVec<[u8; 128]>,
}

/// One side of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Memory that the emulator manages, looked up when the copy runs.
    Known(u64),
    /// Ordinary memory of the host.
    Host(UserData),
    /// The host memory's contents at submission.
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
    /// Bytes between the starts of adjacent rows.
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    /// Bytes per element: 1, 2 or 4.
    pub(crate) element: usize,
    /// Elements per row.
    pub(crate) width: usize,
    pub(crate) rows: usize,
}

/// Why a command failed.
pub(crate) struct Failed {
    pub(crate) error: hipError_t,
    pub(crate) text: String,
}

/// Returns the bytes from the start of the first row to the end of the last.
pub(crate) fn extent(width: usize, rows: usize, pitch: usize) -> Option<usize> {
    match rows.checked_sub(1) {
        None => Some(0),
        Some(others) => others.checked_mul(pitch)?.checked_add(width),
    }
}

impl Work {
    /// Returns a number per kind of command, for the hash of an order.
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

    /// Returns true if it calls a function of the host, which may block on anything.
    pub(crate) fn calls_host(&self) -> bool {
        matches!(self, Work::Host(..) | Work::Callback(..))
    }
}

impl Fill {
    /// Returns the bytes of a row.
    pub(crate) fn row(&self) -> Option<usize> {
        self.width.checked_mul(self.element)
    }
}
