//! Arithmetic with values.

use super::code::Code;
use super::int::Int;
use super::predicates::{FloatPredicate, IntegerPredicate};
use crate::mlir::{Attribute, Name, Type, Value};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

impl<'c> Code<'c> {
    /// Compares floats, or vectors of floats element by element.
    pub(crate) fn compare_floats(&self, predicate: FloatPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.compare(Name::ArithCmpf, predicate as i64, [a, b])
    }

    /// Compares integers, or vectors of integers element by element.
    pub(crate) fn compare_integers(&self, predicate: IntegerPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.compare(Name::ArithCmpi, predicate as i64, [a, b])
    }

    /// Returns a vector of these elements.
    pub(crate) fn vector(&self, elements: &[Value<'c>], vector: Type<'c>) -> Value<'c> {
        self.one(Name::VectorFromElements, elements, vector, &[])
    }

    /// Loads an element from memory.
    pub(crate) fn read(&self, memory: Value<'c>, place: impl Into<Int<'c>>) -> Value<'c> {
        let operands = [memory, self.index(place)];
        self.one(Name::MemrefLoad, &operands, memory.r#type().memory_element(), &[])
    }

    /// Stores an element to memory.
    pub(crate) fn write(&self, element: Value<'c>, memory: Value<'c>, place: impl Into<Int<'c>>) {
        self.run(Name::MemrefStore, &[element, memory, self.index(place)]);
    }

    /// Loads a vector from memory.
    pub(crate) fn read_vector(&self, memory: Value<'c>, place: impl Into<Int<'c>>, vector: Type<'c>) -> Value<'c> {
        self.one(Name::VectorLoad, &[memory, self.index(place)], vector, &[])
    }

    /// Stores a vector to memory.
    pub(crate) fn write_vector(&self, vector: Value<'c>, memory: Value<'c>, place: impl Into<Int<'c>>) {
        self.run(Name::VectorStore, &[vector, memory, self.index(place)]);
    }

    fn compare(&self, name: Name, predicate: i64, operands: [Value<'c>; 2]) -> Value<'c> {
        let truths = operands[0].r#type().truths();
        let predicate = Attribute::integer(predicate, Type::integer(self.context(), 64));
        self.one(name, &operands, truths, &[("predicate", predicate)])
    }
}

impl<'c> Value<'c> {
    /// Returns `then` where this condition holds, else `otherwise`.
    pub(crate) fn select(self, then: Self, otherwise: Self) -> Self {
        let code = Code::new(self.context());
        code.one(Name::ArithSelect, &[self, then, otherwise], then.r#type(), &[])
    }

    /// Returns e to the power of a float.
    pub(crate) fn exp(self) -> Self {
        self.same(Name::MathExp, &[])
    }

    /// Returns 2 to the power of a float.
    pub(crate) fn exp2(self) -> Self {
        self.same(Name::MathExp2, &[])
    }

    /// Returns the magnitude of a float.
    pub(crate) fn absf(self) -> Self {
        self.same(Name::MathAbsf, &[])
    }

    /// Returns the largest whole float that is not above this one.
    pub(crate) fn floor(self) -> Self {
        self.same(Name::MathFloor, &[])
    }

    /// Returns the square root of a float.
    pub(crate) fn sqrt(self) -> Self {
        self.same(Name::MathSqrt, &[])
    }

    /// Returns the greater of two signed integers.
    pub(crate) fn maxsi(self, other: Self) -> Self {
        self.same(Name::ArithMaxsi, &[other])
    }

    /// Returns the lesser of two signed integers.
    pub(crate) fn minsi(self, other: Self) -> Self {
        self.same(Name::ArithMinsi, &[other])
    }

    /// Returns the greater of two unsigned integers.
    pub(crate) fn maxui(self, other: Self) -> Self {
        self.same(Name::ArithMaxui, &[other])
    }

    /// Returns the lesser of two unsigned integers.
    pub(crate) fn minui(self, other: Self) -> Self {
        self.same(Name::ArithMinui, &[other])
    }

    /// Shifts an integer to the left.
    pub(crate) fn shli(self, other: Self) -> Self {
        self.same(Name::ArithShli, &[other])
    }

    /// Shifts an unsigned integer to the right.
    pub(crate) fn shrui(self, other: Self) -> Self {
        self.same(Name::ArithShrui, &[other])
    }

    /// Shifts a signed integer to the right.
    pub(crate) fn shrsi(self, other: Self) -> Self {
        self.same(Name::ArithShrsi, &[other])
    }

    /// Returns the quotient of unsigned integers.
    pub(crate) fn divui(self, other: Self) -> Self {
        self.same(Name::ArithDivui, &[other])
    }

    /// Returns the quotient of signed integers, toward zero.
    pub(crate) fn divsi(self, other: Self) -> Self {
        self.same(Name::ArithDivsi, &[other])
    }

    /// Returns the remainder of unsigned integers.
    pub(crate) fn remui(self, other: Self) -> Self {
        self.same(Name::ArithRemui, &[other])
    }

    /// Returns the greater of two floats; NaN if either is.
    pub(crate) fn maximumf(self, other: Self) -> Self {
        self.same(Name::ArithMaximumf, &[other])
    }

    /// Returns the greater of two floats; if one is NaN, the other.
    pub(crate) fn maxnumf(self, other: Self) -> Self {
        self.same(Name::ArithMaxnumf, &[other])
    }

    /// Returns the magnitude of this float with the sign of another.
    pub(crate) fn copysign(self, other: Self) -> Self {
        self.same(Name::MathCopysign, &[other])
    }

    /// Reinterprets the bits as another type.
    pub(crate) fn bitcast(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithBitcast, r#type)
    }

    /// Converts a float to a wider float type.
    pub(crate) fn extf(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithExtf, r#type)
    }

    /// Sign-extends an integer to a wider type.
    pub(crate) fn extsi(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithExtsi, r#type)
    }

    /// Zero-extends an integer to a wider type.
    pub(crate) fn extui(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithExtui, r#type)
    }

    /// Converts a float to a signed integer, toward zero.
    pub(crate) fn fptosi(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithFptosi, r#type)
    }

    /// Converts an index to an integer, or an integer to an index.
    pub(crate) fn index_cast(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithIndexCast, r#type)
    }

    /// Converts a signed integer to a float.
    pub(crate) fn sitofp(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithSitofp, r#type)
    }

    /// Rounds a float to a narrower type.
    pub(crate) fn truncf(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithTruncf, r#type)
    }

    /// Truncates an integer to its low bits.
    pub(crate) fn trunci(self, r#type: Type<'c>) -> Self {
        self.cast(Name::ArithTrunci, r#type)
    }

    /// Returns a vector of this type with this value in all elements.
    pub(crate) fn broadcast(self, vector: Type<'c>) -> Self {
        self.cast(Name::VectorBroadcast, vector)
    }

    /// Returns this float times `factor` plus `term`, rounded once.
    pub(crate) fn fma(self, factor: Self, term: Self) -> Self {
        self.same(Name::MathFma, &[factor, term])
    }

    /// Returns the fused multiply-add of vectors, which compilers never split into two operations.
    pub(crate) fn vector_fma(self, factor: Self, term: Self) -> Self {
        self.same(Name::VectorFma, &[factor, term])
    }

    /// Appends an operation whose operands and result have this type.
    fn same(self, name: Name, others: &[Self]) -> Self {
        let operands = [&[self], others].concat();
        Code::new(self.context()).same(name, &operands)
    }

    fn cast(self, name: Name, r#type: Type<'c>) -> Self {
        Code::new(self.context()).one(name, &[self], r#type, &[])
    }

    /// Appends an operation on elements of one type: `float` if they are floats, else `integer`.
    fn arithmetic(self, float: Name, integer: Name, other: Self) -> Self {
        let name = if self.r#type().has_floats() { float } else { integer };
        self.same(name, &[other])
    }
}

/// Implements operators by one operation on floats and one on integers.
macro_rules! operators {
    ($($operator:ident $method:ident $float:ident $integer:ident,)+) => {
        $(impl $operator for Value<'_> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                self.arithmetic(Name::$float, Name::$integer, other)
            }
        })+
    };
}

operators! {
    Add add ArithAddf ArithAddi,
    Sub sub ArithSubf ArithSubi,
    Mul mul ArithMulf ArithMuli,
    BitAnd bitand ArithAndi ArithAndi,
    BitOr bitor ArithOri ArithOri,
    BitXor bitxor ArithXori ArithXori,
}

/// The quotient of floats. Integers need [`divsi`](Value::divsi) or [`divui`](Value::divui).
impl Div for Value<'_> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        assert!(self.r#type().has_floats(), "a quotient of integers");
        self.same(Name::ArithDivf, &[other])
    }
}

impl Neg for Value<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.same(Name::ArithNegf, &[])
    }
}
