//! The C ABI: what hipDNN calls.
//!
//! Every exported function is a thin shell: a guard that catches panics, checks of its pointers, a
//! call of safe Rust, and the result as a status. The text of an error is kept per thread until the
//! next one (`last_error`).

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

/// The engine API that is implemented: 1.5.0. Hosts offer graphs by this version alone, so it is
/// raised only with what it promises: shapes at execution (1.1), scalars at execution (1.2), ragged
/// tensors and alignments (1.3), engine names (1.4), candidates and predictions (1.5). What of them
/// is not executed is declined, graph by graph.
pub const API_VERSION: [u32; 3] = [1, 5, 0];
