//! Matmuls grouped by expert.

use super::case::{Cases, Data, FLOATS};
use super::reduction::reduce;
use anyhow::Result;
use rotini_graph::{
    DataType, Graph, GraphBuilder, LayernormBackward, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, PointwiseMode,
    ReductionMode, Scalar, TensorKind,
};

/// A grouped matmul.
#[derive(Clone, Debug)]
struct Moe {
    /// Types of tokens, weights, output and computation.
    types: [DataType; 4],
    tokens: i64,
    /// Number of experts, K, N.
    experts: [i64; 3],
    /// Number of groups per expert.
    groups: i64,
    mode: MoeMode,
    /// Axes of the weights and of the output, from the slowest to the fastest.
    orders: [[usize; 3]; 2],
}

impl Moe {
    fn new(dtype: DataType, tokens: i64, experts: [i64; 3], mode: MoeMode) -> Self {
        Moe {
            types: [dtype, dtype, dtype, DataType::F32],
            tokens,
            experts,
            groups: 1,
            mode,
            orders: [[0, 1, 2]; 2],
        }
    }

    /// Makes the weights column-major, as cuDNN requires.
    fn columns(mut self) -> Self {
        self.orders[0] = [0, 2, 1];
        self
    }

    /// Returns the number of routed rows; gathering takes some tokens more than once.
    fn rows(&self) -> i64 {
        self.tokens + if self.mode == MoeMode::Gather { 3 } else { 0 }
    }

    /// Builds the operation; if fused, with a pointwise operation on the tokens, and a bias and an
    /// activation after it.
    fn graph(&self, is_fused: bool) -> Graph {
        let [count, inner, columns] = self.experts;
        let [token_type, weight_type, output_type, compute] = self.types;
        let mut b = GraphBuilder::new("moe");
        let rows = self.rows();
        let token = b.buffer("token", token_type, &[1, self.tokens, inner]);
        let weight = ordered(&mut b, "weight", weight_type, &self.experts, self.orders[0]);
        let first_token_offset = b.buffer("offset", DataType::I32, &[self.groups * count, 1, 1]);
        let routing = [1, rows, 1];
        let token_index = (self.mode != MoeMode::None).then(|| b.buffer("index", DataType::I32, &routing));
        let token_ks = (self.mode == MoeMode::Scatter).then(|| b.buffer("ks", DataType::I32, &routing));
        let output = ordered(&mut b, "output", output_type, &[1, rows, columns], self.orders[1]);
        let mut op = MoeGroupedMatmul {
            token,
            weight,
            first_token_offset,
            token_index,
            token_ks,
            output,
            mode: self.mode,
            top_k: if self.mode == MoeMode::Scatter { 2 } else { 0 },
        };
        if !is_fused {
            b.node("moe", compute, op);
            return b.build();
        }
        let bias = b.buffer("bias", output_type, &[1, 1, columns]);
        op.token = b.virtual_tensor("activated", compute, &[1, self.tokens, inner]);
        let [product, biased] = ["product", "biased"].map(|name| b.virtual_tensor(name, compute, &[1, rows, columns]));
        op.output = product;
        b.pointwise(compute, PointwiseMode::ReluFwd, &[token], op.token);
        b.node("moe", compute, op);
        b.pointwise(compute, PointwiseMode::Add, &[product, bias], biased);
        b.pointwise(compute, PointwiseMode::ReluFwd, &[biased], output);
        b.build()
    }

    /// Builds the gradient with respect to the weights.
    fn backward(&self) -> Graph {
        let [count, inner, columns] = self.experts;
        let [token_type, weight_type, output_type, compute] = self.types;
        let mut b = GraphBuilder::new("moe backward");
        let doutput = b.buffer("doutput", output_type, &[1, self.tokens, columns]);
        let token = b.buffer("token", token_type, &[1, self.tokens, inner]);
        let first_token_offset = b.buffer("offset", DataType::I32, &[count, 1, 1]);
        let dweight = ordered(&mut b, "dweight", weight_type, &self.experts, self.orders[0]);
        let op = MoeGroupedMatmulBwd {
            doutput,
            token,
            first_token_offset,
            dweight,
        };
        b.node("moe", compute, op);
        b.build()
    }
}

/// Adds gradients of weights followed by an operation over their rows: a layernorm backward, and a
/// reduction.
fn backward_of_rows(cases: &mut Cases) {
    const F32: DataType = DataType::F32;
    for dtype in FLOATS {
        for normalizes in [true, false] {
            let mut b = GraphBuilder::new("rows of moe backward");
            let token = b.buffer("token", dtype, &[1, 11, 5]);
            let doutput = b.buffer("doutput", dtype, &[1, 11, 8]);
            let first_token_offset = b.buffer("offset", DataType::I32, &[2, 1, 1]);
            let dweight = b.virtual_tensor("dweight", F32, &[2, 5, 8]);
            let op = MoeGroupedMatmulBwd {
                doutput,
                token,
                first_token_offset,
                dweight,
            };
            b.node("moe", F32, op);
            if normalizes {
                let dy = b.buffer("dy", dtype, &[2, 5, 8]);
                let dx = b.buffer("dx", F32, &[2, 5, 8]);
                let [scale, dscale, dbias] = ["scale", "dscale", "dbias"].map(|name| b.buffer(name, dtype, &[1, 1, 8]));
                let epsilon = b.constant("epsilon", F32, &[1; 3], Scalar::float(1e-3));
                let op = LayernormBackward {
                    epsilon: Some(epsilon),
                    ..LayernormBackward::new([dy, dweight, scale], [dx, dscale, dbias], 1)
                };
                b.node("norm", F32, op);
                cases.add(format!("layernorm_backward_of_moe_{dtype}"), b.build());
            } else {
                let norm = b.buffer("norm", F32, &[2, 5, 1]);
                reduce(&mut b, F32, ReductionMode::Norm2, dweight, norm);
                cases.add(format!("norm_of_moe_backward_{dtype}"), b.build());
            }
        }
    }
}

/// Adds a buffer without gaps with its axes in this order.
fn ordered(
    b: &mut GraphBuilder,
    name: &str,
    dtype: DataType,
    dims: &[i64; 3],
    order: [usize; 3],
) -> rotini_graph::TensorId {
    let mut strides = [1; 3];
    strides[order[1]] = dims[order[2]];
    strides[order[0]] = dims[order[2]] * dims[order[1]];
    b.tensor(name, dtype, dims, &strides, TensorKind::Buffer)
}

const MODES: [(&str, MoeMode); 3] = [
    ("none", MoeMode::None),
    ("gather", MoeMode::Gather),
    ("scatter", MoeMode::Scatter),
];

pub(super) fn experts(cases: &mut Cases) {
    backward_of_rows(cases);
    for dtype in FLOATS {
        for (name, mode) in MODES {
            let even = Moe::new(dtype, 12, [4, 8, 6], mode);
            cases.add(format!("moe_{name}_{dtype}"), even.columns().graph(false));
            let mut odd = Moe::new(dtype, 7, [3, 5, 9], mode);
            odd.groups = 2;
            cases.add(format!("moe_{name}_odd_{dtype}"), odd.graph(false));
            // Several tiles per expert.
            let long = Moe::new(dtype, 150, [3, 24, 20], mode);
            cases.add(format!("moe_{name}_long_{dtype}"), long.graph(false));
        }
        let one = Moe::new(dtype, 5, [1, 16, 4], MoeMode::None);
        cases.add(format!("moe_one_expert_{dtype}"), one.columns().graph(false));
        let idle = Moe::new(dtype, 3, [16, 8, 8], MoeMode::None);
        cases.add(format!("moe_more_experts_than_rows_{dtype}"), idle.graph(false));
        let vectors = Moe::new(dtype, 9, [2, 1, 6], MoeMode::Gather);
        cases.add(format!("moe_vectors_{dtype}"), vectors.graph(false));
        let single = Moe::new(dtype, 1, [4, 3, 5], MoeMode::None);
        cases.add(format!("moe_one_row_{dtype}"), single.graph(false));
        cases.add(format!("moe_backward_one_row_{dtype}"), single.backward());
        let matrix = Moe::new(dtype, 64, [2, 64, 64], MoeMode::None);
        cases.add(format!("moe_matrix_{dtype}"), matrix.clone().columns().graph(false));
        cases.add(format!("moe_backward_matrix_{dtype}"), matrix.backward());
        let even = Moe::new(dtype, 12, [4, 8, 6], MoeMode::None);
        cases.add(format!("moe_backward_{dtype}"), even.backward());
        cases.add(format!("moe_backward_columns_{dtype}"), even.columns().backward());
        let odd = Moe::new(dtype, 7, [3, 5, 9], MoeMode::None);
        cases.add(format!("moe_backward_odd_{dtype}"), odd.backward());
        let long = Moe::new(dtype, 150, [3, 24, 20], MoeMode::None);
        cases.add(format!("moe_backward_long_{dtype}"), long.backward());
    }
    use DataType::{F8E4M3, F8E5M2, F16, F32, F64, I4, I8, I32};
    for (name, types) in [
        ("f64", [F64; 4]),
        ("i8_to_i32", [I8, I8, I32, I32]),
        ("f16_to_f32", [F16, F16, F32, F32]),
        ("f16_in_f16", [F16; 4]),
        ("f8_to_f16", [F8E4M3, F8E4M3, F16, F32]),
        ("f8", [F8E5M2, F8E5M2, F8E5M2, F32]),
        ("i4_weights", [F16, I4, F16, F32]),
        (
            "f16_by_bf16",
            [DataType::F16, DataType::Bf16, DataType::F16, DataType::F32],
        ),
        ("f32_by_e4m3_in_f64", [F32, F8E4M3, F64, F64]),
    ] {
        let mut moe = Moe::new(F32, 20, [3, 8, 6], MoeMode::Gather);
        moe.types = types;
        cases.add(format!("moe_{name}"), moe.graph(false));
        if types[3] != I32 && types[1] != I4 {
            let mut backward = Moe::new(F32, 20, [3, 8, 6], MoeMode::None);
            backward.types = [types[0], types[2], types[0], types[3]];
            cases.add(format!("moe_backward_{name}"), backward.backward());
        }
    }
}

pub(super) fn fused(cases: &mut Cases) {
    for dtype in FLOATS {
        for (name, mode) in MODES {
            let moe = Moe::new(dtype, 12, [4, 8, 6], mode);
            cases.add(format!("moe_{name}_bias_{dtype}"), moe.graph(true));
        }
    }
    for (name, orders) in [
        ("inner_first", [[1, 0, 2], [0, 1, 2]]),
        ("expert_last", [[2, 1, 0], [0, 2, 1]]),
        ("output_columns", [[0, 2, 1], [0, 2, 1]]),
    ] {
        let mut moe = Moe::new(DataType::F16, 9, [3, 6, 10], MoeMode::Scatter);
        moe.orders = orders;
        cases.add(format!("moe_{name}"), moe.graph(false));
        moe.mode = MoeMode::None;
        cases.add(format!("moe_backward_{name}"), moe.backward());
    }
}

/// Returns routings that no fill generates, with and without a defined meaning.
pub(super) fn routings() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    let all: [(&str, [i32; 4]); 4] = [
        ("all_in_first", [0, 40, 40, 40]),
        ("all_in_last", [0, 0, 0, 0]),
        ("all_in_third", [0, 0, 0, 40]),
        ("uneven", [0, 1, 18, 19]),
    ];
    let outside: [(&str, [i32; 4]); 5] = [
        ("falling", [0, 30, 10, 20]),
        ("negative", [-5, -1, i32::MIN, 3]),
        ("beyond", [0, 20, 41, 1000]),
        ("huge", [i32::MAX, i32::MAX, i32::MIN, i32::MAX]),
        ("falling_from_behind", [i32::MAX, 0, 0, 0]),
    ];
    let routings = || {
        let defined = all.iter().map(|&(name, offsets)| (name, offsets, true));
        defined.chain(outside.iter().map(|&(name, offsets)| (name, offsets, false)))
    };
    for dtype in [DataType::F32, DataType::F16] {
        let moe = Moe::new(dtype, 40, [4, 8, 6], MoeMode::None);
        for (name, offsets, has_meaning) in routings() {
            let elements = [("offset", offsets.to_vec())];
            let named = |direction| format!("moe_{direction}_{name}_{dtype}");
            data.push(Data::with(named("forward"), moe.graph(false), &elements, has_meaning)?);
            data.push(Data::with(named("backward"), moe.backward(), &elements, has_meaning)?);
        }
        for (name, offsets) in [("late", [7, 7, 20, 39]), ("none", [40; 4])] {
            let elements = [("offset", offsets.to_vec())];
            let name = format!("moe_forward_{name}_{dtype}");
            data.push(Data::with(name, moe.graph(false), &elements, true)?);
        }
        // Invalid row numbers.
        let wild = |rows: i32| {
            (0..rows)
                .map(|row| [row, -1, i32::MAX, i32::MIN, 40][row as usize % 5])
                .collect()
        };
        let gather = Moe::new(dtype, 40, [4, 8, 6], MoeMode::Gather);
        let elements = [("index", wild(43))];
        data.push(Data::with(
            format!("moe_gather_wild_{dtype}"),
            gather.graph(false),
            &elements,
            false,
        )?);
        let scatter = Moe::new(dtype, 40, [4, 8, 6], MoeMode::Scatter);
        for (name, index, ks) in [
            ("wild", wild(40), vec![0; 40]),
            ("wild_ks", vec![1; 40], wild(40)),
            ("same", vec![0; 40], vec![1; 40]),
        ] {
            let elements = [("index", index), ("ks", ks)];
            let name = format!("moe_scatter_{name}_{dtype}");
            data.push(Data::with(name, scatter.graph(false), &elements, false)?);
        }
    }
    Ok(data)
}
