//! Decodes vector arithmetic; the table gives the types of an opcode's sources.

use smallvec::{SmallVec, smallvec};

use super::{
    decoder::{Decoder, inline_f32, rows, scalar_register, scalars},
    modifiers::{dpp, finish, halves, selects},
};
use crate::{
    inst::{Code, Inst, LaneOp, Moded, Prepare, Scalar, Select, Source, Uses, Valu, sgpr},
    registers::Range,
    report::Class,
    table::{self, MaskIn, Obeys, Op, Rule, Ty, VectorOp},
    text::{File, Operand, Text, Value},
};

pub(super) fn decode(decoder: &mut Decoder, text: &mut Text) -> Result<Option<(Inst, Uses)>, String> {
    if matches!(text.mnemonic.as_str(), "v_swap_b32" | "v_swap_b32_e32") {
        return swap(decoder, text).map(Some);
    }
    let base = ["_e32", "_e64", "_sdwa", "_dpp"]
        .iter()
        .find_map(|suffix| text.mnemonic.strip_suffix(suffix))
        .unwrap_or(&text.mnemonic)
        .to_owned();
    let compare = base.strip_prefix("v_cmpx_").map(|rest| format!("v_cmp_{rest}"));
    let Some(Op::Vector(op)) = table::find(compare.as_deref().unwrap_or(&base)).map(|entry| entry.op) else {
        return Ok(None);
    };
    let (valu, uses) = vector(decoder, text, &base, op, compare.is_some())?;
    Ok(Some((
        Inst {
            code: Code::Valu(valu),
            class: Class::Valu,
        },
        uses,
    )))
}

/// Decodes a line with a changed entry instead of the table's, for mutation tests.
#[cfg(test)]
pub(crate) fn mutant(decoder: &mut Decoder, line: &str, op: VectorOp) -> Result<(Inst, Uses), String> {
    let mut text = Text::parse(line)?;
    let base = text.mnemonic.clone();
    let (valu, uses) = vector(decoder, &mut text, &base, op, false)?;
    if let Some(left) = text.left() {
        return Err(format!("modifier {left}"));
    }
    let inst = Inst {
        code: Code::Valu(valu),
        class: Class::Valu,
    };
    Ok((inst, uses))
}

/// Decodes `v_swap_b32`, which writes two registers.
fn swap(decoder: &Decoder, text: &mut Text) -> Result<(Inst, Uses), String> {
    let operands = std::mem::take(&mut text.operands);
    let [first, second] = operands.as_slice() else {
        return Err(format!("{} operands instead of 2", operands.len()));
    };
    let (first, second) = (decoder.rows_of(first, 1)?, decoder.rows_of(second, 1)?);
    let both = [rows(first, 1), rows(second, 1)];
    Ok((
        Inst {
            code: Code::Lanes(LaneOp::Swap(first, second)),
            class: Class::Valu,
        },
        Uses {
            reads: both.into_iter().collect(),
            writes: both.into_iter().collect(),
            ..Uses::default()
        },
    ))
}

fn vector(
    decoder: &mut Decoder,
    text: &mut Text,
    base: &str,
    op: VectorOp,
    exec: bool,
) -> Result<(Valu, Uses), String> {
    let operands = std::mem::take(&mut text.operands);
    let mut operands = operands.iter();
    let mut next = || operands.next().ok_or_else(|| "too few operands".to_owned());
    let mut uses = Uses {
        rule: op.rule,
        ..Uses::default()
    };
    let (mut row, mut count) = (0, 0);
    if let Some(ty) = op.target {
        count = ty.rows();
        row = decoder.rows_of(next()?, count)?;
        if op.rule == Rule::Pairs || op.sources.iter().all(|&source| source == Ty::PkF32) {
            uses.rule = Rule::Pairs;
            uses.writes.extend([rows(row, 1), rows(row + 1, 1)]);
        } else {
            uses.writes.push(rows(row, count));
        }
    }
    let mut mask_out = None;
    if op.mask_out {
        let pair = scalar_register(next()?, 2)?;
        uses.writes.push(scalars(Scalar::Register(pair), 2));
        mask_out = Some(pair);
    }
    let mut given: Vec<&Operand> = Vec::new();
    for _ in 0..op.sources.len() - usize::from(op.accumulates) {
        given.push(next()?);
    }
    let halves = halves(text, base, op)?;
    let packed = op.sources.iter().any(|ty| ty.packed() || *ty == Ty::Mix);
    let selects = selects(text)?;
    let (mut sources, mut prepare) = (SmallVec::<[Source; 6]>::new(), Vec::new());
    for (number, &ty) in op.sources.iter().enumerate() {
        let Some(operand) = given.get(number) else {
            // An omitted source is v_fmac's accumulator, which is the destination.
            sources.extend((0..count as u16).map(|n| Source::Row(row + n)));
            prepare.extend((0..count).map(|_| None));
            uses.reads.push(rows(row, count));
            continue;
        };
        let (mut pair, range) = source(decoder, operand, ty)?;
        let mut modifier = Prepare {
            ty,
            neg: operand.neg,
            abs: operand.abs,
            sext: operand.sext,
            select: selects.get(number).copied().unwrap_or(Select::Dword),
            neg_high: false,
            halves: [false, true],
        };
        if (modifier.neg || modifier.abs) && !ty.float() {
            return Err("a sign modifier of an integer operand".to_owned());
        }
        if modifier.sext && modifier.select == Select::Dword {
            return Err("sext of a whole register".to_owned());
        }
        let [low, high, neg_low, neg_high] =
            [&halves.low, &halves.high, &halves.neg_low, &halves.neg_high].map(|list| list[number] != 0);
        match ty {
            Ty::PkF32 => {
                // Each half of the result reads its own selected half.
                for (half, upper) in [low, high].into_iter().enumerate() {
                    let read = match (base, number) {
                        ("v_pk_mov_b32", number) => number == half,
                        _ => true,
                    };
                    uses.reads.push(Range {
                        first: range.first + u16::from(upper),
                        count: range.count.min(u16::from(read)),
                        ..range
                    });
                }
                pair = [low, high].map(|upper| pair[usize::from(upper)]).into();
                for neg in [neg_low, neg_high] {
                    let negated = Prepare {
                        ty: Ty::F32,
                        neg,
                        ..modifier
                    };
                    prepare.push(neg.then_some(negated));
                }
                sources.extend(pair);
                continue;
            }
            Ty::PkB16 if neg_low || neg_high => return Err("a sign modifier of an integer operand".to_owned()),
            Ty::PkB16 | Ty::PkF16 => {
                modifier.halves = [low, high];
                (modifier.neg, modifier.neg_high) = (neg_low, neg_high);
            }
            Ty::Mix if high => modifier.select = Select::Widened(16 * u8::from(low)),
            // The third source of a packed opcode may be 32 bits wide.
            _ if low && packed => return Err("op_sel of an operand of 32 bits".to_owned()),
            _ if low => modifier.select = Select::Word(16),
            _ => {}
        }
        if uses.rule == Rule::Pairs {
            let count = range.count.min(1);
            uses.reads
                .extend([range.first, range.first + count].map(|first| Range { first, count, ..range }));
        } else {
            if matches!(ty, Ty::B16 | Ty::F16) && modifier.select == Select::Dword {
                uses.low |= 1 << uses.reads.len();
            }
            uses.reads.push(range);
        }
        let plain = Prepare { ty, ..PLAIN };
        let modifier = (modifier != plain).then_some(modifier);
        match ty.rows() {
            // A modifier of a 64-bit operand applies to the high row, which has the sign.
            2 => prepare.extend([None, modifier]),
            _ => prepare.push(modifier),
        }
        sources.extend(pair);
    }
    let mask_in = match op.mask_in {
        MaskIn::No => None,
        MaskIn::Operand => Some(scalar_register(next()?, 2)?),
        MaskIn::Vcc => Some(sgpr::VCC),
    };
    if let Some(pair) = mask_in {
        uses.reads.push(scalars(Scalar::Register(pair), 2));
    }
    if operands.next().is_some() {
        return Err("too many operands".to_owned());
    }
    if exec {
        uses.writes.push(scalars(Scalar::Register(sgpr::EXEC), 2));
    }
    let clamp = text.flag("clamp");
    let high = base == "v_fma_mixhi_f16" || halves.low.get(op.sources.len()).is_some_and(|&bit| bit != 0);
    let finish = finish(text, op, clamp, high)?;
    let kernel = match op.clamped {
        Some(clamped) if clamp => clamped,
        _ => op.kernel,
    };
    let prepare = prepare.iter().any(Option::is_some).then(|| prepare.into_boxed_slice());
    let dpp = dpp(text, op.sources.first().map_or(1, |ty| ty.rows()))?;
    let moded = match op.obeys {
        Obeys::Nothing => None,
        Obeys::Denormals => Some(None),
        Obeys::Rounding(kernel) => Some(Some(kernel)),
    };
    let valu = Valu {
        kernel,
        moded: moded.map(|kernel| Moded {
            kernel,
            sources: op.sources,
            target: op.target,
        }),
        sources,
        prepare,
        dpp,
        finish,
        row,
        rows: count as u8,
        mask_in,
        mask_out,
        writes_exec: op.writes_exec || exec,
    };
    Ok((valu, uses))
}

const PLAIN: Prepare = Prepare {
    ty: Ty::B32,
    neg: false,
    abs: false,
    sext: false,
    select: Select::Dword,
    neg_high: false,
    halves: [false, true],
};

/// Returns the rows of a source, by its type, and the registers that it reads.
fn source(decoder: &mut Decoder, operand: &Operand, ty: Ty) -> Result<(SmallVec<[Source; 2]>, Range), String> {
    let none = Range {
        vector: false,
        first: 0,
        count: 0,
    };
    let count = ty.rows();
    let value = match &operand.value {
        Value::Register { file: File::Scalar, .. } => {
            let first = scalar_register(operand, count as u16)?;
            let sources = (0..count as u8).map(|n| Source::Scalar(first + n)).collect();
            return Ok((sources, scalars(Scalar::Register(first), count as u16)));
        }
        Value::Register { .. } => {
            let first = decoder.rows_of(operand, count)?;
            return Ok((
                (0..count as u16).map(|n| Source::Row(first + n)).collect(),
                rows(first, count),
            ));
        }
        Value::Integer(value) if count == 2 => *value as u64,
        Value::Integer(value) => u64::from(*value as u32),
        // A literal is the high half of an f64, but the low half of other 64-bit types.
        Value::Literal(value) if ty == Ty::F64 => u64::from(*value) << 32,
        Value::Literal(value) => u64::from(*value),
        Value::Float(value) => match ty {
            Ty::B16 | Ty::F16 | Ty::PkB16 | Ty::PkF16 => u64::from(inline_f16(*value)?),
            Ty::F64 | Ty::B64 if inline_f32(*value) == 0x3e22_f983 => 0x3fc4_5f30_6dc9_c882,
            Ty::F64 | Ty::B64 => value.to_bits(),
            _ => u64::from(inline_f32(*value)),
        },
        other => return Err(format!("operand {other:?} instead of a vector source")),
    };
    // A constant fills both halves: the ISA manual is silent, but AMD's emulator (rocjitsu) does
    // so, and LLVM assumes it.
    let value = match ty {
        Ty::PkF32 => u64::from(value as u32) << 32 | u64::from(value as u32),
        _ => value,
    };
    let low = Source::Constant(decoder.constant(value as u32));
    if count == 1 {
        return Ok((smallvec![low], none));
    }
    Ok((
        smallvec![low, Source::Constant(decoder.constant((value >> 32) as u32))],
        none,
    ))
}

/// Returns the bits of an inline f16 constant.
fn inline_f16(value: f64) -> Result<u32, String> {
    let magnitude = match value.abs() {
        0.5 => 0x3800,
        1.0 => 0x3c00,
        2.0 => 0x4000,
        4.0 => 0x4400,
        other if (other - 0.159_154_943).abs() < 1e-4 => 0x3118,
        other => return Err(format!("constant {other} of 16 bits")),
    };
    Ok(magnitude | if value < 0.0 { 0x8000 } else { 0 })
}
