//! Lowers operation graphs to MLIR: `linalg` on tensors, built and verified with melior, inside a shell of IREE's ABI.
//!
//! [`check`] says whether a graph can be lowered for a target; [`emit`] lowers it; [`signature`] tells the buffers of the result.
//! What [`check`] accepts, [`emit`] lowers and the compiler compiles: that is a tested property.
//!
//! | File | What it has |
//! |---|---|
//! | `dispatch` | the two `match`es over the operations: check and lowering |
//! | `conv`, `pointwise`, `block_scale`, `attention`, … | one per family of operations: its check and its lowering; families know the builder, and nothing of each other |
//! | `custom` | operations whose body the caller wrote |
//! | `lowering`, `memory` | what a family may use while it lowers; tensors between buffers and values |
//! | `step`, `reduce`, `merged`, `spread`, `sums`, `contract`, `windows`, `math`, `functions` | the builder: elements from elements, reductions, contractions, windows, scalar arithmetic |
//! | `value`, `convert`, `narrow`, `packing`, `ir` | tensors in memory order, conversions, types of few bits, building blocks over melior |
//! | `quirks` | the compiler's defects that are avoided |
//! | `shell` | the exported function around the computation |
//! | `target`, `flags` | what is compiled for, and the compiler's flags |

mod attention;
mod bindings;
mod block_scale;
mod contract;
mod conv;
mod convert;
mod cost;
mod custom;
mod dispatch;
mod error;
mod flags;
mod functions;
mod fused;
mod ir;
mod lanes;
mod lowering;
mod math;
mod matmul;
mod memory;
mod merged;
mod moe;
mod narrow;
mod norm;
mod packing;
mod pointwise;
mod quirks;
mod reduce;
mod reduction;
mod resample;
mod shell;
mod spread;
mod step;
mod sums;
mod target;
mod value;
mod windows;

pub use cost::{operations, workspace_bound};
pub use dispatch::check;
pub use error::{EmitError, Unsupported};
pub use quirks::{Backend, Description, Effect, Guard, Quirk, Quirks, REGISTER, document as quirks_document};
pub use shell::{Argument, ENTRY_POINT, Signature, signature};
pub use target::{ConvStrategy, GPU_ALIGNMENT, Target};

use ir::{Emitter, context};
use melior::ir::{Block, Location, Region, RegionLike};
use rotini_graph::NormalGraph;
use std::cell::RefCell;
use std::rc::Rc;

/// Part of the cache key: the hash of all sources that decide what a graph is lowered to, in hexadecimal. The build makes it.
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
/// [`EmitError::Unsupported`] exactly when [`check`] says so; anything else is a defect of the lowering.
pub fn emit(graph: &NormalGraph, target: &Target) -> Result<Emitted, EmitError> {
    emit_avoiding(graph, target, Quirks::of(target))
}

/// [`emit`] for the test that turns quirks off: what it gives then may be wrong.
///
/// # Errors
///
/// As [`emit`].
#[doc(hidden)]
pub fn emit_avoiding(graph: &NormalGraph, target: &Target, quirks: Quirks) -> Result<Emitted, EmitError> {
    check(graph, target)?;
    let signature = signature(graph)?;
    let context = context();
    let diagnostics: Rc<RefCell<Vec<String>>> = Rc::default();
    let sink = Rc::clone(&diagnostics);
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        // Called from C++: a failed borrow must not panic.
        if let Ok(mut messages) = sink.try_borrow_mut() {
            messages.push(diagnostic.to_string());
        }
        true
    });
    let result = custom::functions(&context, graph, (target, quirks)).and_then(|mut functions| {
        functions.push(computation(&context, graph, target, quirks, &signature)?);
        Ok(functions)
    });
    context.detach_diagnostic_handler(handler);
    let functions = result.map_err(|error| match error {
        EmitError::InvalidIr { diagnostics: message } => {
            let mut messages = diagnostics.take();
            messages.push(message);
            EmitError::InvalidIr {
                diagnostics: messages.join("; "),
            }
        }
        other => other,
    })?;
    Ok(Emitted {
        mlir: shell::module(&functions, &signature)?,
        flags: target.flags_for(graph, quirks),
        signature,
    })
}

/// The text of the verified function `@compute`.
fn computation(
    context: &melior::Context,
    graph: &NormalGraph,
    target: &Target,
    quirks: Quirks,
    signature: &Signature,
) -> Result<String, EmitError> {
    let location = Location::unknown(context);
    let outer = Block::new(&[]);
    let (arguments, results) = shell::function_types(&Emitter::new(context, quirks, &outer), signature)?;
    let block = Block::new(&arguments.iter().map(|&ty| (ty, location)).collect::<Vec<_>>());
    let inside = Emitter::new(context, quirks, &block);
    if attention::is_one_dispatch(graph, target, quirks) {
        // A dispatch that IREE leaves as it is.
        let dispatch = Block::new(&[]);
        {
            let at = inside.inside(&dispatch);
            let values = dispatch::run(graph, target, at, &block)?;
            at.terminate("flow.return", &values)?;
        }
        let region = Region::new();
        region.append_block(dispatch);
        // Neither extents nor a workload are given.
        let attributes = [("operandSegmentSizes", inside.segments(&[0, 0]))];
        let regions = vec![region, Region::new()];
        let values = inside.op("flow.dispatch.region", &[], &results, &attributes, regions)?;
        inside.terminate("func.return", &values)?;
    } else {
        let values = dispatch::run(graph, target, inside, &block)?;
        inside.terminate("func.return", &values)?;
    }
    ir::function(context, "compute", &arguments, &results, block)
}
