//! What a code object says about itself, whatever its architecture: for which it is, and its kernels.
//!
//! Layouts are those of LLVM's "User Guide for AMDGPU Backend". The bytes come from a caller: what does not fit is an error.

use crate::device::Architecture;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};
use rmpv::Value;
use rotini_gfx::CodeObject;
use std::sync::Arc;
use thiserror::Error;

/// Why a code object cannot be loaded.
#[derive(Debug, Error)]
pub(crate) enum CodeError {
    #[error("not an ELF file for AMD GPUs")]
    Elf(#[from] object::Error),
    #[error("no metadata of AMD's code objects")]
    Metadata,
    #[error("the metadata is no MessagePack")]
    Encoding(#[from] rmpv::decode::Error),
    #[error("the metadata has no {0}, or a wrong one")]
    Field(&'static str),
    #[error("{0}")]
    Target(String),
    #[error("the code cannot be executed")]
    Code(#[from] rotini_gfx::CodeObjectError),
}

/// The architecture whose code is executed; of others only what the metadata says is known.
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
    /// Bytes of LDS that it always uses.
    pub(crate) lds_bytes: u32,
    /// Bytes of scratch of a work item.
    pub(crate) scratch_bytes: u32,
    /// Vector registers.
    pub(crate) vgprs: u32,
    /// Work items that a workgroup may have.
    pub(crate) max_workgroup: u32,
    /// Its instructions, if they can be executed.
    pub(crate) program: Option<Arc<rotini_gfx::Kernel>>,
}

/// An argument in the argument segment.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// What the runtime gives instead of the caller.
    pub(crate) hidden: Option<Hidden>,
}

/// An argument that the runtime gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hidden {
    /// Workgroups in a dimension.
    Blocks(usize),
    /// Work items of a workgroup in a dimension.
    GroupSize(usize),
    /// Dimensions of the grid.
    Dimensions,
    /// Zero: offsets and remainders of grids, which HIP's have not, and services that are not there, as printing.
    Zero,
}

impl Hidden {
    fn named(name: &str) -> Self {
        match name {
            "hidden_block_count_x" => Hidden::Blocks(0),
            "hidden_block_count_y" => Hidden::Blocks(1),
            "hidden_block_count_z" => Hidden::Blocks(2),
            "hidden_group_size_x" => Hidden::GroupSize(0),
            "hidden_group_size_y" => Hidden::GroupSize(1),
            "hidden_group_size_z" => Hidden::GroupSize(2),
            "hidden_grid_dims" => Hidden::Dimensions,
            _ => Hidden::Zero,
        }
    }

    /// Its value in a launch.
    pub(crate) fn value(self, grid: [u32; 3], block: [u32; 3]) -> u32 {
        let of = |sizes: [u32; 3], axis: usize| sizes.get(axis).copied().unwrap_or(0);
        match self {
            Hidden::Blocks(axis) => of(grid, axis),
            Hidden::GroupSize(axis) => of(block, axis),
            Hidden::Dimensions => 3,
            Hidden::Zero => 0,
        }
    }
}

impl Code {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, CodeError> {
        let metadata = metadata(bytes)?;
        let target = get(&metadata, "amdhsa.target").and_then(Value::as_str);
        // Architecture, vendor, system, environment, processor: `amdgcn-amd-amdhsa--gfx942:xnack-`.
        let processor = target.and_then(|target| target.splitn(5, '-').nth(4));
        let architecture =
            Architecture::parse(processor.ok_or(CodeError::Field("amdhsa.target"))?).map_err(CodeError::Target)?;
        let programs = if architecture.base == EXECUTED {
            Some(CodeObject::parse(bytes)?)
        } else {
            None
        };
        let kernels = get(&metadata, "amdhsa.kernels").and_then(Value::as_array);
        let kernels = kernels
            .ok_or(CodeError::Field("amdhsa.kernels"))?
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

/// `NT_AMDGPU_METADATA`.
const NT_AMDGPU_METADATA: u32 = 32;

/// The metadata of a code object: the note of AMD's tools.
fn metadata(bytes: &[u8]) -> Result<Value, CodeError> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    if header.e_machine(endian) != elf::EM_AMDGPU {
        return Err(CodeError::Metadata);
    }
    for section in header.sections(endian, bytes)?.iter() {
        let Some(mut notes) = section.notes(endian, bytes)? else {
            continue;
        };
        while let Some(note) = notes.next()? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == NT_AMDGPU_METADATA {
                return Ok(rmpv::decode::read_value(&mut note.desc())?);
            }
        }
    }
    Err(CodeError::Metadata)
}

fn get<'a>(map: &'a Value, key: &str) -> Option<&'a Value> {
    let mut pairs = map.as_map()?.iter();
    pairs
        .find(|(name, _)| name.as_str() == Some(key))
        .map(|(_, value)| value)
}

fn number(map: &Value, key: &'static str) -> Result<u32, CodeError> {
    let number = get(map, key).and_then(Value::as_u64);
    number
        .and_then(|number| u32::try_from(number).ok())
        .ok_or(CodeError::Field(key))
}

impl Kernel {
    fn parse(entry: &Value) -> Result<Self, CodeError> {
        let name = get(entry, ".name").and_then(Value::as_str);
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
            name: name.ok_or(CodeError::Field(".name"))?.to_owned(),
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
        let kind = get(entry, ".value_kind").and_then(Value::as_str);
        let kind = kind.ok_or(CodeError::Field(".value_kind"))?;
        Ok(Argument {
            offset: number(entry, ".offset")? as usize,
            bytes: number(entry, ".size")? as usize,
            hidden: kind.starts_with("hidden_").then(|| Hidden::named(kind)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_object_is_an_error() {
        assert!(matches!(Code::parse(b"oops"), Err(CodeError::Elf(_))));
        // An ELF file, but this program's.
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(matches!(Code::parse(&own), Err(CodeError::Metadata)));
    }
}
