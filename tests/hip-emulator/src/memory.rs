//! Owns the memory of devices and the pinned memory of the host.
//!
//! One reservation of address space holds three regions:
//!
//! | Region | Access by the host | Contents |
//! |---|---|---|
//! | device | none: a dereference faults | the addresses that programs get |
//! | backing | read and write | the bytes of device memory, at a fixed distance |
//! | pinned | where allocated | `hipHostMalloc`, managed memory; one address for both |
//!
//! Addresses are never reused, so that a freed one stays recognisable. New memory holds [`FRESH`]
//! and freed memory [`FREED`], both NaN as f16, bf16 and f32. Once more than `HIPEMU_QUARANTINE`
//! bytes of freed device memory are poisoned, the oldest poison is discarded.

use crate::config;
use crate::device::Device;
use crate::status::Result;
use crate::sys;
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// 16-bit pattern of memory that was allocated and not yet written.
pub(crate) const FRESH: u16 = 0xfff5;
/// 16-bit pattern of freed memory.
pub(crate) const FREED: u16 = 0x7fde;

/// Bytes of address space of the device region; the backing has the same size.
const DEVICE: u64 = 1 << 40;
/// Bytes of address space of the pinned region.
const PINNED: u64 = 1 << 38;
/// Gap between two allocations in bytes, so that an overrun does not hit a neighbour.
const GAP: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// The kind of memory that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// `hipMalloc`: device memory that the host cannot access.
    Device,
    /// `hipHostMalloc`.
    Host,
    /// `hipMallocManaged`.
    Managed,
    /// The host's own memory, by `hipHostRegister`.
    Registered,
}

/// A live allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    /// The address that programs and kernels use.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// The host address of its bytes.
    pub(crate) host: *mut u8,
    pub(crate) usage: Use,
    /// The owning device; for host memory, the device that was current at the allocation.
    pub(crate) device: usize,
    pub(crate) flags: u32,
}

// SAFETY: the pointer is only an address of memory that any thread may access; each access
// justifies its own soundness.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Returns true if the host may dereference the address.
    pub(crate) fn on_host(&self) -> bool {
        self.usage != Use::Device
    }

    fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// The live allocations, sorted by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<Allocation>);

impl Table {
    /// Returns the allocation that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        let after = self.0.partition_point(|other| other.address <= address);
        self.0
            .get(after.checked_sub(1)?)
            .filter(|allocation| address < allocation.end())
    }

    fn insert(&mut self, allocation: Allocation) {
        let at = self.0.partition_point(|other| other.address < allocation.address);
        self.0.insert(at, allocation);
    }

    fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let after = self.0.partition_point(|other| other.address < address + bytes);
        after
            .checked_sub(1)
            .and_then(|at| self.0.get(at))
            .is_some_and(|last| last.end() > address)
    }
}

/// All memory.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Start of the reservation, and of the device region.
    base: u64,
    table: RwLock<Arc<Table>>,
    state: Mutex<State>,
    quarantine: u64,
}

#[derive(Debug)]
struct State {
    next_device: u64,
    next_pinned: u64,
    /// Sizes of all freed allocations by address.
    freed: BTreeMap<u64, u64>,
    /// Freed allocations whose backing still holds poison, oldest first.
    poisoned: VecDeque<(u64, u64)>,
    poisoned_bytes: u64,
}

impl Memory {
    pub(crate) fn new(quarantine: u64) -> Result<Self, String> {
        let length = usize::try_from(2 * DEVICE + PINNED).map_err(|error| error.to_string())?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(format!(
                "cannot reserve address space: {}",
                std::io::Error::last_os_error()
            ));
        }
        let base = base.addr() as u64;
        protect(base + DEVICE, DEVICE, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(Memory {
            base,
            table: RwLock::default(),
            state: Mutex::new(State {
                // The first gap stays unused, so that the region's start is never an allocation's
                // address.
                next_device: base + GAP,
                next_pinned: base + 2 * DEVICE + GAP,
                freed: BTreeMap::new(),
                poisoned: VecDeque::new(),
                poisoned_bytes: 0,
            }),
            quarantine,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a snapshot of the live allocations.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Table) -> Result<T>) -> Result<T> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut table))
    }

    /// Allocates memory and returns its address.
    pub(crate) fn allocate(&self, device: &Device, bytes: u64, usage: Use, flags: u32) -> Result<u64> {
        // Nothing larger than a region fits; below that size no sum overflows.
        if bytes > PINNED {
            return Err(sys::hipErrorOutOfMemory);
        }
        let rounded = bytes.next_multiple_of(PAGE);
        let mut state = self.state();
        let (address, host) = if usage == Use::Device {
            let used = device.used.fetch_add(bytes, Ordering::Relaxed);
            let address = state.next_device;
            if used.saturating_add(bytes) > device.memory || address + rounded + GAP > self.base + DEVICE {
                device.used.fetch_sub(bytes, Ordering::Relaxed);
                return Err(sys::hipErrorOutOfMemory);
            }
            state.next_device = address + rounded + GAP;
            (address, address + DEVICE)
        } else {
            let address = state.next_pinned;
            if address + rounded + GAP > self.base + 2 * DEVICE + PINNED
                || protect(address, rounded, libc::PROT_READ | libc::PROT_WRITE).is_err()
            {
                return Err(sys::hipErrorOutOfMemory);
            }
            state.next_pinned = address + rounded + GAP;
            (address, address)
        };
        drop(state);
        poison(host, bytes, FRESH);
        let allocation = Allocation {
            address,
            bytes,
            host: std::ptr::with_exposed_provenance_mut(usize::try_from(host).map_err(|_| sys::hipErrorOutOfMemory)?),
            usage,
            device: device.ordinal,
            flags,
        };
        self.change(|table| {
            table.insert(allocation);
            Ok(address)
        })
    }

    /// Registers memory of the host (`hipHostRegister`).
    pub(crate) fn register(&self, device: &Device, start: NonNull<u8>, bytes: u64, flags: u32) -> Result {
        let address = start.as_ptr().expose_provenance() as u64;
        let allocation = Allocation {
            address,
            bytes,
            host: start.as_ptr(),
            usage: Use::Registered,
            device: device.ordinal,
            flags,
        };
        address.checked_add(bytes).ok_or(sys::hipErrorInvalidValue)?;
        self.change(|table| {
            if table.overlaps(address, bytes) {
                return Err(sys::hipErrorHostMemoryAlreadyRegistered);
            }
            table.insert(allocation);
            Ok(())
        })
    }

    /// Removes a live allocation from the table, if one of these uses starts at the address.
    pub(crate) fn remove(&self, address: u64, uses: &[Use]) -> Result<Allocation> {
        self.change(|table| {
            let at = table
                .0
                .binary_search_by_key(&address, |allocation| allocation.address)
                .map_err(|_| sys::hipErrorInvalidValue)?;
            if table
                .0
                .get(at)
                .is_some_and(|allocation| uses.contains(&allocation.usage))
            {
                Ok(table.0.remove(at))
            } else {
                Err(sys::hipErrorInvalidValue)
            }
        })
    }

    /// Frees an allocation that [`Memory::remove`] removed.
    pub(crate) fn release(&self, device: &Device, allocation: &Allocation) {
        let rounded = allocation.bytes.next_multiple_of(PAGE);
        let mut state = self.state();
        match allocation.usage {
            Use::Registered => return,
            Use::Host | Use::Managed => {
                // No poison: a read faults.
                discard(allocation.address, rounded);
                if let Err(error) = protect(allocation.address, rounded, libc::PROT_NONE) {
                    config::warn(&error);
                }
            }
            Use::Device => {
                device.used.fetch_sub(allocation.bytes, Ordering::Relaxed);
                poison(allocation.address + DEVICE, allocation.bytes, FREED);
                state.poisoned.push_back((allocation.address, rounded));
                state.poisoned_bytes += rounded;
                while state.poisoned_bytes > self.quarantine
                    && let Some((address, bytes)) = state.poisoned.pop_front()
                {
                    // The backing stays accessible, in case a kernel still runs that should not.
                    discard(address + DEVICE, bytes);
                    state.poisoned_bytes -= bytes;
                }
            }
        }
        state.freed.insert(allocation.address, allocation.bytes);
    }

    /// Describes an access that starts at an address outside every live allocation.
    pub(crate) fn explain(&self, address: u64) -> String {
        let state = self.state();
        let freed = state.freed.range(..=address).next_back();
        if let Some((start, bytes)) = freed.filter(|(start, bytes)| address - **start < **bytes) {
            return format!(
                "{address:#x} is {} bytes into an allocation of {bytes} bytes that was freed: use after free",
                address - start
            );
        }
        let table = self.table();
        let after = table.0.partition_point(|other| other.address <= address);
        match after.checked_sub(1).and_then(|at| table.0.get(at)) {
            Some(own) if address < own.end() => format!(
                "{address:#x} is {} bytes before the end of an allocation of {} bytes",
                own.end() - address,
                own.bytes
            ),
            Some(before) if address - before.end() < GAP => format!(
                "{address:#x} is {} bytes after the end of an allocation of {} bytes",
                address - before.end(),
                before.bytes
            ),
            _ => format!("{address:#x} is in no allocation"),
        }
    }

    /// Returns true if an address lies in the device region, whether allocated or not: the host
    /// cannot have memory there.
    pub(crate) fn is_device(&self, address: u64) -> bool {
        (self.base..self.base + DEVICE).contains(&address)
    }
}

/// Fills a range of the reservation with a pattern.
fn poison(host: u64, bytes: u64, pattern: u16) {
    let (Ok(host), Ok(bytes)) = (usize::try_from(host), usize::try_from(bytes)) else {
        return;
    };
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(host);
    let [low, high] = pattern.to_le_bytes();
    // SAFETY: the range is in the backing or the pinned region, was made accessible and belongs to
    // one allocation, which is not yet, or no longer, in the table. The writes are raw, so a caller
    // that breaks the rules and writes there too does not invalidate a reference.
    unsafe {
        let words = start.cast::<u16>();
        for at in 0..bytes / 2 {
            words.add(at).write(u16::from_le_bytes([low, high]));
        }
        if bytes % 2 == 1 {
            start.add(bytes - 1).write(low);
        }
    }
}

fn protect(address: u64, bytes: u64, protection: i32) -> Result<(), String> {
    let (Ok(start), Ok(length)) = (usize::try_from(address), usize::try_from(bytes)) else {
        return Err("an address does not fit".to_owned());
    };
    // SAFETY: the range lies in the emulator's reservation.
    let status = unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(start), length, protection) };
    if status == 0 {
        Ok(())
    } else {
        Err(format!("mprotect failed: {}", std::io::Error::last_os_error()))
    }
}

/// Returns the pages of a range to the system.
fn discard(address: u64, bytes: u64) {
    let (Ok(start), Ok(length)) = (usize::try_from(address), usize::try_from(bytes)) else {
        return;
    };
    // SAFETY: the range lies in the emulator's reservation and belongs to a freed allocation. If
    // the call fails, the pages merely stay in use.
    unsafe {
        libc::madvise(
            std::ptr::with_exposed_provenance_mut(start),
            length,
            libc::MADV_DONTNEED,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(allocation: &Allocation, at: usize) -> u16 {
        // SAFETY: within the allocation's backing, which stays mapped.
        unsafe { allocation.host.add(at).cast::<u16>().read_unaligned() }
    }

    #[test]
    fn addresses_are_given_once_and_freed_memory_is_poisoned() {
        let device = Device::parse(0, "gfx942", 1 << 20).unwrap();
        let memory = Memory::new(1 << 20).unwrap();
        let first = memory.allocate(&device, 100, Use::Device, 0).unwrap();
        let found = *memory.table().find(first + 99).unwrap();
        assert_eq!((found.address, found.bytes), (first, 100));
        assert!(memory.table().find(first + 100).is_none());
        assert_eq!((read(&found, 0), read(&found, 98)), (FRESH, FRESH));
        assert!(memory.explain(first + 100).contains("0 bytes after the end"));
        assert!(memory.explain(first + 96).contains("4 bytes before the end"));

        let removed = memory.remove(first, &[Use::Device]).unwrap();
        memory.release(&device, &removed);
        assert_eq!(read(&removed, 50), FREED);
        assert!(memory.explain(first + 7).contains("use after free"));
        assert_eq!(
            memory.remove(first, &[Use::Device]).unwrap_err(),
            sys::hipErrorInvalidValue
        );
        assert_ne!(memory.allocate(&device, 100, Use::Device, 0).unwrap(), first);
    }

    #[test]
    fn a_device_is_full_at_some_point() {
        let device = Device::parse(0, "gfx942", 1 << 20).unwrap();
        let memory = Memory::new(0).unwrap();
        let most = memory.allocate(&device, 1 << 20, Use::Device, 0).unwrap();
        assert_eq!(
            memory.allocate(&device, 1, Use::Device, 0),
            Err(sys::hipErrorOutOfMemory)
        );
        memory.release(&device, &memory.remove(most, &[Use::Device]).unwrap());
        assert!(memory.allocate(&device, 1, Use::Device, 0).is_ok());
        assert_eq!(
            memory.allocate(&device, u64::MAX, Use::Device, 0),
            Err(sys::hipErrorOutOfMemory)
        );
    }

    #[test]
    fn registered_ranges_do_not_overlap() {
        let device = Device::parse(0, "gfx942", 1 << 20).unwrap();
        let memory = Memory::new(0).unwrap();
        let mut bytes = [0u8; 64];
        let start = NonNull::new(bytes.as_mut_ptr()).unwrap();
        memory.register(&device, start, 64, 0).unwrap();
        assert_eq!(
            memory.register(&device, start, 1, 0),
            Err(sys::hipErrorHostMemoryAlreadyRegistered)
        );
        assert!(memory.remove(start.as_ptr().addr() as u64, &[Use::Registered]).is_ok());
        assert!(memory.register(&device, start, 1, 0).is_ok());
    }
}
