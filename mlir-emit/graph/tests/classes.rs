//! Classification of faults: malformed graphs, and graphs that break only current rules. The latter
//! are declined, because a newer hipDNN may give them a meaning, and hipDNN asks the next engine
//! only after a decline.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use rotini_graph::*;

const F32: DataType = DataType::F32;
const MALFORMED: bool = true;
const DECLINED: bool = false;

type Change = fn(&mut Graph);

/// Y = RELU(T), T = X + B.
fn base() -> Graph {
    let mut b = GraphBuilder::new("base");
    let x = b.buffer("x", F32, &[2, 3, 4]);
    let bias = b.buffer("b", F32, &[1, 3, 1]);
    let t = b.virtual_tensor("t", F32, &[2, 3, 4]);
    let y = b.buffer("y", F32, &[2, 3, 4]);
    b.pointwise(F32, PointwiseMode::Add, &[x, bias], t);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[t], y);
    b.build()
}

fn pointwise(graph: &mut Graph, node: usize) -> &mut Pointwise {
    match &mut graph.nodes[node].op {
        Op::Pointwise(op) => op,
        other => unreachable!("{}", other.kind()),
    }
}

#[track_caller]
fn check(name: &str, mut graph: Graph, is_malformed: bool) {
    let error = graph.validate().unwrap_err();
    assert_eq!(error.is_malformed(), is_malformed, "{name}: {error}");
}

/// Faults of the graph as such, independent of its operations.
#[test]
fn of_graphs_and_tensors() {
    let changes: [(&str, bool, Change); 25] = [
        ("no node", MALFORMED, |g| g.nodes.clear()),
        ("a uid twice", MALFORMED, |g| g.tensors[1].uid = 1),
        ("a reference to nothing", MALFORMED, |g| {
            pointwise(g, 1).out_0 = TensorId(9)
        }),
        ("rows found through nothing", MALFORMED, |g| {
            g.tensors[0].ragged_offset = Some(TensorId(9))
        }),
        ("two writers", MALFORMED, |g| pointwise(g, 0).out_0 = TensorId(3)),
        ("a value that is written", MALFORMED, |g| {
            g.tensors[3].kind = TensorKind::RuntimeScalar
        }),
        ("a virtual tensor of nothing", MALFORMED, |g| {
            g.tensors[0].kind = TensorKind::Virtual
        }),
        ("a cycle", MALFORMED, |g| pointwise(g, 0).in_0 = TensorId(3)),
        ("nothing stored", MALFORMED, |g| g.tensors[3].kind = TensorKind::Virtual),
        ("more bytes than addresses", MALFORMED, |g| {
            g.tensors[0].dims[0] = i64::MAX
        }),
        ("an extent that means nothing", MALFORMED, |g| g.tensors[0].dims[0] = -2),
        ("too few strides", MALFORMED, |g| g.tensors[0].strides = vec![1; 2]),
        ("an alignment below 0", MALFORMED, |g| g.tensors[0].alignment = -16),
        ("an operand too few", MALFORMED, |g| pointwise(g, 0).in_1 = None),
        ("no elements", DECLINED, |g| g.tensors[0].dims[0] = 0),
        ("an extent that is not known", DECLINED, |g| g.tensors[0].dims[0] = -1),
        ("no strides", DECLINED, |g| g.tensors[0].strides.clear()),
        ("a stride below 0", DECLINED, |g| g.tensors[0].strides[0] = -12),
        ("no axes", DECLINED, |g| g.tensors[0].dims.clear()),
        ("many axes", DECLINED, |g| g.tensors[0].dims = vec![1; MAX_RANK + 1]),
        ("an alignment that is not known", DECLINED, |g| {
            g.tensors[0].alignment = 0
        }),
        ("another alignment", DECLINED, |g| g.tensors[0].alignment = 24),
        ("elements that overlap", DECLINED, |g| {
            g.tensors[3].strides = vec![0, 4, 1]
        }),
        ("a value of another type", DECLINED, |g| {
            g.tensors[1].kind = TensorKind::Constant(Scalar::float(0.5));
            g.tensors[1].dtype = DataType::I32;
        }),
        ("many nodes", DECLINED, |g| {
            g.nodes = vec![g.nodes[0].clone(); MAX_GRAPH_SIZE + 1]
        }),
    ];
    for (name, is_malformed, change) in changes {
        let mut graph = base();
        graph.validate().unwrap();
        change(&mut graph);
        check(name, graph, is_malformed);
    }
}

#[test]
fn of_pointwise_operations() {
    let changes: [(&str, bool, Change); 6] = [
        ("an operand too many", DECLINED, |g| {
            pointwise(g, 1).in_1 = Some(TensorId(0))
        }),
        ("a parameter of another mode", DECLINED, |g| {
            pointwise(g, 1).swish_beta = Some(1.0)
        }),
        ("extents that do not broadcast", DECLINED, |g| {
            g.tensors[1].dims = vec![1, 2, 1]
        }),
        ("no axis", MALFORMED, |g| {
            pointwise(g, 1).mode = PointwiseMode::GenIndex;
        }),
        ("an axis from behind", DECLINED, |g| {
            pointwise(g, 1).mode = PointwiseMode::GenIndex;
            pointwise(g, 1).axis = Some(-1);
        }),
        ("an axis beyond the last", MALFORMED, |g| {
            pointwise(g, 1).mode = PointwiseMode::GenIndex;
            pointwise(g, 1).axis = Some(3);
        }),
    ];
    for (name, is_malformed, change) in changes {
        let mut graph = base();
        change(&mut graph);
        check(name, graph, is_malformed);
    }
}

/// Returns a graph of one node over tensors with these dims.
fn one<O: Into<Op>>(dims: &[&[i64]], op: impl FnOnce(&[TensorId]) -> O) -> Graph {
    let mut b = GraphBuilder::new("one");
    let ids: Vec<TensorId> = dims.iter().map(|dims| b.buffer("", F32, dims)).collect();
    let op = op(&ids);
    b.node("n", F32, op);
    b.build()
}

#[test]
fn of_products() {
    let matmul = |a: &[i64], b: &[i64], c: &[i64]| {
        one(&[a, b, c], |t| Matmul {
            a: t[0],
            b: t[1],
            c: t[2],
        })
    };
    check("terms that differ", matmul(&[2, 3], &[4, 5], &[2, 5]), MALFORMED);
    check("vectors", matmul(&[3], &[3], &[1]), DECLINED);
    check("a result of low rank", matmul(&[1, 2, 3], &[3, 4], &[2, 4]), DECLINED);
    check("batches", matmul(&[4, 2, 3], &[6, 3, 4], &[12, 2, 4]), DECLINED);
    check("another result", matmul(&[2, 3], &[3, 4], &[2, 5]), DECLINED);

    let conv = |x: &[i64], w: &[i64], y: &[i64], change: fn(&mut ConvGeometry)| {
        let mut geometry = ConvGeometry::same(2, 1);
        change(&mut geometry);
        one(&[x, w, y], |t| ConvFprop {
            x: t[0],
            w: t[1],
            y: t[2],
            geometry,
        })
    };
    let [x, w, y] = [[2, 4, 8, 8], [6, 4, 3, 3], [2, 6, 8, 8]];
    conv(&x, &w, &y, |_| ()).validate().unwrap();
    let channels = conv(&x, &[6, 3, 3, 3], &y, |_| ());
    check("channels that do not divide", channels, MALFORMED);
    check("no step", conv(&x, &w, &y, |g| g.stride[0] = 0), MALFORMED);
    check("no dilation", conv(&x, &w, &y, |g| g.dilation[0] = -1), MALFORMED);
    check("ranks", conv(&x, &w, &[2, 6, 8], |_| ()), DECLINED);
    check("another result", conv(&x, &w, &[2, 6, 9, 8], |_| ()), DECLINED);
    check(
        "one number for all axes",
        conv(&x, &w, &y, |g| g.stride = vec![1]),
        DECLINED,
    );
    check("no windows", conv(&x, &w, &y, |g| g.dilation[0] = 9), DECLINED);
    check("all cut off", conv(&x, &w, &y, |g| g.pre_padding[0] = -9), DECLINED);
}

#[test]
fn of_reductions_and_pooling() {
    let reduction = |from: &[i64], to: &[i64]| one(&[from, to], |t| Reduction::new(ReductionMode::Add, t[0], t[1]));
    check("ranks", reduction(&[2, 3], &[2]), DECLINED);
    check("a part of an axis", reduction(&[2, 4], &[2, 2]), DECLINED);

    let pool = |x: &[i64], y: &[i64], change: fn(&mut ResampleFwd)| {
        one(&[x, y], |t| {
            let mut op = ResampleFwd {
                x: t[0],
                y: t[1],
                index: None,
                resample_mode: ResampleMode::AvgpoolIncludePadding,
                padding_mode: PaddingMode::Zero,
                pre_padding: vec![0; 2],
                post_padding: vec![0; 2],
                stride: vec![2; 2],
                window: vec![2; 2],
                generate_index: false,
            };
            change(&mut op);
            op
        })
    };
    let [x, y] = [[2, 4, 7, 8], [2, 4, 3, 4]];
    pool(&x, &y, |_| ()).validate().unwrap();
    check("windows beyond the end", pool(&x, &[2, 4, 4, 4], |_| ()), DECLINED);
    check("padding below 0", pool(&x, &y, |op| op.pre_padding[0] = -1), DECLINED);
    check(
        "no padding mode",
        pool(&x, &[2, 4, 4, 5], |op| {
            op.resample_mode = ResampleMode::Maxpool;
            op.padding_mode = PaddingMode::NotSet;
            (op.pre_padding, op.post_padding) = (vec![1; 2], vec![1; 2]);
        }),
        DECLINED,
    );
    check("no window", pool(&x, &y, |op| op.window[0] = 0), MALFORMED);
    check("no step", pool(&x, &y, |op| op.stride[0] = 0), MALFORMED);
}

/// Newer versions of hipDNN may allow what these rules forbid: sequence lengths of other types,
/// masks of other ranks, only some of the statistics.
#[test]
fn of_normalizations_and_attention() {
    let norm = |dims: [&[i64]; 5]| {
        one(&[&[2, 3, 4, 5], dims[0], dims[1], dims[2], dims[3], dims[4]], |t| {
            BatchnormInference {
                x: t[0],
                mean: t[1],
                inv_variance: t[2],
                scale: t[3],
                bias: t[4],
                y: t[5],
            }
        })
    };
    let [channels, y] = [[1, 3, 1, 1], [2, 3, 4, 5]];
    norm([&channels, &channels, &channels, &channels, &y])
        .validate()
        .unwrap();
    let images = norm([&[2, 3, 1, 1], &channels, &channels, &channels, &y]);
    check("a mean for each image", images, DECLINED);
    check(
        "another result",
        norm([&channels, &channels, &channels, &channels, &[2, 3, 4, 6]]),
        DECLINED,
    );
    let gradient = one(&[&[2, 3, 4, 6], &y, &channels, &y, &channels, &channels], |t| {
        BatchnormBackward::new([t[0], t[1], t[2]], [t[3], t[4], t[5]])
    });
    check("a gradient unlike its tensor", gradient, MALFORMED);
}
