//! What the gradients of one side of an attention are, on whatever device.

use super::{Operand, Problem, Strides, Visible};
use rotini_graph::DataType;

/// The rows that a kernel has gradients of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Queries,
    /// Gradients of keys and of values; the latter have this type and these strides.
    Keys((DataType, Strides)),
}

/// The gradients of one side of an attention.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backward {
    /// The attention. Its output is the gradient of queries or keys.
    pub(crate) of: Problem,
    /// The gradient of the attention's output.
    pub(crate) d_o: Operand,
    /// The ids of two values [batch, head, query]: the statistics, and the sums of dO · O.
    pub(crate) numbers: [usize; 2],
    /// Keys of a head.
    pub(crate) keys: i64,
    pub(crate) side: Side,
}

impl Backward {
    /// What it stores: type, memory, and elements.
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

    /// Returns the rows of a head that it has gradients of, and which rows of the other side belong
    /// to each.
    pub(super) fn own(&self) -> (i64, Visible) {
        let extents = [self.of.queries, self.keys];
        match self.side {
            Side::Queries => (self.of.queries, self.of.visible),
            Side::Keys(_) => (self.keys, self.of.visible.transposed(extents)),
        }
    }

    /// The numbers of two values with how many own and streamed rows each batch has.
    pub(in crate::kernel) fn lengths(&self) -> Option<[usize; 2]> {
        self.own().1.lengths
    }

    /// What it is, for people who read a kernel's name.
    pub(super) fn name(&self) -> String {
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
