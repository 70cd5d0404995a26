//! Convolution forward: what is supported, its extents, and what its forms share.
//!
//! `direct` is the form for GPUs, whose code generation takes a convolution as it is. `staged` has the forms for CPUs, where IREE is
//! fast only for operands of certain layouts and extents.

mod direct;
mod named;
mod staged;

use crate::convert::{compute_type, convert};
use crate::ir::{Emitter, first};
use crate::lower::Lowering;
use crate::target::ConvStrategy;
use crate::value::{Ordered, Value, extent, extents, reshape};
use crate::{EmitError, Unsupported};
use melior::ir::{Block, Region, RegionLike, Value as Ssa};
use rotini_graph::{ConvFprop, ConvGeometry, ConvMode, DataType, NormalGraph, NormalKind};

/// Says whether the operation can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &ConvFprop) -> Result<(), Unsupported> {
    let Some(compute) = compute_type(compute) else {
        return Err(Unsupported::new(format!(
            "a convolution cannot be computed in {compute}"
        )));
    };
    if op.geometry.mode != ConvMode::CrossCorrelation {
        return Err(Unsupported::new(
            "conv_mode CONVOLUTION (a flipped filter) is not supported",
        ));
    }
    let spatial = op.geometry.stride.len();
    if spatial > 3 {
        return Err(Unsupported::new(format!("{spatial} spatial dimensions, more than 3")));
    }
    for id in [op.x, op.w] {
        // The compiler would evaluate it ahead and copy the result around.
        if graph
            .tensor(id)
            .is_some_and(|tensor| matches!(tensor.kind, NormalKind::Constant(_)))
        {
            return Err(Unsupported::of_tensor(
                id,
                "an operand of a convolution that is one value for every element",
            ));
        }
        if compute.is_integer() && graph.tensor(id).is_some_and(|tensor| tensor.dtype.is_float()) {
            return Err(Unsupported::of_tensor(
                id,
                format!("a float operand of a convolution computed in {compute}"),
            ));
        }
    }
    Ok(())
}

/// Lowers the operation.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_, '_>, compute: DataType, op: &ConvFprop) -> Result<(), EmitError> {
    let at = lowering.emitter();
    let compute = compute_type(compute).ok_or(EmitError::Internal("a compute type that check declines"))?;
    let x = lowering.value(op.x)?.materialise(&at)?;
    let w = lowering.value(op.w)?.materialise(&at)?;
    let y = lowering.tensor(op.y)?;
    let shape = Shape::new(&x.dims, &w.dims, &y.dims, &op.geometry)?;
    let (ssa, order) = match lowering.strategy() {
        ConvStrategy::Direct => direct::lower(&at, &x, &w, &shape, compute)?,
        ConvStrategy::Staged => staged::lower(&at, &x, &w, &shape, compute)?,
    };
    let result = Ordered {
        ssa,
        order,
        dtype: compute,
        dims: y.dims.clone(),
    };
    let carried = lowering.carry(result, lowering.carried_type(op.y, compute)?)?;
    lowering.define(op.y, Value::of(carried));
    Ok(())
}

/// N C spatial, K C spatial.
fn channels_first(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

/// N spatial C, K spatial C.
fn channels_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The extents of a convolution.
#[derive(Clone, Debug)]
pub(crate) struct Shape<'g> {
    batch: i64,
    groups: i64,
    /// Channels and filters of one group.
    channels: i64,
    filters: i64,
    /// Spatial extents.
    input: Vec<i64>,
    window: Vec<i64>,
    output: Vec<i64>,
    geometry: &'g ConvGeometry,
}

impl<'g> Shape<'g> {
    /// From the logical extents of x, w and y.
    pub(crate) fn new(x: &[i64], w: &[i64], y: &[i64], geometry: &'g ConvGeometry) -> Result<Self, EmitError> {
        let ([batch, channels, input @ ..], [filters, group_channels, window @ ..], [_, _, output @ ..]) = (x, w, y)
        else {
            return Err(EmitError::Internal("a convolution of low rank"));
        };
        let groups = channels.checked_div(*group_channels).filter(|groups| *groups > 0);
        let groups = groups.ok_or(EmitError::Internal("a convolution without groups"))?;
        Ok(Shape {
            batch: *batch,
            groups,
            channels: *group_channels,
            filters: filters / groups,
            input: input.to_vec(),
            window: window.to_vec(),
            output: output.to_vec(),
            geometry,
        })
    }

    fn spatial(&self) -> usize {
        self.output.len()
    }

    /// Zeros to add before and after each spatial axis: what the windows reach, and no more.
    fn padding(&self) -> Vec<(i64, i64)> {
        let ConvGeometry {
            pre_padding,
            stride,
            dilation,
            ..
        } = self.geometry;
        let axes = self.input.iter().zip(&self.window).zip(&self.output);
        axes.zip(pre_padding.iter().zip(stride.iter().zip(dilation)))
            .map(|(((input, window), output), (&pre, (stride, dilation)))| {
                let reach = (output - 1) * stride + (window - 1) * dilation + 1;
                (pre, (reach - input - pre).max(0))
            })
            .collect()
    }
}

/// The tensor with zeros before and after its axes, and its extents.
fn pad<'c, 'b>(
    at: &Emitter<'c, 'b>,
    ssa: Ssa<'c, 'b>,
    extents: &[i64],
    padding: &[(i64, i64)],
    dtype: DataType,
) -> Result<(Ssa<'c, 'b>, Vec<i64>), EmitError> {
    if padding.iter().all(|&(low, high)| low == 0 && high == 0) {
        return Ok((ssa, extents.to_vec()));
    }
    let padded: Vec<i64> = extents
        .iter()
        .zip(padding)
        .map(|(extent, (low, high))| extent + low + high)
        .collect();
    let (low, high): (Vec<i64>, Vec<i64>) = padding.iter().copied().unzip();
    let block = Block::new(&vec![(at.index_type(), at.location()); padded.len()]);
    let inner = at.inside(&block);
    inner.terminate("tensor.yield", &[inner.zero(dtype)?])?;
    let region = Region::new();
    region.append_block(block);
    let attributes = [
        ("static_low", at.i64_array(&low)),
        ("static_high", at.i64_array(&high)),
        ("operandSegmentSizes", at.segments(&[1, 0, 0])),
    ];
    let target = at.tensor_type(&padded, dtype)?;
    Ok((
        first(at.op("tensor.pad", &[ssa], &[target], &attributes, vec![region])?)?,
        padded,
    ))
}

/// sum + x w in the compute type.
fn multiply_add<'c, 'r>(
    body: &Emitter<'c, 'r>,
    x: (Ssa<'c, 'r>, DataType),
    w: (Ssa<'c, 'r>, DataType),
    sum: Ssa<'c, 'r>,
    compute: DataType,
) -> Result<Ssa<'c, 'r>, EmitError> {
    let x = convert(body, x.0, x.1, compute)?;
    let w = convert(body, w.0, w.1, compute)?;
    let (multiply, add) = if compute.is_float() {
        ("arith.mulf", "arith.addf")
    } else {
        ("arith.muli", "arith.addi")
    };
    let product = body.same(multiply, &[x, w])?;
    body.same(add, &[sum, product])
}

/// The tensor with the physical axis that is the logical `axis` split into (groups, the rest), and its physical extents. One group
/// stays unsplit.
fn split_axis<'c, 'b>(
    at: &Emitter<'c, 'b>,
    tensor: &Ordered<'c, 'b>,
    axis: usize,
    groups: i64,
) -> Result<(Ssa<'c, 'b>, Vec<i64>), EmitError> {
    if groups == 1 {
        return Ok((tensor.ssa, extents(&tensor.dims, &tensor.order)?));
    }
    let mut shape = Vec::new();
    let mut reassociation = Vec::new();
    for &logical in &tensor.order {
        let extent = extent(&tensor.dims, logical)?;
        let start = shape.len();
        if logical == axis {
            shape.extend([groups, extent / groups]);
        } else {
            shape.push(extent);
        }
        reassociation.push((start..shape.len()).collect());
    }
    let ssa = reshape(
        at,
        "tensor.expand_shape",
        tensor.ssa,
        &reassociation,
        &shape,
        tensor.dtype,
    )?;
    Ok((ssa, shape))
}
