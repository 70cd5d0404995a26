//! Declined attention: cases that no reference of hipDNN defines, and unsupported ones.

use super::{CONSTANT, Declined, F32, FLOAT_IN_I32, I8, I32, IN_I8, single, with_constant};
use crate::cases::attention::Attention;
use rotini_graph::{DataType, DiagonalAlignment, Graph, Op, Sdpa, SdpaBackward, TensorId};

const DROPOUT: &str = "dropout is not supported";
const PAGED: &str = "paged keys and values are not supported";
const EIGHT_BITS: &str = "scales of 8-bit floats are not supported";
const LENGTHS: &str = "sequence lengths without padding_mask";

/// More positions than f32 distinguishes.
const TOO_LONG: i64 = (1 << 24) + 1;

impl Declined {
    pub(super) fn sdpa(&mut self) {
        type Field = fn(&mut Sdpa) -> &mut Option<TensorId>;
        let node = "node 'sdpa' (SDPA)";
        let plain = smallest(F32);
        let with_tensor: [(&str, &Attention, Field, &str); 16] = [
            ("seed", &plain, |op| &mut op.seed, DROPOUT),
            ("offset", &plain, |op| &mut op.offset, DROPOUT),
            ("dropout_mask", &plain, |op| &mut op.dropout_mask, DROPOUT),
            ("dropout_scale", &plain, |op| &mut op.dropout_scale, DROPOUT),
            ("rng_dump", &plain, |op| &mut op.rng_dump, DROPOUT),
            ("page_table_k", &plain, |op| &mut op.page_table_k, PAGED),
            ("page_table_v", &plain, |op| &mut op.page_table_v, PAGED),
            (
                "block_mask",
                &plain,
                |op| &mut op.block_mask,
                "a block mask is not supported",
            ),
            ("descale_q", &plain, |op| &mut op.descale_q, EIGHT_BITS),
            ("descale_k", &plain, |op| &mut op.descale_k, EIGHT_BITS),
            ("descale_v", &plain, |op| &mut op.descale_v, EIGHT_BITS),
            ("descale_s", &plain, |op| &mut op.descale_s, EIGHT_BITS),
            ("scale_s", &plain, |op| &mut op.scale_s, EIGHT_BITS),
            ("scale_o", &plain, |op| &mut op.scale_o, EIGHT_BITS),
            ("amax_s", &plain, |op| &mut op.amax_s, EIGHT_BITS),
            ("amax_o", &plain, |op| &mut op.amax_o, EIGHT_BITS),
        ];
        for (name, attention, field, cause) in with_tensor {
            let mut graph = attention.forward(false);
            let id = single(&mut graph, name);
            let graph = with_sdpa(graph, |op| *field(op) = Some(id));
            self.add(format!("sdpa_{name}"), graph, format!("{node}: {cause}"));
        }
        // 2^64 scores.
        let long = Attention::new(1 << 12, 1 << 4, [1 << 24; 2], 1, F32);
        self.add(
            "sdpa_of_too_many_scores",
            long.forward(false),
            "tensors on the way with more than 2^64 bytes",
        );
        let padded = plain.with(|attention| attention.padding = true);
        type Attribute<'a> = (&'a str, &'a Attention, fn(&mut Sdpa), &'a str);
        let with_attribute: [Attribute<'_>; 4] = [
            ("dropout", &plain, |op| op.dropout_probability = Some(0.1), DROPOUT),
            ("max_seq_len_kv", &plain, |op| op.max_seq_len_kv = Some(1), PAGED),
            (
                "mma_core_mode",
                &plain,
                |op| op.mma_core_mode = Some(DataType::F16),
                "mma_core_mode f16, which is not the type of q",
            ),
            ("lengths_without_mask", &padded, |op| op.padding_mask = false, LENGTHS),
        ];
        for (name, attention, set, cause) in with_attribute {
            let graph = with_sdpa(attention.forward(false), set);
            self.add(format!("sdpa_{name}"), graph, format!("{node}: {cause}"));
        }
        let sink = plain.with(|attention| attention.sink = true);
        let beside: [(&str, Field); 2] = [("max", |op| &mut op.max), ("sum_exp", |op| &mut op.sum_exp)];
        for (name, field) in beside {
            let mut graph = sink.forward(false);
            let id = single(&mut graph, name);
            let graph = with_sdpa(graph, |op| *field(op) = Some(id));
            let cause = "the maximum and the sum beside a sink token are defined nowhere";
            self.add(format!("sdpa_sink_token_{name}"), graph, format!("{node}: {cause}"));
        }
        self.scores("sdpa", node, |attention| attention.forward(false));
    }

    pub(super) fn sdpa_backward(&mut self) {
        type Field = fn(&mut SdpaBackward) -> &mut Option<TensorId>;
        let node = "node 'sdpa' (SDPA backward)";
        let plain = smallest(F32);
        let with_tensor: [(&str, Field); 5] = [
            ("seed", |op| &mut op.seed),
            ("offset", |op| &mut op.offset),
            ("dropout_mask", |op| &mut op.dropout_mask),
            ("dropout_scale", |op| &mut op.dropout_scale),
            ("dropout_scale_inv", |op| &mut op.dropout_scale_inv),
        ];
        for (name, field) in with_tensor {
            let mut graph = plain.backward();
            let id = single(&mut graph, name);
            let graph = with_sdpa_backward(graph, |op| *field(op) = Some(id));
            self.add(format!("sdpa_backward_{name}"), graph, format!("{node}: {DROPOUT}"));
        }
        let padded = plain.with(|attention| attention.padding = true);
        self.add(
            "sdpa_backward_dropout",
            with_sdpa_backward(plain.backward(), |op| op.dropout_probability = Some(0.1)),
            format!("{node}: {DROPOUT}"),
        );
        self.add(
            "sdpa_backward_lengths_without_mask",
            with_sdpa_backward(padded.backward(), |op| op.padding_mask = false),
            format!("{node}: {LENGTHS}"),
        );
        self.add(
            "sdpa_backward_constant_do",
            with_constant(plain.backward(), "do"),
            format!("{node}, tensor 'do' (uid 5): {CONSTANT}"),
        );
        self.scores("sdpa_backward", node, Attention::backward);
    }

    /// Adds cases that are declined in every direction whose first tensors are q, k and v.
    fn scores(&mut self, name: &str, node: &str, build: fn(&Attention) -> Graph) {
        let plain = smallest(F32);
        let bottom_right = plain.with(|attention| {
            attention.right = Some(0);
            attention.alignment = DiagonalAlignment::BottomRight;
        });
        let undefined = "ALiBi without a causal mask from the top left is defined nowhere";
        let whole = |dtype| smallest(dtype).with(|attention| attention.compute = dtype);
        for (what, attention, cause) in [
            (
                "padded_bottom_right",
                bottom_right.with(|attention| attention.padding = true),
                ": a diagonal from the bottom right of padded sequences is defined nowhere",
            ),
            (
                "alibi",
                plain.with(|attention| attention.alibi = true),
                &format!(": {undefined}"),
            ),
            (
                "alibi_bottom_right",
                bottom_right.with(|attention| attention.alibi = true),
                &format!(": {undefined}"),
            ),
            (
                "long_q",
                plain.with(|attention| attention.lengths = [TOO_LONG, 1]),
                ", tensor 'q' (uid 1): a sequence of more than 2^24 positions",
            ),
            (
                "long_k",
                plain.with(|attention| attention.lengths = [1, TOO_LONG]),
                ", tensor 'k' (uid 2): a sequence of more than 2^24 positions",
            ),
            ("in_i32", whole(I32), ": attention has no meaning in i32"),
            (
                "f32_in_i32",
                plain.with(|attention| attention.compute = I32),
                &format!(", tensor 'q' (uid 1): {FLOAT_IN_I32}"),
            ),
            ("compute_i8", whole(I8), &format!(": {IN_I8}")),
        ] {
            self.add(format!("{name}_{what}"), build(&attention), format!("{node}{cause}"));
        }
        for (uid, operand) in (1..).zip(["q", "k", "v"]) {
            self.add(
                format!("{name}_constant_{operand}"),
                with_constant(build(&plain), operand),
                format!("{node}, tensor '{operand}' (uid {uid}): {CONSTANT}"),
            );
        }
    }
}

/// Returns an attention in which every tensor is a single element.
fn smallest(dtype: DataType) -> Attention {
    Attention::new(1, 1, [1, 1], 1, dtype)
}

fn with_sdpa(mut graph: Graph, set: impl FnOnce(&mut Sdpa)) -> Graph {
    if let Some(Op::Sdpa(op)) = graph.nodes.first_mut().map(|node| &mut node.op) {
        set(op);
    }
    graph
}

fn with_sdpa_backward(mut graph: Graph, set: impl FnOnce(&mut SdpaBackward)) -> Graph {
    if let Some(Op::SdpaBackward(op)) = graph.nodes.first_mut().map(|node| &mut node.op) {
        set(op);
    }
    graph
}
