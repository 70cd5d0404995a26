//! The workspace that a lowered graph needs at most: the temporaries between its kernels.
//!
//! A tensor lies in the workspace where one kernel stores it and another reads it. What this
//! project's own kernels store is known: it is in the lowered function. For the rest, this module
//! says where IREE is sure to make one kernel of two operations:
//!
//! | Operation | Its result |
//! |---|---|
//! | reshapes, barriers | another view of the same memory |
//! | an output that no other operation reads | is stored in the caller's buffer |
//! | elements from elements, read by one operation of that kind | is in no memory, but for conversions (below) |
//! | a reduction or a product, read element by element by one operation | is in no memory |
//! | padding and slices, read by one reduction on an AMD GPU | is in no memory |
//! | a fill that is the beginning of a reduction, or read element by element | is in no memory |
//! | everything else | is stored in the workspace |
//!
//! On CPUs, operands and results of products are also packed into tiles, and with them what is
//! combined with the results. Operations that are there twice become one, whose result is copied to
//! the second output.
//!
//! IREE often fuses more than that. So the sum is a bound, and so is twice what is left where
//! temporaries share memory ([`reuse`]). Conversions stay apart: IREE moves a conversion to a wider
//! type to whoever reads it, and one to a narrower type to whoever makes it.

mod reuse;

use crate::mlir::{Context, Operation, Region, Type};
use crate::target::Target;
use reuse::{Temporary, dependencies, packed};
use std::collections::{HashMap, HashSet};

/// IREE aligns each temporary to at most this many bytes.
const ALIGNMENT: u64 = 256;
/// Operations that read more tensors together may stay apart: IREE passes a few more than these to
/// a kernel.
const MOST_READ: usize = 12;
/// How many times what temporaries take that share memory is a bound: IREE may place them otherwise.
const PLACED: u64 = 2;
/// The extents of packed tiles on CPUs are at most this.
const TILE: u64 = 16;

/// How an operation reads a tensor that another one made.
struct Use {
    /// The reader's position.
    reader: usize,
    /// The position among the operands; `None` if the body of the reader reads it.
    operand: Option<usize>,
    /// Whether there is a barrier between the two.
    is_apart: bool,
    /// How many reshapes are between the two.
    reshapes: usize,
}

/// An upper bound of the bytes that the temporaries of a lowered function take; `None` if they
/// overflow.
pub(crate) fn bound(context: &Context, operations: &[Operation], target: &Target) -> Option<u64> {
    let live = live(operations);
    let (uses, returned) = uses(operations, &live);
    let mut kernels = Kernels::of(context, operations, matches!(target, Target::Rocm { .. }));
    let alike = alike(context, operations, &live);
    let mut total: u64 = 0;
    // For each operation the last one in its kernel, or one that is in the same kernel as that.
    let mut last: Vec<usize> = (0..operations.len()).collect();
    let mut stored_at = Vec::new();
    for (position, operation) in operations.iter().enumerate() {
        let makes_none = is_view(operation) || matches!(operation.name(), "tensor.empty" | "arith.constant");
        if live.get(position) != Some(&true) || makes_none {
            continue;
        }
        // All results of an operation are fused, or none. IREE may make an output that is also read
        // apart from the caller's buffer, and copy it there. So it does with one that is made
        // twice, and with padding.
        let is_copied = alike.contains(&position) || operation.name() == "tensor.pad";
        let is_output = |id: &usize| returned.contains(id) && !uses.contains_key(id) && !is_copied;
        let stored: Vec<usize> = operation
            .results()
            .iter()
            .copied()
            .filter(|id| !is_output(id))
            .collect();
        let read: Vec<&Use> = stored.iter().filter_map(|id| uses.get(id)).flatten().collect();
        let is_returned = operation.results().iter().any(|id| returned.contains(id));
        if !is_returned && kernels.fuse(position, &read) {
            if operation.name() != "linalg.fill"
                && let Some(first) = read.first()
            {
                last[position] = first.reader;
            }
            continue;
        }
        for result in stored {
            stored_at.push((position, result, bytes(context, result, 1)?));
        }
        total = total.checked_add(nested(context, operation)?)?;
    }
    total = total.checked_add(temporaries(operations, (&uses, &returned), last, &stored_at)?)?;
    if target.is_cpu() {
        // Which extents are packed, and into what, depends on the processor: twice as much is
        // enough.
        total = total.checked_add(packed_bytes(context, operations)?)?.checked_mul(2)?;
    }
    Some(total)
}

/// The bytes of the temporaries in `stored`: positions of operations, and their results with bytes.
/// `last`: for each operation one of the same kernel behind it, or itself.
fn temporaries(
    operations: &[Operation],
    (uses, returned): (&HashMap<usize, Vec<Use>>, &HashSet<usize>),
    mut last: Vec<usize>,
    stored: &[(usize, usize, u64)],
) -> Option<u64> {
    let sum = stored
        .iter()
        .try_fold(0_u64, |sum, (.., bytes)| sum.checked_add(*bytes))?;
    for position in (0..last.len()).rev() {
        last[position] = last[last[position]];
    }
    let readers = |id: &usize| uses.get(id).into_iter().flatten().map(|one| last[one.reader]);
    let results = operations.iter().enumerate();
    let results = results.flat_map(|(position, operation)| operation.results().iter().map(move |id| (position, id)));
    let reads = results.flat_map(|(position, id)| readers(id).map(move |reader| (reader, position)));
    let reads: Vec<_> = reads.map(|(reader, position)| (reader, last[position])).collect();
    let all = stored.iter().map(|&(position, id, bytes)| Temporary {
        bytes,
        maker: position,
        readers: if returned.contains(&id) {
            Vec::new()
        } else {
            readers(&id).collect()
        },
    });
    let shared = packed(all.collect(), &dependencies(operations.len(), &reads));
    let shared = shared.and_then(|bytes| bytes.checked_mul(PLACED));
    Some(shared.map_or(sum, |shared| shared.min(sum)))
}

/// The bytes of what IREE packs into tiles on CPUs: the operands and results of products, and what
/// is combined with these.
fn packed_bytes(context: &Context, operations: &[Operation]) -> Option<u64> {
    let mut total: u64 = 0;
    let mut packed: HashSet<usize> = HashSet::new();
    for operation in operations {
        let reads_packed = operation.operands().iter().any(|id| packed.contains(id));
        let is_packed = is_contraction(context, operation) || reads_packed && is_elementwise(operation);
        if is_packed {
            for &operand in operation.operands() {
                total = total.checked_add(bytes(context, operand, TILE)?)?;
            }
        }
        if is_packed || reads_packed && is_view(operation) {
            packed.extend(operation.results());
        }
    }
    Some(total)
}

/// The positions of operations of which there are two: the compiler keeps one of them. Those on
/// integers count as the same if they read the same: simplified, their bodies may be equal.
fn alike(context: &Context, operations: &[Operation], live: &[bool]) -> HashSet<usize> {
    let is_integer = |id: &usize| {
        let tensor = context.value(*id).r#type().if_tensor();
        tensor.is_some_and(|(_, element)| element.is_integer())
    };
    // The first value that is the same as each.
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

/// The names and attributes of all operations inside of another.
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

/// The bytes that the temporaries inside of a loop take, if it is one.
fn nested(context: &Context, operation: &Operation) -> Option<u64> {
    // Bodies on elements, and what is one kernel.
    let is_kernel = ["linalg.", "tensor.", "iree_linalg_ext.", "flow."];
    if is_kernel.iter().any(|dialect| operation.name().starts_with(dialect)) {
        return Some(0);
    }
    let bodies = operation.regions().iter().filter_map(Region::body);
    let mut total: u64 = 0;
    for inner in bodies.flat_map(|(_, operations)| operations) {
        if !is_view(inner) && inner.name() != "tensor.empty" {
            for &result in inner.results() {
                total = total.checked_add(bytes(context, result, 1)?)?;
            }
        }
        total = total.checked_add(nested(context, inner)?)?;
    }
    Some(total)
}

/// Bytes of a tensor whose last two extents are multiples of `tile`, 0 for other values; `None` if
/// they overflow.
fn bytes(context: &Context, value: usize, tile: u64) -> Option<u64> {
    let Some((shape, element)) = context.value(value).r#type().if_tensor() else {
        return Some(0);
    };
    let mut bytes = u64::from(bits(element).div_ceil(8));
    for (axis, &extent) in shape.iter().rev().enumerate() {
        let extent = u64::try_from(extent).ok()?;
        let extent = if axis < 2 {
            extent.checked_next_multiple_of(tile)?
        } else {
            extent
        };
        bytes = bytes.checked_mul(extent)?;
    }
    bytes.checked_next_multiple_of(ALIGNMENT)
}

/// The bits of an element, of which an index has 64.
fn bits(element: Type<'_>) -> u32 {
    element.bits().unwrap_or(64)
}

/// What IREE makes one kernel of, as far as it is known.
struct Kernels<'a> {
    context: &'a Context,
    operations: &'a [Operation],
    /// Whether padding becomes part of the reduction that reads it, as the target's flags have it.
    fuses_padding: bool,
    /// For each operation what is in its kernel so far.
    members: Vec<Members>,
}

/// What is in the kernel that an operation is part of.
#[derive(Clone, Copy, Default)]
struct Members {
    /// Whether a reduction or a product is among them. There is never a second one.
    is_rooted: bool,
    /// How many tensors it reads.
    read: usize,
}

impl<'a> Kernels<'a> {
    fn of(context: &'a Context, operations: &'a [Operation], fuses_padding: bool) -> Self {
        let members = |operation: &Operation| Members {
            is_rooted: !is_elementwise(operation),
            read: operation.operands().len(),
        };
        Kernels {
            context,
            operations,
            fuses_padding,
            members: operations.iter().map(members).collect(),
        }
    }

    /// Whether an operation and what reads its results become one kernel. If so, notes it.
    fn fuse(&mut self, position: usize, uses: &[&Use]) -> bool {
        let Some(operation) = self.operations.get(position) else {
            return false;
        };
        if operation.name() == "linalg.fill" {
            return uses.iter().all(|one| {
                let reader = self.operations.get(one.reader);
                let takes_fills = |reader: &Operation| {
                    reader.name() == "linalg.generic" || reader.name() == "iree_linalg_ext.online_attention"
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
        let is_attention = |operation: &Operation| operation.name() == "iree_linalg_ext.online_attention";
        if is_attention(reader) {
            // A mask of positions alone.
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
        if matches!(operation.name(), "tensor.pad" | "tensor.extract_slice") {
            return self.fuses_padding && !is_reshaped && reader.name() == "linalg.generic" && !is_elementwise(reader);
        }
        let (Some(own), Some(theirs)) = (self.members.get(position), self.members.get(first.reader)) else {
            return false;
        };
        let together = Members {
            is_rooted: own.is_rooted || theirs.is_rooted,
            read: own.read + theirs.read,
        };
        // What is combined, read at places that are computed, or reshaped is read in its order.
        let is_placed = own.is_rooted || is_reshaped || !captures(self.context, operation).is_empty();
        let is_scheduled = |operation: &Operation| operation.attribute("compilation_info").is_some();
        let is_possible = operation.name() == "linalg.generic"
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

    /// Whether an operation makes fewer bits of an operand than that has, or its reader makes more
    /// of what it reads.
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

/// Whether the reader's index map for what it reads is a selection of axes; if `in_order`, all of
/// the reader's axes in their order.
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

/// The tensors that an operation's body reads by itself.
fn captures(context: &Context, operation: &Operation) -> Vec<usize> {
    let all = operation.all_operands();
    let inside = all.into_iter().skip(operation.operands().len());
    let defined = defined(operation);
    inside
        .filter(|id| !defined.contains(id) && context.value(*id).r#type().if_tensor().is_some())
        .collect()
}

/// The values that are defined inside of an operation.
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

/// Which operations lead to a result of the function: the others are left out by the compiler.
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

/// The readers of each value that is no view, and the values that the function returns.
fn uses(operations: &[Operation], live: &[bool]) -> (HashMap<usize, Vec<Use>>, HashSet<usize>) {
    // What each view is of, and what is between the two.
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
                let is_barrier = operation.name().starts_with("iree_tensor_ext.compute_barrier");
                sources.insert(
                    result,
                    (of, is_apart || is_barrier, reshapes + usize::from(!is_barrier)),
                );
            }
            continue;
        }
        if operation.name() == "func.return" {
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

/// Whether the operation's result is another view of its operand.
fn is_view(operation: &Operation) -> bool {
    matches!(
        operation.name(),
        "tensor.collapse_shape"
            | "tensor.expand_shape"
            | "tensor.cast"
            | "iree_tensor_ext.compute_barrier.start"
            | "iree_tensor_ext.compute_barrier.end"
    )
}

/// How many operands of a `linalg.generic` are read and not written; 0 for other operations.
fn inputs(operation: &Operation) -> usize {
    if operation.name() != "linalg.generic" {
        return 0;
    }
    operation.operands().len().saturating_sub(operation.results().len())
}

/// Whether the operation sums products of tensors.
fn is_contraction(context: &Context, operation: &Operation) -> bool {
    let is_tensor = |id: &&usize| context.value(**id).r#type().if_tensor().is_some();
    let read = operation.operands().iter().take(inputs(operation));
    !is_elementwise(operation) && read.filter(is_tensor).count() > 1
}

/// Whether the operation makes elements from elements.
fn is_elementwise(operation: &Operation) -> bool {
    operation.structure().is_some_and(|structure| !structure.reduces())
}
