//! A second model of the vector opcodes, one lane at a time, on wide integers and soft floats (the
//! CDNA3 ISA's definitions).
//!
//! It shares no code with the table. Operands and results are bits in the low end of a `u64`; bits
//! above an operand are ignored.

mod convert;
mod exact;
mod float;
mod integer;
mod mode;

/// The expected result of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Result {
    /// Exactly these bits
    Bits(u64),
    /// Exactly these bits and this flag (carry, compare)
    Flag(u64, bool),
    /// A quiet NaN of a format of this many bits, whatever its payload
    NaN(u32),
    /// A float of `bits` bits within `ulps` of `value`, for approximations
    Near { value: f64, bits: u32, ulps: f64 },
}

/// Operands of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) s: [u64; 3],
    /// Carry in, or select
    pub(super) mask: bool,
    pub(super) number: u32,
    pub(super) clamp: bool,
}

pub(super) use mode::result;

/// Returns the result of a base mnemonic, rounded to nearest even with denormals; `None` if the
/// model does not know it.
fn ieee(name: &str, lane: Lane) -> Option<Result> {
    let name = name.strip_prefix("v_")?;
    integer::result(name, lane)
        .or_else(|| float::result(name, lane))
        .or_else(|| convert::result(name, lane))
}

/// Returns the low `bits` bits, unsigned.
fn u(value: u64, bits: u32) -> i128 {
    i128::from(value) & ((1 << bits) - 1)
}

/// Returns the low `bits` bits, signed.
fn s(value: u64, bits: u32) -> i128 {
    let value = u(value, bits);
    if value >> (bits - 1) & 1 != 0 {
        value - (1 << bits)
    } else {
        value
    }
}
