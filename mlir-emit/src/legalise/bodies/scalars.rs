//! Legal forms of the scalar operations of a body.

use super::extremes::Extreme;
use crate::convert::integer_to_float;
use crate::custom::build::{Builder, Values};
use crate::custom::elements::{element_of, float_of};
use crate::ir::Emitter;
use crate::math::Math;
use crate::mlir::Value as Ssa;
use crate::quirks::{Quirk, Quirks};
use rotini_custom::{Element, Scalar};
use rotini_graph::DataType;

/// The operations that the compiler may get wrong.
const WRONG: [(&str, Quirk); 9] = [
    ("arith.maximumf", Quirk::LostNan),
    ("arith.minimumf", Quirk::LostNan),
    ("arith.maxnumf", Quirk::MissingFmax),
    ("arith.minnumf", Quirk::MissingFmax),
    ("arith.negf", Quirk::NegatedTerms),
    ("arith.sitofp", Quirk::FoldedBf16),
    ("arith.uitofp", Quirk::FoldedBf16),
    ("math.erf", Quirk::CopiedSign),
    ("math.copysign", Quirk::CopiedSign),
];

/// Whether the target's compiler may get the operation of this name wrong.
pub(super) fn is_wrong(quirks: Quirks, name: &str) -> bool {
    WRONG
        .iter()
        .any(|&(wrong, quirk)| wrong == name && quirks.avoids(quirk))
}

impl<'c> Builder<'_, 'c> {
    /// Returns the result of a scalar operation, in a form that the compiler gets right.
    pub(crate) fn scalar(&self, at: &Emitter<'c>, values: &Values<'c>, scalar: &Scalar) -> Ssa<'c> {
        let (name, operands) = (scalar.arithmetic.name(), scalar.arithmetic.operands());
        let element = element_of(self.body, scalar.result);
        if !is_wrong(at.quirks(), name) {
            return self.operation(at, values, scalar);
        }
        match (name, values.all(operands).as_slice()) {
            ("arith.negf", &[x]) => at.negated(x),
            ("arith.sitofp" | "arith.uitofp", &[x]) => {
                let bits = element_of(self.body, operands[0]).bits();
                integer_to_float(at, name, (x, bits), float_of(element))
            }
            ("math.erf", &[x]) if element == Element::F32 => {
                Math::new(*at, self.target, DataType::F32, Vec::new()).erf(x)
            }
            ("math.copysign", &[x, sign]) if element == Element::F32 => at.with_sign(x, sign),
            (_, operands) => match (Extreme::any(name), operands) {
                (Some(extreme), &[x, y]) => extreme.choose(at, element, x, y),
                _ => self.operation(at, values, scalar),
            },
        }
    }
}
