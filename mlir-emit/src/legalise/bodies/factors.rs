//! Brings the operands of sums of products into forms that the compiler gets right.

use super::rewriting::{Rewriting, element, loops_of};
use crate::counts::exactly;
use crate::custom::elements::{UNKNOWN, element_of, tensor_of, type_of};
use crate::quirks::Quirk;
use rotini_custom::{Body, Element, Generic, Loop, Operation, Scalar, Type, Value};
use rotini_graph::DataType;

/// The conversions that the compiler itself applies to operands and products.
const WIDENING: [&str; 2] = ["arith.extf", "arith.extsi"];

/// One operand of a product: an element of an input and the chain of unary operations on it.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    /// The position of the input.
    pub(super) input: usize,
    /// The value that is multiplied, at the end of the chain.
    multiplied: Value,
}

/// A product of elements of two inputs.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub(super) factors: [Factor; 2],
    /// The multiplication.
    scalar: Scalar,
}

fn scalar(generic: &Generic, value: Value) -> Option<&Scalar> {
    generic.body.iter().find(|scalar| scalar.result == value)
}

/// Returns the value at the start of the chain of unary operations that computes `value`.
pub(super) fn root(generic: &Generic, value: Value) -> Value {
    let mut value = value;
    while let Some([operand]) = scalar(generic, value).map(|scalar| scalar.arithmetic.operands()) {
        value = *operand;
    }
    value
}

/// Returns the product that is summed, or yielded if there is no reduction: a product of elements
/// of two inputs, perhaps converted before or after. The compiler takes its sum for a contraction.
pub(super) fn product(body: &Body, generic: &Generic) -> Option<Product> {
    let made = match generic.combiner() {
        Some(combiner) if ["arith.addf", "arith.addi"].contains(&combiner.arithmetic.name()) => element(generic)?,
        Some(_) => return None,
        None => generic.yielded,
    };
    let scalar = scalar(generic, root(generic, made))?;
    let multiplies = ["arith.mulf", "arith.muli", "arith.andi"].contains(&scalar.arithmetic.name());
    let &[a, b] = scalar.arithmetic.operands() else {
        return None;
    };
    let factor = |multiplied: Value| {
        let argument = root(generic, multiplied);
        let input = generic.arguments.iter().position(|&value| value == argument)?;
        let is_tensor = matches!(type_of(body, generic.inputs.get(input)?.value), Type::Tensor(_));
        is_tensor.then_some(Factor { input, multiplied })
    };
    let factors = [factor(a)?, factor(b)?];
    let [first, second] = &factors;
    (multiplies && first.input != second.input).then(|| Product {
        factors: factors.clone(),
        scalar: scalar.clone(),
    })
}

pub(super) fn is_wide(generic: &Generic, index: usize) -> bool {
    generic.extents.get(index).is_some_and(|&extent| extent > 1)
}

/// Returns the function that is applied to products before they are summed, which the compiler
/// would forget ([`Quirk::ForgottenFunctions`]).
pub(super) fn function_of_products(body: &Body, generic: &Generic) -> Option<&'static str> {
    generic.combiner()?;
    let product = product(body, generic)?;
    let after = steps(generic, element(generic)?, product.scalar.result);
    let mut names = after.iter().map(|step| step.arithmetic.name());
    names.find(|name| !WIDENING.contains(name))
}

impl Rewriting {
    /// Returns the same reduction, in which each operand that has some reduced loops but lacks
    /// others is copied with all of them.
    pub(super) fn written_out(&mut self, generic: Generic) -> Generic {
        let mut made = generic;
        for index in 0..made.inputs.len() {
            let operand = made.inputs[index].clone();
            let own = loops_of(&operand);
            let is_summed = |index: &usize| made.loops.get(*index) == Some(&Loop::Reduction) && is_wide(&made, *index);
            let (has, lacks): (Vec<usize>, Vec<usize>) = (0..made.loops.len())
                .filter(is_summed)
                .partition(|index| own.contains(index));
            if !has.is_empty() && !lacks.is_empty() && made.inputs.len() > 1 {
                let extents = made.extents.clone();
                let loops: Vec<usize> = own.into_iter().chain(lacks).collect();
                let copy = self.copied(&operand, &extents, &loops, None);
                made.inputs[index] = copy;
            }
        }
        made
    }

    /// Returns the same sum of products, with operands in forms that the compiler multiplies right.
    pub(super) fn factors(&mut self, generic: Generic, product: &Product) -> Generic {
        let widens = self.widens(&generic, product);
        let mut made = generic;
        for (factor, widens) in product.factors.iter().zip(widens) {
            let operand = made.inputs[factor.input].clone();
            let own = loops_of(&operand);
            let is_summed = |index: &usize| made.loops.get(*index) == Some(&Loop::Reduction);
            let summed: Vec<usize> = (0..made.loops.len()).filter(is_summed).collect();
            let lacks = |index: &&usize| is_wide(&made, **index) && !own.contains(index);
            let repeats = self.quirks.avoids(Quirk::RepeatedFactors) && summed.iter().any(|index| lacks(&index));
            let is_last = own
                .iter()
                .filter(|index| is_wide(&made, **index))
                .is_sorted_by_key(|index| summed.contains(index));
            let kept = own
                .iter()
                .filter(|index| is_wide(&made, **index) && !summed.contains(index))
                .count();
            let extents_summed = summed.iter().map(|index| made.extents[*index]);
            let masks = !is_last && self.quirks.loses_masks(kept > 1, extents_summed);
            if !(widens || repeats || masks) {
                if self.quirks.avoids(Quirk::UnsettledFactors) && self.is_computed(operand.value) {
                    made.inputs[factor.input].value = self.apart(operand.value);
                }
                continue;
            }
            let has = |index: &usize| own.contains(index) || repeats && is_wide(&made, *index);
            let first = own.iter().copied().filter(|index| !summed.contains(index));
            let loops: Vec<usize> = first.chain(summed.iter().copied().filter(has)).collect();
            let argument = made.arguments[factor.input];
            let steps = steps(&made, factor.multiplied, argument);
            let how = widens.then_some((argument, factor.multiplied, steps.as_slice()));
            let extents = made.extents.clone();
            let copy = self.copied(&operand, &extents, &loops, how);
            let element = tensor_of(&self.body, copy.value).element;
            made.inputs[factor.input] = copy;
            if widens {
                let widened = self.body.define(Type::Scalar(element));
                made.arguments[factor.input] = widened;
                made.body
                    .retain(|scalar| steps.iter().all(|step| step.result != scalar.result));
                for scalar in &mut made.body {
                    scalar.arithmetic.replace(factor.multiplied, widened);
                }
            }
        }
        made
    }

    /// Returns true for each factor whose unary chain has to be computed by the copy, so that the
    /// compiler reads the factor in the type in which it is multiplied.
    fn widens(&self, generic: &Generic, product: &Product) -> [bool; 2] {
        let compute = element_of(&self.body, product.scalar.result);
        let types = self.types(generic, product);
        // In some contractions the compiler forgets functions of a factor. In all of them it
        // sign-extends factors that are to be zero-extended.
        let is_made = |factor: &Factor| {
            let argument = generic.arguments[factor.input];
            let steps = steps(generic, factor.multiplied, argument);
            let names = steps.iter().map(|step| step.arithmetic.name());
            let mut forgotten = names.filter(|name| !WIDENING.contains(name)).map(|name| match name {
                "arith.extui" => Quirk::UnsignedBytes,
                _ => Quirk::ForgottenFunctions,
            });
            forgotten.any(|quirk| self.quirks.avoids(quirk))
        };
        let [a, b] = &product.factors;
        let [of_a, of_b] = types;
        let is_mixed = self.quirks.avoids(Quirk::MixedFactors)
            && of_a != of_b
            && types.iter().all(|ty| ty.is_float() && *ty != compute);
        let lone = |one: &Factor, other: &Factor| -> i64 {
            let loops = |factor: &Factor| generic.inputs.get(factor.input).map(loops_of).unwrap_or_default();
            let others = loops(other);
            let own = loops(one).into_iter().filter(|index| !others.contains(index));
            own.filter_map(|index| generic.extents.get(index))
                .fold(1, |product, extent| product.saturating_mul(*extent))
        };
        let matrix = [lone(a, b), lone(b, a)];
        let are_halves = types == [Element::F16; 2];
        let is_odd = are_halves && self.quirks.sums_thinly([DataType::F16; 2], matrix, &generic.reduced());
        let made = [is_made(a), is_made(b)];
        made.map(|is_made| is_mixed || is_odd || is_made)
    }

    /// Returns true if a loop of this function computes the tensor.
    fn is_computed(&self, value: Value) -> bool {
        let mut statements = self.body.statements.iter();
        statements.any(|statement| {
            let makes = matches!(statement.operation, Operation::Generic(_) | Operation::Concat(..));
            statement.result == value && makes
        })
    }

    fn types(&self, generic: &Generic, product: &Product) -> [Element; 2] {
        let [a, b] = &product.factors;
        let of = |factor: &Factor| {
            let operand = &generic.inputs[factor.input];
            tensor_of(&self.body, operand.value).element
        };
        [of(a), of(b)]
    }
}

/// Returns the operations that compute a factor from an element, in order.
fn steps(generic: &Generic, multiplied: Value, argument: Value) -> Vec<Scalar> {
    let (mut steps, mut value) = (Vec::new(), multiplied);
    while value != argument {
        let step = scalar(generic, value).expect(UNKNOWN);
        let [operand] = exactly(step.arithmetic.operands());
        steps.insert(0, step.clone());
        value = operand;
    }
    steps
}
