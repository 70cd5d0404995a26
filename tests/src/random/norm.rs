//! Normalizations and their gradients.

use super::choices::Choices;
use super::draft::{Draft, Known, dims, is_bounded};
use crate::range::Range;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, DataType, Layernorm,
    LayernormBackward, NormPhase, RmsNorm, RmsNormBackward, TensorId,
};
use rotini_reference::Profile;

/// Returns an image or a batch of vectors to normalize.
fn first(draft: &mut Draft, choices: &mut Choices<'_>) -> Known {
    draft.first(
        choices,
        Profile::Normal,
        |known| known.dims.len() >= 2 && known.range.magnitude() <= 256.0,
        |choices| {
            let rank = choices.pick(&[4, 4, 3, 2, 5]);
            dims(choices, rank)
        },
    )
}

/// Returns a parameter of a normalization.
fn parameter(draft: &mut Draft, choices: &mut Choices<'_>, dims: &[i64], role: Profile) -> Known {
    let dtype = if choices.chance(50) {
        DataType::F32
    } else {
        draft.float(choices)
    };
    let least = if role == Profile::Positive {
        0.1
    } else {
        f64::NEG_INFINITY
    };
    draft.operand(choices, dims, dtype, role, |known| {
        known.range.low >= least && known.range.magnitude() <= 16.0
    })
}

/// Returns a constant epsilon to add to a variance.
fn epsilon(draft: &mut Draft, choices: &mut Choices<'_>) -> TensorId {
    let value = choices.pick(&[0.0625, 0.25, 1e-3]);
    let dims = choices.pick(&[[1_i64].as_slice(), &[1; 4]]);
    draft.constant(dims, DataType::F32, value).id
}

/// Returns the dims of one number per channel.
fn channels(x: &Known) -> Vec<i64> {
    let mut dims = vec![1; x.dims.len()];
    dims[1] = x.dims[1];
    dims
}

/// Returns the range of scaled and shifted elements if the normalized ones have this magnitude.
fn transformed(normal: f64, scale: &Known, bias: f64) -> Option<Range> {
    is_bounded(Range::around(normal * scale.range.magnitude() + bias))
}

/// Returns an upper bound of a normalized element's magnitude: the squares of all elements sum to
/// `count`.
fn normal(count: i64) -> f64 {
    (count as f64).sqrt()
}

/// Returns two statistics that are saved together or not at all.
fn saved(draft: &mut Draft, choices: &mut Choices<'_>, dims: &[i64], x: &Known) -> [Option<TensorId>; 2] {
    if !choices.chance(50) {
        return [None; 2];
    }
    let mean = draft.float_result(choices, dims, x.range);
    [Some(mean), Some(inverse(draft, choices, dims))]
}

/// Returns a saved inverse deviation, which the smallest epsilon bounds.
fn inverse(draft: &mut Draft, choices: &mut Choices<'_>, dims: &[i64]) -> TensorId {
    draft.float_result(choices, dims, Range::new(0.0, 32.0))
}

pub(super) fn batchnorm_inference(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let dims = channels(&x);
    let mut next = |role| parameter(draft, choices, &dims, role);
    let [mean, inv_variance, scale, bias] = [
        next(Profile::Normal),
        next(Profile::Positive),
        next(Profile::Normal),
        next(Profile::Normal),
    ];
    let normal = (x.range.magnitude() + mean.range.magnitude()) * inv_variance.range.magnitude();
    let range = transformed(normal, &scale, bias.range.magnitude())?;
    let y = draft.float_result(choices, &x.dims, range);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        BatchnormInference {
            x: x.id,
            mean: mean.id,
            inv_variance: inv_variance.id,
            scale: scale.id,
            bias: bias.id,
            y,
        },
    )
}

pub(super) fn batchnorm_inference_variance(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let dims = channels(&x);
    let mut next = |role| parameter(draft, choices, &dims, role);
    let [mean, variance, scale, bias] = [
        next(Profile::Normal),
        next(Profile::Positive),
        next(Profile::Normal),
        next(Profile::Normal),
    ];
    let normal = (x.range.magnitude() + mean.range.magnitude()) / variance.range.low.sqrt();
    let range = transformed(normal, &scale, bias.range.magnitude())?;
    let epsilon = epsilon(draft, choices);
    let y = draft.float_result(choices, &x.dims, range);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        BatchnormInferenceVariance {
            x: x.id,
            mean: mean.id,
            variance: variance.id,
            scale: scale.id,
            bias: bias.id,
            epsilon,
            y,
        },
    )
}

pub(super) fn batchnorm(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let dims = channels(&x);
    let [scale, bias] = [(); 2].map(|()| parameter(draft, choices, &dims, Profile::Normal));
    let count = x.dims.iter().product::<i64>() / x.dims[1];
    let range = transformed(normal(count), &scale, bias.range.magnitude())?;
    let epsilon = epsilon(draft, choices);
    let running = choices.chance(40);
    let previous =
        [Profile::Normal, Profile::Positive].map(|role| running.then(|| parameter(draft, choices, &dims, role)));
    let momentum = running.then(|| draft.constant(&[1], DataType::F32, 0.125).id);
    let y = draft.float_result(choices, &x.dims, range);
    let [mean, inv_variance] = saved(draft, choices, &dims, &x);
    let spread = Range::new(0.0, x.range.magnitude().powi(2) * 2.0 + 16.0);
    let [next_running_mean, next_running_variance] = [Range::around(x.range.magnitude() + 16.0), spread]
        .map(|range| running.then(|| draft.float_result(choices, &dims, range)));
    let compute = draft.compute(choices);
    // Of batchnorm's features, only peer statistics are beyond a single device.
    let peers = draft.oddity(choices, 10);
    let peer_stats = if peers { vec![bias.id] } else { Vec::new() };
    let [prev_running_mean, prev_running_variance] = previous.map(|known| known.map(|known| known.id));
    draft.node(
        compute,
        Batchnorm {
            x: x.id,
            scale: scale.id,
            bias: bias.id,
            epsilon,
            peer_stats,
            prev_running_mean,
            prev_running_variance,
            momentum,
            y,
            mean,
            inv_variance,
            next_running_mean,
            next_running_variance,
        },
    )
}

/// Operands of a backward normalization besides x and scale, and the magnitudes of its results.
struct Gradient {
    dy: Known,
    mean: Option<TensorId>,
    inverse: Option<Known>,
    dx: Range,
    dscale: Range,
    dbias: Range,
}

impl Gradient {
    /// Builds it for `count` elements, with parameters that `rows` of them share.
    fn new(
        draft: &mut Draft,
        choices: &mut Choices<'_>,
        x: &Known,
        scale: &Known,
        statistics: Option<(&[i64], bool)>,
        [count, rows]: [i64; 2],
    ) -> Option<Self> {
        let like = draft.float(choices);
        let dy = draft.operand(choices, &x.dims, like, Profile::Normal, |known| {
            known.range.magnitude() <= 16.0
        });
        let mean = statistics
            .filter(|(_, with_mean)| *with_mean)
            .map(|(dims, _)| parameter(draft, choices, dims, Profile::Normal));
        let inverse = statistics.map(|(dims, _)| parameter(draft, choices, dims, Profile::Positive));
        let centre = mean.as_ref().map_or(0.0, |known| known.range.magnitude());
        // Without statistics they are recomputed, and epsilon (or hipDNN's 1e-5) bounds the inverse
        // deviation.
        let (factor, normal) = match &inverse {
            Some(known) => {
                let factor = known.range.magnitude();
                (factor, (x.range.magnitude() + centre) * factor)
            }
            None => (320.0, normal(count)),
        };
        let (size, rows) = (dy.range.magnitude(), rows as f64);
        Some(Gradient {
            mean: mean.map(|known| known.id),
            inverse,
            dx: is_bounded(Range::around(
                scale.range.magnitude() * factor * size * (2.0 + normal * normal),
            ))?,
            dscale: is_bounded(Range::around(size * normal * rows))?,
            dbias: is_bounded(Range::around(size * rows))?,
            dy,
        })
    }
}

pub(super) fn batchnorm_backward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let dims = channels(&x);
    let scale = parameter(draft, choices, &dims, Profile::Normal);
    let count = x.dims.iter().product::<i64>() / x.dims[1];
    let statistics = choices.chance(60).then_some((dims.as_slice(), true));
    let gradient = Gradient::new(draft, choices, &x, &scale, statistics, [count; 2])?;
    let dx = draft.float_result(choices, &x.dims, gradient.dx);
    let dscale = draft.float_result(choices, &dims, gradient.dscale);
    let dbias = draft.float_result(choices, &dims, gradient.dbias);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        BatchnormBackward {
            dy: gradient.dy.id,
            x: x.id,
            mean: gradient.mean,
            inv_variance: gradient.inverse.map(|known| known.id),
            scale: scale.id,
            peer_stats: Vec::new(),
            dx,
            dscale,
            dbias,
        },
    )
}

/// Returns the number of normalized trailing dims, the dims of parameters and those of statistics.
fn trailing(choices: &mut Choices<'_>, x: &Known, least_kept: usize) -> (i64, Vec<i64>, Vec<i64>) {
    let rank = x.dims.len();
    let count = 1 + choices.below(rank - least_kept);
    let first = rank - count;
    let (outer, inner) = x.dims.split_at(first);
    let parameters = [vec![1; first].as_slice(), inner].concat();
    let statistics = [outer, vec![1; count].as_slice()].concat();
    (i64::try_from(count).unwrap_or(1), parameters, statistics)
}

pub(super) fn layernorm(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let (normalized_dim_count, parameters, statistics) = trailing(choices, &x, 0);
    let [scale, bias] = [(); 2].map(|()| parameter(draft, choices, &parameters, Profile::Normal));
    let range = transformed(normal(parameters.iter().product()), &scale, bias.range.magnitude())?;
    let epsilon = epsilon(draft, choices);
    let y = draft.float_result(choices, &x.dims, range);
    let [mean, inv_variance] = saved(draft, choices, &statistics, &x);
    let phase = if mean.is_some() {
        NormPhase::Training
    } else {
        NormPhase::Inference
    };
    let compute = draft.compute(choices);
    draft.node(
        compute,
        Layernorm {
            x: x.id,
            scale: scale.id,
            bias: bias.id,
            epsilon,
            y,
            mean,
            inv_variance,
            normalized_dim_count,
            phase,
        },
    )
}

pub(super) fn layernorm_backward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let (normalized_dim_count, parameters, statistics) = trailing(choices, &x, 0);
    let scale = parameter(draft, choices, &parameters, Profile::Normal);
    let [count, rows] = [&parameters, &statistics].map(|dims| dims.iter().product());
    let given = choices.chance(60).then_some((statistics.as_slice(), true));
    let epsilon = choices.chance(50).then(|| epsilon(draft, choices));
    let gradient = Gradient::new(draft, choices, &x, &scale, given, [count, rows])?;
    let dx = draft.float_result(choices, &x.dims, gradient.dx);
    let dscale = draft.float_result(choices, &parameters, gradient.dscale);
    let dbias = draft.float_result(choices, &parameters, gradient.dbias);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        LayernormBackward {
            dy: gradient.dy.id,
            x: x.id,
            scale: scale.id,
            mean: gradient.mean,
            inv_variance: gradient.inverse.map(|known| known.id),
            epsilon,
            dx,
            dscale,
            dbias,
            normalized_dim_count,
        },
    )
}

/// Returns [`trailing`] for an operation that infers the normalized dims from its scale: from the
/// scale's first axis that is not 1.
fn inferred(choices: &mut Choices<'_>, x: &Known) -> Option<(Vec<i64>, Vec<i64>)> {
    let (_, parameters, _) = trailing(choices, x, 1);
    let first = rotini_graph::rms_normalized_axis(&x.dims, &parameters)?;
    let statistics = (0..x.dims.len())
        .map(|axis| if axis < first { x.dims[axis] } else { 1 })
        .collect();
    Some((parameters, statistics))
}

pub(super) fn rms_norm(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let (parameters, statistics) = inferred(choices, &x)?;
    let scale = parameter(draft, choices, &parameters, Profile::Normal);
    let bias = choices
        .chance(50)
        .then(|| parameter(draft, choices, &parameters, Profile::Normal));
    let shift = bias.as_ref().map_or(0.0, |known| known.range.magnitude());
    let range = transformed(normal(parameters.iter().product()), &scale, shift)?;
    let epsilon = epsilon(draft, choices);
    let y = draft.float_result(choices, &x.dims, range);
    let inv_rms = choices.chance(50).then(|| inverse(draft, choices, &statistics));
    let phase = if inv_rms.is_some() {
        NormPhase::Training
    } else {
        NormPhase::Inference
    };
    let compute = draft.compute(choices);
    draft.node(
        compute,
        RmsNorm {
            x: x.id,
            scale: scale.id,
            epsilon,
            bias: bias.map(|known| known.id),
            y,
            inv_rms,
            phase,
        },
    )
}

pub(super) fn rms_norm_backward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = first(draft, choices);
    let (parameters, statistics) = inferred(choices, &x)?;
    let scale = parameter(draft, choices, &parameters, Profile::Normal);
    let [count, rows] = [&parameters, &statistics].map(|dims| dims.iter().product());
    let given = Some((statistics.as_slice(), false));
    let gradient = Gradient::new(draft, choices, &x, &scale, given, [count, rows])?;
    let dx = draft.float_result(choices, &x.dims, gradient.dx);
    let dscale = draft.float_result(choices, &parameters, gradient.dscale);
    let dbias = choices
        .chance(50)
        .then(|| draft.float_result(choices, &parameters, gradient.dbias));
    let compute = draft.compute(choices);
    draft.node(
        compute,
        RmsNormBackward {
            dy: gradient.dy.id,
            x: x.id,
            scale: scale.id,
            inv_rms: gradient.inverse?.id,
            dx,
            dscale,
            dbias,
        },
    )
}
