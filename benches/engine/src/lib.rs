//! The skeleton of a hipDNN engine plugin: the trait [`Engine`], and [`export_engine!`], which
//! exports an implementation as a plugin's library.
//!
//! It exists for engines other than rotini's: to compare rotini's speed with them, and to test how
//! a host handles engines that fail. It shares no code with `rotini-plugin`, so that a
//! misunderstanding of the ABI in one is not hidden by the same one in the other. Both read graphs
//! with `rotini-wire`.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`abi`] | the bodies of the exported functions |
//! | [`reference`](mod@reference) | the reference engine, on the host and on GPUs |
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
