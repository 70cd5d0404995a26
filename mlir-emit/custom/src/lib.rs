//! Bodies of custom operations: MLIR written by a caller, which never reaches MLIR's own parser.
//!
//! [`read`] parses the documented subset (`docs/custom-op.md`) and verifies it completely: names,
//! types, shapes, maps and numbers. The result is a small typed tree of numbered values, from which
//! the emitter builds the operations. Every body in this subset terminates, accesses nothing but
//! tensors, and does so at indices that depend on the shapes alone.
//!
//! | File | Contents |
//! |---|---|
//! | `words`, `grammar` | from text to words, and to a syntax tree |
//! | `syntax` | the syntax tree: words and their offsets |
//! | `verify`, `generic` | from words to values: name resolution, types and shapes |
//! | `arithmetic` | the operations on scalars and their operand types |
//! | `literal` | the bits of constants |
//! | `body` | the typed tree and the limits of its size |
//! | `refusal` | why a body is declined, and at which line and column |
//! | `rotary` | the rotary embedding that users of other engines pass |

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

/// Reads the body of an operation whose tensors have these types.
///
/// # Errors
///
/// Returns the first construct that is not allowed, with its line and column. A body that is too
/// long or not UTF-8 is refused without a place.
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
