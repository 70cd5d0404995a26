//! Instructions from text: once per kernel.
//!
//! `text` takes the disassembler's line apart; this module finds the opcode's entry in `table` and resolves operands.
//! An operand, modifier or mnemonic that nobody takes is an error that names it.

mod memory;
mod other;
mod scalar;
mod vector;

#[cfg(test)]
pub(crate) use vector::mutant;

use std::collections::HashMap;

use crate::{
    disassembler::Disassembler,
    inst::{Code, Inst, Program, Range, Scalar, Uses},
    object::{DecodeError, Kernel},
    strict::Footprint,
    text::{File, Operand, Text, Value},
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
        used.footprint = Footprint::new(&inst, &used);
        insts.push(inst);
        uses.push(used);
    }
    // VGPR indexing reaches 255 rows further: these are there, and nobody has written them.
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

/// What decoding needs to know and collects.
pub(crate) struct Decoder {
    /// Row of the first accumulation register: vector registers come first
    accumulation: u16,
    rows: u16,
    constants: Vec<[u32; 64]>,
    constant_of: HashMap<u32, u16>,
    index_of: HashMap<u64, u32>,
    /// Address after the instruction in hand
    next: u64,
}

impl Decoder {
    pub(crate) fn new(vgprs: u32, agprs: u32, index_of: HashMap<u64, u32>) -> Self {
        // The metadata's total counts accumulation registers too; each file has at most 256.
        let accumulation = vgprs.clamp(1, 256) as u16;
        let rows = accumulation + agprs.min(256) as u16;
        Self {
            accumulation,
            rows,
            constants: Vec::new(),
            constant_of: HashMap::new(),
            index_of,
            next: 0,
        }
    }

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

    #[cfg(test)]
    pub(crate) fn into_constants(self) -> Vec<[u32; 64]> {
        self.constants
    }

    /// The row of a constant.
    fn constant(&mut self, value: u32) -> u16 {
        *self.constant_of.entry(value).or_insert_with(|| {
            self.constants.push([value; 64]);
            (self.constants.len() - 1) as u16
        })
    }

    /// Row and count of vector registers.
    fn row(&self, operand: &Operand) -> Result<(u16, u16), String> {
        let Value::Register { file, first, count } = operand.value else {
            return Err(format!("operand {:?} instead of a vector register", operand.value));
        };
        let (first, end) = match file {
            File::Vector => (first, self.accumulation),
            File::Accumulation => (first + self.accumulation, self.rows),
            File::Scalar => return Err("a scalar register instead of a vector register".to_owned()),
        };
        if first + count > end {
            return Err(format!("register {} beyond the kernel's", first + count - 1));
        }
        Ok((first, count))
    }

    /// A vector register of exactly `count` rows.
    fn rows_of(&self, operand: &Operand, count: usize) -> Result<u16, String> {
        match self.row(operand)? {
            (first, n) if usize::from(n) == count => Ok(first),
            (_, n) => Err(format!("{n} registers instead of {count}")),
        }
    }

    /// The instruction that a branch goes to, from its 16-bit offset in dwords.
    fn target(&self, operand: &Operand) -> Result<u32, String> {
        let Value::Integer(offset) = operand.value else {
            return Err(format!("branch offset {:?}", operand.value));
        };
        // Printed unsigned.
        let offset = i64::from(offset as u16 as i16) * 4;
        let address = self.next.wrapping_add_signed(offset);
        self.index_of
            .get(&address)
            .copied()
            .ok_or_else(|| format!("branch to {address:#x}, no instruction"))
    }
}

/// Rows, for strict mode.
fn rows(first: u16, count: usize) -> Range {
    Range {
        vector: true,
        first,
        count: count as u16,
    }
}

/// Scalar registers, for strict mode; a constant is an empty range.
fn scalars(source: Scalar, count: u16) -> Range {
    match source {
        Scalar::Register(first) => Range {
            vector: false,
            first: first.into(),
            count,
        },
        Scalar::Constant(_) | Scalar::Scc => Range {
            vector: false,
            first: 0,
            count: 0,
        },
    }
}

/// First of `count` scalar registers.
fn scalar_register(operand: &Operand, count: u16) -> Result<u8, String> {
    match operand.value {
        Value::Register {
            file: File::Scalar,
            first,
            count: n,
        } if n == count => Ok(first as u8),
        _ => Err(format!(
            "operand {:?} instead of {count} scalar registers",
            operand.value
        )),
    }
}

/// A 32-bit scalar source that is a register, integer or literal.
fn scalar_source(operand: &Operand) -> Result<Scalar, String> {
    if operand.neg || operand.abs || operand.sext {
        return Err("a modifier of a scalar operand".to_owned());
    }
    match &operand.value {
        Value::Register {
            file: File::Scalar,
            first,
            count: 1,
        } => Ok(Scalar::Register(*first as u8)),
        Value::Integer(value) => Ok(Scalar::Constant(*value as u32)),
        Value::Literal(value) => Ok(Scalar::Constant(*value)),
        Value::Float(value) => Ok(Scalar::Constant(inline_f32(*value))),
        Value::Word(word) if word == "scc" => Ok(Scalar::Scc),
        other => Err(format!("operand {other:?} instead of a scalar")),
    }
}

/// 1/(2π) is printed rounded; its bits are the ISA's.
fn inline_f32(value: f64) -> u32 {
    if (value - 0.159_154_943).abs() < 1e-8 {
        0x3e22_f983
    } else {
        (value as f32).to_bits()
    }
}
