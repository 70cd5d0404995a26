//! Negative padding, which cuts off elements of x instead of adding zeros. Frameworks send it as
//! the output padding of a transposed convolution, which is a gradient with respect to x whose last
//! elements no window covers.
//!
//! The forms of convolutions know no negative padding: x is cropped first, and the crop is
//! convolved with the padding that remains. The gradient with respect to x is computed for the crop
//! and then padded with zeros.

use crate::Unsupported;
use crate::counts::product;
use crate::ir::Emitter;
use crate::value::{Ordered, extents};
use rotini_graph::ConvGeometry;

/// The crop of x that a negative padding leaves.
pub(super) struct Cropped {
    /// The geometry without negative padding.
    pub(super) geometry: ConvGeometry,
    /// The extents of the crop.
    pub(super) dims: Vec<i64>,
    /// The number of elements that are cut off before and after each axis.
    cut: Vec<(i64, i64)>,
}

impl Cropped {
    /// Computes the crop from the extents of x.
    pub(super) fn new(x: &[i64], geometry: &ConvGeometry) -> Self {
        let paddings = geometry.pre_padding.iter().zip(&geometry.post_padding);
        let below = |padding: i64| padding.min(0).saturating_neg();
        let channels = x.len().saturating_sub(geometry.pre_padding.len());
        let cut: Vec<(i64, i64)> = std::iter::repeat_n((0, 0), channels)
            .chain(paddings.map(|(&pre, &post)| (below(pre), below(post))))
            .collect();
        let above = |paddings: &[i64]| paddings.iter().map(|&padding| padding.max(0)).collect();
        Cropped {
            geometry: ConvGeometry {
                pre_padding: above(&geometry.pre_padding),
                post_padding: above(&geometry.post_padding),
                ..geometry.clone()
            },
            dims: x
                .iter()
                .zip(&cut)
                .map(|(extent, (before, after))| extent.saturating_sub(*before).saturating_sub(*after))
                .collect(),
            cut,
        }
    }

    /// Declines a padding that leaves no element of x: the compiler has no empty tensors.
    pub(super) fn check(&self) -> Result<(), Unsupported> {
        if self.dims.iter().all(|&extent| extent > 0) {
            return Ok(());
        }
        Err(Unsupported::new("a padding below zero that cuts off all elements"))
    }

    fn is_whole(&self) -> bool {
        self.cut.iter().all(|&cut| cut == (0, 0))
    }

    /// Returns the number of elements of the copies of x or its gradient; 0 if nothing is cut off.
    pub(super) fn elements(&self, x: &[i64]) -> Option<u64> {
        if self.is_whole() {
            return Some(0);
        }
        let whole = product(x)?;
        whole.checked_mul(2)
    }

    /// Returns the crop of x.
    pub(super) fn of<'c>(&self, at: &Emitter<'c>, x: Ordered<'c>) -> Ordered<'c> {
        if self.is_whole() {
            return x;
        }
        let before: Vec<i64> = self.cut.iter().map(|(before, _)| *before).collect();
        let [offsets, sizes] = [extents(&before, &x.order), extents(&self.dims, &x.order)];
        let ssa = at.slice(x.ssa, &offsets, &sizes, x.dtype);
        Ordered {
            ssa: at.barrier(ssa),
            dims: self.dims.clone(),
            ..x
        }
    }

    /// Returns the gradient of x from the gradient of the crop: zeros where x is cut off.
    pub(super) fn surrounded<'c>(&self, at: &Emitter<'c>, rest: Ordered<'c>, dims: &[i64]) -> Ordered<'c> {
        if self.is_whole() {
            return rest;
        }
        let place = |&axis: &usize| self.cut[axis];
        let around: Vec<(i64, i64)> = rest.order.iter().map(place).collect();
        let sizes = extents(&rest.dims, &rest.order);
        let (ssa, _) = at.pad(at.barrier(rest.ssa), &sizes, &around, (0.0, rest.dtype));
        Ordered {
            ssa: at.barrier(ssa),
            dims: dims.to_vec(),
            ..rest
        }
    }
}
