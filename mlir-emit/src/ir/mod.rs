//! The builder of operations that the lowering uses.
//!
//! An [`Emitter`] appends operations to a block. Affine maps and attributes of dialects are text.

mod loops;
mod tensors;

use crate::kernel::{Attention, CpuMatmul, Kernels, Own, Product, Scatter, Transpose};
use crate::mlir::{Attribute, Block, Context, Float, Region, Type, Value};
use crate::quirks::{Quirk, Quirks};
use rotini_graph::{DataType, Storage};
use std::fmt::Write as _;

/// How a loop of a structured operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loop {
    Parallel,
    Reduction,
}

/// How two indices compare, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    AtMost,
}

/// An affine map from `loops` loops, as text: one expression per result.
pub(crate) fn affine_map(loops: usize, results: &[String]) -> String {
    let mut text = String::from("affine_map<(");
    for index in 0..loops {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}d{index}");
    }
    let _ = write!(text, ") -> ({})>", results.join(", "));
    text
}

/// The name of loop `index` in an affine expression.
pub(crate) fn dim(index: usize) -> String {
    format!("d{index}")
}

/// Appends operations to a block.
#[derive(Clone, Copy)]
pub(crate) struct Emitter<'c, 'b> {
    context: &'c Context,
    quirks: Quirks,
    block: &'b Block<'c>,
}

impl<'c, 'b> Emitter<'c, 'b> {
    pub(crate) fn new(context: &'c Context, quirks: Quirks, block: &'b Block<'c>) -> Self {
        Emitter { context, quirks, block }
    }

    /// The defects of the compiler that are avoided.
    pub(crate) fn quirks(&self) -> Quirks {
        self.quirks
    }

    pub(crate) fn context(&self) -> &'c Context {
        self.context
    }

    /// The MLIR type of an element. The operations determine signedness.
    pub(crate) fn element_type(&self, dtype: DataType) -> Type<'c> {
        match dtype.storage() {
            Storage::F32 => Type::float(self.context, Float::F32),
            Storage::F16 => Type::float(self.context, Float::F16),
            Storage::Bf16 => Type::float(self.context, Float::Bf16),
            Storage::F64 => Type::float(self.context, Float::F64),
            Storage::I8 => Type::integer(self.context, 8),
            Storage::I32 => Type::integer(self.context, 32),
            Storage::I64 => Type::integer(self.context, 64),
        }
    }

    pub(crate) fn tensor_type(&self, shape: &[i64], dtype: DataType) -> Type<'c> {
        self.element_type(dtype).tensor(shape)
    }

    pub(crate) fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    pub(crate) fn bool_type(&self) -> Type<'c> {
        Type::integer(self.context, 1)
    }

    /// Opaque elements of sixteen bits.
    pub(crate) fn bits16_type(&self) -> Type<'c> {
        Type::integer(self.context, 16)
    }

    /// An attribute that is written out: only what this crate says itself.
    pub(crate) fn attribute(&self, text: &str) -> Attribute {
        Attribute::text(text)
    }

    pub(crate) fn segments(&self, sizes: &[i32]) -> Attribute {
        Attribute::i32_array(sizes)
    }

    pub(crate) fn i64_array(&self, values: &[i64]) -> Attribute {
        Attribute::i64_array(values)
    }

    /// Appends any operation and gives its results.
    pub(crate) fn op(
        &self,
        name: &str,
        operands: &[Value<'c, 'b>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute)],
        regions: Vec<Region>,
    ) -> Vec<Value<'c, 'b>> {
        self.block
            .append(self.context, name, operands, results, attributes, regions)
    }

    /// Appends an operation with one result and no regions.
    pub(crate) fn one(
        &self,
        name: &str,
        operands: &[Value<'c, 'b>],
        result: Type<'c>,
        attributes: &[(&str, Attribute)],
    ) -> Value<'c, 'b> {
        first(self.op(name, operands, &[result], attributes, Vec::new()))
    }

    /// An operation whose result has the type of its first operand.
    pub(crate) fn same(&self, name: &str, operands: &[Value<'c, 'b>]) -> Value<'c, 'b> {
        let Some(operand) = operands.first() else {
            unreachable!("an operation without operands");
        };
        self.one(name, operands, operand.r#type(), &[])
    }

    /// Returns the same tensor behind a compute barrier: no operation before it is fused with one
    /// after it. IREE removes the barrier once dispatches are formed.
    pub(crate) fn barrier(&self, tensor: Value<'c, 'b>) -> Value<'c, 'b> {
        self.same("iree_tensor_ext.compute_barrier.start", &[tensor])
    }

    /// A [barrier](Self::barrier) that keeps a defect of the compiler away.
    pub(crate) fn barrier_against(&self, quirk: Quirk, tensor: Value<'c, 'b>) -> Value<'c, 'b> {
        if self.quirks.avoids(quirk) {
            self.barrier(tensor)
        } else {
            tensor
        }
    }

    /// Whether no computation of this tensor can be fused: it is an argument or the result of a
    /// barrier, perhaps reshaped.
    pub(crate) fn is_settled(&self, tensor: Value<'c, 'b>) -> bool {
        let mut tensor = tensor;
        while let Some(owner) = tensor.owner() {
            if !matches!(owner.name(), "tensor.collapse_shape" | "tensor.expand_shape") {
                return owner.name() == "iree_tensor_ext.compute_barrier.start";
            }
            let Some(source) = owner.operand(0) else { return false };
            tensor = source;
        }
        true
    }

    /// A constant of a floating-point type, rounded to it.
    pub(crate) fn float(&self, value: f64, r#type: Type<'c>) -> Value<'c, 'b> {
        let value = Attribute::float(value, r#type);
        self.one("arith.constant", &[], r#type, &[("value", value)])
    }

    /// A constant of an integer or index type.
    pub(crate) fn integer(&self, value: i64, r#type: Type<'c>) -> Value<'c, 'b> {
        let value = Attribute::integer(value, r#type);
        self.one("arith.constant", &[], r#type, &[("value", value)])
    }

    /// A zero of a type of [`Emitter::element_type`]; of a code, its least one.
    pub(crate) fn zero(&self, dtype: DataType) -> Value<'c, 'b> {
        let r#type = self.element_type(dtype);
        if dtype.is_float() && !dtype.is_code() {
            self.float(0.0, r#type)
        } else {
            self.integer(0, r#type)
        }
    }

    /// A constant, or what is nearest to it in the type.
    pub(crate) fn constant(&self, value: f64, dtype: DataType) -> Value<'c, 'b> {
        let r#type = self.element_type(dtype);
        if dtype.is_float() && !dtype.is_code() {
            self.float(value, r#type)
        } else {
            let (least, largest) = dtype.whole_range();
            self.integer((value as i64).clamp(least, largest), r#type)
        }
    }

    /// Appends an operation without results that ends a block.
    pub(crate) fn terminate(&self, name: &str, operands: &[Value<'c, 'b>]) {
        self.op(name, operands, &[], &[], Vec::new());
    }

    /// An emitter for a block inside an operation of this one.
    pub(crate) fn inside<'r>(&self, block: &'r Block<'c>) -> Emitter<'c, 'r> {
        Emitter::new(self.context, self.quirks, block)
    }

    /// Appends a product that becomes a kernel of rotini. Returns its sums.
    pub(crate) fn product(&self, kernels: &Kernels, product: Product) -> Value<'c, 'b> {
        kernels.append(self.context, self.block, product)
    }

    /// Appends a transpose, a copy in another memory order, by a kernel of rotini.
    pub(crate) fn transpose(&self, kernels: &Kernels, transpose: &Transpose, shape: &[i64]) -> Value<'c, 'b> {
        kernels.transpose(self.context, self.block, (transpose, shape))
    }

    /// Returns a span with gaps, updated in place with the elements of a dense tensor.
    pub(crate) fn scatter(&self, kernels: &Kernels, scatter: &Scatter, values: [Value<'c, 'b>; 2]) -> Value<'c, 'b> {
        kernels.scatter(self.context, self.block, (scatter, values))
    }

    /// Appends a product of these values on a CPU, by a kernel of rotini. Returns a tensor of this
    /// shape.
    pub(crate) fn dots(
        &self,
        kernels: &Kernels,
        (dots, values): (&CpuMatmul, [usize; 2]),
        shape: &[i64],
    ) -> Value<'c, 'b> {
        kernels.dots(self.context, self.block, (dots, values, shape))
    }

    /// Returns the result of a CPU kernel on these operands, as a tensor of this shape.
    pub(crate) fn own(&self, kernels: &Kernels, (own, values): (&Own, &[usize]), shape: &[i64]) -> Value<'c, 'b> {
        kernels.own(self.context, self.block, (own, values, shape))
    }

    /// Appends an attention by kernels of rotini. Returns tensors of these shapes.
    pub(crate) fn attention(
        &self,
        kernels: &Kernels,
        attention: Attention<'_>,
        shapes: &[&[i64]],
    ) -> Vec<Value<'c, 'b>> {
        kernels.attention(self.context, self.block, (attention, shapes))
    }

    /// A value of this block for use in the body of an operation that will be appended to it.
    pub(crate) fn captured<'r>(&self, value: Value<'c, 'b>) -> Value<'c, 'r> {
        value.captured()
    }
}

/// The argument of a block, as a value that lives as long as the block is borrowed.
pub(crate) fn argument<'c, 'b>(block: &'b Block<'c>, index: usize) -> Value<'c, 'b> {
    block.argument(index)
}

pub(crate) fn first<T>(results: Vec<T>) -> T {
    results
        .into_iter()
        .next()
        .unwrap_or_else(|| unreachable!("an operation without results"))
}

/// The error of a body that has fewer elements than operands.
pub(crate) const MISSING: &str = "a missing element";

/// The element of a body with one operand.
pub(crate) fn only<'c, 'b>(elements: &[Value<'c, 'b>]) -> Value<'c, 'b> {
    elements[0]
}
