//! Normalizations whose scale and bias are a product of the same graph.

use crate::cases::case::Cases;
use rotini_graph::{DataType, GraphBuilder, Layernorm, Matmul, RmsNorm, Scalar};

/// Products of the normalized tensor, which cancel to small sums, as scale and bias of the
/// normalization.
pub(super) fn biases(cases: &mut Cases) {
    use DataType::{F32, F64};
    for (dtype, [rows, inner]) in [(F32, [4, 5]), (F64, [4, 5]), (F32, [6, 9])] {
        for name in ["rmsnorm", "layernorm"] {
            let dims = [1, 1, rows, inner];
            let mut b = GraphBuilder::new("a bias that is a product");
            let [x, y] = ["x", "y"].map(|name| b.buffer(name, dtype, &dims));
            let right = b.buffer("b", dtype, &[1, 1, inner, inner]);
            let bias = b.virtual_tensor("bias", dtype, &dims);
            let epsilon = b.constant("epsilon", F32, &[1; 4], Scalar::float(1e-3));
            let matmul = Matmul {
                a: x,
                b: right,
                c: bias,
            };
            b.node("matmul", dtype, matmul);
            if name == "rmsnorm" {
                let mut norm = RmsNorm::new([x, bias, epsilon], y);
                norm.bias = Some(bias);
                b.node("norm", dtype, norm);
            } else {
                b.node("norm", dtype, Layernorm::new([x, bias, bias, epsilon], y, 3));
            }
            cases.add(format!("{name}_bias_is_a_product_{rows}x{inner}_{dtype}"), b.build());
        }
    }
}
