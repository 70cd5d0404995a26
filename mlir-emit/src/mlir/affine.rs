//! Index maps: the element of a tensor that each iteration of a structured operation accesses.

use std::fmt;
use std::ops::{Add, Mul};

/// An index as an affine expression of loop indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Affine {
    /// The index of the loop with this number.
    Loop(usize),
    Constant(i64),
    Product(Box<Affine>, i64),
    Sum(Box<Affine>, Box<Affine>),
}

impl Add for Affine {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Affine::Sum(Box::new(self), Box::new(other))
    }
}

impl Mul<i64> for Affine {
    type Output = Self;

    fn mul(self, factor: i64) -> Self {
        Affine::Product(Box::new(self), factor)
    }
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Affine::Loop(number) => write!(f, "d{number}"),
            Affine::Constant(value) => write!(f, "{value}"),
            Affine::Product(factor, times) => write!(f, "{factor} * {times}"),
            Affine::Sum(first, second) => write!(f, "{first} + {second}"),
        }
    }
}

/// The index along each axis of a tensor, as expressions of `loops` loop indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexMap {
    loops: usize,
    results: Vec<Affine>,
}

impl IndexMap {
    /// Returns the map with these expressions of `loops` loops.
    pub(crate) fn new(loops: usize, results: Vec<Affine>) -> Self {
        IndexMap { loops, results }
    }

    /// Returns the map whose indices are the loops with these numbers, out of `loops`.
    pub(crate) fn select(loops: usize, numbers: impl IntoIterator<Item = usize>) -> Self {
        Self::new(loops, numbers.into_iter().map(Affine::Loop).collect())
    }

    /// Returns the map whose indices are all loops, in order.
    pub(crate) fn identity(loops: usize) -> Self {
        Self::select(loops, 0..loops)
    }

    /// Returns true if the indices are all loops, in order.
    pub(crate) fn is_identity(&self) -> bool {
        *self == Self::identity(self.loops)
    }

    /// Returns the number of the loop that each index is; `None` if an index is another expression.
    pub(crate) fn selected(&self) -> Option<Vec<usize>> {
        let number = |index: &Affine| match *index {
            Affine::Loop(number) => Some(number),
            _ => None,
        };
        self.results.iter().map(number).collect()
    }
}

impl fmt::Display for IndexMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loops: Vec<String> = (0..self.loops).map(|number| format!("d{number}")).collect();
        let results: Vec<String> = self.results.iter().map(ToString::to_string).collect();
        write!(f, "affine_map<({}) -> ({})>", loops.join(", "), results.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_written_as_mlir_has_them() {
        let index = Affine::Loop(0) * 2 + Affine::Loop(2) * 3;
        let map = IndexMap::new(3, vec![index, Affine::Loop(1), Affine::Constant(4)]);
        assert_eq!(map.to_string(), "affine_map<(d0, d1, d2) -> (d0 * 2 + d2 * 3, d1, 4)>");
        assert_eq!(map.selected(), None);
        assert_eq!(IndexMap::select(2, []).to_string(), "affine_map<(d0, d1) -> ()>");
    }

    #[test]
    fn an_identity_has_all_loops_in_their_order() {
        assert!(IndexMap::identity(2).is_identity());
        assert!(!IndexMap::select(2, [1, 0]).is_identity());
        assert!(!IndexMap::select(2, [0]).is_identity());
        assert_eq!(IndexMap::select(3, [2, 0]).selected(), Some(vec![2, 0]));
    }
}
