//! Looks into what was compiled for an MI300: the machine code of its kernels, how the compiler
//! configured them, and what an emulator counts of their launches.
//!
//! | Module | What it owns |
//! |---|---|
//! | [`object`](mod@object) | code objects: kernels with their registers, LDS, private memory |
//! | `class`, `decode`, `matrix` | gfx942's machine code: length, class and width of each instruction |
//! | [`census`] | instructions counted, of a kernel and of its hottest loop |
//! | [`configuration`] | pipeline and tiles of each kernel, as the compiler dumps them |
//! | [`emulate`] | one execution of a graph on an emulated GPU, and the reports of its launches |
//! | `likeness` | which graphs resemble those whose kernels were compared with hardware |
//!
//! It needs no LLVM and executes no compiled code by itself.

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
