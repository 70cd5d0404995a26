//! The HAL device that programs see on a GPU: a wrapper around IREE's own (stock) device that can
//! also record.
//!
//! Every function of the device's table is forwarded to the stock device, with three exceptions.
//! Command buffers are IREE's deferred ones, a list of commands that can be applied to any other
//! command buffer. While the calling thread sets up a module, queue operations are forwarded and
//! the semaphores that they will signal are noted, so that the setup can be waited for. While the
//! calling thread records, queue operations are noted on a [`Tape`] and reach no device.

use std::{cell::Cell, ffi::c_void, ptr};

use super::tape::{Tape, refuse};
use crate::{
    result::Status,
    runtime::{handle::Handle, wait::wait},
};
use iree_sys::runtime as sys;

/// The front device, with IREE's layout: reference count and table come first.
#[repr(C)]
struct Front {
    resource: sys::iree_hal_resource_t,
    stock: *mut sys::iree_hal_device_t,
    /// Memory of the deferred command buffers, all of which are gone before the device.
    blocks: sys::iree_arena_block_pool_t,
}

/// Bytes per block of the pool. A command buffer of this project has some hundred bytes.
const BLOCK_BYTES: usize = 4096;

/// The treatment of queue operations of the calling thread.
#[derive(Clone, Copy)]
enum Mode {
    /// They are forwarded.
    Work,
    /// They are forwarded, and their signals are noted, to be waited for.
    Setup(*mut Vec<Signal>),
    /// They are noted on a tape instead of executed.
    Record(*mut Tape),
}

/// A semaphore, and the value that it will reach.
type Signal = (Handle<sys::iree_hal_semaphore_t>, u64);

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Work) };
}

/// Runs `body` in a mode, and restores the previous mode afterwards, even after a panic.
fn within<R>(mode: Mode, body: impl FnOnce() -> R) -> R {
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(self.0);
        }
    }
    let _restore = Restore(MODE.replace(mode));
    body()
}

/// Runs `body`, which sets up a module on the calling thread, and waits for the work that it
/// queued.
pub(in crate::runtime) fn setup<R>(body: impl FnOnce() -> Result<R, Status>) -> Result<R, Status> {
    let mut signals = Vec::new();
    let result = within(Mode::Setup(&raw mut signals), body)?;
    for (semaphore, value) in signals {
        // SAFETY: the semaphore is alive.
        unsafe { wait(semaphore.as_ptr(), value)? };
    }
    Ok(result)
}

/// Runs `body`, which invokes a function on the calling thread, with all work noted on `tape`
/// instead of done.
pub(super) fn record<R>(tape: &mut Tape, body: impl FnOnce() -> R) -> R {
    within(Mode::Record(tape), body)
}

/// Creates a front device that owns `stock`.
pub(in crate::runtime) fn wrap(
    stock: Handle<sys::iree_hal_device_t>,
) -> Result<Handle<sys::iree_hal_device_t>, Status> {
    let mut front = Box::new(Front {
        resource: sys::iree_hal_resource_t::default(),
        stock: stock.into_raw(),
        blocks: sys::iree_arena_block_pool_t::default(),
    });
    // SAFETY: the resource and the block pool are initialised in place and stay at this address
    // until `destroy`; the reference that the count starts with is the one that is returned.
    unsafe {
        sys::iree_hal_resource_initialize((&raw const TABLE).cast(), &mut front.resource);
        sys::iree_arena_block_pool_initialize(BLOCK_BYTES, sys::iree_allocator_system(), &mut front.blocks);
        Handle::create(|out| {
            *out = Box::into_raw(front).cast();
            ptr::null_mut()
        })
    }
}

/// Returns the stock device behind a front device.
///
/// # Safety
///
/// `device` was made by [`wrap`] and is alive.
pub(super) unsafe fn stock(device: *mut sys::iree_hal_device_t) -> *mut sys::iree_hal_device_t {
    // SAFETY: by this function's contract it is a `Front`.
    unsafe { (*device.cast::<Front>()).stock }
}

unsafe extern "C" fn destroy(device: *mut sys::iree_hal_device_t) {
    // SAFETY: the last reference is gone, so nothing else uses this box, which was made in `wrap`;
    // command buffers hold no block any more, since they must not outlive their device.
    unsafe {
        let mut front = Box::from_raw(device.cast::<Front>());
        sys::iree_arena_block_pool_deinitialize(&mut front.blocks);
        sys::iree_hal_device_release(front.stock);
    }
}

unsafe extern "C" fn create_command_buffer(
    device: *mut sys::iree_hal_device_t,
    mode: sys::iree_hal_command_buffer_mode_t,
    categories: sys::iree_hal_command_category_t,
    affinity: sys::iree_hal_queue_affinity_t,
    bindings: usize,
    out: *mut *mut sys::iree_hal_command_buffer_t,
) -> sys::iree_status_t {
    // SAFETY: IREE calls with a device of this table; the pool lives as long as the device.
    unsafe {
        let front = device.cast::<Front>();
        sys::iree_hal_deferred_command_buffer_create(
            sys::iree_hal_device_allocator((*front).stock),
            mode,
            categories,
            affinity,
            bindings,
            &raw mut (*front).blocks,
            sys::iree_allocator_system(),
            out,
        )
    }
}

/// Calls a function of the stock device's table.
macro_rules! call_stock {
    ($device:ident, $name:ident, $($argument:expr),*) => {{
        // SAFETY: IREE calls with a device of this table, whose stock device is alive; the
        // arguments are forwarded unchanged.
        unsafe {
            let stock = stock($device);
            let table = (*stock.cast::<sys::iree_hal_resource_t>()).vtable.cast::<sys::iree_hal_device_vtable_t>();
            (*table).$name.map(|function| function(stock, $($argument),*))
        }
    }};
}

/// Returns the status for a function that the driver does not implement.
fn missing(name: &str) -> sys::iree_status_t {
    refuse(&format!("the driver has no `{name}`"))
}

/// Functions that are forwarded and return a status.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {$(
        unsafe extern "C" fn $name(device: *mut sys::iree_hal_device_t, $($argument: $type),*) -> sys::iree_status_t {
            call_stock!(device, $name, $($argument),*).unwrap_or_else(|| missing(stringify!($name)))
        }
    )+};
}

/// Functions that are forwarded and return another type.
macro_rules! pass_on_value {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $default:expr;)+) => {$(
        unsafe extern "C" fn $name(device: *mut sys::iree_hal_device_t, $($argument: $type),*) -> $result {
            call_stock!(device, $name, $($argument),*).unwrap_or($default)
        }
    )+};
}

/// Queue operations, which are forwarded or recorded. The block after the parameters records the
/// operation; `refused` marks an operation that a launch plan cannot contain.
macro_rules! queue {
    (@record $name:ident refused, $tape:ident, $device:ident, $($argument:ident),*) => {
        refuse(concat!("`", stringify!($name), "` is not part of a launch plan"))
    };
    (@record $name:ident $body:block, $tape:ident, $device:ident, $($argument:ident),*) => { $body };
    ($($name:ident($device:ident, $tape:ident, $wait:ident, $signal:ident, $($argument:ident: $type:ty),*) $record:tt)+) => {$(
        unsafe extern "C" fn $name(
            $device: *mut sys::iree_hal_device_t,
            affinity: sys::iree_hal_queue_affinity_t,
            $wait: sys::iree_hal_semaphore_list_t,
            $signal: sys::iree_hal_semaphore_list_t,
            $($argument: $type),*
        ) -> sys::iree_status_t {
            match MODE.get() {
                Mode::Record(tape) => {
                    // SAFETY: `record` has set the pointer on this thread, and its caller holds the
                    // tape exclusively and is in that call; no other reference to the tape exists
                    // while this one is used.
                    #[allow(unused_variables, reason = "not needed where the operation is refused")]
                    let $tape = unsafe { &mut *tape };
                    $(let _ = &$argument;)*
                    // SAFETY: the lists are IREE's, valid for the call.
                    let waited = unsafe { expect_reached($wait) };
                    if !waited.is_null() {
                        return waited;
                    }
                    let status = queue!(@record $name $record, $tape, $device, $($argument),*);
                    if !status.is_null() {
                        return status;
                    }
                    // SAFETY: the list is IREE's, valid for the call. A noted operation counts as
                    // done, since the replay is in this order.
                    unsafe { sys::iree_hal_semaphore_list_signal($signal, ptr::null()) }
                }
                Mode::Setup(signals) => {
                    // SAFETY: as for the tape, with `setup`.
                    unsafe { note($signal, &mut *signals) };
                    call_stock!($device, $name, affinity, $wait, $signal, $($argument),*)
                        .unwrap_or_else(|| missing(stringify!($name)))
                }
                Mode::Work => call_stock!($device, $name, affinity, $wait, $signal, $($argument),*)
                    .unwrap_or_else(|| missing(stringify!($name))),
            }
        }
    )+};
}

/// Returns a failure unless every semaphore has reached its value: a recording cannot wait for work
/// outside of it.
///
/// # Safety
///
/// The list is valid for the call.
unsafe fn expect_reached(list: sys::iree_hal_semaphore_list_t) -> sys::iree_status_t {
    for index in 0..list.count {
        let mut value = 0;
        // SAFETY: the list has `count` entries.
        let (status, wanted) = unsafe {
            (
                sys::iree_hal_semaphore_query(*list.semaphores.add(index), &mut value),
                *list.payload_values.add(index),
            )
        };
        if !status.is_null() {
            return status;
        }
        if value < wanted {
            return refuse("it waits for something that is not its own work");
        }
    }
    ptr::null_mut()
}

/// Notes the semaphores that will be signalled, and their values.
///
/// # Safety
///
/// The list is valid for the call.
unsafe fn note(list: sys::iree_hal_semaphore_list_t, signals: &mut Vec<Signal>) {
    for index in 0..list.count {
        // SAFETY: the list has `count` entries, semaphores that are alive.
        unsafe {
            let semaphore = Handle::retain(*list.semaphores.add(index), sys::iree_hal_semaphore_retain);
            signals.extend(semaphore.map(|semaphore| (semaphore, *list.payload_values.add(index))));
        }
    }
}

pass_on! {
    trim();
    query_i64(category: sys::iree_string_view_t, key: sys::iree_string_view_t, out: *mut i64);
    query_capabilities(out: *mut sys::iree_hal_device_capabilities_t);
    refine_topology_edge(target: *mut sys::iree_hal_device_t, edge: *mut sys::iree_hal_topology_edge_t);
    assign_topology_info(info: *const sys::iree_hal_device_topology_info_t);
    create_channel(
        affinity: sys::iree_hal_queue_affinity_t,
        params: sys::iree_hal_channel_params_t,
        out: *mut *mut sys::iree_hal_channel_t
    );
    create_event(
        affinity: sys::iree_hal_queue_affinity_t,
        flags: sys::iree_hal_event_flags_t,
        out: *mut *mut sys::iree_hal_event_t
    );
    create_executable_cache(identifier: sys::iree_string_view_t, out: *mut *mut sys::iree_hal_executable_cache_t);
    import_file(
        affinity: sys::iree_hal_queue_affinity_t,
        access: sys::iree_hal_memory_access_t,
        handle: *mut sys::iree_io_file_handle_t,
        flags: sys::iree_hal_external_file_flags_t,
        out: *mut *mut sys::iree_hal_file_t
    );
    create_semaphore(
        affinity: sys::iree_hal_queue_affinity_t,
        value: u64,
        flags: sys::iree_hal_semaphore_flags_t,
        out: *mut *mut sys::iree_hal_semaphore_t
    );
    query_queue_pool_backend(affinity: sys::iree_hal_queue_affinity_t, out: *mut sys::iree_hal_queue_pool_backend_t);
    queue_flush(affinity: sys::iree_hal_queue_affinity_t);
    profiling_begin(options: *const sys::iree_hal_device_profiling_options_t);
    profiling_flush();
    profiling_end();
    external_capture_begin(options: *const sys::iree_hal_device_external_capture_options_t);
    external_capture_end();
}

pass_on_value! {
    id() -> sys::iree_string_view_t = sys::iree_string_view_t::default();
    // SAFETY: returns a structure by value.
    host_allocator() -> sys::iree_allocator_t = unsafe { sys::iree_allocator_system() };
    device_allocator() -> *mut sys::iree_hal_allocator_t = ptr::null_mut();
    replace_device_allocator(allocator: *mut sys::iree_hal_allocator_t) -> () = ();
    replace_channel_provider(provider: *mut sys::iree_hal_channel_provider_t) -> () = ();
    topology_info() -> *const sys::iree_hal_device_topology_info_t = ptr::null();
    query_semaphore_compatibility(semaphore: *mut sys::iree_hal_semaphore_t) -> sys::iree_hal_semaphore_compatibility_t = 0;
}

queue! {
    queue_alloca(
        device, tape, wait, signal,
        pool: *mut sys::iree_hal_pool_t, params: sys::iree_hal_buffer_params_t, bytes: sys::iree_device_size_t,
        flags: sys::iree_hal_alloca_flags_t, out: *mut *mut sys::iree_hal_buffer_t
    ) refused
    queue_dealloca(
        device, tape, wait, signal, buffer: *mut sys::iree_hal_buffer_t, flags: sys::iree_hal_dealloca_flags_t
    ) refused
    queue_fill(
        device, tape, wait, signal,
        target: *mut sys::iree_hal_buffer_t, offset: sys::iree_device_size_t, bytes: sys::iree_device_size_t,
        pattern: *const c_void, pattern_bytes: usize, flags: sys::iree_hal_fill_flags_t
    ) {
        // SAFETY: the buffer and the pattern are valid for the call.
        unsafe { tape.fill(&reference(target, offset, bytes), pattern, pattern_bytes) }
    }
    queue_update(
        device, tape, wait, signal,
        source: *const c_void, source_offset: usize, target: *mut sys::iree_hal_buffer_t,
        offset: sys::iree_device_size_t, bytes: sys::iree_device_size_t, flags: sys::iree_hal_update_flags_t
    ) refused
    queue_copy(
        device, tape, wait, signal,
        source: *mut sys::iree_hal_buffer_t, source_offset: sys::iree_device_size_t,
        target: *mut sys::iree_hal_buffer_t, offset: sys::iree_device_size_t, bytes: sys::iree_device_size_t,
        flags: sys::iree_hal_copy_flags_t
    ) {
        // SAFETY: the buffers are valid for the call.
        unsafe { tape.copy(&reference(source, source_offset, bytes), &reference(target, offset, bytes)) }
    }
    queue_read(
        device, tape, wait, signal,
        source: *mut sys::iree_hal_file_t, source_offset: u64, target: *mut sys::iree_hal_buffer_t,
        offset: sys::iree_device_size_t, bytes: sys::iree_device_size_t, flags: sys::iree_hal_read_flags_t
    ) refused
    queue_write(
        device, tape, wait, signal,
        source: *mut sys::iree_hal_buffer_t, source_offset: sys::iree_device_size_t,
        target: *mut sys::iree_hal_file_t, offset: u64, bytes: sys::iree_device_size_t, flags: sys::iree_hal_write_flags_t
    ) refused
    queue_host_call(
        device, tape, wait, signal,
        call: sys::iree_hal_host_call_t, arguments: *const u64, flags: sys::iree_hal_host_call_flags_t
    ) refused
    queue_dispatch(
        device, tape, wait, signal,
        executable: *mut sys::iree_hal_executable_t, function: sys::iree_hal_executable_function_t,
        config: sys::iree_hal_dispatch_config_t, constants: sys::iree_const_byte_span_t,
        bindings: sys::iree_hal_buffer_ref_list_t, flags: sys::iree_hal_dispatch_flags_t
    ) {
        // SAFETY: everything is valid for the call.
        unsafe { tape.dispatch(executable, function, &config, constants, bindings, flags) }
    }
    queue_execute(
        device, tape, wait, signal,
        command_buffer: *mut sys::iree_hal_command_buffer_t, bindings: sys::iree_hal_buffer_binding_table_t,
        flags: sys::iree_hal_execute_flags_t
    ) {
        if command_buffer.is_null() {
            // A barrier has no effect but that of its semaphores.
            ptr::null_mut()
        } else {
            // SAFETY: `create_command_buffer` makes deferred ones only; the table is valid for the
            // call.
            unsafe { tape.apply(command_buffer, bindings) }
        }
    }
}

/// Returns a reference to a range of a buffer.
fn reference(
    buffer: *mut sys::iree_hal_buffer_t,
    offset: sys::iree_device_size_t,
    length: sys::iree_device_size_t,
) -> sys::iree_hal_buffer_ref_t {
    sys::iree_hal_buffer_ref_t {
        buffer,
        offset,
        length,
        ..Default::default()
    }
}

static TABLE: sys::iree_hal_device_vtable_t = sys::iree_hal_device_vtable_t {
    destroy: Some(destroy),
    id: Some(id),
    host_allocator: Some(host_allocator),
    device_allocator: Some(device_allocator),
    replace_device_allocator: Some(replace_device_allocator),
    replace_channel_provider: Some(replace_channel_provider),
    trim: Some(trim),
    query_i64: Some(query_i64),
    query_capabilities: Some(query_capabilities),
    topology_info: Some(topology_info),
    refine_topology_edge: Some(refine_topology_edge),
    assign_topology_info: Some(assign_topology_info),
    create_channel: Some(create_channel),
    create_command_buffer: Some(create_command_buffer),
    create_event: Some(create_event),
    create_executable_cache: Some(create_executable_cache),
    import_file: Some(import_file),
    create_semaphore: Some(create_semaphore),
    query_semaphore_compatibility: Some(query_semaphore_compatibility),
    query_queue_pool_backend: Some(query_queue_pool_backend),
    queue_alloca: Some(queue_alloca),
    queue_dealloca: Some(queue_dealloca),
    queue_fill: Some(queue_fill),
    queue_update: Some(queue_update),
    queue_copy: Some(queue_copy),
    queue_read: Some(queue_read),
    queue_write: Some(queue_write),
    queue_host_call: Some(queue_host_call),
    queue_dispatch: Some(queue_dispatch),
    queue_execute: Some(queue_execute),
    queue_flush: Some(queue_flush),
    profiling_begin: Some(profiling_begin),
    profiling_flush: Some(profiling_flush),
    profiling_end: Some(profiling_end),
    external_capture_begin: Some(external_capture_begin),
    external_capture_end: Some(external_capture_end),
};
