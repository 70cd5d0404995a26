//! Moves initialised bits through an instruction that reads something uninitialised or writes only some lanes.

use crate::{
    error::Trap,
    inst::{Action, Code, Condition, Inst, LaneOp, Scalar, Source, Uses, Valu, sgpr},
    lanes::{first_lane, lane},
    memory::{lanes_where, set_lanes, stored_lanes},
    registers::Range,
    table::{Rule, ScalarFn, ScalarIn},
    vector::{dpp_lanes, swizzled},
    wave::Wave,
};

/// The number that messages give SCC.
const SCC: u16 = 253;

pub(super) fn flow(wave: &mut Wave, inst: &Inst, uses: &Uses, exec: u64) -> Result<(), Trap> {
    match &inst.code {
        Code::Branch { condition, .. } => condition_flow(wave, *condition),
        Code::Valu(valu) => {
            match uses.rule {
                Rule::Pairs if valu.dpp.is_none() => pair_flow(wave, uses, exec),
                Rule::Pack | Rule::ShiftRight => half_flow(wave, uses, exec, valu),
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
            // Bit by bit: those of lanes that are off before and after may be anything.
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

/// The first row of the range that is not initialised in a lane of `exec`, and the first such lane.
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

/// The first written row from the first of each two that are read, the second from the second.
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

/// Results whose low half may be initialised when the whole is not.
fn half_flow(wave: &mut Wave, uses: &Uses, exec: u64, valu: &Valu) {
    let (Some(target), [first, .., last]) = (uses.writes.first(), uses.reads.as_slice()) else {
        return;
    };
    let half = |row: u16, upper: bool| match upper {
        true => wave.tracker.row(row.into()),
        false => wave.tracker.low_half(row.into()),
    };
    // Looked at before the target, which may be a source, changes.
    let low = match (uses.rule, valu.sources.first()) {
        // With modifiers the first source may not be read in its low half.
        (Rule::Pack, _) if first.vector && valu.prepare.is_none() => half(first.first, false),
        // By halves: a scalar amount is the same for all lanes.
        (Rule::ShiftRight, Some(Source::Scalar(amount))) if last.vector && wave.tracker.scalars_known(*first) => {
            match wave.scalars[usize::from(amount & 0x7f)] & 63 {
                amount if amount % 16 == 0 => half(last.first + (amount / 32) as u16, amount % 32 != 0),
                _ => 0,
            }
        }
        _ => 0,
    };
    valu_flow(wave, uses, exec, valu);
    wave.tracker.add_low(target.first.into(), exec, low);
}

/// Lane by lane: a result is initialised where every source is.
fn valu_flow(wave: &mut Wave, uses: &Uses, exec: u64, valu: &Valu) {
    let moved = valu.dpp.map(|dpp| dpp_lanes(dpp, exec));
    // A lane that DPP does not write keeps its destination.
    let exec = moved.as_ref().map_or(exec, |(_, written)| *written);
    let tracker = &mut wave.tracker;
    let mut known = u64::MAX;
    // Of the low rows alone
    let mut low = u64::MAX;
    // Of the low half of the row
    let mut low_half = 0;
    let mut sides = [u64::MAX; 2];
    let mut low_sides = sides;
    // Of pairs each row of a source is a range.
    let first_ranges = if uses.rule == Rule::Pairs { 2 } else { 1 };
    for (number, range) in uses.reads.iter().enumerate() {
        let first = usize::from(range.first);
        let is_mask = !range.vector && valu.mask_in == Some(range.first as u8);
        let of_range = |count: u16| {
            if range.vector {
                tracker.lanes(first, count.into())
            } else if tracker.scalars_known(Range { count, ..*range }) {
                u64::MAX
            } else {
                0
            }
        };
        let mut lanes = match range.vector && uses.low >> number & 1 != 0 {
            true => tracker.low_half(first),
            false => of_range(range.count),
        };
        if is_mask {
            lanes = u64::from(tracker.scalar(first)) | u64::from(tracker.scalar(first + 1)) << 32;
        }
        if let Some((sources, _)) = moved.as_ref().filter(|_| number < first_ranges && range.vector) {
            // A lane without a source reads 0.
            lanes = sources.iter().enumerate().fold(0, |all, (target, from)| {
                all | u64::from(from.is_none_or(|from| lane(lanes, from) != 0)) << target
            });
        }
        low &= of_range(range.count.min(1));
        if is_mask || uses.rule != Rule::Select {
            known &= lanes;
        } else {
            sides[number.min(1)] &= lanes;
            low_sides[number.min(1)] &= match range.vector && moved.is_none() {
                true => tracker.low_half(first),
                false => lanes,
            };
        }
    }
    if uses.rule == Rule::Select {
        // `uses.reads` has one range per data source, in order: constants are empty ranges.
        let mask = valu.mask_in.map_or(0, |pair| wave.pair(pair));
        let selected = |sides: [u64; 2]| known & (sides[0] & !mask | sides[1] & mask);
        (known, low_half) = (selected(sides), selected(low_sides));
    }
    for range in &uses.writes {
        let first = usize::from(range.first);
        if range.vector {
            wave.tracker.set_rows(first, range.count.into(), exec, known);
            if uses.rule == Rule::Low {
                wave.tracker.set_rows(first, 1, exec, low);
            }
            wave.tracker.add_low(first, exec, low_half);
        } else if valu.mask_out == Some(range.first as u8) {
            // Lanes that are off get a defined 0.
            let bits = known | !exec;
            wave.tracker.set_scalar(first, bits as u32);
            wave.tracker.set_scalar(first + 1, (bits >> 32) as u32);
        }
    }
}

/// Scalar results: all or nothing, or bit by bit.
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
        // With every unknown bit as 0, and as 1
        [0, 1].map(|way| words[0][way] | words[1][way] << 32)
    });
    let is_bitwise = match uses.rule {
        Rule::Bits => true,
        Rule::Shift => b[0] == b[1],
        _ => false,
    };
    // A result bit is known if it is the same either way.
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
        // "Not zero" of partly known bits is taken as known only where all are.
        wave.tracker.set_scc(all);
    }
    Ok(())
}

/// Lanes that change places.
fn lane_flow(wave: &mut Wave, op: LaneOp, uses: &Uses, exec: u64) -> Result<(), Trap> {
    match op {
        LaneOp::ReadFirst(target, row) => {
            // The value is what the lane holds: uninitialised if that lane is.
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
            // Lanes that nobody sends to get a defined 0.
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

/// Loads, stores and what else touches the outside: what they read must be initialised (data that stays in LDS or private memory
/// is in `uses.data` instead, and keeps its state there).
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
            // Of what ends beyond a buffer the first registers are stored.
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
