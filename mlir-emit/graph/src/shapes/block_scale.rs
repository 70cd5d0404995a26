//! Shapes of block-scaled quantization.

use crate::op::{BlockScaleDequantize, BlockScaleQuantize};
use crate::{Graph, GraphError};

impl Graph {
    /// Checks that y has the dims of x and that scale has one element per block. Blocks extend over
    /// the trailing dimensions; the last block along an axis may be partial.
    pub(crate) fn check_block_scale_dequantize(
        &self,
        position: usize,
        op: &BlockScaleDequantize,
    ) -> Result<(), GraphError> {
        let [x, scale, y] = [op.x, op.scale, op.y].map(|id| self.at(id));
        let Some(leading) = x
            .dims
            .len()
            .checked_sub(op.block_size.len())
            .filter(|_| !op.block_size.is_empty())
        else {
            let what = format!(
                "block_size has {} entries, but {x} has {} dimensions",
                op.block_size.len(),
                x.dims.len()
            );
            return Err(self.attribute(position, what));
        };
        if let Some(bad) = op.block_size.iter().find(|&&size| size < 1) {
            return Err(self.contradiction(position, format!("block_size {bad} is below 1")));
        }
        let blocks = std::iter::repeat_n(1, leading).chain(op.block_size.iter().copied().map(i64::from));
        let expected: Vec<i64> = x
            .dims
            .iter()
            .zip(blocks)
            .map(|(dim, size)| (dim - 1) / size + 1)
            .collect();
        if scale.dims != expected {
            let what = format!("{scale} has dims {:?}, but blocks of {x} make {expected:?}", scale.dims);
            return Err(self.attribute(position, what));
        }
        self.shape(position, y, x.dims.clone())
    }

    /// Checks that y has the dims of x and that scale has one element per block. Blocks divide one
    /// axis: the last if none is named.
    pub(crate) fn check_block_scale_quantize(
        &self,
        position: usize,
        op: &BlockScaleQuantize,
    ) -> Result<(), GraphError> {
        let [x, scale, y] = [op.x, op.scale, op.y].map(|id| self.at(id));
        if op.block_size < 1 {
            return Err(self.contradiction(position, format!("block_size {} is below 1", op.block_size)));
        }
        let last = x.dims.len().saturating_sub(1);
        let axis = op.axis.map_or(Some(last), |axis| usize::try_from(axis).ok());
        let mut expected = x.dims.clone();
        let Some(extent) = axis.and_then(|axis| expected.get_mut(axis)) else {
            let what = format!("axis {:?} is outside 0 to {last}", op.axis.unwrap_or_default());
            return Err(self.attribute(position, what));
        };
        *extent = (*extent - 1) / i64::from(op.block_size) + 1;
        self.shape(position, y, x.dims.clone())?;
        self.shape(position, scale, expected)
    }
}
