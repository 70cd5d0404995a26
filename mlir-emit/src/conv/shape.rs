//! The extents of a convolution, and the memory orders that its tensors may have.

use super::kernels::{WIDTH, has_tiles};
use crate::ir::Emitter;
use crate::mlir::{Name, Value as Ssa};
use crate::quirks::Quirks;
use crate::value::{Ordered, extent, extents, reshape};
use rotini_graph::{ConvGeometry, ConvMode};

/// The product of extents.
pub(crate) fn product(extents: &[i64]) -> Option<u64> {
    extents.iter().try_fold(1_u64, |product, &extent| {
        product.checked_mul(u64::try_from(extent).ok()?)
    })
}

/// N C spatial, K C spatial.
pub(crate) fn channels_first(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

/// N spatial C, K spatial C.
pub(crate) fn channels_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The extents of a convolution.
#[derive(Clone, Debug)]
pub(crate) struct Shape<'g> {
    pub(crate) batch: i64,
    pub(crate) groups: i64,
    /// Channels and filters of one group.
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

    /// From the logical extents of x, w and y; `None` if they are none of a convolution.
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

    /// The number of groups of few channels that are summed as one, if any are: enough to fill
    /// whole tiles of channels and filters.
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

    /// The elements of one channel of y.
    pub(crate) fn pixels(&self) -> i64 {
        self.output
            .iter()
            .fold(self.batch, |count, &extent| count.saturating_mul(extent))
    }

    /// Whether it is dilated and has several filters for each group of one channel.
    pub(crate) fn is_dilated_multiplier(&self) -> bool {
        let is_dilated = self.geometry.dilation.iter().any(|&dilation| dilation > 1);
        self.is_depthwise() && self.filters > 1 && is_dilated
    }

    /// The same with each channel repeated for every filter that reads it.
    pub(crate) fn with_a_channel_per_filter(self) -> Self {
        Shape {
            groups: self.groups.saturating_mul(self.filters),
            filters: 1,
            ..self
        }
    }

    /// Whether each group has one channel.
    pub(crate) fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.channels == 1
    }

    /// The extents of dgrad as a convolution of dy: channels and filters, input and output swapped.
    /// The geometry stays that of the forward convolution.
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

    /// Whether the filter is turned, and not the same that way.
    pub(crate) fn is_reversed(&self) -> bool {
        self.geometry.mode == ConvMode::Convolution && self.window.iter().any(|&extent| extent > 1)
    }

    /// Elements of the filter.
    pub(crate) fn filter_elements(&self) -> Option<u64> {
        product(&self.window)?.checked_mul(product(&[self.groups, self.filters, self.channels])?)
    }

    /// Elements of the copy of a filter that is [`reversed`].
    pub(crate) fn reversed_elements(&self) -> Option<u64> {
        if self.is_reversed() {
            self.filter_elements()
        } else {
            Some(0)
        }
    }

    /// Zeros to add before and after each spatial axis: what the windows reach, and no more.
    pub(crate) fn padding(&self) -> Vec<(i64, i64)> {
        let axes = self.input.iter().zip(&self.geometry.pre_padding);
        axes.zip(self.reach())
            .map(|((input, &pre), reach)| (pre, (reach - input - pre).max(0)))
            .collect()
    }

    /// Elements at the end of each spatial axis of x that no window reaches.
    pub(crate) fn surplus(&self) -> Vec<i64> {
        let reached = self.reach();
        let axes = self.input.iter().zip(&self.geometry.pre_padding);
        axes.zip(reached)
            .map(|((input, pre), reach)| (pre + input - reach).clamp(0, *input))
            .collect()
    }

    /// How much of x is read along each axis in memory, and the zeros around that. Spatial axes
    /// begin at `first`.
    pub(crate) fn read(&self, extents: &[i64], first: usize, quirks: Quirks) -> (Vec<i64>, Vec<(i64, i64)>) {
        let (mut read, mut padding) = (extents.to_vec(), vec![(0, 0); extents.len()]);
        let spatial = read.iter_mut().zip(&mut padding).skip(first);
        for ((extent, slot), (amount, unread)) in spatial.zip(self.padding().into_iter().zip(quirks.unread(self))) {
            *extent -= unread;
            *slot = amount;
        }
        (read, padding)
    }

    /// How far the windows reach along each spatial axis of the padded x.
    pub(crate) fn reach(&self) -> Vec<i64> {
        let ConvGeometry { stride, dilation, .. } = self.geometry;
        let axes = self.output.iter().zip(&self.window).zip(stride.iter().zip(dilation));
        axes.map(|((output, window), (stride, dilation))| (output - 1) * stride + (window - 1) * dilation + 1)
            .collect()
    }

    /// Elements of x with its zeros.
    pub(crate) fn padded_elements(&self) -> Option<u64> {
        let mut elements = product(&[self.batch, self.groups, self.channels])?;
        for (input, (before, after)) in self.input.iter().zip(self.padding()) {
            let extent = input.checked_add(before)?.checked_add(after)?;
            elements = elements.checked_mul(u64::try_from(extent).ok()?)?;
        }
        Some(elements)
    }
}

/// The tensor with the physical axis that is the logical `axis` split into (groups, the rest), and
/// its physical extents. One group stays unsplit.
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
    let ssa = reshape(
        at,
        Name::TensorExpandShape,
        tensor.ssa,
        &reassociation,
        &shape,
        tensor.dtype,
    );
    (ssa, shape)
}
