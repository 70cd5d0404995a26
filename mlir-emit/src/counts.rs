//! Counts as signed and as unsigned numbers.

/// Returns a count as a signed number.
pub(crate) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or_else(|_| unreachable!("{count} is beyond any address space"))
}

/// Returns a number, which must not be negative, as a count.
pub(crate) fn unsigned(number: i64) -> usize {
    usize::try_from(number).unwrap_or_else(|_| unreachable!("{number} is no count"))
}
