//! Sums: put into separate dispatches where the compiler fuses them wrongly.

use crate::ir::only;
use crate::lowering::Lowering;
use crate::math::Math;
use crate::mlir::Value as Ssa;
use crate::quirks::Quirk;
use crate::step::Shape;
use crate::value::{Ordered, Value};
use rotini_graph::{DataType, NormalKind, Op, Pointwise, PointwiseMode, TensorId};
use std::collections::BTreeSet;

impl<'c> Lowering<'_, 'c> {
    /// Returns the elements that a floating-point operation reads. [`Quirk::FoldedSums`]: terms of
    /// an addition that are sums over loops are made [complete](crate::ir::Emitter::complete).
    pub(crate) fn terms(&self, op: &Pointwise, elements: &[Ssa<'c>]) -> Vec<Ssa<'c>> {
        let adds = matches!(op.mode, PointwiseMode::Add | PointwiseMode::AddSquare);
        let mut terms = elements.to_vec();
        for (term, id) in terms.iter_mut().zip([Some(op.in_0), op.in_1]) {
            if adds && id.is_some_and(|id| self.is_sum(id)) {
                *term = self.emitter().complete(*term);
            }
        }
        terms
    }

    /// Returns a tensor of the graph as a term of an addition in floats. [`Quirk::FoldedSums`]:
    /// sums over loops are made [complete](crate::ir::Emitter::complete).
    pub(crate) fn term(&self, id: TensorId, value: Value<'c>, compute: DataType) -> Value<'c> {
        if !self.is_sum(id) || !self.quirks().avoids(Quirk::FoldedSums) {
            return value;
        }
        let shape = Shape::new(&value.dims, value.order(), compute);
        let complete = |math: &Math<'c>, elements: &[Ssa<'c>]| math.at.complete(only(elements));
        Value::of(self.map(&[&value], &shape, compute, complete))
    }

    /// Returns true if a tensor's elements are sums over loops, or copies of such sums.
    fn is_sum(&self, mut id: TensorId) -> bool {
        let writes = |op: &Op, id: TensorId| {
            let mut found = false;
            op.for_each_output(&mut |_, output| found |= output == id);
            found
        };
        loop {
            let writer = self.graph().nodes().iter().find(|node| writes(&node.op, id));
            match writer.map(|node| &node.op) {
                Some(Op::Pointwise(op)) if op.mode == PointwiseMode::Identity => id = op.in_0,
                writer => return writer.is_some_and(Op::is_sum),
            }
        }
    }

    /// Returns the sums of a contraction. [`Quirk::StoredSums`]: behind a barrier, so that nothing
    /// is fused with them, if they are stored as well as more than one tensor computed from them,
    /// or if tensors are stored in several memory orders. `are_unconverted`: whether the tensor's
    /// value is the sums themselves.
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

    /// Returns the result of a reduction. [`Quirk::PackedReductions`]: nothing is fused with it in
    /// a graph with a contraction.
    pub(crate) fn reduced_apart(&self, result: Ssa<'c>) -> Ssa<'c> {
        if self.quirks().avoids(Quirk::PackedReductions) {
            self.apart_from_contractions(result)
        } else {
            result
        }
    }

    /// Returns a tensor whose elements are sums of inner loops. [`Quirk::InnerLoops`]: in a
    /// separate dispatch if the graph reads it.
    pub(crate) fn inner_sums(&self, id: TensorId, sums: Ssa<'c>) -> Ssa<'c> {
        if self.is_read(id) {
            self.emitter().barrier_against(Quirk::InnerLoops, sums)
        } else {
            sums
        }
    }

    /// Returns true if the elementwise consumers of a tensor may store more than one tensor, one of
    /// them computed from another.
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

    /// Returns true if a tensor and the tensors computed elementwise from it are stored in more
    /// than one memory order, or if more than two of them are stored.
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
