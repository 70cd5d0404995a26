//! Pooling.

use super::{Result, Translation};
use crate::network::{Attribute, Step};
use rotini_graph::{PaddingMode, ResampleFwd, ResampleMode};

impl Translation<'_> {
    pub(super) fn resample(&mut self, op: &ResampleFwd) -> Result<()> {
        if op.index.is_some() {
            return Err("the index of a maximum is not translated".to_owned());
        }
        let pads = [op.pre_padding.as_slice(), &op.post_padding].concat();
        let is_padded = pads.iter().any(|&pad| pad != 0);
        // ONNX requires at least one element of the tensor in every window.
        if pads
            .iter()
            .zip(op.window.iter().cycle())
            .any(|(&pad, &side)| pad < 0 || pad >= side)
        {
            return Err("a padding as large as the window".to_owned());
        }
        let (kind, count) = match op.resample_mode {
            ResampleMode::Maxpool if is_padded && op.padding_mode != PaddingMode::NegInf => {
                return Err("a maximum of zeros around the tensor is not translated".to_owned());
            }
            ResampleMode::Maxpool => ("MaxPool", None),
            ResampleMode::AvgpoolExcludePadding => ("AveragePool", Some(0)),
            ResampleMode::AvgpoolIncludePadding => ("AveragePool", Some(1)),
        };
        let mut attributes = vec![
            ("kernel_shape", Attribute::Integers(op.window.clone())),
            ("strides", Attribute::Integers(op.stride.clone())),
            ("pads", Attribute::Integers(pads)),
        ];
        attributes.extend(count.map(|count| ("count_include_pad", Attribute::Integer(count))));
        let x = self.dense(op.x)?;
        let y = self.define(op.y)?;
        self.network.steps.push(Step {
            kind,
            inputs: vec![x],
            outputs: vec![y],
            attributes,
        });
        Ok(())
    }
}
