//! The notes of a recording: the commands of an invocation, with its buffers expressed as
//! parameters and offsets.
//!
//! Parameters are recognised by their addresses. Each is bound to an imaginary range of device
//! memory that no real allocation can overlap, because its addresses are not canonical; every other
//! address in a command is the module's own memory.

use std::{ffi::c_void, mem, ptr, slice};

use super::{
    command::{Address, Command, Function, KernelArgument, Launch, Word},
    front,
};
use crate::{
    result::{Code, Status, check},
    runtime::{
        DeviceKind,
        handle::{Handle, view},
    },
};
use iree_sys::runtime as sys;

/// Start address of the imaginary memory. On x86-64 and AArch64 no address has any of bits 56 to 62
/// set while bit 63 is clear.
const IMAGINARY: u64 = 0x5a00_0000_0000_0000;

/// Distance in bytes between the imaginary ranges of two parameters: more than any parameter has.
const STRIDE: u64 = 1 << 44;

/// The recording in progress.
pub(super) struct Tape {
    kind: DeviceKind,
    /// The device to which every buffer in a command must belong.
    stock: *mut sys::iree_hal_device_t,
    /// Size of each parameter in bytes.
    sizes: Vec<u64>,
    /// Number of the imaginary range of the first parameter.
    first: u64,
    pub(super) commands: Vec<Command>,
    /// The module's own buffers that commands refer to.
    pub(super) buffers: Vec<Handle<sys::iree_hal_buffer_t>>,
}

impl Tape {
    /// Creates a tape for a function of `sizes.len()` parameters, on a front device.
    ///
    /// The imaginary ranges are numbered from `first` on; tapes whose numbers do not overlap have
    /// no imaginary address in common.
    pub(super) fn new(kind: DeviceKind, device: *mut sys::iree_hal_device_t, sizes: Vec<u64>, first: u64) -> Self {
        Tape {
            kind,
            // SAFETY: GPU devices are made by `front::wrap`, and the session that is recorded keeps
            // this one alive.
            stock: unsafe { front::stock(device) },
            sizes,
            first,
            commands: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// Returns the imaginary address of a parameter.
    pub(super) fn imaginary(&self, index: usize) -> *mut c_void {
        let range = self.first.wrapping_add(index as u64);
        ptr::without_provenance_mut(IMAGINARY.wrapping_add(range.wrapping_mul(STRIDE)) as usize)
    }

    /// Resolves a range of `bytes` bytes at an address to a parameter, or returns `None` if the
    /// address is in none.
    fn resolve(&self, address: u64, bytes: u64) -> Result<Option<Address>, Status> {
        let Some(distance) = address.checked_sub(self.imaginary(0).addr() as u64) else {
            return Ok(None);
        };
        let index = usize::try_from(distance / STRIDE).unwrap_or(usize::MAX);
        let Some(&size) = self.sizes.get(index) else {
            return Ok(None);
        };
        let offset = distance % STRIDE;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(refused(format!(
                "it uses bytes {offset} to {offset}+{bytes} of parameter {index}, which has {size}"
            )));
        }
        Ok(Some(Address::Parameter { index, offset }))
    }

    /// Returns the address that a buffer reference denotes, and its size in bytes.
    ///
    /// # Safety
    ///
    /// The reference is direct, and its buffer alive or null.
    unsafe fn address(&mut self, reference: &sys::iree_hal_buffer_ref_t) -> Result<(Address, usize), Status> {
        if reference.buffer.is_null() {
            return Err(refused("it uses a buffer that is not there"));
        }
        // SAFETY: the buffer is alive.
        let (owner, length) = unsafe {
            (
                sys::iree_hal_buffer_allocation_placement(reference.buffer).device,
                sys::iree_hal_buffer_byte_length(reference.buffer),
            )
        };
        // The following calls assume that the buffer was made by the driver.
        if owner != self.stock {
            return Err(refused("it uses a buffer that is not the device's"));
        }
        // The largest length means the rest of the buffer.
        let bytes = if reference.length == sys::iree_device_size_t::MAX {
            length.saturating_sub(reference.offset)
        } else {
            reference.length
        };
        // SAFETY: the buffer is alive, and was made by the driver, since it belongs to its device.
        let base = unsafe {
            match self.kind {
                DeviceKind::Hip => sys::rotini_hip_address(reference.buffer),
                #[cfg(feature = "cuda")]
                DeviceKind::Cuda => sys::rotini_cuda_address(reference.buffer),
                other => return Err(refused(format!("{other} is no GPU driver"))),
            }
        };
        let address = base.wrapping_add(reference.offset as u64);
        if let Some(parameter) = self.resolve(address, bytes as u64)? {
            return Ok((parameter, bytes));
        }
        // SAFETY: alive.
        self.buffers
            .extend(unsafe { Handle::retain(reference.buffer, sys::iree_hal_buffer_retain) });
        Ok((Address::Fixed(address), bytes))
    }

    /// Notes the commands of a deferred command buffer.
    ///
    /// # Safety
    ///
    /// `commands` is a deferred command buffer, and it and the table are valid for the call.
    pub(super) unsafe fn apply(
        &mut self,
        commands: *mut sys::iree_hal_command_buffer_t,
        bindings: sys::iree_hal_buffer_binding_table_t,
    ) -> sys::iree_status_t {
        // SAFETY: the recorder is initialised before it is used, and nothing keeps a reference to
        // it: applying only calls the functions of its table.
        unsafe {
            let mut recorder: Recorder = mem::zeroed();
            recorder.tape = self;
            sys::iree_hal_command_buffer_initialize(
                sys::iree_hal_device_allocator((*recorder.tape).stock),
                sys::IREE_HAL_COMMAND_BUFFER_MODE_ONE_SHOT | sys::IREE_HAL_COMMAND_BUFFER_MODE_UNVALIDATED,
                sys::IREE_HAL_COMMAND_CATEGORY_ANY as _,
                sys::iree_hal_queue_affinity_t::MAX,
                0,
                ptr::null_mut(),
                &raw const TABLE,
                &raw mut recorder.base,
            );
            sys::iree_hal_deferred_command_buffer_apply(commands, &raw mut recorder.base, bindings)
        }
    }

    /// Notes a dispatch.
    ///
    /// # Safety
    ///
    /// The executable belongs to the device, and all arguments are valid for the call.
    pub(super) unsafe fn dispatch(
        &mut self,
        executable: *mut sys::iree_hal_executable_t,
        function: sys::iree_hal_executable_function_t,
        config: &sys::iree_hal_dispatch_config_t,
        constants: sys::iree_const_byte_span_t,
        bindings: sys::iree_hal_buffer_ref_list_t,
        flags: sys::iree_hal_dispatch_flags_t,
    ) -> sys::iree_status_t {
        let mut launch = || {
            // Any flag but these two hints changes the meaning of the arguments.
            let hints = sys::IREE_HAL_DISPATCH_FLAG_ALLOW_INLINE_EXECUTION as u64
                | sys::IREE_HAL_DISPATCH_FLAG_BORROW_RESOURCE_LIFETIMES as u64;
            if flags & !hints != 0 {
                return Err(refused(format!("it dispatches with flags {flags:#x}")));
            }
            // SAFETY: this function's contract is that of the calls.
            let (kernel, parameters) = unsafe {
                let kernel = self.kernel(executable, function)?;
                (kernel, self.parameters(&kernel, constants, bindings)?)
            };
            let mut block = kernel.block;
            for (own, &given) in block.iter_mut().zip(&config.workgroup_size) {
                if given != 0 {
                    *own = given;
                }
            }
            // A grid without workgroups does nothing, and no driver accepts it.
            let empty = config.workgroup_count.contains(&0);
            Ok((!empty).then_some(Command::Launch(Launch {
                function: Function(kernel.function),
                grid: config.workgroup_count,
                block,
                shared_bytes: kernel
                    .shared_bytes
                    .saturating_add(config.dynamic_workgroup_local_memory),
                parameters,
            })))
        };
        let launch = launch();
        self.note(launch)
    }

    /// Returns the driver's data about a kernel.
    ///
    /// # Safety
    ///
    /// The executable belongs to the device and is alive.
    unsafe fn kernel(
        &self,
        executable: *mut sys::iree_hal_executable_t,
        function: sys::iree_hal_executable_function_t,
    ) -> Result<sys::rotini_kernel_t, Status> {
        let mut kernel = sys::rotini_kernel_t::default();
        // SAFETY: the executable was made by the driver, by this function's contract.
        unsafe {
            check(match self.kind {
                DeviceKind::Hip => sys::rotini_hip_kernel(executable, function, &mut kernel),
                #[cfg(feature = "cuda")]
                DeviceKind::Cuda => sys::rotini_cuda_kernel(executable, function, &mut kernel),
                other => return Err(refused(format!("{other} is no GPU driver"))),
            })?;
        }
        Ok(kernel)
    }

    /// Returns a kernel's arguments: its bindings, then its constants.
    ///
    /// # Safety
    ///
    /// Both lists are valid for the call, and the references in them are direct.
    unsafe fn parameters(
        &mut self,
        kernel: &sys::rotini_kernel_t,
        constants: sys::iree_const_byte_span_t,
        bindings: sys::iree_hal_buffer_ref_list_t,
    ) -> Result<Vec<KernelArgument>, Status> {
        // SAFETY: both are valid by this function's contract, and IREE aligns both.
        let (bindings, constants) = unsafe { (view_of(bindings.values, bindings.count), bytes_of(constants)) };
        let words = constants.chunks_exact(4);
        if bindings.len() != kernel.bindings as usize
            || words.len() != kernel.constants as usize
            || !words.remainder().is_empty()
        {
            return Err(refused(format!(
                "a kernel of {} pointers and {} constants is given {} and {} bytes",
                kernel.bindings,
                kernel.constants,
                bindings.len(),
                constants.len()
            )));
        }
        let mut parameters = Vec::with_capacity(bindings.len() + words.len());
        for binding in bindings {
            // SAFETY: direct by this function's contract.
            let (address, _) = unsafe { self.address(binding)? };
            parameters.push(KernelArgument::Address(address));
        }
        parameters.extend(words.map(|word| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(word);
            KernelArgument::Word(Word::Constant(u32::from_ne_bytes(bytes)))
        }));
        Ok(parameters)
    }

    /// Notes a fill.
    ///
    /// # Safety
    ///
    /// The reference is direct; `pattern` is valid for `pattern_bytes` bytes.
    pub(super) unsafe fn fill(
        &mut self,
        target: &sys::iree_hal_buffer_ref_t,
        pattern: *const c_void,
        pattern_bytes: usize,
    ) -> sys::iree_status_t {
        let mut fill = || {
            // SAFETY: this function's contract is that of the calls.
            let (target, bytes) = unsafe { self.address(target)? };
            let fits = matches!(pattern_bytes, 1 | 2 | 4) && bytes.is_multiple_of(pattern_bytes);
            let mut word = [0; 4];
            let (Some(low_bytes), true) = (word.get_mut(..pattern_bytes), fits) else {
                return Err(refused(format!("it fills {bytes} bytes with {pattern_bytes}")));
            };
            // SAFETY: valid for that many bytes by this function's contract.
            low_bytes.copy_from_slice(unsafe { slice::from_raw_parts(pattern.cast(), pattern_bytes) });
            Ok((bytes != 0).then_some(Command::Fill {
                target,
                pattern: Word::Constant(u32::from_le_bytes(word)),
                pattern_bytes: pattern_bytes as u8,
                count: bytes / pattern_bytes,
            }))
        };
        let fill = fill();
        self.note(fill)
    }

    /// Notes a copy.
    ///
    /// # Safety
    ///
    /// The references are direct.
    pub(super) unsafe fn copy(
        &mut self,
        source: &sys::iree_hal_buffer_ref_t,
        target: &sys::iree_hal_buffer_ref_t,
    ) -> sys::iree_status_t {
        let mut copy = || {
            // SAFETY: this function's contract is that of the calls.
            let ((source, given), (target, bytes)) = unsafe { (self.address(source)?, self.address(target)?) };
            if given != bytes {
                return Err(refused(format!("it copies {given} bytes to {bytes}")));
            }
            Ok((bytes != 0).then_some(Command::Copy { source, target, bytes }))
        };
        let copy = copy();
        self.note(copy)
    }

    fn note(&mut self, command: Result<Option<Command>, Status>) -> sys::iree_status_t {
        match command {
            Ok(command) => {
                self.commands.extend(command);
                ptr::null_mut()
            }
            Err(status) => refuse(status.message()),
        }
    }
}

/// Returns a status for an operation that a launch plan cannot contain.
pub(super) fn refuse(reason: &str) -> sys::iree_status_t {
    // SAFETY: the text is copied.
    unsafe { sys::iree_status_allocate(sys::IREE_STATUS_UNIMPLEMENTED, ptr::null(), 0, view(reason)) }
}

fn refused(reason: impl Into<String>) -> Status {
    Status::new(Code::Unimplemented, reason)
}

/// # Safety
///
/// `values` is valid for `count` reads, or `count` is 0.
unsafe fn view_of<'a, T>(values: *const T, count: usize) -> &'a [T] {
    if count == 0 || values.is_null() {
        return &[];
    }
    // SAFETY: by this function's contract.
    unsafe { slice::from_raw_parts(values, count) }
}

/// # Safety
///
/// The span is valid for `'a`.
unsafe fn bytes_of<'a>(span: sys::iree_const_byte_span_t) -> &'a [u8] {
    // SAFETY: by this function's contract.
    unsafe { view_of(span.data, span.data_length) }
}

/// A command buffer that notes its commands on a tape, with IREE's layout: the base comes first.
#[repr(C)]
struct Recorder {
    base: sys::iree_hal_command_buffer_t,
    tape: *mut Tape,
}

/// Returns the tape of a recorder.
///
/// # Safety
///
/// `recorder` is the recorder of an `apply` that is running.
unsafe fn tape<'a>(recorder: *mut sys::iree_hal_command_buffer_t) -> &'a mut Tape {
    // SAFETY: the recorder is alive by this function's contract; `apply` holds the tape exclusively
    // and meanwhile uses it through this pointer alone.
    unsafe { &mut *(*recorder.cast::<Recorder>()).tape }
}

/// Functions of the table that have no effect on a launch plan, which is replayed in order, on one
/// stream.
macro_rules! nothing {
    ($($name:ident($($type:ty),*);)+) => {$(
        unsafe extern "C" fn $name(_: *mut sys::iree_hal_command_buffer_t, $(_: $type),*) -> sys::iree_status_t {
            ptr::null_mut()
        }
    )+};
}

/// Functions of the table for operations that a launch plan cannot contain.
macro_rules! refused {
    ($($name:ident($($type:ty),*);)+) => {$(
        unsafe extern "C" fn $name(_: *mut sys::iree_hal_command_buffer_t, $(_: $type),*) -> sys::iree_status_t {
            refuse(concat!("`", stringify!($name), "` is not part of a launch plan"))
        }
    )+};
}

nothing! {
    begin();
    end();
    begin_debug_group(sys::iree_string_view_t, sys::iree_hal_label_color_t, *const sys::iree_hal_label_location_t);
    end_debug_group();
    execution_barrier(
        sys::iree_hal_execution_stage_t, sys::iree_hal_execution_stage_t, sys::iree_hal_execution_barrier_flags_t,
        usize, *const sys::iree_hal_memory_barrier_t, usize, *const sys::iree_hal_buffer_barrier_t
    );
    signal_event(*mut sys::iree_hal_event_t, sys::iree_hal_execution_stage_t);
    reset_event(*mut sys::iree_hal_event_t, sys::iree_hal_execution_stage_t);
    wait_events(
        usize, *mut *const sys::iree_hal_event_t, sys::iree_hal_execution_stage_t, sys::iree_hal_execution_stage_t,
        usize, *const sys::iree_hal_memory_barrier_t, usize, *const sys::iree_hal_buffer_barrier_t
    );
    advise_buffer(sys::iree_hal_buffer_ref_t, sys::iree_hal_memory_advise_flags_t, u64, u64);
    flush_buffer(sys::iree_hal_buffer_ref_t);
    invalidate_buffer(sys::iree_hal_buffer_ref_t);
}

refused! {
    update_buffer(*const c_void, usize, sys::iree_hal_buffer_ref_t, sys::iree_hal_update_flags_t);
    collective(
        *mut sys::iree_hal_channel_t, sys::iree_hal_collective_op_t, u32, sys::iree_hal_buffer_ref_t,
        sys::iree_hal_buffer_ref_t, sys::iree_device_size_t
    );
}

/// Frees nothing: the recorder lives on the stack of `apply`.
unsafe extern "C" fn destroy(_: *mut sys::iree_hal_command_buffer_t) {}

unsafe extern "C" fn fill_buffer(
    recorder: *mut sys::iree_hal_command_buffer_t,
    target: sys::iree_hal_buffer_ref_t,
    pattern: *const c_void,
    pattern_bytes: usize,
    _: sys::iree_hal_fill_flags_t,
) -> sys::iree_status_t {
    // SAFETY: only called within `apply`, with arguments that IREE resolved.
    unsafe { tape(recorder).fill(&target, pattern, pattern_bytes) }
}

unsafe extern "C" fn copy_buffer(
    recorder: *mut sys::iree_hal_command_buffer_t,
    source: sys::iree_hal_buffer_ref_t,
    target: sys::iree_hal_buffer_ref_t,
    _: sys::iree_hal_copy_flags_t,
) -> sys::iree_status_t {
    // SAFETY: only called within `apply`, with arguments that IREE resolved.
    unsafe { tape(recorder).copy(&source, &target) }
}

unsafe extern "C" fn dispatch(
    recorder: *mut sys::iree_hal_command_buffer_t,
    executable: *mut sys::iree_hal_executable_t,
    function: sys::iree_hal_executable_function_t,
    config: sys::iree_hal_dispatch_config_t,
    constants: sys::iree_const_byte_span_t,
    bindings: sys::iree_hal_buffer_ref_list_t,
    flags: sys::iree_hal_dispatch_flags_t,
) -> sys::iree_status_t {
    // SAFETY: only called within `apply`, with arguments that IREE resolved.
    unsafe { tape(recorder).dispatch(executable, function, &config, constants, bindings, flags) }
}

static TABLE: sys::iree_hal_command_buffer_vtable_t = sys::iree_hal_command_buffer_vtable_t {
    destroy: Some(destroy),
    begin: Some(begin),
    end: Some(end),
    begin_debug_group: Some(begin_debug_group),
    end_debug_group: Some(end_debug_group),
    execution_barrier: Some(execution_barrier),
    signal_event: Some(signal_event),
    reset_event: Some(reset_event),
    wait_events: Some(wait_events),
    advise_buffer: Some(advise_buffer),
    flush_buffer: Some(flush_buffer),
    invalidate_buffer: Some(invalidate_buffer),
    fill_buffer: Some(fill_buffer),
    update_buffer: Some(update_buffer),
    copy_buffer: Some(copy_buffer),
    collective: Some(collective),
    dispatch: Some(dispatch),
};
