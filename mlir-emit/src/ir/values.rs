//! Arithmetic with values.

use super::Code;
use crate::mlir::{Attribute, Type, Value};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

/// A comparison of floats; ordered ones are false if an operand is NaN. The numbers are MLIR's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatPredicate {
    Equal = 1,
    Greater = 2,
    GreaterEqual = 3,
    Less = 4,
    LessEqual = 5,
    Ordered = 7,
    UnorderedNotEqual = 13,
    Unordered = 14,
}

/// A comparison of integers: signed ones, and two of unsigned ones. The numbers are MLIR's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegerPredicate {
    Equal = 0,
    NotEqual = 1,
    Less = 2,
    LessEqual = 3,
    Greater = 4,
    GreaterEqual = 5,
    /// Less, as unsigned numbers.
    Below = 6,
    /// Less or equal, as unsigned numbers.
    AtMost = 7,
}

impl<'c> Code<'c> {
    /// Compares floats, or vectors of floats element by element.
    pub(crate) fn compare_floats(&self, predicate: FloatPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.compare("arith.cmpf", predicate as i64, [a, b])
    }

    /// Compares integers, or vectors of integers element by element.
    pub(crate) fn compare_integers(&self, predicate: IntegerPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.compare("arith.cmpi", predicate as i64, [a, b])
    }

    fn compare(&self, name: &str, predicate: i64, operands: [Value<'c>; 2]) -> Value<'c> {
        let truth = Type::integer(self.context(), 1);
        let truths = match operands[0].r#type().if_vector() {
            Some((shape, _)) => truth.vector(&shape),
            None => truth,
        };
        let predicate = Attribute::text(&format!("{predicate} : i64"));
        self.one(name, &operands, truths, &[("predicate", predicate)])
    }
}

impl<'c> Value<'c> {
    /// `then` where this condition holds, else `otherwise`.
    pub(crate) fn select(self, then: Self, otherwise: Self) -> Self {
        let code = Code::new(self.context());
        code.one("arith.select", &[self, then, otherwise], then.r#type(), &[])
    }

    /// Appends an operation on elements of one type: `float` if they are floats, else `integer`.
    fn arithmetic(self, float: &str, integer: &str, other: Self) -> Self {
        let name = if self.r#type().has_floats() { float } else { integer };
        Code::new(self.context()).same(name, &[self, other])
    }
}

impl Add for Value<'_> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.arithmetic("arith.addf", "arith.addi", other)
    }
}

impl Sub for Value<'_> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.arithmetic("arith.subf", "arith.subi", other)
    }
}

impl Mul for Value<'_> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.arithmetic("arith.mulf", "arith.muli", other)
    }
}

/// The quotient of floats. Integers have one that is signed and one that is not.
impl Div for Value<'_> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        assert!(self.r#type().has_floats(), "a quotient of integers");
        Code::new(self.context()).same("arith.divf", &[self, other])
    }
}

impl Neg for Value<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        Code::new(self.context()).same("arith.negf", &[self])
    }
}

impl BitAnd for Value<'_> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Code::new(self.context()).same("arith.andi", &[self, other])
    }
}

impl BitOr for Value<'_> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Code::new(self.context()).same("arith.ori", &[self, other])
    }
}

impl BitXor for Value<'_> {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        Code::new(self.context()).same("arith.xori", &[self, other])
    }
}
