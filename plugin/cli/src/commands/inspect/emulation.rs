//! Executes a graph on the emulator, in a process whose environment configures the emulator.

use crate::args::{EMULATE_GRAPH, EmulateGraph, Inspect};
use crate::commands::answer::Answer;
use crate::failure::Failure;
use crate::plugin;
use anyhow::{Context as _, Result, anyhow, bail};
use rotini_emit::Target;
use rotini_inspect::{Emulator, Launch, emulate};
use rotini_plugin::knobs::SCHEDULE;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Limit of a graph's tensors in bytes, because the emulator keeps them in this machine's memory.
const MOST_BYTES: usize = 8 << 30;

/// The launches of a graph.
pub(super) struct Executed {
    /// Launches of the sampled execution, from which times are predicted
    pub(super) sampled: Vec<Launch>,
    /// The same launches with all workgroups executed, if requested
    pub(super) all: Option<Vec<Launch>>,
}

/// Executes a graph on a sample of the workgroups, and if `all` is set, once more on all of them.
pub(super) fn execute(graph: &[u8], target: &Target, all: bool, args: &Inspect) -> Result<Executed> {
    let emulator = args.emulator.as_deref().ok_or_else(|| {
        anyhow!(Failure::Environment(
            "no emulator: --emulator or ROTINI_HIP_EMULATOR names its library, which `cargo build -p rotini-hip-emulator` makes".to_owned()
        ))
    })?;
    let emulator = std::path::absolute(emulator)?;
    let plugin = plugin::locate(args.plugin.plugin.as_deref())?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("graph.fb");
    fs::write(&file, graph)?;
    let run = |sample: Option<&str>, reports: &Path| -> Result<Vec<Launch>> {
        let mut command = Command::new(env::current_exe().context("this program's own path is not known")?);
        command
            .arg(EMULATE_GRAPH)
            .args([&file, &emulator, &plugin])
            .arg(reports);
        command
            .env("HIPEMU_REPORT", reports)
            .env("HIPEMU_STRICT", "0")
            .env("ROTINI_DEVICE", "hip")
            .env("ROTINI_HIP_LIBRARY", &emulator)
            .env("ROTINI_TARGET", target.to_string())
            // The target's name already says whether rotini or the compiler chooses the schedules.
            .env_remove("ROTINI_SCHEDULES");
        match sample {
            Some(sample) => command.env("HIPEMU_SAMPLE", sample),
            None => command.env_remove("HIPEMU_SAMPLE"),
        };
        let done = command.output().context("this program cannot be started again")?;
        if !done.status.success() {
            let told = String::from_utf8_lossy(&done.stderr);
            let told = told.trim().trim_start_matches("error: ");
            bail!("the graph cannot be executed on the emulator ({}): {told}", done.status);
        }
        let text =
            fs::read_to_string(reports).context("the emulator wrote no reports: it runs no kernel, or it is none")?;
        Ok(emulate::read(&text)?)
    };
    Ok(Executed {
        sampled: run(Some(emulate::SAMPLE), &directory.path().join("sampled"))?,
        all: if all {
            Some(run(None, &directory.path().join("all"))?)
        } else {
            None
        },
    })
}

/// Executes a graph once. The emulator writes the reports.
pub(crate) fn emulate_graph(args: &EmulateGraph) -> Result<Answer> {
    let graph = fs::read(&args.graph)?;
    // SAFETY: both files belong to this project, or the user named others instead.
    let emulator = unsafe { Emulator::load(&args.emulator, &args.plugin, args.reports.clone(), MOST_BYTES) };
    let mut emulator = emulator?;
    if let Some(schedule) = &args.schedule {
        emulator.set_knob(SCHEDULE, schedule);
    }
    emulator.launches(&graph)?;
    Ok(Answer::Yes)
}
