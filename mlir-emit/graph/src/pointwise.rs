//! Pointwise operations: the modes, how many operands each takes and which parameters it has.

use crate::tensor_id::TensorId;
use serde::{Deserialize, Serialize};

/// Declares the modes with their wire value, schema name, number of operands and meaning.
macro_rules! modes {
    ($($value:literal $name:literal $variant:ident $arity:literal $doc:literal,)*) => {
        /// The function of a pointwise operation, with x, y, z for its operands in order.
        ///
        /// The gradients take (dy, x) in this order: `BACKWARD_OPERANDS` in the lowering states the
        /// evidence. `SELECT_OPERANDS` and `ADD_SQUARE_OPERANDS` there state that for two other
        /// modes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum PointwiseMode {
            $(#[doc = concat!($doc, ".")] $variant,)*
        }

        impl PointwiseMode {
            /// Every mode, in the order of the wire format.
            pub const ALL: &'static [PointwiseMode] = &[$(PointwiseMode::$variant),*];

            /// Returns the mode's number in the schema.
            #[must_use]
            pub const fn wire_value(self) -> i8 {
                match self { $(PointwiseMode::$variant => $value,)* }
            }

            /// Returns the mode with this number in the schema.
            #[must_use]
            pub const fn from_wire_value(value: i8) -> Option<Self> {
                match value { $($value => Some(PointwiseMode::$variant),)* _ => None }
            }

            /// Returns the mode's name in the schema.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(PointwiseMode::$variant => $name,)* }
            }

            /// Returns the number of operands: 1, 2 or 3.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(PointwiseMode::$variant => $arity,)* }
            }
        }
    };
}

modes! {
    1 "ABS" Abs 1 "|x|",
    2 "ADD" Add 2 "x + y",
    3 "ADD_SQUARE" AddSquare 2 "x + y²",
    4 "BINARY_SELECT" BinarySelect 3 "x where the third operand is not zero, else y",
    5 "CEIL" Ceil 1 "The smallest integer not below x",
    6 "CMP_EQ" CmpEq 2 "1 where x = y, else 0",
    7 "CMP_GE" CmpGe 2 "1 where x ≥ y, else 0",
    8 "CMP_GT" CmpGt 2 "1 where x > y, else 0",
    9 "CMP_LE" CmpLe 2 "1 where x ≤ y, else 0",
    10 "CMP_LT" CmpLt 2 "1 where x < y, else 0",
    11 "CMP_NEQ" CmpNeq 2 "1 where x ≠ y, else 0",
    12 "DIV" Div 2 "x / y",
    13 "ELU_BWD" EluBwd 2 "The gradient of ELU",
    14 "ELU_FWD" EluFwd 1 "x where x > 0, else alpha (exp(x) − 1)",
    15 "ERF" Erf 1 "The error function",
    16 "EXP" Exp 1 "exp(x)",
    17 "FLOOR" Floor 1 "The largest integer not above x",
    18 "GELU_APPROX_TANH_BWD" GeluApproxTanhBwd 2 "The gradient of the tanh form of GELU",
    19 "GELU_APPROX_TANH_FWD" GeluApproxTanhFwd 1 "GELU by its tanh form",
    20 "GELU_BWD" GeluBwd 2 "The gradient of GELU",
    21 "GELU_FWD" GeluFwd 1 "x Φ(x)",
    22 "GEN_INDEX" GenIndex 1 "The index along an axis",
    23 "IDENTITY" Identity 1 "x",
    24 "LOG" Log 1 "The natural logarithm",
    25 "LOGICAL_AND" LogicalAnd 2 "1 where neither x nor y is zero, else 0",
    26 "LOGICAL_NOT" LogicalNot 1 "1 where x is zero, else 0",
    27 "LOGICAL_OR" LogicalOr 2 "1 where x or y is not zero, else 0",
    28 "MAX_OP" Max 2 "The larger; NaN if either is",
    29 "MIN_OP" Min 2 "The smaller; NaN if either is",
    30 "MUL" Mul 2 "x y",
    31 "NEG" Neg 1 "−x",
    32 "RECIPROCAL" Reciprocal 1 "1 / x",
    33 "RELU_BWD" ReluBwd 2 "The gradient of RELU",
    34 "RELU_FWD" ReluFwd 1 "x between the clips; a line with the slope below the lower clip; the upper clip above it",
    35 "RSQRT" Rsqrt 1 "1 / √x",
    36 "SIGMOID_BWD" SigmoidBwd 2 "The gradient of the sigmoid",
    37 "SIGMOID_FWD" SigmoidFwd 1 "1 / (1 + exp(−x))",
    38 "SIN" Sin 1 "sin(x)",
    39 "SOFTPLUS_BWD" SoftplusBwd 2 "The gradient of softplus",
    40 "SOFTPLUS_FWD" SoftplusFwd 1 "log(1 + exp(beta x)) / beta",
    41 "SQRT" Sqrt 1 "√x",
    42 "SUB" Sub 2 "x − y",
    43 "SWISH_BWD" SwishBwd 2 "The gradient of swish",
    44 "SWISH_FWD" SwishFwd 1 "x sigmoid(beta x)",
    45 "TAN" Tan 1 "tan(x)",
    46 "TANH_BWD" TanhBwd 2 "The gradient of tanh",
    47 "TANH_FWD" TanhFwd 1 "tanh(x)",
}

impl PointwiseMode {
    /// Returns true if this mode has the parameter.
    #[must_use]
    pub const fn takes(self, parameter: PointwiseParameter) -> bool {
        use PointwiseMode::{EluBwd, EluFwd, GenIndex, ReluBwd, ReluFwd, SoftplusBwd, SoftplusFwd, SwishBwd, SwishFwd};
        match parameter {
            PointwiseParameter::ReluLowerClip
            | PointwiseParameter::ReluUpperClip
            | PointwiseParameter::ReluLowerClipSlope => matches!(self, ReluFwd | ReluBwd),
            PointwiseParameter::SwishBeta => matches!(self, SwishFwd | SwishBwd),
            PointwiseParameter::EluAlpha => matches!(self, EluFwd | EluBwd),
            PointwiseParameter::SoftplusBeta => matches!(self, SoftplusFwd | SoftplusBwd),
            PointwiseParameter::Axis => matches!(self, GenIndex),
        }
    }
}

/// The parameters that a pointwise operation can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "described at the fields of `Pointwise`")]
pub enum PointwiseParameter {
    ReluLowerClip,
    ReluUpperClip,
    ReluLowerClipSlope,
    SwishBeta,
    EluAlpha,
    SoftplusBeta,
    Axis,
}

/// An elementwise operation, with operands broadcast as in NumPy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pointwise {
    /// The function.
    pub mode: PointwiseMode,
    /// First operand, x.
    pub in_0: TensorId,
    /// Second operand, y.
    pub in_1: Option<TensorId>,
    /// Third operand, z.
    pub in_2: Option<TensorId>,
    /// Result.
    pub out_0: TensorId,
    /// The lower clip of RELU, below which it is linear; 0 if absent.
    pub relu_lower_clip: Option<f32>,
    /// The upper clip of RELU; unbounded if absent.
    pub relu_upper_clip: Option<f32>,
    /// Slope of RELU below the lower clip; 0 if absent.
    pub relu_lower_clip_slope: Option<f32>,
    /// The axis whose index GEN_INDEX returns.
    pub axis: Option<i64>,
    /// Factor beta in x sigmoid(beta x) of swish; 1 if absent.
    pub swish_beta: Option<f32>,
    /// Factor alpha in alpha (exp(x) - 1), the negative branch of ELU; 1 if absent.
    pub elu_alpha: Option<f32>,
    /// Factor beta in log(1 + exp(beta x)) / beta of softplus; 1 if absent.
    pub softplus_beta: Option<f32>,
}

crate::visit::visitors!(Pointwise, reads { in_0, in_1, in_2 }, writes { out_0 });

impl Pointwise {
    /// Returns an operation without parameters.
    #[must_use]
    pub const fn new(
        mode: PointwiseMode,
        in_0: TensorId,
        in_1: Option<TensorId>,
        in_2: Option<TensorId>,
        out_0: TensorId,
    ) -> Self {
        Pointwise {
            mode,
            in_0,
            in_1,
            in_2,
            out_0,
            relu_lower_clip: None,
            relu_upper_clip: None,
            relu_lower_clip_slope: None,
            axis: None,
            swish_beta: None,
            elu_alpha: None,
            softplus_beta: None,
        }
    }

    /// Returns the parameters that are set, each with its name in the schema.
    pub fn parameters(&self) -> impl Iterator<Item = (PointwiseParameter, &'static str)> {
        use PointwiseParameter as P;
        let clip_slope = self.relu_lower_clip_slope.is_some();
        [
            (P::ReluLowerClip, "relu_lower_clip", self.relu_lower_clip.is_some()),
            (P::ReluUpperClip, "relu_upper_clip", self.relu_upper_clip.is_some()),
            (P::ReluLowerClipSlope, "relu_lower_clip_slope", clip_slope),
            (P::SwishBeta, "swish_beta", self.swish_beta.is_some()),
            (P::EluAlpha, "elu_alpha", self.elu_alpha.is_some()),
            (P::SoftplusBeta, "softplus_beta", self.softplus_beta.is_some()),
            (P::Axis, "axis", self.axis.is_some()),
        ]
        .into_iter()
        .filter_map(|(parameter, name, set)| set.then_some((parameter, name)))
    }
}
