//! Holds the shadow state of a wave: initialised and pending registers, outstanding memory
//! operations.

use std::collections::VecDeque;

use crate::{
    lanes::Row,
    memory::{Access, Half, lanes_where, set_lanes},
    registers::{Counters, Footprint, Range, scalar_mask},
};

/// Maximum values of the counters of vector and of scalar memory: six and four bits. An operation
/// beyond the maximum waits for the oldest to finish.
const MOST_VECTOR: usize = 63;
const MOST_SCALAR: usize = 15;

/// An outstanding operation: its target registers, and whether it may finish out of order.
#[derive(Clone, Copy)]
struct Operation {
    target: Option<Range>,
    unordered: bool,
}

/// Outstanding operations of one counter, oldest first, and their target registers.
#[derive(Default)]
struct Queue {
    operations: VecDeque<Operation>,
    rows: Vec<u64>,
    scalars: u128,
}

impl Queue {
    fn reset(&mut self, words: usize) {
        self.operations.clear();
        self.rows.clear();
        self.rows.resize(words, 0);
        self.scalars = 0;
    }

    fn push(&mut self, operation: Operation, most: usize) {
        self.wait(most - 1);
        self.mark(operation.target);
        self.operations.push_back(operation);
    }

    fn mark(&mut self, target: Option<Range>) {
        let Some(range) = target else { return };
        let (first, count) = (usize::from(range.first), usize::from(range.count));
        if !range.vector {
            self.scalars |= scalar_mask(first, count);
            return;
        }
        for row in first..first + count {
            if let Some(word) = self.rows.get_mut(row / 64) {
                *word |= 1 << (row % 64);
            }
        }
    }

    /// Completes operations until at most `count` are outstanding.
    fn wait(&mut self, count: usize) {
        let done = self.operations.len().saturating_sub(count);
        if done == 0 || (count > 0 && self.operations.iter().any(|operation| operation.unordered)) {
            return;
        }
        self.operations.drain(..done);
        self.rows.fill(0);
        self.scalars = 0;
        for index in 0..self.operations.len() {
            self.mark(self.operations[index].target);
        }
    }

    fn pending(&self, range: Range) -> bool {
        let (first, count) = (usize::from(range.first), usize::from(range.count));
        if !range.vector {
            return self.scalars & scalar_mask(first, count) != 0;
        }
        (first..first + count).any(|row| self.rows.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 != 0))
    }
}

/// Shadow state of a wave.
#[derive(Default)]
pub(crate) struct Tracker {
    /// Rows that are initialised in all lanes
    full: Vec<u64>,
    /// Initialised lanes of the other rows
    rows: Vec<u64>,
    /// Initialised bits of partly initialised lanes
    bits: Vec<Row>,
    /// Scalar registers with at least one uninitialised bit
    unknown: u128,
    /// Initialised bits of these registers
    scalars: Vec<u32>,
    scc: bool,
    vector: Queue,
    scalar: Queue,
}

impl Tracker {
    pub(crate) fn reset(&mut self, rows: usize) {
        let words = rows.div_ceil(64);
        self.full.clear();
        self.full.resize(words, 0);
        self.rows.clear();
        self.rows.resize(rows, 0);
        self.bits.resize(rows, [0; 64]);
        self.bits.fill([0; 64]);
        self.unknown = u128::MAX;
        self.scalars.clear();
        self.scalars.resize(128, 0);
        self.scc = false;
        self.vector.reset(words);
        self.scalar.reset(words);
    }

    /// Returns true if the instruction accesses a pending register.
    #[inline]
    pub(crate) fn waits_for(&self, footprint: &Footprint) -> bool {
        let scalars = footprint.scalars_read | footprint.scalars_written;
        let mut waits = self.scalar.scalars & scalars != 0;
        for word in &footprint.words {
            if let (Some(vector), Some(scalar)) = (self.vector.rows.get(word.index), self.scalar.rows.get(word.index)) {
                waits |= (vector | scalar) & (word.read | word.written) != 0;
            }
        }
        waits
    }

    /// Returns true if everything that the instruction reads is initialised.
    #[inline]
    pub(crate) fn knows(&self, footprint: &Footprint) -> bool {
        let mut unknown = self.unknown & footprint.scalars_read != 0;
        unknown |= footprint.special || footprint.reads_scc && !self.scc;
        for word in &footprint.words {
            unknown |= word.read & !self.full.get(word.index).copied().unwrap_or(0) != 0;
        }
        !unknown
    }

    /// Marks everything that the instruction writes as initialised. Returns false without a change
    /// if single lanes must be examined.
    #[inline]
    pub(crate) fn define(&mut self, footprint: &Footprint, exec: u64) -> bool {
        for word in &footprint.words {
            let Some(full) = self.full.get_mut(word.index) else {
                return false;
            };
            if exec == u64::MAX {
                *full |= word.written;
            } else if word.written & !*full != 0 {
                return false;
            }
        }
        self.unknown &= !footprint.scalars_written;
        self.scc |= footprint.writes_scc;
        true
    }

    /// Marks a row as initialised in all lanes (launch state).
    pub(crate) fn define_row(&mut self, row: usize) {
        self.set_rows(row, 1, u64::MAX, u64::MAX);
    }

    /// Marks scalar registers as initialised.
    pub(crate) fn define_scalars(&mut self, first: usize, count: usize) {
        self.unknown &= !scalar_mask(first, count);
    }

    /// Sets the initialised lanes of rows, in the lanes of `exec`.
    pub(crate) fn set_rows(&mut self, first: usize, count: usize, exec: u64, known: u64) {
        for row in first..first + count {
            let lanes = self.row(row) & !exec | known & exec;
            if let (Some(full), Some(stored)) = (self.full.get_mut(row / 64), self.rows.get_mut(row)) {
                *stored = lanes;
                let bit = 1 << (row % 64);
                *full = if lanes == u64::MAX { *full | bit } else { *full & !bit };
                for lane in set_lanes(exec & !known) {
                    self.bits[row][lane] = 0;
                }
            }
        }
    }

    /// Sets the initialised bits of a row, in the lanes of `exec`.
    pub(crate) fn set_bits(&mut self, row: usize, exec: u64, bits: &Row) {
        self.set_rows(row, 1, exec, lanes_where(exec, |lane| bits[lane] == u32::MAX));
        if let Some(stored) = self.bits.get_mut(row) {
            set_lanes(exec).for_each(|lane| stored[lane] = bits[lane]);
        }
    }

    /// Returns the initialised bits of a row.
    pub(crate) fn bits(&self, row: usize) -> Row {
        let lanes = self.row(row);
        let partly = self.bits.get(row).unwrap_or(&[0; 64]);
        std::array::from_fn(|lane| if lanes >> lane & 1 != 0 { u32::MAX } else { partly[lane] })
    }

    /// Returns the lanes of a row in which these bits are initialised.
    pub(crate) fn lanes_with(&self, row: usize, bits: u32) -> u64 {
        let lanes = self.row(row);
        let partly = |lane: usize| self.bits.get(row).is_some_and(|row| row[lane] & bits == bits);
        lanes | lanes_where(!lanes, partly)
    }

    /// Returns the initialised lanes of a row.
    pub(crate) fn row(&self, row: usize) -> u64 {
        if self.full.get(row / 64).is_some_and(|full| full >> (row % 64) & 1 != 0) {
            return u64::MAX;
        }
        self.rows.get(row).copied().unwrap_or(0)
    }

    /// Returns the lanes in which the data of an access is initialised: all of its rows, or the
    /// accessed bits of one.
    pub(crate) fn data(&self, first: usize, access: Access) -> u64 {
        let bits = match (access.bytes, access.half) {
            (1, Some(Half::High)) => 0xff_0000,
            (2, Some(Half::High)) => 0xffff_0000,
            (1, _) => 0xff,
            (2, _) => 0xffff,
            _ => return self.lanes(first, access.rows()),
        };
        self.lanes_with(first, bits)
    }

    /// Returns the lanes in which all of these rows are initialised.
    pub(crate) fn lanes(&self, first: usize, count: usize) -> u64 {
        (first..first + count).fold(u64::MAX, |lanes, row| lanes & self.row(row))
    }

    /// Returns the initialised bits of a scalar register.
    pub(crate) fn scalar(&self, register: usize) -> u32 {
        if register >= 128 || self.unknown >> register & 1 == 0 {
            return u32::MAX;
        }
        self.scalars.get(register).copied().unwrap_or(0)
    }

    pub(crate) fn set_scalar(&mut self, register: usize, bits: u32) {
        if let Some(stored) = self.scalars.get_mut(register) {
            *stored = bits;
            self.unknown &= !(1 << register);
            self.unknown |= u128::from(bits != u32::MAX) << register;
        }
    }

    pub(crate) fn scalars_known(&self, range: Range) -> bool {
        self.unknown & scalar_mask(range.first.into(), range.count.into()) == 0
    }

    pub(crate) fn scc(&self) -> bool {
        self.scc
    }

    pub(crate) fn set_scc(&mut self, known: bool) {
        self.scc = known;
    }

    /// Returns true if an outstanding operation will write one of these registers.
    pub(crate) fn pending(&self, range: Range) -> bool {
        self.vector.pending(range) || self.scalar.pending(range)
    }

    /// Returns [`Tracker::pending`] for the target of a further operation: pending operations of
    /// its own counter are ignored if both complete in order.
    pub(crate) fn pending_but_for(&self, range: Range, counters: Option<Counters>) -> bool {
        let follows = |queue: &Queue, own: bool| {
            own && !counters.is_some_and(|c| c.unordered) && !queue.operations.iter().any(|o| o.unordered)
        };
        let (vector, scalar) = counters.map_or((false, false), |c| (c.vector, c.scalar));
        self.vector.pending(range) && !follows(&self.vector, vector)
            || self.scalar.pending(range) && !follows(&self.scalar, scalar)
    }

    pub(crate) fn issue(&mut self, counters: Counters, target: Option<Range>) {
        let operation = Operation {
            target,
            unordered: counters.unordered,
        };
        if counters.vector {
            self.vector.push(operation, MOST_VECTOR);
        }
        if counters.scalar {
            self.scalar.push(operation, MOST_SCALAR);
        }
    }

    /// Runs `s_waitcnt`: operations beyond the counts are complete; if some may overtake others,
    /// only a count of 0 tells which.
    pub(crate) fn wait(&mut self, vector: Option<u8>, scalar: Option<u8>) {
        if let Some(count) = vector {
            self.vector.wait(count.into());
        }
        if let Some(count) = scalar {
            self.scalar.wait(count.into());
        }
    }
}
