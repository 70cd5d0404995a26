//! Streams, events and stream capture.

use super::{enqueue, put, put_if, synchronize};
use crate::calls::{self, hip};
use crate::capture;
use crate::handle::Handle;
use crate::runtime::{self, current};
use crate::scheduler;
use crate::status::Result;
use crate::stream::{Event, Record, Recorded, Stream};
use crate::sys;
use crate::work::{UserData, Work};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

/// Resolves a caller's stream handle.
///
/// # Safety
///
/// By HIP's contract it is a stream.
unsafe fn of(stream: sys::hipStream_t) -> Result<&'static Handle<Stream>> {
    // SAFETY: by this function's contract.
    unsafe { runtime::resolve(stream) }
}

/// # Safety
///
/// As for [`put`].
unsafe fn create(place: *mut sys::hipStream_t, flags: c_uint, priority: c_int) -> Result {
    if flags & !sys::hipStreamNonBlocking != 0 {
        return Err(sys::hipErrorInvalidValue);
    }
    let stream = Stream::new(current()?, flags, priority.clamp(-1, 1));
    // SAFETY: by this function's contract.
    unsafe { put(place, stream.raw()) }
}

/// # Safety
///
/// As for [`put`].
unsafe fn create_event(place: *mut sys::hipEvent_t, flags: c_uint) -> Result {
    let known = sys::hipEventBlockingSync
        | sys::hipEventDisableTiming
        | sys::hipEventInterprocess
        | sys::hipEventDisableSystemFence
        | sys::hipEventReleaseToDevice
        | sys::hipEventReleaseToSystem;
    if flags & !known != 0 {
        return Err(sys::hipErrorInvalidValue);
    }
    let event = Event::new(current()?, flags);
    // SAFETY: by this function's contract.
    unsafe { put(place, event.raw()) }
}

fn record(event: &'static Handle<Event>, stream: &'static Handle<Stream>, external: bool) -> Result {
    if external && capture::append(stream, &Work::Record(event))? {
        return Ok(());
    }
    if capture::any() {
        if capture::record(event, stream)? {
            return Ok(());
        }
        capture::implicit(stream)?;
    }
    if event.device.ordinal != stream.device.ordinal {
        return Err(sys::hipErrorInvalidHandle);
    }
    stream.device.check()?;
    let scheduler = scheduler::get();
    let record = Record::new();
    event.set(Recorded::Stream(Arc::clone(&record)));
    if stream.is_free() && !scheduler.is_seeded() {
        record.place(Stream::point(stream));
        record.complete();
    } else {
        scheduler.submit(stream, Work::Event(record), &[]);
    }
    Ok(())
}

/// Checks that a stream's capture state can be reported: the null stream's cannot while a stream
/// that waits for it is captured.
fn not_entangled(stream: &Stream) -> Result {
    match capture::entangled(stream) {
        None => Ok(()),
        Some(_) => Err(sys::hipErrorStreamCaptureImplicit),
    }
}

/// Returns the last record of an event, to check its completion; an error if it was captured.
fn pending(event: &Event) -> Result<Option<Arc<Record>>> {
    match event.recorded() {
        Recorded::Never => Ok(None),
        Recorded::Stream(record) => Ok(Some(record)),
        Recorded::Captured(capture, _) => {
            capture.invalidate();
            Err(sys::hipErrorCapturedEvent)
        }
    }
}

hip! {
    fn hipStreamCreate(stream: *mut sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        unsafe { create(stream, sys::hipStreamDefault, 0) }
    }

    fn hipStreamCreateWithFlags(stream: *mut sys::hipStream_t, flags: c_uint) {
        // SAFETY: by HIP's contract.
        unsafe { create(stream, flags, 0) }
    }

    fn hipStreamCreateWithPriority(stream: *mut sys::hipStream_t, flags: c_uint, priority: c_int) {
        // SAFETY: by HIP's contract.
        unsafe { create(stream, flags, priority) }
    }

    fn hipStreamDestroy(stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract. The null stream and the thread's own cannot be destroyed.
        let stream = unsafe { Handle::<Stream>::from_raw(stream.map_addr(|address| if address <= 2 { 0 } else { address })) }?;
        capture::abandon(stream);
        stream.retire()?;
        let stream: &'static Stream = stream;
        scheduler::get().close(stream);
        Ok(())
    }

    fn hipStreamQuery(stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        capture::not_captured(stream)?;
        capture::disturbing()?;
        stream.device.check()?;
        if stream.is_idle() {
            Ok(())
        } else {
            scheduler::get().polled();
            Err(sys::hipErrorNotReady)
        }
    }

    fn hipStreamSynchronize(stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        capture::not_captured(stream)?;
        capture::disturbing()?;
        if stream.is_null() && !stream.is_free() {
            // The null stream is done only when all blocking streams are: an empty command waits
            // for them.
            enqueue(stream, Work::Nothing)?;
        }
        synchronize(stream)
    }

    fn hipStreamWaitEvent(stream: sys::hipStream_t, event: sys::hipEvent_t, flags: c_uint) {
        // SAFETY: by HIP's contract.
        let (stream, event) = unsafe { (of(stream)?, Handle::<Event>::from_raw(event)?) };
        if flags & !sys::hipEventWaitExternal != 0 {
            return Err(sys::hipErrorInvalidValue);
        }
        if capture::any() || matches!(event.recorded(), Recorded::Captured(..)) {
            if capture::wait(stream, event, flags & sys::hipEventWaitExternal != 0)? {
                return Ok(());
            }
            capture::implicit(stream)?;
        }
        stream.device.check()?;
        let scheduler = scheduler::get();
        if let Recorded::Stream(record) = event.recorded()
            && let Some(point) = record.point()
            && !point.is_reached()
        {
            let stream: &'static Stream = stream;
            scheduler.submit(stream, Work::Nothing, &[point]);
        }
        Ok(())
    }

    fn hipStreamGetFlags(stream: sys::hipStream_t, flags: *mut c_uint) {
        // SAFETY: by HIP's contract.
        unsafe { put(flags, of(stream)?.flags) }
    }

    fn hipStreamGetPriority(stream: sys::hipStream_t, priority: *mut c_int) {
        // SAFETY: by HIP's contract.
        unsafe { put(priority, of(stream)?.priority) }
    }

    fn hipStreamGetDevice(stream: sys::hipStream_t, device: *mut sys::hipDevice_t) {
        // SAFETY: by HIP's contract.
        unsafe { put(device, c_int::try_from(of(stream)?.device.ordinal).unwrap_or(0)) }
    }

    fn hipStreamGetId(stream: sys::hipStream_t, id: *mut c_ulonglong) {
        // SAFETY: by HIP's contract.
        unsafe { put(id, of(stream)?.id) }
    }

    fn hipStreamAddCallback(stream: sys::hipStream_t, callback: sys::hipStreamCallback_t, data: *mut c_void, flags: c_uint) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        let callback = callback.filter(|_| flags == 0).ok_or(sys::hipErrorInvalidValue)?;
        enqueue(stream, Work::Callback(callback, stream, UserData(data)))
    }

    fn hipLaunchHostFunc(stream: sys::hipStream_t, function: sys::hipHostFn_t, data: *mut c_void) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        enqueue(stream, Work::Host(function.ok_or(sys::hipErrorInvalidValue)?, UserData(data)))
    }

    fn hipEventCreate(event: *mut sys::hipEvent_t) {
        // SAFETY: by HIP's contract.
        unsafe { create_event(event, sys::hipEventDefault) }
    }

    fn hipEventCreateWithFlags(event: *mut sys::hipEvent_t, flags: c_uint) {
        // SAFETY: by HIP's contract.
        unsafe { create_event(event, flags) }
    }

    fn hipEventRecord(event: sys::hipEvent_t, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let (event, stream) = unsafe { (Handle::from_raw(event)?, of(stream)?) };
        record(event, stream, false)
    }

    fn hipEventRecordWithFlags(event: sys::hipEvent_t, stream: sys::hipStream_t, flags: c_uint) {
        // SAFETY: by HIP's contract.
        let (event, stream) = unsafe { (Handle::from_raw(event)?, of(stream)?) };
        if flags & !sys::hipEventRecordExternal != 0 {
            return Err(sys::hipErrorInvalidValue);
        }
        record(event, stream, flags & sys::hipEventRecordExternal != 0)
    }

    fn hipEventDestroy(event: sys::hipEvent_t) {
        // SAFETY: by HIP's contract.
        let event = unsafe { Handle::<Event>::from_raw(event) }?;
        event.retire()?;
        event.set(Recorded::Never);
        Ok(())
    }

    fn hipEventQuery(event: sys::hipEvent_t) {
        // SAFETY: by HIP's contract.
        let event = unsafe { Handle::<Event>::from_raw(event) }?;
        let record = pending(event)?;
        capture::disturbing()?;
        event.device.check()?;
        match record {
            Some(record) if !record.is_done() => {
                scheduler::get().polled();
                Err(sys::hipErrorNotReady)
            }
            _ => Ok(()),
        }
    }

    fn hipEventSynchronize(event: sys::hipEvent_t) {
        // SAFETY: by HIP's contract.
        let event = unsafe { Handle::<Event>::from_raw(event) }?;
        let record = pending(event)?;
        capture::disturbing()?;
        if let Some(point) = record.and_then(|record| record.point()) {
            scheduler::get().wait(point);
        }
        event.device.check()
    }

    fn hipEventElapsedTime(milliseconds: *mut f32, start: sys::hipEvent_t, stop: sys::hipEvent_t) {
        // SAFETY: by HIP's contract.
        let events: [&Handle<Event>; 2] = unsafe { [Handle::from_raw(start)?, Handle::from_raw(stop)?] };
        let [start, stop] = events.map(|event| pending(event).map(|record| record.filter(|_| event.is_timed())));
        let (Some(start), Some(stop)) = (start?, stop?) else {
            return Err(sys::hipErrorInvalidHandle);
        };
        if !start.is_done() || !stop.is_done() {
            return Err(sys::hipErrorNotReady);
        }
        // SAFETY: by HIP's contract.
        unsafe { put(milliseconds, start.milliseconds_to(&stop)) }
    }

    fn hipStreamBeginCapture(stream: sys::hipStream_t, mode: sys::hipStreamCaptureMode) {
        // SAFETY: by HIP's contract.
        capture::begin(unsafe { of(stream) }?, mode)
    }

    fn hipStreamEndCapture(stream: sys::hipStream_t, graph: *mut sys::hipGraph_t) {
        if graph.is_null() {
            return Err(sys::hipErrorInvalidValue);
        }
        // SAFETY: by HIP's contract.
        let captured = capture::end(unsafe { of(stream) }?);
        // SAFETY: by HIP's contract.
        unsafe { put(graph, captured.map_or(std::ptr::null_mut(), Handle::raw)) }?;
        captured.map(drop)
    }

    fn hipStreamIsCapturing(stream: sys::hipStream_t, status: *mut sys::hipStreamCaptureStatus) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        not_entangled(stream)?;
        let capture = capture::of(stream);
        // SAFETY: by HIP's contract.
        unsafe { put(status, capture.map_or(sys::hipStreamCaptureStatusNone, |capture| capture.status())) }
    }

    fn hipStreamGetCaptureInfo(stream: sys::hipStream_t, status: *mut sys::hipStreamCaptureStatus, id: *mut c_ulonglong) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        not_entangled(stream)?;
        let capture = capture::of(stream);
        // SAFETY: by HIP's contract.
        unsafe {
            put(status, capture.as_ref().map_or(sys::hipStreamCaptureStatusNone, |capture| capture.status()))?;
            if let Some(capture) = capture {
                put_if(id, capture.id);
            }
        }
        Ok(())
    }

    fn hipStreamGetCaptureInfo_v2(
        stream: sys::hipStream_t,
        status: *mut sys::hipStreamCaptureStatus,
        id: *mut c_ulonglong,
        graph: *mut sys::hipGraph_t,
        dependencies: *mut *const sys::hipGraphNode_t,
        count: *mut usize,
    ) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { of(stream) }?;
        not_entangled(stream)?;
        let Some(branch) = capture::branch_of(stream) else {
            // SAFETY: by HIP's contract.
            return unsafe { put(status, sys::hipStreamCaptureStatusNone) };
        };
        let captured = capture::graph_of(&branch.capture)?;
        let nodes = captured.nodes();
        let tails: Vec<sys::hipGraphNode_t> = branch
            .tails
            .iter()
            .filter_map(|tail| nodes.get(*tail))
            .map(|entry| entry.handle.raw())
            .collect();
        drop(nodes);
        // SAFETY: by HIP's contract. HIP's array lives as long as the capture; this one is small
        // and is leaked.
        unsafe {
            put(status, branch.capture.status())?;
            put_if(id, branch.capture.id);
            put_if(graph, captured.raw());
            put_if(count, tails.len());
            put_if(dependencies, tails.leak().as_ptr());
        }
        Ok(())
    }

    fn hipThreadExchangeStreamCaptureMode(mode: *mut sys::hipStreamCaptureMode) {
        // SAFETY: by HIP's contract.
        let new = *unsafe { mode.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        if new > sys::hipStreamCaptureModeRelaxed {
            return Err(sys::hipErrorInvalidValue);
        }
        let old = calls::thread(|thread| thread.capture_mode.replace(new))?;
        // SAFETY: by HIP's contract.
        unsafe { put(mode, old) }
    }
}
