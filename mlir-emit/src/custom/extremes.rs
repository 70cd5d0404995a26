//! Maximum and minimum of two floats on targets that do not have MLIR's operation for it.
//!
//! `arith.maximumf` and `arith.minimumf` may lose NaN ([`Quirk::LostNan`]). There a comparison
//! chooses the result. Along an axis one operation has to combine the elements, so floats are
//! combined as integers of the same order. `arith.maxnumf` and `arith.minnumf` may call a function
//! that does not exist ([`Quirk::MissingFmax`]). There a comparison chooses too, except along an
//! axis.

use super::build::{Builder, Values};
use super::elements::{constant, scalar_type, tensor_type};
use crate::ir::Emitter;
use crate::ir::{FloatPredicate, IntegerPredicate};
use crate::mlir::Value as Ssa;
use crate::quirks::{Quirk, Quirks};
use rotini_custom::{Arithmetic, Element, Generic};

/// Which one of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extreme {
    is_larger: bool,
    /// Whether NaN wins over numbers; the operation distinguishes the signs of zeros then.
    keeps_nan: bool,
}

impl Extreme {
    /// `arith.maximumf` or `arith.minimumf`.
    pub(super) fn of(arithmetic: &Arithmetic) -> Option<Self> {
        Self::any(arithmetic).filter(|extreme| extreme.keeps_nan)
    }

    fn any(arithmetic: &Arithmetic) -> Option<Self> {
        let (is_larger, keeps_nan) = match arithmetic.name() {
            "arith.maximumf" => (true, true),
            "arith.minimumf" => (false, true),
            "arith.maxnumf" => (true, false),
            "arith.minnumf" => (false, false),
            _ => return None,
        };
        Some(Extreme { is_larger, keeps_nan })
    }

    /// What an operation that does not combine elements is chosen as where these are avoided.
    pub(super) fn chosen(arithmetic: &Arithmetic, quirks: Quirks) -> Option<Self> {
        Self::any(arithmetic).filter(|extreme| {
            quirks.avoids(if extreme.keeps_nan {
                Quirk::LostNan
            } else {
                Quirk::MissingFmax
            })
        })
    }

    pub(super) fn choose<'c>(self, at: &Emitter<'c>, element: Element, x: Ssa<'c>, y: Ssa<'c>) -> Ssa<'c> {
        let ty = x.r#type();
        let select = |condition: Ssa<'c>, yes: Ssa<'c>, no: Ssa<'c>| condition.select(yes, no);
        let (more, less) = if self.is_larger {
            (FloatPredicate::Greater, FloatPredicate::Less)
        } else {
            (FloatPredicate::Less, FloatPredicate::Greater)
        };
        let is_first = at.compare_floats(more, x, y);
        if !self.keeps_nan {
            let is_nan = at.compare_floats(FloatPredicate::UnorderedNotEqual, y, y);
            return select(is_nan, x, select(is_first, x, y));
        }
        // Equal floats have equal bits, unless they are zeros.
        let bits = scalar_type(at, integer(element));
        let name = if self.is_larger { "arith.andi" } else { "arith.ori" };
        let of_both = at.same(name, &[x.bitcast(bits), y.bitcast(bits)]);
        let equal = of_both.bitcast(ty);
        let is_equal = at.compare_floats(FloatPredicate::Equal, x, y);
        let is_second = at.compare_floats(less, x, y);
        let nan = x + y;
        select(is_first, x, select(is_second, y, select(is_equal, equal, nan)))
    }

    /// An integer for each float, in the same order, with NaN at the end that wins.
    fn key<'c>(self, at: &Emitter<'c>, x: Ssa<'c>, element: Element) -> Ssa<'c> {
        let ty = scalar_type(at, integer(element));
        let bits = x.bitcast(ty);
        let key = turned(at, bits, element);
        let largest = u64::MAX >> 65_u32.saturating_sub(element.bits());
        let nan = constant(
            at,
            if self.is_larger {
                largest
            } else {
                largest.saturating_add(1)
            },
            integer(element),
        );
        let is_nan = at.compare_floats(FloatPredicate::UnorderedNotEqual, x, x);
        let key = is_nan.select(nan, key);
        self.upward(at, key, element)
    }

    /// The float with this key.
    fn float<'c>(self, at: &Emitter<'c>, key: Ssa<'c>, element: Element) -> Ssa<'c> {
        let bits = turned(at, self.upward(at, key, element), element);
        bits.bitcast(scalar_type(at, element))
    }
}

impl Extreme {
    /// Converts keys so that the greatest unsigned one is wanted, or converts them back
    /// ([`Quirk::SignedExtremes`]).
    fn upward<'c>(self, at: &Emitter<'c>, key: Ssa<'c>, element: Element) -> Ssa<'c> {
        let sign = 1_u64 << integer(element).bits().saturating_sub(1);
        let turned = if self.is_larger { sign } else { sign.wrapping_sub(1) };
        key ^ constant(at, turned, integer(element))
    }
}

fn integer(element: Element) -> Element {
    if element == Element::F64 {
        Element::I64
    } else {
        Element::I32
    }
}

/// Negative floats grow with what is below their sign, as integers do the other way round. Doing it
/// twice is doing nothing.
fn turned<'c>(at: &Emitter<'c>, bits: Ssa<'c>, element: Element) -> Ssa<'c> {
    let below_the_sign = constant(at, u64::MAX >> 65_u32.saturating_sub(element.bits()), integer(element));
    let flipped = bits ^ below_the_sign;
    let zero = constant(at, 0, integer(element));
    let is_negative = at.compare_integers(IntegerPredicate::Less, bits, zero);
    is_negative.select(flipped, bits)
}

/// A reduction to the extreme from this number, by keys: the extents of the result and its
/// elements.
pub(super) fn combined_as_integers<'c>(
    builder: &Builder<'_, 'c>,
    generic: &Generic,
    extreme: Extreme,
    (dims, element): (&[i64], Element),
    number: Ssa<'c>,
) -> Ssa<'c> {
    let at = &builder.at;
    let (Some(&so_far), Some(combiner)) = (generic.arguments.last(), generic.combiner()) else {
        unreachable!("a reduction without an element");
    };
    let key = integer(element);
    let empty = at.one("tensor.empty", &[], tensor_type(at, dims, key), &[]);
    let start = at.fill(extreme.key(at, number, element), empty);
    let keys = builder.generic(generic, start, key, |at, values: &mut Values<'c>| {
        for scalar in generic.body.iter().filter(|scalar| scalar.result != combiner.result) {
            let made = builder.scalar(at, values, scalar);
            values.set(scalar.result, made);
        }
        let mut operands = combiner.arithmetic.operands().iter();
        let other = operands.find(|&&operand| operand != so_far);
        let other = other.unwrap_or_else(|| unreachable!("a reduction of nothing"));
        let other = extreme.key(at, values.get(*other), element);
        values.get(so_far).maxui(other)
    });
    builder.each(dims, &[keys], key, element, |at, elements| {
        let x = elements[0];
        extreme.float(at, x, element)
    })
}
