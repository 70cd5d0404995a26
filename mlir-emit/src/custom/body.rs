//! What a body may be made of.
//!
//! Every operation, attribute and type is on a list here, or the body is declined. The lists have what runs right on every target, and
//! nothing that could fault: no division of integers (x86 traps), no element at a place that data decides, no loop but over shapes.

use melior::ir::attribute::{ArrayAttribute, DenseI64ArrayAttribute};
use melior::ir::operation::{OperationLike, OperationRef};
use melior::ir::r#type::{DimSize, FunctionType, RankedTensorType, ShapedTypeLike};
use melior::ir::{
    AffineMap, Attribute, AttributeLike, BlockLike, BlockRef, Module, RegionLike, RegionRef, Type, Value, ValueLike,
};
use std::collections::HashSet;

/// Operations that a body may have.
const MOST: usize = 512;

/// On scalars: with floats of 32 or 64 bits, integers and indices.
const ARITHMETIC: [&str; 38] = [
    "arith.addf",
    "arith.addi",
    "arith.andi",
    "arith.bitcast",
    "arith.cmpf",
    "arith.cmpi",
    "arith.constant",
    "arith.divf",
    "arith.extf",
    "arith.extsi",
    "arith.extui",
    "arith.fptosi",
    "arith.fptoui",
    "arith.index_cast",
    "arith.maximumf",
    "arith.maxnumf",
    "arith.maxsi",
    "arith.maxui",
    "arith.minimumf",
    "arith.minnumf",
    "arith.minsi",
    "arith.minui",
    "arith.mulf",
    "arith.muli",
    "arith.negf",
    "arith.ori",
    "arith.select",
    "arith.sitofp",
    "arith.subf",
    "arith.subi",
    "arith.truncf",
    "arith.trunci",
    "arith.uitofp",
    "arith.xori",
    "math.absi",
    "math.absf",
    "math.copysign",
    "math.fma",
];

/// Of f32 and f64.
const FUNCTIONS: [&str; 8] = [
    "math.ceil",
    "math.exp",
    "math.expm1",
    "math.floor",
    "math.log",
    "math.log1p",
    "math.roundeven",
    "math.sqrt",
];

/// Of f32 alone: compiled code for CPUs comes without a math library.
const FUNCTIONS_OF_F32: [&str; 4] = ["math.cos", "math.erf", "math.sin", "math.tanh"];

/// What may combine elements along an axis.
const COMBINERS: [&str; 14] = [
    "arith.addf",
    "arith.addi",
    "arith.andi",
    "arith.maximumf",
    "arith.maxnumf",
    "arith.maxsi",
    "arith.maxui",
    "arith.minimumf",
    "arith.minnumf",
    "arith.minsi",
    "arith.minui",
    "arith.mulf",
    "arith.muli",
    "arith.ori",
];

/// Inherent attributes that say nothing of a kind that is not looked at.
const ATTRIBUTES: [&str; 14] = [
    "dim",
    "fastmath",
    "indexing_maps",
    "iterator_types",
    "nonNeg",
    "operandSegmentSizes",
    "overflowFlags",
    "predicate",
    "reassociation",
    "static_offsets",
    "static_output_shape",
    "static_sizes",
    "static_strides",
    "value",
];

/// Why a body is declined, and at which operation if it is one's fault.
#[derive(Debug)]
struct Refusal {
    reason: String,
    place: Option<String>,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Refusal { reason, place: None }
    }
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

impl From<melior::Error> for Refusal {
    fn from(error: melior::Error) -> Self {
        error.to_string().into()
    }
}

impl Refusal {
    /// At this operation, unless it is at one inside it already.
    fn at(self, operation: &OperationRef<'_, '_>) -> Self {
        // As MLIR writes it: loc("-":LINE:COLUMN).
        let location = operation.location().to_string();
        let line = location.split(':').nth(1).unwrap_or_default();
        Refusal {
            place: self.place.or_else(|| Some(format!("line {line}, {}", name(operation)))),
            ..self
        }
    }
}

/// What is known of a body that is allowed.
pub(super) struct Body {
    /// The elements of its intermediate tensors.
    pub(super) elements: u64,
    /// Whether it takes the larger or smaller number, and widens f16, perhaps for that.
    pub(super) may_compare_f16: bool,
    /// The extents of the loops that combine elements, by operation.
    pub(super) reductions: Vec<Vec<i64>>,
}

/// Holds the one function of a module against what is allowed.
///
/// # Errors
///
/// What is not allowed.
pub(super) fn verify<'c>(module: &Module<'c>, inputs: &[Type<'c>], outputs: &[Type<'c>]) -> Result<Body, String> {
    verified(module, inputs, outputs).map_err(|Refusal { reason, place }| match place {
        Some(place) => format!("{place}: {reason}"),
        None => reason,
    })
}

fn verified<'c>(module: &Module<'c>, inputs: &[Type<'c>], outputs: &[Type<'c>]) -> Result<Body, Refusal> {
    let function = module
        .body()
        .first_operation()
        .filter(|function| name(function) == "func.func" && function.next_in_block().is_none())
        .ok_or("its body is not one function")?;
    check_signature(&function, inputs, outputs)?;
    let region = function.region(0)?;
    let block = only_block(region)?;
    let mut walk = Walk::default();
    for index in 0..block.argument_count() {
        let argument = block.argument(index)?;
        walk.computed.insert(id(&argument.into()));
    }
    for operation in operations(block) {
        walk.statement(&operation).map_err(|refusal| refusal.at(&operation))?;
    }
    if walk.indexes && walk.contracts {
        return Err("linalg.index in a body with a sum of products".into());
    }
    Ok(Body {
        elements: walk.elements,
        may_compare_f16: walk.compares && walk.widens_f16,
        reductions: walk.reductions,
    })
}

fn check_signature<'c>(
    function: &OperationRef<'c, '_>,
    inputs: &[Type<'c>],
    outputs: &[Type<'c>],
) -> Result<(), Refusal> {
    for (key, _) in function.attributes() {
        let key = text(key.as_string_ref());
        if !["sym_name", "function_type", "sym_visibility"].contains(&key.as_str()) {
            return Err(format!("its function has the attribute {key}").into());
        }
    }
    let found = function
        .attribute("function_type")
        .ok()
        .and_then(|attribute| melior::ir::attribute::TypeAttribute::try_from(attribute).ok())
        .and_then(|attribute| FunctionType::try_from(attribute.value()).ok())
        .ok_or("its function has no type")?;
    let list = |types: &[Type<'_>]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let compare = |what: &str, count: usize, found: &dyn Fn(usize) -> Option<Type<'c>>, expected: &[Type<'c>]| {
        let found: Vec<Type<'c>> = (0..count).filter_map(found).collect();
        if found == expected {
            return Ok(());
        }
        Err(format!(
            "its function {what} ({}), and the operation ({})",
            list(&found),
            list(expected)
        )
        .into())
    };
    compare("takes", found.input_count(), &|index| found.input(index).ok(), inputs)?;
    compare(
        "gives",
        found.result_count(),
        &|index| found.result(index).ok(),
        outputs,
    )
}

/// What is known while a body is walked.
#[derive(Default)]
struct Walk {
    operations: usize,
    /// Elements of all tensors so far.
    elements: u64,
    /// The values that depend on an argument.
    computed: HashSet<usize>,
    /// Whether an index of a loop is used.
    indexes: bool,
    /// Whether several operands are combined along an axis.
    contracts: bool,
    /// Whether there is a `maxnumf` or `minnumf`.
    compares: bool,
    /// The extents of the loops that combine elements, by operation.
    reductions: Vec<Vec<i64>>,
    /// Whether f16 is widened.
    widens_f16: bool,
}

impl Walk {
    /// An operation of the function's own block.
    fn statement(&mut self, operation: &OperationRef<'_, '_>) -> Result<(), Refusal> {
        self.any(operation)?;
        let name = name(operation);
        if name != "linalg.generic" && name != "linalg.fill" && operation.region_count() > 0 {
            return Err("an operation with a region".into());
        }
        match name.as_str() {
            "linalg.generic" => return self.generic(operation),
            "linalg.fill" | "tensor.empty" | "tensor.expand_shape" | "tensor.collapse_shape" => {}
            "tensor.extract_slice" => check_slice(operation)?,
            "func.return" => {
                return match operation.operands().all(|value| self.computed.contains(&id(&value))) {
                    // An argument that is handed on is computed by nobody, either.
                    true if operation.operands().all(|value| value.is_operation_result()) => Ok(()),
                    _ => Err("a result that is not computed from the inputs".into()),
                };
            }
            _ => check_scalar(operation, &name)?,
        }
        self.propagate(operation);
        Ok(())
    }

    /// What holds for every operation, wherever it is.
    fn any(&mut self, operation: &OperationRef<'_, '_>) -> Result<(), Refusal> {
        self.operations = self.operations.saturating_add(1);
        if self.operations > MOST {
            return Err(format!("more than {MOST} operations").into());
        }
        // SAFETY: the operation is alive.
        if unsafe { mlir_sys::mlirOperationGetNumDiscardableAttributes(operation.to_raw()) } != 0 {
            return Err("an attribute that is not the operation's".into());
        }
        for (key, _) in operation.attributes() {
            let key = text(key.as_string_ref());
            if !ATTRIBUTES.contains(&key.as_str()) {
                return Err(format!("the attribute {key}").into());
            }
        }
        for result in operation.results() {
            self.check_type(result.r#type())?;
        }
        Ok(())
    }

    fn check_type(&mut self, ty: Type<'_>) -> Result<(), Refusal> {
        if is_scalar(ty) {
            return Ok(());
        }
        let tensor = RankedTensorType::try_from(ty).map_err(|_| format!("the type {ty}"))?;
        let is_stored =
            ["f32", "f16", "bf16", "f64", "i8", "i32", "i64"].contains(&tensor.element().to_string().as_str());
        if !is_stored || tensor.encoding().is_some() {
            return Err(format!("the type {ty}").into());
        }
        let mut count: u64 = 1;
        for axis in 0..tensor.rank() {
            count = extent(tensor, axis)
                .and_then(|extent| count.checked_mul(extent))
                .filter(|&count| count < 1 << 40)
                .ok_or_else(|| format!("the extents of {ty}"))?;
        }
        self.elements = self.elements.saturating_add(count);
        Ok(())
    }

    /// Marks the results of an operation as computed if an operand is.
    fn propagate(&mut self, operation: &OperationRef<'_, '_>) {
        if operation.operands().any(|value| self.computed.contains(&id(&value))) {
            self.computed
                .extend(operation.results().map(|result| id(&result.into())));
        }
    }

    fn generic(&mut self, operation: &OperationRef<'_, '_>) -> Result<(), Refusal> {
        if operation.result_count() != 1 {
            return Err("more than one result".into());
        }
        let reduced = reduced_loops(operation)?;
        let maps = maps(operation)?;
        let (last, read) = maps.split_last().ok_or("no result")?;
        if maps.len() != operation.operand_count() {
            return Err("a number of maps that is not that of the operands".into());
        }
        // Each element of the result is one of the parallel loops' iterations: nothing is written twice, nothing is left out.
        let written: HashSet<usize> = last.iter().copied().collect();
        let is_right = |(index, &is_reduced): (usize, &bool)| written.contains(&index) != is_reduced;
        if !reduced.iter().enumerate().all(is_right) {
            return Err("a result that is not indexed by all parallel loops and no others".into());
        }
        let region = operation.region(0)?;
        let block = only_block(region)?;
        let mut arguments = Vec::new();
        for (index, operand) in operation.operands().enumerate() {
            if is_scalar(operand.r#type()) {
                return Err("a scalar operand, which its block can have without".into());
            }
            let argument: Value<'_, '_> = block.argument(index)?.into();
            if !is_scalar(argument.r#type()) {
                return Err(format!("an element of the type {}", argument.r#type()).into());
            }
            if self.computed.contains(&id(&operand)) {
                self.computed.insert(id(&argument));
            }
            arguments.push(argument);
        }
        let mut result = None;
        for inner in operations(block) {
            if name(&inner) == "linalg.yield" {
                result = Some(inner.operand(0)?);
            } else {
                self.scalar(&inner).map_err(|refusal| refusal.at(&inner))?;
            }
        }
        let result = result.ok_or("no result")?;
        if reduced.contains(&true) {
            self.contracts |= read.len() > 1;
            let extents = loops(operation, &maps, reduced.len())?;
            let summed = reduced.iter().zip(&extents).filter(|(is_reduced, _)| **is_reduced);
            self.reductions.push(summed.map(|(_, &extent)| extent).collect());
            check_combiner(result, arguments.last().copied().ok_or("no result")?)?;
        }
        if self.computed.contains(&id(&result)) {
            self.computed
                .extend(operation.results().map(|result| id(&result.into())));
        }
        Ok(())
    }

    /// An operation in the body of a structured one.
    fn scalar(&mut self, operation: &OperationRef<'_, '_>) -> Result<(), Refusal> {
        self.any(operation)?;
        match name(operation).as_str() {
            "linalg.index" => self.indexes = true,
            name => {
                self.compares |= matches!(name, "arith.maxnumf" | "arith.minnumf");
                self.widens_f16 |= name == "arith.extf" && operation.operand(0)?.r#type().to_string() == "f16";
                check_scalar(operation, name)?;
            }
        }
        self.propagate(operation);
        Ok(())
    }
}

/// Declines sums and the like that are not one operation between what there is already and something else.
fn check_combiner(result: Value<'_, '_>, so_far: Value<'_, '_>) -> Result<(), Refusal> {
    let combined = melior::ir::operation::OperationResult::try_from(result)
        .map_err(|_| "a reduction that does not combine elements")?;
    let combiner = combined.owner();
    let operands = combiner.operands().filter(|operand| id(operand) == id(&so_far)).count();
    if !COMBINERS.contains(&name(&combiner).as_str()) || operands != 1 || uses(so_far) != 1 {
        return Err(
            "a reduction whose elements are not combined by one sum, product, minimum, maximum, or, and".into(),
        );
    }
    Ok(())
}

/// Declines what is not arithmetic of scalars that every target has.
fn check_scalar(operation: &OperationRef<'_, '_>, name: &str) -> Result<(), Refusal> {
    let is_function = FUNCTIONS.contains(&name) || FUNCTIONS_OF_F32.contains(&name);
    if !ARITHMETIC.contains(&name) && !is_function {
        return Err("an operation that is not allowed there".into());
    }
    if operation.region_count() > 0 {
        return Err("an operation with a region".into());
    }
    let types: Vec<String> = operation
        .operands()
        .map(|operand| operand.r#type())
        .chain(operation.results().map(|result| result.r#type()))
        .map(|ty| {
            if is_scalar(ty) {
                Ok(ty.to_string())
            } else {
                Err(Refusal::from(format!("arithmetic of {ty}")))
            }
        })
        .collect::<Result<_, Refusal>>()?;
    let has = |ty: &str| types.iter().any(|found| found == ty);
    let is_conversion = matches!(name, "arith.extf" | "arith.truncf");
    if (has("f16") || has("bf16")) && !(is_conversion && has("f32")) && name != "arith.constant" {
        return Err("arithmetic of f16 or bf16, which are converted to f32 first".into());
    }
    if has("i8") && !["arith.extsi", "arith.extui", "arith.trunci", "arith.constant"].contains(&name) {
        return Err("arithmetic of i8, which is converted to a wider type first".into());
    }
    if FUNCTIONS_OF_F32.contains(&name) && !has("f32") {
        return Err("a function that is there in f32 alone".into());
    }
    Ok(())
}

/// Declines slices that are not inside their tensor.
fn check_slice(operation: &OperationRef<'_, '_>) -> Result<(), Refusal> {
    let list = |name: &str| -> Result<Vec<i64>, Refusal> {
        let attribute = operation.attribute(name)?;
        let array = DenseI64ArrayAttribute::try_from(attribute)?;
        (0..array.len())
            .map(|index| array.element(index).map_err(Refusal::from))
            .collect()
    };
    let source = operation.operand(0)?;
    let source = RankedTensorType::try_from(source.r#type())?;
    let (offsets, sizes, strides) = (list("static_offsets")?, list("static_sizes")?, list("static_strides")?);
    let is_inside = |axis: usize| -> Option<bool> {
        let (offset, size, stride) = (*offsets.get(axis)?, *sizes.get(axis)?, *strides.get(axis)?);
        let extent = i64::try_from(extent(source, axis)?).ok()?;
        let last = size.checked_sub(1)?.checked_mul(stride)?.checked_add(offset)?;
        // What is dynamic is far below zero.
        Some(offset >= 0 && size > 0 && stride > 0 && last < extent)
    };
    if operation.operand_count() != 1 || !(0..source.rank()).all(|axis| is_inside(axis) == Some(true)) {
        return Err("a slice that is not inside its tensor".into());
    }
    Ok(())
}

/// Which loops of a structured operation combine elements.
fn reduced_loops(operation: &OperationRef<'_, '_>) -> Result<Vec<bool>, Refusal> {
    elements(operation, "iterator_types")?
        .iter()
        .map(|kind| match kind.to_string().as_str() {
            "#linalg.iterator_type<parallel>" => Ok(false),
            "#linalg.iterator_type<reduction>" => Ok(true),
            other => Err(format!("the loop {other}").into()),
        })
        .collect()
}

/// The extent of each loop, from the tensors that it indexes.
fn loops(operation: &OperationRef<'_, '_>, maps: &[Vec<usize>], count: usize) -> Result<Vec<i64>, Refusal> {
    let mut extents = vec![1; count];
    for (operand, map) in operation.operands().zip(maps) {
        let tensor = RankedTensorType::try_from(operand.r#type())?;
        for (axis, &index) in map.iter().enumerate() {
            let extent = extent(tensor, axis).and_then(|extent| i64::try_from(extent).ok());
            if let Some(slot) = extents.get_mut(index) {
                *slot = extent.ok_or("an extent that is not known")?;
            }
        }
    }
    Ok(extents)
}

/// The loops that index the axes of each operand: distinct ones, so that whatever the loops do stays inside it.
fn maps(operation: &OperationRef<'_, '_>) -> Result<Vec<Vec<usize>>, Refusal> {
    elements(operation, "indexing_maps")?
        .iter()
        .map(|attribute| {
            // SAFETY: the attribute is alive, and asked for its map only if it has one.
            let map = unsafe {
                if !mlir_sys::mlirAttributeIsAAffineMap(attribute.to_raw()) {
                    return Err("a map that is none".into());
                }
                AffineMap::from_raw(mlir_sys::mlirAffineMapAttrGetValue(attribute.to_raw()))
            };
            if !map.is_projected_permutation() {
                return Err(format!("the map {map}, which does not just choose loops").into());
            }
            (0..map.result_count())
                .map(|index| {
                    // SAFETY: the map has that many results, all of them loops, since it is a projected permutation.
                    let position = unsafe {
                        let result = mlir_sys::mlirAffineMapGetResult(map.to_raw(), index.cast_signed());
                        mlir_sys::mlirAffineDimExprGetPosition(result)
                    };
                    usize::try_from(position).map_err(|error| error.to_string().into())
                })
                .collect()
        })
        .collect()
}

fn elements<'c>(operation: &OperationRef<'c, '_>, name: &str) -> Result<Vec<Attribute<'c>>, Refusal> {
    let attribute = operation.attribute(name)?;
    let array = ArrayAttribute::try_from(attribute)?;
    (0..array.len())
        .map(|index| array.element(index).map_err(Refusal::from))
        .collect()
}

/// An extent that is known and not 0.
fn extent(tensor: RankedTensorType<'_>, axis: usize) -> Option<u64> {
    match tensor.dim_size(axis) {
        Ok(DimSize::Static(extent)) => Some(extent).filter(|&extent| extent > 0),
        _ => None,
    }
}

fn is_scalar(ty: Type<'_>) -> bool {
    ["f32", "f16", "bf16", "f64", "i1", "i8", "i32", "i64", "index"].contains(&ty.to_string().as_str())
}

fn only_block<'c, 'a>(region: RegionRef<'c, 'a>) -> Result<BlockRef<'c, 'a>, Refusal> {
    region
        .first_block()
        .filter(|block| block.next_in_region().is_none())
        .ok_or_else(|| "a region that is not one block".into())
}

fn operations<'c, 'a>(block: BlockRef<'c, 'a>) -> impl Iterator<Item = OperationRef<'c, 'a>> {
    std::iter::successors(block.first_operation(), OperationLike::next_in_block)
}

fn name(operation: &OperationRef<'_, '_>) -> String {
    text(operation.name().as_string_ref())
}

fn text(string: melior::StringRef<'_>) -> String {
    string.as_str().unwrap_or_default().to_owned()
}

/// What tells values apart.
fn id(value: &Value<'_, '_>) -> usize {
    value.to_raw().ptr.addr()
}

/// How often a value is an operand.
fn uses(value: Value<'_, '_>) -> usize {
    // SAFETY: the value is alive, and so are its uses, each of which leads to the next until one is null.
    unsafe {
        let mut next = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        let mut count: usize = 0;
        while !next.ptr.is_null() {
            count = count.saturating_add(1);
            next = mlir_sys::mlirOpOperandGetNextUse(next);
        }
        count
    }
}
