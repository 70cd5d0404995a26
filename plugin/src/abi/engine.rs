//! The functions of an engine plugin (`EnginePluginApi.h`).

use super::guard::{Place, caught, guard, own, place, reference};
use super::types::Bytes;
use crate::context::{DeviceBuffer, ExecutionContext};
use crate::engine;
use crate::error::Error;
use crate::fork::{Made, Process};
use crate::handle::Handle;
use crate::knobs::Knobs;
use crate::told;
use rotini_graph::ShapeOverride;
use rotini_wire::engine_details::{self, BehaviorNote, EngineDetails};
use smallvec::SmallVec;
use std::ffi::{c_char, c_void};

/// Gives the engines' ids: writes at most `max` of them and tells how many there are.
///
/// # Safety
///
/// `ids` is null or valid for `max` writes, `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetAllEngineIds(ids: *mut i64, max: u32, count: *mut u32) -> i32 {
    guard("hipdnnEnginePluginGetAllEngineIds", || {
        // SAFETY: by this function's contract.
        let count = unsafe { place(count, "count") }?;
        if max > 0 {
            // SAFETY: by this function's contract; one id fits.
            unsafe { place(ids, "engine ids") }?.write(engine::ID);
        }
        count.write(1);
        Ok(())
    })
}

/// Gives the engine's name.
///
/// # Safety
///
/// `name` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetEngineName(engine_id: i64, name: *mut *const c_char) -> i32 {
    guard("hipdnnEnginePluginGetEngineName", || {
        // SAFETY: by this function's contract.
        let name = unsafe { place(name, "name") }?;
        if engine_id != engine::ID {
            // The documented answer for somebody else's id.
            return Err(Error::ForeignEngine(engine_id));
        }
        name.write(engine::NAME_C.as_ptr());
        Ok(())
    })
}

/// Creates a handle.
///
/// # Safety
///
/// `handle` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginCreate(handle: *mut *mut Handle) -> i32 {
    guard("hipdnnEnginePluginCreate", || {
        // SAFETY: by this function's contract.
        let place = unsafe { place(handle, "handle") }?;
        place.write(Box::into_raw(Box::new(Handle::new()?)));
        Ok(())
    })
}

/// Destroys a handle.
///
/// # Safety
///
/// `handle` is null or was created by this plugin, is not used any more and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroy(handle: *mut Handle) -> i32 {
    guard("hipdnnEnginePluginDestroy", || {
        // SAFETY: it came from `Box::into_raw` in `Create`, and is given back once by this function's contract.
        unsafe { destroy(handle, "handle") }
    })
}

/// Sends the handle's executions to a stream.
///
/// # Safety
///
/// `handle` is null or a living handle of this plugin; the stream lives while work is sent to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginSetStream(handle: *const Handle, stream: *mut c_void) -> i32 {
    guard("hipdnnEnginePluginSetStream", || {
        // SAFETY: by this function's contract.
        unsafe { own(handle, "handle") }?.set_stream(stream)
    })
}

/// Says which engines can run a graph: this one, or none. A graph that cannot be read or run is no error, whatever is wrong: an error ends the
/// search in all other plugins too. That goes for a bug of ours and for a handle from before a `fork`.
///
/// # Safety
///
/// `handle` and `graph` are null or valid; `ids` is null or valid for `max` writes, `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetApplicableEngineIds(
    handle: *const Handle,
    graph: *const Bytes,
    ids: *mut i64,
    max: u32,
    count: *mut u32,
) -> i32 {
    guard("hipdnnEnginePluginGetApplicableEngineIds", || {
        // SAFETY: by this function's contract.
        let (handle, graph, count, ids) = unsafe {
            reference(handle, "handle")?;
            (
                own(handle, "handle"),
                reference(graph, "graph")?.as_slice(),
                place(count, "count")?,
                if max > 0 { Some(place(ids, "engine ids")?) } else { None },
            )
        };
        let checked = caught("hipdnnEnginePluginGetApplicableEngineIds", || {
            let handle = handle?;
            let device = handle.device()?;
            handle.runtime().applicable(graph, &device.target(), device.features())
        });
        if let Err(reason) = checked {
            told::declined(graph, &reason);
            count.write(0);
            return Ok(());
        }
        // At least one fits if there is a place.
        if let Some(ids) = &ids {
            ids.write(engine::ID);
        }
        count.write(u32::from(ids.is_some()));
        Ok(())
    })
}

/// Tells about the engine: bytes that `DestroyEngineDetails` frees.
///
/// # Safety
///
/// `handle` and `graph` are null or valid, `details` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginGetEngineDetails(
    handle: *const Handle,
    engine_id: i64,
    graph: *const Bytes,
    details: *mut Bytes,
) -> i32 {
    guard("hipdnnEnginePluginGetEngineDetails", || {
        // SAFETY: by this function's contract.
        let (handle, details) = unsafe {
            let handle = own(handle, "handle")?;
            reference(graph, "graph")?;
            (handle, place(details, "engine details")?)
        };
        expect_engine(engine_id)?;
        let mut behavior_notes = vec![BehaviorNote::RuntimeCompilation, BehaviorNote::PlanSerialization];
        if handle.device().is_ok_and(|device| device.can_be_captured()) {
            behavior_notes.push(BehaviorNote::GraphCapture);
        }
        let bytes = engine_details::encode(&EngineDetails {
            engine_id,
            name: engine::NAME.to_owned(),
            knobs: Knobs::offered(),
            behavior_notes,
        });
        give(&details, bytes);
        Ok(())
    })
}

/// Frees what `GetEngineDetails` gave, and zeroes it.
///
/// # Safety
///
/// `handle` is null or valid; `details` is null or what `GetEngineDetails` wrote, unchanged, or zeroed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroyEngineDetails(handle: *const Handle, details: *mut Bytes) -> i32 {
    guard("hipdnnEnginePluginDestroyEngineDetails", || {
        // SAFETY: by this function's contract.
        unsafe {
            reference(handle, "handle")?;
            take_back(details, "engine details")
        }
    })
}

/// Tells the workspace that a graph will need: exactly if it is cached, else an upper bound. It is no more than the config's limit, because a
/// graph that needs more than that gets no context.
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
        let bytes = handle.runtime().workspace_bytes(handle.device()?.as_ref(), graph)?;
        // What needs more than it may have is refused when its context is created.
        size.write(to_usize(bytes.min(knobs.workspace_limit))?);
        Ok(())
    })
}

/// Compiles a graph, or finds it compiled.
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
        let context = handle.runtime().create_context(&handle.device()?, graph)?;
        knobs.expect_workspace(context.workspace_bytes())?;
        place.write(Box::into_raw(Box::new(context)));
        Ok(())
    })
}

/// Destroys a context.
///
/// # Safety
///
/// `handle` is null or valid; `context` is null or was created by this plugin, is not used any more and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnEnginePluginDestroyExecutionContext(
    handle: *const Handle,
    context: *mut ExecutionContext,
) -> i32 {
    guard("hipdnnEnginePluginDestroyExecutionContext", || {
        // SAFETY: by this function's contract.
        unsafe { reference(handle, "handle") }?;
        // SAFETY: it came from `Box::into_raw` in `CreateExecutionContext`, and is given back once by this function's contract.
        unsafe { destroy(context, "execution context") }
    })
}

/// Tells the workspace that a context needs, exactly.
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

/// Writes a context as bytes that `DestroySerializedExecutionContext` frees.
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

/// Writes a context as bytes that `DestroySerializedExecutionContext` frees; newer hosts name the engine.
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
        expect_engine(engine_id)?;
        // SAFETY: by this function's contract.
        unsafe { serialize(handle, context, bytes) }
    })
}

/// Frees what serializing a context gave, and zeroes it.
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

/// Creates a context from the bytes of another, without a compiler and without the cache.
///
/// # Safety
///
/// `handle` and `bytes` are null or valid, `context` is null or valid for a write. Intact bytes hold machine code that runs with all
/// rights of this process: they were made by this plugin, and kept where nobody else could change them.
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
        // Hosts of an older generation have other arguments here: until the bytes are known to be a context, nothing is written.
        let context = handle.runtime().load_context(&handle.device()?, bytes)?;
        place.write(Box::into_raw(Box::new(context)));
        Ok(())
    })
}

/// Executes a context on the handle's stream.
///
/// # Safety
///
/// `handle` and `context` are null or valid, `buffers` is null or valid for `count` reads; the buffers of the graph's tensors and the
/// workspace are valid until the work is done.
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

/// Executes a context on the handle's stream with other shapes of some of its buffers. The argument order is that of the header
/// (`EnginePluginApi.h`); the design document (RFC 0008) has another.
///
/// # Safety
///
/// As [`hipdnnEnginePluginExecuteOpGraph`], with the spans that the buffers have with these shapes. `uids`, `ranks`, `shapes` and
/// `strides` are null or valid for `overrides` reads, each entry of the last two is null or valid for as many reads as its rank.
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

/// Destroys what was given to the host. In a child of the process that made it, what it is made of may have no threads and be locked for
/// ever: there it stays.
///
/// # Safety
///
/// The pointer is null or came from [`Box::into_raw`], and is not used any more.
unsafe fn destroy<T: Made>(pointer: *mut T, what: &'static str) -> Result<(), Error> {
    // SAFETY: by this function's contract.
    if unsafe { reference(pointer.cast_const(), what) }?.made_in() == Process::current() {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(pointer) });
    }
    Ok(())
}

/// The entries of an array of the caller's.
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
        // SAFETY: not null, and valid by this function's contract; a u32 of entries of at most 16 bytes fits an `isize`.
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

/// Hands bytes to the caller, who gives them back to [`take_back`].
fn give(place: &Place<Bytes>, bytes: Vec<u8>) {
    let bytes = bytes.into_boxed_slice();
    let length = bytes.len();
    place.write(Bytes {
        pointer: Box::into_raw(bytes).cast::<c_void>().cast_const(),
        length,
    });
}

/// Frees what [`give`] wrote, and zeroes it.
///
/// # Safety
///
/// `bytes` is null or what [`give`] wrote, unchanged, or zeroed.
unsafe fn take_back(bytes: *mut Bytes, what: &'static str) -> Result<(), Error> {
    // SAFETY: by this function's contract.
    let (given, place) = unsafe { (*reference(bytes.cast_const(), what)?, place(bytes, what)?) };
    place.write(Bytes::EMPTY);
    if !given.pointer.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(given.pointer.cast_mut().cast::<u8>(), given.length);
        // SAFETY: the pair came from `Box::into_raw` of a boxed slice of this length.
        drop(unsafe { Box::from_raw(slice) });
    }
    Ok(())
}

fn expect_engine(engine_id: i64) -> Result<(), Error> {
    if engine_id == engine::ID {
        Ok(())
    } else {
        Err(Error::UnknownEngine(engine_id))
    }
}

fn to_usize(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes).map_err(|_| Error::Internal(format!("{bytes} bytes do not fit the address space")))
}
