//! Types of values.

use super::Context;
use rotini_graph::DataType;
use std::fmt;

/// The floating-point types that the lowering uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    F16,
    Bf16,
    F32,
    F64,
    E4M3Fnuz,
    E5M2Fnuz,
}

impl Float {
    /// Returns the float type in which FNUZ codes are multiplied; `None` for other types.
    pub(crate) const fn of_fnuz(dtype: DataType) -> Option<Self> {
        match dtype {
            DataType::F8E4M3Fnuz => Some(Float::E4M3Fnuz),
            DataType::F8E5M2Fnuz => Some(Float::E5M2Fnuz),
            _ => None,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Float::E4M3Fnuz | Float::E5M2Fnuz => 8,
            Float::F16 | Float::Bf16 => 16,
            Float::F32 => 32,
            Float::F64 => 64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Float::F16 => "f16",
            Float::Bf16 => "bf16",
            Float::F32 => "f32",
            Float::F64 => "f64",
            Float::E4M3Fnuz => "f8E4M3FNUZ",
            Float::E5M2Fnuz => "f8E5M2FNUZ",
        }
    }
}

/// The structure of a type. The element of a tensor, vector or memref is a type of the same
/// context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Index,
    Integer(u32),
    Float(Float),
    Tensor {
        shape: Vec<i64>,
        element: usize,
    },
    Vector {
        shape: Vec<i64>,
        element: usize,
    },
    /// A memref, in an address space if there is one.
    Memory {
        shape: Vec<i64>,
        element: usize,
        space: Option<&'static str>,
    },
}

/// A type of a context.
#[derive(Clone, Copy)]
pub(crate) struct Type<'c> {
    context: &'c Context,
    id: usize,
}

impl fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Type<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<'c> Type<'c> {
    pub(super) fn of(context: &'c Context, id: usize) -> Self {
        Type { context, id }
    }

    /// Returns the type of this kind. Equal types of a context share one number.
    fn new(context: &'c Context, kind: Kind) -> Self {
        let mut types = context.types.borrow_mut();
        let id = types.iter().position(|known| *known == kind).unwrap_or_else(|| {
            types.push(kind);
            types.len() - 1
        });
        Type { context, id }
    }

    pub(crate) fn index(context: &'c Context) -> Self {
        Self::new(context, Kind::Index)
    }

    /// Returns the type of signless integers with this number of bits.
    pub(crate) fn integer(context: &'c Context, bits: u32) -> Self {
        Self::new(context, Kind::Integer(bits))
    }

    pub(crate) fn float(context: &'c Context, float: Float) -> Self {
        Self::new(context, Kind::Float(float))
    }

    /// Returns the type of a tensor with elements of this type.
    pub(crate) fn tensor(self, shape: &[i64]) -> Self {
        assert!(shape.iter().all(|&extent| extent >= 0), "a negative extent: {shape:?}");
        let (shape, element) = (shape.to_vec(), self.id);
        Self::new(self.context, Kind::Tensor { shape, element })
    }

    /// Returns the type of a vector with elements of this type.
    pub(crate) fn vector(self, shape: &[i64]) -> Self {
        assert!(
            shape.iter().all(|&extent| extent >= 1),
            "a vector without elements: {shape:?}"
        );
        let (shape, element) = (shape.to_vec(), self.id);
        Self::new(self.context, Kind::Vector { shape, element })
    }

    /// Returns the type of a memref with elements of this type.
    pub(crate) fn memref(self, shape: &[i64], space: Option<&'static str>) -> Self {
        assert!(shape.iter().all(|&extent| extent >= 0), "a negative extent: {shape:?}");
        let (shape, element) = (shape.to_vec(), self.id);
        Self::new(self.context, Kind::Memory { shape, element, space })
    }

    /// Returns a vector's extents and element type; `None` for another type.
    pub(crate) fn if_vector(self) -> Option<(Vec<i64>, Self)> {
        match self.kind() {
            Kind::Vector { shape, element } => Some((shape, Type::of(self.context, element))),
            _ => None,
        }
    }

    /// Returns a vector's extents and element type.
    pub(crate) fn as_vector(self) -> (Vec<i64>, Self) {
        self.if_vector().unwrap_or_else(|| unreachable!("{self} is no vector"))
    }

    /// Returns the element type of a memref.
    pub(crate) fn memory_element(self) -> Self {
        match self.kind() {
            Kind::Memory { element, .. } => Type::of(self.context, element),
            _ => unreachable!("{self} is no memory"),
        }
    }

    /// Returns the number of bits of an integer or float type; `None` for another type.
    pub(crate) fn bits(self) -> Option<u32> {
        match self.kind() {
            Kind::Integer(bits) => Some(bits),
            Kind::Float(float) => Some(float.bits()),
            _ => None,
        }
    }

    /// Returns the extents; empty for a scalar.
    pub(super) fn shape(self) -> Vec<i64> {
        match self.kind() {
            Kind::Tensor { shape, .. } | Kind::Vector { shape, .. } | Kind::Memory { shape, .. } => shape,
            Kind::Index | Kind::Integer(_) | Kind::Float(_) => Vec::new(),
        }
    }

    /// Returns the type of the result of a comparison of values of this type.
    pub(crate) fn truths(self) -> Self {
        let truth = Self::integer(self.context, 1);
        match self.if_vector() {
            Some((shape, _)) => truth.vector(&shape),
            None => truth,
        }
    }

    pub(super) fn id(self) -> usize {
        self.id
    }

    pub(super) fn kind(self) -> Kind {
        self.context.types.borrow()[self.id].clone()
    }

    /// Returns true for a float type, and for a vector or tensor of floats.
    pub(crate) fn has_floats(self) -> bool {
        match self.kind() {
            Kind::Float(_) => true,
            Kind::Vector { element, .. } | Kind::Tensor { element, .. } => Type::of(self.context, element).has_floats(),
            Kind::Index | Kind::Integer(_) | Kind::Memory { .. } => false,
        }
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Integer(_))
    }

    /// Returns a tensor's extents and element type; `None` for another type.
    pub(crate) fn if_tensor(self) -> Option<(Vec<i64>, Self)> {
        match self.kind() {
            Kind::Tensor { shape, element } => Some((shape, Type::of(self.context, element))),
            _ => None,
        }
    }

    /// Returns a tensor's extents and element type.
    pub(crate) fn as_tensor(self) -> (Vec<i64>, Self) {
        self.if_tensor().unwrap_or_else(|| unreachable!("{self} is no tensor"))
    }
}

impl Type<'_> {
    fn shaped(
        self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        shape: &[i64],
        element: usize,
        space: Option<&str>,
    ) -> fmt::Result {
        write!(f, "{name}<")?;
        for extent in shape {
            write!(f, "{extent}x")?;
        }
        write!(f, "{}", Type::of(self.context, element))?;
        if let Some(space) = space {
            write!(f, ", {space}")?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Index => f.write_str("index"),
            Kind::Integer(bits) => write!(f, "i{bits}"),
            Kind::Float(float) => f.write_str(float.name()),
            Kind::Tensor { shape, element } => self.shaped(f, "tensor", &shape, element, None),
            Kind::Vector { shape, element } => self.shaped(f, "vector", &shape, element, None),
            Kind::Memory { shape, element, space } => self.shaped(f, "memref", &shape, element, space),
        }
    }
}
