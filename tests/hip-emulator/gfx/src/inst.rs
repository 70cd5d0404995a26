//! Decoded instructions. Each holds its operands, resolved to rows and scalar registers, and the
//! function of its opcode.

use rotini_mfma::{Control, Opcode};
use smallvec::SmallVec;

use crate::{
    lanes::{Kernel, Row},
    memory::Access,
    registers::{Footprint, Range},
    report::Class,
    table::{Rule, ScalarFn, Ty},
};

/// Encodings of special scalar registers.
pub(crate) mod sgpr {
    pub(crate) const VCC: u8 = 106;
    pub(crate) const M0: u8 = 124;
    pub(crate) const EXEC: u8 = 126;
}

/// A 32-bit scalar source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Register(u8),
    Constant(u32),
    /// The condition code as 0 or 1
    Scc,
}

/// A row of 32-bit values: a vector register, a broadcast scalar, or a constant that was expanded
/// at decode (index into the program's rows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Row(u16),
    Scalar(u8),
    Constant(u16),
}

/// The part of a 32-bit operand that SDWA selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Select {
    Dword,
    /// Bit offset of the byte
    Byte(u8),
    /// Bit offset of the word
    Word(u8),
    /// Bit offset of an f16 that is read as f32
    Widened(u8),
}

/// Treatment of the destination bits that SDWA does not select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unused {
    Pad,
    Sext,
    Preserve,
}

/// Modifiers of one source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prepare {
    pub(crate) ty: Ty,
    pub(crate) neg: bool,
    pub(crate) abs: bool,
    pub(crate) sext: bool,
    pub(crate) select: Select,
    /// Negates the high half of a packed operand; `neg` negates the low half.
    pub(crate) neg_high: bool,
    /// The half that each half of a packed 16-bit operand reads: low, high.
    pub(crate) halves: [bool; 2],
}

/// A DPP permutation of the first source (CDNA3 ISA, DPP controls).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dpp {
    pub(crate) control: DppControl,
    pub(crate) row_mask: u8,
    pub(crate) bank_mask: u8,
    /// Whether lanes without a source read 0 instead of keeping their destination.
    pub(crate) zero: bool,
    /// Rows of the first source: two if it has 64 bits.
    pub(crate) rows: u8,
}

/// The source lane of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DppControl {
    QuadPerm([u8; 4]),
    RowShl(u8),
    RowShr(u8),
    RowRor(u8),
    WaveShl,
    WaveRol,
    WaveShr,
    WaveRor,
    RowMirror,
    RowHalfMirror,
    RowBroadcast15,
    RowBroadcast31,
    RowNewBroadcast(u8),
}

/// Processing of a result before it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finish {
    /// The float type as which the result is clamped to [0, 1], if it is.
    pub(crate) clamp: Option<Ty>,
    pub(crate) select: Select,
    pub(crate) unused: Unused,
}

/// Behaviour of an instruction in a MODE other than the one that the table's functions assume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moded {
    /// Function to use where MODE does not round to nearest even.
    pub(crate) kernel: Option<Kernel>,
    /// Types of the operands, whose denormals may be flushed
    pub(crate) sources: &'static [Ty],
    pub(crate) target: Option<Ty>,
}

/// A vector ALU instruction.
#[derive(Clone, Debug)]
pub(crate) struct Valu {
    pub(crate) kernel: Kernel,
    /// `None` if the instruction ignores MODE.
    pub(crate) moded: Option<Moded>,
    /// Rows for the kernel: a 64-bit operand has two.
    pub(crate) sources: SmallVec<[Source; 6]>,
    /// Modifiers by row of `sources`; `None` if no operand has any.
    pub(crate) prepare: Option<Box<[Option<Prepare>]>>,
    pub(crate) dpp: Option<Dpp>,
    pub(crate) finish: Option<Finish>,
    /// First destination row, and number of rows: 0 for compares.
    pub(crate) row: u16,
    pub(crate) rows: u8,
    /// Scalar pair of the lane mask that the kernel reads.
    pub(crate) mask_in: Option<u8>,
    /// Scalar pair of the lane mask that the kernel writes.
    pub(crate) mask_out: Option<u8>,
    /// Whether a compare also writes EXEC.
    pub(crate) writes_exec: bool,
}

/// Addressing mode of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// Raw buffer: descriptor in four scalars, scalar offset, vector offset if `offen`
    Buffer {
        descriptor: u8,
        scalar: Scalar,
        vector: Option<u16>,
    },
    /// 64-bit vector address, or scalar base with 32-bit vector offset
    Global { scalar: Option<u8>, vector: Option<u16> },
    /// 64-bit vector address into any aperture
    Flat { vector: u16 },
    /// Private memory of the lane
    Scratch { scalar: Option<u8>, vector: Option<u16> },
}

/// Function of an atomic: returns the new value (`memory::atomic`).
pub(crate) type AtomicFn = fn(old: u64, data: u64, compare: u64) -> u64;

/// Action of a vector memory instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Load,
    Store,
    /// Function, and whether the old value is returned
    Atomic(AtomicFn, bool),
}

/// A vector memory instruction (buffer, global, flat, scratch).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vmem {
    pub(crate) action: Action,
    pub(crate) access: Access,
    pub(crate) address: Address,
    /// Bytes added to every address
    pub(crate) offset: i32,
    /// First row of the data
    pub(crate) data: u16,
    /// First row of the value that an atomic returns (the data row otherwise)
    pub(crate) target: u16,
    /// Whether an atomic compares: then a second value follows the data.
    pub(crate) compares: bool,
}

/// A scalar load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smem {
    pub(crate) target: u8,
    pub(crate) count: u8,
    /// A 64-bit address in two scalars, or a buffer descriptor in four
    pub(crate) base: u8,
    pub(crate) buffer: bool,
    pub(crate) offset: Scalar,
    pub(crate) immediate: i32,
}

/// An LDS instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ds {
    pub(crate) action: Action,
    pub(crate) access: Access,
    pub(crate) address: u16,
    /// Byte offsets: one, or two for the `read2`/`write2` forms
    pub(crate) offsets: [u32; 2],
    pub(crate) pair: bool,
    pub(crate) data: [u16; 2],
    /// Row of an atomic's second value: the comparand, or the bits to clear, or the subtrahend
    pub(crate) compare: Option<u16>,
    pub(crate) target: u16,
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    Scc(bool),
    VccZero(bool),
    ExecZero(bool),
}

/// Exchange of data between lanes by lane number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneOp {
    /// Scalar destination, row
    ReadFirst(u8, u16),
    ReadLane(u8, u16, Scalar),
    WriteLane(u16, Scalar, Scalar),
    /// Target, address, data; forward (`ds_permute`) or backward (`ds_bpermute`)
    Permute {
        target: u16,
        address: u16,
        data: u16,
        forward: bool,
        offset: u32,
    },
    /// Exchanges two rows (`v_swap_b32`)
    Swap(u16, u16),
    /// Target, data, offset field of `ds_swizzle_b32`
    Swizzle {
        target: u16,
        data: u16,
        pattern: u16,
    },
}

/// A matrix instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mfma {
    pub(crate) opcode: Opcode,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: Addend,
    pub(crate) d: u16,
    pub(crate) control: Control,
}

/// The initial accumulator, or the indices of a sparse form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Addend {
    Rows(u16),
    /// Bits of one element
    Constant(u64),
}

/// Maximum number of registers of a matrix instruction's source.
pub(crate) const MFMA_SOURCE: usize = 8;

/// The operation of an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// Includes opcodes with an immediate (`s_addk`, `s_cmpk`), which becomes a constant.
    Salu {
        function: ScalarFn,
        target: Option<u8>,
        wide: bool,
        a: [Scalar; 2],
        b: [Scalar; 2],
        scc: bool,
    },
    /// EXEC is the second source and the destination; its old value goes to `target`.
    SaveExec {
        function: ScalarFn,
        target: u8,
        source: [Scalar; 2],
    },
    /// Relative branch to an instruction
    Branch {
        condition: Condition,
        target: u32,
    },
    /// `s_getpc_b64`: the address of the next instruction
    GetPc {
        target: u8,
        address: u64,
    },
    /// `s_setpc_b64`: jumps to the instruction at an address beyond a branch's reach
    SetPc {
        source: u8,
    },
    Smem(Smem),
    Wait {
        vector: Option<u8>,
        scalar: Option<u8>,
    },
    Barrier,
    End,
    /// `s_trap`
    Trap,
    Nop,
    /// `s_memtime`, `s_memrealtime`
    Time {
        target: u8,
    },
    SetMode {
        offset: u8,
        width: u8,
        value: Scalar,
    },
    GetMode {
        offset: u8,
        width: u8,
        target: u8,
    },
    /// VGPR indexing: index register, and the operands that it offsets (bit 0: src0, 1: src1, 2:
    /// src2, 3: dst)
    IndexOn {
        index: Scalar,
        operands: u8,
    },
    IndexOff,
    Valu(Valu),
    Lanes(LaneOp),
    Mfma(Mfma),
    Vmem(Vmem),
    Ds(Ds),
}

/// Registers that an instruction uses, for strict mode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    pub(crate) reads: SmallVec<[Range; 4]>,
    /// Also read: data that goes to LDS or private memory, where it keeps its initialisation state
    pub(crate) data: SmallVec<[Range; 2]>,
    pub(crate) writes: SmallVec<[Range; 2]>,
    /// Whether the condition code is read too (branches state this themselves)
    pub(crate) reads_scc: bool,
    pub(crate) rule: Rule,
    /// Bit set of the reads of which only the low half matters
    pub(crate) low: u8,
    /// The same registers as bit sets, computed when the instruction is complete
    pub(crate) footprint: Footprint,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) code: Code,
    pub(crate) class: Class,
}

/// A decoded kernel.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) insts: Vec<Inst>,
    /// Register uses by instruction, for strict mode
    pub(crate) uses: Vec<Uses>,
    /// Assembler text by instruction, for messages
    pub(crate) texts: Vec<String>,
    /// Address of each instruction in the code object
    pub(crate) addresses: Vec<u64>,
    /// Rows of constants
    pub(crate) constants: Vec<Row>,
    /// Rows of a wave
    pub(crate) rows: u16,
}
