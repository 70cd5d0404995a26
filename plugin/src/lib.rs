//! rotini as a library: everything that is specific to hipDNN.
//!
//! # What flows through
//!
//! hipDNN calls the C functions of [`abi`] with bytes and handles. The bytes become a graph
//! (`rotini-wire`), the graph becomes a context: the [`pipeline`] is the only place that joins
//! decoding, lowering, compiling, caching and loading. The [`context::ExecutionContext`] executes
//! on a [`device::Device`].
//!
//! Execution takes no global lock: everything that it needs is reachable from the context.

pub mod abi;
pub mod attempts;
pub mod candidates;
mod code;
pub mod compile;
pub mod compiler;
pub mod config;
pub mod context;
pub mod device;
pub mod engine_id;
pub mod error;
mod fork;
pub mod handle;
pub mod knobs;
pub mod known_compilers;
mod neighbours;
mod own_thread;
pub mod pipeline;
pub mod prepared;
pub mod reproducer;
pub mod runtime;
pub mod serialized;
mod settings;
mod told;
pub mod tuned;
mod tuning;
mod winners;

pub use error::{Error, Status};
