//! Wraps every exported function: counts calls, injects failures, writes the trace, stops
//! unwinding, and keeps the last error.
//!
//! Counting must be cheap: one access to thread-local storage and one relaxed load per call.

use crate::config;
use crate::status::{self, Result};
use crate::sys::{self, hipError_t};
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Exports functions of HIP's API.
///
/// Each signature is checked against its prototype in HIP's header at compile time. The body
/// returns [`Result`].
macro_rules! hip {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::sys::hipError_t {
            $crate::calls::enter(
                $crate::calls::Function::$name,
                || -> $crate::status::Result { $body },
                || $crate::calls::arguments(&[$((stringify!($arg), &$arg as &dyn std::fmt::Debug)),*]),
            )
        }
        const _: [unsafe extern "C" fn($($ty),*) -> $crate::sys::hipError_t; 2] = [$name, $crate::sys::$name];
    )*};
}
pub(crate) use hip;

macro_rules! functions {
    ($($name:ident)*) => {
        /// The functions that are counted.
        #[expect(non_camel_case_types, clippy::enum_variant_names, reason = "HIP's names")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Function { $($name),* }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

functions! {
    hipInit hipDriverGetVersion hipRuntimeGetVersion
    hipGetDeviceCount hipGetDevice hipSetDevice hipDeviceGet hipDeviceGetName hipDeviceGetUuid hipDeviceGetAttribute
    hipDeviceGetPCIBusId hipDeviceGetByPCIBusId hipDeviceTotalMem hipDeviceComputeCapability hipGetDevicePropertiesR0600
    hipDeviceSynchronize hipDeviceReset hipDeviceCanAccessPeer hipDeviceEnablePeerAccess hipDeviceDisablePeerAccess
    hipDeviceGetLimit hipDeviceGetStreamPriorityRange hipGetDeviceFlags hipSetDeviceFlags
    hipDevicePrimaryCtxRetain hipDevicePrimaryCtxRelease hipDevicePrimaryCtxGetState
    hipCtxSetCurrent hipCtxGetCurrent hipCtxPushCurrent hipCtxPopCurrent hipCtxGetDevice hipCtxSynchronize
    hipGetLastError hipPeekAtLastError
    hipMalloc hipExtMallocWithFlags hipMallocManaged hipMallocAsync hipFree hipFreeAsync hipMemGetInfo
    hipHostMalloc hipHostAlloc hipHostFree hipHostRegister hipHostUnregister hipHostGetDevicePointer hipHostGetFlags
    hipPointerGetAttributes hipPointerGetAttribute hipMemGetAddressRange hipMemPrefetchAsync hipMemAdvise
    hipDeviceGetDefaultMemPool hipDeviceGetMemPool hipDeviceSetMemPool hipMemPoolCreate hipMemPoolDestroy
    hipMemPoolGetAttribute hipMemPoolSetAttribute hipMemPoolTrimTo hipMallocFromPoolAsync
    hipMemcpy hipMemcpyAsync hipMemcpyWithStream hipMemcpyHtoD hipMemcpyDtoH hipMemcpyDtoD hipMemcpyHtoDAsync hipMemcpyDtoHAsync
    hipMemcpyDtoDAsync hipMemcpyPeer hipMemcpyPeerAsync hipMemcpy2D hipMemcpy2DAsync
    hipMemset hipMemsetAsync hipMemsetD8 hipMemsetD8Async hipMemsetD16 hipMemsetD16Async hipMemsetD32 hipMemsetD32Async
    hipMemset2D hipMemset2DAsync
    hipStreamCreate hipStreamCreateWithFlags hipStreamCreateWithPriority hipStreamDestroy hipStreamQuery hipStreamSynchronize
    hipStreamWaitEvent hipStreamGetFlags hipStreamGetPriority hipStreamGetDevice hipStreamGetId hipStreamAddCallback hipLaunchHostFunc
    hipEventCreate hipEventCreateWithFlags hipEventRecord hipEventRecordWithFlags hipEventDestroy hipEventQuery hipEventSynchronize
    hipEventElapsedTime
    hipModuleLoad hipModuleLoadData hipModuleLoadDataEx hipModuleUnload hipModuleGetFunction hipModuleGetGlobal
    hipFuncGetAttribute hipFuncGetAttributes hipFuncSetAttribute hipModuleLaunchKernel hipLaunchKernel
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor hipModuleOccupancyMaxPotentialBlockSize
    hipStreamBeginCapture hipStreamEndCapture hipStreamIsCapturing hipStreamGetCaptureInfo hipStreamGetCaptureInfo_v2
    hipThreadExchangeStreamCaptureMode
    hipGraphCreate hipGraphDestroy hipGraphClone hipGraphInstantiate hipGraphInstantiateWithFlags hipGraphLaunch hipGraphUpload
    hipGraphExecDestroy hipGraphGetNodes hipGraphGetRootNodes hipGraphGetEdges hipGraphNodeGetType hipGraphNodeGetDependencies
    hipGraphAddDependencies hipGraphAddEmptyNode hipGraphAddKernelNode hipGraphAddMemcpyNode hipGraphAddMemcpyNode1D
    hipDrvGraphAddMemcpyNode hipGraphAddMemsetNode hipGraphAddHostNode hipGraphAddEventRecordNode hipGraphAddEventWaitNode
    hipGraphAddChildGraphNode
}

const COUNT: usize = NAMES.len();

impl Function {
    pub(crate) fn by_name(name: &str) -> Option<usize> {
        NAMES.iter().position(|other| *other == name)
    }
}

/// Call counts by function. Only the owning thread writes them.
struct Counters([AtomicU64; COUNT]);

impl Counters {
    fn new() -> Self {
        Counters([const { AtomicU64::new(0) }; COUNT])
    }
}

/// The state of a calling thread.
pub(crate) struct Thread {
    counters: Arc<Counters>,
    /// This thread's counters at its last reset.
    baseline: RefCell<Vec<u64>>,
    last_error: Cell<hipError_t>,
    /// The current device's ordinal.
    pub(crate) device: Cell<usize>,
    /// Ordinals of the devices below the current one on the context stack.
    pub(crate) contexts: RefCell<Vec<usize>>,
    /// Capture mode: how calls that may disturb a capture behave in this thread.
    pub(crate) capture_mode: Cell<sys::hipStreamCaptureMode>,
}

thread_local! {
    static THREAD: Thread = {
        let counters = Arc::new(Counters::new());
        totals().live.push(Arc::clone(&counters));
        Thread {
            counters,
            baseline: RefCell::default(),
            last_error: Cell::new(sys::hipSuccess),
            device: Cell::new(0),
            contexts: RefCell::default(),
            capture_mode: Cell::new(sys::hipStreamCaptureModeGlobal),
        }
    };
}

impl Drop for Thread {
    fn drop(&mut self) {
        let mut totals = totals();
        totals.live.retain(|other| !Arc::ptr_eq(other, &self.counters));
        totals.ended.resize(COUNT, 0);
        for (total, own) in totals.ended.iter_mut().zip(&self.counters.0) {
            *total += own.load(Ordering::Relaxed);
        }
    }
}

/// The counters of all threads.
struct Totals {
    live: Vec<Arc<Counters>>,
    /// Sums over the threads that have ended.
    ended: Vec<u64>,
    /// The sums at the last reset.
    baseline: Vec<u64>,
}

impl Totals {
    fn sum(&self, function: usize) -> u64 {
        let live: u64 = self
            .live
            .iter()
            .filter_map(|counters| counters.0.get(function))
            .map(|count| count.load(Ordering::Relaxed))
            .sum();
        live + self.ended.get(function).copied().unwrap_or(0)
    }
}

static TOTALS: Mutex<Totals> = Mutex::new(Totals {
    live: Vec::new(),
    ended: Vec::new(),
    baseline: Vec::new(),
});

fn totals() -> MutexGuard<'static, Totals> {
    TOTALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bits for work beyond counting: not yet configured, tracing, failures to inject.
static SPECIAL: AtomicU8 = AtomicU8::new(UNCONFIGURED);
const UNCONFIGURED: u8 = 1;
const TRACED: u8 = 2;
const FAILING: u8 = 4;

struct Special {
    trace: Option<(File, Instant)>,
    failures: Vec<Failure>,
}

static EXTRA: Mutex<Special> = Mutex::new(Special {
    trace: None,
    failures: Vec::new(),
});

fn special() -> MutexGuard<'static, Special> {
    EXTRA.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A failure to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    function: usize,
    error: hipError_t,
    /// Number of the call that fails, counted from 1; `None`: every call.
    nth: Option<u64>,
    seen: u64,
}

impl Failure {
    /// Parses `function=error[@n]`, several separated by commas.
    pub(crate) fn parse(text: &str) -> Result<Vec<Failure>, String> {
        text.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| {
                let (function, error) = item.split_once('=').ok_or(format!("'{item}' is not function=error"))?;
                let (error, nth) = match error.split_once('@') {
                    None => (error, None),
                    Some((error, nth)) => (
                        error,
                        Some(nth.parse().map_err(|_| format!("'{nth}' in '{item}' is no number"))?),
                    ),
                };
                Ok(Failure {
                    function: Function::by_name(function).ok_or(format!("no function '{function}'"))?,
                    error: status::by_name(error).ok_or(format!("no error '{error}'"))?,
                    nth,
                    seen: 0,
                })
            })
            .collect()
    }
}

/// Replaces the failures to inject.
pub(crate) fn inject(failures: Vec<Failure>) {
    let mut special = special();
    if failures.is_empty() {
        SPECIAL.fetch_and(!FAILING, Ordering::Relaxed);
    } else {
        SPECIAL.fetch_or(FAILING, Ordering::Relaxed);
    }
    special.failures = failures;
}

/// Runs an exported function's body. Nothing unwinds out of it.
#[inline]
pub(crate) fn enter(
    function: Function,
    body: impl FnOnce() -> Result,
    arguments: impl FnOnce() -> String,
) -> hipError_t {
    // The access fails in a thread that is about to end: such a call is not counted.
    let _ = THREAD.try_with(|thread| {
        if let Some(counter) = thread.counters.0.get(function as usize) {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    });
    let injected = match SPECIAL.load(Ordering::Relaxed) {
        0 => None,
        bits => extra(bits, function, arguments),
    };
    let result = match injected {
        Some(error) => Err(error),
        None => catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(sys::hipErrorUnknown)),
    };
    match result {
        Ok(()) => sys::hipSuccess,
        Err(error) => {
            // `hipErrorNotReady` is a query's answer, not a failure, and `hipGetLastError` must not
            // set the error that it returns.
            if error != sys::hipErrorNotReady && function != Function::hipGetLastError {
                let _ = THREAD.try_with(|thread| thread.last_error.set(error));
            }
            error
        }
    }
}

#[cold]
fn extra(bits: u8, function: Function, arguments: impl FnOnce() -> String) -> Option<hipError_t> {
    if bits & UNCONFIGURED != 0 {
        let config = config::get();
        let mut special = special();
        let mut set = 0;
        if let Some(path) = &config.trace {
            match File::create(path) {
                Ok(file) => {
                    special.trace = Some((file, Instant::now()));
                    set |= TRACED;
                }
                Err(error) => config::warn(&format!("cannot write {}: {error}", path.display())),
            }
        }
        if special.failures.is_empty() && !config.failures.is_empty() {
            special.failures.clone_from(&config.failures);
            set |= FAILING;
        }
        SPECIAL.fetch_or(set, Ordering::Relaxed);
        SPECIAL.fetch_and(!UNCONFIGURED, Ordering::Relaxed);
    }
    let mut special = special();
    if let Some((file, start)) = &mut special.trace {
        let name = NAMES.get(function as usize).copied().unwrap_or_default();
        // SAFETY: has no preconditions.
        let thread = unsafe { libc::gettid() };
        // A failed write of the trace must not change the traced program's behaviour.
        let _ = writeln!(file, "{} {thread} {name}({})", start.elapsed().as_nanos(), arguments());
    }
    injected(&mut special.failures, function as usize)
}

/// Returns the error to inject into this call: that of the first matching failure.
fn injected(failures: &mut [Failure], function: usize) -> Option<hipError_t> {
    let mut error = None;
    for failure in failures.iter_mut().filter(|failure| failure.function == function) {
        failure.seen += 1;
        if failure.nth.is_none_or(|nth| nth == failure.seen) {
            error = error.or(Some(failure.error));
        }
    }
    error
}

/// Formats arguments for the trace.
pub(crate) fn arguments(pairs: &[(&str, &dyn Debug)]) -> String {
    let shown: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    shown.join(", ")
}

/// Accesses the calling thread's state.
///
/// # Errors
///
/// In a thread that is about to end, whose state is already dropped.
pub(crate) fn thread<T>(body: impl FnOnce(&Thread) -> T) -> Result<T> {
    THREAD.try_with(body).map_err(|_| sys::hipErrorDeinitialized)
}

/// Returns the calling thread's last error, and clears it if `take`.
pub(crate) fn last_error(take: bool) -> hipError_t {
    thread(|thread| {
        let error = thread.last_error.get();
        if take {
            thread.last_error.set(sys::hipSuccess);
        }
        error
    })
    .unwrap_or(sys::hipSuccess)
}

/// Returns the calls of a function since the last reset, by all threads or the calling one; without
/// a name the calls of all functions.
///
/// Returns `u64::MAX` for an unknown function, so that a misspelt name does not read as zero.
pub(crate) fn count(name: Option<&str>, this_thread: bool) -> u64 {
    let functions = match name {
        None => 0..COUNT,
        Some(name) => match Function::by_name(name) {
            None => return u64::MAX,
            Some(function) => function..function + 1,
        },
    };
    if this_thread {
        return thread(|thread| {
            let baseline = thread.baseline.borrow();
            functions
                .filter_map(|function| Some((function, thread.counters.0.get(function)?.load(Ordering::Relaxed))))
                .map(|(function, count)| count - baseline.get(function).copied().unwrap_or(0))
                .sum()
        })
        .unwrap_or(0);
    }
    let totals = totals();
    functions
        .map(|function| totals.sum(function) - totals.baseline.get(function).copied().unwrap_or(0))
        .sum()
}

/// Resets the counts: the total of all threads, and the calling thread's.
pub(crate) fn reset() {
    let mut totals = totals();
    totals.baseline = (0..COUNT).map(|function| totals.sum(function)).collect();
    drop(totals);
    let _ = thread(|thread| {
        *thread.baseline.borrow_mut() = thread
            .counters
            .0
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
    });
}

/// Lists the functions that were called since the last reset, one `name count` per line.
pub(crate) fn summary() -> String {
    let totals = totals();
    NAMES
        .iter()
        .enumerate()
        .filter_map(|(function, name)| {
            let count = totals.sum(function) - totals.baseline.get(function).copied().unwrap_or(0);
            (count > 0).then(|| format!("{name} {count}\n"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read() {
        let failures =
            Failure::parse("hipMalloc=hipErrorOutOfMemory@3, hipModuleLoadData=hipErrorNoBinaryForGpu").unwrap();
        assert_eq!(failures.len(), 2);
        assert_eq!(
            (failures[0].error, failures[0].nth),
            (sys::hipErrorOutOfMemory, Some(3))
        );
        assert_eq!(
            (failures[1].error, failures[1].nth),
            (sys::hipErrorNoBinaryForGpu, None)
        );
        let mut failures = Failure::parse("hipMalloc=hipErrorOutOfMemory@1,hipMalloc=hipErrorUnknown@3").unwrap();
        let malloc = Function::hipMalloc as usize;
        let errors = [(); 4].map(|()| injected(&mut failures, malloc));
        let expected = [Some(sys::hipErrorOutOfMemory), None, Some(sys::hipErrorUnknown), None];
        assert_eq!(errors, expected);
        for wrong in [
            "hipMalloc",
            "hipMaloc=hipErrorUnknown",
            "hipMalloc=oops",
            "hipMalloc=hipErrorUnknown@x",
        ] {
            assert!(Failure::parse(wrong).is_err(), "{wrong}");
        }
    }
}
