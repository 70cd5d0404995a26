//! The numbers from which a step is made.

/// Numbers to decide by, taken one after the other. One that is small, or not there any more, is
/// the simplest decision.
pub(super) struct Choices<'a>(std::slice::Iter<'a, u16>);

impl<'a> Choices<'a> {
    pub(super) fn new(numbers: &'a [u16]) -> Self {
        Choices(numbers.iter())
    }

    /// A number from 0, less than `count`; growing with the number taken, so that shrinking that
    /// shrinks this.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let taken = usize::from(self.0.next().copied().unwrap_or_default());
        (taken * count) >> 16
    }

    /// A number between two, both included.
    pub(super) fn between(&mut self, least: i64, most: i64) -> i64 {
        let count = usize::try_from(most - least + 1).unwrap_or(1);
        least + i64::try_from(self.below(count)).unwrap_or_default()
    }

    /// One of a list, whose first is the simplest.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns true in `percent` of a hundred cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }
}
