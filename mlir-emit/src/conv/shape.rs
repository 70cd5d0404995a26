//! The extents of a convolution, and the memory orders that its tensors may have.

use super::kernels::{WIDTH, has_tiles};
use crate::counts::product;
use crate::ir::Emitter;
use crate::mlir::Value as Ssa;
use crate::quirks::Quirks;
use crate::value::{Ordered, extent, extents};
use rotini_graph::{ConvGeometry, ConvMode};

/// Returns the memory order N C spatial, or K C spatial.
pub(crate) fn channels_first(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

/// Returns the memory order N spatial C, or K spatial C.
pub(crate) fn channels_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The extents of a convolution.
#[derive(Clone, Debug)]
pub(crate) struct Shape<'g> {
    pub(crate) batch: i64,
    pub(crate) groups: i64,
    /// Channels and filters per group.
    pub(crate) channels: i64,
    pub(crate) filters: i64,
    /// Spatial extents.
    pub(crate) input: Vec<i64>,
    pub(crate) window: Vec<i64>,
    pub(crate) output: Vec<i64>,
    pub(crate) geometry: &'g ConvGeometry,
}

impl<'g> Shape<'g> {
    /// Returns the shape of a convolution that [`check`](super::check) accepts.
    pub(crate) fn of(x: &[i64], w: &[i64], y: &[i64], geometry: &'g ConvGeometry) -> Self {
        Self::new(x, w, y, geometry).expect("a convolution without groups")
    }

    /// Computes the shape from the logical extents of x, w and y; `None` if these are not the
    /// extents of a convolution.
    pub(crate) fn new(x: &[i64], w: &[i64], y: &[i64], geometry: &'g ConvGeometry) -> Option<Self> {
        let ([batch, channels, input @ ..], [filters, group_channels, window @ ..], [_, _, output @ ..]) = (x, w, y)
        else {
            return None;
        };
        let groups = channels.checked_div(*group_channels).filter(|groups| *groups > 0)?;
        Some(Shape {
            batch: *batch,
            groups,
            channels: *group_channels,
            filters: filters / groups,
            input: input.to_vec(),
            window: window.to_vec(),
            output: output.to_vec(),
            geometry,
        })
    }

    /// Returns the number of groups that are merged into one for a gradient with respect to w:
    /// enough to fill whole tiles of channels and filters. `None` if groups are not merged.
    pub(crate) fn merged_groups(&self) -> Option<i64> {
        const TILE: i64 = 16;
        if has_tiles(self) {
            return None;
        }
        let merged = [2, 4, 8].map(|count| (count, self.channels.min(self.filters).saturating_mul(count)));
        let is_possible = |&(count, _): &(i64, i64)| {
            let are_whole = |extent: i64| extent.checked_mul(count).is_some_and(|extent| extent % WIDTH == 0);
            self.groups % count == 0 && are_whole(self.channels) && are_whole(self.filters)
        };
        let possible: Vec<_> = merged.into_iter().filter(is_possible).collect();
        let full = possible.iter().find(|(_, least)| *least >= TILE);
        full.or(possible.last()).map(|&(count, _)| count)
    }

    /// Returns the number of elements per channel of y, over the whole batch.
    pub(crate) fn pixels(&self) -> i64 {
        self.output
            .iter()
            .fold(self.batch, |count, &extent| count.saturating_mul(extent))
    }

    /// Returns whether each window is one element, and these are all elements of x.
    pub(crate) fn is_pointwise(&self) -> bool {
        let mut ones = self.window.iter().chain(&self.geometry.stride);
        self.input == self.output && ones.all(|&extent| extent == 1)
    }

    /// Returns whether the convolution is dilated and has several filters per group of one channel.
    pub(crate) fn is_dilated_multiplier(&self) -> bool {
        let is_dilated = self.geometry.dilation.iter().any(|&dilation| dilation > 1);
        self.is_depthwise() && self.filters > 1 && is_dilated
    }

    /// Returns the shape with each channel repeated for every filter that reads it.
    pub(crate) fn with_a_channel_per_filter(self) -> Self {
        Shape {
            groups: self.groups.saturating_mul(self.filters),
            filters: 1,
            ..self
        }
    }

    /// Returns whether there are several groups with one channel each.
    pub(crate) fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.channels == 1
    }

    /// Returns the extents of dgrad as a convolution of dy: channels and filters, and input and
    /// output, are exchanged. The geometry stays that of the forward convolution.
    pub(crate) fn exchanged(&self) -> Self {
        Shape {
            batch: self.batch,
            groups: self.groups,
            channels: self.filters,
            filters: self.channels,
            input: self.output.clone(),
            window: self.window.clone(),
            output: self.input.clone(),
            geometry: self.geometry,
        }
    }

    pub(crate) fn spatial(&self) -> usize {
        self.output.len()
    }

    /// Returns whether the filter is read rotated by 180°, and has more than one tap, so that this
    /// matters.
    pub(crate) fn is_reversed(&self) -> bool {
        self.geometry.mode == ConvMode::Convolution && self.window.iter().any(|&extent| extent > 1)
    }

    /// Returns the number of elements of the filter.
    pub(crate) fn filter_elements(&self) -> Option<u64> {
        product(&self.window)?.checked_mul(product(&[self.groups, self.filters, self.channels])?)
    }

    /// Returns the number of elements of the copy of a filter that is [`reversed`].
    pub(crate) fn reversed_elements(&self) -> Option<u64> {
        if self.is_reversed() {
            self.filter_elements()
        } else {
            Some(0)
        }
    }

    /// Returns the zeros to add before and after each spatial axis: as many as the windows cover.
    pub(crate) fn padding(&self) -> Vec<(i64, i64)> {
        let axes = self.input.iter().zip(&self.geometry.pre_padding);
        axes.zip(self.reach())
            .map(|((input, &pre), reach)| (pre, (reach - input - pre).max(0)))
            .collect()
    }

    /// Returns the number of elements at the end of each spatial axis of x that no window covers.
    pub(crate) fn surplus(&self) -> Vec<i64> {
        let reached = self.reach();
        let axes = self.input.iter().zip(&self.geometry.pre_padding);
        axes.zip(reached)
            .map(|((input, pre), reach)| (pre + input - reach).clamp(0, *input))
            .collect()
    }

    /// Returns the extents of the part of x that is read, in memory order, and the padding around
    /// that part. Spatial axes begin at `first`.
    pub(crate) fn read(&self, extents: &[i64], first: usize, quirks: Quirks) -> (Vec<i64>, Vec<(i64, i64)>) {
        let (mut read, mut padding) = (extents.to_vec(), vec![(0, 0); extents.len()]);
        let spatial = read.iter_mut().zip(&mut padding).skip(first);
        for ((extent, slot), (amount, unread)) in spatial.zip(self.padding().into_iter().zip(quirks.unread(self))) {
            *extent -= unread;
            *slot = amount;
        }
        (read, padding)
    }

    /// Returns the extent that the windows cover along each spatial axis of the padded x.
    pub(crate) fn reach(&self) -> Vec<i64> {
        let ConvGeometry { stride, dilation, .. } = self.geometry;
        let axes = self.output.iter().zip(&self.window).zip(stride.iter().zip(dilation));
        axes.map(|((output, window), (stride, dilation))| (output - 1) * stride + (window - 1) * dilation + 1)
            .collect()
    }

    /// Returns the number of elements of the padded x.
    pub(crate) fn padded_elements(&self) -> Option<u64> {
        let mut elements = product(&[self.batch, self.groups, self.channels])?;
        for (input, (before, after)) in self.input.iter().zip(self.padding()) {
            let extent = input.checked_add(before)?.checked_add(after)?;
            elements = elements.checked_mul(u64::try_from(extent).ok()?)?;
        }
        Some(elements)
    }
}

/// Splits the logical `axis` of a tensor into (groups, the rest). Returns the tensor and its
/// physical extents. With one group nothing is split.
pub(crate) fn split_axis<'c>(at: &Emitter<'c>, tensor: &Ordered<'c>, axis: usize, groups: i64) -> (Ssa<'c>, Vec<i64>) {
    if groups == 1 {
        return (tensor.ssa, extents(&tensor.dims, &tensor.order));
    }
    let mut shape = Vec::new();
    let mut reassociation = Vec::new();
    for &logical in &tensor.order {
        let extent = extent(&tensor.dims, logical);
        let start = shape.len();
        if logical == axis {
            shape.extend([groups, extent / groups]);
        } else {
            shape.push(extent);
        }
        reassociation.push((start..shape.len()).collect());
    }
    let ssa = at.expand(tensor.ssa, &reassociation, &shape);
    (ssa, shape)
}
