//! Operands of contractions: in types that the compiler multiplies right, as tensors that it reads
//! right.

use crate::ir::Emitter;
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::quirks::{Quirk, Quirks};
use crate::target::Target;
use crate::value::{Ordered, extent};
use rotini_graph::DataType;

/// The most terms along the summed loop that one matrix instruction takes: that of bytes. The
/// numbers of wider types divide it.
pub(crate) const STEP: i64 = 32;

/// Most rows or columns for which the compiler lets threads sum, instead of matrix cores.
const FEW: i64 = 4;

impl Quirks {
    /// Returns the type in which a contraction reads elements of a type: the type itself, or for
    /// codes the narrowest type that matrix cores have and that holds every value.
    /// [`Quirk::UnsignedBytes`]: unsigned bytes are read as i32.
    pub(crate) const fn contracted(self, dtype: DataType) -> DataType {
        match dtype {
            DataType::U8 if self.avoids(Quirk::UnsignedBytes) => DataType::I32,
            DataType::F8E8M0 => DataType::F32,
            _ if dtype.is_code() => DataType::F16,
            _ => dtype,
        }
    }

    /// Returns the types in which a contraction reads its two factors.
    ///
    /// A factor of eight bits or less is read in the type of the other factor if that is a 16-bit
    /// float, which holds all its values, so that matrix cores can multiply both. Two FNUZ codes
    /// stay unchanged if the target multiplies them; [`Quirk::MixedFnuz`]: only if they have one
    /// type. Floats of another type than the compute type stay unchanged too, except for f64
    /// ([`Quirk::NarrowedFactors`]) and for two different types ([`Quirk::MixedFactors`]), which
    /// are converted to the compute type.
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

    /// Returns the types of two factors of which one has a single element. [`Quirk::SingleFnuz`]:
    /// FNUZ codes are widened to f16.
    pub(crate) fn types_beside_single(self, types: [DataType; 2]) -> [DataType; 2] {
        let is_widened = |dtype: DataType| dtype.is_fnuz() && self.avoids(Quirk::SingleFnuz);
        types.map(|dtype| if is_widened(dtype) { DataType::F16 } else { dtype })
    }

    /// Returns true if products of factors of these types are summed wrongly to a matrix of `rows`
    /// by `columns`, over loops of the extents `summed`. That happens only with few rows or
    /// columns, whose terms are summed by threads. [`Quirk::OddHalves`]: f16, if an extent is odd
    /// and threads take 5 or 7 terms at a time. [`Quirk::ThinFnuz`]: FNUZ codes, if an extent is no
    /// multiple of four.
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

    /// Returns true if the mask over a matrix instruction's last step along loops of these extents
    /// is lost. [`Quirk::MaskedBatches`]: for several matrices, if these loops are not the
    /// innermost.
    pub(crate) fn loses_masks(self, is_batch: bool, summed: impl IntoIterator<Item = i64>) -> bool {
        is_batch && self.avoids(Quirk::MaskedBatches) && summed.into_iter().any(|extent| extent % STEP != 0)
    }
}

impl<'c> Emitter<'c> {
    /// Returns a computed factor of a contraction. [`Quirk::UnsettledFactors`]: in a separate
    /// dispatch.
    pub(crate) fn computed_factor(&self, factor: Ssa<'c>) -> Ssa<'c> {
        self.barrier_against(Quirk::UnsettledFactors, factor)
    }

    /// Returns a tensor that was copied into another order. [`Quirk::FoldedTranspose`]: behind a
    /// barrier, since the compiler would fold the transpose into a convolution.
    pub(crate) fn transposed_copy(&self, copy: Ssa<'c>) -> Ssa<'c> {
        self.barrier_against(Quirk::FoldedTranspose, copy)
    }
}

impl<'c> Lowering<'_, 'c> {
    /// Returns both factors of a contraction to a matrix of these rows and columns, over loops of
    /// the extents `summed`, in types in which the compiler sums their products right.
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

    /// Returns an operand, with the summed axis last if it has several matrices and masks would be
    /// lost.
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
