//! Predicts the times of kernels on an MI300 from the emulator's counts. Nothing here is measured.
//!
//! | Module | Owns |
//! |---|---|
//! | `record`, `step`, `path`, `error` | the emulator's counts of a launch, and their text form |
//! | [`clocks`] | the clocks that an instruction occupies |
//! | `residence` | the number of workgroups that a compute unit holds |
//! | [`machine`] | the machines |
//! | `calibration` | constants measured on one device |
//! | `parameters` | the fitted parameters |
//! | `unit` | one compute unit, event by event |
//! | `balance` | workgroups with different work on all compute units |
//! | `traffic` | bytes from memory and from Infinity Cache |
//! | `predict` | the time of a launch, its interval, and its bound |
//!
//! The test `model` compares predictions with kernels that others measured on an MI300X.

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
