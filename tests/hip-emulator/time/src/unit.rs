//! One compute unit, event by event: its resident workgroups execute the path of the recorded wave,
//! and wait for each other and for memory.

use std::{cmp::Reverse, collections::BinaryHeap, collections::VecDeque};

use crate::{Instruction, Operands, Step};

/// The parameters of a compute unit, in clocks and bytes per clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Latency in clocks from the first-level cache to the second, and from there to Infinity Cache
    /// and memory
    pub(crate) near: f64,
    pub(crate) far: f64,
    /// This unit's bandwidths in bytes per clock: from the second-level cache, from beyond it, and
    /// to memory. Reads and writes beyond the cache share one path
    pub(crate) cache_rate: f64,
    pub(crate) far_rate: f64,
    pub(crate) store_rate: f64,
    /// Clocks that the address unit needs per register of a store
    pub(crate) store_clocks: f64,
    /// Clocks between two workgroups that the dispatcher sends to this unit
    pub(crate) dispatch: f64,
    /// Share of the accesses to private memory that miss the second-level cache
    pub(crate) scratch_beyond: f64,
}

/// Constants in clocks and bytes, from published measurements and the ISA's documentation.
mod fixed {
    pub(super) const SIMDS: usize = 4;
    /// From one instruction of a wave to the next one
    pub(super) const ISSUE: f64 = 4.0;
    pub(super) const EXPONENTIAL: f64 = 16.0;
    pub(super) const MATRIX_RESULT: f64 = 8.0;
    /// From the end of a matrix instruction until a packed one can start. Same source as
    /// [`super::held`]
    pub(super) const AFTER_MATRIX: f64 = 8.0;
    pub(super) const LDS: f64 = 64.0;
    pub(super) const LDS_BYTES: f32 = 128.0;
    pub(super) const FIRST_LEVEL: f64 = 116.0;
    pub(super) const SCALAR: f64 = 200.0;
    pub(super) const BRANCH: f64 = 16.0;
    pub(super) const LINE: f64 = 128.0;
    /// Clocks of loading one register of 64 lanes, at 64 bytes per clock
    pub(super) const REGISTER: f64 = 4.0;
    /// Clocks per count of `s_nop`
    pub(super) const NOP: f64 = 4.0;
    /// Number of latest instructions whose results are remembered. Distances in records are
    /// smaller.
    pub(super) const RESULTS: usize = 64;
}

/// The results of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Busy {
    /// Clocks until the last workgroup ended
    pub(crate) clocks: f64,
    /// Busy clocks of the average SIMD's matrix unit and vector unit, which determine the power
    pub(crate) average_matrix: f64,
    pub(crate) average_vector: f64,
    /// Busy clocks of the busiest SIMD's matrix unit and vector unit, of LDS, of the address unit,
    /// and of the paths to the caches and to memory
    pub(crate) matrix: f64,
    pub(crate) vector: f64,
    pub(crate) lds: f64,
    pub(crate) addresses: f64,
    pub(crate) cache: f64,
    pub(crate) memory: f64,
}

struct Wave {
    group: usize,
    simd: usize,
    at: usize,
    /// Completion times of outstanding accesses, in order
    vector: VecDeque<f64>,
    scalar: VecDeque<f64>,
    results: [f64; fixed::RESULTS],
}

struct Group {
    waves: u32,
    /// Waves that wait at the barrier, and the time at which the last of them arrived
    waiting: Vec<usize>,
    latest: f64,
}

/// A resource that serves one request at a time, in order.
#[derive(Clone, Copy, Default)]
struct Server {
    free: f64,
    busy: f64,
}

impl Server {
    /// Serves a request of `clocks` that arrives at `time`. Returns the time at which service
    /// begins.
    fn serve(&mut self, time: f64, clocks: f64) -> f64 {
        let start = time.max(self.free);
        self.free = start + clocks;
        self.busy += clocks;
        start
    }
}

/// Accumulates the share of executions of a load that miss, so that misses occur together: an
/// execution either hits in all of its lines or misses several at once.
#[derive(Clone, Copy, Default)]
struct Due(f64);

impl Due {
    /// Returns the number of lines that this execution of a load misses, given the mean over all
    /// executions and the share of executions that miss any.
    fn take(&mut self, mean: f32, share: f32) -> f64 {
        if mean <= 0.0 {
            return 0.0;
        }
        // The recorded share is rounded, and may be 0.
        let share = f64::from(share).max(0.005);
        self.0 += share;
        if self.0 + 1e-6 < 1.0 {
            return 0.0;
        }
        self.0 -= 1.0;
        f64::from(mean) / share
    }
}

/// Converts a time to its key in the queue of waves, in sixteenths of a clock.
fn key(time: f64) -> u64 {
    (time * 16.0) as u64
}

struct Simulation<'a> {
    unit: Unit,
    instructions: &'a [Instruction],
    way: &'a [u32],
    waves_per_group: u32,
    left: u64,
    waves: Vec<Wave>,
    groups: Vec<Group>,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// For each instruction: the accumulated misses of the first-level cache, and of the
    /// second-level cache
    due: Vec<[Due; 2]>,
    load: [u32; fixed::SIMDS],
    vector: [Server; fixed::SIMDS],
    matrix: [Server; fixed::SIMDS],
    lds: Server,
    addresses: Server,
    cache: Server,
    far: Server,
    dispatcher: Server,
    end: f64,
    /// Busy clocks of vector instructions on all SIMDs, without the issue turns of matrix
    /// instructions
    arithmetic: f64,
}

/// Simulates `groups` workgroups of `waves` waves, of which `resident` run at a time.
pub(crate) fn run(
    unit: Unit,
    instructions: &[Instruction],
    way: &[u32],
    waves: u32,
    resident: u64,
    groups: u64,
) -> Busy {
    let mut simulation = Simulation {
        unit,
        instructions,
        way,
        waves_per_group: waves.max(1),
        left: groups,
        waves: Vec::new(),
        groups: Vec::new(),
        queue: BinaryHeap::new(),
        due: vec![[Due::default(); 2]; instructions.len()],
        load: [0; fixed::SIMDS],
        vector: [Server::default(); fixed::SIMDS],
        matrix: [Server::default(); fixed::SIMDS],
        lds: Server::default(),
        addresses: Server::default(),
        cache: Server::default(),
        far: Server::default(),
        dispatcher: Server::default(),
        end: 0.0,
        arithmetic: 0.0,
    };
    for _ in 0..resident.min(groups) {
        simulation.begin(0.0, None);
    }
    while let Some(Reverse((time, wave))) = simulation.queue.pop() {
        simulation.step(time as f64 / 16.0, wave);
    }
    simulation.busy()
}

impl Simulation<'_> {
    /// Starts a workgroup. If `place` is given, the workgroup at that index has ended and is
    /// replaced.
    fn begin(&mut self, time: f64, place: Option<usize>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let time = self.dispatcher.serve(time, self.unit.dispatch) + self.unit.dispatch;
        let fresh = Group {
            waves: self.waves_per_group,
            waiting: Vec::new(),
            latest: 0.0,
        };
        let group = place.unwrap_or(self.groups.len());
        match self.groups.get_mut(group) {
            Some(old) => *old = fresh,
            None => self.groups.push(fresh),
        }
        let count = self.waves_per_group as usize;
        for number in 0..count {
            let simd = (0..fixed::SIMDS).min_by_key(|&simd| self.load[simd]).unwrap_or(0);
            self.load[simd] += 1;
            let wave = Wave {
                group,
                simd,
                at: 0,
                vector: VecDeque::new(),
                scalar: VecDeque::new(),
                results: [0.0; fixed::RESULTS],
            };
            let index = group * count + number;
            match self.waves.get_mut(index) {
                Some(old) => *old = wave,
                None => self.waves.push(wave),
            }
            self.queue.push(Reverse((key(time), index)));
        }
    }

    /// Executes the next instruction of a wave.
    fn step(&mut self, time: f64, index: usize) {
        let wave = &mut self.waves[index];
        let Some(&number) = self.way.get(wave.at) else {
            self.finish(time, index);
            return;
        };
        let Instruction { step, after } = self.instructions[number as usize];
        let mut time = time;
        let slot = wave.at % fixed::RESULTS;
        if after > 0 {
            let made = wave.results[(wave.at + fixed::RESULTS - usize::from(after)) % fixed::RESULTS];
            // An accumulator is forwarded to the next matrix instruction.
            let late = if matches!(step, Step::Mfma { .. }) {
                fixed::MATRIX_RESULT
            } else {
                0.0
            };
            time = time.max(made - late);
        }
        let simd = wave.simd;
        let free = match step {
            Step::Mfma { .. } => self.matrix[simd].free,
            Step::Packed => self.matrix[simd].free + fixed::AFTER_MATRIX,
            _ => 0.0,
        };
        // The issue turn stays available to other waves until then.
        if key(free.max(time)) > key(time) {
            self.queue.push(Reverse((key(free.max(time)) + 1, index)));
            return;
        }
        let wave = &mut self.waves[index];
        wave.results[slot] = 0.0;
        wave.at += 1;
        let next = match step {
            Step::Valu(_) | Step::Exp | Step::Packed => {
                let clocks = match step {
                    Step::Valu(clocks) => f64::from(clocks),
                    Step::Packed => fixed::ISSUE,
                    _ => fixed::EXPONENTIAL,
                };
                self.arithmetic += clocks;
                self.vector[simd].serve(time, clocks) + clocks
            }
            Step::Mfma { clocks, operands } => {
                let clocks = f64::from(clocks);
                let start = self.vector[simd].serve(time, held(clocks, operands));
                self.matrix[simd].serve(start, clocks);
                wave.results[slot] = start + clocks + fixed::MATRIX_RESULT;
                start + fixed::ISSUE
            }
            Step::Salu => time + fixed::ISSUE,
            Step::Lds { bytes, conflicts } => {
                let turns = f64::from((bytes / fixed::LDS_BYTES).max(1.0) + conflicts);
                let start = self.lds.serve(time, turns);
                in_order(&mut wave.scalar, start + turns + fixed::LDS);
                start + fixed::ISSUE
            }
            Step::Load {
                dwords,
                segments,
                missed,
                fresh,
                misses,
                freshes,
                ..
            } => {
                let clocks = (fixed::REGISTER * f64::from(dwords)).max(segments.into());
                let start = self.addresses.serve(time, clocks);
                let due = &mut self.due[number as usize];
                let missed = due[0].take(missed, misses);
                let fresh = due[1].take(fresh, freshes);
                let mut done = start + clocks + fixed::FIRST_LEVEL;
                if missed > 0.0 {
                    let turns = missed * fixed::LINE / self.unit.cache_rate;
                    let ready = self.cache.serve(start, turns) + turns;
                    done = done.max(ready + fixed::FIRST_LEVEL) + self.unit.near * missed.min(1.0);
                }
                if fresh > 0.0 {
                    let turns = fresh * fixed::LINE / self.unit.far_rate;
                    let ready = self.far.serve(start, turns) + turns;
                    done = done.max(ready + fixed::FIRST_LEVEL + self.unit.near) + self.unit.far * fresh.min(1.0);
                }
                in_order(&mut wave.vector, done);
                start + fixed::ISSUE
            }
            Step::Store {
                dwords,
                bytes,
                segments,
                ..
            } => {
                let clocks = (self.unit.store_clocks * f64::from(dwords)).max(segments.into());
                let start = self.addresses.serve(time, clocks);
                let turns = f64::from(bytes) / self.unit.store_rate;
                let done = self.far.serve(start, turns) + turns;
                in_order(&mut wave.vector, done + fixed::FIRST_LEVEL + self.unit.near);
                start + fixed::ISSUE
            }
            Step::Atomic { lanes, lines } => {
                let start = self.addresses.serve(time, f64::from(lanes.max(1.0)));
                let turns = f64::from(lines) * fixed::LINE / self.unit.cache_rate;
                let done = self.cache.serve(start, turns) + turns + fixed::FIRST_LEVEL + self.unit.near;
                in_order(&mut wave.vector, done);
                start + fixed::ISSUE
            }
            Step::Scratch { dwords, lanes } => {
                let clocks = fixed::REGISTER * f64::from(dwords);
                let start = self.addresses.serve(time, clocks);
                // The same dword of all lanes is contiguous, so whole lines are accessed.
                let bytes = 4.0 * f64::from(dwords) * f64::from(lanes);
                let turns = bytes / self.unit.cache_rate;
                let mut done = self.cache.serve(start, turns) + turns + fixed::FIRST_LEVEL + self.unit.near;
                let beyond = bytes * self.unit.scratch_beyond / self.unit.far_rate;
                if beyond > 0.0 {
                    let ready = self.far.serve(start, beyond) + beyond;
                    done = done.max(ready + fixed::FIRST_LEVEL + self.unit.near + self.unit.far);
                }
                in_order(&mut wave.vector, done);
                start + fixed::ISSUE
            }
            Step::Scalar => {
                in_order(&mut wave.scalar, time + fixed::SCALAR);
                time + fixed::ISSUE
            }
            Step::Branch => time + fixed::BRANCH,
            Step::Nop(count) => time + fixed::NOP * f64::from(count),
            Step::Wait(vector, scalar) => {
                let until = wait(&mut wave.vector, vector).max(wait(&mut wave.scalar, scalar));
                time.max(until)
            }
            Step::Barrier => {
                self.arrive(time, index);
                return;
            }
            Step::End => {
                self.finish(time, index);
                return;
            }
        };
        self.queue.push(Reverse((key(next), index)));
    }

    fn arrive(&mut self, time: f64, index: usize) {
        let group = &mut self.groups[self.waves[index].group];
        group.waiting.push(index);
        group.latest = group.latest.max(time);
        self.release(self.waves[index].group);
    }

    /// Releases the waves of a workgroup from the barrier if all of them have arrived.
    fn release(&mut self, group: usize) {
        let group = &mut self.groups[group];
        if !group.waiting.is_empty() && group.waiting.len() as u32 >= group.waves {
            for wave in group.waiting.drain(..) {
                self.queue.push(Reverse((key(group.latest + fixed::ISSUE), wave)));
            }
            group.latest = 0.0;
        }
    }

    fn finish(&mut self, time: f64, index: usize) {
        let (place, simd) = (self.waves[index].group, self.waves[index].simd);
        self.load[simd] = self.load[simd].saturating_sub(1);
        self.end = self.end.max(time);
        let group = &mut self.groups[place];
        group.waves -= 1;
        if group.waves == 0 {
            self.begin(time, Some(place));
        } else {
            self.release(place);
        }
    }

    fn busy(&self) -> Busy {
        let most = |servers: &[Server]| servers.iter().map(|server| server.busy).fold(0.0, f64::max);
        let mean = |servers: &[Server]| servers.iter().map(|server| server.busy).sum::<f64>() / fixed::SIMDS as f64;
        Busy {
            clocks: self.end.max(self.far.free),
            average_matrix: mean(&self.matrix),
            average_vector: self.arithmetic / fixed::SIMDS as f64,
            matrix: most(&self.matrix),
            vector: most(&self.vector),
            lds: self.lds.busy,
            addresses: self.addresses.busy,
            cache: self.cache.busy,
            memory: self.far.busy,
        }
    }
}

/// Returns the clocks for which a matrix instruction blocks vector instructions of all waves on its
/// SIMD: one issue turn; for f32 and f64, which execute on the vector unit, its own clocks and two
/// turns. Source: LLVM's pull request 233721, "Add MFMA VALU and packed-VALU issue cycle helpers",
/// by thread traces of gfx942; operands of at most 8 bytes per lane. xf32 counts as f32 here.
fn held(clocks: f64, operands: Operands) -> f64 {
    match operands {
        Operands::Wide => clocks + 2.0 * fixed::ISSUE,
        Operands::Bf16 | Operands::F16 | Operands::Byte => fixed::ISSUE,
    }
}

/// Adds an access that completes at `done`, but not before earlier accesses of its kind.
fn in_order(queue: &mut VecDeque<f64>, done: f64) {
    let last = queue.back().copied().unwrap_or(0.0);
    queue.push_back(done.max(last));
}

/// Returns the time at which at most `left` accesses are outstanding.
fn wait(queue: &mut VecDeque<f64>, left: Option<u8>) -> f64 {
    let Some(left) = left else { return 0.0 };
    let mut time = 0.0;
    while queue.len() > usize::from(left) {
        time = queue.pop_front().unwrap_or(0.0);
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the clocks of a workgroup of five waves, two of which share a SIMD, that execute 8
    /// matrix instructions and then 8 times `step`.
    fn beside(step: Step) -> f64 {
        let unit = Unit {
            near: 0.0,
            far: 0.0,
            cache_rate: 64.0,
            far_rate: 64.0,
            store_rate: 64.0,
            store_clocks: 4.0,
            dispatch: 0.0,
            scratch_beyond: 0.0,
        };
        let matrix = Step::Mfma {
            clocks: 32,
            operands: Operands::Bf16,
        };
        let instructions = [matrix, step].map(|step| Instruction { step, after: 0 });
        let way = [[0; 8], [1; 8]].concat();
        run(unit, &instructions, &way, 5, 1, 1).clocks
    }

    #[test]
    fn vector_instructions_run_beside_matrix_instructions_unless_they_are_packed() {
        // Two waves share a SIMD: 16 matrix instructions take 512 clocks.
        let vector = beside(Step::Valu(4));
        assert!(vector < 512.0 + 50.0, "{vector}");
        let packed = beside(Step::Packed);
        assert!(packed > vector + 8.0, "{packed}, {vector}");
    }

    #[test]
    fn misses_come_together_as_often_as_they_did() {
        let mut due = Due::default();
        let found: Vec<f64> = (0..8).map(|_| due.take(2.0, 0.25)).collect();
        assert_eq!(found, [0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 8.0]);
        assert_eq!(due.take(3.0, 1.0), 3.0);
        assert_eq!(Due(0.9).take(0.0, 0.0), 0.0);
    }
}
