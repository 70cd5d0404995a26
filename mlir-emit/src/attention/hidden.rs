//! Keeps elements that sequence lengths and bounds hide out of all results, even if they are NaN or
//! infinite: memory beyond the end of a sequence may hold anything.
//!
//! A score of a hidden key is replaced by -∞. That is not enough where the resulting weight 0 is
//! multiplied with a row of another tensor, since 0 times NaN is NaN:
//!
//! - Rows that no query sees, or that are beyond the end of their sequence, are read as zeros
//!   ([`Attention::present`]).
//! - If some queries see a row and others do not, elements of the product that are NaN are computed
//!   again, from visible rows only ([`Attention::product`]). Without NaN this costs one comparison
//!   per element.

use super::axes::{HEAD, KEY, QUERY};
use super::online::Online;
use super::scores::Attention;
use crate::contract::contract;
use crate::convert::convert;
use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::{Emitter, MISSING, only};
use crate::kernel::LEAST_OF_MASK;
use crate::lowering::Lowering;
use crate::math::{Math, multiply_add};
use crate::mlir::Value as Ssa;
use crate::step::Shape;
use crate::value::{Data, Ordered, Value, extent};
use rotini_graph::DataType;
use std::f64::consts::LOG2_E;

/// The side that a tensor's rows belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    Queries,
    Keys,
}

/// The range of a sum's terms that a row sees, relative to the row's index: the first and the last
/// term. `None` means no bound.
pub(super) type Terms = [Option<i64>; 2];

impl<'c> Attention<'c> {
    /// Returns the numbers of queries and of keys.
    fn lengths_of_both(&self) -> [i64; 2] {
        [extent(&self.dims, QUERY), extent(&self.dims, KEY)]
    }

    /// Returns the keys that a query sees, relative to its index; `None` for a bound that hides no
    /// key.
    pub(super) fn keys_of_query(&self) -> Terms {
        let [queries, keys] = self.lengths_of_both();
        let [from, to] = self.visible();
        [
            from.filter(|from| from.saturating_add(queries) > 1),
            to.filter(|to| to.saturating_add(1) < keys),
        ]
    }

    /// Returns the queries that see a key, relative to its index.
    pub(super) fn queries_of_key(&self) -> Terms {
        let [from, to] = self.keys_of_query();
        [to, from].map(|bound| bound.map(i64::saturating_neg))
    }

    /// Returns the range of a side's rows that the bounds connect to any row of the other side: the
    /// first, and the one after the last.
    fn range(&self, rows: Rows) -> [i64; 2] {
        let [queries, keys] = self.lengths_of_both();
        let ([from, to], own, others) = match rows {
            Rows::Queries => (self.queries_of_key(), queries, keys),
            Rows::Keys => (self.keys_of_query(), keys, queries),
        };
        let first = from.map_or(0, |from| from.clamp(0, own));
        let end = to.map_or(own, |to| to.saturating_add(others).clamp(first, own));
        [first, end]
    }

    /// Returns a tensor of queries or keys with zeros in rows that sequence lengths hide, or that
    /// bounds hide from every row of the other side.
    pub(super) fn present(&self, lowering: &Lowering<'_, 'c>, tensor: &Ordered<'c>, rows: Rows) -> Ordered<'c> {
        let [first, end] = self.range(rows);
        let count = extent(&tensor.dims, QUERY);
        let is_whole = first == 0 && end == count;
        if is_whole && self.lengths.is_none() {
            return tensor.clone();
        }
        let is_kept = matches!(
            tensor.dtype,
            DataType::F16 | DataType::Bf16 | DataType::F32 | DataType::F64
        );
        let shape = Shape {
            dims: &tensor.dims,
            order: &tensor.order,
            // Codes (such as 8-bit floats) need a conversion before zero can be selected.
            dtype: if is_kept { tensor.dtype } else { self.compute },
        };
        let value = Value::of(tensor.clone());
        let mut operands = vec![&value];
        operands.extend(self.length(rows));
        let present = lowering.map(&operands, &shape, self.compute, |math, elements| {
            let (&element, lengths) = elements.split_first().expect(MISSING);
            shown(math, element, (lengths, [first, end, count]))
        });
        Ordered {
            // The tensor is an operand of a matmul, so it is computed once, in a separate dispatch.
            ssa: lowering.emitter().barrier(present.ssa),
            ..present
        }
    }

    /// Returns the sequence lengths of a side, one per batch, if the graph has them.
    pub(super) fn length(&self, rows: Rows) -> Option<&Value<'c>> {
        self.lengths.as_ref().map(|[queries, keys]| match rows {
            Rows::Queries => queries,
            Rows::Keys => keys,
        })
    }

    /// Returns the product of weights and a matrix, in which rows of the matrix that a row of
    /// weights does not see add nothing, even if they are NaN. Their weights are 0.
    pub(super) fn product(
        &self,
        lowering: &Lowering<'_, 'c>,
        [a, b]: [&Ordered<'c>; 2],
        dims: &[i64],
        terms: Terms,
    ) -> Ordered<'c> {
        let product = contract(lowering, a, b, dims, &[0, 1, QUERY, KEY], self.compute);
        if extent(dims, QUERY) < 2 || terms == [None; 2] {
            return product;
        }
        let at = lowering.emitter();
        let product = Value::of(product.apart(&at));
        let shape = Shape::new(dims, &[0, 1, QUERY, KEY], self.compute);
        lowering.map(&[&product], &shape, self.compute, |math, elements| {
            let body = &math.at;
            let [batch, head, row, column] = places(body);
            mended(body, only(elements), || {
                let range = seen(body, row, (terms, extent(&b.dims, QUERY)));
                body.fold(range, body.zero(self.compute), |term, sum| {
                    let weight = a.element(body, &[batch, head, row, term]);
                    let element = b.element(body, &[batch, head, term, column]);
                    multiply_add(body, &[weight, element, sum], [a.dtype, b.dtype], self.compute)
                })
            })
        })
    }

    /// Returns the results of IREE's operation, in which each NaN is computed again from only the
    /// keys that the query sees. The operation adds -∞ to scores of hidden keys and multiplies
    /// their values by 0, which is NaN if they are NaN or infinite.
    pub(super) fn found_again(&self, lowering: &Lowering<'_, 'c>, online: Online<'c>) -> Online<'c> {
        let terms = self.keys_of_query();
        let Data::Constant(scale) = self.scale.data else {
            unreachable!("{MISSING}");
        };
        if terms == [None; 2] {
            return online;
        }
        let at = lowering.emitter();
        let dtype = DataType::F32;
        let mask = self.mask.as_ref().map(|mask| mask.materialise(&at));
        let power = Power {
            operands: [&self.q, &self.k],
            mask: mask.as_ref(),
            group: power_group(&self.q, &self.k),
            scale: scale.to_f64() * LOG2_E,
        };
        let keys = extent(&self.dims, KEY);
        let apart = |value: Value<'c>| {
            let tensor = value.materialise(&at);
            tensor.apart(&at)
        };
        let [weighted, greatest, total] = [online.weighted, online.greatest, online.total].map(apart);
        let (rows, all) = (self.rows(), [0, HEAD, QUERY, KEY]);
        let row = Shape::new(&rows, &all, dtype);
        let operands = [Value::of(greatest), Value::of(total)];
        let operands = [&operands[0], &operands[1]];
        let greatest = lowering.map(&operands, &row, dtype, |math, elements| {
            let [greatest, total] = exactly(elements);
            let [batch, head, query, _] = places(&math.at);
            let is_nan = math.at.compare_floats(F::UnorderedNotEqual, total, total);
            math.at.replaced(is_nan, greatest, || {
                let place = [batch, head, query];
                let least = math.at.constant(f64::from(f32::MIN), dtype);
                math.at
                    .fold(seen(&math.at, place[2], (terms, keys)), least, |key, most| {
                        let power = power.of(&math.at, place, key);
                        let is_more = math.at.compare_floats(F::Greater, power, most);
                        is_more.select(power, most)
                    })
            })
        });
        let greatest = Value::of(greatest);
        let total = lowering.map(&[operands[1], &greatest], &row, dtype, |math, elements| {
            let [total, greatest] = exactly(elements);
            let [batch, head, query, _] = places(&math.at);
            let body = &math.at;
            mended(body, total, || {
                let place = [batch, head, query];
                body.fold(seen(body, place[2], (terms, keys)), body.zero(dtype), |key, sum| {
                    let power = power.of(body, place, key);
                    let power = power - greatest;
                    sum + power.exp2()
                })
            })
        });
        let wide = Shape {
            dims: &weighted.dims.clone(),
            order: &all,
            dtype,
        };
        let v = &self.v;
        let weighted = lowering.map(&[&Value::of(weighted), &greatest], &wide, dtype, |math, elements| {
            let [weighted, greatest] = exactly(elements);
            let [batch, head, query, column] = places(&math.at);
            let body = &math.at;
            mended(body, weighted, || {
                let place = [batch, head, query];
                body.fold(seen(body, place[2], (terms, keys)), body.zero(dtype), |key, sum| {
                    let power = power.of(body, place, key);
                    let weight = (power - greatest).exp2();
                    let head = power_head(body, place[1], power_group(&self.q, v));
                    let element = v.element(body, &[place[0], head, key, column]);
                    multiply_add(body, &[weight, element, sum], [dtype, v.dtype], dtype)
                })
            })
        });
        Online {
            weighted: Value::of(weighted),
            greatest,
            total: Value::of(total),
        }
    }
}

/// Returns an element of a row, or zero if the row is outside of `first..end` or beyond the
/// sequence's end. `count`: rows of the tensor.
fn shown<'c>(math: &Math<'c>, mut element: Ssa<'c>, (lengths, [first, end, count]): (&[Ssa<'c>], [i64; 3])) -> Ssa<'c> {
    let (zero, row) = (math.constant(0.0), math.index(QUERY));
    if first > 0 {
        let is_before = math.compare(F::Less, row, math.constant(first as f64));
        element = is_before.select(zero, element);
    }
    if end < count {
        let is_behind = math.compare(F::GreaterEqual, row, math.constant(end as f64));
        element = is_behind.select(zero, element);
    }
    in_sequence(math, element, lengths)
}

/// Returns the element, or zero if its row is beyond the length of its sequence. Without lengths,
/// it is always the element.
pub(super) fn in_sequence<'c>(math: &Math<'c>, element: Ssa<'c>, lengths: &[Ssa<'c>]) -> Ssa<'c> {
    let Some(&length) = lengths.first() else {
        return element;
    };
    let is_behind = math.compare(F::GreaterEqual, math.index(QUERY), length);
    is_behind.select(math.constant(0.0), element)
}

/// Returns the indices of all four loops.
fn places<'c>(body: &Emitter<'c>) -> [Ssa<'c>; 4] {
    [0, 1, 2, 3].map(|axis| body.loop_index(axis))
}

/// Returns `number`, or the result of `again` if it is NaN.
fn mended<'c>(body: &Emitter<'c>, number: Ssa<'c>, again: impl FnOnce() -> Ssa<'c>) -> Ssa<'c> {
    let is_nan = body.compare_floats(F::UnorderedNotEqual, number, number);
    body.replaced(is_nan, number, again)
}

/// Returns the first of `count` terms that a row sees, and the one after the last.
fn seen<'c>(body: &Emitter<'c>, row: Ssa<'c>, ([from, to], count): (Terms, i64)) -> [Ssa<'c>; 2] {
    let index = |number: i64| body.integer(number, body.index_type());
    let moved = |by: i64| row + index(by);
    let first = match from {
        Some(from) => moved(from).maxsi(index(0)),
        None => index(0),
    };
    let end = match to {
        Some(to) => moved(to.saturating_add(1)).minsi(index(count)),
        None => index(count),
    };
    [first, end]
}

/// The scores times log2(e): exponents of 2.
struct Power<'a, 'c> {
    /// q and k.
    operands: [&'a Ordered<'c>; 2],
    mask: Option<&'a Ordered<'c>>,
    /// Heads of q per head of k.
    group: i64,
    scale: f64,
}

impl<'c> Power<'_, 'c> {
    /// Returns the scaled and masked score of a query with a key.
    fn of(&self, body: &Emitter<'c>, [batch, head, query]: [Ssa<'c>; 3], key: Ssa<'c>) -> Ssa<'c> {
        let [q, k] = self.operands;
        let dtype = DataType::F32;
        let index = |number: i64| body.integer(number, body.index_type());
        let of_keys = power_head(body, head, self.group);
        let columns = [index(0), index(extent(&q.dims, KEY))];
        let sum = body.fold(columns, body.zero(dtype), |column, sum| {
            let q_element = q.element(body, &[batch, head, query, column]);
            let k_element = k.element(body, &[batch, of_keys, key, column]);
            multiply_add(body, &[q_element, k_element, sum], [q.dtype, k.dtype], dtype)
        });
        let scaled = sum * body.constant(self.scale, dtype);
        let Some(mask) = self.mask else { return scaled };
        let places = [batch, head, query, key];
        let zero = index(0);
        // The mask's axes are the last axes of the scores.
        let missing = places.len().saturating_sub(mask.dims.len());
        let places: Vec<_> = places
            .into_iter()
            .skip(missing)
            .zip(&mask.dims)
            .map(|(place, &dim)| if dim == 1 { zero } else { place })
            .collect();
        let added = mask.element(body, &places);
        let added = convert(body, added, mask.dtype, dtype);
        let [least, hiding] = [LEAST_OF_MASK, f64::NEG_INFINITY].map(|number| body.constant(number, dtype));
        let raised = body.compare_floats(F::Less, added, least).select(least, added);
        let added = body.compare_floats(F::Equal, added, hiding).select(added, raised);
        let added = added * body.constant(LOG2_E, dtype);
        scaled + added
    }
}

/// Returns the number of heads of q per head of `of`, which has keys or values.
fn power_group(q: &Ordered<'_>, of: &Ordered<'_>) -> i64 {
    let heads = extent(&of.dims, HEAD);
    extent(&q.dims, HEAD).checked_div(heads).expect(MISSING)
}

/// Returns the head of keys that a head of q reads. `group`: heads of q for each head of keys.
fn power_head<'c>(body: &Emitter<'c>, head: Ssa<'c>, group: i64) -> Ssa<'c> {
    if group == 1 {
        return head;
    }
    head.divui(body.integer(group, body.index_type()))
}
