//! Derives facts from a case that ran right: operations, types and layouts that work.

use crate::cases::Case;
use rotini_graph::{
    ConvMode, DataType, DiagonalAlignment, Graph, Layout, Node, Op, Tensor, TensorId, TensorKind, element_span,
};
use std::collections::{BTreeMap, BTreeSet};

/// One combination that ran right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// An operation on tensors in memory.
    Node {
        /// Its kind.
        operation: String,
        /// Its mode, or an empty text.
        mode: String,
        /// The types of the tensors that it reads, of those that it writes, and its compute type.
        types: [String; 3],
        /// One of [`LAYOUTS`].
        layout: String,
    },
    /// An operation with an optional feature of its kind.
    Feature {
        /// Its kind.
        operation: String,
        /// An attribute, an optional tensor or a rank.
        feature: String,
    },
    /// Several operations in one graph, and the types of its tensors in memory.
    Graph {
        /// Their kinds and modes in order.
        operations: String,
        /// The types, largest first.
        types: String,
    },
}

impl Fact {
    fn with(operation: &str, feature: String) -> Self {
        Fact::Feature {
            operation: operation.to_owned(),
            feature,
        }
    }

    /// Returns the fact as one line, which [`parse`](Self::parse) reads.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Fact::Node {
                operation,
                mode,
                types: [reads, writes, compute],
                layout,
            } => format!("node\t{operation}\t{mode}\t{reads}\t{writes}\t{compute}\t{layout}"),
            Fact::Feature { operation, feature } => format!("with\t{operation}\t{feature}"),
            Fact::Graph { operations, types } => format!("graph\t{operations}\t{types}"),
        }
    }

    /// Parses the fact of a line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        match fields.as_slice() {
            [kind, operation, mode, reads, writes, compute, layout] if kind == "node" => Some(Fact::Node {
                operation: operation.clone(),
                mode: mode.clone(),
                types: [reads.clone(), writes.clone(), compute.clone()],
                layout: layout.clone(),
            }),
            [kind, operation, feature] if kind == "with" => Some(Fact::Feature {
                operation: operation.clone(),
                feature: feature.clone(),
            }),
            [kind, operations, types] if kind == "graph" => Some(Fact::Graph {
                operations: operations.clone(),
                types: types.clone(),
            }),
            _ => None,
        }
    }
}

/// Returns the facts that these cases prove if all ran right.
#[must_use]
pub fn facts(cases: &[Case]) -> BTreeSet<Fact> {
    let mut facts = BTreeSet::new();
    // The features of each kind's nodes, and the number of nodes.
    let mut kinds: BTreeMap<&str, (usize, BTreeMap<String, usize>)> = BTreeMap::new();
    for Case { graph, .. } in cases {
        for node in &graph.nodes {
            facts.extend(node_facts(graph, node));
            let (nodes, counts) = kinds.entry(node.op.kind()).or_default();
            *nodes += 1;
            for feature in features(graph, node) {
                *counts.entry(feature).or_default() += 1;
            }
        }
        facts.extend(graph_fact(graph));
    }
    // Features that only some nodes of a kind have.
    for (operation, (nodes, counts)) in kinds {
        let some = counts.into_iter().filter(|(_, count)| *count < nodes);
        facts.extend(some.map(|(feature, _)| Fact::with(operation, feature)));
    }
    facts
}

/// Returns an operation's mode, if its kind has modes.
fn mode(op: &Op) -> String {
    match op {
        Op::Pointwise(op) => op.mode.name().to_owned(),
        Op::Reduction(op) => format!("{:?}", op.mode),
        Op::ResampleFwd(op) => format!("{:?}", op.resample_mode),
        Op::ResampleBwd(op) => format!("{:?}", op.resample_mode),
        Op::MoeGroupedMatmul(op) => format!("{:?}", op.mode),
        Op::Layernorm(op) => format!("{:?}", op.phase),
        Op::RmsNorm(op) => format!("{:?}", op.phase),
        Op::BatchnormInference(_)
        | Op::BatchnormBackward(_)
        | Op::Batchnorm(_)
        | Op::ConvFprop(_)
        | Op::ConvDgrad(_)
        | Op::ConvWgrad(_)
        | Op::BatchnormInferenceVariance(_)
        | Op::Matmul(_)
        | Op::Sdpa(_)
        | Op::BlockScaleDequantize(_)
        | Op::BlockScaleQuantize(_)
        | Op::SdpaBackward(_)
        | Op::CustomOp(_)
        | Op::RmsNormBackward(_)
        | Op::LayernormBackward(_)
        | Op::MoeGroupedMatmulBwd(_) => String::new(),
    }
}

/// A tensor of a node with its field's name.
type Field<'g> = (&'static str, &'g Tensor);

/// Returns the tensors that a node reads and those that it writes.
fn tensors<'g>(graph: &'g Graph, node: &Node) -> (Vec<Field<'g>>, Vec<Field<'g>>) {
    let (mut read, mut written) = (Vec::new(), Vec::new());
    let of = |id: TensorId| &graph.tensors[id.index()];
    node.op.for_each_input(&mut |name, id| read.push((name, of(id))));
    node.op.for_each_output(&mut |name, id| written.push((name, of(id))));
    (read, written)
}

/// Returns the distinct types, in order of appearance.
fn types(types: impl Iterator<Item = DataType>) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in types.map(|dtype| dtype.to_string()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Returns the facts of a node: its types and its layout are proven only if no tensor is virtual.
fn node_facts(graph: &Graph, node: &Node) -> Vec<Fact> {
    let (read, written) = tensors(graph, node);
    let all = || read.iter().chain(&written).map(|(_, tensor)| *tensor);
    if all().any(|tensor| tensor.kind == TensorKind::Virtual) {
        return Vec::new();
    }
    let in_memory = |tensors: &[(&str, &Tensor)]| {
        types(
            tensors
                .iter()
                .map(|(_, tensor)| tensor)
                .filter(|tensor| tensor.kind == TensorKind::Buffer)
                .map(|tensor| tensor.dtype),
        )
    };
    let stored: Vec<&Tensor> = all().filter(|tensor| tensor.kind == TensorKind::Buffer).collect();
    let mut layouts = vec![layout(&stored)];
    let is_narrow = |(_, tensor): &(&str, &Tensor)| written.iter().any(|(_, output)| output.dims != tensor.dims);
    if matches!(node.op, Op::Pointwise(_)) && read.iter().any(is_narrow) {
        layouts.push("broadcast");
    }
    // A body determines its own compute types.
    let compute = match node.op {
        Op::CustomOp(_) => "its own".to_owned(),
        _ => node.compute.to_string(),
    };
    let fact = |layout: &str| Fact::Node {
        operation: node.op.kind().to_owned(),
        mode: mode(&node.op),
        types: [in_memory(&read), in_memory(&written), compute.clone()],
        layout: layout.to_owned(),
    };
    layouts.into_iter().map(fact).collect()
}

/// Layouts, in the order of the table's columns.
pub const LAYOUTS: [&str; 6] = [
    "row-major",
    "channels-last",
    "other orders",
    "gaps",
    "repeated",
    "broadcast",
];

/// Returns the least usual layout among the tensors. A tensor that fits both usual orders counts as
/// the first one.
fn layout(tensors: &[&Tensor]) -> &'static str {
    let repeats = |tensor: &&Tensor| {
        let mut axes = tensor.dims.iter().zip(&tensor.strides);
        axes.any(|(&dim, &stride)| dim > 1 && stride == 0)
    };
    let lies_in = |tensor: &&Tensor, order: &dyn Fn(usize) -> Vec<usize>| {
        let mut expected = 1;
        order(tensor.dims.len()).into_iter().rev().all(|axis| {
            let (dim, stride) = (tensor.dims[axis], tensor.strides[axis]);
            let is_there = dim == 1 || stride == expected;
            expected *= dim;
            is_there
        })
    };
    let row_major = |rank: usize| (0..rank).collect::<Vec<_>>();
    let channels_last = |rank: usize| {
        let channel = usize::from(rank > 1);
        (0..rank)
            .filter(|&axis| axis != channel)
            .chain([channel].into_iter().filter(|&axis| axis < rank))
            .collect()
    };
    let has_gaps = |tensor: &&Tensor| {
        let elements: i64 = tensor.dims.iter().product();
        element_span(&tensor.dims, &tensor.strides).is_none_or(|span| span > elements)
            || matches!(Layout::of(&tensor.dims, &tensor.strides), Layout::Strided)
    };
    if tensors.iter().any(repeats) {
        "repeated"
    } else if tensors.iter().any(has_gaps) {
        "gaps"
    } else if tensors.iter().all(|tensor| lies_in(tensor, &row_major)) {
        "row-major"
    } else if tensors.iter().all(|tensor| lies_in(tensor, &channels_last)) {
        "channels-last"
    } else {
        "other orders"
    }
}

/// Returns the fact of a graph with several nodes: their operations in order.
fn graph_fact(graph: &Graph) -> Option<Fact> {
    let name = |node: &Node| match &node.op {
        Op::Pointwise(op) => op.mode.name().to_owned(),
        op => op.kind().to_owned(),
    };
    let operations = match graph.nodes.as_slice() {
        [] | [_] => return None,
        nodes if nodes.len() > 8 => format!("{} operations", nodes.len()),
        nodes => nodes.iter().map(name).collect::<Vec<_>>().join(", "),
    };
    let stored = graph.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Buffer);
    let mut stored: Vec<DataType> = stored.map(|tensor| tensor.dtype).collect();
    stored.sort_by_key(|dtype| (std::cmp::Reverse(dtype.bits()), dtype.to_string()));
    Some(Fact::Graph {
        operations,
        types: types(stored.into_iter()),
    })
}

/// Returns the optional features of a node.
fn features(graph: &Graph, node: &Node) -> BTreeSet<String> {
    let (read, written) = tensors(graph, node);
    let mut features = BTreeSet::new();
    // A pointwise mode determines the number of operands; lists have no optional ones.
    if !matches!(node.op, Op::Pointwise(_)) {
        features.extend(read.iter().chain(&written).map(|(name, _)| (*name).to_owned()));
    }
    if let Some((_, output)) = written.first() {
        features.insert(format!("rank {}", output.dims.len()));
    }
    let mut says = |word: &str, holds: bool| {
        if holds {
            features.insert(word.to_owned());
        }
    };
    let is_wide = |values: &[i64]| values.iter().any(|&value| value > 1);
    let channels = |id: TensorId| graph.tensors[id.index()].dims.get(1).copied();
    let geometry = match &node.op {
        Op::ConvFprop(op) => Some((&op.geometry, channels(op.x) != channels(op.w))),
        Op::ConvDgrad(op) => Some((&op.geometry, channels(op.dx) != channels(op.w))),
        Op::ConvWgrad(op) => Some((&op.geometry, channels(op.x) != channels(op.dw))),
        _ => None,
    };
    if let Some((geometry, has_groups)) = geometry {
        says("groups", has_groups);
        says("stride", is_wide(&geometry.stride));
        says("dilation", is_wide(&geometry.dilation));
        says("turned filter", geometry.mode == ConvMode::Convolution);
        says(
            "padding",
            geometry
                .pre_padding
                .iter()
                .chain(&geometry.post_padding)
                .any(|&padding| padding > 0),
        );
        says("asymmetric padding", geometry.pre_padding != geometry.post_padding);
    }
    macro_rules! attention {
        ($op:ident) => {{
            says("causal mask", $op.causal_mask);
            says("causal mask from the bottom right", $op.causal_mask_bottom_right);
            says("left bound", $op.left_bound.is_some());
            says("right bound", $op.right_bound.is_some());
            says(
                "diagonal from the bottom right",
                $op.diagonal_alignment == DiagonalAlignment::BottomRight,
            );
            says("ALiBi", $op.alibi_mask);
            says("scale by value", $op.attn_scale_value.is_some());
            says("heads that share keys", channels($op.q) != channels($op.k));
        }};
    }
    match &node.op {
        Op::Sdpa(op) => attention!(op),
        Op::SdpaBackward(op) => attention!(op),
        _ => {}
    }
    features
}
