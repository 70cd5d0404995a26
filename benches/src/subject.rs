//! The subject of measurements: the plugin behind its C ABI, a graph as bytes, and the graph's
//! buffers.

use anyhow::{Context as _, Result, bail, ensure};
use rotini_graph::{DataType, Graph, PointwiseMode, Tensor, TensorKind, element_span};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, engine_config};
use rotini_tests::cases::{Conv, Order};
use rotini_tests::harness::Memory;
use rotini_wire::candidate_page::MAX_CANDIDATES;

/// Alignment of buffers in bytes, which lets compiled code use them in place, as it can with memory
/// from hipMalloc.
pub(crate) const ALIGNMENT: usize = 64;

/// A handle of the plugin, which has a single engine.
pub(crate) struct Subject {
    /// The handle.
    pub(crate) handle: Handle,
    engine: i64,
}

impl Subject {
    /// Loads the plugin and creates a handle.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: the file is the plugin that this workspace builds, or another that the user named
        // instead.
        let plugin = unsafe { Plugin::load(rotini_tests::plugin::path()?) }?;
        let engines = plugin.engine_ids()?;
        let &[engine] = engines.as_slice() else {
            bail!("{} engines, not one", engines.len())
        };
        Ok(Subject {
            handle: plugin.handle()?,
            engine,
        })
    }

    /// Queries whether a graph can be executed, and fails if it cannot.
    pub(crate) fn expect_applicable(&self, graph: &[u8]) -> Result<()> {
        ensure!(self.handle.applicable(graph)? == [self.engine], "the graph is declined");
        Ok(())
    }

    /// Returns the number of candidates of a graph, from a page that contains all of them.
    pub(crate) fn candidates(&self, graph: &[u8]) -> Result<usize> {
        let details = self
            .handle
            .candidates(&engine_config(self.engine), graph, [0, MAX_CANDIDATES])?;
        Ok(details.candidate_page.context("there is no page")?.candidates.len())
    }

    /// Asks for the rate of ordinary execution.
    pub(crate) fn predict(&self, graph: &[u8]) -> Result<()> {
        const ENGINE: i32 = 0;
        self.handle
            .prediction(&engine_config(self.engine), graph, [ENGINE, 1])?;
        Ok(())
    }

    /// Creates a context.
    pub(crate) fn context(&self, graph: &[u8]) -> Result<Context> {
        Ok(self.handle.context(&engine_config(self.engine), graph)?)
    }
}

/// Returns the convolution that the bars are defined for: 64 to 64 channels at 56 × 56, 3 × 3, with
/// bias and relu, f32, NHWC.
pub(crate) fn conv_bias_relu() -> Graph {
    Conv::new(1, 64, 64, 56, 3, 1, DataType::F32, Order::Last).fused(PointwiseMode::ReluFwd, false)
}

/// The f32 buffers of a graph, in host memory.
pub(crate) struct Buffers {
    memory: Vec<(Tensor, Memory)>,
    workspace: Memory,
}

impl Buffers {
    /// Creates buffers whose elements, in the logical order of their tensors, are the results of
    /// `value` for the tensor's name and the position.
    pub(crate) fn new(graph: &Graph, workspace: usize, value: impl Fn(&str, usize) -> f32) -> Result<Self> {
        let stored = graph.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Buffer);
        let memory = stored
            .map(|tensor| {
                let elements = element_span(&tensor.dims, &tensor.strides).context("the tensor is too large")?;
                let mut bytes = vec![0; usize::try_from(elements)? * size_of::<f32>()];
                for (position, offset) in offsets(tensor).into_iter().enumerate() {
                    let element = value(&tensor.name, position).to_ne_bytes();
                    bytes[offset * size_of::<f32>()..][..size_of::<f32>()].copy_from_slice(&element);
                }
                Ok((tensor.clone(), Memory::new(&bytes, ALIGNMENT)))
            })
            .collect::<Result<_>>()?;
        Ok(Buffers {
            memory,
            workspace: Memory::new(&vec![0; workspace], ALIGNMENT),
        })
    }

    /// Returns the variant pack and the workspace. Both are valid as long as `self` is.
    pub(crate) fn variant_pack(&mut self) -> (Vec<DeviceBuffer>, *mut std::ffi::c_void) {
        let buffers = self.memory.iter_mut();
        let buffers = buffers.map(|(tensor, memory)| DeviceBuffer {
            uid: tensor.uid,
            ptr: memory.pointer().cast(),
        });
        (buffers.collect(), self.workspace.pointer().cast())
    }

    /// Returns the elements of a tensor in logical order.
    pub(crate) fn values(&self, name: &str) -> Result<Vec<f32>> {
        let (tensor, memory) = self
            .memory
            .iter()
            .find(|(tensor, _)| tensor.name == name)
            .context("no such tensor")?;
        let (elements, _) = memory.bytes().as_chunks::<{ size_of::<f32>() }>();
        Ok(offsets(tensor)
            .into_iter()
            .map(|offset| f32::from_ne_bytes(elements[offset]))
            .collect())
    }
}

/// Returns the offsets of a tensor's elements in logical order, in elements.
fn offsets(tensor: &Tensor) -> Vec<usize> {
    tensor
        .dims
        .iter()
        .zip(&tensor.strides)
        .fold(vec![0], |offsets, (&extent, &stride)| {
            let along = move |start: usize| (0..extent).map(move |index| start + (index * stride) as usize);
            offsets.into_iter().flat_map(along).collect()
        })
}
