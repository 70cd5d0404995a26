//! Holds the decoder's state (registers, constants and addresses of a kernel) and resolves operands
//! with it.

use std::collections::HashMap;

use crate::{
    inst::Scalar,
    registers::Range,
    text::{File, Operand, Value},
};

/// State of the decoding of one kernel.
pub(crate) struct Decoder {
    /// Row of the first accumulation register: vector registers come first.
    accumulation: u16,
    pub(super) rows: u16,
    pub(super) constants: Vec<[u32; 64]>,
    constant_of: HashMap<u32, u16>,
    index_of: HashMap<u64, u32>,
    /// Address after the current instruction.
    pub(super) next: u64,
}

impl Decoder {
    pub(crate) fn new(vgprs: u32, agprs: u32, index_of: HashMap<u64, u32>) -> Self {
        // The metadata's total includes accumulation registers; each file has at most 256.
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

    #[cfg(test)]
    pub(crate) fn into_constants(self) -> Vec<[u32; 64]> {
        self.constants
    }

    /// Returns the row of a constant, adding it if needed.
    pub(super) fn constant(&mut self, value: u32) -> u16 {
        *self.constant_of.entry(value).or_insert_with(|| {
            self.constants.push([value; 64]);
            (self.constants.len() - 1) as u16
        })
    }

    /// Returns the first row and the number of vector registers.
    pub(super) fn row(&self, operand: &Operand) -> Result<(u16, u16), String> {
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

    /// Returns the first row of a vector operand of exactly `count` rows.
    pub(super) fn rows_of(&self, operand: &Operand, count: usize) -> Result<u16, String> {
        match self.row(operand)? {
            (first, n) if usize::from(n) == count => Ok(first),
            (_, n) => Err(format!("{n} registers instead of {count}")),
        }
    }

    /// Returns the index of a branch's target instruction, from the 16-bit offset in dwords.
    pub(super) fn target(&self, operand: &Operand) -> Result<u32, String> {
        let Value::Integer(offset) = operand.value else {
            return Err(format!("branch offset {:?}", operand.value));
        };
        // LLVM prints the offset unsigned.
        let offset = i64::from(offset as u16 as i16) * 4;
        let address = self.next.wrapping_add_signed(offset);
        self.index_of
            .get(&address)
            .copied()
            .ok_or_else(|| format!("branch to {address:#x}, no instruction"))
    }
}

/// Returns a range of rows, for strict mode.
pub(super) fn rows(first: u16, count: usize) -> Range {
    Range {
        vector: true,
        first,
        count: count as u16,
    }
}

/// Returns a range of scalar registers, for strict mode; empty for a constant.
pub(super) fn scalars(source: Scalar, count: u16) -> Range {
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

/// Returns the first of `count` scalar registers.
pub(super) fn scalar_register(operand: &Operand, count: u16) -> Result<u8, String> {
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

/// Returns a 32-bit scalar source: a register, integer or literal.
pub(super) fn scalar_source(operand: &Operand) -> Result<Scalar, String> {
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

/// Returns the bits of an inline f32. LLVM prints 1/(2π) rounded; its bits are the ISA's.
pub(super) fn inline_f32(value: f64) -> u32 {
    if (value - 0.159_154_943).abs() < 1e-8 {
        0x3e22_f983
    } else {
        (value as f32).to_bits()
    }
}
