//! Reductions: combine elements along axes, in as many operations and dispatches as the compiler
//! needs to get them right.

use crate::convert::convert;
use crate::counts::exactly;
use crate::ir::{IndexMap, Loop, Writer, only};
use crate::kernel::{has_rows, has_rows_on_cpus};
use crate::lanes::{How, Rows};
use crate::legalise::merged::{Merged, settle};
use crate::legalise::repeated::is_repeated;
use crate::legalise::spread::Loops;
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::{Combiner, Open, Shape, arguments, count, inputs};
use crate::sums::{accumulator, in_type};
use crate::value::{Data, Ordered, Value, extents};
use rotini_graph::DataType;

impl<'c> Lowering<'_, 'c> {
    /// Combines the results of `body` along the `reduced` axes of `shape`, beginning with `start`.
    /// The first operand has all axes. The result has the compute type, and extent 1 along the
    /// reduced axes.
    ///
    /// A reduction that IREE would not [spread](crate::legalise::spread) carries its own schedule.
    /// One that IREE would miscompile is split into two: the last axis, then the rest as one loop.
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

    /// [`reduce`](Self::reduce) whose result may be fused with operations that lack the reduced
    /// axes.
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
            return Open::plain(value);
        }
        if let Some(rows) = rows.filter(|_| how == How::Lanes) {
            let value = self.reduce_in_lanes(&rows, operands, shape, reduced, (combiner, start), body);
            return Open::plain(value);
        }
        let is_wide = |axis: &usize| shape.dims.get(*axis).is_some_and(|&extent| extent > 1);
        let axes = || shape.order.iter().copied();
        let wide: Vec<usize> = axes().filter(|axis| reduced.contains(axis) && is_wide(axis)).collect();
        let merges = self.merges(operands, shape, &wide);
        let loops = self.loops(operands, shape, reduced);
        if loops.need_help((self.target(), self.quirks()), merges) {
            let value = self.reduce_spread(operands, shape, reduced, (combiner, start), body);
            return Open { value, is_spread: true };
        }
        let loses = self.quirks().loses_sums(self.target(), &extents(shape.dims, &wide));
        let splits = loses && !merges;
        let Some(&last) = wide.last().filter(|_| splits) else {
            let value = self.reduce_at_once(operands, shape, reduced, (combiner, start), None, body);
            return Open::plain(value);
        };
        let kept: Vec<usize> = axes().filter(|axis| !reduced.contains(axis)).collect();
        let rest: Vec<usize> = axes().filter(|&axis| reduced.contains(&axis) && axis != last).collect();
        let rows = Shape {
            order: &[kept.as_slice(), &rest, &[last]].concat(),
            ..*shape
        };
        let rows = self.reduce_at_once(operands, &rows, &[last], (combiner, start), None, body);
        let (ssa, _) = rows.into_tensor();
        // The remaining axes become one loop; the barrier keeps it merged.
        let (at, compute) = (self.emitter(), shape.dtype);
        let mut groups: Vec<Vec<usize>> = (0..kept.len()).map(|axis| vec![axis]).collect();
        groups.push((kept.len()..kept.len() + rest.len()).collect());
        let mut dims = extents(shape.dims, &kept);
        dims.push(count(shape.dims, &rest));
        let merged = Value::of(Ordered::new(
            at.barrier(at.collapse(ssa, &groups, &dims)),
            (0..dims.len()).collect(),
            compute,
            dims.clone(),
        ));
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
        let (ssa, _) = whole.into_tensor();
        Open::plain(reduced_value(ssa, kept, shape, reduced))
    }

    /// Returns true if one of rotini's row kernels can compute a reduction: it must be along the
    /// innermost axes in memory.
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

    /// Appends a reduction that becomes one of rotini's row kernels.
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
        let ssa = at.written_by(
            Writer::Rows,
            &loops,
            &[(elements.ssa, identity)],
            (init, IndexMap::select(rank, results)),
            |elements| {
                let [element, found] = exactly(elements);
                let math = Math::new(at, self.target(), shape.dtype, shape.order.to_vec());
                combiner.combine(&math.combining(), found, element)
            },
        );
        reduced_value(ssa, kept, shape, reduced)
    }

    /// Returns the loops of a reduction that have more than one step.
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

    /// [`reduce_at_once`](Self::reduce_at_once) with its own schedule. So that the schedule stays
    /// valid, operands are put behind barriers in the order of the loops, and loops are merged
    /// here.
    fn reduce_spread(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        (combiner, start): (Combiner, f64),
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        let at = self.emitter();
        // Before reshapes hide which axes an operand is repeated along.
        let written_out = self.written_out(operands, shape.dims, reduced, shape.dtype);
        let decoded: Vec<Value<'c>> = written_out.into_iter().map(|value| self.decoded(value)).collect();
        let operands: Vec<_> = decoded.iter().collect();
        // The compiler drops loops of one step, and the schedule with them.
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
        let (mut ssa, _) = value.into_tensor();
        let stays: Vec<usize> = wide.iter().copied().filter(|axis| !reduced.contains(axis)).collect();
        if stays.len() != kept.len() {
            let mut next = 0..stays.len();
            let groups = kept.iter().filter_map(|&position| loops.groups.get(position));
            let groups: Vec<Vec<usize>> = groups.map(|group| next.by_ref().take(group.len()).collect()).collect();
            let target = extents(shape.dims, &stays);
            ssa = at.expand(at.barrier(ssa), &groups, &target);
        }
        reduced_value(ssa, stays, shape, reduced)
    }

    /// Returns true if the loops over these axes become one whatever is fused with them: the axes
    /// are adjacent in a graph of row-major tensors, each of which has all of them or none.
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

    /// Computes a [`reduce`](Self::reduce) by one operation.
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

    /// Converts the result of a reduction to the compute type.
    pub(crate) fn in_compute_type(&self, carried: Value<'c>, shape: &Shape<'_>) -> Value<'c> {
        let (dtype, dims) = (carried.dtype, carried.dims.clone());
        let (ssa, order) = carried.into_tensor();
        let ssa = in_type(&self.emitter(), ssa, &extents(&dims, &order), dtype, shape.dtype);
        let ssa = self.reduced_apart(ssa);
        Value::of(Ordered::new(ssa, order, shape.dtype, dims))
    }

    /// [`reduce_at_once`](Self::reduce_at_once) whose result stays in the accumulation type, the
    /// last of the triple.
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
        let axes = shape.order.iter().copied();
        let (kept, gone): (Vec<usize>, Vec<usize>) = axes.partition(|axis| !reduced.contains(axis));
        // Kept axes come first, as in the compiler's own reductions.
        let order = [kept.as_slice(), &gone].concat();
        let loops = kinds(&order, reduced);
        let has_repeated = operands.iter().any(|value| is_repeated(value, shape.dims, reduced));
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
            (init, map),
            |elements| {
                let (sum, elements) = elements.split_last().expect("a reduction without a result");
                let math = Math::new(at, self.target(), compute, order.clone());
                let math = if count(shape.dims, reduced) > 1 {
                    math.combining()
                } else {
                    math
                };
                let element = body(&math, &arguments(&at, &read, elements, compute));
                let mut element = convert(&at, element, compute, carried);
                if has_repeated {
                    element = at.uncontracted(element);
                }
                combiner.combine(&math, *sum, element)
            },
        );
        Value {
            dtype: carried,
            ..reduced_value(ssa, kept, shape, reduced)
        }
    }
}

/// Returns the iterator type of the loop over each of these axes.
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

/// Returns a value over the axes that a reduction keeps, with extent 1 along the others.
fn reduced_value<'c>(ssa: Ssa<'c>, kept: Vec<usize>, shape: &Shape<'_>, reduced: &[usize]) -> Value<'c> {
    Value::of(Ordered::new(ssa, kept, shape.dtype, one_along(shape.dims, reduced)))
}

/// Returns the extents with those of `axes` replaced by 1.
pub(crate) fn one_along(dims: &[i64], axes: &[usize]) -> Vec<i64> {
    let one = |(axis, &extent): (usize, &i64)| if axes.contains(&axis) { 1 } else { extent };
    dims.iter().enumerate().map(one).collect()
}
