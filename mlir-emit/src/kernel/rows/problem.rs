//! The description of a fused row reduction.

use crate::kernel::code::Ssa;
use crate::kernel::epilogue::{Source, Tensor, names};
use crate::kernel::merged::fold;
use crate::mlir::{Attribute, Operation};
use rotini_schedule::rows::Problem;
use std::collections::HashMap;

/// The kind of value that a step of a kernel computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One value per element, from elements at the same position and from values with one element
    /// per row.
    Element,
    /// One value per row, from other values with one element per row.
    Row,
    /// One value per row, reduced over its elements from this constant.
    Reduction(Attribute),
}

/// One structured operation of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: Kind,
    /// The sources of the body's arguments.
    pub(super) sources: Vec<Source>,
    /// The ids of the body's arguments.
    pub(super) arguments: Vec<usize>,
    pub(super) body: Vec<Operation>,
}

impl Step {
    /// Returns the values of the body's arguments, given that of each source.
    pub(super) fn known<'c>(&self, mut find: impl FnMut(Source) -> Ssa<'c>) -> HashMap<usize, Ssa<'c>> {
        let read = self.arguments.iter().zip(&self.sources);
        let read = read.filter(|(_, source)| **source != Source::Unused);
        read.map(|(&argument, &source)| (argument, find(source))).collect()
    }
}

/// A fused row reduction.
#[derive(Clone, Debug)]
pub(crate) struct Rows<'c> {
    /// Extents of the loops over rows.
    pub(super) rows: Vec<i64>,
    /// Extents of the loops along a row.
    pub(super) columns: Vec<i64>,
    pub(crate) operands: Vec<Tensor<'c>>,
    pub(super) steps: Vec<Step>,
    /// The values that are stored, and the tensors to which they are stored.
    pub(crate) stored: Vec<(Source, Tensor<'c>)>,
}

impl<'c> Rows<'c> {
    /// Returns the tensors that are read, then those that are stored.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor<'c>> {
        self.operands.iter().chain(self.stored.iter().map(|(_, tensor)| tensor))
    }

    /// Returns the names of the operations of all steps.
    pub(super) fn names(&self) -> Vec<String> {
        self.steps.iter().flat_map(|step| names(&step.body)).collect()
    }

    /// Returns the number of elements per row.
    pub(super) fn length(&self) -> i64 {
        self.columns.iter().product()
    }

    /// Returns whether any stored tensor has more than one element per row.
    pub(super) fn makes_elements(&self) -> bool {
        self.stored.iter().any(|(_, tensor)| !tensor.is_same(true))
    }

    pub(super) fn problem(&self) -> Problem {
        let count = |extents: &[i64]| extents.iter().product::<i64>().unsigned_abs();
        let is_of_rows =
            |tensor: &Tensor<'_>| self.rows.is_empty() || tensor.spread.rows.iter().any(|&stride| stride > 0);
        let has_all = |tensor: &&Tensor<'_>| !tensor.is_same(true) && is_of_rows(tensor);
        Problem {
            rows: count(&self.rows),
            length: count(&self.columns),
            read: self.operands.iter().filter(has_all).count() as u64,
        }
    }

    /// Merges neighbouring loops that have a common stride in all tensors.
    pub(super) fn merge(&mut self) {
        let stored = self.stored.iter_mut().map(|(_, tensor)| tensor);
        let tensors = self.operands.iter_mut().chain(stored);
        let (rows, columns): (Vec<_>, Vec<_>) = tensors
            .map(|tensor| (&mut tensor.spread.rows, &mut tensor.spread.columns))
            .unzip();
        fold(&mut self.rows, [], rows);
        fold(&mut self.columns, [], columns);
    }
}
