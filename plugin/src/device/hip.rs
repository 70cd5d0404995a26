//! AMD GPUs: IREE's HIP driver on the caller's device pointers and stream.
//!
//! Wired through the same trait as the CPU, and never run on a GPU: none was at hand. IREE's device takes a caller's stream once, when it
//! is created, so there is one device, and one loaded copy of the code, per stream that executions were sent to.

use super::{Buffers, Device, Executable, ExecuteError, Stream, Work, parameters};
use crate::error::Error;
use iree_sys::runtime::{Device as IreeDevice, Executable as Module, GpuOptions, Instance, Invocation, Session};
use rotini_emit::{ENTRY_POINT, Signature, Target};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first AMD GPU.
pub struct Hip {
    streams: Arc<Streams>,
    target: Target,
    name: String,
}

/// IREE's devices, one per stream.
struct Streams {
    instance: Instance,
    devices: Mutex<HashMap<usize, IreeDevice>>,
}

/// Products that the compiler knows by name, as they stand in the names of devices.
const PRODUCTS: [(&str, &str); 4] = [
    ("MI300X", "mi300x"),
    ("MI300A", "mi300a"),
    ("MI308X", "mi308x"),
    ("MI325X", "mi325x"),
];

impl Hip {
    /// The first GPU, compiled for as it says it is unless `target` says otherwise.
    ///
    /// # Errors
    ///
    /// If there is no driver library or no GPU, or if the GPU is none that is known.
    pub fn new(instance: &Instance, target: Option<&Target>) -> Result<Self, Error> {
        let names = IreeDevice::hip_names().map_err(Error::runtime("no AMD GPU can be used"))?;
        let name = names
            .into_iter()
            .next()
            .ok_or_else(|| Error::InvalidArgument("no AMD GPU is there".to_owned()))?;
        let target = match target {
            Some(target @ Target::Rocm { .. }) => target.clone(),
            Some(other) => return Err(Error::InvalidArgument(format!("ROTINI_TARGET={other} is no AMD GPU"))),
            None => product(&name).ok_or_else(|| {
                Error::InvalidArgument(format!(
                    "the GPU '{name}' is none that is known; ROTINI_TARGET can name its architecture"
                ))
            })?,
        };
        let streams = Arc::new(Streams {
            instance: instance.clone(),
            devices: Mutex::default(),
        });
        Ok(Hip { streams, target, name })
    }
}

/// The target of a device by its name.
fn product(name: &str) -> Option<Target> {
    let (_, product) = PRODUCTS.iter().find(|(part, _)| name.contains(part))?;
    Some(Target::Rocm {
        arch: (*product).to_owned(),
    })
}

impl Streams {
    fn device(&self, stream: Stream) -> Result<IreeDevice, iree_sys::runtime::Error> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        match devices.entry(stream.0.addr()) {
            Entry::Occupied(device) => Ok(device.get().clone()),
            Entry::Vacant(place) => {
                let options = GpuOptions {
                    stream: Some(stream.0.addr() as u64),
                    ..GpuOptions::default()
                };
                Ok(place.insert(IreeDevice::hip(&self.instance, &options)?).clone())
            }
        }
    }
}

impl Device for Hip {
    fn target(&self) -> Target {
        self.target.clone()
    }

    fn features(&self) -> &str {
        // All that is compiled for is named by the target.
        ""
    }

    fn describe(&self) -> String {
        format!("{} ({})", self.name, self.target)
    }

    unsafe fn load(&self, code: &[u8], signature: &Signature, _: Work) -> Result<Arc<dyn Executable>, Error> {
        // SAFETY: the code is the compiler's by this function's contract.
        let module = unsafe { Module::load(&self.streams.instance, Arc::from(code)) }
            .map_err(Error::runtime("the compiled graph cannot be loaded"))?;
        let workspace_bytes = module
            .workspace_bytes(ENTRY_POINT)
            .map_err(Error::runtime("the compiled graph's signature is wrong"))?;
        Ok(Arc::new(HipExecutable {
            streams: Arc::clone(&self.streams),
            module,
            signature: signature.clone(),
            workspace_bytes,
            invocations: Mutex::default(),
        }))
    }
}

/// Code that is loaded once per stream.
struct HipExecutable {
    streams: Arc<Streams>,
    module: Module,
    signature: Signature,
    workspace_bytes: usize,
    invocations: Mutex<HashMap<usize, Invocation>>,
}

impl HipExecutable {
    fn invocations(&self) -> MutexGuard<'_, HashMap<usize, Invocation>> {
        self.invocations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_invocation(&self, stream: Stream) -> Result<Invocation, iree_sys::runtime::Error> {
        let session = Session::new(&self.streams.device(stream)?, &self.module)?;
        Invocation::new(session, ENTRY_POINT, parameters(&self.signature)?)
    }
}

impl Executable for HipExecutable {
    fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes as u64
    }

    unsafe fn execute(&self, stream: Stream, buffers: &Buffers<'_>) -> Result<(), ExecuteError> {
        if let Some(index) = buffers.pointers.iter().position(|pointer| pointer.is_null()) {
            return Err(ExecuteError::Null(index));
        }
        if self.workspace_bytes > 0 && buffers.workspace.is_null() {
            return Err(ExecuteError::MissingWorkspace(self.workspace_bytes as u64));
        }
        // Taken out for the call: no lock is held across it, and a thread that finds none makes its own.
        let stored = self.invocations().remove(&stream.0.addr());
        let mut invocation = match stored {
            Some(invocation) => invocation,
            None => self.new_invocation(stream)?,
        };
        for (index, &pointer) in buffers.pointers.iter().enumerate() {
            // SAFETY: the pointers are valid until the work is done, by this function's contract.
            unsafe { invocation.bind(index, pointer)? };
        }
        // SAFETY: as above.
        unsafe { invocation.bind_workspace(buffers.workspace, self.workspace_bytes)? };
        invocation.invoke()?;
        self.invocations().insert(stream.0.addr(), invocation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_their_names() {
        let arch = |name| product(name).map(|target| target.to_string());
        assert_eq!(arch("AMD Instinct MI300X").as_deref(), Some("mi300x"));
        assert_eq!(arch("AMD Instinct MI300A").as_deref(), Some("mi300a"));
        assert_eq!(arch("AMD Radeon RX 7900"), None);
    }
}
