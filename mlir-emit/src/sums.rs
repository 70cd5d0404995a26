//! The accumulation types of long sums.
//!
//! The compiler adds the terms of a sum one by one. In f32, such a sum accumulates as many rounding
//! errors as it has terms: a sum of ones stops at 2^24. On CPUs, a sum in f32 is accumulated in
//! f64, which costs nothing where memory is the bottleneck. On AMD GPUs, rotini's kernels spread
//! the terms over many lanes. On NVIDIA GPUs, IREE does so only if the number of terms is a
//! multiple of the subgroup size; other sums of more than 8192 terms are accumulated in f64 too. A
//! product of matrices is summed in blocks, and the sums of many blocks in f64.

use crate::convert::convert;
use crate::counts::exactly;
use crate::ir::{Emitter, IndexMap, Loop, only};
use crate::mlir::Value as Ssa;
use crate::step::Combiner;
use crate::target::Target;
use crate::value::{Ordered, extent as extent_of};
use rotini_graph::DataType;

/// Most terms of a sum that stays in the compute type: its error is small.
const SHORT: i64 = 16;
/// Most terms of a sum that stays in the compute type on NVIDIA GPUs. Longer sums do so too if
/// their number of terms is a multiple of [`LANES`].
const SHORT_ON_CUDA: i64 = 8192;
/// Lanes of a subgroup of NVIDIA GPUs.
const LANES: i64 = 32;
/// Most terms of a product of matrices that is summed at once: matrix products are fast only in
/// f32.
pub(crate) const LONG: i64 = 512;
/// Terms of a block, preferably.
const BLOCK: std::ops::RangeInclusive<i64> = 64..=512;
/// Most terms of a block, if blocks of [`BLOCK`] terms would be too many.
const LARGE: i64 = 4096;
/// Most blocks whose sums are added pair by pair.
const PAIRED: i64 = 8;
/// Most elements that are stored for all blocks together (128 MiB in f32).
const MOST_PARTIAL: i64 = 1 << 25;

/// Returns the accumulation type of terms of the compute type.
pub(crate) fn accumulator(target: &Target, combiner: Combiner, compute: DataType, terms: i64) -> DataType {
    let adds_up = matches!(combiner, Combiner::Sum | Combiner::Product);
    let is_long = match target {
        Target::Cuda { .. } => terms > SHORT_ON_CUDA && terms % LANES != 0,
        Target::Rocm { .. } => false,
        Target::Cpu | Target::X86(_) => terms > SHORT,
    };
    if compute == DataType::F32 && adds_up && is_long {
        DataType::F64
    } else {
        compute
    }
}

/// The strategy for summing products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summation {
    /// In the compute type.
    AtOnce,
    /// In blocks of this many terms, whose sums are added afterwards.
    Blocks(i64),
    /// In f64, since no block size divides the number of terms.
    Wide,
}

impl Summation {
    /// Returns the strategy for `terms` products for each result, where `results` are the extents
    /// of the results.
    pub(crate) fn of(target: &Target, compute: DataType, terms: i64, results: &[i64]) -> Self {
        if !target.is_cpu() || compute != DataType::F32 || terms <= LONG {
            return Summation::AtOnce;
        }
        let Some(block) = BLOCK.rev().find(|block| terms % block == 0) else {
            return Summation::Wide;
        };
        let is_little = |block: i64| {
            let partial = results
                .iter()
                .try_fold(terms / block, |product, &extent| product.checked_mul(extent));
            partial.is_some_and(|partial| partial <= MOST_PARTIAL)
        };
        std::iter::once(block)
            .chain(LONG + 1..=LARGE)
            .find(|&block| terms % block == 0 && block < terms && is_little(block))
            .map_or(Summation::AtOnce, Summation::Blocks)
    }
}

/// Returns the number of elements of the compute type that sums of `terms` products store
/// temporarily for these results: the sums of blocks, or results and operands in f64. `None` on
/// overflow.
pub(crate) fn partial_elements(target: &Target, compute: DataType, terms: i64, results: &[i64]) -> Option<u64> {
    let blocks = match Summation::of(target, compute, terms, results) {
        Summation::AtOnce => return Some(0),
        Summation::Blocks(block) => terms.checked_div(block)?.checked_add(2)?,
        Summation::Wide => 2,
    };
    let elements = results
        .iter()
        .try_fold(blocks, |product, &extent| product.checked_mul(extent));
    u64::try_from(elements?).ok()
}

/// Converts a row-major tensor to another type.
pub(crate) fn in_type<'c>(at: &Emitter<'c>, ssa: Ssa<'c>, extents: &[i64], from: DataType, to: DataType) -> Ssa<'c> {
    if from == to {
        return ssa;
    }
    let input = (ssa, IndexMap::identity(extents.len()));
    at.elementwise(extents, to, &[input], |elements| convert(at, elements[0], from, to))
}

/// Adds the sums of `count` blocks along the first axis. Returns a tensor with the remaining
/// extents. The sums of few blocks are added pair by pair, in the same kernel as their consumers;
/// more sums are added in f64 and rounded once.
pub(crate) fn blocks<'c>(
    at: &Emitter<'c>,
    (ssa, count): (Ssa<'c>, i64),
    results: &[i64],
    compute: DataType,
) -> Ssa<'c> {
    let rank = results.len();
    if count <= PAIRED {
        let sizes = [&[1], results].concat();
        let groups: Vec<Vec<usize>> = (0..rank)
            .map(|axis| if axis == 0 { vec![0, 1] } else { vec![axis + 1] })
            .collect();
        let ssa = at.barrier(ssa);
        let inputs = (0..count)
            .map(|block| {
                let offsets = [&[block], vec![0; rank].as_slice()].concat();
                let slice = at.slice(ssa, &offsets, &sizes, compute);
                let slice = at.collapse(slice, &groups, results);
                (slice, IndexMap::identity(rank))
            })
            .collect::<Vec<_>>();
        return at.elementwise(results, compute, &inputs, |elements| {
            let mut sums = elements[..inputs.len()].to_vec();
            while sums.len() > 1 {
                sums = sums
                    .chunks(2)
                    .map(|pair| match *pair {
                        [a, b] => a + b,
                        _ => only(pair),
                    })
                    .collect();
            }
            only(&sums)
        });
    }
    let mut loops = vec![Loop::Parallel; rank];
    loops.push(Loop::Reduction);
    let read = IndexMap::select(rank + 1, [rank].into_iter().chain(0..rank));
    let sum = at.generic(
        &loops,
        &[(at.barrier(ssa), read)],
        (at.zeros(results, DataType::F64), IndexMap::select(rank + 1, 0..rank)),
        |elements| {
            let [element, sum] = exactly(elements);
            sum + convert(at, element, compute, DataType::F64)
        },
    );
    in_type(at, sum, results, DataType::F64, compute)
}

/// Splits an axis of a matrix into blocks: the axis of the blocks becomes the first one, and the
/// axis of the elements of a block replaces the old one.
pub(crate) fn in_blocks<'c>(at: &Emitter<'c>, matrix: &Ordered<'c>, axis: usize, block: i64) -> Ordered<'c> {
    let (mut groups, mut physical, mut order) = (Vec::new(), Vec::new(), Vec::new());
    let mut dims = matrix.dims.clone();
    let extent = dims.get_mut(axis).expect("a matrix without that axis");
    let count = extent.checked_div(block).expect("a block without terms");
    *extent = block;
    for &own in &matrix.order {
        let next = physical.len();
        if own == axis {
            groups.push(vec![next, next + 1]);
            physical.extend([count, block]);
            order.extend([0, own + 1]);
        } else {
            groups.push(vec![next]);
            physical.push(extent_of(&dims, own));
            order.push(own + 1);
        }
    }
    dims.insert(0, count);
    Ordered::new(at.expand(matrix.ssa, &groups, &physical), order, matrix.dtype, dims)
}

#[cfg(test)]
mod tests {
    use super::{Summation, accumulator, partial_elements};
    use crate::step::Combiner;
    use crate::target::Target;
    use rotini_graph::DataType::{F32, F64};

    #[test]
    fn long_sums_are_wide_where_lanes_do_not_share_them() {
        let of = |target: &str, terms| {
            let target = Target::parse(target).unwrap();
            [Combiner::Sum, Combiner::Greatest].map(|combiner| accumulator(&target, combiner, F32, terms))
        };
        assert_eq!(of("cpu", 16), [F32, F32]);
        assert_eq!(of("cpu", 17), [F64, F32]);
        assert_eq!(of("gfx942", 50_257), [F32, F32]);
        assert_eq!(of("sm_80", 8191), [F32, F32]);
        assert_eq!(of("sm_80", 41_000), [F64, F32]);
        assert_eq!(of("sm_80", 40_000), [F32, F32]);
    }

    /// A matmul of [1234, 737] and [737, 1234] needs workspace for eleven sums of blocks besides
    /// its operands.
    #[test]
    fn sums_of_blocks_count() {
        let results = [1234, 1234];
        assert_eq!(Summation::of(&Target::Cpu, F32, 737, &results), Summation::Blocks(67));
        let elements = partial_elements(&Target::Cpu, F32, 737, &results).unwrap();
        assert!(elements >= 11 * 1234 * 1234, "{elements}");
        assert_eq!(partial_elements(&Target::Cpu, F32, 16, &results), Some(0));
    }

    /// With many results, blocks are larger, or there are none.
    #[test]
    fn blocks_keep_few_elements() {
        let of = |terms, results: [i64; 2]| Summation::of(&Target::Cpu, F32, terms, &results);
        assert_eq!(of(4096, [2048, 2048]), Summation::Blocks(512));
        assert_eq!(of(4096, [2048, 4096]), Summation::Blocks(1024));
        assert_eq!(of(4096, [2048, 14336]), Summation::AtOnce);
        assert_eq!(of(737, [2469, 2469]), Summation::AtOnce);
    }
}
