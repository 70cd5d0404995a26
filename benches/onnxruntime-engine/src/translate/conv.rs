//! Convolutions, and their gradients with respect to the input.

use super::{Result, Translation};
use crate::network::Attribute;
use rotini_graph::{ConvDgrad, ConvFprop, ConvGeometry, ConvMode, Op, PointwiseMode, TensorId, TensorKind};

impl Translation<'_> {
    /// Translates a convolution. A bias that is added to the result becomes an input of the
    /// convolution, as in exported models, because a separate addition would need another pass.
    pub(super) fn conv_fprop(&mut self, op: &ConvFprop) -> Result<()> {
        let group = self.group(op.x, 1, op.w)?;
        let mut attributes = attributes(&op.geometry)?;
        attributes.push(("group", Attribute::Integer(group)));
        let mut inputs = vec![self.dense(op.x)?, self.weight(op.w)?];
        let mut y = op.y;
        if let Some((addition, bias, sum)) = self.bias(op.y) {
            let channels = self.dims(op.w)?.first().copied().unwrap_or(0);
            let bias = self.weight(bias)?;
            inputs.push(self.reshaped(&bias, &[channels]));
            self.done.insert(addition);
            y = sum;
        }
        let output = self.define(y)?;
        self.steps("Conv", inputs, output, attributes);
        Ok(())
    }

    /// Translates a gradient to a transposed convolution, if ONNX's attributes can express the
    /// extents of its result.
    pub(super) fn conv_dgrad(&mut self, op: &ConvDgrad) -> Result<()> {
        let group = self.group(op.dx, 1, op.w)?;
        let (dx, dy, w) = (self.dims(op.dx)?, self.dims(op.dy)?, self.dims(op.w)?);
        let geometry = &op.geometry;
        let mut rest = Vec::new();
        for (axis, ((&dx, &dy), &w)) in dx.iter().zip(dy).zip(w).skip(2).enumerate() {
            let of = |list: &[i64]| list.get(axis).copied().unwrap_or(0);
            let (stride, dilation) = (of(&geometry.stride), of(&geometry.dilation));
            let padding = [of(&geometry.pre_padding), of(&geometry.post_padding)];
            let missing = missing(dx, [dy, stride], [w, dilation], padding).ok_or("extents that overflow")?;
            if missing < 0 || missing >= stride.max(dilation) {
                return Err(format!("{missing} more elements than a transposed convolution makes"));
            }
            rest.push(missing);
        }
        let mut attributes = attributes(geometry)?;
        attributes.push(("group", Attribute::Integer(group)));
        attributes.push(("output_padding", Attribute::Integers(rest)));
        let inputs = vec![self.dense(op.dy)?, self.weight(op.w)?];
        let output = self.define(op.dx)?;
        self.steps("ConvTranspose", inputs, output, attributes);
        Ok(())
    }

    /// Returns the number of groups.
    fn group(&self, x: TensorId, axis: usize, w: TensorId) -> Result<i64> {
        let (x, w) = (self.dims(x)?, self.dims(w)?);
        if !(3..=5).contains(&x.len()) {
            return Err(format!("{} spatial dimensions", x.len().saturating_sub(2)));
        }
        let group = x.get(axis).zip(w.get(axis)).and_then(|(&x, &w)| x.checked_div(w));
        group.ok_or_else(|| "no channels".to_owned())
    }

    /// Returns the addition of a bias to a convolution's result, if nothing else reads that result:
    /// the addition's position, the bias and the sum.
    fn bias(&self, y: TensorId) -> Option<(usize, TensorId, TensorId)> {
        let tensor = self.graph.tensor(y)?;
        let channels = tensor.dims.get(1)?;
        let mut readers = Vec::new();
        for (position, node) in self.graph.nodes.iter().enumerate() {
            node.op.for_each_input(&mut |_, id| {
                if id == y {
                    readers.push((position, &node.op));
                }
            });
        }
        let &[(position, Op::Pointwise(op))] = readers.as_slice() else {
            return None;
        };
        let bias = match (op.mode, op.in_0 == y, op.in_1) {
            (PointwiseMode::Add, true, Some(other)) => other,
            (PointwiseMode::Add, false, _) => op.in_0,
            _ => return None,
        };
        let of = self.graph.tensor(bias)?;
        let is_bias = of.dims.len() == tensor.dims.len()
            && of.dims.get(1) == Some(channels)
            && of
                .dims
                .iter()
                .enumerate()
                .all(|(axis, &extent)| axis == 1 || extent == 1);
        let is_written = self.graph.nodes.iter().any(|node| {
            let mut found = false;
            node.op.for_each_output(&mut |_, id| found |= id == bias);
            found
        });
        let is_kept = tensor.kind == TensorKind::Virtual && of.kind == TensorKind::Buffer;
        let is_shaped = self.graph.tensor(op.out_0)?.dims == tensor.dims;
        (is_bias && !is_written && is_kept && is_shaped).then_some((position, bias, op.out_0))
    }

    fn steps(
        &mut self,
        kind: &'static str,
        inputs: Vec<String>,
        output: String,
        attributes: Vec<(&'static str, Attribute)>,
    ) {
        self.network.steps.push(crate::network::Step {
            kind,
            inputs,
            outputs: vec![output],
            attributes,
        });
    }
}

/// Returns the number of elements of `dx` beyond those that a transposed convolution of `dy`
/// elements with a filter of `w` taps makes.
fn missing(dx: i64, [dy, stride]: [i64; 2], [w, dilation]: [i64; 2], [pre, post]: [i64; 2]) -> Option<i64> {
    let steps = dy.checked_sub(1)?.checked_mul(stride)?;
    let reach = w.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    let made = steps.checked_add(reach)?.checked_sub(pre)?.checked_sub(post)?;
    dx.checked_sub(made)
}

fn attributes(geometry: &ConvGeometry) -> Result<Vec<(&'static str, Attribute)>> {
    if geometry.mode != ConvMode::CrossCorrelation {
        return Err("the filter is flipped".to_owned());
    }
    let pads = [geometry.pre_padding.as_slice(), &geometry.post_padding].concat();
    if pads.iter().any(|&pad| pad < 0) {
        return Err("a padding is negative".to_owned());
    }
    Ok(vec![
        ("pads", Attribute::Integers(pads)),
        ("strides", Attribute::Integers(geometry.stride.clone())),
        ("dilations", Attribute::Integers(geometry.dilation.clone())),
    ])
}
