//! Element types and the scalars that a graph can carry in itself.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// The element type of a tensor, or the type in which a node computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DataType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    Bf16,
    /// IEEE binary64.
    F64,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 32-bit integer.
    I32,
    /// Signed 8-bit integer.
    I8,
    /// OCP 8-bit float with 4 exponent bits, no infinities.
    F8E4M3,
    /// OCP 8-bit float with 5 exponent bits.
    F8E5M2,
    /// OCP 8-bit scale: a power of two.
    F8E8M0,
    /// OCP 4-bit float, two in a byte.
    F4E2M1,
    /// OCP 6-bit float with 2 exponent bits, four in three bytes.
    F6E2M3,
    /// OCP 6-bit float with 3 exponent bits, four in three bytes.
    F6E3M2,
    /// Signed 4-bit integer, two in a byte.
    I4,
    /// Signed 64-bit integer.
    I64,
    /// 8-bit float with 4 exponent bits as CDNA3 has it (FNUZ): no infinities, no negative zero, one NaN.
    F8E4M3Fnuz,
    /// 8-bit float with 5 exponent bits as CDNA3 has it (FNUZ): no infinities, no negative zero, one NaN.
    F8E5M2Fnuz,
}

impl DataType {
    /// Every type, in the order of the wire format.
    pub const ALL: [DataType; 17] = [
        DataType::F32,
        DataType::F16,
        DataType::Bf16,
        DataType::F64,
        DataType::U8,
        DataType::I32,
        DataType::I8,
        DataType::F8E4M3,
        DataType::F8E5M2,
        DataType::F8E8M0,
        DataType::F4E2M1,
        DataType::F6E2M3,
        DataType::F6E3M2,
        DataType::I4,
        DataType::I64,
        DataType::F8E4M3Fnuz,
        DataType::F8E5M2Fnuz,
    ];

    /// Size of one element in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            DataType::F64 | DataType::I64 => 64,
            DataType::F32 | DataType::I32 => 32,
            DataType::F16 | DataType::Bf16 => 16,
            DataType::U8
            | DataType::I8
            | DataType::F8E4M3
            | DataType::F8E5M2
            | DataType::F8E8M0
            | DataType::F8E4M3Fnuz
            | DataType::F8E5M2Fnuz => 8,
            DataType::F6E2M3 | DataType::F6E3M2 => 6,
            DataType::F4E2M1 | DataType::I4 => 4,
        }
    }

    /// Size of one element in bytes; `None` for the types that share bytes.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self.bits() {
            64 => Some(8),
            32 => Some(4),
            16 => Some(2),
            8 => Some(1),
            _ => None,
        }
    }

    /// Whether this is an integer type.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            DataType::U8 | DataType::I32 | DataType::I8 | DataType::I4 | DataType::I64
        )
    }

    /// The values of an integer type; `None` for a floating-point type.
    #[must_use]
    pub const fn integer_range(self) -> Option<RangeInclusive<i64>> {
        match self {
            DataType::U8 => Some(0..=u8::MAX as i64),
            DataType::I8 => Some(i8::MIN as i64..=i8::MAX as i64),
            DataType::I4 => Some(-8..=7),
            DataType::I32 => Some(i32::MIN as i64..=i32::MAX as i64),
            DataType::I64 => Some(i64::MIN..=i64::MAX),
            _ => None,
        }
    }

    /// Whether this is a floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        !self.is_integer()
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::F32 => "f32",
            DataType::F16 => "f16",
            DataType::Bf16 => "bf16",
            DataType::F64 => "f64",
            DataType::U8 => "u8",
            DataType::I32 => "i32",
            DataType::I8 => "i8",
            DataType::F8E4M3 => "f8e4m3",
            DataType::F8E5M2 => "f8e5m2",
            DataType::F8E8M0 => "f8e8m0",
            DataType::F4E2M1 => "f4e2m1",
            DataType::F6E2M3 => "f6e2m3",
            DataType::F6E3M2 => "f6e3m2",
            DataType::I4 => "i4",
            DataType::I64 => "i64",
            DataType::F8E4M3Fnuz => "f8e4m3fnuz",
            DataType::F8E5M2Fnuz => "f8e5m2fnuz",
        })
    }
}

/// A value that is stored in the graph itself.
///
/// Floats are kept as bits, so that equal means identical: a NaN equals itself and negative zero differs from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// A floating-point value as the bits of a binary64, which holds every narrower type exactly.
    Float(u64),
    /// An integer or boolean value.
    Integer(i64),
}

impl Scalar {
    /// The scalar for a floating-point value.
    #[must_use]
    pub const fn float(value: f64) -> Self {
        Scalar::Float(value.to_bits())
    }

    /// The value as a binary64. Integers beyond 2^53 round to the nearest.
    #[must_use]
    pub const fn to_f64(self) -> f64 {
        match self {
            Scalar::Float(bits) => f64::from_bits(bits),
            Scalar::Integer(value) => value as f64,
        }
    }
}
