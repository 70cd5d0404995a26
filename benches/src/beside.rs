//! Runs a graph and ONNX Runtime in turn, on one core, and compares their results.
//!
//! ONNX Runtime gets constant weights, which it packs once. A hipDNN graph has its weights in a buffer that may change, so rotini packs
//! them in every execution.
//!
//! The bench is about kernels, not about threads. So it binds the process to one core before the plugin counts the cores.

use crate::onnxruntime::{Network, OnnxRuntime, Peer};
use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Buffers, Subject};
use anyhow::{Context as _, Result, ensure};
use rotini_graph::Graph;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The plugin and ONNX Runtime on one core.
pub(crate) struct Beside {
    library: OnnxRuntime,
    subject: Subject,
    _bound: OneCore,
}

impl Beside {
    pub(crate) fn new() -> Result<Self> {
        let bound = OneCore::bind()?;
        Ok(Beside {
            library: OnnxRuntime::load()?,
            subject: Subject::new()?,
            _bound: bound,
        })
    }

    /// A session of ONNX Runtime with the same values as the graphs get.
    pub(crate) fn peer(&self, network: Network<'_>) -> Result<Peer> {
        self.library.session(network, value)
    }

    /// Measures a graph, whose result is `output`, and its peer; `batch` executions per sample.
    pub(crate) fn row(
        &self,
        name: String,
        graph: &Graph,
        output: &str,
        (peer, peer_name): (&mut Peer, &'static str),
        batch: u32,
        bar: Option<Bar>,
    ) -> Result<Row> {
        let context = self.subject.context(&rotini_wire::encode(graph))?;
        let mut memory = Buffers::new(graph, context.workspace()?, value)?;
        let (pack, workspace) = memory.variant_pack();
        let ours = || {
            // SAFETY: there is a buffer of its span for every tensor of the graph, and a workspace of the context's size.
            Ok(unsafe { context.execute(workspace, &pack) }?)
        };
        ours()?;
        compare(&memory.values(output)?, &peer.values()?).with_context(|| name.clone())?;
        let samples = interleave(60, timed(batch, ours), timed(batch, || peer.run()))?;
        Ok(Row::new(name, peer_name, &samples, bar))
    }
}

/// The element of a tensor at a position of its logical order: multiples of 1/8 or 1/16 of about 1 at most. Sums of a few thousand
/// products are exact, so the order of summation does not show.
fn value(tensor: &str, position: usize) -> f32 {
    match tensor {
        "w" => ((position * 29 % 13) as f32 - 6.0) / 8.0,
        "bias" => (position % 7) as f32 - 3.0,
        // Whatever is in an output before it is written shows if it is not.
        "y" => f32::NAN,
        _ => ((position * 37 % 31) as f32 - 15.0) / 16.0,
    }
}

/// Makes sure that both have computed the same.
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
