//! Loaded code, and the table of the code in use.

use crate::device::{Device, Executable, Work};
use crate::error::Error;
use crate::serialized::Portable;
use rotini_cache::Key;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Loaded code, shared by all contexts of its graph on its device, with what another process needs
/// to load it.
pub(crate) struct Code {
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) portable: Portable,
}

/// The code in use, by device and key.
#[derive(Default)]
pub(crate) struct Codes(Mutex<HashMap<(usize, Key), Weak<Code>>>);

impl Codes {
    /// Returns the code with this key, if a context uses it.
    pub(crate) fn get(&self, device: &Arc<dyn Device>, key: &Key) -> Option<Arc<Code>> {
        let codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.get(&(identity(device), *key)).and_then(Weak::upgrade)
    }

    /// Loads code and adds it to the table.
    ///
    /// # Errors
    ///
    /// If the device refuses it.
    pub(crate) fn load(&self, device: &Arc<dyn Device>, key: &Key, portable: Portable) -> Result<Arc<Code>, Error> {
        let work = Work {
            operations: portable.operations,
        };
        // SAFETY: the code comes from the compiler: directly, through a verified cache that only
        // the user can write to, or through bytes that the host vouches for.
        let executable = unsafe { device.load(key, &portable.code, &portable.signature, work) }?;
        let code = Arc::new(Code { executable, portable });
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, code| code.strong_count() > 0);
        codes.insert((identity(device), *key), Arc::downgrade(&code));
        Ok(code)
    }
}

/// Returns a number that distinguishes devices while they are alive.
fn identity(device: &Arc<dyn Device>) -> usize {
    Arc::as_ptr(device).addr()
}
