//! Batch, layer and RMS normalization.

use super::Generator;
use rand::RngExt;
use rotini_graph::*;

impl Generator {
    /// Returns the dims of a batch normalization's x.
    fn channelled(&mut self) -> Vec<i64> {
        self.dims_of(2..=5)
    }

    /// Returns the dims of one element per channel of `x`, with more or fewer trailing dims than
    /// `x`.
    fn channel(&mut self, x: &[i64]) -> Vec<i64> {
        let behind = self.rng.random_range(0..=3);
        [&[1, x[1]], &vec![1; behind][..]].concat()
    }

    fn channel_input(&mut self, x: &[i64]) -> TensorId {
        let dims = self.channel(x);
        self.input_of(dims)
    }

    fn channel_output(&mut self, x: &[i64]) -> TensorId {
        let dims = self.channel(x);
        self.output_of(dims)
    }

    fn maybe_channel_output(&mut self, x: &[i64]) -> Option<TensorId> {
        self.flag().then(|| self.channel_output(x))
    }

    fn single_input(&mut self) -> TensorId {
        let dims = self.single();
        self.input_of(dims)
    }

    pub(super) fn batchnorm_inference(&mut self) -> BatchnormInference {
        let x = self.channelled();
        BatchnormInference {
            mean: self.channel_input(&x),
            inv_variance: self.channel_input(&x),
            scale: self.channel_input(&x),
            bias: self.channel_input(&x),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
        }
    }

    pub(super) fn batchnorm_inference_variance(&mut self) -> BatchnormInferenceVariance {
        let x = self.channelled();
        BatchnormInferenceVariance {
            mean: self.channel_input(&x),
            variance: self.channel_input(&x),
            scale: self.channel_input(&x),
            bias: self.channel_input(&x),
            epsilon: self.single_input(),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
        }
    }

    pub(super) fn batchnorm(&mut self) -> Batchnorm {
        let x = self.channelled();
        // All four running statistics or none; a momentum is required with them and allowed
        // without.
        let is_running = self.flag();
        let has_momentum = is_running || self.flag();
        Batchnorm {
            scale: self.channel_input(&x),
            bias: self.channel_input(&x),
            epsilon: self.single_input(),
            peer_stats: self.inputs(),
            prev_running_mean: is_running.then(|| self.channel_input(&x)),
            prev_running_variance: is_running.then(|| self.channel_input(&x)),
            momentum: has_momentum.then(|| self.single_input()),
            mean: self.maybe_channel_output(&x),
            inv_variance: self.maybe_channel_output(&x),
            next_running_mean: is_running.then(|| self.channel_output(&x)),
            next_running_variance: is_running.then(|| self.channel_output(&x)),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
        }
    }

    pub(super) fn batchnorm_backward(&mut self) -> BatchnormBackward {
        let x = self.channelled();
        let is_saved = self.flag();
        BatchnormBackward {
            mean: is_saved.then(|| self.channel_input(&x)),
            inv_variance: is_saved.then(|| self.channel_input(&x)),
            scale: self.channel_input(&x),
            peer_stats: self.inputs(),
            dscale: self.channel_output(&x),
            dbias: self.channel_output(&x),
            dy: self.input_of(x.clone()),
            dx: self.output_of(x.clone()),
            x: self.input_of(x),
        }
    }

    /// Returns the dims of a parameter if the axes from `first` on are normalized, with or without
    /// leading 1s.
    fn parameter(&mut self, x: &[i64], first: usize) -> Vec<i64> {
        let leading = if self.rng.random() { first } else { 0 };
        [&vec![1; leading], &x[first..]].concat()
    }

    /// Returns the dims of a statistic, with or without trailing 1s, but with at least one dim.
    fn statistic(&mut self, x: &[i64], first: usize) -> Vec<i64> {
        let trailing = match (self.rng.random(), first) {
            (true, _) => x.len() - first,
            (false, 0) => 1,
            (false, _) => 0,
        };
        [&x[..first], &vec![1; trailing]].concat()
    }

    fn parameter_input(&mut self, x: &[i64], first: usize) -> TensorId {
        let dims = self.parameter(x, first);
        self.input_of(dims)
    }

    fn parameter_output(&mut self, x: &[i64], first: usize) -> TensorId {
        let dims = self.parameter(x, first);
        self.output_of(dims)
    }

    fn statistic_input(&mut self, x: &[i64], first: usize) -> TensorId {
        let dims = self.statistic(x, first);
        self.input_of(dims)
    }

    fn statistic_output(&mut self, x: &[i64], first: usize) -> TensorId {
        let dims = self.statistic(x, first);
        self.output_of(dims)
    }

    /// Returns the dims of a layer normalization's x, the number of normalized dims, and the first
    /// of them.
    fn layered(&mut self) -> (Vec<i64>, i64, usize) {
        let x = self.dims_of(1..=5);
        let count = self.rng.random_range(1..=x.len());
        let first = x.len() - count;
        (x, i64::try_from(count).unwrap(), first)
    }

    pub(super) fn layernorm(&mut self) -> Layernorm {
        let (x, normalized_dim_count, first) = self.layered();
        Layernorm {
            scale: self.parameter_input(&x, first),
            bias: self.parameter_input(&x, first),
            epsilon: self.single_input(),
            mean: self.flag().then(|| self.statistic_output(&x, first)),
            inv_variance: self.flag().then(|| self.statistic_output(&x, first)),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
            normalized_dim_count,
            phase: self.pick(&[NormPhase::Inference, NormPhase::Training]),
        }
    }

    pub(super) fn layernorm_backward(&mut self) -> LayernormBackward {
        let (x, normalized_dim_count, first) = self.layered();
        let is_saved = self.flag();
        LayernormBackward {
            scale: self.parameter_input(&x, first),
            mean: is_saved.then(|| self.statistic_input(&x, first)),
            inv_variance: is_saved.then(|| self.statistic_input(&x, first)),
            epsilon: self.flag().then(|| self.single_input()),
            dscale: self.parameter_output(&x, first),
            dbias: self.parameter_output(&x, first),
            dy: self.input_of(x.clone()),
            dx: self.output_of(x.clone()),
            x: self.input_of(x),
            normalized_dim_count,
        }
    }

    /// Returns the dims of an RMS normalization's x and scale, and the first normalized axis.
    fn rms_scaled(&mut self) -> (Vec<i64>, Vec<i64>, usize) {
        let x = self.dims_of(2..=5);
        let leading = self.rng.random_range(1..x.len());
        let scale = [&vec![1; leading], &x[leading..]].concat();
        // The first normalized axis is before `leading` if x has extent 1 there.
        let first = rms_normalized_axis(&x, &scale).unwrap();
        (x, scale, first)
    }

    pub(super) fn rms_norm(&mut self) -> RmsNorm {
        let (x, scale, first) = self.rms_scaled();
        let is_saved = self.flag();
        RmsNorm {
            bias: self.maybe_input_of(scale.clone()),
            scale: self.input_of(scale),
            epsilon: self.single_input(),
            inv_rms: is_saved.then(|| self.statistic_output(&x, first)),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
            phase: if is_saved {
                NormPhase::Training
            } else {
                NormPhase::Inference
            },
        }
    }

    pub(super) fn rms_norm_backward(&mut self) -> RmsNormBackward {
        let (x, scale, first) = self.rms_scaled();
        RmsNormBackward {
            inv_rms: self.statistic_input(&x, first),
            dscale: self.output_of(scale.clone()),
            dbias: self.maybe_output_of(scale.clone()),
            scale: self.input_of(scale),
            dy: self.input_of(x.clone()),
            dx: self.output_of(x.clone()),
            x: self.input_of(x),
        }
    }
}
