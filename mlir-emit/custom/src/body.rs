//! The typed form of a body: numbered values, and how each is computed. [`crate::read`] makes it,
//! so it is right; what builds the function may add values to it.

use std::collections::HashSet;
use std::fmt;

/// Bytes that a body may have.
pub const LONGEST: usize = 64 * 1024;

/// Axes of a tensor and loops of an operation.
pub const MOST_AXES: usize = 32;

/// Operations that a body may have.
pub const MOST_OPERATIONS: usize = 512;

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// A condition.
    I1,
    /// A byte, signed or not.
    I8,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// The index of a loop.
    Index,
}

impl Element {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "f32" => Element::F32,
            "f64" => Element::F64,
            "i1" => Element::I1,
            "i8" => Element::I8,
            "i32" => Element::I32,
            "i64" => Element::I64,
            "index" => Element::Index,
            _ => return None,
        })
    }

    /// MLIR's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I1 => "i1",
            Element::I8 => "i8",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::Index => "index",
        }
    }

    /// Bits of a number.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Element::I1 => 1,
            Element::I8 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::F32 | Element::I32 => 32,
            Element::F64 | Element::I64 | Element::Index => 64,
        }
    }

    /// Whether it is a type of floats.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }
}

/// The type of a tensor: extents, all above 0, and elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Extents.
    pub dims: Vec<i64>,
    /// What it has.
    pub element: Element,
}

impl TensorType {
    /// How many elements it has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.dims
            .iter()
            .fold(1, |count, &dim| count.saturating_mul(u64::try_from(dim).unwrap_or(0)))
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dim in &self.dims {
            write!(f, "{dim}x")?;
        }
        write!(f, "{}>", self.element.name())
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// The type of a scalar.
    Scalar(Element),
    /// The type of a tensor.
    Tensor(TensorType),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(element) => f.write_str(element.name()),
            Type::Tensor(tensor) => tensor.fmt(f),
        }
    }
}

/// A value, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(pub(crate) usize);

impl Value {
    /// One of the function's arguments.
    #[must_use]
    pub fn argument(index: usize) -> Self {
        Value(index)
    }

    /// Its place in [`Body::types`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// A body.
#[derive(Clone, Debug)]
pub struct Body {
    /// The type of each value. The first ones are the function's arguments.
    pub types: Vec<Type>,
    /// How many arguments there are.
    pub arguments: usize,
    /// What is computed, in order.
    pub statements: Vec<Statement>,
    /// What is returned.
    pub results: Vec<Value>,
    /// The elements of all tensors on the way, or more.
    pub elements: u64,
}

impl Body {
    /// A new value of this type, which something has to make.
    pub fn define(&mut self, ty: Type) -> Value {
        self.types.push(ty);
        Value(self.types.len().saturating_sub(1))
    }
}

impl Body {
    /// Whether each result is computed from an argument that is `given`.
    #[must_use]
    pub fn depending(&self, given: &[bool]) -> Vec<bool> {
        let mut depends: HashSet<Value> = (0..self.arguments)
            .filter(|&index| given.get(index) == Some(&true))
            .map(Value)
            .collect();
        for Statement { result, operation } in &self.statements {
            let is_dependent = match operation {
                Operation::Generic(generic) => {
                    let operands = generic.inputs.iter().chain([&generic.init]);
                    for (operand, &argument) in operands.zip(&generic.arguments) {
                        if depends.contains(&operand.value) {
                            depends.insert(argument);
                        }
                    }
                    for scalar in &generic.body {
                        if scalar.arithmetic.operands().iter().any(|value| depends.contains(value)) {
                            depends.insert(scalar.result);
                        }
                    }
                    depends.contains(&generic.yielded)
                }
                Operation::Expand(source, _)
                | Operation::Collapse(source, _)
                | Operation::Slice(source, _)
                | Operation::Apart(source) => depends.contains(source),
                Operation::Concat(_, sources) => sources.iter().any(|source| depends.contains(source)),
                Operation::Scalar(_) | Operation::Fill(_) | Operation::Empty => false,
            };
            if is_dependent {
                depends.insert(*result);
            }
        }
        self.results.iter().map(|result| depends.contains(result)).collect()
    }
}

/// One value of the function, and how it is made.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it makes.
    pub result: Value,
    /// How.
    pub operation: Operation,
}

/// How a value of the function is made. The type of the result says the rest.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A number from numbers.
    Scalar(Scalar),
    /// A structured operation.
    Generic(Generic),
    /// A tensor with this number everywhere.
    Fill(Value),
    /// A tensor whose elements are to come.
    Empty,
    /// The same elements with more axes: those that each axis becomes.
    Expand(Value, Vec<Vec<usize>>),
    /// The same elements with fewer axes: those that become each.
    Collapse(Value, Vec<Vec<usize>>),
    /// Some of the elements: offset, extent and stride of each axis. Axes of extent 1 may be
    /// missing in the result.
    Slice(Value, Vec<[i64; 3]>),
    /// One tensor after the other along this axis.
    Concat(usize, Vec<Value>),
    /// The same tensor, which nothing computes together with what reads it. No text says this: what
    /// builds the function adds it.
    Apart(Value),
}

impl Operation {
    /// The tensors that it reads.
    pub fn sources(&mut self) -> Vec<&mut Value> {
        match self {
            Operation::Generic(generic) => {
                let inputs = generic.inputs.iter_mut().map(|input| &mut input.value);
                inputs.chain([&mut generic.init.value]).collect()
            }
            Operation::Expand(source, _)
            | Operation::Collapse(source, _)
            | Operation::Slice(source, _)
            | Operation::Apart(source) => vec![source],
            Operation::Concat(_, sources) => sources.iter_mut().collect(),
            Operation::Scalar(_) | Operation::Fill(_) | Operation::Empty => Vec::new(),
        }
    }
}

/// A number from numbers.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// What it makes.
    pub result: Value,
    /// How.
    pub arithmetic: Arithmetic,
}

/// How a number is made.
#[derive(Clone, Debug)]
pub enum Arithmetic {
    /// A number of these bits.
    Constant(u64),
    /// The index of a loop.
    Index(usize),
    /// An operation of `arith` or `math`.
    Operation {
        /// MLIR's name of it.
        name: &'static str,
        /// What it takes.
        operands: Vec<Value>,
        /// MLIR's number of the relation, of comparisons.
        predicate: Option<u8>,
        /// What may be assumed.
        flag: Option<Flag>,
    },
}

impl Arithmetic {
    /// Takes another number instead of this one.
    pub fn replace(&mut self, old: Value, new: Value) {
        if let Arithmetic::Operation { operands, .. } = self {
            for operand in operands.iter_mut().filter(|operand| **operand == old) {
                *operand = new;
            }
        }
    }

    /// What it takes.
    #[must_use]
    pub fn operands(&self) -> &[Value] {
        match self {
            Arithmetic::Operation { operands, .. } => operands,
            Arithmetic::Constant(_) | Arithmetic::Index(_) => &[],
        }
    }

    /// MLIR's name, of an operation of `arith` or `math`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Arithmetic::Operation { name, .. } => name,
            Arithmetic::Constant(_) => "arith.constant",
            Arithmetic::Index(_) => "linalg.index",
        }
    }
}

/// What may be assumed of an operation, in MLIR's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Flags of float operations.
    Fastmath(Vec<&'static str>),
    /// Flags that say that integers do not overflow.
    Overflow(Vec<&'static str>),
    /// The flag that says that an integer is not negative.
    NonNegative,
}

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Each iteration computes a separate element.
    Parallel,
    /// All iterations are combined into one element.
    Reduction,
}

/// Where an axis of an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the index of this loop.
    Loop(usize),
    /// Always at the same index.
    Fixed(i64),
}

/// A tensor and where each of its axes is read or written.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The tensor.
    pub value: Value,
    /// One place for each axis, each loop at most once.
    pub map: Vec<Place>,
}

/// A structured operation with one result.
#[derive(Clone, Debug)]
pub struct Generic {
    /// The loops.
    pub loops: Vec<Loop>,
    /// The extent of each loop.
    pub extents: Vec<i64>,
    /// What is read.
    pub inputs: Vec<Operand>,
    /// What the result starts from. Its map has every parallel loop, and fixes nothing but axes of
    /// extent 1, at 0.
    pub init: Operand,
    /// The elements of the inputs, then the element so far.
    pub arguments: Vec<Value>,
    /// What is computed for each iteration.
    pub body: Vec<Scalar>,
    /// The new element. If there is a reduction, it is made by the last word of `body` that is not
    /// dead: one combination of the element so far and something else.
    pub yielded: Value,
}

impl Generic {
    /// The operation that combines elements, if there is a reduction.
    #[must_use]
    pub fn combiner(&self) -> Option<&Scalar> {
        self.loops
            .contains(&Loop::Reduction)
            .then(|| self.body.iter().find(|scalar| scalar.result == self.yielded))?
    }

    /// The extents of the loops that combine elements.
    #[must_use]
    pub fn reduced(&self) -> Vec<i64> {
        let loops = self.loops.iter().zip(&self.extents);
        loops
            .filter_map(|(kind, &extent)| (*kind == Loop::Reduction).then_some(extent))
            .collect()
    }
}
