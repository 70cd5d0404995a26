//! Matrix multiplication: one structured contraction, for any memory order of the operands.

use crate::Unsupported;
use crate::contract::{check_product, contract, repeated};
use crate::convert::checked_compute_type;
use crate::counts::product;
use crate::kernel::{CpuKernel, CpuMatmul, Right};
use crate::lowering::Lowering;
use crate::sums::{LONG, Summation, blocks, in_blocks, in_type};
use crate::value::{Ordered, extent, extents};
use rotini_graph::{DataType, Matmul, NormalGraph};

/// Checks whether the matmul can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &Matmul) -> Result<(), Unsupported> {
    check_product(graph, compute, [op.a, op.b])
}

/// Lowers the matmul.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &Matmul) {
    let compute = checked_compute_type(compute);
    let out = lowering.tensor(op.c).dims.clone();
    let [a, b] = lowering.factors([op.a, op.b], compute);
    let row = out.len().saturating_sub(2);
    let (a, b) = (ranked(lowering, a, out.len()), ranked(lowering, b, out.len()));
    let (a, b) = (repeated(lowering, a, &out, row), repeated(lowering, b, &out, row));
    let order = lowering.stored_order(op.c).unwrap_or_else(|| (0..out.len()).collect());
    let product = long_contract(lowering, &a, &b, &out, &order, compute);
    lowering.define_sums(op.c, product, compute)
}

/// Returns the matrices with as many axes as the result has. Missing batch axes become leading axes
/// of extent 1.
fn ranked<'c>(lowering: &Lowering<'_, 'c>, matrices: Ordered<'c>, rank: usize) -> Ordered<'c> {
    let missing = rank.saturating_sub(matrices.dims.len());
    if missing == 0 {
        return matrices;
    }
    let dims = [&vec![1; missing], matrices.dims.as_slice()].concat();
    let order: Vec<usize> = (0..missing)
        .chain(matrices.order.iter().map(|axis| axis + missing))
        .collect();
    let first = std::iter::once((0..=missing).collect());
    let reassociation: Vec<Vec<usize>> = first.chain((missing + 1..rank).map(|axis| vec![axis])).collect();
    let shape = extents(&dims, &order);
    let ssa = lowering.emitter().expand(matrices.ssa, &reassociation, &shape);
    Ordered::new(ssa, order, matrices.dtype, dims)
}

/// Computes a [`contract`], in blocks or in f64 if a single sum would accumulate too much error.
fn long_contract<'c>(
    lowering: &Lowering<'_, 'c>,
    a: &Ordered<'c>,
    b: &Ordered<'c>,
    out: &[i64],
    order: &[usize],
    compute: DataType,
) -> Ordered<'c> {
    let (Some(row), Some(column)) = (out.len().checked_sub(2), out.len().checked_sub(1)) else {
        unreachable!("a matrix of low rank");
    };
    let at = lowering.emitter();
    let results = extents(out, order);
    if let Some(product) = cpu_matmul(lowering, a, b, (out, order), compute) {
        return product;
    }
    match Summation::of(lowering.target(), compute, extent(&a.dims, column), out) {
        Summation::AtOnce => contract(lowering, a, b, out, order, compute),
        Summation::Blocks(block) => {
            let (a, b) = (in_blocks(&at, a, column, block), in_blocks(&at, b, row, block));
            let dims = [&[extent(&a.dims, 0)], out].concat();
            let shifted: Vec<usize> = [0].into_iter().chain(order.iter().map(|axis| axis + 1)).collect();
            let partial = contract(lowering, &a, &b, &dims, &shifted, compute);
            Ordered::new(
                blocks(&at, (partial.ssa, extent(&a.dims, 0)), &results, compute),
                order.to_vec(),
                compute,
                out.to_vec(),
            )
        }
        Summation::Wide => {
            let wide = contract(lowering, a, b, out, order, DataType::F64);
            Ordered {
                ssa: in_type(&at, wide.ssa, &results, DataType::F64, compute),
                dtype: compute,
                ..wide
            }
        }
    }
}

/// Computes a single product on a CPU by a kernel that reads both matrices in place; `None` if
/// there is no such kernel, or packed tiles are faster.
///
/// Measured on one core (f32, AMD Zen 4), packed tiles against that kernel, as rows × terms ×
/// columns: 128×768×3072 takes 8.0 and 6.7 ms, 128×3072×768 8.7 and 6.4 ms; 1024 rows take 53 and
/// 50 ms; 1×4096×4096 takes 3.9 and 2.8 ms, 512×512×512 2.5 and 2.9 ms. With few rows, or with many
/// rows and one column, packing takes longer than the products.
fn cpu_matmul<'c>(
    lowering: &Lowering<'_, 'c>,
    a: &Ordered<'c>,
    b: &Ordered<'c>,
    (out, order): (&[i64], &[usize]),
    compute: DataType,
) -> Option<Ordered<'c>> {
    const FEW: i64 = 64;
    let [batch @ .., rows, columns] = out else {
        unreachable!("a matrix of low rank");
    };
    let in_rows: Vec<usize> = (0..out.len()).collect();
    let transposed: Vec<usize> = [&in_rows[..batch.len()], &[batch.len() + 1, batch.len()]].concat();
    let terms = extent(&a.dims, batch.len() + 1);
    let is_column = *columns == 1 && *rows > FEW;
    let right = if b.lies_in(&in_rows) && !is_column {
        Right::Columns
    } else {
        Right::Terms
    };
    let product = CpuMatmul {
        rows: *rows,
        columns: *columns,
        terms,
        right,
    };
    let is_f32 = [a.dtype, b.dtype, compute] == [DataType::F32; 3];
    let is_one = batch.iter().all(|&extent| extent == 1);
    let is_narrow = *rows <= FEW || is_column;
    let lie_so = a.lies_in(&in_rows) && order == in_rows && (right == Right::Columns || b.lies_in(&transposed));
    if !is_f32 || !is_one || !lie_so || !lowering.has_cpu_matmul(&product) {
        return None;
    }
    let is_faster = right == Right::Columns || terms > LONG || is_narrow;
    if !lowering.chooser().takes_kernel("product", is_faster) {
        return None;
    }
    let ssa = lowering.cpu_kernel(&CpuKernel::Matmul(product), &[a.ssa, b.ssa], out);
    Some(Ordered::new(ssa, in_rows, compute, out.to_vec()))
}

/// Returns true if packing both operands into tiles pays off on a CPU: with more than about 64 rows
/// and columns, as seen on Zen 4.
pub(crate) fn is_worth_packing(graph: &NormalGraph, op: &Matmul) -> bool {
    const NARROW: i64 = 64;
    let extents = graph.tensor(op.c).and_then(|tensor| tensor.dims.last_chunk::<2>());
    extents.is_some_and(|[rows, columns]| *rows.min(columns) > NARROW)
}

/// Returns the number of elements of intermediate tensors: each operand repeated for the whole
/// batch, and the product.
pub(crate) fn elements(graph: &NormalGraph, op: &Matmul) -> Option<u64> {
    let (a, c) = (graph.tensor(op.a)?, graph.tensor(op.c)?);
    let [batch @ .., rows, columns] = c.dims.as_slice() else {
        return None;
    };
    let inner = a.dims.last()?;
    let batch = product(batch)?;
    [[rows, inner], [inner, columns], [rows, columns]]
        .into_iter()
        .try_fold(0_u64, |sum, [&a, &b]| {
            sum.checked_add(product(&[a, b])?.checked_mul(batch)?)
        })
}
