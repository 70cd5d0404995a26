//! Builds IREE's operation `iree_linalg_ext.online_attention`: its loops and the index maps of its
//! operands.

use super::axes::{HEAD, KEY, QUERY};
use crate::ir::{Emitter, IndexMap, MISSING};
use crate::lowering::Lowering;
use crate::mlir::{Attribute, Name, Value as Ssa};
use crate::value::{Ordered, Value, extent};
use rotini_graph::DataType;
use std::f64::consts::{LN_2, LOG2_E};

/// Axes of the iteration. The heads of q are split into the heads of k and the group of q's heads
/// that shares one head of k.
const BATCH: usize = 0;
const HEAD_OF_KEYS: usize = 1;
const GROUP: usize = 2;
const ROW: usize = 3;
const COLUMN: usize = 4;
const OF_VALUE: usize = 5;
const OF_KEY: usize = 6;

/// The operands of IREE's operation.
pub(super) struct Problem<'a, 'c> {
    /// q, k and v.
    pub(super) operands: [&'a Ordered<'c>; 3],
    /// The memory order of the weighted sums.
    pub(super) order: &'a [usize],
    pub(super) scale: f64,
    pub(super) mask: Option<Ordered<'c>>,
}

/// The results of IREE's operation: the weighted sums of the values, the largest scores times
/// log2(e), and the sums of the exponentials.
pub(super) struct Online<'c> {
    pub(super) weighted: Value<'c>,
    pub(super) greatest: Value<'c>,
    pub(super) total: Value<'c>,
}

/// Appends IREE's operation.
pub(super) fn online<'c>(lowering: &Lowering<'_, 'c>, problem: &Problem<'_, 'c>) -> Online<'c> {
    let at = lowering.emitter();
    let Problem {
        operands: [q, k, v],
        order,
        ..
    } = problem;
    let iteration = Iteration::new([q, k, v]);
    let one = |axis| vec![axis];
    let heads = vec![HEAD_OF_KEYS, GROUP];
    let mut operands = Vec::new();
    let mut maps = Vec::new();
    let mut add = |(ssa, map): (Ssa<'c>, IndexMap)| {
        operands.push(ssa);
        maps.push(map);
    };
    let of_q = [one(BATCH), heads.clone(), one(ROW), one(OF_KEY)];
    add(iteration.enter(&at, q, &of_q));
    let of_k = [one(BATCH), one(HEAD_OF_KEYS), one(COLUMN), one(OF_KEY)];
    add(iteration.enter(&at, k, &of_k));
    let of_v = [one(BATCH), one(HEAD_OF_KEYS), one(COLUMN), one(OF_VALUE)];
    add(iteration.enter(&at, v, &of_v));
    let f32 = at.element_type(DataType::F32);
    add((at.float(LN_2, f32), iteration.map(&[])));
    if let Some(mask) = &problem.mask {
        add(iteration.enter(&at, mask, &[one(BATCH), heads.clone(), one(ROW), one(COLUMN)]));
    }

    let o = [one(BATCH), heads, one(ROW), one(OF_VALUE)];
    let row_order: Vec<usize> = order.iter().copied().filter(|&axis| axis != KEY).collect();
    let mut results = Vec::new();
    // The largest score starts at a finite number: if every key of a row is hidden, exponentials
    // are 0, not exp(-∞ + ∞) = NaN.
    for (order, start) in [(*order, 0.0), (&row_order, f64::from(f32::MIN)), (&row_order, 0.0)] {
        let place = iteration.place(order, &o);
        add((
            at.filled(&place.fine, DataType::F32, start),
            iteration.map(&place.loops),
        ));
        results.push(place);
    }
    let types = results
        .iter()
        .map(|place| at.tensor_type(&place.fine, DataType::F32))
        .collect::<Vec<_>>();
    let block = at.block(&[f32], |score| {
        let factor = at.float(problem.scale * LOG2_E, f32);
        at.run(Name::IreeLinalgExtYield, &[score[0] * factor]);
    });
    let sums = at.op(
        Name::IreeLinalgExtOnlineAttention,
        &operands,
        &types,
        &[("indexing_maps", Attribute::Maps(maps))],
        vec![block.into()],
    );
    let (&[weighted, greatest, total], [wide, row, _]) = (sums.as_slice(), results.as_slice()) else {
        unreachable!("{MISSING}");
    };
    let dims = iteration.logical(&o);
    let mut rows = dims.clone();
    rows[KEY] = 1;
    let value =
        |ssa, order: &[usize], dims: &[i64]| Value::of(Ordered::new(ssa, order.to_vec(), DataType::F32, dims.to_vec()));
    Online {
        weighted: value(wide.leave(&at, weighted), order, &dims),
        greatest: value(row.leave(&at, greatest), &row_order, &rows),
        total: value(row.leave(&at, total), &row_order, &rows),
    }
}

/// The iteration space of the operation.
struct Iteration {
    /// The extents of all seven axes.
    extents: [i64; 7],
    /// The axis of each loop; the group axis has no loop if its extent is 1.
    loops: Vec<usize>,
}

/// The layout of a tensor over the loops.
struct Place {
    /// The tensor's own extents, in memory order.
    whole: Vec<i64>,
    /// For each axis of `whole`, the axes of `fine` that it is split into; `None` if no axis is
    /// split.
    split: Option<Vec<Vec<usize>>>,
    /// The extents of the expanded tensor, which has one axis per loop.
    fine: Vec<i64>,
    loops: Vec<usize>,
}

impl Iteration {
    /// Returns the iteration space of q, k and v.
    fn new([q, k, v]: [&Ordered<'_>; 3]) -> Self {
        let heads = extent(&k.dims, HEAD);
        let group = extent(&q.dims, HEAD).checked_div(heads).expect(MISSING);
        let extents = [
            extent(&q.dims, 0),
            heads,
            group,
            extent(&q.dims, QUERY),
            extent(&k.dims, QUERY),
            extent(&v.dims, KEY),
            extent(&q.dims, KEY),
        ];
        let loops = (0..extents.len()).filter(|&axis| axis != GROUP || group > 1).collect();
        Iteration { extents, loops }
    }

    fn map(&self, loops: &[usize]) -> IndexMap {
        IndexMap::select(self.loops.len(), loops.iter().copied())
    }

    /// Returns the logical extents of a tensor; `axes` lists the iteration axes of each of its
    /// axes.
    fn logical(&self, axes: &[Vec<usize>; 4]) -> Vec<i64> {
        let product = |axes: &Vec<usize>| axes.iter().map(|&axis| extent(&self.extents, axis)).product();
        axes.iter().map(product).collect()
    }

    /// Returns the layout of a tensor in this memory order; `axes` lists the iteration axes of each
    /// of its logical axes.
    fn place(&self, order: &[usize], axes: &[Vec<usize>; 4]) -> Place {
        let (mut whole, mut split, mut fine, mut loops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &axis in order {
            let first = fine.len();
            let own = &axes[axis];
            for (place, axis) in self.loops.iter().enumerate().filter(|(_, axis)| own.contains(axis)) {
                fine.push(extent(&self.extents, *axis));
                loops.push(place);
            }
            split.push((first..fine.len()).collect::<Vec<_>>());
            whole.push(fine.iter().skip(first).product());
        }
        Place {
            split: (fine.len() != whole.len()).then_some(split),
            whole,
            fine,
            loops,
        }
    }

    /// Expands a tensor to one axis per loop, and returns the result and its index map.
    fn enter<'c>(&self, at: &Emitter<'c>, tensor: &Ordered<'c>, axes: &[Vec<usize>; 4]) -> (Ssa<'c>, IndexMap) {
        let place = self.place(&tensor.order, axes);
        let ssa = match &place.split {
            Some(split) => at.expand(tensor.ssa, split, &place.fine),
            None => tensor.ssa,
        };
        (ssa, self.map(&place.loops))
    }
}

impl Place {
    /// Collapses a result to the tensor's own axes.
    fn leave<'c>(&self, at: &Emitter<'c>, ssa: Ssa<'c>) -> Ssa<'c> {
        match &self.split {
            Some(split) => at.collapse(ssa, split, &self.whole),
            None => ssa,
        }
    }
}
