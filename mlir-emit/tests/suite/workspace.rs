//! The workspace that is reported before compiling, where the kernels and the fusions are known.

use rotini_emit::{Target, emit, workspace_bound, workspace_limit};
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, PointwiseMode, Scalar, SdpaBackward};

const F16: DataType = DataType::F16;
const F32: DataType = DataType::F32;

fn reported(mut graph: Graph, target: &str) -> u64 {
    graph.validate().expect("the graph is valid");
    let target = Target::parse(target).expect("it is known");
    let graph = graph.normalise().0;
    let bound = workspace_bound(&graph, &target).expect("the graph is supported");
    assert!(bound <= workspace_limit(&graph, &target).expect("no overflow"));
    bound
}

/// `x` of these extents, each mode applied to what the one before it made.
fn chain(dtype: DataType, dims: &[i64], modes: &[PointwiseMode]) -> Graph {
    let mut b = GraphBuilder::new("chain");
    let mut last = b.buffer("x", dtype, dims);
    for (position, &mode) in modes.iter().enumerate() {
        let next = if position + 1 == modes.len() {
            b.buffer("y", dtype, dims)
        } else {
            b.virtual_tensor(&format!("t{position}"), dtype, dims)
        };
        let compute = if dtype.is_float() { dtype } else { DataType::I32 };
        b.pointwise(compute, mode, &[last], next);
        last = next;
    }
    b.build()
}

#[test]
fn elements_from_elements_are_in_no_memory() {
    use PointwiseMode::{Abs, Exp, Neg};
    for target in ["mi300x", "x86-64-v3", "sm_80"] {
        assert_eq!(
            reported(chain(F32, &[1 << 20, 64], &[Exp, Neg, Abs]), target),
            0,
            "{target}"
        );
        // More than 2^31 elements.
        assert_eq!(
            reported(chain(DataType::I8, &[2, 1 << 30], &[Neg]), target),
            0,
            "{target}"
        );
    }
}

/// The gradients of 32 heads of attention with 128 columns.
fn gradients(dtype: DataType, queries: i64) -> Graph {
    let mut b = GraphBuilder::new("gradients");
    let mut buffer = |name: &str| b.buffer(name, dtype, &[1, 32, queries, 128]);
    let [q, k, v, o, d_o, dq, dk, dv] = ["q", "k", "v", "o", "do", "dq", "dk", "dv"].map(&mut buffer);
    let stats = b.buffer("stats", F32, &[1, 32, queries, 1]);
    let op = SdpaBackward::new([q, k, v, o, d_o, stats], [dq, dk, dv]);
    b.node("sdpa", F32, Box::new(op));
    b.build()
}

/// Rows of dO · O are stored, a number for each query, and no scores.
#[test]
fn gradients_of_attention_are_reported_as_their_kernels_need() {
    for queries in [4096, 32768] {
        let reported = reported(gradients(F16, queries), "mi300x");
        assert_eq!(reported, 32 * queries.unsigned_abs() * 4);
    }
    // The compiler's own kernels have the scores in memory. Compiled for gfx90a, such a gradient
    // needs three tensors of them; two were reported.
    for target in ["mi300x:unscheduled", "gfx90a"] {
        assert!(reported(gradients(F16, 4096), target) >= 3 * 32 * 4096 * 4096 * 4);
    }
}

/// The same on CPUs, whose kernels read and store f32: types of 16 bits are converted.
#[test]
fn gradients_of_attention_on_cpus_keep_no_scores() {
    for target in ["x86-64-v3", "x86-64-v4"] {
        for dtype in [F32, F16, DataType::Bf16] {
            let reported = reported(gradients(dtype, 4096), target);
            let bytes = dtype.bytes().expect("it has whole ones");
            let operands = 8 * 32 * 4096 * 128 * bytes + 32 * 4096 * 4;
            let most = if dtype == F32 { 2 } else { 5 } * operands;
            assert!(reported <= most, "{dtype} for {target}: {reported} of {operands}");
            let mut graph = gradients(dtype, 4096);
            graph.validate().expect("the graph is valid");
            let target = Target::parse(target).expect("it is known");
            let text = emit(&graph.normalise().0, &target)
                .expect("the graph is supported")
                .mlir;
            assert!(!text.contains("4096x4096xf"), "{dtype} for {target}");
            assert!(text.contains("gradients_of_queries_") && text.contains("gradients_of_keys_"));
        }
    }
}

/// A product that is also an output is stored for its readers; partial sums of split-K are stored.
#[test]
fn what_others_read_is_counted() {
    let product = |stored: bool| {
        let mut b = GraphBuilder::new("two products");
        let [first, second, third] = [(); 3].map(|()| [1, 512, 512]);
        let a = b.buffer("a", F32, &first);
        let by = b.buffer("b", F32, &second);
        let c = if stored {
            b.buffer("c", F32, &third)
        } else {
            b.virtual_tensor("c", F32, &third)
        };
        b.node("first", F32, Matmul { a, b: by, c });
        let d = b.buffer("d", F32, &third);
        b.node("second", F32, Matmul { a: c, b: by, c: d });
        b.build()
    };
    for stored in [false, true] {
        assert_eq!(reported(product(stored), "mi300x"), 512 * 512 * 4);
    }
    let mut b = GraphBuilder::new("long sums");
    let a = b.buffer("a", F16, &[1, 64, 1 << 16]);
    let by = b.buffer("b", F16, &[1, 1 << 16, 64]);
    let c = b.buffer("c", F16, &[1, 64, 64]);
    b.node("product", F32, Matmul { a, b: by, c });
    let parts = reported(b.build(), "mi300x");
    assert!(parts >= 2 * 64 * 64 * 4 && parts.is_multiple_of(64 * 64 * 4), "{parts}");
}

/// The compiler finds that both results are `x`, computes one and copies it.
#[test]
fn results_that_become_the_same_are_counted() {
    use PointwiseMode::{BinarySelect, LogicalAnd};
    let mut b = GraphBuilder::new("both x");
    let dims = [8, 6];
    let [x, selected, both] = ["x", "selected", "both"].map(|name| b.buffer(name, DataType::Bool, &dims));
    let truth = b.constant("true", DataType::Bool, &[1, 1], Scalar::Integer(1));
    b.pointwise(DataType::I64, BinarySelect, &[x, x, x], selected);
    b.pointwise(DataType::I32, LogicalAnd, &[x, truth], both);
    assert!(reported(b.build(), "x86-64-v3") >= 48);
}
