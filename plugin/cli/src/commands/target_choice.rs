//! What a command compiles for.

use rotini_emit::Target;
use rotini_plugin::Error;
use rotini_plugin::device::Device;
use rotini_plugin::pipeline::Runtime;

/// What a graph is compiled for, as a cache key needs it.
pub(super) struct TargetChoice {
    pub(super) target: Target,
    pub(super) features: String,
}

impl TargetChoice {
    /// The target that was asked for, or that of the device that the plugin would use.
    pub(super) fn new(runtime: &Runtime, asked: Option<&Target>) -> Result<Self, Error> {
        match asked {
            Some(target @ (Target::X86(_) | Target::Rocm { .. } | Target::Cuda { .. })) => {
                // All that is compiled for is named by the target.
                Ok(TargetChoice {
                    target: target.clone(),
                    features: String::new(),
                })
            }
            Some(Target::Cpu) => Ok(Self::of_device(runtime.host()?.as_ref())),
            None => Ok(Self::of_device(runtime.default_device()?.as_ref())),
        }
    }

    pub(super) fn of_device(device: &dyn Device) -> Self {
        TargetChoice {
            target: device.target(),
            features: device.features().to_owned(),
        }
    }
}
