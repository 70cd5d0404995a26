//! The gradients of attention, step by step, with the scores as a tensor in memory.

use super::axes::HEAD;
use super::gradients::gradients;
use super::hidden::{Rows, in_sequence};
use super::scores::{Attention, level, transposed};
use crate::contract::contract;
use crate::convert::checked_compute_type;
use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::step::{Combiner, Shape, lacking, order_of};
use crate::value::{Data, Ordered, Value, extent};
use rotini_graph::{DataType, SdpaBackward};

/// Lowers the gradients of attention.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &SdpaBackward) {
    let compute = checked_compute_type(compute);
    let attention = Attention::new(lowering, &op.scores(), compute);
    if let Some(gradients) = gradients(lowering, &attention, op) {
        for (id, gradient) in [op.dq, op.dk, op.dv].into_iter().zip(gradients) {
            lowering.define(id, gradient);
        }
        return;
    }
    let scores = Value::of(attention.scores(lowering));
    let shape = attention.shape();
    let statistics = lowering
        .value(op.stats)
        .clone()
        .with_dims(&lowering.emitter(), &attention.rows());
    let d_o = lowering.settled(op.d_o);
    let multiplied = Shape {
        dtype: attention.multiplied(lowering, &[op.d_o], d_o.dtype),
        ..shape
    };
    let weights = lowering.map(&[&scores, &statistics], &multiplied, compute, |math, elements| {
        let [score, statistic] = exactly(elements);
        let weight = (score - statistic).exp();
        let hidden = math.compare(F::Equal, score, math.constant(f64::NEG_INFINITY));
        hidden.select(math.constant(0.0), weight)
    });
    let at = lowering.emitter();
    // The probabilities are an operand of the matmul for dv and end another matmul's epilogue: a
    // barrier makes sure that they are computed once.
    let weights = weights.apart(&at);
    let d_o_value = Value::of(d_o.clone());
    let order = order_of(&d_o.dims, &[&d_o_value]);
    let level = level(lowering, (&d_o_value, op.o), &order, compute);
    let v = attention.for_each_head(lowering, &attention.v);
    let reached = Value::of(contract(
        lowering,
        &d_o,
        &transposed(&v),
        shape.dims,
        &[0, 1, 2, 3],
        compute,
    ));
    let weight = Value::of(weights.clone());
    let mut operands = vec![&weight, &reached, &level];
    operands.extend(attention.lengths.iter().flatten());
    let gradient = lowering.map(&operands, &shape, compute, |math, elements| {
        let (&[weight, reached, level], lengths) = elements.split_first_chunk().expect(MISSING);
        let lengths = match lengths {
            &[queries, keys] => Some([queries, keys]),
            _ => None,
        };
        let gradient = weight * (reached - level);
        // A hidden weight is 0, but 0 times NaN is NaN, so hidden elements are replaced explicitly.
        attention.hidden_as(math, (gradient, 0.0), lengths)
    });
    let multiplied = attention.multiplied(lowering, &[op.q, op.k], attention.q.dtype);
    let factor = lowering.carry(gradient.clone(), multiplied);
    // An operand of two matmuls: a barrier makes sure that it is computed once.
    let factor = factor.apart(&at);
    let scale = attention.scale.clone();
    let k = attention.for_each_head(lowering, &attention.present(lowering, &attention.k, Rows::Keys));
    let q = attention.present(lowering, &attention.q, Rows::Queries);
    let d_o = attention.present(lowering, &d_o, Rows::Queries);
    for (id, a, b, is_scaled) in [
        (op.dq, factor.clone(), k, true),
        (op.dk, transposed(&factor), q, true),
        (op.dv, transposed(&weights), d_o, false),
    ] {
        let (rows, terms) = if id == op.dq {
            (Rows::Queries, attention.keys_of_query())
        } else {
            (Rows::Keys, attention.queries_of_key())
        };
        let dims = lowering.tensor(id).dims.clone();
        let mut full = dims.clone();
        full[HEAD] = extent(&attention.dims, HEAD);
        let product = attention.product(lowering, [&a, &b], &full, terms);
        let summed = shared(lowering, product, extent(&dims, HEAD));
        let mut operands = vec![&summed];
        operands.extend(is_scaled.then_some(&scale));
        operands.extend(attention.length(rows));
        lowering.finish(id, &operands, compute, |math, elements| {
            let (&product, mut rest) = elements.split_first().expect(MISSING);
            let mut scaled = product;
            if is_scaled {
                let (&scale, lengths) = rest.split_first().expect(MISSING);
                (scaled, rest) = (product * scale, lengths);
            }
            in_sequence(math, scaled, rest)
        });
    }
    let Some(bias) = op.dbias else { return };
    let dims = &lowering.tensor(bias).dims;
    let summed = lowering.reduce(
        &[&Value::of(gradient)],
        &shape,
        &lacking(shape.dims, dims),
        (Combiner::Sum, 0.0),
        |_, elements| only(elements),
    );
    let summed = summed.with_dims(&at, dims);
    lowering.finish(bias, &[&summed], compute, |_, elements| only(elements))
}

/// Returns the gradient of k or v, summed over the heads of q that share one head of k or v.
/// `product` is row-major.
fn shared<'c>(lowering: &Lowering<'_, 'c>, product: Ordered<'c>, heads: i64) -> Value<'c> {
    let [batch, all, rows, columns] = exactly(&product.dims);
    if all == heads {
        return Value::of(product);
    }
    let dims = [batch, heads, all / heads, rows, columns];
    let groups = [vec![0], vec![1, 2], vec![3], vec![4]];
    let at = lowering.emitter();
    let split = Value::of(Ordered::new(
        at.expand(product.ssa, &groups, &dims),
        (0..dims.len()).collect(),
        product.dtype,
        dims.to_vec(),
    ));
    let shape = Shape::new(&dims, &[0, 1, 2, 3, 4], product.dtype);
    let summed = lowering.reduce(&[&split], &shape, &[2], (Combiner::Sum, 0.0), |_, elements| {
        only(elements)
    });
    let Data::Tensor { ssa, order } = summed.data else {
        unreachable!("{MISSING}");
    };
    // Dropping the reduced axis may also have dropped axes of extent 1.
    let order = order.into_iter().map(|axis| axis - usize::from(axis > 2)).collect();
    Value::of(Ordered::new(
        ssa,
        order,
        product.dtype,
        vec![batch, heads, rows, columns],
    ))
}
