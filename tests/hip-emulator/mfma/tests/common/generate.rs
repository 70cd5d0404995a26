//! The generator of `oracle/vectors.py`, in Rust. The comments there explain the profiles.

use super::{Kind, Shape};

/// The finaliser of SplitMix64.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// FNV-1a.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |value, byte| {
        (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hashes(name: &str, instruction: u64, operand: u64, elements: usize) -> Vec<u64> {
    let key = seed(name).wrapping_add(instruction << 40).wrapping_add(operand << 32);
    (0..elements as u64)
        .map(|element| mix(element.wrapping_add(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect()
}

/// Number of exponent and fraction bits, and the bias.
struct Format {
    exponent: u32,
    fraction: u32,
    bias: i64,
    fnuz: bool,
}

impl Format {
    fn of(kind: Kind) -> Self {
        let (exponent, fraction, bias) = match kind {
            Kind::F64 => (11, 52, 1023),
            Kind::F32 | Kind::Xf32 => (8, 23, 127),
            Kind::F16 => (5, 10, 15),
            Kind::Bf16 => (8, 7, 127),
            Kind::Fp8 => (4, 3, 8),
            Kind::Bf8 => (5, 2, 16),
            Kind::I8 | Kind::I32 => panic!("no float"),
        };
        Format {
            exponent,
            fraction,
            bias,
            fnuz: matches!(kind, Kind::Fp8 | Kind::Bf8),
        }
    }

    fn mask(&self) -> u64 {
        (1 << self.fraction) - 1
    }

    /// Returns the largest exponent field of a finite number.
    fn last(&self) -> u64 {
        (1 << self.exponent) - if self.fnuz { 1 } else { 2 }
    }

    fn assemble(&self, sign: u64, field: u64, fraction: u64) -> u64 {
        let bits = sign << (self.exponent + self.fraction) | field << self.fraction | fraction;
        if self.fnuz && bits == 0x80 { 0 } else { bits }
    }

    /// Returns an exponent field within `reach` of `centre`.
    fn around(&self, h: u64, centre: i64, reach: i64) -> u64 {
        let offset = ((h >> 52) % (2 * reach as u64 + 1)) as i64;
        (offset + centre - reach).clamp(0, self.last() as i64) as u64
    }

    fn plain(&self, h: u64) -> u64 {
        [0, 1, self.mask(), (self.mask() >> 1) + 1][((h >> 44) % 4) as usize]
    }

    fn special(&self, h: u64) -> u64 {
        let (sign, mask, top) = (h >> 63, self.mask(), (1 << self.exponent) - 1);
        match (h >> 40) % 8 {
            0 => self.assemble(sign, 0, 0),
            1 => self.assemble(sign, 0, 1),
            2 => self.assemble(sign, 1, 0),
            3 => self.assemble(sign, self.last(), mask),
            4 => self.assemble(sign, 0, mask),
            _ if self.fnuz => 0x80,
            5 | 6 => self.assemble(sign, top, 0),
            _ => self.assemble(sign, top, h & mask | ((mask >> 1) + 1)),
        }
    }
}

/// Returns the bits of A\[row\]\[k\] or B\[column\]\[k\], one block after the other.
fn operand(kind: Kind, name: &str, instruction: u64, which: u64, rows: usize, k: usize) -> Vec<u64> {
    let format = Format::of(kind);
    let own = hashes(name, instruction, which, rows * k);
    let element = |index: usize| {
        let odd = instruction % 8 == 3 && index % k % 2 == 1;
        let h = if odd { own[index - 1] } else { own[index] };
        let (sign, fraction) = (h >> 63, h & format.mask());
        let near = |centre: i64, reach: i64| format.assemble(sign, format.around(h, centre, reach), fraction);
        match instruction % 8 {
            0 => format.assemble(sign, (h >> 52) % (format.last() + 1), fraction),
            2 if (h >> 32) % 32 == 0 => format.special(h),
            1 | 2 => near(format.bias, 2),
            3 => {
                let bits = near(format.bias, 4);
                if which == 0 && odd {
                    let flipped = bits ^ (1 << (format.exponent + format.fraction)) ^ ((own[index] >> 36) % 2);
                    if format.fnuz && flipped == 0x80 { 0 } else { flipped }
                } else {
                    bits
                }
            }
            4 if (instruction / 8).is_multiple_of(2) => {
                if (h >> 48).is_multiple_of(4) {
                    format.assemble(sign, 0, 0)
                } else {
                    format.assemble(sign, (h >> 52) % 3, fraction)
                }
            }
            4 => {
                let plain = (h >> 24).is_multiple_of(2);
                let fraction = if plain { format.plain(h) } else { fraction };
                format.assemble(sign, format.around(h, format.bias - format.bias / 2 - 6, 10), fraction)
            }
            5 => near(format.bias, 18),
            6 => format.assemble(sign, format.last() - (h >> 52) % 4, fraction),
            _ => format.assemble(sign, format.around(h, format.bias, 12), format.plain(h)),
        }
    };
    (0..rows * k).map(element).collect()
}

/// Returns the bits of C\[row\]\[column\].
fn accumulator(kind: Kind, name: &str, instruction: u64, elements: usize) -> Vec<u64> {
    let format = Format::of(kind);
    let element = |h: u64| {
        let (sign, fraction) = (h >> 63, h & format.mask());
        let near = |centre: i64, reach: i64| format.assemble(sign, format.around(h, centre, reach), fraction);
        match (h >> 24) % 8 {
            0 => format.assemble(sign, 0, 0),
            1..=4 if instruction % 16 == 12 => format.assemble(sign, (h >> 52) % 2, fraction),
            1 => near(format.bias, 2),
            2 => format.assemble(sign, (h >> 52) % (format.last() + 1), fraction),
            3 => near(format.bias, 32),
            4 if (h >> 32).is_multiple_of(8) => format.special(mix(h)),
            4 => near(format.bias, 2),
            5 => format.assemble(sign, (h >> 52) % 8, fraction),
            6 => near(format.bias + 6, 6),
            _ => format.assemble(sign, format.around(h, format.bias, 30), format.plain(h)),
        }
    };
    hashes(name, instruction, 2, elements)
        .into_iter()
        .map(element)
        .collect()
}

/// A, B and C of an instruction.
pub struct Matrices {
    /// \[block\]\[row\]\[k\]
    pub a: Vec<u64>,
    /// \[block\]\[column\]\[k\]
    pub b: Vec<u64>,
    /// \[block\]\[row\]\[column\]
    pub c: Vec<u64>,
}

pub fn matrices(shape: &Shape, instruction: u64) -> Matrices {
    let Shape {
        name, m, n, k, blocks, ..
    } = *shape;
    Matrices {
        a: operand(shape.a, name, instruction, 0, blocks * m, shape.stored()),
        b: operand(shape.b, name, instruction, 1, blocks * n, k),
        c: accumulator(shape.d, name, instruction, blocks * m * n),
    }
}

/// Returns operands of few bits within few exponents, and accumulators near their unit, so that
/// sums are exact or only just round. Not in `oracle/vectors.py`: for comparing two
/// implementations. Floats only.
pub fn few_bits(shape: &Shape, round: u64) -> Matrices {
    let Shape { m, n, k, blocks, .. } = *shape;
    let mut state = seed(shape.name).wrapping_add(mix(round));
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(state)
    };
    // Returns elements, and the exponent of the unit that they are multiples of.
    let mut operand = |kind: Kind, count: usize| {
        let format = Format::of(kind);
        let visible = if kind == Kind::Xf32 { 10 } else { format.fraction };
        let fields = 1 + next() % 8;
        // Often 9 bits in all, the limit of the fast path.
        let kept = [next() % (u64::from(visible) + 1), (9 - fields).min(visible.into())][next() as usize % 2];
        let dropped = (1 << (u64::from(format.fraction) - kept)) - 1;
        let most = format.last() - fields;
        // In some rounds next to the infinities, and then with some infinities.
        let (at_top, special) = (next().is_multiple_of(4), next().is_multiple_of(2));
        let least = 1 + if at_top {
            most
        } else {
            most.min(format.bias as u64 - 5 + next() % 5)
        };
        let one_sign = next().is_multiple_of(2);
        let zeros = 1 + next() % 64;
        let elements = (0..count)
            .map(|_| {
                let h = next();
                let sign = if one_sign { 0 } else { h >> 63 };
                if (h >> 40).is_multiple_of(zeros + 1) {
                    return format.assemble(sign, 0, 0);
                }
                if at_top && special && (h >> 48).is_multiple_of(512) {
                    return format.special(next());
                }
                // Mostly the ends of the range.
                let field = least + [0, fields - 1, (h >> 32) % fields][(h >> 30) as usize % 3];
                let fraction = if (h >> 29) & 1 == 0 { h } else { u64::MAX };
                format.assemble(sign, field, fraction & format.mask() & !dropped)
            })
            .collect::<Vec<_>>();
        (elements, least as i64 - format.bias - kept as i64)
    };
    let (a, a_unit) = operand(shape.a, blocks * m * k);
    let (b, b_unit) = operand(shape.b, blocks * n * k);
    // Includes the upper end of the multiples of the unit that an f32 holds, and bits below the
    // unit.
    let bits = [next() % 27, 21 + next() % 5][next() as usize % 2];
    let finer = [0, 0, 0, 1, 4, 12][next() as usize % 6];
    let odd = next() % 4;
    let unit = (a_unit + b_unit - finer) as i32;
    let c = (0..blocks * m * n)
        .map(|_| {
            let h = next();
            let magnitude = (h & ((1 << bits) - 1) & !odd) as f64 * 2f64.powi(unit);
            u64::from((if h >> 63 == 0 { magnitude } else { -magnitude } as f32).to_bits())
        })
        .collect();
    Matrices { a, b, c }
}
