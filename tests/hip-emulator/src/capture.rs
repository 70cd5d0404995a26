//! Stream capture: work submitted to a captured stream becomes nodes of a graph instead of running.
//!
//! A capture begins in one stream and spreads to others that wait for its events. Each stream in a
//! capture has a [`Branch`]: the nodes that its next node depends on.

use crate::calls;
use crate::graph::{Graph, Step};
use crate::handle::Handle;
use crate::status::Result;
use crate::stream::{Branch, Capture, Event, Recorded, Stream};
use crate::sys;
use crate::work::Work;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of active captures. While it is zero, calls skip all other capture checks.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// The active captures, each with the graph that it builds.
static CAPTURES: Mutex<Vec<(Arc<Capture>, &'static Handle<Graph>)>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

fn captures() -> MutexGuard<'static, Vec<(Arc<Capture>, &'static Handle<Graph>)>> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if any stream is being captured.
#[inline]
pub(crate) fn any() -> bool {
    ACTIVE.load(Ordering::Acquire) != 0
}

fn branch(stream: &Stream) -> MutexGuard<'_, Option<Branch>> {
    stream.capture.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a stream's part in a capture, if it is captured.
pub(crate) fn branch_of(stream: &Stream) -> Option<Branch> {
    if any() { branch(stream).clone() } else { None }
}

/// Returns the capture that a stream takes part in.
pub(crate) fn of(stream: &Stream) -> Option<Arc<Capture>> {
    branch_of(stream).map(|branch| branch.capture)
}

/// Returns the graph that a capture builds.
///
/// # Errors
///
/// If the capture has ended.
pub(crate) fn graph_of(capture: &Arc<Capture>) -> Result<&'static Handle<Graph>> {
    let captures = captures();
    let own = captures.iter().find(|(other, _)| Arc::ptr_eq(other, capture));
    own.map(|(_, graph)| *graph)
        .ok_or(sys::hipErrorStreamCaptureInvalidated)
}

/// Checks that a stream is not captured, for calls that a capture forbids; invalidates the capture
/// otherwise.
pub(crate) fn not_captured(stream: &Stream) -> Result {
    match of(stream) {
        None => Ok(()),
        Some(capture) => {
            capture.invalidate();
            Err(sys::hipErrorStreamCaptureUnsupported)
        }
    }
}

/// Adds work to the capture that a stream takes part in. Returns `false` if the stream is not
/// captured, and the work is to be run.
///
/// # Errors
///
/// If the capture is invalid, or if the stream is the null stream and a stream that waits for it is
/// captured.
pub(crate) fn append(stream: &Stream, work: &Work) -> Result<bool> {
    let mut own = branch(stream);
    if let Some(own) = own.as_mut() {
        own.capture.check()?;
        let node = graph_of(&own.capture)?.add(Step::Work(work.clone()), &own.tails);
        own.tails = vec![node.index];
        return Ok(true);
    }
    drop(own);
    implicit(stream)?;
    Ok(false)
}

/// Checks that work in a stream does not make a captured stream wait for the null stream;
/// invalidates the capture that would have to.
pub(crate) fn implicit(stream: &Stream) -> Result {
    match entangled(stream) {
        None => Ok(()),
        Some(capture) => {
            capture.invalidate();
            Err(sys::hipErrorStreamCaptureImplicit)
        }
    }
}

/// Returns a capture of a stream that waits for this one, if this is the null stream.
pub(crate) fn entangled(stream: &Stream) -> Option<Arc<Capture>> {
    if !stream.is_null() {
        return None;
    }
    let device = stream.device.ordinal;
    let waits = |other: &&Stream| other.is_blocking() && other.device.ordinal == device;
    let captures = captures();
    let mut all = captures.iter().map(|(capture, _)| capture);
    all.find(|capture| capture.streams().iter().any(waits)).cloned()
}

/// Checks a call that may disturb a capture: an allocation, a wait or a query.
///
/// # Errors
///
/// If this thread's capture mode forbids the call during an active capture; that capture becomes
/// invalid.
#[inline]
pub(crate) fn disturbing() -> Result {
    if any() { check_disturbing() } else { Ok(()) }
}

#[cold]
fn check_disturbing() -> Result {
    let mode = calls::thread(|thread| thread.capture_mode.get())?;
    if mode == sys::hipStreamCaptureModeRelaxed {
        return Ok(());
    }
    let here = std::thread::current().id();
    let mut disturbed = false;
    for (capture, _) in captures().iter() {
        let own = capture.thread == here && capture.mode != sys::hipStreamCaptureModeRelaxed;
        let any = mode == sys::hipStreamCaptureModeGlobal && capture.mode == sys::hipStreamCaptureModeGlobal;
        if own || any {
            capture.invalidate();
            disturbed = true;
        }
    }
    if disturbed {
        Err(sys::hipErrorStreamCaptureUnsupported)
    } else {
        Ok(())
    }
}

/// Checks a call that waits for a whole device. As in ROCm's own library, it invalidates every
/// active capture, whatever its device, thread and mode.
pub(crate) fn disturbing_device() -> Result {
    if any() {
        let captures = captures();
        captures.iter().for_each(|(capture, _)| capture.invalidate());
        if !captures.is_empty() {
            return Err(sys::hipErrorStreamCaptureUnsupported);
        }
    }
    Ok(())
}

/// Begins a capture in a stream.
pub(crate) fn begin(stream: &'static Handle<Stream>, mode: sys::hipStreamCaptureMode) -> Result {
    if mode > sys::hipStreamCaptureModeRelaxed {
        return Err(sys::hipErrorInvalidValue);
    }
    if stream.is_null() {
        return Err(sys::hipErrorStreamCaptureUnsupported);
    }
    let mut own = branch(stream);
    if own.is_some() {
        return Err(sys::hipErrorIllegalState);
    }
    let stream: &'static Stream = stream;
    let capture = Arc::new(Capture {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        mode,
        thread: std::thread::current().id(),
        origin: stream.id,
        invalid: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        streams: Mutex::new(vec![stream]),
    });
    captures().push((Arc::clone(&capture), Handle::new(Graph::default())));
    ACTIVE.fetch_add(1, Ordering::AcqRel);
    *own = Some(Branch {
        capture,
        tails: Vec::new(),
    });
    Ok(())
}

/// Ends a capture and removes all streams from it; returns their branches.
fn close(capture: &Arc<Capture>) -> Vec<Branch> {
    // The stream list is unlocked before the branches are locked: a stream that joins a capture
    // locks them in the opposite order.
    let streams = std::mem::take(&mut *capture.streams());
    let branches = streams.iter().filter_map(|stream| branch(stream).take()).collect();
    captures().retain(|(other, _)| !Arc::ptr_eq(other, capture));
    ACTIVE.fetch_sub(1, Ordering::AcqRel);
    capture.ended.store(true, Ordering::Release);
    branches
}

/// Ends the capture that began in a stream and returns its graph.
pub(crate) fn end(stream: &Stream) -> Result<&'static Handle<Graph>> {
    let Branch { capture, tails } = branch_of(stream).ok_or(sys::hipErrorIllegalState)?;
    if capture.mode != sys::hipStreamCaptureModeRelaxed && capture.thread != std::thread::current().id() {
        return Err(sys::hipErrorStreamCaptureWrongThread);
    }
    if capture.origin != stream.id {
        capture.invalidate();
        return Err(sys::hipErrorStreamCaptureUnmatched);
    }
    let graph = graph_of(&capture)?;
    let branches = close(&capture);
    let result = capture.check().and_then(|()| {
        // All nodes that other streams captured must precede the origin's next node.
        let nodes = graph.nodes();
        let mut joined = vec![false; nodes.len()];
        let mut open = tails;
        while let Some(index) = open.pop() {
            if let Some(seen) = joined.get_mut(index)
                && !std::mem::replace(seen, true)
            {
                open.extend(nodes.get(index).into_iter().flat_map(|entry| &entry.after));
            }
        }
        let mut others = branches.iter().flat_map(|branch| &branch.tails);
        if others.all(|tail| joined.get(*tail) == Some(&true)) {
            Ok(())
        } else {
            Err(sys::hipErrorStreamCaptureUnjoined)
        }
    });
    match result {
        Ok(()) => Ok(graph),
        Err(error) => {
            graph.destroy()?;
            Err(error)
        }
    }
}

/// Records an event in a captured stream. Returns `false` if the stream is not captured.
pub(crate) fn record(event: &Event, stream: &Stream) -> Result<bool> {
    let Some(Branch { capture, tails }) = branch_of(stream) else {
        return Ok(false);
    };
    capture.check()?;
    event.set(Recorded::Captured(capture, tails));
    Ok(true)
}

/// Makes a stream wait for an event, if either is captured. Returns `false` if neither is.
pub(crate) fn wait(stream: &'static Handle<Stream>, event: &'static Handle<Event>, external: bool) -> Result<bool> {
    if external && append(stream, &Work::Await(event))? {
        return Ok(true);
    }
    let mut own = branch(stream);
    match (own.as_mut(), event.recorded()) {
        (None, Recorded::Never | Recorded::Stream(_)) => Ok(false),
        (Some(_), Recorded::Never) => Ok(true),
        (Some(own), Recorded::Stream(_)) => {
            own.capture.invalidate();
            Err(sys::hipErrorStreamCaptureIsolation)
        }
        (_, Recorded::Captured(capture, _)) if capture.ended.load(Ordering::Acquire) => Err(sys::hipErrorCapturedEvent),
        (Some(own), Recorded::Captured(capture, nodes)) => {
            if !Arc::ptr_eq(&own.capture, &capture) {
                own.capture.invalidate();
                capture.invalidate();
                return Err(sys::hipErrorStreamCaptureMerge);
            }
            own.capture.check()?;
            own.tails.extend(nodes);
            own.tails.sort_unstable();
            own.tails.dedup();
            Ok(true)
        }
        (None, Recorded::Captured(capture, nodes)) => {
            capture.check()?;
            if stream.is_null() {
                capture.invalidate();
                return Err(sys::hipErrorStreamCaptureImplicit);
            }
            let joined: &'static Stream = stream;
            capture.streams().push(joined);
            *own = Some(Branch { capture, tails: nodes });
            Ok(true)
        }
    }
}

/// Invalidates the capture of a stream that is being destroyed.
pub(crate) fn abandon(stream: &Stream) {
    if let Some(capture) = of(stream) {
        capture.invalidate();
        if capture.origin == stream.id {
            close(&capture);
        }
    }
}
