//! Convolutions with bias and relu on one core, f32, against ONNX Runtime.
//!
//! Most people who run convolutions on a CPU use ONNX Runtime, and its kernels are close to the best known. ONNX has NCHW only. So its
//! times stand beside ours in both layouts.

use crate::beside::Beside;
use crate::onnxruntime::{Network, Step};
use crate::report::{Bar, Row};
use anyhow::Result;
use rotini_graph::{DataType, PointwiseMode};
use rotini_tests::cases::{Conv, Order};

/// A convolution with stride 1 that keeps the extents of its input.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Input channels.
    c: i64,
    /// Filters.
    k: i64,
    /// Height and width of the input.
    extent: i64,
    /// Height and width of the filter, odd.
    window: i64,
}

impl Shape {
    /// Rows and columns of zeros on each side.
    fn padding(self) -> i64 {
        self.window / 2
    }
}

/// Layers of ResNet-50, with the bar of the NHWC form.
const SHAPES: [(Shape, Option<Bar>); 4] = [
    (
        Shape {
            c: 64,
            k: 64,
            extent: 56,
            window: 3,
        },
        Some(Bar::Times(3.0)),
    ),
    (
        Shape {
            c: 64,
            k: 256,
            extent: 56,
            window: 1,
        },
        None,
    ),
    (
        Shape {
            c: 256,
            k: 256,
            extent: 14,
            window: 3,
        },
        None,
    ),
    (
        Shape {
            c: 512,
            k: 512,
            extent: 7,
            window: 3,
        },
        None,
    ),
];

pub(crate) fn run() -> Result<Vec<Row>> {
    let beside = Beside::new()?;
    let mut rows = Vec::new();
    for (shape, bar) in SHAPES {
        let mut peer = beside.peer(network(shape)?)?;
        for order in [Order::Last, Order::First] {
            let Shape { c, k, extent, window } = shape;
            let conv = Conv::new(1, c, k, extent, window, shape.padding(), DataType::F32, order);
            let name = order.name().to_uppercase();
            rows.push(beside.row(
                format!("conv+bias+relu {c}→{k} {window}×{window} at {extent}×{extent}, {name}"),
                &conv.fused(PointwiseMode::ReluFwd, false),
                "y",
                (&mut peer, "ONNX Runtime, NCHW"),
                5,
                bar.filter(|_| order == Order::Last),
            )?);
        }
    }
    Ok(rows)
}

/// `relu(conv(x) + bias)`, with the weights and the bias as constants.
fn network(shape: Shape) -> Result<Network<'static>> {
    let Shape { c, k, extent, window } = shape;
    Ok(Network {
        inputs: vec![("x", vec![1, c, extent, extent])],
        constants: vec![("w", vec![k, c, window, window]), ("bias", vec![k])],
        output: ("y", vec![1, k, extent, extent]),
        steps: vec![
            Step::new("Conv", &["x", "w", "bias"], "sum")
                .integers("kernel_shape", vec![window; 2])?
                .integers("pads", vec![shape.padding(); 4])?,
            Step::new("Relu", &["sum"], "y"),
        ],
    })
}
