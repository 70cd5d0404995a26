//! A thin layer over melior, with which the lowering builds operations.
//!
//! An [`Emitter`] appends operations to a block. Affine maps, attributes, and types of dialects without bindings are parsed from text,
//! because every version of MLIR understands the text.

mod loops;
mod tensors;

use crate::EmitError;
use crate::quirks::{Quirk, Quirks};
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::attribute::{DenseI32ArrayAttribute, FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute};
use melior::ir::operation::{OperationBuilder, OperationLike, OperationResult};
use melior::ir::r#type::{FunctionType, IntegerType, RankedTensorType};
use melior::ir::{Attribute, Block, BlockLike, Identifier, Location, Region, RegionLike, Type, Value, ValueLike};
use rotini_graph::{DataType, Storage};
use std::fmt::Write as _;

/// A context with the dialects that the lowering uses, and no more: registering all of them triples the library's size. IREE's own
/// operations can be there too: they are printed in generic form, and IREE's compiler verifies them.
pub(crate) fn context() -> Context {
    use melior::dialect::DialectHandle;
    let registry = DialectRegistry::new();
    for handle in [
        DialectHandle::arith(),
        DialectHandle::func(),
        DialectHandle::linalg(),
        DialectHandle::tensor(),
    ] {
        handle.insert_dialect(&registry);
    }
    let context = Context::new_with_registry(&registry, false);
    // SAFETY: the handle is a static object of MLIR, the context is alive and not shared yet.
    unsafe {
        mlir_sys::mlirDialectHandleRegisterDialect(mlir_sys::mlirGetDialectHandle__math__(), context.to_raw());
    }
    context.load_all_available_dialects();
    context.set_allow_unregistered_dialects(true);
    context
}

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

    pub(crate) fn location(&self) -> Location<'c> {
        Location::unknown(self.context)
    }

    /// The MLIR type of an element; signedness is the operations' business.
    pub(crate) fn element_type(&self, dtype: DataType) -> Result<Type<'c>, EmitError> {
        Ok(match dtype.storage() {
            Storage::F32 => Type::float32(self.context),
            Storage::F16 => Type::float16(self.context),
            Storage::Bf16 => Type::bfloat16(self.context),
            Storage::F64 => Type::float64(self.context),
            Storage::I8 => IntegerType::new(self.context, 8).into(),
            Storage::I32 => IntegerType::new(self.context, 32).into(),
            Storage::I64 => IntegerType::new(self.context, 64).into(),
        })
    }

    pub(crate) fn tensor_type(&self, shape: &[i64], dtype: DataType) -> Result<Type<'c>, EmitError> {
        let extents = shape
            .iter()
            .map(|&extent| u64::try_from(extent).map_err(|_| EmitError::Internal("a negative extent")))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(RankedTensorType::new(&extents, self.element_type(dtype)?, None).into())
    }

    pub(crate) fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    pub(crate) fn bool_type(&self) -> Type<'c> {
        IntegerType::new(self.context, 1).into()
    }

    /// Sixteen bits that are no number.
    pub(crate) fn bits16_type(&self) -> Type<'c> {
        IntegerType::new(self.context, 16).into()
    }

    pub(crate) fn attribute(&self, text: &str) -> Result<Attribute<'c>, EmitError> {
        Attribute::parse(self.context, text).ok_or_else(|| EmitError::InvalidIr {
            diagnostics: format!("attribute {text}"),
        })
    }

    pub(crate) fn segments(&self, sizes: &[i32]) -> Attribute<'c> {
        DenseI32ArrayAttribute::new(self.context, sizes).into()
    }

    pub(crate) fn i64_array(&self, values: &[i64]) -> Attribute<'c> {
        melior::ir::attribute::DenseI64ArrayAttribute::new(self.context, values).into()
    }

    fn name(&self, name: &str) -> Identifier<'c> {
        Identifier::new(self.context, name)
    }

    /// Appends any operation and gives its results.
    pub(crate) fn op(
        &self,
        name: &str,
        operands: &[Value<'c, 'b>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> Result<Vec<Value<'c, 'b>>, EmitError> {
        let attributes: Vec<_> = attributes.iter().map(|&(key, value)| (self.name(key), value)).collect();
        let operation = OperationBuilder::new(name, self.location())
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()?;
        let operation = self.block.append_operation(operation);
        (0..results.len())
            .map(|index| Ok(operation.result(index)?.into()))
            .collect()
    }

    /// Appends an operation with one result and no regions.
    pub(crate) fn one(
        &self,
        name: &str,
        operands: &[Value<'c, 'b>],
        result: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Value<'c, 'b>, EmitError> {
        first(self.op(name, operands, &[result], attributes, Vec::new())?)
    }

    /// An operation whose result has the type of its first operand.
    pub(crate) fn same(&self, name: &str, operands: &[Value<'c, 'b>]) -> Result<Value<'c, 'b>, EmitError> {
        let Some(operand) = operands.first() else {
            return Err(EmitError::Internal("an operation without operands"));
        };
        self.one(name, operands, operand.r#type(), &[])
    }

    /// The same tensor, computed by a dispatch of its own: nothing before it is fused with anything after it. IREE removes the barrier
    /// once dispatches are formed.
    pub(crate) fn barrier(&self, tensor: Value<'c, 'b>) -> Result<Value<'c, 'b>, EmitError> {
        self.same("iree_tensor_ext.compute_barrier.start", &[tensor])
    }

    /// A [barrier](Self::barrier) that keeps a defect of the compiler away.
    pub(crate) fn barrier_against(&self, quirk: Quirk, tensor: Value<'c, 'b>) -> Result<Value<'c, 'b>, EmitError> {
        if self.quirks.avoids(quirk) {
            self.barrier(tensor)
        } else {
            Ok(tensor)
        }
    }

    /// Whether a tensor is there without a computation that could be fused: an argument, or what stands behind a barrier, perhaps reshaped.
    pub(crate) fn is_settled(&self, tensor: Value<'c, 'b>) -> bool {
        let mut tensor = tensor;
        while let Ok(result) = OperationResult::try_from(tensor) {
            let owner = result.owner();
            match owner.name().as_string_ref().as_str() {
                Ok("tensor.collapse_shape" | "tensor.expand_shape") => {}
                name => return name == Ok("iree_tensor_ext.compute_barrier.start"),
            }
            let Ok(source) = owner.operand(0) else { return false };
            tensor = source;
        }
        true
    }

    /// A constant of a floating-point type, rounded to it.
    pub(crate) fn float(&self, value: f64, r#type: Type<'c>) -> Result<Value<'c, 'b>, EmitError> {
        let value = FloatAttribute::new(self.context, r#type, value).into();
        self.one("arith.constant", &[], r#type, &[("value", value)])
    }

    /// A constant of an integer or index type.
    pub(crate) fn integer(&self, value: i64, r#type: Type<'c>) -> Result<Value<'c, 'b>, EmitError> {
        let value = IntegerAttribute::new(r#type, value).into();
        self.one("arith.constant", &[], r#type, &[("value", value)])
    }

    /// A zero of a type of [`Emitter::element_type`]; of a code, its least one.
    pub(crate) fn zero(&self, dtype: DataType) -> Result<Value<'c, 'b>, EmitError> {
        let r#type = self.element_type(dtype)?;
        if dtype.is_float() && !dtype.is_code() {
            self.float(0.0, r#type)
        } else {
            self.integer(0, r#type)
        }
    }

    /// A constant, or what is nearest to it in the type.
    pub(crate) fn constant(&self, value: f64, dtype: DataType) -> Result<Value<'c, 'b>, EmitError> {
        let r#type = self.element_type(dtype)?;
        if dtype.is_float() && !dtype.is_code() {
            self.float(value, r#type)
        } else {
            let (least, largest) = dtype.whole_range();
            self.integer((value as i64).clamp(least, largest), r#type)
        }
    }

    /// Appends an operation without results that ends a block.
    pub(crate) fn terminate(&self, name: &str, operands: &[Value<'c, 'b>]) -> Result<(), EmitError> {
        self.op(name, operands, &[], &[], Vec::new()).map(|_| ())
    }

    /// An emitter for a block inside an operation of this one.
    pub(crate) fn inside<'r>(&self, block: &'r Block<'c>) -> Emitter<'c, 'r> {
        Emitter::new(self.context, self.quirks, block)
    }

    /// A value of this block for use in the body of an operation that will be appended to it.
    pub(crate) fn captured<'r>(&self, value: Value<'c, 'b>) -> Value<'c, 'r> {
        // SAFETY: the value is defined in this block before the operation whose body uses it, and both stay in the same context
        // until the whole function is dropped; only the borrow of the block is shortened or renamed.
        unsafe { Value::from_raw(value.to_raw()) }
    }
}

/// The text of a private function, verified.
pub(crate) fn function<'c>(
    context: &'c Context,
    name: &str,
    arguments: &[Type<'c>],
    results: &[Type<'c>],
    block: Block<'c>,
) -> Result<String, EmitError> {
    let region = Region::new();
    region.append_block(block);
    let outer = Block::new(&[]);
    let attributes = [
        ("sym_name", StringAttribute::new(context, name).into()),
        ("sym_visibility", StringAttribute::new(context, "private").into()),
        (
            "function_type",
            TypeAttribute::new(FunctionType::new(context, arguments, results).into()).into(),
        ),
    ];
    Emitter::new(context, Quirks::ALL, &outer).op("func.func", &[], &[], &attributes, vec![region])?;
    let Some(function) = outer.first_operation() else {
        return Err(EmitError::Internal("a function that is not there"));
    };
    if !function.verify() {
        return Err(EmitError::InvalidIr {
            diagnostics: "the function does not verify".to_owned(),
        });
    }
    Ok(function.to_string())
}

/// The argument of a block, as a value that lives as long as the block is borrowed.
pub(crate) fn argument<'c, 'b>(block: &'b Block<'c>, index: usize) -> Result<Value<'c, 'b>, EmitError> {
    Ok(block.argument(index)?.into())
}

pub(crate) fn first<T>(results: Vec<T>) -> Result<T, EmitError> {
    results
        .into_iter()
        .next()
        .ok_or(EmitError::Internal("an operation without results"))
}

/// What a body that has fewer elements than operands fails with.
pub(crate) const MISSING: EmitError = EmitError::Internal("a missing element");

/// The element of a body with one operand.
pub(crate) fn only<'c, 'b>(elements: &[Value<'c, 'b>]) -> Result<Value<'c, 'b>, EmitError> {
    elements.first().copied().ok_or(MISSING)
}
