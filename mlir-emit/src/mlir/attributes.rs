//! Attributes of operations: as data if the lowering reads them again, else as text.

use super::affine::IndexMap;
use super::types::{Float, Kind, Type};
use std::fmt::{self, Display};

/// The iterator type of a loop of a structured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loop {
    Parallel,
    Reduction,
}

/// An attribute. Its text is what MLIR's parser reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// The attribute's text.
    Text(String),
    /// A constant of one element: its digits and its type, which `false` and `true` do not need.
    Scalar(String, Option<String>),
    /// The index maps of a structured operation's operands; the last is that of the operand it
    /// writes.
    Maps(Vec<IndexMap>),
    Loops(Vec<Loop>),
}

impl Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Text(text) | Attribute::Scalar(text, None) => f.write_str(text),
            Attribute::Scalar(digits, Some(r#type)) => write!(f, "{digits} : {type}"),
            Attribute::Maps(maps) => write!(f, "[{}]", list(maps)),
            Attribute::Loops(loops) => {
                let name = |kind: &Loop| match kind {
                    Loop::Parallel => "#linalg.iterator_type<parallel>",
                    Loop::Reduction => "#linalg.iterator_type<reduction>",
                };
                write!(f, "[{}]", list(loops.iter().map(name)))
            }
        }
    }
}

/// Joins items with commas.
pub(super) fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

impl Attribute {
    /// Returns an attribute with this text.
    pub(crate) fn text(text: &str) -> Self {
        Attribute::Text(text.to_owned())
    }

    /// Returns groups of axes, as `tensor.expand_shape` and `tensor.collapse_shape` have them.
    pub(crate) fn groups(groups: &[Vec<usize>]) -> Self {
        let group = |group: &Vec<usize>| format!("[{}]", list(group.iter().map(|axis| format!("{axis} : i64"))));
        Attribute::Text(format!("[{}]", list(groups.iter().map(group))))
    }

    /// Returns a reference to the function with this name.
    pub(crate) fn symbol(name: &str) -> Self {
        Attribute::Text(format!("@{name}"))
    }

    pub(crate) fn i32_array(values: &[i32]) -> Self {
        Self::array("i32", values)
    }

    pub(crate) fn i64_array(values: &[i64]) -> Self {
        Self::array("i64", values)
    }

    fn array(r#type: &str, values: &[impl Display]) -> Self {
        let separator = if values.is_empty() { "" } else { ": " };
        Attribute::Text(format!("array<{type}{separator}{}>", list(values)))
    }

    /// Returns a constant of one element with these digits.
    pub(crate) fn scalar(digits: impl Display, r#type: Type<'_>) -> Self {
        Attribute::Scalar(digits.to_string(), Some(r#type.to_string()))
    }

    /// Returns the constant of a vector all of whose elements are this constant of one element.
    pub(crate) fn splat(&self, vector: Type<'_>) -> Self {
        match self {
            Attribute::Scalar(digits, _) => Attribute::Text(format!("dense<{digits}> : {vector}")),
            _ => unreachable!("{self} is no constant of one element"),
        }
    }

    /// Returns an integer, truncated to the bits of the type, or an index.
    pub(crate) fn integer(value: i64, r#type: Type<'_>) -> Self {
        match r#type.kind() {
            Kind::Integer(1) => Attribute::Scalar((value & 1 != 0).to_string(), None),
            Kind::Integer(bits @ 2..=64) => {
                // MLIR refuses a number that needs more bits.
                let unused = 64_u32.saturating_sub(bits);
                Self::scalar((value << unused) >> unused, r#type)
            }
            Kind::Index => Self::scalar(value, r#type),
            _ => unreachable!("an integer of the type {type}", type = r#type),
        }
    }

    /// Returns a float, which MLIR rounds to the type.
    pub(crate) fn float(value: f64, r#type: Type<'_>) -> Self {
        let Kind::Float(float) = r#type.kind() else {
            unreachable!("a float of the type {type}", type = r#type);
        };
        if value.is_finite() {
            // The shortest digits that identify this f64.
            let text = format!("{value:e}");
            let (digits, exponent) = text.split_once('e').expect("a float without text");
            let point = if digits.contains('.') { "" } else { ".0" };
            return Self::scalar(format_args!("{digits}{point}e{exponent}"), r#type);
        }
        // MLIR can express infinities and NaN only by their bits.
        let (infinity, nan, sign): (u64, u64, u64) = match float {
            Float::F16 => (0x7C00, 0x7E00, 0x8000),
            Float::Bf16 => (0x7F80, 0x7FC0, 0x8000),
            Float::F32 => (0x7F80_0000, 0x7FC0_0000, 0x8000_0000),
            Float::F64 => (0x7FF0 << 48, 0x7FF8 << 48, 0x8000 << 48),
            Float::E4M3Fnuz | Float::E5M2Fnuz => unreachable!("a code that is not finite"),
        };
        let bits = if value.is_nan() { nan } else { infinity };
        let sign = if value.is_sign_negative() { sign } else { 0 };
        Self::scalar(format_args!("0x{:X}", bits | sign), r#type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::Context;

    #[test]
    fn integers_are_the_low_bits_with_their_sign() {
        let context = Context::new();
        let text = |value, bits| Attribute::integer(value, Type::integer(&context, bits)).to_string();
        assert_eq!(text(255, 8), "-1 : i8");
        assert_eq!(text(-128, 8), "-128 : i8");
        assert_eq!(text(0x8000_0000, 32), "-2147483648 : i32");
        assert_eq!(text(i64::MIN, 64), "-9223372036854775808 : i64");
        assert_eq!(text(-1, 1), "true");
        assert_eq!(text(2, 1), "false");
        let index = Attribute::integer(7, Type::index(&context));
        assert_eq!(index.to_string(), "7 : index");
    }

    #[test]
    #[should_panic = "an integer of the type f32"]
    fn integers_have_no_float_type() {
        let _ = Attribute::integer(0, Type::float(&Context::new(), Float::F32));
    }

    #[test]
    #[should_panic = "a float of the type index"]
    fn floats_have_no_index_type() {
        let _ = Attribute::float(1.0, Type::index(&Context::new()));
    }

    /// MLIR requires a point in every float, and bits for infinities and NaN.
    #[test]
    fn floats_are_exact() {
        let context = Context::new();
        let text = |value, float| Attribute::float(value, Type::float(&context, float)).to_string();
        assert_eq!(text(0.5, Float::F32), "5.0e-1 : f32");
        assert_eq!(text(-0.0, Float::F64), "-0.0e0 : f64");
        assert_eq!(text(f64::MAX, Float::F64), "1.7976931348623157e308 : f64");
        assert_eq!(text(f64::from(f32::MIN), Float::F32), "-3.4028234663852886e38 : f32");
        assert_eq!(text(f64::NEG_INFINITY, Float::F16), "0xFC00 : f16");
        assert_eq!(text(f64::INFINITY, Float::Bf16), "0x7F80 : bf16");
        assert_eq!(text(f64::NAN, Float::F32), "0x7FC00000 : f32");
        assert_eq!(text(f64::INFINITY, Float::F64), "0x7FF0000000000000 : f64");
    }

    #[test]
    fn empty_arrays_have_no_colon() {
        assert_eq!(Attribute::i64_array(&[]).to_string(), "array<i64>");
        assert_eq!(Attribute::i32_array(&[1, -2]).to_string(), "array<i32: 1, -2>");
    }
}
