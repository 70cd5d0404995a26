//! The steps of a launch plan.

use std::ffi::c_void;

/// A kernel on a GPU: `hipFunction_t` or `CUfunction`. Valid as long as the
/// [`Recording`](super::Recording) it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function(pub *mut c_void);

// SAFETY: a handle of the driver's, which locks what is behind it; nothing here looks behind it.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// HalDevice memory that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// Memory of the caller's.
    Parameter {
        /// The parameter's index in the function's list, where the workspace is one of them.
        index: usize,
        /// Bytes from its start.
        offset: u64,
    },
    /// Memory of the module's own, for instance of its constants. Valid as long as the
    /// [`Recording`](super::Recording).
    Fixed(u64),
}

/// What a kernel is given for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelArgument {
    /// A pointer, 8 bytes.
    Address(Address),
    /// A number, 4 bytes.
    Word(Word),
}

/// Four bytes that a command is given by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The same at every execution.
    Constant(u32),
    /// Part of a number that the caller passes.
    Number {
        /// The parameter's index in the function's list.
        index: usize,
        /// Whether it is the upper half of one of 8 bytes.
        high: bool,
    },
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel.
    pub function: Function,
    /// Workgroups in x, y and z; none is 0.
    pub grid: [u32; 3],
    /// Threads per workgroup in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// What the kernel is given for its parameters, in order.
    pub parameters: Vec<KernelArgument>,
}

/// One step of a plan. Each may rely on the memory that all before it have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A kernel.
    Launch(Launch),
    /// The same value many times.
    Fill {
        /// The first element.
        target: Address,
        /// The value, in the low bytes.
        pattern: Word,
        /// Bytes per element: 1, 2 or 4.
        pattern_bytes: u8,
        /// Elements, at least 1.
        count: usize,
    },
    /// Bytes from one place to another that does not overlap it.
    Copy {
        /// The first byte.
        source: Address,
        /// The first byte.
        target: Address,
        /// At least 1.
        bytes: usize,
    },
}
