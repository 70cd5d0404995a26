//! Scalar arithmetic inside the body of a structured operation, in one compute type.

use crate::convert::{convert, integer_to_float};
use crate::counts::exactly;
use crate::ir::Emitter;
use crate::ir::{FloatPredicate, IntegerPredicate};
use crate::mlir::{Name, Type, Value as Ssa};
use crate::target::Target;
use crate::value::position;
use rotini_graph::DataType;

/// A scalar of the compute type.
pub(crate) type Scalar<'c> = Ssa<'c>;

/// Builds scalar arithmetic, with the properties of the target that it depends on.
pub(crate) struct Math<'c> {
    pub(crate) at: Emitter<'c>,
    pub(crate) ty: Type<'c>,
    pub(crate) compute: DataType,
    /// Whether only functions that the compiler approximates itself can be called.
    pub(crate) lacks_math_library: bool,
    /// Whether the compiler's sin and cos are accurate only near 0.
    pub(crate) reduces_angles: bool,
    /// Whether the body combines several elements by a single operation.
    combines: bool,
    /// The logical axis of each loop.
    axes: Vec<usize>,
}

impl<'c> Math<'c> {
    /// Creates arithmetic for the body of an operation whose loops are these logical axes.
    pub(crate) fn new(at: Emitter<'c>, target: &Target, compute: DataType, axes: Vec<usize>) -> Self {
        Math {
            at,
            ty: at.element_type(compute),
            compute,
            lacks_math_library: target.is_cpu(),
            // AMD's device library is accurate to the last digits for any angle.
            reduces_angles: compute == DataType::F32 && !matches!(target, Target::Rocm { .. }),
            combines: false,
            axes,
        }
    }

    /// Returns arithmetic for a reduction of several elements, which the compiler recognises by the
    /// single operation that combines them.
    pub(crate) fn combining(self) -> Self {
        Math { combines: true, ..self }
    }

    /// Appends a constant of the compute type, truncated if that is an integer type.
    pub(crate) fn constant(&self, value: f64) -> Scalar<'c> {
        if self.compute.is_float() {
            self.at.float(value, self.ty)
        } else {
            self.at.integer(value as i64, self.ty)
        }
    }

    fn arithmetic(&self, float: Name, integer: Name, operands: &[Ssa<'c>]) -> Scalar<'c> {
        self.at
            .same(if self.compute.is_float() { float } else { integer }, operands)
    }

    /// Returns the larger of two numbers; if one is NaN, the other.
    pub(crate) fn max(&self, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        self.number([Name::ArithMaxnumf, Name::ArithMaxsi], FloatPredicate::Greater, [x, y])
    }

    /// Returns the smaller of two numbers; if one is NaN, the other.
    pub(crate) fn min(&self, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        self.number([Name::ArithMinnumf, Name::ArithMinsi], FloatPredicate::Less, [x, y])
    }

    fn number(&self, [float, integer]: [Name; 2], predicate: FloatPredicate, operands: [Ssa<'c>; 2]) -> Scalar<'c> {
        if self.compute.is_float() && !self.combines {
            return self.at.number(float, predicate, operands);
        }
        self.arithmetic(float, integer, &operands)
    }

    /// Returns the larger of two numbers; NaN if either is NaN.
    pub(crate) fn maximum(&self, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        let larger = self.arithmetic(Name::ArithMaximumf, Name::ArithMaxsi, &[x, y]);
        self.at.or_nan([x, y], larger)
    }

    /// Returns the smaller of two numbers; NaN if either is NaN.
    pub(crate) fn minimum(&self, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        let smaller = self.arithmetic(Name::ArithMinimumf, Name::ArithMinsi, &[x, y]);
        self.at.or_nan([x, y], smaller)
    }

    pub(crate) fn abs(&self, x: Ssa<'c>) -> Scalar<'c> {
        self.arithmetic(Name::MathAbsf, Name::MathAbsi, &[x])
    }

    /// Returns a quotient of integers, toward zero. It is 0 if y is 0, and the least integer
    /// divided by -1 wraps: both cases trap on some processors, and are undefined for the compiler.
    pub(crate) fn integer_div(&self, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        let constant = |value: i64| self.at.integer(value, self.ty);
        let (zero, one) = (constant(0), constant(1));
        let compare = |y, value| self.at.compare_integers(IntegerPredicate::Equal, y, value);
        let is_zero = compare(y, zero);
        let is_least = compare(x, constant(self.compute.whole_range().0));
        let wraps = is_least & compare(y, constant(-1));
        let is_undefined = is_zero | wraps;
        let quotient = x.divsi(is_undefined.select(one, y));
        is_zero.select(zero, quotient)
    }

    /// Appends a function of MLIR's `math` dialect.
    pub(crate) fn function(&self, name: Name, x: Ssa<'c>) -> Scalar<'c> {
        self.at.same(name, &[x])
    }

    /// Returns 1 / √x. Not by `math.rsqrt`, which targets may round worse than these two
    /// operations.
    pub(crate) fn inverse_root(&self, x: Ssa<'c>) -> Scalar<'c> {
        self.constant(1.0) / x.sqrt()
    }

    pub(crate) fn scale(&self, factor: f64, x: Ssa<'c>) -> Scalar<'c> {
        if factor == 1.0 { x } else { self.constant(factor) * x }
    }

    pub(crate) fn compare(&self, predicate: FloatPredicate, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        self.at.compare_floats(predicate, x, y)
    }

    pub(crate) fn equal(&self, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        if self.compute.is_float() {
            self.compare(FloatPredicate::Equal, x, y)
        } else {
            self.at.compare_integers(IntegerPredicate::Equal, x, y)
        }
    }

    /// Returns a condition as 1 or 0 in the compute type.
    pub(crate) fn flag(&self, condition: Ssa<'c>) -> Scalar<'c> {
        if self.compute.is_float() {
            return integer_to_float(&self.at, Name::ArithUitofp, (condition, 1), self.compute);
        }
        condition.extui(self.ty)
    }

    /// Returns the index along a logical axis, in the compute type.
    pub(crate) fn index(&self, axis: usize) -> Scalar<'c> {
        let index = self.at.loop_index(position(&self.axes, axis));
        let wide = index.index_cast(self.at.element_type(DataType::I64));
        convert(&self.at, wide, DataType::I64, self.compute)
    }
}

/// Returns sum + x · y in the compute type, given the elements x, y and sum. x and y are converted
/// from these types.
pub(crate) fn multiply_add<'c>(
    body: &Emitter<'c>,
    elements: &[Ssa<'c>],
    [of_x, of_y]: [DataType; 2],
    compute: DataType,
) -> Scalar<'c> {
    let [x, y, sum] = exactly(elements);
    let x = convert(body, x, of_x, compute);
    let y = convert(body, y, of_y, compute);
    let product = x * y;
    sum + product
}
