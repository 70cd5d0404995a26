//! Element types, tensor types, buffers.

use std::ffi::c_void;

use super::{Error, HalDevice, Result, handle::Handle};
use crate::{result::check, sys::runtime as sys};

/// The alignment in bytes that host memory needs to be used in place.
///
/// Memory of a smaller alignment is refused, see [`Error::Misaligned`]. Code for the CPU is
/// compiled for this alignment, so it is a matter of correctness, not of speed.
pub const HOST_ALIGNMENT: usize = sys::IREE_HAL_HEAP_BUFFER_ALIGNMENT as usize;

/// An element type as compiled functions see it. MLIR's integers have no sign, so `u8` and `i8` are
/// one type there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// `i1`, one byte per element: 0 or 1.
    I1,
    /// `i8`, signed or unsigned.
    I8,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl ElementType {
    /// Returns the bytes per element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::I1 | Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    fn raw(self) -> sys::iree_hal_element_type_t {
        match self {
            Self::I1 => sys::IREE_HAL_ELEMENT_TYPE_BOOL_8,
            Self::I8 => sys::IREE_HAL_ELEMENT_TYPE_INT_8,
            Self::I32 => sys::IREE_HAL_ELEMENT_TYPE_INT_32,
            Self::I64 => sys::IREE_HAL_ELEMENT_TYPE_INT_64,
            Self::F16 => sys::IREE_HAL_ELEMENT_TYPE_FLOAT_16,
            Self::Bf16 => sys::IREE_HAL_ELEMENT_TYPE_BFLOAT_16,
            Self::F32 => sys::IREE_HAL_ELEMENT_TYPE_FLOAT_32,
            Self::F64 => sys::IREE_HAL_ELEMENT_TYPE_FLOAT_64,
        }
    }
}

/// A dense row-major tensor: element type and extents, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    element: ElementType,
    shape: Vec<usize>,
    bytes: usize,
}

impl TensorType {
    /// Creates a tensor type; an empty shape is a scalar.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for a negative extent, or a size in bytes that does not fit into `usize`.
    pub fn new(element: ElementType, shape: &[i64]) -> Result<Self> {
        let size = || {
            let mut bytes = element.bytes();
            let mut extents = Vec::with_capacity(shape.len());
            for &extent in shape {
                let extent = usize::try_from(extent).ok()?;
                bytes = bytes.checked_mul(extent)?;
                extents.push(extent);
            }
            Some((extents, bytes))
        };
        let (shape, bytes) = size().ok_or_else(|| Error::Shape(shape.to_vec()))?;
        Ok(Self { element, shape, bytes })
    }

    /// Returns the bytes of the whole tensor.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the element type.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Creates a view of `buffer` as this type.
    pub(super) fn view(&self, buffer: &Buffer) -> Result<Handle<sys::iree_hal_buffer_view_t>> {
        // SAFETY: the shape is read during the call; on success one owned reference is stored,
        // which retains the buffer.
        unsafe {
            Handle::create(|out| {
                sys::iree_hal_buffer_view_create(
                    buffer.0.as_ptr(),
                    self.shape.len(),
                    self.shape.as_ptr(),
                    self.element.raw(),
                    sys::IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR as _,
                    sys::iree_allocator_system(),
                    out,
                )
            })
        }
        .map_err(|source| Error::Buffer {
            what: "cannot view a buffer as a tensor",
            source,
        })
    }
}

/// A reference to memory that a device can use: allocated by it, or imported from the caller.
#[derive(Debug)]
pub struct Buffer(pub(super) Handle<sys::iree_hal_buffer_t>);

// SAFETY: a HAL buffer is immutable except for its contents, and every access to those is `unsafe`:
// its caller excludes other threads and queued work.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Uses `bytes` bytes of the caller's memory in place: host memory on host devices, device
    /// memory on GPUs.
    ///
    /// Costs about 0.1 µs on host devices; nothing is copied or registered.
    ///
    /// # Errors
    ///
    /// [`Error::Misaligned`] when a host pointer is not a multiple of [`HOST_ALIGNMENT`],
    /// [`Error::Null`] for a null pointer with a size, [`Error::Buffer`] when the driver refuses.
    ///
    /// # Safety
    ///
    /// The memory belongs to `device`'s address space, and is valid for reads and writes of `bytes`
    /// bytes until this buffer and everything that was made from it (arguments of an
    /// [`Invocation`](super::Invocation), queued work) is gone.
    pub unsafe fn import(device: &HalDevice, pointer: *mut c_void, bytes: usize) -> Result<Self> {
        let host = device.kind().is_host();
        if pointer.is_null() && bytes != 0 {
            return Err(Error::Null(bytes));
        }
        // IREE checks this too, but only after an allocation and with a message that takes a
        // microsecond to format.
        if host && !pointer.addr().is_multiple_of(HOST_ALIGNMENT) {
            return Err(Error::Misaligned {
                address: pointer.addr(),
                required: HOST_ALIGNMENT,
            });
        }
        let mut external = sys::iree_hal_external_buffer_t {
            size: bytes,
            ..Default::default()
        };
        if host {
            external.type_ = sys::IREE_HAL_EXTERNAL_BUFFER_TYPE_HOST_ALLOCATION;
            external.handle.host_allocation.ptr = pointer;
        } else {
            external.type_ = sys::IREE_HAL_EXTERNAL_BUFFER_TYPE_DEVICE_ALLOCATION;
            external.handle.device_allocation.ptr = pointer.addr() as u64;
        }
        // SAFETY: the device is alive and `external` describes memory that outlives the buffer by
        // this function's contract; there is no release callback, since the buffer does not own the
        // memory.
        unsafe {
            Handle::create(|out| {
                sys::iree_hal_allocator_import_buffer(
                    device.allocator(),
                    params(device),
                    &mut external,
                    sys::iree_hal_buffer_release_callback_null(),
                    out,
                )
            })
        }
        .map(Self)
        .map_err(|source| Error::Buffer {
            what: "cannot import memory",
            source,
        })
    }

    /// Allocates `bytes` bytes on `device`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] if the device is out of memory.
    pub fn allocate(device: &HalDevice, bytes: usize) -> Result<Self> {
        // SAFETY: the device is alive; on success one owned reference is stored.
        unsafe {
            Handle::create(|out| {
                sys::iree_hal_allocator_allocate_buffer(device.allocator(), params(device), bytes, out)
            })
        }
        .map(Self)
        .map_err(|source| Error::Buffer {
            what: "cannot allocate memory",
            source,
        })
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // SAFETY: the buffer is alive.
        unsafe { sys::iree_hal_buffer_byte_length(self.0.as_ptr()) }
    }

    /// Copies bytes from `offset` on into `target`. The copy is not ordered with queued work.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] out of range, or when the device's memory cannot be mapped.
    ///
    /// # Safety
    ///
    /// Nothing writes to the bytes meanwhile: no other thread, and no work that was queued with the
    /// buffer.
    pub unsafe fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        // SAFETY: the buffer is alive and checks the range; `target` is valid for its length;
        // nothing writes by this function's contract.
        unsafe {
            check(sys::iree_hal_buffer_map_read(
                self.0.as_ptr(),
                offset,
                target.as_mut_ptr().cast(),
                target.len(),
            ))
        }
        .map_err(|source| Error::Buffer {
            what: "cannot read a buffer",
            source,
        })
    }

    /// Copies `source` to `offset`. The copy is not ordered with queued work.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] out of range, or when the device's memory cannot be mapped.
    ///
    /// # Safety
    ///
    /// Nothing reads or writes the bytes meanwhile: no other thread, and no work that was queued
    /// with the buffer.
    pub unsafe fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        // SAFETY: the buffer is alive and checks the range; `source` is valid for its length; the
        // rest by this function's contract.
        unsafe {
            check(sys::iree_hal_buffer_map_write(
                self.0.as_ptr(),
                offset,
                source.as_ptr().cast(),
                source.len(),
            ))
        }
        .map_err(|source| Error::Buffer {
            what: "cannot write a buffer",
            source,
        })
    }
}

/// Returns the parameters that compiled functions assert of their arguments: device-visible memory
/// for dispatches and transfers.
fn params(device: &HalDevice) -> sys::iree_hal_buffer_params_t {
    let host_visible = if device.kind().is_host() {
        sys::IREE_HAL_MEMORY_TYPE_HOST_VISIBLE
    } else {
        0
    };
    sys::iree_hal_buffer_params_t {
        usage: sys::IREE_HAL_BUFFER_USAGE_DEFAULT as _,
        access: sys::IREE_HAL_MEMORY_ACCESS_ALL as _,
        type_: (sys::IREE_HAL_MEMORY_TYPE_DEVICE_LOCAL | host_visible) as _,
        ..Default::default()
    }
}
