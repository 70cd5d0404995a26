//! Owns what was fitted to kernels measured on an MI300X; everything else in the model is a
//! published constant.

/// The fitted parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Clocks from the first-level cache to the second
    pub near: f64,
    /// Clocks from there on to Infinity Cache and memory
    pub far: f64,
    /// What is had of the second-level caches' bandwidth, as a share of the machine's constant; at
    /// most 1
    pub bandwidth: f64,
    /// How much longer a clock takes if all matrix units are always busy, below the machine's power
    /// limit
    pub slowdown: f64,
    /// Microseconds that every kernel takes
    pub floor: f64,
    /// Clocks of the address unit for a register of a store
    pub store: f64,
}

/// Which half of the shape families a set of parameters was fitted on. Families alternate in the
/// order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The first, third, fifth, ... family
    Odd,
    /// The second, fourth, sixth, ... family
    Even,
}

impl Parameters {
    /// The parameters that were fitted on the tuned kernels of a half. The other half, and all
    /// default configurations, were not looked at.
    #[must_use]
    pub const fn fitted_on(half: Half) -> Self {
        match half {
            Half::Odd => Self {
                near: 260.0,
                far: 866.3,
                bandwidth: 0.925,
                slowdown: 0.312,
                floor: 1.615,
                store: 32.5,
            },
            Half::Even => Self {
                near: 215.7,
                far: 1136.0,
                bandwidth: 0.952,
                slowdown: 0.308,
                floor: 1.879,
                store: 32.6,
            },
        }
    }
}

impl Default for Parameters {
    /// What predictions are made with.
    fn default() -> Self {
        Self::fitted_on(Half::Even)
    }
}
