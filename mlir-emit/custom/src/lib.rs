//! Bodies of custom operations: MLIR that a caller wrote, and that no parser of MLIR ever sees.
//!
//! [`read`] parses the documented subset (`docs/custom-op.md`) and verifies all of it: names, types, shapes, maps and numbers. What comes
//! out is a small typed tree of values that are numbered, from which the operations are built. What is allowed reads and writes
//! nothing but tensors, at places that depend on the shapes alone, and ends.
//!
//! | File | What it has |
//! |---|---|
//! | `syntax` | the grammar: from text to a tree of words and their places |
//! | `verify`, `generic` | from words to values: what each stands for, and whether it fits |
//! | `arithmetic` | the operations on scalars: what each takes and gives |
//! | `literal` | the bits of constants |
//! | `body` | what a body says |
//! | `rotary` | the rotary embedding that other engines' users pass |

mod arithmetic;
mod body;
mod generic;
mod literal;
pub mod rotary;
mod syntax;
mod verify;

pub use body::{
    Arithmetic, Body, Element, Flag, Generic, Loop, Operand, Operation, Place, Scalar, Statement, TensorType, Type,
    Value,
};

use std::fmt;

/// Bytes that a body may have.
pub const LONGEST: usize = 64 * 1024;

/// Axes of a tensor and loops of an operation.
pub const MOST_AXES: usize = 32;

/// Operations that a body may have.
pub const MOST_OPERATIONS: usize = 512;

/// Why a body is declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The line and column, counted from 1, if one place is at fault.
    pub place: Option<(usize, usize)>,
    /// The operation at fault, or nothing.
    pub operation: String,
    /// Why.
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

/// What is wrong at a byte of the text.
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

    /// In this operation, unless one inside it is named already.
    pub(crate) fn of(mut self, operation: &str) -> Self {
        if self.operation.is_empty() {
            // A word can be as long as the text.
            self.operation = operation.chars().take(40).collect();
        }
        self
    }

    fn in_text(self, text: &str) -> Refusal {
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

/// Reads the body of an operation with tensors of these types.
///
/// # Errors
///
/// What it has that is not allowed, and where.
pub fn read(data: &[u8], inputs: &[TensorType], outputs: &[TensorType]) -> Result<Body, Refusal> {
    let nowhere = |reason: String| Refusal {
        place: None,
        operation: String::new(),
        reason,
    };
    if data.len() > LONGEST {
        return Err(nowhere(format!(
            "its body has {} bytes, more than {LONGEST}",
            data.len()
        )));
    }
    let text = std::str::from_utf8(data).map_err(|_| nowhere("its body is not text".to_owned()))?;
    let body = syntax::parse(text).and_then(|source| verify::verify(&source, inputs, outputs));
    body.map_err(|fault| fault.in_text(text))
}
