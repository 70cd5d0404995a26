//! Reductions of rows on CPUs, split over vector lanes.
//!
//! The compiler sums a row of 1024 elements term by term: each addition waits for the one before.
//! Here 16 neighbouring lanes each sum a part of the row, and the lanes' sums are added at the end.
//! Measured on one core of a Zen 5: the sum of squares of 256 rows in f64 takes 94 µs without lanes
//! and 13 µs with them; the greatest of 256 rows of 1000 elements 774 and 46 µs.

use crate::choice::Form;
use crate::ir::{Emitter, MISSING, only};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::reduce::one_along;
use crate::step::{Combiner, Shape, count};
use crate::sums::accumulator;
use crate::target::Target;
use crate::value::{Data, Value, drop_unit_axes, extents};
use std::ops::Range;

/// The possible numbers of lanes, the best first. They fill a vector.
const LANES: [i64; 3] = [16, 8, 4];
/// Least length of a row that is split if no number of lanes divides it: the part in lanes is
/// copied.
const LONG: i64 = 64;

/// A run of axes that a reduction merges into one, which is cut into a part in lanes and a rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// The logical axes, which are neighbours in memory.
    axes: Range<usize>,
    /// The product of their extents.
    length: i64,
    lanes: i64,
}

impl Rows {
    /// Returns the rows of a reduction if they are long enough, else `None`. The first operand has
    /// all axes.
    pub(crate) fn of(target: &Target, operands: &[&Value<'_>], shape: &Shape<'_>, reduced: &[usize]) -> Option<Rows> {
        if !target.is_cpu() {
            return None;
        }
        let extent = |axis: usize| shape.dims.get(axis).copied();
        let (&last, outer) = shape.order.split_last().filter(|(last, _)| reduced.contains(last))?;
        let mut rows = Rows {
            axes: last..last + 1,
            length: extent(last)?,
            lanes: 1,
        };
        // Outer axes that are adjacent in all operands belong to the row too.
        for &axis in outer.iter().rev() {
            let wider = Rows {
                axes: axis..rows.axes.end,
                length: rows.length.checked_mul(extent(axis)?)?,
                lanes: 1,
            };
            let joins = axis + 1 == rows.axes.start && reduced.contains(&axis);
            if !joins || !operands.iter().all(|value| wider.reads(value, shape.dims).is_some()) {
                break;
            }
            rows = wider;
        }
        let reads: Option<Vec<bool>> = operands.iter().map(|value| rows.reads(value, shape.dims)).collect();
        if !reads?.contains(&true) {
            return None;
        }
        let divides = |lanes: &&i64| rows.length % **lanes == 0 && rows.length >= 4 * **lanes;
        rows.lanes = match LANES.iter().find(divides) {
            Some(&lanes) => lanes,
            None if rows.length >= LONG => LANES[0],
            None => return None,
        };
        Some(rows)
    }

    /// Returns true if an operand has the axes, adjacent and in order in memory; false if it has
    /// none of them; `None` if it has only some of them, or in another order.
    fn reads(&self, value: &Value<'_>, dims: &[i64]) -> Option<bool> {
        let shift = dims.len().checked_sub(value.dims.len())?;
        let Some(start) = self.axes.start.checked_sub(shift) else {
            return (self.axes.end <= shift).then_some(false);
        };
        let own = start..self.axes.end.checked_sub(shift)?;
        let extents = value.dims.get(own.clone())?;
        let Data::Tensor { order, .. } = &value.data else {
            return Some(false);
        };
        if extents.iter().all(|&extent| extent == 1) {
            return Some(false);
        }
        let is_whole = dims.get(self.axes.clone()) == Some(extents);
        let position = order.iter().position(|&axis| axis == start)?;
        let run = order.get(position..position.checked_add(own.len())?)?;
        (is_whole && run.iter().copied().eq(own)).then_some(true)
    }

    /// Returns the part of a row that is in lanes, and the rest.
    pub(crate) fn parts(&self) -> [Range<i64>; 2] {
        let main = self.length - self.length % self.lanes;
        [0..main, main..self.length]
    }

    /// Returns the number of lanes of a part.
    pub(crate) fn lanes_of(&self, part: &Range<i64>) -> i64 {
        let length = part.end - part.start;
        if length % self.lanes == 0 { self.lanes } else { 1 }
    }

    /// Returns the extents and the memory order of what is reduced: two axes, steps and lanes,
    /// replace the run.
    pub(crate) fn shape(&self, shape: &Shape<'_>, part: &Range<i64>) -> (Vec<i64>, Vec<usize>) {
        let lanes = self.lanes_of(part);
        let mut dims = shape.dims.to_vec();
        dims.splice(self.axes.clone(), [(part.end - part.start) / lanes, lanes]);
        let mut order: Vec<usize> = self.moved(shape.order.iter().copied());
        order.extend([self.axes.start, self.lane()]);
        (dims, order)
    }

    /// Returns the axes that are reduced before the lanes are combined.
    pub(crate) fn gone(&self, reduced: &[usize]) -> Vec<usize> {
        let mut gone = self.moved(reduced.iter().copied());
        gone.push(self.axes.start);
        gone
    }

    /// Returns the axis of the lanes.
    pub(crate) fn lane(&self) -> usize {
        self.axes.start + 1
    }

    /// Returns the numbers of the axes outside of the run, after two axes replace the run.
    fn moved(&self, axes: impl Iterator<Item = usize>) -> Vec<usize> {
        let others = axes.filter(|axis| !self.axes.contains(axis));
        others
            .map(|axis| {
                if axis < self.axes.start {
                    axis
                } else {
                    axis + 2 - self.axes.len()
                }
            })
            .collect()
    }

    /// Returns a part of an operand, in which two axes replace the run.
    pub(crate) fn part<'c>(&self, at: &Emitter<'c>, value: &Value<'c>, dims: &[i64], part: &Range<i64>) -> Value<'c> {
        const LOST: &str = "an operand without rows";
        let reads = self.reads(value, dims).expect(LOST);
        let shift = dims.len() - value.dims.len();
        let Some(start) = self.axes.start.checked_sub(shift) else {
            return value.clone();
        };
        let own = start..start + self.axes.len();
        let lanes = self.lanes_of(part);
        let turns = (part.end - part.start) / lanes;
        let mut split = value.dims.clone();
        split.splice(own.clone(), if reads { [turns, lanes] } else { [1, 1] });
        // The positions of axes in the run itself do not matter.
        let moved = |axis: usize| {
            if axis < start {
                axis
            } else {
                (axis + 2).saturating_sub(own.len())
            }
        };
        let data = match &value.data {
            data @ (Data::Constant(_) | Data::Scalar(_)) => data.clone(),
            Data::Tensor { ssa, order } if !reads => {
                let keep: Vec<bool> = order.iter().map(|axis| !own.contains(axis)).collect();
                let ssa = drop_unit_axes(at, *ssa, &keep);
                let order = order.iter().filter(|axis| !own.contains(axis)).map(|&axis| moved(axis));
                Data::Tensor {
                    ssa,
                    order: order.collect(),
                }
            }
            Data::Tensor { ssa, order } => {
                let position = order.iter().position(|&axis| axis == start).expect(LOST);
                let run = position..position + own.len();
                let mut physical = extents(&value.dims, order);
                let mut order = order.clone();
                let join = |axis: usize, rank: usize, parts: Range<usize>| -> Vec<Vec<usize>> {
                    let one = |group: usize| match group.cmp(&axis) {
                        std::cmp::Ordering::Less => vec![group],
                        std::cmp::Ordering::Equal => parts.clone().collect(),
                        std::cmp::Ordering::Greater => vec![group + parts.len() - 1],
                    };
                    (0..rank).map(one).collect()
                };
                let mut ssa = *ssa;
                physical.splice(run.clone(), [self.length]);
                order.splice(run.clone(), [start]);
                let rank = physical.len();
                if run.len() > 1 {
                    let groups = join(position, rank, run);
                    ssa = at.collapse(ssa, &groups, &physical);
                }
                if *part != (0..self.length) {
                    let mut offsets = vec![0; rank];
                    offsets.splice(position..=position, [part.start]);
                    physical.splice(position..=position, [part.end - part.start]);
                    ssa = at.slice(ssa, &offsets, &physical, value.dtype);
                }
                physical.splice(position..=position, [turns, lanes]);
                let groups = join(position, rank, position..position + 2);
                ssa = at.expand(ssa, &groups, &physical);
                let mut order: Vec<usize> = order.into_iter().map(moved).collect();
                order.splice(position..=position, [start, start + 1]);
                Data::Tensor { ssa, order }
            }
        };
        Value {
            data,
            dtype: value.dtype,
            dims: split,
        }
    }
}

/// The form in which a reduction is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By a kernel of rotini for rows.
    Kernel,
    /// By the compiler, in lanes.
    Lanes,
    /// By the compiler, in as many operations as it needs.
    AsItIs,
}

impl<'c> Lowering<'_, 'c> {
    /// Returns the form of a reduction, given which forms are possible. On GPUs only the schedule
    /// of the kernel is a choice, so its form is fixed.
    pub(crate) fn how(&self, has_kernel: bool, has_lanes: bool) -> How {
        let forms = [
            has_kernel.then(|| Form::new("kernel", How::Kernel)),
            has_lanes.then(|| Form::new("lanes", How::Lanes)),
            Some(Form::new("iree", How::AsItIs)),
        ];
        let usual = if has_kernel {
            How::Kernel
        } else if has_lanes {
            How::Lanes
        } else {
            return How::AsItIs;
        };
        if !self.target().is_cpu() {
            return usual;
        }
        let forms = || forms.into_iter().flatten().collect();
        self.chooser().choose("rows", usual, forms, |_| None)
    }

    /// [`reduce`](Self::reduce) of rows in lanes. Lanes and rests are combined in the accumulation
    /// type that a sum of whole rows has.
    pub(crate) fn reduce_in_lanes(
        &self,
        rows: &Rows,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        reduced: &[usize],
        (combiner, start): (Combiner, f64),
        body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Value<'c> {
        let at = self.emitter();
        let carried = accumulator(self.target(), combiner, shape.dtype, count(shape.dims, reduced));
        let start = (combiner, start, carried);
        let mut results = Vec::new();
        for part in rows.parts().iter().filter(|part| !part.is_empty()) {
            let split: Vec<Value<'c>> = operands
                .iter()
                .map(|value| rows.part(&at, value, shape.dims, part))
                .collect();
            let (dims, order) = rows.shape(shape, part);
            let gone = rows.gone(reduced);
            let whole = Shape {
                dims: &dims,
                order: &order,
                ..*shape
            };
            let lanes = self.reduce_carried(&split.iter().collect::<Vec<_>>(), &whole, &gone, start, None, &body);
            let kept: Vec<usize> = order.iter().copied().filter(|axis| !gone.contains(axis)).collect();
            let lanes_shape = Shape::new(&lanes.dims, &kept, lanes.dtype);
            let lane = [rows.lane()];
            let result = self.reduce_carried(&[&lanes], &lanes_shape, &lane, start, None, |_, elements| {
                only(elements)
            });
            results.push(result);
        }
        let mut results = results.into_iter();
        let mut result = results.next().expect("a reduction of nothing");
        for rest in results {
            let both = Shape::new(&result.dims, result.order(), result.dtype);
            result = Value::of(self.map(
                &[&result, &rest],
                &both,
                result.dtype,
                |math, elements| match elements {
                    &[first, second] => combiner.combine(math, first, second),
                    _ => unreachable!("{MISSING}"),
                },
            ));
        }
        self.in_compute_type(result, shape)
            .with_dims(&at, &one_along(shape.dims, reduced))
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;
    use crate::step::Shape;
    use rotini_graph::DataType;

    #[test]
    fn parts_are_whole_lanes_and_a_rest() {
        let rows = |length, lanes| Rows {
            axes: 1..3,
            length,
            lanes,
        };
        assert_eq!(rows(1024, 16).parts(), [0..1024, 1024..1024]);
        let odd = rows(1001, 16);
        let [main, rest] = odd.parts();
        assert_eq!((main.clone(), rest.clone()), (0..992, 992..1001));
        assert_eq!((odd.lanes_of(&main), odd.lanes_of(&rest)), (16, 1));
        let shape = Shape::new(&[5, 7, 143, 1], &[3, 0, 1, 2], DataType::F32);
        // Axes 1 and 2 become steps and lanes; later axes keep their positions.
        assert_eq!(odd.shape(&shape, &main), (vec![5, 62, 16, 1], vec![3, 0, 1, 2]));
        assert_eq!(odd.gone(&[1, 2]), [1]);
    }
}
