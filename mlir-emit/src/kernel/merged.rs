//! Merges neighbouring axes that are contiguous in all tensors, which saves divisions by extents.

use super::epilogue::{Epilogue, Spread};
use super::problem::{Axis, Factor, Product};

/// The extents of a kernel's axes after merging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axes {
    pub(super) batch: Vec<i64>,
    pub(super) rows: Vec<i64>,
    pub(super) columns: Vec<i64>,
    pub(super) sum: Vec<i64>,
    /// Whether the innermost axis of the result in memory is one of its columns.
    pub(super) ends_with_columns: bool,
}

/// Merges the axes of a product where its operands and the epilogue's tensors allow it. The axes of
/// a depthwise product stay as they are.
pub(super) fn merge(product: &Product, epilogue: &mut Epilogue<'_>) -> (Axes, [Factor; 2]) {
    let mut factors = product.factors.clone();
    let is_wide = |axis: &&Axis| product.extent(**axis) > 1;
    let last = product.order.iter().rev().find(is_wide);
    let mut axes = Axes {
        batch: product.batch.clone(),
        rows: product.rows.clone(),
        columns: product.columns.clone(),
        sum: product.sum.clone(),
        ends_with_columns: !matches!(last, Some(Axis::Row(_))),
    };
    if product.is_depthwise {
        return (axes, factors);
    }
    let [first, second] = &mut factors;
    let mut spreads: Vec<&mut Spread> = epilogue.operands.iter_mut().map(|tensor| &mut tensor.spread).collect();
    spreads.extend(epilogue.stored.iter_mut().map(|(_, tensor)| &mut tensor.spread));
    fold(
        &mut axes.rows,
        first.windows.iter_mut().map(|window| &mut window.own.0),
        [&mut first.strides.own]
            .into_iter()
            .chain(spreads.iter_mut().map(|spread| &mut spread.rows)),
    );
    fold(
        &mut axes.columns,
        second.windows.iter_mut().map(|window| &mut window.own.0),
        [&mut second.strides.own]
            .into_iter()
            .chain(spreads.iter_mut().map(|spread| &mut spread.columns)),
    );
    let windows = first.windows.iter_mut().chain(&mut second.windows);
    fold(
        &mut axes.sum,
        windows.map(|window| &mut window.sum.0),
        [&mut first.strides.sum, &mut second.strides.sum],
    );
    (axes, factors)
}

/// Returns the operand with the axes of the sum merged where this operand alone allows it, and the
/// merged extents.
pub(super) fn along_the_sum(factor: &Factor, sum: &[i64]) -> (Factor, Vec<i64>) {
    let (mut factor, mut extents) = (factor.clone(), sum.to_vec());
    let Factor { windows, strides, .. } = &mut factor;
    let windows = windows.iter_mut().map(|window| &mut window.sum.0);
    fold(&mut extents, windows, [&mut strides.sum]);
    (factor, extents)
}

/// Merges neighbouring axes along which no window moves and which have a common stride in each list
/// of `strides`. An axis of extent 1 is merged with its neighbour, whatever its stride is.
pub(super) fn fold<'a>(
    extents: &mut Vec<i64>,
    windows: impl IntoIterator<Item = &'a mut usize>,
    strides: impl IntoIterator<Item = &'a mut Vec<i64>>,
) {
    let mut windows: Vec<_> = windows.into_iter().collect();
    let mut strides: Vec<_> = strides.into_iter().collect();
    let mut axis = 1;
    while axis < extents.len() {
        let outer = axis - 1;
        let extent = extents[axis];
        let is_one = extents[outer] == 1 || extent == 1;
        let is_free = windows.iter().all(|window| **window != axis && **window != outer);
        let is_joint = strides
            .iter()
            .all(|strides| match (strides.get(outer), strides.get(axis)) {
                (Some(&outer), Some(&inner)) => outer == inner * extent,
                _ => false,
            });
        if !is_free || !(is_joint || is_one) {
            axis += 1;
            continue;
        }
        // The stride of an axis with one element does not matter: the stride of the other axis is
        // kept.
        let stays = if extent == 1 { outer } else { axis };
        for strides in &mut strides {
            strides[outer] = strides[stays];
            strides.remove(axis);
        }
        extents[outer] = extents[outer].saturating_mul(extent);
        extents.remove(axis);
        for window in &mut windows {
            if **window > outer {
                **window -= 1;
            }
        }
    }
}
