//! Operations on whole tensors: create, fill, pad, crop, read.

use super::{Emitter, first};
use crate::mlir::{Attribute, Name, Value};
use rotini_graph::DataType;

impl<'c> Emitter<'c> {
    /// Appends an uninitialised tensor.
    pub(crate) fn empty(&self, shape: &[i64], dtype: DataType) -> Value<'c> {
        self.one(Name::TensorEmpty, &[], self.tensor_type(shape, dtype), &[])
    }

    /// Appends a tensor of zeros.
    pub(crate) fn zeros(&self, shape: &[i64], dtype: DataType) -> Value<'c> {
        self.filled(shape, dtype, 0.0)
    }

    /// Appends a tensor with one value everywhere, rounded or clamped to the type.
    pub(crate) fn filled(&self, shape: &[i64], dtype: DataType, value: f64) -> Value<'c> {
        let value = self.constant(value, dtype);
        self.fill(value, self.empty(shape, dtype))
    }

    /// Fills a tensor with one value.
    pub(crate) fn fill(&self, value: Value<'c>, empty: Value<'c>) -> Value<'c> {
        let element = value.r#type();
        let block = self.block(&[element, element], |elements| {
            self.run(Name::LinalgYield, &elements[..1])
        });
        let attributes = [("operandSegmentSizes", Attribute::i32_array(&[1, 1]))];
        first(self.op(
            Name::LinalgFill,
            &[value, empty],
            &[empty.r#type()],
            &attributes,
            vec![block.into()],
        ))
    }

    /// Pads a tensor before and after each axis by the numbers of elements in `padding`, with
    /// `fill` or the nearest value of the type. Returns the tensor and its extents.
    pub(crate) fn pad(
        &self,
        ssa: Value<'c>,
        extents: &[i64],
        padding: &[(i64, i64)],
        (fill, dtype): (f64, DataType),
    ) -> (Value<'c>, Vec<i64>) {
        if padding.iter().all(|&(low, high)| low == 0 && high == 0) {
            return (ssa, extents.to_vec());
        }
        let padded: Vec<i64> = extents
            .iter()
            .zip(padding)
            .map(|(extent, (low, high))| extent + low + high)
            .collect();
        let (low, high): (Vec<i64>, Vec<i64>) = padding.iter().copied().unzip();
        let block = self.block(&vec![self.index_type(); padded.len()], |_| {
            self.run(Name::TensorYield, &[self.constant(fill, dtype)]);
        });
        let attributes = [
            ("static_low", Attribute::i64_array(&low)),
            ("static_high", Attribute::i64_array(&high)),
            ("operandSegmentSizes", Attribute::i32_array(&[1, 0, 0])),
        ];
        let target = self.tensor_type(&padded, dtype);
        (
            first(self.op(Name::TensorPad, &[ssa], &[target], &attributes, vec![block.into()])),
            padded,
        )
    }

    /// Returns the first `to` elements along each axis.
    pub(crate) fn crop(&self, ssa: Value<'c>, from: &[i64], to: &[i64], dtype: DataType) -> Value<'c> {
        if from == to {
            return ssa;
        }
        self.slice(ssa, &vec![0; to.len()], to, dtype)
    }

    /// Returns `sizes` elements along each axis, starting at `offsets`.
    pub(crate) fn slice(&self, ssa: Value<'c>, offsets: &[i64], sizes: &[i64], dtype: DataType) -> Value<'c> {
        let attributes = [
            ("static_offsets", Attribute::i64_array(offsets)),
            ("static_sizes", Attribute::i64_array(sizes)),
            ("static_strides", Attribute::i64_array(&vec![1; sizes.len()])),
            ("operandSegmentSizes", Attribute::i32_array(&[1, 0, 0, 0])),
        ];
        self.one(
            Name::TensorExtractSlice,
            &[ssa],
            self.tensor_type(sizes, dtype),
            &attributes,
        )
    }

    /// Loads an element of a tensor.
    pub(crate) fn extract(&self, tensor: Value<'c>, indices: &[Value<'c>], dtype: DataType) -> Value<'c> {
        let operands: Vec<_> = [tensor].into_iter().chain(indices.iter().copied()).collect();
        self.one(Name::TensorExtract, &operands, self.element_type(dtype), &[])
    }

    /// Splits axes of a tensor: `groups` has the axes of the result that each becomes.
    pub(crate) fn expand(&self, ssa: Value<'c>, groups: &[Vec<usize>], shape: &[i64]) -> Value<'c> {
        let attributes = [
            ("reassociation", Attribute::groups(groups)),
            ("static_output_shape", Attribute::i64_array(shape)),
        ];
        let result = ssa.r#type().as_tensor().1.tensor(shape);
        self.one(Name::TensorExpandShape, &[ssa], result, &attributes)
    }

    /// Merges axes of a tensor: `groups` has the axes that become each axis of the result.
    pub(crate) fn collapse(&self, ssa: Value<'c>, groups: &[Vec<usize>], shape: &[i64]) -> Value<'c> {
        self.one(
            Name::TensorCollapseShape,
            &[ssa],
            ssa.r#type().as_tensor().1.tensor(shape),
            &[("reassociation", Attribute::groups(groups))],
        )
    }
}
