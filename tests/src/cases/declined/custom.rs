//! Declined custom operations: unknown ids, and bodies with forbidden contents.

use super::{Declined, F32};
use crate::cases::custom::graphs::{gelu, node, tensor};
use rotini_graph::{DataType, Graph, GraphBuilder, Op, PointwiseMode};

/// Returns a function of one tensor of [4, 6]: `statements` compute %y; `inner`, in the body of a
/// structured operation, computes %r from the element %x.
fn body(statements: &str, inner: &str) -> String {
    let ty = tensor(F32, &[4, 6]);
    let map = "affine_map<(d0, d1) -> (d0, d1)>";
    format!(
        "func.func @f(%a: {ty}) -> {ty} {{\n{statements}\n  %e = tensor.empty() : {ty}\n  \
         %y = linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%a : {ty}) outs(%e : {ty}) {{\n  ^bb0(%x: f32, %o: f32):\n{inner}\n    linalg.yield %r : f32\n  }} -> {ty}\n  \
         return %y : {ty}\n}}\n"
    )
}

fn graph(dtype: DataType, body: impl Into<Vec<u8>>) -> Graph {
    let mut b = GraphBuilder::new("custom");
    let x = b.buffer("x", dtype, &[4, 6]);
    let y = b.buffer("y", dtype, &[4, 6]);
    node(&mut b, &[x], &[y], body);
    b.build()
}

impl Declined {
    pub(super) fn custom(&mut self) {
        let mut foreign = graph(F32, gelu(F32, &[4, 6]));
        if let Op::CustomOp(op) = &mut foreign.nodes[0].op {
            op.custom_op_id = "other.gelu".to_owned();
        }
        self.add(
            "custom_of_others",
            foreign.clone(),
            "node 'custom' (custom op): the custom operation 'other.gelu' is not rotini's, which is 'rotini.mlir'",
        );
        let mut idle = GraphBuilder::new("custom");
        let x = idle.buffer("x", F32, &[4, 6]);
        let y = idle.buffer("y", F32, &[4, 6]);
        node(&mut idle, &[x], &[], "func.func @f(%a: tensor<4x6xf32>) { return }");
        idle.pointwise(F32, PointwiseMode::Neg, &[x], y);
        if let Op::CustomOp(op) = &mut foreign.nodes[0].op {
            op.custom_op_id = "fusilli.rope".to_owned();
        }
        self.add(
            "custom_rope_of_others",
            foreign,
            "node 'custom' (custom op): another body than the one that is known of 'fusilli.rope'",
        );
        self.add(
            "custom_without_outputs",
            idle.build(),
            "node 'custom' (custom op): a custom operation without outputs",
        );
        let right = "    %r = arith.negf %x : f32";
        let ty = tensor(F32, &[4, 6]);
        let bodies: [(&str, Vec<u8>, &str); 20] = [
            ("empty", Vec::new(), "line 1, column 1: expected func.func"),
            ("no_text", vec![0xff, 0xfe], "its body is not text"),
            ("long", vec![b' '; 70_000], "its body has 70000 bytes, more than 65536"),
            ("syntax", body("  nonsense", right).into(), "line 2, column 3: expected a value, or what ends the block"),
            ("types", gelu(F32, &[6, 4]).into(), "line 2, column 11: its function takes (tensor<6x4xf32>), and the operation (tensor<4x6xf32>)"),
            ("call", "func.func @f() { call @g() : () -> () return }".into(), "line 1, column 18: expected a value, or what ends the block"),
            ("generic_form", "\"func.func\"() ({}) : () -> ()".into(), "line 1, column 1: expected func.func"),
            ("dynamic", "func.func @f(%a: tensor<?xf32>)".into(), "line 1, column 25: expected an extent, or the type of an element"),
            (
                "two_functions",
                format!("func.func @f(%a: {ty}) -> {ty} {{ return %a : {ty} }} func.func private @g()").into(),
                "line 1, column 86: expected the end: one function is all there may be",
            ),
            (
                "handed_on",
                format!("func.func @f(%a: {ty}) -> {ty} {{ return %a : {ty} }}").into(),
                "line 1, column 63, return: a result that is not computed from the inputs",
            ),
            (
                "constant",
                body("", "    %r = arith.constant 1.0 : f32").into(),
                "line 9, column 10, return: a result that is not computed from the inputs",
            ),
            (
                "division",
                body("", "    %i = arith.fptosi %x : f32 to i32\n    %q = arith.divsi %i, %i : i32\n    %r = arith.sitofp %q : i32 to f32").into(),
                "line 7, column 10, arith.divsi: an operation that is not allowed there",
            ),
            (
                "gather",
                body("", "    %i = linalg.index 0 : index\n    %r = tensor.extract %a[%i, %i] : tensor<4x6xf32>").into(),
                "line 7, column 10: expected an operation that is allowed there",
            ),
            (
                "half",
                body("", "    %h = arith.truncf %x : f32 to f16\n    %s = arith.addf %h, %h : f16\n    %r = arith.extf %s : f16 to f32").into(),
                "line 7, column 30, arith.addf: arithmetic of f16 or bf16, which are converted to f32 first",
            ),
            (
                "attribute",
                body("", "    %r = arith.negf %x {mine} : f32").into(),
                "line 6, column 24: expected ':' or a flag",
            ),
            ("power", body("", "    %r = math.powf %x, %x : f32").into(), "line 6, column 10, math.powf: an operation that is not allowed there"),
            // These three crashed MLIR's parser, or made it print the contents of memory.
            (
                "loop_of_a_number",
                body("", right).replace("\"parallel\", \"parallel\"", "1").into(),
                "line 4, column 128: expected \"parallel\" or \"reduction\"",
            ),
            (
                "negative_axis",
                body("  %c = tensor.concat dim(-1) %a : (tensor<4x6xf32>) -> tensor<4x6xf32>", right).into(),
                "line 2, column 56, tensor.concat: tensors that do not fit along that axis",
            ),
            (
                "number_for_a_string",
                body("", right).replace("iterator_types", "doc = 94906265624, iterator_types").into(),
                "line 4, column 116: expected [",
            ),
            ("memory", body("  %m = memref.alloc() : memref<4xf32>", right).into(), "line 2, column 8: expected an operation that is allowed there"),
        ];
        for (name, body, reason) in bodies {
            self.add(
                format!("custom_{name}"),
                graph(F32, body),
                format!("node 'custom' (custom op): {reason}"),
            );
        }
    }
}
