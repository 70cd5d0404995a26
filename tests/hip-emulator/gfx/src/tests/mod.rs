//! Tests of the vector opcodes: every entry of the table against a second model, its modifiers
//! against literal vectors, mutants of the table against both, and its texts through LLVM's
//! assembler.
//!
//! | Module | Owns |
//! |---|---|
//! | `machine` | one instruction on given registers |
//! | `inputs` | operands: edge values, neighbours of other operands, random bits |
//! | `model` | the opcodes on one lane, in wide integers and soft floats, without the table |
//! | `vectors` | table against model |
//! | `forms`, `moves` | modifiers and SDWA; DPP, lanes and MODE: literal vectors |
//! | `mutants` | mutated entries that `vectors` must catch |
//! | `roundtrip` | texts through the assembler and back |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up has failed; survivors and skips are printed"
)]

mod forms;
mod inputs;
mod machine;
mod model;
mod moves;
mod mutants;
mod roundtrip;
mod vectors;
