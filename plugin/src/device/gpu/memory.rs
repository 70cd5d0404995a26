//! The plugin's own device memory: for executions that are given no workspace, and for outputs that
//! overlap inputs.
//!
//! | Execution | Whose block it is |
//! |---|---|
//! | enqueued | taken from the GPU's pool, given back when all is enqueued. Whoever has it next first makes its stream wait for the event behind the work: whichever stream that is, and whatever became of the stream before |
//! | captured | the capture's and the stream's, for as long as the code is loaded: nobody knows when the graph is launched, and beside what |
//!
//! A stream finds the block that it had last, so that it waits for itself alone. The pool's lock is
//! held for a search in a list: no call of the driver happens under it. In the long run nothing is
//! allocated, and nothing is freed that may still be in use. Idle blocks are freed when an
//! allocation fails, and when code is retired and they are more than is worth keeping.
//!
//! A user object that the captured graph retains (`hipGraphRetainUserObject`) does not tell when a
//! block is free: `hipGraphExecUpdate` of ROCm's clr copies the parameters of a graph's nodes into
//! an executable graph and leaves its user objects behind. So they are released with the graph
//! while the executable one still launches its kernels on the block.

use super::driver::Driver;
use super::driver_error::DriverError;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest block.
const SMALLEST: usize = 4 << 10;
/// From here on sizes are multiples of this, below it powers of two.
const STEP: usize = 2 << 20;
/// The maximum size of a block, as a multiple of the size that is needed.
const WASTE: usize = 4;
/// The bytes of idle blocks that the pool may keep when code is retired.
pub(super) const KEPT: usize = 64 << 20;
/// The number of bytes from which on the log warns that captures of a graph keep memory.
const MUCH: usize = 256 << 20;

/// A block, and the event after the work that used it last.
pub(super) struct Block<D: Driver> {
    driver: Arc<D>,
    pointer: *mut c_void,
    bytes: usize,
    event: *mut c_void,
    /// The stream of that work; `None` if there was none yet.
    stream: Option<*mut c_void>,
}

// SAFETY: the pointers are handles of the driver's, which takes them from any thread.
unsafe impl<D: Driver> Send for Block<D> {}

impl<D: Driver> Block<D> {
    /// Allocates one. The GPU is the current one, and the thread's capture mode relaxed.
    fn new(driver: &Arc<D>, bytes: usize) -> Result<Self, DriverError> {
        let mut block = Block {
            driver: Arc::clone(driver),
            pointer: std::ptr::null_mut(),
            bytes,
            event: std::ptr::null_mut(),
            stream: None,
        };
        // What there is of it is given back if the other fails.
        block.pointer = driver.allocate(bytes)?;
        block.event = driver.event()?;
        Ok(block)
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// Makes a stream wait for the work that used the block last.
    pub(super) fn wait(&self, stream: *mut c_void) -> Result<(), DriverError> {
        match self.stream {
            // Also for its own: a stream that is destroyed leaves its handle to the next.
            Some(_) => self.driver.wait(stream, self.event),
            None => Ok(()),
        }
    }

    /// Marks the end of what a stream does with the block, having waited for it.
    pub(super) fn mark(&mut self, stream: *mut c_void) -> Result<(), DriverError> {
        self.driver.record(self.event, stream)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Whether nothing uses it any more.
    fn is_done(&self) -> bool {
        self.stream.is_none() || self.driver.is_done(self.event)
    }

    fn fits(&self, bytes: usize) -> bool {
        (bytes..=rounded(bytes).saturating_mul(WASTE)).contains(&self.bytes)
    }
}

impl<D: Driver> Drop for Block<D> {
    fn drop(&mut self) {
        // SAFETY: made by this driver, given back once, and only where the GPU has finished with
        // it.
        let results = unsafe { [self.driver.destroy_event(self.event), self.driver.free(self.pointer)] };
        for error in results.into_iter().filter_map(Result::err) {
            tracing::info!("memory of a GPU is lost: {error}");
        }
    }
}

fn rounded(bytes: usize) -> usize {
    if bytes >= STEP {
        bytes.checked_next_multiple_of(STEP).unwrap_or(bytes)
    } else {
        bytes.max(SMALLEST).next_power_of_two()
    }
}

/// The blocks of a GPU that no thread is enqueueing work on.
///
/// In the order in which they were given back.
pub(super) struct Pool<D: Driver>(Mutex<Vec<Block<D>>>);

impl<D: Driver> Pool<D> {
    pub(super) const fn new() -> Self {
        Pool(Mutex::new(Vec::new()))
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Block<D>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smallest block that fits and that `is_wanted`.
    fn find(&self, bytes: usize, is_wanted: impl Fn(&Block<D>) -> bool) -> Option<Block<D>> {
        let mut blocks = self.blocks();
        let fitting = blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.fits(bytes) && is_wanted(block));
        let (index, _) = fitting.min_by_key(|(_, block)| block.bytes)?;
        Some(blocks.remove(index))
    }

    /// A block for work on a stream, which has to [`wait`](Block::wait) for it: the one it had
    /// last, else one whose work is done, else a new one; where there is no memory, any.
    ///
    /// # Errors
    ///
    /// The driver's, if there is no memory.
    pub(super) fn take(
        &self,
        driver: &Arc<D>,
        ordinal: u32,
        stream: *mut c_void,
        bytes: usize,
    ) -> Result<Block<D>, DriverError> {
        if let Some(own) = self.find(bytes, |block| block.stream == Some(stream)) {
            return Ok(own);
        }
        // Captures of other threads do not stand a query either.
        let _entered = driver.enter_to_load(ordinal)?;
        match self.find(bytes, |_| true) {
            Some(block) if block.is_done() => Ok(block),
            Some(other) => match Block::new(driver, rounded(bytes)) {
                Ok(new) => {
                    self.put(other);
                    Ok(new)
                }
                Err(_) => Ok(other),
            },
            None => self.allocate(driver, bytes),
        }
    }

    /// A new block. Where there is no memory, what lies idle here is freed first.
    ///
    /// # Errors
    ///
    /// The driver's, if there is no memory even then.
    fn allocate(&self, driver: &Arc<D>, bytes: usize) -> Result<Block<D>, DriverError> {
        let bytes = rounded(bytes);
        Block::new(driver, bytes).or_else(|error| {
            if !error.out_of_memory {
                return Err(error);
            }
            drop(self.idle(0));
            Block::new(driver, bytes)
        })
    }

    /// Gives a block back that was not used, or whose end is [marked](Block::mark).
    pub(super) fn put(&self, block: Block<D>) {
        self.blocks().push(block);
    }

    /// Everything.
    pub(super) fn drain(&self) -> Vec<Block<D>> {
        std::mem::take(&mut *self.blocks())
    }

    /// Whether there is more than is worth keeping.
    pub(super) fn is_excess(&self) -> bool {
        self.blocks().iter().map(|block| block.bytes).sum::<usize>() > KEPT
    }

    /// Takes blocks whose work is done, those first that were used longest ago, until no more than
    /// `kept` bytes are left.
    pub(super) fn idle(&self, kept: usize) -> Vec<Block<D>> {
        let mut idle = Vec::new();
        let (count, mut bytes) = {
            let blocks = self.blocks();
            (blocks.len(), blocks.iter().map(|block| block.bytes).sum::<usize>())
        };
        for _ in 0..count {
            if bytes <= kept {
                break;
            }
            let oldest = {
                let mut blocks = self.blocks();
                (!blocks.is_empty()).then(|| blocks.remove(0))
            };
            // One by one, so that executions find the others meanwhile, and the driver is not
            // called under the lock.
            match oldest {
                Some(block) if block.is_done() => {
                    bytes = bytes.saturating_sub(block.bytes);
                    idle.push(block);
                }
                Some(block) => self.put(block),
                None => break,
            }
        }
        idle
    }
}

/// The blocks of captured executions of some code, and those whose end could not be marked. They go
/// when the code is unloaded.
pub(super) struct Captured<D: Driver>(Mutex<Vec<(Option<Owner>, Block<D>)>>);

/// Who has a block: work that is captured in one stream in one capture is done in order, each part
/// of it after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The capture's id.
    pub(super) capture: u64,
    /// The stream's address.
    pub(super) stream: usize,
    /// Which of the blocks of one execution it is.
    pub(super) index: usize,
}

impl<D: Driver> Captured<D> {
    pub(super) const fn new() -> Self {
        Captured(Mutex::new(Vec::new()))
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<(Option<Owner>, Block<D>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of a captured execution.
    ///
    /// # Errors
    ///
    /// The driver's, if there is no memory.
    pub(super) fn pointer(
        &self,
        pool: &Pool<D>,
        driver: &Arc<D>,
        ordinal: u32,
        owner: Owner,
        bytes: usize,
    ) -> Result<*mut c_void, DriverError> {
        let own = |(other, block): &&(Option<Owner>, Block<D>)| *other == Some(owner) && block.bytes >= bytes;
        if let Some((_, block)) = self.blocks().iter().find(own) {
            return Ok(block.pointer);
        }
        let block = {
            let _entered = driver.enter_to_load(ordinal)?;
            pool.allocate(driver, bytes)?
        };
        let (pointer, before) = (block.pointer, self.bytes());
        let after = before.saturating_add(block.bytes);
        self.blocks().push((Some(owner), block));
        if before <= MUCH && MUCH < after {
            tracing::warn!(
                "captures of one graph keep {} MiB of GPU memory, each some of its own for as long as the code is loaded: with a \
                 workspace, which ROTINI_OWN_WORKSPACE=0 asks for even if it is little, and outputs that are not over inputs they need none",
                after >> 20
            );
        }
        Ok(pointer)
    }

    /// Keeps a block that work may still be using, until the code is unloaded.
    pub(super) fn keep(&self, block: Block<D>) {
        self.blocks().push((None, block));
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks().iter().map(|(_, block)| block.bytes).sum()
    }

    /// The same blocks without owners: the contexts that they were captured with are gone.
    pub(super) fn disowned(self) -> Self {
        let mut blocks = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        blocks.iter_mut().for_each(|(owner, _)| *owner = None);
        Captured(Mutex::new(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn sizes_are_few() {
        for (bytes, expected) in [
            (0, 4096),
            (1, 4096),
            (4097, 8192),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, 2 << 20),
            ((2 << 20) + 1, 4 << 20),
            ((100 << 20) - 1, 100 << 20),
            (usize::MAX, usize::MAX),
        ] {
            assert_eq!(rounded(bytes), expected, "{bytes}");
        }
    }
}
