//! Owns streams and events, and a stream's part in a capture.
//!
//! A stream is a queue of commands and two counters, of submitted and of completed commands. A
//! [`Point`] is a position in a stream: events record points, and commands wait for them.

use crate::device::Device;
use crate::handle::{Handle, Kind};
use crate::status::Result;
use crate::sys::{self, hipError_t};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) device: &'static Device,
    /// Number of the stream, in creation order.
    pub(crate) id: u64,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    is_null: bool,
    /// Commands submitted.
    pub(crate) submitted: AtomicU64,
    /// Commands complete.
    pub(crate) completed: AtomicU64,
    /// Wakes the stream's thread.
    pub(crate) wake: Condvar,
    /// Its part in a capture, if it is captured.
    pub(crate) capture: Mutex<Option<Branch>>,
}

impl Kind for Stream {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipStrea");
    const INVALID: hipError_t = sys::hipErrorInvalidHandle;
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Stream {
    pub(crate) fn new(device: &'static Device, flags: u32, priority: i32) -> &'static Handle<Stream> {
        Handle::new(Stream::with(device, flags, priority, false))
    }

    pub(crate) fn null(device: &'static Device) -> &'static Handle<Stream> {
        Handle::new(Stream::with(device, sys::hipStreamDefault, 0, true))
    }

    fn with(device: &'static Device, flags: u32, priority: i32, is_null: bool) -> Stream {
        Stream {
            device,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            flags,
            priority,
            is_null,
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            wake: Condvar::new(),
            capture: Mutex::default(),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.is_null
    }

    /// Returns true if it waits for the null stream and the null stream for it.
    pub(crate) fn is_blocking(&self) -> bool {
        !self.is_null && self.flags & sys::hipStreamNonBlocking == 0
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.completed.load(Ordering::Acquire) == self.submitted.load(Ordering::Acquire)
    }

    /// Returns true if a command submitted now would wait for nothing, so that an empty one can
    /// count as complete at once.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.is_idle()
            && if self.is_null {
                self.device.blocking.load(Ordering::Acquire) == 0
            } else {
                !self.is_blocking() || self.device.null().is_idle()
            }
    }

    /// Returns the current end of the stream.
    pub(crate) fn point(&'static self) -> Point {
        Point {
            stream: self,
            number: self.submitted.load(Ordering::Acquire),
        }
    }
}

/// A position in a stream: reached when `number` commands are complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) stream: &'static Stream,
    pub(crate) number: u64,
}

impl Point {
    pub(crate) fn is_reached(&self) -> bool {
        self.stream.completed.load(Ordering::Acquire) >= self.number
    }
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) device: &'static Device,
    pub(crate) flags: u32,
    pub(crate) state: Mutex<Recorded>,
}

/// An event's last record.
#[derive(Clone, Debug, Default)]
pub(crate) enum Recorded {
    /// Never recorded: counts as complete.
    #[default]
    Never,
    /// In a stream.
    Stream(Arc<Record>),
    /// In a stream that was captured.
    Captured(Arc<Capture>, Vec<usize>),
}

/// One record of an event.
#[derive(Debug)]
pub(crate) struct Record {
    point: Mutex<Option<Point>>,
    done: AtomicBool,
    /// Nanoseconds since the process's first event.
    time: AtomicU64,
}

impl Kind for Event {
    const MAGIC: u64 = u64::from_le_bytes(*b"hipEvent");
    const INVALID: hipError_t = sys::hipErrorInvalidHandle;
}

impl Event {
    pub(crate) fn new(device: &'static Device, flags: u32) -> &'static Handle<Event> {
        Handle::new(Event {
            device,
            flags,
            state: Mutex::default(),
        })
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, recorded: Recorded) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = recorded;
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.flags & sys::hipEventDisableTiming == 0
    }
}

impl Record {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Record {
            point: Mutex::default(),
            done: AtomicBool::new(false),
            time: AtomicU64::new(0),
        })
    }

    /// Sets its position in the stream.
    pub(crate) fn place(&self, point: Point) {
        *self.point.lock().unwrap_or_else(PoisonError::into_inner) = Some(point);
    }

    /// Returns its position in the stream, if set.
    pub(crate) fn point(&self) -> Option<Point> {
        *self.point.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the record as complete and notes the time.
    pub(crate) fn complete(&self) {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let now = START.get_or_init(Instant::now).elapsed();
        self.time
            .store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.done.store(true, Ordering::Release);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Returns the milliseconds from this record to another; both must be complete.
    pub(crate) fn milliseconds_to(&self, other: &Record) -> f32 {
        let [start, stop] = [self, other].map(|record| record.time.load(Ordering::Relaxed) as f64);
        ((stop - start) / 1e6) as f32
    }
}

/// An active capture.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) id: u64,
    pub(crate) mode: sys::hipStreamCaptureMode,
    pub(crate) thread: ThreadId,
    pub(crate) origin: u64,
    pub(crate) invalid: AtomicBool,
    pub(crate) ended: AtomicBool,
    pub(crate) streams: Mutex<Vec<&'static Stream>>,
}

/// A stream's part in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) capture: Arc<Capture>,
    /// Nodes that the stream's next node depends on.
    pub(crate) tails: Vec<usize>,
}

impl Capture {
    /// Invalidates the capture after a forbidden call: it yields no graph.
    pub(crate) fn invalidate(&self) {
        self.invalid.store(true, Ordering::Release);
    }

    pub(crate) fn status(&self) -> sys::hipStreamCaptureStatus {
        if self.invalid.load(Ordering::Acquire) {
            sys::hipStreamCaptureStatusInvalidated
        } else {
            sys::hipStreamCaptureStatusActive
        }
    }

    /// Checks that the capture is valid.
    pub(crate) fn check(&self) -> Result {
        if self.invalid.load(Ordering::Acquire) {
            Err(sys::hipErrorStreamCaptureInvalidated)
        } else {
            Ok(())
        }
    }

    /// The streams that take part.
    pub(crate) fn streams(&self) -> MutexGuard<'_, Vec<&'static Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
