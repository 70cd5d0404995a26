//! Concurrent executions on one GPU, and the attribution of failures.
//!
//! A fault of the emulated GPU fails the calls of all threads, as on a real GPU. The emulator
//! reports whose command faulted: that execution has failed, even if it succeeds alone. An
//! execution that failed without a fault of its own runs again, beside the same others. No other
//! failure is retried: a failure that does not recur is still a failure.

use super::Runner;
use super::memory::Place;
use anyhow::{Error, Result, anyhow};
use rotini_host::gpu::{Gpu, GpuError};
use std::ffi::{CStr, c_char};
use std::sync::{PoisonError, RwLock};

/// Shared by all executions of this process; held exclusively to repair the GPU, or to run
/// something alone.
static COMPANY: RwLock<()> = RwLock::new(());

impl Runner {
    /// Runs a closure that executes, waits and judges.
    pub(super) fn executing<T>(&self, execute: impl Fn() -> Result<T>) -> Result<T> {
        loop {
            let company = COMPANY.read().unwrap_or_else(PoisonError::into_inner);
            let error = match execute() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            // While others execute too, the GPU's faults must not be cleared.
            let (own, pending) = (self.take_own_fault(), self.pending_error());
            drop(company);
            let _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
            let stray = self.repair();
            let is_own = own.is_some() || stray.is_some() || self.pending_error().is_some();
            if !is_own && pending.is_some_and(|name| format!("{error:#}").contains(&name)) {
                continue;
            }
            let first = with_fault(with_fault(error, own), stray);
            let again = execute().map_err(|error| with_fault(error, self.take_own_fault()));
            self.repair();
            return Err(both(&first, again.err()));
        }
    }

    /// Takes the first fault of the calling thread's commands from the emulator.
    fn take_own_fault(&self) -> Option<String> {
        text_of(self.emulator()?, "hipemu_take_thread_fault")
    }

    /// Returns the name of the error that all calls to the emulator return since a fault.
    fn pending_error(&self) -> Option<String> {
        match self.emulator()?.synchronize() {
            Err(GpuError::Call { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Makes the emulator's GPU usable again, and returns a fault that no execution has claimed. No
    /// execution runs meanwhile.
    fn repair(&self) -> Option<String> {
        let gpu = self.emulator()?;
        // Work that was submitted outside this lock is complete then.
        _ = gpu.synchronize();
        let stray = text_of(gpu, "hipemu_last_fault");
        // SAFETY: the emulator declares this signature; no other library has such a function.
        if let Ok(clear) = unsafe { gpu.driver().function::<unsafe extern "C" fn()>("hipemu_clear_fault") } {
            // SAFETY: takes nothing.
            unsafe { clear() };
        }
        stray.map(|fault| format!("nothing that is executed here made this fault: {fault}"))
    }

    /// The GPU, if it is emulated.
    fn emulator(&self) -> Option<&Gpu> {
        let Place::Gpu(gpu) = &self.place else { return None };
        // SAFETY: looked up, not called.
        let is_emulated = unsafe { gpu.driver().function::<unsafe extern "C" fn()>("hipemu_clear_fault") }.is_ok();
        is_emulated.then_some(gpu)
    }
}

/// Returns the text of one of the emulator's text functions, for the current GPU.
fn text_of(gpu: &Gpu, function: &str) -> Option<String> {
    gpu.select().ok()?;
    // SAFETY: the emulator declares these signatures; no other library has such functions. The text
    // is valid until the thread's next call of one.
    unsafe {
        let text = gpu
            .driver()
            .function::<unsafe extern "C" fn() -> *const c_char>(function)
            .ok()?();
        if text.is_null() {
            return None;
        }
        Some(CStr::from_ptr(text).to_string_lossy().into_owned()).filter(|text| !text.is_empty())
    }
}

fn with_fault(error: Error, fault: Option<String>) -> Error {
    match fault {
        Some(fault) => error.context(fault),
        None => error,
    }
}

/// Combines a failure with the result of the same execution alone.
fn both(first: &Error, alone: Option<Error>) -> Error {
    let first = format!("{first:#}");
    match alone.map(|error| format!("{error:#}")) {
        None => anyhow!("{first}\nalone it is right: it needs company to fail, or does not always"),
        Some(alone) if alone == first => anyhow!(first),
        Some(alone) => anyhow!("{first}\nalone it fails too: {alone}"),
    }
}
