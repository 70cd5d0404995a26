//! Element types, and the scalars that are stored in the graph itself.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// The type that represents elements while a graph is computed: an element type of both MLIR and
/// IREE's HAL. Narrower types, and floats that MLIR and the HAL do not share, are carried as bytes.
/// Signedness belongs to the operations, not to this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// A byte.
    I8,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
}

impl Storage {
    /// Returns the type in MLIR's spelling.
    #[must_use]
    pub const fn mlir(self) -> &'static str {
        match self {
            Storage::F16 => "f16",
            Storage::Bf16 => "bf16",
            Storage::F32 => "f32",
            Storage::F64 => "f64",
            Storage::I8 => "i8",
            Storage::I32 => "i32",
            Storage::I64 => "i64",
        }
    }
}

/// The interpretation of an element's bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A float in which arithmetic is done.
    Float,
    /// A float of eight bits or less: converted before any arithmetic.
    Code,
    Signed,
    Unsigned,
    /// A boolean: the integers 0 and 1 only, although its byte could hold others.
    Truth,
}

/// The properties of a type.
#[derive(Clone, Copy)]
struct Facts {
    name: &'static str,
    bits: u32,
    kind: Kind,
    storage: Storage,
}

/// Declares the types, in the order of the wire format.
macro_rules! types {
    ($($variant:ident $name:literal $bits:literal $kind:ident $storage:ident $doc:literal,)+) => {
        /// The element type of a tensor, or the type in which a node computes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum DataType {
            $(#[doc = $doc] $variant,)+
        }

        impl DataType {
            /// Every type, in the order of the wire format.
            pub const ALL: [DataType; 18] = [$(DataType::$variant),+];

            /// Returns the properties of the type.
            const fn facts(self) -> Facts {
                let (name, bits, kind, storage) = match self {
                    $(DataType::$variant => ($name, $bits, Kind::$kind, Storage::$storage),)+
                };
                Facts { name, bits, kind, storage }
            }
        }
    };
}

types! {
    F32 "f32" 32 Float F32 "IEEE binary32.",
    F16 "f16" 16 Float F16 "IEEE binary16.",
    Bf16 "bf16" 16 Float Bf16 "bfloat16: the upper half of a binary32.",
    F64 "f64" 64 Float F64 "IEEE binary64.",
    U8 "u8" 8 Unsigned I8 "Unsigned 8-bit integer.",
    I32 "i32" 32 Signed I32 "Signed 32-bit integer.",
    I8 "i8" 8 Signed I8 "Signed 8-bit integer.",
    F8E4M3 "f8e4m3" 8 Code I8 "OCP 8-bit float with 4 exponent bits, no infinities.",
    F8E5M2 "f8e5m2" 8 Code I8 "OCP 8-bit float with 5 exponent bits.",
    F8E8M0 "f8e8m0" 8 Code I8 "OCP 8-bit scale: a power of two.",
    F4E2M1 "f4e2m1" 4 Code I8 "OCP 4-bit float, two in a byte.",
    F6E2M3 "f6e2m3" 6 Code I8 "OCP 6-bit float with 2 exponent bits, four in three bytes.",
    F6E3M2 "f6e3m2" 6 Code I8 "OCP 6-bit float with 3 exponent bits, four in three bytes.",
    I4 "i4" 4 Signed I8 "Signed 4-bit integer, two in a byte.",
    I64 "i64" 64 Signed I64 "Signed 64-bit integer.",
    Bool "bool" 8 Truth I8 "A boolean in a whole byte. On reads any non-zero byte is true; writes store 1 for true.",
    F8E4M3Fnuz "f8e4m3fnuz" 8 Code I8
        "8-bit float with 4 exponent bits in CDNA3's encoding (FNUZ): no infinities, no negative zero, one NaN.",
    F8E5M2Fnuz "f8e5m2fnuz" 8 Code I8
        "8-bit float with 5 exponent bits in CDNA3's encoding (FNUZ): no infinities, no negative zero, one NaN.",
}

impl DataType {
    /// Returns the size of one element in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.facts().bits
    }

    /// Returns the type that represents elements while a graph is computed.
    #[must_use]
    pub const fn storage(self) -> Storage {
        self.facts().storage
    }

    /// Returns true for floats of eight bits or less, which are stored as codes and converted
    /// before any arithmetic.
    #[must_use]
    pub const fn is_code(self) -> bool {
        matches!(self.facts().kind, Kind::Code)
    }

    /// Returns true if several elements share a byte.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Returns true for the 8-bit floats of gfx942's matrix cores (FNUZ).
    #[must_use]
    pub const fn is_fnuz(self) -> bool {
        matches!(self, DataType::F8E4M3Fnuz | DataType::F8E5M2Fnuz)
    }

    /// Returns the size of one element in bytes; `None` for the types whose elements share bytes.
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

    /// Returns true for integer types. Booleans count as integers, with the values 0 and 1.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.facts().kind, Kind::Signed | Kind::Unsigned | Kind::Truth)
    }

    /// Returns the range of an integer type; `None` for a floating-point type.
    #[must_use]
    pub const fn integer_range(self) -> Option<RangeInclusive<i64>> {
        let Facts { bits, kind, .. } = self.facts();
        match kind {
            Kind::Float | Kind::Code => None,
            Kind::Signed => Some(i64::MIN >> (64 - bits)..=i64::MAX >> (64 - bits)),
            Kind::Unsigned => Some(0..=i64::MAX >> (63 - bits)),
            Kind::Truth => Some(0..=1),
        }
    }

    /// Checks whether an integer may be the value of a constant of this type. Floats of 16 bits or
    /// more accept any integer and round it; narrower floats must represent it exactly.
    #[must_use]
    pub const fn holds_integer(self, value: i64) -> bool {
        let magnitude = value.unsigned_abs();
        // Number of significant bits, and the largest integer of the type.
        let (digits, most) = match self {
            DataType::F8E4M3 => (4, 448),
            DataType::F8E4M3Fnuz => (4, 240),
            DataType::F8E5M2 | DataType::F8E5M2Fnuz => (3, 57_344),
            DataType::F6E2M3 => (4, 7),
            DataType::F6E3M2 => (3, 28),
            DataType::F4E2M1 => (2, 6),
            DataType::F8E8M0 => return value > 0 && magnitude.is_power_of_two(),
            DataType::F16 | DataType::Bf16 | DataType::F32 | DataType::F64 => return true,
            DataType::U8 | DataType::I4 | DataType::I8 | DataType::I32 | DataType::I64 | DataType::Bool => {
                let (least, most) = self.whole_range();
                return least <= value && value <= most;
            }
        };
        magnitude <= most && (magnitude == 0 || magnitude >> magnitude.trailing_zeros() < 1 << digits)
    }

    /// Returns the smallest and the largest value of an integer type; for a floating-point type,
    /// those of an `i64`.
    #[must_use]
    pub const fn whole_range(self) -> (i64, i64) {
        match self.integer_range() {
            Some(range) => (*range.start(), *range.end()),
            None => (i64::MIN, i64::MAX),
        }
    }

    /// Returns true for floating-point types.
    #[must_use]
    pub const fn is_float(self) -> bool {
        !self.is_integer()
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

/// A value stored in the graph itself.
///
/// Floats are compared by their bits: a NaN equals itself, and negative zero differs from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// A floating-point value as the bits of a binary64, which holds every narrower type exactly.
    Float(u64),
    /// An integer or boolean value.
    Integer(i64),
}

impl Scalar {
    /// Returns the scalar of a floating-point value.
    #[must_use]
    pub const fn float(value: f64) -> Self {
        Scalar::Float(value.to_bits())
    }

    /// Returns the value as a binary64. Integers beyond 2^53 are rounded to nearest.
    #[must_use]
    pub const fn to_f64(self) -> f64 {
        match self {
            Scalar::Float(bits) => f64::from_bits(bits),
            Scalar::Integer(value) => value as f64,
        }
    }
}
