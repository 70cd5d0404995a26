//! Contractions: sums of products of two tensors' elements. Matmuls, attention and mixtures of
//! experts are lowered to them.

use crate::Unsupported;
use crate::convert::{check_compute, check_not_constant};
use crate::ir::{IndexMap, Input, Loop};
use crate::kernel::{Axis, Factor, Product, Strides, Window};
use crate::lowering::Lowering;
use crate::math::multiply_add;
use crate::mlir::Value as Ssa;
use crate::narrow::multiplied;
use crate::value::{Operand, Ordered, Value, extent, extents};
use rotini_graph::{DataType, NormalGraph, TensorId};
use rotini_schedule::gemm;

/// Rows and columns of a matrix instruction.
const INTRINSIC: i64 = 16;

/// Checks whether matrices can be multiplied.
pub(crate) fn check_product(
    graph: &NormalGraph,
    compute: DataType,
    operands: [TensorId; 2],
) -> Result<(), Unsupported> {
    check_compute(graph, compute, &operands)?;
    check_not_constant(graph, &operands)
}

/// Sums the products of `a` and `b` over the last axis of `a` and the second-to-last of `b`. The
/// result has the extents `out` in the memory order `order`. Batch axes of extent 1 are broadcast.
pub(crate) fn contract<'c>(
    lowering: &Lowering<'_, 'c>,
    a: &Ordered<'c>,
    b: &Ordered<'c>,
    out: &[i64],
    order: &[usize],
    compute: DataType,
) -> Ordered<'c> {
    let at = lowering.emitter();
    let rank = out.len();
    let (Some(row), Some(column)) = (rank.checked_sub(2), rank.checked_sub(1)) else {
        unreachable!("a matrix of low rank");
    };
    let inner = extent(&a.dims, column);
    let types = lowering
        .quirks()
        .factor_types([a.dtype, b.dtype], compute, lowering.target());
    let types = if are_uneven(lowering, types, [extent(out, row), extent(out, column), inner]) {
        [compute; 2]
    } else {
        types
    };
    let of_type = |factor: &Ordered<'c>, dtype: DataType| match factor.dtype {
        own if own == dtype || own.is_integer() => factor.clone(),
        _ => lowering.converted(factor.clone(), dtype),
    };
    let factors = [of_type(a, types[0]), of_type(b, types[1])];
    let [a, b] = &factors;
    if let Some(product) = as_kernel(lowering, [a, b], None, (out, order), compute) {
        return product;
    }
    let [a, b] = lowering.summable(factors, [extent(out, row), extent(out, column)], &[inner], compute);
    let (a, b) = (lowering.summed_last(a, column), lowering.summed_last(b, row));
    // The axes of the iteration: those of the output, then the summed axis.
    let sum = rank;
    let mut loops: Vec<usize> = order.to_vec();
    loops.push(sum);
    let mut kinds = vec![Loop::Parallel; rank];
    kinds.push(Loop::Reduction);
    let input = |operand: &Ordered<'c>, swap: usize| -> Input<'c> {
        // The operand as a tensor over the iteration's axes, with extent 1 along the other
        // operand's matrix axis.
        let mut dims = operand.dims.clone();
        dims.push(inner);
        let mut axes = operand.order.clone();
        for axis in &mut axes {
            if *axis == swap {
                *axis = sum;
            }
        }
        dims[swap] = 1;
        let mut iteration = out.to_vec();
        iteration.push(inner);
        let renamed = Value::of(Ordered::new(operand.ssa, axes, operand.dtype, dims));
        let (ssa, map) = Operand::new(&at, &renamed, &iteration)
            .input(&loops)
            .expect("a constant matrix");
        (multiplied(&at, ssa, operand.dtype), map)
    };
    let inputs = [input(&a, column), input(&b, row)];
    let init = at.zeros(&extents(out, order), compute);
    let map = IndexMap::select(rank + 1, 0..rank);
    let ssa = at.generic(&kinds, &inputs, (init, map), |elements| {
        multiply_add(&at, elements, [a.dtype, b.dtype], compute)
    });
    Ordered::new(ssa, order.to_vec(), compute, out.to_vec())
}

/// Repeats an operand along those of its batch axes whose extent is neither 1 nor the output's,
/// which no index map can express.
pub(crate) fn repeated<'c>(lowering: &Lowering<'_, 'c>, operand: Ordered<'c>, out: &[i64], axes: usize) -> Ordered<'c> {
    let mut dims = operand.dims.clone();
    let mut divisors = vec![1; out.len()];
    for axis in 0..axes {
        let (have, want) = (extent(&operand.dims, axis), extent(out, axis));
        if have != 1 && have != want {
            let divisor = want.checked_div(have).filter(|divisor| *divisor > 0);
            let (Some(slot), Some(dim), Some(divisor)) = (divisors.get_mut(axis), dims.get_mut(axis), divisor) else {
                unreachable!("a batch that does not divide");
            };
            *slot = divisor;
            *dim = want;
        }
    }
    if dims == operand.dims {
        return operand;
    }
    let at = lowering.emitter();
    let source = operand.clone();
    let ssa = at.tabulate(&extents(&dims, &operand.order), operand.dtype, || {
        let mut indices = Vec::new();
        for (position, &axis) in source.order.iter().enumerate() {
            let index = at.loop_index(position);
            let divisor = extent(&divisors, axis);
            indices.push(if divisor == 1 {
                index
            } else {
                index.divui(at.integer(divisor, at.index_type()))
            });
        }
        at.extract(source.ssa, &indices, source.dtype)
    });
    Ordered {
        ssa: at.barrier(ssa),
        dims,
        ..operand
    }
}

/// Computes the [`contract`] of a batch of matrices `a`, each by the matrix of `b` whose number is
/// in the list `chosen`. `None` if rotini has no kernel for it: only its kernels read matrices in
/// place.
pub(crate) fn contract_chosen<'c>(
    lowering: &Lowering<'_, 'c>,
    a: &Ordered<'c>,
    (b, chosen): (&Ordered<'c>, Ssa<'c>),
    out: &[i64],
    compute: DataType,
) -> Option<Ordered<'c>> {
    as_kernel(lowering, [a, b], Some(chosen), (out, &[0, 1, 2]), compute)
}

/// Returns true if matrices of 32-bit and of 16-bit floats are multiplied that are large enough for
/// matrix instructions. Both are then converted to the compute type: no matrix instruction takes
/// both types, and none is used if the compiler has to widen one of them. `extents`: rows, columns,
/// terms.
fn are_uneven(lowering: &Lowering<'_, '_>, types: [DataType; 2], extents: [i64; 3]) -> bool {
    let is_half = |dtype: DataType| matches!(dtype, DataType::F16 | DataType::Bf16);
    let is_mixed = matches!(types, [DataType::F32, other] | [other, DataType::F32] if is_half(other));
    lowering.target().machine().is_some() && is_mixed && extents.iter().all(|&extent| extent >= INTRINSIC)
}

/// Returns true if rotini's kernels for AMD GPUs multiply operands of these types: 16-bit floats,
/// summed in f32.
pub(crate) fn are_halves(types: [DataType; 2], compute: DataType) -> bool {
    matches!(types, [DataType::F16, DataType::F16] | [DataType::Bf16, DataType::Bf16]) && compute == DataType::F32
}

/// Returns the stride along each logical axis; 0 for an axis of extent 1, which is broadcast.
pub(crate) fn strides(tensor: &Ordered<'_>) -> Vec<i64> {
    let mut strides = vec![0; tensor.dims.len()];
    let mut next = 1_i64;
    for &axis in tensor.order.iter().rev() {
        let extent = tensor.dims[axis];
        if extent > 1 {
            strides[axis] = next;
        }
        next = next.saturating_mul(extent);
    }
    strides
}

/// Creates an operand from its first element, its strides along the batch, its own axes and the
/// sum, and the windows outside of which it is zero.
pub(crate) fn factor(
    tensor: &Ordered<'_>,
    first: i64,
    [batch, own, sum]: [Vec<i64>; 3],
    windows: Vec<Window>,
) -> Factor {
    Factor {
        tensor: tensor.ssa.id(),
        elements: tensor.dims.iter().product(),
        dtype: tensor.dtype,
        first,
        strides: Strides {
            batch,
            own,
            other: Vec::new(),
            sum,
        },
        windows,
    }
}

/// Appends the product as a kernel of rotini; `None` if there is no kernel for its types and
/// extents.
fn as_kernel<'c>(
    lowering: &Lowering<'_, 'c>,
    [a, b]: [&Ordered<'c>; 2],
    chosen: Option<Ssa<'c>>,
    (out, order): (&[i64], &[usize]),
    compute: DataType,
) -> Option<Ordered<'c>> {
    let are_codes = a.dtype.is_fnuz() && a.dtype == b.dtype && compute == DataType::F32;
    let is_possible = are_codes || are_halves([a.dtype, b.dtype], compute);
    let machine = lowering.target().machine().filter(|_| is_possible)?;
    let (row, column) = (out.len().saturating_sub(2), out.len().saturating_sub(1));
    let (batch, [rows, columns]) = (&out[..row], [extent(out, row), extent(out, column)]);
    let terms = extent(&a.dims, column);
    let of = |tensor: &Ordered<'c>, own: usize, sum: usize| {
        let strides = strides(tensor);
        let along = [strides[..row].to_vec(), vec![strides[own]], vec![strides[sum]]];
        factor(tensor, 0, along, Vec::new())
    };
    let product = Product {
        batch: batch.to_vec(),
        rows: vec![rows],
        columns: vec![columns],
        sum: vec![terms],
        terms: Vec::new(),
        factors: [of(a, row, column), of(b, column, row)],
        chosen: chosen.map(|chosen| chosen.id()),
        order: order
            .iter()
            .map(|&axis| match axis {
                axis if axis == row => Axis::Row(0),
                axis if axis == column => Axis::Column(0),
                axis => Axis::Batch(axis),
            })
            .collect(),
        compute,
        schedule: gemm::Schedule::default(),
        is_depthwise: false,
        name: format!("matmul_{rows}x{columns}x{terms}_{}", a.dtype),
    };
    let ssa = lowering.kernel(machine, product)?;
    Some(Ordered::new(ssa, order.to_vec(), compute, out.to_vec()))
}
