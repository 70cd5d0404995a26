//! The syntax tree of a text: words with their offsets, types, and the form that follows each
//! operation's name.

use crate::body::{Loop, TensorType, Type};
use crate::refusal::Fault;

/// A word of the text and its byte offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'i> {
    pub(crate) text: &'i str,
    pub(crate) offset: usize,
}

impl Word<'_> {
    pub(crate) fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.offset, reason)
    }
}

/// A type and its byte offset.
#[derive(Clone, Debug)]
pub(crate) struct Typed<T> {
    pub(crate) ty: T,
    pub(crate) offset: usize,
}

#[derive(Debug)]
pub(crate) struct Source<'i> {
    pub(crate) aliases: Vec<(Word<'i>, Map<'i>)>,
    pub(crate) name: Word<'i>,
    pub(crate) arguments: Vec<(Word<'i>, Typed<Type>)>,
    pub(crate) results: Vec<Typed<Type>>,
    pub(crate) statements: Vec<Statement<'i>>,
    pub(crate) returned: Returned<'i>,
}

/// The terminator of a block: `return` or `linalg.yield`.
#[derive(Debug)]
pub(crate) struct Returned<'i> {
    pub(crate) name: Word<'i>,
    pub(crate) values: Vec<Word<'i>>,
    pub(crate) types: Vec<Typed<Type>>,
}

#[derive(Debug)]
pub(crate) struct Statement<'i> {
    pub(crate) result: Word<'i>,
    pub(crate) name: Word<'i>,
    pub(crate) form: Form<'i>,
}

/// The syntax that follows an operation's name.
#[derive(Debug)]
pub(crate) enum Form<'i> {
    Constant(Literal<'i>, Typed<Type>),
    Index(Word<'i>, Typed<Type>),
    /// An operation on scalars: predicate, operands, flags and types.
    Scalar(ScalarForm<'i>),
    Empty(Typed<TensorType>),
    Fill(Word<'i>, Typed<Type>, Word<'i>, Typed<TensorType>, Typed<TensorType>),
    /// `tensor.expand_shape` and `tensor.collapse_shape`: the groups of axes, and the output
    /// extents, which only `tensor.expand_shape` has.
    Reshape {
        source: Word<'i>,
        groups: Vec<Vec<i64>>,
        extents: Option<Vec<i64>>,
        from: Typed<TensorType>,
        to: Typed<TensorType>,
    },
    Slice {
        source: Word<'i>,
        offsets: Vec<i64>,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        from: Typed<TensorType>,
        to: Typed<TensorType>,
    },
    Concat {
        axis: i64,
        sources: Vec<Word<'i>>,
        from: Vec<Typed<TensorType>>,
        to: Typed<TensorType>,
    },
    Generic(Box<GenericForm<'i>>),
}

#[derive(Debug)]
pub(crate) struct ScalarForm<'i> {
    pub(crate) predicate: Option<Word<'i>>,
    pub(crate) operands: Vec<Word<'i>>,
    pub(crate) flag: Option<(Word<'i>, Vec<Word<'i>>)>,
    pub(crate) types: Vec<Typed<Type>>,
    /// The result type of a conversion.
    pub(crate) to: Option<Typed<Type>>,
}

#[derive(Debug)]
pub(crate) struct GenericForm<'i> {
    pub(crate) maps: Vec<MapReference<'i>>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) inputs: Vec<Word<'i>>,
    pub(crate) input_types: Vec<Typed<TensorType>>,
    pub(crate) init: Word<'i>,
    pub(crate) init_type: Typed<TensorType>,
    pub(crate) arguments: Vec<(Word<'i>, Typed<Type>)>,
    pub(crate) body: Vec<Statement<'i>>,
    pub(crate) yielded: Returned<'i>,
    pub(crate) result: Typed<TensorType>,
}

#[derive(Debug)]
pub(crate) struct Literal<'i> {
    pub(crate) is_negative: bool,
    pub(crate) digits: Word<'i>,
}

#[derive(Debug)]
pub(crate) enum MapReference<'i> {
    Alias(Word<'i>),
    Map(Map<'i>),
}

#[derive(Clone, Debug)]
pub(crate) struct Map<'i> {
    pub(crate) offset: usize,
    pub(crate) loops: Vec<Word<'i>>,
    /// Names of loops, and constant indices.
    pub(crate) results: Vec<Word<'i>>,
}
