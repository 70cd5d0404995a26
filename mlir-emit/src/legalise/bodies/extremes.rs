//! Reductions of a body, and the maximum and minimum of two floats on targets where MLIR's
//! operations for them are wrong.
//!
//! `arith.maximumf` and `arith.minimumf` may lose NaN. For two floats, a comparison chooses the
//! result instead. A reduction along an axis needs a single combining operation, so floats are
//! combined as integers of the same order. `arith.maxnumf` and `arith.minnumf` may call a function
//! that does not exist; a comparison replaces them too, except in reductions along an axis.

use super::scalars::is_wrong;
use crate::counts::exactly;
use crate::custom::build::{Builder, Values};
use crate::custom::elements::{UNKNOWN, constant, neutral, scalar_type, tensor_type};
use crate::ir::Emitter;
use crate::ir::{FloatPredicate, IntegerPredicate};
use crate::mlir::{Name, Value as Ssa};
use crate::quirks::Quirk;
use rotini_custom::{Arithmetic, Element, Flag, Generic, Operation, Scalar};

/// A maximum or minimum of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extreme {
    is_larger: bool,
    /// True if NaN wins over numbers; the operation then also distinguishes the signs of zeros.
    keeps_nan: bool,
}

impl Extreme {
    /// Returns the choice that an operation of this name makes; `None` for another operation.
    pub(super) fn any(name: &str) -> Option<Self> {
        let (is_larger, keeps_nan) = match name {
            "arith.maximumf" => (true, true),
            "arith.minimumf" => (false, true),
            "arith.maxnumf" => (true, false),
            "arith.minnumf" => (false, false),
            _ => return None,
        };
        Some(Extreme { is_larger, keeps_nan })
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
        // Equal floats have equal bits, unless they are zeros of different sign: combining the bits
        // chooses the sign.
        let bits = scalar_type(at, integer(element));
        let name = if self.is_larger {
            Name::ArithAndi
        } else {
            Name::ArithOri
        };
        let of_both = at.same(name, &[x.bitcast(bits), y.bitcast(bits)]);
        let equal = of_both.bitcast(ty);
        let is_equal = at.compare_floats(FloatPredicate::Equal, x, y);
        let is_second = at.compare_floats(less, x, y);
        let nan = x + y;
        select(is_first, x, select(is_second, y, select(is_equal, equal, nan)))
    }

    /// Maps a float to an integer of the same order. NaN maps to the end that wins.
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

    /// Returns the float with this key.
    fn float<'c>(self, at: &Emitter<'c>, key: Ssa<'c>, element: Element) -> Ssa<'c> {
        let bits = turned(at, self.upward(at, key, element), element);
        bits.bitcast(scalar_type(at, element))
    }

    /// Converts signed keys so that the greatest unsigned one is the extreme, or converts them back
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

/// Flips the bits below the sign of negative numbers: as integers, negative floats are ordered the
/// other way round. The function is its own inverse.
fn turned<'c>(at: &Emitter<'c>, bits: Ssa<'c>, element: Element) -> Ssa<'c> {
    let below_the_sign = constant(at, u64::MAX >> 65_u32.saturating_sub(element.bits()), integer(element));
    let flipped = bits ^ below_the_sign;
    let zero = constant(at, 0, integer(element));
    let is_negative = at.compare_integers(IntegerPredicate::Less, bits, zero);
    is_negative.select(flipped, bits)
}

impl<'c> Builder<'_, 'c> {
    /// Returns a reduction to a tensor of these extents. [`Quirk::SumsInPlace`]: the reduction
    /// starts from one number everywhere, and the initial tensor is combined with the result
    /// afterwards, because its memory may be the caller's. If the operation would lose NaN, floats
    /// are combined as integers.
    pub(crate) fn reduction(&self, generic: &Generic, dims: &[i64], element: Element) -> Ssa<'c> {
        let at = &self.at;
        let combiner = generic.combiner().expect(UNKNOWN);
        let name = combiner.arithmetic.name();
        let mut statements = self.body.statements.iter();
        let made = statements.find(|statement| statement.result == generic.init.value);
        let filled = match made.map(|made| &made.operation) {
            Some(Operation::Fill(number)) => Some(self.values.get(*number)),
            _ => None,
        };
        let number = filled.unwrap_or_else(|| constant(at, neutral(name, element), element));
        let is_in_place = filled.is_none() && !at.quirks().avoids(Quirk::SumsInPlace);
        let extreme = Extreme::any(name).filter(|_| is_wrong(at.quirks(), name));
        let reduced = match extreme.filter(|extreme| extreme.keeps_nan) {
            Some(extreme) => self.combined_as_integers(generic, extreme, (dims, element), number),
            None => {
                let start = if is_in_place {
                    self.values.get(generic.init.value)
                } else {
                    at.fill(
                        number,
                        at.one(Name::TensorEmpty, &[], tensor_type(at, dims, element), &[]),
                    )
                };
                self.generic(generic, start, element, |values| {
                    for scalar in &generic.body {
                        // The combining operation stays as it is, so that the compiler recognises
                        // it as one.
                        let made = if scalar.result == generic.yielded {
                            self.operation(values, &of_any(scalar))
                        } else {
                            self.scalar(values, scalar)
                        };
                        values.set(scalar.result, made);
                    }
                    values.get(generic.yielded)
                })
            }
        };
        if filled.is_some() || is_in_place {
            return reduced;
        }
        let start = self.values.get(generic.init.value);
        self.each(dims, &[start, reduced], element, |elements| {
            let [start, reduced] = exactly(elements);
            match extreme {
                Some(extreme) => extreme.choose(at, element, start, reduced),
                None => at.same(Name::of_text(name), &[start, reduced]),
            }
        })
    }

    /// Returns a reduction to the extreme by integer keys, starting from `number`: a tensor of
    /// these extents and elements.
    fn combined_as_integers(
        &self,
        generic: &Generic,
        extreme: Extreme,
        (dims, element): (&[i64], Element),
        number: Ssa<'c>,
    ) -> Ssa<'c> {
        let at = &self.at;
        let (Some(&so_far), Some(combiner)) = (generic.arguments.last(), generic.combiner()) else {
            unreachable!("a reduction without an element");
        };
        let key = integer(element);
        let empty = at.one(Name::TensorEmpty, &[], tensor_type(at, dims, key), &[]);
        let start = at.fill(extreme.key(at, number, element), empty);
        let keys = self.generic(generic, start, key, |values: &mut Values<'c>| {
            for scalar in generic.body.iter().filter(|scalar| scalar.result != combiner.result) {
                let made = self.scalar(values, scalar);
                values.set(scalar.result, made);
            }
            let mut operands = combiner.arithmetic.operands().iter();
            let other = operands.find(|&&operand| operand != so_far);
            let other = other.expect("a reduction of nothing");
            let other = extreme.key(at, values.get(*other), element);
            values.get(so_far).maxui(other)
        });
        self.each(dims, &[keys], element, |elements| {
            extreme.float(at, elements[0], element)
        })
    }
}

/// Returns the combining operation without the flags that promise finite numbers: its initial value
/// may be infinite or NaN.
fn of_any(scalar: &Scalar) -> Scalar {
    let mut scalar = scalar.clone();
    if let Arithmetic::Operation { flag, .. } = &mut scalar.arithmetic
        && let Some(Flag::Fastmath(flags)) = flag
    {
        let all = ["reassoc", "nsz", "arcp", "contract", "afn"];
        let has = |name: &str| flags.iter().any(|flag| *flag == name || *flag == "fast");
        let kept: Vec<&'static str> = all.into_iter().filter(|name| has(name)).collect();
        *flag = (!kept.is_empty()).then_some(Flag::Fastmath(kept));
    }
    scalar
}
