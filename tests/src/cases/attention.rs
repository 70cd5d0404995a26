//! Scaled dot-product attention, forward and backward.

use super::{Cases, FLOATS};
use rotini_graph::{
    AttentionImplementation, DataType, DiagonalAlignment, Graph, GraphBuilder, Scalar, Sdpa, TensorId, TensorKind,
};

const F32: DataType = DataType::F32;

/// An attention with everything that both directions know.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    batch: i64,
    /// Heads of q, of k and of v.
    heads: [i64; 3],
    /// Queries and keys.
    pub(super) lengths: [i64; 2],
    /// Columns of q and k, and of v.
    columns: [i64; 2],
    dtype: DataType,
    /// Compute type.
    pub(super) compute: DataType,
    /// Dims of an additive mask.
    mask: Option<Vec<i64>>,
    /// Factor on the scores.
    scale: Option<f32>,
    /// Whether the factor is in a tensor.
    pub(super) scale_tensor: bool,
    left: Option<i64>,
    pub(super) right: Option<i64>,
    pub(super) alignment: DiagonalAlignment,
    pub(super) padding: bool,
    pub(super) alibi: bool,
    /// Whether heads lie next to each other in memory: B, S, H, D.
    interleaved: bool,
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
            scale: Some(0.25),
            scale_tensor: false,
            left: None,
            right: None,
            alignment: DiagonalAlignment::TopLeft,
            padding: false,
            alibi: false,
            interleaved: false,
        }
    }

    pub(super) fn with(&self, set: impl FnOnce(&mut Self)) -> Self {
        let mut attention = self.clone();
        set(&mut attention);
        attention
    }

    /// A tensor of heads, lengths and columns.
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

    fn scale_id(&self, b: &mut GraphBuilder) -> Option<TensorId> {
        let value = self.scale.filter(|_| self.scale_tensor)?;
        Some(b.constant("scale", F32, &[1, 1, 1, 1], Scalar::float(value.into())))
    }

    fn sequence_lengths(&self, b: &mut GraphBuilder) -> [Option<TensorId>; 2] {
        ["seq_len_q", "seq_len_kv"].map(|name| {
            self.padding
                .then(|| b.buffer(name, DataType::I32, &[self.batch, 1, 1, 1]))
        })
    }

    pub(super) fn forward(&self, with_stats: bool) -> Graph {
        let mut b = GraphBuilder::new("sdpa");
        let [q, k, v] =
            [("q", self.q()), ("k", self.k()), ("v", self.v())].map(|(name, dims)| self.tensor(&mut b, name, dims));
        let attn_mask = self.mask.as_ref().map(|dims| b.buffer("mask", self.dtype, dims));
        let scale = self.scale_id(&mut b);
        let [seq_len_q, seq_len_kv] = self.sequence_lengths(&mut b);
        let o = self.tensor(&mut b, "o", self.o());
        let stats = with_stats.then(|| self.statistic(&mut b, "stats"));
        let op = Sdpa {
            q,
            k,
            v,
            attn_mask,
            scale,
            seq_len_q,
            seq_len_kv,
            seed: None,
            offset: None,
            dropout_mask: None,
            dropout_scale: None,
            page_table_k: None,
            page_table_v: None,
            block_mask: None,
            sink_token: None,
            descale_q: None,
            descale_k: None,
            descale_v: None,
            descale_s: None,
            scale_s: None,
            scale_o: None,
            o,
            stats,
            max: None,
            sum_exp: None,
            rng_dump: None,
            amax_s: None,
            amax_o: None,
            generate_stats: with_stats.then_some(true),
            alibi_mask: self.alibi,
            padding_mask: self.padding,
            causal_mask: false,
            causal_mask_bottom_right: false,
            dropout_probability: None,
            attn_scale_value: self.scale.filter(|_| !self.scale_tensor),
            left_bound: self.left,
            right_bound: self.right,
            max_seq_len_kv: None,
            diagonal_alignment: self.alignment,
            mma_core_mode: None,
            implementation: AttentionImplementation::Auto,
        };
        b.node("sdpa", self.compute, Box::new(op));
        b.build()
    }
}

/// Attentions of every kind.
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
            // More queries than keys: from the bottom right some see nothing.
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
    add("one_query", plain.with(|op| op.lengths = [1, 40]));
    add("one_key", plain.with(|op| op.lengths = [7, 1]));
    add("one_column", plain.with(|op| op.columns = [1, 1]));
    add("long", Attention::new(1, 1, [32, 200], 16, F32));
    kinds
}

pub(super) fn forward(cases: &mut Cases) {
    for (name, attention) in kinds() {
        cases.add(format!("sdpa_{name}"), attention.forward(false));
        cases.add(format!("sdpa_stats_{name}"), attention.forward(true));
    }
    for dtype in FLOATS {
        let op = Attention::new(2, 4, [8, 4], 16, dtype);
        let empty = op.with(|op| (op.right, op.alignment) = (Some(0), DiagonalAlignment::BottomRight));
        cases.add(format!("sdpa_empty_rows_{dtype}"), empty.forward(true));
    }
}
