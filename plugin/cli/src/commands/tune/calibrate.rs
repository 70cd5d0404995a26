//! `rotini tune --calibrate`: measures constants of this machine's GPU, for predictions.

use super::setup::Setup;
use crate::args::Tune;
use crate::calibration::Calibrated;
use crate::commands::bench::{measure_constants, measured, own, show};
use crate::commands::selftest::introduce;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::{Context as _, Result, bail};
use rotini_bench::Device;
use rotini_emit::Target;
use rotini_time::{Calibration, Machine};
use std::time::Duration;

/// Time limit of the measurement.
const LIMIT: Duration = Duration::from_secs(600);

/// Measures the constants, shows them next to the model's, and stores those that are usable.
///
/// # Errors
///
/// Fails if there is no physical GPU whose product the model knows, or if no usable constant was
/// measured.
pub(super) fn calibrate(setup: &Setup, args: &Tune, output: &Output) -> Result<()> {
    let unfit = |what: &str| Failure::Environment(format!("{what}, so there is nothing to calibrate"));
    if setup.launch.device == Device::Cpu {
        bail!(unfit("times are predicted for GPUs alone"));
    }
    let target = setup.device.compiled_for().target.to_string();
    let engine = own(setup.plugin.clone());
    let home = tempfile::tempdir().context("no temporary directory")?;
    if introduce(&setup.launch, &engine, home.path().join("first"))?.emulated {
        bail!(unfit("an emulated GPU has no times of its own"));
    }
    // Partitions of a product have the plain target gfx942, so the model does not know them.
    let Some(machine) = Machine::named(Target::device(&target)) else {
        bail!(unfit(&format!("the model has no {}", setup.measured_on())));
    };
    let results = measure_constants(&setup.launch, &engine, LIMIT, args.seed, Some(output))?;
    let (constants, missing) = Calibration::of(&measured(&results), machine);
    let calibrated = Calibrated::new(setup.device.as_ref(), machine, constants, missing);
    if !output.json {
        show(&results, output)?;
        for reason in &calibrated.missing {
            output.note(&format!("published constants stay: {reason}"))?;
        }
    }
    if constants == Calibration::default() {
        bail!(Failure::Environment(format!(
            "no usable constant was measured: {}",
            calibrated.missing.join("; ")
        )));
    }
    if !calibrated.store(&setup.runtime, setup.device.as_ref())? {
        bail!(Failure::Environment(format!(
            "{} cannot be written",
            setup.cache.display()
        )));
    }
    if output.json {
        return output.document(&calibrated);
    }
    output.note(&format!(
        "kept for {}: `rotini inspect` predicts with them",
        setup.measured_on()
    ))
}
