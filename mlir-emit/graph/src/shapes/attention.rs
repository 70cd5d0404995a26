//! Scaled dot-product attention, forward and backward.

use crate::op::{AttentionScores, DiagonalAlignment, Sdpa, SdpaBackward};
use crate::{DataType, Graph, GraphError, TensorId, broadcast_dims};

/// The extents of an attention.
struct Extents {
    b: i64,
    h: i64,
    k_heads: i64,
    v_heads: i64,
    sq: i64,
    dv: i64,
}

impl Graph {
    /// Checks the operands of attention. q: B, H, Sq, D; k: B, Hk, Skv, D; v: B, Hv, Skv, Dv; o: B,
    /// H, Sq, Dv; statistics: B, H, Sq, 1.
    pub(crate) fn check_sdpa(&self, position: usize, op: &Sdpa) -> Result<(), GraphError> {
        if op.page_table_k.is_some() || op.page_table_v.is_some() {
            // With page tables, k and v are pages, whose shapes follow from the tables.
            return Ok(());
        }
        let extents = self.check_attention(position, &op.scores())?;
        let Extents { b, h, sq, dv, .. } = extents;
        if op.generate_stats == Some(true) && op.stats.is_none() {
            return Err(self.attribute(position, "generate_stats is set, but there is no stats tensor"));
        }
        for id in [op.stats, op.max, op.sum_exp].into_iter().flatten() {
            self.check_attention_statistics(position, id, &extents)?;
        }
        if let Some(sink) = op.sink_token {
            self.check_exactly(position, sink, &[1, h, 1, 1])?;
        }
        for (descale, heads) in [
            (op.descale_q, extents.k_heads),
            (op.descale_k, extents.k_heads),
            (op.descale_v, extents.v_heads),
        ] {
            let Some(tensor) = descale.and_then(|id| self.tensor(id)) else {
                continue;
            };
            if tensor.dims.iter().any(|&dim| dim != 1) && tensor.dims != [b, heads, 1, 1] {
                return Err(self.not_dims(position, tensor, &[b, heads, 1, 1]));
            }
        }
        let singles = [op.descale_s, op.scale_s, op.scale_o, op.amax_s, op.amax_o];
        for single in singles.into_iter().flatten() {
            self.check_single(position, single)?;
        }
        self.shape(position, self.at(op.o), vec![b, h, sq, dv])
    }

    /// Checks the operands of the gradients of attention. Each gradient has the dims of its tensor;
    /// o and its gradient: B, H, Sq, Dv; statistics: B, H, Sq, 1.
    pub(crate) fn check_sdpa_backward(&self, position: usize, op: &SdpaBackward) -> Result<(), GraphError> {
        let extents = self.check_attention(position, &op.scores())?;
        for id in [op.o, op.d_o] {
            self.check_exactly(position, id, &[extents.b, extents.h, extents.sq, extents.dv])?;
        }
        self.check_attention_statistics(position, op.stats, &extents)?;
        if op.dbias.is_some() && op.attn_mask.is_none() {
            return Err(self.attribute(position, "dbias is the gradient of an attn_mask that is not given"));
        }
        let gradients = [(op.q, op.dq), (op.k, op.dk), (op.v, op.dv)];
        for (of, gradient) in gradients.into_iter().chain(op.attn_mask.zip(op.dbias)) {
            self.shape(position, self.at(gradient), self.at(of).dims.clone())?;
        }
        Ok(())
    }

    fn check_attention(&self, position: usize, op: &AttentionScores) -> Result<Extents, GraphError> {
        let [q, k, v] = [op.q, op.k, op.v].map(|id| self.at(id));
        let (&[b, h, sq, d], &[k_b, k_heads, skv, k_d], &[v_b, v_heads, v_s, dv]) =
            (q.dims.as_slice(), k.dims.as_slice(), v.dims.as_slice())
        else {
            let ranks = [q, k, v].map(|tensor| tensor.dims.len());
            let what = format!("ranks of q, k and v are {ranks:?}, but must be 4");
            return Err(self.attribute(position, what));
        };
        if k_b != b || k_d != d {
            return Err(self.not_dims(position, k, &[b, k_heads, skv, d]));
        }
        if v_b != b || v_s != skv {
            return Err(self.not_dims(position, v, &[b, v_heads, skv, dv]));
        }
        for (tensor, heads) in [(k, k_heads), (v, v_heads)] {
            if h % heads != 0 {
                let what = format!("{h} heads of {q} are no multiple of the {heads} heads of {tensor}");
                return Err(self.attribute(position, what));
            }
        }
        let scores = [b, h, sq, skv];
        if let Some(mask) = op.attn_mask.and_then(|id| self.tensor(id)) {
            let broadcasts = broadcast_dims(&mask.dims, &scores).as_deref() == Some(&scores);
            if mask.dims.len() > 4 || !broadcasts {
                let what = format!("{mask} with dims {:?} does not broadcast to {scores:?}", mask.dims);
                return Err(self.attribute(position, what));
            }
        }
        if let Some(mask) = op.dropout_mask.and_then(|id| self.tensor(id)) {
            let fits = matches!(mask.dims.as_slice(), &[mask_b, mask_h, mask_q, mask_kv]
                if (mask_b == 1 || mask_b == b) && (mask_h == 1 || mask_h == h) && mask_q == sq && mask_kv == skv);
            if !fits {
                return Err(self.not_dims(position, mask, &scores));
            }
        }
        if let Some(scale) = op.scale {
            if op.attn_scale_value.is_some() {
                let what = "attn_scale_value and a scale tensor exclude each other";
                return Err(self.contradiction(position, what));
            }
            self.check_single(position, scale)?;
        }
        self.check_padding(position, op, b)?;
        self.check_diagonal(position, op)?;
        Ok(Extents {
            b,
            h,
            k_heads,
            v_heads,
            sq,
            dv,
        })
    }

    fn check_padding(&self, position: usize, op: &AttentionScores, batch: i64) -> Result<(), GraphError> {
        if op.padding_mask && (op.seq_len_q.is_none() || op.seq_len_kv.is_none()) {
            let what = "a padding mask needs seq_len_q and seq_len_kv";
            return Err(self.attribute(position, what));
        }
        for id in [op.seq_len_q, op.seq_len_kv].into_iter().flatten() {
            self.check_exactly(position, id, &[batch, 1, 1, 1])?;
            if let Some(lengths) = self.tensor(id).filter(|tensor| tensor.dtype != DataType::I32) {
                let what = format!("{lengths} has type {}, but sequence lengths are i32", lengths.dtype);
                return Err(self.attribute(position, what));
            }
        }
        Ok(())
    }

    /// Checks bounds and alignment. A bound of -1 means no bound. The deprecated flags define both
    /// the alignment and the bounds, as in hipDNN's `PlanUtils.hpp`.
    fn check_diagonal(&self, position: usize, op: &AttentionScores) -> Result<(), GraphError> {
        for (name, bound) in [("left_bound", op.left_bound), ("right_bound", op.right_bound)] {
            if let Some(bound) = bound.filter(|&bound| bound < -1) {
                return Err(self.attribute(position, format!("{name} {bound} is below -1")));
            }
        }
        let contradiction = if op.causal_mask && op.causal_mask_bottom_right {
            "causal_mask and causal_mask_bottom_right exclude each other"
        } else if (op.causal_mask || op.causal_mask_bottom_right)
            && (op.left_bound.is_some() || op.right_bound.is_some())
        {
            "a deprecated causal mask excludes left_bound and right_bound"
        } else if op.causal_mask && op.diagonal_alignment == DiagonalAlignment::BottomRight {
            "causal_mask is aligned to the top left, not to the bottom right"
        } else {
            return Ok(());
        };
        Err(self.contradiction(position, contradiction))
    }

    /// Checks a statistic with one value per row of scores. The trailing 1 may be missing, as in
    /// hipDNN's first versions.
    fn check_attention_statistics(
        &self,
        position: usize,
        id: TensorId,
        &Extents { b, h, sq, .. }: &Extents,
    ) -> Result<(), GraphError> {
        match self.tensor(id) {
            Some(tensor) if tensor.dims != [b, h, sq, 1] && tensor.dims != [b, h, sq] => {
                Err(self.not_dims(position, tensor, &[b, h, sq, 1]))
            }
            _ => Ok(()),
        }
    }

    fn check_exactly(&self, position: usize, id: TensorId, wanted: &[i64]) -> Result<(), GraphError> {
        match self.tensor(id) {
            Some(tensor) if tensor.dims != wanted => Err(self.not_dims(position, tensor, wanted)),
            _ => Ok(()),
        }
    }
}
