//! Legal forms of scalar operations, in the bodies of structured operations.

use crate::ir::{Emitter, FloatPredicate};
use crate::mlir::{Name, Value};
use crate::quirks::Quirk;
use rotini_graph::DataType;

impl<'c> Emitter<'c> {
    /// Returns -x as a term that may be summed. [`Quirk::NegatedTerms`]: -x copies its own sign,
    /// which the compiler folds only after it has looked for sums; for integers it is ~x + 1.
    pub(crate) fn negated(&self, x: Value<'c>) -> Value<'c> {
        let number = |value| self.integer(value, x.r#type());
        match (self.quirks().avoids(Quirk::NegatedTerms), x.r#type().has_floats()) {
            (true, true) => with_own_sign(-x),
            (true, false) => (x ^ number(-1)) + number(1),
            (false, true) => -x,
            (false, false) => number(0) - x,
        }
    }

    /// Returns a sum over loops as a term of another sum. [`Quirk::FoldedSums`]: the compiler would
    /// start the sum over loops from the other terms.
    pub(crate) fn complete(&self, sum: Value<'c>) -> Value<'c> {
        let is_folded = self.quirks().avoids(Quirk::FoldedSums) && sum.r#type().has_floats();
        if is_folded { with_own_sign(sum) } else { sum }
    }

    /// Returns a term of a sum, which is a product with a factor that is repeated along a summed
    /// axis. [`Quirk::RepeatedFactors`]: the compiler would take the sum for a contraction.
    pub(crate) fn uncontracted(&self, term: Value<'c>) -> Value<'c> {
        let contracts = self.quirks().avoids(Quirk::RepeatedFactors) && term.r#type().has_floats();
        if contracts { with_own_sign(term) } else { term }
    }

    /// Returns the maximum or minimum of x and y; NaN if either is NaN. `extreme` is the result for
    /// numbers. [`Quirk::LostNan`]: `extreme` may ignore NaN.
    pub(crate) fn or_nan(&self, [x, y]: [Value<'c>; 2], extreme: Value<'c>) -> Value<'c> {
        if !x.r#type().has_floats() || !self.quirks().avoids(Quirk::LostNan) {
            return extreme;
        }
        let are_numbers = self.compare_floats(FloatPredicate::Ordered, x, y);
        are_numbers.select(extreme, self.float(f64::NAN, x.r#type()))
    }

    /// Returns x if the predicate holds for x and y, else y; if one of them is NaN, the other.
    /// `name` is the operation that does so. [`Quirk::MissingFmax`]: it may call a function that
    /// does not exist.
    pub(crate) fn number(&self, name: Name, predicate: FloatPredicate, [x, y]: [Value<'c>; 2]) -> Value<'c> {
        if !self.quirks().avoids(Quirk::MissingFmax) {
            return self.same(name, &[x, y]);
        }
        let chosen = self.compare_floats(predicate, x, y).select(x, y);
        let is_nan = self.compare_floats(FloatPredicate::UnorderedNotEqual, y, y);
        is_nan.select(x, chosen)
    }

    /// Returns erf(x). [`Quirk::CopiedSign`]: in f32 it is erf(|x|) with the sign chosen by a
    /// comparison, because the compiler's function ends with a copied sign.
    pub(crate) fn erf(&self, x: Value<'c>) -> Value<'c> {
        if !self.copies_no_sign(x) {
            return self.same(Name::MathErf, &[x]);
        }
        let of_magnitude = self.same(Name::MathErf, &[x.absf()]);
        let zero = self.float(0.0, x.r#type());
        let is_negative = self.compare_floats(FloatPredicate::Less, x, zero);
        is_negative.select(-of_magnitude, of_magnitude)
    }

    /// Returns the magnitude of x with the sign of another float. [`Quirk::CopiedSign`]: the sign
    /// of an f32 is taken from an integer minimum, or the code generator would recognise the
    /// function again. A copy of x's own sign may stay, since the compiler folds it.
    pub(crate) fn with_sign(&self, x: Value<'c>, sign: Value<'c>) -> Value<'c> {
        if x == sign || !self.copies_no_sign(x) {
            return x.copysign(sign);
        }
        let integer = self.element_type(DataType::I32);
        let number = |value| self.integer(value, integer);
        let magnitude = x.bitcast(integer) & number(0x7FFF_FFFF);
        let negative = sign.bitcast(integer).minsi(number(0));
        let sign = negative & number(0x8000_0000);
        (magnitude | sign).bitcast(x.r#type())
    }

    /// Returns true if functions of x must not end with a copied sign.
    fn copies_no_sign(&self, x: Value<'c>) -> bool {
        self.quirks().avoids(Quirk::CopiedSign) && x.r#type() == self.element_type(DataType::F32)
    }

    /// Converts an integer to a float by the operation `name`. [`Quirk::FoldedBf16`]: 0 is added to
    /// the f32, so that the compiler does not merge the conversion with a rounding to bf16. No
    /// integer is -0, so the addition changes nothing.
    pub(crate) fn converted_integer(&self, name: Name, value: Value<'c>, to: DataType) -> Value<'c> {
        let is_folded = self.quirks().avoids(Quirk::FoldedBf16) && matches!(to, DataType::F32 | DataType::Bf16);
        if !is_folded {
            return self.one(name, &[value], self.element_type(to), &[]);
        }
        let float = self.element_type(DataType::F32);
        let number = self.one(name, &[value], float, &[]) + self.float(0.0, float);
        match to {
            DataType::Bf16 => number.truncf(self.element_type(to)),
            _ => number,
        }
    }

    /// Rounds an f64 to a 16-bit float. [`Quirk::RoundedTwice`]: the compiler rounds to f32 first,
    /// so that rounding is done to odd. Then no inexact number is halfway between two numbers of
    /// the second type: its last bit says that there was a remainder.
    pub(crate) fn narrowed(&self, value: Value<'c>, to: DataType) -> Value<'c> {
        if !self.quirks().avoids(Quirk::RoundedTwice) {
            return value.truncf(self.element_type(to));
        }
        let (single, bits) = (self.element_type(DataType::F32), self.element_type(DataType::I32));
        let nearest = value.truncf(single);
        let magnitude = nearest.extf(value.r#type()).absf();
        let own = value.absf();
        let is_larger = self.compare_floats(FloatPredicate::Greater, magnitude, own);
        let is_smaller = self.compare_floats(FloatPredicate::Less, magnitude, own);
        let is_inexact = is_larger | is_smaller;
        let odd = nearest.bitcast(bits) - is_larger.extui(bits);
        let odd = odd | is_inexact.extui(bits);
        odd.bitcast(single).truncf(self.element_type(to))
    }
}

/// Returns a float with its own sign copied to it, which the compiler folds late.
fn with_own_sign(x: Value<'_>) -> Value<'_> {
    x.copysign(x)
}
