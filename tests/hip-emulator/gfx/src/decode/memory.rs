//! Decodes memory instructions: buffer, global, flat, scratch, LDS, scalar loads.

use smallvec::{SmallVec, smallvec};

use super::decoder::{Decoder, rows, scalar_register, scalar_source, scalars};
use crate::{
    inst::{Action, Address, Code, Ds, Inst, LaneOp, Scalar, Smem, Uses, Vmem},
    memory::{Access, atomic},
    registers::Range,
    report::Class,
    table::Rule,
    text::{Operand, Text, Value, integer},
};

pub(super) fn decode(decoder: &mut Decoder, text: &mut Text) -> Result<Option<(Inst, Uses)>, String> {
    let mnemonic = text.mnemonic.clone();
    if let Some(suffix) = mnemonic.strip_prefix("s_load_dword") {
        return smem(text, suffix, false).map(Some);
    }
    if let Some(suffix) = mnemonic.strip_prefix("s_buffer_load_dword") {
        return smem(text, suffix, true).map(Some);
    }
    if let Some(rest) = mnemonic.strip_prefix("ds_") {
        return ds(decoder, text, rest).map(Some);
    }
    for kind in ["buffer_", "global_", "flat_", "scratch_"] {
        if let Some(rest) = mnemonic.strip_prefix(kind) {
            return vmem(decoder, text, kind, rest);
        }
    }
    Ok(None)
}

fn smem(text: &mut Text, suffix: &str, buffer: bool) -> Result<(Inst, Uses), String> {
    let count = match suffix {
        "" => 1,
        "x2" => 2,
        "x4" => 4,
        "x8" => 8,
        "x16" => 16,
        _ => return Err(format!("width {suffix}")),
    };
    let [target, base, offset] = text.operands.as_slice() else {
        return Err("operands".to_owned());
    };
    let target = scalar_register(target, count)?;
    let words = if buffer { 4 } else { 2 };
    let base = scalar_register(base, words)?;
    let offset = scalar_source(offset)?;
    let immediate = text.number("offset")?.unwrap_or(0);
    // Cache policy: ignored, since no cache is modelled.
    text.flag("glc");
    let code = Code::Smem(Smem {
        target,
        count: count as u8,
        base,
        buffer,
        offset,
        immediate: i32::try_from(immediate).map_err(|error| error.to_string())?,
    });
    let uses = Uses {
        reads: smallvec![scalars(Scalar::Register(base), words), scalars(offset, 1)],
        writes: smallvec![scalars(Scalar::Register(target), count)],
        rule: Rule::Demand,
        ..Uses::default()
    };
    Ok((
        Inst {
            code,
            class: Class::Smem,
        },
        uses,
    ))
}

fn ds(decoder: &Decoder, text: &mut Text, rest: &str) -> Result<(Inst, Uses), String> {
    if let "bpermute_b32" | "permute_b32" = rest {
        return permute(decoder, text, rest == "permute_b32");
    }
    if rest == "swizzle_b32" {
        return swizzle(decoder, text);
    }
    let forms = [("read2st64_", true, 64), ("read2_", true, 1), ("read_", false, 1)];
    let stores = [("write2st64_", true, 64), ("write2_", true, 1), ("write_", false, 1)];
    let find = |forms: [(&str, bool, u32); 3]| {
        forms
            .into_iter()
            .find_map(|(prefix, pair, scale)| rest.strip_prefix(prefix).map(|suffix| (suffix, pair, scale)))
    };
    let (action, (suffix, pair, scale)) = match (find(forms), find(stores)) {
        (Some(form), _) => (Action::Load, form),
        (_, Some(form)) => (Action::Store, form),
        _ => return ds_atomic(decoder, text, rest),
    };
    let access = Access::parse(suffix).ok_or_else(|| format!("width {suffix}"))?;
    let parts = if pair { 2 } else { 1 };
    let mut offsets = [0_u32; 2];
    if pair {
        for (name, offset) in ["offset0", "offset1"].iter().zip(&mut offsets) {
            *offset = text.number(name)?.unwrap_or(0) as u32 * scale * u32::from(access.bytes);
        }
    } else {
        offsets[0] = text.number("offset")?.unwrap_or(0) as u32;
    }
    let count = access.rows();
    let mut uses = Uses {
        rule: Rule::Demand,
        ..Uses::default()
    };
    let mut inst = Ds {
        action,
        access,
        address: 0,
        offsets,
        pair,
        data: [0; 2],
        compare: None,
        target: 0,
    };
    match (action, text.operands.as_slice()) {
        (Action::Load, [target, address]) => {
            inst.target = decoder.rows_of(target, count * parts)?;
            inst.address = decoder.rows_of(address, 1)?;
            uses.writes.push(rows(inst.target, count * parts));
        }
        (Action::Store, [address, data @ ..]) if data.len() == parts => {
            inst.address = decoder.rows_of(address, 1)?;
            for (row, operand) in inst.data.iter_mut().zip(data) {
                *row = decoder.rows_of(operand, count)?;
                uses.data.push(rows(*row, count));
            }
        }
        _ => return Err("operands".to_owned()),
    }
    uses.reads.push(rows(inst.address, 1));
    Ok((
        Inst {
            code: Code::Ds(inst),
            class: Class::Lds,
        },
        uses,
    ))
}

/// Decodes `ds_add_u32`, `ds_cmpst_rtn_b64`, `ds_pk_add_f16`: an address and one or two values.
fn ds_atomic(decoder: &Decoder, text: &mut Text, rest: &str) -> Result<(Inst, Uses), String> {
    let name = rest.replacen("_rtn", "", 1);
    let returns = name != rest;
    let (function, count, second) = atomic::parse_lds(&name).ok_or_else(|| format!("mnemonic ds_{rest}"))?;
    let mut operands = text.operands.iter();
    let mut row = |count: usize| decoder.rows_of(operands.next().ok_or("too few operands")?, count);
    let mut uses = Uses {
        rule: Rule::Demand,
        ..Uses::default()
    };
    let target = if returns { row(count)? } else { 0 };
    let (address, first) = (row(1)?, row(count)?);
    let second = if second { Some(row(count)?) } else { None };
    if operands.next().is_some() {
        return Err("too many operands".to_owned());
    }
    uses.reads.push(rows(address, 1));
    uses.data.push(rows(first, count));
    uses.data.extend(second.map(|row| rows(row, count)));
    if returns {
        uses.writes.push(rows(target, count));
    }
    // With two values, the first is the comparand or the mask to clear, and the second is stored.
    let (data, compare) = second.map_or((first, None), |second| (second, Some(first)));
    let inst = Ds {
        action: Action::Atomic(function, returns),
        access: Access {
            bytes: 4 * count as u8,
            signed: false,
            half: None,
        },
        address,
        offsets: [text.number("offset")?.unwrap_or(0) as u32, 0],
        pair: false,
        data: [data; 2],
        compare,
        target,
    };
    Ok((
        Inst {
            code: Code::Ds(inst),
            class: Class::Lds,
        },
        uses,
    ))
}

fn permute(decoder: &Decoder, text: &mut Text, forward: bool) -> Result<(Inst, Uses), String> {
    let [target, address, data] = text.operands.as_slice() else {
        return Err("operands".to_owned());
    };
    let [target, address, data] = [target, address, data].map(|operand| decoder.rows_of(operand, 1));
    let (target, address, data) = (target?, address?, data?);
    let offset = text.number("offset")?.unwrap_or(0) as u32;
    let op = LaneOp::Permute {
        target,
        address,
        data,
        forward,
        offset,
    };
    Ok(exchange(op, smallvec![rows(address, 1), rows(data, 1)], target))
}

fn swizzle(decoder: &Decoder, text: &mut Text) -> Result<(Inst, Uses), String> {
    let [target, data] = text.operands.as_slice() else {
        return Err("operands".to_owned());
    };
    let (target, data) = (decoder.rows_of(target, 1)?, decoder.rows_of(data, 1)?);
    let value = text.value("offset").unwrap_or_else(|| "0".to_owned());
    let pattern = swizzle_pattern(&value).ok_or_else(|| format!("offset:{value}"))?;
    let op = LaneOp::Swizzle { target, data, pattern };
    Ok(exchange(op, smallvec![rows(data, 1)], target))
}

/// Builds an exchange between lanes through the LDS hardware.
fn exchange(op: LaneOp, reads: SmallVec<[Range; 4]>, target: u16) -> (Inst, Uses) {
    let uses = Uses {
        reads,
        writes: smallvec![rows(target, 1)],
        ..Uses::default()
    };
    let inst = Inst {
        code: Code::Lanes(op),
        class: Class::Lds,
    };
    (inst, uses)
}

/// Parses the offset field of a swizzle: a number or one of LLVM's macros.
fn swizzle_pattern(value: &str) -> Option<u16> {
    if let Some(number) = integer(value) {
        return number.try_into().ok();
    }
    let inner = value.strip_prefix("swizzle(")?.strip_suffix(')')?;
    let mut parts = inner.split(',').map(str::trim);
    let name = parts.next()?;
    let text: Vec<&str> = parts.collect();
    let numbers: Vec<u16> = text.iter().filter_map(|part| part.parse().ok()).collect();
    match (name, numbers.as_slice()) {
        ("QUAD_PERM", [a, b, c, d]) => Some(0x8000 | a | b << 2 | c << 4 | d << 6),
        ("BITMASK_PERM", []) => {
            // Five characters from bit 4 down: 0 and 1 set the bit, p preserves and i inverts it.
            let mask = text.first()?.trim_matches('"');
            if mask.len() != 5 {
                return None;
            }
            let mut pattern = 0;
            for (index, letter) in mask.chars().enumerate() {
                let bit = 4 - index;
                pattern |= match letter {
                    '0' => 0,
                    '1' => 1 << (5 + bit),
                    'p' => 1 << bit,
                    'i' => 1 << bit | 1 << (10 + bit),
                    _ => return None,
                };
            }
            Some(pattern)
        }
        ("SWAP", [size]) => Some(0x1f | size << 10),
        ("REVERSE", [size]) => Some(0x1f | (size - 1) << 10),
        ("BROADCAST", [size, lane]) => Some((0x1f & !(size - 1)) | lane << 5),
        _ => None,
    }
}

/// Consumes the cache policy modifiers, which have no effect here. Returns true if `sc0` is set,
/// which makes an atomic return the old value.
fn cache_policy(text: &mut Text) -> bool {
    let returns = text.flag("sc0");
    text.flag("sc1");
    text.flag("nt");
    returns
}

fn vmem(decoder: &Decoder, text: &mut Text, kind: &str, rest: &str) -> Result<Option<(Inst, Uses)>, String> {
    let returns = cache_policy(text);
    let offset = text.number("offset")?.unwrap_or(0);
    let offset = i32::try_from(offset).map_err(|error| error.to_string())?;
    let mut operands = std::mem::take(&mut text.operands);
    let mut compares = false;
    let (action, access, data_rows) = if let Some(suffix) = rest.strip_prefix("load_") {
        let access = Access::parse(suffix).ok_or_else(|| format!("width {suffix}"))?;
        (Action::Load, access, access.rows())
    } else if let Some(suffix) = rest.strip_prefix("store_") {
        let access = Access::parse(suffix).ok_or_else(|| format!("width {suffix}"))?;
        (Action::Store, access, access.rows())
    } else if let Some(name) = rest.strip_prefix("atomic_") {
        let (function, words) = atomic::parse(name).ok_or_else(|| format!("atomic {name}"))?;
        let access = Access {
            bytes: 4 * words as u8,
            signed: false,
            half: None,
        };
        compares = name.starts_with("cmpswap");
        let data = if compares { 2 * words } else { words };
        (Action::Atomic(function, returns), access, data)
    } else {
        return Ok(None);
    };
    let mut uses = Uses {
        rule: Rule::Demand,
        ..Uses::default()
    };
    // Operand order: buffer: data, address, descriptor, scalar; other loads: data, address, …;
    // other stores: address, data, …
    let address_first = kind != "buffer_" && !matches!(action, Action::Load);
    let separate = kind != "buffer_" && matches!(action, Action::Atomic(_, true));
    let target = if separate && !operands.is_empty() {
        Some(operands.remove(0))
    } else {
        None
    };
    if address_first && operands.len() >= 2 {
        operands.swap(0, 1);
    }
    let data = decoder.rows_of(operands.first().ok_or("operands")?, data_rows)?;
    let target = target.map_or(Ok(data), |operand| decoder.rows_of(&operand, access.rows()))?;
    let rest = operands.get(1..).unwrap_or_default();
    let address = match kind {
        "buffer_" => buffer(decoder, text, rest, &mut uses)?,
        _ => pointer(decoder, kind, rest, &mut uses)?,
    };
    match action {
        Action::Load => uses.writes.push(rows(data, data_rows)),
        // Private memory may hold uninitialised data: spilling an unwritten lane is no fault.
        Action::Store if kind == "scratch_" => uses.data.push(rows(data, data_rows)),
        Action::Store => uses.reads.push(rows(data, data_rows)),
        Action::Atomic(_, returns) => {
            uses.reads.push(rows(data, data_rows));
            if returns {
                uses.writes.push(rows(target, access.rows()));
            }
        }
    }
    let class = match (kind, action) {
        ("scratch_", _) => Class::Scratch,
        (_, Action::Load) => Class::Load,
        _ => Class::Store,
    };
    let code = Code::Vmem(Vmem {
        action,
        access,
        address,
        offset,
        data,
        target,
        compares,
    });
    Ok(Some((Inst { code, class }, uses)))
}

fn buffer(decoder: &Decoder, text: &mut Text, rest: &[Operand], uses: &mut Uses) -> Result<Address, String> {
    let [vector, descriptor, scalar] = rest else {
        return Err("operands".to_owned());
    };
    let vector = match (text.flag("offen"), &vector.value) {
        (true, _) => {
            let row = decoder.rows_of(vector, 1)?;
            uses.reads.push(rows(row, 1));
            Some(row)
        }
        (false, Value::Off) => None,
        _ => return Err("an address without offen".to_owned()),
    };
    let descriptor = scalar_register(descriptor, 4)?;
    let scalar = scalar_source(scalar)?;
    uses.reads.push(scalars(Scalar::Register(descriptor), 4));
    uses.reads.push(scalars(scalar, 1));
    Ok(Address::Buffer {
        descriptor,
        scalar,
        vector,
    })
}

fn pointer(decoder: &Decoder, kind: &str, rest: &[Operand], uses: &mut Uses) -> Result<Address, String> {
    let row = |count: usize, uses: &mut Uses| -> Result<Option<u16>, String> {
        match rest.first() {
            Some(operand) if operand.value == Value::Off => Ok(None),
            Some(operand) => {
                let row = decoder.rows_of(operand, count)?;
                uses.reads.push(rows(row, count));
                Ok(Some(row))
            }
            None => Err("operands".to_owned()),
        }
    };
    if kind == "flat_" {
        let vector = row(2, uses)?.ok_or("operands")?;
        return if rest.len() == 1 {
            Ok(Address::Flat { vector })
        } else {
            Err("operands".to_owned())
        };
    }
    let [_, base] = rest else {
        return Err("operands".to_owned());
    };
    let private = kind == "scratch_";
    let count = if private { 1 } else { 2 };
    let scalar = match base.value {
        Value::Off => None,
        _ => Some(scalar_register(base, count)?),
    };
    if let Some(scalar) = scalar {
        uses.reads.push(Range {
            vector: false,
            first: scalar.into(),
            count,
        });
    }
    let vector = row(if private || scalar.is_some() { 1 } else { 2 }, uses)?;
    Ok(if private {
        Address::Scratch { scalar, vector }
    } else {
        Address::Global { scalar, vector }
    })
}
