//! The skeleton of a hipDNN engine plugin: what an [`Engine`] does, and [`export_engine!`], which
//! makes a plugin's library of it.
//!
//! It exists to have other engines than rotini's: to measure rotini against them, and to see how a
//! host handles engines that fail. It shares no code with `rotini-plugin`, so that a mistake about
//! the ABI does not cancel itself. What both know is the graph: its bytes are read by
//! `rotini-wire`.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`abi`] | the bodies of the exported functions |
//! | [`reference`](mod@reference) | the plain engine: `rotini-reference` in the host's memory and on GPUs |
//!
//! ```
//! use rotini_engine_kit::{Engine, Execution, Graph, export_engine};
//! use std::ffi::CStr;
//!
//! /// An engine that runs nothing.
//! struct Idle;
//!
//! impl Engine for Idle {
//!     const PLUGIN: &'static CStr = c"idle";
//!     const VERSION: &'static CStr = c"0.1.0";
//!     const NAME: &'static CStr = c"IDLE_ENGINE";
//!
//!     fn new() -> Result<Self, String> {
//!         Ok(Idle)
//!     }
//!
//!     fn applicable(&self, _graph: &Graph) -> Result<(), String> {
//!         Err("it runs nothing".to_owned())
//!     }
//!
//!     fn context(&self, _graph: &Graph) -> Result<Box<dyn Execution>, String> {
//!         Err("it runs nothing".to_owned())
//!     }
//! }
//!
//! export_engine!(Idle);
//! ```

pub mod abi;
mod device;
mod engine;
mod export;
pub mod reference;

pub use engine::{BehaviorNote, Buffers, Engine, Execution};
pub use rotini_graph::Graph;
