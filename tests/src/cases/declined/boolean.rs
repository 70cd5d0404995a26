//! Declined graphs with truth values, where their meaning is undefined.

use super::{Declined, F32, pointwise};
use crate::cases::attention::Attention;
use rotini_graph::{DataType, GraphBuilder, Matmul, Op, PointwiseMode, Scalar};

const BOOL: DataType = DataType::Bool;

/// The reason for truth values in operands and results that do not support them.
const ELSEWHERE: &str = "truth values (bool) other than in pointwise operations, in reductions and as attn_mask";

impl Declined {
    pub(super) fn truths(&mut self) {
        self.add(
            "and_in_bool",
            pointwise::packed(PointwiseMode::LogicalAnd, &[BOOL], BOOL, BOOL, &[4]),
            "node 'LOGICAL_AND' (pointwise): it cannot be computed in bool",
        );
        self.add(
            "index_as_bool",
            pointwise::packed(PointwiseMode::GenIndex, &[F32], BOOL, F32, &[4, 5]),
            "node 'GEN_INDEX' (pointwise), tensor 'y' (uid 2): an index that is stored as a truth value",
        );
        let product = |types: [DataType; 3]| {
            let mut b = GraphBuilder::new("product");
            let [a, x, c] = [("a", 0), ("b", 1), ("c", 2)].map(|(name, at)| b.buffer(name, types[at], &[4, 4]));
            b.node("matmul", F32, Matmul { a, b: x, c });
            b.build()
        };
        for (name, types, tensor) in [
            ("a", [BOOL, F32, F32], "'a' (uid 1)"),
            ("b", [F32, BOOL, F32], "'b' (uid 2)"),
            ("c", [F32, F32, BOOL], "'c' (uid 3)"),
        ] {
            let reason = format!("node 'matmul' (matmul), tensor {tensor}: {ELSEWHERE}");
            self.add(format!("matmul_bool_{name}"), product(types), reason);
        }
        let mut as_queries = Attention::new(1, 2, [9, 13], 8, F32).forward(false);
        as_queries.tensors[0].dtype = BOOL;
        let reason = format!("node 'sdpa' (SDPA), tensor 'q' (uid 1): {ELSEWHERE}");
        self.add("sdpa_bool_q", as_queries, reason);
        let masked =
            Attention::new(1, 2, [9, 13], 8, F32).with(|op| (op.mask, op.truths) = (Some(vec![1, 2, 9, 13]), true));
        let mut gradient = masked.backward();
        let mut b = GraphBuilder::new("dbias");
        b.buffer("dbias", F32, &[1, 2, 9, 13]);
        let mut dbias = b.build().tensors.remove(0);
        dbias.uid = 100;
        let id = rotini_graph::TensorId(u32::try_from(gradient.tensors.len()).unwrap_or(u32::MAX));
        gradient.tensors.push(dbias);
        for node in &mut gradient.nodes {
            if let Op::SdpaBackward(op) = &mut node.op {
                op.dbias = Some(id);
            }
        }
        self.add(
            "sdpa_backward_bool_dbias",
            gradient,
            "node 'sdpa' (SDPA backward): a mask of truth values has no gradient (dbias)",
        );
        // A constant as an attention's operand is declined for being a constant; a mask may be one.
        let mut b = GraphBuilder::new("constant only");
        let truth = b.constant("truth", BOOL, &[1, 1], Scalar::Integer(1));
        let y = b.buffer("y", BOOL, &[3, 8]);
        b.pointwise(F32, PointwiseMode::LogicalNot, &[truth], y);
        self.add("bool_constant_only", b.build(), "'y'");
    }
}
