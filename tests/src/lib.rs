//! What the suites share: the cases and what each proves, graphs whose shapes change, a harness that runs them through the plugin's C ABI, and a reader of compiled AMD GPU code.
//!
//! | Suite | What it asserts |
//! |---|---|
//! | `conformance` | every case is right, through the C ABI of the shared library, on the CPU |
//! | `emulated` | the same on the emulated MI300, or on a GPU that `ROTINI_TEST_DEVICE` names ([`harness::gpu`]) |
//! | `mutants` | the harness fails a plugin that is made worse |
//! | `random_graphs`, `random_emulated` | graphs from a seed are right or declined with a reason, on the CPU and on the emulated MI300 |
//! | `attributes` | every attribute of every operation changes what is compiled, or the reason why nothing is |
//! | `rows` | normalizations over rows of any length compile for MI300 in bounded time, and are right there |
//! | `rounding` | half-precision graphs round once, and the judge would see it if they did not |
//! | `gfx942` | what is compiled for MI300: dispatches, MFMA, registers (compile only: nothing is executed) |
//! | `paths` | ways of compiling one convolution agree on the emulated MI300 |
//! | `hip_device` | what the plugin asks of HIP, counted: launches, which GPU and stream, loading, errors |
//! | `own_memory` | executions on a GPU without a workspace, and with outputs over inputs |
//! | `ordering` | seeded schedules over streams, contexts and threads: no stale read |
//! | `abi` | symbols, dependencies, errors, statuses, workspace, threads |
//! | `process` | caches, compilers and serialized contexts between processes: kills, faults, disks, leaks |
//! | `robustness` | mutated graphs through every entry point |

pub mod cases;
pub mod code_object;
pub mod facts;
pub mod harness;
pub mod plugin;
pub mod process;
pub mod random;
pub mod rows;
pub mod samples;
pub mod shapes;
