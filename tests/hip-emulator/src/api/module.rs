//! Modules, functions and launches.

use super::{enqueue, put, put_if, text};
use crate::calls::hip;
use crate::capture;
use crate::handle::Handle;
use crate::module::{self, Function, Module};
use crate::runtime::{self, current};
use crate::scheduler;
use crate::status::Result;
use crate::stream::Stream;
use crate::sys;
use crate::work::{Launch, Work};
use smallvec::SmallVec;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::PoisonError;

/// Maximum number of work items of a workgroup.
const MAX_THREADS: u64 = 1024;

hip! {
    fn hipModuleLoad(module: *mut sys::hipModule_t, path: *const c_char) {
        // SAFETY: by HIP's contract.
        let path = unsafe { text(path) }?;
        let image = std::fs::read(path).map_err(|_| sys::hipErrorFileNotFound)?;
        let loaded = Module::load(current()?, &image)?;
        // SAFETY: by HIP's contract.
        unsafe { put(module, loaded.raw()) }
    }

    fn hipModuleLoadData(module: *mut sys::hipModule_t, image: *const c_void) {
        // SAFETY: by HIP's contract.
        unsafe { load(module, image) }
    }

    fn hipModuleLoadDataEx(
        module: *mut sys::hipModule_t,
        image: *const c_void,
        count: c_uint,
        options: *mut sys::hipJitOption,
        values: *mut *mut c_void,
    ) {
        // As in HIP, the options concern code that is compiled at load; code objects are not.
        let _ = (count, options, values);
        // SAFETY: by HIP's contract.
        unsafe { load(module, image) }
    }

    fn hipModuleUnload(module: sys::hipModule_t) {
        // SAFETY: by HIP's contract.
        let module = unsafe { Handle::<Module>::from_raw(module) }?;
        module.retire()?;
        module.code.lock().unwrap_or_else(PoisonError::into_inner).take();
        for function in module.functions.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            function.retire()?;
        }
        Ok(())
    }

    fn hipModuleGetFunction(function: *mut sys::hipFunction_t, module: sys::hipModule_t, name: *const c_char) {
        // SAFETY: by HIP's contract.
        let (module, name) = unsafe { (Handle::<Module>::from_raw(module)?, text(name)?) };
        let found = module::function(module, name)?;
        // SAFETY: by HIP's contract.
        unsafe { put(function, found.raw()) }
    }

    fn hipModuleGetGlobal(pointer: *mut sys::hipDeviceptr_t, bytes: *mut usize, module: sys::hipModule_t, name: *const c_char) {
        let _ = (pointer, bytes);
        // SAFETY: by HIP's contract.
        unsafe {
            Handle::<Module>::from_raw(module)?;
            text(name)?;
        }
        // Variables of modules are not modelled.
        Err(sys::hipErrorNotFound)
    }

    fn hipFuncGetAttribute(value: *mut c_int, attribute: sys::hipFunction_attribute, function: sys::hipFunction_t) {
        // SAFETY: by HIP's contract.
        let function = unsafe { Handle::<Function>::from_raw(function) }?;
        let kernel = &function.kernel;
        let lds = u32::try_from(function.module.device.model.lds).unwrap_or(u32::MAX);
        let number = match attribute {
            sys::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => kernel.max_workgroup,
            sys::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => kernel.lds_bytes,
            sys::HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES
            | sys::HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA
            | sys::HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => 0,
            sys::HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.scratch_bytes,
            sys::HIP_FUNC_ATTRIBUTE_NUM_REGS => kernel.vgprs,
            sys::HIP_FUNC_ATTRIBUTE_PTX_VERSION | sys::HIP_FUNC_ATTRIBUTE_BINARY_VERSION => 94,
            sys::HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => lds.saturating_sub(kernel.lds_bytes),
            _ => return Err(sys::hipErrorInvalidValue),
        };
        // SAFETY: by HIP's contract.
        unsafe { put(value, c_int::try_from(number).unwrap_or(c_int::MAX)) }
    }

    fn hipFuncGetAttributes(attributes: *mut sys::hipFuncAttributes, function: *const c_void) {
        let _ = (attributes, function);
        // This function is for kernels of the host's program, none of which are known.
        Err(sys::hipErrorInvalidDeviceFunction)
    }

    fn hipFuncSetAttribute(function: *const c_void, attribute: sys::hipFuncAttribute, value: c_int) {
        // SAFETY: by HIP's contract; kernels of the host's program are not known.
        let function = unsafe { Handle::<Function>::from_raw(function.cast_mut()) }?;
        let value = u64::try_from(value).map_err(|_| sys::hipErrorInvalidValue)?;
        let room = (function.module.device.model.lds as u64).saturating_sub(function.kernel.lds_bytes.into());
        match attribute {
            sys::hipFuncAttributeMaxDynamicSharedMemorySize if value <= room => Ok(()),
            sys::hipFuncAttributePreferredSharedMemoryCarveout if value <= 100 => Ok(()),
            _ => Err(sys::hipErrorInvalidValue),
        }
    }

    fn hipModuleLaunchKernel(
        function: sys::hipFunction_t,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: sys::hipStream_t,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        // SAFETY: by HIP's contract.
        let (function, stream) = unsafe { (Handle::from_raw(function)?, runtime::resolve(stream)?) };
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        check(function, grid, block, shared)?;
        if function.module.device.ordinal != stream.device.ordinal {
            return Err(sys::hipErrorInvalidDevice);
        }
        let runtime = runtime::get()?;
        if runtime.is_noop() && !capture::any() && !scheduler::get().is_seeded() && stream.is_free() {
            // No queued command and no kernel to run: the launch is complete.
            return stream.device.check();
        }
        // SAFETY: by HIP's contract.
        let kernarg = unsafe { arguments(function, parameters, extra, [grid, block], shared) }?;
        enqueue(stream, Work::Kernel(Box::new(Launch { function, grid, block, shared, kernarg })))
    }

    fn hipLaunchKernel(
        function: *const c_void,
        grid: sys::dim3,
        block: sys::dim3,
        arguments: *mut *mut c_void,
        shared: usize,
        stream: sys::hipStream_t,
    ) {
        let _ = (function, grid, block, arguments, shared, stream);
        // Kernels of the host's program are not known: a program that contains kernels registers
        // them at start-up, with functions that the emulator does not have.
        Err(sys::hipErrorInvalidDeviceFunction)
    }

    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: sys::hipFunction_t,
        block: c_int,
        shared: usize,
    ) {
        // SAFETY: by HIP's contract.
        let function = unsafe { Handle::<Function>::from_raw(function) }?;
        // SAFETY: by HIP's contract.
        unsafe { put(blocks, occupancy(function, block, shared)?) }
    }

    fn hipModuleOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: sys::hipFunction_t,
        shared: usize,
        limit: c_int,
    ) {
        // SAFETY: by HIP's contract.
        let function = unsafe { Handle::<Function>::from_raw(function) }?;
        let most = c_int::try_from(function.kernel.max_workgroup).unwrap_or(1);
        let size = if limit > 0 { most.min(limit) } else { most };
        let resident = occupancy(function, size, shared)?;
        // SAFETY: by HIP's contract.
        unsafe {
            put_if(grid, resident.saturating_mul(function.module.device.model.compute_units));
            put(block, size)
        }
    }
}

/// # Safety
///
/// As for [`put`], and `image` is null or points to a code object.
unsafe fn load(place: *mut sys::hipModule_t, image: *const c_void) -> Result {
    if image.is_null() || place.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    // SAFETY: by this function's contract.
    let module = Module::load(current()?, unsafe { module::image(image.cast()) }?)?;
    // SAFETY: by this function's contract.
    unsafe { put(place, module.raw()) }
}

/// Checks a launch's shape against the function and its device.
#[inline]
fn check(function: &Function, grid: [u32; 3], block: [u32; 3], shared: u32) -> Result {
    let items = block
        .iter()
        .fold(1u64, |product, size| product.saturating_mul((*size).into()));
    if grid.contains(&0) || items == 0 {
        return Err(sys::hipErrorInvalidConfiguration);
    }
    // HIP measures a grid in work items; each dimension must have fewer than 2^32.
    let items_fit = grid
        .iter()
        .zip(block)
        .all(|(groups, size)| u64::from(*groups) * u64::from(size) <= u64::from(u32::MAX));
    if !items_fit || items > MAX_THREADS {
        return Err(sys::hipErrorInvalidValue);
    }
    if items > u64::from(function.kernel.max_workgroup) {
        return Err(sys::hipErrorLaunchFailure);
    }
    if u64::from(shared) + u64::from(function.kernel.lds_bytes) > function.module.device.model.lds as u64 {
        return Err(sys::hipErrorInvalidValue);
    }
    Ok(())
}

/// Builds the argument segment of a launch, either from an array of pointers to arguments or from a
/// buffer that the caller laid out.
///
/// # Safety
///
/// By HIP's contract, `parameters` has one pointer per argument, or `extra` is a list that gives a
/// buffer and its size.
unsafe fn arguments(
    function: &Function,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
    [grid, block]: [[u32; 3]; 2],
    shared: u32,
) -> Result<SmallVec<[u8; 128]>> {
    let bytes = function.kernel.kernarg_bytes;
    let mut kernarg: SmallVec<[u8; 128]> = SmallVec::from_elem(0, bytes);
    if !parameters.is_null() {
        if !extra.is_null() {
            return Err(sys::hipErrorInvalidValue);
        }
        for (index, argument) in function
            .kernel
            .arguments
            .iter()
            .filter(|argument| argument.hidden.is_none())
            .enumerate()
        {
            // SAFETY: by this function's contract.
            let from = unsafe { parameters.add(index).read() };
            let to = kernarg.get_mut(argument.offset..argument.offset + argument.bytes);
            let to = to.filter(|_| !from.is_null()).ok_or(sys::hipErrorInvalidValue)?;
            // SAFETY: by this function's contract `from` points to an argument of `to.len()` bytes.
            unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from.cast(), to.len()) };
        }
    } else if !extra.is_null() {
        // SAFETY: by this function's contract.
        let (start, given) = unsafe { buffer(extra) }?;
        let to = kernarg.get_mut(..given.min(bytes)).ok_or(sys::hipErrorInvalidValue)?;
        if given < function.explicit_bytes {
            return Err(sys::hipErrorInvalidValue);
        }
        // SAFETY: by this function's contract.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(start, to.len()) };
    } else if function.explicit_bytes > 0 {
        return Err(sys::hipErrorInvalidValue);
    }
    for argument in &function.kernel.arguments {
        if let Some(hidden) = argument.hidden
            && let Some(to) = kernarg.get_mut(argument.offset..argument.offset + argument.bytes)
        {
            let value = hidden.value(grid, block, shared).to_le_bytes();
            to.fill(0);
            for (to, byte) in to.iter_mut().zip(value) {
                *to = byte;
            }
        }
    }
    Ok(kernarg)
}

/// Reads a launch's `extra` list: `HIP_LAUNCH_PARAM_BUFFER_POINTER`, a buffer,
/// `HIP_LAUNCH_PARAM_BUFFER_SIZE`, a pointer to its size, `HIP_LAUNCH_PARAM_END`.
///
/// # Safety
///
/// `list` is such a list.
unsafe fn buffer(mut list: *mut *mut c_void) -> Result<(*const u8, usize)> {
    let (mut start, mut bytes): (*const u8, Option<usize>) = (std::ptr::null(), None);
    loop {
        // SAFETY: by this function's contract; the list's end has not been reached.
        let (key, value) = unsafe {
            let key = list.read();
            (
                key.addr(),
                if key.addr() == 3 {
                    std::ptr::null_mut()
                } else {
                    list.add(1).read()
                },
            )
        };
        match key {
            1 => start = value.cast_const().cast(),
            2 if !value.is_null() => {
                // SAFETY: by this function's contract.
                bytes = Some(unsafe { value.cast::<usize>().read() });
            }
            3 => break,
            _ => return Err(sys::hipErrorInvalidValue),
        }
        // SAFETY: by this function's contract.
        list = unsafe { list.add(2) };
    }
    match bytes {
        Some(bytes) if !start.is_null() => Ok((start, bytes)),
        _ => Err(sys::hipErrorInvalidValue),
    }
}

/// Returns the workgroups that are resident on a CDNA compute unit at once, limited by waves,
/// registers and LDS.
fn occupancy(function: &Function, block: c_int, shared: usize) -> Result<c_int> {
    let (kernel, model) = (&function.kernel, &function.module.device.model);
    let block = u32::try_from(block)
        .ok()
        .filter(|block| *block > 0)
        .ok_or(sys::hipErrorInvalidValue)?;
    if block > kernel.max_workgroup {
        return Ok(0);
    }
    let waves = block.div_ceil(model.wave.cast_unsigned());
    // 512 vector registers per lane and SIMD, allocated in steps of 8; four SIMDs with at most
    // eight waves each.
    let by_registers = 512 / kernel.vgprs.next_multiple_of(8).max(8);
    let by_waves = 4 * by_registers.min(8) / waves;
    let lds = kernel.lds_bytes as usize + shared;
    let by_lds = model
        .lds
        .checked_div(lds)
        .and_then(|groups| u32::try_from(groups).ok())
        .unwrap_or(u32::MAX);
    Ok(c_int::try_from(by_waves.min(by_lds)).unwrap_or(c_int::MAX))
}

/// Converts the parameters of a graph's kernel node to a launch.
///
/// # Safety
///
/// By HIP's contract.
pub(super) unsafe fn node(parameters: &sys::hipKernelNodeParams) -> Result<Work> {
    // SAFETY: by this function's contract.
    let function: &'static Handle<Function> = unsafe { Handle::from_raw(parameters.func) }?;
    let [grid, block] = [parameters.gridDim, parameters.blockDim].map(|size| [size.x, size.y, size.z]);
    check(function, grid, block, parameters.sharedMemBytes)?;
    let shared = parameters.sharedMemBytes;
    // SAFETY: by this function's contract.
    let kernarg = unsafe {
        arguments(
            function,
            parameters.kernelParams,
            parameters.extra,
            [grid, block],
            shared,
        )
    }?;
    Ok(Work::Kernel(Box::new(Launch {
        function,
        grid,
        block,
        shared,
        kernarg,
    })))
}

/// Returns true if a stream may run this work of a graph: a kernel must be loaded on its device.
pub(super) fn fits(work: &Work, stream: &Stream) -> bool {
    match work {
        Work::Kernel(launch) => launch.function.module.device.ordinal == stream.device.ordinal,
        _ => true,
    }
}
