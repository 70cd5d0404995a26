//! Owns the types of the table: an entry names an opcode, the types of its operands and the
//! function over them.

use crate::lanes::Kernel;

/// Type of a vector operand: its width, its inline constants, what `neg` and `abs` mean.
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
    /// Two halves
    PkB16,
    PkF16,
    /// Two f32 in two registers
    PkF32,
    /// An f32, or an f16 that op_sel_hi says to read as one (`v_fma_mix`)
    Mix,
}

impl Ty {
    /// 32-bit registers of an operand.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::B64 | Self::F64 | Self::PkF32 => 2,
            _ => 1,
        }
    }

    pub(crate) fn packed(self) -> bool {
        matches!(self, Self::PkB16 | Self::PkF16 | Self::PkF32)
    }

    /// Whether inline constants such as 1.0 are this type's and `neg`/`abs` apply.
    pub(crate) fn float(self) -> bool {
        matches!(
            self,
            Self::F32 | Self::F16 | Self::F64 | Self::PkF16 | Self::PkF32 | Self::Mix
        )
    }
}

/// Where a vector opcode's lane mask comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaskIn {
    No,
    /// The last operand
    Operand,
    /// VCC, unnamed
    Vcc,
}

/// How initialised bits flow through an instruction in strict mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A result lane is initialised if that lane of every source is.
    #[default]
    Lanes,
    /// As `Lanes`, the low row of the result from the low rows of the sources (64-bit sums).
    Low,
    /// As `Lanes`, the first written register from the first of each two that are read, the second
    /// from the second (packed f32).
    Pairs,
    /// Vectors, bit by bit: a result bit is made of at most one bit of each source. The sources
    /// with these bits (by number), and the mask of a selection, choose which.
    Moves(u8),
    /// Every source bit must be initialised for any result bit to be.
    All,
    /// Bitwise: a result bit is initialised if that bit of the sources that decide it is.
    Bits,
    /// A shift or a field: each result bit is a bit of the first source, which the second source
    /// chooses, or 0.
    Shift,
    /// Reads must be initialised: the instruction faults otherwise (addresses, branches, stored
    /// data).
    Demand,
}

/// What an opcode obeys of the rounding and denormal fields of MODE.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Obeys {
    /// Nothing: integers, bits, moves, classes, and conversions whose rounding is their own
    Nothing,
    /// Denormals of its float operands and result: exact results and approximations
    Denormals,
    /// Denormals, and rounding: this function does what the entry's own does, as MODE says.
    Rounding(Kernel),
}

/// A vector opcode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorOp {
    /// Type of the result; none for compares
    pub(crate) target: Option<Ty>,
    pub(crate) sources: &'static [Ty],
    pub(crate) mask_in: MaskIn,
    /// Whether a lane mask is written (compares, carries): the operand after the destination, or
    /// the first
    pub(crate) mask_out: bool,
    pub(crate) writes_exec: bool,
    /// The destination is the last source (`v_fmac`); it has no operand of its own.
    pub(crate) accumulates: bool,
    /// Results of 16 bits keep the high half of the destination.
    pub(crate) keeps_high: bool,
    pub(crate) rule: Rule,
    pub(crate) obeys: Obeys,
    pub(crate) kernel: Kernel,
    /// What replaces the function under `clamp`: integers saturate before they are cut. Floats are
    /// clamped by the driver.
    pub(crate) clamped: Option<Kernel>,
}

/// What a scalar function reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarIn {
    pub(crate) a: u64,
    pub(crate) b: u64,
    /// The destination before
    pub(crate) old: u64,
    pub(crate) scc: bool,
}

/// Result and condition code (ignored where the opcode leaves it).
pub(crate) type ScalarFn = fn(ScalarIn) -> (u64, bool);

/// A scalar opcode: widths in bits, 0 for no operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarOp {
    pub(crate) target: u8,
    pub(crate) a: u8,
    pub(crate) b: u8,
    /// Whether the condition code is written
    pub(crate) scc: bool,
    /// Whether the condition code is read, as a choice or a carry
    pub(crate) reads_scc: bool,
    /// Whether the destination is read: some of its bits stay, or all of them
    pub(crate) reads_target: bool,
    /// The second operand is a 16-bit immediate: sign-extended if `Some(true)`.
    pub(crate) immediate: Option<bool>,
    pub(crate) rule: Rule,
    pub(crate) function: ScalarFn,
}

/// A family and its entry.
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

/// A vector opcode without masks.
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

/// A float opcode that obeys the denormal fields of MODE and does not round.
pub(super) const fn float(name: &'static str, target: Ty, sources: &'static [Ty], kernel: Kernel) -> Entry {
    rounds(name, target, sources, kernel, Obeys::Denormals)
}

/// A float opcode that rounds: `obeys` is its function for other modes.
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

/// The entry with another rule for strict mode.
pub(super) const fn flows(mut entry: Entry, rule: Rule) -> Entry {
    if let Op::Vector(op) = &mut entry.op {
        op.rule = rule;
    }
    entry
}

/// An integer opcode that saturates under `clamp`.
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

/// A compare.
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
