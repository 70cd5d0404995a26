//! Tests which properties of a graph are part of its identity.
//!
//! That every attribute of every operation is part of it is tested with the wire format, where
//! graphs of every operation are generated.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::prelude::*;
use rotini_graph::*;

fn key(graph: &Graph) -> Vec<u8> {
    let mut graph = graph.clone();
    graph.validate().unwrap();
    graph.normalise().0.canonical_bytes().unwrap()
}

/// Returns a convolution with bias and RELU, which is stored, and a SWISH of the biased result,
/// which is stored too: a constant, virtual tensors, two outputs.
fn base() -> Graph {
    let mut b = GraphBuilder::new("base");
    let x = b.buffer_channels_last("x", DataType::F16, &[2, 4, 8, 8]);
    let w = b.buffer_channels_last("w", DataType::F16, &[6, 4, 3, 3]);
    let bias = b.buffer("bias", DataType::F16, &[1, 6, 1, 1]);
    let scale = b.constant("scale", DataType::F32, &[1, 1, 1, 1], Scalar::float(0.5));
    let [conv, biased, scaled] =
        ["conv", "biased", "scaled"].map(|name| b.virtual_tensor(name, DataType::F32, &[2, 6, 8, 8]));
    let relu = b.buffer_channels_last("relu", DataType::F16, &[2, 6, 8, 8]);
    let swish = b.buffer_channels_last("swish", DataType::F16, &[2, 6, 8, 8]);
    b.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 1));
    b.pointwise(DataType::F32, PointwiseMode::Add, &[conv, bias], biased);
    b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[biased], relu);
    b.pointwise(DataType::F32, PointwiseMode::Sub, &[biased, scale], scaled);
    b.pointwise(DataType::F32, PointwiseMode::SwishFwd, &[scaled], swish);
    b.build()
}

fn pointwise(graph: &mut Graph, node: usize) -> &mut Pointwise {
    match &mut graph.nodes[node].op {
        Op::Pointwise(op) => op,
        other => unreachable!("{}", other.kind()),
    }
}

fn conv(graph: &mut Graph) -> &mut ConvFprop {
    match &mut graph.nodes[0].op {
        Op::ConvFprop(op) => op,
        other => unreachable!("{}", other.kind()),
    }
}

/// Reorders the tensors of a graph.
fn reorder(graph: &mut Graph, order: &[usize]) {
    let mut to = vec![TensorId(0); order.len()];
    for (new, &old) in order.iter().enumerate() {
        to[old] = TensorId(u32::try_from(new).unwrap());
    }
    graph.tensors = order.iter().map(|&old| graph.tensors[old].clone()).collect();
    for tensor in &mut graph.tensors {
        tensor.ragged_offset = tensor.ragged_offset.map(|id| to[id.index()]);
    }
    for node in &mut graph.nodes {
        node.op.renumber(&mut |id| to[id.index()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn labels_and_order_do_not_count(
        order in Just((0..9).collect::<Vec<usize>>()).prop_shuffle(),
        uids in prop::collection::hash_set(any::<i64>(), 9),
        name in ".{0,9}",
        unit_strides in prop::collection::vec(0..1000_i64, 36),
        min_api_version: [u32; 3],
    ) {
        let expected = base();
        let mut graph = expected.clone();
        reorder(&mut graph, &order);
        for (tensor, uid) in graph.tensors.iter_mut().zip(uids) {
            tensor.uid = uid;
            tensor.name.push_str(&name);
        }
        let mut unit_strides = unit_strides.into_iter();
        for tensor in &mut graph.tensors {
            for (stride, _) in tensor.strides.iter_mut().zip(&tensor.dims).filter(|(_, dim)| **dim == 1) {
                *stride = unit_strides.next().unwrap();
            }
        }
        for node in &mut graph.nodes {
            node.name.push_str(&name);
        }
        graph.name = name;
        graph.min_api_version = min_api_version;
        prop_assert_eq!(key(&graph), key(&expected));

        // The slots are the same; their uids are those of the reordered graph.
        let (_, bindings) = graph.normalise();
        let (_, expected_bindings) = expected.normalise();
        let original = |uid: i64| {
            let position = graph.tensors.iter().position(|tensor| tensor.uid == uid).unwrap();
            expected.tensors[order[position]].uid
        };
        prop_assert_eq!(bindings.uids.into_iter().map(original).collect::<Vec<_>>(), expected_bindings.uids);
    }
}

/// Checks that a change of `base` keeps its identity.
#[track_caller]
fn same(change: impl FnOnce(&mut Graph)) {
    let mut graph = base();
    change(&mut graph);
    assert_ne!(graph, base(), "nothing was changed");
    assert_eq!(key(&graph), key(&base()));
}

/// Checks that a change of `base` changes its identity.
#[track_caller]
fn differs(change: impl FnOnce(&mut Graph)) {
    let mut graph = base();
    change(&mut graph);
    assert_ne!(key(&graph), key(&base()));
}

#[test]
fn saying_a_default_does_not_count() {
    same(|graph| pointwise(graph, 2).relu_lower_clip = Some(0.0));
    same(|graph| pointwise(graph, 2).relu_lower_clip_slope = Some(0.0));
    same(|graph| pointwise(graph, 4).swish_beta = Some(1.0));
}

#[test]
fn tensors_that_nothing_uses_do_not_count() {
    same(|graph| {
        let mut unused = graph.tensors[0].clone();
        unused.uid = 1000;
        unused.dims[0] = 77;
        graph.tensors.push(unused);
    });
}

#[test]
fn strides_of_constants_do_not_count() {
    same(|graph| graph.tensors[3].strides = vec![7; 4]);
}

#[test]
fn strides_count() {
    // Channels first instead of last, then padded rows, then an input broadcast over the batch.
    differs(|graph| graph.tensors[0].strides = vec![256, 64, 8, 1]);
    differs(|graph| graph.tensors[0].strides = vec![512, 1, 64, 4]);
    differs(|graph| graph.tensors[0].strides = vec![0, 1, 32, 4]);
    differs(|graph| graph.tensors[7].strides = vec![384, 64, 8, 1]);
}

#[test]
fn dims_count() {
    differs(|graph| {
        for index in [0, 4, 5, 6, 7, 8] {
            graph.tensors[index].dims[0] = 3;
        }
    });
    // A bias with one value for all channels.
    differs(|graph| graph.tensors[2].dims[1] = 1);
}

#[test]
fn types_count() {
    for index in 0..base().tensors.len() {
        differs(|graph| graph.tensors[index].dtype = DataType::Bf16);
    }
    for index in 0..base().nodes.len() {
        differs(|graph| graph.nodes[index].compute = DataType::F64);
    }
}

#[test]
fn where_data_is_counts() {
    differs(|graph| graph.tensors[4].kind = TensorKind::Buffer);
    differs(|graph| graph.tensors[3].kind = TensorKind::Buffer);
    differs(|graph| graph.tensors[3].kind = TensorKind::RuntimeScalar);
    differs(|graph| graph.tensors[3].kind = TensorKind::Constant(Scalar::float(0.25)));
    differs(|graph| graph.tensors[3].kind = TensorKind::Constant(Scalar::float(-0.5)));
    differs(|graph| graph.tensors[0].ragged_offset = Some(TensorId(1)));
}

#[test]
fn what_the_caller_promises_counts() {
    differs(|graph| graph.tensors[0].alignment = 64);
    differs(|graph| graph.override_shapes = true);
    same(|graph| graph.tensors[4].alignment = 64);
}

#[test]
fn attributes_count() {
    differs(|graph| conv(graph).geometry.mode = ConvMode::Convolution);
    // The same shapes with another distribution of the padding, and with a dilation and matching
    // padding.
    differs(|graph| {
        conv(graph).geometry.pre_padding = vec![2, 1];
        conv(graph).geometry.post_padding = vec![0, 1];
    });
    differs(|graph| {
        conv(graph).geometry.dilation = vec![2, 1];
        conv(graph).geometry.pre_padding = vec![2, 1];
        conv(graph).geometry.post_padding = vec![2, 1];
    });
    differs(|graph| pointwise(graph, 1).mode = PointwiseMode::Sub);
    differs(|graph| pointwise(graph, 2).relu_lower_clip = Some(0.5));
    differs(|graph| pointwise(graph, 2).relu_upper_clip = Some(6.0));
    differs(|graph| pointwise(graph, 2).relu_lower_clip_slope = Some(0.1));
    differs(|graph| pointwise(graph, 4).swish_beta = Some(1.5));
}

#[test]
fn wiring_counts() {
    // Exchanged operands; the same operand twice; RELU of the value before the bias.
    differs(|graph| {
        let op = pointwise(graph, 3);
        (op.in_0, op.in_1) = (op.in_1.unwrap(), Some(op.in_0));
    });
    differs(|graph| pointwise(graph, 1).in_1 = Some(TensorId(4)));
    differs(|graph| pointwise(graph, 2).in_0 = TensorId(4));
}

/// The bindings alone identify the buffers: exchanging two buffers leaves the kernel unchanged and
/// changes only its arguments.
#[test]
fn bindings_follow_the_uids() {
    let (normal, bindings) = base().normalise();
    // Slots: x, w, bias by first use, then the two results.
    assert_eq!(bindings.uids, [1, 2, 3, 8, 9]);
    assert_eq!(bindings.labels[0], "tensor 'x' (uid 1)");
    let roles: Vec<_> = normal.slots().map(|(_, _, role)| role).collect();
    assert_eq!(
        roles,
        [[SlotRole::Input; 3].as_slice(), &[SlotRole::Output; 2]].concat()
    );

    let mut exchanged = base();
    (exchanged.tensors[7].uid, exchanged.tensors[8].uid) = (9, 8);
    let (normal_2, bindings_2) = exchanged.normalise();
    assert_eq!(normal_2, normal);
    assert_eq!(bindings_2.uids, [1, 2, 3, 9, 8]);
}

/// Nodes in an equivalent order give the same graph after sorting, if their tensors determine the
/// order.
#[test]
fn order_of_nodes_does_not_count_in_a_chain() {
    let mut b = GraphBuilder::new("chain");
    let dims = [2, 3];
    let x = b.buffer("x", DataType::F32, &dims);
    let [t, u] = ["t", "u"].map(|name| b.virtual_tensor(name, DataType::F32, &dims));
    let y = b.buffer("y", DataType::F32, &dims);
    b.pointwise(DataType::F32, PointwiseMode::Exp, &[x], t);
    b.pointwise(DataType::F32, PointwiseMode::Neg, &[t], u);
    b.pointwise(DataType::F32, PointwiseMode::Abs, &[u], y);
    let chain = b.build();
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut shuffled = chain.clone();
        shuffled.nodes = order.map(|index: usize| chain.nodes[index].clone()).to_vec();
        assert_eq!(key(&shuffled), key(&chain));
    }
}
