//! Factors of contractions: in types that the compiler multiplies right, as tensors that it reads
//! right.

use crate::ir::Emitter;
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::quirks::{Quirk, Quirks};
use crate::target::Target;
use crate::value::{Ordered, extent};
use rotini_graph::DataType;

/// The longest step of a matrix core along the summed loop, that of bytes; those of wider types
/// divide it.
pub(crate) const STEP: i64 = 32;

/// Rows or columns up to which the compiler lets threads sum, not matrix cores.
const FEW: i64 = 4;

impl Quirks {
    /// The type in which elements of a contraction are read: itself, or the narrowest that matrix
    /// cores have and that holds every value. [`Quirk::UnsignedBytes`]: unsigned bytes are i32.
    pub(crate) const fn contracted(self, dtype: DataType) -> DataType {
        match dtype {
            DataType::U8 if self.avoids(Quirk::UnsignedBytes) => DataType::I32,
            DataType::F8E8M0 => DataType::F32,
            _ if dtype.is_code() => DataType::F16,
            _ => dtype,
        }
    }

    /// The types in which both factors of a contraction are read.
    ///
    /// What has eight bits or less is read in the type of the other one if that is a 16-bit float,
    /// which holds all its values, so that matrix cores multiply both. FNUZ codes stay what they
    /// are where the target multiplies them; [`Quirk::MixedFnuz`]: those of two types do not. Other
    /// floats than those of the compute type stay what they are but for [`Quirk::NarrowedFactors`],
    /// f64, and [`Quirk::MixedFactors`], two types, which are converted to it.
    pub(crate) fn factor_types(self, [a, b]: [DataType; 2], compute: DataType, target: &Target) -> [DataType; 2] {
        let may_differ = !self.avoids(Quirk::MixedFnuz);
        let are_fnuz = a.is_fnuz() && b.is_fnuz() && (a == b || may_differ);
        if compute == DataType::F32 && are_fnuz && target.multiplies_fnuz() {
            return [a, b];
        }
        let like = |own: DataType, other: DataType| match self.contracted(other) {
            half @ (DataType::F16 | DataType::Bf16) if own.bits() <= 8 && own != DataType::F8E8M0 => half,
            _ => self.contracted(own),
        };
        let read = [like(a, b), like(b, a)];
        let are_other_floats = read.iter().all(|dtype| dtype.is_float() && *dtype != compute);
        let quirk = match read {
            [DataType::F64, DataType::F64] => Quirk::NarrowedFactors,
            [a, b] if a != b => Quirk::MixedFactors,
            read => return read,
        };
        if are_other_floats && self.avoids(quirk) {
            [compute; 2]
        } else {
            read
        }
    }

    /// The types of factors of which one has a single element. [`Quirk::SingleFnuz`]: FNUZ codes
    /// are widened.
    pub(crate) fn types_beside_single(self, types: [DataType; 2]) -> [DataType; 2] {
        let is_widened = |dtype: DataType| dtype.is_fnuz() && self.avoids(Quirk::SingleFnuz);
        types.map(|dtype| if is_widened(dtype) { DataType::F16 } else { dtype })
    }

    /// Whether products of factors of these types are summed wrongly to a matrix of these rows and
    /// columns over loops of these extents. Where there are few rows or columns, threads sum:
    /// [`Quirk::OddHalves`]: f16, 5 or 7 at a time, as they do of an odd number.
    /// [`Quirk::ThinFnuz`]: FNUZ codes that end within four of them.
    pub(crate) fn sums_thinly(self, types: [DataType; 2], [rows, columns]: [i64; 2], summed: &[i64]) -> bool {
        let is_odd = |extent: i64| extent % 2 != 0 && (extent % 5 == 0 || extent % 7 == 0);
        let mut summed = summed.iter();
        let is_met = if types == [DataType::F16; 2] {
            self.avoids(Quirk::OddHalves) && summed.any(|&extent| is_odd(extent))
        } else {
            let are_fnuz = types.iter().all(|dtype| dtype.is_fnuz());
            are_fnuz && self.avoids(Quirk::ThinFnuz) && summed.any(|extent| extent % 4 != 0)
        };
        rows.min(columns) <= FEW && is_met
    }

    /// Whether a mask over the last step of a matrix core along loops of these extents is lost.
    /// [`Quirk::MaskedBatches`]: for several matrices, if these loops are not the innermost.
    pub(crate) fn loses_masks(self, is_batch: bool, summed: impl IntoIterator<Item = i64>) -> bool {
        is_batch && self.avoids(Quirk::MaskedBatches) && summed.into_iter().any(|extent| extent % STEP != 0)
    }
}

impl<'c> Emitter<'c> {
    /// Returns a factor that is computed, for a contraction. [`Quirk::UnsettledFactors`]: in a
    /// dispatch of its own.
    pub(crate) fn computed_factor(&self, factor: Ssa<'c>) -> Ssa<'c> {
        self.barrier_against(Quirk::UnsettledFactors, factor)
    }

    /// Returns the copy of a tensor in another order. [`Quirk::FoldedTranspose`]: the compiler
    /// would fold its transpose into a convolution.
    pub(crate) fn transposed_copy(&self, copy: Ssa<'c>) -> Ssa<'c> {
        self.barrier_against(Quirk::FoldedTranspose, copy)
    }
}

impl<'c> Lowering<'_, 'c> {
    /// Both factors of a contraction to a matrix of these rows and columns over loops of these
    /// `summed` extents, in types in which the compiler can sum them.
    pub(crate) fn summable(
        &self,
        factors: [Ordered<'c>; 2],
        matrix: [i64; 2],
        summed: &[i64],
        compute: DataType,
    ) -> [Ordered<'c>; 2] {
        let types = [factors[0].dtype, factors[1].dtype];
        if compute == DataType::F16 || !self.quirks().sums_thinly(types, matrix, summed) {
            return factors;
        }
        factors.map(|factor| self.converted(factor, compute))
    }

    /// An operand of several matrices, with the summed axis last if masks would be lost.
    pub(crate) fn summed_last(&self, operand: Ordered<'c>, summed: usize) -> Ordered<'c> {
        let is_batch = operand.dims.iter().rev().skip(2).any(|&dim| dim > 1);
        if !self.quirks().loses_masks(is_batch, [extent(&operand.dims, summed)]) {
            return operand;
        }
        let mut order: Vec<usize> = operand.order.iter().copied().filter(|&axis| axis != summed).collect();
        order.push(summed);
        operand.in_order(&self.emitter(), &order)
    }
}
