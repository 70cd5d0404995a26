//! `rotini emit`: the MLIR that a graph is lowered to.

use super::answer::Answer;
use super::target_choice::chosen;
use crate::args::Emit;
use crate::input::GraphFile;
use crate::output::Output;
use anyhow::{Context as _, Result};
use rotini_emit::Argument;
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
    /// The buffers of the exported function.
    arguments: Vec<Slot>,
    mlir: String,
}

#[derive(Serialize)]
struct Slot {
    uid: i64,
    tensor: String,
    role: &'static str,
    dtype: String,
    /// In memory order.
    shape: Vec<i64>,
}

pub(super) fn emit(args: &Emit, output: &Output) -> Result<Answer> {
    let runtime = Runtime::new(Config::from_env())?;
    let target = chosen(&runtime, args.target.target.as_ref())?.target;
    let file = GraphFile::read(&args.graph);
    let plan = check(&file.bytes?, &target).with_context(|| file.path.clone())?;
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
