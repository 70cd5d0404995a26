//! Batch, layer and RMS normalization.

use crate::op::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, Layernorm, LayernormBackward,
    NormPhase, RmsNorm, RmsNormBackward,
};
use crate::{Graph, GraphError, Tensor, TensorId, rms_normalized_axis};

impl Graph {
    /// Checks that parameters and statistics have one element per channel, and that y has the dims
    /// of x.
    pub(crate) fn check_batchnorm_inference(&self, position: usize, op: &BatchnormInference) -> Result<(), GraphError> {
        self.check_channels(position, op.x, &[op.mean, op.inv_variance, op.scale, op.bias])?;
        self.check_like(position, op.x, &[], &[op.y])
    }

    /// Checks as [`Graph::check_batchnorm_inference`] does, and that epsilon is a single element.
    pub(crate) fn check_batchnorm_inference_variance(
        &self,
        position: usize,
        op: &BatchnormInferenceVariance,
    ) -> Result<(), GraphError> {
        self.check_channels(position, op.x, &[op.mean, op.variance, op.scale, op.bias])?;
        self.check_single(position, op.epsilon)?;
        self.check_like(position, op.x, &[], &[op.y])
    }

    /// Checks that parameters and statistics have one element per channel, that y has the dims of
    /// x, and that the running statistics are given completely or not at all.
    pub(crate) fn check_batchnorm(&self, position: usize, op: &Batchnorm) -> Result<(), GraphError> {
        let running = [
            op.prev_running_mean,
            op.prev_running_variance,
            op.next_running_mean,
            op.next_running_variance,
        ];
        if running.iter().any(Option::is_some) && (running.contains(&None) || op.momentum.is_none()) {
            let what = "running statistics need the previous and the next mean and variance, and the momentum";
            return Err(self.attribute(position, what));
        }
        let [previous_mean, previous_variance, next_mean, next_variance] = running;
        let outputs = [op.mean, op.inv_variance, next_mean, next_variance];
        let tensors = [Some(op.scale), Some(op.bias), previous_mean, previous_variance]
            .into_iter()
            .chain(outputs);
        self.check_channels(position, op.x, &tensors.flatten().collect::<Vec<_>>())?;
        for single in [Some(op.epsilon), op.momentum].into_iter().flatten() {
            self.check_single(position, single)?;
        }
        self.check_like(position, op.x, &[], &[op.y])
    }

    /// Checks that parameters, statistics and their gradients have one element per channel, that dy
    /// and dx have the dims of x, and that mean and inv_variance are given together or not at all.
    pub(crate) fn check_batchnorm_backward(&self, position: usize, op: &BatchnormBackward) -> Result<(), GraphError> {
        self.check_both(position, op.mean, op.inv_variance)?;
        let statistics = [op.mean, op.inv_variance].into_iter().flatten();
        let tensors: Vec<TensorId> = [op.scale]
            .into_iter()
            .chain(statistics)
            .chain([op.dscale, op.dbias])
            .collect();
        self.check_channels(position, op.x, &tensors)?;
        self.check_like(position, op.x, &[op.dy], &[op.dx])
    }

    /// Checks that scale and bias have the normalized dims, the statistics the other dims, and y
    /// those of x.
    pub(crate) fn check_layernorm(&self, position: usize, op: &Layernorm) -> Result<(), GraphError> {
        let first = self.check_normalized(position, op.x, op.normalized_dim_count, &[op.scale, op.bias])?;
        for id in [op.mean, op.inv_variance].into_iter().flatten() {
            self.check_statistics(position, op.x, first, id)?;
        }
        self.check_single(position, op.epsilon)?;
        self.check_like(position, op.x, &[], &[op.y])
    }

    /// Checks that scale, dscale and dbias have the normalized dims, that dy and dx have those of
    /// x, and that mean and inv_variance are given together or not at all.
    pub(crate) fn check_layernorm_backward(&self, position: usize, op: &LayernormBackward) -> Result<(), GraphError> {
        self.check_both(position, op.mean, op.inv_variance)?;
        let scales = [op.scale, op.dscale, op.dbias];
        let first = self.check_normalized(position, op.x, op.normalized_dim_count, &scales)?;
        for id in [op.mean, op.inv_variance].into_iter().flatten() {
            self.check_statistics(position, op.x, first, id)?;
        }
        if let Some(epsilon) = op.epsilon {
            self.check_single(position, epsilon)?;
        }
        self.check_like(position, op.x, &[op.dy], &[op.dx])
    }

    /// Checks an RMSNorm, whose scale determines the normalized dims. `inv_rms` is required in the
    /// training phase and not allowed in the inference phase.
    pub(crate) fn check_rms_norm(&self, position: usize, op: &RmsNorm) -> Result<(), GraphError> {
        match (op.phase, op.inv_rms) {
            (NormPhase::Training, None) => {
                return Err(self.attribute(position, "inv_rms is missing in the training phase"));
            }
            (NormPhase::Inference, Some(_)) => {
                return Err(self.attribute(position, "inv_rms is not saved in the inference phase"));
            }
            _ => {}
        }
        let first = self.check_rms_scale(position, op.x, op.scale)?;
        self.check_like(position, op.scale, op.bias.as_slice(), &[])?;
        if let Some(inv_rms) = op.inv_rms {
            self.check_statistics(position, op.x, first, inv_rms)?;
        }
        self.check_single(position, op.epsilon)?;
        self.check_like(position, op.x, &[], &[op.y])
    }

    /// Checks the gradients of RMSNorm. The scale determines the normalized dims; dscale and dbias
    /// have the dims of scale, dy and dx those of x.
    pub(crate) fn check_rms_norm_backward(&self, position: usize, op: &RmsNormBackward) -> Result<(), GraphError> {
        let outputs: Vec<TensorId> = [Some(op.dscale), op.dbias].into_iter().flatten().collect();
        let first = self.check_rms_scale(position, op.x, op.scale)?;
        self.check_like(position, op.scale, &[], &outputs)?;
        self.check_statistics(position, op.x, first, op.inv_rms)?;
        self.check_like(position, op.x, &[op.dy], &[op.dx])
    }

    /// Checks that inputs and outputs have the dims of `model`.
    fn check_like(
        &self,
        position: usize,
        model: TensorId,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> Result<(), GraphError> {
        let model = self.at(model);
        for input in inputs.iter().map(|&id| self.at(id)) {
            if input.dims != model.dims {
                let what = format!("{input} has dims {:?}, but must have {:?}", input.dims, model.dims);
                return Err(self.contradiction(position, what));
            }
        }
        for output in outputs.iter().map(|&id| self.at(id)) {
            self.shape(position, output, model.dims.clone())?;
        }
        Ok(())
    }

    /// Checks that tensors have one element per channel of `x`: dims 1, C and any number of
    /// trailing 1s, as in hipDNN's front end, or C alone.
    fn check_channels(&self, position: usize, x: TensorId, tensors: &[TensorId]) -> Result<(), GraphError> {
        let x = self.at(x);
        let &[_, channels, ..] = x.dims.as_slice() else {
            let what = format!(
                "{x} has rank {}, but needs a batch and a channel dimension",
                x.dims.len()
            );
            return Err(self.attribute(position, what));
        };
        for tensor in tensors.iter().map(|&id| self.at(id)) {
            let is_per_channel = match tensor.dims.as_slice() {
                [1, dim, rest @ ..] => *dim == channels && rest.iter().all(|&dim| dim == 1),
                [dim] => *dim == channels,
                _ => false,
            };
            if !is_per_channel {
                let mut wanted = vec![1; x.dims.len()];
                if let Some(dim) = wanted.get_mut(1) {
                    *dim = channels;
                }
                return Err(self.not_dims(position, tensor, &wanted));
            }
        }
        Ok(())
    }

    /// Checks tensors over the last `count` dims of `x`, which may have leading 1s up to the rank
    /// of `x`. Returns the first normalized axis.
    fn check_normalized(
        &self,
        position: usize,
        x: TensorId,
        count: i64,
        tensors: &[TensorId],
    ) -> Result<usize, GraphError> {
        let x = self.at(x);
        let rank = x.dims.len();
        let first = usize::try_from(count)
            .ok()
            .filter(|&count| count > 0)
            .and_then(|count| rank.checked_sub(count))
            .ok_or_else(|| {
                let what = format!("normalized_dim_count {count} is outside 1 to {rank}, the rank of {x}");
                self.attribute(position, what)
            })?;
        let short = x.dims.get(first..).unwrap_or_default();
        let long = [vec![1; first].as_slice(), short].concat();
        for tensor in tensors.iter().map(|&id| self.at(id)) {
            if tensor.dims != short && tensor.dims != long {
                return Err(self.not_dims(position, tensor, short));
            }
        }
        Ok(first)
    }

    /// Checks an RMSNorm's scale. Returns the first normalized axis.
    fn check_rms_scale(&self, position: usize, x: TensorId, scale: TensorId) -> Result<usize, GraphError> {
        let (x, scale) = (self.at(x), self.at(scale));
        rms_normalized_axis(&x.dims, &scale.dims).ok_or_else(|| {
            let what = format!(
                "{scale} with dims {:?} must be 1 in the leading and as {:?} in the normalized dims",
                scale.dims, x.dims
            );
            self.attribute(position, what)
        })
    }

    /// Checks the statistics of a layer or RMS normalization. Their dims are those of `x` before
    /// the axis `first`, optionally followed by 1s up to the rank of `x`.
    fn check_statistics(
        &self,
        position: usize,
        x: TensorId,
        first: usize,
        statistics: TensorId,
    ) -> Result<(), GraphError> {
        let (x, statistics) = (self.at(x), self.at(statistics));
        let short = x.dims.get(..first).unwrap_or_default();
        let long = [short, &vec![1; x.dims.len().saturating_sub(first)]].concat();
        let is_single = first == 0 && statistics.dims == [1];
        if statistics.dims == long || (first > 0 && statistics.dims == short) || is_single {
            return Ok(());
        }
        Err(self.not_dims(position, statistics, &long))
    }

    fn check_both(
        &self,
        position: usize,
        mean: Option<TensorId>,
        inv_variance: Option<TensorId>,
    ) -> Result<(), GraphError> {
        if mean.is_some() == inv_variance.is_some() {
            return Ok(());
        }
        Err(self.attribute(position, "mean and inv_variance must both be given, or neither"))
    }

    /// Checks that a tensor has one element.
    pub(super) fn check_single(&self, position: usize, id: TensorId) -> Result<(), GraphError> {
        match self.at(id) {
            tensor if tensor.dims.iter().any(|&dim| dim != 1) => Err(self.not_dims(position, tensor, &[1])),
            _ => Ok(()),
        }
    }

    /// Returns the error for an operand whose dims are not the `wanted` ones.
    pub(super) fn not_dims(&self, position: usize, tensor: &Tensor, wanted: &[i64]) -> GraphError {
        let what = format!("{tensor} has dims {:?}, but must have {wanted:?}", tensor.dims);
        self.attribute(position, what)
    }
}
