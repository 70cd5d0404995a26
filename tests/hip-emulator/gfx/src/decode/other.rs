//! Decodes control flow, waits, MODE, VGPR indexing, exchange between lanes, matrix instructions.

use rotini_mfma::{Control, Opcode};
use smallvec::smallvec;

use super::decoder::{Decoder, rows, scalar_register, scalar_source, scalars};
use crate::{
    inst::{Addend, Code, Condition, Inst, LaneOp, Mfma, Scalar, Uses},
    lanes::Mode,
    report::Class,
    table::Rule,
    text::{File, Operand, Text, Value, integer},
};

pub(super) fn decode(decoder: &Decoder, text: &mut Text) -> Result<Option<(Inst, Uses)>, String> {
    let mnemonic = text.mnemonic.clone();
    if let Some(opcode) = Opcode::from_mnemonic(&mnemonic) {
        return mfma(decoder, text, opcode).map(Some);
    }
    let mut uses = Uses {
        rule: Rule::Demand,
        ..Uses::default()
    };
    let mut class = Class::Control;
    let code = match mnemonic.as_str() {
        // No-ops here: no cache is modelled, and priorities affect nothing modelled.
        "s_nop" | "s_sleep" | "s_setprio" | "s_icache_inv" | "s_dcache_inv" | "s_dcache_wb" | "v_nop" | "ds_nop"
        | "s_incperflevel" | "s_decperflevel" => {
            text.operands.clear();
            Code::Nop
        }
        "buffer_wbl2" | "buffer_inv" => {
            text.flag("sc0");
            text.flag("sc1");
            Code::Nop
        }
        "s_waitcnt" => {
            let mut count = |name: &str| -> Result<Option<u8>, String> {
                text.number(name)?
                    .map(|n| u8::try_from(n).map_err(|error| error.to_string()))
                    .transpose()
            };
            let (vector, scalar) = (count("vmcnt")?, count("lgkmcnt")?);
            // Compute kernels have no exports.
            count("expcnt")?;
            match text.operands.as_slice() {
                [] => Code::Wait { vector, scalar },
                [
                    Operand {
                        value: Value::Integer(0),
                        ..
                    },
                ] => Code::Wait {
                    vector: Some(0),
                    scalar: Some(0),
                },
                _ => return Err("operands of s_waitcnt".to_owned()),
            }
        }
        "s_barrier" => Code::Barrier,
        "s_endpgm" | "s_endpgm_saved" => Code::End,
        "s_trap" => {
            text.operands.clear();
            Code::Trap
        }
        "s_memtime" | "s_memrealtime" => {
            let [target] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let target = scalar_register(target, 2)?;
            uses.writes.push(scalars(Scalar::Register(target), 2));
            class = Class::Smem;
            Code::Time { target }
        }
        "s_getpc_b64" => {
            let [target] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let target = scalar_register(target, 2)?;
            uses.writes.push(scalars(Scalar::Register(target), 2));
            class = Class::Salu;
            Code::GetPc {
                target,
                address: decoder.next,
            }
        }
        "s_setpc_b64" => {
            let [source] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let source = scalar_register(source, 2)?;
            uses.reads.push(scalars(Scalar::Register(source), 2));
            Code::SetPc { source }
        }
        _ if mnemonic.starts_with("s_branch") || mnemonic.starts_with("s_cbranch_") => branch(decoder, text)?,
        "s_set_gpr_idx_on" => {
            let [
                index,
                Operand {
                    value: Value::Word(word),
                    ..
                },
            ] = text.operands.as_slice()
            else {
                return Err("operands".to_owned());
            };
            let index = scalar_source(index)?;
            uses.reads.push(scalars(index, 1));
            Code::IndexOn {
                index,
                operands: indexed(word)?,
            }
        }
        "s_set_gpr_idx_off" => Code::IndexOff,
        "s_setreg_imm32_b32" | "s_setreg_b32" => {
            let [register, value] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let (offset, width) = mode_field(register)?;
            let value = scalar_source(value)?;
            uses.reads.push(scalars(value, 1));
            Code::SetMode { offset, width, value }
        }
        "s_getreg_b32" => {
            let [target, register] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let (offset, width) = mode_field(register)?;
            let target = scalar_register(target, 1)?;
            uses.writes.push(scalars(Scalar::Register(target), 1));
            Code::GetMode { offset, width, target }
        }
        "v_readfirstlane_b32" => {
            let [target, source] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let (target, row) = (scalar_register(target, 1)?, decoder.rows_of(source, 1)?);
            uses.reads.push(rows(row, 1));
            uses.writes.push(scalars(Scalar::Register(target), 1));
            class = Class::Valu;
            Code::Lanes(LaneOp::ReadFirst(target, row))
        }
        "v_readlane_b32" => {
            let [target, source, lane] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let (target, row, lane) = (
                scalar_register(target, 1)?,
                decoder.rows_of(source, 1)?,
                scalar_source(lane)?,
            );
            uses.reads = smallvec![rows(row, 1), scalars(lane, 1)];
            uses.writes.push(scalars(Scalar::Register(target), 1));
            class = Class::Valu;
            Code::Lanes(LaneOp::ReadLane(target, row, lane))
        }
        "v_writelane_b32" => {
            let [target, value, lane] = text.operands.as_slice() else {
                return Err("operands".to_owned());
            };
            let (row, value, lane) = (decoder.rows_of(target, 1)?, scalar_source(value)?, scalar_source(lane)?);
            uses.reads = smallvec![scalars(value, 1), scalars(lane, 1)];
            uses.writes.push(rows(row, 1));
            class = Class::Valu;
            Code::Lanes(LaneOp::WriteLane(row, value, lane))
        }
        _ => return Ok(None),
    };
    Ok(Some((Inst { code, class }, uses)))
}

fn branch(decoder: &Decoder, text: &Text) -> Result<Code, String> {
    let condition = match text.mnemonic.as_str() {
        "s_branch" => Condition::Always,
        "s_cbranch_scc0" => Condition::Scc(false),
        "s_cbranch_scc1" => Condition::Scc(true),
        "s_cbranch_vccz" => Condition::VccZero(true),
        "s_cbranch_vccnz" => Condition::VccZero(false),
        "s_cbranch_execz" => Condition::ExecZero(true),
        "s_cbranch_execnz" => Condition::ExecZero(false),
        other => return Err(format!("mnemonic {other}")),
    };
    let [offset] = text.operands.as_slice() else {
        return Err("operands".to_owned());
    };
    Ok(Code::Branch {
        condition,
        target: decoder.target(offset)?,
    })
}

/// Converts the operands of `gpr_idx(SRC0,DST)` to bits.
fn indexed(word: &str) -> Result<u8, String> {
    let inner = word
        .strip_prefix("gpr_idx(")
        .and_then(|w| w.strip_suffix(')'))
        .ok_or(word)?;
    inner
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| match name {
            "SRC0" => Ok(1),
            "SRC1" => Ok(2),
            "SRC2" => Ok(4),
            "DST" => Ok(8),
            other => Err(format!("gpr_idx({other})")),
        })
        .try_fold(0, |bits, bit| bit.map(|bit: u8| bits | bit))
}

/// Returns the offset and width of `hwreg(HW_REG_MODE, 4, 4)`; other hardware registers are not
/// modelled.
fn mode_field(operand: &Operand) -> Result<(u8, u8), String> {
    let Value::Word(word) = &operand.value else {
        return Err(format!("operand {:?} instead of a hardware register", operand.value));
    };
    let inner = word
        .strip_prefix("hwreg(")
        .and_then(|w| w.strip_suffix(')'))
        .ok_or_else(|| word.clone())?;
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let number = |text: &str| {
        integer(text)
            .and_then(|n| u8::try_from(n).ok())
            .ok_or_else(|| word.clone())
    };
    let (offset, width) = match parts.as_slice() {
        ["HW_REG_MODE"] => (0, 32),
        ["HW_REG_MODE", offset, width] => (number(offset)?, number(width)?),
        _ => return Err(format!("hardware register {word}")),
    };
    // Clamping, IEEE mode and exceptions keep the values that every launch has.
    if u32::from(offset) + u32::from(width) > Mode::FIELDS.count_ones() {
        return Err(format!("{word}: only rounding and denormals of MODE are modelled"));
    }
    Ok((offset, width))
}

fn mfma(decoder: &Decoder, text: &mut Text, opcode: Opcode) -> Result<(Inst, Uses), String> {
    let operands = std::mem::take(&mut text.operands);
    let [d, a, b, c] = operands.as_slice() else {
        return Err("operands".to_owned());
    };
    let (a_count, b_count, c_count, d_count) = opcode.registers();
    let mut field = |name: &str| -> Result<u8, String> {
        u8::try_from(text.number(name)?.unwrap_or(0)).map_err(|error| error.to_string())
    };
    let mut control = Control {
        cbsz: field("cbsz")?,
        abid: field("abid")?,
        blgp: field("blgp")?,
    };
    if let Some(signs) = text.list("neg")? {
        if !opcode.is_f64() {
            return Err("neg of a form that is not f64".to_owned());
        }
        control.blgp = signs
            .iter()
            .take(3)
            .enumerate()
            .fold(0, |bits, (n, &sign)| bits | u8::from(sign != 0) << n);
    }
    opcode.check(control).map_err(|error| error.to_string())?;
    let d = decoder.rows_of(d, d_count)?;
    let a = decoder.rows_of(a, a_count)?;
    let b = decoder.rows_of(b, b_count)?;
    let mut uses = Uses {
        reads: smallvec![rows(a, a_count), rows(b, b_count)],
        writes: smallvec![rows(d, d_count)],
        rule: Rule::All,
        ..Uses::default()
    };
    let c = match &c.value {
        Value::Register {
            file: File::Vector | File::Accumulation,
            ..
        } => {
            let first = decoder.rows_of(c, c_count)?;
            uses.reads.push(rows(first, c_count));
            Addend::Rows(first)
        }
        Value::Integer(value) if opcode.is_f64() => Addend::Constant(*value as u64),
        Value::Integer(value) => Addend::Constant(u64::from(*value as u32)),
        Value::Float(value) if opcode.is_f64() => Addend::Constant(value.to_bits()),
        Value::Float(value) => Addend::Constant(u64::from((*value as f32).to_bits())),
        other => return Err(format!("operand {other:?} instead of an accumulator")),
    };
    if opcode.is_sparse() {
        uses.reads.push(rows(d, d_count));
    }
    Ok((
        Inst {
            code: Code::Mfma(Mfma {
                opcode,
                a,
                b,
                c,
                d,
                control,
            }),
            class: Class::Mfma,
        },
        uses,
    ))
}
