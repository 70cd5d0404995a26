//! IREE from Rust: the compiler, and the HAL runtime that executes compiled modules.
//!
//! | Layer | Compiler | Runtime |
//! |---|---|---|
//! | sys: the crate `iree-sys` | [`iree_sys::compiler`] | [`iree_sys::runtime`] |
//! | result | [`compiler::CompileError`] | [`result`] |
//! | safe | [`compiler`] | [`runtime`] |
//!
//! The sys layer is the C headers: names and types, nothing else. The result layer turns a status
//! or an error object into a `Result`, with its text copied and freed. The safe layer adds
//! ownership, lifetimes and threads.
//!
//! The runtime is compiled from source by `iree-sys` and linked statically, with the HAL drivers
//! local-sync, local-task and hip, and with cuda if the cargo feature of that name is enabled. GPU
//! drivers open the vendor's library when a device is created, and report a missing library as an
//! error. The compiler is not linked: its library or program is found, and opened or run, when it
//! is needed.
//!
//! The `unsafe` functions, and what their callers vouch for:
//!
//! | Function | What the caller vouches for |
//! |---|---|
//! | [`runtime::Module::load`] | the machine code in the vmfb |
//! | [`runtime::Buffer::import`] | the memory |
//! | [`runtime::Buffer::read`], [`runtime::Buffer::write`] | that nothing else uses the bytes |
//! | [`runtime::Invocation::bind`] | the memory |
//! | [`runtime::Invocation::bind_buffer`] | that nothing else uses the buffer |
//! | [`runtime::Invocation::bind_workspace`] | the memory |
//! | [`compiler::InProcess::open`] | the library |
//! | [`result::check`] | the status |
//!
//! # Example
//!
//! ```
//! use rotini_iree::compiler::{CompileRequest, Compiler, Program, find_program};
//! use rotini_iree::runtime::{
//!     ElementType, HalDevice, Instance, Invocation, Module, Parameter, Session, TensorType,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mlir = "
//!   util.func public @negate(%in: !hal.buffer_view, %out: !hal.buffer_view,
//!                            %wait: !hal.fence, %signal: !hal.fence) {
//!     %x = hal.tensor.import wait(%wait) => %in : !hal.buffer_view -> tensor<4xf32>
//!     %y = arith.negf %x : tensor<4xf32>
//!     %z = hal.tensor.alias wait(%wait) => %y : tensor<4xf32> to %out : !hal.buffer_view
//!     %b = hal.tensor.barrier join(%z : tensor<4xf32>) => %signal : !hal.fence
//!     util.return
//!   }";
//! let flags = [
//!     "--iree-hal-target-device=local",
//!     "--iree-hal-local-target-device-backends=llvm-cpu",
//!     "--iree-llvmcpu-target-cpu=host",
//! ]
//! .map(String::from);
//! let compiled = Program::new(&find_program()?)?.compile(&CompileRequest {
//!     mlir,
//!     name: "negate.mlir",
//!     flags: &flags,
//!     dump_executables: None,
//! })?;
//! assert_eq!(compiled.statistics.dispatches, 1);
//!
//! let instance = Instance::new()?;
//! // SAFETY: the compiler has just made it.
//! let module = unsafe { Module::load(&instance, compiled.vmfb.into())? };
//! let session = Session::new(&HalDevice::local_sync(&instance)?, &module)?;
//! let tensor = Parameter::Tensor(TensorType::new(ElementType::F32, &[4])?);
//! let parameters = vec![tensor.clone(), tensor, Parameter::WaitFence, Parameter::SignalFence];
//! let mut negate = Invocation::new(session, "negate", parameters)?;
//!
//! #[repr(align(64))]
//! struct Aligned([f32; 4]);
//! let (mut input, mut output) = (Aligned([1.0, -2.0, 3.5, 0.0]), Aligned([0.0; 4]));
//! // SAFETY: both have four elements and outlive the invocation.
//! unsafe {
//!     negate.bind(0, input.0.as_mut_ptr().cast())?;
//!     negate.bind(1, output.0.as_mut_ptr().cast())?;
//! }
//! negate.invoke()?;
//! assert_eq!(output.0, [-1.0, 2.0, -3.5, -0.0]);
//! # Ok(())
//! # }
//! ```

pub mod compiler;
pub mod result;
pub mod runtime;

pub use iree_sys as sys;
