//! MLIR that is built as data and written as text, in MLIR's generic form. Nothing of LLVM takes
//! part.
//!
//! Types and values are numbers of a [`Context`]. Operations are appended to a [`Block`] and are
//! never changed; a pass may replace some by others. The text is what IREE's compiler parses and
//! verifies; [`function_text`] verifies what text cannot say: that each operand is a value that is
//! defined where it is used.

mod attributes;
mod print;
mod types;

pub(crate) use attributes::Attribute;
pub(crate) use print::{body_text, function_text};
pub(crate) use types::{Float, Type};

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use types::Kind;

/// The properties of a value.
#[derive(Clone, Debug)]
struct Definition {
    r#type: usize,
    /// The operation that defines it; nothing for the argument of a block.
    owner: Option<Rc<Head>>,
}

/// An operation but for its results and regions.
#[derive(Debug)]
struct Head {
    name: String,
    operands: Vec<usize>,
    attributes: Vec<(String, String)>,
}

/// Owns the types and values that blocks, operations and the lowering refer to.
#[derive(Debug, Default)]
pub(crate) struct Context {
    types: RefCell<Vec<Kind>>,
    values: RefCell<Vec<Definition>>,
}

impl Context {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The value with a number.
    pub(crate) fn value(&self, id: usize) -> Value<'_, '_> {
        Value::of(self, id)
    }

    fn define(&self, definition: Definition) -> usize {
        let mut values = self.values.borrow_mut();
        values.push(definition);
        values.len() - 1
    }
}

/// A value in static single assignment form: the argument of a block that is borrowed, or the
/// result of an operation in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'c, 'b> {
    context: &'c Context,
    id: usize,
    block: PhantomData<&'b ()>,
}

impl PartialEq for Value<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<'c> Value<'c, '_> {
    fn of(context: &'c Context, id: usize) -> Self {
        Value {
            context,
            id,
            block: PhantomData,
        }
    }

    /// Its number in the context.
    pub(crate) fn id(self) -> usize {
        self.id
    }

    pub(crate) fn r#type(self) -> Type<'c> {
        let values = self.context.values.borrow();
        let id = values[self.id].r#type;
        Type::of(self.context, id)
    }

    /// The operation that it is the result of.
    pub(crate) fn owner(self) -> Option<Owner<'c>> {
        let values = self.context.values.borrow();
        let head = values.get(self.id)?.owner.clone()?;
        Some(Owner {
            context: self.context,
            head,
        })
    }

    /// The same value where another block is borrowed. Printing tells if it is not defined there.
    pub(crate) fn captured<'r>(self) -> Value<'c, 'r> {
        Value::of(self.context, self.id)
    }
}

/// The operation that a value is the result of.
pub(crate) struct Owner<'c> {
    context: &'c Context,
    head: Rc<Head>,
}

impl<'c> Owner<'c> {
    pub(crate) fn name(&self) -> &str {
        &self.head.name
    }

    pub(crate) fn operand<'b>(&self, index: usize) -> Option<Value<'c, 'b>> {
        let id = self.head.operands.get(index)?;
        Some(Value::of(self.context, *id))
    }

    /// The text of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let attributes = self.head.attributes.iter();
        attributes
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .next()
    }
}

/// An operation that is complete. Values are known by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    head: Rc<Head>,
    results: Vec<usize>,
    regions: Vec<Region>,
}

impl Operation {
    /// Creates an operation that redefines existing values: it replaces the operation that made
    /// them.
    pub(crate) fn new(
        name: &str,
        operands: Vec<usize>,
        attributes: Vec<(&str, String)>,
        results: Vec<usize>,
    ) -> Operation {
        let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
        Operation {
            head: Rc::new(Head {
                name: name.to_owned(),
                operands,
                attributes: attributes.collect(),
            }),
            results,
            regions: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.head.name
    }

    pub(crate) fn operands(&self) -> &[usize] {
        &self.head.operands
    }

    pub(crate) fn results(&self) -> &[usize] {
        &self.results
    }

    pub(crate) fn attributes(&self) -> &[(String, String)] {
        &self.head.attributes
    }

    /// The text of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.head.attributes.iter();
        let found = attributes.find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The operands of it and of all operations inside.
    pub(crate) fn all_operands(&self) -> Vec<usize> {
        let inside = self.regions.iter().filter_map(Region::body);
        let inside = inside.flat_map(|(_, operations)| operations.iter().flat_map(Operation::all_operands));
        self.operands().iter().copied().chain(inside).collect()
    }
}

/// Arguments and operations. Blocks have no names: none is branched to.
#[derive(Debug)]
pub(crate) struct Block<'c> {
    arguments: Vec<Value<'c, 'c>>,
    operations: RefCell<Vec<Operation>>,
}

impl<'c> Block<'c> {
    /// An empty block whose arguments have these types.
    pub(crate) fn new(arguments: &[Type<'c>]) -> Self {
        let define = |r#type: &Type<'c>| {
            let definition = Definition {
                r#type: r#type.id(),
                owner: None,
            };
            let context = r#type.context();
            Value::of(context, context.define(definition))
        };
        Block {
            arguments: arguments.iter().map(define).collect(),
            operations: RefCell::default(),
        }
    }

    pub(crate) fn argument<'b>(&'b self, index: usize) -> Value<'c, 'b> {
        self.arguments[index].captured()
    }

    /// Takes all operations out.
    pub(crate) fn take(&self) -> Vec<Operation> {
        self.operations.take()
    }

    /// Puts operations in, in place of those that there are.
    pub(crate) fn put(&self, operations: Vec<Operation>) {
        self.operations.replace(operations);
    }

    /// Appends an operation and gives its results.
    pub(crate) fn append<'b>(
        &'b self,
        context: &'c Context,
        name: &str,
        operands: &[Value<'c, 'b>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute)],
        regions: Vec<Region>,
    ) -> Vec<Value<'c, 'b>> {
        let head = Rc::new(Head {
            name: name.to_owned(),
            operands: operands.iter().map(|operand| operand.id).collect(),
            attributes: attributes
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.to_string()))
                .collect(),
        });
        let define = |r#type: &Type<'c>| {
            context.define(Definition {
                r#type: r#type.id(),
                owner: Some(Rc::clone(&head)),
            })
        };
        let results: Vec<usize> = results.iter().map(define).collect();
        let values = results.iter().map(|&id| Value::of(context, id)).collect();
        self.operations.borrow_mut().push(Operation { head, results, regions });
        values
    }
}

/// What an operation encloses: one block, or nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region(Option<Body>);

#[derive(Clone, Debug)]
struct Body {
    arguments: Vec<usize>,
    operations: Vec<Operation>,
}

impl Region {
    /// A region without a block.
    pub(crate) fn empty() -> Self {
        Self::default()
    }
}

impl Region {
    /// The numbers of its block's arguments, and the operations; `None` without a block.
    pub(crate) fn body(&self) -> Option<(&[usize], &[Operation])> {
        let body = self.0.as_ref()?;
        Some((&body.arguments, &body.operations))
    }
}

impl From<Block<'_>> for Region {
    fn from(block: Block<'_>) -> Self {
        Region(Some(Body {
            arguments: block.arguments.iter().map(|argument| argument.id).collect(),
            operations: block.operations.into_inner(),
        }))
    }
}
