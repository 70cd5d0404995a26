//! Tensors between buffers and the values of a lowering. Elements with gaps are gathered and
//! scattered; elements of less than a byte are unpacked and packed.

use crate::kernel::Scatter;
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::packing::{pack, unpack};
use crate::value::{Data, Ordered, Value, extents};
use rotini_graph::{Layout, NormalTensor, TensorId};

impl<'c> Lowering<'_, 'c> {
    /// Returns an input as a value: the argument itself, unpacked, or gathered if it has gaps.
    pub(crate) fn load(&self, tensor: &NormalTensor, ssa: Ssa<'c>) -> Value<'c> {
        let data = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } if tensor.dtype.is_packed() => Data::Tensor {
                ssa: unpack(&self.emitter(), ssa, &extents(&tensor.dims, &order), tensor.dtype),
                order,
            },
            Layout::Dense { order } => Data::Tensor { ssa, order },
            Layout::Strided => {
                let order: Vec<usize> = (0..tensor.dims.len()).collect();
                Data::Tensor {
                    ssa: self.gather(tensor, ssa),
                    order,
                }
            }
        };
        Value {
            data,
            dtype: tensor.dtype,
            dims: tensor.dims.clone(),
        }
    }

    /// Gathers the elements of a strided tensor from its span.
    fn gather(&self, tensor: &NormalTensor, span: Ssa<'c>) -> Ssa<'c> {
        let at = &self.emitter();
        at.tabulate(&tensor.dims, tensor.dtype, || {
            let index = at.index_type();
            let mut address = at.integer(0, index);
            for (axis, &stride) in tensor.strides.iter().enumerate() {
                if stride == 0 {
                    continue;
                }
                let offset = at.loop_index(axis) * at.integer(stride, index);
                address = address + offset;
            }
            at.extract(span, &[address], tensor.dtype)
        })
    }

    /// Rounds a value to its tensor's type and brings it into the tensor's memory order. `old`
    /// returns the argument with the old contents of an output with gaps.
    pub(crate) fn store(&self, id: TensorId, tensor: &NormalTensor, old: &mut impl FnMut() -> Ssa<'c>) -> Ssa<'c> {
        let value = self.value(id).materialise(&self.emitter());
        let (order, span) = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } => (order, None),
            Layout::Strided => {
                let mut order: Vec<usize> = (0..tensor.dims.len()).collect();
                order.sort_by_key(|&axis| std::cmp::Reverse(tensor.strides[axis]));
                (order, Some(old()))
            }
        };
        let rounded = if value.dtype == tensor.dtype && value.order == order {
            value
        } else {
            self.round(&value, tensor.dtype, order)
        };
        match span {
            None if tensor.dtype.is_packed() => pack(
                &self.emitter(),
                rounded.ssa,
                &extents(&rounded.dims, &rounded.order),
                tensor.dtype,
            ),
            None => rounded.ssa,
            Some(old) => self.scatter(tensor, &rounded, old),
        }
    }

    /// Writes the elements of a strided tensor into its span, in place. The elements are ordered
    /// from the largest stride to the smallest.
    fn scatter(&self, tensor: &NormalTensor, value: &Ordered<'c>, old: Ssa<'c>) -> Ssa<'c> {
        let span = rotini_graph::element_span(&tensor.dims, &tensor.strides);
        let axes = value
            .order
            .iter()
            .map(|&axis| [tensor.dims[axis], tensor.strides[axis]]);
        let scatter = Scatter {
            bits: tensor.dtype.bits(),
            axes: axes.collect(),
            span: span.expect("a span that overflows"),
            is_on_gpu: !self.target().is_cpu(),
        };
        self.scattered(&scatter, [value.ssa, old])
    }
}
