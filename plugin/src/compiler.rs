//! The compiler that the settings select, and the one that replaces it if it is not available.

use crate::config::{CompilerMode, Config};
use crate::told::Told;
use rotini_iree::compiler::{
    Blame, CompileError, CompileRequest, Compiled, Compiler, InProcess, NotFound, Program, Worker, WorkerOptions,
    find_library, find_program, find_worker, is_shortage,
};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Time after which an idle worker ends. Until then, the next graph needs no new process.
const WORKER_IDLE: Duration = Duration::from_secs(60);

/// The Python package of the compiler that all of rotini's proofs were made with.
pub const PACKAGE: &str = "iree-base-compiler==3.13.0";

/// The build of the library in [`PACKAGE`]: the same in the wheels for every Python version.
const PROVEN: &str = "build-id:c508b0a380357dc0";

/// The compiler in the mode that the settings select, and the one that replaces it if that turns
/// out not to work. Both are of the same build, since the build is part of every key. Only a
/// setting brings the compiler into this process.
pub struct Chosen {
    config: Config,
    compiler: Arc<dyn Compiler>,
    /// The mode to fall back to; `None` if that is in use already.
    other: Option<CompilerMode>,
    /// The fallback compiler, once it is in use.
    replacement: OnceLock<Arc<dyn Compiler>>,
    turns: Turns,
}

/// The reason why a compiler is not available.
#[derive(Debug)]
pub struct NotHad {
    /// The reason, as text.
    pub reason: String,
    /// Whether a system resource was exhausted, so that the next attempt may succeed.
    pub passes: bool,
}

impl From<NotFound> for NotHad {
    fn from(error: NotFound) -> Self {
        NotHad {
            passes: error.passes(),
            reason: error.to_string(),
        }
    }
}

impl From<CompileError> for NotHad {
    fn from(error: CompileError) -> Self {
        NotHad {
            passes: match &error {
                CompileError::Io { source, .. } => is_shortage(source),
                error => error.blame() == Blame::Moment,
            },
            reason: error.to_string(),
        }
    }
}

impl Chosen {
    /// Finds the compiler. Starts nothing.
    ///
    /// # Errors
    ///
    /// An error that lists the places that were searched. While a system resource is exhausted, the
    /// other mode is not tried.
    pub fn new(config: &Config) -> Result<Self, NotHad> {
        let (mode, other) = ways(config.compiler);
        let (compiler, other) = match open(config, mode) {
            Ok(compiler) => (compiler, Some(other)),
            Err(first) if first.passes => return Err(first),
            Err(first) => match open(config, other) {
                Ok(compiler) => {
                    tracing::warn!("{} is used, because {}", compiler.describe(), first.reason);
                    (compiler, None)
                }
                Err(second) => {
                    return Err(NotHad {
                        reason: format!("{}; {}", first.reason, second.reason),
                        passes: second.passes,
                    });
                }
            },
        };
        static TOLD: Told = Told::new();
        if compiler.identity() != PROVEN && TOLD.is_news(compiler.identity().as_bytes()) {
            tracing::warn!(
                "the compiler is not the build that rotini is proven with, IREE 3.13.0 ({PROVEN}), but {}: it is used, and may make slow or \
                 wrong code",
                compiler.identity()
            );
        }
        Ok(Chosen {
            config: config.clone(),
            compiler,
            other,
            replacement: OnceLock::new(),
            turns: Turns::new(config.compile_workers),
        })
    }

    fn current(&self) -> &Arc<dyn Compiler> {
        self.replacement.get().unwrap_or(&self.compiler)
    }

    /// Opens the compiler in the fallback mode, if that is available and of the same build.
    fn other(&self) -> Option<Arc<dyn Compiler>> {
        let other = open(&self.config, self.other?).ok()?;
        (other.identity() == self.compiler.identity()).then_some(other)
    }
}

/// A semaphore that limits how many graphs are compiled at a time.
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

    /// Waits for a free slot and takes it.
    fn take(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_while(free, |free| *free == 0);
        let mut free = waited.unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_sub(1);
        Turn(self)
    }
}

/// One slot of [`Turns`], which is freed when this is dropped.
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
        self.compiler.identity()
    }

    fn describe(&self) -> String {
        self.current().describe()
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        let _turn = self.turns.take();
        let error = match self.current().compile(request) {
            Err(error) if error.blame() == Blame::Installation && self.replacement.get().is_none() => error,
            result => return result,
        };
        let Some(other) = self.other() else {
            return Err(error);
        };
        let result = other.compile(request);
        match result.as_ref().map_err(CompileError::blame) {
            // The fallback is no better, so the selected mode stays in use.
            Err(Blame::Installation | Blame::Moment) => Err(error),
            _ => {
                let description = other.describe();
                // Another thread may have set the replacement first, and has logged it.
                if self.replacement.set(other).is_ok() {
                    tracing::warn!("{description} is used from now on: {error}");
                }
                result
            }
        }
    }
}

/// Returns the mode to use, and the one that replaces it if it is not available. A mode that keeps
/// compiler crashes out of this process is never replaced by one that does not.
const fn ways(mode: CompilerMode) -> (CompilerMode, CompilerMode) {
    match mode {
        CompilerMode::Worker => (CompilerMode::Worker, CompilerMode::Cli),
        CompilerMode::Cli => (CompilerMode::Cli, CompilerMode::Worker),
        CompilerMode::InProcess => (CompilerMode::InProcess, CompilerMode::Cli),
    }
}

fn open(config: &Config, mode: CompilerMode) -> Result<Arc<dyn Compiler>, NotHad> {
    Ok(match mode {
        CompilerMode::Worker => Arc::new(Worker::new(WorkerOptions {
            program: find_worker()?,
            library: find_library()?,
            workers: config.compile_workers,
            timeout: config.compile_timeout,
            memory_bytes: config.compile_memory,
            idle: WORKER_IDLE,
        })?),
        CompilerMode::Cli => Arc::new(Program::new(&find_program()?)?.with_timeout(config.compile_timeout)),
        // SAFETY: the library is IREE's compiler, from an installation that the user or this
        // project chose.
        CompilerMode::InProcess => Arc::new(unsafe { InProcess::open(&find_library()?) }?),
    })
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
