//! Work on separate threads, each of which ends with its work.
//!
//! A host may close this library, and the loader unmaps it only when no thread has a pending
//! thread-local destructor that is in it. The compiler's library registers such destructors on
//! every thread that it runs on, and so do many blocking calls of Rust's standard library, even
//! those that start a thread. The host's threads do not end under our control, so none of this may
//! happen on them: this module starts threads through pthreads. Compiling also needs more stack
//! than a host thread may have.

use crate::abi::logging::Lent;
use std::any::Any;
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of stack: the compiler walks nested operations by recursion.
const STACK: usize = 16 << 20;

/// A function, and the slot for its result.
struct Job<F, T> {
    work: Option<F>,
    /// The caller's buffer of held-back log messages: the caller may hold locks, and this thread
    /// works on its behalf.
    log: Option<Lent>,
    result: Option<Result<T, Box<dyn Any + Send>>>,
}

/// Calls a function on a separate thread, and waits until the thread has ended. If the function
/// panics, the panic resumes in the caller.
///
/// # Errors
///
/// If no further thread can be started.
pub(crate) fn on_own_thread<F, T>(work: F) -> io::Result<T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let mut job = Job {
        work: Some(work),
        // SAFETY: this thread waits for the other one below.
        log: Some(unsafe { Lent::of_this_thread() }),
        result: None,
    };
    let mut thread = MaybeUninit::uninit();
    let mut attributes = Attributes::new()?;
    // SAFETY: the attributes are initialised, and `run` gets a job of the types that it is
    // instantiated for. The job outlives the thread, which is joined below, and nothing else
    // touches the job until then.
    check(unsafe {
        check(libc::pthread_attr_setstacksize(&mut attributes.0, STACK))?;
        let job = (&raw mut job).cast::<c_void>();
        libc::pthread_create(thread.as_mut_ptr(), &attributes.0, run::<F, T>, job)
    })?;
    // SAFETY: the thread was created, so the handle is initialised; it is joined once.
    check(unsafe { libc::pthread_join(thread.assume_init(), std::ptr::null_mut()) })?;
    match job.result {
        Some(Ok(value)) => Ok(value),
        Some(Err(panic)) => resume_unwind(panic),
        None => Err(io::Error::other("the thread ended without a result")),
    }
}

extern "C" fn run<F: FnOnce() -> T, T>(job: *mut c_void) -> *mut c_void {
    // SAFETY: `on_own_thread` passes a job of these types, and only this thread uses it until the
    // thread ends.
    let job = unsafe { &mut *job.cast::<Job<F, T>>() };
    if let (Some(work), Some(log)) = (job.work.take(), job.log.take()) {
        job.result = Some(catch_unwind(AssertUnwindSafe(|| log.during(work))));
    }
    std::ptr::null_mut()
}

/// A thread that is joined when this is dropped.
pub(crate) struct Thread(libc::pthread_t);

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: created by `start`, and joined once.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }
}

/// Starts a thread whose result nobody waits for. A panic ends the work.
///
/// # Errors
///
/// If no further thread can be started.
pub(crate) fn start<F: FnOnce() + Send + 'static>(work: F) -> io::Result<Thread> {
    extern "C" fn run<F: FnOnce()>(work: *mut c_void) -> *mut c_void {
        // SAFETY: `start` passes ownership of a box of this type.
        let work = unsafe { Box::from_raw(work.cast::<F>()) };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            std::mem::forget(panic);
        }
        std::ptr::null_mut()
    }
    let work = Box::into_raw(Box::new(work));
    let mut thread = MaybeUninit::uninit();
    // SAFETY: `run` gets a box of the type that it is instantiated for, and owns it.
    let started =
        check(unsafe { libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), run::<F>, work.cast::<c_void>()) });
    match started {
        // SAFETY: the thread was created, so the handle is initialised.
        Ok(()) => Ok(Thread(unsafe { thread.assume_init() })),
        Err(error) => {
            // SAFETY: no thread was started, so the box is still owned here.
            drop(unsafe { Box::from_raw(work) });
            Err(error)
        }
    }
}

/// Background work, on one thread at a time. Dropping this waits for the work's end.
#[derive(Default)]
pub(crate) struct Background {
    is_running: Arc<AtomicBool>,
    /// The last thread, which may have ended.
    thread: Mutex<Option<Thread>>,
}

/// Clears the flag when it is dropped, at the end of a thread's work.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Background {
    /// Starts work on a separate thread. Does nothing if work is under way, or if no further thread
    /// can be started.
    pub(crate) fn start(&self, work: impl FnOnce() + Send + 'static) {
        if self.is_running.load(Ordering::Acquire) {
            return;
        }
        // Held until the new thread is stored: whoever replaces a stored thread finds one that has
        // finished its work.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let running = Running(Arc::clone(&self.is_running));
        // The previous thread has finished its work, so joining it takes little time.
        drop(thread.take());
        let started = start(move || {
            let _running = running;
            work();
        });
        *thread = started.ok();
    }

    /// Waits for the work that is under way.
    pub(crate) fn wait(&self) {
        drop(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

struct Attributes(libc::pthread_attr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises the attributes; on success they may be assumed initialised.
        unsafe {
            check(libc::pthread_attr_init(attributes.as_mut_ptr()))?;
            Ok(Attributes(attributes.assume_init()))
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the attributes are initialised, and destroyed once. The call cannot fail on
        // initialised attributes.
        unsafe { libc::pthread_attr_destroy(&mut self.0) };
    }
}

fn check(error: i32) -> io::Result<()> {
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::mpsc;

    static DROPPED: AtomicBool = AtomicBool::new(false);

    struct Noisy;

    impl Drop for Noisy {
        fn drop(&mut self) {
            DROPPED.store(true, Ordering::Release);
        }
    }

    thread_local! {
        static KEPT: RefCell<Option<Noisy>> = const { RefCell::new(None) };
    }

    #[test]
    fn the_thread_is_gone_with_all_it_kept() {
        let here = String::from("borrowed");
        let length = on_own_thread(|| {
            KEPT.with(|kept| *kept.borrow_mut() = Some(Noisy));
            here.len()
        });
        assert_eq!(length.unwrap(), 8);
        assert!(DROPPED.load(Ordering::Acquire), "a destructor is still to come");
    }

    #[test]
    fn panics_are_the_callers() {
        let caught = std::panic::catch_unwind(|| on_own_thread(|| std::panic::panic_any(7_u8)).map(|(): ()| ()));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&7_u8));
    }

    #[test]
    fn background_work_is_one_thread_that_nobody_waits_for() {
        let (background, done) = (Background::default(), Arc::new(Mutex::new(Vec::new())));
        let (release, released) = mpsc::channel::<()>();
        let note = |number| {
            let done = Arc::clone(&done);
            move || done.lock().unwrap().push((number, std::thread::current().id()))
        };
        let first = note(1);
        background.start(move || {
            released.recv().unwrap();
            first();
        });
        // Neither call waits for the first, which is still under way.
        background.start(note(2));
        assert!(done.lock().unwrap().is_empty());
        release.send(()).unwrap();
        background.wait();
        background.start(note(3));
        drop(background);
        let done = done.lock().unwrap();
        assert_eq!(done.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 3]);
        let here = std::thread::current().id();
        assert!(done.iter().all(|&(_, thread)| thread != here));
    }
}
