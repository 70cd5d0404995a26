//! Attention backward: the gradients of the queries, keys, values and the mask.

use super::scores::{Attention, Extents, Row, at, options, rows};
use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::real::Real;
use crate::value::Value;
use crate::walk::{Offsets, broadcast_strides};
use rotini_graph::{SdpaBackward, TensorId};

/// Computes the gradients. With P = exp(scores - stats), D = sum of do o along a row and dS = P (do
/// v^T - D): dv = P^T do, dq = scale dS k, dk = scale dS^T q, dbias = dS summed to the dims of the
/// mask. Gradients of heads that share keys or values are added.
///
/// P is 0 wherever the score is -infinity, even in a row that has no other scores; hipDNN's
/// reference returns NaN for such rows if the additive mask hides them.
pub(crate) fn sdpa_backward(
    context: &Context<'_>,
    op: &SdpaBackward,
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
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
    // Matrix instructions take both operands in one type: probabilities are rounded to the type of
    // do, gradients of scores to the type of q and k.
    let (narrow, narrow_ds) = (context.narrow(op.d_o)?, context.narrow(op.q)?);
    let narrowed = |real: Real, codec: Option<Codec>| codec.map_or(real, |codec| arithmetic.narrowed(real, codec));
    let (o, d_o, stats) = (context.reals(op.o)?, context.reals(op.d_o)?, context.reals(op.stats)?);
    let (mut p, mut ds, mut factors) = (Vec::new(), Vec::new(), Vec::new());
    for row in extents.rows() {
        let slice = |elements: &[Real]| rows(elements, extents.dv, extents.position(row));
        let d = arithmetic.dot(&slice(&d_o), &slice(&o));
        let statistic = at(&stats, extents.position(row));
        for (key, score) in attention.scores(row).into_iter().enumerate() {
            let Some(score) = score else {
                // Keys that a row does not see contribute nothing, even if their elements are NaN.
                p.push(Real::default());
                ds.push(Real::default());
                factors.push(Real::default());
                continue;
            };
            let probability = if score.value == f64::NEG_INFINITY {
                Real::default()
            } else {
                arithmetic.exp(arithmetic.sub(score, statistic))
            };
            let probability = narrowed(probability, narrow);
            let dp = arithmetic.dot(&slice(&d_o), &rows(&attention.v, extents.dv, extents.value(row, key)));
            p.push(probability);
            let gradient = arithmetic.mul(probability, arithmetic.sub(dp, d));
            ds.push(gradient);
            factors.push(narrowed(gradient, narrow_ds));
        }
    }
    let gradients = Gradients {
        attention: &attention,
        p,
        ds,
        factors,
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

/// The probabilities and the gradients of the scores, row by row, from which the results are
/// computed.
struct Gradients<'a> {
    attention: &'a Attention,
    p: Vec<Real>,
    ds: Vec<Real>,
    /// `ds` as operands of products: possibly rounded to the type of q and k.
    factors: Vec<Real>,
}

impl Gradients<'_> {
    fn dq(&self) -> Vec<Real> {
        let Attention { extents, k, .. } = self.attention;
        let gradient = |row: Row| {
            let ds = rows(&self.factors, extents.keys, extents.position(row));
            (0..extents.d).map(move |column| {
                let element = |key| at(k, extents.key(row, key) * extents.d + column);
                let k: Vec<Real> = (0..extents.keys)
                    .map(|key| {
                        if self.attention.sees(row, key) {
                            element(key)
                        } else {
                            Real::default()
                        }
                    })
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
            (
                at(&self.factors, score),
                at(q, extents.position(row) * extents.d + column),
            )
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

    /// Returns, for each element of a key or value tensor of `heads` heads and `columns` columns,
    /// the factors of all rows that see its key.
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
                        let factors = |row: Row| {
                            if self.attention.sees(row, key) {
                                factors(row, key, column)
                            } else {
                                Default::default()
                            }
                        };
                        all.push(rows.map(factors).unzip());
                    }
                }
            }
        }
        all
    }

    /// Returns the scale times a sum of products. The bound also allows a kernel that applies the
    /// scale to each factor.
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
