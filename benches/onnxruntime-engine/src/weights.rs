//! Weights that are part of the model, because the setting promises that they do not change. Models
//! gain most from what ONNX Runtime can then compute in advance.
//!
//! The promise is checked nevertheless: a buffer that is new is compared completely, and a known
//! one at a few positions.

use crate::network::{Network, Port};
use rotini_engine_kit::Buffers;
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Number of positions of a buffer that are compared in each execution.
const PLACES: usize = 64;

/// The weights of a network, in the order of its inputs; empty before the first execution.
#[derive(Default)]
pub(crate) struct Weights {
    contents: Vec<(Port, Vec<u8>)>,
    /// The buffers that were compared completely: index of the weight, and address.
    compared: Mutex<HashSet<(usize, usize)>>,
}

impl Weights {
    /// Returns true if an input is one of the weights.
    pub(crate) fn has(&self, port: &Port) -> bool {
        self.contents.iter().any(|(own, _)| own.name == port.name)
    }

    /// Returns the weights with their bytes.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&Port, &[u8])> {
        self.contents.iter().map(|(port, bytes)| (port, bytes.as_slice()))
    }

    /// Returns the pointers to a network's weights in an execution.
    ///
    /// # Errors
    ///
    /// Fails if the host passed no buffer for a weight.
    pub(crate) fn pointers(network: &Network, buffers: Buffers<'_>) -> Result<Vec<*mut c_void>, String> {
        let weights = network.inputs.iter().filter(|port| port.is_weight);
        weights.map(|port| buffers.pointer(&port.tensor)).collect()
    }

    /// Reads the weights of a network.
    ///
    /// # Safety
    ///
    /// The buffers must have the spans of their tensors.
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

    /// Returns true if the buffers of an execution hold these weights.
    ///
    /// # Safety
    ///
    /// The same as for [`read`](Self::read).
    pub(crate) unsafe fn are(&self, pointers: &[*mut c_void]) -> bool {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut both = self.contents.iter().zip(pointers).enumerate();
        let same = |(index, ((port, own), &pointer)): (usize, (&(Port, Vec<u8>), &*mut c_void))| {
            // SAFETY: by this function's contract.
            let given = unsafe { bytes(port, pointer) };
            let place = (index, pointer.addr());
            if compared.contains(&place) {
                // The distance is odd, so that every byte position within an element is sampled.
                let distance = own.len().div_ceil(PLACES) | 1;
                return own.iter().step_by(distance).eq(given.iter().step_by(distance));
            }
            own == given && compared.insert(place)
        };
        self.contents.len() == pointers.len() && both.all(same)
    }
}

/// Returns the bytes of a port's buffer.
///
/// # Safety
///
/// The buffer must have the port's bytes.
unsafe fn bytes<'a>(port: &Port, pointer: *const c_void) -> &'a [u8] {
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts(pointer.cast(), port.bytes().unwrap_or(0)) }
}
