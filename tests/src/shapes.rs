//! Graphs that are declared for the largest shapes, and the same graphs for smaller ones.
//!
//! Both are built here from their extents, virtual tensors included, so that a test can compare
//! them with the shapes that the plugin infers.

use crate::harness::Runner;
use anyhow::{Context as _, Result, ensure};
use rotini_graph::{
    ConvDgrad, ConvGeometry, DataType, Graph, GraphBuilder, Layernorm, Matmul, NormPhase, PointwiseMode, Reduction,
    ReductionMode, Scalar, TensorKind,
};
use rotini_host::{Context, ShapeOverride, engine_config};

const F32: DataType = DataType::F32;

/// A graph with its declared extents, and smaller ones for executions.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Builds the graph for some extents.
    pub build: fn(&[i64]) -> Graph,
    /// The largest extents, then those of executions.
    pub extents: Vec<Vec<i64>>,
}

impl Family {
    /// Returns the graph as it is declared.
    #[must_use]
    pub fn declared(&self) -> Graph {
        let mut graph = (self.build)(self.extents.first().map_or(&[], Vec::as_slice));
        graph.override_shapes = true;
        graph.min_api_version = [1, 1, 0];
        graph
    }

    /// Returns the graphs of the executions.
    pub fn executed(&self) -> impl Iterator<Item = Graph> {
        self.extents.iter().skip(1).map(|extents| (self.build)(extents))
    }

    /// Creates one context and executes all shapes with it, each twice, and the declared shapes
    /// before and after.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn judge(&self, runner: &Runner) -> Result<()> {
        let declared = self.declared();
        let bytes = rotini_wire::encode(&declared);
        ensure!(runner.handle().applicable(&bytes)? == [runner.engine()], "declined");
        let context = runner.handle().context(&engine_config(runner.engine()), &bytes)?;
        for round in 0..2 {
            runner.judge_shapes(&declared, &context, &[], 10 + round)?;
            self.judge_others(runner, &context, round)?;
        }
        runner.judge_shapes(&declared, &context, &[], 12)?;
        Ok(())
    }

    /// Executes all smaller shapes with a context.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn judge_others(&self, runner: &Runner, context: &Context, seed: u64) -> Result<()> {
        let declared = self.declared();
        for mut graph in self.executed() {
            graph.validate()?;
            let overrides = overrides(&declared, &graph);
            ensure!(!overrides.is_empty(), "nothing is overridden");
            runner
                .judge_shapes(&graph, context, &overrides, seed)
                .with_context(|| format!("{overrides:?}"))?;
        }
        Ok(())
    }
}

/// Returns the overrides that execute `declared` with the shapes of `graph`.
#[must_use]
pub fn overrides(declared: &Graph, graph: &Graph) -> Vec<ShapeOverride> {
    let pairs = declared.tensors.iter().zip(&graph.tensors);
    pairs
        .filter(|(before, now)| {
            now.kind == TensorKind::Buffer && (&before.dims, &before.strides) != (&now.dims, &now.strides)
        })
        .map(|(_, now)| ShapeOverride {
            uid: now.uid,
            dims: now.dims.clone(),
            strides: now.strides.clone(),
        })
        .collect()
}

/// Returns all families.
#[must_use]
pub fn all() -> Vec<Family> {
    let family = |name, build, extents: &[&[i64]]| Family {
        name,
        build,
        extents: extents.iter().map(|extents| extents.to_vec()).collect(),
    };
    vec![
        family(
            "chain",
            chain,
            &[&[2, 6, 5, 4], &[1, 6, 5, 4], &[2, 6, 3, 1], &[2, 1, 1, 1]],
        ),
        family("rows", rows, &[&[8, 16], &[8, 9], &[3, 16], &[1, 1]]),
        family("convs", convs, &[&[2, 9, 8], &[1, 9, 8], &[2, 4, 5], &[1, 1, 1]]),
        family("dgrad", dgrad, &[&[2, 5, 6], &[1, 5, 6], &[2, 3, 2]]),
        family(
            "matmul",
            matmul,
            &[&[3, 24, 40, 16], &[3, 7, 40, 16], &[1, 24, 9, 16], &[2, 1, 1, 1]],
        ),
        family("layernorm", layernorm, &[&[12, 24], &[5, 24], &[1, 24]]),
        family("sums", sums, &[&[6, 19], &[6, 3], &[2, 19]]),
        family("scaled", scaled, &[&[64], &[63], &[1]]),
    ]
}

/// relu(x) * bias + tanh(x), the tanh stored too.
fn chain(dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("chain");
    let x = b.buffer("x", DataType::F16, dims);
    let bias = b.buffer("bias", F32, &[1, dims[1], 1, 1]);
    let [relu, product] = ["relu", "product"].map(|name| b.virtual_tensor(name, F32, dims));
    let tanh = b.buffer_channels_last("tanh", DataType::F16, dims);
    let y = b.buffer("y", DataType::F16, dims);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[x], relu);
    b.pointwise(F32, PointwiseMode::TanhFwd, &[x], tanh);
    b.pointwise(F32, PointwiseMode::Mul, &[relu, bias], product);
    b.pointwise(F32, PointwiseMode::Add, &[product, tanh], y);
    b.build()
}

/// Builds a graph on the leading rows and columns of a larger matrix.
fn rows(dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("rows");
    let x = b.tensor("x", F32, dims, &[16, 1], TensorKind::Buffer);
    let y = b.tensor("y", F32, dims, &[20, 1], TensorKind::Buffer);
    b.pointwise(F32, PointwiseMode::Sqrt, &[x], y);
    b.build()
}

/// Two convolutions in a row, with an activation between.
fn convs(extents: &[i64]) -> Graph {
    let [n, h, w] = [0, 1, 2].map(|axis| extents[axis]);
    let mut b = GraphBuilder::new("convs");
    let x = b.buffer_channels_last("x", F32, &[n, 4, h, w]);
    let first = b.buffer_channels_last("first", F32, &[6, 4, 3, 3]);
    let second = b.buffer_channels_last("second", F32, &[5, 6, 1, 1]);
    let [a, r] = ["a", "r"].map(|name| b.virtual_tensor(name, F32, &[n, 6, (h + 1) / 2, (w + 1) / 2]));
    let y = b.buffer_channels_last("y", F32, &[n, 5, (h + 1) / 2, (w + 1) / 2]);
    let mut geometry = ConvGeometry::same(2, 1);
    geometry.stride = vec![2, 2];
    b.conv_fprop(F32, x, first, a, geometry);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[a], r);
    b.conv_fprop(F32, r, second, y, ConvGeometry::same(2, 0));
    b.build()
}

fn dgrad(extents: &[i64]) -> Graph {
    let [n, h, w] = [0, 1, 2].map(|axis| extents[axis]);
    let mut b = GraphBuilder::new("dgrad");
    let dims = [n, 3, h + 2, w + 2];
    let dy = b.buffer("dy", F32, &[n, 4, h, w]);
    let filter = b.buffer("w", F32, &[4, 3, 3, 3]);
    let mask = b.buffer("mask", F32, &dims);
    let dx = b.virtual_tensor("dx", F32, &dims);
    let y = b.buffer("y", F32, &dims);
    let geometry = ConvGeometry::same(2, 0);
    b.node(
        "dgrad",
        F32,
        ConvDgrad {
            dy,
            w: filter,
            dx,
            geometry,
        },
    );
    b.pointwise(F32, PointwiseMode::Mul, &[dx, mask], y);
    b.build()
}

fn matmul(extents: &[i64]) -> Graph {
    let [batch, m, k, n] = [0, 1, 2, 3].map(|axis| extents[axis]);
    let mut b = GraphBuilder::new("matmul");
    let a = b.buffer("a", DataType::F16, &[batch, m, k]);
    let w = b.buffer("w", DataType::F16, &[1, k, n]);
    let bias = b.buffer("bias", DataType::F16, &[1, 1, n]);
    let [c, sum] = ["c", "sum"].map(|name| b.virtual_tensor(name, F32, &[batch, m, n]));
    let y = b.buffer("y", DataType::F16, &[batch, m, n]);
    b.node("matmul", F32, Matmul { a, b: w, c });
    b.pointwise(F32, PointwiseMode::Add, &[c, bias], sum);
    b.pointwise(F32, PointwiseMode::GeluApproxTanhFwd, &[sum], y);
    b.build()
}

fn layernorm(dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("layernorm");
    let [x, residual] = ["x", "residual"].map(|name| b.buffer(name, F32, dims));
    let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, F32, &[1, dims[1]]));
    let epsilon = b.constant("epsilon", F32, &[1, 1], Scalar::float(1e-3));
    let [sum, normal] = ["sum", "normal"].map(|name| b.virtual_tensor(name, F32, dims));
    let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| b.buffer(name, F32, &[dims[0], 1]));
    let y = b.buffer("y", F32, dims);
    b.pointwise(F32, PointwiseMode::Add, &[x, residual], sum);
    let op = Layernorm {
        x: sum,
        scale,
        bias,
        epsilon,
        y: normal,
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        normalized_dim_count: 1,
        phase: NormPhase::Training,
    };
    b.node("norm", F32, op);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[normal], y);
    b.build()
}

fn sums(dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("sums");
    let x = b.buffer("x", F32, dims);
    let sum = b.virtual_tensor("sum", F32, &[dims[0], 1]);
    let y = b.buffer("y", F32, dims);
    b.node("sum", F32, Reduction::new(ReductionMode::Add, x, sum));
    b.pointwise(F32, PointwiseMode::Sub, &[x, sum], y);
    b.build()
}

/// Builds x s: shape and scalar change at once.
fn scaled(dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("scaled");
    let x = b.buffer("x", F32, dims);
    let s = b.tensor("s", F32, &[1], &[1], TensorKind::RuntimeScalar);
    let y = b.buffer("y", F32, dims);
    b.pointwise(F32, PointwiseMode::Mul, &[x, s], y);
    b.build()
}
