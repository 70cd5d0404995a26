//! Pointwise operations.

use super::{Result, Translation};
use crate::network::Attribute;
use rotini_graph::{Pointwise, PointwiseMode as Mode, TensorId, TensorKind, broadcast_dims};

/// Numbers of element types in ONNX.
const F32: i64 = 1;
const BOOL: i64 = 9;

impl Translation<'_> {
    pub(super) fn pointwise(&mut self, op: &Pointwise) -> Result<()> {
        let ids: Vec<TensorId> = [Some(op.in_0), op.in_1, op.in_2].into_iter().flatten().collect();
        let operands = ids.iter().map(|&id| self.value(id)).collect::<Result<Vec<_>>>()?;
        let last = self.network.steps.len();
        let result = match operands.as_slice() {
            [x] => self.unary(op, x)?,
            [x, y] => self.binary(op, x, y)?,
            [x, y, z] if op.mode == Mode::BinarySelect => {
                let chosen = self.truth(z);
                self.then("Where", &[&chosen, x, y])
            }
            _ => return Err(format!("{} with {} operands", op.mode.name(), operands.len())),
        };
        let wanted = self.dims(op.out_0)?;
        let mut dims = Vec::new();
        for &id in &ids {
            let tensor = self.tensor(id)?;
            // A scalar has a single element, whatever its dims are.
            let own = match tensor.kind {
                TensorKind::Constant(_) | TensorKind::RuntimeScalar => &[][..],
                _ => tensor.dims.as_slice(),
            };
            dims = broadcast_dims(&dims, own).ok_or("operands that do not broadcast")?;
        }
        let name = self.define(op.out_0)?;
        if dims != wanted {
            let wanted = self.integers(wanted);
            self.step("Expand", &[&result, &wanted], &name, []);
            return Ok(());
        }
        // The last step added computes the result, so its output gets the tensor's name.
        match self.network.steps.get_mut(last..).and_then(|steps| steps.last_mut()) {
            Some(step) => step.outputs = vec![name],
            None => self.step("Identity", &[&result], &name, []),
        }
        Ok(())
    }

    fn unary(&mut self, op: &Pointwise, x: &str) -> Result<String> {
        let kind = match op.mode {
            Mode::Abs => "Abs",
            Mode::Ceil => "Ceil",
            Mode::Erf => "Erf",
            Mode::Exp => "Exp",
            Mode::Floor => "Floor",
            Mode::Identity => "Identity",
            Mode::Log => "Log",
            Mode::Neg => "Neg",
            Mode::Reciprocal => "Reciprocal",
            Mode::SigmoidFwd => "Sigmoid",
            Mode::Sin => "Sin",
            Mode::Sqrt => "Sqrt",
            Mode::Tan => "Tan",
            Mode::TanhFwd => "Tanh",
            Mode::Rsqrt => {
                let root = self.then("Sqrt", &[x]);
                return Ok(self.then("Reciprocal", &[&root]));
            }
            Mode::LogicalNot => {
                let truth = self.truth(x);
                let not = self.then("Not", &[&truth]);
                return Ok(self.number(&not));
            }
            Mode::EluFwd => return Ok(self.with_float("Elu", x, "alpha", op.elu_alpha.unwrap_or(1.0))),
            Mode::GeluFwd => return Ok(self.gelu(x, "none")),
            Mode::GeluApproxTanhFwd => return Ok(self.gelu(x, "tanh")),
            Mode::ReluFwd => {
                let lower = op.relu_lower_clip.unwrap_or(0.0);
                if op.relu_upper_clip.is_some_and(|upper| upper < lower) {
                    return Err("clips that cross".to_owned());
                }
                return Ok(self.relu(op, x));
            }
            Mode::SoftplusFwd => {
                let beta = op.softplus_beta.unwrap_or(1.0);
                if beta == 1.0 {
                    return Ok(self.then("Softplus", &[x]));
                }
                let beta = self.float(beta);
                let inner = self.then("Mul", &[x, &beta]);
                let soft = self.then("Softplus", &[&inner]);
                return Ok(self.then("Div", &[&soft, &beta]));
            }
            Mode::SwishFwd => {
                let inner = match op.swish_beta {
                    None | Some(1.0) => x.to_owned(),
                    Some(beta) => {
                        let beta = self.float(beta);
                        self.then("Mul", &[x, &beta])
                    }
                };
                let sigmoid = self.then("Sigmoid", &[&inner]);
                return Ok(self.then("Mul", &[x, &sigmoid]));
            }
            mode => return Err(format!("{} is not translated", mode.name())),
        };
        Ok(self.then(kind, &[x]))
    }

    fn binary(&mut self, op: &Pointwise, x: &str, y: &str) -> Result<String> {
        let kind = match op.mode {
            Mode::Add => "Add",
            Mode::Sub => "Sub",
            Mode::Mul => "Mul",
            Mode::Div => "Div",
            Mode::Max => "Max",
            Mode::Min => "Min",
            Mode::AddSquare => {
                let square = self.then("Mul", &[y, y]);
                return Ok(self.then("Add", &[x, &square]));
            }
            Mode::CmpEq => return Ok(self.compared("Equal", x, y)),
            Mode::CmpGe => return Ok(self.compared("GreaterOrEqual", x, y)),
            Mode::CmpGt => return Ok(self.compared("Greater", x, y)),
            Mode::CmpLe => return Ok(self.compared("LessOrEqual", x, y)),
            Mode::CmpLt => return Ok(self.compared("Less", x, y)),
            Mode::CmpNeq => {
                let equal = self.then("Equal", &[x, y]);
                let not = self.then("Not", &[&equal]);
                return Ok(self.number(&not));
            }
            Mode::LogicalAnd | Mode::LogicalOr => {
                let (x, y) = (self.truth(x), self.truth(y));
                let kind = if op.mode == Mode::LogicalAnd { "And" } else { "Or" };
                let both = self.then(kind, &[&x, &y]);
                return Ok(self.number(&both));
            }
            // The gradients take (dy, x).
            Mode::ReluBwd if op.parameters().next().is_none() => {
                let zero = self.float(0.0);
                let passes = self.compared("Greater", y, &zero);
                return Ok(self.then("Mul", &[x, &passes]));
            }
            Mode::SigmoidBwd => {
                let sigmoid = self.then("Sigmoid", &[y]);
                let one = self.float(1.0);
                let rest = self.then("Sub", &[&one, &sigmoid]);
                let slope = self.then("Mul", &[&sigmoid, &rest]);
                return Ok(self.then("Mul", &[x, &slope]));
            }
            Mode::TanhBwd => {
                let tanh = self.then("Tanh", &[y]);
                let square = self.then("Mul", &[&tanh, &tanh]);
                let one = self.float(1.0);
                let slope = self.then("Sub", &[&one, &square]);
                return Ok(self.then("Mul", &[x, &slope]));
            }
            mode => return Err(format!("{} is not translated", mode.name())),
        };
        Ok(self.then(kind, &[x, y]))
    }

    /// Adds RELU: x between the clips, and a line with the slope below the lower clip.
    fn relu(&mut self, op: &Pointwise, x: &str) -> String {
        let lower = op.relu_lower_clip.unwrap_or(0.0);
        let slope = op.relu_lower_clip_slope.unwrap_or(0.0);
        match (lower, slope, op.relu_upper_clip) {
            (0.0, 0.0, None) => self.then("Relu", &[x]),
            (0.0, slope, None) => self.with_float("LeakyRelu", x, "alpha", slope),
            (lower, 0.0, None) => {
                let lower = self.float(lower);
                self.then("Max", &[x, &lower])
            }
            (lower, 0.0, Some(upper)) => {
                let (lower, upper) = (self.float(lower), self.float(upper));
                self.then("Clip", &[x, &lower, &upper])
            }
            (lower, slope, upper) => {
                let (lower, slope) = (self.float(lower), self.float(slope));
                let below = self.then("Less", &[x, &lower]);
                let distance = self.then("Sub", &[x, &lower]);
                let line = self.then("Mul", &[&distance, &slope]);
                let line = self.then("Add", &[&line, &lower]);
                let above = match upper {
                    None => x.to_owned(),
                    Some(upper) => {
                        let upper = self.float(upper);
                        self.then("Min", &[x, &upper])
                    }
                };
                self.then("Where", &[&below, &line, &above])
            }
        }
    }

    fn gelu(&mut self, x: &str, form: &'static str) -> String {
        let name = self.fresh();
        self.step("Gelu", &[x], &name, [("approximate", Attribute::Text(form))]);
        name
    }

    fn with_float(&mut self, kind: &'static str, x: &str, attribute: &'static str, value: f32) -> String {
        let name = self.fresh();
        self.step(kind, &[x], &name, [(attribute, Attribute::Float(value))]);
        name
    }

    fn compared(&mut self, kind: &'static str, x: &str, y: &str) -> String {
        let compared = self.then(kind, &[x, y]);
        self.number(&compared)
    }

    /// Adds the test whether a number is not zero.
    fn truth(&mut self, x: &str) -> String {
        let name = self.fresh();
        self.step("Cast", &[x], &name, [("to", Attribute::Integer(BOOL))]);
        name
    }

    /// Adds the conversion of a boolean to 1 or 0.
    fn number(&mut self, x: &str) -> String {
        let name = self.fresh();
        self.step("Cast", &[x], &name, [("to", Attribute::Integer(F32))]);
        name
    }
}
