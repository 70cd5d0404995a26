//! Pooling, forward and backward.

use crate::op::{PaddingMode, ResampleBwd, ResampleFwd, ResampleMode};
use crate::{DataType, Graph, GraphError, Tensor, conv_output_extent};

/// The geometry of the windows, which both directions share.
struct Windows<'a> {
    pre_padding: &'a [i64],
    post_padding: &'a [i64],
    stride: &'a [i64],
    window: &'a [i64],
}

impl Graph {
    /// Checks that y has the extents of a convolution with the window as its filter. Only MAXPOOL
    /// may have an index, which has the dims of y.
    pub(crate) fn check_resample_fwd(&self, position: usize, op: &ResampleFwd) -> Result<(), GraphError> {
        let (Some(x), Some(y)) = (self.tensor(op.x), self.tensor(op.y)) else {
            return Ok(());
        };
        let windows = Windows {
            pre_padding: &op.pre_padding,
            post_padding: &op.post_padding,
            stride: &op.stride,
            window: &op.window,
        };
        let inferred = self.pooled_dims(position, [x, y], ["x", "y"], &windows)?;
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
        let (Some(dx), Some(dy)) = (self.tensor(op.dx), self.tensor(op.dy)) else {
            return Ok(());
        };
        let windows = Windows {
            pre_padding: &op.pre_padding,
            post_padding: &op.post_padding,
            stride: &op.stride,
            window: &op.window,
        };
        let inferred = self.pooled_dims(position, [dx, dy], ["dx", "dy"], &windows)?;
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
        windows: &Windows<'_>,
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
            ("pre_padding", windows.pre_padding, 0),
            ("post_padding", windows.post_padding, 0),
            ("stride", windows.stride, 1),
            ("window", windows.window, 1),
        ];
        self.check_spatial(position, spatial.len(), &lists)?;
        let mut inferred = vec![*n, *c];
        for (axis, &extent) in spatial.iter().enumerate() {
            let at = |list: &[i64]| list.get(axis).copied().unwrap_or(1);
            let pooled = conv_output_extent(
                extent,
                at(windows.window),
                at(windows.pre_padding),
                at(windows.post_padding),
                at(windows.stride),
                1,
            );
            inferred.push(pooled.ok_or_else(|| {
                let what = format!("the window does not fit the padded input along spatial axis {axis}");
                self.attribute(position, what)
            })?);
        }
        Ok(inferred)
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
