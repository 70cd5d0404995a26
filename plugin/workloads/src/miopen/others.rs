//! The drivers of activations, pooling, softmax, products, tensors and reductions.

use super::common::{activate, by, directions, image, layout, mode_of, plain};
use super::options::{Made, Options};
use crate::blocks::{Layout, Powers, buffer, reduce};
use rotini_graph::{
    DataType, Graph, GraphBuilder, Matmul, PaddingMode, Pointwise, PointwiseMode, Reduction, ReductionMode,
    ResampleBwd, ResampleFwd, ResampleMode, TensorKind, conv_output_extent,
};

const F32: DataType = DataType::F32;

/// Returns the graphs of an activation and its gradient.
pub(super) fn activation(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    let dims = image(options)?;
    let (word, mode, op) = mode_of(options, "mode")?;
    let [forward, backward] = directions(options)?;
    let mut graphs = Vec::new();
    if forward {
        let mut b = GraphBuilder::new(&format!("activ_{word}_{}_{dtype}", by(&dims)));
        let [x, y] = ["x", "y"].map(|name| b.buffer(name, dtype, &dims));
        activate(&mut b, options, "mode", x, y)?;
        graphs.push(b.build());
    }
    if backward {
        let gradient = match mode {
            PointwiseMode::ReluFwd => PointwiseMode::ReluBwd,
            PointwiseMode::SigmoidFwd => PointwiseMode::SigmoidBwd,
            PointwiseMode::TanhFwd => PointwiseMode::TanhBwd,
            PointwiseMode::SoftplusFwd => PointwiseMode::SoftplusBwd,
            PointwiseMode::EluFwd => PointwiseMode::EluBwd,
            _ => return Err(format!("hipDNN has no gradient of {word}: forw must be 1")),
        };
        let mut b = GraphBuilder::new(&format!("activ_{word}_bwd_{}_{dtype}", by(&dims)));
        let [dy, x, dx] = ["dy", "x", "dx"].map(|name| b.buffer(name, dtype, &dims));
        let op = Pointwise {
            mode: gradient,
            in_0: dy,
            in_1: Some(x),
            out_0: dx,
            ..op
        };
        b.node(word, F32, op);
        graphs.push(b.build());
    }
    Ok(graphs)
}

/// Returns the graphs of a pooling and its gradient.
pub(super) fn pooling(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    options.only("pad_val", 0.0)?;
    let is_old = options.has("batchsize") || options.has("in_channels");
    let (dims, order) = if is_old {
        // Older versions of the driver had one option per extent.
        let extent = |name| options.extent(name);
        let dims = vec![
            extent("batchsize")?,
            extent("in_channels")?,
            extent("in_h")?,
            extent("input")?,
        ];
        (dims, Layout::First)
    } else if options.has("in_h") {
        return Err("-H without -n and -c: no graph says the gradient's strides apart".to_owned());
    } else {
        let (dims, order) = options.tensor("input")?;
        (dims, layout(&order)?)
    };
    let axes: &[&str] = match dims.len() {
        4 => &["h", "w"],
        5 => &["d", "h", "w"],
        other => return Err(format!("the input has {other} dimensions")),
    };
    let of = |prefix: &str| {
        axes.iter()
            .map(|axis| options.extent(&format!("{prefix}_{axis}")))
            .collect::<Made<Vec<_>>>()
    };
    let (window, stride) = (of("win")?, of("pool_stride")?);
    if options.text("pad_mode") != "default" {
        return Err(format!("pad_mode {}: name the padding", options.text("pad_mode")));
    }
    let padding: Made<Vec<i64>> = axes.iter().map(|axis| options.number(&format!("pad_{axis}"))).collect();
    let padding = padding?;
    let mut out = dims.clone();
    for (axis, extent) in out.iter_mut().skip(2).enumerate() {
        let at = |values: &[i64]| values.get(axis).copied().unwrap_or(1);
        let pad = at(&padding);
        *extent =
            conv_output_extent(*extent, at(&window), pad, pad, at(&stride), 1).ok_or("the window does not fit")?;
    }
    let (resample_mode, padding_mode) = match options.text("mode") {
        "max" => (ResampleMode::Maxpool, PaddingMode::NegInf),
        "avg" => (ResampleMode::AvgpoolExcludePadding, PaddingMode::Zero),
        "avg_in" => (ResampleMode::AvgpoolIncludePadding, PaddingMode::Zero),
        other => return Err(format!("the mode {other}")),
    };
    let is_max = resample_mode == ResampleMode::Maxpool;
    let [forward, backward] = directions(options)?;
    let begin = |what: &str| GraphBuilder::new(&format!("pool_{what}_{}_{}_{dtype}", options.text("mode"), by(&dims)));
    let mut graphs = Vec::new();
    if forward {
        let mut b = begin("fwd");
        let x = buffer(&mut b, "x", dtype, &dims, order);
        let y = buffer(&mut b, "y", dtype, &out, order);
        // The index is only needed for the gradient.
        let index = (is_max && backward).then(|| buffer(&mut b, "index", DataType::I32, &out, order));
        let op = ResampleFwd {
            x,
            y,
            index,
            pre_padding: padding.clone(),
            post_padding: padding.clone(),
            stride: stride.clone(),
            window: window.clone(),
            resample_mode,
            padding_mode,
            generate_index: index.is_some(),
        };
        b.node("pooling", F32, op);
        graphs.push(b.build());
    }
    if backward {
        let mut b = begin("bwd");
        let dy = buffer(&mut b, "dy", dtype, &out, order);
        let index = is_max.then(|| buffer(&mut b, "index", DataType::I32, &out, order));
        let dx = buffer(&mut b, "dx", dtype, &dims, order);
        let op = ResampleBwd {
            dy,
            index,
            dx,
            pre_padding: padding.clone(),
            post_padding: padding,
            stride,
            window,
            resample_mode,
            padding_mode,
        };
        b.node("pooling", F32, op);
        graphs.push(b.build());
    }
    Ok(graphs)
}

/// Returns the graphs of a softmax and its gradient, composed of reductions and pointwise
/// operations.
pub(super) fn softmax(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    plain(options)?;
    let dims = image(options)?;
    let is_log = match options.number::<i64>("algorithm")? {
        0 | 1 => false,
        2 => true,
        other => return Err(format!("algorithm is {other}")),
    };
    let mut row = dims.clone();
    let axes = match options.number::<i64>("mode")? {
        0 => 1..4,
        1 => 1..2,
        other => return Err(format!("mode is {other}")),
    };
    for extent in row.get_mut(axes).into_iter().flatten() {
        *extent = 1;
    }
    if row == dims {
        return Err("nothing is summed: the channels are one".to_owned());
    }
    let [forward, backward] = directions(options)?;
    let mut graphs = Vec::new();
    if forward {
        let mut b = GraphBuilder::new(&format!("softmax_fwd_{}_{dtype}", by(&dims)));
        let x = b.buffer("x", dtype, &dims);
        let Powers { moved, powers, sum } = Powers::of(&mut b, x, &dims, &row);
        let y = b.buffer("y", dtype, &dims);
        if is_log {
            let log = b.virtual_tensor("log", F32, &row);
            b.pointwise(F32, PointwiseMode::Log, &[sum], log);
            b.pointwise(F32, PointwiseMode::Sub, &[moved, log], y);
        } else {
            b.pointwise(F32, PointwiseMode::Div, &[powers, sum], y);
        }
        graphs.push(b.build());
    }
    if backward {
        if is_log {
            return Err("the gradient of the logarithm of softmax: forw must be 1".to_owned());
        }
        let mut b = GraphBuilder::new(&format!("softmax_bwd_{}_{dtype}", by(&dims)));
        let [y, dy] = ["y", "dy"].map(|name| b.buffer(name, dtype, &dims));
        let products = b.virtual_tensor("products", F32, &dims);
        b.pointwise(F32, PointwiseMode::Mul, &[y, dy], products);
        let sum = b.virtual_tensor("sum", F32, &row);
        reduce(&mut b, products, sum, ReductionMode::Add);
        let moved = b.virtual_tensor("moved", F32, &dims);
        b.pointwise(F32, PointwiseMode::Sub, &[dy, sum], moved);
        let dx = b.buffer("dx", dtype, &dims);
        b.pointwise(F32, PointwiseMode::Mul, &[y, moved], dx);
        graphs.push(b.build());
    }
    Ok(graphs)
}

/// Returns the graph of a product of matrices.
pub(super) fn product(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    plain(options)?;
    let [batch, m, k, n] = ["batch_count", "a_h", "a_w", "b_w"].map(|name| options.extent(name));
    let (batch, m, k, n) = (batch?, m?, k?, n?);
    let by_columns = options.number::<i64>("isColMajor")? != 0;
    let stored = |b: &mut GraphBuilder, name: &str, rows: i64, columns: i64, transposed: bool| {
        let strides = if transposed {
            [rows.saturating_mul(columns), 1, rows]
        } else {
            [rows.saturating_mul(columns), columns, 1]
        };
        b.tensor(name, dtype, &[batch, rows, columns], &strides, TensorKind::Buffer)
    };
    let [first, second] = ["transA", "transB"].map(|name| options.number::<i64>(name).map(|value| value != 0));
    let mut b = GraphBuilder::new(&format!("gemm_{batch}x{m}x{n}x{k}_{dtype}"));
    let x = stored(&mut b, "a", m, k, first? != by_columns);
    let w = stored(&mut b, "b", k, n, second? != by_columns);
    let c = stored(&mut b, "c", m, n, by_columns);
    b.node("gemm", F32, Matmul { a: x, b: w, c });
    Ok(vec![b.build()])
}

/// Returns the graph of an elementwise operation on two tensors.
pub(super) fn tensors(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    for (name, value) in [("alpha1", 1.0), ("alpha2", 1.0), ("beta", 0.0)] {
        options.only(name, value)?;
    }
    let (word, mode) = match options.number::<i64>("tensor_op")? {
        2 => ("add", PointwiseMode::Add),
        3 => ("mul", PointwiseMode::Mul),
        4 => ("min", PointwiseMode::Min),
        5 => ("max", PointwiseMode::Max),
        other => {
            return Err(format!(
                "tensor_op {other} has one operand and writes over it: no graph"
            ));
        }
    };
    let dims = image(options)?;
    let mut b = GraphBuilder::new(&format!("tensorop_{word}_{}_{dtype}", by(&dims)));
    let [x, z, y] = ["a", "b", "c"].map(|name| b.buffer(name, dtype, &dims));
    b.pointwise(F32, mode, &[x, z], y);
    Ok(vec![b.build()])
}

/// Returns the graph of a reduction.
pub(super) fn reduction(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    plain(options)?;
    options.only("IndicesUsed", 0.0)?;
    // A reduction of hipDNN ignores NaN in minima and maxima.
    options.only("NanPropagation", 0.0)?;
    let (word, mode) = match options.number::<i64>("ReduceOp")? {
        0 => ("add", ReductionMode::Add),
        1 => ("mul", ReductionMode::Mul),
        2 => ("min", ReductionMode::Min),
        3 => ("max", ReductionMode::Max),
        4 => ("amax", ReductionMode::Amax),
        5 => ("avg", ReductionMode::Avg),
        6 => ("norm1", ReductionMode::Norm1),
        7 => ("norm2", ReductionMode::Norm2),
        other => return Err(format!("ReduceOp is {other}")),
    };
    let compute = match options.number::<i64>("CompType")? {
        0 => DataType::F16,
        1 => F32,
        6 => DataType::F64,
        other => return Err(format!("CompType is {other}: a graph does not compute in that")),
    };
    let dims = options.list("DimLengths")?;
    if dims.iter().any(|&extent| extent < 1) {
        return Err(format!("DimLengths is {}", options.text("DimLengths")));
    }
    let mut out = dims.clone();
    for axis in options.list("DimsToReduce")? {
        let extent = usize::try_from(axis).ok().and_then(|axis| out.get_mut(axis));
        *extent.ok_or_else(|| format!("DimsToReduce has {axis}, and there are {} dimensions", dims.len()))? = 1;
    }
    let mut b = GraphBuilder::new(&format!("reduce_{word}_{}_to_{}_{dtype}", by(&dims), by(&out)));
    let input = b.buffer("x", dtype, &dims);
    let output = b.buffer("y", dtype, &out);
    b.node("reduction", compute, Reduction::new(mode, input, output));
    Ok(vec![b.build()])
}
