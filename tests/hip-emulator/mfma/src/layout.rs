//! The position of a matrix element: lane, register and bit. (`chain` iterates over lanes instead,
//! and has the layout of f64.)
//!
//! Both operands run along their long side over the lanes, then over the blocks, then over groups
//! of k; the elements of one group of k lie in the registers of one lane. C and D run along the
//! columns over the lanes and along four rows over four registers. (AMD CDNA3 ISA, chapter on
//! matrix arithmetic; `oracle/layouts.py` checks every element against AMD's matrix instruction
//! calculator.)

use crate::form::Form;

/// Lane, register of the operand and lowest bit of an element of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) lane: usize,
    pub(crate) register: usize,
    pub(crate) bit: usize,
}

const fn operand(
    side: usize,
    index: usize,
    k: usize,
    block: usize,
    blocks: usize,
    per_lane: usize,
    bits: usize,
) -> Place {
    let bit = k % per_lane * bits;
    Place {
        lane: index + side * (block + blocks * (k / per_lane)),
        register: bit / 32,
        bit: bit % 32,
    }
}

impl Form {
    /// Returns the place of A\[`row`\]\[`k`\] of `block`; in a sparse form, of the row's `k`-th
    /// stored element.
    pub(crate) const fn a_place(&self, row: usize, k: usize, block: usize) -> Place {
        operand(self.m, row, k, block, self.blocks, self.a_per_lane(), self.a.bits())
    }

    /// Returns the place of B\[`k`\]\[`column`\] of `block`.
    pub(crate) const fn b_place(&self, k: usize, column: usize, block: usize) -> Place {
        operand(self.n, column, k, block, self.blocks, self.b_per_lane(), self.b.bits())
    }

    /// Returns the place of C or D\[`row`\]\[`column`\] of `block`, for a form whose accumulator
    /// has 32 bits.
    pub(crate) const fn d_place(&self, row: usize, column: usize, block: usize) -> Place {
        let groups = 64 / self.n;
        let group = row / 4 + self.m / 4 * block;
        Place {
            lane: column + self.n * (group % groups),
            register: row % 4 + 4 * (group / groups),
            bit: 0,
        }
    }
}
