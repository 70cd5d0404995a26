//! Calibrations: constants measured on one device, and the machine model with them.

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, index};
use crate::{Operands, Parameters};

/// Constants of one device that replace published ones. Absent: not measured, or not usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// TFLOP/s of bf16 products at the device's power limit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bf16: Option<f64>,
    /// TFLOP/s of f16 products at the device's power limit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f16: Option<f64>,
    /// Memory bandwidth in bytes per nanosecond
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
}

/// The rate of a matrix product under sustained load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sustained {
    /// Rate in TFLOP/s
    pub tflops: f64,
    /// The clock during the product, in GHz
    pub gigahertz: f64,
}

/// Measurements that constants are derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// The rate of the largest bf16 product
    pub bf16: Option<Sustained>,
    /// The rate of the largest f16 product
    pub f16: Option<Sustained>,
    /// Bytes and time in µs of a memory-bound kernel whose operands are in no cache
    pub cold: Option<(f64, f64)>,
}

/// A clock below this share of the machine's highest clock indicates that the power limit applies.
const LIMITED: f64 = 0.97;

impl Calibration {
    /// Derives the constants of a machine. Also returns the reason for each one that is missing.
    ///
    /// Rates of products count only if the clock fell: otherwise the kernel is the limit, not the
    /// device. A rate above what the clock or the data sheet allows is a measurement error.
    #[must_use]
    pub fn of(measured: &Measured, machine: &Machine) -> (Self, Vec<String>) {
        let mut reasons = Vec::new();
        let mut product = |name: &str, found: Option<Sustained>| {
            let reason = match found {
                None => "rate or clock were not measured".to_owned(),
                Some(Sustained { gigahertz, .. }) if !is_within(gigahertz, LIMITED * machine.clock) => {
                    format!("{gigahertz:.2} GHz: the clock did not fall, so power is not the limit")
                }
                Some(Sustained { tflops, gigahertz }) => {
                    let most = machine.peak(16) * gigahertz / machine.clock;
                    if is_within(tflops, most) {
                        return Some(tflops);
                    }
                    format!("{tflops:.0} TFLOP/s, where the clock allows {most:.0}")
                }
            };
            reasons.push(format!("{name} products: {reason}"));
            None
        };
        let bf16 = product("bf16", measured.bf16);
        let f16 = product("f16", measured.f16);
        let floor = Parameters::default().floor;
        let memory = measured.cold.map(|(bytes, time)| bytes / (time - floor) / 1e3);
        let memory = match memory {
            None => {
                reasons.push("memory: not measured".to_owned());
                None
            }
            Some(rate) if is_within(rate, machine.peak_memory) => Some(rate),
            Some(rate) => {
                let most = machine.peak_memory;
                reasons.push(format!("memory: {rate:.0} GB/s, where the data sheet has {most:.0}"));
                None
            }
        };
        (Self { bf16, f16, memory }, reasons)
    }

    /// Returns true if the calibration has at least one constant, and all of them are possible for
    /// the machine.
    #[must_use]
    pub fn is_possible(&self, machine: &Machine) -> bool {
        let limits = [
            (self.bf16, machine.peak(16)),
            (self.f16, machine.peak(16)),
            (self.memory, machine.peak_memory),
        ];
        let is_possible = |(value, most): (Option<f64>, f64)| value.is_none_or(|value| is_within(value, most));
        *self != Self::default() && limits.into_iter().all(is_possible)
    }
}

fn is_within(value: f64, most: f64) -> bool {
    value.is_finite() && value > 0.0 && value <= most
}

impl Machine {
    /// Returns the machine with a device's constants. Measured rates of products limit what kernels
    /// reach; the power per operation stays the published one.
    #[must_use]
    pub fn calibrated(&self, calibration: &Calibration) -> Self {
        let mut machine = *self;
        for (operands, tflops) in [(Operands::Bf16, calibration.bf16), (Operands::F16, calibration.f16)] {
            if let Some((index, tflops)) = index(operands).zip(tflops) {
                machine.reached[index] = tflops / self.sustained[index];
            }
        }
        machine.memory = calibration.memory.unwrap_or(self.memory);
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MI300X;

    fn measured(tflops: f64, gigahertz: f64, microseconds: f64) -> Measured {
        let product = Some(Sustained { tflops, gigahertz });
        Measured {
            bf16: product,
            f16: product,
            cold: Some((134e6, microseconds)),
        }
    }

    #[test]
    fn constants_replace_published_ones() {
        let (calibration, reasons) = Calibration::of(&measured(500.0, 1.1, 41.879), &MI300X);
        assert_eq!(reasons, [""; 0]);
        assert!(calibration.is_possible(&MI300X));
        let machine = MI300X.calibrated(&calibration);
        // 134 MB in 40 µs, after subtracting the 1.879 µs that every kernel takes.
        assert!((machine.memory - 3350.0).abs() < 1.0, "{}", machine.memory);
        assert!((machine.ceiling(Operands::F16) - 500.0).abs() < 1e-9);
        assert_eq!(machine.ceiling(Operands::Byte), MI300X.ceiling(Operands::Byte));
        // The power that an operation draws does not depend on the measured rate.
        assert_eq!(machine.allowance(Operands::F16), MI300X.allowance(Operands::F16));
        assert_eq!(machine.drawn_by_vector(0.5), MI300X.drawn_by_vector(0.5));
    }

    #[test]
    fn impossible_measurements_change_nothing() {
        for (tflops, gigahertz, microseconds) in [
            // The clock did not fall; the rate exceeds what the clock allows; no number; negative
            // values.
            (300.0, 2.09, 1.0),
            (800.0, 1.2, 20.0),
            (f64::NAN, f64::NAN, f64::NAN),
            (-1.0, 1.2, -5.0),
        ] {
            let (calibration, reasons) = Calibration::of(&measured(tflops, gigahertz, microseconds), &MI300X);
            assert_eq!(calibration, Calibration::default());
            assert_eq!(reasons.len(), 3, "{reasons:?}");
        }
        let (nothing, reasons) = Calibration::of(&Measured::default(), &MI300X);
        assert_eq!((MI300X.calibrated(&nothing), reasons.len()), (MI300X, 3));
        assert!(!nothing.is_possible(&MI300X));
        for memory in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e9] {
            let memory = Some(memory);
            assert!(!Calibration { memory, ..nothing }.is_possible(&MI300X));
        }
    }
}
