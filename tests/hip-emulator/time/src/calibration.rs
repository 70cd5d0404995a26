//! Owns calibrations: constants that were measured on one device, and the machine with them.

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, index};
use crate::{Operands, Parameters};

/// Constants of one device that replace published ones. Absent: not measured, or not usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// bf16 products
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bf16: Option<Sustained>,
    /// f16 products
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f16: Option<Sustained>,
    /// Bytes a nanosecond from memory
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// Bytes a nanosecond from Infinity Cache
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Microseconds between dependent launches
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
}

/// What products sustain at the device's power limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// Operations a picosecond (TFLOP/s)
    pub tflops: f64,
    /// The clock meanwhile, in GHz
    pub gigahertz: f64,
}

/// Times on a device from which constants follow, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Rate of the largest bf16 product, and the clock by the sensors
    pub bf16: Option<Sustained>,
    /// Rate of the largest f16 product, and the clock by the sensors
    pub f16: Option<Sustained>,
    /// Bytes of a kernel that memory bounds, and its time with its operands in memory
    pub cold: Option<(f64, f64)>,
    /// The same with its operands in Infinity Cache
    pub warm: Option<(f64, f64)>,
    /// Time that one more dependent launch adds, and the bytes that its kernel moves, which are in
    /// Infinity Cache
    pub launch: Option<(f64, f64)>,
}

/// A clock below this share of the highest shows that power limits it.
const LIMITED: f64 = 0.97;

impl Calibration {
    /// Derives the constants of a machine from times, with the reason for each that is not usable.
    ///
    /// Rates of products count only where the clock fell: else the kernel, and not the device, is
    /// the limit. A rate above the data sheet's is an error of the measurement.
    #[must_use]
    pub fn of(measured: &Measured, machine: &Machine) -> (Self, Vec<String>) {
        let floor = Parameters::default().floor;
        let mut reasons = Vec::new();
        let mut usable = |name: &str, value: f64, most: f64| {
            let is_usable = value.is_finite() && value > 0.0 && value <= most;
            if !is_usable {
                reasons.push(format!("{name}: {value:.3} is not between 0 and {most:.2}"));
            }
            is_usable
        };
        let mut sustained = |name: &str, found: Option<Sustained>| {
            let found = found?;
            let is_rate = usable(&format!("TFLOP/s of {name} products"), found.tflops, machine.peak(16));
            let most = LIMITED * machine.clock;
            let is_limited = usable(&format!("GHz under {name} products"), found.gigahertz, most);
            (is_rate && is_limited).then_some(found)
        };
        let bf16 = sustained("bf16", measured.bf16);
        let f16 = sustained("f16", measured.f16);
        let rate = |(bytes, time): (f64, f64)| bytes / (time - floor) / 1e3;
        let memory = measured.cold.map(rate);
        let memory = memory.filter(|&rate| usable("bytes a nanosecond from memory", rate, machine.peak_memory));
        let cached = measured.warm.map(rate);
        let cached = cached.filter(|&rate| usable("bytes a nanosecond from Infinity Cache", rate, machine.near));
        let work = |bytes: f64| bytes / cached.unwrap_or(machine.cached) / 1e3;
        let launch = measured.launch;
        let launch = launch.filter(|&(time, _)| usable("microseconds of one more launch", time, 100.0));
        // A gap of nothing is one that hides behind the end of the kernel before.
        let gap = launch.map(|(time, bytes)| (time - floor - work(bytes)).max(0.0));
        let calibration = Self {
            bf16,
            f16,
            memory,
            cached,
            gap,
        };
        (calibration, reasons)
    }
}

impl Machine {
    /// The machine with a device's own constants. Rates of products are taken as the most that a
    /// kernel reaches on the device; those of 8 bits stay published.
    #[must_use]
    pub fn calibrated(&self, calibration: &Calibration) -> Self {
        let mut machine = *self;
        let products = [(Operands::Bf16, calibration.bf16), (Operands::F16, calibration.f16)];
        for (operands, sustained) in products {
            if let Some((index, sustained)) = index(operands).zip(sustained) {
                machine.sustained[index] = sustained.tflops;
                machine.sustained_clocks[index] = sustained.gigahertz;
                machine.reached[index] = 1.0;
            }
        }
        machine.memory = calibration.memory.unwrap_or(self.memory);
        machine.cached = calibration.cached.unwrap_or(self.cached);
        machine.gap = calibration.gap.unwrap_or(self.gap);
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MI300X;

    /// Times as a device with the model's own constants would have.
    fn as_modelled() -> Measured {
        let floor = Parameters::default().floor;
        let product = |operands| Sustained {
            tflops: MI300X.ceiling(operands),
            gigahertz: MI300X.sustained_clock(operands).unwrap(),
        };
        let time = |bytes: f64, rate: f64| floor + bytes / rate / 1e3;
        Measured {
            bf16: Some(product(Operands::Bf16)),
            f16: Some(product(Operands::F16)),
            cold: Some((134e6, time(134e6, MI300X.memory))),
            warm: Some((134e6, time(134e6, MI300X.cached))),
            launch: Some((time(6.4e6, MI300X.cached) + MI300X.gap, 6.4e6)),
        }
    }

    #[test]
    fn a_device_like_the_model_gives_the_models_constants() {
        let (calibration, reasons) = Calibration::of(&as_modelled(), &MI300X);
        assert_eq!(reasons, [""; 0]);
        let machine = MI300X.calibrated(&calibration);
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        near(machine.memory, MI300X.memory);
        near(machine.cached, MI300X.cached);
        near(machine.gap, MI300X.gap);
        for operands in Operands::ALL {
            near(machine.ceiling(operands), MI300X.ceiling(operands));
        }
    }

    #[test]
    fn a_slower_device_is_predicted_slower() {
        let mut measured = as_modelled();
        measured.cold = measured.cold.map(|(bytes, time)| (bytes, 2.0 * time));
        measured.f16 = measured.f16.map(|one| Sustained {
            tflops: one.tflops / 2.0,
            ..one
        });
        let (calibration, _) = Calibration::of(&measured, &MI300X);
        let machine = MI300X.calibrated(&calibration);
        assert!(machine.memory < 0.52 * MI300X.memory);
        assert!(machine.ceiling(Operands::F16) < 0.51 * MI300X.ceiling(Operands::F16));
        assert_eq!(machine.ceiling(Operands::Byte), MI300X.ceiling(Operands::Byte));
    }

    #[test]
    fn implausible_times_change_nothing() {
        let measured = Measured {
            // The clock did not fall: the kernel was the limit.
            bf16: Some(Sustained {
                tflops: 300.0,
                gigahertz: 2.09,
            }),
            f16: Some(Sustained {
                tflops: 2000.0,
                gigahertz: 1.2,
            }),
            cold: Some((134e6, 20.0)),
            warm: Some((134e6, 1.0)),
            launch: Some((f64::NAN, 6.4e6)),
        };
        let (calibration, reasons) = Calibration::of(&measured, &MI300X);
        assert_eq!(calibration.bf16, None);
        assert_eq!(calibration.f16, None);
        assert_eq!(calibration.memory, None);
        assert_eq!(calibration.cached, None);
        assert_eq!(calibration.gap, None);
        assert_eq!(reasons.len(), 5, "{reasons:?}");
        let (nothing, _) = Calibration::of(&Measured::default(), &MI300X);
        assert_eq!(MI300X.calibrated(&nothing), MI300X);
    }
}
