//! Tests on the emulated MI300. Modules set up their process in different ways: run each test in a
//! separate process, as nextest does, or one module alone.
//!
//! | Module | Assertion |
//! |---|---|
//! | `cases` | every case is right on the emulated MI300, or on the GPU in `ROTINI_TEST_DEVICE` |
//! | `random_graphs` | graphs from a seed are right, or declined with a reason |
//! | `rows` | normalizations over rows of any length compile in bounded time, and are right |
//! | `paths` | ways of compiling one convolution agree |
//! | `hip_device` | the plugin's HIP calls, counted: launches, GPU and stream, loading, errors |
//! | `schedules` | scheduled code compiles as it is, without falling back |
//! | `own_memory` | executions on a GPU without a workspace, and with outputs over inputs |
//! | `limits` | a limit of the workspace affects the choice of schedules |
//! | `ordering` | seeded schedules over streams, contexts and threads: no stale read |
//! | `quirks` | each compiler defect that the lowering avoids still exists |
//! | `engines` | the plain engine works in a GPU's memory, in stream order |
//! | `workspace` | the workspace reported before compilation is close to the actual one |
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

use rotini_host::gpu::{Allocation, Gpu};

/// Returns memory of a GPU that holds these bytes.
#[expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
fn filled(gpu: &Gpu, bytes: &[u8]) -> Allocation {
    let memory = gpu.allocate(bytes.len()).unwrap();
    memory.write(0, bytes).unwrap();
    memory
}

/// Returns all that memory of a GPU holds.
#[expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
fn contents(memory: &Allocation) -> Vec<u8> {
    let mut bytes = vec![0; memory.bytes()];
    memory.read(0, &mut bytes).unwrap();
    bytes
}
