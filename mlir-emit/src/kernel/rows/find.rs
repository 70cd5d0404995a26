//! Selects the operations that become one fused row reduction.
//!
//! A kernel begins with a marked row reduction, or with an operation that computes many elements
//! from few operands that rows have in common, as in a batch normalization by given statistics. The
//! kernel includes operations that are elementwise over the same loops or over the rows: the
//! producers of reduced elements, the consumers of results, and other reductions of the same rows.
//! Example: a sum of two tensors, its layer normalization and the rounding to f16 become one
//! kernel, which also stores the sum if something else reads it.

use super::problem::{Kind, Rows, Step};
use super::space::{Space, element_space, reduced_space, wide};
use crate::kernel::code::{BEYOND, DISPATCH};
use crate::kernel::epilogue::{Source, Spread, Tensor, is_elementwise};
use crate::mlir::{Attribute, Context, Name, Operation, Role, Type};
use rotini_schedule::rows::{Problem, Schedule};
use std::collections::{HashMap, HashSet};

/// Operations that change no element.
const PASSED: [Name; 3] = [
    Name::TensorCollapseShape,
    Name::TensorExpandShape,
    Name::IreeTensorExtComputeBarrierStart,
];
/// Maximum number of tensors that a kernel reads and stores: more would need more registers for
/// their addresses than there are.
pub(super) const MOST: usize = 12;

/// The device that a fused row reduction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Gpu,
    /// Elements of rows are contiguous in all tensors, and have 32 bits.
    Cpu,
}

/// A value that the kernel computes or reads.
#[derive(Clone, Copy, Debug)]
struct Held {
    source: Source,
    /// Whether it has only one element per row.
    is_row: bool,
}

/// A fused row reduction, and the operations that it replaces.
pub(super) struct Found<'c> {
    pub(super) rows: Rows<'c>,
    /// The indices of the operations that are part of the kernel.
    pub(super) operations: HashSet<usize>,
    /// The indices of the operations that need the kernel's results.
    pub(super) behind: HashSet<usize>,
    /// The index of the last operation that is part of the kernel.
    pub(super) last: usize,
}

/// The state of one pass over the operations.
struct Scan<'a, 'c> {
    context: &'c Context,
    all: &'a [Operation],
    /// The index of the operation that defines each value.
    makers: &'a HashMap<usize, usize>,
    space: &'a Space,
    device: Device,
    held: HashMap<usize, Held>,
    operands: Vec<Tensor<'c>>,
    steps: Vec<Step>,
    operations: HashSet<usize>,
    behind: HashSet<usize>,
    /// Values that other operations compute from the kernel's results.
    late: HashSet<usize>,
    last: usize,
}

/// Returns the first marked reduction with all operations that are fused with it; `None` if there
/// is none.
pub(super) fn reduction<'c>(context: &'c Context, all: &[Operation], device: Device) -> Option<Found<'c>> {
    let seed = all
        .iter()
        .position(|operation| matches!(operation.role(), Role::Rows))?;
    let space = all.get(seed).and_then(|operation| reduced_space(context, operation));
    let space = space.expect("a reduction of rows without loops");
    match around(context, all, seed, (&space, device)) {
        Some(found) => Some(found),
        None => unreachable!("a reduction of rows that no kernel has"),
    }
}

/// Returns the first operation that computes many elements from operands that rows have in common,
/// with all that is fused with it, and the kernel's schedule; `None` if there is none. All operands
/// of the kernel must be in memory already: after a convolution, for example, the compiler fuses
/// such an operation with the convolution.
pub(super) fn elements<'c>(
    context: &'c Context,
    all: &[Operation],
    schedule: impl Fn(&Problem) -> Option<Schedule>,
) -> Option<(Found<'c>, Schedule)> {
    for (seed, operation) in all.iter().enumerate() {
        let Some(space) = element_space(context, operation) else {
            continue;
        };
        let found = around(context, all, seed, (&space, Device::Gpu));
        if let Some(found) = found
            && found.rows.operands.iter().all(|tensor| is_in_memory(all, tensor.value))
            && let Some(schedule) = schedule(&found.rows.problem())
        {
            return Some((found, schedule));
        }
    }
    None
}

/// Returns whether a value is an argument or the result of a kernel, perhaps with axes of extent 1
/// added or removed.
fn is_in_memory(all: &[Operation], value: usize) -> bool {
    let maker = all.iter().find(|operation| operation.results().contains(&value));
    maker.is_none_or(|maker| {
        let passes = PASSED.contains(&maker.name());
        maker.name() == DISPATCH || passes && maker.operands().iter().all(|&operand| is_in_memory(all, operand))
    })
}

/// Returns an operation with all that is fused into its kernel; `None` if there is no kernel for
/// it.
fn around<'c>(
    context: &'c Context,
    all: &[Operation],
    seed: usize,
    (space, device): (&Space, Device),
) -> Option<Found<'c>> {
    let results = all.iter().enumerate();
    let makers: HashMap<usize, usize> = results
        .flat_map(|(number, operation)| operation.results().iter().map(move |&id| (id, number)))
        .collect();
    let mut scan = Scan {
        context,
        all,
        makers: &makers,
        space,
        device,
        held: HashMap::new(),
        operands: Vec::new(),
        steps: Vec::new(),
        operations: HashSet::new(),
        behind: HashSet::new(),
        late: HashSet::new(),
        last: seed,
    };
    // Elementwise producers of operands over the same loops belong to the kernel. Each pass finds
    // one more generation of them, as long as the kernel grows.
    let mut wanted = HashSet::from([seed]);
    let mut best: Option<Found<'c>> = None;
    loop {
        scan.run(&wanted, |_| true);
        let found = scan.found();
        let is_possible = found.rows.tensors().count() <= MOST && found.rows.tensors().all(can_be_addressed);
        let grows = best
            .as_ref()
            .is_none_or(|best| found.operations.len() > best.operations.len());
        if !is_possible || !grows || !found.operations.contains(&seed) {
            break;
        }
        best = Some(found);
        let count = wanted.len();
        wanted.extend(scan.operands.iter().filter_map(|tensor| makers.get(&tensor.value)));
        if wanted.len() == count {
            break;
        }
    }
    if best.is_some() {
        return best;
    }
    scan.run(&HashSet::from([seed]), |number| number == seed);
    let found = scan.found();
    let is_possible = found.operations.contains(&seed) && found.rows.tensors().all(can_be_addressed);
    is_possible.then_some(found)
}

impl<'c> Scan<'_, 'c> {
    /// Goes through the operations in order. `wanted`: the operations that may join before the
    /// kernel holds any of their operands.
    fn run(&mut self, wanted: &HashSet<usize>, may_join: impl Fn(usize) -> bool) {
        self.held.clear();
        self.operands.clear();
        self.steps.clear();
        self.operations.clear();
        self.behind.clear();
        self.late.clear();
        self.last = 0;
        for (number, operation) in self.all.iter().enumerate() {
            // Values that the body captures count as operands.
            let read = operation.all_operands();
            let is_late = read.iter().any(|id| self.late.contains(id));
            let has_held = read.iter().any(|id| self.held.contains_key(id));
            if !is_late && !has_held && !wanted.contains(&number) {
                continue;
            }
            if !is_late && may_join(number) && self.join(operation).is_some() {
                self.operations.insert(number);
                self.last = number;
            } else if is_late || has_held {
                self.behind.insert(number);
                self.late.extend(operation.results());
            }
        }
    }

    /// Fuses an operation into the kernel, if possible.
    fn join(&mut self, operation: &Operation) -> Option<()> {
        let &[result] = operation.results() else { return None };
        let held = if PASSED.contains(&operation.name()) {
            self.passed(operation, result)?
        } else {
            let (step, operands) = self.step(operation, result)?;
            let is_row = step.kind != Kind::Element;
            let source = Source::Step(self.steps.len());
            self.operands = operands;
            self.steps.push(step);
            Held { source, is_row }
        };
        self.held.insert(result, held);
        Some(())
    }

    /// Passes on the operand of an operation that changes no element, and at most adds or removes
    /// axes of extent 1.
    fn passed(&self, operation: &Operation, result: usize) -> Option<Held> {
        let held = *self.held.get(operation.operands().first()?)?;
        let (shape, _) = self.context.value(result).r#type().if_tensor()?;
        let wide = shape.into_iter().filter(|&extent| extent > 1);
        let is_same = if held.is_row {
            wide.eq(self.space.rows())
        } else {
            wide.eq(self.space.extents.iter().copied())
        };
        is_same.then_some(held)
    }

    /// Returns an operation as a step of the kernel, with all operands of the kernel including
    /// those of the step.
    fn step(&self, operation: &Operation, result: usize) -> Option<(Step, Vec<Tensor<'c>>)> {
        let context = self.context;
        let structure = operation.structure()?;
        if operation.attribute("compilation_info").is_some() {
            return None;
        }
        let [region] = operation.regions() else { return None };
        let (arguments, body) = region.body()?;
        let is_number = |id: usize| context.value(id).r#type().bits().is_some();
        if !is_elementwise(body, arguments, is_number) {
            return None;
        }
        let (shape, element) = context.value(result).r#type().if_tensor()?;
        if !self.is_stored(element) {
            return None;
        }
        let inputs = structure.selected()?;
        let (&init, operands) = operation.operands().split_last()?;
        let is_reduction = matches!(operation.role(), Role::Rows);
        // The operation's loops with more than one iteration, and for each the kernel's loop.
        let (loops, kind) = if is_reduction {
            if reduced_space(context, operation)? != *self.space {
                return None;
            }
            let (read, _) = context.value(*operands.first()?).r#type().if_tensor()?;
            (wide(&read), Kind::Reduction(self.start(init)?))
        } else {
            if !structure.written.is_identity() || structure.reduces() {
                return None;
            }
            let loops = wide(&shape);
            let extents = || loops.iter().filter_map(|&position| shape.get(position).copied());
            let kind = if extents().eq(self.space.extents.iter().copied()) {
                Kind::Element
            } else if extents().eq(self.space.rows()) {
                Kind::Row
            } else {
                return None;
            };
            (loops, kind)
        };
        let along = self.space.loops(kind == Kind::Row);
        // Returns the kernel's loops along which an operand varies, in the operand's order.
        let loops_of = |map: &[usize]| -> Option<Vec<usize>> {
            let of = |position: &usize| loops.iter().position(|number| number == position);
            map.iter()
                .filter_map(of)
                .map(|number| along.get(number).copied())
                .collect()
        };
        let mut all = self.operands.clone();
        let mut sources = Vec::new();
        for (id, map) in operands.iter().zip(&inputs) {
            if let Some(held) = self.held.get(id) {
                if loops_of(map)? != self.space.loops(held.is_row) {
                    return None;
                }
                sources.push(held.source);
                continue;
            }
            let (shape, element) = context.value(*id).r#type().if_tensor()?;
            if !self.is_stored(element) {
                return None;
            }
            let wide = map.iter().zip(&shape).filter(|(_, extent)| **extent > 1);
            let map: Vec<usize> = wide.map(|(&position, _)| position).collect();
            let spread = self.spread(&loops_of(&map)?, &shape);
            if self.device == Device::Cpu && !self.is_side_by_side(&spread) {
                return None;
            }
            let is_same = |tensor: &Tensor<'_>| tensor.value == *id && tensor.spread == spread;
            let number = all.iter().position(is_same).unwrap_or(all.len());
            if number == all.len() {
                let value = *id;
                all.push(Tensor {
                    value,
                    element,
                    shape,
                    spread,
                });
            }
            sources.push(Source::Operand(number));
        }
        // The step's result may be stored, and needs a tensor too.
        if all.len() >= MOST {
            return None;
        }
        // Only a reduction reads its `outs` element.
        let uses_old = arguments
            .last()
            .is_some_and(|old| body.iter().any(|operation| operation.operands().contains(old)));
        if uses_old != is_reduction || self.held.contains_key(&init) {
            return None;
        }
        sources.push(Source::Unused);
        let step = Step {
            kind,
            sources,
            arguments: arguments.to_vec(),
            body: body.to_vec(),
        };
        Some((step, all))
    }

    /// Returns whether kernels load and store elements of a type.
    fn is_stored(&self, element: Type<'_>) -> bool {
        match self.device {
            Device::Gpu => matches!(element.bits(), Some(8 | 16 | 32)),
            Device::Cpu => element.bits() == Some(32),
        }
    }

    /// Returns whether a row's elements are contiguous in memory, or all the same element.
    fn is_side_by_side(&self, spread: &Spread) -> bool {
        let loops = self.space.extents.iter().zip(&self.space.is_reduced);
        let mut next = 1;
        let mut strides: Vec<i64> = Vec::new();
        for (&extent, _) in loops.filter(|(_, is_reduced)| **is_reduced).rev() {
            strides.push(next);
            next *= extent;
        }
        spread.columns.iter().all(|&stride| stride == 0) || spread.columns.iter().rev().eq(&strides)
    }

    /// Returns the constant that a reduction starts from.
    fn start(&self, init: usize) -> Option<Attribute> {
        let maker = |id: usize| self.all.get(*self.makers.get(&id)?);
        let fill = maker(init).filter(|fill| fill.name() == Name::LinalgFill)?;
        let constant = maker(*fill.operands().first()?)?;
        let is_constant = constant.name() == Name::ArithConstant;
        constant.attribute("value").filter(|_| is_constant).cloned()
    }

    /// Returns the strides of a row-major tensor along the kernel's loops. `loops`: the loops along
    /// which the tensor has more than one element.
    fn spread(&self, loops: &[usize], shape: &[i64]) -> Spread {
        let mut strides = vec![0; self.space.extents.len()];
        let mut stride = 1;
        let wide: Vec<i64> = shape.iter().copied().filter(|&extent| extent > 1).collect();
        for (&position, extent) in loops.iter().zip(wide).rev() {
            strides[position] = stride;
            stride *= extent;
        }
        let part = |is_reduced| self.space.part(strides.iter().copied(), is_reduced);
        Spread {
            batch: Vec::new(),
            rows: part(false),
            columns: part(true),
        }
    }

    /// Returns the kernel with the values that it stores: those with other readers.
    fn found(&self) -> Found<'c> {
        let others = self.all.iter().enumerate();
        let others = others.filter(|(number, _)| !self.operations.contains(number));
        let read: HashSet<usize> = others.flat_map(|(_, operation)| operation.all_operands()).collect();
        let mut held: Vec<(&usize, &Held)> = self.held.iter().filter(|(id, _)| read.contains(id)).collect();
        held.sort_by_key(|(id, _)| **id);
        let mut stored = Vec::new();
        for (&value, held) in held {
            let (shape, element) = self.context.value(value).r#type().as_tensor();
            let spread = self.spread(&self.space.loops(held.is_row), &shape);
            stored.push((
                held.source,
                Tensor {
                    value,
                    element,
                    shape,
                    spread,
                },
            ));
        }
        let mut rows = Rows {
            rows: self.space.rows(),
            columns: self.space.part(self.space.extents.iter().copied(), true),
            operands: self.operands.clone(),
            steps: self.steps.clone(),
            stored,
        };
        rows.merge();
        Found {
            rows,
            operations: self.operations.clone(),
            behind: self.behind.clone(),
            last: self.last,
        }
    }
}

/// Returns whether all of a tensor is below the offset [`BEYOND`].
fn can_be_addressed(tensor: &Tensor<'_>) -> bool {
    tensor.elements().saturating_mul(tensor.bytes()) < BEYOND
}
