//! Code objects: the kernels of an ELF file for gfx942, read from its metadata and symbols.
//!
//! Layouts are those of LLVM's "User Guide for AMDGPU Backend" (code object V5).

use crate::census::Code;
use crate::decode::DecodeError;
use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, elf};
use rmpv::Value;
use rotini_time::Residence;
use serde::{Deserialize, Serialize};

/// The reason why a code object cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// Not an ELF file
    #[error("it is no ELF file")]
    Elf(#[source] object::read::Error),
    /// The code object is for another architecture
    #[error("it is not for gfx942: machine {machine}, flags {flags:#x}")]
    Target {
        /// `e_machine`
        machine: u16,
        /// `e_flags`
        flags: u32,
    },
    /// The metadata, or a part of it, is missing
    #[error("its metadata has no {0}")]
    Metadata(&'static str),
    /// The code of a kernel is missing
    #[error("the code of kernel {0} is not there")]
    Code(String),
    /// The code of a kernel contains an unknown instruction
    #[error("kernel {kernel}")]
    Decode {
        /// The kernel's name
        kernel: String,
        /// The unknown instruction
        #[source]
        source: DecodeError,
    },
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name
    pub name: String,
    /// Hardware resources that the kernel uses
    pub needs: Needs,
    /// Counts of its instructions
    pub code: Code,
}

/// The hardware resources that a kernel uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Lanes of a workgroup in x, y, z
    pub workgroup: [u32; 3],
    /// Vector registers of a lane, including accumulation registers
    pub vector_registers: u32,
    /// Accumulation registers of a lane
    pub accumulation_registers: u32,
    /// Scalar registers of a wave
    pub scalar_registers: u32,
    /// Vector registers that were spilled
    pub vector_spills: u32,
    /// Scalar registers that were spilled
    pub scalar_spills: u32,
    /// LDS bytes of a workgroup
    pub lds_bytes: u32,
    /// Private bytes of a lane
    pub private_bytes: u32,
}

/// The waves that can run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Workgroups per compute unit
    pub workgroups: u32,
    /// Waves per SIMD
    pub waves: f64,
}

impl Needs {
    /// Returns the number of waves of a workgroup.
    #[must_use]
    pub fn waves(&self) -> u32 {
        let lanes = self.workgroup.iter().fold(1_u32, |all, &size| all.saturating_mul(size));
        lanes.div_ceil(64).max(1)
    }

    /// Returns the occupancy that registers, LDS, private memory and wave slots allow on gfx942.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        let residence = Residence {
            waves: self.waves(),
            registers: self.vector_registers,
            scalars: self.scalar_registers,
            lds: self.lds_bytes,
            scratch: self.private_bytes,
        };
        let workgroups = residence.workgroups();
        Occupancy {
            workgroups,
            waves: f64::from(workgroups * self.waves()) / 4.0,
        }
    }
}

/// `EF_AMDGPU_MACH_AMDGCN_GFX942`, and the mask of its field in `e_flags`
const GFX942: u32 = 0x4c;
const MACH: u32 = 0xff;
/// `NT_AMDGPU_METADATA`
const NOTE: u32 = 32;

/// Returns the kernels of a code object.
///
/// # Errors
///
/// [`ObjectError`] if it is not for gfx942, is damaged, or contains code that is not understood.
pub fn kernels(bytes: &[u8]) -> Result<Vec<Kernel>, ObjectError> {
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(ObjectError::Elf)?;
    let header = file.elf_header();
    let (machine, flags) = (header.e_machine.get(file.endian()), header.e_flags.get(file.endian()));
    if machine != elf::EM_AMDGPU || flags & MACH != GFX942 {
        return Err(ObjectError::Target { machine, flags });
    }
    let metadata = metadata(bytes)?;
    let kernels = get(&metadata, "amdhsa.kernels").and_then(Value::as_array);
    let kernels = kernels.ok_or(ObjectError::Metadata("amdhsa.kernels"))?;
    kernels.iter().map(|entry| kernel(&file, entry)).collect()
}

fn metadata(bytes: &[u8]) -> Result<Value, ObjectError> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes).map_err(ObjectError::Elf)?;
    let endian = header.endian().map_err(ObjectError::Elf)?;
    let sections = header.sections(endian, bytes).map_err(ObjectError::Elf)?;
    for section in sections.iter() {
        let Some(mut notes) = section.notes(endian, bytes).map_err(ObjectError::Elf)? else {
            continue;
        };
        while let Some(note) = notes.next().map_err(ObjectError::Elf)? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == NOTE {
                return rmpv::decode::read_value(&mut note.desc()).map_err(|_| ObjectError::Metadata("msgpack map"));
            }
        }
    }
    Err(ObjectError::Metadata("note"))
}

fn get<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    let mut pairs = map.as_map()?.iter();
    pairs
        .find(|(name, _)| name.as_str() == Some(key))
        .map(|(_, value)| value)
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

fn kernel(file: &ElfFile64<'_>, entry: &Value) -> Result<Kernel, ObjectError> {
    let field = |key: &'static str| {
        let value = get(entry, key).and_then(number);
        value.ok_or(ObjectError::Metadata(key))
    };
    // Compilers omit entries that are zero.
    let maybe = |key: &str| get(entry, key).and_then(number).unwrap_or(0);
    let name = get(entry, ".name").and_then(Value::as_str);
    let name = name.ok_or(ObjectError::Metadata(".name"))?.to_owned();
    let required = get(entry, ".reqd_workgroup_size").and_then(|sizes| {
        let sizes: Option<Vec<u32>> = sizes.as_array()?.iter().map(number).collect();
        <[u32; 3]>::try_from(sizes?).ok()
    });
    let workgroup = match required {
        Some(sizes) => sizes,
        None => [field(".max_flat_workgroup_size")?, 1, 1],
    };
    let needs = Needs {
        workgroup,
        vector_registers: field(".vgpr_count")?,
        accumulation_registers: maybe(".agpr_count"),
        scalar_registers: field(".sgpr_count")?,
        vector_spills: maybe(".vgpr_spill_count"),
        scalar_spills: maybe(".sgpr_spill_count"),
        lds_bytes: maybe(".group_segment_fixed_size"),
        private_bytes: maybe(".private_segment_fixed_size"),
    };
    let symbol = file
        .symbols()
        .chain(file.dynamic_symbols())
        .find(|symbol| symbol.name() == Ok(name.as_str()));
    let bytes = symbol.and_then(|symbol| {
        file.sections()
            .find_map(|section| section.data_range(symbol.address(), symbol.size()).ok().flatten())
    });
    let bytes = bytes.ok_or_else(|| ObjectError::Code(name.clone()))?;
    let code = Code::of(bytes).map_err(|source| ObjectError::Decode {
        kernel: name.clone(),
        source,
    })?;
    Ok(Kernel { name, needs, code })
}

#[cfg(test)]
mod tests {
    use super::Needs;

    /// Expected values follow from AMD's figures: 512 vector registers per lane of a SIMD, 64 KiB
    /// of LDS and 32 waves per compute unit.
    #[test]
    fn occupancy_is_what_the_scarcest_allows() {
        let waves = |lanes, vector_registers, lds_bytes| {
            let needs = Needs {
                workgroup: [lanes, 1, 1],
                vector_registers,
                accumulation_registers: 0,
                scalar_registers: 32,
                vector_spills: 0,
                scalar_spills: 0,
                lds_bytes,
                private_bytes: 0,
            };
            needs.occupancy().waves
        };
        assert_eq!(waves(256, 64, 0), 8.0);
        assert_eq!(waves(256, 128, 0), 4.0);
        assert_eq!(waves(256, 129, 0), 3.0);
        assert_eq!(waves(256, 64, 20 << 10), 3.0);
        assert_eq!(waves(64, 64, 40 << 10), 0.25);
    }
}
