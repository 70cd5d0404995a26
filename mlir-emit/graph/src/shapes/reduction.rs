//! Shapes of reductions, which reduce the dimensions whose output extent is 1. If the input's
//! extent is 1 too, the mode is applied to that single element.

use crate::op::Reduction;
use crate::{Graph, GraphError};

impl Graph {
    /// Checks that ranks are equal and that each output extent is the input's or 1.
    pub(crate) fn check_reduction(&self, position: usize, op: &Reduction) -> Result<(), GraphError> {
        let [input, output] = [op.input, op.output].map(|id| self.at(id));
        if input.dims.len() != output.dims.len() {
            let what = format!(
                "ranks of input and output are {} and {}, but must be equal",
                input.dims.len(),
                output.dims.len()
            );
            return Err(self.attribute(position, what));
        }
        for (axis, (from, to)) in input.dims.iter().zip(&output.dims).enumerate() {
            if from != to && *to != 1 {
                let what = format!(
                    "{output} has extent {to} along axis {axis}, but {input} has {from}: only that and 1 are possible"
                );
                return Err(self.attribute(position, what));
            }
        }
        Ok(())
    }
}
