//! Execution contexts.

use super::base::{self, log};
use super::call::{Bytes, Failure, Result, bytes, call, entries, given, place, take_back};
use super::handle::{Handle, expect};
use crate::engine::{Buffers, DeviceBuffer, Engine, Execution};
use rotini_graph::{Graph, ShapeOverride};
use rotini_wire::engine_config;
use std::ffi::c_void;

/// The execution of a graph, and the graph itself, which executions with other shapes need.
pub struct Context {
    graph: Graph,
    execution: Box<dyn Execution>,
}

/// Reads the engine config. Knobs are ignored with a warning, as hipDNN documents, because these
/// engines have none.
fn read_config<E: Engine>(bytes: &[u8]) -> Result<()> {
    let config = engine_config::decode(bytes).map_err(|error| Failure::bad_parameter(error.to_string()))?;
    expect::<E>(config.engine_id)?;
    for knob in config.knobs.iter().map(|(knob, _)| knob).chain(&config.unreadable) {
        log(base::WARN, &format!("there is no knob '{knob}': it is ignored"));
    }
    Ok(())
}

fn new_context<E: Engine>(handle: &Handle<E>, config: &[u8], graph: &[u8]) -> Result<Context> {
    read_config::<E>(config)?;
    let graph = handle.graph(graph)?;
    let execution = handle.engine.context(&graph).map_err(Failure::internal)?;
    Ok(Context { graph, execution })
}

/// Returns an upper bound of the workspace that a graph will need.
pub unsafe fn workspace<E: Engine>(
    handle: *const Handle<E>,
    config: *const Bytes,
    graph: *const Bytes,
    size: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        let (handle, config, graph) = unsafe {
            (
                given(handle, "handle")?,
                bytes(config, "engine config")?,
                bytes(graph, "graph")?,
            )
        };
        let place = place(size, "place for the size")?;
        read_config::<E>(config)?;
        let graph = handle.graph(graph)?;
        // SAFETY: not null; the rest by the module's contract.
        unsafe { place.write(handle.engine.workspace(&graph)) };
        Ok(())
    })
}

/// Creates a context.
pub unsafe fn create_context<E: Engine>(
    handle: *const Handle<E>,
    config: *const Bytes,
    graph: *const Bytes,
    context: *mut *mut Context,
) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        let (handle, config, graph) = unsafe {
            (
                given(handle, "handle")?,
                bytes(config, "engine config")?,
                bytes(graph, "graph")?,
            )
        };
        let place = place(context, "place for the context")?;
        let context = new_context(handle, config, graph)?;
        // SAFETY: not null; the rest by the module's contract.
        unsafe { place.write(Box::into_raw(Box::new(context))) };
        Ok(())
    })
}

/// Destroys a context.
pub unsafe fn destroy_context<E: Engine>(handle: *const Handle<E>, context: *mut Context) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        unsafe { given(handle, "handle") }?;
        let context = place(context, "context")?;
        // SAFETY: `create_context` made the pointer from a box; it is destroyed once, by the
        // module's contract.
        drop(unsafe { Box::from_raw(context) });
        Ok(())
    })
}

/// Returns the workspace that a context needs.
pub unsafe fn context_workspace<E: Engine>(handle: *const Handle<E>, context: *const Context, size: *mut usize) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        let context = unsafe {
            given(handle, "handle")?;
            given(context, "context")?
        };
        // SAFETY: not null; the rest by the module's contract.
        unsafe { place(size, "place for the size")?.write(context.execution.workspace()) };
        Ok(())
    })
}

fn no_serialization() -> i32 {
    call(|| Err(Failure::not_applicable("this engine does not serialize contexts")))
}

/// Fails, because contexts are not serialized.
pub unsafe fn serialize<E: Engine>(_: *const Handle<E>, _: *const Context, _: *mut Bytes) -> i32 {
    no_serialization()
}

/// Fails, because contexts are not serialized.
pub unsafe fn serialize_with_id<E: Engine>(_: *const Handle<E>, _: i64, _: *const Context, _: *mut Bytes) -> i32 {
    no_serialization()
}

/// Zeroes the argument. There is nothing to free, because contexts are not serialized.
pub unsafe fn destroy_serialized<E: Engine>(handle: *const Handle<E>, bytes: *mut Bytes) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        unsafe {
            given(handle, "handle")?;
            take_back(bytes, "serialized context")
        }
    })
}

/// Fails, because contexts are not serialized.
pub unsafe fn context_from_serialized<E: Engine>(_: *const Handle<E>, _: *const Bytes, _: *mut *mut Context) -> i32 {
    no_serialization()
}

/// Executes a context.
pub unsafe fn execute<E: Engine>(
    handle: *const Handle<E>,
    context: *const Context,
    workspace: *mut c_void,
    buffers: *const DeviceBuffer,
    count: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        let (handle, context, buffers) = unsafe {
            (
                given(handle, "handle")?,
                given(context, "context")?,
                entries(buffers, count, "array of buffers")?,
            )
        };
        // SAFETY: by the module's contract.
        unsafe { run(context.execution.as_ref(), handle.stream(), workspace, buffers) }
    })
}

/// Executes a context with other shapes, by creating a separate context for this execution.
#[expect(clippy::too_many_arguments, reason = "they are the header's")]
pub unsafe fn execute_with_overrides<E: Engine>(
    handle: *const Handle<E>,
    context: *const Context,
    workspace: *mut c_void,
    buffers: *const DeviceBuffer,
    count: u32,
    overrides: u32,
    uids: *const i64,
    ranks: *const u32,
    shapes: *const *const i64,
    strides: *const *const i64,
) -> i32 {
    call(|| {
        // SAFETY: by the module's contract.
        let (handle, context, buffers, uids, ranks, shapes, strides) = unsafe {
            (
                given(handle, "handle")?,
                given(context, "context")?,
                entries(buffers, count, "array of buffers")?,
                entries(uids, overrides, "array of uids")?,
                entries(ranks, overrides, "array of ranks")?,
                entries(shapes, overrides, "array of shapes")?,
                entries(strides, overrides, "array of strides")?,
            )
        };
        if overrides == 0 {
            // SAFETY: by the module's contract.
            return unsafe { run(context.execution.as_ref(), handle.stream(), workspace, buffers) };
        }
        let mut given = Vec::new();
        for (((&uid, &rank), &dims), &strides) in uids.iter().zip(ranks).zip(shapes).zip(strides) {
            // SAFETY: by the module's contract.
            let (dims, strides) = unsafe {
                (
                    entries(dims, rank, "shape")?,
                    entries(strides, rank, "list of strides")?,
                )
            };
            given.push(ShapeOverride { uid, dims, strides });
        }
        let graph = context.graph.with_shapes(&given);
        let graph = graph.map_err(|error| Failure::invalid_value(error.to_string()))?;
        handle.engine.applicable(&graph).map_err(Failure::not_applicable)?;
        let execution = handle.engine.context(&graph).map_err(Failure::internal)?;
        if execution.workspace() > context.execution.workspace() {
            return Err(Failure::internal(
                "these shapes need more workspace than the declared ones",
            ));
        }
        // SAFETY: by the module's contract.
        unsafe { run(execution.as_ref(), handle.stream(), workspace, buffers) }
    })
}

/// Executes the graph, after checking that a workspace was passed if one is needed.
///
/// # Safety
///
/// The same as for [`Execution::execute`].
unsafe fn run(
    execution: &dyn Execution,
    stream: *mut c_void,
    workspace: *mut c_void,
    buffers: &[DeviceBuffer],
) -> Result<()> {
    if workspace.is_null() && execution.workspace() > 0 {
        return Err(Failure::bad_parameter("the workspace is null"));
    }
    // SAFETY: by this function's contract.
    unsafe { execution.execute(Buffers::new(buffers), workspace, stream) }.map_err(Failure::internal)
}
