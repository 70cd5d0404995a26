//! What the suites share: the cases, a harness that runs them through the plugin's C ABI, and a reader of compiled AMD GPU code.
//!
//! | Suite | What it asserts |
//! |---|---|
//! | `conformance` | every case is right, through the C ABI of the shared library, on the CPU |
//! | `gfx942` | what is compiled for MI300: dispatches, MFMA, registers (compile only: nothing is executed) |
//! | `abi` | symbols, dependencies, errors, statuses, workspace, threads |
//! | `robustness` | mutated graphs through every entry point |

pub mod cases;
pub mod code_object;
pub mod harness;
pub mod plugin;
