//! The scores of attention, forward and backward: how they are computed from queries and keys, and
//! which keys a row sees.

use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::real::{Arithmetic, Real};
use crate::tensors::{Buffers, tensor_of};
use crate::walk::{Offsets, broadcast_strides, extents};
use rotini_graph::{DiagonalAlignment, Graph, Op, TensorId, TensorKind};
use std::ops::Range;

/// Builds [`Options`] from the struct of either operation, whose field names are the same.
macro_rules! options {
    ($op:ident) => {
        $crate::attention::scores::Options {
            q: $op.q,
            k: $op.k,
            v: $op.v,
            mask: $op.attn_mask,
            scale: $op.scale,
            scale_value: $op.attn_scale_value,
            alibi: $op.alibi_mask,
            padding: $op.padding_mask,
            seq_len_q: $op.seq_len_q,
            seq_len_kv: $op.seq_len_kv,
            causal: $op.causal_mask,
            causal_bottom_right: $op.causal_mask_bottom_right,
            left: $op.left_bound,
            right: $op.right_bound,
            alignment: $op.diagonal_alignment,
        }
    };
}
pub(super) use options;

/// The attributes and operands that determine the scores, common to forward and backward.
pub(super) struct Options {
    pub(super) q: TensorId,
    pub(super) k: TensorId,
    pub(super) v: TensorId,
    pub(super) mask: Option<TensorId>,
    pub(super) scale: Option<TensorId>,
    pub(super) scale_value: Option<f32>,
    pub(super) alibi: bool,
    pub(super) padding: bool,
    pub(super) seq_len_q: Option<TensorId>,
    pub(super) seq_len_kv: Option<TensorId>,
    pub(super) causal: bool,
    pub(super) causal_bottom_right: bool,
    pub(super) left: Option<i64>,
    pub(super) right: Option<i64>,
    pub(super) alignment: DiagonalAlignment,
}

#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) key_heads: usize,
    pub(super) value_heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) d: usize,
    pub(super) dv: usize,
}

/// The position of a row of scores.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) batch: usize,
    pub(super) head: usize,
    pub(super) query: usize,
}

impl Extents {
    pub(super) fn rows(self) -> impl Iterator<Item = Row> {
        let rows = 0..self.batch * self.heads * self.queries;
        rows.map(move |position| Row {
            batch: position / self.queries / self.heads,
            head: position / self.queries % self.heads,
            query: position % self.queries,
        })
    }

    /// Returns the number of the row among all rows of scores, which is also its row in q.
    pub(super) fn position(&self, row: Row) -> usize {
        (row.batch * self.heads + row.head) * self.queries + row.query
    }

    /// Returns the row of k that holds a key.
    pub(super) fn key(&self, row: Row, key: usize) -> usize {
        (row.batch * self.key_heads + row.head / (self.heads / self.key_heads)) * self.keys + key
    }

    /// Returns the row of v that holds a key's value.
    pub(super) fn value(&self, row: Row, key: usize) -> usize {
        (row.batch * self.value_heads + row.head / (self.heads / self.value_heads)) * self.keys + key
    }
}

/// The keys that each query sees by sequence lengths, causal masks and windows.
pub(crate) struct Sight {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// The numbers of valid queries and keys of each batch.
    lengths: Option<Vec<(usize, usize)>>,
    /// Maximum numbers of keys before and after the diagonal, and the offset that is added to a
    /// query's position to get its diagonal key.
    left: Option<i64>,
    right: Option<i64>,
    offset: i64,
}

impl Sight {
    /// Returns the visibility for queries and keys with these extents. Lengths are used with a
    /// padding mask only.
    fn new(op: &Options, [batch, heads, queries, keys]: [usize; 4], lengths: Option<Vec<(usize, usize)>>) -> Self {
        let bound = |bound: Option<i64>| bound.filter(|&bound| bound >= 0);
        let (left, right, alignment) = match (op.causal, op.causal_bottom_right) {
            (true, _) => (None, Some(0), DiagonalAlignment::TopLeft),
            (_, true) => (None, Some(0), DiagonalAlignment::BottomRight),
            _ => (bound(op.left), bound(op.right), op.alignment),
        };
        let is_bottom_right = alignment == DiagonalAlignment::BottomRight && (left.is_some() || right.is_some());
        let extent = |extent: usize| i64::try_from(extent).unwrap_or(i64::MAX);
        Sight {
            batch,
            heads,
            queries,
            keys,
            lengths,
            left,
            right,
            offset: if is_bottom_right {
                extent(keys) - extent(queries)
            } else {
                0
            },
        }
    }

    fn is_bottom_right(&self, op: &Options) -> bool {
        let is_asked = match (op.causal, op.causal_bottom_right) {
            (true, _) => false,
            (_, true) => true,
            _ => op.alignment == DiagonalAlignment::BottomRight,
        };
        is_asked && (self.left.is_some() || self.right.is_some())
    }

    /// Returns true if every query sees every key.
    pub(crate) fn is_full(&self) -> bool {
        self.lengths.is_none() && self.left.is_none() && self.right.is_none()
    }

    /// Returns the keys that lengths, causal masks and windows let a query see.
    pub(crate) fn keys_of(&self, batch: usize, query: usize) -> Range<usize> {
        let (queries, keys) = match &self.lengths {
            Some(lengths) => lengths.get(batch).copied().unwrap_or_default(),
            None => (self.queries, self.keys),
        };
        if query >= queries {
            return 0..0;
        }
        let diagonal = i64::try_from(query).unwrap_or(i64::MAX).saturating_add(self.offset);
        // A negative position is before the first key.
        let key = |position: i64| usize::try_from(position).unwrap_or(0);
        let first = self.left.map_or(0, |left| key(diagonal.saturating_sub(left)));
        let right = self
            .right
            .map(|right| key(diagonal.saturating_add(right).saturating_add(1)));
        let end = keys.min(self.keys).min(right.unwrap_or(usize::MAX));
        first.min(end)..end
    }

    /// Returns true if lengths, causal masks and windows let a query see a key.
    pub(crate) fn sees(&self, batch: usize, query: usize, key: usize) -> bool {
        self.keys_of(batch, query).contains(&key)
    }
}

/// Returns the keys that queries see in an attention, whose lengths are read from `buffers`; `None`
/// for other operations, for unsupported extents, and if the lengths are not in buffers.
pub(crate) fn sight(graph: &Graph, op: &Op, buffers: &Buffers) -> Result<Option<Sight>, ReferenceError> {
    let op = match op {
        Op::Sdpa(op) => options!(op),
        Op::SdpaBackward(op) => options!(op),
        _ => return Ok(None),
    };
    let [q, k] = [op.q, op.k].map(|id| extents(&tensor_of(graph, id)?.dims));
    let (&[batch, heads, queries, _], &[_, _, keys, _]) = (q?.as_slice(), k?.as_slice()) else {
        return Ok(None);
    };
    let lengths = |id: TensorId| {
        let tensor = tensor_of(graph, id)?;
        let bytes = buffers.get(&tensor.uid);
        let (Some(bytes), TensorKind::Buffer) = (bytes, tensor.kind) else {
            return Ok::<_, ReferenceError>(None);
        };
        let codec = Codec::of(tensor.dtype);
        let lengths = Offsets::of(tensor)?.filter_map(|offset| codec.load_at(bytes, offset));
        Ok(Some(lengths.map(|length| length.to_f64() as usize).collect::<Vec<_>>()))
    };
    let lengths = match (op.padding, op.seq_len_q, op.seq_len_kv) {
        (true, Some(q), Some(kv)) => match (lengths(q)?, lengths(kv)?) {
            (Some(q), Some(kv)) => Some(q.into_iter().zip(kv).collect()),
            _ => return Ok(None),
        },
        _ => None,
    };
    Ok(Some(Sight::new(&op, [batch, heads, queries, keys], lengths)))
}

pub(super) struct Attention {
    pub(super) arithmetic: Arithmetic,
    pub(super) extents: Extents,
    pub(super) q: Vec<Real>,
    pub(super) k: Vec<Real>,
    pub(super) v: Vec<Real>,
    pub(super) scale: Real,
    /// The additive mask, broadcast to one element per score.
    pub(super) mask: Option<Vec<Real>>,
    /// The boolean mask, broadcast to one element per score: true keeps the score.
    pub(super) stays: Option<Vec<bool>>,
    /// The ALiBi slope of each head.
    pub(super) slopes: Option<Vec<Real>>,
    pub(super) sight: Sight,
}

impl Attention {
    pub(super) fn new(context: &Context<'_>, op: &Options) -> Result<Self, ReferenceError> {
        let arithmetic = context.arithmetic()?;
        let [q, k, v] = [op.q, op.k, op.v].map(|id| context.dims(id));
        let (q, k, v) = (q?, k?, v?);
        let (&[batch, heads, queries, d], &[_, key_heads, keys, _], &[_, value_heads, _, dv]) =
            (q.as_slice(), k.as_slice(), v.as_slice())
        else {
            return Err(ReferenceError::not_validated(format!(
                "attention of {q:?}, {k:?}, {v:?}"
            )));
        };
        let fits = k == [batch, key_heads, keys, d] && v == [batch, value_heads, keys, dv];
        let divides = |part: usize| part > 0 && heads % part == 0;
        if !fits || !divides(key_heads) || !divides(value_heads) {
            return Err(ReferenceError::not_validated(format!(
                "attention of {q:?}, {k:?}, {v:?}"
            )));
        }
        let extents = Extents {
            batch,
            heads,
            key_heads,
            value_heads,
            queries,
            keys,
            d,
            dv,
        };
        let lengths = match (op.padding, op.seq_len_q, op.seq_len_kv) {
            (true, Some(q), Some(kv)) => {
                let (q, kv) = (lengths(context, q)?, lengths(context, kv)?);
                Some(q.into_iter().zip(kv).collect())
            }
            _ => None,
        };
        let sight = Sight::new(op, [batch, heads, queries, keys], lengths);
        let is_bottom_right = sight.is_bottom_right(op);
        if op.padding && is_bottom_right {
            // hipDNN has no reference that defines whether the diagonal ends at the ends of the
            // sequences or of the tensors.
            return Err(context.unsupported("a diagonal from the bottom right of padded sequences"));
        }
        if !op.padding && (op.seq_len_q.is_some() || op.seq_len_kv.is_some()) {
            return Err(context.unsupported("sequence lengths without a padding mask"));
        }
        if op.alibi && (sight.right != Some(0) || is_bottom_right) {
            // No source defines the sign of a distance to keys after the query.
            return Err(context.unsupported("ALiBi without a causal mask from the top left"));
        }
        let scale = match (op.scale, op.scale_value) {
            (Some(scale), _) => context.real(scale)?,
            (None, Some(value)) => Real::exactly(value.into()),
            // hipDNN's `PlanUtils.hpp` (foldSdpaScale) uses 1 in its newest version; older ones
            // divided by the root of D.
            (None, None) => Real::exactly(1.0),
        };
        let mask = op
            .mask
            .map(|id| broadcast(&context.reals(id)?, &context.dims(id)?, &[batch, heads, queries, keys]))
            .transpose()?;
        // True keeps a key, as in PyTorch, whose masks reach hipDNN unchanged.
        let is_truth = match op.mask {
            Some(id) => context.codec(id)? == Codec::Bool,
            None => false,
        };
        Ok(Attention {
            arithmetic,
            extents,
            q: factors(context, &arithmetic, op.q)?,
            k: factors(context, &arithmetic, op.k)?,
            v: context.reals(op.v)?,
            scale,
            mask: mask.clone().filter(|_| !is_truth),
            stays: mask
                .filter(|_| is_truth)
                .map(|mask| mask.iter().map(|real| real.value != 0.0).collect()),
            slopes: op.alibi.then(|| {
                slopes(heads)
                    .into_iter()
                    .map(|slope| arithmetic.blurred(Real::exactly(slope), 4.0))
                    .collect()
            }),
            sight,
        })
    }

    /// Returns the scores of a row, with the additive mask and biases applied; `None` for keys that
    /// the row does not see.
    pub(super) fn scores(&self, row: Row) -> Vec<Option<Real>> {
        (0..self.extents.keys)
            .map(|key| self.sees(row, key).then(|| self.score(row, key)))
            .collect()
    }

    fn score(&self, row: Row, key: usize) -> Real {
        let Attention {
            arithmetic, extents, ..
        } = self;
        let q = rows(&self.q, extents.d, extents.position(row));
        let k = rows(&self.k, extents.d, extents.key(row, key));
        // A kernel may apply the scale to q or k instead, which rounds each of their elements.
        let scaled: Vec<Real> = q.iter().map(|&q| arithmetic.mul(q, self.scale)).collect();
        let product = arithmetic.mul(arithmetic.dot(&q, &k), self.scale);
        let mut score = Real {
            value: product.value,
            error: product.error.max(arithmetic.dot(&scaled, &k).error),
        };
        if let Some(mask) = &self.mask {
            score = arithmetic.add(score, at(mask, extents.position(row) * extents.keys + key));
        }
        if let Some(slopes) = &self.slopes {
            let distance = Real::exactly(key as f64 - row.query as f64);
            score = arithmetic.add(score, arithmetic.mul(at(slopes, row.head), distance));
        }
        score
    }

    /// Returns true if a row sees a key. Elements of hidden keys are never read, so their values do
    /// not matter.
    pub(super) fn sees(&self, row: Row, key: usize) -> bool {
        let score = self.extents.position(row) * self.extents.keys + key;
        let is_masked = self.stays.as_ref().is_some_and(|stays| stays.get(score) != Some(&true));
        !is_masked && self.sight.sees(row.batch, row.query, key)
    }

    /// Returns a column of the values, with zeros for keys that the row does not see.
    pub(super) fn value_column(&self, row: Row, column: usize) -> Vec<Real> {
        (0..self.extents.keys)
            .map(|key| {
                let place = self.extents.value(row, key) * self.extents.dv + column;
                if self.sees(row, key) {
                    at(&self.v, place)
                } else {
                    Real::default()
                }
            })
            .collect()
    }
}

/// Returns the slopes of attention with linear biases by Press, Smith and Lewis (2022), section 3
/// and its released code: for n heads, n a power of two, 2^(-8 / n) to the powers 1 to n; for other
/// numbers of heads the slopes of the power of two below, followed by every second slope of the
/// power of two above. hipDNN has no reference for ALiBi.
fn slopes(heads: usize) -> Vec<f64> {
    let below = if heads.is_power_of_two() {
        heads
    } else {
        heads.next_power_of_two() / 2
    };
    let slope = |n: usize, power: usize| (-8.0 / n as f64 * power as f64).exp2();
    let first = (1..=below).map(|power| slope(below, power));
    first
        .chain((1..).step_by(2).map(|power| slope(2 * below, power)))
        .take(heads)
        .collect()
}

/// Returns the elements of q or k, which a kernel may round to the tensor's 16-bit type.
fn factors(context: &Context<'_>, arithmetic: &Arithmetic, id: TensorId) -> Result<Vec<Real>, ReferenceError> {
    let (reals, narrow) = (context.reals(id)?, context.narrow(id)?);
    Ok(match narrow {
        Some(codec) => reals.into_iter().map(|real| arithmetic.narrowed(real, codec)).collect(),
        None => reals,
    })
}

/// Returns the sequence lengths; negative ones count as 0.
fn lengths(context: &Context<'_>, id: TensorId) -> Result<Vec<usize>, ReferenceError> {
    let lengths = context.reals(id)?;
    Ok(lengths.iter().map(|length| length.value as usize).collect())
}

/// Returns the elements of a packed tensor broadcast to larger dims.
fn broadcast(elements: &[Real], from: &[usize], to: &[usize]) -> Result<Vec<Real>, ReferenceError> {
    let offsets = Offsets::new(to, &broadcast_strides(from, to)?);
    Ok(offsets.map(|offset| at(elements, offset)).collect())
}

/// Returns a row of a matrix.
pub(super) fn rows(elements: &[Real], columns: usize, row: usize) -> Vec<Real> {
    elements.iter().skip(row * columns).take(columns).copied().collect()
}

pub(super) fn at(elements: &[Real], position: usize) -> Real {
    elements.get(position).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_of_linear_biases() {
        assert_eq!(
            slopes(8),
            [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015_625, 0.007_812_5, 0.003_906_25]
        );
        let root = 0.5_f64.sqrt();
        let twelve = slopes(12);
        assert_eq!(twelve[..8], slopes(8)[..]);
        for (slope, power) in twelve[8..].iter().zip([1, 3, 5, 7]) {
            assert!((slope - root.powi(power)).abs() < 1e-15, "{slope}");
        }
        assert_eq!(slopes(1), [0.003_906_25]);
    }
}
