//! Lowers operation graphs to MLIR: `linalg` on tensors, written as text, inside a shell of IREE's
//! ABI.
//!
//! [`check`] checks whether a graph can be lowered for a target; [`emit`] lowers it; [`signature`]
//! lists the buffers of the result. What [`check`] accepts, [`emit`] lowers and the compiler
//! compiles: tests verify that.
//!
//! The modules:
//!
//! - `dispatch`: the two `match`es over the operations: check and lowering
//! - `conv`, `pointwise`, `block_scale`, `attention`, …: one per family of operations: its check
//!   and its lowering; families know the builder, but not each other
//! - `custom`: operations whose body the caller wrote
//! - `lowering`, `memory`: the state that families use while they lower; tensors between buffers
//!   and values
//! - `deferred`: operands of kernels, before the operations that prepare them are emitted
//! - `step`, `reduce`, `lanes`, `sums`, `contract`, `windows`, `math`, `functions`: the builder:
//!   elementwise operations, reductions, contractions, windows, scalar arithmetic
//! - `value`, `convert`, `narrow`, `packing`: tensors in memory order, conversions, types of few
//!   bits
//! - `ir`: the builder of operations, for structured operations and for kernels: none of its
//!   functions fails
//! - `mlir`: types, values and operations of MLIR as data, and their text, without LLVM's libraries
//! - `quirks`, `legalise`: the compiler's defects, and the forms that avoid them
//! - `shell`: the exported function around the computation
//! - `choice`: choices between forms of one computation: places, candidates, demands
//! - `cost`, `workspace`: the cost of a graph: its work, and the temporaries of the lowered
//!   function
//! - `target`, `flags`: the compilation targets, and the compiler's flags

#![expect(
    clippy::expect_used,
    reason = "nothing that validation accepted fails: what it rules out is asserted"
)]

mod attention;
mod bindings;
mod block_scale;
mod choice;
mod contract;
mod conv;
mod convert;
mod cost;
mod counts;
mod custom;
mod deferred;
mod dispatch;
mod error;
mod flags;
mod functions;
mod ir;
mod kernel;
mod lanes;
mod legalise;
mod lowering;
mod math;
mod matmul;
mod memory;
mod mlir;
mod moe;
mod narrow;
mod norm;
mod packing;
mod plan;
mod pointwise;
mod quirks;
mod reduce;
mod reduction;
mod resample;
mod shell;
mod step;
mod sums;
mod target;
mod value;
mod windows;
mod workspace;

pub use choice::{Candidate, Choices, ChoicesError, Place, configurations, estimated_us, promising};
pub use cost::{operations, workspace_limit};
pub use dispatch::check;
pub use error::{EmitError, Unsupported};
pub use plan::{Plan, PlannedKernel};
pub use quirks::{Backend, Description, Effect, Guard, Quirk, Quirks, REGISTER, document as quirks_document};
pub use rotini_schedule::known::FASTER;
pub use shell::{Argument, ENTRY_POINT, Signature, signature};
pub use target::{ConvStrategy, GPU_ALIGNMENT, Level, Target};

use choice::Chooser;
use ir::Emitter;
use kernel::{Kernels, PlacedKernels, has_kernels, place_kernels};
use mlir::{Attribute, Block, Context, Name, Region, Type, Value, function_text, verified};
use rotini_graph::{NormalGraph, Op};
use rotini_schedule::gemm::{Problem, Schedule};
use std::collections::HashSet;

/// Part of the cache key: the hexadecimal hash of all sources that decide how a graph is lowered.
/// The build script computes it.
pub const FINGERPRINT: &str = env!("EMIT_FINGERPRINT");

/// A lowered graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The module's text, which IREE's compiler takes.
    pub mlir: String,
    /// The compiler's flags for the module: those of the target, and those that the graph needs
    /// besides.
    pub flags: Vec<String>,
    /// The buffers and scalars of the exported function.
    pub signature: Signature,
}

/// Lowers a graph for a target.
///
/// # Errors
///
/// [`EmitError::Unsupported`] exactly when [`check`] says so; anything else is a defect of the
/// lowering.
pub fn emit(graph: &NormalGraph, target: &Target) -> Result<Emitted, EmitError> {
    emit_chosen(graph, target, &Choices::default())
}

/// Lowers a graph for a target with these choices. Without any choice it equals [`emit`].
///
/// # Errors
///
/// As [`emit`]; [`EmitError::Choice`] if no place of the graph takes a choice.
pub fn emit_chosen(graph: &NormalGraph, target: &Target, choices: &Choices) -> Result<Emitted, EmitError> {
    let target = &target.chosen(choices);
    let chooser = Chooser::new(target.tried(), choices);
    emit_by(graph, (target, Quirks::of(target)), &chooser)
}

/// Returns the places at which the lowering of a graph chooses. For that, the graph is lowered with
/// these choices, which takes milliseconds; one choice may create other places.
///
/// # Errors
///
/// As [`emit_chosen`].
pub fn places(graph: &NormalGraph, target: &Target, choices: &Choices) -> Result<Vec<Place>, EmitError> {
    let target = &target.chosen(choices);
    let chooser = Chooser::new(target.tried(), choices).listing();
    with_lowered(graph, target, &chooser, |_, _| ())?;
    target.flags_for(graph, Quirks::of(target), &chooser);
    chooser.expect_met()?;
    Ok(chooser.into_places())
}

/// Lowers a graph avoiding only these quirks, for the test that turns some off: the result may then
/// be wrong.
///
/// # Errors
///
/// As [`emit`].
#[doc(hidden)]
pub fn emit_avoiding(graph: &NormalGraph, target: &Target, quirks: Quirks) -> Result<Emitted, EmitError> {
    emit_by(
        graph,
        (target, quirks),
        &Chooser::new(target.tried(), &Choices::default()),
    )
}

fn emit_by(graph: &NormalGraph, (target, quirks): (&Target, Quirks), chooser: &Chooser) -> Result<Emitted, EmitError> {
    check(graph, target)?;
    let signature = signature(graph)?;
    let context = Context::new();
    let mut functions = custom::functions(&context, graph, (target, quirks))?;
    let lowered = Lowered::new(&context, graph, (target, quirks, chooser), &signature)?;
    for executable in lowered.kernels.executables {
        functions.push(executable.text()?);
    }
    functions.push(function_text(&context, "compute", &lowered.results, &lowered.block));
    let flags = target.flags_for(graph, quirks, chooser);
    chooser.expect_met()?;
    Ok(Emitted {
        mlir: shell::module(&functions, &signature)?,
        flags,
        signature,
    })
}

/// Returns the products of a graph that rotini's kernels compute on a target, with their schedules,
/// in the order of the kernels' numbers.
///
/// # Errors
///
/// As [`emit`].
pub fn products(graph: &NormalGraph, target: &Target) -> Result<Vec<(Problem, Schedule)>, EmitError> {
    let chooser = Chooser::new(target.tried(), &Choices::default());
    with_lowered(graph, target, &chooser, |_, lowered| lowered.kernels.products)
}

/// Returns the kernels that a graph consists of on a target. For that, the graph is lowered, which
/// takes milliseconds.
///
/// # Errors
///
/// As [`emit`].
pub fn plan(graph: &NormalGraph, target: &Target) -> Result<Plan, EmitError> {
    plan_chosen(graph, target, &Choices::default())
}

/// [`plan`] with these choices.
///
/// # Errors
///
/// As [`emit_chosen`].
pub fn plan_chosen(graph: &NormalGraph, target: &Target, choices: &Choices) -> Result<Plan, EmitError> {
    let workspace_bytes = workspace_bound_chosen(graph, target, choices)?;
    let target = &target.chosen(choices);
    let chooser = Chooser::new(target.tried(), choices);
    with_lowered(graph, target, &chooser, |context, lowered| {
        Plan::of(context, &lowered.block.operations, target, workspace_bytes)
    })
}

/// Returns an upper bound, in bytes, of the workspace that the compiled graph will need. For that,
/// the graph is lowered, which takes milliseconds.
///
/// # Errors
///
/// As [`emit`], or if the sizes overflow.
pub fn workspace_bound(graph: &NormalGraph, target: &Target) -> Result<u64, EmitError> {
    workspace_bound_chosen(graph, target, &Choices::default())
}

/// [`workspace_bound`] with these choices.
///
/// # Errors
///
/// As [`emit_chosen`], or if the sizes overflow.
pub fn workspace_bound_chosen(graph: &NormalGraph, target: &Target, choices: &Choices) -> Result<u64, EmitError> {
    let target = &target.chosen(choices);
    let limit = cost::workspace_limit(graph, target)?;
    // The bodies of custom operations are separate functions, which the bound does not cover.
    if graph.nodes().iter().any(|node| matches!(node.op, Op::CustomOp(_))) {
        return Ok(limit);
    }
    let chooser = Chooser::new(target.tried(), choices);
    let bound = with_lowered(graph, target, &chooser, |context, lowered| {
        workspace::bound(context, &lowered.block.operations, target)
    })?;
    // The limit holds only for the usual forms.
    let limited = |bound: u64| if choices.is_empty() { bound.min(limit) } else { bound };
    Ok(bound.map_or(limit, limited))
}

/// Lowers a graph without the bodies of its kernels, and passes the result to `read`.
fn with_lowered<T>(
    graph: &NormalGraph,
    target: &Target,
    chooser: &Chooser,
    read: impl FnOnce(&Context, Lowered<'_>) -> T,
) -> Result<T, EmitError> {
    check(graph, target)?;
    let (context, quirks) = (Context::new(), Quirks::of(target));
    let lowered = Lowered::new(&context, graph, (target, quirks, chooser), &signature(graph)?)?;
    Ok(read(&context, lowered))
}

/// A graph as the function `@compute`.
struct Lowered<'c> {
    /// The kernels of rotini that the function dispatches.
    kernels: PlacedKernels<'c>,
    block: Block,
    results: Vec<Type<'c>>,
}

impl<'c> Lowered<'c> {
    fn new(
        context: &'c Context,
        graph: &NormalGraph,
        (target, quirks, chooser): (&Target, Quirks, &Chooser),
        signature: &Signature,
    ) -> Result<Self, EmitError> {
        let (at, kernels) = (Emitter::new(context, quirks), Kernels::default());
        let (arguments, results) = shell::function_types(&at, signature);
        let mut block = context.block(&arguments, |arguments| {
            let mut values = Vec::new();
            let mut body = context.block(&[], |_| {
                values = dispatch::run(graph, target, at, (&kernels, chooser), arguments)
            });
            remove_unread(&mut body, &values);
            if attention::is_one_dispatch(graph, target, quirks) && !has_kernels(&body) {
                let region = context.block(&[], |_| {
                    context.splice(body);
                    at.run(Name::FlowReturn, &values);
                });
                // The region has neither dynamic extents nor a workload.
                let attributes = [("operandSegmentSizes", Attribute::i32_array(&[0, 0]))];
                let regions = vec![region.into(), Region::empty()];
                values = at.op(Name::FlowDispatchRegion, &[], &results, &attributes, regions);
            } else {
                context.splice(body);
            }
            at.run(Name::FuncReturn, &values);
        });
        let kernels = place_kernels(context, &mut block.operations, (&kernels, chooser), target);
        verified(context, &block)?;
        Ok(Lowered {
            kernels,
            block,
            results,
        })
    }
}

/// Removes the operations whose results nothing reads, such as those of an output of an operation
/// that the graph does not use.
fn remove_unread(block: &mut Block, results: &[Value<'_>]) {
    let mut read: HashSet<usize> = results.iter().map(|value| value.id()).collect();
    let mut kept = Vec::new();
    while let Some(operation) = block.operations.pop() {
        if operation.results().iter().any(|id| read.contains(id)) {
            read.extend(operation.all_operands());
            kept.push(operation);
        }
    }
    kept.reverse();
    block.operations = kept;
}
