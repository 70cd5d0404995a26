//! Inference of the shapes of virtual tensors from those given at execution. The conformance suites
//! compare the results of executions.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use rotini_graph::{
    BlockScaleQuantize, ConvDgrad, ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, MoeGroupedMatmul,
    MoeGroupedMatmulBwd, MoeMode, OverrideError, PaddingMode, PointwiseMode, Reduction, ReductionMode, ResampleBwd,
    ResampleFwd, ResampleMode, ShapeOverride, TensorId,
};

const F32: DataType = DataType::F32;

/// Returns a graph whose shapes are declared as upper bounds.
fn declared(builder: GraphBuilder) -> Graph {
    let mut graph = builder.build();
    graph.override_shapes = true;
    graph.validate().unwrap();
    graph
}

/// Returns the graph with packed buffers of other extents.
fn with(graph: &Graph, shapes: &[(TensorId, &[i64])]) -> Result<Graph, OverrideError> {
    let packed = |dims: &[i64]| -> Vec<i64> {
        let behind = |axis: usize| dims[axis + 1..].iter().product();
        (0..dims.len()).map(behind).collect()
    };
    let strides: Vec<Vec<i64>> = shapes.iter().map(|(_, dims)| packed(dims)).collect();
    let overrides: Vec<_> = shapes
        .iter()
        .zip(&strides)
        .map(|((id, dims), strides)| ShapeOverride {
            uid: graph.tensor(*id).unwrap().uid,
            dims,
            strides,
        })
        .collect();
    graph.with_shapes(&overrides)
}

fn dims(graph: &Graph, id: TensorId) -> &[i64] {
    &graph.tensor(id).unwrap().dims
}

#[test]
fn pooling_and_its_gradient() {
    let mut b = GraphBuilder::new("pools");
    let x = b.buffer("x", F32, &[2, 3, 9, 8]);
    let pooled = b.virtual_tensor("pooled", F32, &[2, 3, 4, 4]);
    let dx = b.virtual_tensor("dx", F32, &[2, 3, 9, 8]);
    let y = b.buffer("y", F32, &[2, 3, 9, 8]);
    let (pre_padding, post_padding) = (vec![0, 0], vec![0, 0]);
    let (stride, window) = (vec![2, 2], vec![2, 2]);
    let (resample_mode, padding_mode) = (ResampleMode::AvgpoolIncludePadding, PaddingMode::Zero);
    b.node(
        "pool",
        F32,
        ResampleFwd {
            x,
            y: pooled,
            index: None,
            pre_padding: pre_padding.clone(),
            post_padding: post_padding.clone(),
            stride: stride.clone(),
            window: window.clone(),
            resample_mode,
            padding_mode,
            generate_index: false,
        },
    );
    b.node(
        "gradient",
        F32,
        ResampleBwd {
            dy: pooled,
            index: None,
            dx,
            pre_padding,
            post_padding,
            stride,
            window,
            resample_mode,
            padding_mode,
        },
    );
    b.pointwise(F32, PointwiseMode::Add, &[x, dx], y);
    let graph = declared(b);
    let small = with(&graph, &[(x, &[1, 3, 9, 6]), (y, &[1, 3, 9, 6])]).unwrap();
    assert_eq!(dims(&small, pooled), [1, 3, 4, 3]);
    // The ninth row is in no window: only the declared extent shows that the row exists.
    assert_eq!(dims(&small, dx), [1, 3, 9, 6]);
    // Both 6 and 7 rows are pooled to three: the addition determines which.
    for rows in [6, 7] {
        let small = with(&graph, &[(x, &[1, 3, rows, 6]), (y, &[1, 3, rows, 6])]).unwrap();
        assert_eq!(dims(&small, dx), [1, 3, rows, 6]);
    }
    // The pooled tensor has four rows as before, but the input has 8.
    let small = with(&graph, &[(x, &[1, 3, 8, 6]), (y, &[1, 3, 8, 6])]).unwrap();
    assert_eq!(dims(&small, dx), [1, 3, 8, 6]);
    assert!(!small.override_shapes);
}

#[test]
fn gradients_of_strided_convolutions() {
    let mut b = GraphBuilder::new("dgrad");
    let dy = b.buffer("dy", F32, &[2, 4, 5, 5]);
    let w = b.buffer("w", F32, &[4, 3, 3, 3]);
    let dx = b.virtual_tensor("dx", F32, &[2, 3, 10, 9]);
    let y = b.buffer("y", F32, &[2, 3, 10, 9]);
    let mut geometry = ConvGeometry::same(2, 1);
    geometry.stride = vec![2, 2];
    b.node("dgrad", F32, ConvDgrad { dy, w, dx, geometry });
    b.pointwise(F32, PointwiseMode::Abs, &[dx], y);
    let graph = declared(b);
    let small = with(&graph, &[(dy, &[1, 4, 5, 3]), (y, &[1, 3, 10, 5])]).unwrap();
    assert_eq!(dims(&small, dx), [1, 3, 10, 5]);
    // Nine rows give five rows of dy too, but eight do not.
    let other = with(&graph, &[(dy, &[1, 4, 5, 3]), (y, &[1, 3, 9, 5])]).unwrap();
    assert_eq!(dims(&other, dx), [1, 3, 9, 5]);
    let wrong = with(&graph, &[(dy, &[1, 4, 5, 3]), (y, &[1, 3, 8, 5])]).unwrap_err();
    assert!(
        wrong
            .to_string()
            .starts_with("with these shapes the graph is not valid: node 'ABS'"),
        "{wrong}"
    );
}

/// The mean over 5 elements differs from that over 6, and nothing in the graph determines the
/// number.
#[test]
fn extents_that_nothing_says_are_refused() {
    let mut b = GraphBuilder::new("mean of a gradient");
    let dy = b.buffer("dy", F32, &[2, 1, 4, 4]);
    let w = b.buffer("w", F32, &[1, 1, 3, 3]);
    let dx = b.virtual_tensor("dx", F32, &[2, 1, 8, 8]);
    let y = b.buffer("y", F32, &[2, 1, 1, 1]);
    let mut geometry = ConvGeometry::same(2, 1);
    geometry.stride = vec![2, 2];
    b.node("dgrad", F32, ConvDgrad { dy, w, dx, geometry });
    b.node("mean", F32, Reduction::new(ReductionMode::Avg, dx, y));
    let graph = declared(b);
    let unknown = with(&graph, &[(dy, &[2, 1, 3, 4])]).unwrap_err();
    assert!(matches!(unknown, OverrideError::Ambiguous { .. }), "{unknown}");
    assert!(unknown.to_string().contains("'dx'"), "{unknown}");
    // One image instead of two leaves the other extents unchanged.
    let small = with(&graph, &[(dy, &[1, 1, 4, 4]), (y, &[1, 1, 1, 1])]).unwrap();
    assert_eq!(dims(&small, dx), [1, 1, 8, 8]);
}

/// Axes that only the output has keep their declared extents.
#[test]
fn outputs_larger_than_their_operands() {
    let mut b = GraphBuilder::new("repeat");
    let x = b.buffer("x", F32, &[6]);
    let t = b.virtual_tensor("t", F32, &[4, 3, 6]);
    let z = b.buffer("z", F32, &[1, 3, 1]);
    let y = b.buffer("y", F32, &[4, 3, 6]);
    b.pointwise(F32, PointwiseMode::Abs, &[x], t);
    b.pointwise(F32, PointwiseMode::Add, &[t, z], y);
    let graph = declared(b);
    let small = with(&graph, &[(x, &[5]), (y, &[4, 3, 5])]).unwrap();
    assert_eq!(dims(&small, t), [4, 3, 5]);
    assert_eq!(small.tensor(t).unwrap().strides, [15, 5, 1]);
}

#[test]
fn only_what_is_declared_so_has_other_shapes() {
    let mut b = GraphBuilder::new("plain");
    let x = b.buffer("x", F32, &[6]);
    let y = b.buffer("y", F32, &[6]);
    b.pointwise(F32, PointwiseMode::Abs, &[x], y);
    let graph = b.build();
    assert_eq!(with(&graph, &[(x, &[5]), (y, &[5])]), Err(OverrideError::NotDeclared));
}

/// Extents that do not come from the first operand follow from the operation.
#[test]
fn filters_groups_and_scales() {
    let mut b = GraphBuilder::new("wgrad");
    let x = b.buffer("x", F32, &[16, 32, 8, 8]);
    let dy = b.buffer("dy", F32, &[16, 16, 8, 8]);
    let dw = b.virtual_tensor("dw", F32, &[16, 8, 3, 3]);
    let out = b.buffer("out", F32, &[16, 8, 3, 3]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("wgrad", F32, ConvWgrad { x, dy, dw, geometry });
    b.pointwise(F32, PointwiseMode::Abs, &[dw], out);
    let graph = declared(b);
    // The number of images equals the number of filters: fewer images must not mean fewer filters.
    let small = with(&graph, &[(x, &[4, 32, 8, 8]), (dy, &[4, 16, 8, 8])]).unwrap();
    assert_eq!(dims(&small, dw), [16, 8, 3, 3]);
    let shapes: [(TensorId, &[i64]); 3] = [(x, &[4, 16, 8, 8]), (dy, &[4, 8, 8, 8]), (out, &[8, 4, 3, 3])];
    assert_eq!(dims(&with(&graph, &shapes).unwrap(), dw), [8, 4, 3, 3]);

    let mut b = GraphBuilder::new("gather");
    let token = b.buffer("token", F32, &[1, 6, 6]);
    let weight = b.buffer("weight", F32, &[2, 6, 4]);
    let first_token_offset = b.buffer("offset", DataType::I32, &[2, 1, 1]);
    let index = b.buffer("index", DataType::I32, &[1, 6, 1]);
    let t = b.virtual_tensor("t", F32, &[1, 6, 4]);
    let output = b.buffer("output", F32, &[1, 6, 4]);
    let gather = MoeGroupedMatmul {
        token,
        weight,
        first_token_offset,
        token_index: Some(index),
        token_ks: None,
        output: t,
        mode: MoeMode::Gather,
        top_k: 0,
    };
    b.node("gather", F32, gather);
    b.pointwise(F32, PointwiseMode::Abs, &[t], output);
    let graph = declared(b);
    let small = with(&graph, &[(index, &[1, 3, 1]), (output, &[1, 3, 4])]).unwrap();
    assert_eq!(dims(&small, t), [1, 3, 4]);

    let mut b = GraphBuilder::new("dweight");
    let doutput = b.buffer("doutput", F32, &[1, 6, 4]);
    let token = b.buffer("token", F32, &[1, 6, 6]);
    let first_token_offset = b.buffer("offset", DataType::I32, &[6, 1, 1]);
    let dweight = b.virtual_tensor("dweight", F32, &[6, 6, 4]);
    let output = b.buffer("output", F32, &[6, 6, 4]);
    let gradient = MoeGroupedMatmulBwd {
        doutput,
        token,
        first_token_offset,
        dweight,
    };
    b.node("dweight", F32, gradient);
    b.pointwise(F32, PointwiseMode::Abs, &[dweight], output);
    let graph = declared(b);
    let small = with(&graph, &[(doutput, &[1, 3, 4]), (token, &[1, 3, 6])]).unwrap();
    assert_eq!(dims(&small, dweight), [6, 6, 4]);

    let mut b = GraphBuilder::new("quantize");
    let x = b.buffer("x", F32, &[4, 64]);
    let y = b.buffer("y", DataType::F8E4M3, &[4, 64]);
    let scale = b.virtual_tensor("scale", F32, &[4, 2]);
    let out = b.buffer("out", F32, &[4, 2]);
    let quantize = BlockScaleQuantize {
        x,
        y,
        scale,
        block_size: 32,
        axis: None,
        transpose: false,
    };
    b.node("quantize", F32, quantize);
    b.pointwise(F32, PointwiseMode::Abs, &[scale], out);
    let graph = declared(b);
    let small = with(&graph, &[(x, &[3, 32]), (y, &[3, 32]), (out, &[3, 1])]).unwrap();
    assert_eq!(dims(&small, scale), [3, 1]);
}
