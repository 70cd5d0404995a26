//! Batch, layer and RMS normalization, forward and backward.
//!
//! The kinds differ in which elements share a mean and a variance, and which share a scale and a
//! bias. [`Problem`] holds this difference; the rest is the same for all. Variances follow hipDNN's
//! newest reference for layernorm: the mean is subtracted before squaring. hipDNN's reference for
//! batchnorm subtracts the squared mean from the mean of squares. Mathematically the value is the
//! same, but in the compute type that formula loses all digits of a variance far below the squared
//! mean; the bounds here do not allow such a loss.

use crate::ReferenceError;
use crate::context::Context;
use crate::real::{Arithmetic, Real};
use crate::value::Value;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, Layernorm, LayernormBackward,
    RmsNorm, RmsNormBackward, TensorId,
};

/// The epsilon of gradients if the node has none (hipDNN's `CpuFpReferenceBatchnorm.hpp` and
/// `LayernormBpropPlan.hpp`).
const DEFAULT_EPSILON: f64 = 1e-5;

type Results = Result<Vec<(TensorId, Value)>, ReferenceError>;

/// Computes y = scale (x - mean) inv_variance + bias, per channel.
pub(crate) fn batchnorm_inference(context: &Context<'_>, op: &BatchnormInference) -> Results {
    let arithmetic = context.arithmetic()?;
    let problem = Problem::channels(&context.dims(op.x)?)?;
    let normalized = problem.normalized(
        &arithmetic,
        &context.reals(op.x)?,
        &context.reals(op.mean)?,
        &context.reals(op.inv_variance)?,
    )?;
    let (scale, bias) = (context.reals(op.scale)?, context.reals(op.bias)?);
    let y = problem.transformed(&arithmetic, &normalized, &scale, Some(&bias))?;
    Ok(vec![context.result(op.y, &y)?])
}

/// Computes y = scale (x - mean) / sqrt(variance + epsilon) + bias, per channel.
pub(crate) fn batchnorm_inference_variance(context: &Context<'_>, op: &BatchnormInferenceVariance) -> Results {
    let arithmetic = context.arithmetic()?;
    let problem = Problem::channels(&context.dims(op.x)?)?;
    let epsilon = context.real(op.epsilon)?;
    let inv_variance: Vec<Real> = context
        .reals(op.variance)?
        .into_iter()
        .map(|variance| arithmetic.rsqrt(arithmetic.add(variance, epsilon)))
        .collect();
    let normalized = problem.normalized(
        &arithmetic,
        &context.reals(op.x)?,
        &context.reals(op.mean)?,
        &inv_variance,
    )?;
    let (scale, bias) = (context.reals(op.scale)?, context.reals(op.bias)?);
    let y = problem.transformed(&arithmetic, &normalized, &scale, Some(&bias))?;
    Ok(vec![context.result(op.y, &y)?])
}

/// Computes the batch's statistics per channel, y from these, and the running statistics.
///
/// The running statistics are next = (1 - momentum) previous + momentum batch, where the variance
/// of a batch of n elements is first multiplied by n / (n - 1).
pub(crate) fn batchnorm(context: &Context<'_>, op: &Batchnorm) -> Results {
    if !op.peer_stats.is_empty() {
        return Err(context.unsupported("statistics of several devices"));
    }
    let arithmetic = context.arithmetic()?;
    let problem = Problem::channels(&context.dims(op.x)?)?;
    let x = context.reals(op.x)?;
    let Statistics {
        mean,
        variance,
        inv_variance,
    } = problem.statistics(&arithmetic, &x, context.real(op.epsilon)?);
    let normalized = problem.normalized(&arithmetic, &x, &mean, &inv_variance)?;
    let (scale, bias) = (context.reals(op.scale)?, context.reals(op.bias)?);
    let y = problem.transformed(&arithmetic, &normalized, &scale, Some(&bias))?;
    let mut results = vec![context.result(op.y, &y)?];
    for (id, statistic) in [(op.mean, &mean), (op.inv_variance, &inv_variance)] {
        if let Some(id) = id {
            results.push(context.result(id, statistic)?);
        }
    }
    let running = [
        (op.prev_running_mean, op.next_running_mean, &mean, 1.0),
        (
            op.prev_running_variance,
            op.next_running_variance,
            &variance,
            problem.unbiased(),
        ),
    ];
    for (previous, next, batch, factor) in running {
        let (Some(previous), Some(next), Some(momentum)) = (previous, next, op.momentum) else {
            continue;
        };
        let momentum = context.real(momentum)?;
        let rest = arithmetic.sub(Real::exactly(1.0), momentum);
        let values: Vec<Real> = context
            .reals(previous)?
            .into_iter()
            .zip(batch)
            .map(|(previous, &batch)| {
                // The factor n / (n - 1) is itself a rounded quotient.
                let batch = if factor == 1.0 {
                    batch
                } else {
                    arithmetic.mul(batch, arithmetic.blurred(Real::exactly(factor), 4.0))
                };
                arithmetic.add(arithmetic.mul(rest, previous), arithmetic.mul(momentum, batch))
            })
            .collect();
        results.push(context.result(next, &values)?);
    }
    Ok(results)
}

/// Computes dx, dscale and dbias; see [`Problem::gradients`].
pub(crate) fn batchnorm_backward(context: &Context<'_>, op: &BatchnormBackward) -> Results {
    if !op.peer_stats.is_empty() {
        return Err(context.unsupported("statistics of several devices"));
    }
    let problem = Problem::channels(&context.dims(op.x)?)?;
    let saved = op.mean.zip(op.inv_variance);
    let x = context.reals(op.x)?;
    let (mean, inv_variance) = problem.saved(context, &x, saved, None)?;
    let dy = context.reals(op.dy)?;
    let scale = context.reals(op.scale)?;
    let gradients = problem.gradients(&context.arithmetic()?, [&dy, &x, &scale], Some(&mean), &inv_variance)?;
    Ok(vec![
        context.result(op.dx, &gradients.x)?,
        context.result(op.dscale, &gradients.scale)?,
        context.result(op.dbias, &gradients.bias)?,
    ])
}

/// Computes y = scale (x - mean) / sqrt(variance + epsilon) + bias, normalizing over the last dims.
pub(crate) fn layernorm(context: &Context<'_>, op: &Layernorm) -> Results {
    let arithmetic = context.arithmetic()?;
    let problem = Problem::last(&context.dims(op.x)?, op.normalized_dim_count)?;
    let x = context.reals(op.x)?;
    let Statistics { mean, inv_variance, .. } = problem.statistics(&arithmetic, &x, context.real(op.epsilon)?);
    let normalized = problem.normalized(&arithmetic, &x, &mean, &inv_variance)?;
    let (scale, bias) = (context.reals(op.scale)?, context.reals(op.bias)?);
    let y = problem.transformed(&arithmetic, &normalized, &scale, Some(&bias))?;
    let mut results = vec![context.result(op.y, &y)?];
    for (id, statistic) in [(op.mean, &mean), (op.inv_variance, &inv_variance)] {
        if let Some(id) = id {
            results.push(context.result(id, statistic)?);
        }
    }
    Ok(results)
}

/// Computes dx, dscale and dbias; see [`Problem::gradients`].
pub(crate) fn layernorm_backward(context: &Context<'_>, op: &LayernormBackward) -> Results {
    let problem = Problem::last(&context.dims(op.x)?, op.normalized_dim_count)?;
    let x = context.reals(op.x)?;
    let (mean, inv_variance) = problem.saved(context, &x, op.mean.zip(op.inv_variance), op.epsilon)?;
    let dy = context.reals(op.dy)?;
    let scale = context.reals(op.scale)?;
    let gradients = problem.gradients(&context.arithmetic()?, [&dy, &x, &scale], Some(&mean), &inv_variance)?;
    Ok(vec![
        context.result(op.dx, &gradients.x)?,
        context.result(op.dscale, &gradients.scale)?,
        context.result(op.dbias, &gradients.bias)?,
    ])
}

/// Computes y = scale x / sqrt(mean of squares + epsilon) + bias, normalizing over the dims of the
/// scale.
pub(crate) fn rms_norm(context: &Context<'_>, op: &RmsNorm) -> Results {
    let arithmetic = context.arithmetic()?;
    let problem = Problem::scaled(&context.dims(op.x)?, &context.dims(op.scale)?)?;
    let x = context.reals(op.x)?;
    let epsilon = context.real(op.epsilon)?;
    let inv_rms: Vec<Real> = problem
        .members(&problem.groups)
        .into_iter()
        .map(|members| {
            let x = gather(&x, &members);
            let squares = arithmetic.div(arithmetic.dot(&x, &x), Real::exactly(x.len() as f64));
            arithmetic.rsqrt(arithmetic.add(squares, epsilon))
        })
        .collect();
    let normalized: Vec<Real> = x
        .iter()
        .zip(&problem.groups.of)
        .map(|(&x, &group)| arithmetic.mul(x, at(&inv_rms, group)))
        .collect();
    let bias = op.bias.map(|bias| context.reals(bias)).transpose()?;
    let y = problem.transformed(&arithmetic, &normalized, &context.reals(op.scale)?, bias.as_deref())?;
    let mut results = vec![context.result(op.y, &y)?];
    if let Some(id) = op.inv_rms {
        results.push(context.result(id, &inv_rms)?);
    }
    Ok(results)
}

/// Computes dx, dscale and dbias; see [`Problem::gradients`].
pub(crate) fn rms_norm_backward(context: &Context<'_>, op: &RmsNormBackward) -> Results {
    let problem = Problem::scaled(&context.dims(op.x)?, &context.dims(op.scale)?)?;
    let [dy, x, scale, inv_rms] = [op.dy, op.x, op.scale, op.inv_rms].map(|id| context.reals(id));
    let gradients = problem.gradients(&context.arithmetic()?, [&dy?, &x?, &scale?], None, &inv_rms?)?;
    let mut results = vec![
        context.result(op.dx, &gradients.x)?,
        context.result(op.dscale, &gradients.scale)?,
    ];
    if let Some(id) = op.dbias {
        results.push(context.result(id, &gradients.bias)?);
    }
    Ok(results)
}

/// A partition of the elements of x.
struct Classes {
    /// The class of each element in logical order.
    of: Vec<usize>,
    count: usize,
}

/// The elements of x that share statistics, and those that share parameters.
struct Problem {
    /// Elements that share a mean and a variance.
    groups: Classes,
    /// Elements that share a scale and a bias.
    parameters: Classes,
}

/// The statistics of each group of elements.
struct Statistics {
    mean: Vec<Real>,
    variance: Vec<Real>,
    inv_variance: Vec<Real>,
}

struct Gradients {
    x: Vec<Real>,
    scale: Vec<Real>,
    bias: Vec<Real>,
}

impl Problem {
    /// Returns the problem with groups and parameters by channel, which is axis 1.
    fn channels(dims: &[usize]) -> Result<Self, ReferenceError> {
        let [_, channels, spatial @ ..] = dims else {
            return Err(ReferenceError::not_validated(format!("channels of dims {dims:?}")));
        };
        let spatial: usize = spatial.iter().product();
        let classes = || Classes {
            of: (0..dims.iter().product())
                .map(|index| index / spatial % channels)
                .collect(),
            count: *channels,
        };
        Ok(Problem {
            groups: classes(),
            parameters: classes(),
        })
    }

    /// Returns the problem with one group per index of the leading axes and one parameter per index
    /// of the last `count` axes.
    fn last(dims: &[usize], count: i64) -> Result<Self, ReferenceError> {
        usize::try_from(count)
            .ok()
            .and_then(|count| dims.len().checked_sub(count))
            .and_then(|first| dims.split_at_checked(first))
            .map(|(outer, inner)| Self::rows(outer, inner))
            .ok_or_else(|| ReferenceError::not_validated(format!("the last {count} of dims {dims:?}")))
    }

    /// Returns the problem as [`last`](Self::last) does, where the last axes are those in which the
    /// scale has the extents of x. Axis 0 is always the batch; a scale of lower rank is padded with
    /// leading extents of 1.
    fn scaled(dims: &[usize], scale: &[usize]) -> Result<Self, ReferenceError> {
        let mut scale = scale.to_vec();
        while scale.len() < dims.len() {
            scale.insert(0, 1);
        }
        let last = (1..dims.len())
            .rev()
            .take_while(|&axis| dims.get(axis) == scale.get(axis))
            .last();
        match last.and_then(|first| dims.split_at_checked(first)) {
            Some((outer, inner)) if dims.len() == scale.len() => Ok(Self::rows(outer, inner)),
            _ => Err(ReferenceError::not_validated(format!(
                "a scale of dims {scale:?} for {dims:?}"
            ))),
        }
    }

    fn rows(outer: &[usize], inner: &[usize]) -> Self {
        let (rows, columns): (usize, usize) = (outer.iter().product(), inner.iter().product());
        Problem {
            groups: Classes {
                of: (0..rows * columns).map(|index| index / columns).collect(),
                count: rows,
            },
            parameters: Classes {
                of: (0..rows * columns).map(|index| index % columns).collect(),
                count: columns,
            },
        }
    }

    /// Returns the positions of the elements of each class.
    fn members(&self, classes: &Classes) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); classes.count];
        for (position, &class) in classes.of.iter().enumerate() {
            if let Some(members) = members.get_mut(class) {
                members.push(position);
            }
        }
        members
    }

    /// Returns n / (n - 1) for groups of n elements, 1 for groups of one element.
    fn unbiased(&self) -> f64 {
        let count = self.groups.of.len() / self.groups.count.max(1);
        if count > 1 {
            count as f64 / (count - 1) as f64
        } else {
            1.0
        }
    }

    fn statistics(&self, arithmetic: &Arithmetic, x: &[Real], epsilon: Real) -> Statistics {
        let mut statistics = Statistics {
            mean: Vec::new(),
            variance: Vec::new(),
            inv_variance: Vec::new(),
        };
        for members in self.members(&self.groups) {
            let x = gather(x, &members);
            let mean = arithmetic.mean(&x);
            let centred: Vec<Real> = x.iter().map(|&x| arithmetic.sub(x, mean)).collect();
            let squares = arithmetic.dot(&centred, &centred);
            let variance = arithmetic.div(squares, Real::exactly(x.len() as f64));
            statistics.mean.push(mean);
            statistics.variance.push(variance);
            statistics
                .inv_variance
                .push(arithmetic.rsqrt(arithmetic.add(variance, epsilon)));
        }
        statistics
    }

    /// Returns the saved mean and inverse deviation, or computes them from x.
    fn saved(
        &self,
        context: &Context<'_>,
        x: &[Real],
        saved: Option<(TensorId, TensorId)>,
        epsilon: Option<TensorId>,
    ) -> Result<(Vec<Real>, Vec<Real>), ReferenceError> {
        if let Some((mean, inv_variance)) = saved {
            return Ok((context.reals(mean)?, context.reals(inv_variance)?));
        }
        let arithmetic = context.arithmetic()?;
        let epsilon = match epsilon {
            Some(epsilon) => context.real(epsilon)?,
            // The default rounded to the compute type.
            None => arithmetic.blurred(Real::exactly(DEFAULT_EPSILON), 1.0),
        };
        let statistics = self.statistics(&arithmetic, x, epsilon);
        Ok((statistics.mean, statistics.inv_variance))
    }

    /// Computes (x - mean) inv_variance.
    fn normalized(
        &self,
        arithmetic: &Arithmetic,
        x: &[Real],
        mean: &[Real],
        inv_variance: &[Real],
    ) -> Result<Vec<Real>, ReferenceError> {
        self.check(&self.groups, x, mean)?;
        self.check(&self.groups, x, inv_variance)?;
        let normalized =
            |(&x, &group): (&Real, &usize)| arithmetic.mul(arithmetic.sub(x, at(mean, group)), at(inv_variance, group));
        Ok(x.iter().zip(&self.groups.of).map(normalized).collect())
    }

    /// Computes scale · normalized + bias.
    fn transformed(
        &self,
        arithmetic: &Arithmetic,
        normalized: &[Real],
        scale: &[Real],
        bias: Option<&[Real]>,
    ) -> Result<Vec<Real>, ReferenceError> {
        for parameter in [Some(scale), bias].into_iter().flatten() {
            self.check(&self.parameters, normalized, parameter)?;
        }
        let transformed = |(&normalized, &parameter): (&Real, &usize)| {
            let scaled = arithmetic.mul(at(scale, parameter), normalized);
            bias.map_or(scaled, |bias| arithmetic.add(scaled, at(bias, parameter)))
        };
        Ok(normalized.iter().zip(&self.parameters.of).map(transformed).collect())
    }

    /// Computes the gradients of a normalization.
    ///
    /// With n the normalized x and g = scale dy: dx is inv_variance (g - mean of g - n times the
    /// mean of g n), with the means over the group; dscale and dbias are the sums of dy n and of dy
    /// over the elements of a parameter. Without a mean (RMSNorm), the term "mean of g" is absent.
    fn gradients(
        &self,
        arithmetic: &Arithmetic,
        [dy, x, scale]: [&[Real]; 3],
        mean: Option<&[Real]>,
        inv_variance: &[Real],
    ) -> Result<Gradients, ReferenceError> {
        let zeros = vec![Real::default(); self.groups.count];
        let normalized = self.normalized(arithmetic, x, mean.unwrap_or(&zeros), inv_variance)?;
        let scaled = self.transformed(arithmetic, dy, scale, None)?;
        let mut dx = vec![Real::default(); x.len()];
        for (members, &inv_variance) in self.members(&self.groups).into_iter().zip(inv_variance) {
            let (g, n) = (gather(&scaled, &members), gather(&normalized, &members));
            let count = Real::exactly(members.len() as f64);
            let mean_g = mean.map(|_| arithmetic.mean(&g));
            let mean_gn = arithmetic.div(arithmetic.dot(&g, &n), count);
            for ((position, &g), &n) in members.into_iter().zip(&g).zip(&n) {
                let centred = mean_g.map_or(g, |mean_g| arithmetic.sub(g, mean_g));
                let rest = arithmetic.sub(centred, arithmetic.mul(n, mean_gn));
                if let Some(dx) = dx.get_mut(position) {
                    *dx = arithmetic.mul(inv_variance, rest);
                }
            }
        }
        let members = self.members(&self.parameters);
        Ok(Gradients {
            x: dx,
            scale: members
                .iter()
                .map(|members| arithmetic.dot(&gather(dy, members), &gather(&normalized, members)))
                .collect(),
            bias: members
                .iter()
                .map(|members| arithmetic.sum(&gather(dy, members)))
                .collect(),
        })
    }

    fn check(&self, classes: &Classes, elements: &[Real], values: &[Real]) -> Result<(), ReferenceError> {
        if classes.of.len() == elements.len() && classes.count == values.len() {
            return Ok(());
        }
        Err(ReferenceError::not_validated(format!(
            "{} values for {} elements of {} classes",
            values.len(),
            elements.len(),
            classes.count
        )))
    }
}

fn gather(elements: &[Real], positions: &[usize]) -> Vec<Real> {
    positions.iter().map(|&position| at(elements, position)).collect()
}

fn at(elements: &[Real], position: usize) -> Real {
    elements.get(position).copied().unwrap_or_default()
}
