//! Graphs.

use super::copy::{plan, plan_fill};
use super::module::{fits, node};
use super::put;
use crate::calls::hip;
use crate::capture;
use crate::graph::{Executable, Graph, Node, Step};
use crate::handle::Handle;
use crate::runtime;
use crate::scheduler;
use crate::status::Result;
use crate::stream::{Event, Stream};
use crate::sys;
use crate::work::{Fill, UserData, Work};
use std::ffi::{c_char, c_uint, c_ulonglong, c_void};
use std::sync::{Mutex, PoisonError};

type Dependencies = *const sys::hipGraphNode_t;

/// Converts the caller's array of nodes.
///
/// # Safety
///
/// The array has `count` nodes.
unsafe fn nodes(start: Dependencies, count: usize) -> Result<Vec<&'static Handle<Node>>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if start.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    // SAFETY: by this function's contract.
    let nodes = unsafe { std::slice::from_raw_parts(start, count) };
    // SAFETY: as above.
    nodes.iter().map(|node| unsafe { Handle::from_raw(*node) }).collect()
}

/// Adds a node to a graph.
///
/// # Safety
///
/// As for [`put`] and [`nodes`]; `graph` is null or a handle.
unsafe fn add(
    place: *mut sys::hipGraphNode_t,
    graph: sys::hipGraph_t,
    after: Dependencies,
    count: usize,
    step: Step,
) -> Result {
    if place.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    // SAFETY: by this function's contract.
    let (graph, after) = unsafe { (Handle::<Graph>::from_raw(graph)?, nodes(after, count)?) };
    let node = graph.add(step, &graph.indices(&after)?);
    // SAFETY: by this function's contract.
    unsafe { put(place, node.raw()) }
}

/// Returns a list of handles as HIP does: without an array only their number, otherwise as many as
/// fit, then nulls.
///
/// # Safety
///
/// `count` is valid for reads and writes; `place`, if not null, is valid for `*count` writes.
unsafe fn list<T>(place: *mut *mut T, count: *mut usize, handles: &[*mut T]) -> Result {
    // SAFETY: by this function's contract.
    let room = *unsafe { count.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
    if !place.is_null() {
        for index in 0..room {
            let handle = handles.get(index).copied().unwrap_or(std::ptr::null_mut());
            // SAFETY: by this function's contract.
            unsafe { place.add(index).write(handle) };
        }
    }
    // SAFETY: by this function's contract.
    unsafe {
        put(
            count,
            if place.is_null() {
                handles.len()
            } else {
                handles.len().min(room)
            },
        )
    }
}

/// # Safety
///
/// As for [`put`]; `graph` is null or a handle.
unsafe fn instantiate(place: *mut sys::hipGraphExec_t, graph: sys::hipGraph_t) -> Result {
    // SAFETY: by this function's contract.
    let graph = unsafe { Handle::<Graph>::from_raw(graph) }?;
    let executable = Handle::new(Executable {
        plan: Mutex::new(Some(graph.plan()?)),
    });
    // SAFETY: by this function's contract.
    unsafe { put(place, executable.raw()) }
}

hip! {
    fn hipGraphCreate(graph: *mut sys::hipGraph_t, flags: c_uint) {
        if flags != 0 {
            return Err(sys::hipErrorInvalidValue);
        }
        // SAFETY: by HIP's contract.
        unsafe { put(graph, Handle::new(Graph::default()).raw()) }
    }

    fn hipGraphDestroy(graph: sys::hipGraph_t) {
        // SAFETY: by HIP's contract.
        unsafe { Handle::<Graph>::from_raw(graph) }?.destroy()
    }

    fn hipGraphClone(copy: *mut sys::hipGraph_t, graph: sys::hipGraph_t) {
        // SAFETY: by HIP's contract.
        let graph = unsafe { Handle::<Graph>::from_raw(graph) }?;
        // SAFETY: by HIP's contract.
        unsafe { put(copy, graph.copy().raw()) }
    }

    fn hipGraphInstantiate(
        executable: *mut sys::hipGraphExec_t,
        graph: sys::hipGraph_t,
        error_node: *mut sys::hipGraphNode_t,
        log: *mut c_char,
        log_bytes: usize,
    ) {
        let _ = (error_node, log, log_bytes);
        // SAFETY: by HIP's contract.
        unsafe { instantiate(executable, graph) }
    }

    fn hipGraphInstantiateWithFlags(executable: *mut sys::hipGraphExec_t, graph: sys::hipGraph_t, flags: c_ulonglong) {
        if flags & !u64::from(sys::hipGraphInstantiateFlagAutoFreeOnLaunch) != 0 {
            return Err(sys::hipErrorNotSupported);
        }
        // SAFETY: by HIP's contract.
        unsafe { instantiate(executable, graph) }
    }

    fn hipGraphLaunch(executable: sys::hipGraphExec_t, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let (executable, stream) = unsafe { (Handle::<Executable>::from_raw(executable)?, runtime::resolve(stream)?) };
        let plan = executable.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let plan = plan.ok_or(sys::hipErrorInvalidValue)?;
        if capture::any() {
            // Not modelled: a graph launch that becomes a node of a captured graph.
            capture::not_captured(stream)?;
            capture::implicit(stream)?;
        }
        if !plan.all(|work| fits(work, stream)) {
            return Err(sys::hipErrorInvalidDevice);
        }
        stream.device.check()?;
        let stream: &'static Stream = stream;
        plan.submit(scheduler::get(), stream)
    }

    fn hipGraphUpload(executable: sys::hipGraphExec_t, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract. There is nothing to upload.
        unsafe {
            Handle::<Executable>::from_raw(executable)?;
            runtime::resolve(stream)?;
        }
        Ok(())
    }

    fn hipGraphExecDestroy(executable: sys::hipGraphExec_t) {
        // SAFETY: by HIP's contract.
        let executable = unsafe { Handle::<Executable>::from_raw(executable) }?;
        executable.retire()?;
        executable.plan.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }

    fn hipGraphGetNodes(graph: sys::hipGraph_t, place: *mut sys::hipGraphNode_t, count: *mut usize) {
        // SAFETY: by HIP's contract.
        let graph = unsafe { Handle::<Graph>::from_raw(graph) }?;
        let handles: Vec<_> = graph.nodes().iter().map(|entry| entry.handle.raw()).collect();
        // SAFETY: by HIP's contract.
        unsafe { list(place, count, &handles) }
    }

    fn hipGraphGetRootNodes(graph: sys::hipGraph_t, place: *mut sys::hipGraphNode_t, count: *mut usize) {
        // SAFETY: by HIP's contract.
        let graph = unsafe { Handle::<Graph>::from_raw(graph) }?;
        let handles: Vec<_> = graph
            .nodes()
            .iter()
            .filter(|entry| entry.after.is_empty())
            .map(|entry| entry.handle.raw())
            .collect();
        // SAFETY: by HIP's contract.
        unsafe { list(place, count, &handles) }
    }

    fn hipGraphGetEdges(graph: sys::hipGraph_t, from: *mut sys::hipGraphNode_t, to: *mut sys::hipGraphNode_t, count: *mut usize) {
        // SAFETY: by HIP's contract.
        let graph = unsafe { Handle::<Graph>::from_raw(graph) }?;
        if from.is_null() != to.is_null() {
            return Err(sys::hipErrorInvalidValue);
        }
        let entries = graph.nodes();
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for entry in entries.iter() {
            for before in entry.after.iter().filter_map(|index| entries.get(*index)) {
                starts.push(before.handle.raw());
                ends.push(entry.handle.raw());
            }
        }
        drop(entries);
        // SAFETY: by HIP's contract.
        let mut room = *unsafe { count.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        // SAFETY: by HIP's contract; both arrays have room for `*count` handles.
        unsafe {
            list(from, &raw mut room, &starts)?;
            list(to, count, &ends)
        }
    }

    fn hipGraphNodeGetType(node: sys::hipGraphNode_t, kind: *mut sys::hipGraphNodeType) {
        // SAFETY: by HIP's contract.
        let node = unsafe { Handle::<Node>::from_raw(node) }?;
        let found = node.graph.nodes().get(node.index).map(crate::graph::Entry::kind);
        // SAFETY: by HIP's contract.
        unsafe { put(kind, found.ok_or(sys::hipErrorInvalidValue)?) }
    }

    fn hipGraphNodeGetDependencies(node: sys::hipGraphNode_t, place: *mut sys::hipGraphNode_t, count: *mut usize) {
        // SAFETY: by HIP's contract.
        let node = unsafe { Handle::<Node>::from_raw(node) }?;
        let entries = node.graph.nodes();
        let entry = entries.get(node.index).ok_or(sys::hipErrorInvalidValue)?;
        let before = entry.after.iter().filter_map(|index| entries.get(*index));
        let handles: Vec<_> = before.map(|entry| entry.handle.raw()).collect();
        // SAFETY: by HIP's contract.
        unsafe { list(place, count, &handles) }
    }

    fn hipGraphAddDependencies(graph: sys::hipGraph_t, from: Dependencies, to: Dependencies, count: usize) {
        // SAFETY: by HIP's contract.
        let (graph, from, to) = unsafe { (Handle::<Graph>::from_raw(graph)?, nodes(from, count)?, nodes(to, count)?) };
        let (from, to) = (graph.indices(&from)?, graph.indices(&to)?);
        let mut entries = graph.nodes();
        for (before, after) in from.into_iter().zip(to) {
            let entry = entries.get_mut(after).ok_or(sys::hipErrorInvalidValue)?;
            if before == after || entry.after.contains(&before) {
                return Err(sys::hipErrorInvalidValue);
            }
            entry.after.push(before);
        }
        Ok(())
    }

    fn hipGraphAddEmptyNode(place: *mut sys::hipGraphNode_t, graph: sys::hipGraph_t, after: Dependencies, count: usize) {
        // SAFETY: by HIP's contract.
        unsafe { add(place, graph, after, count, Step::Work(Work::Nothing)) }
    }

    fn hipGraphAddKernelNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        parameters: *const sys::hipKernelNodeParams,
    ) {
        // SAFETY: by HIP's contract.
        unsafe {
            let work = node(parameters.as_ref().ok_or(sys::hipErrorInvalidValue)?)?;
            add(place, graph, after, count, Step::Work(work))
        }
    }

    fn hipGraphAddMemcpyNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        parameters: *const sys::hipMemcpy3DParms,
    ) {
        // SAFETY: by HIP's contract.
        let copy = unsafe { parameters.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        let offsets = [copy.srcPos, copy.dstPos].map(|at| [at.x, at.y, at.z]);
        if !copy.srcArray.is_null() || !copy.dstArray.is_null() || copy.extent.depth != 1 || offsets != [[0; 3]; 2] {
            return Err(sys::hipErrorNotSupported);
        }
        let shape = [copy.extent.width, copy.extent.height];
        let work = plan(copy.dstPtr.ptr, copy.dstPtr.pitch, copy.srcPtr.ptr, copy.srcPtr.pitch, shape, copy.kind)?;
        // SAFETY: by HIP's contract.
        unsafe { add(place, graph, after, count, Step::Work(Work::Copy(Box::new(work)))) }
    }

    fn hipGraphAddMemcpyNode1D(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: sys::hipMemcpyKind,
    ) {
        let work = plan(to, 0, from, 0, [bytes, 1], kind)?;
        // SAFETY: by HIP's contract.
        unsafe { add(place, graph, after, count, Step::Work(Work::Copy(Box::new(work)))) }
    }

    fn hipDrvGraphAddMemcpyNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        parameters: *const sys::HIP_MEMCPY3D,
        context: sys::hipCtx_t,
    ) {
        let _ = context;
        // SAFETY: by HIP's contract.
        let copy = unsafe { parameters.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        let side = |kind, host: *mut c_void, device: *mut c_void, x: usize, y: usize, pitch: usize| {
            let start = match kind {
                sys::hipMemoryTypeHost => host,
                sys::hipMemoryTypeDevice | sys::hipMemoryTypeUnified | sys::hipMemoryTypeManaged => device,
                _ => return Err(sys::hipErrorNotSupported),
            };
            let offset = y.checked_mul(pitch).and_then(|rows| rows.checked_add(x));
            Ok(start.wrapping_byte_add(offset.ok_or(sys::hipErrorInvalidValue)?))
        };
        if copy.Depth > 1 || copy.srcZ != 0 || copy.dstZ != 0 {
            return Err(sys::hipErrorNotSupported);
        }
        let to = side(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes, copy.dstY, copy.dstPitch)?;
        let from = side(copy.srcMemoryType, copy.srcHost.cast_mut(), copy.srcDevice, copy.srcXInBytes, copy.srcY, copy.srcPitch)?;
        let shape = [copy.WidthInBytes, copy.Height.max(1)];
        let work = plan(to, copy.dstPitch, from, copy.srcPitch, shape, sys::hipMemcpyDefault)?;
        // SAFETY: by HIP's contract.
        unsafe { add(place, graph, after, count, Step::Work(Work::Copy(Box::new(work)))) }
    }

    fn hipGraphAddMemsetNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        parameters: *const sys::hipMemsetParams,
    ) {
        // SAFETY: by HIP's contract.
        let fill = unsafe { parameters.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        let fill = Fill {
            to: fill.dst.addr() as u64,
            pitch: fill.pitch,
            value: fill.value,
            element: match fill.elementSize {
                1 => 1,
                2 => 2,
                4 => 4,
                _ => return Err(sys::hipErrorInvalidValue),
            },
            width: fill.width,
            rows: fill.height,
        };
        let fill = plan_fill(fill)?.ok_or(sys::hipErrorInvalidValue)?;
        // SAFETY: by HIP's contract.
        unsafe { add(place, graph, after, count, Step::Work(Work::Fill(fill))) }
    }

    fn hipGraphAddHostNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        parameters: *const sys::hipHostNodeParams,
    ) {
        // SAFETY: by HIP's contract.
        let host = unsafe { parameters.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        let work = Work::Host(host.fn_.ok_or(sys::hipErrorInvalidValue)?, UserData(host.userData));
        // SAFETY: by HIP's contract.
        unsafe { add(place, graph, after, count, Step::Work(work)) }
    }

    fn hipGraphAddEventRecordNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        event: sys::hipEvent_t,
    ) {
        // SAFETY: by HIP's contract.
        unsafe {
            let event = Handle::<Event>::from_raw(event)?;
            add(place, graph, after, count, Step::Work(Work::Record(event)))
        }
    }

    fn hipGraphAddEventWaitNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        event: sys::hipEvent_t,
    ) {
        // SAFETY: by HIP's contract.
        unsafe {
            let event = Handle::<Event>::from_raw(event)?;
            add(place, graph, after, count, Step::Work(Work::Await(event)))
        }
    }

    fn hipGraphAddChildGraphNode(
        place: *mut sys::hipGraphNode_t,
        graph: sys::hipGraph_t,
        after: Dependencies,
        count: usize,
        child: sys::hipGraph_t,
    ) {
        // SAFETY: by HIP's contract.
        unsafe {
            let child = Handle::<Graph>::from_raw(child)?;
            add(place, graph, after, count, Step::Child(child.plan()?))
        }
    }
}
