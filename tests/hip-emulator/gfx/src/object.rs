//! Reads code objects: the kernels that the metadata lists, with their descriptors and code.
//!
//! The layouts are described in LLVM's "User Guide for AMDGPU Backend" (code object V5, kernel
//! descriptor).

use std::sync::{Arc, OnceLock};

use object::{Object, ObjectSection, ObjectSymbol, read::elf::ElfFile64};
use rmpv::Value;

use crate::{
    assembler::assemble,
    decode,
    error::{CodeObjectError, DecodeError},
    inst::Program,
    metadata::{self, get, list, number, text},
};

/// Initial state of a wave (kernel descriptor).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Whether the first two scalar registers hold the address of the dispatch packet.
    pub(crate) packet: bool,
    /// Whether the first two scalar registers, or the two after those of the dispatch packet, hold
    /// the address of the arguments.
    pub(crate) kernarg: bool,
    pub(crate) user_scalars: u8,
    pub(crate) workgroup_ids: [bool; 3],
    /// 0: x, 1: x and y, 2: x, y and z in v0
    pub(crate) work_item_ids: u8,
    /// MODE: rounding and denormals
    pub(crate) mode: u32,
}

/// A kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Name
    pub name: String,
    /// Length of the argument buffer
    pub kernarg_bytes: u32,
    /// LDS bytes per workgroup
    pub lds_bytes: u32,
    /// Private bytes per lane
    pub scratch_bytes: u32,
    /// Vector registers including accumulation registers (gfx942 has one file for both)
    pub vgprs: u32,
    /// Accumulation registers
    pub agprs: u32,
    /// Scalar registers
    pub sgprs: u32,
    /// Maximum number of lanes of a workgroup
    pub max_workgroup: u32,
    /// The size of a workgroup in x, y, z, if the kernel was compiled for a fixed one: launches of
    /// other sizes are refused
    pub required_workgroup: Option<[u32; 3]>,
    pub(crate) setup: Setup,
    pub(crate) code: Vec<u8>,
    pub(crate) address: u64,
    program: OnceLock<Result<Program, DecodeError>>,
    reassembled: OnceLock<Result<(), DecodeError>>,
}

/// Returns true if two words are the same 16-bit literal: the upper half, which a 16-bit operation
/// ignores, is sign-extended by only one of compiler and assembler.
fn is_short_literal(text: &str, again: &[u8], word: &[u8]) -> bool {
    let (Some((low, again)), Some((other, word))) = (again.split_last_chunk(), word.split_last_chunk()) else {
        return false;
    };
    let name = text.split_whitespace().next().unwrap_or_default();
    low == other
        && matches!((again, word), ([0, 0], [0xff, 0xff]) | ([0xff, 0xff], [0, 0]))
        && ["_u16", "_i16", "_b16", "_f16"]
            .iter()
            .any(|width| name.contains(width))
        && text.contains("0x")
}

impl Kernel {
    /// Returns the program, which is decoded at the first call.
    pub(crate) fn program(&self) -> Result<&Program, DecodeError> {
        self.program
            .get_or_init(|| decode::program(self))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Decodes the kernel now and returns the number of its instructions.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] names the text that cannot be decoded.
    pub fn decode(&self) -> Result<usize, DecodeError> {
        self.program().map(|program| program.insts.len())
    }

    /// Returns the assembler texts of the instructions, in order.
    ///
    /// # Errors
    ///
    /// As [`Kernel::decode`].
    pub fn texts(&self) -> Result<&[String], DecodeError> {
        self.program().map(|program| program.texts.as_slice())
    }

    /// Assembles the texts again, once, and compares the bytes, to check that the disassembly lost
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Reassembly`] with the first instruction whose bytes differ, or as
    /// [`Kernel::decode`].
    pub fn reassemble(&self) -> Result<(), DecodeError> {
        self.reassembled.get_or_init(|| self.assemble_again()).clone()
    }

    fn assemble_again(&self) -> Result<(), DecodeError> {
        let program = self.program()?;
        let fail = |what: String| DecodeError::Reassembly {
            kernel: self.name.clone(),
            what,
        };
        let bytes = assemble(&program.texts.join("\n")).map_err(fail)?;
        if bytes == self.code {
            return Ok(());
        }
        if bytes.len() != self.code.len() {
            return Err(fail("its text has another length".to_owned()));
        }
        let words = bytes.chunks(4).zip(self.code.chunks(4)).enumerate();
        for (position, (again, word)) in words {
            let at = self.address + 4 * position as u64;
            let after = program.addresses.partition_point(|&address| address <= at);
            let text = program.texts.get(after.saturating_sub(1)).map_or("", String::as_str);
            if again != word && !is_short_literal(text, again, word) {
                return Err(fail(format!("`{text}` has other bytes")));
            }
        }
        Ok(())
    }

    /// Builds a kernel from assembler text, for tests: `s[0:1]` hold the address of the arguments,
    /// `s2` the workgroup, `v0` the lane.
    #[cfg(test)]
    pub(crate) fn assembled(text: &str, lds_bytes: u32, scratch_bytes: u32) -> Result<Self, String> {
        Ok(Self {
            name: "test".to_owned(),
            kernarg_bytes: 0,
            lds_bytes,
            scratch_bytes,
            vgprs: 32,
            agprs: 8,
            sgprs: 32,
            max_workgroup: 1024,
            required_workgroup: None,
            setup: Setup {
                packet: false,
                kernarg: true,
                user_scalars: 2,
                workgroup_ids: [true, false, false],
                work_item_ids: 0,
                mode: IEEE_MODE,
            },
            code: assemble(text)?,
            address: 0x1000,
            program: OnceLock::new(),
            reassembled: OnceLock::new(),
        })
    }
}

/// A code object.
#[derive(Debug)]
pub struct CodeObject {
    kernels: Vec<Arc<Kernel>>,
}

/// `EF_AMDGPU_MACH_AMDGCN_GFX942` and the mask of its ELF flags field.
const GFX942: u32 = 0x4c;
const MACH: u32 = 0xff;

/// MODE with rounding to nearest even and denormals kept, for f32 and for f16 and f64.
#[cfg(test)]
const IEEE_MODE: u32 = 0xf0;

/// Descriptor bits that request scalar registers: addresses of the dispatch packet and of the
/// arguments.
const DISPATCH_PACKET: u32 = 1 << 1;
const KERNARG: u32 = 1 << 3;

/// The rounding bits of MODE; 0 is round to nearest even.
const ROUNDING: u32 = 0xf;

impl CodeObject {
    /// Parses an ELF file; a kernel's instructions are decoded when it is first used.
    ///
    /// # Errors
    ///
    /// [`CodeObjectError`]: not ELF, not AMDGPU, not gfx942, damaged metadata or descriptors.
    pub fn parse(bytes: &[u8]) -> Result<Self, CodeObjectError> {
        let metadata = metadata::read(bytes)?;
        let file = File::parse(bytes).map_err(CodeObjectError::Elf)?;
        let flags = file.elf_header().e_flags.get(file.endian());
        if flags & MACH != GFX942 {
            return Err(CodeObjectError::Processor(flags));
        }
        let kernels = list(&metadata, "amdhsa.kernels")?
            .iter()
            .map(|entry| kernel(&file, entry).map(Arc::new))
            .collect::<Result<_, _>>()?;
        Ok(Self { kernels })
    }

    /// Returns all kernels.
    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }

    /// Returns the kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

type File<'a> = ElfFile64<'a, object::Endianness>;

fn kernel(file: &File<'_>, entry: &Value) -> Result<Kernel, CodeObjectError> {
    let name = text(entry, ".name")?.to_owned();
    let bad = |what: &str| CodeObjectError::Kernel {
        kernel: name.clone(),
        what: what.to_owned(),
    };
    let descriptor_name = text(entry, ".symbol")?;
    let symbol = |name: &str| {
        file.symbols()
            .chain(file.dynamic_symbols())
            .find(|s| s.name() == Ok(name))
    };
    let descriptor_symbol = symbol(descriptor_name).ok_or_else(|| bad("no descriptor symbol"))?;
    let descriptor = bytes_at(file, descriptor_symbol.address(), 64).ok_or_else(|| bad("no descriptor"))?;
    let word = |at: usize| {
        descriptor
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    };
    let entry_offset = i64::from(word(16)) | i64::from(word(20)) << 32;
    let address = descriptor_symbol.address().wrapping_add_signed(entry_offset);
    let code_symbol = symbol(&name).ok_or_else(|| bad("no code symbol"))?;
    if code_symbol.address() != address {
        return Err(bad("the descriptor's entry is not the kernel's symbol"));
    }
    let code = bytes_at(file, address, code_symbol.size())
        .ok_or_else(|| bad("no code"))?
        .to_vec();
    let (rsrc1, rsrc2, properties) = (word(48), word(52), word(56) & 0xffff);
    // Other properties would shift the scalar registers, or select 32-lane waves.
    if properties & !(DISPATCH_PACKET | KERNARG) != 0 {
        return Err(bad(&format!(
            "unsupported properties {properties:#x} (only the dispatch packet, the kernarg pointer, wave64)"
        )));
    }
    let setup = Setup {
        packet: properties & DISPATCH_PACKET != 0,
        kernarg: properties & KERNARG != 0,
        user_scalars: (rsrc2 >> 1 & 31) as u8,
        workgroup_ids: [7, 8, 9].map(|bit| rsrc2 >> bit & 1 != 0),
        work_item_ids: (rsrc2 >> 11 & 3) as u8,
        // Rounding in bits 15:12, denormals in 19:16: attention is compiled to flush f32 denormals.
        mode: rsrc1 >> 12 & 0xff,
    };
    if setup.mode & ROUNDING != 0 {
        return Err(bad(&format!(
            "MODE {:#x}: no kernel begins with another rounding than to nearest",
            setup.mode
        )));
    }
    // DX10_CLAMP and IEEE_MODE set, FP16_OVFL clear: NaNs, minima and conversions are modelled for
    // these.
    if [21, 23, 26].map(|bit| rsrc1 >> bit & 1) != [1, 1, 0] {
        return Err(bad(
            "unsupported MODE: only IEEE mode with DX10 clamping, without FP16_OVFL, is modelled",
        ));
    }
    let required_workgroup = get(entry, ".reqd_workgroup_size")
        .map(|sizes| sizes_of(sizes).ok_or_else(|| bad("a wrong .reqd_workgroup_size")))
        .transpose()?;
    Ok(Kernel {
        kernarg_bytes: number(entry, ".kernarg_segment_size")?,
        lds_bytes: number(entry, ".group_segment_fixed_size")?,
        scratch_bytes: number(entry, ".private_segment_fixed_size")?,
        vgprs: number(entry, ".vgpr_count")?,
        agprs: number(entry, ".agpr_count")?,
        sgprs: number(entry, ".sgpr_count")?,
        max_workgroup: number(entry, ".max_flat_workgroup_size")?,
        required_workgroup,
        setup,
        code,
        address,
        program: OnceLock::new(),
        reassembled: OnceLock::new(),
        name,
    })
}

/// Parses sizes in x, y, z.
fn sizes_of(list: &Value) -> Option<[u32; 3]> {
    let sizes = list.as_array()?.iter().map(|size| size.as_u64()?.try_into().ok());
    sizes.collect::<Option<Vec<u32>>>()?.try_into().ok()
}

/// Returns bytes of the loaded image.
fn bytes_at<'d>(file: &File<'d>, address: u64, size: u64) -> Option<&'d [u8]> {
    file.sections()
        .find_map(|section| section.data_range(address, size).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::is_short_literal;

    #[test]
    fn literals_of_16_bits_may_have_either_upper_half() {
        let same =
            |text: &str, again: u32, word: u32| is_short_literal(text, &again.to_le_bytes(), &word.to_le_bytes());
        for (again, word) in [(0xffab, 0xffff_ffab), (0xffff_ffab, 0xffab)] {
            assert!(same("v_mul_lo_u16_e32 v1, 0xffab, v0", again, word));
            assert!(!same("v_mul_lo_u32 v1, 0xffab, v0", again, word));
        }
        assert!(!same("v_mul_lo_u16_e32 v1, 0xffab, v0", 0xffab, 0xffff_ffaa));
        assert!(!same("v_mul_lo_u16_e32 v1, 0xffab, v0", 0xffab, 0x1234_ffab));
    }
}
