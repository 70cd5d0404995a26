//! The plugin's own device memory, for executions that are given no workspace, and for outputs that
//! overlap inputs.
//!
//! A block of memory has one owner at a time:
//!
//! - An enqueued execution takes it from the GPU's pool, and gives it back when everything is
//!   enqueued. The next user first makes its stream wait for the event behind that work. This holds
//!   for any stream, whatever has become of the previous one.
//! - A captured execution gets a block for its capture and stream, which is kept for as long as the
//!   code is loaded: the host may launch the graph at any time, alongside any other work.
//!
//! A stream preferably gets the block that it used last, so that it waits only for itself. The
//! pool's lock is held while a list is searched; no driver call happens under it. In the long run
//! nothing is allocated, and memory that may still be in use is never freed. Idle blocks are freed
//! when an allocation fails, and, beyond a limit, when code is retired.
//!
//! User objects that the captured graph retains (`hipGraphRetainUserObject`) cannot tell when a
//! block is free: `hipGraphExecUpdate` of ROCm's clr copies the parameters of a graph's nodes into
//! an executable graph, but not its user objects. So these are released with the graph, while the
//! executable graph still launches its kernels on the block.

use super::driver::Driver;
use super::driver_error::DriverError;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of the smallest block, in bytes.
const SMALLEST: usize = 4 << 10;
/// From this size on, sizes are multiples of it; below it, they are powers of two.
const STEP: usize = 2 << 20;
/// Maximum size of a block, as a multiple of the size that is needed.
const WASTE: usize = 4;
/// Bytes of idle blocks that the pool may keep when code is retired.
pub(super) const KEPT: usize = 64 << 20;
/// Bytes from which on the log warns that the captures of a graph keep memory.
const MUCH: usize = 256 << 20;

/// A block of device memory, with an event behind the work that used it last.
pub(super) struct Block<D: Driver> {
    driver: Arc<D>,
    pointer: *mut c_void,
    bytes: usize,
    event: *mut c_void,
    /// The stream of that work; `None` if the block was not used yet.
    stream: Option<*mut c_void>,
}

// SAFETY: the pointers are handles of the driver, which accepts them from any thread.
unsafe impl<D: Driver> Send for Block<D> {}

impl<D: Driver> Block<D> {
    /// Allocates a block. The GPU must be current, and the thread's capture mode relaxed.
    fn new(driver: &Arc<D>, bytes: usize) -> Result<Self, DriverError> {
        let mut block = Block {
            driver: Arc::clone(driver),
            pointer: std::ptr::null_mut(),
            bytes,
            event: std::ptr::null_mut(),
            stream: None,
        };
        // If one of the calls fails, dropping the block frees what the other allocated.
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
            // Also if it is the same handle: a destroyed stream's handle may be reused by a new
            // stream.
            Some(_) => self.driver.wait(stream, self.event),
            None => Ok(()),
        }
    }

    /// Marks the end of a stream's work on the block. The stream must have waited for the previous
    /// work.
    pub(super) fn mark(&mut self, stream: *mut c_void) -> Result<(), DriverError> {
        self.driver.record(self.event, stream)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Returns true if no work uses the block any more.
    fn is_done(&self) -> bool {
        self.stream.is_none() || self.driver.is_done(self.event)
    }

    fn fits(&self, bytes: usize) -> bool {
        (bytes..=rounded(bytes).saturating_mul(WASTE)).contains(&self.bytes)
    }
}

impl<D: Driver> Drop for Block<D> {
    fn drop(&mut self) {
        // SAFETY: this driver made both, they are released once, and blocks are only dropped when
        // the GPU has finished with them.
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

/// A GPU's pool of blocks, without those that a thread is enqueueing work on. Blocks are in the
/// order in which they were given back.
pub(super) struct Pool<D: Driver>(Mutex<Vec<Block<D>>>);

impl<D: Driver> Pool<D> {
    pub(super) const fn new() -> Self {
        Pool(Mutex::new(Vec::new()))
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Block<D>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the smallest block that fits and that satisfies `is_wanted`.
    fn find(&self, bytes: usize, is_wanted: impl Fn(&Block<D>) -> bool) -> Option<Block<D>> {
        let mut blocks = self.blocks();
        let fitting = blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.fits(bytes) && is_wanted(block));
        let (index, _) = fitting.min_by_key(|(_, block)| block.bytes)?;
        Some(blocks.remove(index))
    }

    /// Takes a block for work on a stream, which must [`wait`](Block::wait) for it. In order of
    /// preference: the block that the stream used last; the smallest other that fits, if its work
    /// is done; a new block; and, if memory has run out, that smallest other while it is in use.
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
        // The query below would also break captures of other threads, so the capture mode is
        // relaxed.
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

    /// Allocates a block. If memory has run out, frees the pool's idle blocks and tries again.
    ///
    /// # Errors
    ///
    /// The driver's, if there is not enough memory even then.
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

    /// Gives back a block that was not used, or whose end of work is [marked](Block::mark).
    pub(super) fn put(&self, block: Block<D>) {
        self.blocks().push(block);
    }

    /// Takes all blocks.
    pub(super) fn drain(&self) -> Vec<Block<D>> {
        std::mem::take(&mut *self.blocks())
    }

    /// Returns true if the pool has more bytes than are worth keeping.
    pub(super) fn is_excess(&self) -> bool {
        self.blocks().iter().map(|block| block.bytes).sum::<usize>() > KEPT
    }

    /// Takes blocks whose work is done, in the order in which they were given back, until at most
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
            // Taken one by one, so that executions find the other blocks meanwhile, and the driver
            // is not called under the lock.
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

/// The blocks of a program's captured executions, and blocks whose end of work could not be marked.
/// They are freed when the code is unloaded.
pub(super) struct Captured<D: Driver>(Mutex<Vec<(Option<Owner>, Block<D>)>>);

/// The owner of a block. A block can be shared by the executions that one capture records on one
/// stream, because these run one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The capture's id.
    pub(super) capture: u64,
    /// The stream's address.
    pub(super) stream: usize,
    /// Index among the blocks of one execution.
    pub(super) index: usize,
}

impl<D: Driver> Captured<D> {
    pub(super) const fn new() -> Self {
        Captured(Mutex::new(Vec::new()))
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<(Option<Owner>, Block<D>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns memory for a captured execution: the owner's block, or a new one.
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

    /// Returns the total size of the blocks, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks().iter().map(|(_, block)| block.bytes).sum()
    }

    /// Returns the same blocks without owners, because the contexts that they were captured with
    /// are gone.
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
