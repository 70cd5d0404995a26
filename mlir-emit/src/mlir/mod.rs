//! MLIR that is built as data and written as text, in MLIR's generic form, without LLVM's
//! libraries.
//!
//! Types and values are numbers of a [`Context`]. Operations are appended to the innermost open
//! [`Block`] and never changed; a pass may replace some of them. IREE's compiler parses and
//! verifies the text. [`verified`] checks the properties that text cannot express (each operand
//! must be a value that is defined where it is used) and the types of the most frequent operations.

mod affine;
mod attributes;
mod names;
mod print;
mod types;
mod verify;

pub(crate) use affine::{Affine, IndexMap};
pub(crate) use attributes::{Attribute, Loop};
pub(crate) use names::Name;
pub(crate) use print::{body_text, function_text};
pub(crate) use types::{Float, Type};
pub(crate) use verify::verified;

use crate::kernel::problem::Product;
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use types::Kind;

/// The properties of a value.
#[derive(Clone, Debug)]
struct Definition {
    r#type: usize,
    /// The operation that defines the value; `None` for the argument of a block.
    owner: Option<Rc<Head>>,
}

/// An operation without its results and regions.
#[derive(Debug)]
pub(crate) struct Head {
    name: Name,
    role: Role,
    operands: Vec<usize>,
    attributes: Vec<(&'static str, Attribute)>,
}

/// The meaning of an operation until the kernels are placed.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// An operation of MLIR, which stands for itself.
    Plain,
    /// A row reduction that becomes a kernel of rotini.
    Rows,
    /// The sums of a product that becomes a kernel of rotini.
    Product(Rc<Product>),
    /// A call of a kernel of rotini.
    Call(Rc<Callee>),
}

/// A kernel of rotini, as the target of a call.
#[derive(Debug)]
pub(crate) struct Callee {
    pub(crate) name: String,
    /// The names of the operations that are fused into the kernel.
    pub(crate) fused: Vec<String>,
}

/// The iteration space of a structured operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure<'a> {
    pub(crate) loops: &'a [Loop],
    /// The index maps of the operands that it reads.
    pub(crate) read: &'a [IndexMap],
    /// The index map of the operand that it writes.
    pub(crate) written: &'a IndexMap,
}

impl Structure<'_> {
    /// Returns, for each operand that is read, the numbers of the loops that index it; `None` if an
    /// index is another expression.
    pub(crate) fn selected(self) -> Option<Vec<Vec<usize>>> {
        self.read.iter().map(IndexMap::selected).collect()
    }

    /// Returns true if any loop is a reduction.
    pub(crate) fn reduces(self) -> bool {
        self.loops.contains(&Loop::Reduction)
    }
}

impl Head {
    pub(crate) fn name(&self) -> Name {
        self.name
    }

    pub(crate) fn role(&self) -> &Role {
        &self.role
    }

    pub(crate) fn operands(&self) -> &[usize] {
        &self.operands
    }

    pub(crate) fn attributes(&self) -> &[(&'static str, Attribute)] {
        &self.attributes
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        let found = self.attributes.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }

    /// Returns the iteration space of a `linalg.generic`; `None` for another operation.
    pub(crate) fn structure(&self) -> Option<Structure<'_>> {
        match (self.attribute("iterator_types"), self.maps()) {
            (Some(Attribute::Loops(loops)), [read @ .., written]) => Some(Structure { loops, read, written }),
            _ => None,
        }
    }

    /// Returns the index maps of the operands; empty if the operation has none.
    pub(crate) fn maps(&self) -> &[IndexMap] {
        match self.attribute("indexing_maps") {
            Some(Attribute::Maps(maps)) => maps,
            _ => &[],
        }
    }
}

/// Owns the types and values that blocks, operations and the lowering refer to, and the blocks that
/// are being written.
#[derive(Debug, Default)]
pub(crate) struct Context {
    types: RefCell<Vec<Kind>>,
    values: RefCell<Vec<Definition>>,
    /// The open blocks, the innermost last.
    open: RefCell<Vec<Block>>,
}

impl Context {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the value with this number.
    pub(crate) fn value(&self, id: usize) -> Value<'_> {
        Value::of(self, id)
    }

    fn define(&self, definition: Definition) -> usize {
        let mut values = self.values.borrow_mut();
        values.push(definition);
        values.len() - 1
    }

    /// Returns a new value that no operation defines yet.
    pub(crate) fn fresh<'c>(&'c self, r#type: Type<'c>) -> Value<'c> {
        let definition = Definition {
            r#type: r#type.id(),
            owner: None,
        };
        Value::of(self, self.define(definition))
    }

    /// Returns a block whose arguments have these types. `body` appends its operations.
    pub(crate) fn block<'c>(&'c self, arguments: &[Type<'c>], body: impl FnOnce(&[Value<'c>])) -> Block {
        let arguments = self.open(arguments);
        body(&arguments);
        self.close()
    }

    /// Opens a block whose arguments have these types: operations are appended to it until it is
    /// closed.
    pub(crate) fn open<'c>(&'c self, arguments: &[Type<'c>]) -> Vec<Value<'c>> {
        let arguments: Vec<_> = arguments.iter().map(|&r#type| self.fresh(r#type)).collect();
        self.open.borrow_mut().push(Block {
            arguments: arguments.iter().map(|argument| argument.id).collect(),
            operations: Vec::new(),
        });
        arguments
    }

    /// Returns an argument of the innermost open block.
    pub(crate) fn argument(&self, index: usize) -> Value<'_> {
        let open = self.open.borrow();
        let block = open.last().expect("no block is open");
        self.value(block.arguments[index])
    }

    /// Closes the innermost open block.
    pub(crate) fn close(&self) -> Block {
        let block = self.open.borrow_mut().pop();
        block.expect("no block is open")
    }

    /// Appends the operations of a block without arguments to the innermost open block.
    pub(crate) fn splice(&self, block: Block) {
        let mut open = self.open.borrow_mut();
        let outer = open.last_mut().expect("no block is open");
        outer.operations.extend(block.operations);
    }

    /// Appends an operation to the innermost open block. Returns its results.
    pub(crate) fn append<'c>(
        &'c self,
        (name, role): (Name, Role),
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&'static str, Attribute)],
        regions: Vec<Region>,
    ) -> Vec<Value<'c>> {
        let head = Rc::new(Head {
            name,
            role,
            operands: operands.iter().map(|operand| operand.id).collect(),
            attributes: attributes.to_vec(),
        });
        let define = |r#type: &Type<'c>| {
            self.define(Definition {
                r#type: r#type.id(),
                owner: Some(Rc::clone(&head)),
            })
        };
        let results: Vec<usize> = results.iter().map(define).collect();
        let values = results.iter().map(|&id| Value::of(self, id)).collect();
        let mut open = self.open.borrow_mut();
        let block = open.last_mut().expect("no block is open");
        block.operations.push(Operation { head, results, regions });
        values
    }
}

/// A value in static single assignment form: the argument of a block, or the result of an
/// operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'c> {
    context: &'c Context,
    id: usize,
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<'c> Value<'c> {
    fn of(context: &'c Context, id: usize) -> Self {
        Value { context, id }
    }

    pub(crate) fn context(self) -> &'c Context {
        self.context
    }

    /// Returns the value's number in the context.
    pub(crate) fn id(self) -> usize {
        self.id
    }

    pub(crate) fn r#type(self) -> Type<'c> {
        let values = self.context.values.borrow();
        let id = values[self.id].r#type;
        Type::of(self.context, id)
    }

    /// Returns the operation that this value is a result of; `None` for the argument of a block.
    pub(crate) fn owner(self) -> Option<Rc<Head>> {
        self.context.values.borrow()[self.id].owner.clone()
    }
}

/// A complete operation. It refers to values by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    head: Rc<Head>,
    results: Vec<usize>,
    regions: Vec<Region>,
}

impl Deref for Operation {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

impl Operation {
    /// Creates an operation that redefines existing values: it replaces the operation that defined
    /// them.
    pub(crate) fn new(
        (name, role): (Name, Role),
        operands: Vec<usize>,
        attributes: Vec<(&'static str, Attribute)>,
        results: Vec<usize>,
    ) -> Operation {
        Operation {
            head: Rc::new(Head {
                name,
                role,
                operands,
                attributes,
            }),
            results,
            regions: Vec::new(),
        }
    }

    pub(crate) fn results(&self) -> &[usize] {
        &self.results
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Returns the operands of this operation and of all operations in its regions.
    pub(crate) fn all_operands(&self) -> Vec<usize> {
        let inside = self.regions.iter().filter_map(Region::body);
        let inside = inside.flat_map(|(_, operations)| operations.iter().flat_map(Operation::all_operands));
        self.operands().iter().copied().chain(inside).collect()
    }
}

/// Arguments and operations. Blocks have no names, since nothing branches to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    arguments: Vec<usize>,
    pub(crate) operations: Vec<Operation>,
}

/// A region of an operation: one block, or nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region(Option<Block>);

impl Region {
    /// A region without a block.
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    /// Returns the numbers of the block's arguments and its operations; `None` without a block.
    pub(crate) fn body(&self) -> Option<(&[usize], &[Operation])> {
        let block = self.0.as_ref()?;
        Some((&block.arguments, &block.operations))
    }
}

impl From<Block> for Region {
    fn from(block: Block) -> Self {
        Region(Some(block))
    }
}
