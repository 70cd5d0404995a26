//! No module has an operation whose result nothing reads.

use rotini_emit::{Target, emit, plan};
use rotini_graph::{ConvFprop, ConvGeometry, DataType, Graph, GraphBuilder, Matmul, NormalGraph, PointwiseMode};

const F16: DataType = DataType::F16;
const F32: DataType = DataType::F32;

fn normal(mut graph: Graph) -> NormalGraph {
    graph.validate().expect("the graph is valid");
    graph.normalise().0
}

fn kernels(graph: &NormalGraph, target: &str) -> Vec<String> {
    let target = Target::parse(target).expect("it is known");
    let plan = plan(graph, &target).expect("the graph is supported");
    plan.kernels.into_iter().filter_map(|kernel| kernel.name).collect()
}

#[test]
fn a_product_that_nothing_reads_is_not_computed() {
    let mut b = GraphBuilder::new("unread");
    let [a, c] = ["a", "c"].map(|name| b.buffer(name, F16, &[1024, 1024]));
    let product = b.virtual_tensor("product", F32, &[1024, 1024]);
    let y = b.buffer("y", F16, &[1024, 1024]);
    b.node("matmul", F32, Matmul { a, b: c, c: product });
    b.pointwise(F32, PointwiseMode::Add, &[a, c], y);
    let graph = normal(b.build());
    assert_eq!(kernels(&graph, "mi300x"), Vec::<String>::new());
    for target in ["mi300x", "x86-64-v4", "sm_80"] {
        let target = Target::parse(target).expect("it is known");
        let mlir = emit(&graph, &target).expect("the graph is supported").mlir;
        assert!(!mlir.contains("mulf"), "{target}: {mlir}");
        assert!(!mlir.contains("hal.executable.source"), "{target}: {mlir}");
    }
}

/// The kernel for products cannot address an image of 2 GiB. It would read the image with channels
/// innermost, and other forms read it in place.
#[test]
fn no_operand_is_copied_for_a_kernel_that_does_not_exist() {
    let convolution = |batch: i64| {
        let mut b = GraphBuilder::new("conv");
        let x = b.buffer("x", F16, &[batch, 64, 128, 128]);
        let w = b.buffer("w", F16, &[64, 64, 3, 3]);
        let y = b.buffer("y", F16, &[batch, 64, 128, 128]);
        let geometry = ConvGeometry::same(2, 1);
        b.node("conv", F32, ConvFprop { x, w, y, geometry });
        kernels(&normal(b.build()), "mi300x")
    };
    let copies = |kernels: Vec<String>| kernels.iter().filter(|name| name.starts_with("transpose")).count();
    assert_eq!(copies(convolution(8)), 2);
    assert_eq!(copies(convolution(1024)), 0);
}
