//! Pooling, forward and backward.

use crate::op::{ConvGeometry, PaddingMode, ResampleBwd, ResampleFwd, ResampleMode};
use crate::overrides::windows;
use crate::{DataType, Graph, GraphError, Tensor};

impl Graph {
    /// Checks that y has the extents of a convolution with the window as its filter. Only MAXPOOL
    /// may have an index, which has the dims of y.
    pub(crate) fn check_resample_fwd(&self, position: usize, op: &ResampleFwd) -> Result<(), GraphError> {
        let [x, y] = [op.x, op.y].map(|id| self.at(id));
        let geometry = windows(&op.pre_padding, &op.post_padding, &op.stride, op.window.len());
        let inferred = self.pooled_dims(position, [x, y], ["x", "y"], (&op.window, &geometry))?;
        self.shape(position, y, inferred)?;
        let is_max = op.resample_mode == ResampleMode::Maxpool;
        let is_padded = op
            .pre_padding
            .iter()
            .chain(&op.post_padding)
            .any(|&padding| padding > 0);
        // hipDNN's GPU reference requires a mode in any case, and its CPU reference treats an
        // absent mode as zero. The mode matters only for padded MAXPOOL.
        if is_max && is_padded && op.padding_mode == PaddingMode::NotSet {
            return Err(self.attribute(position, "MAXPOOL with padding needs a padding mode"));
        }
        let Some(index) = op.index.and_then(|index| self.tensor(index)) else {
            // hipDNN's front end ignores `generate_index` for averages.
            return if is_max && op.generate_index {
                Err(self.attribute(position, "an index is asked for, but there is no tensor for it"))
            } else {
                Ok(())
            };
        };
        if !is_max {
            return Err(self.attribute(position, format!("{index} is written, but only MAXPOOL has an index")));
        }
        self.check_index(position, index, x)?;
        self.shape(position, index, y.dims.clone())
    }

    /// Checks that dy has the extents of the forward operation's output for dx. Only MAXPOOL has an
    /// index, which it requires and which has the dims of dy.
    pub(crate) fn check_resample_bwd(&self, position: usize, op: &ResampleBwd) -> Result<(), GraphError> {
        let [dx, dy] = [op.dx, op.dy].map(|id| self.at(id));
        let geometry = windows(&op.pre_padding, &op.post_padding, &op.stride, op.window.len());
        let inferred = self.pooled_dims(position, [dx, dy], ["dx", "dy"], (&op.window, &geometry))?;
        if dy.dims != inferred {
            let what = format!("{dy} has dims {:?}, but pooling dx makes {inferred:?}", dy.dims);
            return Err(self.attribute(position, what));
        }
        let index = op.index.and_then(|index| self.tensor(index));
        match (op.resample_mode, index) {
            (ResampleMode::Maxpool, None) => {
                Err(self.attribute(position, "MAXPOOL needs the index of the forward operation"))
            }
            (ResampleMode::Maxpool, Some(index)) => {
                self.check_index(position, index, dx)?;
                if index.dims == dy.dims {
                    return Ok(());
                }
                let what = format!("{index} has dims {:?}, but dy has {:?}", index.dims, dy.dims);
                Err(self.attribute(position, what))
            }
            (_, Some(index)) => {
                Err(self.attribute(position, format!("{index} is read, but only MAXPOOL has an index")))
            }
            (_, None) => Ok(()),
        }
    }

    /// Returns the dims of the pooled tensor.
    fn pooled_dims(
        &self,
        position: usize,
        [x, y]: [&Tensor; 2],
        [x_name, y_name]: [&str; 2],
        (window, geometry): (&[i64], &ConvGeometry),
    ) -> Result<Vec<i64>, GraphError> {
        let ([n, c, spatial @ ..], true) = (x.dims.as_slice(), x.dims.len() >= 3 && y.dims.len() == x.dims.len())
        else {
            let what = format!(
                "ranks of {x_name} and {y_name} are {} and {}, but must be equal and at least 3",
                x.dims.len(),
                y.dims.len()
            );
            return Err(self.attribute(position, what));
        };
        let lists = [
            ("pre_padding", geometry.pre_padding.as_slice(), 0),
            ("post_padding", &geometry.post_padding, 0),
            ("stride", &geometry.stride, 1),
            ("window", window, 1),
        ];
        self.check_spatial(position, spatial.len(), &lists)?;
        let extents = self.window_extents(position, "window", [spatial, window], geometry)?;
        Ok([&[*n, *c], extents.as_slice()].concat())
    }

    /// Checks that an index has a type that hipDNN's front end allows, and that the type can hold
    /// every position within the spatial dimensions of `x`.
    fn check_index(&self, position: usize, index: &Tensor, x: &Tensor) -> Result<(), GraphError> {
        if !matches!(index.dtype, DataType::I8 | DataType::I32) {
            let what = format!("{index} is an index of type {}, but must be i8 or i32", index.dtype);
            return Err(self.attribute(position, what));
        }
        let last = x.dims.iter().skip(2).product::<i64>().saturating_sub(1);
        if index.dtype.integer_range().is_none_or(|range| range.contains(&last)) {
            return Ok(());
        }
        let what = format!("{index} has type {}, which does not hold position {last}", index.dtype);
        Err(self.attribute(position, what))
    }
}
