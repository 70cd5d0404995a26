//! Holds LDS, the memory that the waves of a workgroup share.

use super::{Access, patterns::Patterns, set_lanes, shadow::Shadow};
use crate::{error::Trap, lanes::Row, rows::extent};

/// A workgroup's LDS.
pub(crate) struct Lds {
    pub(super) bytes: Vec<u8>,
    pub(super) shadow: Shadow,
    pub(super) patterns: Patterns,
}

impl Lds {
    pub(crate) fn new(bytes: u32, strict: bool) -> Self {
        Self {
            bytes: vec![0; bytes as usize],
            shadow: Shadow::new(if strict { bytes as usize } else { 0 }),
            patterns: Patterns::default(),
        }
    }

    /// Poisons the contents for the next workgroup.
    pub(crate) fn reset(&mut self) {
        self.bytes.fill(0xad);
        self.shadow.reset();
    }

    /// Records a barrier that all waves have reached.
    pub(crate) fn barrier(&mut self) {
        self.shadow.barrier();
    }

    /// Checks that all accesses to `offset + offsets[lane]` lie in the workgroup's LDS.
    pub(crate) fn inside(&self, offsets: &Row, offset: u32, mask: u64, access: Access) -> Result<(), Trap> {
        let bytes = u64::from(access.bytes);
        let size = self.bytes.len() as u64;
        let (_, highest) = extent(offsets, mask);
        if u64::from(highest) + u64::from(offset) + bytes <= size {
            return Ok(());
        }
        let at = |lane: usize| u64::from(offsets[lane]) + u64::from(offset);
        let lane = set_lanes(mask).find(|&lane| at(lane) + bytes > size).unwrap_or(0);
        Err(Trap::Lds {
            offset: at(lane),
            bytes,
            lane: lane as u32,
        })
    }
}
