//! Grouped matmuls: each row of tokens is multiplied by the matrix of its expert.
//!
//! Routing follows `CpuFpReferenceMoeGroupedMatmul.hpp` and `CpuFpReferenceMoeGroupedMatmulBwd.hpp`
//! of hipDNN; inputs that these refuse are refused here too.

use crate::ReferenceError;
use crate::context::Context;
use crate::matmul::{Contraction, Product, contract};
use crate::value::Value;
use rotini_graph::{MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, TensorId};
use std::ops::Range;

/// Computes output\[0, d, n\] = sum over k of token\[0, s, k\] weight\[e, k, n\], for each routed
/// row r of group g, with the expert e = g modulo the number of experts. Output rows that no row is
/// routed to are zero.
///
/// | Mode | source s | destination d |
/// |---|---|---|
/// | NONE | r | r |
/// | GATHER | token_index\[r\] | r |
/// | SCATTER | r | token_index\[r\] top_k + token_ks\[r\] |
pub(crate) fn grouped_matmul(context: &Context<'_>, op: &MoeGroupedMatmul) -> Result<Value, ReferenceError> {
    let (token, weight, dims) = (
        context.dims(op.token)?,
        context.dims(op.weight)?,
        context.dims(op.output)?,
    );
    let wrong = || ReferenceError::not_validated(format!("tokens {token:?} by experts {weight:?} to {dims:?}"));
    let (&[_, tokens, inner], &[experts, _, columns], &[_, outputs, _]) =
        (token.as_slice(), weight.as_slice(), dims.as_slice())
    else {
        return Err(wrong());
    };
    let list = |id: Option<TensorId>| id.map(|id| context.positions(id)).transpose();
    let (index, ks) = (list(op.token_index)?, list(op.token_ks)?);
    let routed = index.as_ref().map_or(tokens, Vec::len);
    let mut matrices = vec![None; outputs];
    for (group, rows) in groups(context, op.first_token_offset, routed)?.into_iter().enumerate() {
        for row in rows {
            let at = |list: &Option<Vec<i64>>| list.as_ref().and_then(|list| list.get(row).copied());
            let (source, destination) = match op.mode {
                MoeMode::None => (Some(row), Some(row)),
                MoeMode::Gather => (at(&index).and_then(|row| usize::try_from(row).ok()), Some(row)),
                MoeMode::Scatter => {
                    let slot = at(&ks).filter(|slot| (0..i64::from(op.top_k)).contains(slot));
                    let destination = at(&index)
                        .zip(slot)
                        .map(|(index, slot)| index * i64::from(op.top_k) + slot);
                    (Some(row), destination.and_then(|row| usize::try_from(row).ok()))
                }
            };
            let slot = destination.and_then(|destination| matrices.get_mut(destination));
            let (Some(source), Some(slot @ None)) = (source.filter(|&source| source < tokens), slot) else {
                return Err(
                    context.unsupported(format!("row {row}, which is routed nowhere or to a row that is taken"))
                );
            };
            *slot = Some((source, group % experts));
        }
    }
    let product = Product {
        rows: 1,
        inner,
        columns,
        matrices,
    };
    contract(context, &product, op.token, op.weight, dims)
}

/// Computes dweight\[e, k, n\] = sum over the rows r of expert e of token\[0, r, k\] doutput\[0, r,
/// n\].
pub(crate) fn grouped_matmul_bwd(context: &Context<'_>, op: &MoeGroupedMatmulBwd) -> Result<Value, ReferenceError> {
    let (token, dims) = (context.dims(op.token)?, context.dims(op.dweight)?);
    let (&[_, tokens, _], &[_, inner, columns]) = (token.as_slice(), dims.as_slice()) else {
        return Err(ReferenceError::not_validated(format!("tokens {token:?} to {dims:?}")));
    };
    let groups = groups(context, op.first_token_offset, tokens)?;
    if groups.first().is_some_and(|rows| rows.start != 0) {
        return Err(context.unsupported("rows before those of the first expert"));
    }
    let outer = Outer { groups, inner, columns };
    contract(context, &outer, op.token, op.doutput, dims)
}

/// The sum of outer products over each group of rows.
struct Outer {
    groups: Vec<Range<usize>>,
    inner: usize,
    columns: usize,
}

impl Contraction for Outer {
    fn terms(&self) -> usize {
        self.groups.iter().map(ExactSizeIterator::len).max().unwrap_or_default()
    }

    fn sums<T: Copy, S: Copy>(&self, a: &[T], b: &[T], zero: S, add: impl Fn(S, T, T) -> S) -> Vec<S> {
        let mut result = Vec::with_capacity(self.groups.len() * self.inner * self.columns);
        for group in &self.groups {
            let mut sums = vec![zero; self.inner * self.columns];
            let rows = a.chunks_exact(self.inner).zip(b.chunks_exact(self.columns));
            for (left, right) in rows.skip(group.start).take(group.len()) {
                for (sums, &factor) in sums.chunks_exact_mut(self.columns).zip(left) {
                    for (sum, &element) in sums.iter_mut().zip(right) {
                        *sum = add(*sum, factor, element);
                    }
                }
            }
            result.extend(sums);
        }
        result
    }
}

/// Returns the rows of each group: from its offset to the next group's, or to the end.
fn groups(context: &Context<'_>, offsets: TensorId, rows: usize) -> Result<Vec<Range<usize>>, ReferenceError> {
    let mut starts: Vec<usize> = context
        .positions(offsets)?
        .into_iter()
        .map(|offset| usize::try_from(offset).ok())
        .collect::<Option<_>>()
        .ok_or_else(|| context.unsupported("a negative offset of a group"))?;
    starts.push(rows);
    if !starts.is_sorted() {
        return Err(context.unsupported("offsets of groups that fall or go beyond the rows"));
    }
    Ok(starts
        .iter()
        .zip(starts.iter().skip(1))
        .map(|(&start, &end)| start..end)
        .collect())
}
