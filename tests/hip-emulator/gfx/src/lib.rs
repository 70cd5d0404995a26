//! Runs gfx942 (CDNA3, wave64) kernels on the host, for tests without a GPU.
//!
//! | Module | Owns |
//! |---|---|
//! | `error` | the errors of code objects, kernels and instructions |
//! | [`metadata`], [`object`] | metadata of any code object; gfx942's kernels, descriptors, code |
//! | `disassembler`, `assembler`, `text` | LLVM's disassembler and assembler; parsed text |
//! | `inst`, `registers` | decoded instructions; the registers that they read and write |
//! | `decode` | text to instructions, once per kernel |
//! | `table` | the semantics of each opcode: one entry per base mnemonic |
//! | `lanes`, `rows` | functions over 64 lanes; operations on whole registers of a wave |
//! | `vector`, `plain`, `scalar`, `memory`, `matrix` | execution of each family of instructions |
//! | `wave`, `run`, `executions` | the state of a wave, its interpreter loop and its counts |
//! | [`launch`] | workgroups over threads |
//! | `strict` | undefined behaviour: uninitialised registers, missing `s_waitcnt` |
//! | [`report`] | the counts of a launch |
//! | `profile` | the time model's counts of a sample of workgroups |
//!
//! A kernel's bytes are disassembled once; each text becomes an instruction that holds its resolved
//! operands and the function of its opcode. A wave is a file of rows, one row of 64 `u32` per
//! vector register; the vector driver passes rows to the opcode's function, which is a loop over 64
//! lanes that the compiler vectorises.
//!
//! Unsupported text is an error that names it: nothing is skipped.

mod assembler;
mod decode;
mod disassembler;
mod error;
mod executions;
mod inst;
#[cfg(test)]
mod kernels;
mod lanes;
pub mod launch;
mod matrix;
mod memory;
pub mod metadata;
pub mod object;
mod plain;
mod profile;
mod registers;
pub mod report;
mod rows;
mod run;
mod scalar;
mod strict;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod vector;
mod wave;

pub use error::{CodeObjectError, DecodeError, Fault, Trap};
pub use launch::Launch;
pub use memory::{Block, Memory};
pub use object::{CodeObject, Kernel};
pub use profile::Sample;
pub use report::Report;
