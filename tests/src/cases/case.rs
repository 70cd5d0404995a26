//! What every family of cases is made of: a graph with its name, buffers of its own, memory orders.

use crate::harness::inputs::fill_with_given;
use anyhow::{Context as _, Result};
use rotini_graph::{DataType, Graph, GraphBuilder, TensorId, TensorKind};
use rotini_reference::{Buffers, Profile, fill_with};

/// The float types that every family has.
pub(super) const FLOATS: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];

/// A graph with a name that says what it is about.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name, unique.
    pub name: String,
    /// The graph, not validated yet.
    pub graph: Graph,
}

/// A case on buffers with elements that [`fill`] does not make.
#[derive(Clone, Debug)]
pub struct Data {
    /// The case.
    pub case: Case,
    /// The bytes of each tensor by uid.
    pub inputs: Buffers,
    /// Whether hipDNN gives the graph a meaning on them.
    pub has_meaning: bool,
}

impl Data {
    /// The usual buffers, but these elements in tensors of i32 without gaps.
    pub(super) fn with(
        name: impl Into<String>,
        graph: Graph,
        elements: &[(&str, Vec<i32>)],
        has_meaning: bool,
    ) -> Result<Self> {
        let mut given = Buffers::new();
        for (name, elements) in elements {
            let tensor = graph.tensors.iter().find(|tensor| tensor.name == *name);
            let uid = tensor.with_context(|| format!("there is no tensor {name}"))?.uid;
            given.insert(uid, elements.iter().flat_map(|element| element.to_le_bytes()).collect());
        }
        let inputs = fill_with_given(&graph, given)?;
        let name = name.into();
        Ok(Data {
            case: Case { name, graph },
            inputs,
            has_meaning,
        })
    }

    /// The usual buffers, but one of them filled by a profile that no consumer asks for.
    pub(super) fn filled(name: impl Into<String>, graph: Graph, operand: &str, profile: Profile) -> Result<Self> {
        Data::with(name, graph, &[], true)?.and(operand, profile)
    }

    /// The same with another operand filled by a profile.
    pub(super) fn and(mut self, operand: &str, profile: Profile) -> Result<Self> {
        let graph = &self.case.graph;
        let position = graph.tensors.iter().position(|tensor| tensor.name == operand);
        let id = TensorId(u32::try_from(position.context("no operand")?)?);
        let uid = graph.tensor(id).context("no operand")?.uid;
        self.inputs.insert(uid, fill_with(graph, id, 11, profile)?);
        Ok(self)
    }
}

/// The cases that were made so far.
pub(super) struct Cases(pub(super) Vec<Case>);

impl Cases {
    pub(super) fn add(&mut self, name: impl Into<String>, graph: Graph) {
        self.0.push(Case {
            name: name.into(),
            graph,
        });
    }
}

/// A memory order for tensors of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// N C spatial.
    First,
    /// N spatial C.
    Last,
    /// Spatial C N, which no library of convolutions knows.
    BatchLast,
}

impl Order {
    /// Both orders that frameworks use.
    pub const BOTH: [Order; 2] = [Order::First, Order::Last];

    /// As it stands in names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Order::First => "nchw",
            Order::Last => "nhwc",
            Order::BatchLast => "hwcn",
        }
    }

    pub(super) fn buffer(self, builder: &mut GraphBuilder, name: &str, dtype: DataType, dims: &[i64]) -> TensorId {
        match self {
            Order::First => builder.buffer(name, dtype, dims),
            Order::Last => builder.buffer_channels_last(name, dtype, dims),
            Order::BatchLast => {
                // From the innermost axis outwards.
                let mut strides = vec![0; dims.len()];
                let mut stride = 1;
                for axis in [0, 1].into_iter().chain((2..dims.len()).rev()) {
                    strides[axis] = stride;
                    stride *= dims[axis];
                }
                builder.tensor(name, dtype, dims, &strides, TensorKind::Buffer)
            }
        }
    }
}
