//! Tensors whose physical axes have names. The staged forms use the names to rearrange and sum
//! tensors without counting positions.

use super::shape::split_axis;
use crate::convert::convert;
use crate::ir::{Affine, Emitter, IndexMap, Loop};
use crate::math::multiply_add;
use crate::mlir::{Attribute, Name, Value as Ssa};
use crate::narrow::multiplied;
use crate::value::Ordered;
use rotini_graph::{ConvGeometry, DataType};

/// The meaning of an axis of an operand or of the result, or of a loop over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Batch,
    Group,
    Channel,
    Filter,
    /// A spatial axis of x or y, by its number.
    Spatial(usize),
    /// All spatial axes merged into one, with the batch merged too if it is not a separate axis.
    Position,
    /// A spatial axis of w, by its number.
    Tap(usize),
}

/// An axis with its extent.
pub(super) type Dim = (Axis, i64);

/// Returns a list of axes: `outer`, one axis named by `name` for each of `extents`, and `inner`.
pub(super) fn between(outer: &[Dim], name: fn(usize) -> Axis, extents: &[i64], inner: &[Dim]) -> Vec<Dim> {
    let numbered = extents.iter().enumerate();
    let numbered: Vec<Dim> = numbered.map(|(index, &extent)| (name(index), extent)).collect();
    [outer, &numbered, inner].concat()
}

fn extents(axes: &[Dim]) -> Vec<i64> {
    axes.iter().map(|&(_, extent)| extent).collect()
}

/// A row-major tensor with named axes.
#[derive(Clone, Debug)]
pub(super) struct Tensor<'c> {
    pub(super) ssa: Ssa<'c>,
    dtype: DataType,
    axes: Vec<Dim>,
}

impl<'c> Tensor<'c> {
    /// Names the axes of x. Its channels are split if there are several groups.
    pub(super) fn input(at: &Emitter<'c>, x: &Ordered<'c>, groups: i64) -> Self {
        Self::operand(at, x, 1, groups, |axis| match axis {
            0 => Axis::Batch,
            1 => Axis::Channel,
            spatial => Axis::Spatial(spatial - 2),
        })
    }

    /// Names the axes of w. Its filters are split if there are several groups.
    pub(super) fn filter(at: &Emitter<'c>, w: &Ordered<'c>, groups: i64) -> Self {
        Self::operand(at, w, 0, groups, |axis| match axis {
            0 => Axis::Filter,
            1 => Axis::Channel,
            spatial => Axis::Tap(spatial - 2),
        })
    }

    /// Names the axes of y or its gradient. Its filters are split if there are several groups.
    pub(super) fn output(at: &Emitter<'c>, y: &Ordered<'c>, groups: i64) -> Self {
        Self::operand(at, y, 1, groups, |axis| match axis {
            0 => Axis::Batch,
            1 => Axis::Filter,
            spatial => Axis::Spatial(spatial - 2),
        })
    }

    /// Returns a row-major tensor with these axes.
    pub(super) fn new(ssa: Ssa<'c>, dtype: DataType, axes: Vec<Dim>) -> Self {
        Tensor { ssa, dtype, axes }
    }

    fn operand(at: &Emitter<'c>, tensor: &Ordered<'c>, grouped: usize, groups: i64, name: fn(usize) -> Axis) -> Self {
        let (ssa, extents) = split_axis(at, tensor, grouped, groups);
        let group = |axis: usize| (groups > 1 && axis == grouped).then_some(Axis::Group);
        let names = tensor
            .order
            .iter()
            .flat_map(|&axis| group(axis).into_iter().chain([name(axis)]));
        Tensor::new(ssa, tensor.dtype, names.zip(extents).collect())
    }

    /// Returns an uninitialized tensor with these axes.
    pub(super) fn empty(at: &Emitter<'c>, axes: Vec<Dim>, dtype: DataType) -> Self {
        Tensor::new(at.empty(&extents(&axes), dtype), dtype, axes)
    }

    /// Returns the elements in another order and type: broadcast along axes that this tensor lacks,
    /// and read at each tap's offset (stride and dilation from `geometry`) if `axes` has taps.
    pub(super) fn copied(self, at: &Emitter<'c>, axes: &[Dim], dtype: DataType, geometry: &ConvGeometry) -> Self {
        if self.axes == axes && self.dtype == dtype {
            return self;
        }
        let loops: Vec<Axis> = axes.iter().map(|&(axis, _)| axis).collect();
        let input = (self.ssa, self.read(&loops, geometry));
        let ssa = at.elementwise(&extents(axes), dtype, &[input], |elements| {
            convert(at, elements[0], self.dtype, dtype)
        });
        Tensor::new(ssa, dtype, axes.to_vec())
    }

    /// Returns the index map with which these loops read the tensor. If there is a loop over taps,
    /// the index along the spatial axis is the window's position plus the tap's offset.
    fn read(&self, loops: &[Axis], geometry: &ConvGeometry) -> IndexMap {
        let index = |axis: Axis| loops.iter().position(|&candidate| candidate == axis).map(Affine::Loop);
        let position = |axis: Axis| match axis {
            Axis::Spatial(spatial) => {
                let Some(tap) = index(Axis::Tap(spatial)) else {
                    return index(axis);
                };
                let (stride, dilation) = (geometry.stride.get(spatial)?, geometry.dilation.get(spatial)?);
                Some(index(axis)? * *stride + tap * *dilation)
            }
            _ => index(axis),
        };
        let positions = self
            .axes
            .iter()
            .map(|&(axis, _)| position(axis))
            .collect::<Option<Vec<_>>>();
        IndexMap::new(loops.len(), positions.expect("an axis without a loop"))
    }

    /// Pads each axis by the numbers of zeros in `zeros`.
    pub(super) fn padded(self, at: &Emitter<'c>, zeros: impl Fn(Axis) -> (i64, i64)) -> Self {
        let padding: Vec<_> = self.axes.iter().map(|&(axis, _)| zeros(axis)).collect();
        let (ssa, padded) = at.pad(self.ssa, &extents(&self.axes), &padding, (0.0, self.dtype));
        let axes = self
            .axes
            .iter()
            .zip(padded)
            .map(|(&(axis, _), extent)| (axis, extent))
            .collect();
        Tensor { ssa, axes, ..self }
    }

    /// Removes `surplus` elements from the end of each axis.
    pub(super) fn without(self, at: &Emitter<'c>, surplus: impl Fn(Axis) -> i64) -> Self {
        let kept = |&(axis, extent): &Dim| (axis, extent - surplus(axis));
        let axes: Vec<Dim> = self.axes.iter().map(kept).collect();
        self.cropped(at, &axes)
    }

    /// Returns the tensor behind a barrier: the compiler fuses and folds nothing across it.
    pub(super) fn behind_barrier(self, at: &Emitter<'c>) -> Self {
        Tensor {
            ssa: at.barrier(self.ssa),
            ..self
        }
    }

    /// Merges each run of neighbouring axes into one.
    pub(super) fn merged(self, at: &Emitter<'c>, axes: &[Dim], runs: &[usize]) -> Self {
        self.reshaped(axes, runs, |ssa, groups, shape| at.collapse(ssa, groups, shape))
    }

    /// Splits each axis into a run of axes.
    pub(super) fn split(self, at: &Emitter<'c>, axes: &[Dim], runs: &[usize]) -> Self {
        self.reshaped(axes, runs, |ssa, groups, shape| at.expand(ssa, groups, shape))
    }

    fn reshaped(
        self,
        axes: &[Dim],
        runs: &[usize],
        reshape: impl FnOnce(Ssa<'c>, &[Vec<usize>], &[i64]) -> Ssa<'c>,
    ) -> Self {
        let mut next = 0..;
        let runs: Vec<Vec<usize>> = runs
            .iter()
            .map(|&length| next.by_ref().take(length).collect())
            .collect();
        let ssa = reshape(self.ssa, &runs, &extents(axes));
        Tensor::new(ssa, self.dtype, axes.to_vec())
    }

    /// Returns the leading elements along each axis, as many as `axes` says.
    pub(super) fn cropped(self, at: &Emitter<'c>, axes: &[Dim]) -> Self {
        if self.axes == axes {
            return self;
        }
        let shape = extents(axes);
        let ssa = at.slice(self.ssa, &vec![0; shape.len()], &shape, self.dtype);
        Tensor::new(ssa, self.dtype, axes.to_vec())
    }

    /// Returns the slice at one index of the outermost axis, without that axis.
    pub(super) fn outermost(&self, at: &Emitter<'c>, index: i64) -> Self {
        let (mut attributes, axes) = self.outermost_slice(index);
        attributes.push(("operandSegmentSizes", Attribute::i32_array(&[1, 0, 0, 0])));
        let part = at.tensor_type(&extents(&axes), self.dtype);
        let ssa = at.one(Name::TensorExtractSlice, &[self.ssa], part, &attributes);
        Tensor::new(ssa, self.dtype, axes)
    }

    /// Returns this tensor with the slice at one index of the outermost axis replaced by `part`.
    pub(super) fn with_outermost(self, at: &Emitter<'c>, index: i64, part: &Self) -> Self {
        let (mut attributes, _) = self.outermost_slice(index);
        attributes.push(("operandSegmentSizes", Attribute::i32_array(&[1, 1, 0, 0, 0])));
        let whole = at.tensor_type(&extents(&self.axes), self.dtype);
        let ssa = at.one(Name::TensorInsertSlice, &[part.ssa, self.ssa], whole, &attributes);
        Tensor { ssa, ..self }
    }

    /// Returns the attributes of the slice at one index of the outermost axis, and the axes of the
    /// slice.
    fn outermost_slice(&self, index: i64) -> (Vec<(&'static str, Attribute)>, Vec<Dim>) {
        let axes = self.axes[1..].to_vec();
        let sizes = [vec![1], extents(&axes)].concat();
        let mut offsets = vec![0; sizes.len()];
        offsets[0] = index;
        (slice(&offsets, &sizes), axes)
    }
}

/// Returns the attributes of an operation on a contiguous slice (strides of one).
fn slice(offsets: &[i64], sizes: &[i64]) -> Vec<(&'static str, Attribute)> {
    vec![
        ("static_offsets", Attribute::i64_array(offsets)),
        ("static_sizes", Attribute::i64_array(sizes)),
        ("static_strides", Attribute::i64_array(&vec![1; sizes.len()])),
    ]
}

/// Returns the sums over the axes `reduced` of x times w, for each element of `result`.
pub(super) fn sum<'c>(
    at: &Emitter<'c>,
    [x, w]: [&Tensor<'c>; 2],
    result: &[Dim],
    reduced: &[Dim],
    geometry: &ConvGeometry,
    compute: DataType,
) -> Tensor<'c> {
    let (loops, kinds): (Vec<Axis>, Vec<Loop>) = result
        .iter()
        .map(|&(axis, _)| (axis, Loop::Parallel))
        .chain(reduced.iter().map(|&(axis, _)| (axis, Loop::Reduction)))
        .unzip();
    let inputs = [
        (multiplied(at, x.ssa, x.dtype), x.read(&loops, geometry)),
        (multiplied(at, w.ssa, w.dtype), w.read(&loops, geometry)),
    ];
    let init = (
        at.zeros(&extents(result), compute),
        IndexMap::select(loops.len(), 0..result.len()),
    );
    let ssa = at.generic(&kinds, &inputs, init, |elements| {
        multiply_add(at, elements, [x.dtype, w.dtype], compute)
    });
    Tensor::new(ssa, compute, result.to_vec())
}
