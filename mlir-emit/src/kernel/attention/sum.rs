//! The second kernel of an attention whose keys are split: it combines the results of the parts.

use super::decode::{Decode, FOUND, LANES};
use crate::counts::ceil_div;
use crate::ir::FloatPredicate;
use crate::kernel::code::{Code, Int};
use crate::kernel::epilogue::RUN;
use crate::kernel::gemm::element;
use crate::mlir::{Float, Type};
use rotini_graph::DataType;

impl Decode {
    /// Writes the body of the kernel that combines the parts, and returns the number of workgroups.
    /// The buffers are the results of the parts, and then the output, the greatest scores and the
    /// sums of exponentials.
    pub(in crate::kernel) fn write_sum<'c>(&self, code: &Code<'c>) -> i64 {
        let context = code.context();
        let float = Type::float(context, Float::F32);
        let (out, strides) = (element(context, self.of.out.0), self.of.out.1);
        let (rows, of_value) = (self.of.rows(), self.of.columns[1]);
        let (lane, workgroup) = (code.lane(), code.workgroup());
        let lanes_of_row = of_value / RUN;
        let rows_at_once = LANES / lanes_of_row;
        let row = workgroup * rows_at_once + lane / lanes_of_row;
        let exists = row.is_below_unless(rows % rows_at_once == 0, rows);
        let first = lane % lanes_of_row * RUN;
        let width = self.columns_of_group();
        let (of_keys, column) = (row / width, row % width);
        let there = of_keys * (self.parts * width) + column;
        let there = exists.select(there, 0);
        let (pair, own) = (float.vector(&[FOUND]), float.vector(&[RUN]));
        // All loads are issued before any value is used.
        let mut loaded = Vec::new();
        for part in 0..self.parts {
            let place = there + part * width;
            let found = code.load(code.buffer(1), place * FOUND, pair);
            let place = place * of_value + first;
            loaded.push((found, code.load(code.buffer(0), place, own)));
        }
        code.schedule_barrier();
        let greatest: Vec<_> = loaded.iter().map(|(found, _)| code.extract(*found, 0, float)).collect();
        let mut most = greatest[0];
        for &other in greatest.iter().skip(1) {
            most = most.maxnumf(other);
        }
        let (mut total, mut sum) = (code.float_text("0.0", float), code.zeros(own));
        for (&greatest, &(found, own_sum)) in greatest.iter().zip(&loaded) {
            let factor = greatest - most;
            let factor = factor.exp2();
            let own_total = code.extract(found, 1, float);
            total = own_total.fma(factor, total);
            let factor = factor.broadcast(own);
            sum = own_sum.fma(factor, sum);
        }
        // If all weights are 0, the output is zero.
        let zero = code.float_text("0.0", float);
        let nothing = code.compare_floats(FloatPredicate::Equal, total, zero);
        let divisor = total.broadcast(own);
        let quotient = sum / divisor;
        let mut quotient = nothing.select(code.zeros(own), quotient);
        if self.of.out.0 != DataType::F32 {
            quotient = quotient.truncf(out.vector(&[RUN]));
        }
        let [batch, head, query] = self.query(of_keys, column);
        let place = Int::sum([batch * strides.batch, head * strides.head, query * strides.row, first]);
        code.store(quotient, code.buffer(2), code.masked(exists, place, code.buffer(2)));
        // The rows of a group are in the order of heads and queries, and so is the memory of the
        // statistics.
        let is_first = first.is_below(1) & exists;
        let place = code.masked(is_first, row, code.buffer(3));
        code.store(most, code.buffer(3), place);
        code.store(total, code.buffer(4), place);
        ceil_div(rows, rows_at_once)
    }
}
