//! The typed form of a body: numbered values and the operation that defines each. [`crate::read`]
//! creates it, so it is verified. The code that builds the function may add values.

use std::collections::HashSet;
use std::fmt;

/// Maximum size of a body in bytes.
pub const LONGEST: usize = 64 * 1024;

/// Maximum number of axes of a tensor, and of loops of an operation.
pub const MOST_AXES: usize = 32;

/// Maximum number of operations in a body.
pub const MOST_OPERATIONS: usize = 512;

/// The type of a scalar or of a tensor's elements.
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
    /// A boolean.
    I1,
    /// 8 bits, signed or unsigned.
    I8,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// A loop index.
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

    /// Returns the type in MLIR's spelling.
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

    /// Returns the size in bits; an index has 64.
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

    /// Returns true for float types.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }
}

/// The type of a tensor: extents, all above 0, and an element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Extents.
    pub dims: Vec<i64>,
    /// Type of the elements.
    pub element: Element,
}

impl TensorType {
    /// Returns the number of elements.
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

/// A value, identified by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(pub(crate) usize);

impl Value {
    /// Returns the value of one of the function's arguments.
    #[must_use]
    pub fn argument(index: usize) -> Self {
        Value(index)
    }

    /// Returns the index of the value's type in [`Body::types`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// A verified body.
#[derive(Clone, Debug)]
pub struct Body {
    /// The type of each value. The first ones are the function's arguments.
    pub types: Vec<Type>,
    /// Number of arguments.
    pub arguments: usize,
    /// The operations, in order of execution.
    pub statements: Vec<Statement>,
    /// The values that the function returns.
    pub results: Vec<Value>,
    /// Upper bound of the number of elements of all intermediate tensors together.
    pub elements: u64,
}

impl Body {
    /// Adds a value of this type, which the caller must define by a statement.
    pub fn define(&mut self, ty: Type) -> Value {
        self.types.push(ty);
        Value(self.types.len().saturating_sub(1))
    }
}

impl Body {
    /// Returns for each result whether it depends on an argument that is `given`.
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

/// A value of the function, and the operation that defines it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The defined value.
    pub result: Value,
    /// The operation.
    pub operation: Operation,
}

/// An operation of the function. The type of the result completes its attributes.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A scalar computed from scalars.
    Scalar(Scalar),
    /// A structured operation.
    Generic(Generic),
    /// A tensor filled with this scalar.
    Fill(Value),
    /// A tensor whose elements are not yet defined.
    Empty,
    /// A reshape to more axes: for each axis of the source, the axes that it becomes.
    Expand(Value, Vec<Vec<usize>>),
    /// A reshape to fewer axes: for each axis of the result, the axes that are merged into it.
    Collapse(Value, Vec<Vec<usize>>),
    /// A strided slice: offset, extent and stride of each axis. The result may lack axes of extent
    /// 1.
    Slice(Value, Vec<[i64; 3]>),
    /// A concatenation along this axis.
    Concat(usize, Vec<Value>),
    /// A copy that keeps the compiler from fusing the tensor's producer with its consumers. It has
    /// no textual form: the code that builds the function inserts it.
    Apart(Value),
}

impl Operation {
    /// Returns the tensors that the operation reads.
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

/// A scalar value, and the operation that defines it.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The defined value.
    pub result: Value,
    /// The operation.
    pub arithmetic: Arithmetic,
}

/// An operation that defines a scalar.
#[derive(Clone, Debug)]
pub enum Arithmetic {
    /// A constant, by its bits.
    Constant(u64),
    /// The index of a loop, by the loop's number.
    Index(usize),
    /// An operation of `arith` or `math`.
    Operation {
        /// MLIR's name of the operation.
        name: &'static str,
        /// The operands.
        operands: Vec<Value>,
        /// MLIR's number of the predicate, for comparisons only.
        predicate: Option<u8>,
        /// Flags that state what the compiler may assume.
        flag: Option<Flag>,
    },
}

impl Arithmetic {
    /// Replaces the operand `old` by `new`.
    pub fn replace(&mut self, old: Value, new: Value) {
        if let Arithmetic::Operation { operands, .. } = self {
            for operand in operands.iter_mut().filter(|operand| **operand == old) {
                *operand = new;
            }
        }
    }

    /// Returns the operands.
    #[must_use]
    pub fn operands(&self) -> &[Value] {
        match self {
            Arithmetic::Operation { operands, .. } => operands,
            Arithmetic::Constant(_) | Arithmetic::Index(_) => &[],
        }
    }

    /// Returns MLIR's name of the operation.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Arithmetic::Operation { name, .. } => name,
            Arithmetic::Constant(_) => "arith.constant",
            Arithmetic::Index(_) => "linalg.index",
        }
    }
}

/// Flags of an operation that state what the compiler may assume, in MLIR's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Fast-math flags of float operations.
    Fastmath(Vec<&'static str>),
    /// Flags that rule out integer overflow.
    Overflow(Vec<&'static str>),
    /// The flag that states that the integer operand is not negative.
    NonNegative,
}

/// The iterator type of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Each iteration computes a separate element.
    Parallel,
    /// All iterations are combined into one element.
    Reduction,
}

/// The index at which an axis of an operand is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The index of this loop.
    Loop(usize),
    /// A constant index.
    Fixed(i64),
}

/// A tensor and its indexing map.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The tensor.
    pub value: Value,
    /// One entry per axis; each loop occurs at most once.
    pub map: Vec<Place>,
}

/// A structured operation (`linalg.generic`) with one result.
#[derive(Clone, Debug)]
pub struct Generic {
    /// The loops.
    pub loops: Vec<Loop>,
    /// The extent of each loop.
    pub extents: Vec<i64>,
    /// The operands that are read.
    pub inputs: Vec<Operand>,
    /// The `outs` operand: the initial values of the result. Its map contains every parallel loop,
    /// and constant indices only for axes of extent 1, which are 0.
    pub init: Operand,
    /// The block arguments: one element of each input, then the accumulator.
    pub arguments: Vec<Value>,
    /// The operations of one iteration.
    pub body: Vec<Scalar>,
    /// The new element of the result. In a reduction, the last operation of `body` that is not dead
    /// defines it: one combination of the accumulator with another value.
    pub yielded: Value,
}

impl Generic {
    /// Returns the operation that combines elements, if the operation is a reduction.
    #[must_use]
    pub fn combiner(&self) -> Option<&Scalar> {
        self.loops
            .contains(&Loop::Reduction)
            .then(|| self.body.iter().find(|scalar| scalar.result == self.yielded))?
    }

    /// Returns the extents of the reduction loops.
    #[must_use]
    pub fn reduced(&self) -> Vec<i64> {
        let loops = self.loops.iter().zip(&self.extents);
        loops
            .filter_map(|(kind, &extent)| (*kind == Loop::Reduction).then_some(extent))
            .collect()
    }
}
