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

/// Whose memory kernels work on.
pub enum Place {
    /// This process's.
    Host,
    /// A GPU's.
    Gpu(Gpu),
}

impl Place {
    /// A buffer with these bytes.
    ///
    /// # Errors
    ///
    /// The GPU's, for instance without enough memory.
    pub fn buffer(&self, bytes: &[u8]) -> Result<Buffer, GpuError> {
        match self {
            Place::Host => Ok(Buffer::new(bytes)),
            Place::Gpu(gpu) => Buffer::on_gpu(gpu, bytes),
        }
    }

    /// A buffer with its bytes for each tensor of the graph that is in one. Scalars lie in this
    /// process's memory, whatever the place is: they are read on the host.
    ///
    /// # Errors
    ///
    /// The GPU's.
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

    /// Returns when everything is done that was started.
    ///
    /// # Errors
    ///
    /// The GPU's, also for work that failed.
    pub fn finish(&self) -> Result<(), GpuError> {
        match self {
            // Executions return when they are done.
            Place::Host => Ok(()),
            Place::Gpu(gpu) => gpu.synchronize(),
        }
    }
}

/// The bytes of a buffer that are not there yet.
pub struct Held<'a> {
    from: Allocation,
    to: &'a Allocation,
}

impl Held<'_> {
    /// Enqueues the copy that brings them.
    ///
    /// # Errors
    ///
    /// The GPU's.
    ///
    /// # Safety
    ///
    /// This, and the buffer, live until the stream's work is done.
    pub unsafe fn release(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: by this function's contract.
        unsafe { stream.copy(self.to, &self.from, self.from.bytes()) }
    }
}

/// The buffers as an execution takes them.
pub fn pack(tensors: &mut [(i64, Buffer)]) -> Vec<DeviceBuffer> {
    let one = |(uid, buffer): &mut (i64, Buffer)| DeviceBuffer {
        uid: *uid,
        ptr: buffer.pointer(),
    };
    tensors.iter_mut().map(one).collect()
}

/// Bytes that a kernel reads and writes, with others around them that it must not touch.
pub struct Buffer {
    storage: Vec<u8>,
    start: usize,
    length: usize,
    /// Where kernels find the bytes, if not in the storage, which is a copy then.
    device: Option<Allocation>,
}

impl Buffer {
    /// A buffer in this process's memory.
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

    /// Where kernels find the bytes; valid for reads and writes of all of them.
    pub fn pointer(&mut self) -> *mut c_void {
        let base = match &self.device {
            Some(device) => device.pointer().cast(),
            None => self.storage.as_mut_ptr(),
        };
        base.wrapping_add(self.start).cast()
    }

    /// Puts other bytes in place of these on the GPU, and returns memory with these, to be copied
    /// back by a stream. `None` for memory of this process.
    ///
    /// # Errors
    ///
    /// The GPU's.
    pub fn hold_back(&self, gpu: &Gpu) -> Result<Option<Held<'_>>, GpuError> {
        let Some(to) = &self.device else { return Ok(None) };
        let from = gpu.allocate(self.storage.len())?;
        from.write(0, &self.storage)?;
        to.write(0, &vec![GUARD_BYTE; self.storage.len()])?;
        Ok(Some(Held { from, to }))
    }

    /// Brings what kernels have written here. They are done.
    ///
    /// # Errors
    ///
    /// The GPU's.
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

    /// Whether nobody wrote around the bytes.
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
