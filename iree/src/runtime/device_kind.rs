//! The kinds of HAL devices.

use std::fmt;

/// The HAL driver that a device belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// Host code on the calling thread.
    LocalSync,
    /// Host code on a pool of worker threads.
    LocalTask,
    /// AMD GPUs through `libamdhip64.so`.
    Hip,
    /// NVIDIA GPUs through `libcuda.so`.
    Cuda,
}

impl DeviceKind {
    /// Returns IREE's name of the driver.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LocalSync => "local-sync",
            Self::LocalTask => "local-task",
            Self::Hip => "hip",
            Self::Cuda => "cuda",
        }
    }

    /// Returns whether the device works on host memory, so that pointers given to it are host
    /// pointers.
    #[must_use]
    pub fn is_host(self) -> bool {
        match self {
            Self::LocalSync | Self::LocalTask => true,
            Self::Hip | Self::Cuda => false,
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
