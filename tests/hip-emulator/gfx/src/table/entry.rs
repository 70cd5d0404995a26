//! Types of the table: an entry gives an opcode's name, the types of its operands and its function.

use crate::lanes::Kernel;

/// Type of a vector operand: its width, its inline constants, and the meaning of `neg` and `abs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    /// 32 bits without a sign bit to modify
    B32,
    F32,
    /// 16 bits in the low half; results clear the high half
    B16,
    F16,
    B64,
    F64,
    /// Two 16-bit halves
    PkB16,
    PkF16,
    /// Two f32 in two registers
    PkF32,
    /// An f32, or, if op_sel_hi says so, an f16 that is widened (`v_fma_mix`)
    Mix,
}

impl Ty {
    /// Returns the number of 32-bit registers of an operand.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::B64 | Self::F64 | Self::PkF32 => 2,
            _ => 1,
        }
    }

    pub(crate) fn packed(self) -> bool {
        matches!(self, Self::PkB16 | Self::PkF16 | Self::PkF32)
    }

    /// Returns true if float inline constants such as 1.0 and `neg`/`abs` apply to this type.
    pub(crate) fn float(self) -> bool {
        matches!(
            self,
            Self::F32 | Self::F16 | Self::F64 | Self::PkF16 | Self::PkF32 | Self::Mix
        )
    }
}

/// Source of a vector opcode's lane mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaskIn {
    No,
    /// The last operand
    Operand,
    /// VCC, implicit
    Vcc,
}

/// Propagation of initialised bits through an instruction in strict mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A result lane is initialised if that lane of every source is.
    #[default]
    Lanes,
    /// As `Lanes`, but the low row of the result depends on the low rows of the sources only
    /// (64-bit sums).
    Low,
    /// As `Lanes`, but the first written row depends on the first row of each source pair, the
    /// second on the second (packed f32).
    Pairs,
    /// Vectors, bit by bit: a result bit depends on at most one bit of each source. The sources in
    /// this bit set (by number), and the mask of a selection, choose which.
    Moves(u8),
    /// A result bit is initialised only if every source bit is.
    All,
    /// Bitwise: a result bit is initialised if the same bit of the deciding sources is.
    Bits,
    /// A shift or a bit field: each result bit is 0 or a bit of the first source that the second
    /// source chooses.
    Shift,
    /// All reads must be initialised, otherwise the instruction faults (addresses, branches, stored
    /// data).
    Demand,
}

/// The effect of MODE's rounding and denormal fields on an opcode.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Obeys {
    /// None: integers, bits, moves, classes, and conversions with a fixed rounding
    Nothing,
    /// Denormals of its float operands and result are flushed: exact results and approximations
    Denormals,
    /// Denormals are flushed, and results rounded: this function computes the entry's result with
    /// the rounding of MODE.
    Rounding(Kernel),
}

/// A vector opcode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorOp {
    /// Type of the result; `None` for compares
    pub(crate) target: Option<Ty>,
    pub(crate) sources: &'static [Ty],
    pub(crate) mask_in: MaskIn,
    /// Whether a lane mask is written (compares, carries), to the operand after the destination, or
    /// to the first operand
    pub(crate) mask_out: bool,
    pub(crate) writes_exec: bool,
    /// Whether the destination is the last source (`v_fmac`), without an operand in the text.
    pub(crate) accumulates: bool,
    /// Whether 16-bit results keep the high half of the destination.
    pub(crate) keeps_high: bool,
    pub(crate) rule: Rule,
    pub(crate) obeys: Obeys,
    pub(crate) kernel: Kernel,
    /// Replacement of the function under `clamp`: integers saturate before truncation. Floats are
    /// clamped by the driver.
    pub(crate) clamped: Option<Kernel>,
}

/// Inputs of a scalar function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarIn {
    pub(crate) a: u64,
    pub(crate) b: u64,
    /// The destination's old value
    pub(crate) old: u64,
    pub(crate) scc: bool,
}

/// Result and condition code (ignored where the opcode leaves it).
pub(crate) type ScalarFn = fn(ScalarIn) -> (u64, bool);

/// A scalar opcode; widths are in bits, 0 for no operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarOp {
    pub(crate) target: u8,
    pub(crate) a: u8,
    pub(crate) b: u8,
    /// Whether the condition code is written
    pub(crate) scc: bool,
    /// Whether the condition code is read, for a selection or a carry
    pub(crate) reads_scc: bool,
    /// Whether the destination is read: some or all of its bits are kept
    pub(crate) reads_target: bool,
    /// Whether the second operand is a 16-bit immediate: sign-extended if `Some(true)`.
    pub(crate) immediate: Option<bool>,
    pub(crate) rule: Rule,
    pub(crate) function: ScalarFn,
}

/// The family of an opcode, with its definition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Vector(VectorOp),
    Scalar(ScalarOp),
    /// `s_*_saveexec_b64`: sources are the operand and EXEC.
    SaveExec(ScalarFn),
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) op: Op,
}

pub(super) const PLAIN: VectorOp = VectorOp {
    target: None,
    sources: &[],
    mask_in: MaskIn::No,
    mask_out: false,
    writes_exec: false,
    accumulates: false,
    keeps_high: false,
    rule: Rule::Lanes,
    obeys: Obeys::Nothing,
    kernel: |_, _| (),
    clamped: None,
};

/// Builds a vector opcode without lane masks.
pub(super) const fn valu(name: &'static str, target: Ty, sources: &'static [Ty], kernel: Kernel) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(target),
            sources,
            kernel,
            ..PLAIN
        },
    )
}

/// Builds a float opcode that obeys the denormal fields of MODE and does not round.
pub(super) const fn float(name: &'static str, target: Ty, sources: &'static [Ty], kernel: Kernel) -> Entry {
    rounds(name, target, sources, kernel, Obeys::Denormals)
}

/// Builds a float opcode that rounds; `obeys` has its function for other modes.
pub(super) const fn rounds(
    name: &'static str,
    target: Ty,
    sources: &'static [Ty],
    kernel: Kernel,
    obeys: Obeys,
) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(target),
            sources,
            obeys,
            kernel,
            ..PLAIN
        },
    )
}

/// Returns the entry with another propagation rule for strict mode.
pub(super) const fn flows(mut entry: Entry, rule: Rule) -> Entry {
    if let Op::Vector(op) = &mut entry.op {
        op.rule = rule;
    }
    entry
}

/// Builds an integer opcode that saturates under `clamp`.
pub(super) const fn clamps(
    name: &'static str,
    target: Ty,
    sources: &'static [Ty],
    kernel: Kernel,
    clamped: Kernel,
) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(target),
            sources,
            kernel,
            clamped: Some(clamped),
            ..PLAIN
        },
    )
}

/// Builds a compare.
pub(super) const fn compare(name: &'static str, sources: &'static [Ty], obeys: Obeys, kernel: Kernel) -> Entry {
    vector(
        name,
        VectorOp {
            sources,
            mask_out: true,
            obeys,
            kernel,
            ..PLAIN
        },
    )
}

pub(super) const fn vector(name: &'static str, op: VectorOp) -> Entry {
    Entry {
        name,
        op: Op::Vector(op),
    }
}
