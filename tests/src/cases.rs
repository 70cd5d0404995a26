//! The conformance cases: graphs over operation, type, layout and edge.

use rotini_graph::{
    ConvFprop, ConvGeometry, ConvMode, DataType, Graph, GraphBuilder, Pointwise, PointwiseMode, Scalar, TensorId,
    TensorKind,
};

/// A graph with a name that says what it is about.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name, unique.
    pub name: String,
    /// The graph, not validated yet.
    pub graph: Graph,
}

/// A memory order for tensors of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// N C spatial.
    First,
    /// N spatial C.
    Last,
}

impl Order {
    /// Both orders.
    pub const BOTH: [Order; 2] = [Order::First, Order::Last];

    /// As it stands in names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Order::First => "nchw",
            Order::Last => "nhwc",
        }
    }

    fn buffer(self, builder: &mut GraphBuilder, name: &str, dtype: DataType, dims: &[i64]) -> TensorId {
        match self {
            Order::First => builder.buffer(name, dtype, dims),
            Order::Last => builder.buffer_channels_last(name, dtype, dims),
        }
    }
}

/// A convolution with what may follow it.
#[derive(Clone, Debug)]
pub struct Conv {
    /// Batch.
    pub n: i64,
    /// Input channels.
    pub c: i64,
    /// Filters.
    pub k: i64,
    /// Spatial extents of the input.
    pub input: Vec<i64>,
    /// Spatial extents of the filter.
    pub window: Vec<i64>,
    /// Groups of channels.
    pub groups: i64,
    /// Padding, stride, dilation.
    pub geometry: ConvGeometry,
    /// Type of x, w and the bias.
    pub dtype: DataType,
    /// Type of y.
    pub out: DataType,
    /// Compute type.
    pub compute: DataType,
    /// Memory orders of x, w and y.
    pub orders: [Order; 3],
}

impl Conv {
    /// A 2D convolution of `dtype` with stride 1 and equal padding, computed in f32.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "the list that convolutions are known by: N, C, K, extent, filter, padding"
    )]
    pub fn new(n: i64, c: i64, k: i64, input: i64, window: i64, padding: i64, dtype: DataType, order: Order) -> Self {
        Conv {
            n,
            c,
            k,
            input: vec![input; 2],
            window: vec![window; 2],
            groups: 1,
            geometry: ConvGeometry::same(2, padding),
            dtype,
            out: dtype,
            compute: DataType::F32,
            orders: [order; 3],
        }
    }

    /// The same with this stride.
    #[must_use]
    pub fn stride(mut self, stride: i64) -> Self {
        self.geometry.stride = vec![stride; self.input.len()];
        self
    }

    /// The same with this dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: i64) -> Self {
        self.geometry.dilation = vec![dilation; self.input.len()];
        self
    }

    /// The same with this many groups.
    #[must_use]
    pub fn groups(mut self, groups: i64) -> Self {
        self.groups = groups;
        self
    }

    fn output(&self) -> Vec<i64> {
        let geometry = &self.geometry;
        let mut dims = vec![self.n, self.k];
        for axis in 0..self.input.len() {
            let reach = geometry.dilation[axis] * (self.window[axis] - 1) + 1;
            let padded = self.input[axis] + geometry.pre_padding[axis] + geometry.post_padding[axis];
            dims.push((padded - reach) / geometry.stride[axis] + 1);
        }
        dims
    }

    fn operands(&self, b: &mut GraphBuilder) -> (TensorId, TensorId) {
        let dims = |first: i64, second: i64, rest: &[i64]| [&[first, second], rest].concat();
        let x = self.orders[0].buffer(b, "x", self.dtype, &dims(self.n, self.c, &self.input));
        let w = self.orders[1].buffer(b, "w", self.dtype, &dims(self.k, self.c / self.groups, &self.window));
        (x, w)
    }

    /// The convolution alone.
    #[must_use]
    pub fn alone(&self) -> Graph {
        let mut b = GraphBuilder::new("conv");
        let (x, w) = self.operands(&mut b);
        let y = self.orders[2].buffer(&mut b, "y", self.out, &self.output());
        b.conv_fprop(self.compute, x, w, y, self.geometry.clone());
        b.build()
    }

    /// The convolution with a bias per filter, then `activation`, with the residual added before it if `residual`.
    #[must_use]
    pub fn fused(&self, activation: PointwiseMode, residual: bool) -> Graph {
        let mut b = GraphBuilder::new("conv_bias_act");
        let (x, w) = self.operands(&mut b);
        let dims = self.output();
        let mut bias_dims = vec![1; dims.len()];
        bias_dims[1] = self.k;
        let bias = b.buffer("bias", self.dtype, &bias_dims);
        let conv = b.virtual_tensor("conv", self.compute, &dims);
        let biased = b.virtual_tensor("biased", self.compute, &dims);
        b.conv_fprop(self.compute, x, w, conv, self.geometry.clone());
        b.pointwise(self.compute, PointwiseMode::Add, &[conv, bias], biased);
        let mut last = biased;
        if residual {
            let z = self.orders[2].buffer(&mut b, "z", self.dtype, &dims);
            last = b.virtual_tensor("summed", self.compute, &dims);
            b.pointwise(self.compute, PointwiseMode::Add, &[biased, z], last);
        }
        let y = self.orders[2].buffer(&mut b, "y", self.out, &dims);
        b.pointwise(self.compute, activation, &[last], y);
        b.build()
    }
}

/// Every case.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    convolutions(&mut cases);
    fused_convolutions(&mut cases);
    mixed_layouts(&mut cases);
    pointwise_modes(&mut cases);
    pointwise_types(&mut cases);
    pointwise_parameters(&mut cases);
    broadcasts(&mut cases);
    strided(&mut cases);
    structures(&mut cases);
    cases.0
}

struct Cases(Vec<Case>);

impl Cases {
    fn add(&mut self, name: impl Into<String>, graph: Graph) {
        self.0.push(Case {
            name: name.into(),
            graph,
        });
    }
}

const FLOATS: [DataType; 3] = [DataType::F32, DataType::F16, DataType::Bf16];

fn convolutions(cases: &mut Cases) {
    for order in Order::BOTH {
        let name = order.name();
        for dtype in FLOATS {
            cases.add(
                format!("conv_{name}_{dtype}"),
                Conv::new(2, 8, 16, 9, 3, 1, dtype, order).alone(),
            );
            cases.add(
                format!("conv_odd_{name}_{dtype}"),
                Conv::new(1, 5, 7, 13, 3, 1, dtype, order).alone(),
            );
            let grouped = Conv::new(2, 12, 8, 7, 3, 1, dtype, order).groups(4);
            cases.add(format!("conv_grouped_{name}_{dtype}"), grouped.alone());
            let depthwise = Conv::new(1, 16, 16, 10, 3, 1, dtype, order).groups(16);
            cases.add(format!("conv_depthwise_{name}_{dtype}"), depthwise.alone());
        }
        let f32 = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, DataType::F32, order);
        cases.add(format!("conv_1x1_{name}"), f32(2, 16, 8, 6, 1, 0).alone());
        cases.add(
            format!("conv_1x1_stride2_{name}"),
            f32(2, 16, 8, 7, 1, 0).stride(2).alone(),
        );
        cases.add(format!("conv_stride2_{name}"), f32(1, 4, 6, 11, 3, 1).stride(2).alone());
        cases.add(
            format!("conv_stride_beyond_filter_{name}"),
            f32(1, 3, 4, 13, 2, 0).stride(5).alone(),
        );
        cases.add(
            format!("conv_dilation2_{name}"),
            f32(1, 4, 6, 11, 3, 2).dilation(2).alone(),
        );
        cases.add(format!("conv_stem_{name}"), f32(1, 3, 8, 19, 7, 3).stride(2).alone());
        cases.add(format!("conv_whole_input_{name}"), f32(3, 4, 5, 4, 4, 0).alone());
        cases.add(format!("conv_one_pixel_{name}"), f32(1, 4, 5, 1, 3, 1).alone());
        let mut row = f32(2, 16, 16, 6, 3, 1);
        row.input = vec![1, 6];
        (row.dtype, row.out) = (DataType::F16, DataType::F16);
        cases.add(format!("conv_one_row_{name}_f16"), row.alone());
        row.input = vec![6, 1];
        cases.add(format!("conv_one_column_{name}_f16"), row.groups(2).alone());
        for (n, groups) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            // The result has axes of extent 1, which compilers like to drop.
            for (height, width) in [(1, 1), (1, 4), (4, 1)] {
                let mut thin = f32(n, 16, 16, 6, 3, 0).groups(groups);
                thin.input = vec![height + 2, width + 2];
                (thin.dtype, thin.out) = (DataType::F16, DataType::F16);
                let suffix = format!("n{n}_g{groups}_{height}x{width}_{name}_f16");
                cases.add(format!("conv_to_{suffix}"), thin.alone());
            }
        }
        cases.add(format!("conv_one_channel_{name}"), f32(2, 1, 1, 6, 3, 1).alone());
        cases.add(
            format!("conv_depthwise_multiplier_{name}"),
            f32(1, 6, 12, 8, 3, 1).groups(6).alone(),
        );
        cases.add(format!("conv_wide_{name}"), f32(1, 64, 64, 14, 3, 1).alone());

        let mut asymmetric = f32(1, 4, 5, 8, 3, 0);
        asymmetric.geometry.pre_padding = vec![2, 0];
        asymmetric.geometry.post_padding = vec![1, 3];
        cases.add(format!("conv_asymmetric_padding_{name}"), asymmetric.alone());
        let mut uneven = f32(2, 4, 6, 0, 0, 0);
        uneven.input = vec![7, 12];
        uneven.window = vec![2, 5];
        uneven.geometry.pre_padding = vec![1, 2];
        uneven.geometry.post_padding = vec![0, 1];
        uneven.geometry.stride = vec![1, 3];
        uneven.geometry.dilation = vec![2, 1];
        cases.add(format!("conv_uneven_{name}"), uneven.alone());

        let mut line = f32(2, 6, 4, 0, 0, 0);
        line.input = vec![15];
        line.window = vec![3];
        line.geometry = ConvGeometry::same(1, 1);
        cases.add(format!("conv_1d_{name}"), line.alone());
        cases.add(
            format!("conv_1d_grouped_{name}"),
            line.clone().groups(2).stride(2).alone(),
        );
        let mut volume = f32(1, 4, 6, 0, 0, 0);
        volume.input = vec![5, 6, 4];
        volume.window = vec![3, 2, 3];
        volume.geometry = ConvGeometry::same(3, 1);
        cases.add(format!("conv_3d_{name}"), volume.alone());
        cases.add(
            format!("conv_3d_grouped_{name}"),
            volume.clone().groups(2).stride(2).alone(),
        );

        let mut exact = f32(1, 8, 8, 6, 3, 1);
        exact.dtype = DataType::I8;
        exact.out = DataType::I32;
        exact.compute = DataType::I32;
        cases.add(format!("conv_i8_{name}"), exact.alone());
        cases.add(format!("conv_i8_grouped_{name}"), exact.clone().groups(4).alone());
        exact.out = DataType::I8;
        cases.add(format!("conv_i8_saturating_{name}"), exact.alone());
        let mut double = f32(1, 4, 5, 7, 3, 1);
        double.dtype = DataType::F64;
        double.out = DataType::F64;
        double.compute = DataType::F64;
        cases.add(format!("conv_f64_{name}"), double.alone());
        let mut widening = Conv::new(1, 8, 8, 7, 3, 1, DataType::F16, order);
        widening.out = DataType::F32;
        cases.add(format!("conv_f16_to_f32_{name}"), widening.alone());
    }
}

fn fused_convolutions(cases: &mut Cases) {
    for order in Order::BOTH {
        let name = order.name();
        for dtype in FLOATS {
            let conv = Conv::new(2, 8, 16, 9, 3, 1, dtype, order);
            cases.add(
                format!("conv_bias_relu_{name}_{dtype}"),
                conv.fused(PointwiseMode::ReluFwd, false),
            );
            cases.add(
                format!("conv_bias_add_gelu_{name}_{dtype}"),
                conv.fused(PointwiseMode::GeluFwd, true),
            );
            let point = Conv::new(1, 32, 16, 7, 1, 0, dtype, order);
            cases.add(
                format!("conv_1x1_bias_relu_{name}_{dtype}"),
                point.fused(PointwiseMode::ReluFwd, false),
            );
        }
        let grouped = Conv::new(1, 8, 8, 8, 3, 1, DataType::F16, order).groups(2).stride(2);
        cases.add(
            format!("conv_grouped_bias_swish_{name}"),
            grouped.fused(PointwiseMode::SwishFwd, false),
        );
        let depthwise = Conv::new(1, 16, 16, 8, 3, 1, DataType::F32, order).groups(16);
        cases.add(
            format!("conv_depthwise_bias_relu_{name}"),
            depthwise.fused(PointwiseMode::ReluFwd, true),
        );
    }
}

fn mixed_layouts(cases: &mut Cases) {
    for x in Order::BOTH {
        for w in Order::BOTH {
            for y in Order::BOTH {
                for (dtype, groups) in [(DataType::F32, 1), (DataType::F16, 1), (DataType::F32, 2)] {
                    let mut conv = Conv::new(1, 8, 12, 7, 3, 1, dtype, x).groups(groups);
                    conv.orders = [x, w, y];
                    let name = format!("conv_mixed_{}_{}_{}_{dtype}_g{groups}", x.name(), w.name(), y.name());
                    cases.add(name, conv.fused(PointwiseMode::ReluFwd, false));
                }
            }
        }
    }
    // A layout that no convolution library knows: C H W N.
    let mut b = GraphBuilder::new("chwn");
    let x = b.tensor("x", DataType::F32, &[3, 4, 6, 5], &[1, 90, 15, 3], TensorKind::Buffer);
    let w = b.tensor("w", DataType::F32, &[6, 4, 3, 3], &[1, 6, 24, 72], TensorKind::Buffer);
    let y = b.tensor("y", DataType::F32, &[3, 6, 6, 5], &[30, 90, 1, 6], TensorKind::Buffer);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    cases.add("conv_chwn", b.build());
}

/// A pointwise graph over packed operands.
fn pointwise(mode: PointwiseMode, types: &[DataType], out: DataType, compute: DataType, dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new(mode.name());
    let operands: Vec<_> = (0..mode.arity())
        .map(|index| b.buffer(&format!("in_{index}"), types[index % types.len()], dims))
        .collect();
    let y = b.buffer("y", out, dims);
    let operand = |index: usize| operands.get(index).copied();
    let mut op = Pointwise::new(mode, operands[0], operand(1), operand(2), y);
    if mode == PointwiseMode::GenIndex {
        op.axis = Some(1);
    }
    b.node(mode.name(), compute, op);
    b.build()
}

fn pointwise_modes(cases: &mut Cases) {
    for &mode in PointwiseMode::ALL {
        let name = mode.name();
        for dtype in FLOATS {
            let graph = pointwise(mode, &[dtype], dtype, DataType::F32, &[2, 5, 3, 7]);
            cases.add(format!("pw_{name}_{dtype}"), graph);
        }
        if !WITHOUT_F64.contains(&mode) {
            let graph = pointwise(mode, &[DataType::F64], DataType::F64, DataType::F64, &[3, 11]);
            cases.add(format!("pw_{name}_f64"), graph);
        }
    }
}

/// The modes that are declined in f64 on the CPU.
pub const WITHOUT_F64: [PointwiseMode; 5] = [
    PointwiseMode::Erf,
    PointwiseMode::GeluBwd,
    PointwiseMode::GeluFwd,
    PointwiseMode::Sin,
    PointwiseMode::Tan,
];

/// The modes that have a meaning for integers.
pub const INTEGER_MODES: [PointwiseMode; 21] = [
    PointwiseMode::Abs,
    PointwiseMode::Add,
    PointwiseMode::AddSquare,
    PointwiseMode::BinarySelect,
    PointwiseMode::CmpEq,
    PointwiseMode::CmpGe,
    PointwiseMode::CmpGt,
    PointwiseMode::CmpLe,
    PointwiseMode::CmpLt,
    PointwiseMode::CmpNeq,
    PointwiseMode::GenIndex,
    PointwiseMode::Identity,
    PointwiseMode::LogicalAnd,
    PointwiseMode::LogicalNot,
    PointwiseMode::LogicalOr,
    PointwiseMode::Max,
    PointwiseMode::Min,
    PointwiseMode::Mul,
    PointwiseMode::Neg,
    PointwiseMode::ReluFwd,
    PointwiseMode::Sub,
];

fn pointwise_types(cases: &mut Cases) {
    use DataType::{Bf16, F16, F32, F64, I8, I32, I64, U8};
    for mode in INTEGER_MODES {
        let graph = pointwise(mode, &[I8], I8, I32, &[4, 9]);
        cases.add(format!("pw_{}_i8", mode.name()), graph);
        let graph = pointwise(mode, &[I32], I32, I32, &[4, 9]);
        cases.add(format!("pw_{}_i32", mode.name()), graph);
    }
    for (from, to) in [
        (F32, I8),
        (F32, U8),
        (F32, I32),
        (F32, I64),
        (F64, I32),
        (F16, Bf16),
        (Bf16, F16),
        (F64, F16),
        (F64, F32),
        (F32, F64),
        (I8, F32),
        (U8, F32),
        (I32, F16),
        (I64, F64),
        (U8, Bf16),
        (F16, I8),
    ] {
        let compute = if from == F64 || to == F64 || from == I64 {
            F64
        } else {
            F32
        };
        cases.add(
            format!("convert_{from}_{to}"),
            pointwise(PointwiseMode::Identity, &[from], to, compute, &[3, 17]),
        );
    }
    for (from, to) in [
        (I32, I8),
        (I32, U8),
        (U8, I8),
        (I8, U8),
        (I8, I64),
        (I64, I8),
        (U8, I32),
    ] {
        let graph = pointwise(PointwiseMode::Identity, &[from], to, I64, &[3, 17]);
        cases.add(format!("convert_{from}_{to}"), graph);
    }
    cases.add(
        "pw_mixed_f16_f32",
        pointwise(PointwiseMode::Mul, &[F16, F32], Bf16, F32, &[6, 10]),
    );
    cases.add(
        "pw_mixed_i8_f16",
        pointwise(PointwiseMode::Add, &[I8, F16], F32, F32, &[6, 10]),
    );
    cases.add(
        "pw_half_compute",
        pointwise(PointwiseMode::Add, &[F16], F16, F16, &[6, 10]),
    );
}

fn pointwise_parameters(cases: &mut Cases) {
    type Set = fn(&mut Pointwise);
    let sets: [(&str, PointwiseMode, Set); 14] = [
        ("lower", PointwiseMode::ReluFwd, |op| op.relu_lower_clip = Some(-0.5)),
        ("upper", PointwiseMode::ReluFwd, |op| op.relu_upper_clip = Some(0.5)),
        ("slope", PointwiseMode::ReluFwd, |op| {
            op.relu_lower_clip_slope = Some(0.1)
        }),
        ("all", PointwiseMode::ReluFwd, |op| {
            op.relu_lower_clip = Some(0.25);
            op.relu_upper_clip = Some(0.5);
            op.relu_lower_clip_slope = Some(0.2);
        }),
        ("crossed", PointwiseMode::ReluFwd, |op| {
            op.relu_lower_clip = Some(0.5);
            op.relu_upper_clip = Some(-0.5);
        }),
        ("lower", PointwiseMode::ReluBwd, |op| op.relu_lower_clip = Some(0.25)),
        ("upper", PointwiseMode::ReluBwd, |op| op.relu_upper_clip = Some(0.5)),
        ("slope", PointwiseMode::ReluBwd, |op| {
            op.relu_lower_clip_slope = Some(0.3)
        }),
        ("beta", PointwiseMode::SwishFwd, |op| op.swish_beta = Some(1.7)),
        ("beta", PointwiseMode::SwishBwd, |op| op.swish_beta = Some(0.6)),
        ("alpha", PointwiseMode::EluFwd, |op| op.elu_alpha = Some(0.4)),
        ("alpha", PointwiseMode::EluBwd, |op| op.elu_alpha = Some(1.3)),
        ("beta", PointwiseMode::SoftplusFwd, |op| op.softplus_beta = Some(2.5)),
        ("beta", PointwiseMode::SoftplusBwd, |op| op.softplus_beta = Some(0.5)),
    ];
    for (label, mode, set) in sets {
        let mut graph = pointwise(mode, &[DataType::F32], DataType::F32, DataType::F32, &[4, 16]);
        for node in &mut graph.nodes {
            if let rotini_graph::Op::Pointwise(op) = &mut node.op {
                set(op);
            }
        }
        cases.add(format!("pw_{}_{label}", mode.name()), graph);
    }
    // Large angles, for which whole turns have to be taken off first.
    for mode in [PointwiseMode::Sin, PointwiseMode::Tan] {
        for factor in [4096.0, 1_048_576.0] {
            let mut b = GraphBuilder::new("large angles");
            let x = b.buffer("x", DataType::F32, &[8, 32]);
            let scale = b.constant("scale", DataType::F32, &[1, 1], Scalar::float(factor));
            let angle = b.virtual_tensor("angle", DataType::F32, &[8, 32]);
            let y = b.buffer("y", DataType::F32, &[8, 32]);
            b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, scale], angle);
            b.pointwise(DataType::F32, mode, &[angle], y);
            cases.add(format!("pw_{}_times_{factor}", mode.name()), b.build());
        }
    }
    for axis in 0..3 {
        let mut graph = pointwise(
            PointwiseMode::GenIndex,
            &[DataType::F32],
            DataType::I32,
            DataType::I32,
            &[3, 4, 5],
        );
        for tensor in &mut graph.tensors {
            tensor.dtype = DataType::I32;
        }
        for node in &mut graph.nodes {
            if let rotini_graph::Op::Pointwise(op) = &mut node.op {
                op.axis = Some(axis);
            }
        }
        cases.add(format!("pw_GEN_INDEX_axis{axis}"), graph);
    }
}

fn broadcasts(cases: &mut Cases) {
    let shapes: [(&str, &[i64]); 9] = [
        ("channel", &[1, 5, 1, 1]),
        ("row", &[1, 1, 1, 7]),
        ("batch", &[2, 1, 1, 1]),
        ("inner", &[1, 5, 3, 1]),
        ("scalar", &[1, 1, 1, 1]),
        ("rank1", &[7]),
        ("rank1_one", &[1]),
        ("rank2", &[3, 1]),
        ("rank3", &[5, 1, 7]),
    ];
    for order in Order::BOTH {
        for (label, dims) in shapes {
            let mut b = GraphBuilder::new("broadcast");
            let x = order.buffer(&mut b, "x", DataType::F32, &[2, 5, 3, 7]);
            let z = b.buffer("z", DataType::F16, dims);
            let y = order.buffer(&mut b, "y", DataType::F32, &[2, 5, 3, 7]);
            b.pointwise(DataType::F32, PointwiseMode::Sub, &[z, x], y);
            cases.add(format!("broadcast_{label}_{}", order.name()), b.build());
        }
    }
    // The output is larger than every operand.
    let mut b = GraphBuilder::new("outer");
    let row = b.buffer("row", DataType::F32, &[1, 6]);
    let column = b.buffer("column", DataType::F32, &[4, 1]);
    let y = b.buffer("y", DataType::F32, &[4, 6]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[row, column], y);
    cases.add("broadcast_outer", b.build());
    let mut b = GraphBuilder::new("unary");
    let x = b.buffer("x", DataType::F32, &[1, 6]);
    let y = b.buffer("y", DataType::F32, &[4, 6]);
    b.pointwise(DataType::F32, PointwiseMode::Neg, &[x], y);
    cases.add("broadcast_unary", b.build());
    // Constants in the graph.
    let mut b = GraphBuilder::new("constants");
    let x = b.buffer("x", DataType::F16, &[3, 8]);
    let half = b.constant("half", DataType::F32, &[1, 1], Scalar::float(0.5));
    let three = b.constant("three", DataType::I32, &[1], Scalar::Integer(3));
    let scaled = b.virtual_tensor("scaled", DataType::F32, &[3, 8]);
    let y = b.buffer("y", DataType::F16, &[3, 8]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, half], scaled);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[scaled, three], y);
    cases.add("constants", b.build());
}

fn strided(cases: &mut Cases) {
    let layouts: [(&str, &[i64], &[i64]); 8] = [
        ("row_gap", &[3, 4, 5], &[28, 7, 1]),
        ("inner_gap", &[3, 4, 5], &[40, 10, 2]),
        ("batch_gap", &[3, 4, 5], &[50, 5, 1]),
        ("nhwc_slice", &[2, 3, 4], &[64, 1, 8]),
        ("reversed", &[3, 4, 5], &[1, 3, 12]),
        ("uneven", &[2, 3, 4], &[37, 11, 2]),
        ("unit_dims", &[1, 4, 1], &[9, 3, 7]),
        ("tall", &[5, 1, 3], &[3, 99, 1]),
    ];
    for (label, dims, strides) in layouts {
        let mut b = GraphBuilder::new("strided");
        let x = b.tensor("x", DataType::F32, dims, strides, TensorKind::Buffer);
        let z = b.buffer("z", DataType::F32, dims);
        let y = b.buffer("y", DataType::F32, dims);
        b.pointwise(DataType::F32, PointwiseMode::Add, &[x, z], y);
        cases.add(format!("strided_in_{label}"), b.build());
        let mut b = GraphBuilder::new("strided");
        let x = b.buffer("x", DataType::F16, dims);
        let y = b.tensor("y", DataType::F16, dims, strides, TensorKind::Buffer);
        b.pointwise(DataType::F32, PointwiseMode::Exp, &[x], y);
        cases.add(format!("strided_out_{label}"), b.build());
    }
    for (label, strides) in [("rows", [0, 1]), ("columns", [1, 0]), ("all", [0, 0])] {
        let mut b = GraphBuilder::new("repeated");
        let x = b.tensor("x", DataType::F32, &[4, 6], &strides, TensorKind::Buffer);
        let z = b.buffer("z", DataType::F32, &[4, 6]);
        let y = b.buffer("y", DataType::F32, &[4, 6]);
        b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, z], y);
        cases.add(format!("repeated_{label}"), b.build());
    }
    let mut b = GraphBuilder::new("overlapping windows");
    let x = b.tensor("x", DataType::F32, &[5, 3], &[1, 1], TensorKind::Buffer);
    let y = b.buffer("y", DataType::F32, &[5, 3]);
    b.pointwise(DataType::F32, PointwiseMode::Identity, &[x], y);
    cases.add("overlapping_in", b.build());

    // A convolution between strided tensors, one of them repeated.
    for order in Order::BOTH {
        let mut conv = GraphBuilder::new("strided conv");
        let (xs, ws, ys): (&[i64], &[i64], &[i64]) = match order {
            Order::First => (&[300, 70, 8, 1], &[40, 10, 3, 1], &[500, 60, 7, 1]),
            Order::Last => (&[300, 1, 35, 5], &[60, 1, 15, 5], &[500, 1, 70, 9]),
        };
        let x = conv.tensor("x", DataType::F32, &[2, 4, 6, 6], xs, TensorKind::Buffer);
        let w = conv.tensor("w", DataType::F32, &[5, 4, 3, 3], ws, TensorKind::Buffer);
        let y = conv.tensor("y", DataType::F32, &[2, 5, 6, 6], ys, TensorKind::Buffer);
        conv.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
        cases.add(format!("conv_strided_{}", order.name()), conv.build());
    }
    let mut b = GraphBuilder::new("repeated filter");
    let x = b.buffer("x", DataType::F32, &[1, 3, 6, 6]);
    let w = b.tensor("w", DataType::F32, &[4, 3, 3, 3], &[0, 9, 3, 1], TensorKind::Buffer);
    let y = b.buffer("y", DataType::F32, &[1, 4, 6, 6]);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    cases.add("conv_repeated_filter", b.build());

    // What is between the elements is a NaN of another kind than the compiler makes.
    let mut b = GraphBuilder::new("gaps in bf16");
    let x = b.buffer("x", DataType::Bf16, &[3, 5]);
    let y = b.tensor("y", DataType::Bf16, &[3, 5], &[16, 3], TensorKind::Buffer);
    b.pointwise(DataType::F32, PointwiseMode::Erf, &[x], y);
    cases.add("gaps_bf16", b.build());
    // A result that depends on no input.
    let mut b = GraphBuilder::new("index with gaps");
    let x = b.buffer("x", DataType::F32, &[3, 11]);
    let y = b.tensor("y", DataType::F32, &[3, 11], &[23, 2], TensorKind::Buffer);
    let mut index = Pointwise::new(PointwiseMode::GenIndex, x, None, None, y);
    index.axis = Some(1);
    b.node("index", DataType::F32, index);
    cases.add("gaps_index", b.build());
    // Loops over no tensor behind a convolution: a gathered bias, an index.
    for order in Order::BOTH {
        let mut b = GraphBuilder::new("conv, strided bias, index");
        let x = order.buffer(&mut b, "x", DataType::F32, &[1, 32, 7, 7]);
        let w = order.buffer(&mut b, "w", DataType::F32, &[16, 32, 1, 1]);
        let bias = b.tensor(
            "bias",
            DataType::F32,
            &[1, 16, 1, 1],
            &[31, 2, 1, 1],
            TensorKind::Buffer,
        );
        let [conv, biased, channel] =
            ["conv", "biased", "channel"].map(|name| b.virtual_tensor(name, DataType::F32, &[1, 16, 7, 7]));
        let y = order.buffer(&mut b, "y", DataType::F32, &[1, 16, 7, 7]);
        b.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 0));
        b.pointwise(DataType::F32, PointwiseMode::Add, &[conv, bias], biased);
        let mut index = Pointwise::new(PointwiseMode::GenIndex, biased, None, None, channel);
        index.axis = Some(1);
        b.node("index", DataType::F32, index);
        b.pointwise(DataType::F32, PointwiseMode::Mul, &[biased, channel], y);
        cases.add(format!("conv_strided_bias_index_{}", order.name()), b.build());
    }
}

/// Chains, diamonds and several outputs.
fn structures(cases: &mut Cases) {
    use PointwiseMode::{Add, GeluFwd, Mul, ReluFwd, SigmoidFwd, Sub, TanhFwd};
    for dtype in [DataType::F32, DataType::F16] {
        // y = relu(x) + tanh(x) * sigmoid(x), with the tanh stored too.
        let mut b = GraphBuilder::new("diamond");
        let dims = [2, 6, 5, 4];
        let x = b.buffer("x", dtype, &dims);
        let relu = b.virtual_tensor("relu", DataType::F32, &dims);
        let tanh = b.buffer("tanh", dtype, &dims);
        let sigmoid = b.virtual_tensor("sigmoid", DataType::F32, &dims);
        let product = b.virtual_tensor("product", DataType::F32, &dims);
        let y = b.buffer("y", dtype, &dims);
        b.pointwise(DataType::F32, ReluFwd, &[x], relu);
        b.pointwise(DataType::F32, TanhFwd, &[x], tanh);
        b.pointwise(DataType::F32, SigmoidFwd, &[x], sigmoid);
        b.pointwise(DataType::F32, Mul, &[tanh, sigmoid], product);
        b.pointwise(DataType::F32, Add, &[relu, product], y);
        cases.add(format!("diamond_{dtype}"), b.build());
    }
    for order in Order::BOTH {
        // The convolution's result and its activation, both stored; nodes in reverse order.
        let mut b = GraphBuilder::new("conv two outputs");
        let x = order.buffer(&mut b, "x", DataType::F16, &[1, 8, 6, 6]);
        let w = order.buffer(&mut b, "w", DataType::F16, &[8, 8, 3, 3]);
        let y = order.buffer(&mut b, "y", DataType::F16, &[1, 8, 6, 6]);
        let z = order.buffer(&mut b, "z", DataType::F16, &[1, 8, 6, 6]);
        b.pointwise(DataType::F32, GeluFwd, &[y], z);
        b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
        cases.add(format!("conv_two_outputs_{}", order.name()), b.build());
        // Two convolutions in a row, with an activation between.
        let mut b = GraphBuilder::new("two convs");
        let x = order.buffer(&mut b, "x", DataType::F32, &[1, 4, 7, 7]);
        let w1 = order.buffer(&mut b, "w1", DataType::F32, &[6, 4, 3, 3]);
        let w2 = order.buffer(&mut b, "w2", DataType::F32, &[5, 6, 1, 1]);
        let a = b.virtual_tensor("a", DataType::F32, &[1, 6, 7, 7]);
        let r = b.virtual_tensor("r", DataType::F32, &[1, 6, 7, 7]);
        let y = order.buffer(&mut b, "y", DataType::F32, &[1, 5, 7, 7]);
        b.conv_fprop(DataType::F32, x, w1, a, ConvGeometry::same(2, 1));
        b.pointwise(DataType::F32, ReluFwd, &[a], r);
        b.conv_fprop(DataType::F32, r, w2, y, ConvGeometry::same(2, 0));
        cases.add(format!("two_convs_{}", order.name()), b.build());
        // An activation in front of the convolution.
        let mut b = GraphBuilder::new("prologue");
        let x = order.buffer(&mut b, "x", DataType::F16, &[1, 8, 6, 6]);
        let scale = b.buffer("scale", DataType::F16, &[1, 8, 1, 1]);
        let w = order.buffer(&mut b, "w", DataType::F16, &[8, 8, 3, 3]);
        let s = b.virtual_tensor("s", DataType::F32, &[1, 8, 6, 6]);
        let y = order.buffer(&mut b, "y", DataType::F16, &[1, 8, 6, 6]);
        b.pointwise(DataType::F32, Mul, &[x, scale], s);
        b.conv_fprop(DataType::F32, s, w, y, ConvGeometry::same(2, 1));
        cases.add(format!("scale_conv_{}", order.name()), b.build());
    }
    // A quantised chain: i8 convolution, scaled in f32, stored as i8.
    let mut b = GraphBuilder::new("quantised");
    let x = b.buffer("x", DataType::I8, &[1, 8, 5, 5]);
    let w = b.buffer("w", DataType::I8, &[6, 8, 3, 3]);
    let sum = b.virtual_tensor("sum", DataType::I32, &[1, 6, 5, 5]);
    let scale = b.constant("scale", DataType::F32, &[1, 1, 1, 1], Scalar::float(0.125));
    let y = b.buffer("y", DataType::I8, &[1, 6, 5, 5]);
    b.conv_fprop(DataType::I32, x, w, sum, ConvGeometry::same(2, 1));
    b.pointwise(DataType::F32, Mul, &[sum, scale], y);
    cases.add("quantised_chain", b.build());
    // One input, two outputs in different layouts.
    let mut b = GraphBuilder::new("two layouts");
    let x = b.buffer("x", DataType::F32, &[2, 3, 4, 5]);
    let first = b.buffer("first", DataType::F32, &[2, 3, 4, 5]);
    let last = b.buffer_channels_last("last", DataType::F32, &[2, 3, 4, 5]);
    let t = b.virtual_tensor("t", DataType::F32, &[2, 3, 4, 5]);
    b.pointwise(DataType::F32, TanhFwd, &[x], t);
    b.pointwise(DataType::F32, Sub, &[t, x], first);
    b.pointwise(DataType::F32, Add, &[t, x], last);
    cases.add("two_layouts", b.build());
    // A scalar graph.
    let mut b = GraphBuilder::new("scalar");
    let x = b.buffer("x", DataType::F32, &[1, 1, 1, 1]);
    let y = b.buffer("y", DataType::F32, &[1, 1, 1, 1]);
    b.pointwise(DataType::F32, Add, &[x, x], y);
    cases.add("scalar", b.build());
}

/// Graphs that are well formed and that rotini does not run, with a word of the reason.
#[must_use]
pub fn declined() -> Vec<(Case, &'static str)> {
    let mut cases = Vec::new();
    let mut add = |name: &str, graph: Graph, reason: &'static str| {
        cases.push((
            Case {
                name: name.to_owned(),
                graph,
            },
            reason,
        ));
    };
    let mut flipped = Conv::new(1, 4, 4, 6, 3, 1, DataType::F32, Order::First);
    flipped.geometry.mode = ConvMode::Convolution;
    add("conv_flipped", flipped.alone(), "CONVOLUTION");
    let mut float_in_int = Conv::new(1, 4, 4, 6, 3, 1, DataType::F32, Order::First);
    float_in_int.compute = DataType::I32;
    add("conv_f32_in_i32", float_in_int.alone(), "'x'");
    let mut eight = Conv::new(1, 4, 4, 6, 3, 1, DataType::I8, Order::First);
    eight.compute = DataType::I8;
    add("conv_compute_i8", eight.alone(), "i8");
    add(
        "exp_in_i32",
        pointwise(PointwiseMode::Exp, &[DataType::I32], DataType::I32, DataType::I32, &[4]),
        "EXP",
    );
    add(
        "fp8",
        pointwise(
            PointwiseMode::Add,
            &[DataType::F8E4M3],
            DataType::F32,
            DataType::F32,
            &[4],
        ),
        "f8e4m3",
    );
    for mode in WITHOUT_F64 {
        add(
            "f64",
            pointwise(mode, &[DataType::F64], DataType::F64, DataType::F64, &[4]),
            mode.name(),
        );
    }
    let mut b = GraphBuilder::new("constant filter");
    let x = b.buffer("x", DataType::F32, &[1, 3, 6, 6]);
    let w = b.constant("w", DataType::F32, &[4, 3, 3, 3], Scalar::float(0.25));
    let y = b.buffer("y", DataType::F32, &[1, 4, 6, 6]);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    add("constant_filter", b.build(), "'w'");
    let mut b = GraphBuilder::new("constant only");
    let value = b.constant("value", DataType::F32, &[1, 1], Scalar::float(2.25));
    let y = b.buffer("y", DataType::F32, &[3, 8]);
    b.pointwise(DataType::F32, PointwiseMode::Sqrt, &[value], y);
    add("constant_only", b.build(), "'y'");
    let mut override_shapes = pointwise(PointwiseMode::Add, &[DataType::F32], DataType::F32, DataType::F32, &[4]);
    override_shapes.override_shapes = true;
    add("override_shapes", override_shapes, "shapes");
    let mut b = GraphBuilder::new("runtime");
    let x = b.buffer("x", DataType::F32, &[4]);
    let s = b.tensor("s", DataType::F32, &[1], &[1], TensorKind::RuntimeScalar);
    let y = b.buffer("y", DataType::F32, &[4]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, s], y);
    add("runtime_scalar", b.build(), "'s'");
    let mut spatial = GraphBuilder::new("4d");
    let x = spatial.buffer("x", DataType::F32, &[1, 2, 3, 3, 3, 3]);
    let w = spatial.buffer("w", DataType::F32, &[2, 2, 1, 1, 1, 1]);
    let y = spatial.buffer("y", DataType::F32, &[1, 2, 3, 3, 3, 3]);
    spatial.node(
        "conv",
        DataType::F32,
        ConvFprop {
            x,
            w,
            y,
            geometry: ConvGeometry::same(4, 0),
        },
    );
    add("conv_4d", spatial.build(), "4 spatial");
    cases
}

/// The fused layers of ResNet-50 that Composable Kernel's `profile_resnet50.sh` compares on: 20 with bias and relu, 4 with a residual
/// too. Columns: residual, C, K, filter, extent, stride, padding.
pub const RESNET50: [(bool, i64, i64, i64, i64, i64, i64); 24] = [
    (false, 3, 64, 7, 224, 2, 3),
    (false, 64, 64, 1, 56, 1, 0),
    (false, 64, 64, 3, 56, 1, 1),
    (false, 64, 256, 1, 56, 1, 0),
    (false, 256, 64, 1, 56, 1, 0),
    (false, 256, 128, 1, 56, 1, 0),
    (false, 128, 128, 3, 56, 2, 1),
    (false, 128, 512, 1, 28, 1, 0),
    (false, 512, 128, 1, 28, 1, 0),
    (false, 128, 128, 3, 28, 1, 1),
    (false, 512, 256, 1, 28, 1, 0),
    (false, 256, 256, 3, 28, 2, 1),
    (false, 256, 1024, 1, 14, 1, 0),
    (false, 1024, 256, 1, 14, 1, 0),
    (false, 256, 256, 3, 14, 1, 1),
    (false, 1024, 512, 1, 14, 1, 0),
    (false, 512, 512, 3, 14, 2, 1),
    (false, 512, 2048, 1, 7, 1, 0),
    (false, 2048, 512, 1, 7, 1, 0),
    (false, 512, 512, 3, 7, 1, 1),
    (true, 64, 256, 1, 56, 1, 0),
    (true, 128, 512, 1, 28, 1, 0),
    (true, 256, 1024, 1, 14, 1, 0),
    (true, 512, 2048, 1, 7, 1, 0),
];

/// The ResNet-50 layers at a batch size, in both layouts and three types.
#[must_use]
pub fn resnet50(n: i64) -> Vec<Case> {
    let mut cases = Vec::new();
    for (residual, c, k, window, input, stride, padding) in RESNET50 {
        for order in Order::BOTH {
            for dtype in FLOATS {
                let conv = Conv::new(n, c, k, input, window, padding, dtype, order).stride(stride);
                let tail = if residual { "add_relu" } else { "relu" };
                let name = format!(
                    "n{n}_{c}to{k}_{window}x{window}_{input}_s{stride}_{tail}_{}_{dtype}",
                    order.name()
                );
                cases.push(Case {
                    name,
                    graph: conv.fused(PointwiseMode::ReluFwd, residual),
                });
            }
        }
    }
    cases
}
