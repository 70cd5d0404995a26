//! The numbers that determine a step.

/// Numbers to decide by, consumed in order. A small or missing number gives the simplest decision.
pub(super) struct Choices<'a>(std::slice::Iter<'a, u16>);

impl<'a> Choices<'a> {
    pub(super) fn new(numbers: &'a [u16]) -> Self {
        Choices(numbers.iter())
    }

    /// Returns a number from 0, less than `count`. It grows with the consumed number, so that
    /// shrinking the latter shrinks it too.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let taken = usize::from(self.0.next().copied().unwrap_or_default());
        (taken * count) >> 16
    }

    /// Returns a number between two, both included.
    pub(super) fn between(&mut self, least: i64, most: i64) -> i64 {
        let count = usize::try_from(most - least + 1).unwrap_or(1);
        least + i64::try_from(self.below(count)).unwrap_or_default()
    }

    /// Returns an element of a list, whose first is the simplest.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns true in `percent` of a hundred cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }
}
