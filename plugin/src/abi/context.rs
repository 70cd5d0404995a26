//! The functions of an engine plugin that create, serialize, execute and destroy execution contexts
//! (`EnginePluginApi.h`).

use super::given::{destroy, give, take_back};
use super::guard::{guard, own, place, reference};
use super::types::Bytes;
use crate::context::{DeviceBuffer, ExecutionContext};
use crate::engine_id;
use crate::error::Error;
use crate::handle::Handle;
use crate::knobs::Knobs;
use crate::pipeline;
use rotini_graph::ShapeOverride;
use smallvec::SmallVec;
use std::ffi::c_void;

/// Returns the workspace that a graph will need: exact if it is cached, else an upper bound. The
/// result never exceeds the config's limit, because a graph that needs more gets no context.
///
/// # Safety
///
/// `handle`, `config` and `graph` are null or valid, `size` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetWorkspaceSize(
    handle: *const Handle,
    config: *const Bytes,
    graph: *const Bytes,
    size: *mut usize,
) -> i32 {
    guard("hipdnnEnginePluginGetWorkspaceSize", || {
        // SAFETY: by this function's contract.
        let (handle, config, graph, size) = unsafe {
            (
                own(handle, "handle")?,
                reference(config, "engine config")?.as_slice(),
                reference(graph, "graph")?.as_slice(),
                place(size, "size")?,
            )
        };
        let knobs = Knobs::read(config)?;
        let bytes = pipeline::workspace_bytes(handle.runtime(), handle.device()?.as_ref(), graph, &knobs)?;
        // A graph that needs more than the limit is refused when its context is created.
        size.write(to_usize(bytes.min(knobs.workspace_limit))?);
        Ok(())
    })
}

/// Creates a context for a graph: compiles the graph, unless its code is cached.
///
/// # Safety
///
/// `handle`, `config` and `graph` are null or valid, `context` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginCreateExecutionContext(
    handle: *const Handle,
    config: *const Bytes,
    graph: *const Bytes,
    context: *mut *mut ExecutionContext,
) -> i32 {
    guard("hipdnnEnginePluginCreateExecutionContext", || {
        // SAFETY: by this function's contract.
        let (handle, config, graph, place) = unsafe {
            (
                own(handle, "handle")?,
                reference(config, "engine config")?.as_slice(),
                reference(graph, "graph")?.as_slice(),
                place(context, "execution context")?,
            )
        };
        let knobs = Knobs::read(config)?;
        let context = pipeline::create_context(handle.runtime(), &handle.device()?, graph, &knobs)?;
        knobs.expect_workspace(context.workspace_bytes())?;
        place.write(Box::into_raw(Box::new(context)));
        Ok(())
    })
}

/// Destroys a context.
///
/// # Safety
///
/// `handle` is null or valid; `context` is null or was created by this plugin, is not used any more
/// and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroyExecutionContext(
    handle: *const Handle,
    context: *mut ExecutionContext,
) -> i32 {
    guard("hipdnnEnginePluginDestroyExecutionContext", || {
        // SAFETY: by this function's contract.
        unsafe { reference(handle, "handle") }?;
        // SAFETY: the context came from `Box::into_raw` in one of the functions that create
        // contexts, and this function's contract says that it is destroyed once.
        unsafe { destroy(context, "execution context") }
    })
}

/// Returns the exact workspace to pass to a context's executions.
///
/// # Safety
///
/// `handle` and `context` are null or valid, `size` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(
    handle: *const Handle,
    context: *const ExecutionContext,
    size: *mut usize,
) -> i32 {
    guard("hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext", || {
        // SAFETY: by this function's contract.
        let (context, size) = unsafe {
            own(handle, "handle")?;
            (own(context, "execution context")?, place(size, "size")?)
        };
        size.write(to_usize(context.workspace_bytes())?);
        Ok(())
    })
}

/// Serializes a context to bytes that `DestroySerializedExecutionContext` frees.
///
/// # Safety
///
/// `handle` and `context` are null or valid, `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginSerializeExecutionContext(
    handle: *const Handle,
    context: *const ExecutionContext,
    bytes: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginSerializeExecutionContext", || {
        // SAFETY: by this function's contract.
        unsafe { serialize(handle, context, bytes) }
    })
}

/// Serializes a context to bytes that `DestroySerializedExecutionContext` frees. Newer hosts call
/// this function, with the engine's id.
///
/// # Safety
///
/// As [`hipdnnEnginePluginSerializeExecutionContext`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginSerializeExecutionContextWithEngineId(
    handle: *const Handle,
    engine_id: i64,
    context: *const ExecutionContext,
    bytes: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginSerializeExecutionContextWithEngineId", || {
        engine_id::expect(engine_id)?;
        // SAFETY: by this function's contract.
        unsafe { serialize(handle, context, bytes) }
    })
}

/// Frees the bytes of a serialized context, and zeroes the caller's struct.
///
/// # Safety
///
/// `handle` is null or valid; `bytes` is null or what serializing wrote, unchanged, or zeroed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroySerializedExecutionContext(
    handle: *const Handle,
    bytes: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginDestroySerializedExecutionContext", || {
        // SAFETY: by this function's contract.
        unsafe {
            reference(handle, "handle")?;
            take_back(bytes, "serialized execution context")
        }
    })
}

/// Creates a context from serialized bytes, without a compiler and without the cache.
///
/// # Safety
///
/// `handle` and `bytes` are null or valid, `context` is null or valid for a write. Intact bytes
/// contain machine code that runs with all rights of this process, so they must have been made by
/// this plugin, and kept where nobody else could change them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginCreateExecutionContextFromSerialized(
    handle: *const Handle,
    bytes: *const Bytes,
    context: *mut *mut ExecutionContext,
) -> i32 {
    guard("hipdnnEnginePluginCreateExecutionContextFromSerialized", || {
        // SAFETY: by this function's contract.
        let (handle, bytes, place) = unsafe {
            (
                own(handle, "handle")?,
                reference(bytes, "serialized execution context")?.as_slice(),
                place(context, "execution context")?,
            )
        };
        // Hosts of an older generation pass other arguments here, so nothing is written until the
        // bytes are known to be a context.
        let context = pipeline::load_context(handle.runtime(), &handle.device()?, bytes)?;
        place.write(Box::into_raw(Box::new(context)));
        Ok(())
    })
}

/// Executes a context on the handle's stream.
///
/// # Safety
///
/// `handle` and `context` are null or valid, `buffers` is null or valid for `count` reads; the
/// buffers of the graph's tensors and the workspace are valid until the work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginExecuteOpGraph(
    handle: *const Handle,
    context: *const ExecutionContext,
    workspace: *mut c_void,
    buffers: *const DeviceBuffer,
    count: u32,
) -> i32 {
    guard("hipdnnEnginePluginExecuteOpGraph", || {
        // SAFETY: by this function's contract.
        let (handle, context, buffers) = unsafe {
            (
                own(handle, "handle")?,
                own(context, "execution context")?,
                array(buffers, count, "device buffers")?,
            )
        };
        // SAFETY: by this function's contract.
        unsafe { context.execute(handle.stream(), workspace, buffers) }
    })
}

/// Executes a context on the handle's stream with other shapes for some of its buffers. The
/// argument order is that of the header (`EnginePluginApi.h`), which differs from the design
/// document (RFC 0008).
///
/// # Safety
///
/// As [`hipdnnEnginePluginExecuteOpGraph`], where the buffers have the spans of these shapes.
/// `uids`, `ranks`, `shapes` and `strides` are null or valid for `overrides` reads, and each entry
/// of `shapes` and `strides` is null or valid for as many reads as its rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginExecuteOpGraphWithOverrides(
    handle: *const Handle,
    context: *const ExecutionContext,
    workspace: *mut c_void,
    buffers: *const DeviceBuffer,
    count: u32,
    overrides: u32,
    uids: *const i64,
    ranks: *const u32,
    shapes: *const *const i64,
    strides: *const *const i64,
) -> i32 {
    guard("hipdnnEnginePluginExecuteOpGraphWithOverrides", || {
        // SAFETY: by this function's contract.
        let (handle, context, buffers) = unsafe {
            (
                own(handle, "handle")?,
                own(context, "execution context")?,
                array(buffers, count, "device buffers")?,
            )
        };
        if overrides == 0 {
            // SAFETY: by this function's contract.
            return unsafe { context.execute(handle.stream(), workspace, buffers) };
        }
        // SAFETY: by this function's contract.
        let (uids, ranks, shapes, strides) = unsafe {
            (
                array(uids, overrides, "override uids")?,
                array(ranks, overrides, "override ranks")?,
                array(shapes, overrides, "override shapes")?,
                array(strides, overrides, "override strides")?,
            )
        };
        let mut list: SmallVec<[ShapeOverride<'_>; 16]> = SmallVec::new();
        for ((&uid, &rank), (&dims, &strides)) in uids.iter().zip(ranks).zip(shapes.iter().zip(strides)) {
            // SAFETY: by this function's contract.
            let (dims, strides) = unsafe {
                (
                    array(dims, rank, "shape of an override")?,
                    array(strides, rank, "strides of an override")?,
                )
            };
            list.push(ShapeOverride { uid, dims, strides });
        }
        // SAFETY: by this function's contract.
        unsafe { context.execute_with_shapes(handle.runtime(), handle.stream(), workspace, buffers, &list) }
    })
}

/// Returns an array of the caller's as a slice.
///
/// # Safety
///
/// `entries` is null or valid for `count` reads for `'a`.
unsafe fn array<'a, T>(entries: *const T, count: u32, what: &'static str) -> Result<&'a [T], Error> {
    if count == 0 {
        Ok(&[])
    } else if entries.is_null() {
        Err(Error::Null(what))
    } else {
        // SAFETY: not null, and valid by this function's contract. A `u32` number of entries of at
        // most 16 bytes fits an `isize`.
        Ok(unsafe { std::slice::from_raw_parts(entries, count as usize) })
    }
}

/// # Safety
///
/// As [`hipdnnEnginePluginSerializeExecutionContext`].
unsafe fn serialize(handle: *const Handle, context: *const ExecutionContext, bytes: *mut Bytes) -> Result<(), Error> {
    // SAFETY: by this function's contract.
    let (context, place) = unsafe {
        own(handle, "handle")?;
        (
            own(context, "execution context")?,
            place(bytes, "serialized execution context")?,
        )
    };
    give(&place, context.serialize()?);
    Ok(())
}

fn to_usize(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::Internal(format!("{bytes} bytes do not fit the address space")))
}
