//! Attention by single kernels: for [few queries](Decode), where the keys are split among
//! workgroups, for [many queries](Prefill), and on [CPUs](OnCpu).

use super::axes::{HEAD, KEY, QUERY};
use super::flash;
use super::scores::Attention;
use super::softmax::{Softmax, Weighted};
use crate::contract::are_halves;
use crate::counts::exactly;
use crate::ir::MISSING;
use crate::kernel::{Attended, Attention as Kernel, Decode, Mask, OnCpu, Operand, Prefill, RowStrides, Visible};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::value::{Data, Ordered, Value, extent, extents};
use rotini_graph::{DataType, Sdpa, TensorId};
use rotini_schedule::attention;

/// Returns the softmax and the weighted sum; `None` if no kernel has these types and columns, an
/// attribute is not supported, or scores in memory are faster.
pub(super) fn softmax<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>, op: &Sdpa) -> Option<Softmax<'c>> {
    if lowering.target().is_cpu() {
        return on_cpu(lowering, attention, op);
    }
    // The statistic of a row may be the score of a key whose mask was raised, and would be wrong.
    let is_raised = |mask: &Value<'_>| op.stats.is_some() && mask.dtype != DataType::F16;
    let asks_for_more = op.sink_token.is_some() || op.max.is_some() || op.sum_exp.is_some();
    if asks_for_more || attention.mask.as_ref().is_some_and(is_raised) {
        return None;
    }
    let machine = lowering.target().machine().filter(|_| has_halves(attention))?;
    let out = Stored::of(lowering, op.o);
    let of = problem(lowering, attention, &out)?;
    let of_keys = count(of.batch.saturating_mul(of.heads));
    let [parts, each] = attention::parts(machine, of_keys, count(of.visible.count()));
    let decode = Decode {
        parts: parts.cast_signed(),
        each: each.cast_signed(),
        of: of.clone(),
    };
    let of_q = of_keys.saturating_mul(count(of.group));
    let schedule = attention::prefill(machine, of_q, count(of.queries));
    let rows = of_q.saturating_mul(count(of.queries));
    let scores = rows.saturating_mul(count(of.visible.count()));
    let seen = count(of.visible.seen_by(schedule.rows().cast_signed()));
    let time = schedule.time(machine, [of_q, count(of.queries)], [seen, 1]);
    // IREE's `online_attention` traverses the keys in the same way, so it would be no faster.
    let is_slower = time > attention::time_of_scores(scores) && !flash::is_possible(lowering, attention, op);
    let prefill = Prefill { schedule, of };
    let kernel = if decode.is_possible() {
        Kernel::Decode(&decode)
    } else if prefill.is_possible() && !is_slower {
        Kernel::Prefill(&prefill)
    } else {
        return None;
    };
    let [quotient, greatest, total] = made(lowering, attention, (kernel, &out), op);
    Some(Softmax::of_online(
        lowering,
        Weighted::Quotient(quotient),
        &greatest,
        total,
    ))
}

/// Returns the softmax and the weighted sum by a kernel for CPUs.
fn on_cpu<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>, op: &Sdpa) -> Option<Softmax<'c>> {
    let mut out = Stored::of(lowering, op.o);
    let registers = lowering.target().registers()?;
    if op.sink_token.is_some() || !is_for_cpus(attention) {
        return None;
    }
    let dtype = DataType::F32;
    out.dtype = dtype;
    let possible = |attention: &Attention<'c>| {
        let kernel = problem(lowering, attention, &out).map(|of| OnCpu::new(Attended { dtype, ..of }, registers));
        kernel.filter(OnCpu::is_possible)
    };
    possible(attention)?;
    if !lowering.chooser().takes_kernel("attention", true) {
        return None;
    }
    let attention = &converted(lowering, attention);
    let Some(kernel) = possible(attention) else {
        unreachable!("{MISSING}");
    };
    let made = made(lowering, attention, (Kernel::OnCpu(&kernel), &out), op);
    let [quotient, greatest, total] = made;
    // No replacement of -∞ by 0 in `reference` is needed: the statistic of a query that sees no key
    // is -∞ either way.
    Some(Softmax {
        weighted: Weighted::Quotient(quotient),
        reference: greatest.clone(),
        greatest,
        total,
    })
}

/// Appends the kernel and returns its outputs: the quotient, the greatest scores and the sums of
/// exponentials.
fn made<'c>(
    lowering: &Lowering<'_, 'c>,
    attention: &Attention<'c>,
    (kernel, out): (Kernel<'_>, &Stored),
    op: &Sdpa,
) -> [Value<'c>; 3] {
    let rows = attention.rows();
    let order = vec![0, HEAD, QUERY];
    let shape = extents(&rows, &order);
    let made = lowering.attention(kernel, &[&out.shape(), &shape, &shape]);
    let [o, greatest, total] = exactly(&made);
    let mut quotient = out.ordered(o);
    if lowering.is_read(op.o) {
        quotient = lowering.carry(quotient, out.carried);
    }
    let [greatest, total] =
        [greatest, total].map(|ssa| Value::of(Ordered::new(ssa, order.clone(), DataType::F32, rows.clone())));
    [Value::of(quotient), greatest, total]
}

/// Returns true if kernels for CPUs compute in this attention's compute type, and all operands have
/// that type or a 16-bit float type, which is converted.
pub(super) fn is_for_cpus(attention: &Attention<'_>) -> bool {
    let operands = [&attention.q, &attention.k, &attention.v];
    attention.compute == DataType::F32 && operands.into_iter().all(|tensor| is_float(tensor.dtype))
}

/// Returns true for f32, and for 16-bit float types, which are converted to it.
pub(super) const fn is_float(dtype: DataType) -> bool {
    matches!(dtype, DataType::F32 | DataType::F16 | DataType::Bf16)
}

/// Returns the same attention with its operands converted to f32.
pub(super) fn converted<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>) -> Attention<'c> {
    let converted = |tensor: &Ordered<'c>| lowering.converted(tensor.clone(), DataType::F32);
    Attention {
        q: converted(&attention.q),
        k: converted(&attention.k),
        v: converted(&attention.v),
        ..attention.clone()
    }
}

/// Returns true if all operands have the 16-bit float type that kernels for AMD GPUs multiply.
pub(super) fn has_halves(attention: &Attention<'_>) -> bool {
    let [q, k, v] = [&attention.q, &attention.k, &attention.v].map(|tensor| tensor.dtype);
    q == k && are_halves([k, v], attention.compute)
}

/// Describes the attention for rotini's kernels, with the output in the layout of `out`. `None` if
/// no kernel supports it.
pub(super) fn problem<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>, out: &Stored) -> Option<Attended> {
    let Attention { q, k, v, dims, .. } = attention;
    let Data::Constant(scale) = &attention.scale.data else {
        return None;
    };
    let has_one_count = extent(&v.dims, HEAD) == extent(&k.dims, HEAD);
    if attention.alibi || !has_one_count {
        return None;
    }
    let [batch, queries, keys] = [0, QUERY, KEY].map(|axis| extent(dims, axis));
    let heads = extent(&k.dims, HEAD);
    let (of_q, of_k, of_v) = (operand(q)?, operand(k)?, operand(v)?);
    let strides = out.strides()?;
    let lengths = match &attention.lengths {
        None => None,
        Some([queries, keys]) => match (
            number_of_each(lowering, queries, batch),
            number_of_each(lowering, keys, batch),
        ) {
            (Some(queries), Some(keys)) => Some([queries, keys]),
            _ => return None,
        },
    };
    let mask = match &attention.mask {
        None => None,
        Some(value) => Some(mask(lowering, value)?),
    };
    Some(Attended {
        q: of_q,
        k: of_k,
        v: of_v,
        dtype: q.dtype,
        batch,
        heads,
        group: extent(dims, HEAD).checked_div(heads).expect(MISSING),
        queries,
        columns: [extent(&q.dims, KEY), extent(&v.dims, KEY)],
        visible: Visible::new(attention.visible(), lengths, [queries, keys]),
        mask,
        scale: scale.to_f64(),
        out: (out.dtype, strides),
    })
}

pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_else(|_| unreachable!("{number} is no count"))
}

/// The layout and type in which a kernel stores a tensor.
pub(super) struct Stored {
    dims: Vec<i64>,
    pub(super) dtype: DataType,
    order: Vec<usize>,
    /// The type in which other operations read it, if any do.
    pub(super) carried: DataType,
}

impl Stored {
    pub(super) fn of(lowering: &Lowering<'_, '_>, id: TensorId) -> Self {
        let tensor = lowering.tensor(id);
        let carried = if lowering.is_read(id) {
            lowering.carried_type(id, DataType::F32)
        } else {
            tensor.dtype
        };
        Stored {
            dims: tensor.dims.clone(),
            dtype: match carried {
                DataType::F16 | DataType::Bf16 => carried,
                _ => DataType::F32,
            },
            order: match lowering.stored_order(id) {
                Some(order) if order.last() == Some(&KEY) => order,
                _ => vec![0, HEAD, QUERY, KEY],
            },
            carried,
        }
    }

    pub(super) fn strides(&self) -> Option<RowStrides> {
        strides(&self.dims, &self.order)
    }

    /// Returns the physical shape.
    pub(super) fn shape(&self) -> Vec<i64> {
        extents(&self.dims, &self.order)
    }

    pub(super) fn ordered<'c>(&self, ssa: Ssa<'c>) -> Ordered<'c> {
        Ordered::new(ssa, self.order.clone(), self.dtype, self.dims.clone())
    }
}

/// Returns the id of a value that is a tensor with one i32 per batch; `None` for any other value.
fn number_of_each(lowering: &Lowering<'_, '_>, value: &Value<'_>, batch: i64) -> Option<usize> {
    let is_one_for_each = value.dims.first() == Some(&batch) && value.dims.iter().skip(1).all(|&dim| dim == 1);
    if !is_one_for_each || value.dtype != DataType::I32 || !matches!(value.data, Data::Tensor { .. }) {
        return None;
    }
    // The same number may be broadcast to all batches in memory.
    Some(value.materialise(&lowering.emitter()).ssa.id())
}

/// Returns the mask that is added to scores; `None` if it is not in memory, or its number of
/// elements overflows.
fn mask(lowering: &Lowering<'_, '_>, value: &Value<'_>) -> Option<Mask> {
    if !matches!(value.data, Data::Tensor { .. }) {
        return None;
    }
    let tensor = value.materialise(&lowering.emitter());
    // The mask's axes are the last axes of the scores.
    let missing = 4_usize.saturating_sub(tensor.dims.len());
    let (mut strides, mut stride) = ([0; 4], 1_i64);
    for &axis in tensor.order.iter().rev() {
        let dim = extent(&tensor.dims, axis);
        if dim != 1 {
            *strides.get_mut(axis + missing).expect(MISSING) = stride;
        }
        let next = stride.checked_mul(dim)?;
        stride = next;
    }
    // Neighbouring keys must be contiguous, or share one element.
    if strides[3] > 1 {
        return None;
    }
    Some(Mask {
        tensor: tensor.ssa.id(),
        dtype: tensor.dtype,
        strides,
        elements: stride,
    })
}

/// Returns the description of a tensor in memory; `None` if its columns are not contiguous, or its
/// number of elements overflows.
pub(super) fn operand(tensor: &Ordered<'_>) -> Option<Operand> {
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

/// Returns the strides of batches, heads and rows in this memory order; `None` if columns are not
/// contiguous, or the number of elements overflows.
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
