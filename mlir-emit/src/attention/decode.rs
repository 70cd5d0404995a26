//! Attention of few queries to many keys, as when a language model writes: the keys are cut into parts, which workgroups go over at the
//! same time, and a second kernel adds what they found.
//!
//! ```text
//! of each part:  m_p = max s      l_p = Σ exp(s - m_p)      w_p = Σ exp(s - m_p) v
//! m = max m_p    l = Σ l_p exp(m_p - m)      w = Σ w_p exp(m_p - m)
//! ```
//!
//! Heads of q that share keys, with all their queries, are the rows of one matrix: keys and values are read once.

use super::online::{FLAT, NATURAL, Online, Problem, online};
use super::scores::Attention;
use super::softmax::{Softmax, Weighted, asks_for_more};
use super::told::{HEAD, KEY, QUERY};
use crate::EmitError;
use crate::contract::half;
use crate::ir::{MISSING, Relation, only};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::step::{Combiner, Shape};
use crate::value::{Data, Ordered, Value, extent, reshape};
use rotini_graph::{DataType, Sdpa};
use rotini_schedule::attention::{Cut, LEAST_ROWS, parts};

/// Columns of keys and values for which this was executed.
const COLUMNS: [i64; 2] = [64, 128];

/// How the keys of an attention are cut.
struct Parts {
    batch: i64,
    /// Heads of keys.
    heads: i64,
    /// Heads of q for each.
    group: i64,
    queries: i64,
    /// Parts of the keys, and keys of one.
    parts: i64,
    keys: i64,
    of_key: i64,
    of_value: i64,
    cut: Cut,
}

/// Softmax and weighted sum; `None` where there are many queries, or not so many keys, or more is asked for.
pub(super) fn softmax<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    attention: &Attention<'c, 'b>,
    op: &Sdpa,
) -> Result<Option<Softmax<'c, 'b>>, EmitError> {
    let Data::Constant(scale) = attention.scale.data else {
        return Ok(None);
    };
    let asks_for_more = asks_for_more(op) || attention.mask.is_some() || attention.hides_keys();
    let Some(parts) = Parts::new(lowering, attention)?.filter(|_| !asks_for_more) else {
        return Ok(None);
    };
    let at = lowering.emitter();
    let problem = Problem {
        operands: [
            parts.rows(lowering, &attention.q)?,
            parts.keys(lowering, &attention.k)?,
            parts.keys(lowering, &attention.v)?,
        ],
        order: &FLAT,
        scale: scale.to_f64(),
        mask: None,
        cut: Some(parts.cut),
    };
    let Online {
        weighted,
        greatest,
        total,
        ..
    } = online(lowering, &problem)?;
    let [weighted, greatest, total] =
        [(weighted, parts.of_value), (greatest, 1), (total, 1)].map(|(value, columns)| {
            let Data::Tensor { ssa, .. } = value.data else {
                return Err(MISSING);
            };
            // A dispatch of its own, as the parts are added over another loop.
            parts.found(lowering, at.barrier(ssa)?, columns)
        });
    let (weighted, greatest, total) = (weighted?, greatest?, total?);
    let f32 = DataType::F32;
    let row = Shape {
        dims: &greatest.dims.clone(),
        order: &[0, 1, 2, 3, 4],
        dtype: f32,
    };
    let most = lowering.reduce(
        &[&greatest],
        &row,
        &[PART],
        (Combiner::Greatest, f64::NEG_INFINITY),
        |_, elements| only(elements),
    )?;
    let add = |found: &Value<'c, 'b>, order: &[usize]| {
        let shape = Shape {
            dims: &found.dims,
            order,
            dtype: f32,
        };
        lowering.reduce(
            &[found, &greatest, &most],
            &shape,
            &[PART],
            (Combiner::Sum, 0.0),
            |math, elements| {
                let &[found, greatest, most] = elements else {
                    return Err(MISSING);
                };
                math.mul(found, math.function("math.exp2", math.sub(greatest, most)?)?)
            },
        )
    };
    let weighted = parts.of_heads(lowering, add(&weighted, &[0, 1, 2, 3, 4, 5])?, parts.of_value)?;
    let total = parts.of_heads(lowering, add(&total, &[0, 1, 2, 3, 4])?, 1)?;
    let greatest = parts.of_heads(lowering, most, 1)?;
    Softmax::of_online(lowering, Weighted::Sum(weighted), &greatest, total).map(Some)
}

/// The axis of the parts in what was found: B, heads of keys, parts, heads of q for each, queries, columns.
const PART: usize = 2;

impl Parts {
    fn new(lowering: &Lowering<'_, '_, '_>, attention: &Attention<'_, '_>) -> Result<Option<Self>, EmitError> {
        let Attention { q, k, v, dims, .. } = attention;
        let [batch, queries, keys] = [0, QUERY, KEY].map(|axis| extent(dims, axis));
        let (batch, queries, keys) = (batch?, queries?, keys?);
        let heads = extent(&k.dims, HEAD)?;
        let group = extent(dims, HEAD)?.checked_div(heads).ok_or(MISSING)?;
        let (of_key, of_value) = (extent(&q.dims, KEY)?, extent(&v.dims, KEY)?);
        let least_rows = i64::try_from(LEAST_ROWS).map_err(|_| MISSING)?;
        let is_covered = q.dtype == k.dtype
            && half([k.dtype, v.dtype], attention.compute).is_some()
            && extent(&v.dims, HEAD)? == heads
            && [k, v].iter().all(|tensor| tensor.order == NATURAL)
            && group.checked_mul(queries).is_some_and(|rows| rows <= least_rows)
            && [of_key, of_value].iter().all(|columns| COLUMNS.contains(columns));
        let (Some(machine), true) = (lowering.target().machine(), is_covered) else {
            return Ok(None);
        };
        let (Ok(batches), Ok(length)) = (u64::try_from(batch.saturating_mul(heads)), u64::try_from(keys)) else {
            return Ok(None);
        };
        let Some((part, cut)) = parts(machine, batches, length) else {
            return Ok(None);
        };
        let part = i64::try_from(part).map_err(|_| MISSING)?;
        let count = keys.checked_div(part).ok_or(MISSING)?;
        // The compiler would drop a loop of one step.
        Ok(
            (batch.saturating_mul(heads).saturating_mul(count) > 1).then_some(Parts {
                batch,
                heads,
                group,
                queries,
                parts: count,
                keys: part,
                of_key,
                of_value,
                cut,
            }),
        )
    }

    /// Parts of all heads of keys of all batches.
    fn all(&self) -> i64 {
        self.batch.saturating_mul(self.heads).saturating_mul(self.parts)
    }

    /// Keys or values as heads of parts.
    fn keys<'c, 'b>(
        &self,
        lowering: &Lowering<'_, 'c, 'b>,
        tensor: &Ordered<'c, 'b>,
    ) -> Result<Ordered<'c, 'b>, EmitError> {
        let at = lowering.emitter();
        let (all, columns) = (self.all(), extent(&tensor.dims, KEY)?);
        let (dtype, rows) = (tensor.dtype, all.saturating_mul(self.keys));
        let collapsed = [vec![0, 1, 2], vec![3]];
        let ssa = reshape(
            &at,
            "tensor.collapse_shape",
            tensor.ssa,
            &collapsed,
            &[rows, columns],
            dtype,
        )?;
        let shape = [all, self.keys, columns];
        let ssa = reshape(&at, "tensor.expand_shape", ssa, &[vec![0, 1], vec![2]], &shape, dtype)?;
        Ok(Ordered {
            ssa: at.barrier(ssa)?,
            order: FLAT.to_vec(),
            dtype,
            dims: vec![1, all, self.keys, columns],
        })
    }

    /// The rows for each part. Those beyond the queries are zeros.
    fn rows<'c, 'b>(&self, lowering: &Lowering<'_, 'c, 'b>, q: &Ordered<'c, 'b>) -> Result<Ordered<'c, 'b>, EmitError> {
        let at = lowering.emitter();
        let shape = [self.all(), self.cut.rows.cast_signed(), self.of_key];
        let ssa = at.tabulate(&shape, q.dtype, |body| {
            let index = body.index_type();
            let with = |name: &str, x, y| body.same(name, &[x, body.integer(y, index)?]);
            let row = body.loop_index(1)?;
            let last = self.group.saturating_mul(self.queries) - 1;
            let is_there = body.compare_indices(Relation::AtMost, row, body.integer(last, index)?)?;
            let own = with("arith.minui", row, last)?;
            let of_keys = with("arith.divui", body.loop_index(0)?, self.parts)?;
            let batch = with("arith.divui", of_keys, self.heads)?;
            let of_keys = with("arith.remui", of_keys, self.heads)?;
            let among = with("arith.divui", own, self.queries)?;
            let head = body.same("arith.addi", &[with("arith.muli", of_keys, self.group)?, among])?;
            let query = with("arith.remui", own, self.queries)?;
            let element = q.element(&at, body, &[batch, head, query, body.loop_index(2)?])?;
            body.one(
                "arith.select",
                &[is_there, element, body.zero(q.dtype)?],
                element.r#type(),
                &[],
            )
        })?;
        Ok(Ordered {
            ssa: at.barrier(ssa)?,
            order: FLAT.to_vec(),
            dtype: q.dtype,
            dims: [&[1], shape.as_slice()].concat(),
        })
    }

    /// What was found for each part, of so many columns, without the rows beyond the queries.
    fn found<'c, 'b>(
        &self,
        lowering: &Lowering<'_, 'c, 'b>,
        ssa: Ssa<'c, 'b>,
        columns: i64,
    ) -> Result<Value<'c, 'b>, EmitError> {
        let at = lowering.emitter();
        let f32 = DataType::F32;
        let mut from = vec![self.all(), self.cut.rows.cast_signed()];
        let mut to = vec![self.all(), self.group.saturating_mul(self.queries)];
        let mut dims = vec![self.batch, self.heads, self.parts, self.group, self.queries];
        let mut groups = vec![vec![0, 1, 2], vec![3, 4]];
        if columns > 1 {
            from.push(columns);
            to.push(columns);
            dims.push(columns);
            groups.push(vec![5]);
        }
        let ssa = at.crop(ssa, &from, &to, f32)?;
        let ssa = reshape(&at, "tensor.expand_shape", ssa, &groups, &dims, f32)?;
        let order = (0..dims.len()).collect();
        dims.resize(6, 1);
        Ok(Value::of(Ordered {
            ssa,
            order,
            dtype: f32,
            dims,
        }))
    }

    /// What the parts add up to, for each head of q.
    fn of_heads<'c, 'b>(
        &self,
        lowering: &Lowering<'_, 'c, 'b>,
        sum: Value<'c, 'b>,
        columns: i64,
    ) -> Result<Value<'c, 'b>, EmitError> {
        let Data::Tensor { ssa, .. } = sum.data else {
            return Err(MISSING);
        };
        let heads = self.heads.saturating_mul(self.group);
        let mut shape = vec![self.batch, heads, self.queries];
        let mut groups = vec![vec![0], vec![1, 2], vec![3]];
        if columns > 1 {
            shape.push(columns);
            groups.push(vec![4]);
        }
        let ssa = reshape(
            &lowering.emitter(),
            "tensor.collapse_shape",
            ssa,
            &groups,
            &shape,
            sum.dtype,
        )?;
        let order = (0..shape.len()).collect();
        shape.resize(4, 1);
        Ok(Value::of(Ordered {
            ssa,
            order,
            dtype: sum.dtype,
            dims: shape,
        }))
    }
}
