//! Counts: conversions between signed and unsigned ones, products, and lists of a known length.

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

/// Returns the product of extents; `None` if it overflows or an extent is negative.
pub(crate) fn product(extents: &[i64]) -> Option<u64> {
    extents.iter().try_fold(1_u64, |product, &extent| {
        product.checked_mul(u64::try_from(extent).ok()?)
    })
}

/// Returns the items as an array of `COUNT` items, which must be their number.
pub(crate) fn exactly<T: Copy, const COUNT: usize>(items: &[T]) -> [T; COUNT] {
    let count = items.len();
    items
        .try_into()
        .unwrap_or_else(|_| unreachable!("{count} items, not {COUNT}"))
}
