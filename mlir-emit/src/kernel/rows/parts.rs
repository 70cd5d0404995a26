//! Long rows in parts: if there are two compute units or more per row, several workgroups share a
//! row.
//!
//! Example: a softmax of 32 rows of 65536 elements. The first kernel computes the greatest element
//! of each of eight parts. The second kernel combines the maxima of the parts of its row, and
//! computes each part's sum of exponentials. The third kernel combines these sums and computes the
//! result. Reductions that do not depend on each other are computed by one kernel.

use super::find::MOST;
use super::problem::{Kind, Rows};
use crate::kernel::epilogue::{Source, Spread, Tensor};
use crate::mlir::{Context, Float, Type};
use std::collections::{HashMap, HashSet};

/// The part of a row's work that one kernel does.
#[derive(Clone, Debug, Default)]
pub(super) struct Cut {
    /// Parts per row, and elements of each part but the last.
    pub(super) parts: i64,
    pub(super) length: i64,
    /// Whether the kernel computes reductions of each part, and stores nothing else.
    pub(super) finds: bool,
    /// The operands with the results of earlier kernels, by the indices of the reductions.
    pub(super) known: HashMap<usize, usize>,
    /// The steps that the kernel does not compute: they need reductions that no earlier kernel has
    /// computed.
    pub(super) left: HashSet<usize>,
}

impl Cut {
    /// Returns the number of parts of each row that the kernel reads: one if it computes nothing
    /// from the elements.
    pub(super) fn across(&self, rows: &Rows<'_>) -> i64 {
        if self.finds || rows.makes_elements() {
            self.parts
        } else {
            1
        }
    }
}

/// Returns the kernels for rows that are split into `parts` parts of `length` elements, in the
/// order of execution.
pub(super) fn kernels<'c>(context: &'c Context, rows: Rows<'c>, [parts, length]: [i64; 2]) -> Vec<(Rows<'c>, Cut)> {
    let is_reduction = |number: &usize| {
        let step = rows.steps.get(*number);
        step.is_some_and(|step| matches!(step.kind, Kind::Reduction(_)))
    };
    let reductions: Vec<usize> = (0..rows.steps.len()).filter(is_reduction).collect();
    // Each reduction's partial results are one more operand.
    let is_cut = parts > 1 && rows.tensors().count() + reductions.len() <= MOST;
    let mut cut = Cut {
        parts: if is_cut { parts } else { 1 },
        length: if is_cut { length } else { rows.length() },
        ..Cut::default()
    };
    if !is_cut {
        return vec![(rows, cut)];
    }
    // The reductions that each step depends on.
    let mut needs: Vec<HashSet<usize>> = Vec::new();
    for step in &rows.steps {
        let mut own = HashSet::new();
        for source in &step.sources {
            if let Source::Step(number) = source {
                own.extend(needs.get(*number).into_iter().flatten());
                own.extend(Some(*number).filter(is_reduction));
            }
        }
        needs.push(own);
    }
    let (mut operands, mut kernels) = (rows.operands.clone(), Vec::new());
    while cut.known.len() < reductions.len() {
        let is_ready = |needs: &HashSet<usize>| needs.iter().all(|number| cut.known.contains_key(number));
        let left = needs.iter().enumerate().filter(|(_, needs)| !is_ready(needs));
        let left: HashSet<usize> = left.map(|(number, _)| number).collect();
        let is_found = |number: &&usize| !cut.known.contains_key(number) && !left.contains(number);
        let mut stored = Vec::new();
        for &number in reductions.iter().filter(is_found) {
            stored.push((Source::Step(number), found(context, &rows, parts)));
        }
        let kernel = Rows {
            operands: operands.clone(),
            stored: stored.clone(),
            ..rows.clone()
        };
        let one = Cut {
            finds: true,
            left,
            ..cut.clone()
        };
        kernels.push((kernel, one));
        for (source, tensor) in stored {
            let Source::Step(number) = source else { continue };
            cut.known.insert(number, operands.len());
            operands.push(tensor);
        }
    }
    kernels.push((Rows { operands, ..rows }, cut));
    kernels
}

/// Returns a tensor for one result per part and row.
fn found<'c>(context: &'c Context, rows: &Rows<'c>, parts: i64) -> Tensor<'c> {
    let element = Type::float(context, Float::F32);
    let shape = [rows.rows.as_slice(), &[parts]].concat();
    let value = context.fresh(element.tensor(&shape)).id();
    let mut strides = Vec::new();
    let mut stride = parts;
    for extent in rows.rows.iter().rev() {
        strides.insert(0, stride);
        stride *= extent;
    }
    Tensor {
        value,
        element,
        shape,
        spread: Spread {
            batch: Vec::new(),
            rows: strides,
            columns: vec![0; rows.columns.len()],
        },
    }
}
