//! Operand types: a register, and the source of C.

/// One vector register: a value per lane.
pub type Register = [u32; 64];

/// The source of C, or for SMFMAC the register of indices.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// These registers.
    Registers(&'a [Register]),
    /// An inline constant: the bits of one element of the accumulator's type (the lower 32 for f32
    /// and i32), the same everywhere.
    Constant(u64),
    /// The registers of D, with their contents before the instruction. Saves the copy that Rust
    /// requires where C and D are the same registers.
    Destination,
}
