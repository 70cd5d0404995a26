//! Scaled dot-product attention, forward and backward.

use super::case::{Case, Cases, FLOATS};
use rotini_graph::{
    DataType, DiagonalAlignment, Graph, GraphBuilder, PointwiseMode, Scalar, Sdpa, SdpaBackward, TensorId, TensorKind,
};

const F32: DataType = DataType::F32;

/// An attention, with the attributes that both directions share.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    pub(super) batch: i64,
    /// Heads of q, of k and of v.
    pub(super) heads: [i64; 3],
    /// Queries and keys.
    pub(super) lengths: [i64; 2],
    /// Columns of q and k, and of v.
    pub(super) columns: [i64; 2],
    dtype: DataType,
    /// Compute type.
    pub(super) compute: DataType,
    /// Dims of an additive mask.
    pub(super) mask: Option<Vec<i64>>,
    /// Whether the mask has truth values instead of numbers.
    pub(super) truths: bool,
    /// Dims of flags that select the number added to a score: 0 or this number.
    pub(super) flags: Option<(Vec<i64>, f64)>,
    /// Factor on the scores.
    pub(super) scale: Option<f32>,
    /// Whether the factor is in a tensor.
    pub(super) scale_tensor: bool,
    pub(super) left: Option<i64>,
    pub(super) right: Option<i64>,
    pub(super) alignment: DiagonalAlignment,
    /// Causal masks in the older encoding: from the top left, from the bottom right.
    causal: [bool; 2],
    pub(super) padding: bool,
    pub(super) alibi: bool,
    pub(super) sink: bool,
    /// Whether heads lie next to each other in memory: B, S, H, D.
    pub(super) interleaved: bool,
    /// Whether all batches share one length of queries and one of keys, in memory.
    pub(super) repeats_lengths: bool,
    /// The type of the virtual output, if another node reads it.
    pub(super) read_as: Option<DataType>,
}

impl Attention {
    pub(super) fn new(batch: i64, heads: i64, lengths: [i64; 2], columns: i64, dtype: DataType) -> Self {
        Attention {
            batch,
            heads: [heads; 3],
            lengths,
            columns: [columns; 2],
            dtype,
            compute: F32,
            mask: None,
            truths: false,
            flags: None,
            scale: Some(0.25),
            scale_tensor: false,
            left: None,
            right: None,
            alignment: DiagonalAlignment::TopLeft,
            causal: [false; 2],
            padding: false,
            alibi: false,
            sink: false,
            interleaved: false,
            repeats_lengths: false,
            read_as: None,
        }
    }

    pub(super) fn with(&self, set: impl FnOnce(&mut Self)) -> Self {
        let mut attention = self.clone();
        set(&mut attention);
        attention
    }

    /// Adds a tensor with these heads, lengths and columns.
    fn tensor(&self, b: &mut GraphBuilder, name: &str, [heads, length, columns]: [i64; 3]) -> TensorId {
        let dims = [self.batch, heads, length, columns];
        let strides = if self.interleaved {
            [length * heads * columns, columns, heads * columns, 1]
        } else {
            [heads * length * columns, length * columns, columns, 1]
        };
        b.tensor(name, self.dtype, &dims, &strides, TensorKind::Buffer)
    }

    fn q(&self) -> [i64; 3] {
        [self.heads[0], self.lengths[0], self.columns[0]]
    }

    fn k(&self) -> [i64; 3] {
        [self.heads[1], self.lengths[1], self.columns[0]]
    }

    fn v(&self) -> [i64; 3] {
        [self.heads[2], self.lengths[1], self.columns[1]]
    }

    fn o(&self) -> [i64; 3] {
        [self.heads[0], self.lengths[0], self.columns[1]]
    }

    fn statistic(&self, b: &mut GraphBuilder, name: &str) -> TensorId {
        b.buffer(name, F32, &[self.batch, self.heads[0], self.lengths[0], 1])
    }

    fn mask_id(&self, b: &mut GraphBuilder) -> Option<TensorId> {
        if let Some((dims, hiding)) = &self.flags {
            let flags = b.buffer("flags", self.dtype, dims);
            let [nothing, hiding] = [("nothing", 0.0), ("hiding", *hiding)]
                .map(|(name, value)| b.constant(name, F32, &[1, 1, 1, 1], Scalar::float(value)));
            let mask = b.virtual_tensor("mask", F32, dims);
            b.pointwise(
                self.compute,
                PointwiseMode::BinarySelect,
                &[nothing, hiding, flags],
                mask,
            );
            return Some(mask);
        }
        let dims = self.mask.as_ref()?;
        let dtype = if self.truths { DataType::Bool } else { self.dtype };
        Some(b.buffer("mask", dtype, dims))
    }

    fn scale_id(&self, b: &mut GraphBuilder) -> Option<TensorId> {
        let value = self.scale.filter(|_| self.scale_tensor)?;
        Some(b.constant("scale", F32, &[1, 1, 1, 1], Scalar::float(value.into())))
    }

    fn sequence_lengths(&self, b: &mut GraphBuilder) -> [Option<TensorId>; 2] {
        ["seq_len_q", "seq_len_kv"].map(|name| {
            let strides = if self.repeats_lengths { [0, 1, 1, 1] } else { [1; 4] };
            let dims = [self.batch, 1, 1, 1];
            self.padding
                .then(|| b.tensor(name, DataType::I32, &dims, &strides, TensorKind::Buffer))
        })
    }

    pub(super) fn forward(&self, with_stats: bool) -> Graph {
        let mut b = GraphBuilder::new("sdpa");
        let [q, k, v] =
            [("q", self.q()), ("k", self.k()), ("v", self.v())].map(|(name, dims)| self.tensor(&mut b, name, dims));
        let attn_mask = self.mask_id(&mut b);
        let scale = self.scale_id(&mut b);
        let [seq_len_q, seq_len_kv] = self.sequence_lengths(&mut b);
        let sink_token = self.sink.then(|| b.buffer("sink", F32, &[1, self.heads[0], 1, 1]));
        let o = match self.read_as {
            Some(dtype) => {
                let [heads, length, columns] = self.o();
                b.virtual_tensor("read", dtype, &[self.batch, heads, length, columns])
            }
            None => self.tensor(&mut b, "o", self.o()),
        };
        let stats = with_stats.then(|| self.statistic(&mut b, "stats"));
        let op = Sdpa {
            attn_mask,
            scale,
            seq_len_q,
            seq_len_kv,
            sink_token,
            stats,
            generate_stats: with_stats.then_some(true),
            alibi_mask: self.alibi,
            padding_mask: self.padding,
            causal_mask: self.causal[0],
            causal_mask_bottom_right: self.causal[1],
            attn_scale_value: self.scale.filter(|_| !self.scale_tensor),
            left_bound: self.left,
            right_bound: self.right,
            diagonal_alignment: self.alignment,
            ..Sdpa::new(q, k, v, o)
        };
        b.node("sdpa", self.compute, Box::new(op));
        if self.read_as.is_some() {
            let out = self.tensor(&mut b, "o", self.o());
            b.pointwise(self.compute, PointwiseMode::Abs, &[o], out);
        }
        b.build()
    }

    /// Builds the backward graph, with a gradient of the mask if the mask has numbers.
    pub(super) fn backward(&self) -> Graph {
        let mut b = GraphBuilder::new("sdpa_backward");
        let [q, k, v, o, d_o] = [
            ("q", self.q()),
            ("k", self.k()),
            ("v", self.v()),
            ("o", self.o()),
            ("do", self.o()),
        ]
        .map(|(name, dims)| self.tensor(&mut b, name, dims));
        let stats = self.statistic(&mut b, "stats");
        let attn_mask = self.mask_id(&mut b);
        let scale = self.scale_id(&mut b);
        let [seq_len_q, seq_len_kv] = self.sequence_lengths(&mut b);
        let gradients = [("dq", self.q()), ("dk", self.k()), ("dv", self.v())];
        let made = gradients.map(|(name, dims)| match self.read_as {
            Some(dtype) => {
                let [heads, length, columns] = dims;
                b.virtual_tensor(name, dtype, &[self.batch, heads, length, columns])
            }
            None => self.tensor(&mut b, name, dims),
        });
        let [dq, dk, dv] = made;
        let dbias = self
            .mask
            .as_ref()
            .filter(|_| !self.truths)
            .map(|dims| b.buffer("dbias", self.dtype, dims));
        let op = SdpaBackward {
            scale,
            attn_mask,
            seq_len_q,
            seq_len_kv,
            dbias,
            alibi_mask: self.alibi,
            padding_mask: self.padding,
            causal_mask: self.causal[0],
            causal_mask_bottom_right: self.causal[1],
            attn_scale_value: self.scale.filter(|_| !self.scale_tensor),
            left_bound: self.left,
            right_bound: self.right,
            diagonal_alignment: self.alignment,
            ..SdpaBackward::new([q, k, v, o, d_o, stats], [dq, dk, dv])
        };
        b.node("sdpa", self.compute, Box::new(op));
        if self.read_as.is_some() {
            for (made, (name, dims)) in made.into_iter().zip(gradients) {
                let out = self.tensor(&mut b, &format!("{name}_read"), dims);
                b.pointwise(self.compute, PointwiseMode::Abs, &[made], out);
            }
        }
        b.build()
    }
}

/// Returns attentions of every kind that both directions support.
fn kinds() -> Vec<(String, Attention)> {
    use DiagonalAlignment::{BottomRight, TopLeft};
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention| kinds.push((name.to_owned(), attention));
    for dtype in FLOATS {
        let plain = Attention::new(2, 3, [16, 16], 32, dtype);
        add(&format!("plain_{dtype}"), plain.clone());
        add(&format!("causal_{dtype}"), plain.with(|op| op.right = Some(0)));
        add(&format!("gqa_{dtype}"), plain.with(|op| op.heads = [6, 2, 2]));
        add(
            &format!("mask_{dtype}"),
            plain.with(|op| op.mask = Some(vec![2, 3, 16, 16])),
        );
    }
    let plain = Attention::new(1, 2, [9, 13], 8, F32);
    add("odd", plain.clone());
    let double = Attention::new(1, 2, [9, 13], 8, DataType::F64).with(|op| op.compute = DataType::F64);
    add("f64", double.with(|op| op.right = Some(0)));
    add("mqa", plain.with(|op| op.heads = [4, 1, 1]));
    add("uneven_heads", plain.with(|op| op.heads = [4, 2, 1]));
    add("wider_values", plain.with(|op| op.columns = [8, 20]));
    add("no_scale", plain.with(|op| op.scale = None));
    add("scale_tensor", plain.with(|op| op.scale_tensor = true));
    add("bshd", plain.with(|op| op.interleaved = true));
    for (name, left, right) in [
        ("causal", None, Some(0)),
        ("window", Some(3), Some(2)),
        ("left", Some(2), None),
    ] {
        for (alignment, corner) in [(TopLeft, "top_left"), (BottomRight, "bottom_right")] {
            let bounded = plain.with(|op| (op.left, op.right, op.alignment) = (left, right, alignment));
            add(&format!("{name}_{corner}"), bounded.clone());
            // More queries than keys: aligned to the bottom right, some queries see no key.
            add(
                &format!("{name}_{corner}_short"),
                bounded.with(|op| op.lengths = [11, 6]),
            );
        }
    }
    for (name, mask) in [
        ("scores", vec![1, 2, 9, 13]),
        ("heads", vec![2, 1, 1]),
        ("keys", vec![13]),
    ] {
        add(&format!("mask_{name}"), plain.with(|op| op.mask = Some(mask)));
    }
    let both = plain.with(|op| (op.mask, op.right) = (Some(vec![9, 13]), Some(0)));
    add("mask_causal", both);
    for (name, hiding) in [("infinity", f64::NEG_INFINITY), ("nan", f64::NAN)] {
        let rows = plain.with(|op| op.flags = Some((vec![1, 2, 9, 1], hiding)));
        add(&format!("rows_of_{name}"), rows);
        let some = plain.with(|op| op.flags = Some((vec![1, 1, 9, 13], hiding)));
        add(&format!("some_of_{name}"), some);
    }
    add("padding", plain.with(|op| (op.batch, op.padding) = (3, true)));
    let padded = plain.with(|op| (op.batch, op.padding, op.right) = (2, true, Some(0)));
    add("padding_causal", padded);
    add(
        "alibi",
        plain.with(|op| (op.heads, op.alibi, op.right) = ([8; 3], true, Some(0))),
    );
    add(
        "alibi_six_heads",
        plain.with(|op| (op.heads, op.alibi, op.right) = ([6; 3], true, Some(0))),
    );
    add("causal_flag", plain.with(|op| op.causal = [true, false]));
    add("causal_bottom_right_flag", plain.with(|op| op.causal = [false, true]));
    // Sums and rows that are shorter than a matrix core's step.
    add(
        "short",
        Attention::new(2, 1, [3, 3], 5, F32).with(|op| op.columns = [5, 1]),
    );
    add("short_halves", Attention::new(2, 2, [9, 7], 12, DataType::F16));
    add("one_query", plain.with(|op| op.lengths = [1, 40]));
    add("one_key", plain.with(|op| op.lengths = [7, 1]));
    add("one_column", plain.with(|op| op.columns = [1, 1]));
    add("long", Attention::new(1, 1, [32, 200], 16, F32));
    kinds
}

/// Returns attentions of whole tiles, which use matrix instructions and one dispatch on AMD GPUs.
fn tiled() -> Vec<(String, Attention)> {
    use DiagonalAlignment::BottomRight;
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention| kinds.push((format!("tiled_{name}"), attention));
    for dtype in FLOATS {
        let plain = Attention::new(2, 2, [32, 48], 32, dtype);
        add(&format!("plain_{dtype}"), plain.clone());
        add(&format!("causal_{dtype}"), plain.with(|op| op.right = Some(0)));
        add(
            &format!("mask_{dtype}"),
            plain.with(|op| op.mask = Some(vec![2, 2, 32, 48])),
        );
        let empty = plain.with(|op| (op.lengths, op.right, op.alignment) = ([64, 32], Some(0), BottomRight));
        add(&format!("empty_rows_{dtype}"), empty);
    }
    let plain = Attention::new(2, 4, [32, 48], 32, DataType::F16);
    let causal = plain.with(|op| op.right = Some(0));
    for (name, heads) in [("gqa", [4, 2, 2]), ("mqa", [4, 1, 1]), ("uneven_heads", [4, 2, 1])] {
        add(name, plain.with(|op| op.heads = heads));
        add(&format!("{name}_causal"), causal.with(|op| op.heads = heads));
    }
    for (name, attention) in [("plain", &plain), ("causal", &causal)] {
        add(&format!("{name}_bshd"), attention.with(|op| op.interleaved = true));
        let gqa = attention.with(|op| (op.interleaved, op.heads) = (true, [4, 2, 2]));
        add(&format!("{name}_bshd_gqa"), gqa);
        add(&format!("{name}_one_batch"), attention.with(|op| op.batch = 1));
        add(&format!("{name}_one_head"), attention.with(|op| op.heads = [1; 3]));
        add(
            &format!("{name}_wider_values"),
            attention.with(|op| op.columns = [32, 64]),
        );
        add(
            &format!("{name}_256_columns"),
            attention.with(|op| (op.heads, op.columns) = ([1; 3], [256; 2])),
        );
        add(
            &format!("{name}_long"),
            attention.with(|op| (op.heads, op.lengths) = ([1; 3], [128, 256])),
        );
    }
    add(
        "window",
        plain.with(|op| (op.left, op.right, op.alignment) = (Some(20), Some(3), BottomRight)),
    );
    add("mask_causal", causal.with(|op| op.mask = Some(vec![32, 48])));
    add("mask_heads", plain.with(|op| op.mask = Some(vec![4, 1, 1])));
    add(
        "mask_keys_gqa",
        plain.with(|op| (op.mask, op.heads) = (Some(vec![2, 1, 1, 48]), [4, 2, 2])),
    );
    for (name, hiding) in [
        ("infinity", f64::NEG_INFINITY),
        ("nan", f64::NAN),
        ("least", f64::from(f32::MIN)),
    ] {
        let rows = plain.with(|op| op.flags = Some((vec![1, 4, 32, 1], hiding)));
        add(&format!("rows_of_{name}"), rows);
        let some = plain.with(|op| op.flags = Some((vec![1, 1, 32, 48], hiding)));
        add(&format!("some_of_{name}"), some);
    }
    kinds
}

/// Returns attentions that a CPU computes with one query per lane: several blocks of keys and
/// vectors of queries, with partial ones of both.
fn in_lanes() -> Vec<(String, Attention)> {
    use DiagonalAlignment::BottomRight;
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention| kinds.push((format!("lanes_{name}"), attention));
    for dtype in FLOATS {
        let plain = Attention::new(1, 2, [40, 150], 64, dtype);
        add(&format!("plain_{dtype}"), plain.clone());
        add(&format!("causal_{dtype}"), plain.with(|op| op.right = Some(0)));
    }
    let plain = Attention::new(2, 2, [33, 129], 16, F32);
    add("padding", plain.with(|op| op.padding = true));
    add(
        "gqa_bshd",
        plain.with(|op| (op.heads, op.interleaved) = ([4, 2, 2], true)),
    );
    add("mask_keys", plain.with(|op| op.mask = Some(vec![2, 1, 1, 129])));
    add("mask_queries", plain.with(|op| op.mask = Some(vec![2, 1, 33, 129])));
    for (name, left, right) in [("window", Some(20), Some(3)), ("bottom_right", None, Some(0))] {
        let bounded = plain.with(|op| (op.left, op.right, op.alignment) = (left, right, BottomRight));
        add(name, bounded.clone());
        add(&format!("{name}_short"), bounded.with(|op| op.lengths = [90, 20]));
    }
    // Most of the stack that a kernel may use, and all of it; columns in multiples of eight.
    for columns in [[80, 80], [192, 256], [40, 72]] {
        let [of_key, of_value] = columns;
        let wide = plain.with(|op| (op.batch, op.lengths, op.columns) = (1, [19, 70], columns));
        add(&format!("{of_key}x{of_value}"), wide);
    }
    kinds
}

/// Adds attentions, each with statistics and without.
pub(super) fn add(cases: &mut Cases, attentions: Vec<(String, Attention)>) {
    for (name, attention) in attentions {
        cases.add(format!("sdpa_{name}"), attention.forward(false));
        cases.add(format!("sdpa_stats_{name}"), attention.forward(true));
    }
}

pub(super) fn forward(cases: &mut Cases) {
    add(cases, kinds());
    add(cases, tiled());
    add(cases, in_lanes());
    for dtype in FLOATS {
        let op = Attention::new(2, 4, [8, 4], 16, dtype);
        let empty = op.with(|op| (op.right, op.alignment) = (Some(0), DiagonalAlignment::BottomRight));
        cases.add(format!("sdpa_empty_rows_{dtype}"), empty.forward(true));
        let sink = Attention::new(2, 4, [9, 10], 16, dtype).with(|op| op.sink = true);
        cases.add(format!("sdpa_sink_{dtype}"), sink.forward(true));
        let causal =
            sink.with(|op| (op.lengths, op.right, op.alignment) = ([8, 4], Some(0), DiagonalAlignment::BottomRight));
        cases.add(format!("sdpa_sink_of_empty_rows_{dtype}"), causal.forward(true));
    }
    // A batched matmul of 6 rows crashes IREE 3.13's compiler for gfx942, which is then run again
    // without the failing pipeline.
    let six = Attention::new(2, 4, [6, 10], 16, F32).with(|op| op.sink = true);
    cases.add("sdpa_sink_of_six_rows", six.forward(true));
}

pub(super) fn backward(cases: &mut Cases) {
    for (name, attention) in kinds() {
        cases.add(format!("sdpa_backward_{name}"), attention.backward());
    }
    for dtype in [DataType::F16, DataType::Bf16] {
        let long = Attention::new(2, 4, [64, 128], 64, dtype).with(|op| op.heads = [4, 2, 2]);
        cases.add(format!("sdpa_backward_long_{dtype}"), long.backward());
        let causal = long.with(|op| (op.columns, op.right) = ([128; 2], Some(0)));
        cases.add(format!("sdpa_backward_long_causal_{dtype}"), causal.backward());
    }
    for (name, attention) in in_lanes() {
        if attention.mask.is_none() {
            cases.add(format!("sdpa_backward_{name}"), attention.backward());
        }
    }
    for dtype in FLOATS {
        let long = Attention::new(2, 4, [300, 300], 64, dtype)
            .with(|op| (op.heads, op.right, op.padding) = ([4, 2, 2], Some(0), true));
        cases.add(format!("sdpa_backward_lanes_long_{dtype}"), long.backward());
    }
    // More heads share one key head than an AMD GPU sums in a lane, and their sum has one batch and
    // one head.
    let many = Attention::new(1, 40, [7, 9], 8, F32).with(|op| op.heads = [40, 1, 1]);
    cases.add("sdpa_backward_mqa_of_forty", many.backward());
}

/// Returns attentions that are a single kernel on an AMD GPU: 128 queries and keys in 16 bits, with
/// 64 and 128 columns and every supported option.
#[must_use]
pub fn flash_attention() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    for dtype in [DataType::F16, DataType::Bf16] {
        for columns in [64, 128] {
            let plain = Attention::new(2, 4, [128, 128], columns, dtype);
            cases.add(format!("sdpa_{columns}_{dtype}"), plain.forward(false));
            let masked = plain.with(|op| op.mask = Some(vec![2, 4, 128, 128]));
            cases.add(format!("sdpa_{columns}_mask_{dtype}"), masked.forward(false));
            let causal = plain.with(|op| op.right = Some(0));
            cases.add(format!("sdpa_{columns}_causal_{dtype}"), causal.forward(false));
        }
    }
    cases.0
}
