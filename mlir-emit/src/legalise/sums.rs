//! Sums: in dispatches of their own where the compiler fuses them wrongly.

use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::quirks::Quirk;
use crate::value::Ordered;
use rotini_graph::{NormalKind, Op, TensorId};
use std::collections::BTreeSet;

impl<'c> Lowering<'_, 'c> {
    /// Returns the sums of a contraction. [`Quirk::StoredSums`]: nothing is fused with them where
    /// they are stored and so is more than one tensor computed from them, or tensors in several
    /// memory orders. `are_unconverted`: whether the tensor's value is the sums themselves.
    pub(crate) fn sums_apart(&self, id: TensorId, sums: Ordered<'c>, are_unconverted: bool) -> Ordered<'c> {
        let tensor = self.tensor(id);
        let is_stored = tensor.kind == NormalKind::Output && tensor.dtype == sums.dtype;
        let escapes = are_unconverted && (is_stored || self.readers(id).count() > 1);
        let is_spilled = escapes && self.stores_on_the_way(id) || self.is_stored_variously(id);
        let ssa = if is_spilled {
            self.emitter().barrier_against(Quirk::StoredSums, sums.ssa)
        } else {
            sums.ssa
        };
        Ordered { ssa, ..sums }
    }

    /// Returns the result of a reduction. [`Quirk::PackedReductions`]: nothing is fused with it in a
    /// graph with a contraction.
    pub(crate) fn reduced_apart(&self, result: Ssa<'c>) -> Ssa<'c> {
        if self.quirks().avoids(Quirk::PackedReductions) {
            self.apart_from_contractions(result)
        } else {
            result
        }
    }

    /// Returns a tensor whose elements are sums of inner loops. [`Quirk::InnerLoops`]: in a dispatch
    /// of its own if the graph reads it.
    pub(crate) fn inner_sums(&self, id: TensorId, sums: Ssa<'c>) -> Ssa<'c> {
        if self.is_read(id) {
            self.emitter().barrier_against(Quirk::InnerLoops, sums)
        } else {
            sums
        }
    }

    /// Whether the elementwise consumers of a tensor may store more than one tensor, one of them
    /// computed from another.
    fn stores_on_the_way(&self, id: TensorId) -> bool {
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            for reader in self.readers(id) {
                let Op::Pointwise(op) = &reader.op else { return true };
                let is_stored = self.tensor(op.out_0).kind == NormalKind::Output;
                match self.readers(op.out_0).count() {
                    0 => {}
                    1 if !is_stored => next.push(op.out_0),
                    _ => return true,
                }
            }
        }
        false
    }

    /// Whether a tensor and what is computed element by element from it are stored in more than one
    /// order, or more than twice.
    fn is_stored_variously(&self, id: TensorId) -> bool {
        let mut orders = BTreeSet::new();
        let mut stored = 0_usize;
        let mut next = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(id) = next.pop() {
            if !seen.insert(id) {
                continue;
            }
            stored += usize::from(self.tensor(id).kind == NormalKind::Output);
            if let Some(mut order) = self.stored_order(id) {
                order.retain(|&axis| self.tensor(id).dims.get(axis) != Some(&1));
                orders.insert(order);
            }
            for reader in self.readers(id) {
                match &reader.op {
                    Op::Pointwise(op) => next.push(op.out_0),
                    Op::BatchnormInference(op) => next.push(op.y),
                    _ => {}
                }
            }
        }
        orders.len() > 1 || stored > 2
    }
}
