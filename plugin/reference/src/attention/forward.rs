//! Attention forward: the softmax of each row of scores, and the average of the values weighted by
//! it.

use super::scores::{Attention, at, options};
use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::real::{Arithmetic, Real};
use crate::value::Value;
use rotini_graph::{Sdpa, TensorId};

/// Computes o = softmax(scale q k^T + mask) v. A row without any visible key has an output of zeros
/// and a statistic of -infinity.
pub(crate) fn sdpa(context: &Context<'_>, op: &Sdpa) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
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
    // Matrix instructions take both operands in one type: flash attention rounds the weights to the
    // type of v.
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

/// A row of softmax weights that are not yet divided by their sum.
struct Softmax {
    weights: Vec<Real>,
    max: Real,
    sum: Real,
}

impl Softmax {
    /// Computes the weights of a row. The sink is a score without a key: it contributes to the sum
    /// only.
    ///
    /// Weights are relative to a maximum. An error in a kernel's maximum does no harm, because it
    /// cancels in the quotient. But a kernel that does not know the maximum at the start (online
    /// softmax) rescales its accumulators each time it finds a larger score, which rounds up to
    /// once per key.
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

    /// Returns the average of the values by the weights. A kernel may round the weights to a
    /// narrower type for this product, but sums them unrounded.
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
