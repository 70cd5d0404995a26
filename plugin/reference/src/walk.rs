//! Element order: logical row-major, whatever the strides.

use crate::ReferenceError;
use rotini_graph::Tensor;

/// The offsets of a strided array in logical row-major order, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    /// (extent, stride, index) from the slowest to the fastest axis.
    axes: Vec<(usize, usize, usize)>,
    offset: usize,
    left: usize,
}

impl Offsets {
    /// Returns the offsets of an array with these extents and strides. Both lists must have the
    /// same length.
    pub(crate) fn new(dims: &[usize], strides: &[usize]) -> Self {
        Offsets {
            axes: dims
                .iter()
                .zip(strides)
                .map(|(&dim, &stride)| (dim, stride, 0))
                .collect(),
            offset: 0,
            left: dims.iter().product(),
        }
    }

    /// Returns the offsets of a tensor's elements in its buffer.
    pub(crate) fn of(tensor: &Tensor) -> Result<Self, ReferenceError> {
        Ok(Offsets::new(&extents(&tensor.dims)?, &extents(&tensor.strides)?))
    }
}

impl Iterator for Offsets {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let current = self.offset;
        for (dim, stride, index) in self.axes.iter_mut().rev() {
            *index += 1;
            if index < dim {
                self.offset += *stride;
                break;
            }
            self.offset -= (*dim - 1) * *stride;
            *index = 0;
        }
        Some(current)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Offsets {}

/// Converts extents or strides to `usize` for addressing.
pub(crate) fn extents(list: &[i64]) -> Result<Vec<usize>, ReferenceError> {
    list.iter()
        .map(|&value| {
            usize::try_from(value).map_err(|_| ReferenceError::not_validated(format!("extent or stride {value}")))
        })
        .collect()
}

/// Returns the strides with which the packed row-major array `from` is read as an array of extents
/// `to`: axes are aligned at the right, and repeated axes have stride 0.
pub(crate) fn broadcast_strides(from: &[usize], to: &[usize]) -> Result<Vec<usize>, ReferenceError> {
    let missing = to
        .len()
        .checked_sub(from.len())
        .ok_or_else(|| ReferenceError::not_validated("an operand has a higher rank than its result"))?;
    let mut strides = vec![0; to.len()];
    let mut next = 1;
    for ((stride, &dim), &target) in strides
        .iter_mut()
        .skip(missing)
        .zip(from)
        .zip(to.iter().skip(missing))
        .rev()
    {
        if dim != 1 && dim != target {
            return Err(ReferenceError::not_validated(format!(
                "{from:?} does not broadcast to {to:?}"
            )));
        }
        *stride = if dim == 1 { 0 } else { next };
        next *= dim;
    }
    Ok(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_follow_the_logical_order() {
        let transposed: Vec<usize> = Offsets::new(&[2, 3], &[1, 2]).collect();
        assert_eq!(transposed, [0, 2, 4, 1, 3, 5]);
        let gaps: Vec<usize> = Offsets::new(&[2, 2], &[5, 2]).collect();
        assert_eq!(gaps, [0, 2, 5, 7]);
        let repeated: Vec<usize> = Offsets::new(&[2, 2], &[0, 1]).collect();
        assert_eq!(repeated, [0, 1, 0, 1]);
    }

    #[test]
    fn broadcasting_aligns_to_the_right() {
        assert_eq!(broadcast_strides(&[3, 1], &[2, 3, 4]), Ok(vec![0, 1, 0]));
        assert_eq!(broadcast_strides(&[2, 3], &[2, 3]), Ok(vec![3, 1]));
        assert!(broadcast_strides(&[2], &[3]).is_err());
        assert!(broadcast_strides(&[1, 1], &[3]).is_err());
    }
}
