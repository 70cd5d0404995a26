//! A graph of ONNX's operations, before ONNX Runtime sees it.

use rotini_graph::Tensor;

/// The version of ONNX's operations: the first that has `RMSNormalization`.
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
    /// Bytes of one.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
        }
    }

    /// Its number in ONNX.
    pub(crate) fn number(self) -> i64 {
        match self {
            Element::F32 => 1,
            Element::F16 => 10,
            Element::Bf16 => 16,
        }
    }
}

/// A tensor of the caller's.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) tensor: Tensor,
    /// Its extents in memory, from the slowest to the fastest.
    pub(crate) shape: Vec<i64>,
    pub(crate) element: Element,
    /// Whether models have it in them: a filter, a bias, a statistic.
    pub(crate) is_weight: bool,
}

impl Port {
    /// The bytes of its buffer.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let elements = self
            .shape
            .iter()
            .try_fold(1_i64, |all, &extent| all.checked_mul(extent))?;
        usize::try_from(elements).ok()?.checked_mul(self.element.bytes())
    }
}

/// What is known beforehand.
#[derive(Clone, Debug)]
pub(crate) enum Constant {
    Floats(Vec<f32>),
    Integers(Vec<i64>),
}

/// A whole graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// Name, extents, elements.
    pub(crate) constants: Vec<(String, Vec<i64>, Constant)>,
    /// In an order in which they can be executed.
    pub(crate) steps: Vec<Step>,
}
