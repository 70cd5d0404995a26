//! Declined graphs with narrow types and with block scales.

use super::{Declined, F32, FLOAT_IN_I32, I8, I32, pointwise};
use rotini_graph::{
    BlockScaleDequantize, BlockScaleQuantize, DataType, Graph, GraphBuilder, PointwiseMode, TensorKind,
};

const E4M3: DataType = DataType::F8E4M3;
const E8M0: DataType = DataType::F8E8M0;

/// Builds a dequantization; `types` are those of x, scale, y and the computation.
fn dequantize(types: [DataType; 4]) -> Graph {
    let mut b = GraphBuilder::new("dequantize");
    let op = BlockScaleDequantize {
        x: b.buffer("x", types[0], &[4, 8]),
        scale: b.buffer("scale", types[1], &[4, 2]),
        y: b.buffer("y", types[2], &[4, 8]),
        block_size: vec![4],
        is_negative_scale: false,
    };
    b.node("dequantize", types[3], op);
    b.build()
}

/// Builds a quantization; `types` are those of x, y, scale and the computation.
fn quantize(types: [DataType; 4], transpose: bool) -> Graph {
    let mut b = GraphBuilder::new("quantize");
    let op = BlockScaleQuantize {
        x: b.buffer("x", types[0], &[4, 8]),
        y: b.buffer("y", types[1], &[4, 8]),
        scale: b.buffer("scale", types[2], &[4, 2]),
        block_size: 4,
        axis: None,
        transpose,
    };
    b.node("quantize", types[3], op);
    b.build()
}

impl Declined {
    pub(super) fn low_precision(&mut self) {
        for (name, narrow) in [
            ("f4e2m1", DataType::F4E2M1),
            ("f6e2m3", DataType::F6E2M3),
            ("f6e3m2", DataType::F6E3M2),
            ("i4", DataType::I4),
        ] {
            for (what, strides) in [("gaps", [10, 1]), ("steps", [16, 2]), ("repeated", [0, 1])] {
                let mut b = GraphBuilder::new("shared bytes");
                let x = b.tensor("x", narrow, &[4, 8], &strides, TensorKind::Buffer);
                let y = b.buffer("y", F32, &[4, 8]);
                b.pointwise(F32, PointwiseMode::Identity, &[x], y);
                self.add(
                    format!("{name}_{what}"),
                    b.build(),
                    format!(
                        "tensor 'x' (uid 1): elements of {name}, which share bytes, with gaps between them or repeated"
                    ),
                );
            }
            let mut b = GraphBuilder::new("shared bytes");
            let x = b.buffer("x", F32, &[4, 8]);
            let y = b.tensor("y", narrow, &[4, 8], &[1, 6], TensorKind::Buffer);
            b.pointwise(F32, PointwiseMode::Identity, &[x], y);
            self.add(
                format!("{name}_gaps_written"),
                b.build(),
                format!(
                    "tensor 'y' (uid 2): elements of {name}, which share bytes, with gaps between them or repeated"
                ),
            );
        }
        for compute in [E4M3, E8M0, DataType::F4E2M1, DataType::I4] {
            self.add(
                format!("compute_{compute}"),
                pointwise::packed(PointwiseMode::Add, &[F32], F32, compute, &[4]),
                format!("node 'ADD' (pointwise): it cannot be computed in {compute}"),
            );
        }
        self.add(
            "f8e4m3_in_i32",
            pointwise::packed(PointwiseMode::Add, &[E4M3], I32, I32, &[4]),
            format!("node 'ADD' (pointwise), tensor 'in_0' (uid 1): {FLOAT_IN_I32}"),
        );
    }

    pub(super) fn block_scale(&mut self) {
        let node = "node 'dequantize' (block-scale dequantize)";
        self.add(
            "dequantize_in_i32",
            dequantize([I8, I32, I32, I32]),
            format!("{node}: scales have no meaning in i32"),
        );
        self.add(
            "dequantize_f8e4m3_in_i32",
            dequantize([E4M3, I32, I32, I32]),
            format!("{node}, tensor 'x' (uid 1): {FLOAT_IN_I32}"),
        );
        self.add(
            "dequantize_by_f8e8m0_in_i32",
            dequantize([I8, E8M0, I32, I32]),
            format!("{node}, tensor 'scale' (uid 2): {FLOAT_IN_I32}"),
        );
        let node = "node 'quantize' (block-scale quantize)";
        self.add(
            "quantize_in_i32",
            quantize([I8, I8, E8M0, I32], false),
            format!("{node}: scales have no meaning in i32"),
        );
        self.add(
            "quantize_f32_in_i32",
            quantize([F32, I8, E8M0, I32], false),
            format!("{node}, tensor 'x' (uid 1): {FLOAT_IN_I32}"),
        );
        self.add(
            "quantize_transposed",
            quantize([F32, E4M3, E8M0, F32], true),
            format!("{node}: a transposed output is defined nowhere"),
        );
        for scale in [DataType::F64, E4M3, DataType::F8E5M2, DataType::F4E2M1, I8, I32] {
            self.add(
                format!("quantize_by_{scale}"),
                quantize([F32, E4M3, scale, F32], false),
                format!("{node}, tensor 'scale' (uid 3): scales of {scale}"),
            );
        }
        for y in [F32, DataType::Bf16, DataType::F64, E8M0, DataType::I4, DataType::I64] {
            self.add(
                format!("quantize_to_{y}"),
                quantize([F32, y, E8M0, F32], false),
                format!("{node}, tensor 'y' (uid 2): blocks that are scaled to {y}"),
            );
        }
    }
}
