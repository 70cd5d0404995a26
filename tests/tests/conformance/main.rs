//! Tests that need neither a GPU nor several processes: one process can run all of them on the CPU.
//!
//! | Module | Assertion |
//! |---|---|
//! | `cases` | every case is right, through the C ABI of the shared library, on the CPU |
//! | `random_graphs` | graphs from a seed are right, or declined with a reason |
//! | `attributes` | every attribute changes the module, or the graph is declined |
//! | `custom` | bodies of custom operations: accepted ones are right, hostile ones are declined |
//! | `engines` | the engines that rotini is measured against are right themselves |
//! | `rounding` | half-precision graphs round once, and the judge would notice if they did not |
//! | `gfx942` | code for MI300: dispatches, MFMA, registers (nothing is executed) |
//! | `kernels` | the whole text of kernels, in snapshots |
//! | `robustness` | mutated graphs through every entry point |
//! | `structure` | the sources: import cycles, lengths of files, the register of quirks |
//! | `torch_sums` | the error of sums in f32 is at most eight times PyTorch's |

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
