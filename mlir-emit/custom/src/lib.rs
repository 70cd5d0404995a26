//! Bodies of custom operations: MLIR that a caller wrote, and that no parser of MLIR ever sees.
//!
//! [`read`] parses the documented subset (`docs/custom-op.md`) and verifies all of it: names,
//! types, shapes, maps and numbers. What comes out is a small typed tree of values that are
//! numbered, from which the operations are built. What is allowed reads and writes nothing but
//! tensors, at places that depend on the shapes alone, and ends.
//!
//! | File | What it has |
//! |---|---|
//! | `words`, `grammar` | from text to words, and to a tree of them |
//! | `syntax` | the tree: words and their places |
//! | `verify`, `generic` | from words to values: what each stands for, and whether it fits |
//! | `arithmetic` | the operations on scalars: what each takes and gives |
//! | `literal` | the bits of constants |
//! | `body` | what a body says, and how large it may be |
//! | `refusal` | why a body is declined, and where |
//! | `rotary` | the rotary embedding that other engines' users pass |

mod arithmetic;
mod body;
mod generic;
mod grammar;
mod literal;
mod refusal;
pub mod rotary;
mod syntax;
mod verify;
mod words;

pub use arithmetic::operations;
pub use body::{
    Arithmetic, Body, Element, Flag, Generic, LONGEST, Loop, MOST_AXES, MOST_OPERATIONS, Operand, Operation, Place,
    Scalar, Statement, TensorType, Type, Value,
};
pub use refusal::Refusal;

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
    let body = grammar::parse(text).and_then(|source| verify::verify(&source, inputs, outputs));
    body.map_err(|fault| fault.in_text(text))
}
