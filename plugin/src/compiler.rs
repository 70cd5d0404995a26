//! The compiler as the settings ask for it, and what takes its place where that cannot be had.

use crate::config::{CompilerMode, Config};
use crate::error::Error;
use iree_sys::compiler::{
    CompileError, CompileRequest, Compiled, Compiler, InProcess, Program, Worker, WorkerOptions, find_library,
    find_program, find_worker,
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An idle worker is the price of the next graph's start; after this long there is none.
const WORKER_IDLE: Duration = Duration::from_secs(60);

/// One way of calling the compiler after the other, until one can be had. Ways are only exchanged for those of the same build, since
/// that is part of every key.
pub struct Chosen {
    config: Config,
    identity: String,
    current: Mutex<Current>,
    turns: Turns,
}

struct Current {
    compiler: Arc<dyn Compiler>,
    /// Why those before it are not used, until that has been told: once it is known what takes their place.
    untold: Vec<String>,
    /// What is left to try if it cannot be started.
    rest: &'static [CompilerMode],
}

impl Chosen {
    /// Finds the compiler. Starts nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`], saying where it was looked for.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let ways = ways(config.compiler);
        let (current, left_out) = first(config, ways, |_| true).map_err(Error::NoCompiler)?;
        if let Some(reason) = left_out {
            tracing::warn!("{} is used, because {reason}", current.compiler.describe());
        }
        Ok(Chosen {
            config: config.clone(),
            identity: current.compiler.identity().to_owned(),
            current: Mutex::new(current),
            turns: Turns::new(config.compile_workers),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What takes the place of a way that cannot be started, for this and all later graphs.
    fn instead(&self, failed: &Arc<dyn Compiler>, error: &CompileError) -> Option<Arc<dyn Compiler>> {
        let mut current = self.lock();
        // Another thread may have been faster.
        if Arc::ptr_eq(&current.compiler, failed) {
            let same_build = |compiler: &dyn Compiler| compiler.identity() == self.identity;
            let (mut next, _) = first(&self.config, current.rest, same_build).ok()?;
            next.untold = std::mem::take(&mut current.untold);
            next.untold.push(error.to_string());
            *current = next;
        }
        Some(Arc::clone(&current.compiler))
    }

    /// Says once what is used instead of what was asked for.
    fn tell(&self) {
        let mut current = self.lock();
        let reasons = std::mem::take(&mut current.untold);
        let compiler = Arc::clone(&current.compiler);
        // Describing may take as long as starting a program.
        drop(current);
        if !reasons.is_empty() {
            tracing::warn!("{} is used from now on: {}", compiler.describe(), reasons.join("; "));
        }
    }
}

/// How many graphs may be compiled at a time.
struct Turns {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Turns {
    fn new(count: usize) -> Self {
        Turns {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    /// Waits until there is one.
    fn take(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_while(free, |free| *free == 0);
        let mut free = waited.unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_sub(1);
        Turn(self)
    }
}

/// Leave to compile, until it is dropped.
struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_add(1);
        self.0.freed.notify_one();
    }
}

impl Compiler for Chosen {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        let compiler = Arc::clone(&self.lock().compiler);
        compiler.describe()
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        let _turn = self.turns.take();
        let mut compiler = Arc::clone(&self.lock().compiler);
        loop {
            match compiler.compile(request) {
                Err(error) if error.blames_installation() => match self.instead(&compiler, &error) {
                    Some(next) => compiler = next,
                    None => return Err(error),
                },
                result => {
                    self.tell();
                    return result;
                }
            }
        }
    }
}

/// The ways to try, in order. What keeps the compiler's crashes out of this process comes before what does not.
const fn ways(mode: CompilerMode) -> &'static [CompilerMode] {
    match mode {
        CompilerMode::Worker => &[CompilerMode::Worker, CompilerMode::Cli, CompilerMode::InProcess],
        CompilerMode::Cli => &[CompilerMode::Cli, CompilerMode::Worker, CompilerMode::InProcess],
        CompilerMode::InProcess => &[CompilerMode::InProcess, CompilerMode::Worker, CompilerMode::Cli],
    }
}

/// The first way that can be had and is accepted, and why those before it were not. If none, why not any.
fn first(
    config: &Config,
    ways: &'static [CompilerMode],
    accept: impl Fn(&dyn Compiler) -> bool,
) -> Result<(Current, Option<String>), String> {
    let mut reasons = Vec::new();
    let mut rest = ways;
    while let Some((&way, others)) = rest.split_first() {
        rest = others;
        match open(config, way) {
            Ok(compiler) if accept(compiler.as_ref()) => {
                let left_out = (!reasons.is_empty()).then(|| reasons.join("; "));
                let untold = Vec::new();
                return Ok((Current { compiler, untold, rest }, left_out));
            }
            Ok(compiler) => reasons.push(format!("{} is another build", compiler.describe())),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

fn open(config: &Config, mode: CompilerMode) -> Result<Arc<dyn Compiler>, String> {
    match mode {
        CompilerMode::Worker => Worker::new(WorkerOptions {
            program: find_worker().map_err(|error| error.to_string())?,
            library: find_library().map_err(|error| error.to_string())?,
            workers: config.compile_workers,
            timeout: config.compile_timeout,
            memory_bytes: config.compile_memory,
            idle: WORKER_IDLE,
        })
        .map(|worker| Arc::new(worker) as Arc<dyn Compiler>),
        CompilerMode::Cli => {
            let path = find_program().map_err(|error| error.to_string())?;
            Program::new(&path).map(|program| Arc::new(program) as Arc<dyn Compiler>)
        }
        CompilerMode::InProcess => {
            let path = find_library().map_err(|error| error.to_string())?;
            // SAFETY: the library is IREE's compiler, of an installation that the user or this project chose.
            unsafe { InProcess::open(&path) }.map(|library| Arc::new(library) as Arc<dyn Compiler>)
        }
    }
    .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn no_more_than_so_many_at_a_time_and_all_of_them_in_the_end() {
        let (turns, running, most, done) = (
            Turns::new(2),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _turn = turns.take();
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((most.into_inner(), done.into_inner()), (2, 800));
    }
}
