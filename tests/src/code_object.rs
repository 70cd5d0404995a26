//! Reads compiled AMD GPU code: the resources of each kernel, from the metadata in its ELF notes
//! and from its assembly.

use anyhow::{Context as _, Result, bail};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{ElfFile, FileHeader as _, SectionHeader as _};
use rmpv::Value;
use std::path::Path;

/// Type of the note that holds the metadata, from LLVM's AMDGPU usage guide.
const NT_AMDGPU_METADATA: u32 = 32;

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Number of vector registers that were spilled to memory.
    pub spilled_vgprs: u64,
    /// Number of spilled scalar registers.
    pub spilled_sgprs: u64,
    /// Bytes of private memory per work item.
    pub scratch_bytes: u64,
    /// Number of vector registers.
    pub vgprs: u64,
    /// Number of matrix instructions in its code.
    pub mfma: usize,
    /// Number of those that multiply 8-bit floats.
    pub mfma_f8: usize,
}

/// Returns all kernels in a directory with the compiler's dumped code objects (`.hsaco`) and
/// assembly (`.rocmasm`).
///
/// # Errors
///
/// If a file cannot be read or has another format.
pub fn kernels(directory: &Path) -> Result<Vec<Kernel>> {
    let mut kernels = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "hsaco") {
            continue;
        }
        let bytes = std::fs::read(&path)?;
        let mut found = of_code_object(&bytes).with_context(|| path.display().to_string())?;
        let assembly = path.with_extension("rocmasm");
        let assembly = std::fs::read_to_string(&assembly).with_context(|| assembly.display().to_string())?;
        for kernel in &mut found {
            let (_, code) = assembly
                .split_once(&format!("\n{}:", kernel.name))
                .with_context(|| format!("{}: no assembly of {}", path.display(), kernel.name))?;
            let code = code.split(".Lfunc_end").next().unwrap_or_default();
            kernel.mfma = code.matches("v_mfma_").count();
            let matrix = code
                .split("v_mfma_")
                .skip(1)
                .filter_map(|rest| rest.split_whitespace().next());
            kernel.mfma_f8 = matrix
                .filter(|name| name.contains("fp8") || name.contains("bf8"))
                .count();
        }
        kernels.append(&mut found);
    }
    Ok(kernels)
}

/// Returns the kernels of one code object, without their assembly.
fn of_code_object(bytes: &[u8]) -> Result<Vec<Kernel>> {
    let file = ElfFile::<FileHeader64<Endianness>>::parse(bytes)?;
    let (endian, data) = (file.endian(), file.data());
    let sections = file.elf_header().sections(endian, data)?;
    for section in sections.iter() {
        let Some(mut notes) = section.notes(endian, data)? else {
            continue;
        };
        while let Some(note) = notes.next()? {
            if note.n_type(endian) == NT_AMDGPU_METADATA {
                let metadata = rmpv::decode::read_value(&mut note.desc())?;
                let kernels = get(&metadata, "amdhsa.kernels")
                    .and_then(Value::as_array)
                    .context("no kernels")?;
                return kernels.iter().map(of_metadata).collect();
            }
        }
    }
    bail!("no metadata")
}

fn of_metadata(kernel: &Value) -> Result<Kernel> {
    let number = |key: &str| {
        get(kernel, key)
            .and_then(Value::as_u64)
            .with_context(|| format!("no {key}"))
    };
    Ok(Kernel {
        name: get(kernel, ".name")
            .and_then(Value::as_str)
            .context("no name")?
            .to_owned(),
        spilled_vgprs: number(".vgpr_spill_count")?,
        spilled_sgprs: number(".sgpr_spill_count")?,
        scratch_bytes: number(".private_segment_fixed_size")?,
        vgprs: number(".vgpr_count")?,
        mfma: 0,
        mfma_f8: 0,
    })
}

fn get<'a>(map: &'a Value, key: &str) -> Option<&'a Value> {
    map.as_map()?
        .iter()
        .find(|(name, _)| name.as_str() == Some(key))
        .map(|(_, value)| value)
}
