//! Counts the time model's inputs on a sample of workgroups: it observes a wave before each
//! instruction, and changes nothing.
//!
//! Workgroups go to the dies (XCDs) in turn, and a die runs a window of them at once. The sample
//! has windows of some dies, from the middle of the grid, or around a workgroup of mean work if
//! work differs; whole windows show which memory lines a die's workgroups share. If the work is
//! long, only a part of the first die's window runs; the lines that the rest of the window would
//! load are extrapolated from the second half of that part.

use std::collections::VecDeque;

use rotini_time::{Instruction, Path, Record, Residence, Step, clocks};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::{
    inst::{Action, Address, Code, Program, Vmem},
    memory::{Memory, set_lanes},
    report::Class,
    wave::Wave,
};

/// Parameters of a sampled launch.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Maximum number of workgroups to run
    pub workgroups: u64,
    /// Workgroups that a die runs at once; `None`: as many as fit
    pub window: Option<u64>,
    /// Number of wave-instructions after which no further die is sampled; after twice that number
    /// not even the first die's window is completed
    pub enough: u64,
}

impl Sample {
    /// Default of `enough`: about half a second of the emulator's time.
    pub const ENOUGH: u64 = 1 << 22;
}

/// Number of dies of an MI300X.
pub(crate) const DIES: u64 = 8;
/// Number of compute units of a die.
pub(crate) const UNITS: u64 = 38;
/// Number of lines of a compute unit's first-level cache (32 KiB).
const CACHED_LINES: u64 = 256;
/// Lines per page: a block of memory with one bit per line, from which the used part of an
/// allocation is computed.
const PAGE_LINES: u64 = 512;
/// Number of instructions after which the result of a matrix instruction is available.
const FAR: u64 = 64;

/// The order in which dies are sampled. Workgroups whose numbers differ by a multiple of 8, such as
/// a larger power of two, run on the same die, so the first die's share is no more typical than
/// another's.
const ORDER: [u64; DIES as usize] = [3, 6, 0, 5, 2, 7, 4, 1];

/// The workgroups of a sample: for each sampled die some that run at once, by number.
pub(crate) struct Groups(Vec<u64>);

impl Groups {
    /// Selects the workgroups that run at once on a die, around the typical one, or around the
    /// middle of the grid if all do the same, for as many dies as the sample has room for.
    pub(crate) fn new(sample: Sample, resident: u64, groups: u64, typical: Option<u64>) -> Self {
        let window = sample.window.unwrap_or(UNITS * resident).max(1);
        let dies = (sample.workgroups / window).clamp(1, DIES) as usize;
        let own = typical.map(|group| group % DIES);
        let others = ORDER.into_iter().filter(|&die| Some(die) != own);
        let chosen = own.into_iter().chain(others).filter(|&die| die < groups).take(dies);
        let of_die = |die: u64| {
            let of_die = (groups - die).div_ceil(DIES);
            let count = window.min(of_die).min(sample.workgroups.max(1));
            // The middle one comes first, since the sample may end before the whole window has run.
            let centre = (of_die - count) / 2 + count / 2;
            let middle = typical.map_or(centre, |group| (group / DIES).min(of_die - 1));
            let first = middle.saturating_sub(count / 2).min(of_die - count);
            let numbers = (middle..first + count).chain(first..middle);
            numbers.map(move |number| number * DIES + die)
        };
        Self(chosen.flat_map(of_die).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Returns the workgroup whose first wave is followed: the first one of the first die.
    fn followed(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
    }

    /// Returns the number of sampled workgroups of the first die.
    fn window(&self) -> u64 {
        let first = self.followed();
        self.0.iter().take_while(|&group| group % DIES == first % DIES).count() as u64
    }
}

/// Sums over the executions of an instruction.
#[derive(Clone, Copy, Default)]
struct Sums {
    executions: u64,
    lanes: u64,
    segments: u64,
    lines: u64,
    missed: u64,
    fresh: u64,
    /// Executions that missed a line, and those that found a fresh one
    misses: u64,
    freshes: u64,
    conflicts: u64,
}

/// The counts of a sample.
pub(crate) struct Profile {
    sums: Vec<Sums>,
    die: u64,
    /// Lines that a workgroup of the die's window has loaded
    shared: FxHashSet<u64>,
    /// Lines in the first-level cache, and their order of arrival
    cached: FxHashSet<u64>,
    order: VecDeque<u64>,
    cache: u64,
    /// Bit sets of the accessed lines by page
    touched: FxHashMap<u64, [u64; PAGE_LINES as usize / 64]>,
    followed: u64,
    /// Whether the current wave is the followed one
    follows: bool,
    runs: Vec<(u32, u32)>,
    /// Number of instructions of the followed wave so far, and for each row the number of the
    /// matrix instruction that wrote it
    steps: u64,
    writers: FxHashMap<u16, u64>,
    after: Vec<u8>,
    groups: u64,
    /// Cost of the sample so far: instructions, memory segments, and LDS turns that conflicts added
    work: u64,
    enough: u64,
    /// Workgroups of the first die's window
    window: u64,
    /// Fresh lines of each instruction ([`Sums::fresh`], [`Sums::freshes`]) after half of that
    /// window's workgroups, taken when their number was last a power of two
    half: Vec<(u64, u64)>,
    now: Vec<(u64, u64)>,
}

impl Profile {
    pub(crate) fn new(program: &Program, groups: &Groups, resident: u64, enough: u64) -> Self {
        let count = program.insts.len();
        Self {
            sums: vec![Sums::default(); count],
            die: DIES,
            shared: FxHashSet::default(),
            cached: FxHashSet::default(),
            order: VecDeque::new(),
            cache: (CACHED_LINES / resident.max(1)).max(16),
            touched: FxHashMap::default(),
            followed: groups.followed(),
            follows: false,
            runs: Vec::new(),
            steps: 0,
            writers: FxHashMap::default(),
            after: vec![0; count],
            groups: 0,
            work: 0,
            enough,
            window: groups.window(),
            half: Vec::new(),
            now: Vec::new(),
        }
    }

    /// Returns true if the workgroups before this one suffice to describe the launch.
    pub(crate) fn ends_before(&mut self, group: u64) -> bool {
        if self.groups > 0 && self.die != group % DIES {
            return self.work >= self.enough;
        }
        if self.groups >= self.window || !self.groups.is_power_of_two() {
            return false;
        }
        let now = self.sums.iter().map(|sums| (sums.fresh, sums.freshes)).collect();
        self.half = std::mem::replace(&mut self.now, now);
        self.groups > 1 && self.work / 2 >= self.enough
    }

    /// Extrapolates an incomplete window: the rest is assumed to load as many fresh lines per
    /// workgroup as the second half did.
    fn complete(&mut self) {
        if self.groups >= self.window {
            return;
        }
        let (ran, rest) = (u128::from(self.groups), u128::from(self.window - self.groups));
        let completed = |sum: u64, half: u64| {
            let all = u128::from(sum) + rest * u128::from(sum - half) / (ran / 2).max(1);
            u64::try_from(all * ran / (ran + rest)).unwrap_or(u64::MAX)
        };
        for (sums, &(fresh, freshes)) in self.sums.iter_mut().zip(&self.half) {
            sums.fresh = completed(sums.fresh, fresh);
            sums.freshes = completed(sums.freshes, freshes);
        }
    }

    /// Starts a workgroup.
    pub(crate) fn begin(&mut self, group: u64) {
        self.groups += 1;
        self.follows = group == self.followed;
        if self.die != group % DIES {
            self.die = group % DIES;
            self.shared.clear();
        }
        self.cached.clear();
        self.order.clear();
    }

    /// Counts an instruction that is about to run.
    pub(crate) fn before(&mut self, wave: &Wave, program: &Program, pc: usize) {
        let (Some(inst), Some(sums)) = (program.insts.get(pc), self.sums.get_mut(pc)) else {
            return;
        };
        sums.executions += 1;
        self.work += 1;
        let exec = wave.exec();
        match &inst.code {
            Code::Vmem(vmem) if exec != 0 => self.vmem(wave, vmem, pc, exec),
            Code::Ds(_) => sums.lanes += u64::from(exec.count_ones()),
            Code::Lanes(_) if inst.class == Class::Lds => sums.lanes += u64::from(exec.count_ones()),
            _ => {}
        }
        if self.follows && wave.number == 0 {
            self.follow(program, pc);
        }
    }

    /// Adds the turns that bank conflicts cost an LDS instruction.
    pub(crate) fn add_conflicts(&mut self, pc: usize, turns: u64) {
        self.work += turns;
        if let Some(sums) = self.sums.get_mut(pc) {
            sums.conflicts += turns;
        }
    }

    fn vmem(&mut self, wave: &Wave, vmem: &Vmem, pc: usize, exec: u64) {
        let Some(sums) = self.sums.get_mut(pc) else { return };
        let (addresses, lanes) = addresses(wave, vmem, exec);
        sums.lanes += u64::from(lanes.count_ones());
        if matches!(vmem.address, Address::Scratch { .. }) {
            return;
        }
        let last = u64::from(vmem.access.bytes).saturating_sub(1);
        let mut segments: SmallVec<[u64; 128]> = SmallVec::new();
        for lane in set_lanes(lanes) {
            let (from, to) = (addresses[lane] >> 6, addresses[lane].saturating_add(last) >> 6);
            for segment in from..=to {
                if segments.last() != Some(&segment) {
                    segments.push(segment);
                }
            }
        }
        segments.sort_unstable();
        segments.dedup();
        sums.segments += segments.len() as u64;
        self.work += segments.len() as u64;
        segments.iter_mut().for_each(|segment| *segment >>= 1);
        segments.dedup();
        sums.lines += segments.len() as u64;
        for line in &segments {
            let (page, place) = (line / PAGE_LINES, line % PAGE_LINES);
            let lines = self.touched.entry(page).or_default();
            if let Some(word) = lines.get_mut(place as usize / 64) {
                *word |= 1 << (place % 64);
            }
        }
        if !matches!(vmem.action, Action::Load) {
            return;
        }
        let before = (sums.missed, sums.fresh);
        for line in segments {
            if !self.cached.insert(line) {
                continue;
            }
            sums.missed += 1;
            self.order.push_back(line);
            if self.order.len() as u64 > self.cache
                && let Some(oldest) = self.order.pop_front()
            {
                self.cached.remove(&oldest);
            }
            sums.fresh += u64::from(self.shared.insert(line));
        }
        sums.misses += u64::from(sums.missed > before.0);
        sums.freshes += u64::from(sums.fresh > before.1);
    }

    /// Records the path of the followed wave, and the distances from matrix instructions to the
    /// reads of their results.
    fn follow(&mut self, program: &Program, pc: usize) {
        match self.runs.last_mut() {
            Some((_, end)) if *end == pc as u32 => *end += 1,
            _ => self.runs.push((pc as u32, pc as u32 + 1)),
        }
        // A loop's body becomes its own run.
        if matches!(program.insts[pc].code, Code::Branch { .. })
            && let Some(&(_, end)) = self.runs.last()
        {
            self.runs.push((end, end));
        }
        self.steps += 1;
        let uses = &program.uses[pc];
        let rows = |range: &crate::registers::Range| range.first..range.first + range.count;
        let read = uses.reads.iter().chain(&uses.data).filter(|range| range.vector);
        let nearest = read
            .flat_map(rows)
            .filter_map(|row| self.writers.get(&row))
            .map(|writer| self.steps - writer)
            .min();
        if let Some(distance) = nearest.filter(|&distance| distance < FAR) {
            let after = &mut self.after[pc];
            *after = if *after == 0 {
                distance as u8
            } else {
                (*after).min(distance as u8)
            };
        }
        let is_matrix = matches!(program.insts[pc].code, Code::Mfma(_));
        for row in uses.writes.iter().filter(|range| range.vector).flat_map(rows) {
            if is_matrix {
                self.writers.insert(row, self.steps);
            } else {
                self.writers.remove(&row);
            }
        }
    }

    /// Builds the record of the launch.
    pub(crate) fn record(
        mut self,
        program: &Program,
        residence: Residence,
        name: &str,
        memory: &dyn Memory,
        workgroups: u64,
    ) -> Record {
        self.complete();
        let mut blocks: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        for (page, lines) in &self.touched {
            let count: u32 = lines.iter().map(|word| word.count_ones()).sum();
            let first = lines.iter().position(|word| *word != 0).unwrap_or(0);
            let place = lines.get(first).map_or(0, |word| u64::from(word.trailing_zeros()));
            let address = (page * PAGE_LINES + 64 * first as u64 + place) << 7;
            // A line may begin before its allocation does.
            if let Some(block) = memory.block(address).or_else(|| memory.block(address + 127)) {
                blocks.entry(block.address).or_insert((block.bytes, 0)).1 += u64::from(count) << 7;
            }
        }
        // A launch may use only a part of a large allocation, such as a workspace.
        let used = |&(bytes, touched): &(u64, u64)| {
            let touched = u128::from(touched) * u128::from(workgroups) / u128::from(self.groups.max(1));
            bytes.min(u64::try_from(touched).unwrap_or(u64::MAX))
        };
        let instructions = program.insts.iter().enumerate().map(|(pc, inst)| Instruction {
            step: step(&inst.code, inst.class, &program.texts[pc], self.sums[pc]),
            after: self.after[pc],
        });
        let runs: Vec<_> = self.runs.into_iter().filter(|(first, end)| first < end).collect();
        Record {
            kernel: name.to_owned(),
            workgroups,
            waves: residence.waves,
            registers: residence.registers,
            scalars: residence.scalars,
            lds: residence.lds,
            scratch: residence.scratch,
            sampled: self.groups,
            footprint: blocks.values().map(used).sum(),
            instructions: instructions.collect(),
            path: Path::of(&runs),
            work: Vec::new(),
        }
    }
}

/// Returns the addresses of a vector memory instruction's lanes, and the lanes that access memory.
fn addresses(wave: &Wave, vmem: &Vmem, exec: u64) -> ([u64; 64], u64) {
    let offset = i64::from(vmem.offset);
    let row = |row: u16, lane: usize| u64::from(wave.rows[usize::from(row)][lane]);
    let vector = |vector: Option<u16>, lane| vector.map_or(0, |first| row(first, lane));
    match vmem.address {
        Address::Buffer {
            descriptor,
            scalar,
            vector: index,
        } => {
            let base = wave.pair(descriptor & 0x7c) & 0xffff_ffff_ffff;
            let records = u64::from(wave.scalars[usize::from(descriptor & 0x7c) + 2]);
            let fixed = u64::from(wave.scalar(scalar));
            let at: [u64; 64] = std::array::from_fn(|lane| {
                let sum = (vector(index, lane) as u32).wrapping_add(vmem.offset as u32);
                u64::from(sum) + fixed
            });
            let inside = set_lanes(exec)
                .filter(|&lane| at[lane] < records)
                .fold(0, |lanes, lane| lanes | 1 << lane);
            (at.map(|at| base.wrapping_add(at)), inside)
        }
        Address::Global {
            scalar: Some(scalar),
            vector: index,
        } => {
            let base = wave.pair(scalar).wrapping_add_signed(offset);
            let at = std::array::from_fn(|lane| base.wrapping_add(vector(index, lane)));
            (at, exec)
        }
        Address::Global {
            vector: Some(first), ..
        }
        | Address::Flat { vector: first } => {
            let at =
                std::array::from_fn(|lane| (row(first, lane) | row(first + 1, lane) << 32).wrapping_add_signed(offset));
            (at, exec)
        }
        Address::Global { .. } | Address::Scratch { .. } => ([0; 64], exec),
    }
}

/// Converts an instruction and its counts to a step of the record.
fn step(code: &Code, class: Class, text: &str, sums: Sums) -> Step {
    let mean = |sum: u64| sum as f32 / sums.executions.max(1) as f32;
    let mnemonic = text.split_ascii_whitespace().next().unwrap_or(text);
    match code {
        Code::Vmem(vmem) => {
            let dwords = vmem.access.rows() as u8;
            let lanes = mean(sums.lanes);
            match vmem.action {
                _ if class == Class::Scratch => Step::Scratch { dwords, lanes },
                Action::Load => Step::Load {
                    dwords,
                    segments: mean(sums.segments),
                    lines: mean(sums.lines),
                    missed: mean(sums.missed),
                    fresh: mean(sums.fresh),
                    misses: mean(sums.misses),
                    freshes: mean(sums.freshes),
                },
                Action::Store => Step::Store {
                    dwords,
                    bytes: lanes * f32::from(vmem.access.bytes),
                    segments: mean(sums.segments),
                    lines: mean(sums.lines),
                },
                Action::Atomic(..) => Step::Atomic {
                    lanes,
                    lines: mean(sums.lines),
                },
            }
        }
        Code::Ds(ds) => Step::Lds {
            bytes: mean(sums.lanes) * f32::from(ds.access.bytes) * if ds.pair { 2.0 } else { 1.0 },
            conflicts: mean(sums.conflicts),
        },
        Code::Lanes(_) if class == Class::Lds => Step::Lds {
            bytes: mean(sums.lanes) * 4.0,
            conflicts: 0.0,
        },
        Code::Valu(_) | Code::Lanes(_) if mnemonic.starts_with("v_exp_") => Step::Exp,
        Code::Valu(_) | Code::Lanes(_) if clocks::is_packed(mnemonic) => Step::Packed,
        Code::Valu(_) | Code::Lanes(_) => Step::Valu(clocks::vector(mnemonic)),
        Code::Mfma(mfma) => Step::Mfma {
            clocks: clocks::matrix(mnemonic, mfma.opcode.operations()),
            operands: clocks::operands(mnemonic),
        },
        Code::Smem(_) | Code::Time { .. } => Step::Scalar,
        Code::Branch { .. } | Code::SetPc { .. } => Step::Branch,
        Code::Nop if mnemonic == "s_nop" => {
            let count = text.split_ascii_whitespace().nth(1).and_then(|n| n.parse::<u8>().ok());
            Step::Nop(count.unwrap_or(0).saturating_add(1))
        }
        Code::Nop => Step::Nop(1),
        Code::Wait { vector, scalar } => Step::Wait(*vector, *scalar),
        Code::Barrier => Step::Barrier,
        Code::End | Code::Trap => Step::End,
        Code::Salu { .. }
        | Code::SaveExec { .. }
        | Code::GetPc { .. }
        | Code::SetMode { .. }
        | Code::GetMode { .. }
        | Code::IndexOn { .. }
        | Code::IndexOff => Step::Salu,
    }
}
