//! Decodes modifiers of vector arithmetic: op_sel and related ones, SDWA, DPP, clamp.

use crate::{
    inst::{Dpp, DppControl, Finish, Select, Unused},
    table::{Ty, VectorOp},
    text::Text,
};

/// Values of op_sel, op_sel_hi, neg_lo and neg_hi, one entry per source.
pub(super) struct Halves {
    pub(super) low: Vec<i64>,
    pub(super) high: Vec<i64>,
    pub(super) neg_low: Vec<i64>,
    pub(super) neg_high: Vec<i64>,
}

pub(super) fn halves(text: &mut Text, base: &str, op: VectorOp) -> Result<Halves, String> {
    let count = op.sources.len();
    let mut list = |name: &str, default: i64, count: usize| -> Result<Vec<i64>, String> {
        let mut values = text.list(name)?.unwrap_or_default();
        if values.len() > count {
            return Err(format!("{name} of {} operands", values.len()));
        }
        values.resize(count, default);
        Ok(values)
    };
    // For opcodes that are not packed, op_sel's last entry selects the half of the destination.
    let low = list("op_sel", 0, count + 1)?;
    let packed = op.sources.iter().any(|ty| ty.packed());
    let mix = op.sources.contains(&Ty::Mix);
    let mut high = list("op_sel_hi", i64::from(packed), count)?;
    if base == "v_pk_mov_b32" {
        // Its high result is the half of the second source that op_sel selects.
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
        // For packed opcodes this is checked where the operand is decoded.
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

/// Returns the source selections of SDWA.
pub(super) fn selects(text: &mut Text) -> Result<Vec<Select>, String> {
    ["src0_sel", "src1_sel"]
        .iter()
        .map_while(|name| text.value(name))
        .map(|name| select(&name))
        .collect()
}

pub(super) fn finish(text: &mut Text, op: VectorOp, clamp: bool, high: bool) -> Result<Option<Finish>, String> {
    let ty = op.target.unwrap_or(Ty::B32);
    if ["mul", "div"].iter().any(|name| text.flag(name)) {
        // The hardware ignores output modifiers in IEEE mode, which every launch has, so no
        // compiler emits them.
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

pub(super) fn dpp(text: &mut Text, rows: usize) -> Result<Option<Dpp>, String> {
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
    // Printed as bound_ctrl:0 or bound_ctrl:1; its presence means that lanes without a source read
    // 0.
    let zero = text.flag("bound_ctrl");
    Ok(Some(Dpp {
        control,
        row_mask,
        bank_mask,
        zero,
        rows: rows as u8,
    }))
}
