//! Owns the types of operands: a register, and what C may be.

/// One vector register: a value per lane.
pub type Register = [u32; 64];

/// What C is, or for SMFMAC the register of indices.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// These registers.
    Registers(&'a [Register]),
    /// An inline constant: the bits of one element of the accumulator's type (the lower 32 for f32
    /// and i32), the same everywhere.
    Constant(u64),
    /// The registers of D, as they are before the instruction. Saves the copy that Rust asks for
    /// where C and D are the same.
    Destination,
}
