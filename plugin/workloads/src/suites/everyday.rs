//! The suite `everyday`: many small graphs of ordinary extents, to find graphs that are far slower
//! than similar ones.
//!
//! The extents are those of common networks, and a few that tile sizes do not divide: 1, 10, 300,
//! 1000, 50257. Each graph takes milliseconds at most on one core of a CPU, so the whole suite is
//! measured within minutes.

use crate::blocks::{
    Convolution, Direction, Epilogue, Layout, batchnorm_inference, gated, layernorm, pooling, product, reduction,
    rms_norm, softmax,
};
use rotini_graph::{DataType, Graph, PointwiseMode, ReductionMode, ResampleMode};

/// Input channels, filters, extent of the input, extent of the filter, stride, groups.
const CONVOLUTIONS: [(i64, i64, i64, i64, i64, i64); 14] = [
    (1, 32, 28, 3, 1, 1),
    (3, 32, 112, 3, 2, 1),
    (3, 64, 112, 7, 2, 1),
    (32, 32, 28, 3, 1, 1),
    (64, 64, 14, 3, 1, 1),
    (64, 128, 28, 3, 2, 1),
    (32, 64, 14, 5, 1, 1),
    (24, 144, 28, 1, 1, 1),
    (160, 40, 14, 1, 1, 1),
    (300, 100, 10, 1, 1, 1),
    (64, 128, 28, 1, 2, 1),
    (64, 64, 28, 3, 1, 64),
    (96, 96, 28, 3, 2, 96),
    (120, 120, 14, 5, 1, 120),
];

/// Numbers of columns and terms of the products.
const PRODUCTS: [(i64, i64); 6] = [(768, 768), (1000, 512), (300, 300), (10, 1000), (1, 300), (64, 64)];

/// Numbers of rows and of elements per row.
const ROWS: [(i64, i64); 12] = [
    (1, 1000),
    (1, 50257),
    (4, 50257),
    (8, 300),
    (32, 10),
    (64, 4096),
    (128, 768),
    (128, 1000),
    (256, 64),
    (300, 300),
    (1000, 1),
    (1024, 129),
];

/// Number of images, channels, spatial extent.
const IMAGES: [(i64, i64, i64); 6] = [
    (1, 64, 56),
    (1, 128, 28),
    (2, 96, 27),
    (4, 32, 28),
    (1, 512, 7),
    (8, 300, 7),
];

/// Returns the graphs. Convolutions and images are in each layout; convolutions are for 1 and 4
/// images if no number is chosen.
pub(super) fn everyday(dtype: DataType, batch: Option<i64>, layouts: &[Layout]) -> Option<Vec<Graph>> {
    let mut graphs = Vec::new();
    for &layout in layouts {
        convolutions(batch, layout, dtype, &mut graphs)?;
        images(layout, dtype, &mut graphs)?;
    }
    for rows in [1, 2, 8, 32, 128, 512] {
        for (columns, depth) in PRODUCTS {
            for transposed in [false, true] {
                let order = if transposed { "columns" } else { "terms" };
                let name = format!("matmul_{rows}x{columns}x{depth}_{order}");
                graphs.push(product(
                    &name,
                    [1, rows, columns, depth],
                    transposed,
                    dtype,
                    Epilogue::None,
                ));
            }
        }
    }
    for shape in ROWS {
        let name = |what: &str| format!("{what}_{}x{}", shape.0, shape.1);
        let extents = [shape.0, shape.1];
        graphs.push(softmax(&name("softmax"), extents, dtype));
        graphs.push(layernorm(&name("layernorm"), extents, false, dtype));
        graphs.push(layernorm(&name("residual_layernorm"), extents, true, dtype));
        graphs.push(rms_norm(&name("rms_norm"), extents, dtype));
        graphs.push(reduction(&name("mean"), extents, ReductionMode::Avg, dtype));
        graphs.push(reduction(&name("max"), extents, ReductionMode::Max, dtype));
        graphs.push(gated(&name("silu_mul"), extents, dtype));
    }
    Some(graphs)
}

fn convolutions(batch: Option<i64>, layout: Layout, dtype: DataType, graphs: &mut Vec<Graph>) -> Option<()> {
    let relu = Epilogue::Activation(PointwiseMode::ReluFwd);
    let kinds = [
        ("forward", Direction::Forward, Epilogue::None),
        ("relu", Direction::Forward, relu),
        ("dgrad", Direction::Dgrad, Epilogue::None),
    ];
    for (what, direction, epilogue) in kinds {
        for n in batch.map_or(vec![1, 4], |n| vec![n]) {
            for (c, k, extent, filter, stride, groups) in CONVOLUTIONS {
                let convolution = Convolution {
                    groups,
                    ..Convolution::square(n, c, k, extent, filter, stride, layout, dtype)
                };
                let order = named(layout);
                let name = format!("{what}_{c}to{k}_g{groups}_{filter}x{filter}_s{stride}_at{extent}_n{n}_{order}");
                graphs.push(convolution.graph(&name, direction, epilogue)?);
            }
        }
    }
    Some(())
}

fn named(layout: Layout) -> &'static str {
    match layout {
        Layout::First => "nchw",
        Layout::Last => "nhwc",
    }
}

/// Adds pooling and normalization of images.
fn images(layout: Layout, dtype: DataType, graphs: &mut Vec<Graph>) -> Option<()> {
    for (n, c, extent) in IMAGES {
        let name = |what: &str| format!("{what}_{c}_at{extent}_n{n}_{}", named(layout));
        let pool = |what: &str, window, mode| pooling(&name(what), [n, c, extent], window, mode, layout, dtype);
        graphs.push(pool("maxpool3x3_s2", [3, 2, 1], ResampleMode::Maxpool)?);
        graphs.push(pool("maxpool2x2_s2", [2, 2, 0], ResampleMode::Maxpool)?);
        graphs.push(pool("avgpool2x2_s2", [2, 2, 0], ResampleMode::AvgpoolExcludePadding)?);
        let whole = [extent, 1, 0];
        graphs.push(pool("avgpool_all", whole, ResampleMode::AvgpoolExcludePadding)?);
        graphs.push(batchnorm_inference(
            &name("batchnorm"),
            [n, c, extent, extent],
            layout,
            dtype,
        ));
    }
    Some(())
}
