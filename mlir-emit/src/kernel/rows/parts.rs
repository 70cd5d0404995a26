//! Long rows in parts: where there are fewer rows than compute units, several workgroups share a row.
//!
//! Example: a softmax of 32 rows of 65536 elements. The first kernel finds the greatest element of each of eight parts. The second one
//! combines what the parts of its row found, and finds each part's sum of exponentials. The third one combines these, and makes the result. So
//! there is a kernel for each reduction and one more, and all of them read the row.

use super::problem::{Kind, Rows};
use crate::EmitError;
use crate::kernel::epilogue::{Source, Spread, Tensor};
use crate::mlir::{Block, Context, Float, Type};
use std::collections::HashMap;

/// What one kernel does of what is done with rows.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Parts of a row, and elements of each but the last.
    pub(super) parts: i64,
    pub(super) length: i64,
    /// The reduction that this kernel finds for each part, and stores as its only result; `None` if it makes what is wanted.
    pub(super) found: Option<usize>,
    /// The operands that have what earlier kernels found, by the numbers of the reductions.
    pub(super) known: HashMap<usize, usize>,
}

impl Cut {
    /// Rows that are one kernel's work.
    fn whole(rows: &Rows<'_>) -> Self {
        Cut {
            parts: 1,
            length: rows.length(),
            found: None,
            known: HashMap::new(),
        }
    }

    /// The parts of each row that the kernel passes: one if it makes nothing of the elements.
    pub(super) fn across(&self, rows: &Rows<'_>) -> i64 {
        let has_elements = self.found.is_some() || rows.stored.iter().any(|(_, tensor)| !tensor.is_same(true));
        if has_elements { self.parts } else { 1 }
    }
}

/// The kernels of rows that are cut into parts of so many elements, in their order.
pub(super) fn kernels<'c>(
    context: &'c Context,
    rows: Rows<'c>,
    [parts, length]: [i64; 2],
) -> Result<Vec<(Rows<'c>, Cut)>, EmitError> {
    let mut cut = Cut::whole(&rows);
    if parts == 1 {
        return Ok(vec![(rows, cut)]);
    }
    (cut.parts, cut.length) = (parts, length);
    let (mut operands, mut kernels) = (rows.operands.clone(), Vec::new());
    for (number, step) in rows.steps.iter().enumerate() {
        if !matches!(step.kind, Kind::Reduction(_)) {
            continue;
        }
        let found = found(context, &rows, parts)?;
        let kernel = Rows {
            operands: operands.clone(),
            stored: vec![(Source::Step(number), found.clone())],
            ..rows.clone()
        };
        let one = Cut {
            found: Some(number),
            ..cut.clone()
        };
        kernels.push((kernel, one));
        cut.known.insert(number, operands.len());
        operands.push(found);
    }
    kernels.push((Rows { operands, ..rows }, cut));
    Ok(kernels)
}

/// A tensor for what is found of each part of each row.
fn found<'c>(context: &'c Context, rows: &Rows<'c>, parts: i64) -> Result<Tensor<'c>, EmitError> {
    let element = Type::float(context, Float::F32);
    let shape = [rows.rows.as_slice(), &[parts]].concat();
    let fresh = Block::new(&[element.tensor(&shape)?]);
    let value = fresh
        .argument(0)
        .ok_or(EmitError::Internal("a value without a place"))?
        .id();
    let mut strides = Vec::new();
    let mut stride = parts;
    for extent in rows.rows.iter().rev() {
        strides.insert(0, stride);
        stride *= extent;
    }
    Ok(Tensor {
        value,
        element,
        shape,
        spread: Spread {
            batch: Vec::new(),
            rows: strides,
            columns: vec![0; rows.columns.len()],
        },
    })
}
