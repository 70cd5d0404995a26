//! Types that every family of cases uses: a named graph, custom buffers, memory orders.

use crate::harness::inputs::fill_with_given;
use anyhow::{Context as _, Result};
use rotini_graph::{DataType, Graph, GraphBuilder, TensorId, TensorKind};
use rotini_reference::{Buffers, Profile, fill_with};

/// The float types that every family has.
pub(super) const FLOATS: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];

/// A graph with a descriptive name.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name, unique.
    pub name: String,
    /// The graph, not validated yet.
    pub graph: Graph,
}

/// A case with input elements that [`fill`] does not generate.
#[derive(Clone, Debug)]
pub struct Data {
    /// The case.
    pub case: Case,
    /// The bytes of each tensor by uid.
    pub inputs: Buffers,
    /// Whether hipDNN defines the graph's result for these inputs.
    pub has_meaning: bool,
}

impl Data {
    /// Fills the buffers as usual, except for tensors of i32 without gaps, which get these
    /// elements.
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

    /// Fills the buffers as usual, except for one that is filled by a profile that no consumer asks
    /// for.
    pub(super) fn filled(name: impl Into<String>, graph: Graph, operand: &str, profile: Profile) -> Result<Self> {
        Data::with(name, graph, &[], true)?.and(operand, profile)
    }

    /// Sets one row of an attention's operand to NaN in every batch and head; its last columns
    /// become infinite, if there are several.
    pub(super) fn poisoned(mut self, operand: &str, row: i64) -> Result<Self> {
        let tensor = self.case.graph.tensors.iter().find(|tensor| tensor.name == operand);
        let tensor = tensor.with_context(|| format!("there is no tensor {operand}"))?;
        let (&[batch, heads, _, columns], &[of_batch, of_head, of_row, of_column]) =
            (tensor.dims.as_slice(), tensor.strides.as_slice())
        else {
            anyhow::bail!("{operand} is not of rank 4");
        };
        let infinity = match tensor.dtype {
            DataType::F16 => vec![0x00, 0x7c],
            DataType::Bf16 => vec![0x80, 0x7f],
            DataType::F32 => f32::INFINITY.to_le_bytes().to_vec(),
            _ => f64::INFINITY.to_le_bytes().to_vec(),
        };
        let nan = vec![0xff; infinity.len()];
        let bytes = self.inputs.get_mut(&tensor.uid).context("no buffer")?;
        for (batch, head) in (0..batch).flat_map(|batch| (0..heads).map(move |head| (batch, head))) {
            for column in 0..columns {
                let place = batch * of_batch + head * of_head + row * of_row + column * of_column;
                let place = usize::try_from(place)? * nan.len();
                let value = if column > columns / 2 { &infinity } else { &nan };
                let element = bytes.get_mut(place..place + nan.len()).context("no such row")?;
                element.copy_from_slice(value);
            }
        }
        Ok(self)
    }

    /// Fills another operand by a profile.
    pub(super) fn and(mut self, operand: &str, profile: Profile) -> Result<Self> {
        let graph = &self.case.graph;
        let position = graph.tensors.iter().position(|tensor| tensor.name == operand);
        let id = TensorId(u32::try_from(position.context("no operand")?)?);
        let uid = graph.tensor(id).context("no operand")?.uid;
        self.inputs.insert(uid, fill_with(graph, id, 11, profile)?);
        Ok(self)
    }
}

/// The cases collected so far.
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
    /// Spatial C N, which no convolution library supports.
    BatchLast,
}

impl Order {
    /// Both orders that frameworks use.
    pub const BOTH: [Order; 2] = [Order::First, Order::Last];

    /// Returns the order's part of case names.
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
