//! Snapshots of the module of each operation and form. The workspace's tests `gfx942` and `cases`
//! feed the same forms to the real compiler, for AMD GPUs and for the CPU.

use crate::lowered::lowered;
use rotini_emit::{Target, emit};
use rotini_graph::{
    BlockScaleDequantize, BlockScaleQuantize, ConvGeometry, CustomOp, DataType, Graph, GraphBuilder, Matmul,
    MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, PaddingMode, Pointwise, PointwiseMode, ResampleBwd, ResampleFwd,
    ResampleMode, Scalar, Sdpa, SdpaBackward, TensorId, TensorKind,
};

fn conv_bias_relu(channels_last: bool, groups: i64, padding: i64) -> Graph {
    let mut b = GraphBuilder::new("conv_bias_relu");
    let buffer = |b: &mut GraphBuilder, name: &str, dims: &[i64]| {
        if channels_last {
            b.buffer_channels_last(name, DataType::F16, dims)
        } else {
            b.buffer(name, DataType::F16, dims)
        }
    };
    let x = buffer(&mut b, "x", &[2, 8, 6, 6]);
    let w = buffer(&mut b, "w", &[16, 8 / groups, 3, 3]);
    let bias = b.buffer("bias", DataType::F16, &[1, 16, 1, 1]);
    let extent = 4 + 2 * padding;
    let dims = [2, 16, extent, extent];
    let conv = b.virtual_tensor("conv", DataType::F32, &dims);
    let biased = b.virtual_tensor("biased", DataType::F32, &dims);
    let y = buffer(&mut b, "y", &dims);
    b.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, padding));
    b.pointwise(DataType::F32, PointwiseMode::Add, &[conv, bias], biased);
    b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[biased], y);
    b.build()
}

#[test]
fn convolutions_for_gpus() {
    insta::assert_snapshot!("conv_nhwc_gfx942", lowered(conv_bias_relu(true, 1, 1), "gfx942"));
    insta::assert_snapshot!("conv_nchw_gfx942", lowered(conv_bias_relu(false, 1, 0), "gfx942"));
    insta::assert_snapshot!(
        "conv_grouped_nhwc_gfx942",
        lowered(conv_bias_relu(true, 4, 1), "gfx942")
    );
}

#[test]
fn convolutions_for_cpus() {
    insta::assert_snapshot!("conv_nhwc_cpu", lowered(conv_bias_relu(true, 1, 1), "cpu"));
    insta::assert_snapshot!("conv_nchw_cpu", lowered(conv_bias_relu(false, 1, 0), "cpu"));
    insta::assert_snapshot!("conv_grouped_nhwc_cpu", lowered(conv_bias_relu(true, 4, 1), "cpu"));
}

/// Every mode's arithmetic, in f32 and where it has a meaning in i32.
#[test]
fn pointwise_modes() {
    for dtype in [DataType::F32, DataType::I32] {
        let mut bodies = String::new();
        for &mode in PointwiseMode::ALL {
            let mut b = GraphBuilder::new(mode.name());
            let operands: Vec<_> = (0..mode.arity())
                .map(|index| b.buffer(&format!("in_{index}"), dtype, &[4]))
                .collect();
            let y = b.buffer("y", dtype, &[4]);
            let operand = |index: usize| operands.get(index).copied();
            let mut op = Pointwise::new(mode, operands[0], operand(1), operand(2), y);
            op.axis = (mode == PointwiseMode::GenIndex).then_some(0);
            b.node("", dtype, op);
            let mut graph = b.build();
            graph.validate().expect("the graph is valid");
            bodies += &format!("// {}\n", mode.name());
            match emit(&graph.normalise().0, &Target::Cpu) {
                Ok(emitted) => {
                    let lines = emitted
                        .mlir
                        .lines()
                        .skip_while(|line| !line.contains("linalg.generic"))
                        .skip(1);
                    for line in lines.take_while(|line| !line.starts_with("  }")) {
                        bodies += &format!("{line}\n");
                    }
                }
                Err(error) => bodies += &format!("  {error}\n"),
            }
        }
        insta::assert_snapshot!(format!("pointwise_{dtype}"), bodies);
    }
}

#[test]
fn layouts() {
    let mut b = GraphBuilder::new("strided");
    let x = b.tensor("x", DataType::F32, &[2, 3], &[4, 1], TensorKind::Buffer);
    let row = b.tensor("row", DataType::F16, &[2, 3], &[0, 1], TensorKind::Buffer);
    let y = b.tensor("y", DataType::F16, &[2, 3], &[1, 4], TensorKind::Buffer);
    let scale = b.constant("scale", DataType::F32, &[1, 1], Scalar::float(0.5));
    let scaled = b.virtual_tensor("scaled", DataType::F32, &[2, 3]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, scale], scaled);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[scaled, row], y);
    insta::assert_snapshot!("strided", lowered(b.build(), "cpu"));
}

#[test]
fn conversions() {
    for (from, to) in [
        (DataType::F32, DataType::I8),
        (DataType::F32, DataType::U8),
        (DataType::F16, DataType::Bf16),
        (DataType::F8E4M3, DataType::F32),
        (DataType::F32, DataType::F8E5M2),
        (DataType::F8E8M0, DataType::F32),
        (DataType::F32, DataType::F8E8M0),
        (DataType::I4, DataType::F4E2M1),
    ] {
        let mut b = GraphBuilder::new("convert");
        let x = b.buffer("x", from, &[4]);
        let y = b.buffer("y", to, &[4]);
        b.pointwise(DataType::F32, PointwiseMode::Identity, &[x], y);
        insta::assert_snapshot!(format!("convert_{from}_{to}"), lowered(b.build(), "cpu"));
    }
}

#[test]
fn several_outputs() {
    let mut b = GraphBuilder::new("two outputs");
    let x = b.buffer("x", DataType::F16, &[2, 4]);
    let tanh = b.buffer("tanh", DataType::F16, &[2, 4]);
    let y = b.buffer("y", DataType::F16, &[2, 4]);
    b.pointwise(DataType::F32, PointwiseMode::TanhFwd, &[x], tanh);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[tanh, x], y);
    insta::assert_snapshot!("two_outputs", lowered(b.build(), "gfx942"));
}

fn pool(mode: ResampleMode, padding: i64) -> Graph {
    let mut b = GraphBuilder::new("pool");
    let extent = 3 + padding;
    let x = b.buffer_channels_last("x", DataType::F16, &[2, 8, 6, 6]);
    let y = b.buffer_channels_last("y", DataType::F16, &[2, 8, extent, extent]);
    let is_max = mode == ResampleMode::Maxpool;
    let index = is_max.then(|| b.buffer_channels_last("index", DataType::I32, &[2, 8, extent, extent]));
    let op = ResampleFwd {
        x,
        y,
        index,
        pre_padding: vec![padding; 2],
        post_padding: vec![padding; 2],
        stride: vec![2; 2],
        window: vec![2; 2],
        resample_mode: mode,
        padding_mode: PaddingMode::NegInf,
        generate_index: is_max,
    };
    b.node("pool", DataType::F32, op);
    b.build()
}

fn pool_backward(mode: ResampleMode) -> Graph {
    let mut b = GraphBuilder::new("pool backward");
    let dy = b.buffer("dy", DataType::F32, &[2, 8, 3, 3]);
    let index = (mode == ResampleMode::Maxpool).then(|| b.buffer("index", DataType::I32, &[2, 8, 3, 3]));
    let dx = b.buffer("dx", DataType::F32, &[2, 8, 5, 5]);
    let op = ResampleBwd {
        dy,
        index,
        dx,
        pre_padding: vec![1; 2],
        post_padding: vec![1; 2],
        stride: vec![2; 2],
        window: vec![3; 2],
        resample_mode: mode,
        padding_mode: PaddingMode::NegInf,
    };
    b.node("pool", DataType::F32, op);
    b.build()
}

#[test]
fn pooling() {
    use ResampleMode::{AvgpoolExcludePadding, AvgpoolIncludePadding, Maxpool};
    for target in ["gfx942", "cpu"] {
        insta::assert_snapshot!(format!("pool_max_{target}"), lowered(pool(Maxpool, 1), target));
        insta::assert_snapshot!(
            format!("pool_max_backward_{target}"),
            lowered(pool_backward(Maxpool), target)
        );
    }
    insta::assert_snapshot!("pool_max_exact", lowered(pool(Maxpool, 0), "gfx942"));
    insta::assert_snapshot!("pool_average_padded", lowered(pool(AvgpoolExcludePadding, 1), "gfx942"));
    insta::assert_snapshot!("pool_average_exact", lowered(pool(AvgpoolIncludePadding, 0), "cpu"));
    insta::assert_snapshot!(
        "pool_average_backward",
        lowered(pool_backward(AvgpoolExcludePadding), "gfx942")
    );
}

#[test]
fn grouped_matmuls() {
    let routing = [1, 40, 1];
    for (name, mode) in [
        ("none", MoeMode::None),
        ("gather", MoeMode::Gather),
        ("scatter", MoeMode::Scatter),
    ] {
        let mut b = GraphBuilder::new("moe");
        let op = MoeGroupedMatmul {
            token: b.buffer("token", DataType::F16, &[1, 40, 32]),
            weight: b.buffer("weight", DataType::F16, &[4, 32, 16]),
            first_token_offset: b.buffer("offset", DataType::I32, &[4, 1, 1]),
            token_index: (mode != MoeMode::None).then(|| b.buffer("index", DataType::I32, &routing)),
            token_ks: (mode == MoeMode::Scatter).then(|| b.buffer("ks", DataType::I32, &routing)),
            output: b.buffer("output", DataType::F16, &[1, 40, 16]),
            mode,
            top_k: if mode == MoeMode::Scatter { 2 } else { 0 },
        };
        b.node("moe", DataType::F32, op);
        insta::assert_snapshot!(format!("moe_{name}"), lowered(b.build(), "gfx942"));
    }
    let mut b = GraphBuilder::new("moe backward");
    let op = MoeGroupedMatmulBwd {
        doutput: b.buffer("doutput", DataType::F16, &[1, 40, 16]),
        token: b.buffer("token", DataType::F16, &[1, 40, 32]),
        first_token_offset: b.buffer("offset", DataType::I32, &[4, 1, 1]),
        dweight: b.buffer("dweight", DataType::F16, &[4, 32, 16]),
    };
    b.node("moe", DataType::F32, op);
    insta::assert_snapshot!("moe_backward", lowered(b.build(), "gfx942"));
}

#[test]
fn products_of_few_bits() {
    for (name, a, b) in [
        ("f8", DataType::F8E4M3, DataType::F8E5M2),
        ("i4", DataType::F16, DataType::I4),
    ] {
        let mut builder = GraphBuilder::new("matmul");
        let op = Matmul {
            a: builder.buffer("a", a, &[16, 32]),
            b: builder.buffer("b", b, &[32, 8]),
            c: builder.buffer("c", DataType::F16, &[16, 8]),
        };
        builder.node("matmul", DataType::F32, op);
        insta::assert_snapshot!(format!("matmul_{name}_gfx942"), lowered(builder.build(), "gfx942"));
    }
}

/// The last block of each row is incomplete where it is read.
#[test]
fn scales_of_blocks() {
    let mut b = GraphBuilder::new("dequantize");
    let op = BlockScaleDequantize {
        x: b.buffer("x", DataType::I8, &[2, 7]),
        scale: b.buffer("scale", DataType::F32, &[2, 2]),
        y: b.buffer("y", DataType::F32, &[2, 7]),
        block_size: vec![4],
        is_negative_scale: false,
    };
    b.node("dequantize", DataType::F32, op);
    insta::assert_snapshot!("dequantize", lowered(b.build(), "gfx942"));

    let mut b = GraphBuilder::new("quantize");
    let op = BlockScaleQuantize {
        x: b.buffer("x", DataType::F32, &[2, 8]),
        y: b.buffer("y", DataType::I8, &[2, 8]),
        scale: b.buffer("scale", DataType::F16, &[2, 2]),
        block_size: 4,
        axis: None,
        transpose: false,
    };
    b.node("quantize", DataType::F32, op);
    insta::assert_snapshot!("quantize", lowered(b.build(), "gfx942"));
}

#[test]
fn custom_operations() {
    let body = "func.func @mine(%x: tensor<4xf16>) -> tensor<4xf16> {\n  \
                  %e = tensor.empty() : tensor<4xf16>\n  \
                  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [\"parallel\"]} \
                         ins(%x : tensor<4xf16>) outs(%e : tensor<4xf16>) {\n  ^bb0(%a: f16, %b: f16):\n    \
                    %w = arith.extf %a : f16 to f32\n    %n = arith.negf %w : f32\n    %r = arith.truncf %n : f32 to f16\n    \
                    linalg.yield %r : f16\n  } -> tensor<4xf16>\n  return %y : tensor<4xf16>\n}\n";
    let mut b = GraphBuilder::new("custom");
    let x = b.buffer("x", DataType::F16, &[4]);
    let sum = b.virtual_tensor("sum", DataType::F16, &[4]);
    let y = b.buffer("y", DataType::F16, &[4]);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[x, x], sum);
    let op = CustomOp {
        inputs: vec![sum],
        outputs: vec![y],
        custom_op_id: "rotini.mlir".to_owned(),
        data: body.as_bytes().to_vec(),
    };
    b.node("custom", DataType::F32, op);
    insta::assert_snapshot!("custom", lowered(b.build(), "gfx942"));
}

const CAUSAL: Option<i64> = Some(0);

/// Two heads of causal attention over as many queries as keys.
fn attention(dtype: DataType, length: i64, columns: i64) -> Graph {
    let mut b = GraphBuilder::new("attention");
    let dims = [1, 2, length, columns];
    let [q, k, v, o] = ["q", "k", "v", "o"].map(|name| b.buffer(name, dtype, &dims));
    let op = Sdpa {
        attn_scale_value: Some(0.5),
        right_bound: CAUSAL,
        ..Sdpa::new(q, k, v, o)
    };
    b.node("sdpa", DataType::F32, Box::new(op));
    b.build()
}

/// The gradients of four heads of causal attention, with half as many of keys and values.
fn attention_backward() -> Graph {
    let mut b = GraphBuilder::new("attention_backward");
    let mut buffer =
        |name: &str, heads: i64, columns: i64| -> TensorId { b.buffer(name, DataType::F32, &[1, heads, 6, columns]) };
    let [q, k, v] = [("q", 4), ("k", 2), ("v", 2)].map(|(name, heads)| buffer(name, heads, 8));
    let [o, d_o] = ["o", "do"].map(|name| buffer(name, 4, 8));
    let stats = buffer("stats", 4, 1);
    let gradients = [("dq", 4), ("dk", 2), ("dv", 2)].map(|(name, heads)| buffer(name, heads, 8));
    let op = SdpaBackward {
        attn_scale_value: Some(0.5),
        right_bound: CAUSAL,
        ..SdpaBackward::new([q, k, v, o, d_o, stats], gradients)
    };
    b.node("sdpa", DataType::F32, Box::new(op));
    b.build()
}

/// Forward, as steps and as one dispatch, and backward.
#[test]
fn attentions() {
    let (short, tile) = (attention(DataType::F16, 6, 8), attention(DataType::F16, 16, 32));
    insta::assert_snapshot!("attention_cpu", lowered(short.clone(), "cpu"));
    insta::assert_snapshot!("attention_steps_gfx942", lowered(short, "gfx942"));
    insta::assert_snapshot!("attention_gfx942", lowered(tile, "gfx942"));
    insta::assert_snapshot!("attention_backward_cpu", lowered(attention_backward(), "cpu"));
    insta::assert_snapshot!("attention_backward_gfx942", lowered(attention_backward(), "gfx942"));
}
