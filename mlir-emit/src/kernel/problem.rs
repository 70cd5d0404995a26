//! The description of a product: the places of its operands and of its result in memory.
//!
//! Example: the convolution of x (N, H, W, C in memory) by w (K, R, S, C) with a step of 2 and
//! zeros around x. Its rows are the positions of windows (n, p, q), its columns the filters (k),
//! its sum is over (r, s, c). x at row (n, p, q) and term (r, s, c) is the element
//! `n H W C + (2 p + r - 1) W C + (2 q + s - 1) C + c`, if 2 p + r - 1 and 2 q + s - 1 are in the
//! image, and zero else.

use rotini_graph::DataType;
use rotini_schedule::gemm;

/// The bytes of an element in a kernel's memory.
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
    /// This axis of the batch, and within it the first one of the columns. Example: the filters of
    /// a convolution in groups.
    Group(usize),
}

/// The stride along each axis: zero along an axis that the tensor is broadcast along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) batch: Vec<i64>,
    /// Along the rows of the first factor and the columns of the second.
    pub(crate) own: Vec<i64>,
    /// Along the columns of the first factor and the rows of the second: only in a depthwise
    /// product.
    pub(crate) other: Vec<i64>,
    pub(crate) sum: Vec<i64>,
}

/// Positions along an axis of an image. Positions outside of the image are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The extent of the image along the axis.
    pub(crate) extent: i64,
    /// The coordinate that the first row and the first term read; negative in the padding.
    pub(crate) start: i64,
    /// One of the factor's own axes, and how far one step along it moves the coordinate.
    pub(crate) own: (usize, i64),
    /// The same of an axis of the sum.
    pub(crate) sum: (usize, i64),
    /// The same of an axis of the batch.
    pub(crate) batch: (usize, i64),
}

/// A factor.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    /// The number of its value.
    pub(crate) tensor: usize,
    /// Elements of the tensor.
    pub(crate) elements: i64,
    pub(crate) dtype: DataType,
    /// The element at the first place of all axes, which may lie before the tensor.
    pub(crate) first: i64,
    pub(crate) strides: Strides,
    pub(crate) windows: Vec<Window>,
}

/// Sums of products: for each batch, row and column.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// Extents.
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
    /// The type of sums and result.
    pub(crate) compute: DataType,
    pub(crate) schedule: gemm::Schedule,
    /// Whether the depthwise kernel computes the sums: in single lanes, without matrix
    /// instructions. Example: each channel of a depthwise convolution has its own filter, so both
    /// factors lie along the columns, which no matrix instruction has.
    pub(crate) is_depthwise: bool,
    /// What it is, for people who read the kernel's name: letters, digits and `_`.
    pub(crate) name: String,
}

impl Product {
    /// The extent of an axis of the result.
    pub(crate) fn extent(&self, axis: Axis) -> i64 {
        let (extents, index) = match axis {
            Axis::Batch(index) => (&self.batch, index),
            Axis::Row(index) => (&self.rows, index),
            Axis::Column(index) => (&self.columns, index),
            Axis::Group(index) => return self.extent(Axis::Batch(index)) * self.extent(Axis::Column(0)),
        };
        // A result may have no columns of its own.
        extents.get(index).copied().unwrap_or(1)
    }

    /// The axes in the order of the result's memory, with groups apart from what is in them, if
    /// there are several.
    pub(super) fn axes(&self) -> Vec<Axis> {
        let apart = |&axis: &Axis| match axis {
            Axis::Group(index) if self.extent(Axis::Batch(index)) == 1 => vec![Axis::Column(0)],
            Axis::Group(index) => vec![Axis::Batch(index), Axis::Column(0)],
            axis => vec![axis],
        };
        self.order.iter().flat_map(apart).collect()
    }

    /// Axes of the batch, and that of parts if there are several.
    pub(crate) fn batch_axes(&self) -> usize {
        self.batch.len() + usize::from(self.schedule.parts > 1)
    }

    /// The axis that runs of neighbours in memory go along: the last one with more than one
    /// element. `None` if it is not the last of the rows or columns: no kernel goes along such an
    /// axis.
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

    /// Whether the product can be split along K into `parts` parts, whose partial sums a second
    /// kernel adds.
    pub(crate) fn can_be_shared(&self, parts: u64) -> bool {
        let elements = self
            .shape()
            .iter()
            .try_fold(parts, |all, &extent| all.checked_mul(extent.unsigned_abs()));
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

    /// Whether terms of a sum are neighbours in the memory of a factor.
    fn has_adjacent_terms(&self, factor: &Factor) -> bool {
        let mut axes = self.sum.iter().zip(&factor.strides.sum);
        axes.any(|(&extent, &stride)| extent > 1 && stride == 1)
    }

    /// Whether addresses of all factors and of the result have 32 bits.
    pub(crate) fn can_be_addressed(&self) -> bool {
        const MOST: u64 = 1 << 31;
        let bytes = |factor: &Factor| factor.elements.unsigned_abs().checked_mul(factor.dtype.bytes()?);
        let elements = self
            .shape()
            .iter()
            .try_fold(1_u64, |all, &extent| all.checked_mul(extent.unsigned_abs()));
        let result = elements.and_then(|elements| elements.checked_mul(8));
        self.factors
            .iter()
            .map(bytes)
            .chain([result])
            .all(|bytes| bytes.is_some_and(|bytes| bytes < MOST))
    }

    /// The result's extents in the order of its memory.
    pub(crate) fn shape(&self) -> Vec<i64> {
        self.order.iter().map(|&axis| self.extent(axis)).collect()
    }
}
