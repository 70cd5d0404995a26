//! Graphs of one normalization, and how their results are compared.

use crate::validated;
use rotini_graph::{Batchnorm, DataType, Graph, GraphBuilder, Layernorm, NormPhase, Op, RmsNorm, Scalar, TensorId};

pub(super) const F64: DataType = DataType::F64;
pub(super) const F32: DataType = DataType::F32;

/// A builder of a graph of one normalization node.
pub(super) struct Norm {
    pub(super) builder: GraphBuilder,
    pub(super) dtype: DataType,
}

impl Norm {
    pub(super) fn new(dtype: DataType) -> Self {
        Norm {
            builder: GraphBuilder::new(""),
            dtype,
        }
    }

    pub(super) fn buffer(&mut self, name: &str, dims: &[i64]) -> TensorId {
        self.builder.buffer(name, self.dtype, dims)
    }

    pub(super) fn constant(&mut self, value: f64) -> TensorId {
        self.builder.constant("", self.dtype, &[1], Scalar::float(value))
    }

    pub(super) fn graph(mut self, op: impl Into<Op>) -> Graph {
        self.builder.node("", self.dtype, op);
        validated(self.builder)
    }
}

pub(super) struct Training {
    pub(super) graph: Graph,
    pub(super) x: TensorId,
    pub(super) parameters: [TensorId; 2],
    pub(super) running: [TensorId; 2],
    /// y, mean, inverse variance, running mean, running variance.
    pub(super) outputs: [TensorId; 5],
}

pub(super) fn training(dtype: DataType, dims: &[i64], epsilon: f64, momentum: f64) -> Training {
    let mut norm = Norm::new(dtype);
    let mut channel = vec![1; dims.len()];
    channel[1] = dims[1];
    let x = norm.buffer("x", dims);
    let [scale, bias, prev_mean, prev_variance] =
        ["scale", "bias", "prev_mean", "prev_variance"].map(|name| norm.buffer(name, &channel));
    let [epsilon, momentum] = [epsilon, momentum].map(|value| norm.constant(value));
    let y = norm.buffer("y", dims);
    let [mean, inv_variance, next_mean, next_variance] =
        ["mean", "inv_variance", "next_mean", "next_variance"].map(|name| norm.buffer(name, &channel));
    let graph = norm.graph(Batchnorm {
        x,
        scale,
        bias,
        epsilon,
        peer_stats: vec![],
        prev_running_mean: Some(prev_mean),
        prev_running_variance: Some(prev_variance),
        momentum: Some(momentum),
        y,
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        next_running_mean: Some(next_mean),
        next_running_variance: Some(next_variance),
    });
    Training {
        graph,
        x,
        parameters: [scale, bias],
        running: [prev_mean, prev_variance],
        outputs: [y, mean, inv_variance, next_mean, next_variance],
    }
}

pub(super) struct Layer {
    pub(super) graph: Graph,
    pub(super) x: TensorId,
    pub(super) parameters: [TensorId; 2],
    /// y, mean, inverse variance.
    pub(super) outputs: [TensorId; 3],
}

pub(super) fn layer(dtype: DataType, dims: &[i64], count: usize, epsilon: f64, padded: bool) -> Layer {
    let mut norm = Norm::new(dtype);
    let (outer, inner) = dims.split_at(dims.len() - count);
    let [parameter, statistic] = if padded {
        [
            [vec![1; outer.len()], inner.to_vec()].concat(),
            [outer.to_vec(), vec![1; count]].concat(),
        ]
    } else {
        [inner.to_vec(), outer.to_vec()]
    };
    let x = norm.buffer("x", dims);
    let [scale, bias] = ["scale", "bias"].map(|name| norm.buffer(name, &parameter));
    let epsilon = norm.constant(epsilon);
    let y = norm.buffer("y", dims);
    let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| norm.buffer(name, &statistic));
    let graph = norm.graph(Layernorm {
        x,
        scale,
        bias,
        epsilon,
        y,
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        normalized_dim_count: i64::try_from(count).unwrap(),
        phase: NormPhase::Training,
    });
    Layer {
        graph,
        x,
        parameters: [scale, bias],
        outputs: [y, mean, inv_variance],
    }
}

pub(super) struct Rms {
    pub(super) graph: Graph,
    pub(super) x: TensorId,
    pub(super) parameters: [TensorId; 2],
    pub(super) y: TensorId,
    pub(super) inv_rms: TensorId,
}

pub(super) fn rms(dtype: DataType, dims: &[i64], scale_dims: &[i64], epsilon: f64) -> Rms {
    let mut norm = Norm::new(dtype);
    let statistic: Vec<i64> = dims
        .iter()
        .zip(scale_dims)
        .map(|(&dim, &scale)| if scale == 1 { dim } else { 1 })
        .collect();
    let x = norm.buffer("x", dims);
    let [scale, bias] = ["scale", "bias"].map(|name| norm.buffer(name, scale_dims));
    let epsilon = norm.constant(epsilon);
    let y = norm.buffer("y", dims);
    let inv_rms = norm.buffer("inv_rms", &statistic);
    let graph = norm.graph(RmsNorm {
        x,
        scale,
        epsilon,
        bias: Some(bias),
        y,
        inv_rms: Some(inv_rms),
        phase: NormPhase::Training,
    });
    Rms {
        graph,
        x,
        parameters: [scale, bias],
        y,
        inv_rms,
    }
}

pub(super) fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!(
            (got - want).abs() <= 1e-6 * want.abs().max(1.0),
            "{got} instead of {want}"
        );
    }
}
