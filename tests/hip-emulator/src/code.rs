//! Reads a code object's architecture and kernel metadata, whatever the architecture.
//!
//! The bytes come from a caller: malformed ones are an error.

use crate::device::Architecture;
use rmpv::Value;
use rotini_gfx::metadata::{self, get, list, number, text};
use rotini_gfx::{CodeObject, CodeObjectError};
use std::sync::Arc;
use thiserror::Error;

/// Why a code object cannot be loaded.
#[derive(Debug, Error)]
pub(crate) enum CodeError {
    #[error("the metadata has a wrong {0}")]
    Field(&'static str),
    #[error("the emulator has no value for the argument {0}")]
    Hidden(String),
    #[error("{0}")]
    Target(String),
    #[error(transparent)]
    Code(#[from] CodeObjectError),
}

/// The architecture whose code is executed; of others only the metadata is read.
const EXECUTED: &str = "gfx942";

/// A code object.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) architecture: Architecture,
    pub(crate) kernels: Vec<Arc<Kernel>>,
}

/// A kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) kernarg_bytes: usize,
    pub(crate) arguments: Vec<Argument>,
    /// Bytes of static LDS.
    pub(crate) lds_bytes: u32,
    /// Bytes of scratch per work item.
    pub(crate) scratch_bytes: u32,
    /// Number of vector registers.
    pub(crate) vgprs: u32,
    /// Maximum number of work items of a workgroup.
    pub(crate) max_workgroup: u32,
    /// Its instructions, if they can be executed.
    pub(crate) program: Option<Arc<rotini_gfx::Kernel>>,
}

/// An argument in the argument segment.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// The value that the runtime supplies, for an argument that the caller does not pass.
    pub(crate) hidden: Option<Hidden>,
}

/// An argument that the runtime supplies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hidden {
    /// Workgroups in this dimension.
    Blocks(usize),
    /// Work items of a workgroup in this dimension.
    GroupSize(usize),
    /// Number of dimensions of the grid.
    Dimensions,
    /// Bytes of dynamic LDS.
    DynamicLds,
    /// Zero: offsets and remainders of grids, which HIP's grids do not have, and services that are
    /// not emulated, such as printing.
    Zero,
}

impl Hidden {
    fn named(name: &str) -> Result<Self, CodeError> {
        Ok(match name {
            "hidden_block_count_x" => Hidden::Blocks(0),
            "hidden_block_count_y" => Hidden::Blocks(1),
            "hidden_block_count_z" => Hidden::Blocks(2),
            "hidden_group_size_x" => Hidden::GroupSize(0),
            "hidden_group_size_y" => Hidden::GroupSize(1),
            "hidden_group_size_z" => Hidden::GroupSize(2),
            "hidden_grid_dims" => Hidden::Dimensions,
            "hidden_dynamic_lds_size" => Hidden::DynamicLds,
            "hidden_none"
            | "hidden_global_offset_x"
            | "hidden_global_offset_y"
            | "hidden_global_offset_z"
            | "hidden_remainder_x"
            | "hidden_remainder_y"
            | "hidden_remainder_z"
            | "hidden_printf_buffer"
            | "hidden_hostcall_buffer"
            | "hidden_heap_v1"
            | "hidden_default_queue"
            | "hidden_completion_action"
            | "hidden_multigrid_sync_arg"
            | "hidden_queue_ptr" => Hidden::Zero,
            other => return Err(CodeError::Hidden(other.to_owned())),
        })
    }

    /// Returns the argument's value in a launch.
    pub(crate) fn value(self, grid: [u32; 3], block: [u32; 3], shared: u32) -> u32 {
        let of = |sizes: [u32; 3], axis: usize| sizes.get(axis).copied().unwrap_or(0);
        match self {
            Hidden::Blocks(axis) => of(grid, axis),
            Hidden::GroupSize(axis) => of(block, axis),
            Hidden::Dimensions => 3,
            Hidden::DynamicLds => shared,
            Hidden::Zero => 0,
        }
    }
}

impl Code {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, CodeError> {
        let metadata = metadata::read(bytes)?;
        let target = text(&metadata, "amdhsa.target")?;
        // Architecture, vendor, system, environment, processor: `amdgcn-amd-amdhsa--gfx942:xnack-`.
        let processor = target.splitn(5, '-').nth(4);
        let architecture =
            Architecture::parse(processor.ok_or(CodeError::Field("amdhsa.target"))?).map_err(CodeError::Target)?;
        let programs = if architecture.base == EXECUTED {
            Some(CodeObject::parse(bytes)?)
        } else {
            None
        };
        let kernels = list(&metadata, "amdhsa.kernels")?
            .iter()
            .map(|entry| {
                let mut kernel = Kernel::parse(entry)?;
                if let Some(programs) = &programs {
                    kernel.program = programs.kernel(&kernel.name).cloned();
                }
                Ok(Arc::new(kernel))
            })
            .collect::<Result<_, CodeError>>()?;
        Ok(Code { architecture, kernels })
    }
}

impl Kernel {
    fn parse(entry: &Value) -> Result<Self, CodeError> {
        let arguments = get(entry, ".args").map(|list| list.as_array().ok_or(CodeError::Field(".args")));
        let kernarg_bytes = number(entry, ".kernarg_segment_size")? as usize;
        let arguments = arguments
            .transpose()?
            .into_iter()
            .flatten()
            .map(Argument::parse)
            .collect::<Result<Vec<_>, CodeError>>()?;
        let inside = |argument: &Argument| argument.offset + argument.bytes <= kernarg_bytes;
        if !arguments.iter().all(inside) {
            return Err(CodeError::Field(".kernarg_segment_size"));
        }
        Ok(Kernel {
            name: text(entry, ".name")?.to_owned(),
            kernarg_bytes,
            arguments,
            lds_bytes: number(entry, ".group_segment_fixed_size")?,
            scratch_bytes: number(entry, ".private_segment_fixed_size")?,
            vgprs: number(entry, ".vgpr_count")?,
            max_workgroup: number(entry, ".max_flat_workgroup_size")?,
            program: None,
        })
    }
}

impl Argument {
    fn parse(entry: &Value) -> Result<Self, CodeError> {
        let kind = text(entry, ".value_kind")?;
        let hidden = kind.starts_with("hidden_").then(|| Hidden::named(kind));
        Ok(Argument {
            offset: number(entry, ".offset")? as usize,
            bytes: number(entry, ".size")? as usize,
            hidden: hidden.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_the_runtime_have_values_or_are_refused() {
        let value = |name| Hidden::named(name).map(|hidden| hidden.value([7, 8, 9], [64, 2, 1], 4096));
        for (name, expected) in [
            ("hidden_block_count_y", 8),
            ("hidden_group_size_x", 64),
            ("hidden_grid_dims", 3),
            ("hidden_dynamic_lds_size", 4096),
            ("hidden_remainder_z", 0),
        ] {
            assert_eq!(value(name).unwrap(), expected, "{name}");
        }
        assert!(matches!(value("hidden_oracle"), Err(CodeError::Hidden(name)) if name == "hidden_oracle"));
    }

    #[test]
    fn what_is_no_code_object_is_an_error() {
        assert!(matches!(
            Code::parse(b"oops"),
            Err(CodeError::Code(CodeObjectError::Elf(_)))
        ));
        // An ELF file for another machine: this program.
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(matches!(
            Code::parse(&own),
            Err(CodeError::Code(CodeObjectError::Machine(_)))
        ));
    }
}
