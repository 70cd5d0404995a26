//! Reductions.

use super::{Result, Translation};
use rotini_graph::{Reduction, ReductionMode};

impl Translation<'_> {
    /// Reduces every axis whose extent is 1 in the result. An input axis of extent 1 is included:
    /// it has nothing to combine, but modes such as absolute value or square root still apply.
    pub(super) fn reduction(&mut self, op: &Reduction) -> Result<()> {
        let axes: Vec<i64> = (0_i64..)
            .zip(self.dims(op.output)?)
            .filter(|&(_, &extent)| extent == 1)
            .map(|(axis, _)| axis)
            .collect();
        let kind = match op.mode {
            ReductionMode::Add => "ReduceSum",
            ReductionMode::Mul => "ReduceProd",
            ReductionMode::Min => "ReduceMin",
            ReductionMode::Max | ReductionMode::Amax => "ReduceMax",
            ReductionMode::Avg => "ReduceMean",
            ReductionMode::Norm1 => "ReduceL1",
            ReductionMode::Norm2 => "ReduceL2",
            ReductionMode::MulNoZeros => return Err("a product without zeros is not translated".to_owned()),
        };
        if axes.is_empty() {
            return Err("no axis is reduced".to_owned());
        }
        let mut x = self.dense(op.input)?;
        if op.mode == ReductionMode::Amax {
            x = self.then("Abs", &[&x]);
        }
        let axes = self.integers(&axes);
        let output = self.define(op.output)?;
        self.step(kind, &[&x, &axes], &output, []);
        Ok(())
    }
}
