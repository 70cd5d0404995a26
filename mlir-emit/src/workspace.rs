//! An upper bound of the workspace that a lowered graph needs: the temporaries between its kernels.
//!
//! A tensor is in the workspace if one kernel stores it and another reads it. The lowered function
//! shows what rotini's own kernels store. For the rest, this module knows in which cases IREE is
//! sure to make one kernel of two operations:
//!
//! | Operation | Its result |
//! |---|---|
//! | reshapes, barriers | another view of the same memory |
//! | an output that no other operation reads | is stored in the caller's buffer |
//! | an elementwise operation, read by one other | is not stored, except for conversions (below) |
//! | a reduction or a product, read by one elementwise operation | is not stored |
//! | padding and slices, read by one reduction on an AMD GPU | is not stored |
//! | a fill that is the beginning of a reduction, or read elementwise | is not stored |
//! | everything else | is stored in the workspace |
//!
//! On CPUs, operands and results of products are also packed into tiles, together with tensors that
//! are combined elementwise with the results. Operations that exist twice become one, whose result
//! is copied to the second output.
//!
//! IREE often fuses more than that, so the sum of all temporaries is a bound. Another bound is
//! twice the size of the temporaries packed by their lifetimes ([`reuse`]); the smaller one is
//! reported. Operations are not grouped across a conversion: IREE moves a conversion to a wider
//! type into its consumer, and one to a narrower type into its producer, so either side may be
//! stored.

mod grouping;
mod reuse;

pub(crate) use grouping::Grouping;

use crate::mlir::{Context, Name, Operation, Region, Type};
use crate::target::Target;
use grouping::{is_contraction, is_elementwise, is_view};
use reuse::{Temporary, dependencies, packed};
use std::collections::HashSet;

/// IREE aligns each temporary to at most this many bytes.
const ALIGNMENT: u64 = 256;
/// A safety factor on the packed size of temporaries: IREE may pack them less tightly than
/// [`reuse`] does.
const PLACED: u64 = 2;
/// Largest extent of packed tiles on CPUs.
const TILE: u64 = 16;

/// Returns an upper bound of the bytes that the temporaries of a lowered function need; `None` on
/// overflow.
pub(crate) fn bound(context: &Context, operations: &[Operation], target: &Target) -> Option<u64> {
    let products = operations.iter().filter(|operation| is_contraction(context, operation));
    let grouped = match target {
        Target::Cuda { .. } => 1,
        // The forward direction of attention follows the table, its gradients do not.
        Target::Rocm { .. } => 2,
        Target::Cpu | Target::X86(_) => usize::MAX,
    };
    if products.count() > grouped {
        return all_results(context, operations);
    }
    let grouping = Grouping::of(context, operations, target);
    let mut total: u64 = 0;
    for (position, operation) in operations.iter().enumerate() {
        if grouping.kernels[position] == Some(position) {
            total = total.checked_add(nested(context, operation)?)?;
        }
    }
    total = total.checked_add(temporaries(context, operations, &grouping)?)?;
    if target.is_cpu() {
        // The processor decides which extents are packed, and into which tiles: twice as much is
        // enough.
        total = total.checked_add(packed_bytes(context, operations)?)?.checked_mul(2)?;
    }
    Some(total)
}

/// Returns the bytes of the results of all operations. Between products, as in attention, IREE
/// fuses operations for GPUs differently from the table above, by no known rule. On AMD GPUs that
/// was seen for gradients of attention only.
fn all_results(context: &Context, operations: &[Operation]) -> Option<u64> {
    let mut total: u64 = 0;
    for operation in operations {
        total = total.checked_add(nested(context, operation)?)?;
        if !is_view(operation) && operation.name() != Name::TensorEmpty {
            for &result in operation.results() {
                total = total.checked_add(bytes(context, result, 1)?)?;
            }
        }
    }
    Some(total)
}

/// Returns the bytes of the tensors that are stored between kernels.
fn temporaries(context: &Context, operations: &[Operation], grouping: &Grouping) -> Option<u64> {
    let kernels = &grouping.kernels;
    let readers = |id: &usize| {
        let uses = grouping.uses.get(id).into_iter().flatten();
        uses.filter_map(|one| kernels[one.reader])
    };
    let results = operations.iter().zip(kernels);
    let results = results.flat_map(|(operation, kernel)| {
        let ids = operation.results().iter();
        ids.filter_map(move |id| Some(((*kernel)?, id)))
    });
    let reads: Vec<(usize, usize)> = results
        .flat_map(|(maker, id)| readers(id).map(move |reader| (reader, maker)))
        .collect();
    let mut all = Vec::new();
    let mut sum: u64 = 0;
    for &(maker, id) in &grouping.stored {
        let bytes = bytes(context, id, 1)?;
        sum = sum.checked_add(bytes)?;
        let is_returned = grouping.returned.contains(&id);
        all.push(Temporary {
            bytes,
            maker,
            readers: if is_returned {
                Vec::new()
            } else {
                readers(&id).collect()
            },
        });
    }
    let shared = packed(all, &dependencies(operations.len(), &reads));
    let shared = shared.and_then(|bytes| bytes.checked_mul(PLACED));
    Some(shared.map_or(sum, |shared| shared.min(sum)))
}

/// Returns the bytes of the tensors that IREE packs into tiles on CPUs: the operands and results of
/// products, and tensors that are combined with the results.
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

/// Returns the bytes of the temporaries inside a loop; 0 for an operation that is not one.
fn nested(context: &Context, operation: &Operation) -> Option<u64> {
    // Their bodies compute elements, or are a single kernel.
    let is_kernel = ["linalg", "tensor", "iree_linalg_ext", "flow"];
    if is_kernel.iter().any(|dialect| operation.name().is_of(dialect)) {
        return Some(0);
    }
    let bodies = operation.regions().iter().filter_map(Region::body);
    let mut total: u64 = 0;
    for inner in bodies.flat_map(|(_, operations)| operations) {
        if !is_view(inner) && inner.name() != Name::TensorEmpty {
            for &result in inner.results() {
                total = total.checked_add(bytes(context, result, 1)?)?;
            }
        }
        total = total.checked_add(nested(context, inner)?)?;
    }
    Some(total)
}

/// Returns the bytes of a tensor with its last two extents rounded up to multiples of `tile`; 0 for
/// values that are not tensors, `None` on overflow.
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

/// Returns the bits of an element; 64 for an index.
fn bits(element: Type<'_>) -> u32 {
    element.bits().unwrap_or(64)
}
