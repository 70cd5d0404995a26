//! Types and constants of a body as MLIR.

use crate::ir::Emitter;
use crate::mlir::{Attribute, Float, Type, Value as Ssa};
use rotini_custom::{Body, Element, TensorType, Type as Of, Value};
use rotini_graph::DataType;

pub(crate) const UNKNOWN: &str = "a value of a body that is not there";

pub(crate) fn element_of(body: &Body, value: Value) -> Element {
    match type_of(body, value) {
        Of::Scalar(element) => *element,
        Of::Tensor(_) => unreachable!("a tensor of a body instead of a scalar"),
    }
}

/// Returns the graph's data type for a float type of a body.
pub(crate) fn float_of(element: Element) -> DataType {
    match element {
        Element::F16 => DataType::F16,
        Element::Bf16 => DataType::Bf16,
        Element::F32 => DataType::F32,
        Element::F64 => DataType::F64,
        _ => unreachable!("an integer of a body instead of a float"),
    }
}

pub(crate) fn scalar_type<'c>(at: &Emitter<'c>, element: Element) -> Type<'c> {
    let float = |float| Type::float(at.context(), float);
    match element {
        Element::F16 => float(Float::F16),
        Element::Bf16 => float(Float::Bf16),
        Element::F32 => float(Float::F32),
        Element::F64 => float(Float::F64),
        Element::Index => at.index_type(),
        Element::I1 | Element::I8 | Element::I32 | Element::I64 => Type::integer(at.context(), element.bits()),
    }
}

pub(crate) fn tensor_type<'c>(at: &Emitter<'c>, dims: &[i64], element: Element) -> Type<'c> {
    scalar_type(at, element).tensor(dims)
}

pub(crate) fn any_type<'c>(at: &Emitter<'c>, ty: &Of) -> Type<'c> {
    match ty {
        Of::Scalar(element) => scalar_type(at, *element),
        Of::Tensor(ty) => tensor_type(at, &ty.dims, ty.element),
    }
}

pub(crate) fn type_of(body: &Body, value: Value) -> &Of {
    &body.types[value.index()]
}

pub(crate) fn tensor_of(body: &Body, value: Value) -> &TensorType {
    match type_of(body, value) {
        Of::Tensor(ty) => ty,
        Of::Scalar(_) => unreachable!("a scalar of a body instead of a tensor"),
    }
}

/// Returns the bits of the combiner's identity element.
pub(crate) fn neutral(combiner: &str, element: Element) -> u64 {
    let bits = element.bits();
    let all = u64::MAX >> 64_u32.saturating_sub(bits);
    let highest = all ^ (all >> 1);
    let of_floats = |single: f32, double: f64| match element {
        Element::F64 => double.to_bits(),
        _ => u64::from(single.to_bits()),
    };
    match combiner {
        "arith.addf" => of_floats(-0.0, -0.0),
        "arith.mulf" => of_floats(1.0, 1.0),
        "arith.maximumf" => of_floats(f32::NEG_INFINITY, f64::NEG_INFINITY),
        "arith.minimumf" => of_floats(f32::INFINITY, f64::INFINITY),
        "arith.maxnumf" | "arith.minnumf" => of_floats(f32::NAN, f64::NAN),
        "arith.addi" | "arith.ori" | "arith.maxui" => 0,
        "arith.muli" => 1,
        "arith.andi" | "arith.minui" => all,
        "arith.maxsi" => highest,
        "arith.minsi" => all ^ highest,
        _ => unreachable!("a combiner that is none"),
    }
}

/// Appends a constant with these bits.
pub(crate) fn constant<'c>(at: &Emitter<'c>, bits: u64, element: Element) -> Ssa<'c> {
    let ty = scalar_type(at, element);
    let value = if element.is_float() {
        Attribute::scalar(format_args!("0x{bits:X}"), ty)
    } else {
        Attribute::integer(bits.cast_signed(), ty)
    };
    at.literal(value, ty)
}
