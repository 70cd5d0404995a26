//! Vector arithmetic by the table: sources by type, modifiers, SDWA, DPP, op_sel.

use smallvec::{SmallVec, smallvec};

use super::{Decoder, inline_f32, rows, scalar_register, scalars};
use crate::{
    inst::{
        Code, Dpp, DppControl, Finish, Inst, LaneOp, Moded, Prepare, Scalar, Select, Source, Unused, Uses, Valu, sgpr,
    },
    report::Class,
    table::{self, MaskIn, Obeys, Op, Rule, Ty, VectorOp},
    text::{File, Operand, Text, Value},
};

/// What op_sel and its kin say, one entry a source.
struct Halves {
    low: Vec<i64>,
    high: Vec<i64>,
    neg_low: Vec<i64>,
    neg_high: Vec<i64>,
}

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

/// Decodes a line with an entry in place of the table's, for mutation tests.
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

/// `v_swap_b32`, which writes two registers.
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
            // The accumulator of v_fmac is the destination.
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
                // Each half of the result reads what is selected for it.
                for (half, upper) in [low, high].into_iter().enumerate() {
                    let read = match (base, number) {
                        ("v_pk_mov_b32", number) => number == half,
                        _ => true,
                    };
                    uses.reads.push(crate::inst::Range {
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
            // The third source of a packed opcode may be a whole register.
            _ if low && packed => return Err("op_sel of an operand of 32 bits".to_owned()),
            _ if low => modifier.select = Select::Word(16),
            _ => {}
        }
        if uses.rule == Rule::Pairs {
            let count = range.count.min(1);
            uses.reads
                .extend([range.first, range.first + count].map(|first| crate::inst::Range { first, count, ..range }));
        } else {
            if matches!(ty, Ty::B16 | Ty::F16) && modifier.select == Select::Dword {
                uses.low |= 1 << uses.reads.len();
            }
            uses.reads.push(range);
        }
        let plain = Prepare { ty, ..PLAIN };
        let modifier = (modifier != plain).then_some(modifier);
        match ty.rows() {
            // The sign of 64 bits is in the high row.
            2 => prepare.extend([None, modifier]),
            _ => prepare.push(modifier),
        }
        sources.extend(pair);
    }
    if selects.is_empty() {
        let constant = |number: usize| match sources.get(number) {
            Some(Source::Constant(constant)) => decoder.constants.get(usize::from(*constant)).map(|row| row[0]),
            _ => None,
        };
        // The high half is shifted out, or cut off.
        uses.low |= match (base, constant(0), constant(1)) {
            ("v_lshlrev_b32", Some(amount), _) if amount & 31 >= 16 => 0b10,
            ("v_and_b32", Some(..=0xffff), _) => 0b10,
            ("v_and_b32", _, Some(..=0xffff)) => 0b01,
            _ => 0,
        };
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

/// A source's rows by its type.
fn source(
    decoder: &mut Decoder,
    operand: &Operand,
    ty: Ty,
) -> Result<(SmallVec<[Source; 2]>, crate::inst::Range), String> {
    let none = crate::inst::Range {
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
        // A literal is the high half of an f64, the low half of other 64 bits.
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
    // Both halves are the constant: the ISA manual is silent, but AMD's emulator (rocjitsu) has it so, and LLVM takes it for that.
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

/// The inline constants of f16.
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

fn halves(text: &mut Text, base: &str, op: VectorOp) -> Result<Halves, String> {
    let count = op.sources.len();
    let mut list = |name: &str, default: i64, count: usize| -> Result<Vec<i64>, String> {
        let mut values = text.list(name)?.unwrap_or_default();
        if values.len() > count {
            return Err(format!("{name} of {} operands", values.len()));
        }
        values.resize(count, default);
        Ok(values)
    };
    // Of opcodes that are not packed a last entry is the destination's.
    let low = list("op_sel", 0, count + 1)?;
    let packed = op.sources.iter().any(|ty| ty.packed());
    let mix = op.sources.contains(&Ty::Mix);
    let mut high = list("op_sel_hi", i64::from(packed), count)?;
    if base == "v_pk_mov_b32" {
        // Its second result is the second source's half by op_sel.
        high[1] = low[1];
    }
    let halves = Halves {
        low,
        high,
        neg_low: list("neg_lo", 0, count)?,
        neg_high: list("neg_hi", 0, count)?,
    };
    if mix && halves.neg_low.iter().chain(&halves.neg_high).any(|&bit| bit != 0) {
        return Err("neg_lo of a mixed operand".to_owned());
    }
    if !packed
        && !mix
        && [&halves.high, &halves.neg_low, &halves.neg_high]
            .iter()
            .any(|list| list.iter().any(|&bit| bit != 0))
    {
        return Err("a packed modifier of an opcode that is not packed".to_owned());
    }
    let whole = |number: usize| match op.sources.get(number).copied().or(op.target) {
        Some(Ty::B16 | Ty::F16 | Ty::PkB16 | Ty::PkF16 | Ty::PkF32 | Ty::Mix) => false,
        // Of packed opcodes the operand's own check says so.
        _ => !packed,
    };
    if halves
        .low
        .iter()
        .enumerate()
        .any(|(number, &bit)| bit != 0 && whole(number))
    {
        return Err("op_sel of an operand that is not of 16 bits".to_owned());
    }
    Ok(halves)
}

fn select(name: &str) -> Result<Select, String> {
    Ok(match name {
        "DWORD" => Select::Dword,
        "BYTE_0" => Select::Byte(0),
        "BYTE_1" => Select::Byte(8),
        "BYTE_2" => Select::Byte(16),
        "BYTE_3" => Select::Byte(24),
        "WORD_0" => Select::Word(0),
        "WORD_1" => Select::Word(16),
        _ => return Err(format!("selection {name}")),
    })
}

/// SDWA's source selections.
fn selects(text: &mut Text) -> Result<Vec<Select>, String> {
    ["src0_sel", "src1_sel"]
        .iter()
        .map_while(|name| text.value(name))
        .map(|name| select(&name))
        .collect()
}

fn finish(text: &mut Text, op: VectorOp, clamp: bool, high: bool) -> Result<Option<Finish>, String> {
    let ty = op.target.unwrap_or(Ty::B32);
    if ["mul", "div"].iter().any(|name| text.flag(name)) {
        // In IEEE mode, which every launch has, the hardware ignores it; no compiler then writes it.
        return Err("an output modifier in IEEE mode".to_owned());
    }
    let mut selected = text.value("dst_sel").map_or(Ok(Select::Dword), |name| select(&name))?;
    let unused = match text.value("dst_unused").as_deref() {
        None if high || op.keeps_high => Unused::Preserve,
        None | Some("UNUSED_PAD") => Unused::Pad,
        Some("UNUSED_SEXT") => Unused::Sext,
        Some("UNUSED_PRESERVE") => Unused::Preserve,
        Some(other) => return Err(format!("dst_unused:{other}")),
    };
    if high {
        selected = Select::Word(16);
    } else if op.keeps_high {
        selected = Select::Word(0);
    }
    let float_clamp = (clamp && op.clamped.is_none()).then_some(ty);
    if float_clamp.is_some() && (!ty.float() || op.target.is_none()) {
        return Err("clamp of this opcode".to_owned());
    }
    let finish = Finish {
        clamp: float_clamp,
        select: selected,
        unused,
    };
    Ok((float_clamp.is_some() || selected != Select::Dword).then_some(finish))
}

fn dpp(text: &mut Text, rows: usize) -> Result<Option<Dpp>, String> {
    let mut control = None;
    if let Some(order) = text.list("quad_perm")? {
        let order = order
            .iter()
            .map(|&n| u8::try_from(n).ok().filter(|&n| n < 4))
            .collect::<Option<Vec<_>>>();
        let order = order.and_then(|order| order.try_into().ok()).ok_or("quad_perm")?;
        control = Some(DppControl::QuadPerm(order));
    }
    type Make = fn(u8) -> DppControl;
    let numbered: [(&str, Make); 4] = [
        ("row_shl", DppControl::RowShl),
        ("row_shr", DppControl::RowShr),
        ("row_ror", DppControl::RowRor),
        ("row_newbcast", DppControl::RowNewBroadcast),
    ];
    for (name, make) in numbered {
        if let Some(number) = text.number(name)? {
            control = Some(make(u8::try_from(number).ok().filter(|&n| n < 16).ok_or(name)?));
        }
    }
    let fixed = [
        ("wave_shl", DppControl::WaveShl),
        ("wave_rol", DppControl::WaveRol),
        ("wave_shr", DppControl::WaveShr),
        ("wave_ror", DppControl::WaveRor),
        ("row_mirror", DppControl::RowMirror),
        ("row_half_mirror", DppControl::RowHalfMirror),
    ];
    for (name, value) in fixed {
        if text.flag(name) {
            control = Some(value);
        }
    }
    match text.number("row_bcast")? {
        None => {}
        Some(15) => control = Some(DppControl::RowBroadcast15),
        Some(31) => control = Some(DppControl::RowBroadcast31),
        Some(other) => return Err(format!("row_bcast:{other}")),
    }
    let Some(control) = control else {
        return Ok(None);
    };
    let mut mask = |name: &str| -> Result<u8, String> { Ok(text.number(name)?.unwrap_or(15) as u8 & 15) };
    let (row_mask, bank_mask) = (mask("row_mask")?, mask("bank_mask")?);
    // Printed as bound_ctrl:0 or bound_ctrl:1; its presence means that lanes without a source read 0.
    let zero = text.flag("bound_ctrl");
    Ok(Some(Dpp {
        control,
        row_mask,
        bank_mask,
        zero,
        rows: rows as u8,
    }))
}
