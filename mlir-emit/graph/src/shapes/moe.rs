//! Shapes of the grouped matmuls of mixtures of experts.

use crate::op::{MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode};
use crate::{DataType, Graph, GraphError, Tensor};

impl Graph {
    /// Checks a grouped matmul. token: 1, tokens, K; weight: E, K, N; first_token_offset: a
    /// multiple of E, 1, 1; output: 1, rows, N. The rows are the tokens, or in GATHER mode the
    /// entries of token_index.
    pub(crate) fn check_moe_grouped_matmul(&self, position: usize, op: &MoeGroupedMatmul) -> Result<(), GraphError> {
        let [token, weight] = [op.token, op.weight].map(|id| self.at(id));
        let [offset, output] = [op.first_token_offset, op.output].map(|id| self.at(id));
        let ([1, tokens, inner], [experts, weight_inner, columns]) = (token.dims.as_slice(), weight.dims.as_slice())
        else {
            let what = format!(
                "token and weight have dims {:?} and {:?}, but must have rank 3 and token one batch",
                token.dims, weight.dims
            );
            return Err(self.attribute(position, what));
        };
        if inner != weight_inner {
            let what = format!("{token} has {inner} columns, but {weight} has {weight_inner} rows");
            return Err(self.contradiction(position, what));
        }
        self.check_offsets(position, offset)?;
        if offset.dims.first().is_none_or(|groups| groups % experts != 0) {
            let what = format!(
                "{offset} has dims {:?}, which is no multiple of {experts} experts",
                offset.dims
            );
            return Err(self.attribute(position, what));
        }
        let (needs_index, needs_ks) = match op.mode {
            MoeMode::None => (false, false),
            MoeMode::Gather => (true, false),
            MoeMode::Scatter => (true, true),
        };
        let mut rows = *tokens;
        for (name, id, needed) in [
            ("token_index", op.token_index, needs_index),
            ("token_ks", op.token_ks, needs_ks),
        ] {
            if id.is_some() != needed {
                let what = format!("{:?} {} {name}", op.mode, if needed { "needs" } else { "has no" });
                return Err(self.attribute(position, what));
            }
            let Some(routing) = id.map(|id| self.at(id)) else {
                continue;
            };
            let [1, routed, 1] = routing.dims.as_slice() else {
                let what = format!("{routing} has dims {:?}, but must have 1, rows, 1", routing.dims);
                return Err(self.attribute(position, what));
            };
            self.check_routing_type(position, routing)?;
            if op.mode == MoeMode::Gather {
                rows = *routed;
            } else if routed != tokens {
                let what = format!("{routing} has {routed} rows, but there are {tokens} tokens");
                return Err(self.attribute(position, what));
            }
        }
        let in_range = match op.mode {
            MoeMode::None | MoeMode::Gather => op.top_k == 0,
            MoeMode::Scatter => op.top_k > 0 && i64::from(op.top_k) <= *experts,
        };
        if !in_range {
            let what = format!(
                "top_k {} does not go with {:?} over {experts} experts",
                op.top_k, op.mode
            );
            return Err(self.attribute(position, what));
        }
        self.shape(position, output, vec![1, rows, *columns])
    }

    /// Checks the gradient of a grouped matmul. doutput: 1, tokens, N; token: 1, tokens, K;
    /// first_token_offset: E, 1, 1; dweight: E, K, N.
    pub(crate) fn check_moe_grouped_matmul_bwd(
        &self,
        position: usize,
        op: &MoeGroupedMatmulBwd,
    ) -> Result<(), GraphError> {
        let [doutput, token] = [op.doutput, op.token].map(|id| self.at(id));
        let [offset, dweight] = [op.first_token_offset, op.dweight].map(|id| self.at(id));
        let ([1, rows, columns], [1, tokens, inner]) = (doutput.dims.as_slice(), token.dims.as_slice()) else {
            let what = format!(
                "doutput and token have dims {:?} and {:?}, but must have rank 3 and one batch",
                doutput.dims, token.dims
            );
            return Err(self.attribute(position, what));
        };
        if rows != tokens {
            let what = format!("{doutput} has {rows} rows, but {token} has {tokens}");
            return Err(self.contradiction(position, what));
        }
        self.check_offsets(position, offset)?;
        let experts = offset.dims.first().copied().unwrap_or_default();
        self.shape(position, dweight, vec![experts, *inner, *columns])
    }

    fn check_offsets(&self, position: usize, offset: &Tensor) -> Result<(), GraphError> {
        let [_, 1, 1] = offset.dims.as_slice() else {
            let what = format!("{offset} has dims {:?}, but must have groups, 1, 1", offset.dims);
            return Err(self.attribute(position, what));
        };
        self.check_routing_type(position, offset)
    }

    fn check_routing_type(&self, position: usize, tensor: &Tensor) -> Result<(), GraphError> {
        if tensor.dtype == DataType::I32 {
            return Ok(());
        }
        Err(self.attribute(position, format!("{tensor} has type {}, but must be i32", tensor.dtype)))
    }
}
