//! What a command answers.

/// Whether all that a command was asked is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is.
    Yes,
    /// It is not, and the output says what.
    No,
    /// This machine lacks something, and the output says what.
    Missing,
}

impl Answer {
    pub(super) fn of(yes: bool) -> Self {
        if yes { Answer::Yes } else { Answer::No }
    }
}
