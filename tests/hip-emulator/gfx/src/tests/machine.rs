//! Runs one vector instruction on given registers.

use std::{collections::HashMap, mem};

use crate::{
    Block, Memory,
    decode::{self, Decoder},
    inst::{Code, Program, sgpr},
    lanes::{Mode, Row},
    memory::{Global, Lds},
    plain,
    table::VectorOp,
    vector,
    wave::{Context, Wave},
};

/// Registers before or after the instruction.
#[derive(Clone)]
pub(super) struct Registers {
    pub(super) v: Vec<Row>,
    pub(super) s: [u32; 128],
    pub(super) mode: Mode,
}

impl Registers {
    /// Returns zeroed registers, with all lanes on and the mode of every launch.
    pub(super) fn new() -> Self {
        let mut registers = Self {
            v: vec![[0; 64]; 32],
            s: [0; 128],
            mode: Mode::IEEE,
        };
        registers.set(sgpr::EXEC, u64::MAX);
        registers
    }

    pub(super) fn set(&mut self, pair: u8, value: u64) {
        self.s[usize::from(pair)] = value as u32;
        self.s[usize::from(pair) + 1] = (value >> 32) as u32;
    }

    pub(super) fn pair(&self, pair: u8) -> u64 {
        u64::from(self.s[usize::from(pair)]) | u64::from(self.s[usize::from(pair) + 1]) << 32
    }
}

struct Nothing;

impl Memory for Nothing {
    fn block(&self, _address: u64) -> Option<Block> {
        None
    }
}

/// Decodes a line; `op` replaces the table's entry.
pub(super) fn decode(line: &str, op: Option<VectorOp>) -> Result<(Code, Vec<Row>), String> {
    let mut decoder = Decoder::new(32, 0, HashMap::new());
    let (inst, _) = match op {
        Some(op) => decode::mutant(&mut decoder, line, op)?,
        None => decoder.instruction(line)?,
    };
    Ok((inst.code, decoder.into_constants()))
}

/// Runs a decoded instruction.
pub(super) fn execute(code: &Code, constants: Vec<Row>, registers: &mut Registers) {
    let program = Program {
        insts: Vec::new(),
        uses: Vec::new(),
        texts: Vec::new(),
        addresses: Vec::new(),
        constants,
        rows: registers.v.len() as u16,
    };
    let mut wave = Wave::new(&program, 0, 0);
    wave.rows.clone_from(&registers.v);
    wave.scalars = registers.s;
    wave.mode = registers.mode;
    let mut context = Context::new(&program, Global::new(&Nothing, Vec::new()), Lds::new(0, false), 0);
    match code {
        Code::Valu(valu) if plain::is(valu, &wave) => {
            // Both drivers run it; the results must be equal.
            let before = (wave.rows.clone(), wave.scalars);
            plain::valu(&mut wave, &mut context, valu);
            let after = (
                mem::replace(&mut wave.rows, before.0),
                mem::replace(&mut wave.scalars, before.1),
            );
            vector::valu(&mut wave, &mut context, valu);
            assert!(
                after.0 == wave.rows && after.1 == wave.scalars,
                "the drivers differ: {valu:?}"
            );
        }
        Code::Valu(valu) => vector::valu(&mut wave, &mut context, valu),
        Code::Lanes(op) => vector::lanes(&mut wave, *op),
        other => panic!("{other:?} is no vector instruction"),
    }
    registers.v = wave.rows;
    registers.s = wave.scalars;
}

/// Runs a line on the registers.
pub(super) fn run(line: &str, registers: &mut Registers) {
    let (code, constants) = decode(line, None).unwrap_or_else(|what| panic!("{line}: {what}"));
    execute(&code, constants, registers);
}
