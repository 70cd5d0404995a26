//! A CPU executor of operation graphs that judges the compiled ones.
//!
//! It shares nothing with the lowering but the IR's types: each operation is written down from the
//! IR's docs once more, as plainly as possible, in `f64` (or `i64` where the compute type is an
//! integer). What both have in common is the graph's meaning alone, so that a fault of one is seen
//! as a difference.
//!
//! # What flows through
//!
//! [`fill()`] makes seeded bytes for every tensor of a graph that is in a buffer. [`execute`] reads
//! the inputs from such bytes through their strides and writes the outputs, each value rounded
//! once. [`compare()`] holds a kernel's bytes against that within a [`Tolerance`] of hipDNN's
//! table.
//!
//! [`evaluate()`] stops before the outputs are rounded and, if asked, carries along how far a
//! kernel that keeps the graph's meaning can be from each value: [`Evaluation::judge`] accepts the
//! results within that bound and no others. It finds what a table wide enough for every kernel
//! cannot: an intermediate that was rounded, an operand that was truncated.

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
