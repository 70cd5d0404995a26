//! Values that tensors hold in the graph.
//!
//! On the wire, values are a union of structs. flatc cannot generate that for Rust, so this module
//! follows the offset itself and checks every step.

use crate::error::DecodeError;
use crate::generated::graph_generated::{TensorAttributes, TensorValueType};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, VOffsetT, WIPOffset};
use half::{bf16, f16};
use rotini_graph::{DataType, Scalar};

/// The slot of the union's value, which follows the slot of its type.
pub(crate) const VT_VALUE: VOffsetT = TensorAttributes::VT_VALUE_TYPE + 2;

/// Returns the value that `tensor` of type `dtype` holds, if any, rounded to that type.
pub(crate) fn read(
    tensor: &TensorAttributes<'_>,
    dtype: DataType,
    label: impl Fn() -> String,
) -> Result<Option<Scalar>, DecodeError> {
    let stored = tensor.value_type();
    if stored == TensorValueType::NONE {
        return Ok(None);
    }
    let missing = || DecodeError::MissingValue { tensor: label() };
    let form = || DecodeError::ValueForm {
        tensor: label(),
        stored: stored.variant_name().unwrap_or("?"),
        dtype,
    };
    let float = |value: f64| round(value, dtype).map(Scalar::float).ok_or_else(form);
    let scalar = match stored {
        TensorValueType::Float32Value | TensorValueType::Float16Value | TensorValueType::BFloat16Value => {
            float(f64::from(f32::from_le_bytes(payload(tensor).ok_or_else(missing)?)))?
        }
        TensorValueType::Float64Value => float(f64::from_le_bytes(payload(tensor).ok_or_else(missing)?))?,
        TensorValueType::Float8Value => {
            let [bits] = payload(tensor).ok_or_else(missing)?;
            Scalar::float(float8(bits, dtype).ok_or_else(form)?)
        }
        TensorValueType::Int32Value => {
            Scalar::Integer(i64::from(i32::from_le_bytes(payload(tensor).ok_or_else(missing)?)))
        }
        TensorValueType::Int64Value => Scalar::Integer(i64::from_le_bytes(payload(tensor).ok_or_else(missing)?)),
        TensorValueType::BoolValue => {
            let [byte] = payload(tensor).ok_or_else(missing)?;
            Scalar::Integer(i64::from(byte != 0))
        }
        unknown => {
            return Err(DecodeError::Unknown {
                place: label(),
                what: "value type",
                value: i64::from(unknown.0),
            });
        }
    };
    Ok(Some(match dtype {
        // As in a buffer: every value but 0 is true, including NaN.
        DataType::Bool => Scalar::Integer((scalar.to_f64() != 0.0).into()),
        _ => scalar,
    }))
}

/// Returns the bytes of the union's value; `None` if it is absent or lies outside the buffer.
fn payload<const N: usize>(tensor: &TensorAttributes<'_>) -> Option<[u8; N]> {
    let table = tensor._tab;
    let slot = match table.vtable().get(VT_VALUE) {
        0 => return None,
        slot => table.loc().checked_add(usize::from(slot))?,
    };
    let offset = u32::from_le_bytes(bytes(table.buf(), slot)?);
    bytes(table.buf(), slot.checked_add(usize::try_from(offset).ok()?)?)
}

fn bytes<const N: usize>(buffer: &[u8], at: usize) -> Option<[u8; N]> {
    buffer.get(at..)?.first_chunk().copied()
}

/// Appends `scalar`, held by a tensor of type `dtype`, in the form that hipDNN uses for that type.
///
/// A value that an 8-bit float cannot hold is written as a binary64, which [`read`] refuses.
pub(crate) fn write(
    builder: &mut FlatBufferBuilder<'_>,
    dtype: DataType,
    scalar: Scalar,
) -> (TensorValueType, WIPOffset<UnionWIPOffset>) {
    match (scalar, dtype) {
        (Scalar::Float(bits), DataType::F32 | DataType::F16 | DataType::Bf16) => {
            let stored = match dtype {
                DataType::F16 => TensorValueType::Float16Value,
                DataType::Bf16 => TensorValueType::BFloat16Value,
                _ => TensorValueType::Float32Value,
            };
            (stored, builder.push(f64::from_bits(bits) as f32).as_union_value())
        }
        (Scalar::Float(bits), _) => {
            match (0..=u8::MAX).find(|&byte| float8(byte, dtype).is_some_and(|value| value.to_bits() == bits)) {
                Some(byte) => (TensorValueType::Float8Value, builder.push(byte).as_union_value()),
                None => (
                    TensorValueType::Float64Value,
                    builder.push(f64::from_bits(bits)).as_union_value(),
                ),
            }
        }
        (Scalar::Integer(value @ (0 | 1)), DataType::Bool) => {
            (TensorValueType::BoolValue, builder.push(value == 1).as_union_value())
        }
        (Scalar::Integer(value), _) => match i32::try_from(value) {
            Ok(value) => (TensorValueType::Int32Value, builder.push(value).as_union_value()),
            Err(_) => (TensorValueType::Int64Value, builder.push(value).as_union_value()),
        },
    }
}

/// Rounds to the nearest value of `dtype`, and every NaN to one pattern. Returns `None` for types
/// whose values the wire does not store as floats of 16 bits or more.
///
/// For integer types the value is unchanged; validation reports a fraction that does not fit.
fn round(value: f64, dtype: DataType) -> Option<f64> {
    let rounded = match dtype {
        DataType::F16 => f16::from_f64(value).to_f64(),
        DataType::Bf16 => bf16::from_f64(value).to_f64(),
        DataType::F32 => f64::from(value as f32),
        DataType::F64 | DataType::U8 | DataType::I8 | DataType::I4 | DataType::I32 | DataType::I64 | DataType::Bool => {
            value
        }
        DataType::F8E4M3
        | DataType::F8E5M2
        | DataType::F8E8M0
        | DataType::F4E2M1
        | DataType::F6E2M3
        | DataType::F6E3M2
        | DataType::F8E4M3Fnuz
        | DataType::F8E5M2Fnuz => return None,
    };
    Some(one_nan(rounded))
}

/// Returns the value of an 8-bit float; `None` if `dtype` is not an 8-bit float with sign and
/// fraction.
fn float8(bits: u8, dtype: DataType) -> Option<f64> {
    let value = match dtype {
        // The code is the upper byte of a binary16.
        DataType::F8E5M2 => f16::from_bits(u16::from(bits) << 8).to_f64(),
        DataType::F8E4M3 if bits & 0x7F == 0x7F => f64::NAN,
        DataType::F8E4M3 => number(bits, 3, 7),
        // The code that is the negative zero in other formats is NaN in these.
        DataType::F8E4M3Fnuz | DataType::F8E5M2Fnuz if bits == 0x80 => f64::NAN,
        DataType::F8E4M3Fnuz => number(bits, 3, 8),
        DataType::F8E5M2Fnuz => number(bits, 2, 16),
        _ => return None,
    };
    Some(one_nan(value))
}

/// Decodes a code of a format with `fraction_bits` bits of fraction and this bias.
fn number(bits: u8, fraction_bits: u32, bias: i32) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let steps = 1_u8 << fraction_bits;
    let (magnitude, fraction) = (bits & 0x7F, f64::from(bits % steps) / f64::from(steps));
    match magnitude >> fraction_bits {
        0 => sign * fraction * 2_f64.powi(1 - bias),
        exponent => sign * (1.0 + fraction) * 2_f64.powi(i32::from(exponent) - bias),
    }
}

/// Returns the value with every NaN replaced by one pattern: the same bytes must always decode to
/// the same graph, but conversions may change the bits of a NaN.
fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of table 1 of the OCP specification of 8-bit floats.
    #[test]
    #[expect(clippy::unusual_byte_groupings, reason = "sign, exponent, fraction")]
    fn float8_values_are_those_of_the_specification() {
        let e4m3 = |bits| float8(bits, DataType::F8E4M3).unwrap();
        assert_eq!(e4m3(0b0_1111_110), 448.0, "largest");
        assert_eq!(e4m3(0b0_0001_000), 2_f64.powi(-6), "smallest normal");
        assert_eq!(e4m3(0b0_0000_001), 2_f64.powi(-9), "smallest");
        assert_eq!(e4m3(0b1_0111_000), -1.0);
        assert!(e4m3(0b1_1111_111).is_nan());
        assert_eq!(e4m3(0x80).to_bits(), (-0.0_f64).to_bits());

        let e5m2 = |bits| float8(bits, DataType::F8E5M2).unwrap();
        assert_eq!(e5m2(0b0_11110_11), 57344.0, "largest");
        assert_eq!(e5m2(0b0_00001_00), 2_f64.powi(-14), "smallest normal");
        assert_eq!(e5m2(0b0_00000_01), 2_f64.powi(-16), "smallest");
        assert_eq!(e5m2(0b1_11111_00), f64::NEG_INFINITY);
        assert!(e5m2(0b0_11111_01).is_nan());
    }

    /// The values of hipDNN's `Fp8E4M3Fnuz.hpp` and `Fp8E5M2Fnuz.hpp`.
    #[test]
    #[expect(clippy::unusual_byte_groupings, reason = "sign, exponent, fraction")]
    fn float8_values_of_fnuz() {
        let e4m3 = |bits| float8(bits, DataType::F8E4M3Fnuz).unwrap();
        assert_eq!(e4m3(0b0_1111_111), 240.0, "largest");
        assert_eq!(e4m3(0b1_1111_111), -240.0, "least");
        assert_eq!(e4m3(0b0_0001_000), 2_f64.powi(-7), "smallest normal");
        assert_eq!(e4m3(0b0_0000_001), 2_f64.powi(-10), "smallest");
        assert_eq!(e4m3(0b0_1000_000), 1.0);
        assert!(e4m3(0x80).is_nan());

        let e5m2 = |bits| float8(bits, DataType::F8E5M2Fnuz).unwrap();
        assert_eq!(e5m2(0b0_11111_11), 57344.0, "largest");
        assert_eq!(e5m2(0b0_00001_00), 2_f64.powi(-15), "smallest normal");
        assert_eq!(e5m2(0b0_00000_01), 2_f64.powi(-17), "smallest");
        assert_eq!(e5m2(0b1_10000_00), -1.0);
        assert!(e5m2(0x80).is_nan());
    }

    #[test]
    fn rounding_is_to_the_tensors_type() {
        assert_eq!(round(0.1, DataType::F16), Some(0.0999755859375));
        assert_eq!(round(0.1, DataType::Bf16), Some(0.10009765625));
        assert_eq!(round(0.1, DataType::F32), Some(f64::from(0.1_f32)));
        assert_eq!(round(0.1, DataType::F64), Some(0.1));
        assert_eq!(round(1e6, DataType::F16), Some(f64::INFINITY));
        assert_eq!(round(0.5, DataType::F8E4M3), None);
    }
}
