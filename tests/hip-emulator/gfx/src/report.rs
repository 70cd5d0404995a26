//! Counts of a launch: instructions by class, matrix operations, bytes, LDS bank conflicts,
//! registers, occupancy.

use std::{sync::Arc, time::Duration};

use rotini_time::Record;

/// Classes by which instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Scalar arithmetic
    Salu,
    /// Scalar loads
    Smem,
    /// Vector arithmetic
    Valu,
    /// Matrix instructions
    Mfma,
    /// Loads from device memory
    Load,
    /// Stores and atomics to device memory
    Store,
    /// Private memory
    Scratch,
    /// LDS
    Lds,
    /// Branches, waits, barriers
    Control,
}

/// Number of [`Class`] values.
pub const CLASSES: usize = 9;

/// Counters of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Kernel
    pub kernel: String,
    /// Workgroups run
    pub workgroups: u64,
    /// Waves run
    pub waves: u64,
    /// Wave-instructions by [`Class`]
    pub instructions: [u64; CLASSES],
    /// Operations of matrix instructions: a multiply-add is two
    pub mfma_operations: u64,
    /// Bytes loaded from device memory: by active lanes, and once per wave by scalar loads
    pub bytes_read: u64,
    /// Bytes stored to device memory by active lanes
    pub bytes_written: u64,
    /// Extra turns of LDS accesses, due to different words in the same bank that lanes of one turn
    /// access (32 banks of 4 bytes)
    pub lds_bank_conflicts: u64,
    /// Vector registers per lane
    pub vgprs: u32,
    /// Accumulation registers per lane
    pub agprs: u32,
    /// Scalar registers per wave
    pub sgprs: u32,
    /// LDS bytes per workgroup, static and dynamic
    pub lds_bytes: u32,
    /// Private bytes per lane
    pub scratch_bytes: u32,
    /// Waves per SIMD that registers and LDS allow, at most 8
    pub occupancy: u32,
    /// Record for the time model, of sampled runs
    pub record: Option<Arc<Record>>,
    /// Wall-clock time on the host
    pub time: Duration,
}

impl Report {
    /// Returns the wave-instructions of all classes.
    pub fn total(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Returns the wave-instructions of one class.
    pub fn count(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.workgroups += other.workgroups;
        self.waves += other.waves;
        for (mine, theirs) in self.instructions.iter_mut().zip(other.instructions) {
            *mine += theirs;
        }
        self.mfma_operations += other.mfma_operations;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.lds_bank_conflicts += other.lds_bank_conflicts;
    }
}

/// Returns the waves per SIMD of gfx942, at most 8: limited by 512 vector registers per lane in
/// blocks of 8, 800 scalar registers in blocks of 16 (LLVM counts 100 for eight waves), and 64 KiB
/// of LDS per compute unit with four SIMDs.
pub(crate) fn occupancy(registers: u32, scalars: u32, lds: u32, waves_per_group: u32) -> u32 {
    let registers = registers.max(1).next_multiple_of(8);
    let by_registers = (512 / registers).min(8);
    let by_lds = match lds {
        0 => 8,
        lds => ((65536 / lds.max(1)) * waves_per_group).div_ceil(4).min(8),
    };
    let by_scalars = if scalars > 100 { 7 } else { 8 };
    by_registers.min(by_scalars).min(by_lds).max(1)
}
