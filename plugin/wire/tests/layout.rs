//! Checks that every field is encoded where hipDNN expects it.
//!
//! The ids of fields are stated here independently of the schema, and each value is found in the
//! encoded bytes without the generated code, by following offsets as FlatBuffers' format defines
//! them. So the test catches both a wrong field id in the schema and fields mixed up in the
//! translation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

mod common;

use rotini_graph::{Graph, Node};
use serde_json::Value;
use std::sync::LazyLock;

/// Each operation's number in the union, its name, and the IR's names of its fields in the order of
/// their ids.
///
/// A name alone is a tensor. `:T` marks lists of tensors, `:l` and `:i` integers of 64 and 32 bits,
/// `:L` and `:I` lists of them, `:f` a binary32, `:b` a flag, `:e` an enum, `:s` a text, `:B`
/// bytes.
const LAYOUTS: [(u8, &str, &str); common::OPERATIONS] = [
    (1, "BatchnormInference", "x mean inv_variance scale bias y"),
    (
        2,
        "Pointwise",
        "mode:e relu_lower_clip:f relu_upper_clip:f relu_lower_clip_slope:f axis:l in_0 in_1 in_2 out_0 swish_beta:f \
         elu_alpha:f softplus_beta:f",
    ),
    (
        3,
        "BatchnormBackward",
        "dy x mean inv_variance scale peer_stats:T dx dscale dbias",
    ),
    (
        4,
        "Batchnorm",
        "x scale bias epsilon peer_stats:T prev_running_mean prev_running_variance momentum y mean inv_variance \
         next_running_mean next_running_variance",
    ),
    (
        5,
        "ConvFprop",
        "x w y pre_padding:L post_padding:L stride:L dilation:L mode:e",
    ),
    (
        6,
        "ConvDgrad",
        "dy w dx pre_padding:L post_padding:L stride:L dilation:L mode:e",
    ),
    (
        7,
        "ConvWgrad",
        "x dy dw pre_padding:L post_padding:L stride:L dilation:L mode:e",
    ),
    (8, "BatchnormInferenceVariance", "x mean variance scale bias y epsilon"),
    (9, "Matmul", "a b c"),
    (10, "RmsNorm", "x scale epsilon y bias inv_rms phase:e"),
    (
        11,
        "Layernorm",
        "x scale bias epsilon y normalized_dim_count:l mean inv_variance phase:e",
    ),
    (
        12,
        "Sdpa",
        "q k v o attn_mask scale seq_len_q seq_len_kv seed offset dropout_mask dropout_scale page_table_k page_table_v \
         block_mask sink_token descale_q descale_k descale_v descale_s scale_s scale_o stats max sum_exp rng_dump amax_s \
         amax_o generate_stats:b alibi_mask:b padding_mask:b causal_mask:b causal_mask_bottom_right:b \
         dropout_probability:f attn_scale_value:f left_bound:l right_bound:l max_seq_len_kv:i diagonal_alignment:e \
         mma_core_mode:e implementation:e",
    ),
    (13, "BlockScaleDequantize", "x scale y block_size:I is_negative_scale:b"),
    (14, "BlockScaleQuantize", "x y scale block_size:i axis:l transpose:b"),
    (
        15,
        "SdpaBackward",
        "q k v o d_o stats dq dk dv scale attn_mask seq_len_q seq_len_kv seed offset dropout_mask dropout_scale \
         dropout_scale_inv dbias alibi_mask:b padding_mask:b causal_mask:b causal_mask_bottom_right:b \
         dropout_probability:f attn_scale_value:f left_bound:l right_bound:l diagonal_alignment:e",
    ),
    (16, "CustomOp", "custom_op_id:s inputs:T outputs:T data:B"),
    (17, "RmsNormBackward", "dy x scale inv_rms dx dscale dbias"),
    (18, "Reduction", "mode:e input output is_deterministic:b"),
    (
        19,
        "ResampleFwd",
        "x y index pre_padding:L post_padding:L stride:L window:L resample_mode:e padding_mode:e generate_index:b",
    ),
    (
        20,
        "LayernormBackward",
        "dy x scale mean inv_variance epsilon dx dscale dbias normalized_dim_count:l",
    ),
    (
        21,
        "ResampleBwd",
        "dy dx index pre_padding:L post_padding:L stride:L window:L resample_mode:e padding_mode:e",
    ),
    (
        22,
        "MoeGroupedMatmul",
        "token weight first_token_offset token_index token_ks output mode:e top_k:i",
    ),
    (23, "MoeGroupedMatmulBwd", "doutput token first_token_offset dweight"),
];

/// The numbers of enum members, by operation (empty for any), field and the IR's name of the
/// member. Those of pointwise modes are in `schema/sources.toml`.
const ENUMS: [(&str, &str, &str); 10] = [
    ("Conv", "mode", "Convolution=1 CrossCorrelation=2"),
    ("", "phase", "Inference=1 Training=2"),
    (
        "Reduction",
        "mode",
        "Add=1 Mul=2 Min=3 Max=4 Amax=5 Avg=6 Norm1=7 Norm2=8 MulNoZeros=9",
    ),
    (
        "",
        "resample_mode",
        "Maxpool=1 AvgpoolExcludePadding=2 AvgpoolIncludePadding=3",
    ),
    ("", "padding_mode", "NotSet=0 NegInf=1 Zero=2"),
    ("", "diagonal_alignment", "TopLeft=0 BottomRight=1"),
    ("", "implementation", "Auto=0 Composite=1 Unified=2"),
    ("Moe", "mode", "None=0 Gather=1 Scatter=2"),
    ("", "mma_core_mode", DATA_TYPES),
    ("", "data_type", DATA_TYPES),
];

const DATA_TYPES: &str = "F32=1 F16=2 Bf16=3 F64=4 U8=5 I32=6 I8=7 F8E4M3=8 F8E5M2=9 F8E8M0=10 F4E2M1=11 F6E2M3=12 \
                          F6E3M2=13 I4=14 I64=15 Bool=16 F8E4M3Fnuz=17 F8E5M2Fnuz=18";

fn enum_number(op: &str, field: &str, member: &str) -> u8 {
    if op.starts_with("Pointwise") && field == "mode" {
        return pointwise_mode(member);
    }
    let (_, _, members) = ENUMS
        .iter()
        .find(|(of, name, _)| op.starts_with(of) && *name == field)
        .unwrap_or_else(|| panic!("{op}.{field}"));
    let find = |entry: &str| {
        entry
            .split_once('=')
            .filter(|(name, _)| *name == member)
            .map(|(_, number)| number.parse().unwrap())
    };
    members
        .split_whitespace()
        .find_map(find)
        .unwrap_or_else(|| panic!("{op}.{field} = {member}"))
}

/// Returns the number of a pointwise mode, as it was read in hipDNN's schema: `AddSquare` is
/// `ADD_SQUARE` there, and `Max` is `MAX_OP`.
fn pointwise_mode(member: &str) -> u8 {
    static SOURCES: LazyLock<toml::Table> = LazyLock::new(|| include_str!("../schema/sources.toml").parse().unwrap());
    let mut name = String::new();
    for letter in member.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    let members = &SOURCES["PointwiseMode"]["members"];
    let number = members.get(&name).or_else(|| members.get(format!("{name}_OP")));
    let number = number
        .and_then(toml::Value::as_integer)
        .unwrap_or_else(|| panic!("{member}: {name}"));
    u8::try_from(number).unwrap()
}

/// A position in a buffer.
#[derive(Clone, Copy)]
struct At<'a> {
    buffer: &'a [u8],
    position: usize,
}

impl<'a> At<'a> {
    fn bytes<const N: usize>(self) -> [u8; N] {
        self.buffer[self.position..][..N].try_into().unwrap()
    }

    fn long(self) -> i64 {
        i64::from_le_bytes(self.bytes())
    }

    fn plus(self, offset: usize) -> Self {
        At {
            position: self.position + offset,
            ..self
        }
    }

    /// Returns the position that the offset here points to.
    fn follow(self) -> Self {
        self.plus(u32::from_le_bytes(self.bytes()) as usize)
    }

    /// Returns the field with this id of the table here, if it is present.
    fn field(self, id: usize) -> Option<Self> {
        let vtable = At {
            position: (self.position as i64 - i64::from(i32::from_le_bytes(self.bytes()))) as usize,
            ..self
        };
        let size = usize::from(u16::from_le_bytes(vtable.bytes()));
        if 4 + 2 * id >= size {
            return None;
        }
        match u16::from_le_bytes(vtable.plus(4 + 2 * id).bytes()) {
            0 => None,
            offset => Some(self.plus(usize::from(offset))),
        }
    }

    /// Returns the elements, of `size` bytes each, of the vector that the offset here points to.
    fn elements(self, size: usize) -> impl Iterator<Item = At<'a>> {
        let vector = self.follow();
        let length = u32::from_le_bytes(vector.bytes()) as usize;
        (0..length).map(move |index| vector.plus(4 + index * size))
    }
}

fn root(buffer: &[u8]) -> At<'_> {
    At { buffer, position: 0 }.follow()
}

fn uid(graph: &Graph, id: &Value) -> i64 {
    graph.tensors[id.as_u64().unwrap() as usize].uid
}

/// Compares a field on the wire with the IR's value as serde represents it.
fn check_field(graph: &Graph, op: &str, field: &str, kind: &str, expected: &Value, table: At<'_>, id: usize) {
    let what = format!("{op}.{field}, id {id}");
    let Some(at) = table.field(id) else {
        let absent = match expected {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) if kind.is_empty() => uid(graph, &Value::Number(number.clone())) == 0,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(member) if kind == "e" => enum_number(op, field, member) == 0,
            _ => false,
        };
        assert!(absent, "{what} is not there, but should be {expected}");
        return;
    };
    let list = || expected.as_array().unwrap().iter();
    match kind {
        "" => assert_eq!(at.long(), uid(graph, expected), "{what}"),
        "l" => assert_eq!(Some(at.long()), expected.as_i64(), "{what}"),
        "i" => assert_eq!(
            Some(i64::from(i32::from_le_bytes(at.bytes()))),
            expected.as_i64(),
            "{what}"
        ),
        "f" => assert_eq!(
            Some(f64::from(f32::from_le_bytes(at.bytes()))),
            expected.as_f64(),
            "{what}"
        ),
        "b" => assert_eq!(Some(at.bytes() == [1]), expected.as_bool(), "{what}"),
        "e" => assert_eq!(
            at.bytes(),
            [enum_number(op, field, expected.as_str().unwrap())],
            "{what}"
        ),
        "T" => assert!(
            at.elements(8).map(At::long).eq(list().map(|id| uid(graph, id))),
            "{what}"
        ),
        "L" => assert!(
            at.elements(8).map(|at| Some(at.long())).eq(list().map(Value::as_i64)),
            "{what}"
        ),
        "I" => {
            let numbers = at.elements(4).map(|at| Some(i64::from(i32::from_le_bytes(at.bytes()))));
            assert!(numbers.eq(list().map(Value::as_i64)), "{what}");
        }
        "B" => {
            let bytes = at.elements(1).map(|at| Some(u64::from(at.bytes::<1>()[0])));
            assert!(bytes.eq(list().map(Value::as_u64)), "{what}");
        }
        "s" => {
            let text = at.elements(1).map(|at| at.bytes::<1>()[0]);
            assert!(text.eq(expected.as_str().unwrap().bytes()), "{what}");
        }
        other => panic!("no kind {other}"),
    }
}

fn check_node(graph: &Graph, node: &Node, table: At<'_>, layout: &(u8, &str, &str)) {
    let (member, op, fields) = *layout;
    assert_eq!(
        table.field(1).unwrap().bytes(),
        [enum_number("", "data_type", &format!("{:?}", node.compute))]
    );
    assert_eq!(table.field(2).unwrap().bytes(), [member], "{op}");
    let attributes = table.field(3).unwrap().follow();

    let value = serde_json::to_value(&node.op).unwrap();
    let (name, value) = value.as_object().unwrap().iter().next().unwrap();
    assert_eq!(name, op);
    let mut checked = 0;
    for (id, field) in fields.split_whitespace().enumerate() {
        let (field, kind) = field.split_once(':').unwrap_or((field, ""));
        let expected = value.get(field).or_else(|| value["geometry"].get(field));
        let expected = expected.unwrap_or_else(|| panic!("{op} has no {field}"));
        check_field(graph, op, field, kind, expected, attributes, id);
        checked += 1;
    }
    assert!(attributes.field(checked).is_none(), "{op} has more fields");
    let of_ir = value.as_object().unwrap().len()
        + value
            .get("geometry")
            .map_or(0, |geometry| geometry.as_object().unwrap().len() - 1);
    assert_eq!(checked, of_ir, "{op}: a field of the IR is not on the wire");
}

#[test]
fn attributes() {
    for (kind, layout) in LAYOUTS.iter().enumerate() {
        // Many seeds, so that every member of every enum and both states of every option occur.
        for seed in 0..200 {
            let graph = common::graph(seed, &[kind], seed % 2 == 0);
            let bytes = rotini_wire::encode(&graph);
            let node = root(&bytes).field(5).unwrap().elements(4).next().unwrap().follow();
            check_node(&graph, &graph.nodes[0], node, layout);
        }
    }
}

#[test]
fn tensors() {
    use rotini_graph::{Scalar, TensorKind};
    for seed in 0..200 {
        let graph = common::graph(seed, &[0, 1, 4], false);
        let bytes = rotini_wire::encode(&graph);
        assert_eq!(root(&bytes).field(4).unwrap().elements(4).count(), graph.tensors.len());
        for (tensor, at) in graph.tensors.iter().zip(root(&bytes).field(4).unwrap().elements(4)) {
            let table = at.follow();
            let long = |id, default| table.field(id).map_or(default, At::long);
            let flag = |id| table.field(id).is_some_and(|at| at.bytes() == [1]);
            let list = |id| -> Vec<i64> { table.field(id).unwrap().elements(8).map(At::long).collect() };
            assert_eq!(long(0, 0), tensor.uid);
            let name: Vec<u8> = table
                .field(1)
                .unwrap()
                .elements(1)
                .map(|at| at.bytes::<1>()[0])
                .collect();
            assert_eq!(name, tensor.name.as_bytes());
            let dtype = enum_number("", "data_type", &format!("{:?}", tensor.dtype));
            assert_eq!(table.field(2).unwrap().bytes(), [dtype]);
            assert_eq!(list(3), tensor.strides);
            assert_eq!(list(4), tensor.dims);
            assert_eq!(flag(5), tensor.kind == TensorKind::Virtual);
            assert_eq!(flag(8), tensor.kind == TensorKind::RuntimeScalar);
            let offset = tensor.ragged_offset.map(|id| graph.tensors[id.index()].uid);
            assert_eq!(table.field(9).map(At::long), offset);
            assert_eq!(long(10, 16), tensor.alignment);

            let member = table.field(6).map(|at| at.bytes::<1>()[0]);
            let TensorKind::Constant(scalar) = tensor.kind else {
                assert_eq!(member, None);
                continue;
            };
            let at = table.field(7).unwrap().follow();
            match (member.unwrap(), scalar) {
                (kind @ 1..=3, Scalar::Float(bits)) => {
                    assert_eq!(kind, dtype, "FLOAT, HALF and BFLOAT16 have the numbers of their values");
                    let value = f64::from(f32::from_le_bytes(at.bytes()));
                    assert!(value.to_bits() == bits || value.is_nan() && f64::from_bits(bits).is_nan());
                }
                (4, Scalar::Float(_)) => assert!([8, 9, 17, 18].contains(&dtype)),
                (6, Scalar::Float(bits)) => assert_eq!(u64::from_le_bytes(at.bytes()), bits),
                (5, Scalar::Integer(value)) => assert_eq!(i64::from(i32::from_le_bytes(at.bytes())), value),
                (8, Scalar::Integer(value)) => {
                    assert_eq!(dtype, 16, "only truth values are stored so");
                    assert_eq!(i64::from(at.bytes::<1>()[0]), value);
                }
                (7, Scalar::Integer(value)) => assert_eq!(at.long(), value),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn graph() {
    let mut graph = common::graph(3, &[0], true);
    graph.name = "name".to_owned();
    graph.override_shapes = true;
    graph.min_api_version = [1, 2, 3];
    let bytes = rotini_wire::encode(&graph);
    let name: Vec<u8> = root(&bytes)
        .field(0)
        .unwrap()
        .elements(1)
        .map(|at| at.bytes::<1>()[0])
        .collect();
    assert_eq!(name, b"name");
    assert_eq!(root(&bytes).field(7).unwrap().bytes(), [1]);
    let version = root(&bytes).field(8).unwrap();
    assert_eq!(
        [0, 4, 8].map(|at| u32::from_le_bytes(version.plus(at).bytes())),
        [1, 2, 3]
    );
}
