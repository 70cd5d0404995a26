//! Fused convolutions on a real GPU, against PyTorch and cuDNN (or MIOpen) in the same run.
//!
//! Each has two times. The kernel's time comes from a captured graph of many executions between two events, so it contains nothing of the
//! host. The host's time is how long one call takes until it returns. The peer is a small program (`peers/pytorch.py`) that measures
//! PyTorch's fused convolution in the same way. It runs as a child process before and after ours: if the clocks change, its two figures
//! differ.
//!
//! This is built and run on a machine with a GPU only; see `docs/performance.md`.

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use comfy_table::{Cell, CellAlignment, Table, presets};
use rotini_graph::{DataType, PointwiseMode};
use rotini_host::gpu::{Gpu, Stream};
use rotini_host::{DeviceBuffer, HostError, Plugin, engine_config};
use rotini_tests::cases::{Conv, Order};
use rotini_tests::harness::{self, Memory};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Measures the plugin on the GPU that ROTINI_TEST_DEVICE names (cuda or hip).
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The Python that has PyTorch; without it, there is no peer
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,

    /// Images in a batch
    #[arg(long, default_value_t = 32)]
    batch: i64,
}

/// A convolution with stride 1 that keeps the extents of its input, with bias and relu, f16, NHWC.
#[derive(Clone, Copy, Debug, Serialize)]
struct Shape {
    n: i64,
    c: i64,
    k: i64,
    extent: i64,
    window: i64,
}

/// Input channels, filters, extent, window: layers of ResNet-50.
const SHAPES: [(i64, i64, i64, i64); 6] = [
    (64, 64, 56, 3),
    (128, 128, 28, 3),
    (256, 256, 14, 3),
    (512, 512, 7, 3),
    (256, 64, 56, 1),
    (1024, 256, 14, 1),
];

/// Microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Times {
    kernel: f64,
    host: f64,
    host_p99: f64,
}

/// Executions in a captured graph.
const CAPTURED: usize = 20;

fn main() -> Result<()> {
    let args = Args::parse();
    let gpu = harness::gpu()?;
    let shapes = SHAPES.map(|(c, k, extent, window)| Shape {
        n: args.batch,
        c,
        k,
        extent,
        window,
    });
    let peer = || match &args.python {
        Some(python) => peer(python, &shapes).map(Some),
        None => Ok(None),
    };
    let before = peer()?;
    let ours = shapes
        .iter()
        .map(|shape| measure(&gpu, shape).with_context(|| format!("{shape:?}")))
        .collect::<Result<Vec<_>>>()?;
    let after = peer()?;

    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "conv+bias+relu, f16 NHWC",
        "kernel",
        "peer's kernel",
        "ratio",
        "host",
        "host p99",
        "peer's host",
    ]);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    for (index, (shape, ours)) in shapes.iter().zip(&ours).enumerate() {
        let peer = |pick: fn(&Times) -> f64| {
            let of = |run: &Option<Vec<Times>>| run.as_ref().and_then(|run| run.get(index)).map(pick);
            // The better of its two runs.
            Some(of(&before)?.min(of(&after)?))
        };
        let text = |time: Option<f64>| time.map_or_else(String::new, |time| format!("{time:.2} µs"));
        let kernel = peer(|times| times.kernel);
        let Shape {
            n,
            c,
            k,
            extent,
            window,
        } = shape;
        table.add_row([
            Cell::new(format!("{c}→{k} {window}×{window} at {extent}×{extent}, N={n}")),
            right(text(Some(ours.kernel))),
            right(text(kernel)),
            right(kernel.map_or_else(String::new, |peer| format!("{:.2}", ours.kernel / peer))),
            right(text(Some(ours.host))),
            right(text(Some(ours.host_p99))),
            right(text(peer(|times| times.host))),
        ]);
    }
    writeln!(std::io::stdout(), "{table}")?;
    Ok(())
}

fn measure(gpu: &Gpu, shape: &Shape) -> Result<Times> {
    let conv = Conv::new(
        shape.n,
        shape.c,
        shape.k,
        shape.extent,
        shape.window,
        shape.window / 2,
        DataType::F16,
        Order::Last,
    );
    let graph = conv.fused(PointwiseMode::ReluFwd, false);
    let bytes = rotini_wire::encode(&graph);
    // SAFETY: the plugin that this workspace builds, or what the user named in its stead.
    let plugin = unsafe { Plugin::load(rotini_tests::plugin::path()?) }?;
    let engine = *plugin.engine_ids()?.first().context("the plugin has no engine")?;
    let handle = plugin.handle()?;
    let context = handle.context(&engine_config(engine), &bytes)?;
    let stream = gpu.stream()?;
    // SAFETY: the stream is the GPU's and outlives the handle's work, which is waited for below.
    unsafe { handle.set_stream(stream.raw()) }?;

    let mut memory = harness::fill(&graph)?
        .into_iter()
        .map(|(uid, bytes)| Ok((uid, Memory::on_gpu(gpu, &bytes, 256)?)))
        .collect::<Result<Vec<_>>>()?;
    let workspace = gpu.allocate(context.workspace()?)?;
    let pack: Vec<DeviceBuffer> = memory
        .iter_mut()
        .map(|(uid, memory)| DeviceBuffer {
            uid: *uid,
            ptr: memory.pointer().cast(),
        })
        .collect();
    let execute = || -> Result<(), HostError> {
        // SAFETY: the buffers have the spans of their tensors, the workspace its size, and all outlive the work.
        unsafe { context.execute(workspace.pointer(), &pack) }
    };
    for _ in 0..3 {
        execute()?;
    }
    stream.synchronize()?;

    let kernel = kernel_time(gpu, &stream, execute)?;
    let mut host = Vec::new();
    for _ in 0..40 {
        for _ in 0..25 {
            let started = Instant::now();
            execute()?;
            host.push(started.elapsed().as_secs_f64() * 1e6);
        }
        // Before the queue is full, which would make calls wait for the GPU.
        stream.synchronize()?;
    }
    host.sort_by(f64::total_cmp);
    let at = |share: f64| host[((host.len() - 1) as f64 * share) as usize];
    Ok(Times {
        kernel,
        host: at(0.5),
        host_p99: at(0.99),
    })
}

/// The median time of one execution inside a captured graph, in microseconds.
fn kernel_time(gpu: &Gpu, stream: &Stream, execute: impl Fn() -> Result<(), HostError>) -> Result<f64> {
    let captured = stream.capture(|| -> Result<()> {
        for _ in 0..CAPTURED {
            execute()?;
        }
        Ok(())
    })?;
    let (start, end) = (gpu.event(true)?, gpu.event(true)?);
    let mut times = Vec::new();
    for round in 0..25 {
        start.record(stream)?;
        // SAFETY: what was captured is alive.
        unsafe { captured.launch(stream) }?;
        end.record(stream)?;
        end.synchronize()?;
        // The first are to get the clocks up.
        if round >= 5 {
            times.push(f64::from(end.milliseconds_since(&start)?) * 1e3 / CAPTURED as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied();
    median.context("nothing was measured")
}

/// What PyTorch takes for the same.
fn peer(python: &PathBuf, shapes: &[Shape]) -> Result<Vec<Times>> {
    let mut child = Command::new(python)
        .args(["-c", include_str!("../../peers/pytorch.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", python.display()))?;
    let input = child.stdin.take().context("the peer has no input")?;
    serde_json::to_writer(input, shapes)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("the peer failed: {}", output.status);
    }
    let times: Vec<Times> = serde_json::from_slice(&output.stdout).context("the peer's answer cannot be read")?;
    ensure!(
        times.len() == shapes.len(),
        "{} answers for {} shapes",
        times.len(),
        shapes.len()
    );
    Ok(times)
}
