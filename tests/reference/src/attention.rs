//! Scaled dot-product attention, forward and backward, one row of scores after the other.
//!
//! Where nothing else is said, hipDNN's reference (`CpuFpReferenceSdpa.hpp`) says what is computed.

use crate::ReferenceError;
use crate::element::Codec;
use crate::evaluate::Context;
use crate::real::{Arithmetic, Real};
use crate::value::Value;
use crate::walk::{Offsets, broadcast_strides};
use rotini_graph::{DiagonalAlignment, Sdpa, SdpaBackward, TensorId};

/// The options of either operation, whose structs share the names of fields.
macro_rules! options {
    ($op:ident) => {
        Options {
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

type Results = Result<Vec<(TensorId, Value)>, ReferenceError>;

/// o = softmax(scale q k^T + mask) v; a row without any visible key is zeros, and its statistic -infinity.
pub(crate) fn sdpa(context: &Context<'_>, op: &Sdpa) -> Results {
    let elsewhere = [
        (
            "dropout",
            op.dropout_probability.is_some_and(|probability| probability != 0.0),
        ),
        (
            "dropout",
            [op.seed, op.offset, op.dropout_mask].iter().any(Option::is_some),
        ),
        ("dropout", [op.dropout_scale, op.rng_dump].iter().any(Option::is_some)),
        (
            "paged keys and values",
            op.page_table_k.is_some() || op.page_table_v.is_some(),
        ),
        ("paged keys and values", op.max_seq_len_kv.is_some()),
        ("a block mask", op.block_mask.is_some()),
        (
            "scales of 8-bit floats",
            [op.descale_q, op.descale_k, op.descale_v].iter().any(Option::is_some),
        ),
        (
            "scales of 8-bit floats",
            [op.descale_s, op.scale_s, op.scale_o].iter().any(Option::is_some),
        ),
        (
            "scales of 8-bit floats",
            [op.amax_s, op.amax_o].iter().any(Option::is_some),
        ),
        (
            "the maximum and the sum beside a sink token",
            op.sink_token.is_some() && (op.max.is_some() || op.sum_exp.is_some()),
        ),
    ];
    if let Some((what, _)) = elsewhere.iter().find(|(_, is_asked)| *is_asked) {
        return Err(context.unsupported(*what));
    }
    let attention = Attention::new(context, &options!(op))?;
    let Attention {
        extents, arithmetic, ..
    } = &attention;
    // Matrix instructions take both factors in one type: flash attention rounds the weights to that of v.
    let narrow = context.codec(op.v)?;
    let sinks = op.sink_token.map(|sink| context.reals(sink)).transpose()?;
    let (mut o, mut stats, mut max, mut sum_exp) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in extents.rows() {
        let sink = sinks.as_ref().map(|sinks| at(sinks, row.head));
        let softmax = Softmax::new(arithmetic, &attention.scores(row), sink);
        for column in 0..extents.dv {
            o.push(softmax.average(arithmetic, &attention.value_column(row, column), narrow));
        }
        stats.push(softmax.log_sum_exp(arithmetic));
        max.push(softmax.max);
        sum_exp.push(arithmetic.mul(
            softmax.sum,
            arithmetic.exp(Real {
                value: 0.0,
                error: softmax.max.error,
            }),
        ));
    }
    let mut results = vec![context.result(op.o, &o)?];
    for (id, values) in [(op.stats, stats), (op.max, max), (op.sum_exp, sum_exp)] {
        if let Some(id) = id {
            results.push(context.result(id, &values)?);
        }
    }
    Ok(results)
}

/// With P = exp(scores - stats), D = sum of do o along a row and dS = P (do v^T - D): dv = P^T do, dq = scale dS k,
/// dk = scale dS^T q, dbias = dS summed up to the dims of the mask. Heads that share keys or values add up.
///
/// P is 0 wherever the score is -infinity, also in a row that has no other scores; hipDNN's reference makes NaN of such rows if
/// it is the additive mask that hides them.
pub(crate) fn sdpa_backward(context: &Context<'_>, op: &SdpaBackward) -> Results {
    let dropout = [
        op.seed,
        op.offset,
        op.dropout_mask,
        op.dropout_scale,
        op.dropout_scale_inv,
    ];
    if dropout.iter().any(Option::is_some) || op.dropout_probability.is_some_and(|probability| probability != 0.0) {
        return Err(context.unsupported("dropout"));
    }
    let attention = Attention::new(context, &options!(op))?;
    let Attention {
        extents, arithmetic, ..
    } = &attention;
    let (o, d_o, stats) = (context.reals(op.o)?, context.reals(op.d_o)?, context.reals(op.stats)?);
    let (mut p, mut ds) = (Vec::new(), Vec::new());
    for row in extents.rows() {
        let slice = |elements: &[Real]| rows(elements, extents.dv, extents.position(row));
        let d = arithmetic.dot(&slice(&d_o), &slice(&o));
        let statistic = at(&stats, extents.position(row));
        for (key, score) in attention.scores(row).into_iter().enumerate() {
            let probability = match score {
                Some(score) if score.value != f64::NEG_INFINITY => arithmetic.exp(arithmetic.sub(score, statistic)),
                _ => Real::default(),
            };
            let dp = arithmetic.dot(&slice(&d_o), &rows(&attention.v, extents.dv, extents.value(row, key)));
            p.push(probability);
            ds.push(arithmetic.mul(probability, arithmetic.sub(dp, d)));
        }
    }
    let gradients = Gradients {
        attention: &attention,
        p,
        ds,
    };
    let mut results = vec![
        context.result(op.dq, &gradients.dq())?,
        context.result(op.dk, &gradients.dk())?,
        context.result(op.dv, &gradients.dv(&d_o))?,
    ];
    if let Some(id) = op.dbias {
        results.push(context.result(id, &gradients.dbias(&context.dims(id)?)?)?);
    }
    Ok(results)
}

/// What makes scores of q and k, in either direction.
struct Options {
    q: TensorId,
    k: TensorId,
    v: TensorId,
    mask: Option<TensorId>,
    scale: Option<TensorId>,
    scale_value: Option<f32>,
    alibi: bool,
    padding: bool,
    seq_len_q: Option<TensorId>,
    seq_len_kv: Option<TensorId>,
    causal: bool,
    causal_bottom_right: bool,
    left: Option<i64>,
    right: Option<i64>,
    alignment: DiagonalAlignment,
}

#[derive(Clone, Copy)]
struct Extents {
    batch: usize,
    heads: usize,
    key_heads: usize,
    value_heads: usize,
    queries: usize,
    keys: usize,
    d: usize,
    dv: usize,
}

/// A row of scores.
#[derive(Clone, Copy)]
struct Row {
    batch: usize,
    head: usize,
    query: usize,
}

impl Extents {
    fn rows(self) -> impl Iterator<Item = Row> {
        let rows = 0..self.batch * self.heads * self.queries;
        rows.map(move |position| Row {
            batch: position / self.queries / self.heads,
            head: position / self.queries % self.heads,
            query: position % self.queries,
        })
    }

    /// The row among all rows, which are those of q too.
    fn position(&self, row: Row) -> usize {
        (row.batch * self.heads + row.head) * self.queries + row.query
    }

    /// The row of k with a key.
    fn key(&self, row: Row, key: usize) -> usize {
        (row.batch * self.key_heads + row.head / (self.heads / self.key_heads)) * self.keys + key
    }

    /// The row of v with a key's value.
    fn value(&self, row: Row, key: usize) -> usize {
        (row.batch * self.value_heads + row.head / (self.heads / self.value_heads)) * self.keys + key
    }
}

struct Attention {
    arithmetic: Arithmetic,
    extents: Extents,
    q: Vec<Real>,
    k: Vec<Real>,
    v: Vec<Real>,
    scale: Real,
    /// For each score.
    mask: Option<Vec<Real>>,
    /// For each head.
    slopes: Option<Vec<Real>>,
    /// For each batch: queries, keys.
    lengths: Option<Vec<(usize, usize)>>,
    /// Keys before and after the diagonal, and what has to be added to a query for its diagonal.
    left: Option<i64>,
    right: Option<i64>,
    offset: i64,
}

impl Attention {
    fn new(context: &Context<'_>, op: &Options) -> Result<Self, ReferenceError> {
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
        let bound = |bound: Option<i64>| bound.filter(|&bound| bound >= 0);
        let (left, right, alignment) = match (op.causal, op.causal_bottom_right) {
            (true, _) => (None, Some(0), DiagonalAlignment::TopLeft),
            (_, true) => (None, Some(0), DiagonalAlignment::BottomRight),
            _ => (bound(op.left), bound(op.right), op.alignment),
        };
        let is_bottom_right = alignment == DiagonalAlignment::BottomRight && (left.is_some() || right.is_some());
        let extent = |extent: usize| i64::try_from(extent).unwrap_or(i64::MAX);
        if op.padding && is_bottom_right {
            // hipDNN has no reference that says whether the diagonal ends at the sequences' ends or at the tensors'.
            return Err(context.unsupported("a diagonal from the bottom right of padded sequences"));
        }
        if !op.padding && (op.seq_len_q.is_some() || op.seq_len_kv.is_some()) {
            return Err(context.unsupported("sequence lengths without a padding mask"));
        }
        if op.alibi && (right != Some(0) || is_bottom_right) {
            // The sign of a distance to keys after the query is nowhere told.
            return Err(context.unsupported("ALiBi without a causal mask from the top left"));
        }
        let scale = match (op.scale, op.scale_value) {
            (Some(scale), _) => context.real(scale)?,
            (None, Some(value)) => Real::exactly(value.into()),
            // hipDNN's `PlanUtils.hpp` (foldSdpaScale) has 1 in its newest version; older ones divided by the root of D.
            (None, None) => Real::exactly(1.0),
        };
        Ok(Attention {
            arithmetic,
            extents,
            q: context.reals(op.q)?,
            k: context.reals(op.k)?,
            v: context.reals(op.v)?,
            scale,
            mask: op
                .mask
                .map(|id| broadcast(&context.reals(id)?, &context.dims(id)?, &[batch, heads, queries, keys]))
                .transpose()?,
            slopes: op.alibi.then(|| {
                slopes(heads)
                    .into_iter()
                    .map(|slope| arithmetic.blurred(Real::exactly(slope), 4.0))
                    .collect()
            }),
            lengths: match (op.padding, op.seq_len_q, op.seq_len_kv) {
                (true, Some(q), Some(kv)) => {
                    let (q, kv) = (lengths(context, q)?, lengths(context, kv)?);
                    Some(q.into_iter().zip(kv).collect())
                }
                _ => None,
            },
            left,
            right,
            offset: if is_bottom_right {
                extent(keys) - extent(queries)
            } else {
                0
            },
        })
    }

    /// The scores of a row after all masks but those that hide a key: `None` there.
    fn scores(&self, row: Row) -> Vec<Option<Real>> {
        (0..self.extents.keys)
            .map(|key| (!self.is_hidden(row, key)).then(|| self.score(row, key)))
            .collect()
    }

    fn score(&self, row: Row, key: usize) -> Real {
        let Attention {
            arithmetic, extents, ..
        } = self;
        let q = rows(&self.q, extents.d, extents.position(row));
        let k = rows(&self.k, extents.d, extents.key(row, key));
        // The scale may be applied to q or k instead, which rounds each of them.
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

    fn is_hidden(&self, row: Row, key: usize) -> bool {
        let is_padding = self.lengths.as_ref().is_some_and(|lengths| {
            let (queries, keys) = lengths.get(row.batch).copied().unwrap_or_default();
            row.query >= queries || key >= keys
        });
        let position = |position: usize| i64::try_from(position).unwrap_or(i64::MAX);
        let beyond = position(key)
            .saturating_sub(position(row.query))
            .saturating_sub(self.offset);
        is_padding
            || self.right.is_some_and(|right| beyond > right)
            || self.left.is_some_and(|left| beyond < left.saturating_neg())
    }

    fn value_column(&self, row: Row, column: usize) -> Vec<Real> {
        (0..self.extents.keys)
            .map(|key| at(&self.v, self.extents.value(row, key) * self.extents.dv + column))
            .collect()
    }
}

/// A row of weights that are not divided by their sum yet.
struct Softmax {
    weights: Vec<Real>,
    max: Real,
    sum: Real,
}

impl Softmax {
    /// The sink is a score without a key: it takes part in the sum and in nothing else.
    ///
    /// Weights are relative to a maximum. A kernel's may be off without harm, because it cancels; but it may also not know the
    /// maximum when it begins and scale what it has each time it finds a larger one, which rounds as often as there are keys.
    fn new(arithmetic: &Arithmetic, scores: &[Option<Real>], sink: Option<Real>) -> Self {
        let all = || scores.iter().copied().flatten().chain(sink);
        let max = Real {
            value: all().map(|score| score.value).fold(f64::NEG_INFINITY, f64::max),
            error: all().map(|score| score.error).fold(0.0, f64::max),
        };
        let weight = |score: Real| {
            if max.value == f64::NEG_INFINITY && !score.value.is_nan() {
                return Real::default();
            }
            let weight = arithmetic.exp(arithmetic.sub(score, Real::exactly(max.value)));
            if weight.value == 1.0 && weight.error == 0.0 {
                weight
            } else {
                arithmetic.blurred(weight, scores.len() as f64)
            }
        };
        let weights: Vec<Real> = scores
            .iter()
            .map(|score| score.map_or(Real::default(), weight))
            .collect();
        let terms: Vec<Real> = weights.iter().copied().chain(sink.map(weight)).collect();
        let sum = arithmetic.sum(&terms);
        Softmax { weights, max, sum }
    }

    fn is_empty(&self) -> bool {
        self.max.value == f64::NEG_INFINITY && !self.sum.value.is_nan()
    }

    /// The values' average by weights that may be rounded to a narrower type, which the sum is not made of.
    fn average(&self, arithmetic: &Arithmetic, values: &[Real], narrow: Codec) -> Real {
        if self.is_empty() {
            return Real::default();
        }
        let weights: Vec<Real> = self
            .weights
            .iter()
            .map(|&weight| arithmetic.narrowed(weight, narrow))
            .collect();
        arithmetic.div(arithmetic.dot(&weights, values), self.sum)
    }

    fn log_sum_exp(&self, arithmetic: &Arithmetic) -> Real {
        if self.is_empty() {
            return Real::exactly(f64::NEG_INFINITY);
        }
        arithmetic.add(Real::exactly(self.max.value), arithmetic.ln(self.sum))
    }
}

/// The gradients from the probabilities and from those of the scores, row after row.
struct Gradients<'a> {
    attention: &'a Attention,
    p: Vec<Real>,
    ds: Vec<Real>,
}

impl Gradients<'_> {
    fn dq(&self) -> Vec<Real> {
        let Attention { extents, k, .. } = self.attention;
        let gradient = |row: Row| {
            let ds = rows(&self.ds, extents.keys, extents.position(row));
            (0..extents.d).map(move |column| {
                let k: Vec<Real> = (0..extents.keys)
                    .map(|key| at(k, extents.key(row, key) * extents.d + column))
                    .collect();
                self.scaled(&ds, &k)
            })
        };
        extents.rows().flat_map(gradient).collect()
    }

    fn dk(&self) -> Vec<Real> {
        let Attention { extents, q, .. } = self.attention;
        self.by_key(extents.key_heads, extents.d, |row, key, column| {
            let score = extents.position(row) * extents.keys + key;
            (at(&self.ds, score), at(q, extents.position(row) * extents.d + column))
        })
        .iter()
        .map(|(ds, q)| self.scaled(ds, q))
        .collect()
    }

    fn dv(&self, d_o: &[Real]) -> Vec<Real> {
        let Attention {
            extents, arithmetic, ..
        } = self.attention;
        self.by_key(extents.value_heads, extents.dv, |row, key, column| {
            let score = extents.position(row) * extents.keys + key;
            (at(&self.p, score), at(d_o, extents.position(row) * extents.dv + column))
        })
        .iter()
        .map(|(p, d_o)| arithmetic.dot(p, d_o))
        .collect()
    }

    fn dbias(&self, dims: &[usize]) -> Result<Vec<Real>, ReferenceError> {
        let Extents {
            batch,
            heads,
            queries,
            keys,
            ..
        } = self.attention.extents;
        let scores = [batch, heads, queries, keys];
        let mut terms = vec![Vec::new(); dims.iter().product()];
        for (&ds, offset) in self
            .ds
            .iter()
            .zip(Offsets::new(&scores, &broadcast_strides(dims, &scores)?))
        {
            if let Some(terms) = terms.get_mut(offset) {
                terms.push(ds);
            }
        }
        Ok(terms.iter().map(|terms| self.attention.arithmetic.sum(terms)).collect())
    }

    /// For each element of a tensor of `heads` heads and `columns` columns, the factors of all rows that see it.
    fn by_key(
        &self,
        heads: usize,
        columns: usize,
        factors: impl Fn(Row, usize, usize) -> (Real, Real),
    ) -> Vec<(Vec<Real>, Vec<Real>)> {
        let extents = self.attention.extents;
        let group = extents.heads / heads;
        let mut all = Vec::new();
        for batch in 0..extents.batch {
            for head in 0..heads {
                for key in 0..extents.keys {
                    for column in 0..columns {
                        let rows = (head * group..(head + 1) * group)
                            .flat_map(|head| (0..extents.queries).map(move |query| Row { batch, head, query }));
                        all.push(rows.map(|row| factors(row, key, column)).unzip());
                    }
                }
            }
        }
        all
    }

    /// The scale times a sum of products: it may be applied to each factor as well.
    fn scaled(&self, a: &[Real], b: &[Real]) -> Real {
        let Attention { arithmetic, scale, .. } = self.attention;
        let each: Vec<Real> = a.iter().map(|&a| arithmetic.mul(a, *scale)).collect();
        let product = arithmetic.mul(arithmetic.dot(a, b), *scale);
        Real {
            value: product.value,
            error: product.error.max(arithmetic.dot(&each, b).error),
        }
    }
}

/// The slopes of attention with linear biases by Press, Smith and Lewis (2022), section 3 and its released code: for a power of two n
/// of heads 2^(-8 / n) to the powers 1 to n, and for other numbers of heads those of the power of two below, followed by every
/// second one of the power of two above. hipDNN has no reference of its own.
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

/// Lengths of sequences; negative ones are empty.
fn lengths(context: &Context<'_>, id: TensorId) -> Result<Vec<usize>, ReferenceError> {
    let lengths = context.reals(id)?;
    Ok(lengths.iter().map(|length| length.value as usize).collect())
}

/// The elements of a packed tensor for each element of larger dims.
fn broadcast(elements: &[Real], from: &[usize], to: &[usize]) -> Result<Vec<Real>, ReferenceError> {
    let offsets = Offsets::new(to, &broadcast_strides(from, to)?);
    Ok(offsets.map(|offset| at(elements, offset)).collect())
}

/// A row of a matrix.
fn rows(elements: &[Real], columns: usize, row: usize) -> Vec<Real> {
    elements.iter().skip(row * columns).take(columns).copied().collect()
}

fn at(elements: &[Real], position: usize) -> Real {
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
