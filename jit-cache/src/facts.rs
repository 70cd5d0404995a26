//! The facts about compiled code, each under one name.

use serde::{Deserialize, Serialize};

/// The target of compiled code and its features. The target is a text in this crate; a caller that
/// knows targets has a type for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledFor<T = String> {
    /// The architecture or product, as passed to the compiler: `gfx942`, `x86_64`.
    pub target: T,
    /// The features of that target that the code may use, as passed to the compiler. For the host's
    /// CPU this is the resolved list, never `host`: a cache's directory may be shared between
    /// machines.
    pub features: String,
}

impl<T: ToString> CompiledFor<T> {
    /// Returns a copy with the target as text, the form that keys and entries use.
    pub fn to_text(&self) -> CompiledFor {
        CompiledFor {
            target: self.target.to_string(),
            features: self.features.clone(),
        }
    }
}

impl<T> From<T> for CompiledFor<T> {
    /// Returns a value without features: the target determines everything that code for it depends
    /// on.
    fn from(target: T) -> Self {
        CompiledFor {
            target,
            features: String::new(),
        }
    }
}

/// The facts about compiled code that are known without reading the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFacts {
    /// The program and the compiler that made the code, for people.
    pub producer: String,
    /// The target of the code, as in `KeyInputs`. Whoever loads code from serialized bytes, which
    /// did not come through a key, decides by this field whether the code may run on this machine.
    pub compiled_for: CompiledFor,
    /// The workspace of one execution, in bytes: exactly the device memory that it needs besides
    /// its tensors.
    pub workspace_bytes: u64,
    /// The number of kernels one execution launches.
    pub dispatches: u32,
}
