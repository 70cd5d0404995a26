//! The reference engine: evaluates graphs with `rotini-reference`, in the process's memory or, by
//! copying, in a GPU's.
//!
//! Rotini's setting `ROTINI_DEVICE` selects the memory: `cpu`, `hip` or `cuda`. If it is not set,
//! the engine uses a GPU if the process has loaded HIP, else the process's memory. Of several GPUs
//! it uses the first. On a GPU it waits for the stream, copies, evaluates on the CPU and copies
//! back: its results are meaningful there, its times are not.

use crate::Buffers;
use crate::device::Device;
use rotini_graph::{Graph, Op, Tensor, TensorId, TensorKind};
use rotini_reference as reference;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Arc;

/// Limit of the number of elements of all tensors of a graph: each is a binary64 during evaluation.
const MOST_ELEMENTS: i64 = 1 << 25;

/// Limit of the number of operations of a graph, by the estimate of [`work`]. At the limit, matrix
/// products take seconds, and operations that cost more than an addition take longer.
const MOST_WORK: i64 = 1 << 33;

/// Number of operations up to which a graph is evaluated to check whether the reference supports
/// all of it: that takes milliseconds.
const TRIED_WORK: i64 = 1 << 20;

/// The reference engine on a device.
pub struct Reference {
    /// The GPU; `None` for the process's memory.
    device: Option<Arc<Device>>,
}

impl Reference {
    /// Creates the engine on the device that the environment selects.
    ///
    /// # Errors
    ///
    /// Fails if the selected GPU does not exist.
    pub fn new() -> Result<Self, String> {
        let device = Device::of_environment()?;
        Ok(Reference {
            device: device.map(Arc::new),
        })
    }

    /// Checks that a graph is small enough and contains nothing that the reference is known not to
    /// support.
    ///
    /// # Errors
    ///
    /// Returns the reason why the graph is declined.
    pub fn applicable(&self, graph: &Graph) -> Result<(), String> {
        if let Some(ragged) = graph.tensors.iter().find(|tensor| tensor.ragged_offset.is_some()) {
            return Err(format!("{ragged} is ragged"));
        }
        let elements = graph.tensors.iter().map(elements).fold(0, i64::saturating_add);
        if elements > MOST_ELEMENTS {
            return Err(format!("{elements} elements are more than {MOST_ELEMENTS}"));
        }
        let work = work(graph);
        if work > MOST_WORK {
            return Err(format!("{work} operations are more than {MOST_WORK}"));
        }
        if work <= TRIED_WORK {
            let mut buffers = reference::fill_all(graph, 0).map_err(|error| error.to_string())?;
            reference::execute(graph, &mut buffers).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Creates the plan that evaluates a graph.
    #[must_use]
    pub fn plan(&self, graph: &Graph) -> Plan {
        let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
        for node in &graph.nodes {
            node.op.for_each_input(&mut |_, id| _ = read.insert(id));
            node.op.for_each_output(&mut |_, id| _ = written.insert(id));
        }
        let in_buffers = |ids: BTreeSet<TensorId>| -> Vec<Tensor> {
            let tensors = ids.into_iter().filter_map(|id| graph.tensor(id));
            let stored = |tensor: &&Tensor| matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar);
            tensors.filter(stored).cloned().collect()
        };
        Plan {
            inputs: in_buffers(&read - &written),
            outputs: in_buffers(written),
            graph: graph.clone(),
            device: self.device.clone(),
        }
    }
}

/// The evaluation of one graph.
pub struct Plan {
    graph: Graph,
    /// The caller's tensors (buffers and runtime scalars) that no node writes.
    inputs: Vec<Tensor>,
    /// The caller's tensors that a node writes.
    outputs: Vec<Tensor>,
    device: Option<Arc<Device>>,
}

impl Plan {
    /// Returns the uid of the first input.
    #[must_use]
    pub fn input(&self) -> Option<i64> {
        self.inputs.first().map(|tensor| tensor.uid)
    }

    /// Returns the uid of the first output.
    #[must_use]
    pub fn output(&self) -> Option<i64> {
        self.outputs.first().map(|tensor| tensor.uid)
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// Evaluates the graph, lets `change` modify its buffers, and writes back the buffers that
    /// differ afterwards.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure.
    ///
    /// # Safety
    ///
    /// The same as for [`Execution::execute`](crate::Execution::execute).
    pub unsafe fn execute(
        &self,
        buffers: Buffers<'_>,
        stream: *mut c_void,
        change: impl FnOnce(&mut reference::Buffers),
    ) -> Result<(), String> {
        if let Some(device) = &self.device {
            // SAFETY: by this function's contract.
            unsafe { device.wait(stream) }?;
        }
        let mut before = reference::Buffers::new();
        for tensor in self.tensors() {
            let mut bytes = vec![0; reference::span_bytes(tensor).map_err(|error| error.to_string())?];
            // SAFETY: the buffer has the tensor's span, by this function's contract.
            unsafe { self.read(tensor, buffers.pointer(tensor)?, &mut bytes) }?;
            before.insert(tensor.uid, bytes);
        }
        let mut after = before.clone();
        reference::execute(&self.graph, &mut after).map_err(|error| error.to_string())?;
        change(&mut after);
        for tensor in self.tensors() {
            if let (Some(before), Some(after)) = (before.get(&tensor.uid), after.get(&tensor.uid))
                && before != after
            {
                // SAFETY: as above. If `change` lengthened the bytes, only as many as the buffer
                // holds are written.
                unsafe {
                    self.write(
                        tensor,
                        buffers.pointer(tensor)?,
                        after.get(..before.len()).unwrap_or_default(),
                    )
                }?;
            }
        }
        Ok(())
    }

    /// Returns the device that holds a tensor's buffer; `None` for the host, which holds all
    /// runtime scalars.
    fn owner(&self, tensor: &Tensor) -> Option<&Device> {
        self.device.as_deref().filter(|_| tensor.kind == TensorKind::Buffer)
    }

    /// Copies the contents of a tensor's buffer.
    ///
    /// # Safety
    ///
    /// The tensor's buffer must have at least `bytes.len()` bytes.
    unsafe fn read(&self, tensor: &Tensor, from: *const c_void, bytes: &mut [u8]) -> Result<(), String> {
        if let Some(device) = self.owner(tensor) {
            // SAFETY: by this function's contract.
            return unsafe { device.read(from, bytes) };
        }
        // SAFETY: `from` is valid by this function's contract; `bytes` is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Overwrites the contents of a tensor's buffer.
    ///
    /// # Safety
    ///
    /// The tensor's buffer must have at least `bytes.len()` bytes, which nothing else uses.
    unsafe fn write(&self, tensor: &Tensor, to: *mut c_void, bytes: &[u8]) -> Result<(), String> {
        if let Some(device) = self.owner(tensor) {
            // SAFETY: by this function's contract.
            return unsafe { device.write(to, bytes) };
        }
        // SAFETY: `to` is valid by this function's contract; `bytes` is borrowed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
        Ok(())
    }
}

fn elements(tensor: &Tensor) -> i64 {
    tensor.dims.iter().fold(1, |product, &dim| product.saturating_mul(dim))
}

/// Estimates the number of operations of a graph.
fn work(graph: &Graph) -> i64 {
    let elements = |id: TensorId| graph.tensor(id).map_or(0, elements);
    let dim = |id: TensorId, axis: usize| graph.tensor(id).and_then(|tensor| tensor.dims.get(axis).copied());
    let last = |id: TensorId| graph.tensor(id).and_then(|tensor| tensor.dims.last().copied());
    // Each element of y or dy is multiplied with the filter of one output channel.
    let convolution = |result: TensorId, w: TensorId| {
        let filter = elements(w).checked_div(dim(w, 0).unwrap_or(1)).unwrap_or(0);
        elements(result).saturating_mul(filter)
    };
    let of_node = |op: &Op| match op {
        Op::ConvFprop(op) => convolution(op.y, op.w),
        Op::ConvDgrad(op) => convolution(op.dy, op.w),
        Op::ConvWgrad(op) => convolution(op.dy, op.dw),
        Op::Matmul(op) => elements(op.c).saturating_mul(last(op.a).unwrap_or(1)),
        Op::MoeGroupedMatmul(op) => elements(op.output).saturating_mul(last(op.token).unwrap_or(1)),
        Op::MoeGroupedMatmulBwd(op) => elements(op.doutput).saturating_mul(last(op.token).unwrap_or(1)),
        Op::ResampleFwd(op) => op
            .window
            .iter()
            .fold(elements(op.y), |all, &side| all.saturating_mul(side)),
        Op::ResampleBwd(op) => op
            .window
            .iter()
            .fold(elements(op.dy), |all, &side| all.saturating_mul(side)),
        Op::Sdpa(op) => elements(op.q)
            .saturating_add(elements(op.o))
            .saturating_mul(dim(op.k, 2).unwrap_or(1)),
        Op::SdpaBackward(op) => elements(op.q)
            .saturating_mul(5)
            .saturating_mul(dim(op.k, 2).unwrap_or(1)),
        op => {
            let mut all = 0_i64;
            op.for_each_input(&mut |_, id| all = all.saturating_add(elements(id)));
            op.for_each_output(&mut |_, id| all = all.saturating_add(elements(id)));
            all
        }
    };
    let work = graph.nodes.iter().map(|node| of_node(&node.op));
    work.fold(0, i64::saturating_add)
}
