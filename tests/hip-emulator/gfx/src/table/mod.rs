//! Semantics of each opcode: one entry per base mnemonic (without `_e32`, `_e64`, `_sdwa`, `_dpp`).
//!
//! An entry gives the types of its operands and the function over them; the drivers handle
//! encodings, modifiers and lane masks. Tests iterate over [`all`]; mutation tests decode with a
//! changed copy of an entry.

mod compare;
mod convert;
mod dot;
mod double;
mod entry;
mod fp8;
pub(crate) mod half;
mod integer;
mod order;
mod packed;
mod salu;
mod short;
mod single;
mod soft;

use std::{collections::HashMap, sync::LazyLock};

pub(crate) use entry::{Entry, MaskIn, Obeys, Op, Rule, ScalarFn, ScalarIn, ScalarOp, Ty, VectorOp};

/// Returns all entries.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    [
        salu::OPS,
        integer::OPS,
        short::OPS,
        single::OPS,
        half::OPS,
        double::OPS,
        convert::OPS,
        packed::OPS,
        dot::OPS,
        fp8::OPS,
        compare::OPS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the entry of a base mnemonic.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Entry>> =
        LazyLock::new(|| all().map(|entry| (entry.name, entry)).collect());
    BY_NAME.get(name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::all;

    #[test]
    fn every_mnemonic_has_one_entry() {
        let mut names = HashSet::new();
        for entry in all() {
            assert!(names.insert(entry.name), "{} is there twice", entry.name);
        }
    }
}
