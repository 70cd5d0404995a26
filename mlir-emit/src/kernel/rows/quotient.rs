//! Divisions of a row's elements by a value of the row, if the quotient is only used rounded to 16
//! bits.
//!
//! ```text
//! x / d = (x p) (1 / (d p))        p: a power of two that makes d p about 1
//! ```
//!
//! Example: the last step of a softmax, exp(x - max) / sum. A division takes eleven instructions
//! per element, the two products take two. The compiler hoists p and 1 / (d p), which are the same
//! for a row, out of the loop over elements. The result is within two units in the last place of
//! f32.

use super::problem::{Kind, Rows, Step};
use crate::kernel::code::{Code, Ssa};
use crate::kernel::epilogue::Source;
use crate::mlir::{Attribute, Context, Float, Name, Type};
use std::collections::HashMap;

/// A division that is replaced by products.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// The id of its result.
    pub(super) result: usize,
    pub(super) divisor: Source,
}

/// Returns the first such division of each step, by the step's index.
pub(super) fn divisions(context: &Context, rows: &Rows<'_>) -> HashMap<usize, Division> {
    let steps = rows.steps.iter().enumerate();
    steps
        .filter_map(|(number, step)| Some((number, division(context, rows, (number, step))?)))
        .collect()
}

fn division(context: &Context, rows: &Rows<'_>, (number, step): (usize, &Step)) -> Option<Division> {
    let single = Type::float(context, Float::F32);
    step.body.iter().find_map(|operation| {
        let (&[_, divisor], &[result]) = (operation.operands(), operation.results()) else {
            return None;
        };
        if operation.name() != Name::ArithDivf || context.value(result).r#type() != single {
            return None;
        }
        let mut arguments = step.arguments.iter().zip(&step.sources);
        let (_, &divisor) = arguments.find(|(argument, _)| **argument == divisor)?;
        let becomes_products = is_of_row(rows, divisor) && is_rounded(rows, (number, step), result);
        becomes_products.then_some(Division { result, divisor })
    })
}

/// Returns whether a value has only one element per row.
fn is_of_row(rows: &Rows<'_>, source: Source) -> bool {
    match source {
        Source::Operand(number) => rows.operands.get(number).is_some_and(|tensor| tensor.is_same(true)),
        Source::Step(number) => rows.steps.get(number).is_some_and(|step| step.kind != Kind::Element),
        Source::Sums | Source::Unused => false,
    }
}

/// Returns whether each use of a step's value is a rounding to fewer bits.
fn is_rounded(rows: &Rows<'_>, (number, step): (usize, &Step), value: usize) -> bool {
    let mut uses = step
        .body
        .iter()
        .filter(|operation| operation.operands().contains(&value));
    uses.all(|operation| match operation.name() {
        Name::ArithTruncf => true,
        Name::LinalgYield => {
            let own = Source::Step(number);
            let is_stored = rows.stored.iter().any(|(source, _)| *source == own);
            // A step reads only earlier steps.
            let mut readers = rows.steps.iter().enumerate().skip(number + 1);
            !is_stored
                && readers.all(|reader| {
                    let mut arguments = reader.1.arguments.iter().zip(&reader.1.sources);
                    arguments.all(|(&argument, &source)| source != own || is_rounded(rows, reader, argument))
                })
        }
        _ => false,
    })
}

/// Returns the quotients of elements by one divisor.
pub(super) fn products<'c>(code: &Code<'c>, elements: Ssa<'c>, divisor: Ssa<'c>) -> Ssa<'c> {
    // The exponent bits of an f32, and the exponents of 2^126 and of 2^-126.
    const EXPONENT: u32 = 0x7f80_0000;
    const GREATEST: u32 = 0x7e80_0000;
    const LEAST: u32 = 0x0080_0000;
    let (word, float) = (Type::integer(code.context(), 32), divisor.r#type());
    let number = |bits: u32| {
        let value = Attribute::scalar(bits, word);
        code.literal(value, word)
    };
    // The divisor times this power is from 1/2 to 1, so that no product is larger than the
    // quotient. It is from 1 to 4 if the divisor is 2^126 or more, and may be below 1/2 if the
    // divisor is subnormal. Quotients by zero, infinities and NaN are unchanged.
    let bits = divisor.bitcast(word);
    let exponent = bits & number(EXPONENT);
    let power = number(GREATEST) - exponent;
    let power = power.maxsi(number(LEAST));
    let power = power.bitcast(float);
    let scaled = divisor * power;
    let reciprocal = code.float_text("1.0", float) / scaled;
    let all = |factor: Ssa<'c>| factor.broadcast(elements.r#type());
    let scaled = elements * all(power);
    scaled * all(reciprocal)
}
