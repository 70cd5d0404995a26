//! Stores of a dense tensor's elements into a buffer that has gaps between them. No other elements
//! of the buffer are read or written, so its size does not matter, and others may write to the gaps
//! meanwhile.
//!
//! Elements are copied as integers of their width. On GPUs each lane stores elements. On CPUs a
//! workgroup stores some rows, in vectors where the elements of a row are neighbours.

use super::code::{Code, Int, Ssa};
use crate::counts::ceil_div;
use crate::mlir::{Context, Type};

/// Lanes per workgroup on GPUs.
pub(super) const LANES: i64 = 256;
/// Maximum number of workgroups on GPUs: lanes are numbered in 32 bits.
const MOST_WORKGROUPS: i64 = 1 << 22;
/// Bytes per vector on CPUs.
const VECTOR_BYTES: i64 = 32;
/// Approximate number of elements per workgroup on CPUs.
const ELEMENTS: i64 = 1 << 14;

/// The copy of a dense tensor, whose axes lie in the order of `axes`, into a span with gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scatter {
    /// Bits of an element: 8, 16, 32 or 64.
    pub(crate) bits: u32,
    /// Extent and stride of each axis, from the largest stride to the smallest, both at least 1.
    pub(crate) axes: Vec<[i64; 2]>,
    /// Elements of the span, including gaps.
    pub(crate) span: i64,
    pub(crate) is_on_gpu: bool,
}

impl Scatter {
    pub(super) fn name(&self) -> String {
        let axes: Vec<String> = self
            .axes
            .iter()
            .map(|[extent, stride]| format!("{extent}s{stride}"))
            .collect();
        format!("scatter_{}_i{}", axes.join("x"), self.bits)
    }

    /// Returns the number of elements of the tensor and of the span.
    pub(super) fn elements(&self) -> [i64; 2] {
        [self.axes.iter().map(|[extent, _]| extent).product(), self.span]
    }

    /// Returns the integer type as which a kernel copies an element.
    pub(super) fn element<'c>(&self, context: &'c Context) -> Type<'c> {
        Type::integer(context, self.bits)
    }

    /// Returns the axes without those of extent 1, with neighbours that have a common stride
    /// merged.
    fn merged(&self) -> Vec<[i64; 2]> {
        let mut merged: Vec<[i64; 2]> = Vec::new();
        for &[extent, stride] in self.axes.iter().filter(|[extent, _]| *extent > 1) {
            match merged.last_mut() {
                Some([outer, of_outer]) if *of_outer == extent * stride => {
                    (*outer, *of_outer) = (*outer * extent, stride)
                }
                _ => merged.push([extent, stride]),
            }
        }
        merged
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        if self.is_on_gpu {
            self.by_lanes(code)
        } else {
            self.by_rows(code)
        }
    }

    /// Returns the offset in the span of the element with this number, counted along these axes.
    fn place<'c>(axes: &[[i64; 2]], number: Int<'c>) -> Int<'c> {
        let (mut rest, mut place) = (number, Int::Known(0));
        for (axis, &[extent, stride]) in axes.iter().enumerate().rev() {
            let coordinate = if axis == 0 { rest } else { rest % extent };
            rest = rest / extent;
            place = place + coordinate * stride;
        }
        place
    }

    /// Copies an element, or a vector of contiguous elements.
    fn copy<'c>(code: &Code<'c>, value: Type<'c>, [source, target]: [Ssa<'c>; 2], [from, to]: [Int<'c>; 2]) {
        if value.if_vector().is_some() {
            code.write_vector(code.read_vector(source, from, value), target, to)
        } else {
            code.write(code.read(source, from), target, to)
        }
    }

    fn by_lanes<'c>(&self, code: &Code<'c>) -> i64 {
        let [count, _] = self.elements();
        let (axes, element) = (self.merged(), self.element(code.context()));
        let workgroups = ceil_div(count, LANES).min(MOST_WORKGROUPS);
        let buffers = code.buffers();
        let (lane, workgroup) = (code.lane(), code.workgroup());
        let first = workgroup * LANES + lane;
        code.each([first, count.into(), (workgroups * LANES).into()], |number| {
            let place = Self::place(&axes, number);
            Self::copy(code, element, buffers, [number, place]);
        });
        workgroups
    }

    fn by_rows<'c>(&self, code: &Code<'c>) -> i64 {
        let axes = self.merged();
        let (&[columns, stride], outer) = axes.split_last().unwrap_or((&[1, 1], &[]));
        let [count, _] = self.elements();
        let rows = count / columns;
        let of_workgroup = (ELEMENTS / columns).max(1);
        let element = self.element(code.context());
        let width = VECTOR_BYTES * 8 / i64::from(self.bits);
        let whole = if stride == 1 { columns / width * width } else { 0 };
        let vector = element.vector(&[width]);
        let buffers = code.buffers();
        let start = code.workgroup() * of_workgroup;
        let end = (start + of_workgroup).min(rows);
        code.each([start, end, 1.into()], |row| {
            let (from, to) = (row * columns, Self::place(outer, row));
            for (range, value) in [([0, whole, width], vector), ([whole, columns, 1], element)] {
                code.each(range.map(Int::Known), |column| {
                    let to = to + column * stride;
                    Self::copy(code, value, buffers, [from + column, to]);
                });
            }
        });
        ceil_div(rows, of_workgroup)
    }
}
