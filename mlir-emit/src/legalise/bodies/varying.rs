//! Tracks which values the compiler may find to be the same for all contents of the tensors.
//!
//! The compiler folds such values late, and gets some of what remains wrong
//! ([`Quirk::ConstantSums`](crate::quirks::Quirk::ConstantSums),
//! [`Quirk::ConstantTransposed`](crate::quirks::Quirk::ConstantTransposed)). How the compiler finds
//! them is not fully known: it also follows ranges of integers. So this module answers the opposite
//! question: which values the compiler has no reason to take for constants. All others may be
//! constants.

use crate::custom::elements::element_of;
use rotini_custom::{Arithmetic, Body, Element, Flag, Scalar, Value};
use std::collections::HashMap;

/// What is known about the values of a function so far.
#[derive(Default)]
pub(super) struct Varying {
    /// Values that no pass can take for constants.
    varying: Vec<bool>,
    /// The bits of values that are constants.
    constants: HashMap<Value, u64>,
}

impl Varying {
    pub(super) fn is(&self, value: Value) -> bool {
        self.varying.get(value.index()) == Some(&true)
    }

    pub(super) fn set(&mut self, value: Value, varies: bool) {
        let index = value.index();
        if self.varying.len() <= index {
            self.varying.resize(index.saturating_add(1), false);
        }
        if let Some(slot) = self.varying.get_mut(index) {
            *slot = varies;
        }
    }

    /// Records whether a value varies, or its bits if it is a constant.
    pub(super) fn note(&mut self, body: &Body, scalar: &Scalar) {
        if let Arithmetic::Constant(bits) = scalar.arithmetic {
            self.constants.insert(scalar.result, bits);
        }
        let varies = self.varies(body, scalar);
        self.set(scalar.result, varies);
    }

    fn varies(&self, body: &Body, scalar: &Scalar) -> bool {
        let Arithmetic::Operation {
            name,
            operands,
            predicate,
            flag,
        } = &scalar.arithmetic
        else {
            return false;
        };
        if matches!(flag, Some(Flag::Fastmath(flags)) if flags.iter().any(|flag| *flag != "none" && *flag != "contract"))
        {
            return false;
        }
        let element = |value: Value| element_of(body, value);
        let any = || operands.iter().any(|&value| self.is(value));
        let all = || operands.iter().all(|&value| self.is(value));
        // One operand varies, and the other varies too or is a finite constant.
        let beside_a_number = || {
            let is_plain = |value: Value| match self.constants.get(&value) {
                Some(&bits) if element(value) == Element::F64 => f64::from_bits(bits).is_finite(),
                Some(&bits) => f32::from_bits(u32::try_from(bits).unwrap_or(u32::MAX)).is_finite(),
                None => self.is(value),
            };
            any() && operands.iter().all(|&value| is_plain(value))
        };
        let is_number = |value: &Value| self.constants.contains_key(value);
        match (*name, operands.as_slice()) {
            ("arith.maximumf" | "arith.minimumf" | "arith.maxnumf" | "arith.minnumf", _) => beside_a_number(),
            // Except for the predicates that are always false (0) or always true (15).
            ("arith.cmpf", _) => beside_a_number() && !matches!(predicate, None | Some(0 | 15)),
            ("arith.select", &[condition, yes, no]) => {
                let differ = match (self.constants.get(&yes), self.constants.get(&no)) {
                    (Some(yes), Some(no)) => yes != no,
                    _ => self.is(yes) || self.is(no),
                };
                self.is(condition) && differ || self.is(yes) && self.is(no)
            }
            ("arith.addi", [x, y]) => self.is(*x) && is_number(y) || self.is(*y) && is_number(x) || all() && x == y,
            ("arith.subi", [x, y]) => self.is(*x) && is_number(y),
            ("arith.muli" | "arith.maxsi" | "arith.maxui" | "arith.minsi" | "arith.minui", _) => all(),
            ("arith.extsi" | "arith.extui" | "math.absi", _) => any(),
            ("arith.trunci", &[x]) => self.is(x) && element(scalar.result) != Element::I1,
            (
                "arith.sitofp" | "arith.uitofp" | "arith.fptosi" | "arith.fptoui" | "arith.bitcast" | "arith.extf"
                | "arith.truncf",
                _,
            ) => any(),
            // Float operations with an operand that varies are never folded: neither x - x nor 0 ·
            // x, as x may be NaN.
            ("arith.addf" | "arith.subf" | "arith.mulf" | "arith.divf" | "arith.negf", _) => any(),
            (name, _) => name.starts_with("math.") && any(),
        }
    }
}
