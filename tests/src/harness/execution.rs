//! Executes a context on guarded buffers and judges the results.

use super::memory::{Memory, Place, poison};
use anyhow::{Context as _, Result, ensure};
use rotini_graph::{Graph, TensorId, TensorKind};
use rotini_host::{Context, DeviceBuffer, HostError, ShapeOverride};
use rotini_reference::{Buffers, Evaluation, evaluate};
use std::collections::HashMap;
use std::ffi::c_void;

/// An executable graph: a context of the plugin, or a test's wrapper around one.
pub trait Subject {
    /// Returns the bytes of workspace of an execution.
    ///
    /// # Errors
    ///
    /// The plugin's.
    fn workspace(&self) -> Result<usize, HostError>;

    /// Executes the graph, with the shapes in the overrides where they differ from the declared
    /// ones.
    ///
    /// # Errors
    ///
    /// The plugin's.
    ///
    /// # Safety
    ///
    /// As [`Context::execute_with_overrides`].
    unsafe fn execute(
        &self,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride],
    ) -> Result<(), HostError>;
}

impl Subject for Context {
    fn workspace(&self) -> Result<usize, HostError> {
        Context::workspace(self)
    }

    unsafe fn execute(
        &self,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride],
    ) -> Result<(), HostError> {
        // SAFETY: by this function's contract.
        unsafe {
            match overrides {
                [] => Context::execute(self, workspace, buffers),
                _ => self.execute_with_overrides(workspace, buffers, overrides),
            }
        }
    }
}

/// Inputs and expectations of an execution.
pub(super) struct Execution<'a> {
    pub(super) graph: &'a Graph,
    pub(super) inputs: &'a Buffers,
    /// Expected outputs, if they are defined.
    pub(super) evaluation: Option<Evaluation<'a>>,
    pub(super) overrides: &'a [ShapeOverride],
    /// Alignment of the buffers' addresses, in bytes.
    pub(super) alignment: usize,
}

impl<'a> Execution<'a> {
    pub(super) fn new(graph: &'a Graph, inputs: &'a Buffers, alignment: usize) -> Result<Self> {
        Ok(Execution {
            graph,
            inputs,
            evaluation: Some(evaluate(graph, inputs)?),
            overrides: &[],
            alignment,
        })
    }

    /// Executes a context several times, each time with different initial bytes in outputs and
    /// workspace, and judges the buffers each time. Only the outputs may change.
    pub(super) fn run(&self, subject: &dyn Subject, place: &Place, times: usize) -> Result<Judged> {
        let &Execution {
            graph,
            inputs,
            overrides,
            alignment,
            ..
        } = self;
        let is_scalar = |uid: i64| {
            let mut tensors = graph.tensors.iter();
            tensors.any(|tensor| tensor.uid == uid && tensor.kind == TensorKind::RuntimeScalar)
        };
        let mut memory: HashMap<i64, Memory> = inputs
            .iter()
            .map(|(&uid, bytes)| {
                // Scalars are on the host for every device, and without an alignment guarantee.
                let memory = if is_scalar(uid) {
                    Memory::new(bytes, 1)
                } else {
                    place.memory(bytes, alignment)?
                };
                Ok((uid, memory))
            })
            .collect::<Result<_>>()?;
        let stored = stored(graph);
        let workspace = subject.workspace()?;
        let mut scratch = place.memory(&vec![0; workspace], alignment)?;
        let mut judged = Judged::default();
        for turn in 0..times {
            scratch.put(&poison(workspace, turn))?;
            for &(id, _) in stored.iter().filter(|(_, is_output)| *is_output) {
                let memory = buffer_of(graph, id, &mut memory)?;
                memory.put(&poison(memory.bytes().len(), turn))?;
            }
            let mut buffers: Vec<DeviceBuffer> = memory
                .iter_mut()
                .map(|(&uid, memory)| DeviceBuffer {
                    uid,
                    ptr: memory.pointer().cast(),
                })
                .collect();
            buffers.push(DeviceBuffer {
                uid: i64::MAX,
                ptr: std::ptr::null_mut(),
            });
            let workspace = if workspace == 0 {
                std::ptr::null_mut()
            } else {
                scratch.pointer().cast()
            };
            // SAFETY: the buffers have the spans of their tensors, the workspace its size.
            unsafe { subject.execute(workspace, &buffers, overrides) }?;
            if let Place::Gpu(gpu) = place {
                gpu.synchronize()?;
            }
            for memory in memory.values_mut().chain([&mut scratch]) {
                memory.fetch()?;
            }
            ensure!(scratch.is_guarded(), "something was written outside the workspace");
            for &(id, is_output) in &stored {
                let tensor = graph.tensor(id).context("a tensor that is not there")?;
                let memory = buffer_of(graph, id, &mut memory)?;
                ensure!(memory.is_guarded(), "something was written outside {tensor}");
                if is_output {
                    judged.add(self, id, memory.bytes(), turn)?;
                } else {
                    let is_changed = inputs.get(&tensor.uid).is_none_or(|before| before != memory.bytes());
                    ensure!(!is_changed, "the input {tensor} was changed");
                }
            }
        }
        Ok(judged)
    }
}

/// Returns a tensor's buffer.
fn buffer_of<'a>(graph: &Graph, id: TensorId, memory: &'a mut HashMap<i64, Memory>) -> Result<&'a mut Memory> {
    let tensor = graph.tensor(id).context("a tensor that is not there")?;
    let memory = memory.get_mut(&tensor.uid);
    memory.with_context(|| format!("{tensor} has no buffer"))
}

/// The judgement of the outputs of all executions.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) worst: f64,
    /// Counts of one execution.
    pub(super) elements: usize,
    pub(super) blunt: usize,
}

impl Judged {
    /// Judges an output of the execution whose outputs began as [`poison`] of `turn`.
    fn add(&mut self, execution: &Execution<'_>, id: TensorId, bytes: &[u8], turn: usize) -> Result<()> {
        let Some(evaluation) = &execution.evaluation else {
            return Ok(());
        };
        let report = evaluation
            .judge(id, bytes, &poison(bytes.len(), turn))
            .with_context(|| format!("execution {}", turn + 1))?;
        self.worst = self.worst.max(report.ratio);
        if turn == 0 {
            self.elements += report.elements;
            self.blunt += report.blunt;
        }
        Ok(())
    }
}

/// Returns the tensors in buffers, and whether a node writes them.
#[must_use]
pub fn stored(graph: &Graph) -> Vec<(TensorId, bool)> {
    let mut written = std::collections::HashSet::new();
    for node in &graph.nodes {
        node.op.for_each_output(&mut |_, id| {
            written.insert(id);
        });
    }
    (0..)
        .zip(&graph.tensors)
        .map(|(index, tensor)| (TensorId(index), tensor))
        .filter(|(_, tensor)| tensor.kind == TensorKind::Buffer)
        .map(|(id, _)| (id, written.contains(&id)))
        .collect()
}
