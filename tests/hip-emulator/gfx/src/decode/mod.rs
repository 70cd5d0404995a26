//! Decodes instructions from text, once per kernel.
//!
//! `text` parses the disassembler's line; this module finds the opcode's entry in `table` and
//! resolves operands. An operand, modifier or mnemonic that remains unused is an error that names
//! it.

mod decoder;
mod memory;
mod modifiers;
mod other;
mod scalar;
mod vector;

pub(crate) use decoder::Decoder;
#[cfg(test)]
pub(crate) use vector::mutant;

use std::collections::HashMap;

use crate::{
    disassembler::Disassembler,
    error::DecodeError,
    inst::{Code, Inst, Program, Uses},
    object::Kernel,
    strict::footprint,
    text::Text,
};

/// Decodes a kernel.
pub(crate) fn program(kernel: &Kernel) -> Result<Program, DecodeError> {
    let mut disassembler = Disassembler::new("gfx942").ok_or(DecodeError::Disassembler)?;
    let mut lines = Vec::new();
    let mut index_of = HashMap::new();
    let mut offset = 0;
    while offset < kernel.code.len() {
        let address = kernel.address + offset as u64;
        let (text, length) = disassembler
            .next(&kernel.code[offset..], address)
            .ok_or_else(|| DecodeError::Bytes {
                kernel: kernel.name.clone(),
                address,
            })?;
        index_of.insert(address, lines.len() as u32);
        lines.push((address, length, text));
        offset += length;
    }
    let mut decoder = Decoder::new(kernel.vgprs, kernel.agprs, index_of);
    let (mut insts, mut uses) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
    for (address, length, text) in &lines {
        decoder.next = address + *length as u64;
        let (inst, mut used) = decoder.instruction(text).map_err(|what| DecodeError::Instruction {
            kernel: kernel.name.clone(),
            instruction: text.clone(),
            address: *address,
            what,
        })?;
        used.footprint = footprint(&inst, &used);
        insts.push(inst);
        uses.push(used);
    }
    // VGPR indexing reaches 255 rows beyond the kernel's registers: these rows exist,
    // uninitialised.
    let indexes = insts.iter().any(|inst| matches!(inst.code, Code::IndexOn { .. }));
    let rows = decoder.rows + if indexes { 256 } else { 0 };
    Ok(Program {
        insts,
        uses,
        addresses: lines.iter().map(|line| line.0).collect(),
        texts: lines.into_iter().map(|line| line.2).collect(),
        rows,
        constants: decoder.constants,
    })
}

impl Decoder {
    /// Decodes one line.
    pub(crate) fn instruction(&mut self, line: &str) -> Result<(Inst, Uses), String> {
        let mut text = Text::parse(line)?;
        let decoded = if let Some(decoded) = other::decode(self, &mut text)? {
            decoded
        } else if let Some(decoded) = memory::decode(self, &mut text)? {
            decoded
        } else if let Some(decoded) = scalar::decode(&mut text)? {
            decoded
        } else if let Some(decoded) = vector::decode(self, &mut text)? {
            decoded
        } else {
            return Err(format!("mnemonic {}", text.mnemonic));
        };
        match text.left() {
            Some(modifier) => Err(format!("modifier {modifier}")),
            None => Ok(decoded),
        }
    }
}
