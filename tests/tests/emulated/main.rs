//! What runs on the emulated MI300. Modules set up their process in different ways: run each test
//! in its own, as nextest does, or one module alone.
//!
//! | Module | What it asserts |
//! |---|---|
//! | `cases` | every case is right on the emulated MI300, or on a GPU that `ROTINI_TEST_DEVICE` names |
//! | `random_graphs` | graphs from a seed are right, or declined with a reason |
//! | `rows` | normalizations over rows of any length compile for MI300 in bounded time, and are right there |
//! | `paths` | ways of compiling one convolution agree |
//! | `hip_device` | what the plugin asks of HIP, counted: launches, which GPU and stream, loading, errors |
//! | `schedules` | what is scheduled compiles as it is, and not without its schedule |
//! | `own_memory` | executions on a GPU without a workspace, and with outputs over inputs |
//! | `limits` | a limit of the workspace picks among schedules |
//! | `ordering` | seeded schedules over streams, contexts and threads: no stale read |
//! | `quirks` | each defect of the compiler that the lowering avoids is there still |
//! | `engines` | the plain engine works in a GPU's memory, behind what is on the stream |
//! | `workspace` | the workspace that is reported before compiling follows what is needed |
//! | `mutants` | the harness fails a plugin that is made worse, on the CPU and here |

mod cases;
mod determinism;
mod engines;
mod hip_device;
mod limits;
mod mutants;
mod ordering;
mod own_memory;
mod paths;
mod quirks;
mod random_graphs;
mod rows;
mod schedules;
mod workspace;
