//! Conversions between signed and unsigned counts, and lists of a known length.

/// Converts a count to a signed number.
pub(crate) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or_else(|_| unreachable!("{count} is beyond any address space"))
}

/// Converts a number, which must not be negative, to a count.
pub(crate) fn unsigned(number: i64) -> usize {
    usize::try_from(number).unwrap_or_else(|_| unreachable!("{number} is no count"))
}

/// Returns `count / each`, rounded up. Both must be positive, or `count` zero.
pub(crate) const fn ceil_div(count: i64, each: i64) -> i64 {
    count / each + (count % each).signum()
}

/// Returns the items as an array of `COUNT` items, which must be their number.
pub(crate) fn exactly<T: Copy, const COUNT: usize>(items: &[T]) -> [T; COUNT] {
    let count = items.len();
    items
        .try_into()
        .unwrap_or_else(|_| unreachable!("{count} items, not {COUNT}"))
}
