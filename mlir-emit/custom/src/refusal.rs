//! The reason and the position of a decline.

use std::fmt;

/// The reason why a body is declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Line and column, counted from 1, if a single position is at fault.
    pub place: Option<(usize, usize)>,
    /// Name of the operation at fault; empty if none is.
    pub operation: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}")?;
            if !self.operation.is_empty() {
                write!(f, ", {}", self.operation)?;
            }
            write!(f, ": ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

/// A reason to decline the body, with its byte offset in the text.
#[derive(Debug)]
pub(crate) struct Fault {
    offset: usize,
    operation: String,
    reason: String,
}

impl Fault {
    pub(crate) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Fault {
            offset,
            operation: String::new(),
            reason: reason.into(),
        }
    }

    /// Names the operation at fault, unless a nested operation is named already.
    pub(crate) fn of(mut self, operation: &str) -> Self {
        if self.operation.is_empty() {
            // A word may be as long as the text.
            self.operation = operation.chars().take(40).collect();
        }
        self
    }

    pub(crate) fn in_text(self, text: &str) -> Refusal {
        let before = text.get(..self.offset).unwrap_or(text);
        let line = before.matches('\n').count().saturating_add(1);
        let column = before
            .chars()
            .rev()
            .take_while(|&c| c != '\n')
            .count()
            .saturating_add(1);
        Refusal {
            place: Some((line, column)),
            operation: self.operation,
            reason: self.reason,
        }
    }
}
