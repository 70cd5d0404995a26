//! Copies and fills.

use super::{enqueue, synchronize};
use crate::calls::hip;
use crate::capture;
use crate::config;
use crate::handle::Handle;
use crate::memory::Allocation;
use crate::runtime::{self, Runtime, current};
use crate::scheduler;
use crate::status::Result;
use crate::stream::Stream;
use crate::sys;
use crate::work::{Copy, Fill, Place, UserData, Work, extent};
use std::ffi::{c_int, c_uchar, c_ushort, c_void};
use std::sync::Arc;

/// The point at which a copy's call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    /// When it is done.
    Done,
    /// As soon as HIP allows.
    Early,
}

/// Rows of the caller's memory: a start address and a pitch.
#[derive(Clone, Copy)]
struct Rows {
    start: *mut c_void,
    pitch: usize,
}

fn rows(start: *const c_void, pitch: usize) -> Rows {
    Rows {
        start: start.cast_mut(),
        pitch,
    }
}

/// Bytes in one row.
fn row(start: *const c_void) -> Rows {
    rows(start, 0)
}

/// Classifies a caller's pointer: either all of the `bytes` from it lie in one live allocation, or
/// it is ordinary memory of the host.
fn classify(runtime: &Runtime, pointer: *mut c_void, bytes: usize) -> Result<(Place, Option<Allocation>)> {
    let address = pointer.addr() as u64;
    let table = runtime.memory.table();
    match table.find(address) {
        Some(allocation) if bytes as u64 <= allocation.bytes - (address - allocation.address) => {
            Ok((Place::Known(address), Some(*allocation)))
        }
        Some(_) => Err(sys::hipErrorInvalidValue),
        None if runtime.memory.is_device(address) => {
            config::warn(&runtime.memory.explain(address));
            Err(sys::hipErrorInvalidValue)
        }
        None => Ok((Place::Host(UserData(pointer)), None)),
    }
}

/// Returns true if the host can access the memory: it is the host's own, or a pinned allocation.
fn host_sees(allocation: Option<&Allocation>) -> bool {
    allocation.is_none_or(Allocation::on_host)
}

/// Checks a copy's pointers against the kind that the caller states, and describes the copy.
pub(super) fn plan(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    [width, rows]: [usize; 2],
    kind: sys::hipMemcpyKind,
) -> Result<Copy> {
    let runtime = runtime::get()?;
    if to.is_null() || from.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    if rows > 1 && (to_pitch < width || from_pitch < width) {
        return Err(sys::hipErrorInvalidPitchValue);
    }
    let bytes = |pitch| extent(width, rows, pitch).ok_or(sys::hipErrorInvalidValue);
    let (to, to_known) = classify(runtime, to, bytes(to_pitch)?)?;
    let (from, from_known) = classify(runtime, from.cast_mut(), bytes(from_pitch)?)?;
    let (to_host, to_device) = (host_sees(to_known.as_ref()), to_known.is_some());
    let (from_host, from_device) = (host_sees(from_known.as_ref()), from_known.is_some());
    let right = match kind {
        sys::hipMemcpyHostToHost => from_host && to_host,
        sys::hipMemcpyHostToDevice => from_host && to_device,
        sys::hipMemcpyDeviceToHost => from_device && to_host,
        sys::hipMemcpyDeviceToDevice | sys::hipMemcpyDeviceToDeviceNoCU => from_device && to_device,
        sys::hipMemcpyDefault => true,
        _ => return Err(sys::hipErrorInvalidMemcpyDirection),
    };
    if !right {
        return Err(sys::hipErrorInvalidValue);
    }
    Ok(Copy {
        to,
        to_pitch,
        from,
        from_pitch,
        width,
        rows,
    })
}

fn copy(
    stream: &'static Handle<Stream>,
    to: Rows,
    from: Rows,
    shape: [usize; 2],
    kind: sys::hipMemcpyKind,
    when: Return,
) -> Result {
    if when == Return::Done {
        capture::disturbing()?;
    }
    if shape.contains(&0) {
        return Ok(());
    }
    let mut copy = plan(to.start, to.pitch, from.start, from.pitch, shape, kind)?;
    let captured = capture::of(stream).is_some();
    let seeded = scheduler::get().is_seeded();
    let between = matches!((&copy.to, &copy.from), (Place::Known(_), Place::Known(_)));
    let to_pageable = matches!(copy.to, Place::Host(_));
    let wait = match when {
        // A copy between devices need not be complete when the call returns.
        Return::Done => !(seeded && between),
        // Pageable memory has no other way to be complete: the call must wait.
        Return::Early => to_pageable && !captured,
    };
    if let (Place::Host(UserData(start)), false, false) = (&copy.from, wait, captured) {
        // The caller may overwrite its buffer once the call returns, so the bytes are staged now.
        let bytes = extent(copy.width, copy.rows, copy.from_pitch).ok_or(sys::hipErrorInvalidValue)?;
        // SAFETY: by HIP's contract.
        let bytes = unsafe { std::slice::from_raw_parts(start.cast_const().cast::<u8>(), bytes) };
        copy.from = Place::Staged(Arc::from(bytes));
    }
    enqueue(stream, Work::Copy(Box::new(copy)))?;
    if wait { synchronize(stream) } else { Ok(()) }
}

fn null() -> Result<&'static Handle<Stream>> {
    Ok(current()?.null())
}

/// Checks a fill; returns `None` if it has no elements.
pub(super) fn plan_fill(fill: Fill) -> Result<Option<Fill>> {
    if fill.width == 0 || fill.rows == 0 {
        return Ok(None);
    }
    let row = fill.row().ok_or(sys::hipErrorInvalidValue)?;
    if fill.rows > 1 && fill.pitch < row {
        return Err(sys::hipErrorInvalidPitchValue);
    }
    let bytes = extent(row, fill.rows, fill.pitch).ok_or(sys::hipErrorInvalidValue)?;
    let start = std::ptr::without_provenance_mut(usize::try_from(fill.to).map_err(|_| sys::hipErrorInvalidValue)?);
    match classify(runtime::get()?, start, bytes)? {
        (Place::Known(_), _) => Ok(Some(fill)),
        _ => Err(sys::hipErrorInvalidValue),
    }
}

fn fill(stream: &'static Handle<Stream>, fill: Fill, when: Return) -> Result {
    if when == Return::Done {
        capture::disturbing()?;
    }
    let Some(fill) = plan_fill(fill)? else { return Ok(()) };
    enqueue(stream, Work::Fill(fill))?;
    // HIP allows the call to return before the fill is complete.
    if when == Return::Done && !scheduler::get().is_seeded() {
        synchronize(stream)
    } else {
        Ok(())
    }
}

/// A fill of one row of elements.
fn elements(to: *mut c_void, value: u32, element: usize, width: usize) -> Fill {
    Fill {
        to: to.addr() as u64,
        pitch: 0,
        value,
        element,
        width,
        rows: 1,
    }
}

/// Resolves the caller's stream.
macro_rules! stream {
    ($stream:ident) => {
        // SAFETY: by HIP's contract.
        unsafe { runtime::resolve($stream) }?
    };
}

hip! {
    fn hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: sys::hipMemcpyKind) {
        copy(null()?, row(to), row(from), [bytes, 1], kind, Return::Done)
    }

    fn hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: sys::hipMemcpyKind, stream: sys::hipStream_t) {
        copy(stream!(stream), row(to), row(from), [bytes, 1], kind, Return::Early)
    }

    fn hipMemcpyWithStream(to: *mut c_void, from: *const c_void, bytes: usize, kind: sys::hipMemcpyKind, stream: sys::hipStream_t) {
        copy(stream!(stream), row(to), row(from), [bytes, 1], kind, Return::Done)
    }

    fn hipMemcpyHtoD(to: sys::hipDeviceptr_t, from: *const c_void, bytes: usize) {
        copy(null()?, row(to), row(from), [bytes, 1], sys::hipMemcpyHostToDevice, Return::Done)
    }

    fn hipMemcpyDtoH(to: *mut c_void, from: sys::hipDeviceptr_t, bytes: usize) {
        copy(null()?, row(to), row(from), [bytes, 1], sys::hipMemcpyDeviceToHost, Return::Done)
    }

    fn hipMemcpyDtoD(to: sys::hipDeviceptr_t, from: sys::hipDeviceptr_t, bytes: usize) {
        copy(null()?, row(to), row(from), [bytes, 1], sys::hipMemcpyDeviceToDevice, Return::Done)
    }

    fn hipMemcpyHtoDAsync(to: sys::hipDeviceptr_t, from: *const c_void, bytes: usize, stream: sys::hipStream_t) {
        copy(stream!(stream), row(to), row(from), [bytes, 1], sys::hipMemcpyHostToDevice, Return::Early)
    }

    fn hipMemcpyDtoHAsync(to: *mut c_void, from: sys::hipDeviceptr_t, bytes: usize, stream: sys::hipStream_t) {
        copy(stream!(stream), row(to), row(from), [bytes, 1], sys::hipMemcpyDeviceToHost, Return::Early)
    }

    fn hipMemcpyDtoDAsync(to: sys::hipDeviceptr_t, from: sys::hipDeviceptr_t, bytes: usize, stream: sys::hipStream_t) {
        copy(stream!(stream), row(to), row(from), [bytes, 1], sys::hipMemcpyDeviceToDevice, Return::Early)
    }

    fn hipMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize) {
        peers(to_device, from_device)?;
        copy(null()?, row(to), row(from), [bytes, 1], sys::hipMemcpyDeviceToDevice, Return::Done)
    }

    fn hipMemcpyPeerAsync(
        to: *mut c_void,
        to_device: c_int,
        from: *const c_void,
        from_device: c_int,
        bytes: usize,
        stream: sys::hipStream_t,
    ) {
        peers(to_device, from_device)?;
        copy(stream!(stream), row(to), row(from), [bytes, 1], sys::hipMemcpyDeviceToDevice, Return::Early)
    }

    fn hipMemcpy2D(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        height: usize,
        kind: sys::hipMemcpyKind,
    ) {
        copy(null()?, rows(to, to_pitch), rows(from, from_pitch), [width, height], kind, Return::Done)
    }

    fn hipMemcpy2DAsync(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        height: usize,
        kind: sys::hipMemcpyKind,
        stream: sys::hipStream_t,
    ) {
        copy(stream!(stream), rows(to, to_pitch), rows(from, from_pitch), [width, height], kind, Return::Early)
    }

    fn hipMemset(to: *mut c_void, value: c_int, bytes: usize) {
        fill(null()?, elements(to, value.cast_unsigned(), 1, bytes), Return::Done)
    }

    fn hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: sys::hipStream_t) {
        fill(stream!(stream), elements(to, value.cast_unsigned(), 1, bytes), Return::Early)
    }

    fn hipMemsetD8(to: sys::hipDeviceptr_t, value: c_uchar, count: usize) {
        fill(null()?, elements(to, value.into(), 1, count), Return::Done)
    }

    fn hipMemsetD8Async(to: sys::hipDeviceptr_t, value: c_uchar, count: usize, stream: sys::hipStream_t) {
        fill(stream!(stream), elements(to, value.into(), 1, count), Return::Early)
    }

    fn hipMemsetD16(to: sys::hipDeviceptr_t, value: c_ushort, count: usize) {
        fill(null()?, elements(to, value.into(), 2, count), Return::Done)
    }

    fn hipMemsetD16Async(to: sys::hipDeviceptr_t, value: c_ushort, count: usize, stream: sys::hipStream_t) {
        fill(stream!(stream), elements(to, value.into(), 2, count), Return::Early)
    }

    fn hipMemsetD32(to: sys::hipDeviceptr_t, value: c_int, count: usize) {
        fill(null()?, elements(to, value.cast_unsigned(), 4, count), Return::Done)
    }

    fn hipMemsetD32Async(to: sys::hipDeviceptr_t, value: c_int, count: usize, stream: sys::hipStream_t) {
        fill(stream!(stream), elements(to, value.cast_unsigned(), 4, count), Return::Early)
    }

    fn hipMemset2D(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) {
        let rows = Fill { pitch, rows: height, ..elements(to, value.cast_unsigned(), 1, width) };
        fill(null()?, rows, Return::Done)
    }

    fn hipMemset2DAsync(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: sys::hipStream_t) {
        let rows = Fill { pitch, rows: height, ..elements(to, value.cast_unsigned(), 1, width) };
        fill(stream!(stream), rows, Return::Early)
    }
}

fn peers(to: c_int, from: c_int) -> Result {
    let runtime = runtime::get()?;
    runtime.device(to)?;
    runtime.device(from)?;
    Ok(())
}
