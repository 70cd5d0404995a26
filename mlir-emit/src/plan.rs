//! The kernels that a lowered graph consists of.

use crate::kernel::called;
use crate::mlir::{Context, Name, Operation, Region, Role};
use crate::target::Target;
use crate::workspace::Grouping;
use std::collections::HashSet;

/// The kernels of a graph, in the order of their dispatches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The kernels.
    pub kernels: Vec<PlannedKernel>,
    /// An upper bound of the workspace, in bytes.
    pub workspace_bytes: u64,
}

/// A kernel of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedKernel {
    /// The kernel's name if it is one of rotini's. IREE generates the others, and may fuse them
    /// further.
    pub name: Option<String>,
    /// The operations that the kernel computes, by MLIR's names; for a kernel of rotini, only the
    /// operations that are fused into it.
    pub operations: Vec<String>,
    /// The types of the tensors that it reads, as MLIR writes them.
    pub reads: Vec<String>,
    /// The types of the tensors that it stores.
    pub stores: Vec<String>,
}

impl Plan {
    pub(crate) fn of(context: &Context, operations: &[Operation], target: &Target, workspace_bytes: u64) -> Self {
        let grouping = Grouping::of(context, operations, target);
        let mut kernels = Vec::new();
        for (position, last) in operations.iter().enumerate() {
            let is_member = |number: &usize| grouping.kernels[*number] == Some(position);
            let members: Vec<&Operation> = (0..=position)
                .filter(is_member)
                .map(|number| &operations[number])
                .collect();
            if members.is_empty() {
                continue;
            }
            let made: Vec<usize> = members.iter().flat_map(|member| member.results()).copied().collect();
            let tensor = |id: usize| {
                let r#type = context.value(id).r#type();
                r#type.if_tensor().map(|_| r#type.to_string())
            };
            let mut read: Vec<usize> = members.iter().flat_map(|member| member.all_operands()).collect();
            read.retain(|id| !made.contains(id) && !is_uninitialized(operations, *id));
            let mut seen = HashSet::new();
            read.retain(|id| seen.insert(*id));
            kernels.push(PlannedKernel {
                name: called(last).map(str::to_owned),
                operations: match last.role() {
                    Role::Call(kernel) => kernel.fused.clone(),
                    _ => members.into_iter().flat_map(names).collect(),
                },
                reads: read.into_iter().filter_map(tensor).collect(),
                stores: last.results().iter().copied().filter_map(tensor).collect(),
            });
        }
        Plan {
            kernels,
            workspace_bytes,
        }
    }
}

/// Returns true if a value is an uninitialized tensor, a fill of one, or a constant.
fn is_uninitialized(operations: &[Operation], id: usize) -> bool {
    let maker = operations.iter().find(|operation| operation.results().contains(&id));
    maker.is_some_and(|maker| matches!(maker.name(), Name::TensorEmpty | Name::LinalgFill | Name::ArithConstant))
}

/// Returns the name of an operation, and the names of operations in its body that compute
/// something.
fn names(operation: &Operation) -> Vec<String> {
    let bodies = operation.regions().iter().filter_map(Region::body);
    let inside = bodies.flat_map(|(_, operations)| operations.iter().flat_map(names));
    let kind = match operation.structure() {
        Some(structure) if structure.reduces() => "reduction".to_owned(),
        Some(_) => return inside.collect(),
        None => operation.name().to_string(),
    };
    let is_silent = kind.ends_with(".yield") || matches!(operation.name(), Name::ArithConstant | Name::LinalgIndex);
    (!is_silent).then_some(kind).into_iter().chain(inside).collect()
}
