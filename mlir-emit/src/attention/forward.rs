//! The forward direction: the softmax of the scores, and the sum of the values weighted by it.

use super::axes::{KEY, QUERY};
use super::hidden::{Rows, in_sequence};
use super::scores::Attention;
use super::softmax::{Softmax, Weighted, divided};
use super::{flash, kernels};
use crate::convert::checked_compute_type;
use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::mlir::Name;
use crate::step::{Combiner, Shape};
use crate::value::Value;
use rotini_graph::{DataType, Sdpa, TensorId};

/// Lowers forward attention.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &Sdpa) {
    let compute = checked_compute_type(compute);
    let attention = Attention::new(lowering, &op.scores(), compute);
    let softmax = match kernels::softmax(lowering, &attention, op) {
        Some(softmax) => softmax,
        None => match flash::softmax(lowering, &attention, op) {
            Some(softmax) => softmax,
            None => stepwise(lowering, &attention, op),
        },
    };
    let Softmax {
        weighted,
        greatest,
        reference,
        total,
    } = softmax;
    match weighted {
        Weighted::Sum(sum) => lowering.finish(op.o, &[&sum, &total], compute, divided),
        Weighted::Quotient(quotient) => lowering.define(op.o, quotient),
    }
    if let Some(id) = op.stats {
        let row = Shape::new(&total.dims, total.order(), compute);
        let statistic = lowering.map(&[&reference, &total], &row, compute, |math, elements| {
            let [reference, total] = exactly(elements);
            reference + math.function(Name::MathLog, total)
        });
        save(lowering, id, Value::of(statistic), compute);
    }
    if let Some(id) = op.max {
        save(lowering, id, greatest, compute);
    }
    if let Some(id) = op.sum_exp {
        save(lowering, id, total, compute);
    }
}

/// Computes softmax and weighted sum step by step, with the scores as a tensor in memory.
fn stepwise<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>, op: &Sdpa) -> Softmax<'c> {
    let sink = op.sink_token.map(|sink| lowering.value(sink).clone());
    let compute = attention.compute;
    let scores = Value::of(attention.scores(lowering));
    let shape = attention.shape();
    let greatest = lowering.reduce(
        &[&scores],
        &shape,
        &[KEY],
        (Combiner::Greatest, f64::NEG_INFINITY),
        |_, elements| only(elements),
    );
    let row = Shape::new(&greatest.dims, greatest.order(), compute);
    let mut operands = vec![&greatest];
    operands.extend(&sink);
    // In a row without visible keys the weights must be 0, not exp(-∞ + ∞) = NaN.
    let reference = Value::of(lowering.map(&operands, &row, compute, |math, elements| {
        let all = elements.iter().copied();
        let greatest = all.reduce(|x, y| math.max(x, y)).expect(MISSING);
        let nothing = math.compare(F::Equal, greatest, math.constant(f64::NEG_INFINITY));
        nothing.select(math.constant(0.0), greatest)
    }));
    let weights = Value::of(lowering.map(&[&scores, &reference], &shape, compute, |_, elements| {
        let [score, reference] = exactly(elements);
        (score - reference).exp()
    }));
    let sum = lowering.reduce(&[&weights], &shape, &[KEY], (Combiner::Sum, 0.0), |_, elements| {
        only(elements)
    });
    let v = attention.for_each_head(lowering, &attention.present(lowering, &attention.v, Rows::Keys));
    let out = lowering.tensor(op.o).dims.clone();
    let factor = weights.materialise(&lowering.emitter());
    let factor = lowering.carry(factor, attention.multiplied(lowering, &[op.v], v.dtype));
    let weighted = Value::of(attention.product(lowering, [&factor, &v], &out, attention.keys_of_query()));
    let weighted = match attention.length(Rows::Queries) {
        // The sink gives hidden queries a nonzero total weight, so their sums have to be set to 0
        // explicitly.
        Some(length) if sink.is_some() => {
            let wide = Shape::new(&out, &[0, 1, QUERY, KEY], compute);
            Value::of(lowering.map(&[&weighted, length], &wide, compute, |math, elements| {
                let (&element, lengths) = elements.split_first().expect(MISSING);
                in_sequence(math, element, lengths)
            }))
        }
        _ => weighted,
    };
    let total = match &sink {
        Some(sink) => Value::of(lowering.map(&[&sum, sink, &reference], &row, compute, |_, elements| {
            let [sum, sink, reference] = exactly(elements);
            sum + (sink - reference).exp()
        })),
        None => sum.clone(),
    };
    Softmax {
        weighted: Weighted::Sum(weighted),
        greatest,
        reference,
        total,
    }
}

/// Defines a tensor by a value that may lack the tensor's axes of extent 1.
fn save<'c>(lowering: &mut Lowering<'_, 'c>, id: TensorId, value: Value<'c>, compute: DataType) {
    let value = value.with_dims(&lowering.emitter(), &lowering.tensor(id).dims);
    lowering.finish(id, &[&value], compute, |_, elements| only(elements))
}
