//! A model of how IREE groups operations into kernels, as far as it is known.

use super::bits;
use crate::mlir::{Context, Name, Operation, Region};
use crate::target::Target;
use std::collections::{HashMap, HashSet};

/// Most operands of operations that this model fuses. IREE passes a few more to a kernel, so
/// operations with more may stay separate.
const MOST_READ: usize = 12;

/// A read of a tensor that another operation computes.
pub(super) struct Use {
    /// The position of the reader in the function.
    pub(super) reader: usize,
    /// The position among the operands; `None` if the body of the reader reads it.
    operand: Option<usize>,
    /// Whether there is a barrier between producer and reader.
    is_apart: bool,
    /// The number of reshapes between producer and reader.
    reshapes: usize,
}

/// The kernels of a lowered function.
pub(crate) struct Grouping {
    /// For each operation, the last operation of its kernel; `None` if no kernel executes it.
    pub(crate) kernels: Vec<Option<usize>>,
    /// The values that kernels store for other kernels, each with its kernel.
    pub(super) stored: Vec<(usize, usize)>,
    pub(super) uses: HashMap<usize, Vec<Use>>,
    /// The values that the function returns.
    pub(super) returned: HashSet<usize>,
}

impl Grouping {
    pub(crate) fn of(context: &Context, operations: &[Operation], target: &Target) -> Self {
        let live = live(operations);
        let (uses, returned) = uses(operations, &live);
        let mut fusion = Fusion::of(context, operations, matches!(target, Target::Rocm { .. }));
        let alike = alike(context, operations, &live);
        let mut kernels: Vec<Option<usize>> = vec![None; operations.len()];
        let mut stored = Vec::new();
        for (position, operation) in operations.iter().enumerate() {
            let makes_none = is_view(operation)
                || matches!(
                    operation.name(),
                    Name::TensorEmpty | Name::ArithConstant | Name::FuncReturn
                );
            if !live[position] || makes_none {
                continue;
            }
            // Either all results of an operation are fused, or none. IREE may compute an output
            // that is also read outside of the caller's buffer, and copy it there. It does the same
            // with an output that is computed twice, and with padding.
            let is_copied = alike.contains(&position) || operation.name() == Name::TensorPad;
            let is_output = |id: &usize| returned.contains(id) && !uses.contains_key(id) && !is_copied;
            let results = operation.results().iter().copied();
            let kept: Vec<usize> = results.filter(|id| !is_output(id)).collect();
            let read: Vec<&Use> = kept.iter().filter_map(|id| uses.get(id)).flatten().collect();
            let is_returned = operation.results().iter().any(|id| returned.contains(id));
            if !is_returned && fusion.fuse(position, &read) {
                let is_fill = operation.name() == Name::LinalgFill;
                kernels[position] = read.first().filter(|_| !is_fill).map(|first| first.reader);
                continue;
            }
            kernels[position] = Some(position);
            stored.extend(kept.into_iter().map(|id| (position, id)));
        }
        // Readers come after producers, so their kernels are known when going backwards.
        for position in (0..kernels.len()).rev() {
            kernels[position] = kernels[position].and_then(|reader| kernels[reader]);
        }
        Grouping {
            kernels,
            stored,
            uses,
            returned,
        }
    }
}

/// Returns the positions of operations that exist twice, of which the compiler keeps one.
/// Operations on integers count as equal if they read the same values: their simplified bodies may
/// be equal.
fn alike(context: &Context, operations: &[Operation], live: &[bool]) -> HashSet<usize> {
    let is_integer = |id: &usize| {
        let tensor = context.value(*id).r#type().if_tensor();
        tensor.is_some_and(|(_, element)| element.is_integer())
    };
    // For each value, the first value that is equal to it.
    let mut same: HashMap<usize, usize> = HashMap::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut alike = HashSet::new();
    for (position, operation) in operations.iter().enumerate() {
        if live.get(position) != Some(&true) {
            continue;
        }
        let operands: Vec<usize> = operation
            .operands()
            .iter()
            .map(|id| same.get(id).copied().unwrap_or(*id))
            .collect();
        let mut values = operation.operands().iter().chain(operation.results());
        let body = if is_elementwise(operation) && values.all(is_integer) {
            Vec::new()
        } else {
            inner(operation)
        };
        let text = format!(
            "{} {operands:?} {:?} {body:?}",
            operation.name(),
            operation.attributes()
        );
        let first = *known.entry(text).or_insert(position);
        if first == position {
            continue;
        }
        alike.extend([first, position]);
        let results = operations.get(first).map_or(&[][..], Operation::results);
        same.extend(operation.results().iter().copied().zip(results.iter().copied()));
    }
    alike
}

/// Returns the names and attributes of all operations inside another.
fn inner(operation: &Operation) -> Vec<String> {
    let bodies = operation.regions().iter().filter_map(Region::body);
    let inside = bodies.flat_map(|(_, operations)| operations);
    inside
        .flat_map(|one| {
            [format!("{} {:?}", one.name(), one.attributes())]
                .into_iter()
                .chain(inner(one))
        })
        .collect()
}

/// The operations that IREE fuses into one kernel, as far as it is known.
struct Fusion<'a> {
    context: &'a Context,
    operations: &'a [Operation],
    /// Whether padding becomes part of the reduction that reads it, as the target's flags decide.
    fuses_padding: bool,
    /// For each operation, the contents of its kernel so far.
    members: Vec<Members>,
}

/// The contents of the kernel that an operation belongs to.
#[derive(Clone, Copy, Default)]
struct Members {
    /// Whether it has a reduction or a product. It never has two of them.
    is_rooted: bool,
    /// The number of operands of its operations.
    read: usize,
}

impl<'a> Fusion<'a> {
    fn of(context: &'a Context, operations: &'a [Operation], fuses_padding: bool) -> Self {
        let members = |operation: &Operation| Members {
            is_rooted: !is_elementwise(operation),
            read: operation.operands().len(),
        };
        Fusion {
            context,
            operations,
            fuses_padding,
            members: operations.iter().map(members).collect(),
        }
    }

    /// Returns true if an operation and the reader of its results become one kernel, and records
    /// that.
    fn fuse(&mut self, position: usize, uses: &[&Use]) -> bool {
        let Some(operation) = self.operations.get(position) else {
            return false;
        };
        if operation.name() == Name::LinalgFill {
            return uses.iter().all(|one| {
                let reader = self.operations.get(one.reader);
                let takes_fills = |reader: &Operation| {
                    reader.name() == Name::LinalgGeneric || reader.name() == Name::IreeLinalgExtOnlineAttention
                };
                one.operand.is_some() && !one.is_apart && reader.is_some_and(takes_fills)
            });
        }
        let Some((first, others)) = uses.split_first() else {
            return false;
        };
        let Some(reader) = self.operations.get(first.reader) else {
            return false;
        };
        if others.iter().any(|other| other.reader != first.reader) || uses.iter().any(|one| one.is_apart) {
            return false;
        }
        let is_attention = |operation: &Operation| operation.name() == Name::IreeLinalgExtOnlineAttention;
        if is_attention(reader) {
            // Only a mask that is computed from positions alone is fused.
            return is_elementwise(operation) && inputs(operation) == 0 && captures(self.context, operation).is_empty();
        }
        if is_attention(operation) {
            return is_elementwise(reader) && captures(self.context, reader).is_empty();
        }
        if uses
            .iter()
            .any(|one| one.operand.is_none_or(|operand| operand >= inputs(reader)))
        {
            return false;
        }
        let reshapes = uses.iter().map(|one| one.reshapes).max().unwrap_or(0);
        if reshapes > 1 {
            return false;
        }
        let is_reshaped = reshapes > 0;
        if matches!(operation.name(), Name::TensorPad | Name::TensorExtractSlice) {
            return self.fuses_padding
                && !is_reshaped
                && reader.name() == Name::LinalgGeneric
                && !is_elementwise(reader);
        }
        let (Some(own), Some(theirs)) = (self.members.get(position), self.members.get(first.reader)) else {
            return false;
        };
        let together = Members {
            is_rooted: own.is_rooted || theirs.is_rooted,
            read: own.read + theirs.read,
        };
        // The result of a reduction or of reads at computed indices, and a reshaped tensor, are
        // fused only if the reader reads them through an identity map.
        let is_placed = own.is_rooted || is_reshaped || !captures(self.context, operation).is_empty();
        let is_scheduled = |operation: &Operation| operation.attribute("compilation_info").is_some();
        let is_possible = operation.name() == Name::LinalgGeneric
            && is_elementwise(reader)
            && !is_scheduled(operation)
            && !is_scheduled(reader)
            && together.read <= MOST_READ
            && !(own.is_rooted && theirs.is_rooted)
            && !self.converts(operation, reader, uses)
            && (!is_reshaped || !own.is_rooted || is_contraction(self.context, operation))
            && captures(self.context, reader).is_empty()
            && uses.iter().all(|one| maps(reader, one, is_placed));
        if is_possible && let Some(members) = self.members.get_mut(first.reader) {
            *members = together;
        }
        is_possible
    }

    /// Returns true if the result of an operation has narrower elements than one of its operands,
    /// or the result of its reader has wider elements than the operand that is read.
    fn converts(&self, operation: &Operation, reader: &Operation, uses: &[&Use]) -> bool {
        let bits = |id: &usize| {
            let tensor = self.context.value(*id).r#type().if_tensor();
            tensor.map_or(0, |(_, element)| bits(element))
        };
        let made = operation.results().iter().map(bits).min().unwrap_or(0);
        let read = operation.operands().iter().map(bits).max().unwrap_or(0);
        let kept = uses.iter().filter_map(|one| reader.operands().get(one.operand?));
        let kept = kept.map(bits).min().unwrap_or(0);
        made < read || reader.results().iter().map(bits).max().unwrap_or(0) > kept
    }
}

/// Returns true if the reader's index map for this operand is a selection of axes; if `in_order`,
/// all of the reader's axes in order.
fn maps(reader: &Operation, one: &Use, in_order: bool) -> bool {
    let map = one.operand.and_then(|operand| reader.maps().get(operand));
    map.is_some_and(|map| {
        if in_order {
            map.is_identity()
        } else {
            map.selected().is_some()
        }
    })
}

/// Returns the tensors that an operation's body reads directly.
fn captures(context: &Context, operation: &Operation) -> Vec<usize> {
    let all = operation.all_operands();
    let inside = all.into_iter().skip(operation.operands().len());
    let defined = defined(operation);
    inside
        .filter(|id| !defined.contains(id) && context.value(*id).r#type().if_tensor().is_some())
        .collect()
}

/// Returns the values that are defined inside an operation.
fn defined(operation: &Operation) -> HashSet<usize> {
    let bodies = operation.regions().iter().filter_map(Region::body);
    bodies
        .flat_map(|(arguments, operations)| {
            let made = operations
                .iter()
                .flat_map(|inner| inner.results().iter().copied().chain(defined(inner)));
            arguments.iter().copied().chain(made).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns, for each operation, whether a result of the function depends on it; the compiler
/// removes the others.
fn live(operations: &[Operation]) -> Vec<bool> {
    let mut read: HashSet<usize> = HashSet::new();
    let mut live = vec![false; operations.len()];
    for (operation, is_live) in operations.iter().zip(&mut live).rev() {
        *is_live = operation.results().is_empty() || operation.results().iter().any(|result| read.contains(result));
        if *is_live {
            read.extend(operation.all_operands());
        }
    }
    live
}

/// Returns the readers of each value that is not a view, and the values that the function returns.
fn uses(operations: &[Operation], live: &[bool]) -> (HashMap<usize, Vec<Use>>, HashSet<usize>) {
    // For each view: its source, whether there is a barrier between the two, and the number of
    // reshapes.
    let mut sources: HashMap<usize, (usize, bool, usize)> = HashMap::new();
    let mut uses: HashMap<usize, Vec<Use>> = HashMap::new();
    let mut returned = HashSet::new();
    for (reader, operation) in operations
        .iter()
        .enumerate()
        .filter(|&(reader, _)| live.get(reader) == Some(&true))
    {
        let source = |id: usize| sources.get(&id).copied().unwrap_or((id, false, 0));
        if is_view(operation) {
            if let (&[operand], &[result]) = (operation.operands(), operation.results()) {
                let (of, is_apart, reshapes) = source(operand);
                let is_barrier = operation.name().is_of("iree_tensor_ext");
                sources.insert(
                    result,
                    (of, is_apart || is_barrier, reshapes + usize::from(!is_barrier)),
                );
            }
            continue;
        }
        if operation.name() == Name::FuncReturn {
            returned.extend(operation.operands().iter().map(|&id| source(id).0));
            continue;
        }
        let direct = operation.operands();
        let captured = operation.all_operands();
        let captured = captured.iter().skip(direct.len()).map(|&id| (None, id));
        let direct = direct.iter().enumerate().map(|(position, &id)| (Some(position), id));
        for (operand, id) in direct.chain(captured) {
            let (of, is_apart, reshapes) = source(id);
            uses.entry(of).or_default().push(Use {
                reader,
                operand,
                is_apart,
                reshapes,
            });
        }
    }
    (uses, returned)
}

/// Returns true if the operation's result is another view of its operand.
pub(super) fn is_view(operation: &Operation) -> bool {
    matches!(
        operation.name(),
        Name::TensorCollapseShape
            | Name::TensorExpandShape
            | Name::TensorCast
            | Name::IreeTensorExtComputeBarrierStart
            | Name::IreeTensorExtComputeBarrierEnd
    )
}

/// Returns the number of operands of a `linalg.generic` that are read and not written; 0 for other
/// operations.
fn inputs(operation: &Operation) -> usize {
    if operation.name() != Name::LinalgGeneric {
        return 0;
    }
    operation.operands().len().saturating_sub(operation.results().len())
}

/// Returns true if the operation sums products of tensors.
pub(super) fn is_contraction(context: &Context, operation: &Operation) -> bool {
    let is_tensor = |id: &&usize| context.value(**id).r#type().if_tensor().is_some();
    let read = operation.operands().iter().take(inputs(operation));
    !is_elementwise(operation) && read.filter(is_tensor).count() > 1
}

/// Returns true for a structured operation without a reduction.
pub(super) fn is_elementwise(operation: &Operation) -> bool {
    operation.structure().is_some_and(|structure| !structure.reduces())
}
