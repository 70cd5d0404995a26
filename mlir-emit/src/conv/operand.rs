//! What the forms with tiles of our own make of x before they read it: with zeros around it, or of its positions those that count.

use super::shape::Shape;
use crate::EmitError;
use crate::ir::Emitter;
use crate::mlir::Value as Ssa;
use crate::value::{Ordered, extents};

/// x with the zeros around it, without what no window reaches if that has to go. Its spatial axes begin at `first` in memory.
pub(super) fn padded<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    first: usize,
) -> Result<Ssa<'c, 'b>, EmitError> {
    let from = extents(&x.dims, &x.order)?;
    let (read, padding) = shape.read(&from, first, at.quirks());
    let cropped = at.crop(x.ssa, &from, &read, x.dtype)?;
    Ok(at.pad(cropped, &read, &padding, (0.0, x.dtype))?.0)
}

/// x at the positions that a window of one tap reaches.
pub(super) fn reached<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
) -> Result<Ordered<'c, 'b>, EmitError> {
    let dims = [&[shape.batch, shape.channels], shape.output.as_slice()].concat();
    if dims == x.dims {
        return Ok(x.clone());
    }
    let ssa = at.tabulate(&extents(&dims, &x.order)?, x.dtype, |body| {
        let mut indices = Vec::new();
        for (position, &axis) in x.order.iter().enumerate() {
            let here = body.loop_index(position)?;
            let stride = axis
                .checked_sub(2)
                .and_then(|spatial| shape.geometry.stride.get(spatial));
            indices.push(match stride {
                Some(&stride) if stride > 1 => {
                    body.same("arith.muli", &[here, body.integer(stride, body.index_type())?])?
                }
                _ => here,
            });
        }
        body.extract(at.captured(x.ssa), &indices, x.dtype)
    })?;
    Ok(Ordered {
        ssa: at.barrier(ssa)?,
        dims,
        ..x.clone()
    })
}

/// An extent as schedules count.
pub(super) fn number(extent: i64) -> Result<u64, EmitError> {
    u64::try_from(extent).map_err(|_| EmitError::Internal("a negative extent"))
}
