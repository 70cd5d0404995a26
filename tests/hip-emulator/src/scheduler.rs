//! Decides when which command runs.
//!
//! | Mode | Who runs commands | Order |
//! |---|---|---|
//! | plain | one thread per stream, started by its first command | a stream's own; streams run side by side |
//! | seeded | one thread for all | a stream's own; the generator picks among the streams whose next command may run; the workgroups of a launch begin in an order that the seed gives |
//!
//! Commands wait for points in other streams, which were all submitted earlier: waiting cannot be
//! circular. The null stream's rule is such points: its commands wait for all blocking streams of
//! its device, and theirs for it.
//!
//! The seeded mode runs as little as the API allows. Submitting sometimes lets a few commands run,
//! and returns when they have; whoever waits for the device lets it run until what he waits for is
//! done; and some milliseconds without progress let one command run, for programs that look at
//! memory instead. One thread's calls therefore give one order per seed; with several threads it
//! also depends on them.

use crate::config;
use crate::device::{Device, Submitter};
use crate::execute;
use crate::kernels;
use crate::stream::{Point, Stream};
use crate::work::Work;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Points that a command waits for.
pub(crate) type Points = SmallVec<[Point; 2]>;

/// How long a stream's thread looks for more before it sleeps: some ten microseconds, less than
/// waking it costs its submitter.
const SPINS: u32 = 300;
/// Without any progress for that long, the seeded mode lets a command run.
const PATIENCE: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Command {
    work: Work,
    submitter: Submitter,
    after: Points,
}

#[derive(Debug)]
struct Queue {
    stream: &'static Stream,
    commands: VecDeque<Command>,
    /// Its command runs now.
    busy: bool,
    /// It has a thread, which sleeps or not.
    thread: bool,
    parked: bool,
    /// The stream was destroyed: the queue goes when it is empty.
    closed: bool,
}

impl Queue {
    fn is_ready(&self) -> bool {
        !self.busy
            && self
                .commands
                .front()
                .is_some_and(|command| command.after.iter().all(Point::is_reached))
    }
}

/// The state of the seeded mode.
#[derive(Debug)]
struct Seeded {
    random: ChaCha8Rng,
    /// Commands that may run now.
    tickets: u32,
    /// Hosts that wait for the device.
    demand: u32,
    /// How much a stream is preferred.
    favour: HashMap<u64, u32>,
    /// Identifies the order so far.
    order: u64,
    /// Streams by their first command since the seed was set, so that an order's identity is the
    /// same in every run.
    names: HashMap<u64, u64>,
}

#[derive(Debug, Default)]
struct State {
    queues: BTreeMap<u64, Queue>,
    waiting: u32,
    seeded: Option<Seeded>,
    central: bool,
}

/// All streams' queues.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    /// Wakes hosts that wait.
    hosts: Condvar,
    /// Wakes the thread of the seeded mode.
    central: Condvar,
    seeded: AtomicBool,
}

static SCHEDULER: OnceLock<&'static Scheduler> = OnceLock::new();

/// The scheduler, which starts with its first use, in the mode that the set-up says.
#[inline]
pub(crate) fn get() -> &'static Scheduler {
    SCHEDULER.get_or_init(|| {
        let scheduler: &'static Scheduler = Box::leak(Box::new(Scheduler::new()));
        if let Some(seed) = config::get().seed {
            scheduler.set_seed(Some(seed));
        }
        scheduler
    })
}

impl Scheduler {
    fn new() -> Self {
        Scheduler {
            state: Mutex::default(),
            hosts: Condvar::new(),
            central: Condvar::new(),
            seeded: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        condition.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn is_seeded(&self) -> bool {
        self.seeded.load(Ordering::Relaxed)
    }

    /// Appends work to a stream, after what the stream holds and the points.
    pub(crate) fn submit(&'static self, stream: &'static Stream, work: Work, after: &[Point]) {
        let device = stream.device;
        let mut state = self.lock();
        let mut points: Points = after.iter().filter(|point| !point.is_reached()).copied().collect();
        if stream.is_null() {
            let others = state.queues.values().map(|queue| queue.stream);
            let blocking = others.filter(|other| other.is_blocking() && other.device.ordinal == device.ordinal);
            points.extend(blocking.map(Stream::point).filter(|point| !point.is_reached()));
        } else if stream.is_blocking() {
            points.extend(Some(device.null().point()).filter(|point| !point.is_reached()));
            device.blocking.fetch_add(1, Ordering::AcqRel);
        }
        let number = stream.submitted.fetch_add(1, Ordering::AcqRel) + 1;
        if let Work::Event(record) = &work {
            record.place(Point { stream, number });
        }
        let queue = state.queues.entry(stream.id).or_insert_with(|| Queue {
            stream,
            commands: VecDeque::new(),
            busy: false,
            thread: false,
            parked: false,
            closed: false,
        });
        queue.commands.push_back(Command {
            work,
            submitter: Submitter::current(),
            after: points,
        });
        if state.seeded.is_some() {
            self.grant(state);
            return;
        }
        if let Some(queue) = state.queues.get_mut(&stream.id) {
            self.start(queue);
        }
    }

    /// Sees to it that a stream's thread looks at its queue.
    fn start(&'static self, queue: &mut Queue) {
        if !queue.thread {
            let id = queue.stream.id;
            let thread = std::thread::Builder::new().name(format!("hipemu-{id}"));
            match thread.spawn(move || self.serve(id)) {
                Ok(_) => queue.thread = true,
                // The next command tries again.
                Err(error) => config::warn(&format!("cannot start a thread: {error}")),
            }
        } else if queue.parked {
            queue.stream.wake.notify_one();
        }
    }

    /// Lets some commands run, or none, and waits for them.
    fn grant(&self, mut state: MutexGuard<'_, State>) {
        let Some(seeded) = &mut state.seeded else { return };
        self.central.notify_one();
        if below(&mut seeded.random, 3) > 0 {
            return;
        }
        seeded.tickets += 1 + below(&mut seeded.random, 4);
        while state.seeded.as_ref().is_some_and(|seeded| seeded.tickets > 0) {
            state.waiting += 1;
            state = self.sleep(&self.hosts, state);
            state.waiting -= 1;
        }
    }

    /// Someone looked whether something is done and found that it is not: he may look again and
    /// again.
    pub(crate) fn polled(&self) {
        if self.is_seeded() {
            self.grant(self.lock());
        }
    }

    /// Runs a stream's commands until the stream is gone.
    fn serve(&'static self, id: u64) {
        let mut state = self.lock();
        let mut spun = false;
        loop {
            let seeded = state.seeded.is_some();
            let Some(queue) = state.queues.get_mut(&id) else { return };
            let stream = queue.stream;
            if !seeded
                && queue.is_ready()
                && let Some(command) = queue.commands.pop_front()
            {
                queue.busy = true;
                drop(state);
                execute::run(command.work, stream, command.submitter);
                state = self.lock();
                self.complete(&mut state, stream);
                spun = false;
            } else if queue.closed && queue.commands.is_empty() && !queue.busy {
                state.queues.remove(&id);
                return;
            } else if !spun && !seeded {
                drop(state);
                for _ in 0..SPINS {
                    if !stream.is_idle() {
                        break;
                    }
                    std::hint::spin_loop();
                }
                spun = true;
                state = self.lock();
            } else {
                queue.parked = true;
                state = self.sleep(&stream.wake, state);
                if let Some(queue) = state.queues.get_mut(&id) {
                    queue.parked = false;
                }
            }
        }
    }

    /// Notes that a stream's command is complete, and wakes who may go on.
    fn complete(&self, state: &mut State, stream: &'static Stream) {
        stream.completed.fetch_add(1, Ordering::AcqRel);
        if stream.is_blocking() {
            stream.device.blocking.fetch_sub(1, Ordering::AcqRel);
        }
        if let Some(queue) = state.queues.get_mut(&stream.id) {
            queue.busy = false;
        }
        if state.waiting > 0 {
            self.hosts.notify_all();
        }
        if state.seeded.is_some() {
            self.central.notify_one();
        } else {
            for queue in state.queues.values().filter(|queue| queue.parked && queue.is_ready()) {
                queue.stream.wake.notify_one();
            }
        }
    }

    /// Waits until a point is reached.
    pub(crate) fn wait(&self, point: Point) {
        if !point.is_reached() {
            self.wait_until(|_| point.is_reached());
        }
    }

    /// Waits until a device has nothing to do.
    pub(crate) fn wait_device(&self, device: &Device) {
        self.wait_until(|state| {
            let mut own = state.queues.values().map(|queue| queue.stream);
            own.all(|stream| stream.device.ordinal != device.ordinal || stream.is_idle())
        });
    }

    fn wait_until(&self, done: impl Fn(&State) -> bool) {
        let mut state = self.lock();
        if let Some(seeded) = &mut state.seeded {
            seeded.demand += 1;
            self.central.notify_one();
        }
        while !done(&state) {
            state.waiting += 1;
            state = self.sleep(&self.hosts, state);
            state.waiting -= 1;
        }
        if let Some(seeded) = &mut state.seeded {
            seeded.demand = seeded.demand.saturating_sub(1);
        }
    }

    /// A stream was destroyed: what it holds still runs.
    pub(crate) fn close(&self, stream: &'static Stream) {
        let mut state = self.lock();
        let Some(queue) = state.queues.get_mut(&stream.id) else {
            return;
        };
        queue.closed = true;
        if queue.thread {
            queue.stream.wake.notify_one();
        } else if stream.is_idle() {
            state.queues.remove(&stream.id);
        }
    }

    /// Waits until nothing is left to do, then changes the mode.
    pub(crate) fn set_seed(&'static self, seed: Option<u64>) {
        self.wait_until(|state| state.queues.values().all(|queue| queue.stream.is_idle()));
        let mut state = self.lock();
        state.queues.retain(|_, queue| !queue.closed || queue.thread);
        state.seeded = seed.map(|seed| Seeded {
            random: ChaCha8Rng::seed_from_u64(seed),
            tickets: 0,
            demand: 0,
            favour: HashMap::new(),
            order: 0xcbf2_9ce4_8422_2325,
            names: HashMap::new(),
        });
        kernels::set_order(seed);
        self.seeded.store(seed.is_some(), Ordering::Relaxed);
        if seed.is_some() && !state.central {
            let thread = std::thread::Builder::new().name("hipemu-seeded".to_owned());
            match thread.spawn(move || self.serve_seeded()) {
                Ok(_) => state.central = true,
                Err(error) => config::warn(&format!("cannot start a thread: {error}")),
            }
        }
        // Who was left over from the other mode looks again.
        self.central.notify_one();
        self.hosts.notify_all();
        for queue in state.queues.values() {
            queue.stream.wake.notify_one();
        }
    }

    /// An index below `count`: the first in plain mode, any in the seeded one.
    pub(crate) fn choose(&self, count: usize) -> usize {
        if !self.is_seeded() {
            return 0;
        }
        let mut state = self.lock();
        match (&mut state.seeded, u32::try_from(count)) {
            (Some(seeded), Ok(count)) => below(&mut seeded.random, count) as usize,
            _ => 0,
        }
    }

    /// Identifies the order in which commands have run since the seed was set; 0 in plain mode.
    pub(crate) fn order(&self) -> u64 {
        self.lock().seeded.as_ref().map_or(0, |seeded| seeded.order)
    }

    /// Runs all streams' commands while the seeded mode is on.
    fn serve_seeded(&'static self) {
        let mut state = self.lock();
        loop {
            let allowed = state
                .seeded
                .as_ref()
                .is_some_and(|seeded| seeded.demand > 0 || seeded.tickets > 0);
            if !allowed {
                let pending = state.seeded.is_some() && state.queues.values().any(|queue| queue.is_ready());
                if pending {
                    let (next, slept) = self
                        .central
                        .wait_timeout(state, PATIENCE)
                        .unwrap_or_else(PoisonError::into_inner);
                    state = next;
                    if slept.timed_out()
                        && let Some(seeded) = &mut state.seeded
                    {
                        seeded.tickets += 1;
                    }
                } else {
                    state = self.sleep(&self.central, state);
                }
                continue;
            }
            let Some((stream, command)) = take(&mut state) else {
                // Nothing may run: whoever waits for tickets to be used has waited long enough.
                if let Some(seeded) = &mut state.seeded {
                    seeded.tickets = 0;
                }
                self.hosts.notify_all();
                state = self.sleep(&self.central, state);
                continue;
            };
            drop(state);
            if command.work.calls_host() {
                // A function of the host may wait for anything, this scheduler included.
                let run = move || {
                    execute::run(command.work, stream, command.submitter);
                    let mut state = self.lock();
                    self.complete(&mut state, stream);
                };
                if let Err(error) = std::thread::Builder::new().name("hipemu-host".to_owned()).spawn(run) {
                    config::warn(&format!(
                        "cannot start a thread, a function of the host is not called: {error}"
                    ));
                    self.complete(&mut self.lock(), stream);
                }
                state = self.lock();
            } else {
                execute::run(command.work, stream, command.submitter);
                state = self.lock();
                self.complete(&mut state, stream);
            }
            if let Some(seeded) = &mut state.seeded {
                seeded.tickets = seeded.tickets.saturating_sub(1);
                if seeded.tickets == 0 {
                    self.hosts.notify_all();
                }
            }
            state
                .queues
                .retain(|_, queue| queue.thread || !queue.closed || !queue.stream.is_idle());
        }
    }
}

/// Picks the next command of the seeded mode and takes it from its queue.
fn take(state: &mut State) -> Option<(&'static Stream, Command)> {
    let State { queues, seeded, .. } = state;
    let seeded = seeded.as_mut()?;
    let ready: Vec<u64> = queues
        .iter()
        .filter(|(_, queue)| queue.is_ready())
        .map(|(id, _)| *id)
        .collect();
    // Pure chance rarely starves a stream for long, and a stream that is starved is what shows a
    // missing wait: three times in four the stream in favour runs, and favour changes now and then.
    let random = &mut seeded.random;
    for id in &ready {
        let new = !seeded.favour.contains_key(id);
        if new || below(random, 16) == 0 {
            seeded.favour.insert(*id, random.next_u32());
        }
    }
    let chosen = if below(random, 4) == 0 {
        let count = u32::try_from(ready.len()).ok().filter(|count| *count > 0)?;
        ready.get(below(random, count) as usize)
    } else {
        ready.iter().max_by_key(|id| seeded.favour.get(id))
    };
    let id = *chosen?;
    let next = seeded.names.len() as u64;
    let name = *seeded.names.entry(id).or_insert(next);
    let queue = queues.get_mut(&id)?;
    let command = queue.commands.pop_front()?;
    queue.busy = true;
    // FNV-1a over what ran.
    for word in [name, command.work.kind()] {
        seeded.order = (seeded.order ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
    Some((queue.stream, command))
}

/// A number below a small bound, evenly enough.
fn below(random: &mut ChaCha8Rng, bound: u32) -> u32 {
    random.next_u32() % bound.max(1)
}
