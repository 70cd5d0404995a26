//! The commands of a launch plan.

use std::ffi::c_void;

/// A kernel on a GPU: a `hipFunction_t` or `CUfunction`. Valid as long as the
/// [`Recording`](super::Recording) that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function(pub *mut c_void);

// SAFETY: this is a handle of the driver, which synchronises access to the object behind it; this
// crate never dereferences it.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// Device memory that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// Memory that the caller passes.
    Parameter {
        /// The parameter's index in the function's list, in which the workspace counts too.
        index: usize,
        /// Offset in bytes from the start of the parameter.
        offset: u64,
    },
    /// Address of memory that the module owns, for example for its constants. Valid as long as the
    /// [`Recording`](super::Recording).
    Fixed(u64),
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelArgument {
    /// A pointer, 8 bytes.
    Address(Address),
    /// A number, 4 bytes.
    Word(Word),
}

/// Four bytes that are passed to a command by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A constant, the same at every execution.
    Constant(u32),
    /// Part of a number that the caller passes.
    Number {
        /// The parameter's index in the function's list.
        index: usize,
        /// Whether the word is the upper half of a number of 8 bytes.
        high: bool,
    },
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel.
    pub function: Function,
    /// Number of workgroups in x, y and z; none is 0.
    pub grid: [u32; 3],
    /// Number of threads per workgroup in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The kernel's arguments, in order.
    pub parameters: Vec<KernelArgument>,
}

/// One command of a launch plan. It may rely on the memory that all earlier commands have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A launch of a kernel.
    Launch(Launch),
    /// A fill of memory with one value.
    Fill {
        /// The first element.
        target: Address,
        /// The value, in the low bytes of the word.
        pattern: Word,
        /// Bytes per element: 1, 2 or 4.
        pattern_bytes: u8,
        /// Number of elements, at least 1.
        count: usize,
    },
    /// A copy of bytes between two ranges that do not overlap.
    Copy {
        /// The first byte to read.
        source: Address,
        /// The first byte to write.
        target: Address,
        /// Number of bytes, at least 1.
        bytes: usize,
    },
}
