//! Devices, their properties and contexts.

use super::{make_current, put, put_text, text};
use crate::calls::{self, hip};
use crate::capture;
use crate::device::{Context, Device};
use crate::handle::Handle;
use crate::runtime::{self, current};
use crate::scheduler;
use crate::status::Result;
use crate::sys;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

const MAX_THREADS: i32 = 1024;
const MAX_GRID: i32 = i32::MAX;
/// Clock rate in kHz.
const CLOCK: i32 = 2_100_000;

hip! {
    fn hipGetDeviceCount(count: *mut c_int) {
        let devices = match runtime::get() {
            Ok(runtime) => runtime.devices.len(),
            Err(error) => {
                // SAFETY: by HIP's contract.
                unsafe { put(count, 0)? };
                return Err(error);
            }
        };
        // SAFETY: by HIP's contract.
        unsafe { put(count, integer(devices)) }
    }

    fn hipGetDevice(device: *mut c_int) {
        let current = current()?;
        // SAFETY: by HIP's contract.
        unsafe { put(device, integer(current.ordinal)) }
    }

    fn hipSetDevice(device: c_int) {
        make_current(runtime::get()?.device(device)?.ordinal)
    }

    fn hipDeviceGet(device: *mut sys::hipDevice_t, ordinal: c_int) {
        let found = runtime::get()?.device(ordinal)?;
        // SAFETY: by HIP's contract.
        unsafe { put(device, integer(found.ordinal)) }
    }

    fn hipDeviceGetName(name: *mut c_char, length: c_int, device: sys::hipDevice_t) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put_text(name, length, &device.name) }
    }

    fn hipDeviceGetUuid(uuid: *mut sys::hipUUID, device: sys::hipDevice_t) {
        let bytes = runtime::get()?.device(device)?.uuid().map(|byte| byte as c_char);
        // SAFETY: by HIP's contract.
        unsafe { put(uuid, sys::hipUUID { bytes }) }
    }

    fn hipDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put_text(id, length, &bus_id(device)) }
    }

    fn hipDeviceGetByPCIBusId(device: *mut c_int, id: *const c_char) {
        // SAFETY: by HIP's contract.
        let id = unsafe { text(id) }?;
        let found = runtime::get()?.devices.iter().find(|device| bus_id(device) == id);
        // SAFETY: by HIP's contract.
        unsafe { put(device, integer(found.ok_or(sys::hipErrorInvalidValue)?.ordinal)) }
    }

    fn hipDeviceTotalMem(bytes: *mut usize, device: sys::hipDevice_t) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put(bytes, size(device.memory)) }
    }

    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: sys::hipDevice_t) {
        let (first, second) = capability(runtime::get()?.device(device)?);
        // SAFETY: by HIP's contract.
        unsafe {
            put(major, first)?;
            put(minor, second)
        }
    }

    fn hipGetDevicePropertiesR0600(properties: *mut sys::hipDeviceProp_tR0600, device: c_int) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put(properties, describe(device)) }
    }

    fn hipDeviceGetAttribute(value: *mut c_int, attribute: sys::hipDeviceAttribute_t, device: c_int) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put(value, self::attribute(device, attribute)?) }
    }

    fn hipDeviceSynchronize() {
        synchronize(current()?)
    }

    fn hipDeviceReset() {
        let device = current()?;
        synchronize(device).ok();
        device.forgive();
        Ok(())
    }

    fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) {
        let runtime = runtime::get()?;
        let (device, peer) = (runtime.device(device)?, runtime.device(peer)?);
        // SAFETY: by HIP's contract.
        unsafe { put(can, c_int::from(device.ordinal != peer.ordinal)) }
    }

    fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        let (device, peer) = (current()?, runtime::get()?.device(peer)?);
        if flags != 0 {
            return Err(sys::hipErrorInvalidValue);
        }
        if device.ordinal == peer.ordinal {
            return Err(sys::hipErrorInvalidDevice);
        }
        let mut peers = device.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.insert(peer.ordinal) { Ok(()) } else { Err(sys::hipErrorPeerAccessAlreadyEnabled) }
    }

    fn hipDeviceDisablePeerAccess(peer: c_int) {
        let (device, peer) = (current()?, runtime::get()?.device(peer)?);
        let mut peers = device.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.remove(&peer.ordinal) { Ok(()) } else { Err(sys::hipErrorPeerAccessNotEnabled) }
    }

    fn hipDeviceGetLimit(value: *mut usize, limit: sys::hipLimit_t) {
        current()?;
        let number = match limit {
            sys::hipLimitStackSize => 1024,
            sys::hipLimitPrintfFifoSize => 1 << 20,
            sys::hipLimitMallocHeapSize => 4 << 20,
            _ => return Err(sys::hipErrorUnsupportedLimit),
        };
        // SAFETY: by HIP's contract.
        unsafe { put(value, number) }
    }

    fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        // SAFETY: by HIP's contract.
        unsafe {
            put(least, 1)?;
            put(greatest, -1)
        }
    }

    fn hipGetDeviceFlags(flags: *mut c_uint) {
        let device = current()?;
        // SAFETY: by HIP's contract.
        unsafe { put(flags, device.flags.load(Ordering::Relaxed)) }
    }

    fn hipSetDeviceFlags(flags: c_uint) {
        current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    fn hipDevicePrimaryCtxRetain(context: *mut sys::hipCtx_t, device: sys::hipDevice_t) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe { put(context, device.context().raw()) }?;
        device.retained.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn hipDevicePrimaryCtxRelease(device: sys::hipDevice_t) {
        let retained = &runtime::get()?.device(device)?.retained;
        // HIP ignores a release without a retain.
        let _ = retained.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        Ok(())
    }

    fn hipDevicePrimaryCtxGetState(device: sys::hipDevice_t, flags: *mut c_uint, active: *mut c_int) {
        let device = runtime::get()?.device(device)?;
        // SAFETY: by HIP's contract.
        unsafe {
            put(flags, device.flags.load(Ordering::Relaxed))?;
            put(active, c_int::from(device.retained.load(Ordering::Relaxed) > 0))
        }
    }

    fn hipCtxSetCurrent(context: sys::hipCtx_t) {
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: by HIP's contract.
        make_current(unsafe { Handle::<Context>::from_raw(context) }?.0)
    }

    fn hipCtxGetCurrent(context: *mut sys::hipCtx_t) {
        let device = current()?;
        // SAFETY: by HIP's contract.
        unsafe { put(context, device.context().raw()) }
    }

    fn hipCtxPushCurrent(context: sys::hipCtx_t) {
        // SAFETY: by HIP's contract.
        let device = unsafe { Handle::<Context>::from_raw(context) }?.0;
        calls::thread(|thread| {
            thread.contexts.borrow_mut().push(thread.device.get());
            thread.device.set(device);
        })
    }

    fn hipCtxPopCurrent(context: *mut sys::hipCtx_t) {
        let top = current()?;
        let below = calls::thread(|thread| thread.contexts.borrow_mut().pop())?;
        make_current(below.ok_or(sys::hipErrorInvalidContext)?)?;
        // SAFETY: by HIP's contract.
        unsafe { super::put_if(context, top.context().raw()) };
        Ok(())
    }

    fn hipCtxGetDevice(device: *mut sys::hipDevice_t) {
        let current = current()?;
        // SAFETY: by HIP's contract.
        unsafe { put(device, integer(current.ordinal)) }
    }

    fn hipCtxSynchronize() {
        synchronize(current()?)
    }
}

fn synchronize(device: &'static Device) -> Result {
    capture::disturbing_device()?;
    scheduler::get().wait_device(device);
    device.check()
}

/// Converts to a C int; a count of devices or a size of a model always fits.
fn integer(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn bus_id(device: &Device) -> String {
    format!("0000:{:02x}:00.0", device.bus())
}

/// Returns the major and minor version of an architecture: 9 and 4 for gfx942.
fn capability(device: &Device) -> (c_int, c_int) {
    let digits = device.architecture.base.trim_start_matches("gfx");
    let split = digits.len().saturating_sub(2);
    let number = |range: Option<&str>| {
        range
            .and_then(|digits| c_int::from_str_radix(digits, 16).ok())
            .unwrap_or(0)
    };
    let major = digits.get(..split).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    (major, number(digits.get(split..split + 1)))
}

fn describe(device: &Device) -> sys::hipDeviceProp_tR0600 {
    let model = &device.model;
    let (major, minor) = capability(device);
    let mut properties = sys::hipDeviceProp_tR0600 {
        uuid: sys::hipUUID {
            bytes: device.uuid().map(|byte| byte as c_char),
        },
        totalGlobalMem: size(device.memory),
        sharedMemPerBlock: model.lds,
        regsPerBlock: 65_536,
        warpSize: model.wave,
        memPitch: 0x7fff_ffff,
        maxThreadsPerBlock: MAX_THREADS,
        maxThreadsDim: [MAX_THREADS; 3],
        maxGridSize: [MAX_GRID, 65_536, 65_536],
        clockRate: CLOCK,
        totalConstMem: 0x7fff_ffff,
        major,
        minor,
        textureAlignment: 256,
        multiProcessorCount: model.compute_units,
        canMapHostMemory: 1,
        concurrentKernels: 1,
        ECCEnabled: c_int::from(device.architecture.sramecc == Some(true)),
        pciBusID: device.bus(),
        asyncEngineCount: 8,
        unifiedAddressing: 1,
        memoryClockRate: 1_300_000,
        memoryBusWidth: 8192,
        l2CacheSize: 4 << 20,
        maxThreadsPerMultiProcessor: 2048,
        streamPrioritiesSupported: 1,
        sharedMemPerMultiprocessor: model.lds,
        regsPerMultiprocessor: 65_536,
        managedMemory: 1,
        concurrentManagedAccess: 1,
        hostNativeAtomicSupported: 0,
        cooperativeLaunch: 0,
        hostRegisterSupported: 1,
        memoryPoolsSupported: 1,
        maxBlocksPerMultiProcessor: 2,
        maxSharedMemoryPerMultiProcessor: model.lds,
        clockInstructionRate: 100_000,
        isLargeBar: 0,
        ..sys::hipDeviceProp_tR0600::default()
    };
    fill(&mut properties.name, &device.name);
    fill(&mut properties.gcnArchName, &device.architecture.to_string());
    properties
}

/// Writes text to a zeroed C array, truncated so that a final zero remains.
fn fill(array: &mut [c_char], text: &str) {
    let room = array.len().saturating_sub(1);
    for (place, byte) in array.iter_mut().take(room).zip(text.bytes()) {
        *place = byte as c_char;
    }
}

/// Returns the attributes that programs are known to query; all others are unsupported, so that no
/// program relies on a made-up number.
fn attribute(device: &Device, attribute: sys::hipDeviceAttribute_t) -> Result<c_int> {
    let of = describe(device);
    let [x, y, z] = of.maxGridSize;
    Ok(match attribute {
        sys::hipDeviceAttributeEccEnabled => of.ECCEnabled,
        sys::hipDeviceAttributeAsyncEngineCount => of.asyncEngineCount,
        sys::hipDeviceAttributeCanMapHostMemory => of.canMapHostMemory,
        sys::hipDeviceAttributeClockRate => of.clockRate,
        sys::hipDeviceAttributeComputeMode => sys::hipComputeModeDefault as c_int,
        sys::hipDeviceAttributeConcurrentKernels => of.concurrentKernels,
        sys::hipDeviceAttributeConcurrentManagedAccess => of.concurrentManagedAccess,
        sys::hipDeviceAttributeCooperativeLaunch | sys::hipDeviceAttributeCooperativeMultiDeviceLaunch => 0,
        sys::hipDeviceAttributeHostNativeAtomicSupported => of.hostNativeAtomicSupported,
        sys::hipDeviceAttributeIntegrated
        | sys::hipDeviceAttributeIsMultiGpuBoard
        | sys::hipDeviceAttributeKernelExecTimeout
        | sys::hipDeviceAttributePageableMemoryAccess
        | sys::hipDeviceAttributePageableMemoryAccessUsesHostPageTables
        | sys::hipDeviceAttributeDirectManagedMemAccessFromHost
        | sys::hipDeviceAttributeTccDriver
        | sys::hipDeviceAttributePciDeviceId
        | sys::hipDeviceAttributePciDomainId
        | sys::hipDeviceAttributeIsLargeBar
        | sys::hipDeviceAttributeAsicRevision
        | sys::hipDeviceAttributeCanUseStreamWaitValue
        | sys::hipDeviceAttributeImageSupport
        | sys::hipDeviceAttributeVirtualMemoryManagementSupported
        | sys::hipDeviceAttributeMemoryPoolSupportedHandleTypes => 0,
        sys::hipDeviceAttributeL2CacheSize => of.l2CacheSize,
        sys::hipDeviceAttributeComputeCapabilityMajor => of.major,
        sys::hipDeviceAttributeComputeCapabilityMinor => of.minor,
        sys::hipDeviceAttributeManagedMemory => of.managedMemory,
        sys::hipDeviceAttributeMaxBlocksPerMultiProcessor => of.maxBlocksPerMultiProcessor,
        sys::hipDeviceAttributeMaxBlockDimX
        | sys::hipDeviceAttributeMaxBlockDimY
        | sys::hipDeviceAttributeMaxBlockDimZ
        | sys::hipDeviceAttributeMaxThreadsPerBlock => MAX_THREADS,
        sys::hipDeviceAttributeMaxGridDimX => x,
        sys::hipDeviceAttributeMaxGridDimY => y,
        sys::hipDeviceAttributeMaxGridDimZ => z,
        sys::hipDeviceAttributeMaxThreadsPerMultiProcessor => of.maxThreadsPerMultiProcessor,
        sys::hipDeviceAttributeMemoryBusWidth => of.memoryBusWidth,
        sys::hipDeviceAttributeMemoryClockRate => of.memoryClockRate,
        sys::hipDeviceAttributeMultiprocessorCount | sys::hipDeviceAttributePhysicalMultiProcessorCount => {
            of.multiProcessorCount
        }
        sys::hipDeviceAttributePciBusId => of.pciBusID,
        sys::hipDeviceAttributeMaxRegistersPerBlock => of.regsPerBlock,
        sys::hipDeviceAttributeMaxRegistersPerMultiprocessor => of.regsPerMultiprocessor,
        sys::hipDeviceAttributeMaxSharedMemoryPerBlock
        | sys::hipDeviceAttributeSharedMemPerBlockOptin
        | sys::hipDeviceAttributeSharedMemPerMultiprocessor
        | sys::hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => integer(device.model.lds),
        sys::hipDeviceAttributeStreamPrioritiesSupported => of.streamPrioritiesSupported,
        sys::hipDeviceAttributeTextureAlignment => 256,
        sys::hipDeviceAttributeTotalConstantMemory | sys::hipDeviceAttributeMaxPitch => 0x7fff_ffff,
        sys::hipDeviceAttributeUnifiedAddressing => of.unifiedAddressing,
        sys::hipDeviceAttributeWarpSize => of.warpSize,
        sys::hipDeviceAttributeMemoryPoolsSupported => of.memoryPoolsSupported,
        sys::hipDeviceAttributeHostRegisterSupported => of.hostRegisterSupported,
        sys::hipDeviceAttributeClockInstructionRate | sys::hipDeviceAttributeWallClockRate => of.clockInstructionRate,
        sys::hipDeviceAttributeFineGrainSupport => 1,
        _ => return Err(sys::hipErrorInvalidValue),
    })
}
