//! `rotini emit`: the MLIR that a graph is lowered to.

use super::answer::Answer;
use super::target_choice::chosen;
use crate::args::Emit;
use crate::input::GraphFile;
use crate::output::Output;
use crate::report;
use anyhow::{Context as _, Result};
use rotini_emit::{Argument, Plan, Target};
use rotini_graph::SlotRole;
use rotini_plugin::config::Config;
use rotini_plugin::prepared::check;
use rotini_plugin::runtime::Runtime;
use serde::Serialize;

#[derive(Serialize)]
struct Document {
    ok: bool,
    graph: String,
    target: String,
    /// The arguments of the exported function.
    arguments: Vec<Slot>,
    mlir: String,
}

#[derive(Serialize)]
struct Slot {
    uid: i64,
    tensor: String,
    role: &'static str,
    dtype: String,
    /// Extents in memory order.
    shape: Vec<i64>,
}

#[derive(Serialize)]
struct PlanDocument {
    ok: bool,
    graph: String,
    target: String,
    /// The kernels in the order of their dispatches.
    kernels: Vec<Kernel>,
    /// Upper bound of the workspace in bytes.
    workspace_bytes: u64,
}

#[derive(Serialize)]
struct Kernel {
    /// `rotini`, or `IREE`, which may fuse its kernels further.
    written_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// For IREE's kernels all operations; for rotini's kernels those that are fused into them.
    operations: Vec<String>,
    reads: Vec<String>,
    stores: Vec<String>,
}

/// Writes the kernels that a graph is lowered to.
fn write_plan(graph: String, target: &Target, plan: Plan, output: &Output) -> Result<Answer> {
    let kernels = plan.kernels.into_iter().map(|kernel| Kernel {
        written_by: if kernel.name.is_some() { "rotini" } else { "IREE" },
        name: kernel.name,
        operations: kernel.operations,
        reads: kernel.reads,
        stores: kernel.stores,
    });
    let document = PlanDocument {
        ok: true,
        graph,
        target: target.to_string(),
        kernels: kernels.collect(),
        workspace_bytes: plan.workspace_bytes,
    };
    if output.json {
        output.document(&document)?;
        return Ok(Answer::Yes);
    }
    let mut table = report::table(&["written by", "kernel", "operations", "reads", "stores"]);
    for kernel in &document.kernels {
        table.add_row([
            kernel.written_by,
            kernel.name.as_deref().unwrap_or_default(),
            &kernel.operations.join(", "),
            &kernel.reads.join("\n"),
            &kernel.stores.join("\n"),
        ]);
    }
    output.line(&table.to_string())?;
    output.line(&format!("workspace: at most {} bytes", document.workspace_bytes))?;
    Ok(Answer::Yes)
}

pub(super) fn emit(args: &Emit, output: &Output) -> Result<Answer> {
    let runtime = Runtime::new(Config::from_env())?;
    let target = chosen(&runtime, args.target.target.as_ref())?.target;
    let file = GraphFile::read(&args.graph);
    let plan = check(&file.bytes?, &target).with_context(|| file.path.clone())?;
    if args.plan {
        let kernels = rotini_emit::plan(&plan.graph, &target).with_context(|| file.path.clone())?;
        return write_plan(file.path, &target, kernels, output);
    }
    let emitted = rotini_emit::emit(&plan.graph, &target).with_context(|| file.path.clone())?;
    if !output.json {
        output.line(emitted.mlir.trim_end())?;
        return Ok(Answer::Yes);
    }
    let slot = |(argument, (uid, label)): (&Argument, (&i64, &String))| Slot {
        uid: *uid,
        tensor: label.clone(),
        role: match argument.role {
            SlotRole::Input => "input",
            SlotRole::Scalar => "scalar",
            SlotRole::Output => "output",
        },
        dtype: argument.dtype.to_string(),
        shape: argument.shape.clone(),
    };
    let labels = plan.bindings.uids.iter().zip(&plan.bindings.labels);
    output.document(&Document {
        ok: true,
        graph: file.path,
        target: target.to_string(),
        arguments: emitted.signature.arguments.iter().zip(labels).map(slot).collect(),
        mlir: emitted.mlir,
    })?;
    Ok(Answer::Yes)
}
