//! Classification of a tensor's memory layout from its strides.
//!
//! The lowering works in memory order: it passes each tensor as a row-major array in the order of
//! its strides, so no transpose is needed between the logical and the physical order.

/// The memory layout of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The stored elements fill their span without gaps: a row-major array over `order`.
    Dense {
        /// The logical axes from the slowest to the fastest in memory. Broadcast axes (stride 0)
        /// are not stored and are left out.
        order: Vec<usize>,
    },
    /// Anything else: gaps, or elements that share addresses.
    Strided,
}

impl Layout {
    /// Returns the layout of a tensor with these extents and strides (in elements), which must be
    /// of equal length.
    ///
    /// The stride of an axis of extent 1 has no meaning. Such axes take the position that they have
    /// in the first common layout that fits (channels first, then channels last, then slowest).
    #[must_use]
    pub fn of(dims: &[i64], strides: &[i64]) -> Layout {
        let axes: Vec<usize> = (0..dims.len()).collect();
        let is_broadcast = |axis: usize| extent(dims, axis) > 1 && extent(strides, axis) == 0;
        let stored: Vec<usize> = axes.iter().copied().filter(|&axis| !is_broadcast(axis)).collect();

        let channels_first = stored.clone();
        let mut channels_last = stored.clone();
        if let Some(channel) = stored.iter().position(|&axis| axis == 1) {
            let axis = channels_last.remove(channel);
            channels_last.push(axis);
        }
        let mut by_stride = stored;
        // The sort is stable: axes of extent 1 first, then from the largest stride to the smallest.
        by_stride.sort_by_key(|&axis| match extent(dims, axis) {
            1 => i64::MIN,
            _ => extent(strides, axis).saturating_neg(),
        });

        [channels_first, channels_last, by_stride]
            .into_iter()
            .find(|order| is_packed(order, dims, strides))
            .map_or(Layout::Strided, |order| Layout::Dense { order })
    }
}

fn extent(list: &[i64], axis: usize) -> i64 {
    list.get(axis).copied().unwrap_or(1)
}

/// Checks whether the axes of `order`, from slowest to fastest, form a row-major array without
/// gaps.
fn is_packed(order: &[usize], dims: &[i64], strides: &[i64]) -> bool {
    let mut expected: i64 = 1;
    for &axis in order.iter().rev() {
        let dim = extent(dims, axis);
        if dim == 1 {
            continue;
        }
        if extent(strides, axis) != expected {
            return false;
        }
        match expected.checked_mul(dim) {
            Some(next) => expected = next,
            None => return false,
        }
    }
    true
}

/// Returns the number of elements from the first to the last address that a tensor touches; `None`
/// on overflow.
///
/// The caller must have allocated at least this: 1 + the sum of (extent - 1) stride.
#[must_use]
pub fn element_span(dims: &[i64], strides: &[i64]) -> Option<i64> {
    dims.iter().zip(strides).try_fold(1_i64, |span, (&dim, &stride)| {
        span.checked_add(dim.checked_sub(1)?.checked_mul(stride)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(order: &[usize]) -> Layout {
        Layout::Dense { order: order.to_vec() }
    }

    #[test]
    fn common_layouts() {
        assert_eq!(Layout::of(&[2, 3, 4, 5], &[60, 20, 5, 1]), dense(&[0, 1, 2, 3]), "NCHW");
        assert_eq!(Layout::of(&[2, 3, 4, 5], &[60, 1, 15, 3]), dense(&[0, 2, 3, 1]), "NHWC");
        assert_eq!(
            Layout::of(&[2, 3, 4, 5], &[1, 2, 6, 24]),
            dense(&[3, 2, 1, 0]),
            "reversed"
        );
        assert_eq!(Layout::of(&[2, 3], &[1, 2]), dense(&[1, 0]), "transposed matrix");
    }

    #[test]
    fn strides_of_unit_axes_do_not_matter() {
        assert_eq!(Layout::of(&[1, 16, 1, 1], &[16, 1, 16, 16]), dense(&[0, 1, 2, 3]));
        assert_eq!(Layout::of(&[1, 16, 1, 1], &[7, 1, 99, 0]), dense(&[0, 1, 2, 3]));
        assert_eq!(Layout::of(&[1, 8, 5, 1], &[0, 1, 8, 3]), dense(&[0, 2, 3, 1]));
        assert_eq!(Layout::of(&[1, 1], &[0, 0]), dense(&[0, 1]));
    }

    #[test]
    fn repeated_axes_are_not_stored() {
        assert_eq!(Layout::of(&[4, 3, 2], &[0, 1, 3]), dense(&[2, 1]));
        assert_eq!(Layout::of(&[4, 3], &[0, 0]), dense(&[]));
    }

    #[test]
    fn gaps_and_overlaps_are_strided() {
        assert_eq!(Layout::of(&[2, 3], &[4, 1]), Layout::Strided, "padded rows");
        assert_eq!(Layout::of(&[2, 3], &[6, 2]), Layout::Strided, "every second element");
        assert_eq!(Layout::of(&[3, 3], &[1, 1]), Layout::Strided, "overlapping windows");
    }

    #[test]
    fn span_is_what_is_touched() {
        assert_eq!(element_span(&[2, 3], &[4, 1]), Some(7));
        assert_eq!(element_span(&[5], &[0]), Some(1));
        assert_eq!(element_span(&[i64::MAX, 2], &[2, 1]), None);
    }
}
