//! Buffers with guards around them, on the host or a GPU, and the poison in memory that must not be
//! read.

use anyhow::Result;
use rotini_host::gpu::{Allocation, Gpu};

/// Number of guard bytes on each side of a buffer; nothing may change them.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xA5;

/// Returns the initial bytes of workspaces and outputs, different for each execution: code that
/// reads them gives a wrong result, or different results. The 4-byte words are alternately NaN in
/// every float type, and large numbers of both signs, which are visible in sums, products and
/// extrema, including those that ignore NaN.
#[must_use]
pub fn poison(length: usize, execution: usize) -> Vec<u8> {
    const BYTES: [u8; 3] = [0xFF, 0x7B, 0xFA];
    const WORD: usize = 4;
    let byte = |at: usize| BYTES[(at / WORD + execution) % BYTES.len()];
    (0..length).map(byte).collect()
}

/// Location of an execution's buffers.
pub(super) enum Place {
    Host,
    Gpu(Gpu),
}

impl Place {
    pub(super) fn memory(&self, bytes: &[u8], alignment: usize) -> Result<Memory> {
        match self {
            Place::Host => Ok(Memory::new(bytes, alignment)),
            Place::Gpu(gpu) => Memory::on_gpu(gpu, bytes, alignment),
        }
    }
}

/// Bytes at an address of a given alignment, with guards on both sides.
pub struct Memory {
    raw: Vec<u8>,
    start: usize,
    length: usize,
    /// The device copy, if the memory is on a GPU.
    device: Option<Allocation>,
}

impl Memory {
    /// Returns a copy of `bytes` at a multiple of `alignment` (a power of two) that is no multiple
    /// of twice that.
    #[must_use]
    pub fn new(bytes: &[u8], alignment: usize) -> Self {
        let raw = Self::around(bytes, alignment);
        let base = raw.as_ptr().addr();
        Self::at(raw, base, bytes, alignment)
    }

    /// Returns a copy on a GPU, with a host mirror that [`fetch`](Self::fetch) updates.
    ///
    /// # Errors
    ///
    /// The GPU's.
    pub fn on_gpu(gpu: &Gpu, bytes: &[u8], alignment: usize) -> Result<Self> {
        let raw = Self::around(bytes, alignment);
        let device = gpu.allocate(raw.len())?;
        let mut memory = Self::at(raw, device.pointer().addr(), bytes, alignment);
        device.write(0, &memory.raw)?;
        memory.device = Some(device);
        Ok(memory)
    }

    fn around(bytes: &[u8], alignment: usize) -> Vec<u8> {
        vec![GUARD_BYTE; bytes.len() + 2 * GUARD + 4 * alignment]
    }

    fn at(mut raw: Vec<u8>, base: usize, bytes: &[u8], alignment: usize) -> Self {
        let first = base + GUARD;
        let start = GUARD + (first.next_multiple_of(2 * alignment) + alignment - first);
        raw[start..start + bytes.len()].copy_from_slice(bytes);
        Memory {
            raw,
            start,
            length: bytes.len(),
            device: None,
        }
    }

    /// Returns the address of the first byte, for executions.
    pub fn pointer(&mut self) -> *mut u8 {
        match &self.device {
            Some(device) => device.pointer().cast::<u8>().wrapping_add(self.start),
            None => self.raw[self.start..].as_mut_ptr(),
        }
    }

    /// Replaces the bytes by others of the same number. No work may use the memory.
    ///
    /// # Errors
    ///
    /// The GPU's.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.raw[self.start..self.start + self.length].copy_from_slice(bytes);
        match &self.device {
            Some(device) => Ok(device.write(self.start, bytes)?),
            None => Ok(()),
        }
    }

    /// Copies the device's contents to the host. The work that writes them must be complete.
    ///
    /// # Errors
    ///
    /// The GPU's.
    pub fn fetch(&mut self) -> Result<()> {
        match &self.device {
            Some(device) => Ok(device.read(0, &mut self.raw)?),
            None => Ok(()),
        }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.length]
    }

    /// Returns true if the guards are unchanged.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        let (before, rest) = self.raw.split_at(self.start);
        before
            .iter()
            .chain(&rest[self.length..])
            .all(|&byte| byte == GUARD_BYTE)
    }
}
