//! The target that a command compiles for.

use rotini_cache::CompiledFor;
use rotini_emit::Target;
use rotini_plugin::Error;
use rotini_plugin::runtime::Runtime;

/// Returns the target that was asked for, or that of the device that the plugin would use.
pub(super) fn chosen(runtime: &Runtime, asked: Option<&Target>) -> Result<CompiledFor<Target>, Error> {
    let device = match asked {
        // These targets name everything that the code depends on.
        Some(target @ (Target::X86(_) | Target::Rocm { .. } | Target::Cuda { .. })) => {
            return Ok(target.clone().into());
        }
        Some(Target::Cpu) => runtime.host()?,
        None => runtime.default_device()?,
    };
    Ok(device.compiled_for().clone())
}
