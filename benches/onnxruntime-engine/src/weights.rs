//! Weights that are part of the model, because the setting says that they stay as they are: what
//! ONNX Runtime can then do beforehand is most of what models gain by it.
//!
//! They are looked at all the same. A buffer that was not seen before is compared in full, one that
//! was at a few places.

use crate::network::{Network, Port};
use rotini_engine_kit::Buffers;
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Places of a buffer that are looked at in each execution.
const PLACES: usize = 64;

/// The weights of a network, in the order of its inputs; none before the first execution.
#[derive(Default)]
pub(crate) struct Weights {
    contents: Vec<(Port, Vec<u8>)>,
    /// Which buffers of which were compared in full.
    compared: Mutex<HashSet<(usize, usize)>>,
}

impl Weights {
    /// Whether an input is one of them.
    pub(crate) fn has(&self, port: &Port) -> bool {
        self.contents.iter().any(|(own, _)| own.name == port.name)
    }

    /// Each with its bytes.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&Port, &[u8])> {
        self.contents.iter().map(|(port, bytes)| (port, bytes.as_slice()))
    }

    /// Where the weights of a network are in an execution.
    ///
    /// # Errors
    ///
    /// If the host gave no buffer for one.
    pub(crate) fn pointers(network: &Network, buffers: Buffers<'_>) -> Result<Vec<*mut c_void>, String> {
        let weights = network.inputs.iter().filter(|port| port.is_weight);
        weights.map(|port| buffers.pointer(&port.tensor)).collect()
    }

    /// Reads the weights of a network.
    ///
    /// # Safety
    ///
    /// The buffers have the spans of their tensors.
    pub(crate) unsafe fn read(network: &Network, pointers: &[*mut c_void]) -> Self {
        let weights = network.inputs.iter().filter(|port| port.is_weight);
        let contents = weights.zip(pointers).map(|(port, &pointer)| {
            // SAFETY: by this function's contract.
            let bytes = unsafe { bytes(port, pointer) };
            (port.clone(), bytes.to_vec())
        });
        Weights {
            contents: contents.collect(),
            compared: Mutex::default(),
        }
    }

    /// Whether the buffers of an execution hold these weights.
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read).
    pub(crate) unsafe fn are(&self, pointers: &[*mut c_void]) -> bool {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut both = self.contents.iter().zip(pointers).enumerate();
        let same = |(index, ((port, own), &pointer)): (usize, (&(Port, Vec<u8>), &*mut c_void))| {
            // SAFETY: by this function's contract.
            let given = unsafe { bytes(port, pointer) };
            let place = (index, pointer.addr());
            if compared.contains(&place) {
                // Odd, so that it meets every byte of elements.
                let distance = own.len().div_ceil(PLACES) | 1;
                return own.iter().step_by(distance).eq(given.iter().step_by(distance));
            }
            own == given && compared.insert(place)
        };
        self.contents.len() == pointers.len() && both.all(same)
    }
}

/// # Safety
///
/// The buffer has the port's bytes.
unsafe fn bytes<'a>(port: &Port, pointer: *const c_void) -> &'a [u8] {
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts(pointer.cast(), port.bytes().unwrap_or(0)) }
}
