//! Attention by kernels of our own: of [few queries](Decode), where the keys are cut into parts, and of [many](Prefill).

use super::flash;
use super::scores::Attention;
use super::softmax::{Softmax, Weighted};
use super::told::{HEAD, KEY, QUERY};
use crate::EmitError;
use crate::contract::half;
use crate::ir::MISSING;
use crate::kernel::{Attended, Decode, Operand, Prefill, RowStrides, Visible};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::value::{Data, Ordered, Value, extent, extents};
use rotini_graph::{DataType, Sdpa};
use rotini_schedule::attention;

/// Softmax and weighted sum; `None` where there is no kernel for such types and columns, more is asked for, or scores in memory are faster.
pub(super) fn softmax<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    attention: &Attention<'c, 'b>,
    op: &Sdpa,
) -> Result<Option<Softmax<'c, 'b>>, EmitError> {
    let (Data::Constant(scale), Some(machine)) = (&attention.scale.data, lowering.target().machine()) else {
        return Ok(None);
    };
    let Attention { q, k, v, dims, .. } = attention;
    let asks_for_more = op.alibi_mask || op.sink_token.is_some() || op.max.is_some() || op.sum_exp.is_some();
    let is_half = q.dtype == k.dtype && half([k.dtype, v.dtype], attention.compute).is_some();
    if asks_for_more || attention.mask.is_some() || !is_half || extent(&v.dims, HEAD)? != extent(&k.dims, HEAD)? {
        return Ok(None);
    }
    let [batch, queries, keys] = [0, QUERY, KEY].map(|axis| extent(dims, axis));
    let (batch, queries, keys, heads) = (batch?, queries?, keys?, extent(&k.dims, HEAD)?);
    let out = lowering.tensor(op.o)?;
    let carried = if lowering.is_read(op.o) {
        lowering.carried_type(op.o, DataType::F32)?
    } else {
        out.dtype
    };
    let dtype = match carried {
        DataType::F16 | DataType::Bf16 => carried,
        _ => DataType::F32,
    };
    let order = match lowering.stored_order(op.o) {
        Some(order) if order.last() == Some(&KEY) => order,
        _ => vec![0, HEAD, QUERY, KEY],
    };
    let operands = [operand(q), operand(k), operand(v)];
    let ([Some(of_q), Some(of_k), Some(of_v)], Some(strides)) = (operands, strides(&out.dims, &order)) else {
        return Ok(None);
    };
    let lengths = match &attention.lengths {
        None => None,
        Some([queries, keys]) => match (
            number_of_each(lowering, queries, batch)?,
            number_of_each(lowering, keys, batch)?,
        ) {
            (Some(queries), Some(keys)) => Some([queries, keys]),
            _ => return Ok(None),
        },
    };
    let visible = Visible::new(attention.visible()?, lengths, [queries, keys]);
    let group = extent(dims, HEAD)?.checked_div(heads).ok_or(MISSING)?;
    let of = Attended {
        q: of_q,
        k: of_k,
        v: of_v,
        dtype: q.dtype,
        batch,
        heads,
        group,
        queries,
        columns: [extent(&q.dims, KEY)?, extent(&v.dims, KEY)?],
        visible,
        scale: scale.to_f64(),
        out: (dtype, strides),
    };
    let count = |number: i64| u64::try_from(number).map_err(|_| MISSING);
    let of_keys = count(batch.saturating_mul(heads))?;
    let [parts, each] = attention::parts(machine, of_keys, count(of.visible.count())?);
    let decode = Decode {
        parts: i64::try_from(parts).map_err(|_| MISSING)?,
        each: i64::try_from(each).map_err(|_| MISSING)?,
        of: of.clone(),
    };
    let of_q = of_keys.saturating_mul(count(group)?);
    let schedule = attention::prefill(machine, of_q, count(queries)?);
    let lengths = [count(queries)?, count(of.visible.count())?];
    let seen = count(of.visible.seen_by(schedule.rows().cast_signed()))?;
    // The compiler's own form goes over the keys as this one does.
    let is_slower =
        schedule.is_slower_than_steps(machine, of_q, lengths, seen) && !flash::is_possible(lowering, attention, op);
    let prefill = Prefill { schedule, of };
    let rows = attention.rows();
    let row_order = vec![0, HEAD, QUERY];
    let (out_shape, row_shape) = (extents(&out.dims, &order)?, extents(&rows, &row_order)?);
    let shapes: [&[i64]; 2] = [&out_shape, &row_shape];
    let [o, greatest, total] = if decode.is_possible() {
        lowering.decode(&decode, shapes)?
    } else if prefill.is_possible() && !is_slower {
        lowering.prefill(&prefill, shapes)?
    } else {
        return Ok(None);
    };
    let ordered = |ssa: Ssa<'c, 'b>, order: Vec<usize>, dtype, dims: &[i64]| Ordered {
        ssa,
        order,
        dtype,
        dims: dims.to_vec(),
    };
    let mut quotient = ordered(o, order, dtype, &out.dims);
    if lowering.is_read(op.o) {
        quotient = lowering.carry(quotient, carried)?;
    }
    let [greatest, total] =
        [greatest, total].map(|ssa| Value::of(ordered(ssa, row_order.clone(), DataType::F32, &rows)));
    Softmax::of_online(lowering, Weighted::Quotient(Value::of(quotient)), &greatest, total).map(Some)
}

/// The number of a value with a number of 32 bits for each batch, if it is one.
fn number_of_each(
    lowering: &Lowering<'_, '_, '_>,
    value: &Value<'_, '_>,
    batch: i64,
) -> Result<Option<usize>, EmitError> {
    let is_one_for_each = value.dims.first() == Some(&batch) && value.dims.iter().skip(1).all(|&dim| dim == 1);
    if !is_one_for_each || value.dtype != DataType::I32 || !matches!(value.data, Data::Tensor { .. }) {
        return Ok(None);
    }
    // One number may be repeated for all batches.
    Ok(Some(value.materialise(&lowering.emitter())?.ssa.id()))
}

/// Where a tensor's elements are; `None` if its columns do not lie side by side, or there are too many.
fn operand(tensor: &Ordered<'_, '_>) -> Option<Operand> {
    let elements = tensor
        .dims
        .iter()
        .try_fold(1_i64, |elements, &dim| elements.checked_mul(dim))?;
    strides(&tensor.dims, &tensor.order).map(|strides| Operand {
        tensor: tensor.ssa.id(),
        strides,
        elements,
    })
}

/// How far apart batches, heads and rows are in this memory order; `None` if columns do not lie side by side, or there are too many.
fn strides(dims: &[i64], order: &[usize]) -> Option<RowStrides> {
    let mut strides = [0; 4];
    let mut stride: i64 = 1;
    for &axis in order.iter().rev() {
        *strides.get_mut(axis)? = stride;
        stride = stride.checked_mul(*dims.get(axis)?)?;
    }
    let [batch, head, row, column] = strides;
    (column == 1).then_some(RowStrides { batch, head, row })
}
