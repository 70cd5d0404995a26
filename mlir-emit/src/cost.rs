//! Cost estimates of a graph without lowering it: its work, and a limit of its workspace.

use crate::convert::compute_type;
use crate::sums::partial_elements;
use crate::target::Target;
use crate::{EmitError, attention, conv, custom, matmul, moe, resample};
use rotini_graph::{BlockScaleDequantize, BlockScaleQuantize, DataType, NormalGraph, NormalNode, Op, TensorId};
use rotini_schedule::gemm;

/// Copies that a convolution makes of each operand: padded, reordered, split by groups.
const COPIES: u64 = 3;

/// Allowance for the alignment of each buffer inside the workspace, in bytes. It is generous: the
/// compiler aligns to at most 256.
const SLACK: u64 = 4096;

/// Returns roughly how many elementwise operations and multiplications one execution performs.
#[must_use]
pub fn operations(graph: &NormalGraph) -> u64 {
    let mut total: u64 = 0;
    for node in graph.nodes() {
        let mut elements: u64 = 0;
        node.op.for_each_output(&mut |_, id| {
            elements = elements.saturating_add(graph.tensor(id).map_or(0, |tensor| count(&tensor.dims)));
        });
        let extents = |id: TensorId| graph.tensor(id).map_or(&[][..], |tensor| &tensor.dims);
        // Each element of y, or of its gradient, is multiplied with all elements of a filter.
        let convolved =
            |y: TensorId, w: TensorId| count(extents(y)).saturating_mul(count(extents(w).get(1..).unwrap_or_default()));
        let products = match &node.op {
            Op::ConvFprop(op) => convolved(op.y, op.w),
            Op::ConvDgrad(op) => convolved(op.dy, op.w),
            Op::ConvWgrad(op) => convolved(op.dy, op.dw),
            Op::Matmul(op) => {
                let inner = extents(op.a).last().copied().unwrap_or(1);
                elements.saturating_mul(count(&[inner]))
            }
            Op::Reduction(op) => count(extents(op.input)),
            Op::ResampleFwd(op) => elements.saturating_mul(count(&op.window)),
            Op::ResampleBwd(op) => count(extents(op.dy)).saturating_mul(count(&op.window)),
            Op::MoeGroupedMatmul(op) => {
                let inner = extents(op.token).last().copied().unwrap_or(1);
                elements.saturating_mul(count(&[inner]))
            }
            Op::MoeGroupedMatmulBwd(op) => {
                let columns = extents(op.doutput).last().copied().unwrap_or(1);
                count(extents(op.token)).saturating_mul(count(&[columns]))
            }
            Op::Sdpa(op) => {
                let keys = extents(op.k).get(2).copied().unwrap_or(1);
                let queries = count(extents(op.q)).saturating_add(elements);
                queries.saturating_mul(count(&[keys]))
            }
            // The scores and the gradient of the scores, and three products with these.
            Op::SdpaBackward(op) => {
                let keys = extents(op.k).get(2).copied().unwrap_or(1);
                let products = count(extents(op.q))
                    .saturating_mul(3)
                    .saturating_add(count(extents(op.o)).saturating_mul(2));
                products.saturating_mul(count(&[keys]))
            }
            _ => 0,
        };
        total = total.saturating_add(elements).saturating_add(products);
    }
    total
}

/// Returns a generous upper bound, in bytes, of the workspace that the compiled graph will need.
/// The bound also holds for any graph of the same form with shorter extents, and takes
/// microseconds. [`workspace_bound`](crate::workspace_bound) is far closer.
///
/// Counts, in the widest type of the graph, whatever the lowering could make the compiler keep: the
/// value of each tensor and a copy in another memory order, and up to `COPIES` copies of each
/// operand of a convolution. Most of that is fused away or shares memory.
///
/// # Errors
///
/// If the sizes overflow.
pub fn workspace_limit(graph: &NormalGraph, target: &Target) -> Result<u64, EmitError> {
    bound(graph, target).ok_or(EmitError::Internal("a workspace that overflows"))
}

fn bound(graph: &NormalGraph, target: &Target) -> Option<u64> {
    // The body of a custom operation may have wider types than the graph.
    let custom = graph.nodes().iter().any(|node| matches!(node.op, Op::CustomOp(_)));
    let tensors = graph
        .tensors()
        .iter()
        .map(|tensor| tensor.dtype)
        .chain(custom.then_some(DataType::F64));
    let computed = graph.nodes().iter().filter_map(|node| compute_type(node.compute));
    let widest = tensors
        .chain(computed)
        .map(|dtype| u64::from(dtype.bits().div_ceil(8)))
        .max()?;
    let kept = |elements: u64, copies: u64| elements.checked_mul(widest)?.checked_add(SLACK)?.checked_mul(copies);
    let mut total: u64 = 0;
    for tensor in graph.tensors() {
        // Packed elements are also unpacked to bytes, and narrow types converted to wider ones.
        let copies = if tensor.dtype.bits() <= 8 { 4 } else { 2 };
        total = total.checked_add(kept(count(&tensor.dims), copies)?)?;
    }
    for node in graph.nodes() {
        if let Some(elements) = shared(graph, target, node) {
            total = total.checked_add(kept(elements, 1)?)?;
        }
        let strategy = target.conv_strategy();
        let compute = compute_type(node.compute);
        let partial = |terms: i64, results: &[i64]| match compute {
            Some(compute) => partial_elements(target, compute, terms, results),
            None => Some(0),
        };
        let made = match &node.op {
            Op::ConvFprop(op) => conv::elements(graph, op, strategy)?,
            Op::ConvDgrad(op) => conv::dgrad_elements(graph, op, strategy)?,
            Op::ConvWgrad(op) => conv::wgrad_elements(graph, op)?.checked_add(partial(
                terms(&graph.tensor(op.dy)?.dims, 1)?,
                &graph.tensor(op.dw)?.dims,
            )?)?,
            Op::Matmul(op) => matmul::elements(graph, op)?
                .checked_add(partial(*graph.tensor(op.a)?.dims.last()?, &graph.tensor(op.c)?.dims)?)?,
            Op::Sdpa(op) => attention::elements(graph, op)?,
            Op::ResampleFwd(op) => resample::elements(graph, op)?,
            Op::MoeGroupedMatmul(op) => moe::elements(graph, op)?,
            Op::MoeGroupedMatmulBwd(op) => moe::backward_elements(graph, op)?,
            // With incomplete blocks padded; no block is larger than the tensor.
            Op::BlockScaleDequantize(BlockScaleDequantize { y, .. })
            | Op::BlockScaleQuantize(BlockScaleQuantize { y, .. }) => whole_blocks(&graph.tensor(*y)?.dims)?,
            Op::CustomOp(op) => custom::elements(graph, target, op)?,
            Op::SdpaBackward(op) => attention::backward_elements(graph, op)?,
            // Statistics, each smaller than a tensor of the node. If rows are split over lanes,
            // also a copy of the longer part of each row.
            op if target.is_cpu() && !matches!(op, Op::Pointwise(_)) => {
                let mut largest = 0;
                op.for_each_input(&mut |_, id| {
                    largest = largest.max(graph.tensor(id).map_or(0, |tensor| count(&tensor.dims)));
                });
                largest
            }
            _ => continue,
        };
        let copies = match &node.op {
            // Too large to be counted generously, and stored only once; code for CPUs packs it
            // again.
            Op::MoeGroupedMatmul(_) | Op::MoeGroupedMatmulBwd(_) if !target.is_cpu() => 1,
            _ => COPIES,
        };
        total = total.checked_add(kept(made, copies)?)?;
    }
    Some(total)
}

/// Returns the number of elements of the partial sums of an operation whose sums several workgroups
/// may share; `None` if none do. Only kernels whose factors have at most 16 bits and are summed in
/// f32 do so.
fn shared(graph: &NormalGraph, target: &Target, node: &NormalNode) -> Option<u64> {
    let machine = target.machine()?;
    let of = |id: TensorId| Some(count(&graph.tensor(id)?.dims));
    let (sums, factors) = match &node.op {
        Op::ConvFprop(op) => (of(op.y)?, [op.x, op.w]),
        Op::ConvDgrad(op) => (of(op.dx)?, [op.dy, op.w]),
        Op::ConvWgrad(op) => (conv::wgrad_sums(graph, op)?, [op.x, op.dy]),
        Op::Matmul(op) => (of(op.c)?, [op.a, op.b]),
        _ => return None,
    };
    let is_narrow = |id: &TensorId| graph.tensor(*id).is_some_and(|tensor| tensor.dtype.bits() <= 16);
    if compute_type(node.compute) != Some(DataType::F32) || !factors.iter().all(is_narrow) {
        return None;
    }
    Some(gemm::most_shared(machine, sums))
}

/// Returns the product of all extents but one.
fn terms(dims: &[i64], without: usize) -> Option<i64> {
    let others = dims.iter().enumerate().filter(|&(axis, _)| axis != without);
    others
        .map(|(_, extent)| extent)
        .try_fold(1_i64, |product, &extent| product.checked_mul(extent))
}

/// Returns the number of elements with each axis at the largest extent that padding an incomplete
/// block can give it, which is less than twice its own.
fn whole_blocks(dims: &[i64]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |product, &dim| {
        product.checked_mul(u64::try_from(dim).ok()?.checked_mul(2)?)
    })
}

fn count(dims: &[i64]) -> u64 {
    dims.iter().fold(1, |product, &dim| {
        product.saturating_mul(u64::try_from(dim).unwrap_or(0))
    })
}
