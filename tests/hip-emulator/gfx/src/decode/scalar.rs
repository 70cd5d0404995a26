//! Decodes scalar arithmetic; the table gives the operands of an opcode.

use smallvec::smallvec;

use super::decoder::{inline_f32, scalar_register, scalar_source, scalars};
use crate::{
    inst::{Code, Inst, Scalar, Uses, sgpr},
    memory::apertures,
    report::Class,
    table::{self, Op, Rule, ScalarOp},
    text::{File, Operand, Text, Value},
};

const ZERO: Scalar = Scalar::Constant(0);

pub(super) fn decode(text: &mut Text) -> Result<Option<(Inst, Uses)>, String> {
    let Some(entry) = table::find(&text.mnemonic) else {
        return Ok(None);
    };
    let code = match entry.op {
        Op::Vector(_) => return Ok(None),
        Op::SaveExec(function) => {
            let [target, source] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let target = scalar_register(target, 2)?;
            let source = operand(source, 64)?;
            let uses = Uses {
                reads: smallvec![scalars(source[0], 2)],
                writes: smallvec![
                    scalars(Scalar::Register(target), 2),
                    scalars(Scalar::Register(sgpr::EXEC), 2)
                ],
                rule: Rule::All,
                ..Uses::default()
            };
            (
                Code::SaveExec {
                    function,
                    target,
                    source,
                },
                uses,
            )
        }
        Op::Scalar(op) => salu(text, op)?,
    };
    Ok(Some((
        Inst {
            code: code.0,
            class: Class::Salu,
        },
        code.1,
    )))
}

fn salu(text: &Text, op: ScalarOp) -> Result<(Code, Uses), String> {
    let mut operands = text.operands.iter();
    let mut next = || operands.next().ok_or_else(|| "too few operands".to_owned());
    let mut uses = Uses {
        rule: op.rule,
        reads_scc: op.reads_scc,
        ..Uses::default()
    };
    let mut target = None;
    if op.target != 0 {
        target = Some(scalar_register(next()?, u16::from(op.target) / 32)?);
    } else if op.immediate.is_some() {
        // The register is s_cmpk's first operand, and the destination of the other SOPK opcodes.
        target = Some(scalar_register(next()?, 1)?);
    }
    let source = |operand_text: &Operand, bits: u8, uses: &mut Uses| -> Result<[Scalar; 2], String> {
        let source = operand(operand_text, bits)?;
        uses.reads.push(scalars(source[0], u16::from(bits) / 32));
        Ok(source)
    };
    let a = if op.a != 0 {
        source(next()?, op.a, &mut uses)?
    } else {
        [ZERO; 2]
    };
    let b = match (op.b, op.immediate) {
        (0, _) => [ZERO; 2],
        (_, Some(signed)) => {
            let value = match next()?.value {
                Value::Literal(value) => value,
                Value::Integer(value) => value as u32,
                _ => return Err("an immediate that is no number".to_owned()),
            };
            // SOPK immediates are printed unsigned.
            let value = if signed {
                value as u16 as i16 as u32
            } else {
                value & 0xffff
            };
            [Scalar::Constant(value), ZERO]
        }
        (bits, None) => source(next()?, bits, &mut uses)?,
    };
    if operands.next().is_some() {
        return Err("too many operands".to_owned());
    }
    if let Some(target) = target {
        let count = u16::from(op.target.max(32)) / 32;
        let range = scalars(Scalar::Register(target), count);
        // s_cmpk only reads the register.
        if op.reads_target || op.target == 0 {
            uses.reads.push(range);
        }
        if op.target != 0 {
            uses.writes.push(range);
        }
    }
    let wide = op.target == 64;
    let compare_only = op.target == 0 && op.immediate.is_some();
    let code = if compare_only {
        // The register is read as the old destination and not written: these opcodes only set SCC.
        let register = target.map_or(ZERO, Scalar::Register);
        Code::Salu {
            function: op.function,
            target: None,
            wide: false,
            a: [register, ZERO],
            b,
            scc: true,
        }
    } else {
        Code::Salu {
            function: op.function,
            target,
            wide,
            a,
            b,
            scc: op.scc,
        }
    };
    Ok((code, uses))
}

/// Splits a scalar source of 32 or 64 bits into two halves.
fn operand(operand: &Operand, bits: u8) -> Result<[Scalar; 2], String> {
    if bits == 32 {
        return Ok([scalar_source(operand)?, ZERO]);
    }
    Ok(match &operand.value {
        Value::Register {
            file: File::Scalar,
            first,
            count: 2,
        } => [Scalar::Register(*first as u8), Scalar::Register(*first as u8 + 1)],
        // Inline integers are sign-extended, literals are not: LLVM uses s_mov_b64 for any unsigned
        // 32-bit value.
        Value::Integer(value) => [Scalar::Constant(*value as u32), Scalar::Constant((*value >> 32) as u32)],
        Value::Literal(value) => [Scalar::Constant(*value), ZERO],
        Value::Float(value) => {
            let bits = if inline_f32(*value) == 0x3e22_f983 {
                0x3fc4_5f30_6dc9_c882
            } else {
                value.to_bits()
            };
            [Scalar::Constant(bits as u32), Scalar::Constant((bits >> 32) as u32)]
        }
        // Base addresses of the flat apertures: the low half is 0.
        Value::Word(word) if word == "src_shared_base" => [ZERO, Scalar::Constant(apertures::SHARED)],
        Value::Word(word) if word == "src_private_base" => [ZERO, Scalar::Constant(apertures::PRIVATE)],
        other => return Err(format!("operand {other:?} instead of 64 scalar bits")),
    })
}
