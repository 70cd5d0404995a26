//! Scaled dot-product attention as matrix product, softmax and matrix product.

use super::{Result, Translation};
use crate::network::Attribute;
use rotini_graph::{DiagonalAlignment, Sdpa};

/// Limit of the number of elements of a mask that is part of the model.
const MOST_MASK: i64 = 1 << 24;

impl Translation<'_> {
    pub(super) fn sdpa(&mut self, op: &Sdpa) -> Result<()> {
        expect_plain(op)?;
        let (&[batch, heads, queries, depth], &[_, key_heads, keys, _], &[_, value_heads, _, value_depth]) =
            (self.dims(op.q)?, self.dims(op.k)?, self.dims(op.v)?)
        else {
            return Err("ranks other than 4".to_owned());
        };
        if key_heads != value_heads {
            return Err("keys and values of other heads".to_owned());
        }
        let (mut q, mut k, mut v) = (self.dense(op.q)?, self.dense(op.k)?, self.dense(op.v)?);
        let mut rank = 4;
        let repeats = heads.checked_div(key_heads).ok_or("no heads")?;
        if repeats != 1 {
            // The query heads that share a key head become a separate axis, over which keys and
            // values are broadcast.
            q = self.reshaped(&q, &[batch, key_heads, repeats, queries, depth]);
            k = self.reshaped(&k, &[batch, key_heads, 1, keys, depth]);
            v = self.reshaped(&v, &[batch, key_heads, 1, keys, value_depth]);
            rank = 5;
        }
        let turned = self.fresh();
        let mut turn: Vec<i64> = (0..rank).collect();
        turn.swap(rank as usize - 2, rank as usize - 1);
        self.step("Transpose", &[&k], &turned, [("perm", Attribute::Integers(turn))]);
        let mut scores = self.then("MatMul", &[&q, &turned]);
        let scale = match (op.scale, op.attn_scale_value) {
            (Some(scale), _) => {
                let scale = self.dense(scale)?;
                Some(self.reshaped(&scale, &[1]))
            }
            (None, Some(1.0) | None) => None,
            (None, Some(scale)) => Some(self.float(scale)),
        };
        if let Some(scale) = scale {
            scores = self.then("Mul", &[&scores, &scale]);
        }
        if let Some(mask) = op.attn_mask {
            let mut dims = self.dims(mask)?.to_vec();
            let mut mask = self.dense(mask)?;
            if repeats != 1 {
                while dims.len() < 4 {
                    dims.insert(0, 1);
                }
                let &[batch, of_heads, rows, columns] = dims.as_slice() else {
                    return Err("a mask of more than 4 axes".to_owned());
                };
                let (outer, inner) = if of_heads == 1 { (1, 1) } else { (key_heads, repeats) };
                mask = self.reshaped(&mask, &[batch, outer, inner, rows, columns]);
            }
            scores = self.then("Add", &[&scores, &mask]);
        }
        if let Some(mask) = hidden(op, queries, keys)? {
            let mask = self.floats(&[queries, keys], mask);
            scores = self.then("Add", &[&scores, &mask]);
        }
        let weights = self.fresh();
        self.step("Softmax", &[&scores], &weights, [("axis", Attribute::Integer(-1))]);
        let mut product = self.then("MatMul", &[&weights, &v]);
        if op.attn_mask.is_some() {
            // A row whose keys are all masked is zero, whereas softmax gives NaN.
            let axes = self.integers(&[-1]);
            let greatest = self.then("ReduceMax", &[&scores, &axes]);
            let least = self.float(f32::NEG_INFINITY);
            let is_empty = self.then("Equal", &[&greatest, &least]);
            let zero = self.float(0.0);
            product = self.then("Where", &[&is_empty, &zero, &product]);
        }
        let o = self.define(op.o)?;
        if repeats == 1 {
            // The last step defines the output.
            if let Some(step) = self.network.steps.last_mut() {
                step.outputs = vec![o];
            }
        } else {
            let dims = self.integers(&[batch, heads, queries, value_depth]);
            self.step("Reshape", &[&product, &dims], &o, []);
        }
        Ok(())
    }
}

/// Returns the additive mask that hides keys beyond the diagonal; `None` if all keys are visible.
fn hidden(op: &Sdpa, queries: i64, keys: i64) -> Result<Option<Vec<f32>>> {
    let (left, right, alignment) = match (op.causal_mask, op.causal_mask_bottom_right) {
        (true, _) => (None, Some(0), DiagonalAlignment::TopLeft),
        (_, true) => (None, Some(0), DiagonalAlignment::BottomRight),
        _ => (
            op.left_bound.filter(|&bound| bound >= 0),
            op.right_bound.filter(|&bound| bound >= 0),
            op.diagonal_alignment,
        ),
    };
    if left.is_some() {
        return Err("a bound before the diagonal is not translated".to_owned());
    }
    let Some(right) = right else {
        return Ok(None);
    };
    let offset = match alignment {
        DiagonalAlignment::TopLeft => 0,
        DiagonalAlignment::BottomRight => keys - queries,
    };
    if offset + right < 0 {
        return Err("rows without any key are not translated".to_owned());
    }
    if queries.saturating_mul(keys) > MOST_MASK {
        return Err("the mask of the diagonal is too large".to_owned());
    }
    let sees = |query: i64, key: i64| key <= query.saturating_add(offset).saturating_add(right);
    let mask = (0..queries).flat_map(|query| (0..keys).map(move |key| (query, key)));
    let mask = mask.map(|(query, key)| if sees(query, key) { 0.0 } else { f32::NEG_INFINITY });
    Ok(Some(mask.collect()))
}

/// Fails if the attention has more than a scale, a mask and a diagonal.
fn expect_plain(op: &Sdpa) -> Result<()> {
    let others = [
        op.seq_len_q,
        op.seq_len_kv,
        op.seed,
        op.offset,
        op.dropout_mask,
        op.dropout_scale,
        op.page_table_k,
        op.page_table_v,
        op.block_mask,
        op.sink_token,
        op.descale_q,
        op.descale_k,
        op.descale_v,
        op.descale_s,
        op.scale_s,
        op.scale_o,
        op.stats,
        op.max,
        op.sum_exp,
        op.rng_dump,
        op.amax_s,
        op.amax_o,
    ];
    let is_plain = others.iter().all(Option::is_none)
        && !op.alibi_mask
        && !op.padding_mask
        && op.generate_stats != Some(true)
        && op.dropout_probability.is_none_or(|probability| probability == 0.0)
        && op.max_seq_len_kv.is_none()
        && op.mma_core_mode.is_none();
    if is_plain {
        Ok(())
    } else {
        Err("more than a scale, a mask and a diagonal is not translated".to_owned())
    }
}
