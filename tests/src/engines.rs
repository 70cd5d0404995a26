//! The other engines of `benches`, driven as a host drives any engine.

use crate::cases::Case;
use crate::harness::{Memory, poison, stored};
use crate::plugin;
use anyhow::{Context as _, Result, bail, ensure};
use rotini_graph::{Graph, TensorId, TensorKind};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, engine_config};
use rotini_reference::{Buffers, compare, evaluate, execute, fill, tolerance};
use std::collections::HashMap;

/// Executions per context: the second one starts from the state that the first one left.
const EXECUTIONS: usize = 2;

/// Alignment of the buffers' addresses that hipDNN promises, in bytes.
const ALIGNMENT: usize = 16;

/// Another engine on a handle.
pub struct Other {
    /// Its plugin.
    pub plugin: Plugin,
    /// The handle.
    pub handle: Handle,
    /// Its id.
    pub id: i64,
}

impl Other {
    /// Loads `reference`, `faulty` or `onnxruntime`.
    ///
    /// # Errors
    ///
    /// If the file is missing, does not behave as a plugin, or gives no handle.
    pub fn load(name: &str) -> Result<Self> {
        // SAFETY: the file is a plugin that this workspace builds.
        let plugin = unsafe { Plugin::load(plugin::engine(name)?) }?;
        let &[id] = plugin.engine_ids()?.as_slice() else {
            bail!("{name} has not one engine")
        };
        let handle = plugin.handle()?;
        Ok(Other { plugin, handle, id })
    }

    /// Returns true if the engine runs a graph.
    ///
    /// # Errors
    ///
    /// The plugin's, or if it returns an unknown engine id.
    pub fn is_applicable(&self, graph: &Graph) -> Result<bool> {
        match self.handle.applicable(&rotini_wire::encode(graph))?.as_slice() {
            [] => Ok(false),
            [id] => {
                ensure!(*id == self.id, "the engine {id:#x} is another's");
                Ok(true)
            }
            ids => bail!("{} engines, not one", ids.len()),
        }
    }

    /// Creates a context.
    ///
    /// # Errors
    ///
    /// The plugin's, or if the context needs more workspace than was estimated.
    pub fn context(&self, graph: &Graph) -> Result<Context> {
        let (config, bytes) = (engine_config(self.id), rotini_wire::encode(graph));
        let estimate = self.handle.workspace_estimate(&config, &bytes)?;
        let context = self.handle.context(&config, &bytes)?;
        let exact = context.workspace()?;
        ensure!(exact <= estimate, "{estimate} bytes were said, but {exact} are needed");
        Ok(context)
    }
}

/// Executes a context of a case and judges it as `rotini run` does: an output is right if it is
/// within hipDNN's tolerances, or within the error bounds of a correct kernel. rotini's own tests
/// require the latter of every output, which is more than other engines promise.
///
/// `inputs` come from [`fill_all`](rotini_reference::fill_all), or from [`finite`] for an engine
/// that multiplies hidden values by 0.
///
/// # Errors
///
/// Any wrong output, failed call or write outside the buffers.
pub fn judge(case: &Case, context: &Context, inputs: &Buffers) -> Result<()> {
    let mut graph = case.graph.clone();
    graph.validate()?;
    let mut want = inputs.clone();
    execute(&graph, &mut want)?;
    let mut memory: HashMap<i64, Memory> = inputs
        .iter()
        .map(|(&uid, bytes)| (uid, Memory::new(bytes, ALIGNMENT)))
        .collect();
    let mut scratch = Memory::new(&vec![0; context.workspace()?], ALIGNMENT);
    for turn in 0..EXECUTIONS {
        for (id, _) in stored(&graph).into_iter().filter(|(_, is_output)| *is_output) {
            let uid = graph.tensor(id).context("a tensor that is not there")?.uid;
            let memory = memory.get_mut(&uid).context("no buffer")?;
            memory.put(&poison(memory.bytes().len(), turn))?;
        }
        let pack = memory.iter_mut().map(|(&uid, memory)| DeviceBuffer {
            uid,
            ptr: memory.pointer().cast(),
        });
        let pack: Vec<DeviceBuffer> = pack.collect();
        // SAFETY: the buffers have the spans of their tensors, the workspace its size.
        unsafe { context.execute(scratch.pointer().cast(), &pack) }?;
        ensure!(scratch.is_guarded(), "something was written outside the workspace");
        for (id, is_output) in stored(&graph) {
            let tensor = graph.tensor(id).context("a tensor that is not there")?;
            let memory = memory.get(&tensor.uid).context("no buffer")?;
            ensure!(memory.is_guarded(), "something was written outside {tensor}");
            let (got, before) = (memory.bytes(), &inputs[&tensor.uid]);
            if !is_output {
                ensure!(got == before, "the input {tensor} was changed");
            } else if let Err(mismatch) = compare(tensor, got, &want[&tensor.uid], tolerance(&graph, id)?) {
                let sharp = evaluate(&graph, inputs)?.judge(id, got, &poison(got.len(), turn));
                ensure!(sharp.is_ok_and(|report| report.blunt == 0), "{mismatch}");
            }
        }
    }
    Ok(())
}

/// Returns the buffers of a seed, all numbers of which are finite. Unlike in those of
/// [`fill_all`](rotini_reference::fill_all), the rows and mask elements that an attention hides are
/// ordinary numbers: an engine that adds minus infinity to hidden scores turns NaN there into NaN
/// in the output.
///
/// # Errors
///
/// If the graph has no spans that can be computed.
pub fn finite(graph: &Graph, seed: u64) -> Result<Buffers> {
    (0..)
        .map(TensorId)
        .zip(&graph.tensors)
        .filter(|(_, tensor)| matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar))
        .map(|(id, tensor)| Ok((tensor.uid, fill(graph, id, seed)?)))
        .collect()
}
