//! Pooling, forward and backward.

use super::choices::Choices;
use super::draft::{Draft, Known, dims, is_bounded, small};
use crate::range::Range;
use rotini_graph::{DataType, PaddingMode, ResampleBwd, ResampleFwd, ResampleMode, conv_output_extent};
use rotini_reference::Profile;

struct Windows {
    pre_padding: Vec<i64>,
    post_padding: Vec<i64>,
    stride: Vec<i64>,
    window: Vec<i64>,
    mode: ResampleMode,
    padding: PaddingMode,
    /// Dims of the pooled result.
    y: Vec<i64>,
}

fn images(choices: &mut Choices<'_>) -> Vec<i64> {
    let rank = choices.pick(&[4, 4, 3, 5]);
    dims(choices, rank)
}

fn is_image(known: &Known) -> bool {
    known.dims.len() >= 3 && known.dtype.is_float()
}

/// Returns windows over x, each with at least one element that is not padding.
fn windows(choices: &mut Choices<'_>, x: &[i64]) -> Option<Windows> {
    let spatial = x.len() - 2;
    let window: Vec<i64> = (0..spatial)
        .map(|axis| choices.between(1, 3).min(x[axis + 2]))
        .collect();
    let mut pad = || {
        window
            .iter()
            .map(|&extent| choices.between(0, 2).min(extent - 1))
            .collect::<Vec<i64>>()
    };
    let (pre_padding, post_padding) = (pad(), pad());
    let stride: Vec<i64> = (0..spatial).map(|_| choices.between(1, 4)).collect();
    let mut y = x[..2].to_vec();
    for axis in 0..spatial {
        let (pre, post) = (pre_padding[axis], post_padding[axis]);
        y.push(conv_output_extent(
            x[axis + 2],
            window[axis],
            pre,
            post,
            stride[axis],
            1,
        )?);
    }
    Some(Windows {
        pre_padding,
        post_padding,
        stride,
        window,
        mode: choices.pick(&[
            ResampleMode::Maxpool,
            ResampleMode::AvgpoolExcludePadding,
            ResampleMode::AvgpoolIncludePadding,
        ]),
        padding: choices.pick(&[PaddingMode::NegInf, PaddingMode::Zero]),
        y: small(y)?,
    })
}

pub(super) fn forward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = draft.first(choices, Profile::Normal, is_image, images);
    let windows = windows(choices, &x.dims)?;
    let generate_index = windows.mode == ResampleMode::Maxpool && choices.chance(40);
    let index = generate_index.then(|| {
        let range = Range::new(0.0, x.dims.iter().product::<i64>() as f64);
        draft.result(choices, &windows.y, DataType::I32, range, false)
    });
    let range = x.range.hull(Range::new(0.0, 0.0));
    let y = draft.float_result(choices, &windows.y, range);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        ResampleFwd {
            x: x.id,
            y,
            index,
            pre_padding: windows.pre_padding,
            post_padding: windows.post_padding,
            stride: windows.stride,
            window: windows.window,
            resample_mode: windows.mode,
            padding_mode: windows.padding,
            generate_index,
        },
    )
}

pub(super) fn backward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let dx_dims = images(choices);
    let windows = windows(choices, &dx_dims)?;
    let like = draft.float(choices);
    let dy = draft.operand(choices, &windows.y, like, Profile::Normal, |_| true);
    let index = (windows.mode == ResampleMode::Maxpool).then(|| {
        draft
            .input(choices, &windows.y, DataType::I32, Profile::SmallIntegers)
            .id
    });
    let outputs = windows.y.iter().skip(2).product::<i64>() as f64;
    let range = is_bounded(dy.range.times(Range::new(0.0, outputs)))?;
    let dx = draft.float_result(choices, &dx_dims, range);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        ResampleBwd {
            dy: dy.id,
            index,
            dx,
            pre_padding: windows.pre_padding,
            post_padding: windows.post_padding,
            stride: windows.stride,
            window: windows.window,
            resample_mode: windows.mode,
            padding_mode: windows.padding,
        },
    )
}
