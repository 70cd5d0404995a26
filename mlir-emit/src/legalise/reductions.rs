//! Reductions: operands, extents and terms that the compiler reduces right.

use super::repeated::is_repeated;
use crate::lowering::Lowering;
use crate::quirks::{Quirk, Quirks};
use crate::target::{GREATEST_SUBGROUP, Target};
use crate::value::{Data, Ordered, Value};
use rotini_graph::DataType;

impl Quirks {
    /// Whether the compiler may leave out parts of a reduction over loops of these extents.
    ///
    /// [`Quirk::LostSums`]: where the loops do not become one, because a tensor in the dispatch lies
    /// in another order, GPUs give the innermost one to several subgroups. If that is no multiple of
    /// a subgroup these can be more than the lanes that add their sums up, and the first one's sum
    /// is all that is taken. Whatever the operands' orders are, what stands before them or after the
    /// result may be fused.
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

    /// The bits to flip in integers along an axis so that the greatest unsigned one is the least or
    /// the greatest signed one; `None` if no bits are flipped. [`Quirk::SignedExtremes`].
    pub(crate) fn unsigned_key(self, is_least: bool, compute: DataType) -> Option<i64> {
        let least = i64::MIN >> 64_u32.checked_sub(compute.bits())?;
        let is_signed = compute.is_integer() && self.avoids(Quirk::SignedExtremes);
        is_signed.then_some(if is_least { !least } else { least })
    }

    /// Whether a combination of many things for each element is one loop in each thread.
    /// [`Quirk::ConstantFolds`]: where all is `found` by its position.
    pub(crate) const fn folds_in_thread(self, is_found: bool) -> bool {
        is_found && self.avoids(Quirk::ConstantFolds)
    }
}

impl<'c> Lowering<'_, 'c> {
    /// An operand of a reduction that masks what is beyond its end. [`Quirk::MaskedCodes`]: codes
    /// are decoded in a dispatch of their own.
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

    /// The bytes of a reduction of magnitudes. [`Quirk::MaskedCodes`]: as wider integers, in a
    /// dispatch of their own.
    pub(crate) fn widened_magnitudes(&self, bytes: Value<'c>, compute: DataType) -> Value<'c> {
        let is_masked = bytes.dtype == DataType::I8 && compute.is_integer() && self.quirks().avoids(Quirk::MaskedCodes);
        if !is_masked || !matches!(bytes.data, Data::Tensor { .. }) {
            return bytes;
        }
        Value::of(self.converted(bytes.materialise(&self.emitter()), compute))
    }

    /// Makes operands whose products can be summed, behind a barrier. [`Quirk::RepeatedFactors`]:
    /// repeated integers are written out. [`Quirk::MixedProducts`]: floats of two narrower types are
    /// widened. The first operand gets all axes if a reduced axis is in no operand.
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
