//! The builder of operations that the lowering uses.
//!
//! [`Code`] appends operations to the block that is being written, with operators on values and on
//! integers; an [`Emitter`] adds structured operations. Attributes of dialects are text.

mod code;
mod int;
mod loops;
mod predicates;
mod tensors;
mod values;

pub(crate) use code::{Code, first};
pub(crate) use int::Int;
pub(crate) use loops::{Input, Writer};
pub(crate) use predicates::{FloatPredicate, IntegerPredicate};

pub(crate) use crate::mlir::{Affine, IndexMap, Loop, Name};
use crate::mlir::{Attribute, Context, Float, Type, Value};
use crate::quirks::{Quirk, Quirks};
use rotini_graph::{DataType, Storage};
use std::ops::Deref;

/// The builder for structured operations: [`Code`] with element types, and the defects of the
/// compiler to avoid.
#[derive(Clone, Copy)]
pub(crate) struct Emitter<'c> {
    code: Code<'c>,
    quirks: Quirks,
}

impl<'c> Deref for Emitter<'c> {
    type Target = Code<'c>;

    fn deref(&self) -> &Code<'c> {
        &self.code
    }
}

impl<'c> Emitter<'c> {
    pub(crate) fn new(context: &'c Context, quirks: Quirks) -> Self {
        Emitter {
            code: Code::new(context),
            quirks,
        }
    }

    /// Returns the defects of the compiler to avoid.
    pub(crate) fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Returns the MLIR type of an element. Integers are signless; operations determine signedness.
    pub(crate) fn element_type(&self, dtype: DataType) -> Type<'c> {
        match dtype.storage() {
            Storage::F32 => Type::float(self.context(), Float::F32),
            Storage::F16 => Type::float(self.context(), Float::F16),
            Storage::Bf16 => Type::float(self.context(), Float::Bf16),
            Storage::F64 => Type::float(self.context(), Float::F64),
            Storage::I8 => Type::integer(self.context(), 8),
            Storage::I32 => Type::integer(self.context(), 32),
            Storage::I64 => Type::integer(self.context(), 64),
        }
    }

    pub(crate) fn tensor_type(&self, shape: &[i64], dtype: DataType) -> Type<'c> {
        self.element_type(dtype).tensor(shape)
    }

    /// Returns the type of 16 opaque bits.
    pub(crate) fn bits16_type(&self) -> Type<'c> {
        Type::integer(self.context(), 16)
    }

    /// Returns the same tensor behind a compute barrier: no operation before it is fused with one
    /// after it. IREE removes the barrier once dispatches are formed.
    pub(crate) fn barrier(&self, tensor: Value<'c>) -> Value<'c> {
        self.same(Name::IreeTensorExtComputeBarrierStart, &[tensor])
    }

    /// Returns the tensor behind a [barrier](Self::barrier) if the defect is to be avoided, else
    /// unchanged.
    pub(crate) fn barrier_against(&self, quirk: Quirk, tensor: Value<'c>) -> Value<'c> {
        if self.quirks.avoids(quirk) {
            self.barrier(tensor)
        } else {
            tensor
        }
    }

    /// Returns true if no computation of this tensor can be fused with its readers: it is an
    /// argument or the result of a barrier, perhaps reshaped.
    pub(crate) fn is_settled(&self, tensor: Value<'c>) -> bool {
        let mut tensor = tensor;
        while let Some(owner) = tensor.owner() {
            if !matches!(owner.name(), Name::TensorCollapseShape | Name::TensorExpandShape) {
                return owner.name() == Name::IreeTensorExtComputeBarrierStart;
            }
            tensor = self.context().value(owner.operands()[0]);
        }
        true
    }

    /// Appends a constant of a floating-point type, rounded to the type.
    pub(crate) fn float(&self, value: f64, r#type: Type<'c>) -> Value<'c> {
        let value = Attribute::float(value, r#type);
        self.literal(value, r#type)
    }

    /// Appends a zero of the type [`Emitter::element_type`]; for a code, the code 0.
    pub(crate) fn zero(&self, dtype: DataType) -> Value<'c> {
        let r#type = self.element_type(dtype);
        if dtype.is_float() && !dtype.is_code() {
            self.float(0.0, r#type)
        } else {
            self.integer(0, r#type)
        }
    }

    /// Appends a constant, rounded or clamped to the type.
    pub(crate) fn constant(&self, value: f64, dtype: DataType) -> Value<'c> {
        let r#type = self.element_type(dtype);
        if dtype.is_float() && !dtype.is_code() {
            self.float(value, r#type)
        } else {
            let (least, largest) = dtype.whole_range();
            self.integer((value as i64).clamp(least, largest), r#type)
        }
    }
}

/// The panic message for a body that has fewer elements than operands.
pub(crate) const MISSING: &str = "a missing element";

/// Returns the element of a body with one operand.
pub(crate) fn only<'c>(elements: &[Value<'c>]) -> Value<'c> {
    elements[0]
}
