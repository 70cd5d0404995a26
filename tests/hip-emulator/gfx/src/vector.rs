//! The driver of vector arithmetic: gathers source rows, applies modifiers, runs the kernel, and
//! writes the lanes of EXEC.
//!
//! Rows without modifiers are passed to the kernel directly; constants are rows of the program; a
//! scalar is broadcast. Modifiers, DPP and SDWA work on copies.

use crate::{
    inst::{Dpp, DppControl, Finish, LaneOp, Moded, Prepare, Select, Source, Unused, Valu, sgpr},
    lanes::{In, Kernel, Mode, Out, Row, first_lane, lane},
    rows::blend,
    table::{Ty, half::to_f32},
    wave::{Context, Wave},
};

/// Runs a vector instruction.
pub(crate) fn valu(wave: &mut Wave, context: &mut Context<'_>, inst: &Valu) {
    let exec = wave.exec();
    let mut exec_dpp = exec;
    {
        let constants = &context.program.constants;
        let index = wave.index;
        for (number, &source) in inst.sources.iter().enumerate() {
            let modifier = inst.prepare.as_ref().and_then(|p| p[number]);
            let first_dpp = inst.dpp.filter(|dpp| number < usize::from(dpp.rows));
            let temporary = &mut context.rows[number];
            if let Source::Scalar(register) = source {
                *temporary = [wave.scalars[usize::from(register & 0x7f)]; 64];
            } else if modifier.is_some() || first_dpp.is_some() {
                *temporary = match source {
                    Source::Row(row) => wave.rows[moved(row, index, number)],
                    Source::Constant(constant) => constants[usize::from(constant)],
                    Source::Scalar(_) => *temporary,
                };
            } else {
                continue;
            }
            if let Some(dpp) = first_dpp {
                let (sources, written) = dpp_lanes(dpp, exec);
                let row = *temporary;
                for (value, from) in temporary.iter_mut().zip(sources) {
                    *value = from.map_or(0, |from| row[from]);
                }
                exec_dpp = written;
            }
            if let Some(modifier) = modifier {
                prepare(temporary, modifier);
            }
        }
        let mut input = In::empty(wave.mode);
        for (number, &source) in inst.sources.iter().enumerate() {
            let changed = inst.prepare.as_ref().is_some_and(|p| p[number].is_some())
                || inst.dpp.is_some_and(|dpp| number < usize::from(dpp.rows));
            input.r[number] = match source {
                _ if changed => &context.rows[number],
                Source::Row(row) => &wave.rows[moved(row, index, number)],
                Source::Constant(constant) => &constants[usize::from(constant)],
                Source::Scalar(_) => &context.rows[number],
            };
        }
        if let Some(pair) = inst.mask_in {
            input.mask = wave.pair(pair);
        }
        match &inst.moded {
            Some(moded) if !wave.mode.is_ieee() => self::moded(inst.kernel, moded, &input, &mut context.out),
            _ => (inst.kernel)(&input, &mut context.out),
        }
    }
    let out = &mut context.out;
    let row = match wave.index {
        Some((offset, operands)) if operands & 8 != 0 => usize::from(inst.row) + usize::from(offset),
        _ => usize::from(inst.row),
    };
    if let Some(ty) = inst.finish.as_ref().and_then(|finish| finish.clamp) {
        clamp(&mut out.r[..usize::from(inst.rows)], ty);
    }
    for number in 0..usize::from(inst.rows) {
        let target = &mut wave.rows[row + number];
        if let Some(finish) = &inst.finish {
            self::finish(&mut out.r[number], target, finish);
        }
        blend(target, &out.r[number], exec_dpp);
    }
    if let Some(pair) = inst.mask_out {
        wave.set_pair(pair, out.mask & exec_dpp);
        if inst.writes_exec {
            wave.set_pair(sgpr::EXEC, out.mask & exec_dpp);
        }
    }
}

/// Returns a source row under VGPR indexing.
#[inline]
fn moved(row: u16, index: Option<(u16, u8)>, number: usize) -> usize {
    match index {
        Some((offset, operands)) if operands >> number & 1 != 0 => usize::from(row) + usize::from(offset),
        _ => usize::from(row),
    }
}

/// Applies selection, sign extension, absolute value and negation, in the hardware's order.
fn prepare(row: &mut Row, p: Prepare) {
    match p.select {
        Select::Dword => {}
        Select::Byte(shift) => {
            for value in row.iter_mut() {
                let byte = *value >> shift & 0xff;
                *value = if p.sext { byte as u8 as i8 as u32 } else { byte };
            }
        }
        Select::Word(shift) => {
            for value in row.iter_mut() {
                let word = *value >> shift & 0xffff;
                *value = if p.sext { word as u16 as i16 as u32 } else { word };
            }
        }
        Select::Widened(shift) => {
            for value in row.iter_mut() {
                *value = to_f32(*value >> shift).to_bits();
            }
        }
    }
    if p.ty.packed() {
        if p.halves != [false, true] {
            let [low, high] = p.halves.map(|h| if h { 16 } else { 0 });
            for value in row.iter_mut() {
                *value = (*value >> low & 0xffff) | (*value >> high & 0xffff) << 16;
            }
        }
        let flip = u32::from(p.neg) << 15 | u32::from(p.neg_high) << 31;
        row.iter_mut().for_each(|value| *value ^= flip);
        return;
    }
    let sign = if p.ty == Ty::F16 { 0x8000 } else { 0x8000_0000 };
    if p.abs {
        row.iter_mut().for_each(|value| *value &= !sign);
    }
    if p.neg {
        row.iter_mut().for_each(|value| *value ^= sign);
    }
}

/// Runs an opcode in a mode with another rounding, or with flushed denormals.
#[cold]
fn moded(kernel: Kernel, moded: &Moded, input: &In<'_>, out: &mut Out) {
    let mut rows = input.r.map(|row| *row);
    let mut rest = &mut rows[..];
    for &ty in moded.sources {
        let (operand, after) = rest.split_at_mut(ty.rows().min(rest.len()));
        flush(operand, ty, input.mode, 0);
        rest = after;
    }
    let input = In {
        r: rows.each_ref(),
        ..*input
    };
    let rounds = input.mode.0 & 0xf != 0;
    moded.kernel.filter(|_| rounds).unwrap_or(kernel)(&input, out);
    if let Some(ty) = moded.target {
        flush(&mut out.r[..ty.rows()], ty, input.mode, 1);
    }
}

/// Replaces the denormals of an operand by zeros of their sign, where MODE does so for sources
/// (`side` 0) or results (1).
fn flush(rows: &mut [Row], ty: Ty, mode: Mode, side: usize) {
    let [narrow, wide] = [false, true].map(|wide| mode.flushes(wide)[side]);
    let low = |half: u32| if half & 0x7c00 == 0 { half & 0x8000 } else { half };
    match (ty, rows) {
        (Ty::F16, rows) if wide => rows
            .iter_mut()
            .flatten()
            .for_each(|value| *value = *value & !0xffff | low(*value & 0xffff)),
        (Ty::PkF16, rows) if wide => rows
            .iter_mut()
            .flatten()
            .for_each(|value| *value = low(*value & 0xffff) | low(*value >> 16) << 16),
        (Ty::F32 | Ty::PkF32 | Ty::Mix, rows) if narrow => rows
            .iter_mut()
            .flatten()
            .filter(|value| **value & 0x7f80_0000 == 0)
            .for_each(|value| *value &= 0x8000_0000),
        (Ty::F64, [low, high]) if wide => {
            for (low, high) in low.iter_mut().zip(high) {
                if *high & 0x7ff0_0000 == 0 {
                    (*low, *high) = (0, *high & 0x8000_0000);
                }
            }
        }
        _ => {}
    }
}

/// Clamps a float to [0, 1] as with DX10_CLAMP: a NaN becomes 0.
fn clamp(rows: &mut [Row], ty: Ty) {
    let single = |value: u32| {
        let value = f32::from_bits(value);
        if value > 0.0 { value.min(1.0).to_bits() } else { 0 }
    };
    // Positive f16 have the same order as their bits.
    let half = |half: u32| if half <= 0x7c00 { half.min(0x3c00) } else { 0 };
    match (ty, rows) {
        (Ty::F16, rows) => rows
            .iter_mut()
            .flatten()
            .for_each(|value| *value = half(*value & 0xffff)),
        (Ty::PkF16, rows) => rows
            .iter_mut()
            .flatten()
            .for_each(|value| *value = half(*value & 0xffff) | half(*value >> 16) << 16),
        (Ty::F64, [low, high]) => {
            for (low, high) in low.iter_mut().zip(high) {
                let value = f64::from_bits(u64::from(*low) | u64::from(*high) << 32);
                let bits = if value > 0.0 { value.min(1.0).to_bits() } else { 0 };
                (*low, *high) = (bits as u32, (bits >> 32) as u32);
            }
        }
        (_, rows) => rows.iter_mut().flatten().for_each(|value| *value = single(*value)),
    }
}

/// Applies SDWA's destination select.
fn finish(row: &mut Row, old: &Row, f: &Finish) {
    let (shift, bits) = match f.select {
        Select::Dword => return,
        Select::Byte(shift) => (u32::from(shift), 0xff_u32),
        Select::Word(shift) | Select::Widened(shift) => (u32::from(shift), 0xffff),
    };
    let mask = bits << shift;
    for (value, &old) in row.iter_mut().zip(old) {
        let selected = (*value & bits) << shift;
        *value = match f.unused {
            Unused::Pad => selected,
            Unused::Preserve => selected | old & !mask,
            Unused::Sext => {
                let empty = mask.leading_zeros();
                (((selected << empty) as i32) >> empty) as u32
            }
        };
    }
}

/// Returns the lane that each lane reads through DPP, if it exists and is active; and the lanes
/// that are written: those of the row and bank masks, except for lanes without a source, unless
/// these read 0.
pub(crate) fn dpp_lanes(dpp: Dpp, exec: u64) -> ([Option<usize>; 64], u64) {
    let sources =
        std::array::from_fn(|lane| dpp_source(lane as i32, dpp.control).filter(|&from| self::lane(exec, from) != 0));
    let mut written = 0;
    for (lane, from) in sources.iter().enumerate() {
        let (row, bank) = (lane / 16, lane % 16 / 4);
        let chosen = dpp.row_mask >> row & dpp.bank_mask >> bank & 1 != 0;
        written |= u64::from(chosen && (dpp.zero || from.is_some())) << lane;
    }
    (sources, written & exec)
}

/// Returns the lane that `lane` reads.
fn dpp_source(lane: i32, control: DppControl) -> Option<usize> {
    let (row, within) = (lane & !15, lane & 15);
    let in_row = |position: i32| (0..16).contains(&position).then_some(row + position);
    let in_wave = |lane: i32| (0..64).contains(&lane).then_some(lane);
    let from = match control {
        DppControl::QuadPerm(order) => Some((lane & !3) + i32::from(order[(lane & 3) as usize])),
        DppControl::RowShl(n) => in_row(within + i32::from(n)),
        DppControl::RowShr(n) => in_row(within - i32::from(n)),
        DppControl::RowRor(n) => Some(row + ((within - i32::from(n)) & 15)),
        DppControl::WaveShl => in_wave(lane + 1),
        DppControl::WaveRol => Some((lane + 1) & 63),
        DppControl::WaveShr => in_wave(lane - 1),
        DppControl::WaveRor => Some((lane - 1) & 63),
        DppControl::RowMirror => Some(row + 15 - within),
        DppControl::RowHalfMirror => Some(row + (within & 8) + 7 - (within & 7)),
        DppControl::RowBroadcast15 => in_wave(row - 1),
        DppControl::RowBroadcast31 => (lane >= 32).then_some(31),
        DppControl::RowNewBroadcast(n) => Some(row + i32::from(n & 15)),
    };
    from.map(|lane| lane as usize)
}

/// Runs an exchange between lanes by number.
pub(crate) fn lanes(wave: &mut Wave, op: LaneOp) {
    let exec = wave.exec();
    match op {
        LaneOp::ReadFirst(target, row) => {
            wave.scalars[usize::from(target & 0x7f)] = wave.rows[usize::from(row)][first_lane(exec)];
        }
        LaneOp::ReadLane(target, row, number) => {
            let number = wave.scalar(number) as usize & 63;
            wave.scalars[usize::from(target & 0x7f)] = wave.rows[usize::from(row)][number];
        }
        LaneOp::WriteLane(row, value, number) => {
            let (value, number) = (wave.scalar(value), wave.scalar(number) as usize & 63);
            wave.rows[usize::from(row)][number] = value;
        }
        LaneOp::Permute {
            target,
            address,
            data,
            forward,
            offset,
        } => {
            let (address, data) = (wave.rows[usize::from(address)], wave.rows[usize::from(data)]);
            let mut result = [0; 64];
            for l in 0..64 {
                let other = (address[l].wrapping_add(offset) >> 2) as usize & 63;
                if forward && lane(exec, l) != 0 {
                    result[other] = data[l];
                } else if !forward && lane(exec, other) != 0 {
                    result[l] = data[other];
                }
            }
            blend(&mut wave.rows[usize::from(target)], &result, exec);
        }
        LaneOp::Swap(first, second) => {
            let [old_first, old_second] = [first, second].map(|row| wave.rows[usize::from(row)]);
            blend(&mut wave.rows[usize::from(first)], &old_second, exec);
            blend(&mut wave.rows[usize::from(second)], &old_first, exec);
        }
        LaneOp::Swizzle { target, data, pattern } => {
            let data = wave.rows[usize::from(data)];
            let mut result = [0; 64];
            for (l, value) in result.iter_mut().enumerate() {
                let other = swizzled(l, pattern);
                *value = if lane(exec, other) != 0 { data[other] } else { 0 };
            }
            blend(&mut wave.rows[usize::from(target)], &result, exec);
        }
    }
}

/// Returns the lane that `ds_swizzle_b32` reads: a quad permutation if bit 15 is set, else and, or,
/// xor masks within 32 lanes.
pub(crate) fn swizzled(lane: usize, pattern: u16) -> usize {
    let pattern = usize::from(pattern);
    if pattern & 0x8000 != 0 {
        return (lane & !3) + (pattern >> (2 * (lane & 3)) & 3);
    }
    let within = ((lane & 31 & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
    (lane & 32) + within
}
