//! A graph of ONNX operations, independent of ONNX Runtime.

use rotini_graph::Tensor;

/// The opset version: the first that has `RMSNormalization`.
pub(crate) const OPSET: u32 = 23;

/// An attribute's value.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    Integer(i64),
    Integers(Vec<i64>),
    Float(f32),
    Text(&'static str),
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: &'static str,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
}

/// Element types of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    Bf16,
}

impl Element {
    /// Returns the size of one element in bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
        }
    }

    /// Returns the type's number in ONNX.
    pub(crate) fn number(self) -> i64 {
        match self {
            Element::F32 => 1,
            Element::F16 => 10,
            Element::Bf16 => 16,
        }
    }
}

/// A tensor in one of the caller's buffers.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) tensor: Tensor,
    /// Extents in memory order, from the slowest axis to the fastest.
    pub(crate) shape: Vec<i64>,
    pub(crate) element: Element,
    /// Whether a model would contain the tensor: a filter, a bias or a statistic.
    pub(crate) is_weight: bool,
}

impl Port {
    /// Returns the size of the buffer in bytes; `None` on overflow.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let elements = self
            .shape
            .iter()
            .try_fold(1_i64, |all, &extent| all.checked_mul(extent))?;
        usize::try_from(elements).ok()?.checked_mul(self.element.bytes())
    }
}

/// The elements of a constant tensor.
#[derive(Clone, Debug)]
pub(crate) enum Constant {
    Floats(Vec<f32>),
    Integers(Vec<i64>),
}

/// A graph of ONNX operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// Constants: name, extents and elements.
    pub(crate) constants: Vec<(String, Vec<i64>, Constant)>,
    /// Operations, in an executable order.
    pub(crate) steps: Vec<Step>,
}
