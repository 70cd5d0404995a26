//! Tests that need neither a GPU nor several processes: one process can run all of them on the CPU.
//!
//! | Module | What it asserts |
//! |---|---|
//! | `cases` | every case is right, through the C ABI of the shared library, on the CPU |
//! | `random_graphs` | graphs from a seed are right, or declined with a reason |
//! | `attributes` | every attribute of every operation changes what is compiled, or the reason why nothing is |
//! | `custom` | bodies of custom operations: what is accepted is right, what is hostile is declined |
//! | `engines` | the engines that rotini is measured against are right themselves |
//! | `rounding` | half-precision graphs round once, and the judge would see it if they did not |
//! | `gfx942` | what is compiled for MI300: dispatches, MFMA, registers (compile only: nothing is executed) |
//! | `kernels` | the text of kernels, whole, in snapshots |
//! | `robustness` | mutated graphs through every entry point |
//! | `structure` | the sources: circles of imports, lengths of files, the register of quirks and its document |
//! | `torch_sums` | sums in f32 err at most eight times as much as PyTorch's |

mod attributes;
mod cases;
mod custom;
mod engines;
mod gfx942;
mod kernels;
mod random_graphs;
mod robustness;
mod rounding;
mod structure;
mod torch_sums;
