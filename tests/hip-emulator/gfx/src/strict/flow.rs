//! Propagates the initialisation state through an instruction that reads uninitialised values or
//! writes only some lanes.

use crate::{
    error::Trap,
    inst::{Action, Code, Condition, Inst, LaneOp, Scalar, Uses, Valu, sgpr},
    lanes::{Row, first_lane, lane},
    memory::{lanes_where, set_lanes, stored_lanes},
    registers::Range,
    table::{Rule, ScalarFn, ScalarIn},
    vector::{self, dpp_lanes, swizzled},
    wave::{Context, Wave},
};
use smallvec::SmallVec;

use super::Tracker;

/// Register number that messages use for SCC.
const SCC: u16 = 253;

pub(super) fn flow(
    wave: &mut Wave,
    context: &mut Context<'_>,
    inst: &Inst,
    uses: &Uses,
    exec: u64,
) -> Result<(), Trap> {
    match &inst.code {
        Code::Branch { condition, .. } => condition_flow(wave, *condition),
        Code::Valu(valu) => {
            match uses.rule {
                Rule::Pairs if valu.dpp.is_none() => pair_flow(wave, uses, exec),
                // If lanes are permuted, or an index selects the registers, only whole lanes are
                // tracked.
                Rule::Moves(choosers) if valu.dpp.is_none() && wave.index.is_none() => {
                    bit_flow(wave, context, uses, exec, valu, choosers);
                }
                _ => valu_flow(wave, uses, exec, valu),
            }
            Ok(())
        }
        Code::Salu {
            function, scc, a, b, ..
        } => scalar_flow(wave, uses, *function, *scc, [*a, *b]),
        Code::SaveExec {
            function,
            target,
            source,
        } => {
            let words = source.map(|word| {
                let known = match word {
                    Scalar::Register(register) => wave.tracker.scalar(register.into()),
                    Scalar::Constant(_) | Scalar::Scc => u32::MAX,
                };
                [wave.scalar(word), !known].map(u64::from)
            });
            let [value, unknown] = [0, 1].map(|part| words[0][part] | words[1][part] << 32);
            // Bit by bit: the mask bits of lanes that are off before and after may be
            // uninitialised.
            let of = |a| {
                function(ScalarIn {
                    a,
                    b: wave.exec(),
                    old: 0,
                    scc: false,
                })
            };
            if of(value & !unknown) != of(value | unknown) {
                for range in &uses.reads {
                    demand(wave, *range, 0)?;
                }
            }
            wave.tracker.define_scalars(usize::from(*target), 2);
            wave.tracker.set_scc(true);
            Ok(())
        }
        Code::Mfma(_) => {
            let known = uses
                .reads
                .iter()
                .all(|range| first_unknown(wave, *range, u64::MAX).is_none());
            for range in &uses.writes {
                let known = if known { u64::MAX } else { 0 };
                wave.tracker
                    .set_rows(range.first.into(), range.count.into(), u64::MAX, known);
            }
            Ok(())
        }
        Code::Lanes(op) => lane_flow(wave, *op, uses, exec),
        _ => memory_flow(wave, inst, uses, exec),
    }
}

/// Returns the first row of the range that is uninitialised in a lane of `exec`, and that lane.
fn first_unknown(wave: &Wave, range: Range, exec: u64) -> Option<(u16, u32)> {
    if !range.vector {
        return None;
    }
    (range.first..range.first + range.count).find_map(|row| {
        let missing = exec & !wave.tracker.row(row.into());
        (missing != 0).then(|| (row, missing.trailing_zeros()))
    })
}

fn demand(wave: &Wave, range: Range, exec: u64) -> Result<(), Trap> {
    if let Some((register, lane)) = first_unknown(wave, range, exec) {
        return Err(Trap::Uninitialised {
            vector: true,
            register,
            lane,
        });
    }
    if !range.vector && !wave.tracker.scalars_known(range) {
        return Err(Trap::Uninitialised {
            vector: false,
            register: range.first,
            lane: 0,
        });
    }
    Ok(())
}

fn condition_flow(wave: &Wave, condition: Condition) -> Result<(), Trap> {
    match condition {
        Condition::Scc(_) if !wave.tracker.scc() => Err(Trap::Uninitialised {
            vector: false,
            register: SCC,
            lane: 0,
        }),
        Condition::VccZero(_) => {
            let vcc = Range {
                vector: false,
                first: sgpr::VCC.into(),
                count: 2,
            };
            demand(wave, vcc, 0)
        }
        _ => Ok(()),
    }
}

/// Propagates by pairs: the first written row from the first row of each source, the second from
/// the second.
fn pair_flow(wave: &mut Wave, uses: &Uses, exec: u64) {
    for (k, target) in uses.writes.iter().enumerate().take(2) {
        let sources = uses.reads.iter().skip(k).step_by(2);
        let known = sources.fold(u64::MAX, |lanes, range| match range.vector {
            true => lanes & wave.tracker.lanes(range.first.into(), range.count.into()),
            false if wave.tracker.scalars_known(*range) => lanes,
            false => 0,
        });
        wave.tracker
            .set_rows(target.first.into(), target.count.into(), exec, known);
    }
}

/// Propagates bit by bit: the instruction runs with the uninitialised bits of each source as 0 and
/// as 1. A result bit is known if it is the same each time, in lanes whose `choosers` and mask are
/// known.
fn bit_flow(wave: &mut Wave, context: &mut Context<'_>, uses: &Uses, exec: u64, valu: &Valu, choosers: u8) {
    let mut chosen = u64::MAX;
    // Rows with uninitialised bits, and their initialised bits
    let mut sources: SmallVec<[(usize, Row); 4]> = SmallVec::new();
    for (number, range) in uses.reads.iter().enumerate() {
        let first = usize::from(range.first);
        if !range.vector {
            chosen &= mask_lanes(&wave.tracker, valu, *range);
            continue;
        }
        if choosers >> number & 1 != 0 {
            chosen &= wave.tracker.lanes(first, range.count.into());
        }
        for row in first..first + usize::from(range.count) {
            let is_new = sources.iter().all(|(other, _)| *other != row);
            if is_new && exec & !wave.tracker.row(row) != 0 {
                sources.push((row, wave.tracker.bits(row)));
            }
        }
    }
    let targets = usize::from(valu.row)..usize::from(valu.row) + usize::from(valu.rows);
    let rows = sources.iter().map(|(row, _)| *row).chain(targets.clone());
    let saved: SmallVec<[(usize, Row); 6]> = rows.map(|row| (row, wave.rows[row])).collect();
    let restore = |wave: &mut Wave| saved.iter().for_each(|(row, values)| wave.rows[*row] = *values);
    let mut results: Option<SmallVec<[(Row, Row); 2]>> = None;
    for way in 0_u32..1 << sources.len() {
        restore(wave);
        for (number, (row, bits)) in sources.iter().enumerate() {
            let ones = way >> number & 1 != 0;
            for (value, known) in wave.rows[*row].iter_mut().zip(bits) {
                *value = if ones { *value | !known } else { *value & known };
            }
        }
        vector::valu(wave, context, valu);
        let found = targets.clone().map(|row| wave.rows[row]);
        match &mut results {
            None => results = Some(found.map(|row| (row, [0; 64])).collect()),
            Some(results) => {
                for ((first, unknown), row) in results.iter_mut().zip(found) {
                    for ((unknown, first), value) in unknown.iter_mut().zip(first).zip(row) {
                        *unknown |= *first ^ value;
                    }
                }
            }
        }
    }
    restore(wave);
    for (row, (_, unknown)) in targets.zip(results.unwrap_or_default()) {
        let bits = std::array::from_fn(|l| if lane(chosen, l) != 0 { !unknown[l] } else { 0 });
        wave.tracker.set_bits(row, exec, &bits);
    }
}

/// Returns the lanes in which a scalar operand is initialised; a lane mask by each lane's bit.
fn mask_lanes(tracker: &Tracker, valu: &Valu, range: Range) -> u64 {
    let first = usize::from(range.first);
    if valu.mask_in == Some(range.first as u8) {
        u64::from(tracker.scalar(first)) | u64::from(tracker.scalar(first + 1)) << 32
    } else if tracker.scalars_known(range) {
        u64::MAX
    } else {
        0
    }
}

/// Propagates lane by lane: a result is initialised where every source is.
fn valu_flow(wave: &mut Wave, uses: &Uses, exec: u64, valu: &Valu) {
    let moved = valu.dpp.map(|dpp| dpp_lanes(dpp, exec));
    // A lane that DPP does not write keeps its destination.
    let exec = moved.as_ref().map_or(exec, |(_, written)| *written);
    let tracker = &mut wave.tracker;
    let mut known = u64::MAX;
    // Initialised lanes of the low rows alone
    let mut low = u64::MAX;
    // For packed pairs, each row of a source is its own range.
    let first_ranges = if uses.rule == Rule::Pairs { 2 } else { 1 };
    for (number, range) in uses.reads.iter().enumerate() {
        let first = usize::from(range.first);
        let of_range = |count: u16| match range.vector {
            true => tracker.lanes(first, count.into()),
            false => mask_lanes(tracker, valu, Range { count, ..*range }),
        };
        let mut lanes = match range.vector && uses.low >> number & 1 != 0 {
            true => tracker.lanes_with(first, 0xffff),
            false => of_range(range.count),
        };
        if let Some((sources, _)) = moved.as_ref().filter(|_| number < first_ranges && range.vector) {
            // A lane without a source reads 0, which is initialised.
            lanes = sources.iter().enumerate().fold(0, |all, (target, from)| {
                all | u64::from(from.is_none_or(|from| lane(lanes, from) != 0)) << target
            });
        }
        low &= of_range(range.count.min(1));
        known &= lanes;
    }
    for range in &uses.writes {
        let first = usize::from(range.first);
        if range.vector {
            wave.tracker.set_rows(first, range.count.into(), exec, known);
            if uses.rule == Rule::Low {
                wave.tracker.set_rows(first, 1, exec, low);
            }
        } else if valu.mask_out == Some(range.first as u8) {
            // The mask bits of inactive lanes are a defined 0.
            let bits = known | !exec;
            wave.tracker.set_scalar(first, bits as u32);
            wave.tracker.set_scalar(first + 1, (bits >> 32) as u32);
        }
    }
}

/// Propagates scalar results: as a whole, or bit by bit.
fn scalar_flow(
    wave: &mut Wave,
    uses: &Uses,
    function: ScalarFn,
    writes_scc: bool,
    sources: [[Scalar; 2]; 2],
) -> Result<(), Trap> {
    let complete =
        (!uses.reads_scc || wave.tracker.scc()) && uses.reads.iter().all(|range| wave.tracker.scalars_known(*range));
    let words = usize::from(uses.writes.first().map_or(1, |range| range.count)).clamp(1, 2);
    let [a, b] = sources.map(|source| {
        let words = source.map(|word| {
            let unknown = match word {
                Scalar::Register(register) => !wave.tracker.scalar(register.into()),
                Scalar::Constant(_) | Scalar::Scc => 0,
            };
            [wave.scalar(word) & !unknown, wave.scalar(word) | unknown].map(u64::from)
        });
        // The value with every unknown bit as 0, and as 1
        [0, 1].map(|way| words[0][way] | words[1][way] << 32)
    });
    let is_bitwise = match uses.rule {
        Rule::Bits => true,
        Rule::Shift => b[0] == b[1],
        _ => false,
    };
    // A result bit is known if it is the same in both cases.
    let mut unknown = if is_bitwise {
        let of = |a, b| {
            let (old, scc) = (0, false);
            function(ScalarIn { a, b, old, scc }).0
        };
        let results = [of(a[0], b[0]), of(a[0], b[1]), of(a[1], b[0]), of(a[1], b[1])];
        results.iter().fold(0, |all, result| all | (result ^ results[0]))
    } else if complete {
        0
    } else {
        u64::MAX
    };
    if words == 1 {
        unknown &= u64::from(u32::MAX);
    }
    let result = [!unknown as u32, !(unknown >> 32) as u32];
    let all = unknown == 0;
    for range in &uses.writes {
        if range.first == u16::from(sgpr::EXEC) && !all {
            return Err(Trap::Uninitialised {
                vector: false,
                register: range.first,
                lane: 0,
            });
        }
        for word in 0..usize::from(range.count) {
            let register = (usize::from(range.first) + word) & 0x7f;
            wave.tracker.set_scalar(register, result[word.min(1)]);
        }
    }
    if writes_scc {
        // The condition "not zero" counts as known only if all bits are.
        wave.tracker.set_scc(all);
    }
    Ok(())
}

/// Propagates an exchange between lanes.
fn lane_flow(wave: &mut Wave, op: LaneOp, uses: &Uses, exec: u64) -> Result<(), Trap> {
    match op {
        LaneOp::ReadFirst(target, row) => {
            // The result has the state of the lane that was read.
            let known = lane(wave.tracker.row(row.into()), first_lane(exec)) != 0;
            wave.tracker.set_scalar(target.into(), if known { u32::MAX } else { 0 });
        }
        LaneOp::ReadLane(target, row, number) => {
            demand_scalars(wave, uses)?;
            let number = wave.scalar(number) as usize & 63;
            let known = lane(wave.tracker.row(row.into()), number) != 0;
            wave.tracker.set_scalar(target.into(), if known { u32::MAX } else { 0 });
        }
        LaneOp::WriteLane(row, value, number) => {
            if let Some(number) = uses.reads.last() {
                demand(wave, *number, 0)?;
            }
            let known = match value {
                Scalar::Register(register) => wave.tracker.scalar(register.into()) == u32::MAX,
                _ => true,
            };
            let number = wave.scalar(number) as usize & 63;
            let lanes = if known { u64::MAX } else { 0 };
            wave.tracker.set_rows(row.into(), 1, 1 << number, lanes);
        }
        LaneOp::Permute {
            target,
            address,
            data,
            forward,
            offset,
        } => {
            let addresses = wave.rows[usize::from(address)];
            let (of_address, of_data) = (wave.tracker.row(address.into()), wave.tracker.row(data.into()));
            if forward {
                demand(wave, uses.reads[0], exec)?;
            }
            // Lanes that receive nothing get a defined 0.
            let mut known = u64::MAX;
            for l in set_lanes(exec) {
                let other = (addresses[l].wrapping_add(offset) >> 2) as usize & 63;
                let (to, from) = if forward { (other, l) } else { (l, other) };
                let right = lane(of_address, l) != 0 && (lane(of_data, from) != 0 || lane(exec, from) == 0);
                known = known & !(1 << to) | u64::from(right) << to;
            }
            wave.tracker.set_rows(target.into(), 1, exec, known);
        }
        LaneOp::Swap(a, b) => {
            let (of_a, of_b) = (wave.tracker.row(a.into()), wave.tracker.row(b.into()));
            wave.tracker.set_rows(a.into(), 1, exec, of_b);
            wave.tracker.set_rows(b.into(), 1, exec, of_a);
        }
        LaneOp::Swizzle { target, data, pattern } => {
            let of_data = wave.tracker.row(data.into());
            let known = lanes_where(exec, |l| {
                let from = swizzled(l, pattern);
                lane(of_data, from) != 0 || lane(exec, from) == 0
            });
            wave.tracker.set_rows(target.into(), 1, exec, known);
        }
    }
    Ok(())
}

fn demand_scalars(wave: &Wave, uses: &Uses) -> Result<(), Trap> {
    uses.reads
        .iter()
        .filter(|range| !range.vector)
        .try_for_each(|range| demand(wave, *range, 0))
}

/// Checks loads, stores and other instructions with outside effects: their reads must be
/// initialised. (Data that stays in LDS or private memory is in `uses.data` instead, and keeps its
/// state there.)
fn memory_flow(wave: &mut Wave, inst: &Inst, uses: &Uses, exec: u64) -> Result<(), Trap> {
    for range in &uses.reads {
        if let Code::Vmem(vmem) = &inst.code
            && (matches!(vmem.action, Action::Store) && range.vector && range.first == vmem.data)
        {
            let bytes = u16::from(vmem.access.bytes);
            let whole = stored_lanes(wave, vmem, exec, bytes);
            if whole & !wave.tracker.data(range.first.into(), vmem.access) != 0 {
                demand(wave, *range, whole)?;
            }
            // A store that crosses the end of a buffer still stores its first registers.
            for row in 0..range.count {
                let stored = stored_lanes(wave, vmem, exec, (4 * (row + 1)).min(bytes));
                let range = Range {
                    first: range.first + row,
                    count: 1,
                    ..*range
                };
                if stored & !whole != 0 {
                    demand(wave, range, stored & !whole)?;
                }
            }
            continue;
        }
        demand(wave, *range, exec)?;
    }
    for range in &uses.writes {
        if range.vector {
            wave.tracker
                .set_rows(range.first.into(), range.count.into(), exec, u64::MAX);
        } else {
            wave.tracker.define_scalars(range.first.into(), range.count.into());
        }
    }
    Ok(())
}
