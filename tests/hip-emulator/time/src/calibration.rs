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
    /// TFLOP/s of FP8 products at the device's power limit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp8: Option<f64>,
    /// Memory bandwidth in bytes per nanosecond
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// Bandwidth of Infinity Cache in bytes per nanosecond
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
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
    /// The rate of the largest FP8 product
    pub fp8: Option<Sustained>,
    /// Bytes and time in µs of a memory-bound kernel whose operands are in no cache
    pub cold: Option<(f64, f64)>,
    /// Bytes and time in µs of a kernel that reads each of the bytes once, right after the same
    /// kernel, and writes next to nothing
    pub warm: Option<(f64, f64)>,
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
        let mut product = |name: &str, bits: u32, found: Option<Sustained>| {
            let reason = match found {
                None => "rate or clock were not measured".to_owned(),
                Some(Sustained { gigahertz, .. }) if !is_within(gigahertz, LIMITED * machine.clock) => {
                    format!("{gigahertz:.2} GHz: the clock did not fall, so power is not the limit")
                }
                Some(Sustained { tflops, gigahertz }) => {
                    let most = machine.peak(bits) * gigahertz / machine.clock;
                    if is_within(tflops, most) {
                        return Some(tflops);
                    }
                    format!("{tflops:.0} TFLOP/s, where the clock allows {most:.0}")
                }
            };
            reasons.push(format!("{name} products: {reason}"));
            None
        };
        let bf16 = product("bf16", 16, measured.bf16);
        let f16 = product("f16", 16, measured.f16);
        let fp8 = product("FP8", 8, measured.fp8);
        let floor = Parameters::default().floor;
        let memory = measured.cold.map(|(bytes, time)| bytes / (time - floor) / 1e3);
        let mut bandwidth = |name: &str, rate: Option<f64>, most: f64| {
            let reason = match rate {
                None => "not measured".to_owned(),
                Some(rate) if is_within(rate, most) => return Some(rate),
                Some(rate) => format!("{rate:.0} GB/s, where AMD's documents have {most:.0}"),
            };
            reasons.push(format!("{name}: {reason}"));
            None
        };
        let memory = bandwidth("memory", memory, machine.peak_memory);
        // If memory serves a part of the bytes, the bandwidth is higher than this.
        let cached = measured.warm.map(|(bytes, time)| bytes / (time - floor) / 1e3);
        let cached = bandwidth("Infinity Cache", cached, machine.peak_cached);
        let own = Self {
            bf16,
            f16,
            fp8,
            memory,
            cached,
        };
        (own, reasons)
    }

    /// Returns true if the calibration has at least one constant, and all of them are possible for
    /// the machine.
    #[must_use]
    pub fn is_possible(&self, machine: &Machine) -> bool {
        let limits = [
            (self.bf16, machine.peak(16)),
            (self.f16, machine.peak(16)),
            (self.fp8, machine.peak(8)),
            (self.memory, machine.peak_memory),
            (self.cached, machine.peak_cached),
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
        let products = [
            (Operands::Bf16, calibration.bf16),
            (Operands::F16, calibration.f16),
            (Operands::Byte, calibration.fp8),
        ];
        for (operands, tflops) in products {
            if let Some((index, tflops)) = index(operands).zip(tflops) {
                machine.reached[index] = tflops / self.sustained[index];
            }
        }
        machine.memory = calibration.memory.unwrap_or(self.memory);
        machine.cached = calibration.cached.unwrap_or(self.cached);
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
            fp8: product,
            cold: Some((134e6, microseconds)),
            warm: Some(((64 << 20) as f64, 13.879)),
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
        assert!((machine.ceiling(Operands::Byte) - 500.0).abs() < 1e-9);
        assert_eq!(machine.ceiling(Operands::Wide), MI300X.ceiling(Operands::Wide));
        // 64 MiB in 12 µs.
        assert!((machine.cached - 5592.0).abs() < 1.0, "{}", machine.cached);
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
            (1600.0, 1.2, 20.0),
            (f64::NAN, f64::NAN, f64::NAN),
            (-1.0, 1.2, -5.0),
        ] {
            let (calibration, reasons) = Calibration::of(&measured(tflops, gigahertz, microseconds), &MI300X);
            let (cached, rest) = (
                calibration.cached,
                Calibration {
                    cached: None,
                    ..calibration
                },
            );
            assert_eq!((rest, cached.is_some()), (Calibration::default(), true));
            assert_eq!(reasons.len(), 4, "{reasons:?}");
        }
        for warm in [1.0, 5.0, f64::NAN, -5.0] {
            let measured = Measured {
                warm: Some(((64 << 20) as f64, warm)),
                ..Measured::default()
            };
            let (calibration, reasons) = Calibration::of(&measured, &MI300X);
            assert_eq!((calibration.cached, reasons.len()), (None, 5), "{warm} µs");
        }
        let (nothing, reasons) = Calibration::of(&Measured::default(), &MI300X);
        assert_eq!((MI300X.calibrated(&nothing), reasons.len()), (MI300X, 5));
        assert!(!nothing.is_possible(&MI300X));
        for value in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e9] {
            let value = Some(value);
            assert!(
                !Calibration {
                    memory: value,
                    ..nothing
                }
                .is_possible(&MI300X)
            );
            assert!(
                !Calibration {
                    cached: value,
                    ..nothing
                }
                .is_possible(&MI300X)
            );
            assert!(!Calibration { fp8: value, ..nothing }.is_possible(&MI300X));
        }
    }
}
