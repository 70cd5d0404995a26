//! Builders of graphs as frameworks send them, from a few numbers: convolutions with an epilogue
//! and their gradients, products, normalizations, attention, pooling.
//!
//! Compute and intermediate types are f32, whatever the type of the tensors in buffers.

use rotini_graph::{
    BatchnormInference, ConvDgrad, ConvGeometry, ConvMode, ConvWgrad, DataType, Graph, GraphBuilder, Layernorm, Matmul,
    PaddingMode, Pointwise, PointwiseMode, Reduction, ReductionMode, ResampleFwd, ResampleMode, RmsNorm, Scalar, Sdpa,
    TensorId, TensorKind, conv_output_extent,
};

const F32: DataType = DataType::F32;
const EPSILON: f64 = 1e-5;

/// The position of the channels in the layouts of activations and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// NCHW and KCRS.
    First,
    /// NHWC and KRSC.
    Last,
}

/// Adds a tensor in a buffer, in a layout.
pub(crate) fn buffer(b: &mut GraphBuilder, name: &str, dtype: DataType, dims: &[i64], layout: Layout) -> TensorId {
    match layout {
        Layout::First => b.buffer(name, dtype, dims),
        Layout::Last => b.buffer_channels_last(name, dtype, dims),
    }
}

/// One of the three convolutions of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The layer's output.
    Forward,
    /// The gradient of its input.
    Dgrad,
    /// The gradient of its filters.
    Wgrad,
}

/// A convolution over any number of spatial axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Number of images.
    pub n: i64,
    /// Number of input channels.
    pub c: i64,
    /// Number of filters.
    pub k: i64,
    /// Spatial extents of the input.
    pub input: Vec<i64>,
    /// Spatial extents of a filter.
    pub filter: Vec<i64>,
    /// Zero padding on each side of each axis.
    pub padding: Vec<i64>,
    /// Distance between windows along each axis, in input elements.
    pub stride: Vec<i64>,
    /// Distance between taps along each axis, in input elements.
    pub dilation: Vec<i64>,
    /// Number of groups of channels.
    pub groups: i64,
    /// The layout of activations and filters.
    pub layout: Layout,
    /// The type of all tensors in buffers.
    pub dtype: DataType,
}

/// The operations fused after a convolution or a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// A bias per channel.
    Bias,
    /// A bias and an activation.
    Activation(PointwiseMode),
    /// A bias, a residual tensor with the output's extents, and an activation.
    Residual(PointwiseMode),
}

impl Convolution {
    /// Returns a square convolution in two dimensions, without dilation and groups.
    #[must_use]
    #[expect(clippy::too_many_arguments, reason = "the numbers of a layer, in the field's order")]
    pub fn square(
        n: i64,
        c: i64,
        k: i64,
        extent: i64,
        filter: i64,
        stride: i64,
        layout: Layout,
        dtype: DataType,
    ) -> Self {
        Convolution {
            n,
            c,
            k,
            input: vec![extent; 2],
            filter: vec![filter; 2],
            padding: vec![filter / 2; 2],
            stride: vec![stride; 2],
            dilation: vec![1; 2],
            groups: 1,
            layout,
            dtype,
        }
    }

    /// Returns the spatial extents of the output; `None` if the filter does not fit.
    #[must_use]
    pub fn output(&self) -> Option<Vec<i64>> {
        (0..self.input.len())
            .map(|axis| {
                let at = |values: &[i64]| values.get(axis).copied();
                let padding = at(&self.padding)?;
                conv_output_extent(
                    at(&self.input)?,
                    at(&self.filter)?,
                    padding,
                    padding,
                    at(&self.stride)?,
                    at(&self.dilation)?,
                )
            })
            .collect()
    }

    pub(crate) fn geometry(&self) -> ConvGeometry {
        ConvGeometry {
            pre_padding: self.padding.clone(),
            post_padding: self.padding.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            mode: ConvMode::CrossCorrelation,
        }
    }

    /// Returns the graph of one direction; `None` if the extents are inconsistent. The gradients
    /// have no epilogue.
    #[must_use]
    pub fn graph(&self, name: &str, direction: Direction, epilogue: Epilogue) -> Option<Graph> {
        let mut b = GraphBuilder::new(name);
        let x_dims = [&[self.n, self.c], self.input.as_slice()].concat();
        let group = self.c.checked_div(self.groups)?;
        let w_dims = [&[self.k, group], self.filter.as_slice()].concat();
        let y_dims = [&[self.n, self.k], self.output()?.as_slice()].concat();
        let geometry = self.geometry();
        match direction {
            Direction::Forward => {
                let x = self.buffer(&mut b, "x", &x_dims);
                let w = self.buffer(&mut b, "w", &w_dims);
                let mut channel = vec![1; y_dims.len()];
                *channel.get_mut(1)? = self.k;
                if epilogue == Epilogue::None {
                    let y = self.buffer(&mut b, "y", &y_dims);
                    b.conv_fprop(F32, x, w, y, geometry);
                } else {
                    let sum = b.virtual_tensor("conv", F32, &y_dims);
                    b.conv_fprop(F32, x, w, sum, geometry);
                    let bias = b.buffer("bias", self.dtype, &channel);
                    epilogue.add(&mut b, sum, bias, &y_dims, |b, name| self.buffer(b, name, &y_dims));
                }
            }
            Direction::Dgrad => {
                let dy = self.buffer(&mut b, "dy", &y_dims);
                let w = self.buffer(&mut b, "w", &w_dims);
                let dx = self.buffer(&mut b, "dx", &x_dims);
                b.node("dgrad", F32, ConvDgrad { dy, w, dx, geometry });
            }
            Direction::Wgrad => {
                let x = self.buffer(&mut b, "x", &x_dims);
                let dy = self.buffer(&mut b, "dy", &y_dims);
                let dw = self.buffer(&mut b, "dw", &w_dims);
                b.node("wgrad", F32, ConvWgrad { x, dy, dw, geometry });
            }
        }
        Some(b.build())
    }

    fn buffer(&self, b: &mut GraphBuilder, name: &str, dims: &[i64]) -> TensorId {
        buffer(b, name, self.dtype, dims, self.layout)
    }
}

impl Epilogue {
    /// Appends the epilogue to `sum`. `buffer` creates tensors with the output's extents.
    fn add(
        self,
        b: &mut GraphBuilder,
        sum: TensorId,
        bias: TensorId,
        dims: &[i64],
        buffer: impl Fn(&mut GraphBuilder, &str) -> TensorId,
    ) {
        match self {
            Epilogue::None => (),
            Epilogue::Bias => {
                let y = buffer(b, "y");
                b.pointwise(F32, PointwiseMode::Add, &[sum, bias], y);
            }
            Epilogue::Activation(mode) | Epilogue::Residual(mode) => {
                let mut last = b.virtual_tensor("biased", F32, dims);
                b.pointwise(F32, PointwiseMode::Add, &[sum, bias], last);
                if matches!(self, Epilogue::Residual(_)) {
                    let residual = buffer(b, "residual");
                    let added = b.virtual_tensor("added", F32, dims);
                    b.pointwise(F32, PointwiseMode::Add, &[last, residual], added);
                    last = added;
                }
                let y = buffer(b, "y");
                b.pointwise(F32, mode, &[last], y);
            }
        }
    }
}

/// Returns the graph of `batch` products of matrices, `rows` × `depth` by `depth` × `columns`. If
/// `transposed`, the second matrix is stored as `[columns, depth]`, as frameworks store weights.
#[must_use]
pub fn product(
    name: &str,
    [batch, rows, columns, depth]: [i64; 4],
    transposed: bool,
    dtype: DataType,
    epilogue: Epilogue,
) -> Graph {
    let mut b = GraphBuilder::new(name);
    let a = b.buffer("a", dtype, &[batch, rows, depth]);
    let strides = if transposed {
        [columns.saturating_mul(depth), 1, depth]
    } else {
        [columns.saturating_mul(depth), columns, 1]
    };
    let weights = b.tensor("b", dtype, &[batch, depth, columns], &strides, TensorKind::Buffer);
    let dims = [batch, rows, columns];
    let node = |c| Matmul { a, b: weights, c };
    if epilogue == Epilogue::None {
        let c = b.buffer("y", dtype, &dims);
        b.node("matmul", F32, node(c));
    } else {
        let sum = b.virtual_tensor("product", F32, &dims);
        b.node("matmul", F32, node(sum));
        let bias = b.buffer("bias", dtype, &[1, 1, columns]);
        epilogue.add(&mut b, sum, bias, &dims, |b, name| b.buffer(name, dtype, &dims));
    }
    b.build()
}

fn epsilon(b: &mut GraphBuilder, rank: usize) -> TensorId {
    b.constant("epsilon", F32, &vec![1; rank], Scalar::float(EPSILON))
}

/// Returns the graph of a layernorm over the last axis; with `residual`, of the sum of two tensors.
#[must_use]
pub fn layernorm(name: &str, [rows, columns]: [i64; 2], residual: bool, dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(name);
    let dims = [rows, columns];
    let mut x = b.buffer("x", dtype, &dims);
    if residual {
        let other = b.buffer("residual", dtype, &dims);
        let sum = b.virtual_tensor("sum", F32, &dims);
        b.pointwise(F32, PointwiseMode::Add, &[x, other], sum);
        x = sum;
    }
    let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, dtype, &[1, columns]));
    let epsilon = epsilon(&mut b, 2);
    let y = b.buffer("y", dtype, &dims);
    b.node("layernorm", F32, Layernorm::new([x, scale, bias, epsilon], y, 1));
    b.build()
}

/// Returns the graph of an RMSNorm over the last axis.
#[must_use]
pub fn rms_norm(name: &str, [rows, columns]: [i64; 2], dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(name);
    let x = b.buffer("x", dtype, &[rows, columns]);
    let scale = b.buffer("scale", dtype, &[1, columns]);
    let epsilon = epsilon(&mut b, 2);
    let y = b.buffer("y", dtype, &[rows, columns]);
    b.node("rms_norm", F32, RmsNorm::new([x, scale, epsilon], y));
    b.build()
}

/// Returns the graph of a softmax over the last axis, composed of reductions and pointwise
/// operations as frameworks without a softmax operation write it.
#[must_use]
pub fn softmax(name: &str, [rows, columns]: [i64; 2], dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(name);
    let dims = [rows, columns];
    let x = b.buffer("x", dtype, &dims);
    let Powers { powers, sum, .. } = Powers::of(&mut b, x, &dims, &[rows, 1]);
    let y = b.buffer("y", dtype, &dims);
    b.pointwise(F32, PointwiseMode::Div, &[powers, sum], y);
    b.build()
}

/// The intermediate tensors of a softmax.
pub(crate) struct Powers {
    /// The input minus the maximum of its row.
    pub moved: TensorId,
    /// The exponentials of `moved`.
    pub powers: TensorId,
    /// The sums of the exponentials over each row.
    pub sum: TensorId,
}

impl Powers {
    /// Appends the exponentials and the sums of a softmax of `x`, which has the extents `dims`.
    /// `row` holds the extents of the sums, which are 1 along the reduced axes.
    pub(crate) fn of(b: &mut GraphBuilder, x: TensorId, dims: &[i64], row: &[i64]) -> Self {
        let largest = b.virtual_tensor("max", F32, row);
        reduce(b, x, largest, ReductionMode::Max);
        let moved = b.virtual_tensor("moved", F32, dims);
        b.pointwise(F32, PointwiseMode::Sub, &[x, largest], moved);
        let powers = b.virtual_tensor("exp", F32, dims);
        b.pointwise(F32, PointwiseMode::Exp, &[moved], powers);
        let sum = b.virtual_tensor("sum", F32, row);
        reduce(b, powers, sum, ReductionMode::Add);
        Powers { moved, powers, sum }
    }
}

/// Appends a reduction over the axes that have extent 1 in the output.
pub(crate) fn reduce(b: &mut GraphBuilder, input: TensorId, output: TensorId, mode: ReductionMode) {
    b.node("reduction", F32, Reduction::new(mode, input, output));
}

/// Returns the graph of a reduction over the last axis.
#[must_use]
pub fn reduction(name: &str, [rows, columns]: [i64; 2], mode: ReductionMode, dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(name);
    let input = b.buffer("x", dtype, &[rows, columns]);
    let output = b.buffer("y", dtype, &[rows, 1]);
    reduce(&mut b, input, output, mode);
    b.build()
}

/// Returns the graph of a batchnorm with given statistics, followed by a ReLU.
#[must_use]
pub fn batchnorm_inference(name: &str, [n, c, h, w]: [i64; 4], layout: Layout, dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(name);
    let dims = [n, c, h, w];
    let x = buffer(&mut b, "x", dtype, &dims, layout);
    let parameters = ["mean", "inv_variance", "scale", "bias"];
    let [mean, inv_variance, scale, bias] = parameters.map(|name| b.buffer(name, F32, &[1, c, 1, 1]));
    let normal = b.virtual_tensor("normal", F32, &dims);
    let op = BatchnormInference {
        x,
        mean,
        inv_variance,
        scale,
        bias,
        y: normal,
    };
    b.node("batchnorm", F32, op);
    let y = buffer(&mut b, "y", dtype, &dims, layout);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[normal], y);
    b.build()
}

/// Returns the graph of an attention of queries with extents `[batch, heads, rows, depth]` to
/// `keys` keys in `groups` key heads.
#[must_use]
pub fn attention(
    name: &str,
    [batch, heads, rows, depth]: [i64; 4],
    [groups, keys]: [i64; 2],
    causal: bool,
    dtype: DataType,
) -> Graph {
    let mut b = GraphBuilder::new(name);
    let q = b.buffer("q", dtype, &[batch, heads, rows, depth]);
    let [k, v] = ["k", "v"].map(|name| b.buffer(name, dtype, &[batch, groups, keys, depth]));
    let o = b.buffer("o", dtype, &[batch, heads, rows, depth]);
    let mut op = Sdpa::new(q, k, v, o);
    op.attn_scale_value = Some(1.0 / (depth as f32).sqrt());
    if causal {
        op.right_bound = Some(0);
    }
    b.node("attention", F32, Box::new(op));
    b.build()
}

/// Returns the graph of a pooling with square windows; `None` if the window does not fit.
#[must_use]
pub fn pooling(
    name: &str,
    [n, c, extent]: [i64; 3],
    [window, stride, padding]: [i64; 3],
    mode: ResampleMode,
    layout: Layout,
    dtype: DataType,
) -> Option<Graph> {
    let out = conv_output_extent(extent, window, padding, padding, stride, 1)?;
    let mut b = GraphBuilder::new(name);
    let x = buffer(&mut b, "x", dtype, &[n, c, extent, extent], layout);
    let y = buffer(&mut b, "y", dtype, &[n, c, out, out], layout);
    let op = ResampleFwd {
        x,
        y,
        index: None,
        pre_padding: vec![padding; 2],
        post_padding: vec![padding; 2],
        stride: vec![stride; 2],
        window: vec![window; 2],
        resample_mode: mode,
        padding_mode: match mode {
            ResampleMode::Maxpool => PaddingMode::NegInf,
            _ => PaddingMode::Zero,
        },
        generate_index: false,
    };
    b.node("pooling", F32, op);
    Some(b.build())
}

/// Returns the graph of `silu(gate) · up`, the activation of Llama's MLP.
#[must_use]
pub fn gated(name: &str, [rows, columns]: [i64; 2], dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(name);
    let dims = [rows, columns];
    let [gate, up] = ["gate", "up"].map(|name| b.buffer(name, dtype, &dims));
    let silu = b.virtual_tensor("silu", F32, &dims);
    b.node(
        "silu",
        F32,
        Pointwise::new(PointwiseMode::SwishFwd, gate, None, None, silu),
    );
    let y = b.buffer("y", dtype, &dims);
    b.pointwise(F32, PointwiseMode::Mul, &[silu, up], y);
    b.build()
}
