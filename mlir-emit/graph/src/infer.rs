//! Shapes that follow from an operation's inputs.

/// The shape of two operands broadcast against each other as NumPy does, right-aligned; `None` if they do not fit.
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

/// The extent of a convolution's output along one spatial axis; `None` if the filter does not fit or the numbers overflow.
///
/// floor((input + pre + post - dilation (filter - 1) - 1) / stride) + 1, as hipDNN's reference computes it.
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
    fn convolution_extents() {
        assert_eq!(conv_output_extent(224, 7, 3, 3, 2, 1), Some(112));
        assert_eq!(conv_output_extent(56, 3, 1, 1, 2, 1), Some(28));
        assert_eq!(conv_output_extent(5, 3, 0, 0, 1, 2), Some(1));
        assert_eq!(conv_output_extent(5, 3, 0, 0, 1, 3), None, "the filter does not fit");
        assert_eq!(conv_output_extent(i64::MAX, 3, 1, 1, 1, 1), None);
    }
}
