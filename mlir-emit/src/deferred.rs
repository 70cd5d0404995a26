//! Operands of kernels, before the operations that prepare them are emitted.
//!
//! Whether there is a kernel for a problem depends on the layout of its operands. So the layout is
//! planned first, and copies and conversions are emitted when it is certain that a kernel reads
//! them: a kernel that does not support the problem leaves no operation behind.

use crate::value::Ordered;

/// An operation that prepares an operand.
type Step<'l, 'c> = Box<dyn FnOnce(Ordered<'c>) -> Ordered<'c> + 'l>;

/// A tensor, and the operations that bring it into the layout that a kernel reads.
pub(crate) struct Deferred<'l, 'c> {
    source: Ordered<'c>,
    layout: Ordered<'c>,
    steps: Vec<Step<'l, 'c>>,
}

impl<'l, 'c> Deferred<'l, 'c> {
    /// Returns a tensor that is read unchanged.
    pub(crate) fn new(source: &Ordered<'c>) -> Self {
        Deferred {
            source: source.clone(),
            layout: source.clone(),
            steps: Vec::new(),
        }
    }

    /// Adds an operation. `change` turns the layout before it into that of its result.
    #[must_use]
    pub(crate) fn then(
        mut self,
        change: impl FnOnce(&mut Ordered<'c>),
        step: impl FnOnce(Ordered<'c>) -> Ordered<'c> + 'l,
    ) -> Self {
        change(&mut self.layout);
        self.steps.push(Box::new(step));
        self
    }

    /// Returns the extents, memory order and type that the kernel reads. The value is that of the
    /// source.
    pub(crate) fn layout(&self) -> &Ordered<'c> {
        &self.layout
    }

    /// Emits the operations, and returns their result.
    pub(crate) fn emit(self) -> Ordered<'c> {
        let result = self.steps.into_iter().fold(self.source, |tensor, step| step(tensor));
        let layout = |tensor: &Ordered<'c>| (tensor.dims.clone(), tensor.order.clone(), tensor.dtype);
        assert_eq!(
            layout(&result),
            layout(&self.layout),
            "an operand with another layout than planned"
        );
        result
    }
}
