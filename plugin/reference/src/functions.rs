//! The function of each pointwise mode for one element of each operand, and the accuracy that a
//! kernel must have.
//!
//! The functions here lose at most a few bits of binary64, in their tails too, because kernels that
//! compute in f64 are compared with them.

use crate::element::Codec;
use crate::value::{distance, flushed, rounding_error, ulp};
use rotini_graph::{Pointwise, PointwiseMode};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// A pointwise mode with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    mode: PointwiseMode,
    lower: f64,
    upper: f64,
    slope: f64,
    swish_beta: f64,
    elu_alpha: f64,
    softplus_beta: f64,
}

/// The factor inside the tanh of GELU's tanh form.
const GELU_TANH_SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
/// The coefficient of the cubic term inside that tanh.
const GELU_TANH_CUBIC: f64 = 0.044_715;

impl Function {
    pub(crate) fn new(op: &Pointwise) -> Self {
        let or = |parameter: Option<f32>, default: f64| parameter.map_or(default, f64::from);
        Function {
            mode: op.mode,
            lower: or(op.relu_lower_clip, 0.0),
            upper: or(op.relu_upper_clip, f64::INFINITY),
            slope: or(op.relu_lower_clip_slope, 0.0),
            swish_beta: or(op.swish_beta, 1.0),
            elu_alpha: or(op.elu_alpha, 1.0),
            softplus_beta: or(op.softplus_beta, 1.0),
        }
    }

    /// Returns the result for operands x, y and z; operands beyond the mode's arity are ignored.
    /// Gradients take (dy, x).
    ///
    /// `index` is the position along GEN_INDEX's axis.
    pub(crate) fn float(&self, [x, y, z]: [f64; 3], index: usize) -> f64 {
        use PointwiseMode as Mode;
        let truth = |condition: bool| f64::from(u8::from(condition));
        match self.mode {
            Mode::Abs => x.abs(),
            Mode::Add => x + y,
            Mode::AddSquare => x + y * y,
            // A NaN is not zero.
            Mode::BinarySelect => {
                if z != 0.0 {
                    x
                } else {
                    y
                }
            }
            Mode::Ceil => x.ceil(),
            Mode::CmpEq => truth(x == y),
            Mode::CmpGe => truth(x >= y),
            Mode::CmpGt => truth(x > y),
            Mode::CmpLe => truth(x <= y),
            Mode::CmpLt => truth(x < y),
            Mode::CmpNeq => truth(x != y),
            Mode::Div => x / y,
            Mode::EluBwd => x * if y > 0.0 { 1.0 } else { self.elu_alpha * y.exp() },
            Mode::EluFwd => {
                if x > 0.0 {
                    x
                } else {
                    self.elu_alpha * x.exp_m1()
                }
            }
            Mode::Erf => libm::erf(x),
            Mode::Exp => x.exp(),
            Mode::Floor => x.floor(),
            Mode::GeluApproxTanhBwd => x * (sigmoid(gelu_tanh_argument(y)) + gelu_tanh_rest(y)),
            Mode::GeluApproxTanhFwd => x * sigmoid(gelu_tanh_argument(x)),
            Mode::GeluBwd => x * (normal_cdf(y) + y * normal_density(y)),
            Mode::GeluFwd => x * normal_cdf(x),
            Mode::GenIndex => index as f64,
            Mode::Identity => x,
            Mode::Log => x.ln(),
            Mode::LogicalAnd => truth(x != 0.0 && y != 0.0),
            Mode::LogicalNot => truth(x == 0.0),
            Mode::LogicalOr => truth(x != 0.0 || y != 0.0),
            // Unlike f64::max and f64::min, these pass NaN on.
            Mode::Max => {
                if x > y || x.is_nan() {
                    x
                } else {
                    y
                }
            }
            Mode::Min => {
                if x < y || x.is_nan() {
                    x
                } else {
                    y
                }
            }
            Mode::Mul => x * y,
            Mode::Neg => -x,
            Mode::Reciprocal => 1.0 / x,
            Mode::ReluBwd => x * self.relu_factor(y),
            // With slope 0 the result is the lower clip even for x = -inf, where the general
            // formula would give 0 · inf = NaN.
            Mode::ReluFwd if x <= self.lower && self.slope == 0.0 => self.lower,
            Mode::ReluFwd if x <= self.lower => self.slope * (x - self.lower) + self.lower,
            Mode::ReluFwd if x >= self.upper => self.upper,
            Mode::ReluFwd => x,
            Mode::Rsqrt => 1.0 / x.sqrt(),
            Mode::SigmoidBwd => x * sigmoid_slope(y),
            Mode::SigmoidFwd => sigmoid(x),
            Mode::Sin => x.sin(),
            Mode::SoftplusBwd => x * sigmoid(self.softplus_beta * y),
            Mode::SoftplusFwd => {
                let scaled = self.softplus_beta * x;
                // log(1 + exp(t)) without overflow.
                (scaled.max(0.0) + (-scaled.abs()).exp().ln_1p()) / self.softplus_beta
            }
            Mode::Sqrt => x.sqrt(),
            Mode::Sub => x - y,
            Mode::SwishBwd => {
                let scaled = self.swish_beta * y;
                x * (sigmoid(scaled) + scaled * sigmoid_slope(scaled))
            }
            Mode::SwishFwd => x * sigmoid(self.swish_beta * x),
            Mode::Tan => x.tan(),
            // 1 - tanh².
            Mode::TanhBwd => x * 4.0 * sigmoid_slope(2.0 * y),
            Mode::TanhFwd => x.tanh(),
        }
    }

    /// Returns the derivative of the clipped ReLU. At the clips themselves it follows hipDNN's
    /// reference: the slope at the lower clip, 1 at the upper.
    fn relu_factor(&self, x: f64) -> f64 {
        if x <= self.lower {
            self.slope
        } else if x > self.upper {
            0.0
        } else {
            1.0
        }
    }

    /// Returns the result in the integers of `compute`, wrapping; `None` for modes and parameters
    /// without an integer result.
    pub(crate) fn integer(&self, [x, y, z]: [i64; 3], index: usize, compute: Codec) -> Option<i64> {
        use PointwiseMode as Mode;
        let result = match self.mode {
            Mode::Abs => x.wrapping_abs(),
            Mode::Add => x.wrapping_add(y),
            Mode::AddSquare => x.wrapping_add(y.wrapping_mul(y)),
            Mode::BinarySelect => {
                if z != 0 {
                    x
                } else {
                    y
                }
            }
            Mode::CmpEq => (x == y).into(),
            Mode::CmpGe => (x >= y).into(),
            Mode::CmpGt => (x > y).into(),
            Mode::CmpLe => (x <= y).into(),
            Mode::CmpLt => (x < y).into(),
            Mode::CmpNeq => (x != y).into(),
            Mode::Div if y == 0 => 0,
            Mode::Div => x.wrapping_div(y),
            Mode::GenIndex => i64::try_from(index).ok()?,
            Mode::Identity => x,
            Mode::LogicalAnd => (x != 0 && y != 0).into(),
            Mode::LogicalNot => (x == 0).into(),
            Mode::LogicalOr => (x != 0 || y != 0).into(),
            Mode::Max => x.max(y),
            Mode::Min => x.min(y),
            Mode::Mul => x.wrapping_mul(y),
            Mode::Neg => x.wrapping_neg(),
            Mode::ReluFwd => {
                let (lower, slope) = (integral(self.lower)?, integral(self.slope)?);
                let upper = if self.upper == f64::INFINITY {
                    i64::MAX
                } else {
                    integral(self.upper)?
                };
                if x <= lower {
                    slope.wrapping_mul(x.wrapping_sub(lower)).wrapping_add(lower)
                } else {
                    x.min(upper)
                }
            }
            Mode::Sub => x.wrapping_sub(y),
            Mode::Ceil
            | Mode::EluBwd
            | Mode::EluFwd
            | Mode::Erf
            | Mode::Exp
            | Mode::Floor
            | Mode::GeluApproxTanhBwd
            | Mode::GeluApproxTanhFwd
            | Mode::GeluBwd
            | Mode::GeluFwd
            | Mode::Log
            | Mode::Reciprocal
            | Mode::ReluBwd
            | Mode::Rsqrt
            | Mode::SigmoidBwd
            | Mode::SigmoidFwd
            | Mode::Sin
            | Mode::SoftplusBwd
            | Mode::SoftplusFwd
            | Mode::Sqrt
            | Mode::SwishBwd
            | Mode::SwishFwd
            | Mode::Tan
            | Mode::TanhBwd
            | Mode::TanhFwd => return None,
        };
        compute.wrap(result)
    }

    /// Returns the maximum error of a kernel's float result if its operands are off by up to
    /// `errors`.
    ///
    /// The effect of the operands' errors is found by evaluating at moved operands: the functions
    /// are monotone or smooth, and where they jump, the value at the jump is tried too. To this the
    /// operation adds its own error: its roundings in the compute type or, for functions without a
    /// correctly rounded form, some units in the last place. Devices may flush subnormal operands
    /// and results to zero: IREE's CPU drivers do.
    pub(crate) fn error(&self, operands: [f64; 3], errors: [f64; 3], index: usize, compute: Codec) -> f64 {
        let result = self.float(operands, index);
        let errors = [0, 1, 2].map(|operand| errors[operand].max(flushed(compute, operands[operand])));
        let moved = errors.iter().any(|&error| error != 0.0);
        let propagated = if moved {
            self.propagated(operands, errors, index, result)
        } else {
            0.0
        };
        propagated
            + self
                .own_error(operands, result, !moved, compute)
                .max(flushed(compute, result))
    }

    fn propagated(&self, operands: [f64; 3], errors: [f64; 3], index: usize, result: f64) -> f64 {
        use PointwiseMode as Mode;
        // The result can flip only if the operands' intervals overlap.
        if let (Mode::CmpEq | Mode::CmpNeq, [x, y, _], [from_x, from_y, _]) = (self.mode, operands, errors) {
            return f64::from(u8::from((x - y).abs() <= from_x + from_y));
        }
        let [xs, ys, zs] = [0, 1, 2].map(|operand| {
            let (value, error) = (operands[operand], errors[operand]);
            let zero = if value.abs() <= error { 0.0 } else { value };
            let all = [value, value - error, value + error, zero];
            all.into_iter().take(if error == 0.0 { 1 } else { 4 })
        });
        let mut largest = 0.0_f64;
        for x in xs {
            for y in ys.clone() {
                for z in zs.clone() {
                    largest = largest.max(distance(self.float([x, y, z], index), result));
                }
            }
        }
        largest
    }

    fn own_error(&self, [x, y, _]: [f64; 3], result: f64, exactly: bool, compute: Codec) -> f64 {
        use PointwiseMode as Mode;
        let rounding = |value| rounding_error(compute, value, exactly);
        // For modes of several steps, which devices may fuse. In f64 the reference's own steps have
        // already rounded, so it cannot tell which results are exact.
        let steps = |value| rounding_error(compute, value, exactly && compute != Codec::F64);
        match self.mode {
            Mode::Abs
            | Mode::BinarySelect
            | Mode::Ceil
            | Mode::CmpEq
            | Mode::CmpGe
            | Mode::CmpGt
            | Mode::CmpLe
            | Mode::CmpLt
            | Mode::CmpNeq
            | Mode::Floor
            | Mode::Identity
            | Mode::LogicalAnd
            | Mode::LogicalNot
            | Mode::LogicalOr
            | Mode::Max
            | Mode::Min
            | Mode::Neg => 0.0,
            Mode::Add | Mode::GenIndex | Mode::Mul | Mode::ReluBwd | Mode::Sub => rounding(result),
            // Devices may use approximations of these operations that are off by a few units.
            Mode::Div | Mode::Reciprocal | Mode::Sqrt => 4.0 * rounding(result),
            Mode::AddSquare => steps(y * y) + steps(result),
            Mode::ReluFwd if x <= self.lower && self.slope != 0.0 => {
                let below = x - self.lower;
                steps(below) * self.slope.abs() + steps(self.slope * below) + steps(result)
            }
            Mode::ReluFwd => rounding_error(compute, result, true),
            _ => self.function_error([x, y], result, compute),
        }
    }

    /// Returns the maximum error of a function without a correctly rounded form: some units in the
    /// last place of the result or, for a difference, of its terms. `docs/semantics.md` has the
    /// list.
    fn function_error(&self, [x, y]: [f64; 2], result: f64, compute: Codec) -> f64 {
        use PointwiseMode as Mode;
        // Odd functions, and products with 0, have an exact zero at 0, with its sign.
        if !result.is_finite() || (result == 0.0 && x == 0.0) {
            return 0.0;
        }
        // If beta is not 1, the argument beta x is rounded, which gives its exponential a relative
        // error of as many units as |beta x|, on top of the function's own error. Beyond 1000 the
        // exponential has overflowed or underflowed.
        let scaled = |factor: f64, argument: f64| {
            if factor == 1.0 { 0.0 } else { argument.abs().min(1000.0) }
        };
        // Pairs of a factor and the product that it is part of. If a factor is subnormal, a device
        // may flush it to zero and lose the whole product.
        let none = [(1.0, 0.0); 2];
        let all_of_it = |factor: f64| [(factor, result), (1.0, 0.0)];
        let (units, magnitude, factors) = match self.mode {
            Mode::GeluApproxTanhFwd => {
                let t = gelu_tanh_argument(x);
                (FUNCTION + 3.0 * t.abs().min(1000.0), result, all_of_it(sigmoid(t)))
            }
            Mode::GeluApproxTanhBwd => {
                let (t, rest) = (gelu_tanh_argument(y), gelu_tanh_rest(y).abs());
                let slope = sigmoid_slope(t);
                let units = COMPOUND + 3.0 * t.abs().min(1000.0);
                (
                    units,
                    x * (sigmoid(t) + rest),
                    [(slope, x * (slope + rest)), (1.0, 0.0)],
                )
            }
            Mode::GeluFwd => (COMPOUND, result, all_of_it(normal_cdf(x))),
            Mode::GeluBwd => {
                let (below, density) = (normal_cdf(y), normal_density(y));
                let rest = (y * density).abs();
                (COMPOUND, x * (below + rest), [(below, x * below), (density, x * rest)])
            }
            Mode::SoftplusFwd => (
                FUNCTION + scaled(self.softplus_beta, self.softplus_beta * x),
                result,
                none,
            ),
            Mode::SoftplusBwd => {
                let t = self.softplus_beta * y;
                (COMPOUND + scaled(self.softplus_beta, t), result, all_of_it(sigmoid(t)))
            }
            Mode::SwishFwd => {
                let t = self.swish_beta * x;
                (FUNCTION + scaled(self.swish_beta, t), result, all_of_it(sigmoid(t)))
            }
            Mode::SwishBwd => {
                let t = self.swish_beta * y;
                let (slope, rest) = (sigmoid_slope(t), (t * sigmoid_slope(t)).abs());
                let units = COMPOUND + scaled(self.swish_beta, t);
                (
                    units,
                    x * (sigmoid(t) + rest),
                    [(slope, x * (slope + rest)), (1.0, 0.0)],
                )
            }
            Mode::TanhBwd => (COMPOUND, result, all_of_it(sigmoid_slope(2.0 * y))),
            Mode::SigmoidBwd => (COMPOUND, result, all_of_it(sigmoid_slope(y))),
            Mode::EluBwd if y > 0.0 => (COMPOUND, result, none),
            Mode::EluBwd => (COMPOUND, result, all_of_it(y.exp() * self.elu_alpha.abs().min(1.0))),
            _ => (FUNCTION, result, none),
        };
        let is_lost = |factor: f64| flushed(compute, factor) != 0.0;
        let lost = factors.iter().filter(|(factor, _)| is_lost(*factor));
        let lost: f64 = lost.map(|(_, product)| product.abs()).sum();
        lost + units * ulp(compute, magnitude)
    }
}

/// Maximum error of a function, in units in the last place.
const FUNCTION: f64 = 4.0;
/// Maximum error of gradients and of GELU, which take several steps, in units in the last place.
const COMPOUND: f64 = 6.0;

/// Returns the tolerance, both absolute and relative, that hipDNN's table gives a pointwise node in
/// the type `codec`.
pub(crate) fn pointwise_tolerance(codec: Codec) -> f64 {
    match codec {
        Codec::F64 => 1e-7,
        Codec::F32 => 1e-5,
        Codec::F16 => 1e-3,
        Codec::Bf16 => 1e-2,
        Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 | Codec::I4 | Codec::Bool | Codec::Narrow(_) => 0.0,
    }
}

/// Returns the distribution function of the standard normal distribution, accurate in its lower
/// tail too.
fn normal_cdf(x: f64) -> f64 {
    /// The rounding error of 1/√2 as a binary64.
    const REST: f64 = -4.833_646_656_726_457e-17;
    let argument = -x * FRAC_1_SQRT_2;
    // In the tail, the steep slope of erfc amplifies the rounding error of the argument, so it is
    // corrected to first order.
    let lost = f64::mul_add(-x, FRAC_1_SQRT_2, -argument) - x * REST;
    let slope = FRAC_2_SQRT_PI * exp_of_minus_square(argument);
    0.5 * (libm::erfc(argument) - if slope == 0.0 { 0.0 } else { slope * lost })
}

/// Returns the density of the standard normal distribution.
fn normal_density(x: f64) -> f64 {
    let square = x * x;
    let lost = f64::mul_add(x, x, -square);
    let density = 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (-0.5 * square).exp();
    if density == 0.0 {
        0.0
    } else {
        density * (1.0 - 0.5 * lost)
    }
}

fn exp_of_minus_square(x: f64) -> f64 {
    (-x * x).exp()
}

/// Returns 2u = 2 √(2/π) (x + 0.044715 x³), the argument of σ in GELU's tanh form: 1 + tanh(u) is 2
/// σ(2u).
fn gelu_tanh_argument(x: f64) -> f64 {
    2.0 * GELU_TANH_SCALE * (x + GELU_TANH_CUBIC * x.powi(3))
}

/// Returns x times the derivative of σ([`gelu_tanh_argument`]) with respect to x.
fn gelu_tanh_rest(x: f64) -> f64 {
    let slope = sigmoid_slope(gelu_tanh_argument(x));
    // Avoids 0 · inf where the slope has underflowed to zero.
    let inner = 2.0 * GELU_TANH_SCALE * (1.0 + 3.0 * GELU_TANH_CUBIC * if slope == 0.0 { 0.0 } else { x * x });
    x * slope * inner
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns σ (1 - σ), accurate where σ is near 1 too.
fn sigmoid_slope(x: f64) -> f64 {
    let exp = (-x.abs()).exp();
    exp / (1.0 + exp).powi(2)
}

/// Returns a parameter as an integer, if it is a whole number.
fn integral(value: f64) -> Option<i64> {
    (value.trunc() == value && value.abs() <= 2.0_f64.powi(53)).then_some(value as i64)
}
