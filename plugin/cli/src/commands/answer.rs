//! The outcome of a command, which determines its exit code.

/// The answer to the question that a command was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// All is as it should be.
    Yes,
    /// Something is not, and the output says what.
    No,
    /// This machine lacks something, and the output says what.
    Missing,
}

impl Answer {
    pub(super) fn of(yes: bool) -> Self {
        if yes { Answer::Yes } else { Answer::No }
    }
}
