//! The forward direction as IREE's operation `iree_linalg_ext.online_attention`. On AMD GPUs it is one dispatch: tiles of scores stay in
//! registers, and the sums so far are scaled whenever a larger score appears.
//!
//! IREE's operation computes with powers of 2: it scales q and the mask by log2(e), q in its own type. The emitter passes a scale that
//! makes q's factor 1, and scales the scores in f32 instead. The operation rounds the exponentials to the type of v for the second product.
//!
//! Bounds are a mask that is computed from indices. The operation's own `iree_linalg_ext.index` does not help: it counts from the beginning
//! of each tile.

use super::forward::Softmax;
use super::scores::Attention;
use super::told::{HEAD, KEY, QUERY};
use crate::EmitError;
use crate::convert::{FloatPredicate as F, compute_type};
use crate::ir::{Emitter, MISSING, affine_map, dim};
use crate::lowering::Lowering;
use crate::mlir::{Block, Value as Ssa};
use crate::quirks::{Quirk, Quirks};
use crate::step::{Shape, order_of};
use crate::target::Target;
use crate::value::{Data, Ordered, Value, extent, reshape};
use rotini_graph::{DataType, Layout, NormalGraph, NormalKind, Op, Sdpa};
use std::f64::consts::{LN_2, LOG2_E};

/// The least finite value of a mask: less would be -∞ once it is multiplied by log2(e), and hide a key.
const LEAST: f64 = -2e38;

/// Rows and columns of the smallest matrix that an instruction multiplies.
const TILE: i64 = 16;

/// Axes of the iteration: the heads of q are those of keys, each with a group of them.
const BATCH: usize = 0;
const HEAD_OF_KEYS: usize = 1;
const GROUP: usize = 2;
const ROW: usize = 3;
const COLUMN: usize = 4;
const OF_VALUE: usize = 5;
const OF_KEY: usize = 6;

/// Softmax and weighted sum; `None` where IREE's operation does not have all that is asked for, or is not the better form.
///
/// On CPUs it is not: it takes five times as long as the steps for 512 queries and keys of 64 columns.
pub(super) fn softmax<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    attention: &Attention<'c, 'b>,
    op: &Sdpa,
) -> Result<Option<Softmax<'c, 'b>>, EmitError> {
    let Data::Constant(scale) = attention.scale.data else {
        return Ok(None);
    };
    let Attention { q, k, v, .. } = attention;
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    if !covers(lowering.target(), lowering.quirks(), attention.compute, op, operands) {
        return Ok(None);
    }
    if op.stats.is_some() && attention.mask.as_ref().is_some_and(|mask| mask.dtype != DataType::F16) {
        // A statistic may be that of a key that `LEAST` has raised.
        return Ok(None);
    }
    let at = lowering.emitter();
    let out = lowering.tensor(op.o)?;
    let order = match lowering.stored_order(op.o) {
        Some(order) => order,
        None => order_of(&out.dims, &[&Value::of(attention.q.clone())]),
    };
    let iteration = Iteration::new(attention)?;

    let (heads, one) = (iteration.heads(), |axis| vec![axis]);
    let key_heads = one(HEAD_OF_KEYS);
    let mut operands = Vec::new();
    let mut maps = Vec::new();
    let mut add = |(ssa, map): (Ssa<'c, 'b>, String)| {
        operands.push(ssa);
        maps.push(map);
    };
    let q = [one(BATCH), heads.clone(), one(ROW), one(OF_KEY)];
    add(iteration.enter(&at, &attention.q, &q)?);
    let k = [one(BATCH), key_heads.clone(), one(COLUMN), one(OF_KEY)];
    add(iteration.enter(&at, &attention.k, &k)?);
    let v = [one(BATCH), key_heads, one(COLUMN), one(OF_VALUE)];
    add(iteration.enter(&at, &attention.v, &v)?);
    let f32 = at.element_type(DataType::F32)?;
    add((at.float(LN_2, f32)?, iteration.map(&[])));
    if let Some(mask) = mask(lowering, attention)? {
        add(iteration.enter(&at, &mask, &[one(BATCH), heads.clone(), one(ROW), one(COLUMN)])?);
    }

    let o = [one(BATCH), heads, one(ROW), one(OF_VALUE)];
    let row_order: Vec<usize> = order.iter().copied().filter(|&axis| axis != KEY).collect();
    let mut results = Vec::new();
    // The largest score starts at what is finite: where every key is hidden, exponentials are 0 and not those of -∞ + ∞.
    for (order, start) in [(&order, 0.0), (&row_order, f64::from(f32::MIN)), (&row_order, 0.0)] {
        let place = iteration.place(order, &o)?;
        add((
            at.filled(&place.fine, DataType::F32, start)?,
            iteration.map(&place.loops),
        ));
        results.push(place);
    }
    let types = results
        .iter()
        .map(|place| at.tensor_type(&place.fine, DataType::F32))
        .collect::<Result<Vec<_>, _>>()?;
    let block = Block::new(&[f32]);
    {
        let inner = at.inside(&block);
        let score = crate::ir::argument(&block, 0)?;
        let factor = inner.float(scale.to_f64() * LOG2_E, f32)?;
        inner.terminate("iree_linalg_ext.yield", &[inner.same("arith.mulf", &[score, factor])?])?;
    }
    let attributes = [("indexing_maps", at.attribute(&format!("[{}]", maps.join(", ")))?)];
    let sums = at.op(
        "iree_linalg_ext.online_attention",
        &operands,
        &types,
        &attributes,
        vec![block.into()],
    )?;
    let [weighted, greatest, total] = sums.as_slice() else {
        return Err(MISSING);
    };
    let [wide, row, _] = results.as_slice() else {
        return Err(MISSING);
    };
    let rows = attention.rows();
    let value = |ssa: Ssa<'c, 'b>, order: &[usize], dims: &[i64]| Value {
        data: Data::Tensor {
            ssa,
            order: order.to_vec(),
        },
        dtype: DataType::F32,
        dims: dims.to_vec(),
    };
    let weighted = value(wide.leave(&at, *weighted)?, &order, &out.dims);
    let total = value(row.leave(&at, *total)?, &row_order, &rows);
    let greatest = value(row.leave(&at, *greatest)?, &row_order, &rows);
    let shape = Shape {
        dims: &rows,
        order: &row_order,
        dtype: DataType::F32,
    };
    let reference = lowering.map(&[&greatest], &shape, DataType::F32, |math, elements| {
        math.scale(LN_2, elements.first().copied().ok_or(MISSING)?)
    })?;
    Ok(Some(Softmax {
        weighted,
        greatest,
        reference: Value::of(reference),
        total,
    }))
}

/// Whether IREE's operation has all that is asked for of q, k and v with these extents and types, and makes matrix instructions of it.
fn covers(target: &Target, quirks: Quirks, compute: DataType, op: &Sdpa, operands: [(&[i64], DataType); 3]) -> bool {
    let [
        (&[_, _, queries, d], dtype),
        (&[_, key_heads, keys, _], k),
        (&[_, value_heads, _, columns], v),
    ] = operands
    else {
        return false;
    };
    let is_float = matches!(dtype, DataType::F32 | DataType::F16 | DataType::Bf16);
    let asks_for_more =
        op.padding_mask || op.alibi_mask || op.sink_token.is_some() || op.max.is_some() || op.sum_exp.is_some();
    let widest = if dtype == DataType::F32 { 128 } else { 256 };
    let avoids = quirks.avoids(Quirk::UntiledAttention);
    let fits = |columns: i64| !avoids || (TILE..=widest).contains(&columns) && columns & (columns - 1) == 0;
    matches!(target, Target::Rocm { .. })
        && is_float
        && compute == DataType::F32
        && [k, v] == [dtype; 2]
        && !asks_for_more
        && key_heads == value_heads
        && [queries, keys].iter().all(|length| !avoids || length % TILE == 0)
        && [d, columns].into_iter().all(fits)
}

/// Whether the whole graph is an attention in one dispatch that IREE does not form by itself, because the mask is made of indices or of
/// elements as wide as scores.
pub(crate) fn is_one_dispatch(graph: &NormalGraph, target: &Target, quirks: Quirks) -> bool {
    let [node] = graph.nodes() else { return false };
    let Op::Sdpa(op) = &node.op else { return false };
    let tensors = [op.q, op.k, op.v, op.o].map(|id| graph.tensor(id));
    let [Some(q), Some(k), Some(v), Some(o)] = tensors else {
        return false;
    };
    let mask = op.attn_mask.and_then(|id| graph.tensor(id));
    let is_dense = [q, k, v, o].into_iter().chain(mask).all(|tensor| {
        matches!(Layout::of(&tensor.dims, &tensor.strides), Layout::Dense { order } if order.len() == tensor.dims.len())
    });
    let scale = op.scale.and_then(|id| graph.tensor(id));
    let has_constant_scale = scale.is_none_or(|scale| matches!(scale.kind, NormalKind::Constant(_)));
    let diagonal = super::told::scores_of!(op).diagonal();
    let is_bound = diagonal.left.is_some() || diagonal.right.is_some();
    let is_wide = mask.is_some_and(|mask| mask.dtype == DataType::F32);
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    is_dense
        && has_constant_scale
        && (is_bound || is_wide)
        && op.stats.is_none()
        && q.dims.get(HEAD) == k.dims.get(HEAD)
        && compute_type(node.compute).is_some_and(|compute| covers(target, quirks, compute, op, operands))
}

/// What is added to scores, in f32: the additive mask, and -∞ where bounds hide a key. It has all queries and keys, and batches and
/// heads if they differ. It is computed where the scores are.
fn mask<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    attention: &Attention<'c, 'b>,
) -> Result<Option<Ordered<'c, 'b>>, EmitError> {
    let Attention {
        mask, dims, diagonal, ..
    } = attention;
    if mask.is_none() && diagonal.left.is_none() && diagonal.right.is_none() {
        return Ok(None);
    }
    let differ = |axis: usize| {
        mask.as_ref().is_some_and(|mask| {
            let missing = dims.len().saturating_sub(mask.dims.len());
            let own = axis.checked_sub(missing).and_then(|axis| mask.dims.get(axis));
            own.is_some_and(|own| *own > 1)
        })
    };
    let order: Vec<usize> = [0, HEAD]
        .into_iter()
        .filter(|&axis| differ(axis))
        .chain([QUERY, KEY])
        .collect();
    let mut own = dims.clone();
    for axis in [0, HEAD] {
        if let (false, Some(dim)) = (order.contains(&axis), own.get_mut(axis)) {
            *dim = 1;
        }
    }
    let shape = Shape {
        dims: &own,
        order: &order,
        dtype: DataType::F32,
    };
    let operands: Vec<_> = mask.iter().collect();
    lowering
        .map(&operands, &shape, DataType::F32, |math, elements| {
            let Some(&element) = elements.first() else {
                return attention.hidden(math, math.constant(0.0)?, None);
            };
            let least = math.constant(LEAST)?;
            let is_low = math.compare(F::Less, element, least)?;
            let raised = math.select(is_low, least, element)?;
            let hides = math.compare(F::Equal, element, math.constant(f64::NEG_INFINITY)?)?;
            attention.hidden(math, math.select(hides, element, raised)?, None)
        })
        .map(Some)
}

/// The loops of the operation.
struct Iteration {
    /// Of all axes.
    extents: [i64; 7],
    /// The axis of each loop.
    loops: Vec<usize>,
}

/// Where a tensor lies among the loops.
struct Place {
    /// Its own extents, in memory order.
    whole: Vec<i64>,
    /// Axes of `fine` for each of its own, if some are two.
    split: Option<Vec<Vec<usize>>>,
    /// With one axis for each loop.
    fine: Vec<i64>,
    loops: Vec<usize>,
}

impl Iteration {
    fn new(attention: &Attention<'_, '_>) -> Result<Self, EmitError> {
        let Attention { q, k, v, dims, .. } = attention;
        let key_heads = extent(&k.dims, HEAD)?;
        let group = extent(dims, HEAD)?.checked_div(key_heads).ok_or(MISSING)?;
        let extents = [
            extent(dims, 0)?,
            key_heads,
            group,
            extent(dims, QUERY)?,
            extent(dims, KEY)?,
            extent(&v.dims, KEY)?,
            extent(&q.dims, KEY)?,
        ];
        let mut loops: Vec<usize> = (0..extents.len()).collect();
        loops.retain(|&axis| axis != GROUP || group > 1);
        Ok(Iteration { extents, loops })
    }

    /// The axes that the heads of q are.
    fn heads(&self) -> Vec<usize> {
        if self.loops.contains(&GROUP) {
            vec![HEAD_OF_KEYS, GROUP]
        } else {
            vec![HEAD_OF_KEYS]
        }
    }

    fn map(&self, loops: &[usize]) -> String {
        affine_map(
            self.loops.len(),
            &loops.iter().map(|&index| dim(index)).collect::<Vec<_>>(),
        )
    }

    /// The place of a tensor in this memory order, each of whose logical axes is these axes of the iteration.
    fn place(&self, order: &[usize], axes: &[Vec<usize>; 4]) -> Result<Place, EmitError> {
        let (mut whole, mut split, mut fine, mut loops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &axis in order {
            let first = fine.len();
            for axis in axes.get(axis).ok_or(MISSING)? {
                fine.push(extent(&self.extents, *axis)?);
                loops.push(self.loops.iter().position(|own| own == axis).ok_or(MISSING)?);
            }
            split.push((first..fine.len()).collect::<Vec<_>>());
            whole.push(fine.iter().skip(first).product());
        }
        Ok(Place {
            split: (fine.len() != whole.len()).then_some(split),
            whole,
            fine,
            loops,
        })
    }

    /// A tensor as an operand, with its index map.
    fn enter<'c, 'b>(
        &self,
        at: &Emitter<'c, 'b>,
        tensor: &Ordered<'c, 'b>,
        axes: &[Vec<usize>; 4],
    ) -> Result<(Ssa<'c, 'b>, String), EmitError> {
        let place = self.place(&tensor.order, axes)?;
        let ssa = match &place.split {
            Some(split) => reshape(at, "tensor.expand_shape", tensor.ssa, split, &place.fine, tensor.dtype)?,
            None => tensor.ssa,
        };
        Ok((ssa, self.map(&place.loops)))
    }
}

impl Place {
    /// A result with its own axes.
    fn leave<'c, 'b>(&self, at: &Emitter<'c, 'b>, ssa: Ssa<'c, 'b>) -> Result<Ssa<'c, 'b>, EmitError> {
        match &self.split {
            Some(split) => reshape(at, "tensor.collapse_shape", ssa, split, &self.whole, DataType::F32),
            None => Ok(ssa),
        }
    }
}
