//! The epilogue of a kernel: the elementwise steps that are applied to its sums, and the places to
//! which the results are stored.
//!
//! A step is the body of a structured operation on single elements. Here it is written for vectors
//! of four neighbouring elements.

use super::code::{Buffer, Code, Int, Ssa};
use super::places::offset;
use crate::counts::exactly;
use crate::mlir::{Name, Operation, Type};
use std::collections::HashMap;

/// Contiguous elements of a tile that a lane holds.
pub(super) const RUN: i64 = rotini_schedule::rows::RUN.cast_signed();

/// Bytes of the widest memory access.
const WIDEST: i64 = 16;

/// The strides of a tensor along batches, rows and columns; zero along an axis that the tensor is
/// broadcast along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) batch: Vec<i64>,
    pub(super) rows: Vec<i64>,
    pub(super) columns: Vec<i64>,
}

/// A tensor that the epilogue reads or stores.
#[derive(Clone, Debug)]
pub(super) struct Tensor<'c> {
    /// The id of the value.
    pub(super) value: usize,
    pub(super) element: Type<'c>,
    /// The extents, row-major.
    pub(super) shape: Vec<i64>,
    pub(super) spread: Spread,
}

/// The source of an argument of a step's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The sums.
    Sums,
    /// The result of an earlier step.
    Step(usize),
    /// A tensor that the kernel reads.
    Operand(usize),
    /// The `outs` element of the structured operation, which its body does not use.
    Unused,
}

/// One elementwise structured operation.
#[derive(Debug)]
pub(super) struct Step {
    /// The sources of the body's arguments.
    pub(super) sources: Vec<Source>,
    /// The ids of the body's arguments.
    pub(super) arguments: Vec<usize>,
    pub(super) body: Vec<Operation>,
}

/// The steps of an epilogue, in order.
#[derive(Debug, Default)]
pub(super) struct Epilogue<'c> {
    pub(super) operands: Vec<Tensor<'c>>,
    pub(super) steps: Vec<Step>,
    /// The values that are stored, and the tensors to which they are stored.
    pub(super) stored: Vec<(Source, Tensor<'c>)>,
}

/// The position of a lane's run of elements.
pub(super) struct Spot<'a, 'c> {
    /// The indices of the first element along batches, rows and columns.
    pub(super) batch: &'a [Int<'c>],
    pub(super) rows: &'a [Int<'c>],
    pub(super) columns: &'a [Int<'c>],
    /// For each element of the run, the indices along the rows, or the columns, whichever the run
    /// goes along.
    pub(super) run: &'a [Vec<Int<'c>>],
    pub(super) goes_along_columns: bool,
    /// For each element of the run, whether it is inside the result.
    pub(super) exists: &'a [Int<'c>],
}

impl<'c> Tensor<'c> {
    /// Returns the tensor's memory as a buffer of a kernel.
    pub(super) fn buffer(&self) -> Buffer<'c> {
        Buffer::new(self.elements(), self.element)
    }
}

impl Tensor<'_> {
    pub(super) fn elements(&self) -> i64 {
        self.shape.iter().product()
    }

    pub(super) fn bytes(&self) -> i64 {
        i64::from(
            self.element
                .bits()
                .unwrap_or_else(|| unreachable!("elements of {}", self.element))
                .div_ceil(8),
        )
    }

    /// Returns whether a run of elements is contiguous in memory and aligned.
    pub(super) fn is_run(&self, along_columns: bool, extent: i64) -> bool {
        let Spread { batch, rows, columns } = &self.spread;
        let (along, across) = if along_columns {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let Some((&last, outer)) = along.split_last() else {
            return false;
        };
        let mut others = outer.iter().chain(across).chain(batch);
        last == 1 && extent % RUN == 0 && self.bytes() * RUN <= WIDEST && others.all(|stride| stride % RUN == 0)
    }

    /// Returns whether all elements of a run are the same element of the tensor.
    pub(super) fn is_same(&self, along_columns: bool) -> bool {
        let along = if along_columns {
            &self.spread.columns
        } else {
            &self.spread.rows
        };
        along.iter().all(|&stride| stride == 0)
    }

    /// Returns the offsets of the elements of a run: one if it is loaded as a whole, or if all its
    /// elements are the same.
    fn places<'c>(&self, code: &Code<'c>, buffer: Ssa<'c>, spot: &Spot<'_, 'c>, single: bool) -> Vec<Int<'c>> {
        let Spread { batch, rows, columns } = &self.spread;
        let (run, across) = if spot.goes_along_columns {
            (columns, offset(spot.rows, rows))
        } else {
            (rows, offset(spot.columns, columns))
        };
        let base = offset(spot.batch, batch) + across;
        let count = if single { 1 } else { spot.run.len() };
        let places = spot.run.iter().take(count).zip(spot.exists).map(|(indices, &exists)| {
            let place = base + offset(indices, run);
            code.masked(exists, place, buffer)
        });
        places.collect()
    }
}

/// Returns the names of the operations of a body.
pub(super) fn names(body: &[Operation]) -> impl Iterator<Item = String> {
    let computes = |operation: &&Operation| !matches!(operation.name(), Name::LinalgYield | Name::ArithConstant);
    body.iter()
        .filter(computes)
        .map(|operation| operation.name().to_string())
}

impl<'c> Epilogue<'c> {
    /// Returns the names of the operations of all steps.
    pub(super) fn names(&self) -> Vec<String> {
        self.steps.iter().flat_map(|step| names(&step.body)).collect()
    }

    /// Computes all steps for a run of sums and stores their results. `extent`: the extent of the
    /// innermost axis along the run. `buffers`: those of the operands, then those of the stored
    /// tensors.
    pub(super) fn write(
        &self,
        code: &Code<'c>,
        (sums, extent): (Ssa<'c>, i64),
        spot: &Spot<'_, 'c>,
        buffers: &[Ssa<'c>],
    ) {
        let mut read = Vec::new();
        for (tensor, &buffer) in self.operands.iter().zip(buffers) {
            read.push(load(code, tensor, buffer, spot, extent));
        }
        let mut made: Vec<Ssa<'c>> = Vec::new();
        let find = |made: &[Ssa<'c>], source: Source| {
            let value = match source {
                Source::Sums => Some(sums),
                Source::Step(index) => made.get(index).copied(),
                Source::Operand(index) => read.get(index).copied(),
                Source::Unused => None,
            };
            value.expect("a value that a kernel lacks")
        };
        for step in &self.steps {
            let mut known = HashMap::new();
            for (&argument, &source) in step.arguments.iter().zip(&step.sources) {
                if source != Source::Unused {
                    known.insert(argument, find(&made, source));
                }
            }
            made.push(written(code, &step.body, known, Some(RUN)));
        }
        let outputs = buffers.iter().skip(self.operands.len());
        for ((source, tensor), &buffer) in self.stored.iter().zip(outputs) {
            store(code, (find(&made, *source), tensor), buffer, spot, extent);
        }
    }
}

/// Loads a run of a tensor's elements. `extent`: the extent of the axis that runs go along.
pub(super) fn load<'c>(
    code: &Code<'c>,
    tensor: &Tensor<'c>,
    buffer: Ssa<'c>,
    spot: &Spot<'_, 'c>,
    extent: i64,
) -> Ssa<'c> {
    let vector = tensor.element.vector(&[RUN]);
    if tensor.is_same(spot.goes_along_columns) {
        let place = tensor.places(code, buffer, spot, true)[0];
        return code.load(buffer, place, tensor.element).broadcast(vector);
    }
    if tensor.is_run(spot.goes_along_columns, extent) {
        let place = tensor.places(code, buffer, spot, true)[0];
        return code.load(buffer, place, vector);
    }
    let places = tensor.places(code, buffer, spot, false);
    let elements: Vec<_> = places
        .into_iter()
        .map(|place| code.load(buffer, place, tensor.element))
        .collect();
    code.vector(&elements, vector)
}

/// Stores a run of elements. `extent`: the extent of the axis that runs go along.
pub(super) fn store<'c>(
    code: &Code<'c>,
    (value, tensor): (Ssa<'c>, &Tensor<'c>),
    buffer: Ssa<'c>,
    spot: &Spot<'_, 'c>,
    extent: i64,
) {
    let is_run = tensor.is_run(spot.goes_along_columns, extent);
    let places = tensor.places(code, buffer, spot, is_run);
    if is_run {
        let place = places[0];
        return code.store(value, buffer, place);
    }
    for (position, place) in (0..).zip(places) {
        let element = code.extract(value, position, tensor.element);
        code.store(element, buffer, place);
    }
}

/// Writes the body of a step for vectors of `width` elements, or for scalars if `width` is `None`.
/// Returns the yielded value.
pub(super) fn written<'c>(
    code: &Code<'c>,
    body: &[Operation],
    known: HashMap<usize, Ssa<'c>>,
    width: Option<i64>,
) -> Ssa<'c> {
    written_with(code, body, known, width, |_, _| None)
}

/// Writes the body of a step as [`written`] does. `other` is called with each operation's result
/// and operands, and may return a value that replaces the operation.
pub(super) fn written_with<'c>(
    code: &Code<'c>,
    body: &[Operation],
    mut known: HashMap<usize, Ssa<'c>>,
    width: Option<i64>,
    other: impl Fn(usize, &[Ssa<'c>]) -> Option<Ssa<'c>>,
) -> Ssa<'c> {
    const MISSING: &str = "a value that a body lacks";
    for operation in body {
        let operands: Option<Vec<_>> = operation.operands().iter().map(|id| known.get(id).copied()).collect();
        let operands = operands.expect(MISSING);
        if operation.name() == Name::LinalgYield {
            return operands[0];
        }
        let [result] = exactly(operation.results());
        if let Some(other) = other(result, &operands) {
            known.insert(result, other);
            continue;
        }
        let element = code.context().value(result).r#type();
        let made = match width {
            Some(width) => element.vector(&[width]),
            None => element,
        };
        let attributes = operation.attributes().iter().map(|(name, value)| match (*name, width) {
            ("value", Some(_)) => (*name, value.splat(made)),
            _ => (*name, value.clone()),
        });
        let attributes: Vec<_> = attributes.collect();
        known.insert(result, code.one(operation.name(), &operands, made, &attributes));
    }
    unreachable!("{MISSING}")
}

/// Returns whether a body can be written for vectors: it consists of arithmetic on its arguments.
pub(super) fn is_elementwise(body: &[Operation], arguments: &[usize], number: impl Fn(usize) -> bool) -> bool {
    let mut known: Vec<usize> = arguments.to_vec();
    for operation in body {
        let is_arithmetic = operation.name().is_of("arith") || operation.name().is_of("math");
        let is_last = operation.name() == Name::LinalgYield;
        let has_all = operation.operands().iter().all(|id| known.contains(id));
        let is_plain = operation.results().iter().all(|&id| number(id)) && operation.regions().is_empty();
        if !has_all || !is_plain || !(is_arithmetic || is_last) {
            return false;
        }
        known.extend(operation.results());
    }
    true
}
