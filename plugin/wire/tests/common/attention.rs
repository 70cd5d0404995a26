//! Scaled dot-product attention, forward and backward.

use super::Generator;
use rand::RngExt;
use rotini_graph::*;

const LENGTHS: [DataType; 1] = [DataType::I32];
const ALIGNMENTS: [DiagonalAlignment; 2] = [DiagonalAlignment::TopLeft, DiagonalAlignment::BottomRight];

/// The extents of an attention.
#[derive(Clone, Copy)]
struct Extents {
    b: i64,
    /// Heads of q, k and v.
    heads: [i64; 3],
    sq: i64,
    skv: i64,
    d: i64,
    dv: i64,
}

impl Extents {
    fn q(&self) -> Vec<i64> {
        vec![self.b, self.heads[0], self.sq, self.d]
    }

    fn k(&self) -> Vec<i64> {
        vec![self.b, self.heads[1], self.skv, self.d]
    }

    fn v(&self) -> Vec<i64> {
        vec![self.b, self.heads[2], self.skv, self.dv]
    }

    fn o(&self) -> Vec<i64> {
        vec![self.b, self.heads[0], self.sq, self.dv]
    }

    fn scores(&self) -> [i64; 4] {
        [self.b, self.heads[0], self.sq, self.skv]
    }
}

/// Masking by position, in one of several mutually exclusive ways.
struct Diagonal {
    causal: bool,
    causal_bottom_right: bool,
    left: Option<i64>,
    right: Option<i64>,
    alignment: DiagonalAlignment,
}

impl Generator {
    fn attention(&mut self) -> Extents {
        let q = self.dims_of(4..=4);
        Extents {
            b: q[0],
            heads: [q[1], self.divisor(q[1]), self.divisor(q[1])],
            sq: q[2],
            skv: self.rng.random_range(1..=4),
            d: q[3],
            dv: self.rng.random_range(1..=4),
        }
    }

    fn diagonal(&mut self) -> Diagonal {
        let mut diagonal = Diagonal {
            causal: false,
            causal_bottom_right: false,
            left: None,
            right: None,
            alignment: self.pick(&ALIGNMENTS),
        };
        match self.rng.random_range(0..3) {
            0 => {
                diagonal.causal = true;
                diagonal.alignment = DiagonalAlignment::TopLeft;
            }
            1 => diagonal.causal_bottom_right = true,
            _ => {
                diagonal.left = self.bound();
                diagonal.right = self.bound();
            }
        }
        diagonal
    }

    /// Returns a random bound; -1 means no bound.
    fn bound(&mut self) -> Option<i64> {
        let long = self.long();
        self.flag().then(|| self.pick(&[-1, 0, 1, long]))
    }

    /// Returns the scale of the scores, as a tensor or a value.
    fn factor(&mut self) -> (Option<TensorId>, Option<f32>) {
        if self.rng.random() {
            let dims = self.single();
            (self.maybe_input_of(dims), None)
        } else {
            (None, self.maybe_float())
        }
    }

    /// Returns a mask that broadcasts to the scores.
    fn mask(&mut self, scores: &[i64]) -> Option<TensorId> {
        let missing = self.rng.random_range(0..4);
        let dims = scores[missing..]
            .iter()
            .map(|&extent| if self.rng.random() { 1 } else { extent })
            .collect();
        self.maybe_input_of(dims)
    }

    fn dropout_mask(&mut self, scores: &[i64]) -> Option<TensorId> {
        let mut dims = scores.to_vec();
        for extent in &mut dims[..2] {
            *extent = self.pick(&[1, *extent]);
        }
        self.maybe_input_of(dims)
    }

    fn lengths(&mut self, batch: i64) -> Option<TensorId> {
        self.flag().then(|| self.input_among(vec![batch, 1, 1, 1], &LENGTHS))
    }

    /// Returns the dims of a statistic per row of scores, with or without a last extent of 1.
    fn row_statistic(&mut self, extents: &Extents) -> Vec<i64> {
        let mut dims = extents.scores().to_vec();
        dims[3] = 1;
        dims.truncate(self.rng.random_range(3..=4));
        dims
    }

    fn maybe_row_statistic(&mut self, extents: &Extents) -> Option<TensorId> {
        let dims = self.row_statistic(extents);
        self.maybe_output_of(dims)
    }

    fn maybe_single(&mut self) -> Option<TensorId> {
        let dims = self.single();
        self.maybe_input_of(dims)
    }

    fn maybe_single_output(&mut self) -> Option<TensorId> {
        let dims = self.single();
        self.maybe_output_of(dims)
    }

    /// Returns one scale, or one per head.
    fn descale(&mut self, batch: i64, heads: i64) -> Option<TensorId> {
        if self.rng.random() {
            self.maybe_single()
        } else {
            self.maybe_input_of(vec![batch, heads, 1, 1])
        }
    }

    pub(super) fn sdpa(&mut self) -> Sdpa {
        let extents = self.attention();
        let (scores, Extents { b, heads, .. }) = (extents.scores(), extents);
        let diagonal = self.diagonal();
        let (scale, attn_scale_value) = self.factor();
        let (seq_len_q, seq_len_kv) = (self.lengths(b), self.lengths(b));
        // With page tables, validation does not check the dims of k and v.
        let is_paged = self.full || self.rng.random_bool(0.2);
        let stats = self.maybe_row_statistic(&extents);
        Sdpa {
            q: self.input_of(extents.q()),
            k: self.input_of(extents.k()),
            v: self.input_of(extents.v()),
            attn_mask: self.mask(&scores),
            scale,
            seq_len_q,
            seq_len_kv,
            seed: self.maybe_input(),
            offset: self.maybe_input(),
            dropout_mask: self.dropout_mask(&scores),
            dropout_scale: self.maybe_input(),
            page_table_k: is_paged.then(|| self.maybe_input()).flatten(),
            page_table_v: is_paged.then(|| self.maybe_input()).flatten(),
            block_mask: self.maybe_input(),
            sink_token: self.maybe_input_of(vec![1, heads[0], 1, 1]),
            descale_q: self.descale(b, heads[1]),
            descale_k: self.descale(b, heads[1]),
            descale_v: self.descale(b, heads[2]),
            descale_s: self.maybe_single(),
            scale_s: self.maybe_single(),
            scale_o: self.maybe_single(),
            o: self.output_of(extents.o()),
            stats,
            max: self.maybe_row_statistic(&extents),
            sum_exp: self.maybe_row_statistic(&extents),
            rng_dump: self.maybe_output(),
            amax_s: self.maybe_single_output(),
            amax_o: self.maybe_single_output(),
            generate_stats: self.flag().then(|| stats.is_some() && self.flag()),
            alibi_mask: self.flag(),
            padding_mask: seq_len_q.is_some() && seq_len_kv.is_some() && self.flag(),
            causal_mask: diagonal.causal,
            causal_mask_bottom_right: diagonal.causal_bottom_right,
            dropout_probability: self.maybe_float(),
            attn_scale_value,
            left_bound: diagonal.left,
            right_bound: diagonal.right,
            max_seq_len_kv: self.flag().then(|| self.rng.random()),
            diagonal_alignment: diagonal.alignment,
            mma_core_mode: self.flag().then(|| self.dtype()),
            implementation: self.pick(&[
                AttentionImplementation::Auto,
                AttentionImplementation::Composite,
                AttentionImplementation::Unified,
            ]),
        }
    }

    pub(super) fn sdpa_backward(&mut self) -> SdpaBackward {
        let extents = self.attention();
        let (scores, b) = (extents.scores(), extents.b);
        let diagonal = self.diagonal();
        let (scale, attn_scale_value) = self.factor();
        let (seq_len_q, seq_len_kv) = (self.lengths(b), self.lengths(b));
        let attn_mask = self.mask(&scores);
        let mask_dims = attn_mask.map(|mask| self.graph.tensors[mask.index()].dims.clone());
        let stats = self.row_statistic(&extents);
        SdpaBackward {
            q: self.input_of(extents.q()),
            k: self.input_of(extents.k()),
            v: self.input_of(extents.v()),
            o: self.input_of(extents.o()),
            d_o: self.input_of(extents.o()),
            stats: self.input_of(stats),
            scale,
            attn_mask,
            seq_len_q,
            seq_len_kv,
            seed: self.maybe_input(),
            offset: self.maybe_input(),
            dropout_mask: self.dropout_mask(&scores),
            dropout_scale: self.maybe_input(),
            dropout_scale_inv: self.maybe_input(),
            dq: self.output_of(extents.q()),
            dk: self.output_of(extents.k()),
            dv: self.output_of(extents.v()),
            dbias: mask_dims.and_then(|dims| self.maybe_output_of(dims)),
            alibi_mask: self.flag(),
            padding_mask: seq_len_q.is_some() && seq_len_kv.is_some() && self.flag(),
            causal_mask: diagonal.causal,
            causal_mask_bottom_right: diagonal.causal_bottom_right,
            dropout_probability: self.maybe_float(),
            attn_scale_value,
            left_bound: diagonal.left,
            right_bound: diagonal.right,
            diagonal_alignment: diagonal.alignment,
        }
    }
}
