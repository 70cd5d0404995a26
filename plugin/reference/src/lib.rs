//! A CPU executor of operation graphs, and the judge of compiled kernels' results.
//!
//! The crate shares no code with the lowering except the IR's types: each operation is implemented
//! a second time from the IR's docs, as plainly as possible, in `f64` (or `i64` where the compute
//! type is an integer). Because the two implementations have only the graph's meaning in common, a
//! fault in either one shows as a difference.
//!
//! # What flows through
//!
//! [`fill()`] makes seeded bytes for every tensor of a graph that is in a buffer. [`execute`] reads
//! the inputs from such bytes through their strides and writes the outputs, rounding each value
//! once. [`compare()`] checks a kernel's output bytes against the reference's within a
//! [`Tolerance`] of hipDNN's table.
//!
//! [`evaluate()`] stops before the outputs are rounded and also computes, for each value, a bound
//! on the error of a kernel that keeps the graph's meaning: [`Evaluation::judge`] accepts results
//! within that bound and no others. The bounds catch faults that a table wide enough for every
//! kernel cannot: a rounded intermediate, a truncated operand.

mod attention;
mod block_scale;
mod compare;
mod context;
mod conv;
mod custom;
mod element;
mod error;
mod evaluate;
mod fill;
mod functions;
mod hidden;
mod matmul;
mod moe;
mod narrow;
mod norm;
mod pointwise;
mod real;
mod reduction;
mod resample;
mod sums;
mod tensors;
mod value;
mod walk;

pub use compare::{Mismatch, Report, Tolerance, Worst, compare, tolerance};
pub use context::{Options, Precision};
pub use error::ReferenceError;
pub use evaluate::{Evaluation, evaluate, execute, execute_with};
pub use fill::{Profile, UNTOUCHED, fill, fill_all, fill_all_with, fill_around, fill_with, profile};
pub use tensors::{Buffers, span_bytes};
