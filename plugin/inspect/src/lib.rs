//! Inspects the code that was compiled for an MI300: the machine code of its kernels, the
//! compiler's configurations of them, and an emulator's counts of their launches.
//!
//! | Module | Content |
//! |---|---|
//! | [`object`](mod@object) | code objects: kernels with their registers, LDS, private memory |
//! | `class`, `decode`, `matrix` | gfx942's machine code: length, class and width of instructions |
//! | [`census`] | instructions counted, of a kernel and of its hottest loop |
//! | [`configuration`] | pipeline and tiles of each kernel, as the compiler dumps them |
//! | [`emulate`] | one execution of a graph on an emulated GPU, and the reports of its launches |
//! | `likeness` | which graphs resemble those whose kernels were compared with hardware |
//!
//! The crate needs no LLVM, and executes compiled code only through the plugin.

pub mod census;
mod class;
pub mod configuration;
mod decode;
pub mod emulate;
mod likeness;
mod matrix;
pub mod object;

pub use census::Census;
pub use class::Class;
pub use configuration::{Configuration, Lowering};
pub use decode::DecodeError;
pub use emulate::{Counts, EmulateError, Emulator, Launch};
pub use likeness::is_like_the_measured;
pub use object::{Kernel, ObjectError};
