//! Comparisons.

/// A comparison of floats; ordered ones are false if an operand is NaN. The numbers are MLIR's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatPredicate {
    Equal = 1,
    Greater = 2,
    GreaterEqual = 3,
    Less = 4,
    LessEqual = 5,
    Ordered = 7,
    UnorderedNotEqual = 13,
    Unordered = 14,
}

/// A comparison of integers: signed, except for the two that are documented as unsigned. The
/// numbers are MLIR's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegerPredicate {
    Equal = 0,
    NotEqual = 1,
    Less = 2,
    LessEqual = 3,
    Greater = 4,
    GreaterEqual = 5,
    /// Less, as unsigned numbers.
    Below = 6,
    /// Less or equal, as unsigned numbers.
    AtMost = 7,
}
