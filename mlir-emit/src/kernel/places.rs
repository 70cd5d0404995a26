//! Addresses of an operand's elements: offsets of rows and of terms, and whether they are inside
//! the image.

use super::code::Int;
use super::problem::{Factor, Window};

/// The part of an element's address that depends on the row, or the part that depends on the term.
#[derive(Clone, Debug)]
pub(super) struct Place<'c> {
    /// The offset from the operand's first element, in elements.
    pub(super) offset: Int<'c>,
    /// The coordinate along the axis of each window.
    pub(super) along: Vec<Int<'c>>,
    /// Whether the row or term exists.
    pub(super) exists: Int<'c>,
}

/// Returns the index along each axis of the element with this number. The last axis varies fastest.
pub(super) fn coordinates<'c>(number: Int<'c>, extents: &[i64]) -> Vec<Int<'c>> {
    let mut rest = number;
    let mut indices = Vec::new();
    for (position, &extent) in extents.iter().enumerate().rev() {
        if position == 0 {
            indices.push(rest);
        } else {
            indices.push(rest % extent);
            rest = rest / extent;
        }
    }
    indices.reverse();
    indices
}

/// Returns the same indices for a number that is known while the kernel is written.
pub(super) fn known_coordinates(number: i64, extents: &[i64]) -> Vec<i64> {
    let mut rest = number;
    let mut indices = vec![0; extents.len()];
    for (index, &extent) in indices.iter_mut().zip(extents).rev() {
        (*index, rest) = (rest % extent, rest / extent);
    }
    indices
}

/// Returns the sum of the indices, each times the stride of its axis.
pub(super) fn offset<'c>(indices: &[Int<'c>], strides: &[i64]) -> Int<'c> {
    let terms = indices.iter().zip(strides).map(|(&index, &stride)| index * stride);
    Int::sum(terms.collect::<Vec<_>>())
}

/// The axes of one side of a product (its rows, columns or terms), and the strides of an operand
/// along them.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) extents: &'a [i64],
    pub(super) strides: &'a [i64],
    /// For each window, the axis that moves it and the distance of one step.
    pub(super) windows: &'a [(usize, i64)],
}

impl Side<'_> {
    /// Returns the number of rows, columns or terms.
    pub(super) fn count(&self) -> i64 {
        self.extents.iter().product()
    }

    /// Returns the place of the row or term with this number. `is_whole`: whether the number is
    /// always below the count.
    pub(super) fn place<'c>(&self, number: Int<'c>, is_whole: bool) -> Place<'c> {
        let indices = coordinates(number, self.extents);
        let along = self.windows.iter().map(|&(axis, step)| indices[axis] * step);
        Place {
            offset: offset(&indices, self.strides),
            along: along.collect(),
            exists: number.is_below_unless(is_whole, self.count()),
        }
    }

    /// Returns the place `count` elements further along the last axis, which must have that many
    /// more elements.
    pub(super) fn further<'c>(&self, place: &Place<'c>, count: i64) -> Place<'c> {
        let last = self.extents.len().saturating_sub(1);
        let stride = self.strides[last];
        let along = self.windows.iter().zip(&place.along).map(|(&(axis, step), &along)| {
            let moved = if axis == last { count * step } else { 0 };
            along + moved
        });
        Place {
            offset: place.offset + count * stride,
            along: along.collect(),
            exists: place.exists,
        }
    }
}

/// Returns the axes of an operand's windows on its own side, and on the side of the sum.
pub(super) fn windows(factor: &Factor) -> [Vec<(usize, i64)>; 2] {
    let of = |side: fn(&Window) -> (usize, i64)| factor.windows.iter().map(side).collect();
    [of(|window| window.own), of(|window| window.sum)]
}

/// Returns whether the element of a row and a term exists: both exist, and the coordinate is inside
/// the image along each window.
pub(super) fn is_there<'c>(factor: &Factor, row: &Place<'c>, term: &Place<'c>) -> Int<'c> {
    let mut all = row.exists & term.exists;
    for ((window, &row), &term) in factor.windows.iter().zip(&row.along).zip(&term.along) {
        let place = row + term + Int::Known(window.start);
        all = all & place.is_below(window.extent);
    }
    all
}
