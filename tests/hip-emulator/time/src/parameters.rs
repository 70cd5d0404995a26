//! The parameters that were fitted to kernels measured on an MI300X. Everything else in the model
//! is a published constant.

/// The fitted parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Latency in clocks from the first-level cache to the second
    pub near: f64,
    /// Additional latency in clocks to Infinity Cache and memory
    pub far: f64,
    /// Usable share of the second-level caches' bandwidth [`crate::Machine::near`]; at most 1
    pub bandwidth: f64,
    /// Relative lengthening of a clock if all matrix units are always busy, below the machine's
    /// power limit
    pub slowdown: f64,
    /// Fixed time of every kernel, in µs
    pub floor: f64,
    /// Clocks that the address unit needs per register of a store
    pub store: f64,
}

/// The half of the shape families that a set of parameters was fitted on. Families alternate in the
/// order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The first, third, fifth, ... family
    Odd,
    /// The second, fourth, sixth, ... family
    Even,
}

impl Parameters {
    /// Returns the parameters that were fitted on the tuned kernels of one half. The other half,
    /// and all default configurations, were not used.
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
    /// Returns the parameters that predictions use.
    fn default() -> Self {
        Self::fitted_on(Half::Even)
    }
}
