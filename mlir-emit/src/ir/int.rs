//! Integers that are folded if they are known while the code is written.

use super::code::Code;
use super::predicates::IntegerPredicate;
use crate::mlir::{Name, Value};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Sub};

/// An integer: an index or a condition. Arithmetic with it appends operations to the block that is
/// being written, unless the result is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Int<'c> {
    /// Known while the code is written.
    Known(i64),
    /// Computed by the code.
    Made(Value<'c>),
}

impl From<i64> for Int<'_> {
    fn from(value: i64) -> Self {
        Int::Known(value)
    }
}

impl<'c> From<Value<'c>> for Int<'c> {
    fn from(value: Value<'c>) -> Self {
        Int::Made(value)
    }
}

impl<'c> Int<'c> {
    /// Appends an operation, unless both numbers are known.
    fn binary(self, name: Name, other: Self, known: impl Fn(i64, i64) -> Option<i64>) -> Self {
        let code = match (self, other) {
            (Int::Known(a), Int::Known(b)) => {
                let known = known(a, b);
                return Int::Known(known.unwrap_or_else(|| unreachable!("{name} of {a} and {b} overflows")));
            }
            (Int::Made(value), _) | (_, Int::Made(value)) => Code::new(value.context()),
        };
        let operands = [code.index(self), code.index(other)];
        Int::Made(code.same(name, &operands))
    }

    /// Returns whether this number is below another, compared as unsigned: a negative number is
    /// above all non-negative ones.
    pub(crate) fn is_below(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let code = match (self, other) {
            (Int::Known(a), Int::Known(b)) => {
                return Int::Known(i64::from(a.cast_unsigned() < b.cast_unsigned()));
            }
            (Int::Made(value), _) | (_, Int::Made(value)) => Code::new(value.context()),
        };
        let (a, b) = (code.index(self), code.index(other));
        Int::Made(code.compare_integers(IntegerPredicate::Below, a, b))
    }

    /// Returns whether this number [is below](Self::is_below) another, which may be known already.
    pub(crate) fn is_below_unless(self, is_known: bool, other: impl Into<Self>) -> Self {
        if is_known { Int::Known(1) } else { self.is_below(other) }
    }

    /// Returns the greater of two numbers, which may be negative.
    pub(crate) fn max(self, other: impl Into<Self>) -> Self {
        self.binary(Name::ArithMaxsi, other.into(), |a, b| Some(a.max(b)))
    }

    /// Returns the lesser of two numbers, which may be negative.
    pub(crate) fn min(self, other: impl Into<Self>) -> Self {
        self.binary(Name::ArithMinsi, other.into(), |a, b| Some(a.min(b)))
    }

    /// Returns the sum of the terms. The terms of an array are all computed before the first
    /// addition.
    pub(crate) fn sum(terms: impl IntoIterator<Item = Self>) -> Self {
        terms.into_iter().fold(Int::Known(0), Add::add)
    }

    /// Returns `then` where this condition holds, else `otherwise`.
    pub(crate) fn select(self, then: impl Into<Self>, otherwise: impl Into<Self>) -> Self {
        match self {
            Int::Known(0) => otherwise.into(),
            Int::Known(_) => then.into(),
            Int::Made(condition) => {
                let code = Code::new(condition.context());
                let (then, otherwise) = (code.index(then), code.index(otherwise));
                Int::Made(condition.select(then, otherwise))
            }
        }
    }
}

impl<'c, R: Into<Int<'c>>> Add<R> for Int<'c> {
    type Output = Self;

    fn add(self, other: R) -> Self {
        match (self, other.into()) {
            (any, Int::Known(0)) | (Int::Known(0), any) => any,
            (a, b) => a.binary(Name::ArithAddi, b, i64::checked_add),
        }
    }
}

impl<'c, R: Into<Int<'c>>> Sub<R> for Int<'c> {
    type Output = Self;

    fn sub(self, other: R) -> Self {
        match (self, other.into()) {
            (any, Int::Known(0)) => any,
            (a, b) => a.binary(Name::ArithSubi, b, i64::checked_sub),
        }
    }
}

impl<'c, R: Into<Int<'c>>> Mul<R> for Int<'c> {
    type Output = Self;

    fn mul(self, other: R) -> Self {
        match (self, other.into()) {
            (any, Int::Known(1)) | (Int::Known(1), any) => any,
            (_, Int::Known(0)) | (Int::Known(0), _) => Int::Known(0),
            (a, b) => a.binary(Name::ArithMuli, b, i64::checked_mul),
        }
    }
}

/// The unsigned quotient; both numbers must not be negative.
impl<'c, R: Into<Int<'c>>> Div<R> for Int<'c> {
    type Output = Self;

    fn div(self, other: R) -> Self {
        match (self, other.into()) {
            (any, Int::Known(1)) => any,
            (a, b) => a.binary(Name::ArithDivui, b, i64::checked_div),
        }
    }
}

/// The unsigned remainder; both numbers must not be negative.
impl<'c, R: Into<Int<'c>>> Rem<R> for Int<'c> {
    type Output = Self;

    fn rem(self, other: R) -> Self {
        match (self, other.into()) {
            (_, Int::Known(1)) => Int::Known(0),
            (a, b) => a.binary(Name::ArithRemui, b, i64::checked_rem),
        }
    }
}

impl<'c, R: Into<Int<'c>>> BitXor<R> for Int<'c> {
    type Output = Self;

    fn bitxor(self, other: R) -> Self {
        match (self, other.into()) {
            (any, Int::Known(0)) | (Int::Known(0), any) => any,
            (a, b) => a.binary(Name::ArithXori, b, |a, b| Some(a ^ b)),
        }
    }
}

/// The conjunction of two conditions.
impl BitAnd for Int<'_> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        match (self, other) {
            (Int::Known(0), _) | (_, Int::Known(0)) => Int::Known(0),
            (Int::Known(_), any) | (any, Int::Known(_)) => any,
            (Int::Made(a), Int::Made(b)) => Int::Made(a & b),
        }
    }
}

/// The disjunction of two conditions.
impl BitOr for Int<'_> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        match (self, other) {
            (Int::Known(0), any) | (any, Int::Known(0)) => any,
            (Int::Known(_), _) | (_, Int::Known(_)) => Int::Known(1),
            (Int::Made(a), Int::Made(b)) => Int::Made(a | b),
        }
    }
}

/// Implements operators of a known number, on the left, and an integer.
macro_rules! from_the_left {
    ($($operator:ident $method:ident)+) => {
        $(impl<'c> $operator<Int<'c>> for i64 {
            type Output = Int<'c>;

            fn $method(self, other: Int<'c>) -> Int<'c> {
                Int::Known(self).$method(other)
            }
        })+
    };
}

from_the_left!(Add add Sub sub Mul mul);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::{Context, Type};

    /// Returns the names of the operations that an expression of an argument appends.
    fn names(expression: impl for<'c> FnOnce(Int<'c>) -> Int<'c>) -> Vec<Name> {
        let context = Context::new();
        let block = context.block(&[Type::index(&context)], |arguments| {
            expression(Int::Made(arguments[0]));
        });
        block.operations.iter().map(|operation| operation.name()).collect()
    }

    #[test]
    fn what_is_known_is_folded() {
        let row = Int::Known(13);
        assert!(matches!((row ^ (row / 8)) % 8, Int::Known(4)));
        assert!(names(|row| (row * 1 + 0) / 1).is_empty());
        assert!(names(|row| row * Int::Known(0) + 7 * Int::Known(2)).is_empty());
    }

    #[test]
    fn what_is_computed_is_appended_in_the_order_of_the_expression() {
        let swizzled = names(|row| (row ^ (row / 8)) % 8);
        let expected = [
            Name::ArithConstant,
            Name::ArithDivui,
            Name::ArithXori,
            Name::ArithConstant,
            Name::ArithRemui,
        ];
        assert_eq!(swizzled, expected);
    }

    #[test]
    #[should_panic = "overflows"]
    fn known_numbers_do_not_wrap() {
        let _ = Int::Known(i64::MAX) + 1;
    }
}
