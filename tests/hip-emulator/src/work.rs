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

// SAFETY: it is only handed back, to a function that its owner said may be called from another
// thread.
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
}

impl Fill {
    /// Bytes of a row.
    pub(crate) fn row(&self) -> Option<usize> {
        self.width.checked_mul(self.element)
    }
}
