//! Normalizations.

use super::{Result, Translation};
use crate::network::{Attribute, Step};
use rotini_graph::{BatchnormInference, BatchnormInferenceVariance, Layernorm, RmsNorm, TensorId, rms_normalized_axis};

impl Translation<'_> {
    pub(super) fn layernorm(&mut self, op: &Layernorm) -> Result<()> {
        let dims = self.dims(op.x)?;
        let first = usize::try_from(op.normalized_dim_count)
            .ok()
            .and_then(|count| dims.len().checked_sub(count))
            .ok_or("more axes than there are")?;
        let normalized = dims.get(first..).unwrap_or_default();
        let epsilon = self.constant(op.epsilon)?;
        let x = self.dense(op.x)?;
        let scale = self.shaped(op.scale, normalized)?;
        let bias = self.shaped(op.bias, normalized)?;
        let mut outputs = vec![self.define(op.y)?];
        let statistics = [op.mean, op.inv_variance];
        if statistics.iter().any(Option::is_some) {
            for _ in statistics {
                outputs.push(self.fresh());
            }
        }
        let named: Vec<String> = outputs.iter().skip(1).cloned().collect();
        self.network.steps.push(Step {
            kind: "LayerNormalization",
            inputs: vec![x, scale, bias],
            outputs,
            attributes: vec![
                ("axis", Attribute::Integer(i64::try_from(first).unwrap_or(0))),
                ("epsilon", Attribute::Float(epsilon)),
            ],
        });
        for (id, name) in statistics.into_iter().zip(named) {
            if let Some(id) = id {
                self.reshape_into(&name, id)?;
            }
        }
        Ok(())
    }

    pub(super) fn rms_norm(&mut self, op: &RmsNorm) -> Result<()> {
        let dims = self.dims(op.x)?;
        let first = rms_normalized_axis(dims, self.dims(op.scale)?).ok_or("a scale that does not tell the axes")?;
        let normalized = dims.get(first..).unwrap_or_default();
        let epsilon = self.constant(op.epsilon)?;
        let x = self.dense(op.x)?;
        let scale = self.shaped(op.scale, normalized)?;
        let axis = i64::try_from(first).unwrap_or(0);
        if let Some(inv_rms) = op.inv_rms {
            let square = self.then("Mul", &[&x, &x]);
            let axes: Vec<i64> = (axis..).take(normalized.len()).collect();
            let axes = self.integers(&axes);
            let mean = self.then("ReduceMean", &[&square, &axes]);
            let epsilon = self.float(epsilon);
            let sum = self.then("Add", &[&mean, &epsilon]);
            let root = self.then("Sqrt", &[&sum]);
            let inverse = self.then("Reciprocal", &[&root]);
            self.reshape_into(&inverse, inv_rms)?;
        }
        let y = self.define(op.y)?;
        let normal = match op.bias {
            Some(_) => self.fresh(),
            None => y.clone(),
        };
        let attributes = [
            ("axis", Attribute::Integer(axis)),
            ("epsilon", Attribute::Float(epsilon)),
        ];
        self.step("RMSNormalization", &[&x, &scale], &normal, attributes);
        if let Some(bias) = op.bias {
            let bias = self.shaped(bias, normalized)?;
            self.step("Add", &[&normal, &bias], &y, []);
        }
        Ok(())
    }

    /// Translates a batch normalization with the inverse standard deviation, which ONNX's operation
    /// does not accept.
    pub(super) fn batchnorm_inference(&mut self, op: &BatchnormInference) -> Result<()> {
        let x = self.dense(op.x)?;
        let [mean, inverse, scale, bias] = self.per_channel(op.x, [op.mean, op.inv_variance, op.scale, op.bias])?;
        let factor = self.then("Mul", &[&inverse, &scale]);
        let difference = self.then("Sub", &[&x, &mean]);
        let product = self.then("Mul", &[&difference, &factor]);
        let y = self.define(op.y)?;
        self.step("Add", &[&product, &bias], &y, []);
        Ok(())
    }

    pub(super) fn batchnorm_inference_variance(&mut self, op: &BatchnormInferenceVariance) -> Result<()> {
        let epsilon = self.constant(op.epsilon)?;
        let channels = self.dims(op.x)?.get(1).copied().ok_or("no channels")?;
        let x = self.dense(op.x)?;
        let [scale, bias, mean, variance] =
            [op.scale, op.bias, op.mean, op.variance].map(|id| self.shaped(id, &[channels]));
        let y = self.define(op.y)?;
        let inputs = [&x, &scale?, &bias?, &mean?, &variance?];
        self.step(
            "BatchNormalization",
            &inputs.map(String::as_str),
            &y,
            [("epsilon", Attribute::Float(epsilon))],
        );
        Ok(())
    }

    /// Reshapes values per channel to the rank of x.
    fn per_channel<const N: usize>(&mut self, x: TensorId, ids: [TensorId; N]) -> Result<[String; N]> {
        let mut dims = vec![1; self.dims(x)?.len()];
        if let (Some(place), Some(&channels)) = (dims.get_mut(1), self.dims(x)?.get(1)) {
            *place = channels;
        }
        let mut names = [const { String::new() }; N];
        for (name, id) in names.iter_mut().zip(ids) {
            *name = self.shaped(id, &dims)?;
        }
        Ok(names)
    }

    /// Returns a scale, a bias or a statistic, reshaped if its dims differ.
    fn shaped(&mut self, id: TensorId, dims: &[i64]) -> Result<String> {
        let name = self.weight(id)?;
        Ok(if self.dims(id)? == dims {
            name
        } else {
            self.reshaped(&name, dims)
        })
    }

    /// Defines a tensor by reshaping another.
    fn reshape_into(&mut self, name: &str, id: TensorId) -> Result<()> {
        let dims = self.dims(id)?;
        let dims = self.integers(dims);
        let output = self.define(id)?;
        self.step("Reshape", &[name, &dims], &output, []);
        Ok(())
    }
}
