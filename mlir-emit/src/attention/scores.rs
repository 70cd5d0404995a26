//! Operands, masks and scores, computed in the same way in both directions.

use super::axes::{Diagonal, HEAD, KEY, QUERY};
use crate::contract::{contract, repeated};
use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::{Combiner, Shape};
use crate::value::{Data, Ordered, Value, extent};
use rotini_graph::{AttentionScores, DataType, Scalar as Constant, TensorId};

/// The operands of forward or backward attention.
#[derive(Clone)]
pub(super) struct Attention<'c> {
    pub(super) q: Ordered<'c>,
    /// Has as many heads as k; not repeated for each head of q.
    pub(super) k: Ordered<'c>,
    /// Has as many heads as v; not repeated for each head of q.
    pub(super) v: Ordered<'c>,
    /// The extents of the scores: batches, heads of q, queries, keys.
    pub(super) dims: Vec<i64>,
    pub(super) scale: Value<'c>,
    pub(super) mask: Option<Value<'c>>,
    pub(super) lengths: Option<[Value<'c>; 2]>,
    pub(super) alibi: bool,
    pub(super) diagonal: Diagonal,
    pub(super) compute: DataType,
}

impl<'c> Attention<'c> {
    pub(super) fn new(lowering: &Lowering<'_, 'c>, op: &AttentionScores, compute: DataType) -> Self {
        let [q, k] = lowering.factors([op.q, op.k], compute);
        let v = lowering.settled(op.v);
        let (&[batch, heads, queries, _], &[_, _, keys, _]) = (q.dims.as_slice(), k.dims.as_slice()) else {
            unreachable!("an attention that is not of rank 4");
        };
        let constant = |value: f64| Value {
            data: Data::Constant(Constant::float(value)),
            dtype: compute,
            dims: vec![1],
        };
        let value = |id: TensorId| lowering.value(id).clone();
        Attention {
            q,
            k,
            v,
            dims: vec![batch, heads, queries, keys],
            scale: match (op.scale, op.attn_scale_value) {
                (Some(scale), _) => value(scale).with_dims(&lowering.emitter(), &[1]),
                // Without either, the scale is 1 in the newest hipDNN (`PlanUtils.hpp`); older
                // versions divided by the root of D.
                (None, factor) => constant(factor.map_or(1.0, f64::from)),
            },
            mask: op.attn_mask.map(|mask| added(lowering, value(mask))),
            lengths: match (op.padding_mask, [op.seq_len_q, op.seq_len_kv]) {
                (true, [Some(queries), Some(keys)]) => Some([value(queries), value(keys)]),
                _ => None,
            },
            alibi: op.alibi_mask,
            diagonal: Diagonal::of(op),
            compute,
        }
    }

    /// The extents of a tensor with one element for each row of scores.
    pub(super) fn rows(&self) -> Vec<i64> {
        let mut dims = self.dims.clone();
        dims.truncate(KEY);
        dims.push(1);
        dims
    }

    pub(super) fn shape(&self) -> Shape<'_> {
        Shape::new(&self.dims, &[0, 1, QUERY, KEY], self.compute)
    }

    /// Repeats keys or values so that there is one head for each head of q.
    pub(super) fn for_each_head(&self, lowering: &Lowering<'_, 'c>, tensor: &Ordered<'c>) -> Ordered<'c> {
        let mut dims = tensor.dims.clone();
        dims[HEAD] = extent(&self.dims, HEAD);
        repeated(lowering, tensor.clone(), &dims, QUERY)
    }

    /// Returns the scores, with -∞ where a key is hidden.
    pub(super) fn scores(&self, lowering: &Lowering<'_, 'c>) -> Ordered<'c> {
        let product = Value::of(contract(
            lowering,
            &self.q,
            &transposed(&self.for_each_head(lowering, &self.k)),
            &self.dims,
            &[0, 1, QUERY, KEY],
            self.compute,
        ));
        let mut operands = vec![&product, &self.scale];
        operands.extend(&self.mask);
        operands.extend(self.lengths.iter().flatten());
        lowering.map(&operands, &self.shape(), self.compute, |math, elements| {
            let (&[product, scale], rest) = elements.split_first_chunk().expect(MISSING);
            let mut rest = rest.iter().copied();
            let mut score = product * scale;
            if self.mask.is_some() || self.alibi {
                score = math.at.complete(score);
            }
            if self.mask.is_some() {
                score = score + rest.next().expect(MISSING);
            }
            let mut length = || rest.next().expect(MISSING);
            let lengths = self.lengths.as_ref().map(|_| [length(), length()]);
            if self.alibi {
                score = score + self.bias(math);
            }
            self.hidden(math, score, lengths)
        })
    }

    /// Returns the element type in which probabilities, or other values computed from the scores,
    /// are multiplied with these tensors, whose operand type is `factor`. If rotini's kernels do
    /// the multiplication, it is `factor`, as matrix instructions require; else the compute type.
    pub(super) fn multiplied(&self, lowering: &Lowering<'_, 'c>, tensors: &[TensorId], factor: DataType) -> DataType {
        let is_half = matches!(factor, DataType::F16 | DataType::Bf16);
        let mut is_own = is_half && self.compute == DataType::F32 && lowering.target().machine().is_some();
        for &id in tensors {
            is_own &= lowering.tensor(id).dtype == factor;
        }
        if is_own { factor } else { self.compute }
    }

    /// Returns true if the bounds may hide a key. With bottom-right alignment, a right bound hides
    /// nothing from a single query.
    pub(super) fn hides_keys(&self) -> bool {
        let Diagonal {
            left,
            right,
            is_bottom_right,
        } = self.diagonal;
        let is_last = is_bottom_right && self.dims.get(QUERY) == Some(&1);
        left.is_some() || right.is_some() && !is_last
    }

    /// Returns the first and the last key that a query sees, both relative to the query's index.
    pub(super) fn visible(&self) -> [Option<i64>; 2] {
        let offset = self.offset();
        let Diagonal { left, right, .. } = self.diagonal;
        [
            left.map(|left| offset.saturating_sub(left)),
            right.map(|right| offset.saturating_add(right)),
        ]
    }

    /// Returns the offset from a query's index to the key on its diagonal.
    pub(super) fn offset(&self) -> i64 {
        if self.diagonal.is_bottom_right {
            extent(&self.dims, KEY) - extent(&self.dims, QUERY)
        } else {
            0
        }
    }

    /// Returns the ALiBi bias: a slope per head times the distance of key and query. The slopes are
    /// powers of the first one, 2^(-8/H), where H is the largest power of two that is not above the
    /// number of heads; the remaining heads take every other slope of 2H heads.
    fn bias(&self, math: &Math<'c>) -> Scalar<'c> {
        let heads = extent(&self.dims, HEAD).max(1);
        // The largest power of two that is not above `heads`: its exponent is 63 less the leading
        // zeros.
        let regular = 1_i64 << (63 - heads.leading_zeros());
        let head = math.index(HEAD);
        let slope = |first: f64, step: f64, offset: f64| -> Scalar<'c> {
            let exponent = math.scale(step, head) + math.constant(first + offset);
            exponent.exp2()
        };
        let step = -8.0 / regular as f64;
        let among = slope(step, step, 0.0);
        let slope = if regular == heads {
            among
        } else {
            // The first, third, … slope of twice as many heads.
            let beyond = slope(step / 2.0, step, -step * regular as f64);
            let is_regular = math.compare(F::Less, head, math.constant(regular as f64));
            is_regular.select(among, beyond)
        };
        let distance = math.index(KEY) - math.index(QUERY);
        slope * distance
    }

    /// Returns a score, or -∞ if the diagonal or the sequence lengths hide it.
    pub(super) fn hidden(&self, math: &Math<'c>, score: Ssa<'c>, lengths: Option<[Ssa<'c>; 2]>) -> Scalar<'c> {
        self.hidden_as(math, (score, f64::NEG_INFINITY), lengths)
    }

    /// Returns a value derived from a score, or `nothing` if the diagonal or the sequence lengths
    /// hide the score.
    pub(super) fn hidden_as(
        &self,
        math: &Math<'c>,
        (mut score, nothing): (Ssa<'c>, f64),
        lengths: Option<[Ssa<'c>; 2]>,
    ) -> Scalar<'c> {
        if !self.hides_keys() && lengths.is_none() {
            return score;
        }
        let nothing = math.constant(nothing);
        let (query, key) = (math.index(QUERY), math.index(KEY));
        let mut hide = |condition: Ssa<'c>| {
            score = condition.select(nothing, score);
        };
        let offset = self.offset();
        let beyond = key - query - math.constant(offset as f64);
        if let Some(right) = self.diagonal.right {
            hide(math.compare(F::Greater, beyond, math.constant(right as f64)));
        }
        if let Some(left) = self.diagonal.left {
            hide(math.compare(F::Less, beyond, math.constant(-(left as f64))));
        }
        if let Some([queries, keys]) = lengths {
            hide(math.compare(F::GreaterEqual, query, queries));
            hide(math.compare(F::GreaterEqual, key, keys));
        }
        score
    }
}

/// Returns the additive form of a mask. A boolean mask becomes 0 where a key is visible and -∞
/// where it is hidden, computed in a separate dispatch, in a type that the target's kernels read.
fn added<'c>(lowering: &Lowering<'_, 'c>, mask: Value<'c>) -> Value<'c> {
    if mask.dtype != DataType::Bool {
        return mask;
    }
    let dtype = if lowering.target().is_cpu() {
        DataType::F32
    } else {
        DataType::F16
    };
    if let Data::Constant(scalar) = &mask.data {
        let added = if scalar.to_f64() == 0.0 { f64::NEG_INFINITY } else { 0.0 };
        return Value {
            data: Data::Constant(Constant::float(added)),
            dtype,
            dims: mask.dims,
        };
    }
    let (order, mut dims) = (mask.order().to_vec(), mask.dims.clone());
    let shape = Shape::new(&dims, &order, dtype);
    let made = lowering.map(&[&mask], &shape, DataType::F32, |math, elements| {
        let hides = math.compare(F::Equal, only(elements), math.constant(0.0));
        hides.select(math.constant(f64::NEG_INFINITY), math.constant(0.0))
    });
    let ssa = lowering.emitter().barrier(made.ssa);
    // The additive mask keeps only the axes that vary in memory; repeated axes get extent 1 and are
    // broadcast.
    for (axis, dim) in dims.iter_mut().enumerate() {
        if !order.contains(&axis) {
            *dim = 1;
        }
    }
    Value::of(Ordered::new(ssa, order, dtype, dims))
}

/// Returns D of the backward direction: for each query, the sum over columns of dO · O.
pub(super) fn level<'c>(
    lowering: &Lowering<'_, 'c>,
    (d_o, o): (&Value<'c>, TensorId),
    order: &[usize],
    compute: DataType,
) -> Value<'c> {
    let rows = Shape::new(&d_o.dims, order, compute);
    let o = lowering.value(o).clone();
    lowering.reduce(&[d_o, &o], &rows, &[KEY], (Combiner::Sum, 0.0), |_, elements| {
        let [d_o, o] = exactly(elements);
        d_o * o
    })
}

/// Returns the matrices with rows and columns swapped, without a copy.
pub(super) fn transposed<'c>(tensor: &Ordered<'c>) -> Ordered<'c> {
    let swapped = |axis: &usize| match *axis {
        QUERY => KEY,
        KEY => QUERY,
        other => other,
    };
    let mut dims = tensor.dims.clone();
    if dims.len() > KEY {
        dims.swap(QUERY, KEY);
    }
    Ordered::new(
        tensor.ssa,
        tensor.order.iter().map(swapped).collect(),
        tensor.dtype,
        dims,
    )
}
