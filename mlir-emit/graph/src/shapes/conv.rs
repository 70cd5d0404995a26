//! Shapes of the forward convolution and its gradients, by one rule: y has the dims of the forward
//! convolution of x with w.

use crate::op::{ConvDgrad, ConvFprop, ConvGeometry, ConvWgrad};
use crate::overrides::along;
use crate::{Graph, GraphError, Tensor, conv_output_extent};

impl Graph {
    pub(crate) fn check_conv_fprop(&self, position: usize, conv: &ConvFprop) -> Result<(), GraphError> {
        let [x, w, y] = [conv.x, conv.w, conv.y].map(|id| self.at(id));
        let inferred = self.conv_output(position, [x, w, y], ["x", "w", "y"], &conv.geometry)?;
        self.shape(position, y, inferred)
    }

    pub(crate) fn check_conv_dgrad(&self, position: usize, conv: &ConvDgrad) -> Result<(), GraphError> {
        let tensors = [conv.dx, conv.w, conv.dy].map(|id| self.at(id));
        self.check_gradient(position, tensors, ["dx", "w", "dy"], &conv.geometry)
    }

    pub(crate) fn check_conv_wgrad(&self, position: usize, conv: &ConvWgrad) -> Result<(), GraphError> {
        let tensors = [conv.x, conv.dw, conv.dy].map(|id| self.at(id));
        self.check_gradient(position, tensors, ["x", "dw", "dy"], &conv.geometry)
    }

    /// Checks a gradient by the shape of its operand dy. With a stride, different extents of x and
    /// of the filter lead to the same extent of dy, so the extents of the gradient do not follow
    /// from its operands.
    fn check_gradient(
        &self,
        position: usize,
        tensors: [&Tensor; 3],
        names: [&str; 3],
        geometry: &ConvGeometry,
    ) -> Result<(), GraphError> {
        let ([.., dy], [x, w, _]) = (tensors, names);
        let inferred = self.conv_output(position, tensors, names, geometry)?;
        if dy.dims == inferred {
            return Ok(());
        }
        let what = format!(
            "{dy} has dims {:?}, but a convolution of {x} with {w} makes {inferred:?}",
            dy.dims
        );
        Err(self.attribute(position, what))
    }

    /// Returns the dims of the forward convolution's output.
    fn conv_output(
        &self,
        position: usize,
        [x, w, y]: [&Tensor; 3],
        [x_name, w_name, y_name]: [&str; 3],
        geometry: &ConvGeometry,
    ) -> Result<Vec<i64>, GraphError> {
        let rank = x.dims.len();
        let ([n, c, x_spatial @ ..], [k, c_per_group, w_spatial @ ..], true) = (
            x.dims.as_slice(),
            w.dims.as_slice(),
            rank >= 3 && w.dims.len() == rank && y.dims.len() == rank,
        ) else {
            return Err(self.attribute(
                position,
                format!(
                    "ranks of {x_name}, {w_name} and {y_name} are {rank}, {} and {}, but must be equal and at least 3",
                    w.dims.len(),
                    y.dims.len()
                ),
            ));
        };
        let lists = [
            // A negative padding crops x.
            ("pre_padding", geometry.pre_padding.as_slice(), i64::MIN),
            ("post_padding", &geometry.post_padding, i64::MIN),
            ("stride", &geometry.stride, 1),
            ("dilation", &geometry.dilation, 1),
        ];
        self.check_spatial(position, x_spatial.len(), &lists)?;
        if c % c_per_group != 0 || k % (c / c_per_group) != 0 {
            return Err(self.contradiction(
                position,
                format!("{c} input channels and {k} filters do not divide into groups of {c_per_group} channels"),
            ));
        }
        let extents = self.window_extents(position, "dilated filter", [x_spatial, w_spatial], geometry)?;
        Ok([&[*n, *k], extents.as_slice()].concat())
    }

    /// Returns the spatial extents of the output of a window over an input. `what` names the
    /// window in messages.
    pub(super) fn window_extents(
        &self,
        position: usize,
        what: &str,
        [input, window]: [&[i64]; 2],
        geometry: &ConvGeometry,
    ) -> Result<Vec<i64>, GraphError> {
        let extent = |axis: usize| {
            let [pre, post, stride, dilation] = along(geometry, axis)?;
            conv_output_extent(input[axis], *window.get(axis)?, pre, post, stride, dilation)
        };
        let misfit = |axis: usize| format!("the {what} does not fit the padded input along spatial axis {axis}");
        (0..input.len())
            .map(|axis| extent(axis).ok_or_else(|| self.attribute(position, misfit(axis))))
            .collect()
    }

    /// Checks that each list has one entry per spatial dimension, none below the list's minimum.
    pub(crate) fn check_spatial(
        &self,
        position: usize,
        spatial: usize,
        lists: &[(&str, &[i64], i64)],
    ) -> Result<(), GraphError> {
        for &(name, list, least) in lists {
            if list.len() != spatial {
                let what = format!(
                    "{name} has {} entries, but there are {spatial} spatial dimensions",
                    list.len()
                );
                return Err(self.attribute(position, what));
            }
            if let Some(bad) = list.iter().find(|&&value| value < least) {
                let what = format!("{name} {bad} is below {least}");
                // A stride or window below 1 is meaningless; a negative padding is not.
                return Err(if least > 0 {
                    self.contradiction(position, what)
                } else {
                    self.attribute(position, what)
                });
            }
        }
        Ok(())
    }
}
