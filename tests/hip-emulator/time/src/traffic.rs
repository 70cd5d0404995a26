//! The sources of a launch's bytes beyond the second-level caches: memory, or Infinity Cache.

use crate::{Machine, Record, Step};

/// The state of Infinity Cache when a launch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caches {
    /// It holds no operands, because other buffers were used since. hipDNN's users rotate buffers,
    /// and a network runs other layers in between
    Cold,
    /// It holds the operands as far as they fit, because the same launch ran just before, as in
    /// most published measurements
    Warm,
}

/// Bytes of all workgroups beyond the second-level caches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Traffic {
    /// Bytes read, counted for every die that reads them
    read: f64,
    /// Bytes written
    written: f64,
    /// Bytes touched, each counted once
    footprint: f64,
}

impl Traffic {
    /// Returns the traffic of all workgroups, extrapolated from one wave's path.
    pub(crate) fn of(record: &Record, path: &[u32]) -> Self {
        const LINE: f64 = 128.0;
        let waves = record.workgroups as f64 * f64::from(record.waves);
        let (mut read, mut written) = (0.0, 0.0);
        for &number in path {
            match record.instructions[number as usize].step {
                Step::Load { fresh, .. } => read += f64::from(fresh) * LINE,
                Step::Store { bytes, .. } => written += f64::from(bytes),
                _ => {}
            }
        }
        Self {
            read: read * waves,
            written: written * waves,
            footprint: record.footprint as f64,
        }
    }

    /// Returns the share of the reads that are the first read of their line. All others hit
    /// Infinity Cache, because another die's read brought the line there.
    fn first(&self) -> f64 {
        let first = (self.footprint - self.written).clamp(0.0, self.read);
        if self.read > 0.0 { first / self.read } else { 0.0 }
    }

    /// Returns the bandwidths of all reads and of all writes in bytes per nanosecond. Reads are
    /// served by both memory and Infinity Cache.
    pub(crate) fn rates(&self, machine: &Machine, caches: Caches) -> [f64; 2] {
        let kept = match caches {
            Caches::Cold => 0.0,
            Caches::Warm => (1.0 - self.footprint / machine.cache as f64).max(0.0),
        };
        let from_memory = self.first() * (1.0 - kept);
        let read = from_memory / machine.memory + (1.0 - from_memory) / machine.cached;
        [1.0 / read, machine.memory]
    }

    /// Returns the least time in ns that the traffic takes.
    pub(crate) fn least(&self, machine: &Machine, caches: Caches) -> f64 {
        let [read, write] = self.rates(machine, caches);
        self.read / read + self.written / write
    }
}
