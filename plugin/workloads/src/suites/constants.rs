//! The suite `constants`: graphs whose execution times determine the constants of the speed model
//! of a device.
//!
//! | Graphs | What their times say |
//! |---|---|
//! | `product_*` | the rate that the power limit sustains, for each type |
//! | `attention_*` | how much a causal mask saves: what unequal workgroups cost |
//! | `layernorm_*` | bandwidth of memory, which reads and writes share |
//! | `sums_*` | bandwidth of reads with the operand in the last-level cache |
//! | `launches_*` | what one more dependent launch takes |
//! | `rows_*` | what strides that are powers of two cost |

use crate::blocks::{Convolution, Direction, Epilogue, Layout, attention, layernorm, reduction};
use rotini_graph::DataType::{Bf16, F8E4M3Fnuz, F16, F32};
use rotini_graph::{ConvGeometry, DataType, Graph, GraphBuilder, Matmul, PointwiseMode, ReductionMode, TensorKind};

/// Number of launches of the longer graph of dependent convolutions.
pub const LAUNCHES: usize = 100;
/// Row strides in elements: powers of two, and slightly larger values.
pub const STRIDES: [i64; 5] = [512, 576, 4096, 4160, 4224];
/// Extents of the products, each the number of rows, of columns and of terms.
pub const PRODUCTS: [i64; 2] = [4096, 8192];
/// Types of their operands.
pub const OPERANDS: [DataType; 3] = [F16, Bf16, F8E4M3Fnuz];
/// Rows and columns of the sums of rows in f16: 64 MiB, which exceed the second-level caches of an
/// MI300X (32 MiB) and fit into its Infinity Cache (256 MiB).
pub const SUMS: [i64; 2] = [16_384, 2048];

/// Returns the graphs; `None` if an extent overflows, which those of this file do not.
pub(super) fn constants() -> Option<Vec<Graph>> {
    const ROWS: i64 = 8192;
    const COLUMNS: i64 = 512;
    let mut graphs = Vec::new();
    for (name, is_causal) in [("full", false), ("causal", true)] {
        let name = format!("attention_{name}_4096");
        graphs.push(attention(&name, [1, 16, 4096, 128], [16, 4096], is_causal, F16));
    }
    graphs.push(layernorm("layernorm_8192x4096", [ROWS, 4096], false, F16));
    let name = format!("sums_{}x{}", SUMS[0], SUMS[1]);
    graphs.push(reduction(&name, SUMS, ReductionMode::Add, F16));
    let conv = Convolution::square(8, 64, 64, 56, 1, 1, Layout::Last, F16);
    graphs.push(conv.graph("launches_1", Direction::Forward, Epilogue::None)?);
    graphs.push(chain(LAUNCHES));
    for stride in STRIDES {
        let mut b = GraphBuilder::new(&format!("rows_{stride}"));
        let strides = [stride, 1];
        let x = b.tensor("x", F16, &[ROWS, COLUMNS], &strides, TensorKind::Buffer);
        let y = b.buffer("y", F16, &[ROWS, COLUMNS]);
        b.pointwise(F32, PointwiseMode::Identity, &[x], y);
        graphs.push(b.build());
    }
    // The products, which take the longest to fill and to measure, come last.
    for extent in PRODUCTS {
        for dtype in OPERANDS {
            graphs.push(product(extent, dtype));
        }
    }
    Some(graphs)
}

/// Returns a product with weights stored as `[columns, terms]`. That of FP8 has a result in bf16.
fn product(extent: i64, dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new(&format!("product_{extent}_{dtype}"));
    let dims = [1, extent, extent];
    let a = b.buffer("a", dtype, &dims);
    let strides = [extent.saturating_mul(extent), 1, extent];
    let weights = b.tensor("b", dtype, &dims, &strides, TensorKind::Buffer);
    let result = if dtype == F8E4M3Fnuz { Bf16 } else { dtype };
    let c = b.buffer("y", result, &dims);
    b.node("matmul", F32, Matmul { a, b: weights, c });
    b.build()
}

/// Returns a chain of 1×1 convolutions, 64→64 channels at 56×56, each of which reads the output of
/// the one before.
fn chain(count: usize) -> Graph {
    let dims = [8, 64, 56, 56];
    let mut b = GraphBuilder::new(&format!("launches_{count}"));
    let mut x = b.buffer_channels_last("x", F16, &dims);
    let w = b.buffer_channels_last("w", F16, &[64, 64, 1, 1]);
    for number in 1..=count {
        let y = if number == count {
            b.buffer_channels_last("y", F16, &dims)
        } else {
            let strides = [64 * 56 * 56, 1, 64 * 56, 64];
            b.tensor(&format!("y{number}"), F16, &dims, &strides, TensorKind::Virtual)
        };
        b.conv_fprop(F32, x, w, y, ConvGeometry::same(2, 0));
        x = y;
    }
    b.build()
}
