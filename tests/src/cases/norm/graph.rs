//! The graphs of one normalization: extents, type, order, and the parameters it has.

use crate::cases::case::Order;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, DataType, Graph, GraphBuilder,
    Layernorm, LayernormBackward, NormPhase, PointwiseMode, RmsNorm, RmsNormBackward, Scalar, TensorId,
};

const F32: DataType = DataType::F32;
const EPSILON: f64 = 1e-5;

/// A normalization of x; y has the same type. Parameters and statistics have the compute type, f32
/// by default.
#[derive(Clone, Debug)]
pub(crate) struct Norm {
    dims: Vec<i64>,
    dtype: DataType,
    order: Order,
    /// Type of parameters, statistics and computation.
    pub(super) compute: DataType,
}

impl Norm {
    pub(crate) fn new(dims: &[i64], dtype: DataType, order: Order) -> Self {
        Norm {
            dims: dims.to_vec(),
            dtype,
            order,
            compute: F32,
        }
    }

    /// Adds x or another tensor of its dims.
    fn full(&self, b: &mut GraphBuilder, name: &str) -> TensorId {
        self.order.buffer(b, name, self.dtype, &self.dims)
    }

    fn small<const N: usize>(&self, b: &mut GraphBuilder, names: [&str; N], dims: &[i64]) -> [TensorId; N] {
        names.map(|name| b.buffer(name, self.compute, dims))
    }

    fn constant(&self, b: &mut GraphBuilder, name: &str, value: f64) -> TensorId {
        b.constant(name, self.compute, &[1], Scalar::float(value))
    }

    /// Returns the dims 1, C, 1, ...
    fn channel(&self) -> Vec<i64> {
        let mut dims = vec![1; self.dims.len()];
        dims[1] = self.dims[1];
        dims
    }

    /// Returns the dims of parameters and of statistics if the last `count` dims are normalized.
    fn split(&self, count: usize) -> (Vec<i64>, Vec<i64>) {
        let (outer, inner) = self.dims.split_at(self.dims.len() - count);
        (
            [&vec![1; outer.len()], inner].concat(),
            [outer, &vec![1; count]].concat(),
        )
    }

    /// Builds batchnorm inference, followed by the activation `fused`, if any.
    pub(super) fn batchnorm_inference(&self, with_variance: bool, fused: Option<PointwiseMode>) -> Graph {
        let mut b = GraphBuilder::new("batchnorm_inference");
        let x = self.full(&mut b, "x");
        let [mean, variance, scale, bias] = self.small(&mut b, ["mean", "variance", "scale", "bias"], &self.channel());
        let epsilon = with_variance.then(|| self.constant(&mut b, "epsilon", EPSILON));
        let y = self.full(&mut b, "y");
        let normalized = match fused {
            Some(mode) => {
                let normalized = b.virtual_tensor("normalized", self.compute, &self.dims);
                b.pointwise(self.compute, mode, &[normalized], y);
                normalized
            }
            None => y,
        };
        match epsilon {
            Some(epsilon) => b.node(
                "norm",
                self.compute,
                BatchnormInferenceVariance {
                    x,
                    mean,
                    variance,
                    scale,
                    bias,
                    epsilon,
                    y: normalized,
                },
            ),
            None => b.node(
                "norm",
                self.compute,
                BatchnormInference {
                    x,
                    mean,
                    inv_variance: variance,
                    scale,
                    bias,
                    y: normalized,
                },
            ),
        };
        b.build()
    }

    /// Builds batchnorm training that saves its statistics if `saved` and updates running ones if
    /// `running`.
    pub(crate) fn batchnorm_training(&self, saved: bool, running: bool) -> Graph {
        let mut b = GraphBuilder::new("batchnorm_training");
        let channel = self.channel();
        let x = self.full(&mut b, "x");
        let [scale, bias] = self.small(&mut b, ["scale", "bias"], &channel);
        let epsilon = self.constant(&mut b, "epsilon", EPSILON);
        let y = self.full(&mut b, "y");
        let statistics = saved.then(|| self.small(&mut b, ["mean", "inv_variance"], &channel));
        let names = ["prev_mean", "prev_variance", "next_mean", "next_variance"];
        let run = running.then(|| self.small(&mut b, names, &channel));
        let momentum = running.then(|| self.constant(&mut b, "momentum", 0.1));
        let op = Batchnorm {
            x,
            scale,
            bias,
            epsilon,
            peer_stats: vec![],
            prev_running_mean: run.map(|[mean, ..]| mean),
            prev_running_variance: run.map(|[_, variance, ..]| variance),
            momentum,
            y,
            mean: statistics.map(|[mean, _]| mean),
            inv_variance: statistics.map(|[_, inv_variance]| inv_variance),
            next_running_mean: run.map(|[.., mean, _]| mean),
            next_running_variance: run.map(|[.., variance]| variance),
        };
        b.node("norm", self.compute, op);
        b.build()
    }

    pub(crate) fn batchnorm_backward(&self, saved: bool) -> Graph {
        let mut b = GraphBuilder::new("batchnorm_backward");
        let channel = self.channel();
        let [dy, x] = ["dy", "x"].map(|name| self.full(&mut b, name));
        let [scale, dscale, dbias] = self.small(&mut b, ["scale", "dscale", "dbias"], &channel);
        let statistics = saved.then(|| self.small(&mut b, ["mean", "inv_variance"], &channel));
        let dx = self.full(&mut b, "dx");
        let op = BatchnormBackward {
            dy,
            x,
            mean: statistics.map(|[mean, _]| mean),
            inv_variance: statistics.map(|[_, inv_variance]| inv_variance),
            scale,
            peer_stats: vec![],
            dx,
            dscale,
            dbias,
        };
        b.node("norm", self.compute, op);
        b.build()
    }

    /// Builds layernorm over the last `count` dims; the parameters' dims have leading 1s if
    /// `padded`.
    pub(crate) fn layernorm(&self, count: usize, phase: NormPhase, padded: bool) -> Graph {
        let mut b = GraphBuilder::new("layernorm");
        let (parameter, statistic) = self.split(count);
        let parameter = if padded {
            &parameter[..]
        } else {
            &self.dims[self.dims.len() - count..]
        };
        let x = self.full(&mut b, "x");
        let [scale, bias] = self.small(&mut b, ["scale", "bias"], parameter);
        let epsilon = self.constant(&mut b, "epsilon", EPSILON);
        let y = self.full(&mut b, "y");
        let saved = (phase == NormPhase::Training).then(|| self.small(&mut b, ["mean", "inv_variance"], &statistic));
        let op = Layernorm {
            x,
            scale,
            bias,
            epsilon,
            y,
            mean: saved.map(|[mean, _]| mean),
            inv_variance: saved.map(|[_, inv_variance]| inv_variance),
            normalized_dim_count: i64::try_from(count).unwrap_or_default(),
            phase,
        };
        b.node("norm", self.compute, op);
        b.build()
    }

    pub(crate) fn layernorm_backward(&self, count: usize, saved: bool) -> Graph {
        let mut b = GraphBuilder::new("layernorm_backward");
        let (parameter, statistic) = self.split(count);
        let [dy, x] = ["dy", "x"].map(|name| self.full(&mut b, name));
        let [scale, dscale, dbias] = self.small(&mut b, ["scale", "dscale", "dbias"], &parameter);
        let statistics = saved.then(|| self.small(&mut b, ["mean", "inv_variance"], &statistic));
        let epsilon = (!saved).then(|| self.constant(&mut b, "epsilon", EPSILON));
        let dx = self.full(&mut b, "dx");
        let op = LayernormBackward {
            dy,
            x,
            scale,
            mean: statistics.map(|[mean, _]| mean),
            inv_variance: statistics.map(|[_, inv_variance]| inv_variance),
            epsilon,
            dx,
            dscale,
            dbias,
            normalized_dim_count: i64::try_from(count).unwrap_or_default(),
        };
        b.node("norm", self.compute, op);
        b.build()
    }

    /// Builds RMSNorm over the last `count` dims.
    pub(crate) fn rms_norm(&self, count: usize, phase: NormPhase, with_bias: bool) -> Graph {
        let mut b = GraphBuilder::new("rms_norm");
        let (parameter, statistic) = self.split(count);
        let x = self.full(&mut b, "x");
        let [scale] = self.small(&mut b, ["scale"], &parameter);
        let bias = with_bias.then(|| b.buffer("bias", self.compute, &parameter));
        let epsilon = self.constant(&mut b, "epsilon", EPSILON);
        let y = self.full(&mut b, "y");
        let is_training = phase == NormPhase::Training;
        let inv_rms = is_training.then(|| b.buffer("inv_rms", self.compute, &statistic));
        let op = RmsNorm {
            x,
            scale,
            epsilon,
            bias,
            y,
            inv_rms,
            phase,
        };
        b.node("norm", self.compute, op);
        b.build()
    }

    pub(crate) fn rms_norm_backward(&self, count: usize, with_bias: bool) -> Graph {
        let mut b = GraphBuilder::new("rms_norm_backward");
        let (parameter, statistic) = self.split(count);
        let [dy, x] = ["dy", "x"].map(|name| self.full(&mut b, name));
        let [scale, dscale] = self.small(&mut b, ["scale", "dscale"], &parameter);
        let dbias = with_bias.then(|| b.buffer("dbias", self.compute, &parameter));
        let [inv_rms] = self.small(&mut b, ["inv_rms"], &statistic);
        let dx = self.full(&mut b, "dx");
        let op = RmsNormBackward {
            dy,
            x,
            scale,
            inv_rms,
            dx,
            dscale,
            dbias,
        };
        b.node("norm", self.compute, op);
        b.build()
    }

    /// Builds layernorm of the sum of x and a residual.
    pub(super) fn residual_layernorm(&self, count: usize) -> Graph {
        let mut b = GraphBuilder::new("residual_layernorm");
        let (parameter, _) = self.split(count);
        let [x, residual] = ["x", "residual"].map(|name| self.full(&mut b, name));
        let sum = b.virtual_tensor("sum", self.compute, &self.dims);
        let [scale, bias] = self.small(&mut b, ["scale", "bias"], &parameter);
        let epsilon = self.constant(&mut b, "epsilon", EPSILON);
        let y = self.full(&mut b, "y");
        b.pointwise(self.compute, PointwiseMode::Add, &[x, residual], sum);
        let op = Layernorm::new([sum, scale, bias, epsilon], y, i64::try_from(count).unwrap_or_default());
        b.node("norm", self.compute, op);
        b.build()
    }
}
