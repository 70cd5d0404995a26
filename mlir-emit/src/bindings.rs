//! Limits the number of buffers that a kernel uses to the number that the runtime can pass.
//!
//! The compiler fuses operations as long as a kernel has fewer than 49 operands. IREE's runtime
//! passes a kernel 32 buffers on the CPU and 16 on GPUs. So if a kernel would get more, the
//! lowering puts one of the steps into a separate dispatch.

use crate::target::Target;
use rotini_graph::{NormalGraph, NormalKind, TensorId};
use std::collections::BTreeSet;

/// Returns the most buffers that one kernel may use, apart from the workspace and other arguments.
pub(crate) const fn most_buffers(target: &Target) -> usize {
    match target {
        Target::Cpu | Target::X86(_) => 24,
        Target::Rocm { .. } | Target::Cuda { .. } => 12,
    }
}

/// Returns, for each tensor, whether it is computed in a separate dispatch from its readers, so
/// that no kernel has too many buffers.
pub(crate) fn crowded(graph: &NormalGraph, target: &Target) -> Vec<bool> {
    let most = most_buffers(target);
    let mut is_crowded = vec![false; graph.tensors().len()];
    // For each tensor, the buffers of a kernel that computes or reads it.
    let mut buffers: Vec<BTreeSet<TensorId>> = vec![BTreeSet::new(); graph.tensors().len()];
    for (index, tensor) in (0..).zip(graph.tensors()) {
        if let Some(buffers) = buffers.get_mut(TensorId(index).index())
            && matches!(tensor.kind, NormalKind::Input | NormalKind::Output)
        {
            buffers.insert(TensorId(index));
        }
    }
    for node in graph.nodes() {
        let (mut read, mut written) = (Vec::new(), BTreeSet::new());
        node.op.for_each_input(&mut |_, id| read.push(id));
        let mut outputs = Vec::new();
        node.op.for_each_output(&mut |_, id| outputs.push(id));
        for id in &outputs {
            written.extend(buffers.get(id.index()).into_iter().flatten().copied());
        }
        loop {
            let of = |id: &TensorId| buffers.get(id.index());
            let mut all: BTreeSet<TensorId> = read.iter().filter_map(of).flatten().copied().collect();
            all.extend(&written);
            let largest = read.iter().max_by_key(|id| of(id).map_or(0, BTreeSet::len)).copied();
            match largest.filter(|id| all.len() > most && of(id).is_some_and(|buffers| buffers.len() > 1)) {
                Some(id) => {
                    if let (Some(flag), Some(buffers)) = (is_crowded.get_mut(id.index()), buffers.get_mut(id.index())) {
                        *flag = true;
                        *buffers = BTreeSet::from([id]);
                    }
                }
                None => {
                    for id in &outputs {
                        if let Some(buffers) = buffers.get_mut(id.index()) {
                            buffers.extend(&all);
                        }
                    }
                    break;
                }
            }
        }
    }
    is_crowded
}
