//! Convolutions and their gradients.

use super::choices::Choices;
use super::draft::{Draft, Known, is_bounded, is_bounded_integer, small};
use crate::range::Range;
use rotini_graph::{ConvDgrad, ConvFprop, ConvGeometry, ConvMode, ConvWgrad, DataType, TensorId, conv_output_extent};
use rotini_reference::Profile;

/// The dims of one convolution, forward.
struct Shape {
    x: Vec<i64>,
    w: Vec<i64>,
    y: Vec<i64>,
    geometry: ConvGeometry,
}

/// Returns the dims of a new tensor of images.
fn images(choices: &mut Choices<'_>) -> Vec<i64> {
    let spatial = choices.pick(&[2, 2, 2, 2, 1, 3]);
    let extent = if spatial == 3 { 4 } else { 8 };
    let mut dims = vec![choices.between(1, 2), choices.between(1, 8)];
    dims.extend((0..spatial).map(|_| choices.between(1, extent)));
    dims
}

fn is_image(known: &Known) -> bool {
    (3..=5).contains(&known.dims.len()) && known.range.magnitude() <= 256.0
}

/// Returns windows and geometry over the first `spatial` axes, not yet fitted to the extents.
fn geometry(choices: &mut Choices<'_>, spatial: usize) -> (Vec<i64>, ConvGeometry) {
    let plain = choices.chance(50);
    let mut list = |least: i64, most: i64| -> Vec<i64> {
        (0..spatial)
            .map(|_| if plain { least } else { choices.between(least, most) })
            .collect()
    };
    let geometry = ConvGeometry {
        pre_padding: list(0, 2),
        post_padding: list(0, 2),
        stride: list(1, 4),
        dilation: list(1, 2),
        mode: ConvMode::CrossCorrelation,
    };
    let window = (0..spatial).map(|_| choices.pick(&[1, 3, 2])).collect();
    let mode = if choices.chance(15) {
        ConvMode::Convolution
    } else {
        ConvMode::CrossCorrelation
    };
    (window, ConvGeometry { mode, ..geometry })
}

/// Returns a number of groups for channels: one, several, or one per channel.
fn groups(choices: &mut Choices<'_>, channels: i64) -> i64 {
    let divisors: Vec<i64> = (1..=channels).filter(|divisor| channels % divisor == 0).collect();
    if choices.chance(35) {
        divisors[choices.below(divisors.len())]
    } else {
        1
    }
}

/// Returns a convolution of x.
fn of_x(choices: &mut Choices<'_>, x: &[i64]) -> Option<Shape> {
    let groups = groups(choices, x[1]);
    let filters = groups * choices.between(1, (8 / groups).max(1));
    let (window, mut geometry) = geometry(choices, x.len() - 2);
    let mut y = vec![x[0], filters];
    for axis in 0..window.len() {
        let reach = geometry.dilation[axis] * (window[axis] - 1) + 1;
        let lacking = reach - x[axis + 2] - geometry.pre_padding[axis];
        geometry.post_padding[axis] = geometry.post_padding[axis].max(lacking);
        y.push(conv_output_extent(
            x[axis + 2],
            window[axis],
            geometry.pre_padding[axis],
            geometry.post_padding[axis],
            geometry.stride[axis],
            geometry.dilation[axis],
        )?);
    }
    Some(Shape {
        w: [&[filters, x[1] / groups], window.as_slice()].concat(),
        x: x.to_vec(),
        y: small(y)?,
        geometry,
    })
}

/// Returns a convolution whose output is y.
fn of_y(choices: &mut Choices<'_>, y: &[i64]) -> Option<Shape> {
    let groups = groups(choices, y[1]);
    let per_group = choices.between(1, (8 / groups).max(1));
    let (window, geometry) = geometry(choices, y.len() - 2);
    let mut x = vec![y[0], per_group * groups];
    for axis in 0..window.len() {
        let reach = geometry.dilation[axis] * (window[axis] - 1) + 1;
        let padding = geometry.pre_padding[axis] + geometry.post_padding[axis];
        let least = (y[axis + 2] - 1) * geometry.stride[axis] + reach - padding;
        // A remainder that the stride does not reach.
        x.push(least + choices.between(0, geometry.stride[axis] - 1));
    }
    let valid = x.iter().all(|&extent| extent >= 1);
    Some(Shape {
        w: [&[y[1], per_group], window.as_slice()].concat(),
        x: small(x).filter(|_| valid)?,
        y: y.to_vec(),
        geometry,
    })
}

/// Returns the compute type of a product of two operands and a tensor for the result; integer
/// operands give integers.
pub(super) fn product(
    draft: &mut Draft,
    choices: &mut Choices<'_>,
    [a, b]: [&Known; 2],
    terms: i64,
    dims: &[i64],
) -> Option<(DataType, TensorId)> {
    let sum = a.range.times(b.range).times(Range::new(0.0, terms as f64));
    let is_whole = [a, b].iter().all(|known| known.dtype.is_integer() && known.exact);
    if is_whole && choices.chance(80) {
        let out = draft.result(choices, dims, DataType::I32, is_bounded_integer(sum)?, true);
        return Some((DataType::I32, out));
    }
    // For floats of magnitude 1, which is far above what occurs.
    let compute = draft.compute(choices);
    Some((compute, draft.float_result(choices, dims, is_bounded(sum)?)))
}

/// Returns the first operand: an image of floats, or of small integers.
fn image(draft: &mut Draft, choices: &mut Choices<'_>, role: Profile) -> Known {
    if choices.chance(10) {
        let dims = images(choices);
        return draft.input(choices, &dims, DataType::I8, role);
    }
    draft.first(choices, role, is_image, images)
}

pub(super) fn fprop(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = image(draft, choices, Profile::Normal);
    let shape = of_x(choices, &x.dims)?;
    let w = draft.operand(choices, &shape.w, x.dtype, Profile::Weights, is_image);
    let terms = shape.w[1..].iter().product();
    let (compute, y) = product(draft, choices, [&x, &w], terms, &shape.y)?;
    draft.node(
        compute,
        ConvFprop {
            x: x.id,
            w: w.id,
            y,
            geometry: shape.geometry,
        },
    )
}

pub(super) fn dgrad(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let dy = image(draft, choices, Profile::Normal);
    let shape = of_y(choices, &dy.dims)?;
    let w = draft.operand(choices, &shape.w, dy.dtype, Profile::Weights, is_image);
    let terms = shape.w.iter().product::<i64>() / shape.w[1];
    let (compute, dx) = product(draft, choices, [&dy, &w], terms, &shape.x)?;
    draft.node(
        compute,
        ConvDgrad {
            dy: dy.id,
            w: w.id,
            dx,
            geometry: shape.geometry,
        },
    )
}

pub(super) fn wgrad(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = image(draft, choices, Profile::Normal);
    let shape = of_x(choices, &x.dims)?;
    let dy = draft.operand(choices, &shape.y, x.dtype, Profile::Weights, is_image);
    let terms = shape.y.iter().product::<i64>() / shape.y[1];
    let (compute, dw) = product(draft, choices, [&x, &dy], terms, &shape.w)?;
    draft.node(
        compute,
        ConvWgrad {
            x: x.id,
            dy: dy.id,
            dw,
            geometry: shape.geometry,
        },
    )
}
