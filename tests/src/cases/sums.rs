//! Long sums in f32, with enough terms that a sequential sum loses digits.

use super::case::{Case, Data};
use super::reduction::reduce;
use crate::harness::inputs::fill;
use anyhow::Result;
use rotini_graph::{
    Batchnorm, ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, Matmul, ReductionMode, Scalar, TensorId,
    TensorKind,
};

/// Returns sums of equal terms, whose errors all have the same sign, and of different ones.
pub(super) fn long() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    let mut add = |name: &str, graph: Graph, element: fn(usize) -> f32| -> Result<()> {
        let mut inputs = fill(&graph)?;
        for tensor in graph.tensors.iter().filter(|tensor| tensor.name.starts_with("in_")) {
            let elements: i64 = tensor.dims.iter().product();
            let bytes = (0..usize::try_from(elements)?).flat_map(|index| element(index).to_le_bytes());
            inputs.insert(tensor.uid, bytes.collect());
        }
        data.push(Data {
            case: Case {
                name: format!("long_{name}"),
                graph,
            },
            inputs,
            has_meaning: true,
        });
        Ok(())
    };
    for mode in [
        ReductionMode::Add,
        ReductionMode::Avg,
        ReductionMode::Norm1,
        ReductionMode::Norm2,
    ] {
        let graph = || reduction(mode, &[1, 1 << 20], &[1, 1]);
        add(&format!("{mode:?}_of_tenths"), graph(), |_| 0.1)?;
        add(&format!("{mode:?}_of_many"), graph(), irregular)?;
    }
    add("mean", reduction(ReductionMode::Avg, &[1 << 22], &[1]), |_| 3.7)?;
    add("columns", reduction(ReductionMode::Add, &[100_003, 3], &[1, 3]), |_| {
        0.1
    })?;
    add(
        "both_axes",
        reduction(ReductionMode::Add, &[3, 513, 2, 411], &[3, 1, 2, 1]),
        |_| 0.1,
    )?;
    add("batchnorm", batchnorm(), |index| 100.0 + irregular(index))?;
    // Summed in blocks; in f64, because 10,007 is prime; and in the usual way.
    for terms in [1 << 20, 10_007, 4096, 2048, 300] {
        add(&format!("matmul_{terms}"), matmul(terms), |_| 0.3)?;
        add(&format!("matmul_{terms}_of_many"), matmul(terms), irregular)?;
    }
    for extent in [64, 61] {
        add(&format!("wgrad_{extent}"), wgrad(extent), |_| 0.3)?;
    }
    Ok(data)
}

/// Returns a positive number that uses all digits of f32.
fn irregular(index: usize) -> f32 {
    let turned = (index as f64 * 12.989_8).sin() * 43_758.545_3;
    (turned - turned.floor()) as f32
}

fn reduction(mode: ReductionMode, from: &[i64], to: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("sum");
    let x = b.buffer("in_x", DataType::F32, from);
    let y = b.buffer("y", DataType::F32, to);
    reduce(&mut b, DataType::F32, mode, x, y);
    b.build()
}

fn matmul(terms: i64) -> Graph {
    let mut b = GraphBuilder::new("product");
    let a_dims = [2, terms];
    let a = b.buffer("in_a", DataType::F32, &a_dims);
    let right = b.buffer("in_b", DataType::F32, &[terms, 3]);
    let c = b.buffer("c", DataType::F32, &[2, 3]);
    b.node("matmul", DataType::F32, Matmul { a, b: right, c });
    b.build()
}

fn wgrad(extent: i64) -> Graph {
    let mut b = GraphBuilder::new("wgrad");
    let x = b.buffer("in_x", DataType::F32, &[5, 2, extent, extent]);
    let dy = b.buffer("in_dy", DataType::F32, &[5, 3, extent, extent]);
    let dw = b.buffer("dw", DataType::F32, &[3, 2, 3, 3]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("wgrad", DataType::F32, ConvWgrad { x, dy, dw, geometry });
    b.build()
}

/// One channel of 802,816 elements.
fn batchnorm() -> Graph {
    let mut b = GraphBuilder::new("batchnorm");
    let dims = [64, 1, 112, 112];
    let x = b.buffer("in_x", DataType::F32, &dims);
    let channel = |b: &mut GraphBuilder, name: &str| -> TensorId { b.buffer(name, DataType::F32, &[1, 1, 1, 1]) };
    let [scale, bias, mean, inv_variance] = ["scale", "bias", "mean", "inv_variance"].map(|name| channel(&mut b, name));
    let epsilon = b.tensor(
        "epsilon",
        DataType::F32,
        &[1],
        &[1],
        TensorKind::Constant(Scalar::float(1e-5)),
    );
    let y = b.buffer("y", DataType::F32, &dims);
    b.node(
        "norm",
        DataType::F32,
        Batchnorm {
            mean: Some(mean),
            inv_variance: Some(inv_variance),
            ..Batchnorm::new([x, scale, bias, epsilon], y)
        },
    );
    b.build()
}
