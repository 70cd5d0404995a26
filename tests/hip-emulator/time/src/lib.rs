//! Predicts how long kernels take on an MI300 from what the emulator counted. Nothing here is a
//! measurement.
//!
//! | Module | Owns |
//! |---|---|
//! | `record`, `step`, `path`, `error` | what the emulator counted of a launch, and its text form |
//! | [`clocks`], `residence` | what an instruction occupies; how many workgroups a compute unit holds |
//! | [`machine`] | the machines |
//! | `calibration` | constants measured on one device |
//! | `parameters` | what was fitted |
//! | `unit` | one compute unit, event by event |
//! | `balance` | workgroups with different work on all compute units |
//! | `traffic` | bytes from memory and from Infinity Cache |
//! | `predict` | the time of a launch, its interval, what bounds it |
//!
//! The test `model` holds it against kernels that others measured on an MI300X.

mod balance;
mod calibration;
pub mod clocks;
mod error;
pub mod machine;
mod parameters;
mod path;
mod predict;
mod record;
mod residence;
mod step;
mod traffic;
mod unit;

pub use calibration::{Calibration, Measured, Sustained};
pub use error::RecordError;
pub use machine::{MACHINES, MI300X, Machine};
pub use parameters::{Half, Parameters};
pub use path::{Path, Run};
pub use predict::{Bound, Predicted, Prediction, predict};
pub use record::Record;
pub use residence::Residence;
pub use step::{Instruction, Operands, Step};
pub use traffic::Caches;
