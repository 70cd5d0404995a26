//! The C ABI: the functions that hipDNN calls.
//!
//! Every exported function is a thin shell: it catches panics, checks its pointers, calls safe Rust
//! and returns the result as a status. The text of an error is kept per thread until the next error
//! (`last_error`).

pub mod base;
pub mod context;
pub mod engine;
mod given;
mod guard;
mod last_error;
pub mod logging;
pub mod predictions;
pub mod types;

pub use types::{Bytes, LogSeverity};

/// The engine API version that is implemented: 1.5.0. Hosts decide by this version alone which
/// graphs they offer, so it is raised only together with the features that it promises: shapes at
/// execution (1.1), scalars at execution (1.2), ragged tensors and alignments (1.3), engine names
/// (1.4), candidates and predictions (1.5). Graphs that use an unsupported part of these features
/// are declined one by one.
pub const API_VERSION: [u32; 3] = [1, 5, 0];
