//! Declined pooling and grouped matmuls.

use super::{CONSTANT, Declined, F32, FLOAT_IN_I32, I8, I32, IN_I8, with_constant};
use rotini_graph::{
    DataType, Graph, GraphBuilder, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, Op, PaddingMode, ResampleBwd,
    ResampleFwd, ResampleMode,
};

const NO_BUFFER: &str = "it depends on no buffer";

impl Declined {
    pub(super) fn pooling(&mut self) {
        use ResampleMode::{AvgpoolExcludePadding, AvgpoolIncludePadding, Maxpool};
        let (forward, backward) = ("node 'pool' (resample forward)", "node 'pool' (resample backward)");
        for mode in [AvgpoolExcludePadding, AvgpoolIncludePadding] {
            self.add(
                format!("pool_{mode:?}_in_i32"),
                pool(mode, [I32, I32], &[1], false),
                format!("{forward}: an average has no meaning in the integer compute type i32"),
            );
        }
        for (name, is_backward, node, operand) in
            [("pool", false, forward, "x"), ("pool_backward", true, backward, "dy")]
        {
            self.add(
                format!("{name}_f32_in_i32"),
                pool(Maxpool, [F32, I32], &[1], is_backward),
                format!("{node}, tensor '{operand}' (uid 1): {FLOAT_IN_I32}"),
            );
            self.add(
                format!("{name}_compute_i8"),
                pool(Maxpool, [I8, I8], &[1], is_backward),
                format!("{node}: {IN_I8}"),
            );
            self.add(
                format!("{name}_constant_{operand}"),
                with_constant(pool(Maxpool, [F32; 2], &[1], is_backward), operand),
                format!("tensor '{operand}' (uid 1): {NO_BUFFER}"),
            );
            self.add(
                format!("{name}_4d"),
                pool(Maxpool, [F32; 2], &[1; 4], is_backward),
                format!("{node}: 4 spatial dimensions, more than 3"),
            );
            self.add(
                format!("{name}_huge_window"),
                pool(Maxpool, [F32; 2], &[1 << 16; 2], is_backward),
                format!("{node}: a window of more than 2^31 elements"),
            );
        }
        // One window over one element, and 2^40 rows of padding before it.
        let mut far = pool(AvgpoolIncludePadding, [F32; 2], &[1; 2], false);
        for node in &mut far.nodes {
            if let Op::ResampleFwd(op) = &mut node.op {
                op.pre_padding.fill(1 << 40);
                op.stride.fill(1 << 41);
            }
        }
        self.add(
            "pool_far_padding",
            far,
            format!("{forward}, tensor 'x' (uid 1): more than 1099511627776 elements with its padding"),
        );
        self.add(
            "pool_backward_in_i32",
            pool(Maxpool, [I32, I32], &[1], true),
            format!("{backward}: a gradient has no meaning in i32"),
        );
    }

    pub(super) fn experts(&mut self) {
        type Build = fn([DataType; 2], DataType, i64) -> Graph;
        let directions: [(&str, &str, Build, [&str; 2]); 2] = [
            ("moe", "node 'moe' (MoE grouped matmul)", experts, ["token", "weight"]),
            (
                "moe_backward",
                "node 'moe' (MoE grouped matmul backward)",
                experts_backward,
                ["token", "doutput"],
            ),
        ];
        for (name, node, build, operands) in directions {
            self.add(
                format!("{name}_f32_in_i32"),
                build([I8, F32], I32, 4),
                format!("{node}, tensor '{}' (uid 2): {FLOAT_IN_I32}", operands[1]),
            );
            self.add(
                format!("{name}_compute_i8"),
                build([I8; 2], I8, 4),
                format!("{node}: {IN_I8}"),
            );
            for (uid, operand) in (1..).zip(operands) {
                self.add(
                    format!("{name}_constant_{operand}"),
                    with_constant(build([F32; 2], F32, 4), operand),
                    format!("{node}, tensor '{operand}' (uid {uid}): {CONSTANT}"),
                );
            }
            self.add(
                format!("{name}_many_rows"),
                build([I8; 2], F32, 1 << 31),
                format!("{node}: more than 2^31 rows"),
            );
        }
        self.add(
            "moe_backward_in_i32",
            experts_backward([I8; 2], I32, 4),
            "node 'moe' (MoE grouped matmul backward): a gradient has no meaning in i32",
        );
    }
}

/// Builds a pooling of one window over one element; the rest of the window is padding.
fn pool(mode: ResampleMode, [dtype, compute]: [DataType; 2], window: &[i64], is_backward: bool) -> Graph {
    let mut b = GraphBuilder::new("pool");
    let dims = vec![1; window.len() + 2];
    let [input, output] = if is_backward { ["dy", "dx"] } else { ["x", "y"] };
    let input = b.buffer(input, dtype, &dims);
    let output = b.buffer(output, dtype, &dims);
    let pre_padding: Vec<i64> = window.iter().map(|extent| extent - 1).collect();
    let (none, ones) = (vec![0; window.len()], vec![1; window.len()]);
    if is_backward {
        let index = (mode == ResampleMode::Maxpool).then(|| b.buffer("index", I32, &dims));
        let op = ResampleBwd {
            dy: input,
            index,
            dx: output,
            pre_padding,
            post_padding: none,
            stride: ones,
            window: window.to_vec(),
            resample_mode: mode,
            padding_mode: PaddingMode::NegInf,
        };
        b.node("pool", compute, op);
    } else {
        let op = ResampleFwd {
            x: input,
            y: output,
            index: None,
            pre_padding,
            post_padding: none,
            stride: ones,
            window: window.to_vec(),
            resample_mode: mode,
            padding_mode: PaddingMode::NegInf,
            generate_index: false,
        };
        b.node("pool", compute, op);
    }
    b.build()
}

fn experts(types: [DataType; 2], compute: DataType, rows: i64) -> Graph {
    let mut b = GraphBuilder::new("moe");
    let token = b.buffer("token", types[0], &[1, rows, 3]);
    let weight = b.buffer("weight", types[1], &[2, 3, 5]);
    let first_token_offset = b.buffer("offset", I32, &[2, 1, 1]);
    let output = b.buffer("output", F32, &[1, rows, 5]);
    let op = MoeGroupedMatmul {
        token,
        weight,
        first_token_offset,
        token_index: None,
        token_ks: None,
        output,
        mode: MoeMode::None,
        top_k: 0,
    };
    b.node("moe", compute, op);
    b.build()
}

fn experts_backward(types: [DataType; 2], compute: DataType, rows: i64) -> Graph {
    let mut b = GraphBuilder::new("moe");
    let token = b.buffer("token", types[0], &[1, rows, 3]);
    let doutput = b.buffer("doutput", types[1], &[1, rows, 5]);
    let first_token_offset = b.buffer("offset", I32, &[2, 1, 1]);
    let dweight = b.buffer("dweight", F32, &[2, 3, 5]);
    let op = MoeGroupedMatmulBwd {
        doutput,
        token,
        first_token_offset,
        dweight,
    };
    b.node("moe", compute, op);
    b.build()
}
