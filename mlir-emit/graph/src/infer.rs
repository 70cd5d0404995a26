//! Shapes that follow from an operation's inputs.

/// Returns the shape of two operands broadcast as in NumPy, right-aligned; `None` if they do not
/// broadcast.
#[must_use]
pub fn broadcast_dims(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |dims: &[i64], axis: usize| {
        let missing = rank - dims.len();
        axis.checked_sub(missing)
            .and_then(|index| dims.get(index))
            .copied()
            .unwrap_or(1)
    };
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// Returns the extent of a convolution's output along one spatial axis; `None` if the filter does
/// not fit or the arithmetic overflows.
///
/// The formula is that of hipDNN's reference: floor((input + pre + post - dilation (filter - 1) -
/// 1) / stride) + 1.
#[must_use]
pub fn conv_output_extent(input: i64, filter: i64, pre: i64, post: i64, stride: i64, dilation: i64) -> Option<i64> {
    let padded = input.checked_add(pre)?.checked_add(post)?;
    let reach = dilation.checked_mul(filter.checked_sub(1)?)?.checked_add(1)?;
    let slack = padded.checked_sub(reach)?;
    if slack < 0 || stride < 1 {
        return None;
    }
    (slack / stride).checked_add(1)
}

/// Returns the first of the axes over which an RMSNorm normalizes, given the dims of x and of its
/// scale; `None` if the scale does not determine it.
///
/// The normalized axes are the longest run of trailing axes in which the scale has the extents of
/// x, but never axis 0, which is the batch. In all axes before them the scale has extent 1. This is
/// the rule of hipDNN's front end (`node/detail/Utilities.hpp`). The dims of a scale of lower rank
/// than x are right-aligned, and its missing leading axes count as 1.
#[must_use]
pub fn rms_normalized_axis(x: &[i64], scale: &[i64]) -> Option<usize> {
    let missing = x.len().checked_sub(scale.len())?;
    if x.len() < 2 || (missing == 0 && scale.first() != Some(&1)) {
        return None;
    }
    let equal = x
        .iter()
        .rev()
        .zip(scale.iter().rev())
        .take_while(|(x, scale)| x == scale);
    let first = x.len().checked_sub(equal.count())?.max(1);
    let is_leading = scale.iter().take(first.saturating_sub(missing)).all(|&dim| dim == 1);
    (first < x.len() && is_leading).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting() {
        assert_eq!(broadcast_dims(&[2, 3, 4], &[3, 1]), Some(vec![2, 3, 4]));
        assert_eq!(broadcast_dims(&[1], &[5, 6]), Some(vec![5, 6]));
        assert_eq!(broadcast_dims(&[2, 3], &[3, 2]), None);
    }

    #[test]
    fn normalized_axes_of_an_rms_norm() {
        let x = [2, 3, 4, 5];
        assert_eq!(rms_normalized_axis(&x, &[1, 3, 4, 5]), Some(1));
        assert_eq!(rms_normalized_axis(&x, &[1, 1, 4, 5]), Some(2));
        assert_eq!(rms_normalized_axis(&x, &[1, 1, 1, 5]), Some(3));
        assert_eq!(rms_normalized_axis(&x, &[1, 3, 1, 1]), None, "channels only");
        assert_eq!(rms_normalized_axis(&x, &[1, 3, 1, 5]), None, "a gap");
        assert_eq!(rms_normalized_axis(&x, &[1, 1, 1, 1]), None, "nothing");
        assert_eq!(rms_normalized_axis(&x, &[2, 3, 4, 5]), None, "the batch");
        assert_eq!(rms_normalized_axis(&x, &[5]), Some(3), "the last axis");
        assert_eq!(rms_normalized_axis(&x, &[4, 5]), Some(2));
        assert_eq!(rms_normalized_axis(&x, &[1, 5]), Some(3));
        assert_eq!(rms_normalized_axis(&x, &[3, 1, 5]), None, "a gap in fewer axes");
        assert_eq!(rms_normalized_axis(&x, &[4]), None, "no axis of x");
        assert_eq!(rms_normalized_axis(&x, &[1]), None, "nothing in one axis");
        assert_eq!(rms_normalized_axis(&x, &[1, 2, 3, 4, 5]), None, "more axes than x");
        assert_eq!(rms_normalized_axis(&[2, 1, 1], &[1, 1, 1]), Some(1), "single elements");
        assert_eq!(
            rms_normalized_axis(&[1, 6], &[1, 6]),
            Some(1),
            "a batch of 1 is a batch"
        );
    }

    #[test]
    fn convolution_extents() {
        assert_eq!(conv_output_extent(224, 7, 3, 3, 2, 1), Some(112));
        assert_eq!(conv_output_extent(56, 3, 1, 1, 2, 1), Some(28));
        assert_eq!(conv_output_extent(5, 3, 0, 0, 1, 2), Some(1));
        assert_eq!(conv_output_extent(5, 3, 0, 0, 1, 3), None, "the filter does not fit");
        assert_eq!(conv_output_extent(i64::MAX, 3, 1, 1, 1, 1), None);
    }
}
