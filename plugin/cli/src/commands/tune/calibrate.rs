//! `rotini tune --calibrate`: constants of the GPU at hand, for predictions.

use super::setup::Setup;
use crate::args::Tune;
use crate::calibration::{Calibrated, modelled};
use crate::commands::bench::{measure_constants, measured, own, show};
use crate::commands::selftest::introduce;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::{Context as _, Result, bail};
use rotini_bench::Device;
use rotini_time::Calibration;
use std::time::Duration;

/// About how long measuring takes.
const LIMIT: Duration = Duration::from_secs(600);

/// Measures the constants, shows them beside the model's, and keeps those that are usable.
///
/// # Errors
///
/// If there is no real GPU that the model knows, or nothing usable was measured.
pub(super) fn calibrate(setup: &Setup, args: &Tune, output: &Output) -> Result<()> {
    let unfit = |what: &str| Failure::Environment(format!("{what}, so there is nothing to calibrate"));
    if setup.launch.device == Device::Cpu {
        bail!(unfit("times are predicted for GPUs alone"));
    }
    let engine = own(setup.plugin.clone());
    let home = tempfile::tempdir().context("no temporary directory")?;
    if introduce(&setup.launch, &engine, home.path().join("first"))?.emulated {
        bail!(unfit("an emulated GPU has no times of its own"));
    }
    let results = measure_constants(&setup.launch, &engine, LIMIT, args.seed, Some(output))?;
    if !output.json {
        show(&results, output)?;
    }
    let Some(machine) = modelled(&setup.device.compiled_for().target) else {
        bail!(unfit(&format!("the model has no {}", setup.measured_on())));
    };
    let (constants, unusable) = Calibration::of(&measured(&results), machine);
    let calibrated = Calibrated::new(setup.device.as_ref(), machine, constants, unusable);
    if output.json {
        output.document(&calibrated)?;
    }
    for reason in &calibrated.unusable {
        output.note(&format!("not usable: {reason}"))?;
    }
    if constants == Calibration::default() {
        bail!("no usable constant was measured: predictions keep the published ones");
    }
    if !calibrated.store(&setup.runtime, setup.device.as_ref())? {
        bail!("{} cannot be written", setup.cache.display());
    }
    output.note(&format!(
        "kept for {}: `rotini inspect` predicts with them",
        setup.measured_on()
    ))
}
