//! Allocation, pinned memory, memory pools, and pointer attributes.

use super::{enqueue, put, put_if};
use crate::calls::hip;
use crate::capture;
use crate::device::{Device, Pool};
use crate::handle::Handle;
use crate::memory::{Allocation, Use};
use crate::runtime::{self, current};
use crate::scheduler;
use crate::status::Result;
use crate::sys;
use crate::work::Work;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::NonNull;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// `hipCpuDeviceId`, a macro that bindgen does not see.
const CPU: c_int = -1;

/// Allocates memory and returns its address to the caller; null for zero bytes.
///
/// # Safety
///
/// As for [`put`].
unsafe fn allocate(place: *mut *mut c_void, device: &Device, bytes: usize, usage: Use, flags: c_uint) -> Result {
    if place.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    let address = if bytes == 0 {
        0
    } else {
        let address = runtime::get()?.memory.allocate(device, bytes as u64, usage, flags)?;
        usize::try_from(address).map_err(|_| sys::hipErrorOutOfMemory)?
    };
    // SAFETY: by this function's contract. The host dereferences the address only if the memory is
    // pinned.
    unsafe { put(place, std::ptr::with_exposed_provenance_mut(address)) }
}

/// Frees an allocation of one of these uses once its device has completed all work that was queued
/// before.
fn free(pointer: *mut c_void, uses: &[Use]) -> Result {
    if pointer.is_null() {
        return Ok(());
    }
    let runtime = runtime::get()?;
    capture::disturbing()?;
    let address = pointer.addr() as u64;
    let owner = runtime.memory.table().find(address).map(|allocation| allocation.device);
    let owner = owner.and_then(|ordinal| runtime.devices.get(ordinal));
    let owner = owner.ok_or(sys::hipErrorInvalidValue)?;
    scheduler::get().wait_device(owner);
    let allocation = runtime.memory.remove(address, uses)?;
    runtime.memory.release(owner, &allocation);
    Ok(())
}

hip! {
    fn hipMalloc(pointer: *mut *mut c_void, bytes: usize) {
        capture::disturbing()?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, current()?, bytes, Use::Device, 0) }
    }

    fn hipExtMallocWithFlags(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        capture::disturbing()?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, current()?, bytes, Use::Device, flags) }
    }

    fn hipMallocManaged(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        capture::disturbing()?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, current()?, bytes, Use::Managed, flags) }
    }

    fn hipHostMalloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        capture::disturbing()?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, current()?, bytes, Use::Host, flags) }
    }

    fn hipHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        capture::disturbing()?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, current()?, bytes, Use::Host, flags) }
    }

    fn hipFree(pointer: *mut c_void) {
        free(pointer, &[Use::Device, Use::Managed])
    }

    fn hipHostFree(pointer: *mut c_void) {
        free(pointer, &[Use::Host])
    }

    fn hipHostRegister(pointer: *mut c_void, bytes: usize, flags: c_uint) {
        let device = current()?;
        let start = NonNull::new(pointer.cast()).filter(|_| bytes > 0).ok_or(sys::hipErrorInvalidValue)?;
        capture::disturbing()?;
        runtime::get()?.memory.register(device, start, bytes as u64, flags)
    }

    fn hipHostUnregister(pointer: *mut c_void) {
        let runtime = runtime::get()?;
        capture::disturbing()?;
        let address = pointer.addr() as u64;
        if let Some(owner) = runtime.memory.table().find(address).and_then(|allocation| runtime.devices.get(allocation.device)) {
            scheduler::get().wait_device(owner);
        }
        match runtime.memory.remove(address, &[Use::Registered]) {
            Ok(_) => Ok(()),
            Err(_) => Err(sys::hipErrorHostMemoryNotRegistered),
        }
    }

    fn hipHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint) {
        let allocation = find(host)?;
        if flags != 0 || !allocation.on_host() {
            return Err(sys::hipErrorInvalidValue);
        }
        // SAFETY: by HIP's contract.
        unsafe { put(device, host) }
    }

    fn hipHostGetFlags(flags: *mut c_uint, host: *mut c_void) {
        let allocation = find(host)?;
        if allocation.usage == Use::Device {
            return Err(sys::hipErrorInvalidValue);
        }
        // SAFETY: by HIP's contract.
        unsafe { put(flags, allocation.flags) }
    }

    fn hipMallocAsync(pointer: *mut *mut c_void, bytes: usize, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { runtime::resolve(stream) }?;
        capture::not_captured(stream)?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, stream.device, bytes, Use::Device, 0) }
    }

    fn hipMallocFromPoolAsync(pointer: *mut *mut c_void, bytes: usize, pool: sys::hipMemPool_t, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let (pool, stream) = unsafe { (Handle::<Pool>::from_raw(pool)?, runtime::resolve(stream)?) };
        capture::not_captured(stream)?;
        // SAFETY: by HIP's contract.
        unsafe { allocate(pointer, pool.device, bytes, Use::Device, 0) }
    }

    fn hipFreeAsync(pointer: *mut c_void, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { runtime::resolve(stream) }?;
        capture::not_captured(stream)?;
        let runtime = runtime::get()?;
        let address = pointer.addr() as u64;
        let known = runtime.memory.table().find(address).copied();
        match known {
            Some(allocation) if allocation.address == address && allocation.usage == Use::Device => {
                enqueue(stream, Work::Free(address))
            }
            _ => Err(sys::hipErrorInvalidValue),
        }
    }

    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        let device = current()?;
        let used = device.used.load(Ordering::Relaxed);
        let [left, all] = [device.memory.saturating_sub(used), device.memory].map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        // SAFETY: by HIP's contract.
        unsafe {
            put(free, left)?;
            put(total, all)
        }
    }

    fn hipPointerGetAttributes(attributes: *mut sys::hipPointerAttribute_t, pointer: *const c_void) {
        if pointer.is_null() {
            return Err(sys::hipErrorInvalidValue);
        }
        let answer = match runtime::get()?.memory.table().find(pointer.addr() as u64) {
            Some(allocation) => sys::hipPointerAttribute_t {
                type_: kind(allocation),
                device: c_int::try_from(allocation.device).unwrap_or(0),
                devicePointer: pointer.cast_mut(),
                hostPointer: if allocation.on_host() { pointer.cast_mut() } else { std::ptr::null_mut() },
                isManaged: c_int::from(allocation.usage == Use::Managed),
                allocationFlags: allocation.flags,
            },
            // As in HIP since 6.0: an unknown pointer is not an error.
            None => sys::hipPointerAttribute_t {
                type_: sys::hipMemoryTypeUnregistered,
                device: -2,
                devicePointer: std::ptr::null_mut(),
                hostPointer: std::ptr::null_mut(),
                isManaged: 0,
                allocationFlags: 0,
            },
        };
        // SAFETY: by HIP's contract.
        unsafe { put(attributes, answer) }
    }

    fn hipPointerGetAttribute(data: *mut c_void, attribute: sys::hipPointer_attribute, pointer: sys::hipDeviceptr_t) {
        let allocation = find(pointer)?;
        let start: usize = usize::try_from(allocation.address).map_err(|_| sys::hipErrorInvalidValue)?;
        // SAFETY: by HIP's contract: the attribute says what is written.
        unsafe {
            match attribute {
                sys::HIP_POINTER_ATTRIBUTE_MEMORY_TYPE => put(data.cast::<c_uint>(), kind(&allocation)),
                sys::HIP_POINTER_ATTRIBUTE_DEVICE_POINTER => put(data.cast::<*mut c_void>(), pointer),
                sys::HIP_POINTER_ATTRIBUTE_HOST_POINTER if allocation.on_host() => put(data.cast::<*mut c_void>(), pointer),
                sys::HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => put(data.cast::<c_int>(), c_int::try_from(allocation.device).unwrap_or(0)),
                sys::HIP_POINTER_ATTRIBUTE_IS_MANAGED => put(data.cast::<c_uint>(), c_uint::from(allocation.usage == Use::Managed)),
                sys::HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => put(data.cast::<usize>(), start),
                sys::HIP_POINTER_ATTRIBUTE_RANGE_SIZE => put(data.cast::<u64>(), allocation.bytes),
                _ => Err(sys::hipErrorNotSupported),
            }
        }
    }

    fn hipMemGetAddressRange(base: *mut sys::hipDeviceptr_t, bytes: *mut usize, pointer: sys::hipDeviceptr_t) {
        let allocation = find(pointer)?;
        let start = usize::try_from(allocation.address).map_err(|_| sys::hipErrorInvalidValue)?;
        // SAFETY: by HIP's contract.
        unsafe {
            put_if(base, std::ptr::with_exposed_provenance_mut(start));
            put_if(bytes, usize::try_from(allocation.bytes).map_err(|_| sys::hipErrorInvalidValue)?);
        }
        Ok(())
    }

    fn hipMemPrefetchAsync(pointer: *const c_void, bytes: usize, device: c_int, stream: sys::hipStream_t) {
        // SAFETY: by HIP's contract.
        let stream = unsafe { runtime::resolve(stream) }?;
        managed(pointer, bytes)?;
        if device != CPU {
            runtime::get()?.device(device)?;
        }
        enqueue(stream, Work::Nothing)
    }

    fn hipMemAdvise(pointer: *const c_void, bytes: usize, advice: sys::hipMemoryAdvise, device: c_int) {
        if advice > 200 {
            return Err(sys::hipErrorInvalidValue);
        }
        if device != CPU {
            runtime::get()?.device(device)?;
        }
        managed(pointer, bytes)
    }

    fn hipDeviceGetDefaultMemPool(pool: *mut sys::hipMemPool_t, device: c_int) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put(pool, default_pool(device).raw()) }
    }

    fn hipDeviceGetMemPool(pool: *mut sys::hipMemPool_t, device: c_int) {
        let device = runtime::get()?.device(device)?;
        let set = *device.pool.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: by HIP's contract.
        unsafe { put(pool, set.unwrap_or_else(|| default_pool(device)).raw()) }
    }

    fn hipDeviceSetMemPool(device: c_int, pool: sys::hipMemPool_t) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        let pool = unsafe { Handle::<Pool>::from_raw(pool) }?;
        *device.pool.lock().unwrap_or_else(PoisonError::into_inner) = Some(pool);
        Ok(())
    }

    fn hipMemPoolCreate(pool: *mut sys::hipMemPool_t, properties: *const sys::hipMemPoolProps) {
        // SAFETY: by HIP's contract.
        let properties = unsafe { properties.as_ref() }.ok_or(sys::hipErrorInvalidValue)?;
        if properties.location.type_ != sys::hipMemLocationTypeDevice {
            return Err(sys::hipErrorInvalidValue);
        }
        let device = runtime::get()?.device(properties.location.id)?;
        // SAFETY: by HIP's contract.
        unsafe { put(pool, new_pool(device).raw()) }
    }

    fn hipMemPoolDestroy(pool: sys::hipMemPool_t) {
        // SAFETY: by HIP's contract.
        unsafe { Handle::<Pool>::from_raw(pool) }?.retire()
    }

    fn hipMemPoolGetAttribute(pool: sys::hipMemPool_t, attribute: sys::hipMemPoolAttr, value: *mut c_void) {
        // SAFETY: by HIP's contract.
        let pool = unsafe { Handle::<Pool>::from_raw(pool) }?;
        match attribute {
            sys::hipMemPoolReuseFollowEventDependencies
            | sys::hipMemPoolReuseAllowOpportunistic
            | sys::hipMemPoolReuseAllowInternalDependencies => {
                let flag = pool.reuse.get(attribute as usize).map_or(0, |flag| flag.load(Ordering::Relaxed));
                // SAFETY: by HIP's contract these are ints.
                unsafe { put(value.cast::<c_int>(), c_int::from(flag != 0)) }
            }
            sys::hipMemPoolAttrReleaseThreshold => {
                // SAFETY: by HIP's contract this is 64 bits.
                unsafe { put(value.cast::<u64>(), pool.threshold.load(Ordering::Relaxed)) }
            }
            sys::hipMemPoolAttrReservedMemCurrent
            | sys::hipMemPoolAttrReservedMemHigh
            | sys::hipMemPoolAttrUsedMemCurrent
            | sys::hipMemPoolAttrUsedMemHigh => {
                // SAFETY: by HIP's contract these are 64 bits.
                unsafe { put(value.cast::<u64>(), pool.device.used.load(Ordering::Relaxed)) }
            }
            _ => Err(sys::hipErrorInvalidValue),
        }
    }

    fn hipMemPoolSetAttribute(pool: sys::hipMemPool_t, attribute: sys::hipMemPoolAttr, value: *mut c_void) {
        // SAFETY: by HIP's contract.
        let pool = unsafe { Handle::<Pool>::from_raw(pool) }?;
        if value.is_null() {
            return Err(sys::hipErrorInvalidValue);
        }
        match attribute {
            sys::hipMemPoolReuseFollowEventDependencies
            | sys::hipMemPoolReuseAllowOpportunistic
            | sys::hipMemPoolReuseAllowInternalDependencies => {
                // SAFETY: by HIP's contract these are ints.
                let flag = unsafe { value.cast::<c_int>().read() };
                if let Some(place) = pool.reuse.get(attribute as usize) {
                    place.store(u64::from(flag != 0), Ordering::Relaxed);
                }
                Ok(())
            }
            sys::hipMemPoolAttrReleaseThreshold => {
                // SAFETY: by HIP's contract this is 64 bits.
                pool.threshold.store(unsafe { value.cast::<u64>().read() }, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(sys::hipErrorInvalidValue),
        }
    }

    fn hipMemPoolTrimTo(pool: sys::hipMemPool_t, keep: usize) {
        // Pools hold no memory back, so there is nothing to trim, whatever `keep` is.
        let _ = keep;
        // SAFETY: by HIP's contract.
        unsafe { Handle::<Pool>::from_raw(pool) }.map(drop)
    }
}

fn find(pointer: *const c_void) -> Result<Allocation> {
    let table = runtime::get()?.memory.table();
    table
        .find(pointer.addr() as u64)
        .copied()
        .ok_or(sys::hipErrorInvalidValue)
}

/// Checks that a range of bytes lies in managed memory.
fn managed(pointer: *const c_void, bytes: usize) -> Result {
    let allocation = find(pointer)?;
    let offset = pointer.addr() as u64 - allocation.address;
    if bytes == 0 || allocation.usage != Use::Managed || bytes as u64 > allocation.bytes - offset {
        return Err(sys::hipErrorInvalidValue);
    }
    Ok(())
}

fn kind(allocation: &Allocation) -> sys::hipMemoryType {
    match allocation.usage {
        Use::Device => sys::hipMemoryTypeDevice,
        Use::Host | Use::Registered => sys::hipMemoryTypeHost,
        Use::Managed => sys::hipMemoryTypeManaged,
    }
}

fn new_pool(device: &'static Device) -> &'static Handle<Pool> {
    Handle::new(Pool {
        device,
        threshold: AtomicU64::new(0),
        reuse: [const { AtomicU64::new(1) }; 8],
    })
}

fn default_pool(device: &'static Device) -> &'static Handle<Pool> {
    device.default_pool.get_or_init(|| new_pool(device))
}
