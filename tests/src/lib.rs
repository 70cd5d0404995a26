//! Code that the suites share: the cases and their facts, graphs with changing shapes, a harness
//! that runs them through the plugin's C ABI, and a reader of compiled AMD GPU code.
//!
//! | Suite | Scope |
//! |---|---|
//! | `conformance` | the CPU, one process: cases, random graphs, attributes; code for MI300 |
//! | `emulated` | the emulated MI300: cases, random graphs, HIP calls, memory, stream order |
//! | `process` | the C ABI; caches, compilers, contexts between processes: kills, faults, leaks |
//!
//! Each suite is one program, because linking dominates the build time. Cases that passed before
//! are [not executed each time](proven).

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "this crate is for this workspace alone, and `proven` names what it is made of"
)]

pub mod cases;
pub mod code_object;
pub mod damage;
pub mod engines;
pub mod facts;
pub mod harness;
mod modes;
pub mod operations;
pub mod plugin;
pub mod process;
pub mod proven;
pub mod quirks;
pub mod random;
mod range;
pub mod rows;
pub mod samples;
pub mod shapes;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The targets whose emitted code is checked, without a compiler.
pub const EMITTED_FOR: [&str; 7] = [
    "cpu",
    "x86-64-v3",
    "x86-64-v4",
    "gfx942",
    "mi300x",
    "mi300x:unscheduled",
    "sm_80",
];

/// Returns the seed by which a run chooses, `ROTINI_TEST_SEED`; 0 if it is not set.
#[must_use]
pub fn seed() -> u64 {
    let text = std::env::var("ROTINI_TEST_SEED").unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Returns the size of a mass test: the first number, or the second in a full run
/// (`ROTINI_TEST_SCALE=full`).
#[must_use]
pub fn scaled<T: Copy>([usual, full]: [T; 2]) -> T {
    match std::env::var("ROTINI_TEST_SCALE").as_deref() {
        Ok("full") => full,
        _ => usual,
    }
}

/// Returns a share of these, on average one in `one_in`, chosen by [`seed`]. A full run has all.
#[must_use]
pub fn share_of<T>(all: Vec<T>, one_in: u64) -> Vec<T> {
    let one_in = scaled([one_in, 1]);
    let is_chosen = |index: usize| {
        let mut hasher = DefaultHasher::new();
        (seed(), index).hash(&mut hasher);
        hasher.finish().is_multiple_of(one_in)
    };
    let numbered = all.into_iter().enumerate();
    numbered
        .filter_map(|(index, one)| is_chosen(index).then_some(one))
        .collect()
}
