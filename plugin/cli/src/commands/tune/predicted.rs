//! Predicted times on an emulated GPU, from the time model and the emulator's counts.

use super::setup::Setup;
use crate::args::EMULATE_GRAPH;
use crate::calibration::modelled;
use anyhow::{Context as _, Result, bail};
use rotini_inspect::emulate::{self, SAMPLE};
use rotini_plugin::tuned::Time;
use rotini_time::{Parameters, predict};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A predicted time.
pub(super) struct Predicted {
    pub(super) time: Time,
    /// Whether a launch is unlike all that the model was compared with on hardware.
    pub(super) is_extrapolated: bool,
}

/// Returns the predicted time of a graph with these choices.
///
/// # Errors
///
/// Returns the reason, as text, if the graph does not compile or the emulator does not count it.
pub(super) fn time(setup: &Setup, graph: &Path, choices: &str) -> Result<Predicted, String> {
    predicted(setup, graph, choices).map_err(|error| format!("{error:#}"))
}

fn predicted(setup: &Setup, graph: &Path, choices: &str) -> Result<Predicted> {
    let target = &setup.device.compiled_for().target;
    let machine = modelled(target).with_context(|| format!("the time model does not know {target}"))?;
    let emulator = setup.launch.library.as_deref().context("no emulator is named")?;
    let emulator = std::path::absolute(emulator)?;
    let directory = tempfile::tempdir()?;
    let reports = directory.path().join("reports");
    let output = Command::new(env::current_exe().context("this program's own path is not known")?)
        .arg(EMULATE_GRAPH)
        .args([graph, &emulator, &setup.plugin, &reports])
        .args(["--schedule", choices])
        .env("HIPEMU_REPORT", &reports)
        .env("HIPEMU_STRICT", "0")
        .env("HIPEMU_SAMPLE", SAMPLE)
        .env("ROTINI_DEVICE", "hip")
        .env("ROTINI_HIP_LIBRARY", &emulator)
        .env("ROTINI_CACHE_DIR", &setup.cache)
        .output()
        .context("this program cannot be started again")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let launches = emulate::read(&fs::read_to_string(&reports).context("the emulator wrote no reports")?)?;
    let records = launches
        .into_iter()
        .map(|launch| launch.record.context("a launch without a record"));
    let launches = records
        .map(|record| Ok(predict(&record?, machine, &Parameters::default())))
        .collect::<Result<Vec<_>>>()?;
    let times = launches.iter().map(|launch| launch.time);
    let microseconds = rotini_time::Predicted::in_sequence(times).microseconds();
    Ok(Predicted {
        time: Time {
            median_us: microseconds,
            interval_us: [microseconds; 2],
            turns: 1,
            is_beaten: false,
        },
        is_extrapolated: launches.iter().any(|launch| !launch.outside.is_empty()),
    })
}
