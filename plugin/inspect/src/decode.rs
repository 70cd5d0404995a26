//! A decoder of gfx942's machine code, as far as counting needs it: the length and class of each
//! instruction, and the targets of branches.
//!
//! Formats and opcodes are those of AMD's "Instinct MI300 ISA". An unknown instruction is an error,
//! because a count that leaves something out is wrong.

use crate::{class::Class, matrix};

/// Machine code that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the word {word:#010x} at byte {at} begins no known instruction")]
pub struct DecodeError {
    /// The word
    pub word: u32,
    /// The word's offset in bytes from the beginning of the kernel
    pub at: usize,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// Offset in bytes from the beginning of the kernel
    pub(crate) at: usize,
    pub(crate) class: Class,
    /// Offset in bytes of a branch's target; negative if it precedes the kernel
    pub(crate) target: Option<i64>,
}

/// Returns the instructions of a kernel.
pub(crate) fn instructions(code: &[u8]) -> Result<Vec<Instruction>, DecodeError> {
    let words: Vec<u32> = code
        .chunks_exact(4)
        .filter_map(|bytes| bytes.try_into().ok().map(u32::from_le_bytes))
        .collect();
    let mut all = Vec::new();
    let mut place = 0;
    while let Some(&word) = words.get(place) {
        let at = 4 * place;
        let error = DecodeError { word, at };
        let (class, length) = instruction(word).ok_or_else(|| error.clone())?;
        let target = (class == Class::Branch && word >> 23 == 0x17f).then(|| {
            let distance = i64::from((word & 0xffff) as u16 as i16);
            at as i64 + 4 + 4 * distance
        });
        all.push(Instruction { at, class, target });
        place += length;
        if place > words.len() {
            return Err(error);
        }
    }
    Ok(all)
}

/// Returns bits `low` to `low + count - 1` of a word.
const fn bits(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}

/// Source operand for a literal constant, which follows the instruction.
const LITERAL: u32 = 255;

/// Returns an instruction's class, and its length in words.
fn instruction(word: u32) -> Option<(Class, usize)> {
    let scalar = |sources: &[u32]| 1 + usize::from(sources.contains(&LITERAL));
    // A second word follows for a literal, SDWA (249) and DPP (250).
    let vector = || 1 + usize::from(matches!(bits(word, 0, 9), LITERAL | 249 | 250));
    if word >> 31 == 0 {
        return Some(match bits(word, 25, 6) {
            // VOP1 and VOPC
            0x3f if bits(word, 9, 8) == 0 => (Class::Other, 1),
            0x3e | 0x3f => (Class::Vector, vector()),
            // VOP2 that always has a literal: v_madmk and v_madak of f32 and f16, which are named
            // v_fmamk and v_fmaak here.
            23 | 24 | 36 | 37 => (Class::Vector, 2),
            _ => (Class::Vector, vector()),
        });
    }
    match word >> 23 {
        0x17d => {
            let class = match bits(word, 8, 8) {
                // s_setpc, s_swappc: the target is in a register
                29 | 30 => Class::Branch,
                _ => Class::Scalar,
            };
            return Some((class, scalar(&[bits(word, 0, 8)])));
        }
        0x17e => return Some((Class::Scalar, scalar(&[bits(word, 0, 8), bits(word, 8, 8)]))),
        0x17f => return Some((program(bits(word, 16, 7))?, 1)),
        0x1a7 => return Some((packed(bits(word, 16, 7))?, 2)),
        _ => {}
    }
    if word >> 30 == 0b10 {
        return Some(match (bits(word, 28, 2), bits(word, 23, 5)) {
            // SOPK: s_setreg_imm32 has a literal, s_call is a jump
            (0b11, 20) => (Class::Scalar, 2),
            (0b11, 16 | 21) => (Class::Branch, 1),
            (0b11, _) => (Class::Scalar, 1),
            _ => (Class::Scalar, scalar(&[bits(word, 0, 8), bits(word, 8, 8)])),
        });
    }
    let class = match word >> 26 {
        0x30 => scalar_memory(bits(word, 18, 8))?,
        0x34 => Class::Vector,
        0x36 => lds(bits(word, 17, 8)),
        0x37 => match (bits(word, 14, 2), flat(bits(word, 18, 7))?) {
            (1, Class::Load(bytes) | Class::Store(bytes)) => Class::Private(bytes),
            (0 | 2, class) => class,
            _ => return None,
        },
        0x38 => buffer(bits(word, 18, 7))?,
        _ => return None,
    };
    Some((class, 2))
}

/// Returns the class of a SOPP instruction (program control).
const fn program(opcode: u32) -> Option<Class> {
    Some(match opcode {
        2 | 4..=9 | 23..=26 => Class::Branch,
        10 => Class::Barrier,
        12 => Class::Wait,
        // s_nop, s_endpgm, s_sleep, s_setprio, s_sendmsg, s_trap, s_icache_inv, indexing, ...
        0 | 1 | 3 | 11 | 13..=22 | 27..=30 => Class::Other,
        _ => return None,
    })
}

/// Returns the class of a VOP3P instruction: packed arithmetic, or a matrix instruction.
fn packed(opcode: u32) -> Option<Class> {
    match opcode {
        // v_accvgpr_read, v_accvgpr_write
        0x58 | 0x59 => Some(Class::Accumulator),
        0x3e.. => matrix::name(opcode).map(Class::Matrix),
        _ => Some(Class::Vector),
    }
}

/// Returns the class of a SMEM instruction (scalar memory).
const fn scalar_memory(opcode: u32) -> Option<Class> {
    Some(match opcode {
        0..=4 => Class::ScalarLoad(4 << opcode),
        8..=12 => Class::ScalarLoad(4 << (opcode - 8)),
        // Cache invalidations, and reads of the clock
        32..=37 => Class::Other,
        _ => return None,
    })
}

/// Returns the class of an LDS instruction (DS format).
const fn lds(opcode: u32) -> Class {
    match opcode {
        13 => Class::LdsWrite(4),
        14 | 15 | 77 => Class::LdsWrite(8),
        30 | 84 => Class::LdsWrite(1),
        31 | 85 => Class::LdsWrite(2),
        78 | 79 | 223 => Class::LdsWrite(16),
        222 => Class::LdsWrite(12),
        54 => Class::LdsRead(4),
        55 | 56 | 118 => Class::LdsRead(8),
        57 | 58 | 86..=89 => Class::LdsRead(1),
        59 | 60 | 90 | 91 => Class::LdsRead(2),
        119 | 120 | 255 => Class::LdsRead(16),
        254 => Class::LdsRead(12),
        // Atomics, exchanges between lanes
        _ => Class::LdsOther,
    }
}

/// Returns the class of a FLAT instruction. FLAT has separate opcodes for loads into LDS.
const fn flat(opcode: u32) -> Option<Class> {
    match opcode {
        38 | 39 => Some(Class::Load(1)),
        40 | 41 => Some(Class::Load(2)),
        42 => Some(Class::Load(4)),
        _ => memory(opcode),
    }
}

/// Returns the class of a MUBUF instruction (buffer memory).
const fn buffer(opcode: u32) -> Option<Class> {
    match opcode {
        // Write-backs and invalidations of caches
        40 | 41 | 62 => Some(Class::Other),
        _ => memory(opcode),
    }
}

/// Returns the class of a load, store or atomic whose opcode FLAT and MUBUF share.
const fn memory(opcode: u32) -> Option<Class> {
    Some(match opcode {
        // Formats: of a texture, or of 16 bits
        0..=3 => Class::Load(4 * (opcode as u8 + 1)),
        4..=7 => Class::Store(4 * (opcode as u8 - 3)),
        16 | 17 | 32..=35 => Class::Load(1),
        18 | 19 | 36 | 37 => Class::Load(2),
        20..=23 => Class::Load(4 * (opcode as u8 - 19)),
        24 | 25 => Class::Store(1),
        26 | 27 => Class::Store(2),
        28..=31 => Class::Store(4 * (opcode as u8 - 27)),
        64.. => Class::Atomic,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions as text, with the words to which LLVM's assembler (llvm-mc, gfx942) encodes
    /// them and their class according to the ISA.
    fn encoded() -> impl Iterator<Item = (&'static str, &'static [u32], Class)> {
        include!("decode/encoded.in").into_iter()
    }

    #[test]
    fn every_form_has_its_length_and_class() {
        for (text, words, class) in encoded() {
            // A second instruction, which is only found where it begins if the first one's length
            // is right.
            let code: Vec<u8> = words
                .iter()
                .chain(&[0xbf81_0000])
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let found = instructions(&code).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found.len(), 2, "{text}");
            assert_eq!(found[0].class, class, "{text}");
            assert_eq!(found[1].at, 4 * words.len(), "{text}");
        }
    }

    #[test]
    fn branches_know_where_they_go() {
        // s_nop 0; s_cbranch_scc1 to it; s_branch over the next instruction; s_endpgm
        let code: Vec<u8> = [0xbf80_0000_u32, 0xbf85_fffe, 0xbf82_0001, 0xbf81_0000]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let targets: Vec<_> = instructions(&code).unwrap().iter().map(|found| found.target).collect();
        assert_eq!(targets, [None, Some(0), Some(16), None]);
    }

    #[test]
    fn what_is_unknown_or_cut_off_is_an_error() {
        assert_eq!(instructions(&[0xff; 4]), Err(DecodeError { word: u32::MAX, at: 0 }));
        // A literal is missing.
        let cut = [0x7e00_02ff_u32.to_le_bytes()].concat();
        assert_eq!(instructions(&cut).unwrap_err().at, 0);
    }
}
