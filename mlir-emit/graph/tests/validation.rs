//! Validation errors, with the tensor or node that each names.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use rotini_graph::*;

const F32: DataType = DataType::F32;

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

/// Y = X convolved with W.
fn conv() -> Graph {
    let mut b = GraphBuilder::new("conv");
    let x = b.buffer("x", F32, &[2, 4, 8, 8]);
    let w = b.buffer("w", F32, &[6, 2, 3, 3]);
    let y = b.buffer("y", F32, &[2, 6, 8, 8]);
    b.conv_fprop(F32, x, w, y, ConvGeometry::same(2, 1));
    b.build()
}

fn error(mut graph: Graph, change: impl FnOnce(&mut Graph)) -> String {
    graph.validate().unwrap();
    change(&mut graph);
    graph.validate().unwrap_err().to_string()
}

/// Checks the message after a change of `base`.
#[track_caller]
fn fails(message: &str, change: impl FnOnce(&mut Graph)) {
    assert_eq!(error(base(), change), message);
}

/// Checks the message after a change of `conv`.
#[track_caller]
fn conv_fails(message: &str, change: impl FnOnce(&mut Graph, &mut ConvGeometry)) {
    let change = |graph: &mut Graph| {
        let Op::ConvFprop(mut op) = graph.nodes[0].op.clone() else {
            unreachable!()
        };
        change(graph, &mut op.geometry);
        graph.nodes[0].op = op.into();
    };
    assert_eq!(error(conv(), change), message);
}

fn op(graph: &mut Graph, node: usize) -> &mut Pointwise {
    match &mut graph.nodes[node].op {
        Op::Pointwise(op) => op,
        other => unreachable!("{}", other.kind()),
    }
}

#[test]
fn sizes_of_graphs() {
    fails("the graph has no nodes", |graph| graph.nodes.clear());
    fails("the graph has 4097 tensors, more than the limit of 4096", |graph| {
        graph.tensors = vec![graph.tensors[0].clone(); MAX_GRAPH_SIZE + 1];
    });
    fails("the graph has 4097 nodes, more than the limit of 4096", |graph| {
        graph.nodes = vec![graph.nodes[0].clone(); MAX_GRAPH_SIZE + 1];
    });
}

#[test]
fn references() {
    fails("uid 1 is given to two tensors", |graph| graph.tensors[3].uid = 1);
    fails(
        "node 'ADD' (pointwise): in_1 refers to tensor 4, which does not exist",
        |graph| {
            op(graph, 0).in_1 = Some(TensorId(4));
        },
    );
    fails(
        "node 'RELU_FWD' (pointwise): out_0 refers to tensor 9, which does not exist",
        |graph| {
            op(graph, 1).out_0 = TensorId(9);
        },
    );
    fails(
        "tensor 'x' (uid 1): ragged_offset refers to tensor 9, which does not exist",
        |graph| {
            graph.tensors[0].ragged_offset = Some(TensorId(9));
        },
    );
}

#[test]
fn tensors_without_labels_are_named_by_uid_and_nodes_by_position() {
    fails("tensor 1: dim 0 is 0, but must be at least 1", |graph| {
        graph.tensors[0].name.clear();
        graph.tensors[0].dims[0] = 0;
    });
    fails(
        "node 1 (pointwise): out_0 refers to tensor 9, which does not exist",
        |graph| {
            graph.nodes[1].name.clear();
            op(graph, 1).out_0 = TensorId(9);
        },
    );
}

#[test]
fn extents_and_strides() {
    let x = |change: fn(&mut Tensor)| move |graph: &mut Graph| change(&mut graph.tensors[0]);
    fails("tensor 'x' (uid 1): rank 0 is outside 1 to 8", x(|x| x.dims.clear()));
    fails(
        "tensor 'x' (uid 1): rank 9 is outside 1 to 8",
        x(|x| x.dims = vec![1; 9]),
    );
    fails(
        "tensor 'x' (uid 1): 3 dims but 2 strides",
        x(|x| x.strides = vec![1; 2]),
    );
    fails("tensor 'x' (uid 1): 3 dims but 0 strides", x(|x| x.strides.clear()));
    fails(
        "tensor 'x' (uid 1): dim 1 is 0, but must be at least 1",
        x(|x| x.dims[1] = 0),
    );
    fails(
        "tensor 'x' (uid 1): dim 2 is -4, but must be at least 1",
        x(|x| x.dims[2] = -4),
    );
    fails(
        "tensor 'x' (uid 1): stride 0 is -12, but must not be negative",
        x(|x| x.strides[0] = -12),
    );
}

#[test]
fn sizes_of_tensors() {
    let overflow = "tensor 'x' (uid 1): its size in bytes overflows";
    let x = |dims: [i64; 3], strides: [i64; 3]| {
        move |graph: &mut Graph| {
            graph.tensors[0].dims = dims.to_vec();
            graph.tensors[0].strides = strides.to_vec();
        }
    };
    fails(overflow, x([1 << 40, 1 << 40, 1], [1 << 40, 1, 1]));
    fails(overflow, x([2, 3, i64::MAX], [12, 4, 1]));
    fails(overflow, x([2, 3, 4], [i64::MAX, 4, 1]));
    fails(overflow, x([2, 3, 4], [i64::MAX / 2, i64::MAX / 2, 1]));
    // The tensor spans one element of memory, but has 2^80 elements.
    fails(overflow, x([1 << 40, 1 << 40, 1], [0, 0, 0]));
    // The size fits 64 bits, but exceeds the limit for a tensor.
    fails(overflow, x([1 << 46, 1, 1], [1, 1, 1]));
}

#[test]
fn alignments_and_values() {
    let x = |change: fn(&mut Tensor)| move |graph: &mut Graph| change(&mut graph.tensors[0]);
    for bad in [0, -16, 24, i64::MIN] {
        let message = format!("tensor 'x' (uid 1): alignment {bad} is not a positive power of two");
        fails(&message, |graph| graph.tensors[0].alignment = bad);
    }
    fails(
        "tensor 'x' (uid 1): its value does not fit its type i32",
        x(|x| {
            x.dtype = DataType::I32;
            x.kind = TensorKind::Constant(Scalar::float(1.0));
        }),
    );
    // Types of codes represent few integers, and a constant must be exactly one of them.
    for (dtype, good, bad) in [
        (DataType::F8E4M3, [-448, 18], [17, 449]),
        (DataType::F8E4M3Fnuz, [240, 15], [-17, 256]),
        (DataType::F8E5M2, [57_344, -7], [9, 65_536]),
        (DataType::F8E5M2Fnuz, [57_344, 10], [11, i64::MIN]),
        (DataType::F6E2M3, [7, -5], [8, -8]),
        (DataType::F6E3M2, [28, 7], [9, 32]),
        (DataType::F4E2M1, [6, 0], [5, -8]),
        (DataType::F8E8M0, [1, 1 << 40], [0, 3]),
    ] {
        for (values, fits) in [(good, true), (bad, false)] {
            for value in values {
                assert_eq!(dtype.holds_integer(value), fits, "{value} in {dtype}");
            }
        }
    }
    for (dtype, least, most) in [
        (DataType::U8, 0, 255),
        (DataType::I8, -128, 127),
        (DataType::I4, -8, 7),
        (DataType::I32, -2_147_483_648, 2_147_483_647),
    ] {
        let message = format!("tensor 'x' (uid 1): its value does not fit its type {dtype}");
        for bad in [least - 1, most + 1] {
            fails(&message, |graph| {
                graph.tensors[0].dtype = dtype;
                graph.tensors[0].kind = TensorKind::Constant(Scalar::Integer(bad));
            });
        }
        for good in [least, most] {
            let mut graph = base();
            graph.tensors[0].dtype = dtype;
            graph.tensors[0].kind = TensorKind::Constant(Scalar::Integer(good));
            assert_eq!(graph.validate(), Ok(()));
        }
    }
}

#[test]
fn definitions() {
    let writes = "node 'RELU_FWD' (pointwise): out_0 writes tensor 'y' (uid 4), which holds a value of its own";
    fails(writes, |graph| {
        graph.tensors[3].kind = TensorKind::Constant(Scalar::float(1.0))
    });
    fails(writes, |graph| graph.tensors[3].kind = TensorKind::RuntimeScalar);
    fails(
        "node 'RELU_FWD' (pointwise): out_0 writes tensor 't' (uid 3), which node 'ADD' (pointwise) writes too",
        |graph| op(graph, 1).out_0 = TensorId(2),
    );
    fails(
        "node 'ADD' (pointwise): in_0 reads tensor 'x' (uid 1), which is virtual and which no node writes",
        |graph| graph.tensors[0].kind = TensorKind::Virtual,
    );
    fails("every result of the graph is virtual: nothing is stored", |graph| {
        graph.tensors[3].kind = TensorKind::Virtual;
    });
}

#[test]
fn outputs_must_not_overlap() {
    let overlap = "tensor 'y' (uid 4): two elements of this output share an address";
    let y = |strides: [i64; 3]| move |graph: &mut Graph| graph.tensors[3].strides = strides.to_vec();
    fails(overlap, y([0, 4, 1]));
    fails(overlap, y([12, 3, 1]));
    fails(overlap, y([1, 1, 1]));
    // Gaps and any order of axes are allowed; so is an input with stride 0.
    for strides in [[24, 8, 2], [1, 2, 6], [100, 10, 1]] {
        let mut graph = base();
        graph.tensors[3].strides = strides.to_vec();
        assert_eq!(graph.validate(), Ok(()), "{strides:?}");
        graph.tensors[0].strides = vec![0; 3];
        assert_eq!(graph.validate(), Ok(()));
    }
}

#[test]
fn cycles() {
    fails("node 'ADD' (pointwise) is part of a cycle", |graph| {
        op(graph, 0).in_0 = TensorId(2);
    });
    // ADD and RELU read each other's results; ABS, which comes first, only depends on the cycle.
    let mut b = GraphBuilder::new("cycle");
    let [t, u] = ["t", "u"].map(|name| b.virtual_tensor(name, F32, &[4]));
    let y = b.buffer("y", F32, &[4]);
    b.pointwise(F32, PointwiseMode::Abs, &[u], y);
    b.pointwise(F32, PointwiseMode::Add, &[u, u], t);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[t], u);
    let message = b.build().validate().unwrap_err().to_string();
    assert!(
        message == "node 'ADD' (pointwise) is part of a cycle"
            || message == "node 'RELU_FWD' (pointwise) is part of a cycle",
        "{message}"
    );
}

#[test]
fn nodes_are_sorted_and_keep_their_order_where_it_is_free() {
    let mut b = GraphBuilder::new("sort");
    let x = b.buffer("x", F32, &[4]);
    let [t, u] = ["t", "u"].map(|name| b.virtual_tensor(name, F32, &[4]));
    let [y, z] = ["y", "z"].map(|name| b.buffer(name, F32, &[4]));
    b.pointwise(F32, PointwiseMode::Abs, &[u], y);
    b.pointwise(F32, PointwiseMode::Sin, &[x], z);
    b.pointwise(F32, PointwiseMode::Neg, &[t], u);
    b.pointwise(F32, PointwiseMode::Exp, &[x], t);
    let mut graph = b.build();
    graph.validate().unwrap();
    let order: Vec<_> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(order, ["SIN", "EXP", "NEG", "ABS"]);
    let sorted = graph.clone();
    graph.validate().unwrap();
    assert_eq!(graph, sorted, "validating again changes nothing");
}

/// A node runs after all nodes that it reads from, including the one that runs last.
#[test]
fn a_join_comes_after_both_branches() {
    let mut b = GraphBuilder::new("diamond");
    let x = b.buffer("x", F32, &[4]);
    let [t, u, v] = ["t", "u", "v"].map(|name| b.virtual_tensor(name, F32, &[4]));
    let y = b.buffer("y", F32, &[4]);
    b.pointwise(F32, PointwiseMode::Add, &[t, v], y);
    b.pointwise(F32, PointwiseMode::Exp, &[u], v);
    b.pointwise(F32, PointwiseMode::Abs, &[x], t);
    b.pointwise(F32, PointwiseMode::Sin, &[x], u);
    let mut graph = b.build();
    graph.validate().unwrap();
    let order: Vec<_> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(order, ["ABS", "SIN", "EXP", "ADD"]);
}

#[test]
fn convolutions() {
    let at = |what: &str| format!("node 'conv' (convolution fprop): {what}");
    conv_fails(
        &at("stride has 1 entries, but there are 2 spatial dimensions"),
        |_, geometry| {
            geometry.stride = vec![1];
        },
    );
    conv_fails(
        &at("pre_padding has 3 entries, but there are 2 spatial dimensions"),
        |_, geometry| {
            geometry.pre_padding = vec![1; 3];
        },
    );
    conv_fails(
        &at("tensor 'y' (uid 3) has dims [2, 6, 8, 8], but the operation makes [2, 6, 8, 6]"),
        |_, geometry| geometry.post_padding = vec![1, -1],
    );
    conv_fails(
        &at("the dilated filter does not fit the padded input along spatial axis 0"),
        |_, geometry| geometry.pre_padding = vec![-7, 1],
    );
    conv_fails(
        &at("the dilated filter does not fit the padded input along spatial axis 0"),
        |_, geometry| geometry.pre_padding = vec![i64::MIN, 1],
    );
    conv_fails(&at("stride 0 is below 1"), |_, geometry| geometry.stride = vec![0, 1]);
    conv_fails(&at("dilation 0 is below 1"), |_, geometry| {
        geometry.dilation = vec![1, 0]
    });
    conv_fails(
        &at("the dilated filter does not fit the padded input along spatial axis 1"),
        |_, geometry| geometry.dilation = vec![1, 5],
    );
    conv_fails(
        &at("the dilated filter does not fit the padded input along spatial axis 0"),
        |_, geometry| geometry.pre_padding = vec![i64::MAX, 1],
    );
    conv_fails(
        &at("tensor 'y' (uid 3) has dims [2, 6, 8, 8], but the operation makes [2, 6, 4, 4]"),
        |_, geometry| geometry.stride = vec![2, 2],
    );
    conv_fails(
        &at("4 input channels and 6 filters do not divide into groups of 3 channels"),
        |graph, _| graph.tensors[1].dims[1] = 3,
    );
    conv_fails(
        &at("4 input channels and 5 filters do not divide into groups of 2 channels"),
        |graph, _| graph.tensors[1].dims[0] = 5,
    );
    conv_fails(
        &at("ranks of x, w and y are 4, 3 and 4, but must be equal and at least 3"),
        |graph, _| {
            graph.tensors[1].dims.pop();
            graph.tensors[1].strides.pop();
        },
    );
}

#[test]
fn pointwise_operations() {
    let add = |what: &str| format!("node 'ADD' (pointwise): {what}");
    fails(&add("ADD takes 2 operands, but 1 are given"), |graph| {
        op(graph, 0).in_1 = None
    });
    fails(&add("ADD takes 2 operands, but 3 are given"), |graph| {
        op(graph, 0).in_2 = Some(TensorId(0))
    });
    fails(&add("ADD takes 2 operands, but 2 are given"), |graph| {
        let op = op(graph, 0);
        op.in_2 = op.in_1.take();
    });
    fails(&add("swish_beta means nothing to ADD"), |graph| {
        op(graph, 0).swish_beta = Some(1.0)
    });
    fails(&add("relu_upper_clip means nothing to ADD"), |graph| {
        op(graph, 0).relu_upper_clip = Some(1.0)
    });
    fails(&add("axis means nothing to ADD"), |graph| op(graph, 0).axis = Some(0));
    fails(
        &add("tensor 'b' (uid 2) with dims [1, 2, 1] does not broadcast to [2, 3, 4]"),
        |graph| {
            graph.tensors[1].dims[1] = 2;
        },
    );
    // The operand is larger than the result, and the result is never broadcast.
    fails(
        &add("tensor 'x' (uid 1) with dims [2, 3, 4] does not broadcast to [1, 3, 4]"),
        |graph| {
            graph.tensors[2].dims[0] = 1;
        },
    );
    let relu = |what: &str| format!("node 'RELU_FWD' (pointwise): {what}");
    for axis in [None, Some(-1), Some(3)] {
        fails(
            &relu(&format!("GEN_INDEX needs an axis from 0 to 2, not {axis:?}")),
            |graph| {
                op(graph, 1).mode = PointwiseMode::GenIndex;
                op(graph, 1).axis = axis;
            },
        );
    }
}
