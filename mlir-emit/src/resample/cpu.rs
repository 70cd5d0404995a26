//! Max pooling on CPUs by one of rotini's kernels.

use super::Pooling;
use crate::kernel::{CpuKernel, Pool};
use crate::value::{Ordered, extents};
use rotini_graph::DataType;

impl<'c> Pooling<'_, '_, 'c> {
    /// Returns the maximum of each window, computed by the CPU kernel; `None` if it does not fit.
    pub(super) fn cpu_maximum(&self) -> Option<Ordered<'c>> {
        let both = |list: &[i64]| <[i64; 2]>::try_from(list).ok();
        let of = &self.windows;
        let (Some(registers), Some(input), Some(output), Some(window)) = (
            self.lowering.target().registers(),
            both(of.input),
            both(of.output),
            both(of.window),
        ) else {
            return None;
        };
        let is_float = [self.x.dtype, self.compute] == [DataType::F32; 2];
        let order = [[0, 1, 2, 3], [0, 2, 3, 1]]
            .into_iter()
            .find(|order| self.x.lies_in(order));
        let (Some(order), &[images, channels, ..], true) = (order, self.dims, is_float && self.skips_padding) else {
            return None;
        };
        let axes = of.axes();
        let &[first, second] = axes.as_slice() else {
            return None;
        };
        let pool = Pool {
            batch: [images, channels],
            input,
            output,
            window,
            pre: [first.pre, second.pre],
            stride: [first.stride, second.stride],
            is_last: order[1] != 1,
            registers,
        };
        let kernel = CpuKernel::Pool(pool);
        if !kernel.is_possible() || !self.lowering.chooser().takes_kernel("pool", true) {
            return None;
        }
        let ssa = self
            .lowering
            .cpu_kernel(&kernel, &[self.x.ssa], &extents(self.dims, &order));
        Some(Ordered::new(ssa, order.to_vec(), self.compute, self.dims.to_vec()))
    }
}
