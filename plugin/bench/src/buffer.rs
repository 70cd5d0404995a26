//! Memory for one tensor between guard zones: of this process, or of a GPU.

use rotini_graph::{Graph, TensorKind};
use rotini_host::DeviceBuffer;
use rotini_host::gpu::{Allocation, Gpu, GpuError, Stream};
use rotini_reference::Buffers;
use std::ffi::c_void;

/// Alignment of the tensor's first byte: that of hipMalloc.
const ALIGNMENT: usize = 256;
/// Bytes before and after the tensor.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xA5;

/// The memory that kernels access.
pub enum Place {
    /// Memory of this process.
    Host,
    /// Memory of a GPU.
    Gpu(Gpu),
}

impl Place {
    /// Returns a buffer with these bytes.
    ///
    /// # Errors
    ///
    /// An error of the GPU, such as too little memory.
    pub fn buffer(&self, bytes: &[u8]) -> Result<Buffer, GpuError> {
        match self {
            Place::Host => Ok(Buffer::new(bytes)),
            Place::Gpu(gpu) => Buffer::on_gpu(gpu, bytes),
        }
    }

    /// Returns a filled buffer for each tensor of the graph that the caller passes. Scalars are
    /// always in this process's memory: they are read on the host.
    ///
    /// # Errors
    ///
    /// An error of the GPU.
    pub fn tensors(&self, graph: &Graph, inputs: &Buffers) -> Result<Vec<(i64, Buffer)>, GpuError> {
        let is_scalar = |uid: i64| {
            let mut tensors = graph.tensors.iter();
            tensors.any(|tensor| tensor.uid == uid && tensor.kind == TensorKind::RuntimeScalar)
        };
        let buffer = |(&uid, bytes): (&i64, &Vec<u8>)| {
            let place = if is_scalar(uid) { &Place::Host } else { self };
            Ok((uid, place.buffer(bytes)?))
        };
        inputs.iter().map(buffer).collect()
    }

    /// Waits for all work that was started.
    ///
    /// # Errors
    ///
    /// An error of the GPU, also for work that failed.
    pub fn finish(&self) -> Result<(), GpuError> {
        match self {
            // Executions return when they are done.
            Place::Host => Ok(()),
            Place::Gpu(gpu) => gpu.synchronize(),
        }
    }
}

/// The bytes of a buffer that a stream will copy into it.
pub struct Held<'a> {
    from: Allocation,
    to: &'a Allocation,
}

impl Held<'_> {
    /// Enqueues the copy.
    ///
    /// # Errors
    ///
    /// An error of the GPU.
    ///
    /// # Safety
    ///
    /// This and the buffer must live until the stream's work is done.
    pub unsafe fn release(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: by this function's contract.
        unsafe { stream.copy(self.to, &self.from, self.from.bytes()) }
    }
}

/// Returns the buffers in the form that an execution takes.
pub fn pack(tensors: &mut [(i64, Buffer)]) -> Vec<DeviceBuffer> {
    let one = |(uid, buffer): &mut (i64, Buffer)| DeviceBuffer {
        uid: *uid,
        ptr: buffer.pointer(),
    };
    tensors.iter_mut().map(one).collect()
}

/// Bytes that a kernel reads and writes, between guard zones that it must not touch.
pub struct Buffer {
    storage: Vec<u8>,
    start: usize,
    length: usize,
    /// The memory that kernels access, if it is not the storage. The storage is then a copy.
    device: Option<Allocation>,
}

impl Buffer {
    /// Returns a buffer in this process's memory.
    pub fn new(bytes: &[u8]) -> Self {
        // The storage is never resized, so its address stays.
        let storage = vec![GUARD_BYTE; Self::size(bytes)];
        let base = storage.as_ptr().addr();
        Self::at(storage, base, bytes)
    }

    fn on_gpu(gpu: &Gpu, bytes: &[u8]) -> Result<Self, GpuError> {
        let storage = vec![GUARD_BYTE; Self::size(bytes)];
        let device = gpu.allocate(storage.len())?;
        let mut buffer = Self::at(storage, device.pointer().addr(), bytes);
        device.write(0, &buffer.storage)?;
        buffer.device = Some(device);
        Ok(buffer)
    }

    fn size(bytes: &[u8]) -> usize {
        bytes.len().saturating_add(ALIGNMENT + 2 * GUARD)
    }

    fn at(mut storage: Vec<u8>, base: usize, bytes: &[u8]) -> Self {
        let misaligned = base.wrapping_add(GUARD) % ALIGNMENT;
        let start = GUARD + (ALIGNMENT - misaligned) % ALIGNMENT;
        let length = bytes.len();
        if let Some(place) = storage.get_mut(start..start.saturating_add(length)) {
            place.copy_from_slice(bytes);
        }
        Buffer {
            storage,
            start,
            length,
            device: None,
        }
    }

    /// Returns the address for kernels, valid for reads and writes of all bytes.
    pub fn pointer(&mut self) -> *mut c_void {
        let base = match &self.device {
            Some(device) => device.pointer().cast(),
            None => self.storage.as_mut_ptr(),
        };
        base.wrapping_add(self.start).cast()
    }

    /// Overwrites the buffer on the GPU, and returns memory with its former bytes, which a stream
    /// copies back. Returns `None` for memory of this process.
    ///
    /// # Errors
    ///
    /// An error of the GPU.
    pub fn hold_back(&self, gpu: &Gpu) -> Result<Option<Held<'_>>, GpuError> {
        let Some(to) = &self.device else { return Ok(None) };
        let from = gpu.allocate(self.storage.len())?;
        from.write(0, &self.storage)?;
        to.write(0, &vec![GUARD_BYTE; self.storage.len()])?;
        Ok(Some(Held { from, to }))
    }

    /// Copies what kernels wrote into the storage. Their work must be done.
    ///
    /// # Errors
    ///
    /// An error of the GPU.
    pub fn fetch(&mut self) -> Result<(), GpuError> {
        match &self.device {
            Some(device) => device.read(0, &mut self.storage),
            None => Ok(()),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.storage.get(self.start..self.end()).unwrap_or_default()
    }

    /// Returns true if the guard zones are unchanged.
    pub fn is_intact(&self) -> bool {
        let before = self.storage.get(..self.start).unwrap_or_default();
        let after = self.storage.get(self.end()..).unwrap_or_default();
        before.iter().chain(after).all(|&byte| byte == GUARD_BYTE)
    }

    fn end(&self) -> usize {
        self.start.saturating_add(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_guarded() {
        for length in [0, 1, 255, 1000] {
            let content: Vec<u8> = (0..length).map(|index| u8::try_from(index % 251).unwrap()).collect();
            let mut buffer = Buffer::new(&content);
            assert!(buffer.pointer().addr().is_multiple_of(ALIGNMENT));
            assert_eq!(buffer.bytes(), content);
            assert!(buffer.is_intact());
            for outside in [buffer.start - 1, buffer.end()] {
                buffer.storage[outside] ^= 1;
                assert!(!buffer.is_intact(), "a write at {outside} is not seen");
                buffer.storage[outside] ^= 1;
            }
        }
    }
}
