//! Runs gfx942 (CDNA3, wave64) kernels on the host, for tests without a GPU.
//!
//! | Module | Owns |
//! |---|---|
//! | `error` | what a code object, a kernel or an instruction fails with |
//! | [`metadata`], [`object`] | code objects: the metadata of any; kernels, descriptors and code of gfx942 |
//! | `disassembler`, `assembler`, `text` | LLVM's disassembler and assembler; the text taken apart |
//! | `inst`, `registers` | decoded instructions; the registers that they read and write |
//! | `decode` | text to instructions, once per kernel |
//! | `table` | what each opcode computes: one entry per base mnemonic |
//! | `lanes`, `rows` | functions over 64 lanes; what every family does with whole registers of a wave |
//! | `vector`, `plain`, `scalar`, `memory`, `matrix` | how a family of instructions reads, computes and writes |
//! | `wave`, `run`, `executions`, [`launch`] | the state of a wave, its loop and its counts, workgroups over threads |
//! | `strict` | what the hardware leaves undefined: uninitialised registers, missing `s_waitcnt` |
//! | [`report`] | what a launch did |
//! | `profile` | what the time model wants to know of a sample of workgroups |
//!
//! A kernel's bytes are disassembled once; each text becomes an instruction with its operands
//! resolved and the function of its opcode in it. A wave is a file of rows, one row of 64 `u32` per
//! vector register; the vector driver hands rows to the opcode's function, which is a loop over 64
//! lanes that the compiler vectorises.
//!
//! What is not understood is an error that names it: nothing is skipped.

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
