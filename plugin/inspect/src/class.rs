//! The classes by which instructions are counted.

use std::fmt;

/// The class of an instruction. Widths are bytes per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A matrix instruction, by name
    Matrix(&'static str),
    /// A move between accumulation registers and other registers
    Accumulator,
    /// Vector arithmetic
    Vector,
    /// Scalar arithmetic
    Scalar,
    /// A scalar load, with its width in bytes
    ScalarLoad(u16),
    /// A read from LDS
    LdsRead(u8),
    /// A write to LDS
    LdsWrite(u8),
    /// An atomic in LDS, or an exchange between lanes
    LdsOther,
    /// A load from device memory
    Load(u8),
    /// A store to device memory
    Store(u8),
    /// An atomic on device memory
    Atomic,
    /// A load from or a store to private memory
    Private(u8),
    /// A branch or jump
    Branch,
    /// `s_waitcnt`
    Wait,
    /// `s_barrier`
    Barrier,
    /// `s_nop`, `s_endpgm` and other instructions that compute nothing
    Other,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matrix(name) => f.write_str(name),
            Self::Accumulator => f.write_str("accumulator move"),
            Self::Vector => f.write_str("valu"),
            Self::Scalar => f.write_str("salu"),
            Self::ScalarLoad(bytes) => write!(f, "scalar load {bytes} B"),
            Self::LdsRead(bytes) => write!(f, "LDS read {bytes} B"),
            Self::LdsWrite(bytes) => write!(f, "LDS write {bytes} B"),
            Self::LdsOther => f.write_str("LDS other"),
            Self::Load(bytes) => write!(f, "load {bytes} B"),
            Self::Store(bytes) => write!(f, "store {bytes} B"),
            Self::Atomic => f.write_str("atomic"),
            Self::Private(bytes) => write!(f, "private {bytes} B"),
            Self::Branch => f.write_str("branch"),
            Self::Wait => f.write_str("wait"),
            Self::Barrier => f.write_str("barrier"),
            Self::Other => f.write_str("other"),
        }
    }
}
