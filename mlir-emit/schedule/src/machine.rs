//! Owns the data of the GPUs that schedules are chosen for.

/// A GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// The name, as the compiler spells it.
    pub name: &'static str,
    /// The number of compute units.
    pub units: u64,
    /// Memory bandwidth in bytes per microsecond, on large copies.
    pub memory: f64,
    /// Microseconds of a launch of a nearly empty kernel.
    pub launch: f64,
}

/// The machines that schedules are chosen for. For any other machine the compiler chooses.
///
/// Compute units: AMD's data sheets. Bandwidth and launches: published measurements on an MI300X,
/// also used for the other machines.
pub const MACHINES: [Machine; 4] = [
    Machine {
        name: "mi300x",
        units: 304,
        memory: 4.1e6,
        launch: 2.8,
    },
    Machine {
        name: "mi325x",
        units: 304,
        memory: 4.1e6,
        launch: 2.8,
    },
    Machine {
        name: "mi300a",
        units: 228,
        memory: 4.1e6,
        launch: 2.8,
    },
    Machine {
        name: "mi308x",
        units: 80,
        memory: 4.1e6,
        launch: 2.8,
    },
];

impl Machine {
    /// Returns the machine for a target's name: an architecture or a product, perhaps with features
    /// (`gfx942:xnack+`). The architecture gfx942 stands for the MI300X.
    #[must_use]
    pub fn of(target: &str) -> Option<&'static Machine> {
        let name = target.split(':').next().unwrap_or_default();
        let name = if name == "gfx942" { "mi300x" } else { name };
        MACHINES.iter().find(|machine| machine.name == name)
    }
}
