//! Scaled dot-product attention as matmuls and steps.
//!
//! ```text
//! s = scale q kᵀ + mask, -∞ where a key is hidden
//! m = max s      e = exp(s - m)      l = Σ e
//! o = e v / l    stats = m + log l
//! ```
//!
//! A row without a visible key is zeros, and its statistic -∞. What no reference of hipDNN defines is declined.

use crate::convert::{FloatPredicate as F, check_compute, check_not_constant, compute_type};
use crate::lower::Lowering;
use crate::math::{Math, Scalar};
use crate::matmul::{contract, repeated};
use crate::step::Shape;
use crate::value::{Data, Ordered, Value, extent};
use crate::{EmitError, Unsupported};
use melior::ir::Value as Ssa;
use rotini_graph::{DataType, DiagonalAlignment, NormalGraph, Scalar as Constant, Sdpa, TensorId};

/// Axes of scores.
const QUERY: usize = 2;
const KEY: usize = 3;

/// Positions up to this are exact in f32, in which they are compared.
const MAX_POSITION: i64 = 1 << 24;

const MISSING: EmitError = EmitError::Internal("a missing element");

/// Which keys a query sees: those from `left` before its place on the diagonal to `right` after it.
struct Diagonal {
    left: Option<i64>,
    right: Option<i64>,
    is_bottom_right: bool,
}

impl Diagonal {
    fn of(op: &Sdpa) -> Self {
        // A negative bound is none.
        let bound = |bound: Option<i64>| bound.filter(|bound| *bound >= 0);
        let (left, right, alignment) = match (op.causal_mask, op.causal_mask_bottom_right) {
            (true, _) => (None, Some(0), DiagonalAlignment::TopLeft),
            (false, true) => (None, Some(0), DiagonalAlignment::BottomRight),
            (false, false) => (bound(op.left_bound), bound(op.right_bound), op.diagonal_alignment),
        };
        Diagonal {
            left,
            right,
            is_bottom_right: alignment == DiagonalAlignment::BottomRight && (left.is_some() || right.is_some()),
        }
    }
}

fn decline(reasons: &[(bool, &str)]) -> Result<(), Unsupported> {
    match reasons.iter().find(|(holds, _)| *holds) {
        Some((_, reason)) => Err(Unsupported::new(*reason)),
        None => Ok(()),
    }
}

fn drops(probability: Option<f32>, tensors: &[Option<TensorId>]) -> bool {
    probability.is_some_and(|probability| probability != 0.0) || tensors.iter().any(Option::is_some)
}

/// Says whether the operation can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &Sdpa) -> Result<(), Unsupported> {
    let dropout = [op.seed, op.offset, op.dropout_mask, op.dropout_scale, op.rng_dump];
    let eight_bits = [
        op.descale_q,
        op.descale_k,
        op.descale_v,
        op.descale_s,
        op.scale_s,
        op.scale_o,
        op.amax_s,
        op.amax_o,
    ];
    let paged = op.page_table_k.is_some() || op.page_table_v.is_some() || op.max_seq_len_kv.is_some();
    decline(&[
        (drops(op.dropout_probability, &dropout), "dropout is not supported"),
        (paged, "paged keys and values are not supported"),
        (op.block_mask.is_some(), "a block mask is not supported"),
        (
            eight_bits.iter().any(Option::is_some),
            "scales of 8-bit floats are not supported",
        ),
        // IREE 3.13's compiler overflows its stack over it, for gfx942.
        (op.sink_token.is_some(), "a sink token is not supported"),
    ])?;
    let q = graph.tensor(op.q).map(|q| q.dtype);
    if let Some(core) = op
        .mma_core_mode
        .filter(|&core| core != DataType::F32 && Some(core) != q)
    {
        return Err(Unsupported::new(format!(
            "mma_core_mode {core}, which is not the type of q"
        )));
    }
    if !check_compute(graph, compute, &[op.q, op.k, op.v])?.is_float() {
        return Err(Unsupported::new(format!("attention has no meaning in {compute}")));
    }
    check_not_constant(graph, &[op.q, op.k, op.v])?;
    let (diagonal, lengths) = (Diagonal::of(op), [op.seq_len_q, op.seq_len_kv]);
    let declined = [
        (
            op.padding_mask && diagonal.is_bottom_right,
            "a diagonal from the bottom right of padded sequences is defined nowhere",
        ),
        (
            !op.padding_mask && lengths.iter().any(Option::is_some),
            "sequence lengths without padding_mask",
        ),
        (
            op.padding_mask && lengths.iter().any(Option::is_none),
            "padding_mask without both sequence lengths",
        ),
        (
            op.alibi_mask && (diagonal.right != Some(0) || diagonal.is_bottom_right),
            "ALiBi without a causal mask from the top left is defined nowhere",
        ),
    ];
    decline(&declined)?;
    for id in [op.q, op.k] {
        let length = graph.tensor(id).and_then(|tensor| tensor.dims.get(QUERY));
        if length.is_some_and(|&length| length > MAX_POSITION) {
            return Err(Unsupported::of_tensor(id, "a sequence of more than 2^24 positions"));
        }
    }
    Ok(())
}

/// The elements of what the lowering makes on the way: scores and weights, keys and values for all heads, and the weighted sum.
pub(crate) fn elements(graph: &NormalGraph, op: &Sdpa) -> Option<u64> {
    let (q, k, v) = (graph.tensor(op.q)?, graph.tensor(op.k)?, graph.tensor(op.v)?);
    let (&[batch, heads, queries, d], &[_, _, keys, _], &[.., columns]) =
        (q.dims.as_slice(), k.dims.as_slice(), v.dims.as_slice())
    else {
        return None;
    };
    let product = |dims: [i64; 2]| {
        [batch, heads]
            .into_iter()
            .chain(dims)
            .try_fold(1_u64, |product, dim| product.checked_mul(u64::try_from(dim).ok()?))
    };
    let scores = product([queries, keys])?.checked_mul(2)?;
    [[keys, d], [keys, columns], [queries, columns]]
        .into_iter()
        .try_fold(scores, |sum, dims| sum.checked_add(product(dims)?))
}

/// Lowers the operation.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_, '_>, compute: DataType, op: &Sdpa) -> Result<(), EmitError> {
    let compute = compute_type(compute).ok_or(EmitError::Internal("a compute type that check declines"))?;
    let attention = Attention::new(lowering, op, compute)?;
    let scores = Value::of(attention.scores(lowering)?);
    let shape = attention.shape();
    let greatest = lowering.reduce(
        &[&scores],
        &shape,
        &[KEY],
        f64::NEG_INFINITY,
        |math, elements, so_far| math.max(so_far, only(elements)?),
    )?;
    let row = Row::new(&greatest);
    // Nothing is as large as no key at all, whose weight must be 0 and not exp(-∞ + ∞).
    let reference = Value::of(
        lowering.map(&[&greatest], &row.shape(compute), compute, |math, elements| {
            let greatest = only(elements)?;
            let nothing = math.compare(F::Equal, greatest, math.constant(f64::NEG_INFINITY)?)?;
            math.select(nothing, math.constant(0.0)?, greatest)
        })?,
    );
    let weights = Value::of(lowering.map(&[&scores, &reference], &shape, compute, |math, elements| {
        let &[score, reference] = elements else {
            return Err(MISSING);
        };
        math.function("math.exp", math.sub(score, reference)?)
    })?);
    let sum = lowering.reduce(&[&weights], &shape, &[KEY], 0.0, |math, elements, so_far| {
        math.add(so_far, only(elements)?)
    })?;
    let v = repeated(lowering, attention.v.clone(), &attention.heads(lowering, op.v)?)?;
    let out = lowering.tensor(op.o)?.dims.clone();
    let weighted = contract(
        lowering,
        &weights.materialise(&lowering.emitter())?,
        &v,
        &out,
        &[0, 1, 2, 3],
        compute,
    )?;
    lowering.finish(op.o, &[&Value::of(weighted), &sum], compute, |math, elements| {
        let &[weighted, total] = elements else {
            return Err(MISSING);
        };
        let nothing = math.compare(F::Equal, total, math.constant(0.0)?)?;
        math.select(nothing, math.constant(0.0)?, math.div(weighted, total)?)
    })?;
    if let Some(id) = op.stats {
        let statistic = lowering.map(&[&reference, &sum], &row.shape(compute), compute, |math, elements| {
            let &[reference, total] = elements else {
                return Err(MISSING);
            };
            math.add(reference, math.function("math.log", total)?)
        })?;
        save(lowering, id, Value::of(statistic), compute)?;
    }
    if let Some(id) = op.max {
        save(lowering, id, greatest, compute)?;
    }
    if let Some(id) = op.sum_exp {
        save(lowering, id, sum, compute)?;
    }
    Ok(())
}

/// Makes a value that of a tensor, which may lack axes of extent 1.
fn save<'c, 'b>(
    lowering: &mut Lowering<'_, 'c, 'b>,
    id: TensorId,
    value: Value<'c, 'b>,
    compute: DataType,
) -> Result<(), EmitError> {
    let value = value.with_dims(&lowering.emitter(), &lowering.tensor(id)?.dims)?;
    lowering.finish(id, &[&value], compute, |_, elements| only(elements))
}

struct Extents {
    heads: i64,
}

/// The operands, with heads of keys repeated for the queries that share them.
struct Attention<'c, 'b> {
    q: Ordered<'c, 'b>,
    k: Ordered<'c, 'b>,
    v: Ordered<'c, 'b>,
    /// B, H, Sq, Skv.
    dims: Vec<i64>,
    extents: Extents,
    scale: Value<'c, 'b>,
    mask: Option<Value<'c, 'b>>,
    lengths: Option<[Value<'c, 'b>; 2]>,
    alibi: bool,
    diagonal: Diagonal,
    compute: DataType,
}

impl<'c, 'b> Attention<'c, 'b> {
    fn new(lowering: &Lowering<'_, 'c, 'b>, op: &Sdpa, compute: DataType) -> Result<Self, EmitError> {
        let (q, k, v) = (
            lowering.settled(op.q)?,
            lowering.settled(op.k)?,
            lowering.settled(op.v)?,
        );
        let (&[batch, heads, queries, _], &[_, _, keys, d]) = (q.dims.as_slice(), k.dims.as_slice()) else {
            return Err(EmitError::Internal("an attention that is not of rank 4"));
        };
        let constant = |value: f64| Value {
            data: Data::Constant(Constant::float(value)),
            dtype: compute,
            dims: vec![1],
        };
        let value = |id: TensorId| lowering.value(id).cloned();
        Ok(Attention {
            k: repeated(lowering, k, &[batch, heads, keys, d])?,
            q,
            v,
            dims: vec![batch, heads, queries, keys],
            extents: Extents { heads },
            scale: match (op.scale, op.attn_scale_value) {
                (Some(scale), _) => value(scale)?.with_dims(&lowering.emitter(), &[1])?,
                // Without either it is 1 in the newest hipDNN (`PlanUtils.hpp`), where older ones divided by the root of D.
                (None, factor) => constant(factor.map_or(1.0, f64::from)),
            },
            mask: op.attn_mask.map(value).transpose()?,
            lengths: match (op.padding_mask, op.seq_len_q, op.seq_len_kv) {
                (true, Some(queries), Some(keys)) => Some([value(queries)?, value(keys)?]),
                _ => None,
            },
            alibi: op.alibi_mask,
            diagonal: Diagonal::of(op),
            compute,
        })
    }

    fn shape(&self) -> Shape<'_> {
        Shape {
            dims: &self.dims,
            order: &[0, 1, QUERY, KEY],
            dtype: self.compute,
        }
    }

    /// The extents of v with as many heads as q has.
    fn heads(&self, lowering: &Lowering<'_, 'c, 'b>, v: TensorId) -> Result<Vec<i64>, EmitError> {
        let mut dims = lowering.tensor(v)?.dims.clone();
        if let Some(heads) = dims.get_mut(1) {
            *heads = self.extents.heads;
        }
        Ok(dims)
    }

    /// The scores, -∞ where a key is hidden.
    fn scores(&self, lowering: &Lowering<'_, 'c, 'b>) -> Result<Ordered<'c, 'b>, EmitError> {
        let product = Value::of(contract(
            lowering,
            &self.q,
            &transposed(&self.k),
            &self.dims,
            &[0, 1, QUERY, KEY],
            self.compute,
        )?);
        let mut operands = vec![&product, &self.scale];
        operands.extend(&self.mask);
        operands.extend(self.lengths.iter().flatten());
        lowering.map(&operands, &self.shape(), self.compute, |math, elements| {
            let (&[product, scale], rest) = elements.split_first_chunk().ok_or(MISSING)?;
            let mut rest = rest.iter().copied();
            let mut score = math.mul(product, scale)?;
            if self.mask.is_some() {
                score = math.add(score, rest.next().ok_or(MISSING)?)?;
            }
            let lengths = match self.lengths {
                Some(_) => Some([rest.next().ok_or(MISSING)?, rest.next().ok_or(MISSING)?]),
                None => None,
            };
            if self.alibi {
                score = math.add(score, self.bias(math)?)?;
            }
            self.hidden(math, score, lengths)
        })
    }

    /// ALiBi: a slope for each head times the distance. The slopes are powers of the first one, 2^(-8/H), where H is a power of two; the
    /// heads beyond the largest power take every other one of twice as many.
    fn bias<'r>(&self, math: &Math<'c, 'r>) -> Scalar<'c, 'r> {
        let heads = self.extents.heads.max(1);
        // 63 less leading zeros: the exponent of the largest power of two in it.
        let regular = 1_i64 << (63 - heads.leading_zeros());
        let head = math.index(1)?;
        let slope = |first: f64, step: f64, offset: f64| -> Scalar<'c, 'r> {
            let exponent = math.add(math.scale(step, head)?, math.constant(first + offset)?)?;
            math.function("math.exp2", exponent)
        };
        let step = -8.0 / regular as f64;
        let among = slope(step, step, 0.0)?;
        let slope = if regular == heads {
            among
        } else {
            // Of twice as many, the first, third, and so on.
            let beyond = slope(step / 2.0, step, -step * regular as f64)?;
            let is_regular = math.compare(F::Less, head, math.constant(regular as f64)?)?;
            math.select(is_regular, among, beyond)?
        };
        let distance = math.sub(math.index(KEY)?, math.index(QUERY)?)?;
        math.mul(slope, distance)
    }

    fn hidden<'r>(
        &self,
        math: &Math<'c, 'r>,
        mut score: Ssa<'c, 'r>,
        lengths: Option<[Ssa<'c, 'r>; 2]>,
    ) -> Scalar<'c, 'r> {
        let nothing = math.constant(f64::NEG_INFINITY)?;
        let (query, key) = (math.index(QUERY)?, math.index(KEY)?);
        let mut hide = |condition: Ssa<'c, 'r>| -> Result<(), EmitError> {
            score = math.select(condition, nothing, score)?;
            Ok(())
        };
        let offset = if self.diagonal.is_bottom_right {
            extent(&self.dims, KEY)? - extent(&self.dims, QUERY)?
        } else {
            0
        };
        let beyond = math.sub(math.sub(key, query)?, math.constant(offset as f64)?)?;
        if let Some(right) = self.diagonal.right {
            hide(math.compare(F::Greater, beyond, math.constant(right as f64)?)?)?;
        }
        if let Some(left) = self.diagonal.left {
            hide(math.compare(F::Less, beyond, math.constant(-(left as f64))?)?)?;
        }
        if let Some([queries, keys]) = lengths {
            hide(math.compare(F::GreaterEqual, query, queries)?)?;
            hide(math.compare(F::GreaterEqual, key, keys)?)?;
        }
        Ok(score)
    }
}

/// The memory of a reduced value: rows without keys.
struct Row {
    dims: Vec<i64>,
    order: Vec<usize>,
}

impl Row {
    fn new(value: &Value<'_, '_>) -> Self {
        Row {
            dims: value.dims.clone(),
            order: match &value.data {
                Data::Tensor { order, .. } => order.clone(),
                Data::Constant(_) | Data::Scalar(_) => Vec::new(),
            },
        }
    }

    fn shape(&self, dtype: DataType) -> Shape<'_> {
        Shape {
            dims: &self.dims,
            order: &self.order,
            dtype,
        }
    }
}

/// The matrices the other way round, where they lie.
fn transposed<'c, 'b>(tensor: &Ordered<'c, 'b>) -> Ordered<'c, 'b> {
    let swapped = |axis: &usize| match *axis {
        QUERY => KEY,
        KEY => QUERY,
        other => other,
    };
    let mut dims = tensor.dims.clone();
    if dims.len() > KEY {
        dims.swap(QUERY, KEY);
    }
    Ordered {
        ssa: tensor.ssa,
        order: tensor.order.iter().map(swapped).collect(),
        dtype: tensor.dtype,
        dims,
    }
}

fn only<'c, 'r>(elements: &[Ssa<'c, 'r>]) -> Scalar<'c, 'r> {
    elements.first().copied().ok_or(MISSING)
}
