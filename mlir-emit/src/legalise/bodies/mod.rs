//! Bodies of custom operations: whatever the compiler would get wrong is rewritten, in the body's
//! typed tree or while its operations are built, or else declined.

mod declined;
mod extremes;
mod factors;
mod rewriting;
mod scalars;
mod varying;

pub(crate) use declined::declined;
pub(crate) use rewriting::avoiding;

use crate::ir::Emitter;
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::quirks::Quirk;
use rotini_graph::DataType;

impl<'c> Lowering<'_, 'c> {
    /// Returns an operand of a body. [`Quirk::MixedProducts`]: behind a barrier if the body `sums`,
    /// since the compiler would take products in the same loops and their sum for a contraction.
    pub(crate) fn read_by_body(&self, operand: Ssa<'c>, sums: bool) -> Ssa<'c> {
        if sums && self.quirks().avoids(Quirk::MixedProducts) {
            self.emitter().barrier(operand)
        } else {
            self.apart_from_contractions(operand)
        }
    }
}

impl<'c> Emitter<'c> {
    /// Returns a tensor of a body, rounded to its type. [`Quirk::WideBf16`]: bf16 is put behind a
    /// barrier.
    pub(crate) fn rounded(&self, tensor: Ssa<'c>, dtype: DataType) -> Ssa<'c> {
        match dtype {
            DataType::Bf16 => self.barrier_against(Quirk::WideBf16, tensor),
            _ => tensor,
        }
    }
}
