//! Conversions between element types, inside the body of a structured operation.
//!
//! Float to float rounds to nearest even. Float to integer truncates toward zero and saturates; NaN
//! becomes 0. hipDNN's reference uses a C cast. Both agree where C defines the result; elsewhere,
//! the conversion here gives the nearest sensible value.
//!
//! A truth value is 0 or 1, whatever byte it has in memory. A number that is converted to a truth
//! value is true unless it is 0: NaN is true, as in C.

use crate::Unsupported;
use crate::ir::{Emitter, FloatPredicate, IntegerPredicate};
use crate::mlir::{Name, Type, Value};
use crate::narrow::convert_code;
use rotini_graph::{DataType, NormalGraph, NormalKind, TensorId};

/// Returns the type in which a node of this compute type is calculated; `None` if there is none.
///
/// Half-precision compute types are calculated in f32: matrix cores accumulate in f32 anyway, and a
/// result that is more precise than asked for is within every tolerance of the exact one.
pub(crate) const fn compute_type(compute: DataType) -> Option<DataType> {
    match compute {
        DataType::F32 | DataType::F16 | DataType::Bf16 => Some(DataType::F32),
        DataType::F64 | DataType::I32 | DataType::I64 => Some(compute),
        _ => None,
    }
}

/// Returns the type in which a node of this compute type is calculated. Panics for compute types
/// that have none, which [`check_compute`] declines.
pub(crate) fn checked_compute_type(compute: DataType) -> DataType {
    compute_type(compute).unwrap_or_else(|| unreachable!("{compute} is no compute type"))
}

/// Returns the least finite number of a compute type.
pub(crate) fn least_finite(compute: DataType) -> f64 {
    match compute {
        DataType::F16 => -65504.0,
        DataType::Bf16 => -(2.0 - 2.0_f64.powi(-7)) * 2.0_f64.powi(127),
        DataType::F32 => f64::from(f32::MIN),
        DataType::F64 => f64::MIN,
        _ => compute.whole_range().0 as f64,
    }
}

/// Returns the type in which a node that reads these tensors is calculated.
///
/// # Errors
///
/// If there is no such type, or if it is an integer type and an operand is a float.
pub(crate) fn check_compute(
    graph: &NormalGraph,
    compute: DataType,
    operands: &[TensorId],
) -> Result<DataType, Unsupported> {
    let Some(calculated) = compute_type(compute) else {
        return Err(Unsupported::new(format!("it cannot be computed in {compute}")));
    };
    let is_float = |id: &&TensorId| graph.tensor(**id).is_some_and(|tensor| tensor.dtype.is_float());
    match operands.iter().find(is_float) {
        Some(&id) if calculated.is_integer() => Err(Unsupported::of_tensor(
            id,
            format!("a float operand of an operation computed in {compute}"),
        )),
        _ => Ok(calculated),
    }
}

/// Declines operands of a contraction that are a single value for all elements: the compiler would
/// evaluate the contraction at compile time and copy the result.
pub(crate) fn check_not_constant(graph: &NormalGraph, operands: &[TensorId]) -> Result<(), Unsupported> {
    let is_constant = |id: &&TensorId| {
        graph
            .tensor(**id)
            .is_some_and(|tensor| matches!(tensor.kind, NormalKind::Constant(_) | NormalKind::RuntimeScalar))
    };
    match operands.iter().find(is_constant) {
        Some(&id) => Err(Unsupported::of_tensor(
            id,
            "an operand of a contraction that is one value for every element",
        )),
        None => Ok(()),
    }
}

/// Converts an element.
pub(crate) fn convert<'c>(at: &Emitter<'c>, value: Value<'c>, from: DataType, to: DataType) -> Value<'c> {
    if from == to {
        return value;
    }
    if from == DataType::Bool {
        return from_truth(at, value, to);
    }
    if to == DataType::Bool {
        return to_truth(at, value, from);
    }
    if from.is_code() || to.is_code() {
        return convert_code(at, value, from, to);
    }
    match (from.is_float(), to.is_float()) {
        (true, true) => float_to_float(at, value, from, to),
        (true, false) => float_to_integer(at, value, from, to),
        (false, true) => {
            let name = if from == DataType::U8 {
                Name::ArithUitofp
            } else {
                Name::ArithSitofp
            };
            integer_to_float(at, name, (value, from.bits()), to)
        }
        (false, false) => integer_to_integer(at, value, from, to),
    }
}

/// Returns, as an i1, whether a byte in memory is true.
pub(crate) fn is_true<'c>(at: &Emitter<'c>, byte: Value<'c>) -> Value<'c> {
    let zero = at.integer(0, at.element_type(DataType::Bool));
    at.compare_integers(IntegerPredicate::NotEqual, byte, zero)
}

/// Returns a truth value as 0 or 1 of another type.
fn from_truth<'c>(at: &Emitter<'c>, byte: Value<'c>, to: DataType) -> Value<'c> {
    let flag = is_true(at, byte);
    if to.is_code() {
        let number = integer_to_float(at, Name::ArithUitofp, (flag, 1), DataType::F32);
        return convert_code(at, number, DataType::F32, to);
    }
    if to.is_float() {
        return integer_to_float(at, Name::ArithUitofp, (flag, 1), to);
    }
    flag.extui(at.element_type(to))
}

/// Returns, as a byte of 0 or 1, whether a number is not 0.
fn to_truth<'c>(at: &Emitter<'c>, value: Value<'c>, from: DataType) -> Value<'c> {
    let flag = if from.is_integer() {
        let zero = at.integer(0, at.element_type(from));
        at.compare_integers(IntegerPredicate::NotEqual, value, zero)
    } else {
        let compared = match from {
            DataType::F64 => DataType::F64,
            _ => DataType::F32,
        };
        let number = convert(at, value, from, compared);
        let zero = at.float(0.0, at.element_type(compared));
        at.compare_floats(FloatPredicate::UnorderedNotEqual, number, zero)
    };
    flag.extui(at.element_type(DataType::Bool))
}

/// Converts an integer of `bits` bits to a float by the MLIR operation `name`.
pub(crate) fn integer_to_float<'c>(
    at: &Emitter<'c>,
    name: Name,
    (value, bits): (Value<'c>, u32),
    to: DataType,
) -> Value<'c> {
    // The conversion to bf16 would round twice, through f32, which cannot hold all of these
    // integers.
    if to == DataType::Bf16 && bits >= 32 {
        let wide = at.converted_integer(name, value, DataType::F64);
        return at.narrowed(wide, to);
    }
    at.converted_integer(name, value, to)
}

fn float_to_float<'c>(at: &Emitter<'c>, value: Value<'c>, from: DataType, to: DataType) -> Value<'c> {
    let target = at.element_type(to);
    if from == DataType::F64 && matches!(to, DataType::F16 | DataType::Bf16) {
        at.narrowed(value, to)
    } else if from.bits() < to.bits() {
        value.extf(target)
    } else if from.bits() > to.bits() {
        value.truncf(target)
    } else {
        // f16 and bf16 cannot hold each other's values; f32 holds both.
        let wide = value.extf(at.element_type(DataType::F32));
        wide.truncf(target)
    }
}

fn float_to_integer<'c>(at: &Emitter<'c>, value: Value<'c>, from: DataType, to: DataType) -> Value<'c> {
    // In f16, the bounds of wide integers would overflow to infinity.
    let (value, from) = if from == DataType::F16 {
        (value.extf(at.element_type(DataType::F32)), DataType::F32)
    } else {
        (value, from)
    };
    let (source, target) = (at.element_type(from), at.element_type(to));
    let (least, largest) = to.whole_range();
    // Both bounds are powers of two (or zero), hence exact in f32, f64 and bf16; the upper one is
    // just out of range.
    let lower = at.float(least as f64, source);
    let upper = at.float(largest as f64 + 1.0, source);
    let above = at.compare_floats(FloatPredicate::GreaterEqual, value, upper);
    let below = at.compare_floats(FloatPredicate::Less, value, lower);
    let ordered = at.compare_floats(FloatPredicate::Ordered, value, value);
    let outside = above | below;
    let zero = at.float(0.0, source);
    let clean = ordered.select(value, zero);
    let safe = outside.select(zero, clean);
    let name = if to == DataType::U8 {
        Name::ArithFptoui
    } else {
        Name::ArithFptosi
    };
    let truncated = at.one(name, &[safe], target, &[]);
    let (least, largest) = (at.integer(least, target), at.integer(signless(largest, to), target));
    let capped = above.select(largest, truncated);
    below.select(least, capped)
}

fn integer_to_integer<'c>(at: &Emitter<'c>, value: Value<'c>, from: DataType, to: DataType) -> Value<'c> {
    // An int4 is stored as a byte with one of 16 values.
    if (from, to) == (DataType::I4, DataType::I8) {
        return value;
    }
    // Widening keeps the value. It has to be a single operation, by which the compiler recognises a
    // matmul of narrow integers.
    if from.bits() < to.bits() && (from, to) != (DataType::I4, DataType::U8) {
        let name = if from == DataType::U8 {
            Name::ArithExtui
        } else {
            Name::ArithExtsi
        };
        return at.one(name, &[value], at.element_type(to), &[]);
    }
    // Through i64, which holds every value of every type; values that the target cannot hold
    // saturate.
    let wide_type: Type = at.element_type(DataType::I64);
    let wide = match from {
        DataType::I64 => value,
        DataType::U8 => value.extui(wide_type),
        _ => value.extsi(wide_type),
    };
    let (least, largest) = to.whole_range();
    let least = at.integer(least, wide_type);
    let largest = at.integer(largest, wide_type);
    let raised = wide.maxsi(least);
    let capped = raised.minsi(largest);
    capped.trunci(at.element_type(to))
}

/// Returns an unsigned value in the form that MLIR's signless attributes require.
const fn signless(value: i64, dtype: DataType) -> i64 {
    match dtype {
        DataType::U8 => value as u8 as i8 as i64,
        _ => value,
    }
}
