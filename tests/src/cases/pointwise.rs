//! Pointwise operations: modes, types, parameters, broadcasting.

use super::case::{Cases, Data, FLOATS, Order};
use crate::modes::integer_modes;
use anyhow::Result;
use rotini_graph::{DataType, Graph, GraphBuilder, Op, Pointwise, PointwiseMode, Scalar};
use rotini_reference::Profile;

/// Builds one pointwise operation over packed operands.
pub(super) fn packed(mode: PointwiseMode, types: &[DataType], out: DataType, compute: DataType, dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new(mode.name());
    let operands: Vec<_> = (0..mode.arity())
        .map(|index| b.buffer(&format!("in_{index}"), types[index % types.len()], dims))
        .collect();
    let y = b.buffer("y", out, dims);
    let operand = |index: usize| operands.get(index).copied();
    let mut op = Pointwise::new(mode, operands[0], operand(1), operand(2), y);
    if mode == PointwiseMode::GenIndex {
        op.axis = Some(1);
    }
    b.node(mode.name(), compute, op);
    b.build()
}

pub(super) fn modes(cases: &mut Cases) {
    for &mode in PointwiseMode::ALL {
        let name = mode.name();
        for dtype in FLOATS {
            let graph = packed(mode, &[dtype], dtype, DataType::F32, &[2, 5, 3, 7]);
            cases.add(format!("pw_{name}_{dtype}"), graph);
        }
        if !WITHOUT_F64.contains(&mode) {
            let graph = packed(mode, &[DataType::F64], DataType::F64, DataType::F64, &[3, 11]);
            cases.add(format!("pw_{name}_f64"), graph);
        }
    }
}

/// The modes that are declined in f64 on the CPU.
pub const WITHOUT_F64: [PointwiseMode; 3] = [PointwiseMode::Erf, PointwiseMode::Sin, PointwiseMode::Tan];

pub(super) fn types(cases: &mut Cases) {
    use DataType::{Bf16, F16, F32, F64, I8, I32, I64, U8};
    for &mode in integer_modes() {
        let graph = packed(mode, &[I8], I8, I32, &[4, 9]);
        cases.add(format!("pw_{}_i8", mode.name()), graph);
        let graph = packed(mode, &[I32], I32, I32, &[4, 9]);
        cases.add(format!("pw_{}_i32", mode.name()), graph);
    }
    for (from, to) in [
        (F32, I8),
        (F32, U8),
        (F32, I32),
        (F32, I64),
        (F64, I32),
        (F16, Bf16),
        (Bf16, F16),
        (F64, F16),
        (F64, F32),
        (F32, F64),
        (I8, F32),
        (U8, F32),
        (I32, F16),
        (I64, F64),
        (U8, Bf16),
        (F16, I8),
    ] {
        let compute = if from == F64 || to == F64 || from == I64 {
            F64
        } else {
            F32
        };
        cases.add(
            format!("convert_{from}_{to}"),
            packed(PointwiseMode::Identity, &[from], to, compute, &[3, 17]),
        );
    }
    for (from, to) in [
        (I32, I8),
        (I32, U8),
        (U8, I8),
        (I8, U8),
        (I8, I64),
        (I64, I8),
        (U8, I32),
    ] {
        let graph = packed(PointwiseMode::Identity, &[from], to, I64, &[3, 17]);
        cases.add(format!("convert_{from}_{to}"), graph);
    }
    cases.add(
        "pw_mixed_f16_f32",
        packed(PointwiseMode::Mul, &[F16, F32], Bf16, F32, &[6, 10]),
    );
    cases.add(
        "pw_mixed_i8_f16",
        packed(PointwiseMode::Add, &[I8, F16], F32, F32, &[6, 10]),
    );
    // A single f64 per step of a thread.
    for mode in [
        PointwiseMode::Erf,
        PointwiseMode::Exp,
        PointwiseMode::GeluFwd,
        PointwiseMode::SoftplusFwd,
        PointwiseMode::TanhFwd,
    ] {
        let graph = packed(mode, &[F64], F32, F32, &[1, 7]);
        cases.add(format!("pw_{}_f64_in_f32", mode.name()), graph);
    }
    cases.add(
        "pw_half_compute",
        packed(PointwiseMode::Add, &[F16], F16, F16, &[6, 10]),
    );
}

/// Returns modes that distinguish NaN, infinities and zeros, applied to these; and undefined
/// quotients of integers.
pub(super) fn edges() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    let mut add = |mode: PointwiseMode, dtype, compute| {
        let graph = packed(mode, &[dtype], dtype, compute, &[24, 33]);
        let name = format!("pw_edges_{}_{dtype}", mode.name());
        data.push(Data::filled(name, graph, "in_0", Profile::Edge)?.and("in_1", Profile::Edge)?);
        Ok::<_, anyhow::Error>(())
    };
    for mode in [PointwiseMode::Max, PointwiseMode::Min, PointwiseMode::Div] {
        for dtype in FLOATS {
            add(mode, dtype, DataType::F32)?;
        }
        add(mode, DataType::F64, DataType::F64)?;
    }
    add(PointwiseMode::Div, DataType::I8, DataType::I32)?;
    add(PointwiseMode::Div, DataType::U8, DataType::I32)?;
    add(PointwiseMode::Div, DataType::I64, DataType::I64)?;
    let numbers = [i32::MIN, i32::MIN + 1, -7, -1, 0, 1, 2, 7, i32::MAX];
    let pairs: Vec<[i32; 2]> = numbers.iter().flat_map(|&x| numbers.map(|y| [x, y])).collect();
    let extent = i64::try_from(pairs.len())?;
    let graph = packed(
        PointwiseMode::Div,
        &[DataType::I32],
        DataType::I32,
        DataType::I32,
        &[extent],
    );
    let [x, y] = [0, 1].map(|side| pairs.iter().map(|pair| pair[side]).collect());
    data.push(Data::with(
        "pw_edges_DIV_i32",
        graph,
        &[("in_0", x), ("in_1", y)],
        true,
    )?);
    Ok(data)
}

pub(super) fn parameters(cases: &mut Cases) {
    type Set = fn(&mut Pointwise);
    let sets: [(&str, PointwiseMode, Set); 14] = [
        ("lower", PointwiseMode::ReluFwd, |op| op.relu_lower_clip = Some(-0.5)),
        ("upper", PointwiseMode::ReluFwd, |op| op.relu_upper_clip = Some(0.5)),
        ("slope", PointwiseMode::ReluFwd, |op| {
            op.relu_lower_clip_slope = Some(0.1)
        }),
        ("all", PointwiseMode::ReluFwd, |op| {
            op.relu_lower_clip = Some(0.25);
            op.relu_upper_clip = Some(0.5);
            op.relu_lower_clip_slope = Some(0.2);
        }),
        ("crossed", PointwiseMode::ReluFwd, |op| {
            op.relu_lower_clip = Some(0.5);
            op.relu_upper_clip = Some(-0.5);
        }),
        ("lower", PointwiseMode::ReluBwd, |op| op.relu_lower_clip = Some(0.25)),
        ("upper", PointwiseMode::ReluBwd, |op| op.relu_upper_clip = Some(0.5)),
        ("slope", PointwiseMode::ReluBwd, |op| {
            op.relu_lower_clip_slope = Some(0.3)
        }),
        ("beta", PointwiseMode::SwishFwd, |op| op.swish_beta = Some(1.7)),
        ("beta", PointwiseMode::SwishBwd, |op| op.swish_beta = Some(0.6)),
        ("alpha", PointwiseMode::EluFwd, |op| op.elu_alpha = Some(0.4)),
        ("alpha", PointwiseMode::EluBwd, |op| op.elu_alpha = Some(1.3)),
        ("beta", PointwiseMode::SoftplusFwd, |op| op.softplus_beta = Some(2.5)),
        ("beta", PointwiseMode::SoftplusBwd, |op| op.softplus_beta = Some(0.5)),
    ];
    for (label, mode, set) in sets {
        let mut graph = packed(mode, &[DataType::F32], DataType::F32, DataType::F32, &[4, 16]);
        for node in &mut graph.nodes {
            if let Op::Pointwise(op) = &mut node.op {
                set(op);
            }
        }
        cases.add(format!("pw_{}_{label}", mode.name()), graph);
    }
    // Large angles, which need a reduction by whole turns first.
    for mode in [PointwiseMode::Sin, PointwiseMode::Tan] {
        for factor in [4096.0, 1_048_576.0] {
            let mut b = GraphBuilder::new("large angles");
            let x = b.buffer("x", DataType::F32, &[8, 32]);
            let scale = b.constant("scale", DataType::F32, &[1, 1], Scalar::float(factor));
            let angle = b.virtual_tensor("angle", DataType::F32, &[8, 32]);
            let y = b.buffer("y", DataType::F32, &[8, 32]);
            b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, scale], angle);
            b.pointwise(DataType::F32, mode, &[angle], y);
            cases.add(format!("pw_{}_times_{factor}", mode.name()), b.build());
        }
    }
    for axis in 0..3 {
        let mut graph = packed(
            PointwiseMode::GenIndex,
            &[DataType::F32],
            DataType::I32,
            DataType::I32,
            &[3, 4, 5],
        );
        for tensor in &mut graph.tensors {
            tensor.dtype = DataType::I32;
        }
        for node in &mut graph.nodes {
            if let Op::Pointwise(op) = &mut node.op {
                op.axis = Some(axis);
            }
        }
        cases.add(format!("pw_GEN_INDEX_axis{axis}"), graph);
    }
}

pub(super) fn broadcasts(cases: &mut Cases) {
    let shapes: [(&str, &[i64]); 9] = [
        ("channel", &[1, 5, 1, 1]),
        ("row", &[1, 1, 1, 7]),
        ("batch", &[2, 1, 1, 1]),
        ("inner", &[1, 5, 3, 1]),
        ("scalar", &[1, 1, 1, 1]),
        ("rank1", &[7]),
        ("rank1_one", &[1]),
        ("rank2", &[3, 1]),
        ("rank3", &[5, 1, 7]),
    ];
    for order in Order::BOTH {
        for (label, dims) in shapes {
            let mut b = GraphBuilder::new("broadcast");
            let x = order.buffer(&mut b, "x", DataType::F32, &[2, 5, 3, 7]);
            let z = b.buffer("z", DataType::F16, dims);
            let y = order.buffer(&mut b, "y", DataType::F32, &[2, 5, 3, 7]);
            b.pointwise(DataType::F32, PointwiseMode::Sub, &[z, x], y);
            cases.add(format!("broadcast_{label}_{}", order.name()), b.build());
        }
    }
    // The output is larger than every operand.
    let mut b = GraphBuilder::new("outer");
    let row = b.buffer("row", DataType::F32, &[1, 6]);
    let column = b.buffer("column", DataType::F32, &[4, 1]);
    let y = b.buffer("y", DataType::F32, &[4, 6]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[row, column], y);
    cases.add("broadcast_outer", b.build());
    let mut b = GraphBuilder::new("unary");
    let x = b.buffer("x", DataType::F32, &[1, 6]);
    let y = b.buffer("y", DataType::F32, &[4, 6]);
    b.pointwise(DataType::F32, PointwiseMode::Neg, &[x], y);
    cases.add("broadcast_unary", b.build());
    // Constants in the graph.
    let mut b = GraphBuilder::new("constants");
    let x = b.buffer("x", DataType::F16, &[3, 8]);
    let half = b.constant("half", DataType::F32, &[1, 1], Scalar::float(0.5));
    let three = b.constant("three", DataType::I32, &[1], Scalar::Integer(3));
    let scaled = b.virtual_tensor("scaled", DataType::F32, &[3, 8]);
    let y = b.buffer("y", DataType::F16, &[3, 8]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, half], scaled);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[scaled, three], y);
    cases.add("constants", b.build());
}
