//! The register: a description of each quirk.

mod common;
mod flags;
mod products;
mod steps;

use super::{Description, Quirk};
use common::UNREPORTED;

/// Every quirk, in the order of [`Quirk::ALL`].
pub const REGISTER: &[Description] = &joined::<{ Quirk::ALL.len() }>([products::PRODUCTS, steps::STEPS, flags::FLAGS]);

/// Concatenates the entries of all parts.
#[expect(clippy::indexing_slicing, reason = "while the crate is compiled, which ends it")]
const fn joined<const ALL: usize>(parts: [&[Description]; 3]) -> [Description; ALL] {
    let mut all = [UNREPORTED; ALL];
    let (mut part, mut position, mut next) = (0, 0, 0);
    while part < parts.len() {
        if position < parts[part].len() {
            all[next] = parts[part][position];
            (position, next) = (position + 1, next + 1);
        } else {
            (part, position) = (part + 1, 0);
        }
    }
    assert!(next == ALL, "a quirk without an entry");
    all
}
