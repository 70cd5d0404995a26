//! Seeded inputs.

use crate::{elements, validated};
use rotini_graph::{
    ConvGeometry, DataType, DiagonalAlignment, Graph, GraphBuilder, PointwiseMode as Mode, Sdpa, TensorId, TensorKind,
};
use rotini_reference::{Profile, UNTOUCHED, fill, fill_all, fill_around, fill_with, profile};

/// Returns a graph of a convolution of x and w, a division of its result, and a selection by a
/// mask.
fn graph(dtype: DataType) -> (Graph, [TensorId; 5]) {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", dtype, &[1, 4, 8, 8]);
    let w = builder.tensor("w", dtype, &[4, 4, 3, 3], &[40, 9, 3, 1], TensorKind::Buffer);
    let divisor = builder.buffer("divisor", dtype, &[1, 4, 1, 1]);
    let mask = builder.buffer("mask", dtype, &[1, 4, 8, 8]);
    let [conv, ratio] = ["conv", "ratio"].map(|name| builder.virtual_tensor(name, DataType::F32, &[1, 4, 8, 8]));
    let y = builder.buffer("y", dtype, &[1, 4, 8, 8]);
    builder.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 1));
    builder.pointwise(DataType::F32, Mode::Div, &[conv, divisor], ratio);
    builder.pointwise(DataType::F32, Mode::BinarySelect, &[ratio, conv, mask], y);
    (validated(builder), [x, w, divisor, mask, y])
}

#[test]
fn profiles_follow_the_consumers() {
    let (graph, ids) = graph(DataType::F16);
    let profiles = ids.map(|id| profile(&graph, id));
    let expected = [
        Profile::Normal,
        Profile::Weights,
        Profile::Positive,
        Profile::Booleans,
        Profile::Normal,
    ];
    assert_eq!(profiles, expected);
}

#[test]
fn the_same_on_every_machine() {
    let (graph, [x, w, ..]) = graph(DataType::F32);
    // Recorded from the first run: a change of generator, range or order changes every test's data
    // and has to be deliberate.
    let first = |id, seed| elements(DataType::F32, &fill(&graph, id, seed).unwrap()[..16]).map_to_steps();
    assert_eq!(first(x, 1), [405.0, -799.0, 3970.0, -3438.0]);
    assert_eq!(first(w, 1), [4096.0, 3072.0, 4096.0, -4096.0]);
    assert_ne!(first(x, 1), first(x, 2));
    assert_ne!(fill(&graph, x, 1).unwrap()[..64], fill(&graph, w, 1).unwrap()[..64]);
}

/// Conversion of elements to multiples of binary32's step, which are whole numbers.
trait Steps {
    fn map_to_steps(self) -> Vec<f64>;
}

impl Steps for Vec<f64> {
    fn map_to_steps(self) -> Vec<f64> {
        self.into_iter().map(|value| value * 4096.0).collect()
    }
}

#[test]
fn values_are_in_the_profile_and_gaps_and_outputs_are_not() {
    for (dtype, steps) in [
        (DataType::F64, 20),
        (DataType::F32, 12),
        (DataType::F16, 8),
        (DataType::Bf16, 7),
    ] {
        let (graph, [x, w, divisor, mask, y]) = graph(dtype);
        let steps = 2.0_f64.powi(steps);
        let values = |id, profile| elements(dtype, &fill_with(&graph, id, 3, profile).unwrap());
        let whole = |value: f64| value == value.trunc();

        let normal = values(x, Profile::Normal);
        assert!(normal.iter().all(|value| value.abs() <= 1.0 && whole(value * steps)));
        assert!(normal.iter().any(|value| *value > 0.5) && normal.iter().any(|value| *value < -0.5));
        let distinct: std::collections::HashSet<u64> = normal.iter().map(|value| value.to_bits()).collect();
        assert!(
            distinct.len() > 100,
            "{dtype} has {} values in 256 elements",
            distinct.len()
        );

        let positive = values(divisor, Profile::Positive);
        assert!(
            positive
                .iter()
                .all(|value| (0.5..=2.0).contains(value) && whole(value * steps))
        );
        let booleans = values(mask, Profile::Booleans);
        assert!(booleans.iter().all(|value| [0.0, 1.0].contains(value)));
        assert!(booleans.contains(&0.0) && booleans.contains(&1.0));
        let small = values(mask, Profile::SmallIntegers);
        assert!(small.iter().all(|value| value.abs() <= 3.0 && whole(*value)));

        let size = usize::try_from(dtype.bytes().unwrap()).unwrap();
        let w = fill(&graph, w, 3).unwrap();
        assert_eq!(w.len(), (3 * 40 + 36) * size);
        for filter in w.chunks(40 * size) {
            let (stored, gap) = filter.split_at(36 * size);
            assert!(
                elements(dtype, stored)
                    .iter()
                    .all(|value| whole(value * 4.0) && value.abs() <= 1.0)
            );
            assert!(gap.iter().all(|&byte| byte == UNTOUCHED));
        }
        let y = fill(&graph, y, 3).unwrap();
        assert!(y.iter().all(|&byte| byte == UNTOUCHED));
        assert!(elements(dtype, &y).iter().all(|value| value.is_nan()));
    }
}

#[test]
fn integers_use_their_range() {
    let mut builder = GraphBuilder::new("");
    let types = [DataType::I8, DataType::U8, DataType::I32, DataType::I64];
    let inputs = types.map(|dtype| builder.buffer("x", dtype, &[10_000]));
    let out = builder.buffer("y", DataType::I32, &[10_000]);
    builder.pointwise(DataType::I32, Mode::Add, &[inputs[0], inputs[1]], out);
    let graph = validated(builder);
    for ((id, dtype), (least, most)) in
        inputs
            .into_iter()
            .zip(types)
            .zip([(-128.0, 127.0), (0.0, 255.0), (-4096.0, 4096.0), (-4096.0, 4096.0)])
    {
        let values = elements(dtype, &fill(&graph, id, 5).unwrap());
        let (smallest, largest) = values
            .iter()
            .fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
        assert!(smallest >= least && smallest < least + 10.0, "{dtype} from {smallest}");
        assert!(largest <= most && largest > most - 10.0, "{dtype} to {largest}");
    }
}

#[test]
fn edges_have_every_special_value() {
    for dtype in [DataType::F64, DataType::F32, DataType::F16, DataType::Bf16] {
        let (graph, [x, ..]) = graph(dtype);
        let values = elements(dtype, &fill_with(&graph, x, 7, Profile::Edge).unwrap());
        let normal = match dtype {
            DataType::F64 => f64::MIN_POSITIVE,
            DataType::F16 => 2.0_f64.powi(-14),
            _ => f32::MIN_POSITIVE.into(),
        };
        let has = |what: fn(f64, f64) -> bool| values.iter().any(|&value| what(value, normal));
        assert!(has(|value, _| value.is_nan()), "{dtype}: NaN");
        assert!(has(|value, _| value == f64::INFINITY) && has(|value, _| value == f64::NEG_INFINITY));
        assert!(
            has(|value, _| value == 0.0 && value.is_sign_negative()),
            "{dtype}: negative zero"
        );
        assert!(has(|value, normal| value > 0.0 && value < normal), "{dtype}: denormal");
        assert!(has(|value, normal| value == normal), "{dtype}: smallest normal");
        assert!(has(|value, _| value.is_finite() && value > 6e4), "{dtype}: largest");
    }
}

#[test]
fn all_buffers_and_nothing_else() {
    let (graph, ids) = graph(DataType::F32);
    let all = fill_all(&graph, 11).unwrap();
    assert_eq!(all.len(), 5);
    for id in ids {
        assert_eq!(all[&graph.tensor(id).unwrap().uid], fill(&graph, id, 11).unwrap());
    }
}

/// Sequence lengths and a window of 2 keys before and 1 after the diagonal, which ends at the last
/// key: query i sees keys from i - 1 to i + 2.
#[test]
fn what_attention_hides_is_not_finite() {
    const LENGTHS: [(i32, i32); 2] = [(4, 2), (2, 7)];
    let (queries, keys, width) = (6_usize, 7_usize, 3_usize);
    let mut builder = GraphBuilder::new("");
    let q = builder.buffer("q", DataType::F32, &[2, 2, 6, 3]);
    // Both batches of k share memory.
    let k = builder.tensor("k", DataType::F32, &[2, 1, 7, 3], &[0, 21, 3, 1], TensorKind::Buffer);
    let v = builder.buffer("v", DataType::F32, &[2, 1, 7, 3]);
    let o = builder.buffer("o", DataType::F32, &[2, 2, 6, 3]);
    let mask = builder.buffer("mask", DataType::F32, &[1, 1, 6, 7]);
    let lengths = ["q_length", "k_length"].map(|name| builder.buffer(name, DataType::I32, &[2, 1, 1, 1]));
    let mut op = Sdpa::new(q, k, v, o);
    op.padding_mask = true;
    op.seq_len_q = Some(lengths[0]);
    op.seq_len_kv = Some(lengths[1]);
    op.left_bound = Some(2);
    op.right_bound = Some(1);
    op.diagonal_alignment = DiagonalAlignment::BottomRight;
    op.attn_mask = Some(mask);
    builder.node("", DataType::F32, Box::new(op));
    let graph = validated(builder);
    let uid = |id| graph.tensor(id).unwrap().uid;
    let column = |side: fn((i32, i32)) -> i32| LENGTHS.into_iter().flat_map(|pair| side(pair).to_le_bytes()).collect();
    let given = [
        (uid(lengths[0]), column(|pair| pair.0)),
        (uid(lengths[1]), column(|pair| pair.1)),
    ];
    let all = fill_around(&graph, 5, given.into_iter().collect()).unwrap();

    let sees = |batch: usize, query: usize, key: usize| {
        let (valid_queries, valid_keys) = LENGTHS[batch];
        (query as i32) < valid_queries
            && (key as i32) < valid_keys
            && (query as i32 - 1..=query as i32 + 2).contains(&(key as i32))
    };
    let is_seen_query = |batch, query| (0..keys).any(|key| sees(batch, query, key));
    let is_seen_key = |batch, key| (0..queries).any(|query| sees(batch, query, key));
    let in_any_batch = |is_seen: &dyn Fn(usize) -> bool| is_seen(0) || is_seen(1);
    let visible: [(TensorId, Vec<bool>); 4] = [
        (q, (0..72).map(|i| is_seen_query(i / 36, i / width % queries)).collect()),
        (
            k,
            (0..21)
                .map(|i| in_any_batch(&|batch| is_seen_key(batch, i / width)))
                .collect(),
        ),
        (v, (0..42).map(|i| is_seen_key(i / 21, i / width % keys)).collect()),
        (
            mask,
            (0..42)
                .map(|i| in_any_batch(&|batch| sees(batch, i / keys, i % keys)))
                .collect(),
        ),
    ];
    for (id, visible) in visible {
        assert!(visible.contains(&true) && visible.contains(&false), "{id:?}");
        let [hidden, plain] =
            [&all[&uid(id)], &fill(&graph, id, 5).unwrap()].map(|bytes| elements(DataType::F32, bytes));
        assert_eq!(hidden.len(), visible.len());
        for (index, is_visible) in visible.into_iter().enumerate() {
            let expected = if is_visible {
                hidden[index] == plain[index]
            } else {
                !hidden[index].is_finite()
            };
            assert!(expected, "{id:?} at {index}: {} of {}", hidden[index], plain[index]);
        }
    }
}
