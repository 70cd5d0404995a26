//! Launches: distributes workgroups over threads, runs the waves of a workgroup one after the other
//! between barriers, and sets their initial registers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use rotini_time::Residence;

use crate::{
    error::{Fault, Trap},
    executions::Executions,
    inst::{Program, sgpr},
    lanes::Mode,
    memory::{Global, KERNARG, Lds, Memory},
    object::Kernel,
    profile::{DIES, Groups, Profile, Sample, UNITS},
    report::{Report, occupancy},
    run::{Stop, run},
    wave::{Context, Wave},
};

/// One launch of a kernel.
pub struct Launch<'a> {
    /// Kernel
    pub kernel: &'a Kernel,
    /// Workgroups in x, y, z
    pub grid: [u32; 3],
    /// Lanes of a workgroup in x, y, z
    pub block: [u32; 3],
    /// LDS bytes beyond the kernel's own
    pub dynamic_lds: u32,
    /// Kernel arguments as the metadata lays them out
    pub kernarg: &'a [u8],
    /// Device memory
    pub memory: &'a dyn Memory,
    /// Faults on what the hardware leaves undefined (see the module `strict`), and on texts that do
    /// not assemble to the kernel's bytes
    pub strict: bool,
    /// Threads that workgroups are spread over; at least 1
    pub threads: usize,
    /// Seed of the order in which workgroups start; `None`: in the order of their numbers. Samples
    /// ignore the seed
    pub order: Option<u64>,
    /// Maximum number of instructions that a wave may run in loops before the launch fails as
    /// endless; `None`: [`LIMIT`]
    pub limit: Option<u64>,
    /// Counts for the time model, on a sample of the workgroups: **the kernel's results are then
    /// meaningless**. Not strict, and on one thread
    pub sample: Option<Sample>,
}

/// Default limit of instructions that a wave may run in loops. It corresponds to minutes of work:
/// no kernel of a convolution or product comes near.
pub const LIMIT: u64 = 1 << 31;

impl Launch<'_> {
    /// Runs the kernel to its end.
    ///
    /// # Errors
    ///
    /// [`Fault`]: the kernel does not decode, the launch does not fit it, or an instruction
    /// trapped. If several workgroups trap, one is reported; stores of other workgroups remain.
    pub fn run(&self) -> Result<Report, Fault> {
        let start = Instant::now();
        let program = self.kernel.program()?;
        if let Some(sample) = self.sample {
            return self.run_sampled(program, sample);
        }
        if self.strict {
            self.kernel.reassemble()?;
        }
        let lanes = self.lanes()?;
        let lds = self.kernel.lds_bytes.saturating_add(self.dynamic_lds);
        let groups = product(self.grid).ok_or_else(|| self.refused("more than 2^64 workgroups".to_owned()))?;
        let order = self.order.map(|seed| Order::new(seed, groups)).unwrap_or_default();
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let total = Mutex::new((Report::default(), None::<Fault>));
        let worker = || {
            let mut worker = Worker::new(self, program, lanes, lds);
            let mut fault = None;
            while !stop.load(Ordering::Relaxed) {
                let group = next.fetch_add(1, Ordering::Relaxed);
                if group >= groups {
                    break;
                }
                if let Err(error) = worker.workgroup(self.place(order.group(group, groups))) {
                    stop.store(true, Ordering::Relaxed);
                    fault = Some(error);
                }
            }
            worker.context.executions.report(program, &mut worker.context.report);
            if let Ok(mut total) = total.lock() {
                total.0.add(&worker.context.report);
                total.1 = total.1.take().or(fault);
            }
        };
        let threads = self
            .threads
            .clamp(1, usize::try_from(groups).unwrap_or(usize::MAX).max(1));
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(worker);
            }
            worker();
        });
        let (mut report, fault) = total.into_inner().unwrap_or_default();
        if let Some(fault) = fault {
            return Err(fault);
        }
        self.describe(&mut report, lanes, lds);
        report.time = start.elapsed();
        Ok(report)
    }

    /// Runs a sample of the workgroups, for the time model.
    fn run_sampled(&self, program: &Program, sample: Sample) -> Result<Report, Fault> {
        let start = Instant::now();
        let lanes = self.lanes()?;
        let lds = self.kernel.lds_bytes.saturating_add(self.dynamic_lds);
        let groups = product(self.grid).ok_or_else(|| self.refused("more than 2^64 workgroups".to_owned()))?;
        let launch = Launch {
            strict: false,
            threads: 1,
            memory: self.memory,
            ..*self
        };
        let residence = Residence {
            waves: lanes.div_ceil(64),
            registers: self.kernel.vgprs,
            scalars: self.kernel.sgprs,
            lds,
            scratch: self.kernel.scratch_bytes,
        };
        let mut worker = Worker::new(&launch, program, lanes, lds);
        let resident = u64::from(residence.workgroups()).min(groups.div_ceil(DIES * UNITS));
        let mut work = BTreeMap::new();
        if groups > 0 {
            work = worker.work(groups, sample.enough)?;
            worker.context.executions = Executions::new(program);
            worker.context.report = Report::default();
            let chosen = Groups::new(sample, resident, groups, typical(&work));
            worker.profile = Some(Box::new(Profile::new(program, &chosen, resident, sample.enough)));
            for group in chosen.iter() {
                if let Some(profile) = &mut worker.profile {
                    if profile.ends_before(group) {
                        break;
                    }
                    profile.begin(group);
                }
                worker.workgroup(self.place(group))?;
            }
        }
        let context = &mut worker.context;
        context.executions.report(program, &mut context.report);
        let mut report = std::mem::take(&mut context.report);
        report.record = worker
            .profile
            .take()
            .map(|profile| Arc::new(profile.record(program, residence, &self.kernel.name, self.memory, groups)));
        if let Some(record) = report.record.as_mut().and_then(Arc::get_mut)
            && let Some(followed) = typical(&work).and_then(|group| work.get(&group))
        {
            let of = (*followed).max(1) as f32;
            let relative = |(&group, &count): (&u64, &u64)| (group, count as f32 / of);
            record.work = work.iter().map(relative).collect();
        }
        self.describe(&mut report, lanes, lds);
        report.time = start.elapsed();
        Ok(report)
    }

    /// Fills in the part of a report that follows from the launch alone.
    fn describe(&self, report: &mut Report, lanes: u32, lds: u32) {
        let kernel = self.kernel;
        report.kernel.clone_from(&kernel.name);
        (report.vgprs, report.agprs, report.sgprs) = (kernel.vgprs, kernel.agprs, kernel.sgprs);
        (report.lds_bytes, report.scratch_bytes) = (lds, kernel.scratch_bytes);
        report.occupancy = occupancy(kernel.vgprs, kernel.sgprs, lds, lanes.div_ceil(64));
    }

    /// Returns the position of a workgroup in the grid.
    fn place(&self, group: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(group % x) as u32, (group / x % y) as u32, (group / x / y) as u32]
    }

    /// Checks that the launch fits the kernel, and returns the number of lanes of a workgroup.
    fn lanes(&self) -> Result<u32, Fault> {
        let refuse = |what: String| Err(self.refused(what));
        let lanes = product(self.block).unwrap_or(u64::MAX);
        if lanes == 0 || lanes > u64::from(self.kernel.max_workgroup) {
            return refuse(format!(
                "a workgroup of {lanes} lanes, of at most {}",
                self.kernel.max_workgroup
            ));
        }
        if let Some(required) = self.kernel.required_workgroup
            && required != self.block
        {
            return refuse(format!("a workgroup of {:?} lanes instead of {required:?}", self.block));
        }
        if (self.kernarg.len() as u64) < u64::from(self.kernel.kernarg_bytes) {
            return refuse(format!(
                "{} bytes of arguments instead of {}",
                self.kernarg.len(),
                self.kernel.kernarg_bytes
            ));
        }
        if u64::from(self.kernel.lds_bytes) + u64::from(self.dynamic_lds) > 65536 {
            return refuse("more than 64 KiB of LDS".to_owned());
        }
        // The hardware has at most 8 MiB per wave: 128 KiB per lane.
        if self.kernel.scratch_bytes > 128 << 10 {
            return refuse("more than 128 KiB of private memory a lane".to_owned());
        }
        Ok(lanes as u32)
    }

    /// Returns the offset of the dispatch packet, which follows the arguments.
    fn packet_offset(&self) -> usize {
        self.kernarg.len().next_multiple_of(64)
    }

    /// Returns the arguments, followed by the dispatch packet (`hsa_kernel_dispatch_packet_t`) if
    /// the kernel asks for it.
    fn arguments(&self) -> Vec<u8> {
        let mut bytes = self.kernarg.to_vec();
        if self.kernel.setup.packet {
            bytes.resize(self.packet_offset() + 64, 0);
            let mut put = |at: usize, value: &[u8]| {
                let at = self.packet_offset() + at;
                bytes[at..at + value.len()].copy_from_slice(value);
            };
            // Header of a kernel dispatch; three dimensions.
            put(0, &2_u16.to_le_bytes());
            put(2, &3_u16.to_le_bytes());
            for (axis, (lanes, groups)) in self.block.into_iter().zip(self.grid).enumerate() {
                put(4 + 2 * axis, &(lanes as u16).to_le_bytes());
                put(12 + 4 * axis, &lanes.saturating_mul(groups).to_le_bytes());
            }
            put(24, &self.kernel.scratch_bytes.to_le_bytes());
            put(28, &(self.kernel.lds_bytes + self.dynamic_lds).to_le_bytes());
            put(40, &KERNARG.to_le_bytes());
        }
        bytes
    }

    fn refused(&self, what: String) -> Fault {
        Fault::Launch {
            kernel: self.kernel.name.clone(),
            what,
        }
    }
}

/// Returns the product of sizes in x, y, z; `None` if it exceeds 64 bits.
fn product(sizes: [u32; 3]) -> Option<u64> {
    sizes
        .iter()
        .try_fold(1_u64, |product, &size| product.checked_mul(size.into()))
}

/// A permutation of the workgroups: position p runs workgroup `first + p * step`, modulo their
/// number.
#[derive(Clone, Copy)]
struct Order {
    first: u64,
    step: u64,
}

impl Default for Order {
    fn default() -> Self {
        Order { first: 0, step: 1 }
    }
}

impl Order {
    /// Returns an order of `groups` workgroups. It reaches all of them, since the step is coprime
    /// to their number.
    fn new(seed: u64, groups: u64) -> Self {
        let groups = groups.max(1);
        // Multiplication by 2^64 divided by the golden ratio spreads consecutive seeds apart.
        let random = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let first = random % groups;
        let mut step = random.rotate_left(32) % groups;
        while common_factor(step, groups) != 1 {
            step += 1;
        }
        Order { first, step }
    }

    fn group(self, position: u64, groups: u64) -> u64 {
        let number = u128::from(self.first) + u128::from(position) * u128::from(self.step);
        (number % u128::from(groups)) as u64
    }
}

/// Returns the greatest common divisor of two numbers.
fn common_factor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_factor(b, a % b) }
}

/// The state of a thread, which runs one workgroup after the other.
struct Worker<'a> {
    launch: &'a Launch<'a>,
    context: Context<'a>,
    waves: Vec<Wave>,
    lanes: u32,
    /// Counts of a sampled run
    profile: Option<Box<Profile>>,
}

impl<'a> Worker<'a> {
    fn new(launch: &'a Launch<'a>, program: &'a Program, lanes: u32, lds: u32) -> Self {
        let memory = Global::new(launch.memory, launch.arguments());
        let context = Context::new(
            program,
            memory,
            Lds::new(lds, launch.strict),
            launch.limit.unwrap_or(LIMIT),
        );
        let waves = (0..lanes.div_ceil(64))
            .map(|n| Wave::new(program, n, launch.kernel.scratch_bytes))
            .collect();
        Self {
            launch,
            context,
            waves,
            lanes,
            profile: None,
        }
    }

    /// Runs a workgroup: every wave up to its next barrier, repeatedly.
    fn workgroup(&mut self, group: [u32; 3]) -> Result<(), Fault> {
        self.context.lds.reset();
        for wave in &mut self.waves {
            wave.reset();
            start(wave, self.launch, group, self.lanes);
        }
        self.context.report.workgroups += 1;
        self.context.report.waves += self.waves.len() as u64;
        let mut ended = vec![false; self.waves.len()];
        while ended.iter().any(|ended| !ended) {
            // Waves that have ended count as arrived.
            let mut met = None::<(u32, usize)>;
            for (wave, ended) in self.waves.iter_mut().zip(&mut ended).filter(|(_, ended)| !**ended) {
                let stop = if self.profile.is_some() {
                    run::<false, true>(wave, &mut self.context, self.profile.as_deref_mut())
                } else if self.launch.strict {
                    run::<true, false>(wave, &mut self.context, None)
                } else {
                    run::<false, false>(wave, &mut self.context, None)
                };
                let program = self.context.program;
                let stop = stop.and_then(|stop| match (stop, met) {
                    (Stop::Barrier(at), Some((other, pc))) if self.launch.strict && at != pc => {
                        let address = program.addresses.get(pc).copied().unwrap_or(0);
                        Err(Trap::Barrier { other, address })
                    }
                    _ => Ok(stop),
                });
                match stop {
                    Ok(Stop::End) => *ended = true,
                    Ok(Stop::Barrier(pc)) => met = met.or(Some((wave.number, pc))),
                    Err(trap) => return Err(fault(self.launch.kernel, program, wave, group, trap)),
                }
            }
            self.context.lds.barrier();
        }
        Ok(())
    }
}

/// Maximum number of workgroups whose work is counted.
const MOST_WORK: u64 = 96;
/// Relative difference in work below which workgroups count as equal.
const EVEN: f32 = 0.02;

/// Returns the workgroup whose work is nearest to the mean; `None` if all have the same.
///
/// The middle one of the grid need not be typical: where the tiles of a head follow each other, as
/// below a causal mask, work is a sawtooth.
fn typical(work: &BTreeMap<u64, u64>) -> Option<u64> {
    let mean = work.values().sum::<u64>() / (work.len() as u64).max(1);
    work.iter()
        .min_by_key(|(_, count)| count.abs_diff(mean))
        .map(|(&group, _)| group)
}

impl Worker<'_> {
    /// Returns the work of workgroups spread over the grid, in executed instructions by workgroup
    /// number; empty if all have the same. Stops after `enough` instructions, but not before the
    /// first, the last and three more.
    fn work(&mut self, groups: u64, enough: u64) -> Result<BTreeMap<u64, u64>, Fault> {
        let mut found = BTreeMap::new();
        let middle = self.instructions(groups / 2)?.max(1);
        let is_even = |found: &BTreeMap<u64, u64>| {
            let mut relative = found.values().map(|&count| count as f32 / middle as f32);
            relative.all(|work| (work - 1.0).abs() < EVEN)
        };
        let mut spent = middle;
        for number in 0..MOST_WORK.min(groups) {
            if number >= 5 && (is_even(&found) || spent > enough) {
                break;
            }
            let group = match number {
                0 => 0,
                1 => groups - 1,
                // Golden-ratio steps do not alias with a power of two in the grid's order.
                _ => ((number as f64 * 0.618_033_988_749_895).fract() * groups as f64) as u64,
            };
            let count = self.instructions(group)?;
            spent = spent.saturating_add(count);
            found.insert(group, count);
        }
        Ok(if is_even(&found) { BTreeMap::new() } else { found })
    }

    /// Returns the number of instructions that the waves of a workgroup execute.
    fn instructions(&mut self, group: u64) -> Result<u64, Fault> {
        let program = self.context.program;
        self.context.executions = Executions::new(program);
        self.workgroup(self.launch.place(group))?;
        let mut report = Report::default();
        self.context.executions.report(program, &mut report);
        Ok(report.instructions.iter().sum())
    }
}

/// Sets a wave's registers at launch: arguments, workgroup, lane numbers, lanes, MODE.
fn start(wave: &mut Wave, launch: &Launch<'_>, group: [u32; 3], lanes: u32) {
    let setup = launch.kernel.setup;
    wave.mode = Mode(setup.mode);
    let mut next = 0_usize;
    for (wanted, address) in [
        (setup.packet, KERNARG + launch.packet_offset() as u64),
        (setup.kernarg, KERNARG),
    ] {
        if wanted {
            wave.set_pair(next as u8, address);
            next += 2;
        }
    }
    wave.tracker.define_scalars(0, next);
    // The prologue at the kernel's entry loads the preloaded arguments.
    next = usize::from(setup.user_scalars).max(next);
    for (axis, &id) in group.iter().enumerate() {
        if setup.workgroup_ids[axis] {
            wave.scalars[next & 0x7f] = id;
            wave.tracker.define_scalars(next, 1);
            next += 1;
        }
    }
    let first = wave.number * 64;
    let count = (lanes - first).min(64);
    wave.set_pair(sgpr::EXEC, if count == 64 { u64::MAX } else { (1 << count) - 1 });
    wave.tracker.define_scalars(sgpr::EXEC.into(), 2);
    let [x, y, _] = launch.block;
    if let Some(row) = wave.rows.first_mut() {
        for (lane, value) in row.iter_mut().enumerate() {
            let id = first + lane as u32;
            let mut packed = id % x;
            if setup.work_item_ids >= 1 {
                packed |= (id / x % y) << 10;
            }
            if setup.work_item_ids >= 2 {
                packed |= (id / x / y) << 20;
            }
            *value = packed;
        }
    }
    wave.tracker.define_row(0);
}

fn fault(kernel: &Kernel, program: &Program, wave: &Wave, workgroup: [u32; 3], trap: Trap) -> Fault {
    let pc = wave.pc.saturating_sub(1);
    Fault::Trap {
        kernel: kernel.name.clone(),
        workgroup,
        wave: wave.number,
        address: program.addresses.get(pc).copied().unwrap_or(0),
        instruction: program.texts.get(pc).cloned().unwrap_or_default(),
        trap,
    }
}
