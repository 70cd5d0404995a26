//! rotini as a library: everything that is hipDNN's.
//!
//! # What flows through
//!
//! hipDNN calls the C functions of [`abi`] with bytes and handles. The bytes become a graph (`rotini-wire`), the graph a plan: the
//! [`pipeline`] is the only place that joins decoding, lowering, compiling, caching and loading. A plan is executed through a
//! [`context::ExecutionContext`] on a [`device::Device`].
//!
//! Execution reads no global lock: what it needs hangs off the context.

pub mod abi;
mod apart;
pub mod compiler;
pub mod config;
pub mod context;
pub mod device;
pub mod engine;
pub mod error;
mod fork;
pub mod handle;
pub mod knobs;
pub mod known_compilers;
pub mod pipeline;
pub mod plan;
pub mod reproducer;
pub mod serialized;
mod told;

pub use error::{Error, Status};
