//! The description of the gradients of one side of an attention, on any device.

use super::{Operand, Problem, Strides, Visible};
use rotini_graph::DataType;

/// The side whose gradients a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Queries,
    /// Gradients of keys and of values. The gradients of values have this type and these strides.
    Keys((DataType, Strides)),
}

/// The gradients of one side of an attention.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backward {
    /// The attention. Its `out` is the gradient of the queries or of the keys.
    pub(crate) of: Problem,
    /// The gradient of the attention's output.
    pub(crate) d_o: Operand,
    /// The ids of two values [batch, head, query]: the softmax statistics, and the sums of dO · O.
    pub(crate) numbers: [usize; 2],
    /// Keys per head.
    pub(crate) keys: i64,
    pub(crate) side: Side,
}

impl Backward {
    /// Returns the type, the strides and the number of elements of each gradient that is stored.
    pub(in crate::kernel) fn stored(&self) -> Vec<(DataType, Strides, i64)> {
        let of = &self.of;
        let [of_key, of_value] = of.columns;
        let (dtype, strides) = of.out;
        let keys = of.batch * of.heads * self.keys;
        match self.side {
            Side::Queries => vec![(dtype, strides, of.rows() * of_key)],
            Side::Keys((of_values, values)) => {
                vec![(dtype, strides, keys * of_key), (of_values, values, keys * of_value)]
            }
        }
    }

    /// Returns the number of own rows per head, and the rows of the other side that are visible to
    /// each.
    pub(super) fn own(&self) -> (i64, Visible) {
        let extents = [self.of.queries, self.keys];
        match self.side {
            Side::Queries => (self.of.queries, self.of.visible),
            Side::Keys(_) => (self.keys, self.of.visible.transposed(extents)),
        }
    }

    /// Returns the ids of two values with the numbers of own and streamed rows of each batch.
    pub(in crate::kernel) fn lengths(&self) -> Option<[usize; 2]> {
        self.own().1.lengths
    }

    /// Returns a name for the kernel, for people.
    pub(in crate::kernel) fn name(&self) -> String {
        let of = &self.of;
        let [of_key, of_value] = of.columns;
        let side = match self.side {
            Side::Queries => "queries",
            Side::Keys(_) => "keys",
        };
        format!(
            "gradients_of_{side}_{}x{}x{}x{}x{of_key}x{of_value}_{}",
            of.batch * of.heads,
            of.group,
            of.queries,
            of.visible.count(),
            of.dtype,
        )
    }
}
