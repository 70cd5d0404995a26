//! Graphs of operations that occur in no suite, command line or sample of hipDNN.

use rotini_graph::{
    BatchnormInferenceVariance, BlockScaleDequantize, BlockScaleQuantize, CustomOp, DataType, Graph, GraphBuilder,
    LayernormBackward, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, Op, Pointwise, PointwiseMode, RmsNormBackward,
    Scalar, SdpaBackward, TensorId,
};

const F32: DataType = DataType::F32;

fn single(name: &str, make: impl FnOnce(&mut GraphBuilder) -> Op) -> Graph {
    let mut b = GraphBuilder::new(name);
    let op = make(&mut b);
    b.node("only", F32, op);
    b.build()
}

/// Returns one graph for each of these operations.
pub(super) fn others() -> Vec<Graph> {
    let f32 = |b: &mut GraphBuilder, name: &str, dims: &[i64]| b.buffer(name, F32, dims);
    let dequantize = single("dequantize", |b| {
        Op::from(BlockScaleDequantize {
            x: b.buffer("x", DataType::F8E4M3, &[4, 64]),
            scale: f32(b, "scale", &[4, 2]),
            y: f32(b, "y", &[4, 64]),
            block_size: vec![32],
            is_negative_scale: false,
        })
    });
    let quantize = single("quantize", |b| {
        Op::from(BlockScaleQuantize {
            x: f32(b, "x", &[4, 64]),
            y: b.buffer("y", DataType::F8E4M3, &[4, 64]),
            scale: b.buffer("scale", DataType::F8E8M0, &[4, 2]),
            block_size: 32,
            axis: Some(1),
            transpose: false,
        })
    });
    let attention = single("attention", |b| {
        let dims = [1, 2, 8, 16];
        let ids: Vec<TensorId> = ["q", "k", "v", "o", "do", "dq", "dk", "dv"]
            .iter()
            .map(|name| f32(b, name, &dims))
            .collect();
        let stats = f32(b, "stats", &[1, 2, 8, 1]);
        let op = SdpaBackward::new(
            [ids[0], ids[1], ids[2], ids[3], ids[4], stats],
            [ids[5], ids[6], ids[7]],
        );
        Op::from(Box::new(SdpaBackward {
            attn_scale_value: Some(0.25),
            right_bound: Some(0),
            ..op
        }))
    });
    let custom = single("custom", |b| {
        Op::from(CustomOp {
            inputs: vec![f32(b, "x", &[2]), f32(b, "z", &[2])],
            outputs: vec![f32(b, "y", &[2])],
            custom_op_id: "Cross.Correlation".to_owned(),
            data: vec![0, 255, 7],
        })
    });
    let experts = single("experts", |b| {
        Op::from(MoeGroupedMatmul {
            token: f32(b, "token", &[1, 6, 8]),
            weight: f32(b, "weight", &[3, 8, 4]),
            first_token_offset: b.buffer("offset", DataType::I32, &[3, 1, 1]),
            token_index: None,
            token_ks: None,
            output: f32(b, "output", &[1, 6, 4]),
            mode: MoeMode::None,
            top_k: 0,
        })
    });
    let experts_gradient = single("experts_gradient", |b| {
        Op::from(MoeGroupedMatmulBwd {
            doutput: f32(b, "doutput", &[1, 6, 4]),
            token: f32(b, "token", &[1, 6, 8]),
            first_token_offset: b.buffer("offset", DataType::I32, &[3, 1, 1]),
            dweight: f32(b, "dweight", &[3, 8, 4]),
        })
    });
    let variance = single("variance", |b| {
        let x = f32(b, "x", &[2, 3, 4, 4]);
        let [mean, variance, scale, bias] =
            ["mean", "variance", "scale", "bias"].map(|name| f32(b, name, &[1, 3, 1, 1]));
        Op::from(BatchnormInferenceVariance {
            x,
            mean,
            variance,
            scale,
            bias,
            y: f32(b, "y", &[2, 3, 4, 4]),
            epsilon: b.constant("epsilon", F32, &[1, 1, 1, 1], Scalar::float(1e-5)),
        })
    });
    let rms_gradient = single("rms_gradient", |b| {
        let [dy, x, dx] = ["dy", "x", "dx"].map(|name| f32(b, name, &[5, 8]));
        let [scale, dscale] = ["scale", "dscale"].map(|name| f32(b, name, &[1, 8]));
        Op::from(RmsNormBackward {
            dy,
            x,
            scale,
            inv_rms: f32(b, "inv_rms", &[5, 1]),
            dx,
            dscale,
            dbias: None,
        })
    });
    let layer_gradient = single("layer_gradient", |b| {
        let [dy, x, dx] = ["dy", "x", "dx"].map(|name| f32(b, name, &[5, 8]));
        let [scale, dscale, dbias] = ["scale", "dscale", "dbias"].map(|name| f32(b, name, &[1, 8]));
        let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| Some(f32(b, name, &[5, 1])));
        Op::from(LayernormBackward {
            dy,
            x,
            scale,
            mean,
            inv_variance,
            epsilon: None,
            dx,
            dscale,
            dbias,
            normalized_dim_count: 1,
        })
    });
    let truths = single("truths", |b| {
        let x = b.buffer("x", DataType::F8E4M3Fnuz, &[2, 3]);
        let yes = b.constant("yes", DataType::Bool, &[1, 1], Scalar::Integer(1));
        Op::from(Pointwise::new(
            PointwiseMode::CmpGt,
            x,
            Some(yes),
            None,
            b.buffer("y", DataType::Bool, &[2, 3]),
        ))
    });
    let blocks = [dequantize, quantize, custom, experts, experts_gradient];
    blocks
        .into_iter()
        .chain([truths, attention, variance, rms_gradient, layer_gradient])
        .collect()
}
