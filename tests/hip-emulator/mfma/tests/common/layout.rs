//! Positions of elements, by the formulas that AMD's matrix instruction calculator prints for each
//! instruction: case by case rather than by one formula. `layouts.rs` checks each position against
//! the calculator's own.

use rotini_mfma::{Control, Register};

use super::{Kind, Shape, registers};

/// Lane, register and lowest bit.
pub type Place = (usize, usize, usize);

fn packed(kind: Kind, lane: usize, element: usize) -> Place {
    match kind {
        Kind::F64 => (lane, 0, 0),
        Kind::F32 | Kind::Xf32 | Kind::I32 => (lane, element, 0),
        Kind::F16 | Kind::Bf16 => (lane, element / 2, 16 * (element % 2)),
        Kind::Fp8 | Kind::Bf8 | Kind::I8 => (lane, element / 4, 8 * (element % 4)),
    }
}

/// Returns the place of A\[i\]\[k\] (of SMFMAC's k-th stored element), or with `side` n of
/// B\[k\]\[i\].
fn operand(shape: &Shape, kind: Kind, side: usize, stored: usize, i: usize, k: usize, block: usize) -> Place {
    if kind == Kind::F64 {
        let lane = if side == 16 { 16 * k + i } else { 4 * block + 16 * k + i };
        return packed(kind, lane, 0);
    }
    if shape.blocks > 1 {
        // All of k lies in the registers of one lane.
        return packed(kind, side * block + i, k);
    }
    // The lanes hold `side` rows, 64 / side times.
    let span = stored * side / 64;
    packed(kind, side * (k / span) + i, k % span)
}

impl Shape {
    pub fn a_place(&self, i: usize, k: usize, block: usize) -> Place {
        operand(self, self.a, self.m, self.stored(), i, k, block)
    }

    pub fn b_place(&self, k: usize, j: usize, block: usize) -> Place {
        operand(self, self.b, self.n, self.k, j, k, block)
    }

    /// Returns the place of an element of D; for f64, the register of the lower half.
    pub fn d_place(&self, i: usize, j: usize, block: usize) -> Place {
        match (self.d, self.m) {
            (Kind::F64, 16) => (16 * (i % 4) + j, 2 * (i / 4), 0),
            (Kind::F64, _) => (16 * i + 4 * block + j, 0, 0),
            (_, 4) => (4 * block + j, i, 0),
            (_, 16) => (16 * (i / 4) + j, 4 * block + i % 4, 0),
            (_, _) => (32 * (i / 4 % 2) + j, 16 * block + 4 * (i / 8) + i % 4, 0),
        }
    }

    /// Returns the block of A that is used for a block.
    pub fn broadcast(block: usize, control: Control) -> usize {
        let group = 1 << control.cbsz;
        block / group * group + usize::from(control.abid)
    }

    /// Returns the lane of B that is read instead of `lane`.
    pub fn permuted(lane: usize, control: Control) -> usize {
        match control.blgp {
            0 => lane,
            1 => lane & 31,
            2 => lane | 32,
            3 => (lane + 16) & 63,
            pattern => lane & 15 | usize::from(pattern & 3) << 4,
        }
    }

    /// Returns the place of the two bits of SMFMAC that give the position, among four elements, of
    /// the `stored`-th element of row `i`.
    pub fn index_place(&self, i: usize, stored: usize, control: Control) -> Place {
        let (lane, ..) = self.a_place(i, stored, 0);
        let span = self.stored() * self.m / 64;
        let set = if control.cbsz == 0 {
            usize::from(control.abid)
        } else {
            0
        };
        (lane, 0, 2 * (set * span + stored % span))
    }

    fn pack(count: usize, wide: bool, elements: impl Iterator<Item = (Place, u64)>) -> Vec<Register> {
        let mut packed = registers(count);
        for ((lane, register, bit), value) in elements {
            packed[register][lane] |= (value << bit) as u32;
            if wide {
                packed[register + 1][lane] = (value >> 32) as u32;
            }
        }
        packed
    }

    /// Packs A from \[block\]\[row\]\[k\] into registers.
    pub fn pack_a(&self, count: usize, a: &[u64]) -> Vec<Register> {
        let (m, k) = (self.m, self.stored());
        let place = |index: usize| self.a_place(index / k % m, index % k, index / k / m);
        Self::pack(
            count,
            self.a == Kind::F64,
            a.iter().enumerate().map(|(index, &value)| (place(index), value)),
        )
    }

    /// Packs B from \[block\]\[column\]\[k\] into registers.
    pub fn pack_b(&self, count: usize, b: &[u64]) -> Vec<Register> {
        let (n, k) = (self.n, self.k);
        let place = |index: usize| self.b_place(index % k, index / k % n, index / k / n);
        Self::pack(
            count,
            self.b == Kind::F64,
            b.iter().enumerate().map(|(index, &value)| (place(index), value)),
        )
    }

    /// Packs C from \[block\]\[row\]\[column\] into registers.
    pub fn pack_c(&self, count: usize, c: &[u64]) -> Vec<Register> {
        let (m, n) = (self.m, self.n);
        let place = |index: usize| self.d_place(index / n % m, index % n, index / n / m);
        Self::pack(
            count,
            self.d == Kind::F64,
            c.iter().enumerate().map(|(index, &value)| (place(index), value)),
        )
    }

    /// Unpacks the registers of D to \[block\]\[row\]\[column\].
    pub fn unpack_d(&self, d: &[Register]) -> Vec<u64> {
        let (m, n) = (self.m, self.n);
        (0..self.blocks * m * n)
            .map(|index| {
                let (lane, register, _) = self.d_place(index / n % m, index % n, index / n / m);
                let high = if self.d == Kind::F64 { d[register + 1][lane] } else { 0 };
                u64::from(d[register][lane]) | u64::from(high) << 32
            })
            .collect()
    }
}
