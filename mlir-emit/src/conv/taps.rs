//! The gradient with respect to a depthwise filter on CPUs, by kernels that rotini writes.

use super::panels::{are_floats, wide};
use super::shape::{Shape, channels_last};
use crate::kernel::{CpuKernel, Taps};
use crate::lowering::Lowering;
use crate::value::Ordered;
use rotini_graph::DataType;

/// Returns the gradient with respect to a depthwise filter of two axes, row-major, if pixels or
/// channels are innermost in both operands; `None` if there is no kernel for it.
pub(super) fn lower<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, dy]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    dims: &[i64],
    compute: DataType,
) -> Option<Ordered<'c>> {
    let order: Vec<usize> = (0..dims.len()).collect();
    let are_both = |order: &[usize]| x.lies_in(order) && dy.lies_in(order);
    let is_first = are_both(&order);
    let registers = lowering.target().registers()?;
    if !is_first && !are_both(&channels_last(dims.len())) || shape.filters != 1 || shape.is_reversed() {
        return None;
    }
    let both = |list: &[i64]| <[i64; 2]>::try_from(list).ok();
    let geometry = shape.geometry;
    let (Some(input), Some(output), Some(window)) = (both(&shape.input), both(&shape.output), both(&shape.window))
    else {
        return None;
    };
    let (Some(pre), Some(stride), Some(dilation)) = (
        both(&geometry.pre_padding),
        both(&geometry.stride),
        both(&geometry.dilation),
    ) else {
        return None;
    };
    let taps = Taps {
        batch: shape.batch,
        channels: shape.groups,
        input,
        output,
        window,
        pre,
        stride,
        dilation,
        registers,
        is_last: !is_first,
    };
    let kernel = CpuKernel::Taps(taps);
    if !are_floats(lowering, [x, dy], compute) || !kernel.is_possible() {
        return None;
    }
    let (x, dy) = (wide(lowering, x, &x.order), wide(lowering, dy, &dy.order));
    let ssa = lowering.cpu_kernel(&kernel, &[x.ssa, dy.ssa], dims);
    Some(Ordered::new(ssa, order, DataType::F32, dims.to_vec()))
}
