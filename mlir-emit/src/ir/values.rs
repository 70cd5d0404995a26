//! Arithmetic with values.

use super::code::Code;
use super::int::Int;
use super::predicates::{FloatPredicate, IntegerPredicate};
use crate::mlir::{Attribute, Type, Value};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

impl<'c> Code<'c> {
    /// Compares floats, or vectors of floats element by element.
    pub(crate) fn compare_floats(&self, predicate: FloatPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.compare("arith.cmpf", predicate as i64, [a, b])
    }

    /// Compares integers, or vectors of integers element by element.
    pub(crate) fn compare_integers(&self, predicate: IntegerPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.compare("arith.cmpi", predicate as i64, [a, b])
    }

    /// Returns a vector of these elements.
    pub(crate) fn vector(&self, elements: &[Value<'c>], vector: Type<'c>) -> Value<'c> {
        self.one("vector.from_elements", elements, vector, &[])
    }

    /// Loads an element from memory.
    pub(crate) fn read(&self, memory: Value<'c>, place: impl Into<Int<'c>>) -> Value<'c> {
        let operands = [memory, self.index(place)];
        self.one("memref.load", &operands, memory.r#type().memory_element(), &[])
    }

    /// Stores an element to memory.
    pub(crate) fn write(&self, element: Value<'c>, memory: Value<'c>, place: impl Into<Int<'c>>) {
        self.run("memref.store", &[element, memory, self.index(place)]);
    }

    /// Loads a vector from memory.
    pub(crate) fn read_vector(&self, memory: Value<'c>, place: impl Into<Int<'c>>, vector: Type<'c>) -> Value<'c> {
        self.one("vector.load", &[memory, self.index(place)], vector, &[])
    }

    /// Stores a vector to memory.
    pub(crate) fn write_vector(&self, vector: Value<'c>, memory: Value<'c>, place: impl Into<Int<'c>>) {
        self.run("vector.store", &[vector, memory, self.index(place)]);
    }

    fn compare(&self, name: &str, predicate: i64, operands: [Value<'c>; 2]) -> Value<'c> {
        let truth = Type::integer(self.context(), 1);
        let truths = match operands[0].r#type().if_vector() {
            Some((shape, _)) => truth.vector(&shape),
            None => truth,
        };
        let predicate = Attribute::integer(predicate, Type::integer(self.context(), 64));
        self.one(name, &operands, truths, &[("predicate", predicate)])
    }
}

impl<'c> Value<'c> {
    /// Returns `then` where this condition holds, else `otherwise`.
    pub(crate) fn select(self, then: Self, otherwise: Self) -> Self {
        let code = Code::new(self.context());
        code.one("arith.select", &[self, then, otherwise], then.r#type(), &[])
    }

    /// Returns e to the power of a float.
    pub(crate) fn exp(self) -> Self {
        self.same("math.exp", &[])
    }

    /// Returns 2 to the power of a float.
    pub(crate) fn exp2(self) -> Self {
        self.same("math.exp2", &[])
    }

    /// Returns the magnitude of a float.
    pub(crate) fn absf(self) -> Self {
        self.same("math.absf", &[])
    }

    /// Returns the largest whole float that is not above it.
    pub(crate) fn floor(self) -> Self {
        self.same("math.floor", &[])
    }

    /// Returns the square root of a float.
    pub(crate) fn sqrt(self) -> Self {
        self.same("math.sqrt", &[])
    }

    /// Returns the greater of two signed integers.
    pub(crate) fn maxsi(self, other: Self) -> Self {
        self.same("arith.maxsi", &[other])
    }

    /// Returns the lesser of two signed integers.
    pub(crate) fn minsi(self, other: Self) -> Self {
        self.same("arith.minsi", &[other])
    }

    /// Returns the greater of two unsigned integers.
    pub(crate) fn maxui(self, other: Self) -> Self {
        self.same("arith.maxui", &[other])
    }

    /// Returns the lesser of two unsigned integers.
    pub(crate) fn minui(self, other: Self) -> Self {
        self.same("arith.minui", &[other])
    }

    /// Shifts an integer to the left.
    pub(crate) fn shli(self, other: Self) -> Self {
        self.same("arith.shli", &[other])
    }

    /// Shifts an unsigned integer to the right.
    pub(crate) fn shrui(self, other: Self) -> Self {
        self.same("arith.shrui", &[other])
    }

    /// Shifts a signed integer to the right.
    pub(crate) fn shrsi(self, other: Self) -> Self {
        self.same("arith.shrsi", &[other])
    }

    /// Returns the quotient of unsigned integers.
    pub(crate) fn divui(self, other: Self) -> Self {
        self.same("arith.divui", &[other])
    }

    /// Returns the quotient of signed integers, toward zero.
    pub(crate) fn divsi(self, other: Self) -> Self {
        self.same("arith.divsi", &[other])
    }

    /// Returns the remainder of unsigned integers.
    pub(crate) fn remui(self, other: Self) -> Self {
        self.same("arith.remui", &[other])
    }

    /// Returns the greater of two floats; NaN if either is.
    pub(crate) fn maximumf(self, other: Self) -> Self {
        self.same("arith.maximumf", &[other])
    }

    /// Returns the greater of two floats; a number if either is.
    pub(crate) fn maxnumf(self, other: Self) -> Self {
        self.same("arith.maxnumf", &[other])
    }

    /// Returns its magnitude with the sign of another float.
    pub(crate) fn copysign(self, other: Self) -> Self {
        self.same("math.copysign", &[other])
    }

    /// Returns its bits as another type.
    pub(crate) fn bitcast(self, r#type: Type<'c>) -> Self {
        self.cast("arith.bitcast", r#type)
    }

    /// Returns a float as a wider one.
    pub(crate) fn extf(self, r#type: Type<'c>) -> Self {
        self.cast("arith.extf", r#type)
    }

    /// Returns a signed integer as a wider one.
    pub(crate) fn extsi(self, r#type: Type<'c>) -> Self {
        self.cast("arith.extsi", r#type)
    }

    /// Returns an unsigned integer as a wider one.
    pub(crate) fn extui(self, r#type: Type<'c>) -> Self {
        self.cast("arith.extui", r#type)
    }

    /// Returns a float as a signed integer.
    pub(crate) fn fptosi(self, r#type: Type<'c>) -> Self {
        self.cast("arith.fptosi", r#type)
    }

    /// Returns an index as an integer, or an integer as an index.
    pub(crate) fn index_cast(self, r#type: Type<'c>) -> Self {
        self.cast("arith.index_cast", r#type)
    }

    /// Returns a signed integer as a float.
    pub(crate) fn sitofp(self, r#type: Type<'c>) -> Self {
        self.cast("arith.sitofp", r#type)
    }

    /// Returns a float rounded to a narrower one.
    pub(crate) fn truncf(self, r#type: Type<'c>) -> Self {
        self.cast("arith.truncf", r#type)
    }

    /// Returns the low bits of an integer.
    pub(crate) fn trunci(self, r#type: Type<'c>) -> Self {
        self.cast("arith.trunci", r#type)
    }

    /// Returns a vector of this type all of whose elements are this one.
    pub(crate) fn broadcast(self, vector: Type<'c>) -> Self {
        self.cast("vector.broadcast", vector)
    }

    /// Returns this one times `factor` plus `term`, rounded once.
    pub(crate) fn fma(self, factor: Self, term: Self) -> Self {
        self.same("math.fma", &[factor, term])
    }

    /// Returns the same of vectors, which compilers never take apart.
    pub(crate) fn vector_fma(self, factor: Self, term: Self) -> Self {
        self.same("vector.fma", &[factor, term])
    }

    /// Appends an operation whose operands and result have this type.
    fn same(self, name: &str, others: &[Self]) -> Self {
        let operands = [&[self], others].concat();
        Code::new(self.context()).same(name, &operands)
    }

    fn cast(self, name: &str, r#type: Type<'c>) -> Self {
        Code::new(self.context()).one(name, &[self], r#type, &[])
    }

    /// Appends an operation on elements of one type: `float` if they are floats, else `integer`.
    fn arithmetic(self, float: &str, integer: &str, other: Self) -> Self {
        let name = if self.r#type().has_floats() { float } else { integer };
        self.same(name, &[other])
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
        self.same("arith.divf", &[other])
    }
}

impl Neg for Value<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.same("arith.negf", &[])
    }
}

impl BitAnd for Value<'_> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.same("arith.andi", &[other])
    }
}

impl BitOr for Value<'_> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.same("arith.ori", &[other])
    }
}

impl BitXor for Value<'_> {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        self.same("arith.xori", &[other])
    }
}
