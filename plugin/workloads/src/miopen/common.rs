//! Code shared by several drivers: tensors, layouts, directions, activations.

use super::options::{Made, Options};
use crate::blocks::Layout;
use rotini_graph::{DataType, GraphBuilder, Pointwise, PointwiseMode, TensorId};

const F32: DataType = DataType::F32;

/// Parses a layout such as `NCHW` or `NDHWC`; an empty one means channels first.
pub(super) fn layout(text: &str) -> Made<Layout> {
    match text {
        "" | "NCHW" | "NCDHW" | "NCW" => Ok(Layout::First),
        "NHWC" | "NDHWC" | "NWC" => Ok(Layout::Last),
        other => Err(format!("the layout {other}: a graph has no such tensors here")),
    }
}

/// Formats extents as `28x28`.
pub(super) fn by(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// Returns batch, channels and extents of `-n -c -H -W`.
pub(super) fn image(options: &Options) -> Made<Vec<i64>> {
    ["batchsize", "in_channels", "in_h", "in_w"]
        .map(|name| options.extent(name))
        .into_iter()
        .collect()
}

/// Checks that alpha is 1 and beta 0: MIOpen's result is `alpha op(x) + beta y`, a graph's is
/// `op(x)`.
pub(super) fn plain(options: &Options) -> Made<()> {
    options.only("alpha", 1.0)?;
    options.only("beta", 0.0)
}

/// Returns whether the line requests the output and whether it requests the gradients: 0 requests
/// both.
pub(super) fn directions(options: &Options) -> Made<[bool; 2]> {
    match options.number::<i64>("forw")? {
        0 => Ok([true, true]),
        1 => Ok([true, false]),
        2 => Ok([false, true]),
        other => Err(format!("forw is {other}")),
    }
}

/// Returns the name, mode and parameters of an activation by its number in
/// `miopenActivationMode_t`.
pub(super) fn mode_of(options: &Options, name: &str) -> Made<(&'static str, PointwiseMode, Pointwise)> {
    let alpha: f32 = options.number("alpha")?;
    let mut op = Pointwise::new(PointwiseMode::Identity, TensorId(0), None, None, TensorId(0));
    let (word, mode) = match options.number::<i64>(name)? {
        0 => ("identity", PointwiseMode::Identity),
        1 => ("sigmoid", PointwiseMode::SigmoidFwd),
        2 => {
            // beta · tanh(alpha x)
            options.only("alpha", 1.0)?;
            options.only("beta", 1.0)?;
            ("tanh", PointwiseMode::TanhFwd)
        }
        3 => ("relu", PointwiseMode::ReluFwd),
        4 => ("softplus", PointwiseMode::SoftplusFwd),
        5 => ("abs", PointwiseMode::Abs),
        7 => {
            op.relu_upper_clip = Some(alpha);
            ("clipped_relu", PointwiseMode::ReluFwd)
        }
        8 => {
            op.relu_lower_clip_slope = Some(alpha);
            ("leaky_relu", PointwiseMode::ReluFwd)
        }
        9 => {
            op.elu_alpha = Some(alpha);
            ("elu", PointwiseMode::EluFwd)
        }
        other => return Err(format!("{name} {other}: hipDNN has no such activation")),
    };
    op.mode = mode;
    Ok((word, mode, op))
}

/// Adds the activation that an option selects.
pub(super) fn activate(b: &mut GraphBuilder, options: &Options, name: &str, x: TensorId, y: TensorId) -> Made<()> {
    let (word, _, op) = mode_of(options, name)?;
    b.node(
        word,
        F32,
        Pointwise {
            in_0: x,
            out_0: y,
            ..op
        },
    );
    Ok(())
}
