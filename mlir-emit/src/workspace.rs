//! The workspace that a lowered graph needs at most: the temporaries between its kernels.
//!
//! A tensor lies in the workspace where one kernel stores it and another reads it. What this project's own kernels store is known: it is
//! in the lowered function. For the rest, this module says where IREE is sure to make one kernel of two operations:
//!
//! | Operation | Its result |
//! |---|---|
//! | reshapes, barriers | another view of the same memory |
//! | an output that no other operation reads | is stored in the caller's buffer |
//! | elements from elements, read by one operation of that kind | is in no memory, but for conversions (below) |
//! | a reduction or a product, read element by element by one operation | is in no memory |
//! | padding and slices, read by one reduction | is in no memory |
//! | a fill that is the beginning of a reduction, or read element by element | is in no memory |
//! | everything else | is stored in the workspace |
//!
//! IREE often fuses more than that, and lets temporaries share memory if they are not needed at the same time. So the sum is a bound.
//! Conversions stay apart: IREE moves a conversion to a wider type to whoever reads it, and one to a narrower type to whoever makes it.

use crate::mlir::{Context, Operation};
use std::collections::{HashMap, HashSet};

/// IREE aligns each temporary to at most this many bytes.
const ALIGNMENT: u64 = 256;
/// IREE fuses operations that read more tensors together than it passes to a kernel, which are a few more than these, less eagerly.
const MOST_READ: usize = 12;

/// How an operation reads a tensor that another one made.
struct Use {
    /// The reader's position.
    reader: usize,
    /// The position among the operands; `None` if the body of the reader reads it.
    operand: Option<usize>,
    /// Whether there is a barrier between the two.
    is_apart: bool,
    /// Whether there is a reshape between the two.
    is_reshaped: bool,
}

/// An upper bound of the bytes that the temporaries of a lowered function take; `None` if they overflow.
pub(crate) fn bound(context: &Context, operations: &[Operation]) -> Option<u64> {
    let live = live(operations);
    let (uses, returned) = uses(operations, &live);
    let mut kernels = Kernels::of(context, operations);
    let mut total: u64 = 0;
    for (position, operation) in operations.iter().enumerate() {
        let makes_none = is_view(operation) || matches!(operation.name(), "tensor.empty" | "arith.constant");
        if live.get(position) != Some(&true) || makes_none {
            continue;
        }
        // All results of an operation are fused, or none. IREE may make an output that is also read apart from the caller's buffer, and
        // copy it there.
        let is_output = |id: &usize| returned.contains(id) && !uses.contains_key(id);
        let stored: Vec<usize> = operation.results().iter().copied().filter(|id| !is_output(id)).collect();
        let read: Vec<&Use> = stored.iter().filter_map(|id| uses.get(id)).flatten().collect();
        let is_returned = operation.results().iter().any(|id| returned.contains(id));
        if !is_returned && kernels.fuse(position, &read) {
            continue;
        }
        for result in stored {
            let Some((count, bits)) = tensor(context, result) else {
                continue;
            };
            // What has less than a byte is stored in one.
            let bytes = count?.checked_mul(bits.div_ceil(8))?;
            total = total.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?)?;
        }
    }
    Some(total)
}

/// The number of a tensor's elements, `None` if it overflows, and the bits of each; nothing for other values.
fn tensor(context: &Context, value: usize) -> Option<(Option<u64>, u64)> {
    let (shape, element) = context.value(value).r#type().as_tensor().ok()?;
    let count = shape
        .iter()
        .try_fold(1_u64, |count, &extent| count.checked_mul(u64::try_from(extent).ok()?));
    // An index has 64.
    Some((count, u64::from(element.bits().unwrap_or(64))))
}

/// What IREE makes one kernel of, as far as it is known.
struct Kernels<'a> {
    context: &'a Context,
    operations: &'a [Operation],
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
    fn of(context: &'a Context, operations: &'a [Operation]) -> Self {
        let members = |operation: &Operation| Members {
            is_rooted: !is_elementwise(operation),
            read: operation.operands().len(),
        };
        Kernels {
            context,
            operations,
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
        if uses.iter().any(|one| one.operand.is_none_or(|operand| operand >= inputs(reader))) {
            return false;
        }
        let is_reshaped = uses.iter().any(|one| one.is_reshaped);
        if matches!(operation.name(), "tensor.pad" | "tensor.extract_slice") {
            return !is_reshaped && reader.name() == "linalg.generic" && !is_elementwise(reader);
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
            && captures(self.context, reader).is_empty()
            && uses.iter().all(|one| maps(reader, one, is_placed));
        if is_possible && let Some(members) = self.members.get_mut(first.reader) {
            *members = together;
        }
        is_possible
    }

    /// Whether an operation makes fewer bits of an operand than that has, or its reader makes more of what it reads.
    fn converts(&self, operation: &Operation, reader: &Operation, uses: &[&Use]) -> bool {
        let bits = |id: &usize| tensor(self.context, *id).map_or(0, |(_, bits)| bits);
        let made = operation.results().iter().map(bits).min().unwrap_or(0);
        let read = operation.operands().iter().map(bits).max().unwrap_or(0);
        let kept = uses.iter().filter_map(|one| reader.operands().get(one.operand?));
        let kept = kept.map(bits).min().unwrap_or(0);
        made < read || reader.results().iter().map(bits).max().unwrap_or(0) > kept
    }
}

/// Whether the reader's index map for what it reads is a selection of axes; in the order of its own axes and all of them if `in_order`.
fn maps(reader: &Operation, one: &Use, in_order: bool) -> bool {
    let maps = reader.attribute("indexing_maps").unwrap_or_default();
    let mut maps = maps.split("affine_map<").skip(1).filter_map(|map| map.split_once(" -> ("));
    let Some((from, to)) = one.operand.and_then(|operand| maps.nth(operand)) else {
        return false;
    };
    let to = to.split(')').next().unwrap_or_default();
    let is_axis = |text: &str| text.strip_prefix('d').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    if in_order {
        from.trim_start_matches('(').trim_end_matches(')') == to
    } else {
        to.is_empty() || to.split(", ").all(is_axis)
    }
}

/// The tensors that an operation's body reads by itself.
fn captures(context: &Context, operation: &Operation) -> Vec<usize> {
    let all = operation.all_operands();
    let inside = all.into_iter().skip(operation.operands().len());
    let defined = defined(operation);
    inside.filter(|id| !defined.contains(id) && tensor(context, *id).is_some()).collect()
}

/// The values that are defined inside of an operation.
fn defined(operation: &Operation) -> HashSet<usize> {
    let bodies = operation.regions().iter().filter_map(crate::mlir::Region::body);
    bodies
        .flat_map(|(arguments, operations)| {
            let made = operations.iter().flat_map(|inner| inner.results().iter().copied().chain(defined(inner)));
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
    let mut sources: HashMap<usize, (usize, bool, bool)> = HashMap::new();
    let mut uses: HashMap<usize, Vec<Use>> = HashMap::new();
    let mut returned = HashSet::new();
    for (reader, operation) in operations.iter().enumerate().filter(|&(reader, _)| live.get(reader) == Some(&true)) {
        let source = |id: usize| sources.get(&id).copied().unwrap_or((id, false, false));
        if is_view(operation) {
            if let (&[operand], &[result]) = (operation.operands(), operation.results()) {
                let (of, is_apart, is_reshaped) = source(operand);
                let is_barrier = operation.name().starts_with("iree_tensor_ext.compute_barrier");
                sources.insert(result, (of, is_apart || is_barrier, is_reshaped || !is_barrier));
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
            let (of, is_apart, is_reshaped) = source(id);
            uses.entry(of).or_default().push(Use {
                reader,
                operand,
                is_apart,
                is_reshaped,
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

/// Whether the operation makes elements from elements.
fn is_elementwise(operation: &Operation) -> bool {
    let iterators = operation.attribute("iterator_types");
    operation.name() == "linalg.generic" && iterators.is_some_and(|iterators| !iterators.contains("reduction"))
}
