//! Functions of floats that are accurate to the last digits everywhere: near 0, in their tails, and
//! for angles of any size.
//!
//! If the compiler's own function is accurate on a target, it is used; the test
//! `functions_are_right_everywhere` decides that. Otherwise the function is built here from others.
//! `docs/semantics.md` has the bounds.

use crate::ir::FloatPredicate as F;
use crate::math::{Math, Scalar};
use crate::mlir::{Name, Value as Ssa};
use rotini_graph::{DataType, Pointwise, PointwiseMode as M};
use std::f64::consts::FRAC_PI_2;

impl<'c> Math<'c> {
    /// Returns 1 / (1 + exp(-x)).
    pub(crate) fn sigmoid(&self, x: Ssa<'c>) -> Scalar<'c> {
        let one = self.constant(1.0);
        let exp = (-x).exp();
        one / (one + exp)
    }

    /// Returns σ(x) (1 - σ(x)) = e / (1 + e)² with e = exp(-|x|), which has no cancellation where σ
    /// is near 1.
    fn sigmoid_slope(&self, x: Ssa<'c>) -> Scalar<'c> {
        let exp = (-self.abs(x)).exp();
        let sum = self.constant(1.0) + exp;
        exp / (sum * sum)
    }

    /// Returns erf(x).
    pub(crate) fn erf(&self, x: Ssa<'c>) -> Scalar<'c> {
        self.of_zero(x, self.at.erf(x))
    }

    /// Returns the result of a function that is 0 at 0, with the sign of x there, which the
    /// compiler's own functions lose.
    fn of_zero(&self, x: Ssa<'c>, result: Ssa<'c>) -> Scalar<'c> {
        self.equal(x, self.constant(0.0)).select(x, result)
    }

    /// Returns Φ(x), the cumulative normal distribution. The tail of |x| is exp(-x²/2) times a
    /// function that falls like 1 / |x|. That function times (|x| + 4) is approximated by a
    /// polynomial of (|x| - 4) / (|x| + 4).
    pub(crate) fn normal_cdf(&self, x: Ssa<'c>) -> Scalar<'c> {
        let [four, most] = [4.0, 64.0].map(|value| self.constant(value));
        let magnitude = self.abs(x);
        // Beyond this magnitude the exponential is 0 (or NaN).
        let magnitude = self.compare(F::Less, magnitude, most).select(magnitude, most);
        let sum = magnitude + four;
        let ratio = (magnitude - four) / sum;
        let coefficients: &[f64] = if self.compute == DataType::F64 {
            &TAIL_F64
        } else {
            &TAIL_F32
        };
        let falling = self.polynomial(coefficients, ratio) / sum;
        let tail = self.normal_exp(x) * falling;
        let rest = self.constant(1.0) - tail;
        self.compare(F::Greater, x, self.constant(0.0)).select(rest, tail)
    }

    /// Returns exp(-x²/2), corrected for the rounding error of x², whose effect would grow with x².
    fn normal_exp(&self, x: Ssa<'c>) -> Scalar<'c> {
        let square = x * x;
        let lost = x.fma(x, -square);
        let exp = self.scale(-0.5, square).exp();
        let right = exp - exp * self.scale(0.5, lost);
        // Where the square is infinite, there is no rounding error to correct.
        let is_zero = self.equal(exp, self.constant(0.0));
        is_zero.select(exp, right)
    }

    /// Returns a polynomial with these coefficients, the constant term first.
    fn polynomial(&self, coefficients: &[f64], x: Ssa<'c>) -> Scalar<'c> {
        let r#type = x.r#type();
        let mut rest = coefficients.iter().rev();
        let last = rest.next().expect("a polynomial without coefficients");
        rest.fold(self.at.float(*last, r#type), |sum, &coefficient| {
            let coefficient = self.at.float(coefficient, r#type);
            sum.fma(x, coefficient)
        })
    }

    /// Returns sin(x).
    pub(crate) fn sin(&self, x: Ssa<'c>) -> Scalar<'c> {
        if !self.reduces_angles {
            return self.function(Name::MathSin, x);
        }
        let angle = self.reduced(x);
        let [sin, cos] = self.sin_and_cos(angle.rest);
        let magnitude = angle.is_odd.select(cos, sin);
        let result = angle.is_beyond_half.select(-magnitude, magnitude);
        self.of_angle(x, result)
    }

    /// Returns cos(x).
    pub(crate) fn cos(&self, x: Ssa<'c>) -> Scalar<'c> {
        if !self.reduces_angles {
            return self.function(Name::MathCos, x);
        }
        let angle = self.reduced(x);
        let [sin, cos] = self.sin_and_cos(angle.rest);
        let magnitude = angle.is_odd.select(sin, cos);
        // The cosine is a quarter turn ahead of the sine.
        let is_negative = angle.is_odd ^ angle.is_beyond_half;
        let result = is_negative.select(-magnitude, magnitude);
        result.truncf(self.ty)
    }

    /// Returns tan(x).
    pub(crate) fn tan(&self, x: Ssa<'c>) -> Scalar<'c> {
        if !self.reduces_angles {
            return self.function(Name::MathSin, x) / self.function(Name::MathCos, x);
        }
        let angle = self.reduced(x);
        let [sin, cos] = self.sin_and_cos(angle.rest);
        let above = angle.is_odd.select(-cos, sin);
        let below = angle.is_odd.select(sin, cos);
        self.of_angle(x, above / below)
    }

    /// Rounds a result in f64 to the compute type.
    fn of_angle(&self, x: Ssa<'c>, result: Ssa<'c>) -> Scalar<'c> {
        self.of_zero(x, result.truncf(self.ty))
    }

    /// Returns an f32 angle of any size reduced by whole quarter turns, in f64. The compiler's own
    /// sin and cos for CPUs, and the approximations that it uses for NVIDIA GPUs, lose a digit with
    /// each digit of the angle.
    ///
    /// The angle in quarter turns is the sum of its products with pieces of 2/π, which are short
    /// enough for each product to be exact in f64. Whole turns are subtracted from each product
    /// before the products are added, which is exact too.
    fn reduced(&self, x: Ssa<'c>) -> Angle<'c> {
        let wide = self.at.element_type(DataType::F64);
        let constant = |value: f64| self.at.float(value, wide);
        let (quarter, half, less) = (constant(0.25), constant(0.5), constant(-4.0));
        // Halfway between two integers, either will do, so floor is enough: the compiler expands
        // `math.roundeven` to twenty operations on CPUs.
        let nearest = |value: Ssa<'c>| (value + half).floor();
        let x = x.extf(wide);
        let mut products = Vec::new();
        for (position, piece) in (1_i32..).zip(TWO_OVER_PI) {
            let product = x * constant(piece * 2.0_f64.powi(-29 * position));
            let turns = nearest(product * quarter);
            products.push(turns.fma(less, product));
        }
        let add = |a, b| a + b;
        let mut terms = products.iter().copied();
        let first = terms.next().expect("an angle without pieces");
        let quarters = nearest(terms.fold(first, add));
        // Added from the largest to the smallest: terms that cancel do so exactly.
        let first = first - quarters;
        let rest = products.into_iter().skip(1).fold(first, add);
        // Reduced by whole turns to -2 to 2.
        let turns = nearest(quarters * quarter);
        let quarters = turns.fma(less, quarters);
        let is = |value: Ssa<'c>, wanted: f64| self.compare(F::Equal, value, constant(wanted));
        let is_negative = self.compare(F::Less, quarters, constant(0.0));
        Angle {
            rest: rest * constant(FRAC_PI_2),
            is_odd: is(quarters.absf(), 1.0),
            is_beyond_half: is_negative | is(quarters, 2.0),
        }
    }

    /// Returns the sine and cosine of at most an eighth of a turn, in f64, to more digits than f32
    /// has.
    fn sin_and_cos(&self, x: Ssa<'c>) -> [Ssa<'c>; 2] {
        let one = self.at.float(1.0, x.r#type());
        let square = x * x;
        let sin = square * self.polynomial(&SIN, square);
        let cos = self.polynomial(&COS, square);
        [sin.fma(x, x), cos.fma(square, one)]
    }

    /// Returns exp(x) - 1. In f64 on the CPU the compiler has only exp, whose rounding error is
    /// corrected with the logarithm of its result.
    pub(crate) fn expm1(&self, x: Ssa<'c>) -> Scalar<'c> {
        if !self.lacks_f64_functions() {
            return self.of_zero(x, self.function(Name::MathExpm1, x));
        }
        let one = self.constant(1.0);
        let exp = x.exp();
        let plain = exp - one;
        let near = plain * (x / self.function(Name::MathLog, exp));
        let near = self.equal(exp, one).select(x, near);
        let is_near = self.compare(F::Less, self.abs(x), one);
        is_near.select(near, plain)
    }

    /// Returns log(1 + x), for x that is at least 0 and not large.
    pub(crate) fn log1p(&self, x: Ssa<'c>) -> Scalar<'c> {
        if !self.lacks_f64_functions() {
            return self.function(Name::MathLog1p, x);
        }
        let one = self.constant(1.0);
        let sum = one + x;
        let near = x * (self.function(Name::MathLog, sum) / (sum - one));
        self.equal(sum, one).select(x, near)
    }

    /// Returns tanh(x). In f64 on the CPU it is computed from expm1, since the compiler has no
    /// approximation: with e = expm1(-2|x|), tanh|x| is -e / (2 + e), which is accurate near 0 and
    /// never overflows.
    pub(crate) fn tanh(&self, x: Ssa<'c>) -> Scalar<'c> {
        if !self.lacks_f64_functions() {
            return self.function(Name::MathTanh, x);
        }
        let e = self.expm1(self.scale(-2.0, self.abs(x)));
        let tanh = -e / (self.constant(2.0) + e);
        tanh.copysign(x)
    }

    fn lacks_f64_functions(&self) -> bool {
        self.lacks_math_library && self.compute == DataType::F64
    }

    /// Returns t = 2 √(2/π) (x + 0.044715 x³). The factor 1 + tanh(t / 2) of GELU's tanh form is
    /// twice the sigmoid of t.
    pub(crate) fn gelu_tanh(&self, x: Ssa<'c>) -> Scalar<'c> {
        let cube = x * (x * x);
        let inner = x + self.scale(GELU_CUBIC, cube);
        self.scale(2.0 * SQRT_2_OVER_PI, inner)
    }

    /// Returns the derivative of an activation at x.
    pub(crate) fn derivative(&self, op: &Pointwise, x: Ssa<'c>) -> Scalar<'c> {
        let zero = self.constant(0.0);
        let one = self.constant(1.0);
        match op.mode {
            M::EluBwd => {
                let below = self.scale(parameter(op.elu_alpha, 1.0), x.exp());
                self.compare(F::Greater, x, zero).select(one, below)
            }
            M::ReluBwd => {
                let slope = self.constant(parameter(op.relu_lower_clip_slope, 0.0));
                let lower = self.constant(parameter(op.relu_lower_clip, 0.0));
                let inside = match op.relu_upper_clip {
                    Some(upper) => {
                        let above = self.compare(F::Greater, x, self.constant(f64::from(upper)));
                        above.select(zero, one)
                    }
                    None => one,
                };
                self.compare(F::LessEqual, x, lower).select(slope, inside)
            }
            M::SigmoidBwd => self.sigmoid_slope(x),
            // 1 - tanh².
            M::TanhBwd => self.scale(4.0, self.sigmoid_slope(self.scale(2.0, x))),
            M::SoftplusBwd => self.sigmoid(self.scale(parameter(op.softplus_beta, 1.0), x)),
            M::SwishBwd => {
                // σ + t σ (1 - σ) with t = beta x.
                let t = self.scale(parameter(op.swish_beta, 1.0), x);
                self.sigmoid(t) + t * self.sigmoid_slope(t)
            }
            M::GeluBwd => {
                // Φ(x) + x φ(x).
                let density = self.scale(INV_SQRT_2_PI, self.normal_exp(x));
                self.normal_cdf(x) + x * density
            }
            M::GeluApproxTanhBwd => {
                // σ(t) + x σ (1 - σ) 2 √(2/π) (1 + 3 · 0.044715 x²). |x| is capped in the
                // polynomial, so that x² does not overflow: the slope of σ is 0 there.
                let t = self.gelu_tanh(x);
                let magnitude = self.abs(x);
                let far = self.constant(1024.0);
                let near = self.compare(F::Less, magnitude, far).select(magnitude, far);
                let square = self.scale(3.0 * GELU_CUBIC, near * near);
                let inner = self.scale(2.0 * SQRT_2_OVER_PI, one + square);
                let rest = x * (self.sigmoid_slope(t) * inner);
                self.sigmoid(t) + rest
            }
            _ => unreachable!("not a gradient"),
        }
    }
}

/// An angle reduced by whole turns.
struct Angle<'c> {
    /// The distance from the nearest quarter turn, in radians: at most an eighth of a turn.
    rest: Ssa<'c>,
    /// Whether one or three quarter turns were subtracted.
    is_odd: Ssa<'c>,
    /// Whether two or three quarter turns were subtracted.
    is_beyond_half: Ssa<'c>,
}

/// 2/π in pieces of 29 bits.
const TWO_OVER_PI: [f64; 7] = [
    341_782_637.0,
    423_170_132.0,
    352_195_499.0,
    488_592_205.0,
    461_485_765.0,
    90_590_992.0,
    478_285_810.0,
];
/// (sin(x) - x) / x³ as coefficients of powers of x², from Chebyshev interpolation.
const SIN: [f64; 4] = [
    -0.166_666_666_638_541_67,
    0.008_333_331_874_273_714,
    -0.000_198_400_864_995_936,
    2.724_989_523_061_167_8e-6,
];
/// (cos(x) - 1) / x² as coefficients of powers of x².
const COS: [f64; 4] = [
    -0.499_999_999_691_069_85,
    0.041_666_650_639_724_65,
    -0.001_388_758_889_673_391_4,
    0.000_024_463_754_730_094_443,
];
/// (|x| + 4) Φ(-|x|) exp(x²/2) as coefficients of powers of (|x| - 4) / (|x| + 4), from Chebyshev
/// interpolation, to the precision of f32.
const TAIL_F32: [f64; 12] = [
    0.755_285_130_516_605_7,
    -0.607_896_631_366_224_1,
    0.387_137_393_859_843_14,
    -0.186_522_159_839_951_4,
    0.060_396_648_278_004_936,
    -0.007_537_717_159_683_632,
    -0.003_479_954_637_443_4,
    0.001_622_040_105_528_428_2,
    0.000_133_653_387_094_441_32,
    -0.000_215_573_776_286_452_1,
    -1.731_082_301_475_417_9e-6,
    2.118_298_425_522_466e-5,
];
/// The coefficients of [`TAIL_F32`]'s function to the precision of f64.
const TAIL_F64: [f64; 26] = [
    0.755_285_130_415_751_5,
    -0.607_896_641_971_892_1,
    0.387_137_400_742_214_9,
    -0.186_521_857_959_654_84,
    0.060_396_574_890_917_876,
    -0.007_540_188_966_825_24,
    -0.003_479_692_367_047_973_6,
    0.001_630_818_459_394_586,
    0.000_133_344_309_411_832_56,
    -0.000_231_094_953_240_194_37,
    -1.908_246_351_414_571e-6,
    3.514_479_478_753_355e-5,
    7.166_587_641_195_121e-7,
    -5.920_586_519_556_891e-6,
    -6.298_367_338_492_369e-7,
    1.022_560_415_829_603_8e-6,
    2.724_629_695_114_587_3e-7,
    -1.565_023_646_199_310_6e-7,
    -8.686_647_015_997_893e-8,
    1.463_072_740_565_117_5e-8,
    2.142_760_384_345_235_5e-8,
    1.432_991_840_108_861_3e-9,
    -3.730_645_081_868_37e-9,
    -8.546_521_899_880_147e-10,
    3.403_312_308_649_495e-10,
    1.175_478_991_480_774e-10,
];
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
const INV_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;
const GELU_CUBIC: f64 = 0.044_715;

/// Returns a parameter, or its default.
pub(crate) fn parameter(value: Option<f32>, default: f64) -> f64 {
    value.map_or(default, f64::from)
}
