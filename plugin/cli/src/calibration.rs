//! Calibrations of devices: `rotini tune --calibrate` stores them in the cache, and predictions use
//! them.

use crate::failure::Failure;
use anyhow::{Context as _, Result, bail, ensure};
use rotini_cache::{Key, KeyInputs};
use rotini_emit::Target;
use rotini_plugin::device::Device;
use rotini_plugin::runtime::Runtime;
use rotini_time::{Calibration, MI300X, Machine};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Version of the format of calibrations.
const FORMAT: u32 = 1;

/// Measured constants of one device, and their origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    /// Always [`FORMAT`].
    pub(crate) format: u32,
    /// The device, in the form of [`Device::measured_on`].
    pub(crate) device: String,
    /// Name of the model's machine whose constants these replace.
    pub(crate) machine: String,
    /// rotini's version.
    pub(crate) rotini: String,
    /// Time of the measurement, in seconds since 1970.
    pub(crate) measured_unix: u64,
    /// The constants.
    pub(crate) constants: Calibration,
    /// The reasons why other constants are missing.
    #[serde(default)]
    pub(crate) missing: Vec<String>,
}

impl Calibrated {
    pub(crate) fn new(device: &dyn Device, machine: &Machine, constants: Calibration, missing: Vec<String>) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            format: FORMAT,
            device: device.measured_on(),
            machine: machine.name.to_owned(),
            rotini: env!("CARGO_PKG_VERSION").to_owned(),
            measured_unix: since.map_or(0, |since| since.as_secs()),
            constants,
            missing,
        }
    }

    /// Stores the calibration. Returns true if a later process will find it.
    pub(crate) fn store(&self, runtime: &Runtime, device: &dyn Device) -> Result<bool> {
        Ok(runtime.cache.keep_note(&key(device), &serde_json::to_vec(self)?))
    }

    /// Returns the calibration of a device. An unreadable one is ignored with a warning.
    pub(crate) fn of(runtime: &Runtime, device: &dyn Device) -> Option<Self> {
        let note = runtime.cache.note(&key(device))?;
        Self::parse(&note)
            .inspect_err(|error| tracing::warn!("the calibration of {} is not used: {error}", device.measured_on()))
            .ok()
    }

    /// Reads a calibration from a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not what `rotini tune --calibrate` writes", path.display()))
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let own: Self = serde_json::from_slice(text)?;
        ensure!(
            own.format == FORMAT,
            "it is of form {}, and this program reads {FORMAT}",
            own.format
        );
        Ok(own)
    }

    /// Returns the machine with these constants.
    ///
    /// # Errors
    ///
    /// Fails if the constants were measured on another product, or are impossible.
    pub(crate) fn machine(&self, published: &Machine) -> Result<Machine> {
        if self.machine != published.name {
            bail!(Failure::Usage(format!(
                "the constants were measured on another device: {}, not {}",
                self.machine, published.name
            )));
        }
        if !self.constants.is_possible(published) {
            bail!(Failure::Usage(format!(
                "the constants of {} are impossible for {}",
                self.device, published.name
            )));
        }
        Ok(published.calibrated(&self.constants))
    }
}

/// Returns the key of a calibration: one for each product and driver.
fn key(device: &dyn Device) -> Key {
    Key::of(&KeyInputs {
        graph: b"",
        compiled_for: &device.compiled_for().to_text(),
        emitter: &format!("calibration {FORMAT}"),
        flags: &[format!("measured on: {}", device.measured_on())],
        compiler: "",
    })
}

/// Returns the model's machine for a target. Plain `gfx942` is treated as an MI300X.
pub(crate) fn modelled(target: &Target) -> Option<&'static Machine> {
    match Target::device(&target.to_string()) {
        "gfx942" => Some(&MI300X),
        device => Machine::named(device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_another_product_are_refused() {
        let text = |format: u32, machine: &str, memory: f64| {
            format!(
                r#"{{"format": {format}, "device": "d", "machine": "{machine}", "rotini": "1", "measured_unix": 1, "constants": {{"memory": {memory}}}}}"#
            )
        };
        let own = Calibrated::parse(text(FORMAT, "mi300x", 4000.0).as_bytes()).unwrap();
        assert_eq!(own.machine(&MI300X).unwrap().memory, 4000.0);
        assert!(own.machine(&rotini_time::machine::MI325X).is_err());
        let impossible = Calibrated::parse(text(FORMAT, "mi300x", -1.0).as_bytes()).unwrap();
        assert!(impossible.machine(&MI300X).is_err());
        assert!(Calibrated::parse(text(FORMAT + 1, "mi300x", 4000.0).as_bytes()).is_err());
    }
}
