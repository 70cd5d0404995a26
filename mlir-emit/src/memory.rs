//! Tensors between a buffer's memory and the values of a lowering. Elements with gaps are gathered and scattered. Elements of less than a
//! byte are unpacked and packed.

use crate::EmitError;
use crate::ir::{Loop, MISSING, Relation, affine_map, dim};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::packing::{pack, unpack};
use crate::quirks::Quirk;
use crate::value::{Data, Ordered, Value, extents};
use rotini_graph::{DataType, Layout, NormalTensor, TensorId};

impl<'c, 'b> Lowering<'_, 'c, 'b> {
    /// An input as a value: its argument as it is, or gathered if it has gaps.
    pub(crate) fn load(&self, tensor: &NormalTensor, ssa: Ssa<'c, 'b>) -> Result<Value<'c, 'b>, EmitError> {
        let data = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } if tensor.dtype.is_packed() => Data::Tensor {
                ssa: unpack(&self.emitter(), ssa, &extents(&tensor.dims, &order)?, tensor.dtype)?,
                order,
            },
            Layout::Dense { order } => Data::Tensor { ssa, order },
            Layout::Strided => {
                let order: Vec<usize> = (0..tensor.dims.len()).collect();
                Data::Tensor {
                    ssa: self.gather(tensor, ssa)?,
                    order,
                }
            }
        };
        Ok(Value {
            data,
            dtype: tensor.dtype,
            dims: tensor.dims.clone(),
        })
    }

    /// Reads the elements of a strided tensor out of its span.
    fn gather(&self, tensor: &NormalTensor, span: Ssa<'c, 'b>) -> Result<Ssa<'c, 'b>, EmitError> {
        let at = &self.emitter();
        at.tabulate(&tensor.dims, tensor.dtype, |body| {
            let index = body.index_type();
            let mut address = body.integer(0, index)?;
            for (axis, &stride) in tensor.strides.iter().enumerate() {
                if stride == 0 {
                    continue;
                }
                let offset = body.same("arith.muli", &[body.loop_index(axis)?, body.integer(stride, index)?])?;
                address = body.same("arith.addi", &[address, offset])?;
            }
            body.extract(at.captured(span), &[address], tensor.dtype)
        })
    }

    /// Rounds a value to its tensor's type and puts it into the tensor's memory order.
    pub(crate) fn store(
        &self,
        id: TensorId,
        tensor: &NormalTensor,
        old: &mut impl FnMut() -> Result<Ssa<'c, 'b>, EmitError>,
    ) -> Result<Ssa<'c, 'b>, EmitError> {
        let value = self.value(id)?.materialise(&self.emitter())?;
        let (order, span) = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } => (order, None),
            Layout::Strided => (value.order.clone(), Some(old()?)),
        };
        let rounded = if value.dtype == tensor.dtype && value.order == order {
            value
        } else {
            self.round(&value, tensor.dtype, order)?
        };
        match span {
            None if tensor.dtype.is_packed() => pack(
                &self.emitter(),
                rounded.ssa,
                &extents(&rounded.dims, &rounded.order)?,
                tensor.dtype,
            ),
            None => Ok(rounded.ssa),
            Some(old) => self.scatter(tensor, &rounded, old),
        }
    }

    /// Writes the elements of a strided tensor into its span: each address takes the element that lies there, or keeps what it had.
    ///
    /// The gaps are read and written back, so nothing else may write to them meanwhile.
    fn scatter(
        &self,
        tensor: &NormalTensor,
        value: &Ordered<'c, 'b>,
        old: Ssa<'c, 'b>,
    ) -> Result<Ssa<'c, 'b>, EmitError> {
        let at = &self.emitter();
        let span = rotini_graph::element_span(&tensor.dims, &tensor.strides)
            .ok_or(EmitError::Internal("a span that overflows"))?;
        // From the largest stride to the smallest; strides of outputs nest, so division finds each coordinate.
        let mut axes: Vec<(usize, i64, i64)> = (0..)
            .zip(tensor.dims.iter().zip(&tensor.strides))
            .map(|(axis, (&dim, &stride))| (axis, dim, stride))
            .filter(|(_, dim, _)| *dim > 1)
            .collect();
        axes.sort_by_key(|&(_, _, stride)| std::cmp::Reverse(stride));
        let identity = || affine_map(1, &[dim(0)]);
        let init = at.empty(&[span], tensor.dtype)?;
        let inputs = [(old, tensor.dtype, identity())];
        at.generic(
            &[Loop::Parallel],
            &inputs,
            (init, tensor.dtype, identity()),
            |body, elements| {
                let old = elements.first().copied().ok_or(MISSING)?;
                let index = body.index_type();
                let zero = body.integer(0, index)?;
                let mut rest = body.loop_index(0)?;
                let mut inside = body.integer(1, body.bool_type())?;
                let mut coordinates = vec![zero; tensor.dims.len()];
                for &(axis, extent, stride) in &axes {
                    let divisor = body.integer(stride, index)?;
                    let quotient = body.same("arith.divui", &[rest, divisor])?;
                    rest = body.same("arith.remui", &[rest, divisor])?;
                    let last = body.integer(extent - 1, index)?;
                    let fits = body.compare_indices(Relation::AtMost, quotient, last)?;
                    inside = body.same("arith.andi", &[inside, fits])?;
                    if let Some(coordinate) = coordinates.get_mut(axis) {
                        // Clamped, so that the read is in bounds where the element is not used.
                        *coordinate = body.same("arith.minui", &[quotient, last])?;
                    }
                }
                let exact = body.compare_indices(Relation::AtMost, rest, zero)?;
                inside = body.same("arith.andi", &[inside, exact])?;
                let position = value
                    .order
                    .iter()
                    .map(|&axis| coordinates.get(axis).copied())
                    .collect::<Option<Vec<_>>>()
                    .ok_or(EmitError::Internal("an axis out of range"))?;
                let new = body.extract(at.captured(value.ssa), &position, tensor.dtype)?;
                let element = body.element_type(tensor.dtype)?;
                if tensor.dtype != DataType::Bf16 || !body.quirks().avoids(Quirk::SelectedBf16) {
                    return body.one("arith.select", &[inside, new, old], element, &[]);
                }
                // As bits, which no conversion changes.
                let bits = body.bits16_type();
                let [new_bits, old_bits] = [new, old].map(|value| body.one("arith.bitcast", &[value], bits, &[]));
                let kept = body.one("arith.select", &[inside, new_bits?, old_bits?], bits, &[])?;
                body.one("arith.bitcast", &[kept], element, &[])
            },
        )
    }
}
