//! Decides when each command runs. Commands of one stream run in order in both modes.
//!
//! - Plain mode: one thread per stream, started by its first command. Streams run side by side.
//! - Seeded mode: one thread for all streams. The generator picks among the streams whose next
//!   command may run, and the seed gives the order in which the workgroups of a launch begin.
//!
//! Commands wait for points in other streams. All of these were submitted earlier, so waits cannot
//! be circular. The null stream's implicit synchronisation uses such points: its commands wait for
//! all blocking streams of its device, and theirs wait for it.
//!
//! The seeded mode runs as little as the API allows. A submission sometimes lets a few commands
//! run, and returns when they have; a host that waits lets the device run until its point is
//! reached; and some milliseconds without progress let one command run, for programs that poll
//! memory instead. With one calling thread, a seed therefore gives one order; with several threads
//! the order also depends on their timing.

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

/// Iterations for which a stream's thread polls its queue before it sleeps: some ten microseconds,
/// less than waking it costs the submitter.
const SPINS: u32 = 300;
/// Time without progress after which the seeded mode lets a command run.
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
    /// Whether one of its commands is running.
    busy: bool,
    /// Whether it has a thread, awake or asleep.
    thread: bool,
    parked: bool,
    /// Whether the stream was destroyed: the queue is removed when it is empty.
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
    /// Number of commands that may run now.
    tickets: u32,
    /// Number of host threads that wait for the device.
    demand: u32,
    /// Random priority of each stream.
    favour: HashMap<u64, u32>,
    /// Hash of the order so far.
    order: u64,
    /// Stream numbers in the order of their first command since the seed was set, so that the
    /// order's hash is the same in every run.
    names: HashMap<u64, u64>,
}

#[derive(Debug, Default)]
struct State {
    queues: BTreeMap<u64, Queue>,
    waiting: u32,
    seeded: Option<Seeded>,
    central: bool,
}

/// The queues of all streams.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    /// Wakes waiting host threads.
    hosts: Condvar,
    /// Wakes the thread of the seeded mode.
    central: Condvar,
    seeded: AtomicBool,
}

static SCHEDULER: OnceLock<&'static Scheduler> = OnceLock::new();

/// Returns the scheduler, which starts at its first use, in the configured mode.
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

    /// Appends work to a stream; it runs after the stream's earlier commands and after `after`.
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

    /// Makes a stream's thread look at its queue: starts or wakes it.
    fn start(&'static self, queue: &mut Queue) {
        if !queue.thread {
            let id = queue.stream.id;
            let thread = std::thread::Builder::new().name(format!("hipemu-{id}"));
            match thread.spawn(move || self.serve(id)) {
                Ok(_) => queue.thread = true,
                // The next submission tries again.
                Err(error) => config::warn(&format!("cannot start a thread: {error}")),
            }
        } else if queue.parked {
            queue.stream.wake.notify_one();
        }
    }

    /// In seeded mode, lets a random number of commands run, possibly none, and waits for them.
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

    /// Lets commands run after a query found something incomplete: the caller may be polling.
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

    /// Records that a stream's command is complete, and wakes the waiters.
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

    /// Waits until a device is idle.
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

    /// Closes a destroyed stream; its queued commands still run.
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

    /// Waits until all streams are idle, then changes the mode.
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
        // Threads that sleep in the other mode check again.
        self.central.notify_one();
        self.hosts.notify_all();
        for queue in state.queues.values() {
            queue.stream.wake.notify_one();
        }
    }

    /// Returns an index below `count`: the first in plain mode, a random one in seeded mode.
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

    /// Returns the hash of the order in which commands have run since the seed was set; 0 in plain
    /// mode.
    pub(crate) fn order(&self) -> u64 {
        self.lock().seeded.as_ref().map_or(0, |seeded| seeded.order)
    }

    /// Runs the commands of all streams while the seeded mode is on.
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
                // No command is ready: drop the remaining tickets, so that hosts that wait for
                // their use continue.
                if let Some(seeded) = &mut state.seeded {
                    seeded.tickets = 0;
                }
                self.hosts.notify_all();
                state = self.sleep(&self.central, state);
                continue;
            };
            drop(state);
            if command.work.calls_host() {
                // A host function may wait for anything, including this scheduler, so it runs on
                // its own thread.
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
    // A uniform choice rarely starves a stream for long, and a starved stream is what exposes a
    // missing wait. So three times in four the ready stream with the highest priority runs;
    // priorities are drawn anew now and then.
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
    // FNV-1a over the executed commands.
    for word in [name, command.work.kind()] {
        seeded.order = (seeded.order ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
    Some((queue.stream, command))
}

/// Returns a nearly uniform number below a small bound.
fn below(random: &mut ChaCha8Rng, bound: u32) -> u32 {
    random.next_u32() % bound.max(1)
}
