//! Reductions: combine elements along axes, in as many steps and dispatches as the compiler needs
//! to get it right.

use crate::convert::convert;
use crate::counts::exactly;
use crate::fused::is_repeated;
use crate::ir::{IndexMap, Loop, Writer, only};
use crate::kernel::{has_rows, has_rows_on_cpus};
use crate::lanes::{How, Rows};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::merged::{Merged, settle};
use crate::mlir::Value as Ssa;
use crate::quirks::Quirk;
use crate::spread::Loops;
use crate::step::{Combiner, Open, Shape, arguments, count, inputs};
use crate::sums::{accumulator, in_type};
use crate::target::{GREATEST_SUBGROUP, Target};
use crate::value::{Data, Ordered, Value, extents, reshape};
use rotini_graph::DataType;

impl<'c> Lowering<'_, 'c> {
    /// Combines the results of `body` along the `reduced` axes of `shape`, beginning with `start`.
    /// The first operand has all axes. The result is of the compute type, with extents of 1.
    ///
    /// One that IREE would not [spread](crate::spread) gets its tiling given. One that it would
    /// miscompile ([`Quirk::LostSums`]) becomes two: the last axis, then one loop of the rest.
    pub(crate) fn reduce(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        start: (Combiner, f64),
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        self.reduce_openly(operands, shape, reduced, start, body)
            .closed(&self.emitter())
    }

    /// [`reduce`](Self::reduce), open for fusion with steps without the reduced axes.
    pub(crate) fn reduce_openly(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        (combiner, start): (Combiner, f64),
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Open<'c> {
        let rows = Rows::of(self.target(), operands, shape, reduced);
        let how = self.how(self.has_rows(operands, shape, (reduced, combiner)), rows.is_some());
        if how == How::Kernel {
            let value = self.reduce_rows(operands, shape, reduced, (combiner, start), body);
            return Open {
                value,
                is_spread: false,
            };
        }
        if let Some(rows) = rows.filter(|_| how == How::Lanes) {
            let value = self.reduce_in_lanes(&rows, operands, shape, reduced, (combiner, start), body);
            return Open {
                value,
                is_spread: false,
            };
        }
        let is_wide = |axis: &usize| shape.dims.get(*axis).is_some_and(|&extent| extent > 1);
        let axes = || shape.order.iter().copied();
        let wide: Vec<usize> = axes().filter(|axis| reduced.contains(axis) && is_wide(axis)).collect();
        let merges = self.merges(operands, shape, &wide);
        let needs_help = self.loops(operands, shape, reduced).need_help(self.target(), merges);
        if self.quirks().avoids(Quirk::UnspreadReductions) && needs_help {
            let value = self.reduce_spread(operands, shape, reduced, (combiner, start), body);
            return Open { value, is_spread: true };
        }
        let loses = self.quirks().avoids(Quirk::LostSums) && loses_sums(self.target(), &extents(shape.dims, &wide));
        let splits = loses && !merges;
        let Some(&last) = wide.last().filter(|_| splits) else {
            let value = self.reduce_at_once(operands, shape, reduced, (combiner, start), None, body);
            return Open {
                value,
                is_spread: false,
            };
        };
        let kept: Vec<usize> = axes().filter(|axis| !reduced.contains(axis)).collect();
        let rest: Vec<usize> = axes().filter(|&axis| reduced.contains(&axis) && axis != last).collect();
        let rows = Shape {
            order: &[kept.as_slice(), &rest, &[last]].concat(),
            ..*shape
        };
        let rows = self.reduce_at_once(operands, &rows, &[last], (combiner, start), None, body);
        let Data::Tensor { ssa, .. } = rows.data else {
            unreachable!("a reduction without a result");
        };
        // One loop now, which stays one behind a barrier.
        let (at, compute) = (self.emitter(), shape.dtype);
        let mut groups: Vec<Vec<usize>> = (0..kept.len()).map(|axis| vec![axis]).collect();
        groups.push((kept.len()..kept.len() + rest.len()).collect());
        let mut dims = extents(shape.dims, &kept);
        dims.push(count(shape.dims, &rest));
        let merged = Value::of(Ordered {
            ssa: at.barrier(reshape(&at, "tensor.collapse_shape", ssa, &groups, &dims, compute)),
            order: (0..dims.len()).collect(),
            dtype: compute,
            dims: dims.clone(),
        });
        let merged_shape = Shape {
            dims: &dims,
            order: &(0..dims.len()).collect::<Vec<_>>(),
            dtype: compute,
        };
        let whole = self.reduce_at_once(
            &[&merged],
            &merged_shape,
            &[kept.len()],
            (combiner, start),
            None,
            |_, elements| only(elements),
        );
        let Data::Tensor { ssa, .. } = whole.data else {
            unreachable!("a reduction without a result");
        };
        Open {
            value: reduced_value(ssa, kept, shape, reduced),
            is_spread: false,
        }
    }

    /// Whether a reduction becomes a fused row reduction: along the innermost axes in memory.
    fn has_rows(&self, operands: &[&Value<'c>], shape: &Shape<'_>, (reduced, combiner): (&[usize], Combiner)) -> bool {
        let is_on_cpus = self.target().registers().is_some();
        let is_wide = |axis: &&usize| shape.dims.get(**axis).is_some_and(|&extent| extent > 1);
        let last = shape.order.iter().rfind(is_wide);
        let ends_reduced = last.is_some_and(|last| reduced.contains(last));
        let kept: Vec<usize> = (0..shape.dims.len()).filter(|axis| !reduced.contains(axis)).collect();
        let extents = [count(shape.dims, &kept), count(shape.dims, reduced)];
        let is_other = |value: &&Value<'c>| value.dtype.bits() > 32 || is_on_cpus && value.dtype != DataType::F32;
        let is_single = shape.dtype == DataType::F32 && !operands.iter().any(is_other);
        if is_on_cpus {
            let are_last = shape.order.iter().map(|axis| reduced.contains(axis)).is_sorted();
            let has_kernel = matches!(combiner, Combiner::Sum | Combiner::Least | Combiner::Greatest);
            return is_single && are_last && has_kernel && has_rows_on_cpus(extents);
        }
        self.target().machine().is_some() && ends_reduced && is_single && has_rows(extents)
    }

    /// A reduction that becomes a kernel of rotini.
    fn reduce_rows(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        (combiner, start): (Combiner, f64),
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        let at = self.emitter();
        let elements = self.map(operands, shape, shape.dtype, body);
        let rank = shape.order.len();
        let positions = shape.order.iter().enumerate();
        let loops = kinds(shape.order, reduced);
        let stays = positions.filter(|(_, axis)| !reduced.contains(axis));
        let (kept, results): (Vec<usize>, Vec<usize>) = stays.map(|(position, &axis)| (axis, position)).unzip();
        let identity = IndexMap::identity(rank);
        let init = at.filled(&extents(shape.dims, &kept), shape.dtype, start);
        let element = at.element_type(shape.dtype);
        let ssa = at.structured(
            Writer::Rows,
            &loops,
            &[(elements.ssa, element, identity)],
            (init, element, IndexMap::select(rank, results)),
            |inner, elements| {
                let [element, found] = exactly(elements);
                let math = Math::new(*inner, self.target(), shape.dtype, shape.order.to_vec());
                combiner.combine(&math.combining(), found, element)
            },
        );
        reduced_value(ssa, kept, shape, reduced)
    }

    /// The loops of a reduction that have more than one step.
    fn loops(&self, operands: &[&Value<'c>], shape: &Shape<'_>, reduced: &[usize]) -> Loops {
        let is_wide = |axis: &usize| shape.dims.get(*axis).is_some_and(|&extent| extent > 1);
        let wide: Vec<usize> = shape.order.iter().copied().filter(is_wide).collect();
        let (gone, kept): (Vec<usize>, Vec<usize>) = wide.iter().partition(|axis| reduced.contains(axis));
        let is_reduced = |axis: Option<&usize>| axis.is_some_and(|axis| reduced.contains(axis));
        let tensors = operands
            .iter()
            .filter(|value| matches!(value.data, Data::Tensor { .. }));
        let bits = tensors.map(|value| u64::from(value.dtype.bits())).min();
        let extents = |axes: &[usize]| -> Vec<u64> {
            let extents = extents(shape.dims, axes).into_iter();
            extents
                .map(|extent| u64::try_from(extent).unwrap_or_else(|_| unreachable!("{extent} is no extent")))
                .collect()
        };
        Loops {
            kept: extents(&kept),
            reduced: extents(&gone),
            ends_reduced: is_reduced(wide.last()),
            begins_kept: !is_reduced(wide.first()),
            bits: bits.unwrap_or(32),
            is_double: shape.dtype == DataType::F64,
        }
    }

    /// [`reduce_at_once`](Self::reduce_at_once) with its tiling given. To keep it, operands stand
    /// behind barriers, in the order of the loops, and loops are merged here.
    fn reduce_spread(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        (combiner, start): (Combiner, f64),
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        let at = self.emitter();
        // While it is still known which axes an operand is repeated along.
        let written_out = self.written_out(operands, shape.dims, reduced, shape.dtype);
        let decoded: Vec<Value<'c>> = written_out.into_iter().map(|value| self.decoded(value)).collect();
        let operands: Vec<_> = decoded.iter().collect();
        // The compiler drops loops of one step, and the tiling with them.
        let is_wide = |axis: &usize| shape.dims.get(*axis).is_some_and(|&extent| extent > 1);
        let wide: Vec<usize> = shape.order.iter().copied().filter(is_wide).collect();
        let settled: Vec<Value<'c>> = operands
            .iter()
            .map(|value| settle(&at, value, shape.dims, &wide, reduced))
            .collect();
        let loops = Merged::new(&settled, &wide, reduced);
        let merged: Vec<Value<'c>> = settled
            .into_iter()
            .map(|value| loops.merge(&at, value, shape.dims))
            .collect();
        let merged: Vec<&Value<'c>> = merged.iter().collect();
        let dims: Vec<i64> = loops.groups.iter().map(|group| count(shape.dims, group)).collect();
        let (gone, kept): (Vec<usize>, Vec<usize>) =
            (0..dims.len()).partition(|&position| loops.is_reduced(position, reduced));
        let whole = Shape {
            dims: &dims,
            order: &(0..dims.len()).collect::<Vec<_>>(),
            ..*shape
        };
        let how = self
            .loops(&merged, &whole, &gone)
            .attribute(self.target(), self.quirks());
        let value = self.reduce_at_once(&merged, &whole, &gone, (combiner, start), Some(&how), body);
        let Data::Tensor { mut ssa, .. } = value.data else {
            unreachable!("a reduction without a result");
        };
        let stays: Vec<usize> = wide.iter().copied().filter(|axis| !reduced.contains(axis)).collect();
        if stays.len() != kept.len() {
            let mut next = 0..stays.len();
            let groups = kept.iter().filter_map(|&position| loops.groups.get(position));
            let groups: Vec<Vec<usize>> = groups.map(|group| next.by_ref().take(group.len()).collect()).collect();
            let target = extents(shape.dims, &stays);
            ssa = reshape(
                &at,
                "tensor.expand_shape",
                at.barrier(ssa),
                &groups,
                &target,
                shape.dtype,
            );
        }
        reduced_value(ssa, stays, shape, reduced)
    }

    /// An operand of a reduction that masks what is beyond its end: codes as the floats that they
    /// are ([`Quirk::MaskedCodes`]).
    fn decoded(&self, value: Value<'c>) -> Value<'c> {
        let Data::Tensor { ssa, order } = &value.data else {
            return value;
        };
        if !value.dtype.is_code() || !self.quirks().avoids(Quirk::MaskedCodes) {
            return value;
        }
        let codes = Ordered {
            ssa: *ssa,
            order: order.clone(),
            dtype: value.dtype,
            dims: value.dims.clone(),
        };
        Value::of(self.carry(codes, DataType::F32))
    }

    /// Whether the loops over these axes become one whatever is fused with them: they lie side by
    /// side in a graph of row-major tensors, each of which has all of them or none.
    fn merges(&self, operands: &[&Value<'c>], shape: &Shape<'_>, wide: &[usize]) -> bool {
        let is_side_by_side = match (wide.first(), wide.last()) {
            (Some(&first), Some(&last)) => (first..=last)
                .all(|axis| wide.contains(&axis) || shape.dims.get(axis).is_none_or(|&extent| extent == 1)),
            _ => true,
        };
        let orders = operands.iter().filter_map(|value| match &value.data {
            Data::Tensor { order, .. } => Some(order.as_slice()),
            Data::Constant(_) | Data::Scalar(_) => None,
        });
        let from_the_right: Vec<usize> = wide
            .iter()
            .filter_map(|axis| shape.dims.len().checked_sub(axis + 1))
            .collect();
        is_side_by_side
            && orders.chain([shape.order]).all(<[usize]>::is_sorted)
            && self.is_row_major_and_whole(&from_the_right)
    }

    /// [`reduce`](Self::reduce) in one operation.
    fn reduce_at_once(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        start: (Combiner, f64),
        how: Option<&str>,
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        let (combiner, start) = start;
        let carried = accumulator(self.target(), combiner, shape.dtype, count(shape.dims, reduced));
        let carried = self.reduce_carried(operands, shape, reduced, (combiner, start, carried), how, body);
        self.in_compute_type(carried, shape)
    }

    /// The result of a reduction in the compute type.
    pub(crate) fn in_compute_type(&self, carried: Value<'c>, shape: &Shape<'_>) -> Value<'c> {
        let Data::Tensor { ssa, order } = carried.data else {
            unreachable!("a reduction without a result");
        };
        let results = extents(&carried.dims, &order);
        let ssa = in_type(&self.emitter(), ssa, &results, carried.dtype, shape.dtype);
        let ssa = self.apart_against(Quirk::PackedReductions, ssa);
        Value {
            data: Data::Tensor { ssa, order },
            dtype: shape.dtype,
            dims: carried.dims,
        }
    }

    /// [`reduce_at_once`](Self::reduce_at_once) to a result in the type in which elements are
    /// combined: the last of the triple.
    pub(crate) fn reduce_carried(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        (combiner, start, carried): (Combiner, f64, DataType),
        how: Option<&str>,
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        let at = self.emitter();
        let compute = shape.dtype;
        let is_reduced = |axis: &usize| reduced.contains(axis);
        let kept: Vec<usize> = shape.order.iter().copied().filter(|axis| !is_reduced(axis)).collect();
        // Kept axes first, as the compiler's own reductions have them.
        let order: Vec<usize> = kept
            .iter()
            .copied()
            .chain(shape.order.iter().copied().filter(is_reduced))
            .collect();
        let loops = kinds(&order, reduced);
        let has_repeated = operands.iter().any(|value| is_repeated(value, shape.dims, reduced));
        let copies_sign = self.quirks().avoids(Quirk::RepeatedFactors) && has_repeated && carried.is_float();
        let written_out = self.written_out(operands, shape.dims, reduced, compute);
        let operands: Vec<_> = written_out.iter().collect();
        let read = self.operands(&operands, shape.dims, shape.order);
        let results = extents(shape.dims, &kept);
        let init = at.filled(&results, carried, start);
        let map = IndexMap::select(order.len(), 0..kept.len());
        let ssa = at.written_by(
            how.map_or(Writer::Compiler, Writer::Configured),
            &loops,
            &inputs(&read, &order),
            (init, carried, map),
            |inner, elements| {
                let (sum, elements) = elements
                    .split_last()
                    .unwrap_or_else(|| unreachable!("a reduction without a result"));
                let math = Math::new(*inner, self.target(), compute, order.clone());
                let math = if count(shape.dims, reduced) > 1 {
                    math.combining()
                } else {
                    math
                };
                let element = body(&math, &arguments(inner, &read, elements, compute));
                let mut element = convert(inner, element, compute, carried);
                if copies_sign {
                    element = element.copysign(element);
                }
                combiner.combine(&math, *sum, element)
            },
        );
        Value {
            dtype: carried,
            ..reduced_value(ssa, kept, shape, reduced)
        }
    }

    /// Makes operands whose products can be summed, behind a barrier: repeated integers are written
    /// out ([`Quirk::RepeatedFactors`]), floats of two narrower types widened
    /// ([`Quirk::MixedProducts`]). The first one gets all axes if a reduced axis is in no operand.
    fn written_out(
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

/// Whether the compiler may leave out parts of a reduction over loops of these extents
/// ([`Quirk::LostSums`]).
///
/// Where the loops do not become one, because a tensor in the dispatch lies in another order, GPUs
/// give the innermost one to several subgroups. If that is no multiple of a subgroup these can be
/// more than the lanes that add their sums up, and the first one's sum is all that is taken.
/// Whatever the operands' orders are, what stands before them or after the result may be fused.
pub(crate) fn loses_sums(target: &Target, extents: &[i64]) -> bool {
    let Some(subgroup) = target.least_subgroup() else {
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

/// How the loops over these axes run.
fn kinds(order: &[usize], reduced: &[usize]) -> Vec<Loop> {
    let kind = |axis: &usize| {
        if reduced.contains(axis) {
            Loop::Reduction
        } else {
            Loop::Parallel
        }
    };
    order.iter().map(kind).collect()
}

/// A tensor over the axes that a reduction keeps, with an extent of 1 along the others.
fn reduced_value<'c>(ssa: Ssa<'c>, kept: Vec<usize>, shape: &Shape<'_>, reduced: &[usize]) -> Value<'c> {
    Value {
        data: Data::Tensor { ssa, order: kept },
        dtype: shape.dtype,
        dims: one_along(shape.dims, reduced),
    }
}

/// Extents with 1 in place of those of these axes.
pub(crate) fn one_along(dims: &[i64], axes: &[usize]) -> Vec<i64> {
    let one = |(axis, &extent): (usize, &i64)| if axes.contains(&axis) { 1 } else { extent };
    dims.iter().enumerate().map(one).collect()
}
