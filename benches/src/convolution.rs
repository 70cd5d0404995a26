//! Convolutions with bias and relu on one core, f32, against ONNX Runtime.
//!
//! ONNX Runtime is what most people run convolutions with on a CPU, and its kernels are close to the best known. It gets constant weights,
//! which it packs once; a hipDNN graph has its weights in a buffer that may change, so ours are packed in every execution. ONNX has NCHW
//! alone: its times stand beside ours in both layouts. Results are compared, so that both have done the same work.
//!
//! One core, because threads are another question: the process is bound to it before the plugin counts the cores.

use crate::onnxruntime::OnnxRuntime;
use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Buffers, Subject};
use anyhow::{Context as _, Result, ensure};
use rotini_graph::{DataType, PointwiseMode};
use rotini_tests::cases::{Conv, Order};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A convolution with stride 1 that keeps the extents of its input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Input channels.
    pub(crate) c: i64,
    /// Filters.
    pub(crate) k: i64,
    /// Height and width of the input.
    pub(crate) extent: i64,
    /// Height and width of the filter, odd.
    pub(crate) window: i64,
}

impl Shape {
    /// Rows and columns of zeros on each side.
    pub(crate) fn padding(self) -> i64 {
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
    let _bound = OneCore::bind()?;
    let library = OnnxRuntime::load()?;
    let subject = Subject::new()?;
    let mut rows = Vec::new();
    for (shape, bar) in SHAPES {
        let mut peer = library.convolution(shape, value)?;
        for order in [Order::Last, Order::First] {
            let Shape { c, k, extent, window } = shape;
            let conv = Conv::new(1, c, k, extent, window, shape.padding(), DataType::F32, order);
            let graph = conv.fused(PointwiseMode::ReluFwd, false);
            let bytes = rotini_wire::encode(&graph);
            let context = subject.context(&bytes)?;
            let mut memory = Buffers::new(&graph, context.workspace()?, value)?;
            let (pack, workspace) = memory.variant_pack();
            let ours = || {
                // SAFETY: there is a buffer of its span for every tensor of the graph, and a workspace of the context's size.
                Ok(unsafe { context.execute(workspace, &pack) }?)
            };
            ours()?;
            compare(&memory.values("y")?, &peer.values()?)?;
            let samples = interleave(60, timed(5, ours), timed(5, || peer.run()))?;
            let name = order.name().to_uppercase();
            rows.push(Row::new(
                format!("conv+bias+relu {c}→{k} {window}×{window} at {extent}×{extent}, {name}"),
                "ONNX Runtime, NCHW",
                &samples,
                bar.filter(|_| order == Order::Last),
            ));
        }
    }
    Ok(rows)
}

/// The element of a tensor at a position of its logical order: a multiple of 1/8 (weights) or 1/16 below 1. Sums of a few thousand
/// products are exact, so the order of summation does not show.
fn value(tensor: &str, position: usize) -> f32 {
    match tensor {
        "x" => ((position * 37 % 31) as f32 - 15.0) / 16.0,
        "w" => ((position * 29 % 13) as f32 - 6.0) / 8.0,
        "bias" => (position % 7) as f32 - 3.0,
        // Whatever is in an output before it is written shows if it is not.
        _ => f32::NAN,
    }
}

fn compare(ours: &[f32], peer: &[f32]) -> Result<()> {
    ensure!(
        ours.len() == peer.len(),
        "{} elements, and ONNX Runtime has {}",
        ours.len(),
        peer.len()
    );
    ensure!(
        ours.iter().any(|&element| element > 0.0),
        "all results are zero: that compares nothing"
    );
    // Room for a peer that transforms its input (Winograd).
    let agree = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-3 * b.abs().max(1.0);
    match ours.iter().zip(peer).position(|pair| !agree(pair)) {
        Some(at) => anyhow::bail!("element {at} is {}, and ONNX Runtime has {}", ours[at], peer[at]),
        None => Ok(()),
    }
}

/// Binds this thread, and those that it starts, to one core, until it is dropped.
struct OneCore(CpuSet);

impl OneCore {
    fn bind() -> Result<Self> {
        let all = sched_getaffinity(None).context("the affinity mask cannot be read")?;
        // The last, because interrupts tend to be handled by the first.
        let last = (0..CpuSet::MAX_CPU)
            .rev()
            .find(|&cpu| all.is_set(cpu))
            .context("the affinity mask is empty")?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).context("the affinity mask cannot be set")?;
        Ok(OneCore(all))
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // It was this mask before; if it cannot be set again, later benches are slower, not wrong.
        let _ = sched_setaffinity(None, &self.0);
    }
}
