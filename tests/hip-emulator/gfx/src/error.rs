//! Errors of the crate: of reading a code object, decoding a kernel, and running a launch.

/// Why bytes are no code object that this crate runs.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// Not an ELF file
    #[error("the code object is no ELF file")]
    Elf(#[source] object::Error),
    /// An ELF file of another machine
    #[error("the code object is for machine {0}, not for AMDGPU")]
    Machine(u16),
    /// AMDGPU, but no processor of this crate
    #[error("the code object's processor (flags {0:#x}) is not gfx942")]
    Processor(u32),
    /// The metadata note is missing or not what LLVM writes
    #[error("the code object's metadata: {0}")]
    Metadata(String),
    /// A kernel of the metadata whose symbols or descriptor do not fit
    #[error("kernel {kernel}: {what}")]
    Kernel {
        /// Kernel
        kernel: String,
        /// The part that does not fit
        what: String,
    },
}

/// Why a kernel does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// LLVM has no AMDGPU target or does not know the processor
    #[error("LLVM has no disassembler for gfx942")]
    Disassembler,
    /// Bytes that are no instruction
    #[error("{kernel}: no instruction at {address:#x}")]
    Bytes {
        /// Kernel
        kernel: String,
        /// Address in the code object
        address: u64,
    },
    /// An instruction that is not implemented, or a part of it
    #[error("{kernel}: `{instruction}` at {address:#x}: {what}")]
    Instruction {
        /// Kernel
        kernel: String,
        /// Assembler text
        instruction: String,
        /// Address in the code object
        address: u64,
        /// The mnemonic, operand or modifier that is not understood
        what: String,
    },
    /// Texts that assemble to other bytes than the kernel's
    #[error("{kernel}: {what}")]
    Reassembly {
        /// Kernel
        kernel: String,
        /// The instruction, or what the assembler says
        what: String,
    },
}

/// The reason why an instruction trapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trap {
    /// Device or private memory outside any allocation
    #[error("lane {lane} accesses {bytes} bytes at {address:#x}, outside every allocation")]
    Bounds {
        /// Device address, or offset into private memory
        address: u64,
        /// Width of the access
        bytes: u64,
        /// Lane
        lane: u32,
    },
    /// Private memory beyond the lane's
    #[error("lane {lane} accesses {bytes} bytes at offset {offset} of its private memory, beyond its end")]
    Private {
        /// Offset
        offset: i64,
        /// Width of the access
        bytes: u64,
        /// Lane
        lane: u32,
    },
    /// LDS beyond the workgroup's
    #[error("lane {lane} accesses {bytes} bytes at LDS offset {offset:#x}, beyond the workgroup's")]
    Lds {
        /// Offset
        offset: u64,
        /// Width of the access
        bytes: u64,
        /// Lane
        lane: u32,
    },
    /// Two waves access a byte of LDS without a barrier between, one of them writing
    #[error("lane {lane} races with {} at LDS offset {offset:#x}", other.map_or("other waves".to_owned(), |wave| format!("wave {wave}")))]
    Race {
        /// Offset
        offset: u32,
        /// Lane
        lane: u32,
        /// The other wave of the workgroup, if it is one
        other: Option<u32>,
    },
    /// Waves of one workgroup wait at different barriers
    #[error("wave {other} waits at the barrier at {address:#x} instead")]
    Barrier {
        /// Another wave
        other: u32,
        /// Address of the barrier where it waits, in the code object
        address: u64,
    },
    /// A loop that does not end
    #[error("still in a loop after {0} instructions")]
    Endless(u64),
    /// `s_trap`
    #[error("the kernel trapped")]
    Raised,
    /// An address, condition or stored value comes from a register that nobody wrote
    #[error("{}{register} is used uninitialised (lane {lane})", if *.vector { "v" } else { "s" })]
    Uninitialised {
        /// Vector register (accumulation registers follow the others), or scalar register by its
        /// encoding
        vector: bool,
        /// Number
        register: u16,
        /// First such lane
        lane: u32,
    },
    /// A register is accessed while a load into it is outstanding
    #[error("{}{register} is touched without s_waitcnt for the load into it", if *.vector { "v" } else { "s" })]
    MissingWait {
        /// Vector register, or scalar register by its encoding
        vector: bool,
        /// Number
        register: u16,
    },
    /// A matrix instruction that `rotini_mfma` refuses
    #[error("{0}")]
    Matrix(String),
    /// A feature that this crate does not model
    #[error("{0} is not modelled")]
    Unsupported(&'static str),
}

/// Why a launch failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The kernel does not decode
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The launch does not fit the kernel
    #[error("{kernel}: {what}")]
    Launch {
        /// Kernel
        kernel: String,
        /// The part that does not fit
        what: String,
    },
    /// An instruction trapped
    #[error("{kernel}, workgroup {workgroup:?}, wave {wave}, `{instruction}` at {address:#x}: {trap}")]
    Trap {
        /// Kernel
        kernel: String,
        /// Workgroup in x, y, z
        workgroup: [u32; 3],
        /// Wave of the workgroup
        wave: u32,
        /// Address in the code object
        address: u64,
        /// Assembler text
        instruction: String,
        /// The reason
        #[source]
        trap: Trap,
    },
}
