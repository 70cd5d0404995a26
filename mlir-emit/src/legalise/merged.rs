//! Merges neighbouring loops of a reduction that carries its own schedule. If IREE merged the
//! loops, it would drop the schedule.

use crate::ir::Emitter;
use crate::step::count;
use crate::value::{Data, Ordered, Value, drop_unit_axes};

/// Returns an operand of a reduction with exactly those of the axes `wide` that it has, in their
/// order, behind a barrier, so that its producer is not fused with the reduction.
pub(crate) fn settle<'c>(
    at: &Emitter<'c>,
    value: &Value<'c>,
    dims: &[i64],
    wide: &[usize],
    reduced: &[usize],
) -> Value<'c> {
    let Data::Tensor { ssa, order } = &value.data else {
        return value.clone();
    };
    let missing = dims.len().saturating_sub(value.dims.len());
    let is_wide = |axis: &usize| value.dims.get(*axis).is_some_and(|&extent| extent > 1);
    let keep: Vec<bool> = order.iter().map(is_wide).collect();
    let mut ssa = drop_unit_axes(at, *ssa, &keep);
    let own: Vec<usize> = order
        .iter()
        .copied()
        .filter(is_wide)
        .map(|axis| axis + missing)
        .collect();
    let sorted: Vec<usize> = wide.iter().copied().filter(|axis| own.contains(axis)).collect();
    let mut full = vec![1; missing];
    full.extend(&value.dims);
    // In another order, elements would be read from the wrong places.
    let tensor = Ordered::new(ssa, own, value.dtype, full);
    let tensor = tensor.in_order(at, &sorted);
    ssa = tensor.ssa;
    if sorted.iter().any(|axis| reduced.contains(axis)) && !at.is_settled(ssa) {
        ssa = at.barrier(ssa);
    }
    Value::of(Ordered { ssa, ..tensor })
}

/// The axes of a reduction's loops, in groups that can be merged into one loop each.
pub(crate) struct Merged {
    /// Groups of neighbouring axes. The axes of a group are either all reduced or all kept, and
    /// each operand has either all or none of them.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl Merged {
    pub(crate) fn new(operands: &[Value<'_>], wide: &[usize], reduced: &[usize]) -> Self {
        let has =
            |value: &Value<'_>, axis: &usize| matches!(&value.data, Data::Tensor { order, .. } if order.contains(axis));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for axis in wide {
            let joins = |last: &usize| {
                reduced.contains(last) == reduced.contains(axis)
                    && operands.iter().all(|value| has(value, last) == has(value, axis))
            };
            match groups.last_mut().filter(|group| group.last().is_some_and(joins)) {
                Some(group) => group.push(*axis),
                None => groups.push(vec![*axis]),
            }
        }
        Merged { groups }
    }

    /// Returns true if the axes of a group are reduced.
    pub(crate) fn is_reduced(&self, position: usize, reduced: &[usize]) -> bool {
        let first = self.groups.get(position).and_then(|group| group.first());
        first.is_some_and(|axis| reduced.contains(axis))
    }

    /// Merges the axes of a settled operand by groups: the positions of the groups become its axes.
    pub(crate) fn merge<'c>(&self, at: &Emitter<'c>, value: Value<'c>, dims: &[i64]) -> Value<'c> {
        let Data::Tensor { mut ssa, order } = value.data else {
            return Value {
                dims: Vec::new(),
                ..value
            };
        };
        let (mut merged, mut own, mut shape, mut groups) =
            (vec![1; self.groups.len()], Vec::new(), Vec::new(), Vec::new());
        let mut next = 0..order.len();
        for (position, (extent, group)) in merged.iter_mut().zip(&self.groups).enumerate() {
            if group.first().is_some_and(|axis| order.contains(axis)) {
                *extent = count(dims, group);
                own.push(position);
                shape.push(*extent);
                groups.push(next.by_ref().take(group.len()).collect::<Vec<_>>());
            }
        }
        if own.len() != order.len() {
            // The barrier keeps the compiler from splitting the merged loop again.
            ssa = at.barrier(at.collapse(ssa, &groups, &shape));
        }
        Value::of(Ordered::new(ssa, own, value.dtype, merged))
    }
}
