//! Schedules are in the emitted text of a target that has them, and in no other.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_emit::{Emitted, Target, emit};
use rotini_graph::{
    ConvFprop, ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, Matmul, PointwiseMode, TensorKind,
};

const F16: DataType = DataType::F16;

fn lowered(mut graph: Graph, target: &Target) -> Emitted {
    graph.validate().expect("the graph is valid");
    emit(&graph.normalise().0, target).expect("the graph is supported")
}

fn gradient() -> Graph {
    let mut b = GraphBuilder::new("wgrad");
    let x = b.buffer_channels_last("x", F16, &[32, 64, 56, 56]);
    let dy = b.buffer_channels_last("dy", F16, &[32, 64, 56, 56]);
    let dw = b.buffer_channels_last("dw", F16, &[64, 64, 3, 3]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("wgrad", DataType::F32, ConvWgrad { x, dy, dw, geometry });
    b.build()
}

fn convolution() -> Graph {
    let mut b = GraphBuilder::new("conv");
    let x = b.buffer_channels_last("x", F16, &[32, 128, 28, 28]);
    let w = b.buffer_channels_last("w", F16, &[128, 128, 3, 3]);
    let y = b.buffer_channels_last("y", F16, &[32, 128, 28, 28]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("conv", DataType::F32, ConvFprop { x, w, y, geometry });
    b.build()
}

fn product() -> Graph {
    let mut b = GraphBuilder::new("matmul");
    let a = b.buffer("a", F16, &[1, 1024, 1024]);
    let columns = b.tensor("b", F16, &[1, 1024, 2048], &[1024 * 2048, 1, 1024], TensorKind::Buffer);
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
        (gradient as fn() -> Graph, "@wgrad_64x64_f16_"),
        (convolution, "@conv_25088x128_f16_"),
        (product, "@matmul_1024x2048x1024_f16_"),
    ] {
        let (ours, theirs) = (lowered(graph(), &mi300x), lowered(graph(), &plain));
        assert!(ours.mlir.contains(word), "{}", ours.mlir);
        assert!(!theirs.mlir.contains("iree_gpu"));
        // The compiler is told the same machine.
        assert_eq!(ours.flags, theirs.flags);
        for other in ["cpu", "gfx90a", "sm_80"] {
            let other = Target::parse(other).expect("it is known");
            assert_eq!(other.unscheduled(), None);
            let text = lowered(graph(), &other).mlir;
            assert!(!text.contains("flow.dispatch") && !text.contains("mma_kind"), "{other}");
        }
    }
}

#[test]
fn a_schedule_can_be_tried() {
    let tried = Target::parse("mi300x:cut-64x64_2x2_b2_p4").expect("it is a target");
    assert_eq!(Target::device(&tried.to_string()), "mi300x");
    let text = lowered(product(), &tried).mlir;
    assert!(text.contains("@matmul_1024x2048x1024_f16_64x64_2x2_b2_p4_"), "{text}");
    // Where it does not fit, as where it is no schedule, products have their own.
    for word in ["64x64_2x2_b2_p64", "64x64_2x2_b9"] {
        let other = Target::parse(&format!("mi300x:cut-{word}")).expect("it is a target");
        let own = lowered(product(), &Target::parse("mi300x").expect("it is known"));
        assert_eq!(lowered(product(), &other).mlir, own.mlir);
    }
}

/// What is made of a product is part of its kernel, but not behind what reads the product: here the copy to memory with gaps.
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
