//! The description of a product: the places of its operands and of its result in memory.
//!
//! Example: the convolution of x (N, H, W, C in memory) by w (K, R, S, C) with a step of 2 and
//! zeros around x. Its rows are the positions of windows (n, p, q), its columns the filters (k),
//! its sum is over (r, s, c). x at row (n, p, q) and term (r, s, c) is the element
//! `n H W C + (2 p + r - 1) W C + (2 q + s - 1) C + c`, if 2 p + r - 1 and 2 q + s - 1 are in the
//! image, and zero else.

use crate::counts::product;
use rotini_graph::DataType;
use rotini_schedule::gemm;

/// Returns the bytes of an element in a kernel's memory.
pub(super) fn bytes(dtype: DataType) -> i64 {
    let bytes = dtype.bytes();
    bytes
        .unwrap_or_else(|| unreachable!("{dtype} in a kernel's memory"))
        .cast_signed()
}

/// An axis of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Axis {
    /// An axis of the batch.
    Batch(usize),
    /// An axis of the rows of the result.
    Row(usize),
    /// An axis of the columns of the result.
    Column(usize),
    /// An axis of the batch, with the first axis of the columns inside it. Example: the filters of
    /// a convolution with groups.
    Group(usize),
}

/// The strides of an operand along each axis; zero along an axis that the operand is broadcast
/// along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) batch: Vec<i64>,
    /// Along the rows of the first operand, or the columns of the second.
    pub(crate) own: Vec<i64>,
    /// Along the columns of the first operand, or the rows of the second: only in a depthwise
    /// product.
    pub(crate) other: Vec<i64>,
    pub(crate) sum: Vec<i64>,
}

/// The coordinates of an operand's elements along one axis of an image. The operand is zero where
/// the coordinate is outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The extent of the image along the axis.
    pub(crate) extent: i64,
    /// The coordinate that the first row and the first term read; negative in the padding.
    pub(crate) start: i64,
    /// One of the operand's own axes, and the distance that a step along it moves the coordinate.
    pub(crate) own: (usize, i64),
    /// An axis of the sum, and the distance that a step along it moves the coordinate.
    pub(crate) sum: (usize, i64),
    /// An axis of the batch, and the distance that a step along it moves the coordinate.
    pub(crate) batch: (usize, i64),
}

/// An operand of a product.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    /// The id of its value.
    pub(crate) tensor: usize,
    /// The number of elements of the tensor.
    pub(crate) elements: i64,
    pub(crate) dtype: DataType,
    /// The offset of the element with index 0 along all axes, which may be before the tensor.
    pub(crate) first: i64,
    pub(crate) strides: Strides,
    pub(crate) windows: Vec<Window>,
}

/// A batch of sums of products: one sum for each product of the batch, row and column.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// The extents of the axes.
    pub(crate) batch: Vec<i64>,
    pub(crate) rows: Vec<i64>,
    pub(crate) columns: Vec<i64>,
    pub(crate) sum: Vec<i64>,
    /// For each product of the batch, the number of leading terms that are summed, if not all are.
    pub(crate) terms: Vec<i64>,
    pub(crate) factors: [Factor; 2],
    /// The id of a list of i32 that selects the matrix of the second operand for each product of
    /// the batch, if the batch index does not.
    pub(crate) chosen: Option<usize>,
    /// The result's axes in the order of its memory.
    pub(crate) order: Vec<Axis>,
    /// The type of the sums and of the result.
    pub(crate) compute: DataType,
    pub(crate) schedule: gemm::Schedule,
    /// Whether the depthwise kernel computes the sums: each in a single lane, without matrix
    /// instructions. Example: each channel of a depthwise convolution has its own filter, so both
    /// operands vary along the columns, which no matrix instruction supports.
    pub(crate) is_depthwise: bool,
    /// The kernel's name, for people: letters, digits and `_`.
    pub(crate) name: String,
}

impl Product {
    /// Returns the extent of an axis of the result.
    pub(crate) fn extent(&self, axis: Axis) -> i64 {
        let (extents, index) = match axis {
            Axis::Batch(index) => (&self.batch, index),
            Axis::Row(index) => (&self.rows, index),
            Axis::Column(index) => (&self.columns, index),
            Axis::Group(index) => return self.extent(Axis::Batch(index)) * self.extent(Axis::Column(0)),
        };
        // A result may have no axis of columns.
        extents.get(index).copied().unwrap_or(1)
    }

    /// Returns the axes in the memory order of the result, with each group axis split into the axis
    /// of the batch and that of the columns, if there is more than one group.
    pub(super) fn axes(&self) -> Vec<Axis> {
        let apart = |&axis: &Axis| match axis {
            Axis::Group(index) if self.extent(Axis::Batch(index)) == 1 => vec![Axis::Column(0)],
            Axis::Group(index) => vec![Axis::Batch(index), Axis::Column(0)],
            axis => vec![axis],
        };
        self.order.iter().flat_map(apart).collect()
    }

    /// Returns the number of batch axes, including the axis of split-K parts if there are several
    /// parts.
    pub(crate) fn batch_axes(&self) -> usize {
        self.batch.len() + usize::from(self.schedule.parts > 1)
    }

    /// Returns the axis along which runs of contiguous elements go: the innermost axis with more
    /// than one element. `None` if this is not the last axis of the rows or columns, since no
    /// kernel supports such runs.
    pub(crate) fn run_axis(&self) -> Option<Axis> {
        let is_wide = |axis: &&Axis| self.extent(**axis) > 1;
        let axes = self.axes();
        let axis = *axes.iter().rev().find(is_wide).unwrap_or(&Axis::Column(0));
        let is_last = match axis {
            Axis::Batch(_) | Axis::Group(_) => false,
            Axis::Row(position) => position + 1 == self.rows.len(),
            Axis::Column(position) => position + 1 == self.columns.len(),
        };
        is_last.then_some(axis)
    }

    /// Returns whether the product can be split along K into `parts` parts, whose partial sums a
    /// second kernel adds.
    pub(crate) fn can_be_shared(&self, parts: u64) -> bool {
        let elements = product(&self.shape()).and_then(|elements| elements.checked_mul(parts));
        self.run_axis().is_some() && elements.is_some_and(|elements| elements < 1 << 29)
    }

    /// Returns the quantities that its estimated time depends on.
    pub(crate) fn problem(&self) -> gemm::Problem {
        let count = |extents: &[i64]| {
            extents
                .iter()
                .fold(1_u64, |all, &extent| all.saturating_mul(extent.unsigned_abs()))
        };
        let [a, b] = &self.factors;
        let bytes = bytes(a.dtype).unsigned_abs();
        let read = count(&self.rows)
            .saturating_mul(count(&self.sum))
            .saturating_mul(count(&self.batch));
        gemm::Problem {
            count: count(&self.batch),
            rows: count(&self.rows),
            columns: count(&self.columns),
            depth: count(&self.sum).saturating_mul(bytes),
            element: bytes,
            stored: 2,
            reuse: (read / a.elements.unsigned_abs().max(1)).max(1),
            adjacent: [a, b].map(|factor| self.has_adjacent_terms(factor)),
        }
    }

    /// Returns whether the terms of a sum are contiguous in the memory of an operand.
    fn has_adjacent_terms(&self, factor: &Factor) -> bool {
        let mut axes = self.sum.iter().zip(&factor.strides.sum);
        axes.any(|(&extent, &stride)| extent > 1 && stride == 1)
    }

    /// Returns whether all operands, and the result at 8 bytes per element, are smaller than 2^31
    /// bytes, so that 32 bits address them.
    pub(crate) fn can_be_addressed(&self) -> bool {
        const MOST: u64 = 1 << 31;
        let bytes = |factor: &Factor| factor.elements.unsigned_abs().checked_mul(factor.dtype.bytes()?);
        let result = product(&self.shape()).and_then(|elements| elements.checked_mul(8));
        self.factors
            .iter()
            .map(bytes)
            .chain([result])
            .all(|bytes| bytes.is_some_and(|bytes| bytes < MOST))
    }

    /// Returns the result's extents in memory order.
    pub(crate) fn shape(&self) -> Vec<i64> {
        self.order.iter().map(|&axis| self.extent(axis)).collect()
    }
}
