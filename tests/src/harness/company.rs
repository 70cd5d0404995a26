//! Executions side by side on one GPU, and which of them failed.
//!
//! A fault of the emulated GPU fails the calls of all threads, as on a real GPU. The emulator tells
//! whose command faulted: that execution has failed, even if it succeeds alone. An execution that
//! failed without a fault of its own runs again, beside the same others. No other failure is
//! repeated: a failure that does not come again is a failure.

use super::Runner;
use super::memory::Place;
use anyhow::{Error, Result, anyhow};
use rotini_host::gpu::{Gpu, GpuError};
use std::ffi::{CStr, c_char};
use std::sync::{PoisonError, RwLock};

/// All executions of this process share it; who makes the GPU usable again, or looks at something
/// alone, has it for himself.
static COMPANY: RwLock<()> = RwLock::new(());

impl Runner {
    /// Does what executes something, waits for it and judges it.
    pub(super) fn executing<T>(&self, execute: impl Fn() -> Result<T>) -> Result<T> {
        loop {
            let company = COMPANY.read().unwrap_or_else(PoisonError::into_inner);
            let error = match execute() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            // While others execute too, nobody makes the GPU forget anything.
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

    /// The first fault of what the calling thread has sent to the emulator.
    fn take_own_fault(&self) -> Option<String> {
        text_of(self.emulator()?, "hipemu_take_thread_fault")
    }

    /// The name of the error that all calls to the emulator give since a fault.
    fn pending_error(&self) -> Option<String> {
        match self.emulator()?.synchronize() {
            Err(GpuError::Call { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Makes the emulator's GPU usable again, and tells a fault that no execution has taken for its
    /// own. Nobody executes meanwhile.
    fn repair(&self) -> Option<String> {
        let gpu = self.emulator()?;
        // Whoever is still at work without the company's knowledge has come to an end then.
        _ = gpu.synchronize();
        let stray = text_of(gpu, "hipemu_last_fault");
        // SAFETY: the emulator declares it so; no other library has such a function.
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

/// What one of the emulator's functions that give text has to say about the GPU.
fn text_of(gpu: &Gpu, function: &str) -> Option<String> {
    gpu.select().ok()?;
    // SAFETY: the emulator declares them so; no other library has such functions. The text is there
    // until the thread's next call of one.
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

/// A failure, with what came of the same alone.
fn both(first: &Error, alone: Option<Error>) -> Error {
    let first = format!("{first:#}");
    match alone.map(|error| format!("{error:#}")) {
        None => anyhow!("{first}\nalone it is right: it needs company to fail, or does not always"),
        Some(alone) if alone == first => anyhow!(first),
        Some(alone) => anyhow!("{first}\nalone it fails too: {alone}"),
    }
}
