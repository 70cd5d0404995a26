//! The drivers of normalizations.

use super::common::{by, directions, image, layout, plain};
use super::options::{Made, Options};
use crate::blocks::{Layout, buffer};
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInferenceVariance, DataType, Graph, GraphBuilder, Layernorm,
    LayernormBackward, NormPhase, RmsNorm, Scalar, TensorId,
};

const F32: DataType = DataType::F32;

fn constant(b: &mut GraphBuilder, name: &str, rank: usize, value: f64) -> TensorId {
    b.constant(name, F32, &vec![1; rank], Scalar::float(value))
}

/// Returns the graphs of a batch normalization per channel: training, inference, gradients.
pub(super) fn batchnorm(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    plain(options)?;
    if options.text("mode") != "1" {
        return Err("mode 0: a graph has statistics for each channel, not for each activation".to_owned());
    }
    let mut dims = image(options)?;
    if let depth @ 1.. = options.number::<i64>("in_d")? {
        dims.insert(2, depth);
    }
    let order = layout(options.text("layout"))?;
    let [save, run] = ["save", "run"].map(|name| options.number::<i64>(name).map(|value| value != 0));
    let (save, run) = (save?, run?);
    let mut channel = vec![1; dims.len()];
    if let (Some(extent), Some(channels)) = (channel.get_mut(1), dims.get(1)) {
        *extent = *channels;
    }
    let parameter = |b: &mut GraphBuilder, name: &str| b.buffer(name, F32, &channel);
    let begin = |what: &str| GraphBuilder::new(&format!("bnorm_{what}_{}_{dtype}", by(&dims)));
    let rank = dims.len();
    let mut graphs = Vec::new();
    match options.number::<i64>("forw")? {
        0 => (),
        // Without running statistics, MIOpen's inference uses those of the batch.
        forward @ (1 | 2) if forward == 1 || !run => {
            let (save, run) = (save && forward == 1, run && forward == 1);
            let mut b = begin("train");
            let x = buffer(&mut b, "x", dtype, &dims, order);
            let [scale, bias] = ["scale", "bias"].map(|name| parameter(&mut b, name));
            let epsilon = constant(&mut b, "epsilon", rank, 1e-5);
            let y = buffer(&mut b, "y", dtype, &dims, order);
            let optional = |b: &mut GraphBuilder, name: &str, wanted: bool| wanted.then(|| parameter(b, name));
            let op = Batchnorm {
                x,
                scale,
                bias,
                epsilon,
                peer_stats: Vec::new(),
                prev_running_mean: optional(&mut b, "mean before", run),
                prev_running_variance: optional(&mut b, "variance before", run),
                momentum: run.then(|| constant(&mut b, "momentum", rank, 0.1)),
                y,
                mean: optional(&mut b, "mean", save),
                inv_variance: optional(&mut b, "inv_variance", save),
                next_running_mean: optional(&mut b, "mean after", run),
                next_running_variance: optional(&mut b, "variance after", run),
            };
            b.node("batchnorm", F32, op);
            graphs.push(b.build());
        }
        2 => {
            let mut b = begin("infer");
            let x = buffer(&mut b, "x", dtype, &dims, order);
            let names = ["mean", "variance", "scale", "bias"];
            let [mean, variance, scale, bias] = names.map(|name| parameter(&mut b, name));
            let epsilon = constant(&mut b, "epsilon", rank, 1e-5);
            let y = buffer(&mut b, "y", dtype, &dims, order);
            let op = BatchnormInferenceVariance {
                x,
                mean,
                variance,
                scale,
                bias,
                epsilon,
                y,
            };
            b.node("batchnorm", F32, op);
            graphs.push(b.build());
        }
        other => return Err(format!("forw is {other}")),
    }
    if options.number::<i64>("back")? != 0 {
        let mut b = begin("bwd");
        let [dy, x] = ["dy", "x"].map(|name| buffer(&mut b, name, dtype, &dims, order));
        let scale = parameter(&mut b, "scale");
        let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| save.then(|| parameter(&mut b, name)));
        let dx = buffer(&mut b, "dx", dtype, &dims, order);
        let [dscale, dbias] = ["dscale", "dbias"].map(|name| parameter(&mut b, name));
        let op = BatchnormBackward {
            mean,
            inv_variance,
            ..BatchnormBackward::new([dy, x, scale], [dx, dscale, dbias])
        };
        b.node("batchnorm", F32, op);
        graphs.push(b.build());
    }
    Ok(graphs)
}

/// Returns the graphs of a layernorm with weights and bias, and of its gradients.
pub(super) fn layernorm(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    if options.text("mode") != "1" {
        return Err("mode 0: a graph's layernorm has weights and a bias".to_owned());
    }
    let (dims, order) = options.tensor("input")?;
    let order = layout(&order)?;
    if order != Layout::First {
        return Err("a layernorm over axes that are not the last in memory".to_owned());
    }
    let first: usize = options.number("normalized_dim")?;
    let Some(over) = dims.get(first..).filter(|over| !over.is_empty() && first > 0) else {
        return Err(format!(
            "normalized_dim is {first}, and the input has {} dimensions",
            dims.len()
        ));
    };
    let count = i64::try_from(over.len()).unwrap_or(i64::MAX);
    let scale_dims: Vec<i64> = (0..)
        .zip(&dims)
        .map(|(axis, &extent)| if axis < first { 1 } else { extent })
        .collect();
    let row_dims: Vec<i64> = (0..)
        .zip(&dims)
        .map(|(axis, &extent)| if axis < first { extent } else { 1 })
        .collect();
    let epsilon: f64 = options.number("eps")?;
    let mut graphs = Vec::new();
    let [forward, backward] = directions(options)?;
    if forward {
        let mut b = GraphBuilder::new(&format!("layernorm_fwd_{}_{dtype}", by(&dims)));
        let x = b.buffer("x", dtype, &dims);
        let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, dtype, &scale_dims));
        let epsilon = constant(&mut b, "epsilon", dims.len(), epsilon);
        let y = b.buffer("y", dtype, &dims);
        let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| Some(b.buffer(name, F32, &row_dims)));
        let op = Layernorm {
            x,
            scale,
            bias,
            epsilon,
            y,
            mean,
            inv_variance,
            normalized_dim_count: count,
            phase: NormPhase::Training,
        };
        b.node("layernorm", F32, op);
        graphs.push(b.build());
    }
    if backward {
        let mut b = GraphBuilder::new(&format!("layernorm_bwd_{}_{dtype}", by(&dims)));
        let [dy, x] = ["dy", "x"].map(|name| b.buffer(name, dtype, &dims));
        let scale = b.buffer("scale", dtype, &scale_dims);
        let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| Some(b.buffer(name, F32, &row_dims)));
        let dx = b.buffer("dx", dtype, &dims);
        let [dscale, dbias] = ["dscale", "dbias"].map(|name| b.buffer(name, dtype, &scale_dims));
        let op = LayernormBackward {
            dy,
            x,
            scale,
            mean,
            inv_variance,
            epsilon: None,
            dx,
            dscale,
            dbias,
            normalized_dim_count: count,
        };
        b.node("layernorm", F32, op);
        graphs.push(b.build());
    }
    Ok(graphs)
}

/// Returns the graph of T5's layernorm, which is RMSNorm, with a weight.
pub(super) fn rms_norm(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    if options.text("mode") != "6" {
        return Err("mode 5: a graph's RMSNorm has a weight".to_owned());
    }
    if options.text("forw") != "1" {
        return Err("only forward: forw must be 1".to_owned());
    }
    let (dims, _) = options.tensor("input")?;
    let mut scale_dims = vec![1; dims.len()];
    if let (Some(scale), Some(extent)) = (scale_dims.last_mut(), dims.last()) {
        *scale = *extent;
    }
    let mut b = GraphBuilder::new(&format!("t5layernorm_{}_{dtype}", by(&dims)));
    let x = b.buffer("x", dtype, &dims);
    let scale = b.buffer("scale", dtype, &scale_dims);
    let epsilon = constant(&mut b, "epsilon", dims.len(), options.number("eps")?);
    let y = b.buffer("y", dtype, &dims);
    b.node("rms_norm", F32, RmsNorm::new([x, scale, epsilon], y));
    Ok(vec![b.build()])
}
