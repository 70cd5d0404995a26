//! The module that each operation and form becomes, as text. `tests/gfx942.rs` and `tests/conformance.rs` of the workspace's tests feed
//! the same forms to the real compiler, for AMD GPUs and for the CPU.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_emit::{Target, emit};
use rotini_graph::{ConvGeometry, DataType, Graph, GraphBuilder, Pointwise, PointwiseMode, Scalar, TensorKind};

fn lowered(mut graph: Graph, target: &str) -> String {
    graph.validate().expect("the graph is valid");
    let target = Target::parse(target).expect("a known target");
    emit(&graph.normalise().0, &target)
        .expect("the graph is supported")
        .mlir
}

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
