//! What there is to know of compiled code, each fact under one name.

use serde::{Deserialize, Serialize};

/// What code is compiled for. The target is a text here; who knows targets has a type for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledFor<T = String> {
    /// The architecture or product, as it is given to the compiler: `gfx942`, `x86_64`.
    pub target: T,
    /// The features of that target which the code may use, as they are given to the compiler. For
    /// the host's CPU the resolved list, never `host`: a cache's directory may be shared between
    /// machines.
    pub features: String,
}

impl<T: ToString> CompiledFor<T> {
    /// Returns the same as text, as keys and entries have it.
    pub fn to_text(&self) -> CompiledFor {
        CompiledFor {
            target: self.target.to_string(),
            features: self.features.clone(),
        }
    }
}

impl<T> From<T> for CompiledFor<T> {
    /// Returns what names no features: the target says all that code for it depends on.
    fn from(target: T) -> Self {
        CompiledFor {
            target,
            features: String::new(),
        }
    }
}

/// What is known of compiled code without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFacts {
    /// Who made the code: program and compiler, for people.
    pub producer: String,
    /// What it was compiled for, as in `KeyInputs`. Who loads code that did not come through its
    /// key, from serialized bytes, decides by this whether it may run here.
    pub compiled_for: CompiledFor,
    /// The device memory one execution needs besides its tensors, in bytes: exact.
    pub workspace_bytes: u64,
    /// The number of kernels one execution launches.
    pub dispatches: u32,
}
