//! Reductions: operands, extents and terms that the compiler reduces right.

use super::repeated::is_repeated;
use crate::lowering::Lowering;
use crate::quirks::{Quirk, Quirks};
use crate::target::{GREATEST_SUBGROUP, Target};
use crate::value::{Data, Ordered, Value};
use rotini_graph::DataType;

impl Quirks {
    /// Returns true if the compiler may leave out parts of a reduction over loops of these extents.
    ///
    /// [`Quirk::LostSums`]: if the loops do not become one, because a tensor in the dispatch has
    /// another memory order, GPUs give the innermost loop to several subgroups. If its extent is no
    /// multiple of a subgroup, there may be more subgroups than lanes that add their sums, and only
    /// the first subgroup's sum is used. The operands' own orders decide nothing, since operations
    /// before them or after the result may be fused.
    pub(crate) fn loses_sums(self, target: &Target, extents: &[i64]) -> bool {
        let Some(subgroup) = target.least_subgroup().filter(|_| self.avoids(Quirk::LostSums)) else {
            return false;
        };
        let elements = extents
            .iter()
            .try_fold(1_i64, |product, &extent| product.checked_mul(extent));
        let wide = extents.iter().filter(|&&extent| extent > 1);
        wide.count() > 1
            && elements.is_none_or(|elements| elements % subgroup == 0)
            && extents.iter().any(|extent| extent % GREATEST_SUBGROUP != 0)
    }

    /// Returns the bits to flip in signed integers along an axis so that the greatest unsigned
    /// result is the least or the greatest signed one; `None` if no bits are to be flipped.
    /// [`Quirk::SignedExtremes`].
    pub(crate) fn unsigned_key(self, is_least: bool, compute: DataType) -> Option<i64> {
        let least = i64::MIN >> 64_u32.checked_sub(compute.bits())?;
        let is_signed = compute.is_integer() && self.avoids(Quirk::SignedExtremes);
        is_signed.then_some(if is_least { !least } else { least })
    }

    /// Returns true if each thread reduces a window in a single loop. [`Quirk::ConstantFolds`]: if
    /// all elements are found by their position alone.
    pub(crate) const fn folds_in_thread(self, is_found: bool) -> bool {
        is_found && self.avoids(Quirk::ConstantFolds)
    }
}

impl<'c> Lowering<'_, 'c> {
    /// Returns an operand of a reduction that masks elements beyond the operand's end.
    /// [`Quirk::MaskedCodes`]: codes are decoded in a separate dispatch.
    pub(crate) fn decoded(&self, value: Value<'c>) -> Value<'c> {
        let Data::Tensor { ssa, order } = &value.data else {
            return value;
        };
        if !value.dtype.is_code() || !self.quirks().avoids(Quirk::MaskedCodes) {
            return value;
        }
        let codes = Ordered::new(*ssa, order.clone(), value.dtype, value.dims.clone());
        Value::of(self.carry(codes, DataType::F32))
    }

    /// Returns the signed bytes of a reduction of magnitudes. [`Quirk::MaskedCodes`]: converted to
    /// wider integers in a separate dispatch.
    pub(crate) fn widened_magnitudes(&self, bytes: Value<'c>, compute: DataType) -> Value<'c> {
        let is_masked = bytes.dtype == DataType::I8 && compute.is_integer() && self.quirks().avoids(Quirk::MaskedCodes);
        if !is_masked || !matches!(bytes.data, Data::Tensor { .. }) {
            return bytes;
        }
        Value::of(self.converted(bytes.materialise(&self.emitter()), compute))
    }

    /// Returns operands whose products can be summed, rewritten behind barriers where necessary.
    /// [`Quirk::RepeatedFactors`]: integers that are repeated along a reduced axis are written out.
    /// [`Quirk::MixedProducts`]: floats of two types that are narrower than the compute type are
    /// widened. If a reduced axis is in no operand, the first operand is written out with all axes.
    pub(crate) fn written_out(
        &self,
        operands: &[&Value<'c>],
        dims: &[i64],
        reduced: &[usize],
        compute: DataType,
    ) -> Vec<Value<'c>> {
        let own = |value: &Value<'_>, axis: usize| {
            axis.checked_add(value.dims.len())
                .and_then(|axis| axis.checked_sub(dims.len()))
                .filter(|&own| value.dims.get(own) == dims.get(axis))
        };
        let has = |value: &Value<'_>, axis: usize| {
            own(value, axis)
                .is_some_and(|own| matches!(&value.data, Data::Tensor { order, .. } if order.contains(&own)))
        };
        let is_covered = |axis: &usize| operands.iter().any(|value| has(value, *axis));
        let lacks_loops = !reduced.iter().all(is_covered);
        let is_narrower = |value: &Value<'_>| {
            let is_float = matches!(value.dtype, DataType::F16 | DataType::Bf16 | DataType::F32);
            is_float && value.dtype != compute && matches!(value.data, Data::Tensor { .. })
        };
        let mut narrower = operands
            .iter()
            .filter(|value| is_narrower(value))
            .map(|value| value.dtype);
        let first = narrower.next();
        let is_mixed = narrower.any(|dtype| Some(dtype) != first) && self.quirks().avoids(Quirk::MixedProducts);
        let at = self.emitter();
        let write_out = |(position, value): (usize, &&Value<'c>)| {
            let widens = is_mixed && is_narrower(value);
            let stays_whole = !compute.is_float() && self.quirks().avoids(Quirk::RepeatedFactors);
            if widens || stays_whole && is_repeated(value, dims, reduced) {
                let whole = value.materialise(&at);
                let wide = if widens { self.carry(whole, compute) } else { whole };
                let ssa = at.barrier(wide.ssa);
                Value::of(Ordered { ssa, ..wide })
            } else if lacks_loops && position == 0 {
                Value::of(value.materialise(&at))
            } else {
                (*value).clone()
            }
        };
        operands.iter().enumerate().map(write_out).collect()
    }
}
