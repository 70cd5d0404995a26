//! IREE's HAL runtime: devices, buffers, loaded modules and reusable invocations.
//!
//! ```text
//! Instance ── HalDevice (local-sync, local-task, hip, cuda) ─┐
//!     └────── Module (a verified vmfb) ──────────────────────┴── Session ── Invocation
//! ```
//!
//! | Type | Owns | Threads |
//! |---|---|---|
//! | [`Instance`] | the VM's type registry, a pool of I/O threads that start on demand | shared |
//! | [`HalDevice`] | a HAL device and the VM module that gives it to programs | shared |
//! | [`Module`] | a verified vmfb and its bytes | shared |
//! | [`Session`] | the state of one module on one device: loaded code, globals | one at a time |
//! | [`Invocation`] | a session, a function and its argument list | one at a time |
//! | [`Recording`] | what a function does on a GPU, as a list of commands | shared |
//! | [`Buffer`] | a reference to device or host memory | shared |
//!
//! Everything is reference counted underneath, so the order in which values are dropped does not
//! matter.
//!
//! # Executing
//!
//! A function takes buffer views, a workspace buffer and two fences, writes its results into views
//! that it was given and returns nothing (as in `tests/shell.mlir`). An [`Invocation`] holds this
//! argument list; [`Invocation::bind`] replaces one pointer, and [`Invocation::invoke`] allocates
//! nothing on this side of the C API. `invoke` passes two null fences;
//! [`Invocation::invoke_blocking`] passes a signal fence where the device works in the background.
//! The completion rules are
//!
//! | Device | Fences of `invoke_blocking` | When `invoke` returns |
//! |---|---|---|
//! | local-sync | null | the work is done |
//! | local-task | null, signal | the work is queued |
//! | hip, cuda | null, signal | the work is queued on IREE's own stream, ordered with no other |
//!
//! On a GPU, a caller that has a stream to order work on takes a [`Recording`] of the function
//! instead and replays it there.

mod buffer;
mod device;
mod device_kind;
mod error;
mod handle;
mod invocation;
mod module;
mod record;
mod wait;

pub use buffer::{Buffer, ElementType, HOST_ALIGNMENT, TensorType};
pub use device::{GpuOptions, HalDevice, Instance, TaskOptions};
pub use device_kind::DeviceKind;
pub use error::Error;
pub use invocation::{Invocation, Parameter};
pub use module::{Module, Session};
pub use record::{Address, Command, Function, KernelArgument, Launch, Recording, Word};

/// The result of a runtime call.
pub type Result<T, E = Error> = std::result::Result<T, E>;
