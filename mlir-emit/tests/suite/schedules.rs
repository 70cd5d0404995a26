//! Schedules are in the emitted text of a target that has them, and in no other.

use rotini_emit::{Emitted, Target, emit};
use rotini_graph::{
    ConvFprop, ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, Matmul, PointwiseMode, Reduction, ReductionMode,
    RmsNorm, Scalar, SdpaBackward, TensorId, TensorKind,
};

const F16: DataType = DataType::F16;

fn lowered(mut graph: Graph, target: &Target) -> Emitted {
    graph.validate().expect("the graph is valid");
    emit(&graph.normalise().0, target).expect("the graph is supported")
}

fn gradient(groups: i64) -> Graph {
    let mut b = GraphBuilder::new("wgrad");
    let x = b.buffer_channels_last("x", F16, &[32, 64, 56, 56]);
    let dy = b.buffer_channels_last("dy", F16, &[32, 64, 56, 56]);
    let dw = b.buffer_channels_last("dw", F16, &[64, 64 / groups, 3, 3]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("wgrad", DataType::F32, ConvWgrad { x, dy, dw, geometry });
    b.build()
}

fn convolution(groups: i64) -> Graph {
    let mut b = GraphBuilder::new("conv");
    let x = b.buffer_channels_last("x", F16, &[32, 128, 28, 28]);
    let w = b.buffer_channels_last("w", F16, &[128, 128 / groups, 3, 3]);
    let y = b.buffer_channels_last("y", F16, &[32, 128, 28, 28]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("conv", DataType::F32, ConvFprop { x, w, y, geometry });
    b.build()
}

fn product(dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new("matmul");
    let a = b.buffer("a", dtype, &[1, 1024, 1024]);
    let columns = b.tensor(
        "b",
        dtype,
        &[1, 1024, 2048],
        &[1024 * 2048, 1, 1024],
        TensorKind::Buffer,
    );
    let c = b.buffer("c", F16, &[1, 1024, 2048]);
    b.node("matmul", DataType::F32, Matmul { a, b: columns, c });
    b.build()
}

#[test]
fn schedules_are_for_the_machines_that_they_were_chosen_for() {
    let mi300x = Target::parse("mi300x").expect("it is known");
    let plain = mi300x.unscheduled().expect("it has schedules");
    assert_eq!(Target::parse(&plain.to_string()), Some(plain.clone()));
    assert_eq!(plain.unscheduled(), None);
    for (graph, word) in [
        (gradient(1), "@wgrad_64x64_f16_"),
        (gradient(4), "@wgrad_16x16_f16_"),
        // Four groups as one.
        (gradient(16), "@wgrad_16x16_f16_"),
        (gradient(64), "@wgrad_64_f16_depthwise_"),
        (convolution(1), "@conv_25088x128_f16_"),
        (convolution(4), "@conv_25088x32_f16_"),
        (convolution(128), "@conv_25088x1_f16_depthwise_"),
        (product(F16), "@matmul_1024x2048x1024_f16_"),
        (product(DataType::F8E4M3Fnuz), "@matmul_1024x2048x1024_f8e4m3fnuz_"),
    ] {
        let (ours, theirs) = (lowered(graph.clone(), &mi300x), lowered(graph.clone(), &plain));
        assert!(ours.mlir.contains(word), "{}", ours.mlir);
        assert!(!theirs.mlir.contains("flow.dispatch"));
        // The compiler gets the same machine.
        assert_eq!(ours.flags, theirs.flags);
        for other in ["cpu", "gfx90a", "sm_80"] {
            let other = Target::parse(other).expect("it is known");
            assert_eq!(other.unscheduled(), None);
            let text = lowered(graph.clone(), &other).mlir;
            // CPUs have other kernels, with other names.
            assert!(other.is_cpu() || !text.contains("flow.dispatch"), "{other}");
            assert!(!text.contains("mma_kind") && !text.contains(word), "{other}");
        }
    }
}

#[test]
fn a_schedule_can_be_tried() {
    let tried = Target::parse("mi300x:cut-64x64_2x2_b2_p4").expect("it is a target");
    assert_eq!(Target::device(&tried.to_string()), "mi300x");
    let text = lowered(product(F16), &tried).mlir;
    assert!(text.contains("@matmul_1024x2048x1024_f16_64x64_2x2_b2_p4_"), "{text}");
    // Where it does not fit, as where it is no schedule, products have their own.
    for word in ["64x64_2x2_b2_p64", "64x64_2x2_b9"] {
        let other = Target::parse(&format!("mi300x:cut-{word}")).expect("it is a target");
        let own = lowered(product(F16), &Target::parse("mi300x").expect("it is known"));
        assert_eq!(lowered(product(F16), &other).mlir, own.mlir);
    }
}

/// Consumers of a product are fused as its epilogue, but not after another reader of the product:
/// here the copy to memory with gaps.
#[test]
fn a_product_between_gaps_is_stored_beside_what_is_made_of_it() {
    let mut b = GraphBuilder::new("product between gaps");
    let (a, other) = (b.buffer("a", F16, &[24, 64]), b.buffer("b", F16, &[64, 40]));
    let product = b.tensor("product", F16, &[24, 40], &[50, 1], TensorKind::Buffer);
    let relu = b.buffer("relu", F16, &[24, 40]);
    b.node(
        "matmul",
        DataType::F32,
        Matmul {
            a,
            b: other,
            c: product,
        },
    );
    b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[product], relu);
    let text = lowered(b.build(), &Target::parse("mi300x").expect("it is known")).mlir;
    assert!(text.contains("@matmul_24x40x64_f16_"), "{text}");
}

/// The kernels that a graph is compiled to on an MI300X, and the number of structured operations
/// that are left for the compiler.
fn kernels(graph: Graph) -> (Vec<String>, usize) {
    let text = lowered(graph, &Target::parse("mi300x").expect("it is known")).mlir;
    let calls = text.lines().filter(|line| line.contains("\"flow.dispatch\""));
    let name = |line: &str| Some(line.split_once("::@")?.1.split_once(']')?.0.to_owned());
    (
        calls.filter_map(name).collect(),
        text.matches("\"linalg.generic\"").count(),
    )
}

fn rms_norm(b: &mut GraphBuilder, [x, scale, y]: [TensorId; 3]) {
    let epsilon = b.constant("epsilon", DataType::F32, &[1, 1], Scalar::float(1e-5));
    b.node("rms_norm", DataType::F32, RmsNorm::new([x, scale, epsilon], y));
}

#[test]
fn a_softmax_of_odd_rows_is_one_kernel() {
    let mut b = GraphBuilder::new("softmax");
    let x = b.buffer("x", F16, &[4096, 1023]);
    let row = [4096, 1];
    let (most, sum) = (
        b.virtual_tensor("max", DataType::F32, &row),
        b.virtual_tensor("sum", DataType::F32, &row),
    );
    let [moved, powers] = ["moved", "exp"].map(|name| b.virtual_tensor(name, DataType::F32, &[4096, 1023]));
    let y = b.buffer("y", F16, &[4096, 1023]);
    b.node("max", DataType::F32, Reduction::new(ReductionMode::Max, x, most));
    b.pointwise(DataType::F32, PointwiseMode::Sub, &[x, most], moved);
    b.pointwise(DataType::F32, PointwiseMode::Exp, &[moved], powers);
    b.node("sum", DataType::F32, Reduction::new(ReductionMode::Add, powers, sum));
    b.pointwise(DataType::F32, PointwiseMode::Div, &[powers, sum], y);
    let expected = vec!["rows_4096x1023_l64_w64_r4_0".to_owned()];
    assert_eq!(kernels(b.build()), (expected, 0));
}

/// The sum is stored by the kernel that normalizes it.
#[test]
fn a_stored_sum_and_its_normalization_are_one_kernel() {
    let mut b = GraphBuilder::new("residual");
    let dims = [512, 768];
    let [x, residual, sum, y] = ["x", "residual", "sum", "y"].map(|name| b.buffer(name, F16, &dims));
    let scale = b.buffer("scale", F16, &[1, 768]);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[x, residual], sum);
    rms_norm(&mut b, [sum, scale, y]);
    let (found, left) = kernels(b.build());
    assert_eq!((found.len(), left), (1, 0), "{found:?}");
}

/// Where many elements are made of few that all rows have in common, lanes have several rows.
#[test]
fn many_elements_with_operands_in_common_are_one_kernel() {
    let of = |rows: i64| {
        let mut b = GraphBuilder::new("elements");
        let dims = [rows, 256];
        let [x, y] = ["x", "y"].map(|name| b.buffer(name, F16, &dims));
        let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, DataType::F32, &[1, 256]));
        let [scaled, moved] = ["scaled", "moved"].map(|name| b.virtual_tensor(name, DataType::F32, &dims));
        b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, scale], scaled);
        b.pointwise(DataType::F32, PointwiseMode::Add, &[scaled, bias], moved);
        b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[moved], y);
        kernels(b.build())
    };
    assert_eq!(of(200_704), (vec!["rows_200704x256_l64_w256_r1_e8_0".to_owned()], 0));
    let (found, left) = of(512);
    assert!(found.is_empty() && left > 0, "{found:?}");
}

/// The result of a product is an operand of the next product in its declared type, not in the type
/// that it is carried in.
#[test]
fn a_virtual_factor_is_multiplied_in_its_own_type() {
    let mut b = GraphBuilder::new("two layers");
    let x = b.buffer("x", F16, &[512, 768]);
    let (first, second) = (
        b.buffer("first", F16, &[768, 3072]),
        b.buffer("second", F16, &[3072, 768]),
    );
    let inner = b.virtual_tensor("inner", F16, &[512, 3072]);
    let relu = b.virtual_tensor("relu", F16, &[512, 3072]);
    let y = b.buffer("y", F16, &[512, 768]);
    let product = |a, b, c| Matmul { a, b, c };
    b.node("up", DataType::F32, product(x, first, inner));
    b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[inner], relu);
    b.node("down", DataType::F32, product(relu, second, y));
    let (found, left) = kernels(b.build());
    let are_products = found.iter().all(|name| name.starts_with("matmul_"));
    assert!(are_products && left == 0, "{found:?}");
}

/// Combinations take turns with memory that they share: many of them need no more than two. Long
/// rows with that many reductions are not cut into parts: their kernels would have more buffers
/// than the driver passes.
#[test]
fn many_reductions_of_a_row_share_memory() {
    for length in [4096, 40960] {
        let mut b = GraphBuilder::new("again and again");
        let mut x = b.buffer("x", F16, &[4, length]);
        for number in 0..17 {
            let mean = b.virtual_tensor(&format!("mean{number}"), DataType::F32, &[4, 1]);
            let op = Reduction::new(ReductionMode::Avg, x, mean);
            b.node(&format!("avg{number}"), DataType::F32, op);
            let centred = b.virtual_tensor(&format!("centred{number}"), DataType::F32, &[4, length]);
            b.pointwise(DataType::F32, PointwiseMode::Sub, &[x, mean], centred);
            x = centred;
        }
        let y = b.buffer("y", F16, &[4, length]);
        b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
        let text = lowered(b.build(), &Target::parse("mi300x").expect("it is known")).mlir;
        assert_eq!(text.matches("\"memref.alloc\"").count(), 2);
        assert_eq!(text.matches("\"flow.dispatch\"").count(), 1);
    }
}

/// Sums of a long row that need nothing of each other are found by one kernel, and a second one
/// makes the result.
#[test]
fn reductions_that_need_no_other_are_found_together() {
    let mut b = GraphBuilder::new("the greatest and the least");
    let x = b.buffer("x", F16, &[4, 40960]);
    let mut bounds = Vec::new();
    for (name, mode) in [("most", ReductionMode::Max), ("least", ReductionMode::Min)] {
        let bound = b.virtual_tensor(name, DataType::F32, &[4, 1]);
        b.node(name, DataType::F32, Reduction::new(mode, x, bound));
        bounds.push(bound);
    }
    let range = b.virtual_tensor("range", DataType::F32, &[4, 1]);
    b.pointwise(DataType::F32, PointwiseMode::Sub, &bounds, range);
    let y = b.buffer("y", F16, &[4, 40960]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, range], y);
    let (found, left) = kernels(b.build());
    assert_eq!((found.len(), left), (2, 0), "{found:?}");
}

/// In a square, a scale that is computed looks like something that there is one of for each row:
/// what is a row tells the loop, not the extent.
#[test]
fn a_computed_scale_of_a_square_is_no_row() {
    let mut b = GraphBuilder::new("square");
    let (x, w) = (b.buffer("x", F16, &[256, 256]), b.buffer("w", F16, &[1, 256]));
    let one = b.constant("one", DataType::F32, &[1, 1], Scalar::float(1.0));
    let scale = b.virtual_tensor("scale", DataType::F32, &[1, 256]);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[w, one], scale);
    let y = b.buffer("y", F16, &[256, 256]);
    rms_norm(&mut b, [x, scale, y]);
    // The scale is a kernel of the compiler's.
    let (found, left) = kernels(b.build());
    assert_eq!((found.len(), left), (1, 1), "{found:?}");
}

/// The gradients of an attention with these numbers of heads of q, and of k and v.
fn attention_gradients(heads: [i64; 2], add: impl FnOnce(&mut GraphBuilder, &mut SdpaBackward)) -> Graph {
    let mut b = GraphBuilder::new("sdpa backward");
    let [of_q, of_k] = heads;
    let [q, o, d_o, dq] = ["q", "o", "do", "dq"].map(|name| b.buffer(name, F16, &[2, of_q, 100, 64]));
    let [k, v, dk, dv] = ["k", "v", "dk", "dv"].map(|name| b.buffer(name, F16, &[2, of_k, 60, 64]));
    let stats = b.buffer("stats", DataType::F32, &[2, of_q, 100, 1]);
    let mut op = SdpaBackward::new([q, k, v, o, d_o, stats], [dq, dk, dv]);
    add(&mut b, &mut op);
    b.node("sdpa", DataType::F32, Box::new(op));
    b.build()
}

#[test]
fn gradients_of_attention_have_no_scores_in_memory() {
    let mi300x = Target::parse("mi300x").expect("it is known");
    let scores = "tensor<2x6x100x60x";
    for heads in [6, 2] {
        let graph = attention_gradients([6, heads], |_, op| op.right_bound = Some(0));
        let emitted = lowered(graph, &mi300x).mlir;
        for side in ["queries", "keys"] {
            assert!(emitted.contains(&format!("@gradients_of_{side}_")), "{emitted}");
        }
        assert!(!emitted.contains(scores), "{emitted}");
    }
    // MLIR reads no float without a point: the kernel would be rejected.
    let unscaled = attention_gradients([6, 6], |_, op| op.attn_scale_value = Some(0.0));
    let emitted = lowered(unscaled, &mi300x).mlir;
    assert!(
        emitted.contains("@gradients_of_") && !emitted.contains("= 0e0"),
        "{emitted}"
    );
    // What the kernels do not do is not ignored.
    let masked = attention_gradients([6, 6], |b, op| {
        op.attn_mask = Some(b.buffer("mask", F16, &[2, 6, 100, 60]));
    });
    let emitted = lowered(masked, &mi300x).mlir;
    assert!(emitted.contains(scores) && !emitted.contains("@gradients_of_"));
}
