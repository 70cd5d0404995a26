//! Memory for one tensor between guard zones.

use std::ffi::c_void;

/// Alignment of the tensor's first byte: that of hipMalloc.
const ALIGNMENT: usize = 256;
/// Bytes before and after the tensor.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xA5;

/// Bytes that a kernel reads and writes, with others around them that it must not touch.
pub(crate) struct HostBuffer {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl HostBuffer {
    /// A buffer with these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut storage = vec![GUARD_BYTE; bytes.len().saturating_add(ALIGNMENT + 2 * GUARD)];
        // The storage is never resized, so its address stays.
        let misaligned = storage.as_ptr().addr().wrapping_add(GUARD) % ALIGNMENT;
        let start = GUARD + (ALIGNMENT - misaligned) % ALIGNMENT;
        let length = bytes.len();
        if let Some(place) = storage.get_mut(start..start.saturating_add(length)) {
            place.copy_from_slice(bytes);
        }
        HostBuffer { storage, start, length }
    }

    /// Where the bytes are; valid for reads and writes of all of them.
    pub(crate) fn pointer(&mut self) -> *mut c_void {
        self.storage.as_mut_ptr().wrapping_add(self.start).cast()
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.storage.get(self.start..self.end()).unwrap_or_default()
    }

    /// Whether nobody wrote around the bytes.
    pub(crate) fn is_intact(&self) -> bool {
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
            let mut buffer = HostBuffer::new(&content);
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
