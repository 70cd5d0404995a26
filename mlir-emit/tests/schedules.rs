//! Schedules are in the emitted text of a target that has them, and in no other.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_emit::{Emitted, Target, emit};
use rotini_graph::{ConvFprop, ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, Matmul, TensorKind};

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
        (
            gradient as fn() -> Graph,
            "iree_linalg_ext.split_reduction = [2, 56, 32]",
        ),
        (convolution, "workgroup = [1, 2, 32, 64, 0]"),
        (product, "workgroup = [32, 64, 0]"),
    ] {
        let (ours, theirs) = (lowered(graph(), &mi300x), lowered(graph(), &plain));
        assert!(ours.mlir.contains(word), "{}", ours.mlir);
        assert!(!theirs.mlir.contains("iree_gpu") && !theirs.mlir.contains("split_reduction"));
        // The compiler is told the same machine.
        assert_eq!(ours.flags, theirs.flags);
        for other in ["cpu", "gfx90a", "sm_80"] {
            let other = Target::parse(other).expect("it is known");
            assert_eq!(other.unscheduled(), None);
            let text = lowered(graph(), &other).mlir;
            assert!(
                !text.contains("mma_kind") && !text.contains("split_reduction"),
                "{other}"
            );
        }
    }
}
