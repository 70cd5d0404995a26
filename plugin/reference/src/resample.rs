//! Pooling over windows of the spatial axes, forward and backward.

use crate::ReferenceError;
use crate::context::Context;
use crate::element::{Codec, Number};
use crate::sums::{Sums, grid};
use crate::value::{Extreme, Numbers, Value, division_error, flushed};
use half::{bf16, f16};
use rotini_graph::{PaddingMode, ResampleBwd, ResampleFwd, ResampleMode, TensorId};

/// The elements that each window covers, the same for every image and channel.
struct Windows {
    /// Number of elements of one channel of the input, the larger tensor.
    inputs: usize,
    /// For each output position, the input position of each tap in row-major order; `None` in the
    /// padding.
    taps: Vec<Vec<Option<usize>>>,
    /// Number of taps of one window.
    size: usize,
}

impl Windows {
    fn new(
        input: &[usize],
        output: &[usize],
        [pre_padding, stride, window]: [&[i64]; 3],
    ) -> Result<Self, ReferenceError> {
        let wrong = || ReferenceError::not_validated(format!("pooling of {input:?} to {output:?}"));
        let (Some(input), Some(output)) = (input.get(2..), output.get(2..)) else {
            return Err(wrong());
        };
        let list = |values: &[i64]| -> Option<Vec<usize>> {
            (values.len() == input.len() && output.len() == input.len())
                .then(|| values.iter().map(|&value| usize::try_from(value).ok()).collect())?
        };
        let (padding, stride, window) = (
            list(pre_padding).ok_or_else(wrong)?,
            list(stride).ok_or_else(wrong)?,
            list(window).ok_or_else(wrong)?,
        );
        let source = |position: &[usize], tap: &[usize]| {
            let mut flat = 0;
            for (axis, &extent) in input.iter().enumerate() {
                let at = |list: &[usize]| list.get(axis).copied().unwrap_or_default();
                let along = (at(position) * at(&stride) + at(tap)).checked_sub(at(&padding));
                flat = flat * extent + along.filter(|&along| along < extent)?;
            }
            Some(flat)
        };
        let taps: Vec<Vec<usize>> = indices(&window);
        Ok(Windows {
            inputs: input.iter().product(),
            taps: indices(output)
                .iter()
                .map(|position| taps.iter().map(|tap| source(position, tap)).collect())
                .collect(),
            size: taps.len(),
        })
    }

    /// Returns the divisor of the sum of a window.
    fn divisor(&self, mode: ResampleMode, taps: &[Option<usize>]) -> usize {
        match mode {
            ResampleMode::AvgpoolExcludePadding => taps.iter().flatten().count().max(1),
            ResampleMode::AvgpoolIncludePadding | ResampleMode::Maxpool => self.size,
        }
    }
}

/// Returns every index of an array of these extents in row-major order.
fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    dims.iter().fold(vec![Vec::new()], |prefixes, &dim| {
        prefixes
            .iter()
            .flat_map(|prefix| (0..dim).map(move |index| [prefix.as_slice(), &[index]].concat()))
            .collect()
    })
}

/// Computes pooling and returns the tensors that it writes.
pub(crate) fn forward(context: &Context<'_>, op: &ResampleFwd) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let (x_dims, dims) = (context.dims(op.x)?, context.dims(op.y)?);
    let windows = Windows::new(&x_dims, &dims, [&op.pre_padding, &op.stride, &op.window])?;
    if context.compute.precision().is_none() {
        return greatest_integers(context, op, &windows, dims);
    }
    let x = context.floats(op.x)?;
    let no_errors = vec![0.0; x.numbers.len()];
    let errors = x.errors.as_deref().unwrap_or(&no_errors);
    let channels = x
        .numbers
        .chunks_exact(windows.inputs)
        .zip(errors.chunks_exact(windows.inputs));
    let mut y = Vec::with_capacity(dims.iter().product());
    let mut index = Vec::with_capacity(y.capacity());
    let sums = Sums::new(context.compute, windows.size, exact_grid(&x.numbers, errors));
    for (values, errors) in channels {
        for taps in &windows.taps {
            let at = |tap: usize| {
                let value = values.get(tap).copied().unwrap_or_default();
                (
                    value,
                    errors
                        .get(tap)
                        .copied()
                        .unwrap_or_default()
                        .max(flushed(context.compute, value)),
                )
            };
            if op.resample_mode == ResampleMode::Maxpool {
                let (value, position) = largest(taps, op.padding_mode, at, context.compute);
                y.push(value);
                index.push(position);
                continue;
            }
            let terms = || taps.iter().flatten().map(|&tap| at(tap));
            let sum: f64 = terms().map(|(value, _)| value).sum();
            let error = sums.bound(
                terms().map(|(value, _)| value.abs()).sum(),
                taps.iter().flatten().filter_map(|&tap| errors.get(tap)).sum(),
            );
            let divisor = windows.divisor(op.resample_mode, taps);
            y.push((
                sum / divisor as f64,
                division_error(context.compute, sum, error, divisor),
            ));
        }
    }
    let value = |dims: &[usize], numbers, errors| Value {
        dims: dims.to_vec(),
        numbers,
        errors: context.bounds.then_some(errors),
    };
    let (y, errors) = y.into_iter().unzip();
    let mut written = vec![(op.y, value(&dims, Numbers::Float(y), errors))];
    if let Some(id) = op.index {
        let (index, errors) = index.into_iter().unzip();
        written.push((id, value(&dims, Numbers::Integer(index), errors)));
    }
    Ok(written)
}

/// Computes max pooling in integers. hipDNN's reference executor has no pooling in integers
/// (`ResampleFwdSignatureKey.hpp`); the rules are those of [`largest`], with the least number of
/// the compute type as the result of a window of padding.
fn greatest_integers(
    context: &Context<'_>,
    op: &ResampleFwd,
    windows: &Windows,
    dims: Vec<usize>,
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    if op.resample_mode != ResampleMode::Maxpool {
        return Err(context.unsupported("an average of integers"));
    }
    let x = context.exact_integers(op.x)?;
    let least = match context.compute.convert(Number::Float(f64::NEG_INFINITY)) {
        Number::Integer(least) => least,
        Number::Float(_) => return Err(context.unsupported("integers that are none")),
    };
    let (mut y, mut index) = (Vec::new(), Vec::new());
    for channel in x.numbers.chunks_exact(windows.inputs) {
        for taps in &windows.taps {
            let mut best = None;
            for &tap in taps {
                let candidate = match tap {
                    None if op.padding_mode == PaddingMode::NegInf => continue,
                    None => (0, -1),
                    Some(tap) => (
                        channel.get(tap).copied().unwrap_or_default(),
                        i64::try_from(tap).unwrap_or(-1),
                    ),
                };
                if best.is_none_or(|(value, _)| candidate.0 > value) {
                    best = Some(candidate);
                }
            }
            let (value, position) = best.unwrap_or((least, -1));
            y.push(value);
            index.push(position);
        }
    }
    let mut written = vec![(op.y, context.integer_value(dims.clone(), y))];
    if let Some(id) = op.index {
        written.push((id, context.integer_value(dims, index)));
    }
    Ok(written)
}

/// Returns the largest element of a window and its position, each with its error bound. The
/// position of padding is -1.
///
/// The first candidate is taken whatever its value, and any other only if it is greater: so a NaN
/// stays if it comes first and is ignored later, and of equal elements the first wins. A window
/// that covers only `NegInf` padding gives the least finite number of the compute type. All this
/// follows hipDNN's GPU reference (`GpuRefResampleFwd.cpp`), with which the tests of its CPU
/// reference agree.
fn largest(
    taps: &[Option<usize>],
    padding: PaddingMode,
    at: impl Fn(usize) -> (f64, f64),
    compute: Codec,
) -> ((f64, f64), (i64, f64)) {
    let position = |tap: Option<usize>| tap.and_then(|tap| i64::try_from(tap).ok()).unwrap_or(-1);
    let candidates: Vec<(i64, f64, f64)> = taps
        .iter()
        .filter(|tap| tap.is_some() || padding != PaddingMode::NegInf)
        .map(|&tap| {
            let (value, error) = tap.map_or((0.0, 0.0), &at);
            (position(tap), value, error)
        })
        .collect();
    let Some(&first) = candidates.first() else {
        return ((least_finite(compute), 0.0), (-1, 0.0));
    };
    let best = candidates
        .iter()
        .fold(first, |best, &next| if next.1 > best.1 { next } else { best });
    let mut range = Extreme::default();
    for &(_, value, error) in &candidates {
        range.add(value, error);
    }
    // A kernel may select any candidate whose interval reaches that of the best one.
    let index_error = candidates
        .iter()
        .filter(|(_, value, error)| error + best.2 > 0.0 && value + error >= best.1 - best.2)
        .map(|(position, ..)| position.abs_diff(best.0) as f64)
        .fold(0.0, f64::max);
    let value_error = if best.1.is_nan() { 0.0 } else { range.error() };
    ((best.1, value_error), (best.0, index_error))
}

/// Returns the least finite number of a compute type.
pub(crate) fn least_finite(compute: Codec) -> f64 {
    match compute {
        Codec::F16 => f16::MIN.into(),
        Codec::Bf16 => bf16::MIN.into(),
        Codec::F64 => f64::MIN,
        _ => f32::MIN.into(),
    }
}

fn exact_grid(values: &[f64], errors: &[f64]) -> Option<i32> {
    errors.iter().all(|&error| error == 0.0).then(|| grid(values)).flatten()
}

/// Computes dx\[n, c, i\] as a sum of dy\[n, c, o\]. Max pooling: over the windows o whose largest
/// element is i. Average pooling: over the windows that cover i, each term divided by the divisor
/// of the forward operation.
///
/// An index that lies outside its window is ignored, as in `CpuFpReferenceResampleBwd.hpp` of
/// hipDNN.
pub(crate) fn backward(context: &Context<'_>, op: &ResampleBwd) -> Result<Value, ReferenceError> {
    let (dims, dy_dims) = (context.dims(op.dx)?, context.dims(op.dy)?);
    if context.compute.precision().is_none() {
        return Err(context.unsupported("the gradient of pooling in integers"));
    }
    let windows = Windows::new(&dims, &dy_dims, [&op.pre_padding, &op.stride, &op.window])?;
    let dy = context.floats(op.dy)?;
    let index = match (op.resample_mode, op.index) {
        (ResampleMode::Maxpool, Some(index)) => Some(context.positions(index)?),
        (ResampleMode::Maxpool, None) => return Err(ReferenceError::not_validated("MAXPOOL without an index")),
        _ => None,
    };
    let count = dims.iter().product();
    let (mut dx, mut sizes, mut propagated) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
    let mut shares = Vec::new();
    let outputs = windows.taps.len();
    for (flat, &value) in dy.numbers.iter().enumerate() {
        let error = dy
            .errors
            .as_ref()
            .and_then(|errors| errors.get(flat).copied())
            .unwrap_or_default();
        let (channel, output) = (flat / outputs, flat % outputs);
        let taps = windows.taps.get(output).map(Vec::as_slice).unwrap_or_default();
        let (share, error, only) = match &index {
            Some(index) => (value, error, index.get(flat).copied()),
            None => {
                let divisor = windows.divisor(op.resample_mode, taps);
                let error = division_error(context.compute, value, error, divisor);
                (value / divisor as f64, error, None)
            }
        };
        shares.push((share, error));
        for &tap in taps.iter().flatten() {
            if only.is_some_and(|only| i64::try_from(tap) != Ok(only)) {
                continue;
            }
            let target = channel * windows.inputs + tap;
            let targets = (dx.get_mut(target), sizes.get_mut(target), propagated.get_mut(target));
            if let (Some(sum), Some(size), Some(off)) = targets {
                *sum += share;
                *size += f64::abs(share);
                *off += error;
            }
        }
    }
    let (shares, errors): (Vec<f64>, Vec<f64>) = shares.into_iter().unzip();
    let sums = Sums::new(context.compute, windows.size, exact_grid(&shares, &errors));
    let errors = sizes.iter().zip(propagated).map(|(&size, off)| sums.bound(size, off));
    Ok(Value {
        dims,
        errors: context.bounds.then(|| errors.collect()),
        numbers: Numbers::Float(dx),
    })
}
