//! Graphs of hipDNN's own samples. Unlike other hosts, these execute with a null workspace and
//! never ask for its size.

use rotini_graph::{Batchnorm, BatchnormBackward, DataType, Graph, GraphBuilder, Scalar, TensorId};

/// N, C, H and W of both samples.
const DIMS: [i64; 4] = [16, 16, 16, 16];
const CHANNEL: [i64; 4] = [1, 16, 1, 1];
/// `BATCHNORM_DEFAULT_EPSILON`.
const EPSILON: f64 = 1e-5;

/// Returns the graphs of `samples/batchnorm/BnTraining.cpp` and `BnBackward.cpp`, in the layouts
/// and types that they run.
#[must_use]
pub fn batchnorm() -> Vec<(String, Graph)> {
    let mut graphs = Vec::new();
    for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
        for channels_last in [false, true] {
            let layout = if channels_last { "nhwc" } else { "nchw" };
            graphs.push((format!("BnTraining_{layout}_{dtype}"), training(dtype, channels_last)));
            graphs.push((format!("BnBackward_{layout}_{dtype}"), backward(dtype, channels_last)));
        }
    }
    graphs
}

fn full(builder: &mut GraphBuilder, name: &str, dtype: DataType, channels_last: bool) -> TensorId {
    if channels_last {
        builder.buffer_channels_last(name, dtype, &DIMS)
    } else {
        builder.buffer(name, dtype, &DIMS)
    }
}

fn channels<const N: usize>(builder: &mut GraphBuilder, names: [&str; N]) -> [TensorId; N] {
    names.map(|name| builder.buffer(name, DataType::F32, &CHANNEL))
}

fn training(dtype: DataType, channels_last: bool) -> Graph {
    let mut b = GraphBuilder::new("BnTraining");
    let x = full(&mut b, "x", dtype, channels_last);
    let [scale, bias] = channels(&mut b, ["scale", "bias"]);
    // A double, as `set_value` creates it there.
    let epsilon = b.constant("epsilon", DataType::F64, &[1], Scalar::float(EPSILON));
    let y = full(&mut b, "y", dtype, channels_last);
    let [mean, inv_variance] = channels(&mut b, ["mean", "inv_variance"]);
    let op = Batchnorm {
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        ..Batchnorm::new([x, scale, bias, epsilon], y)
    };
    b.node("bn_training_node", DataType::F32, op);
    b.build()
}

fn backward(dtype: DataType, channels_last: bool) -> Graph {
    let mut b = GraphBuilder::new("BnBackward");
    let [dy, x] = ["dy", "x"].map(|name| full(&mut b, name, dtype, channels_last));
    let [scale, mean, inv_variance] = channels(&mut b, ["scale", "mean", "inv_variance"]);
    let dx = full(&mut b, "dx", dtype, channels_last);
    let [dscale, dbias] = channels(&mut b, ["dscale", "dbias"]);
    let op = BatchnormBackward {
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        ..BatchnormBackward::new([dy, x, scale], [dx, dscale, dbias])
    };
    b.node("bn_backward_node", DataType::F32, op);
    b.build()
}
