//! `rotini replay`: compiles a module again on which the compiler once failed.

use super::answer::Answer;
use crate::args::Replay;
use crate::failure::chain;
use crate::output::{BAD, FAINT, GOOD, Output};
use crate::report::{bytes, time};
use anyhow::{Context as _, Result};
use rotini_emit::Target;
use rotini_iree::compiler::CompileRequest;
use rotini_plugin::config::Config;
use rotini_plugin::prepared::check;
use rotini_plugin::reproducer::Reproducer;
use rotini_plugin::runtime::Runtime;
use serde::Serialize;
use std::time::{Duration, Instant};

#[derive(Debug, Serialize)]
struct Document {
    /// Whether the module compiles now.
    ok: bool,
    directory: String,
    target: String,
    /// The compiler's build.
    compiler: String,
    same_compiler: bool,
    /// Whether the graph is still lowered to the same module; absent if the graph is missing or is
    /// declined now.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_module: Option<bool>,
    /// The recorded error.
    recorded: String,
    /// The error of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// All diagnostics of the compiler.
    diagnostics: String,
    /// Size of the vmfb in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    compile_us: u64,
}

pub(super) fn replay(args: &Replay, output: &Output) -> Result<Answer> {
    let directory = args.directory.display().to_string();
    let reproducer = Reproducer::read(&args.directory)
        .with_context(|| format!("{directory} is not what a failed compilation leaves behind"))?;
    let runtime = Runtime::new(Config::from_env())?;
    let compiler = runtime.compiler()?;
    let started = Instant::now();
    let result = compiler.compile(&CompileRequest {
        mlir: &reproducer.mlir,
        // The name of the file in the directory, so that diagnostics refer to it.
        name: "rotini.mlir",
        flags: &reproducer.versions.flags,
        dump_executables: None,
    });
    let compile_us = u64::try_from(started.elapsed().as_micros())?;
    let (size, error, diagnostics) = match result {
        Ok(compiled) => (Some(compiled.vmfb.len() as u64), None, compiled.diagnostics),
        Err(error) => (None, Some(chain(&error)), error.diagnostics().to_owned()),
    };
    let same_module = lowered(&reproducer).map(|mlir| mlir == reproducer.mlir);
    let versions = reproducer.versions;
    tell(
        Document {
            ok: error.is_none(),
            directory,
            target: versions.target,
            compiler: compiler.identity().to_owned(),
            same_compiler: compiler.identity() == versions.compiler,
            same_module,
            recorded: versions.error,
            error,
            diagnostics,
            bytes: size,
            compile_us,
        },
        output,
    )
}

/// Returns the module that the graph is lowered to now.
fn lowered(reproducer: &Reproducer) -> Option<String> {
    let target = Target::parse(&reproducer.versions.target)?;
    let plan = check(&reproducer.graph, &target).ok()?;
    Some(rotini_emit::emit(&plan.graph, &target).ok()?.mlir)
}

fn tell(document: Document, output: &Output) -> Result<Answer> {
    let answer = Answer::of(document.ok);
    if output.json {
        output.document(&document)?;
        return Ok(answer);
    }
    let line = |item: &str, text: &str| output.line(&format!("{item:>10} {FAINT}│{FAINT:#} {text}"));
    line("reproducer", &document.directory)?;
    line("target", &document.target)?;
    line(
        "compiler",
        if document.same_compiler {
            "the build that failed"
        } else {
            "another build than the one that failed"
        },
    )?;
    line(
        "module",
        match document.same_module {
            Some(true) => "the graph is lowered to the same one today",
            Some(false) => "the graph is lowered to another one today; the old one is compiled here",
            None => "the graph is missing or declined today",
        },
    )?;
    line("recorded", &document.recorded)?;
    let elapsed = time(Duration::from_micros(document.compile_us));
    match &document.error {
        Some(error) => line("now", &format!("{BAD}{error}{BAD:#} (after {elapsed})"))?,
        None => {
            let size = bytes(document.bytes.unwrap_or_default());
            line("now", &format!("{GOOD}compiles{GOOD:#} to {size} in {elapsed}"))?;
        }
    }
    if !document.diagnostics.trim().is_empty() {
        output.line("")?;
        output.line(document.diagnostics.trim_end())?;
    }
    Ok(answer)
}
