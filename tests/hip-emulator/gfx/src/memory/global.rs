//! Device memory: finds the launch's allocations, and gives the kernel arguments their own address.

use crate::error::Trap;

/// A live allocation: its device address and its host address.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First device address
    pub address: u64,
    /// Length
    pub bytes: u64,
    /// The bytes on the host
    pub host: *mut u8,
}

/// Device memory.
pub trait Memory: Sync {
    /// Returns the live allocation that contains `address`.
    ///
    /// Its bytes must stay valid for reads and writes until the launch returns.
    fn block(&self, address: u64) -> Option<Block>;
}

/// Device address of the kernel arguments, outside the addresses of allocations.
pub(crate) const KERNARG: u64 = 0x0000_6b61_7267_0000;

/// Device memory as one worker sees it.
pub(crate) struct Global<'a> {
    memory: &'a dyn Memory,
    /// A private copy of the arguments
    kernarg: Vec<u8>,
    /// The most recently found allocations
    recent: [Option<Block>; 4],
    next: usize,
}

impl<'a> Global<'a> {
    pub(crate) fn new(memory: &'a dyn Memory, kernarg: Vec<u8>) -> Self {
        Self {
            memory,
            kernarg,
            recent: [None; 4],
            next: 0,
        }
    }

    /// Returns the live allocation that contains `bytes` bytes from `address`.
    #[inline]
    pub(crate) fn find(&mut self, address: u64, bytes: u64) -> Option<Block> {
        let holds = |block: &Block| {
            address
                .checked_sub(block.address)
                .is_some_and(|offset| offset.checked_add(bytes).is_some_and(|end| end <= block.bytes))
        };
        if let Some(block) = self.recent.iter().flatten().find(|block| holds(block)) {
            return Some(*block);
        }
        let block = if address >= KERNARG && address - KERNARG < self.kernarg.len() as u64 {
            Block {
                address: KERNARG,
                bytes: self.kernarg.len() as u64,
                host: self.kernarg.as_mut_ptr(),
            }
        } else {
            self.memory.block(address)?
        };
        if !holds(&block) {
            return None;
        }
        self.recent[self.next] = Some(block);
        self.next = (self.next + 1) % self.recent.len();
        Some(block)
    }

    /// Returns the host address of `bytes` bytes.
    pub(crate) fn host(&mut self, address: u64, bytes: u64, lane: u32) -> Result<*mut u8, Trap> {
        let block = self.find(address, bytes).ok_or(Trap::Bounds { address, bytes, lane })?;
        Ok(block.host.wrapping_add((address - block.address) as usize))
    }
}
