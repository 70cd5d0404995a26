//! Sums of normalizations that other nodes read, which may restore the summed axes.

use super::graph::Norm;
use crate::cases::case::{Cases, Order};
use rotini_graph::{DataType, Graph, Node, Op, Pointwise, PointwiseMode, Tensor, TensorId, TensorKind};

const F32: DataType = DataType::F32;

/// Makes a tensor virtual, with another type, and adds it to x.
fn read(graph: &mut Graph, name: &str, carried: DataType) {
    let find = |name: &str| graph.tensors.iter().position(|tensor| tensor.name == name);
    let [x, sums] = ["x", name].map(|name| {
        let found = find(name);
        assert!(found.is_some(), "the graph has no {name}");
        found.unwrap_or_default()
    });
    let y = Tensor {
        uid: graph.tensors.iter().map(|tensor| tensor.uid).max().unwrap_or_default() + 1,
        name: format!("{name}_read"),
        ..graph.tensors[x].clone()
    };
    let id = |index: usize| TensorId(u32::try_from(index).unwrap_or(u32::MAX));
    let node = Pointwise::new(PointwiseMode::Add, id(x), Some(id(sums)), None, id(graph.tensors.len()));
    (graph.tensors[sums].kind, graph.tensors[sums].dtype) = (TensorKind::Virtual, carried);
    graph.tensors.push(y);
    graph.nodes.push(Node {
        name: format!("reads {name}"),
        compute: F32,
        op: Op::from(node),
    });
}

pub(in crate::cases) fn sums(cases: &mut Cases) {
    for order in Order::BOTH {
        for (dims, channels) in [(&[9, 8, 2], true), (&[40, 3, 5], true), (&[72, 6, 1], false)] {
            for (dtype, carried) in [(DataType::F16, DataType::I32), (F32, F32)] {
                let norm = Norm::new(dims, dtype, order);
                let shape = dims.map(|extent| extent.to_string()).join("x");
                let suffix = format!("{shape}_{}_{dtype}", order.name());
                let gradients = ["dscale", "dbias"];
                let mut made = vec![
                    ("layernorm_backward", norm.layernorm_backward(1, true), gradients),
                    ("rmsnorm_backward", norm.rms_norm_backward(1, true), gradients),
                ];
                if channels {
                    made.push(("bn_backward", norm.batchnorm_backward(true), gradients));
                    let next = ["next_mean", "next_variance"];
                    made.push(("bn_training", norm.batchnorm_training(false, true), next));
                }
                for (name, mut graph, sums) in made {
                    for sum in sums {
                        read(&mut graph, sum, carried);
                    }
                    cases.add(format!("read_sums_of_{name}_{suffix}"), graph);
                }
            }
        }
    }
}
