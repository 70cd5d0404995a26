//! Lowers operation graphs to MLIR: `linalg` on tensors, written as text, inside a shell of IREE's
//! ABI.
//!
//! [`check`] says whether a graph can be lowered for a target; [`emit`] lowers it; [`signature`]
//! tells the buffers of the result. What [`check`] accepts, [`emit`] lowers and the compiler
//! compiles: that is a tested property.
//!
//! | File | What it has |
//! |---|---|
//! | `dispatch` | the two `match`es over the operations: check and lowering |
//! | `conv`, `pointwise`, `block_scale`, `attention`, … | one per family of operations: its check and its lowering; families know the builder, and nothing of each other |
//! | `custom` | operations whose body the caller wrote |
//! | `lowering`, `memory` | what a family may use while it lowers; tensors between buffers and values |
//! | `step`, `reduce`, `lanes`, `sums`, `contract`, `windows`, `math`, `functions` | the builder: elements from elements, reductions, contractions, windows, scalar arithmetic |
//! | `value`, `convert`, `narrow`, `packing` | tensors in memory order, conversions, types of few bits |
//! | `ir` | the builder of operations, for structured operations and for kernels: nothing of it fails |
//! | `mlir` | types, values and operations of MLIR as data, and their text; it needs nothing of LLVM |
//! | `quirks`, `legalise` | the compiler's defects, and the forms that avoid them |
//! | `shell` | the exported function around the computation |
//! | `cost`, `workspace` | what a graph costs: its work, and the temporaries of the lowered function |
//! | `target`, `flags` | what is compiled for, and the compiler's flags |

#![expect(
    clippy::expect_used,
    reason = "nothing that validation accepted fails: what it rules out is asserted"
)]

mod attention;
mod bindings;
mod block_scale;
mod contract;
mod conv;
mod convert;
mod cost;
mod counts;
mod custom;
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

pub use cost::{operations, workspace_limit};
pub use dispatch::check;
pub use error::{EmitError, Unsupported};
pub use plan::{Plan, PlannedKernel};
pub use quirks::{Backend, Description, Effect, Guard, Quirk, Quirks, REGISTER, document as quirks_document};
pub use shell::{Argument, ENTRY_POINT, Signature, signature};
pub use target::{ConvStrategy, GPU_ALIGNMENT, Level, Target};

use ir::Emitter;
use kernel::{Kernels, WrittenKernels, has_kernels, write_kernels};
use mlir::{Block, Context, Region, Type, function_text, verified};
use rotini_graph::{NormalGraph, Op};
use rotini_schedule::gemm::{Problem, Schedule};

/// Part of the cache key: the hash of all sources that decide what a graph is lowered to, in
/// hexadecimal. The build makes it.
pub const FINGERPRINT: &str = env!("EMIT_FINGERPRINT");

/// A lowered graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The module's text, which IREE's compiler takes.
    pub mlir: String,
    /// The compiler's flags for it: those of the target, and what the graph wants besides.
    pub flags: Vec<String>,
    /// The buffers of the exported function.
    pub signature: Signature,
}

/// Lowers a graph for a target.
///
/// # Errors
///
/// [`EmitError::Unsupported`] exactly when [`check`] says so; anything else is a defect of the
/// lowering.
pub fn emit(graph: &NormalGraph, target: &Target) -> Result<Emitted, EmitError> {
    emit_avoiding(graph, target, Quirks::of(target))
}

/// [`emit`] for the test that turns quirks off: its result may then be wrong.
///
/// # Errors
///
/// As [`emit`].
#[doc(hidden)]
pub fn emit_avoiding(graph: &NormalGraph, target: &Target, quirks: Quirks) -> Result<Emitted, EmitError> {
    check(graph, target)?;
    let signature = signature(graph)?;
    let context = Context::new();
    let mut functions = custom::functions(&context, graph, (target, quirks))?;
    let lowered = Lowered::new(&context, graph, (target, quirks), &signature)?;
    functions.extend(lowered.kernels.texts);
    functions.push(function_text(&context, "compute", &lowered.results, &lowered.block));
    Ok(Emitted {
        mlir: shell::module(&functions, &signature)?,
        flags: target.flags_for(graph, quirks),
        signature,
    })
}

/// Returns the products of a graph that are kernels of rotini on a target, in the order of their
/// kernels' numbers, and their schedules.
///
/// # Errors
///
/// As [`emit`].
pub fn products(graph: &NormalGraph, target: &Target) -> Result<Vec<(Problem, Schedule)>, EmitError> {
    check(graph, target)?;
    let context = Context::new();
    let lowered = Lowered::new(&context, graph, (target, Quirks::of(target)), &signature(graph)?)?;
    Ok(lowered.kernels.products)
}

/// Returns the kernels that a graph becomes on a target. The graph is lowered for that, which takes
/// milliseconds.
///
/// # Errors
///
/// As [`emit`].
pub fn plan(graph: &NormalGraph, target: &Target) -> Result<Plan, EmitError> {
    let workspace_bytes = workspace_bound(graph, target)?;
    let context = Context::new();
    let lowered = Lowered::new(&context, graph, (target, Quirks::of(target)), &signature(graph)?)?;
    Ok(Plan::of(&context, &lowered.block.operations, target, workspace_bytes))
}

/// Returns an upper bound of the workspace, in bytes, that the compiled graph will need. The graph
/// is lowered for that, which takes milliseconds.
///
/// # Errors
///
/// As [`emit`], or if the sizes overflow.
pub fn workspace_bound(graph: &NormalGraph, target: &Target) -> Result<u64, EmitError> {
    let limit = cost::workspace_limit(graph, target)?;
    // Bodies of custom operations are separate functions.
    if graph.nodes().iter().any(|node| matches!(node.op, Op::CustomOp(_))) {
        return Ok(limit);
    }
    check(graph, target)?;
    let context = Context::new();
    let lowered = Lowered::new(&context, graph, (target, Quirks::of(target)), &signature(graph)?)?;
    let bound = workspace::bound(&context, &lowered.block.operations, target);
    Ok(bound.map_or(limit, |bound| bound.min(limit)))
}

/// A graph as the function `@compute`.
struct Lowered<'c> {
    /// What the function dispatches.
    kernels: WrittenKernels,
    block: Block,
    results: Vec<Type<'c>>,
}

impl<'c> Lowered<'c> {
    fn new(
        context: &'c Context,
        graph: &NormalGraph,
        (target, quirks): (&Target, Quirks),
        signature: &Signature,
    ) -> Result<Self, EmitError> {
        let (at, kernels) = (Emitter::new(context, quirks), Kernels::default());
        let (arguments, results) = shell::function_types(&at, signature);
        let mut block = context.block(&arguments, |arguments| {
            let mut values = Vec::new();
            let body = context.block(&[], |_| values = dispatch::run(graph, target, at, &kernels, arguments));
            if attention::is_one_dispatch(graph, target, quirks) && !has_kernels(&body) {
                let region = context.block(&[], |_| {
                    context.splice(body);
                    at.run("flow.return", &values);
                });
                // Neither extents nor a workload are given.
                let attributes = [("operandSegmentSizes", at.segments(&[0, 0]))];
                let regions = vec![region.into(), Region::empty()];
                values = at.op("flow.dispatch.region", &[], &results, &attributes, regions);
            } else {
                context.splice(body);
            }
            at.run("func.return", &values);
        });
        let kernels = write_kernels(context, &mut block.operations, &kernels, target)?;
        verified(context, &block)?;
        Ok(Lowered {
            kernels,
            block,
            results,
        })
    }
}
