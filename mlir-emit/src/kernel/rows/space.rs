//! The loops of a fused row reduction, and which of them go along a row.

use crate::mlir::{Context, Loop, Operation};

/// Minimum number of elements of an elementwise operation that becomes a kernel of rotini.
const MANY: i64 = 1 << 18;

/// The loops of a kernel with more than one iteration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) extents: Vec<i64>,
    pub(super) is_reduced: Vec<bool>,
}

impl Space {
    /// Returns the values, one for each loop, of the loops along a row or over rows.
    pub(super) fn part<T>(&self, values: impl IntoIterator<Item = T>, is_reduced: bool) -> Vec<T> {
        let values = values.into_iter().zip(&self.is_reduced);
        let part = values.filter(|(_, reduced)| **reduced == is_reduced);
        part.map(|(value, _)| value).collect()
    }

    /// Returns the extents of the loops over rows.
    pub(super) fn rows(&self) -> Vec<i64> {
        self.part(self.extents.iter().copied(), false)
    }

    /// Returns the indices of the loops over rows, or of all loops.
    pub(super) fn loops(&self, over_rows: bool) -> Vec<usize> {
        let all = 0..self.extents.len();
        if over_rows {
            self.part(all, false)
        } else {
            all.collect()
        }
    }
}

/// Returns the loops of a marked reduction with more than one iteration.
pub(super) fn reduced_space(context: &Context, operation: &Operation) -> Option<Space> {
    let (shape, _) = context.value(*operation.operands().first()?).r#type().if_tensor()?;
    let kinds = operation.structure()?.loops;
    let loops = wide(&shape);
    Some(Space {
        extents: shape.iter().copied().filter(|&extent| extent > 1).collect(),
        is_reduced: loops
            .iter()
            .map(|&position| kinds[position] == Loop::Reduction)
            .collect(),
    })
}

/// Returns the loops of a large elementwise operation that has an operand which lacks some of the
/// loops. If this operand has the last loop, a row consists of the loops after the last one that
/// the operand lacks; otherwise, of the loops after the last one that it has.
pub(super) fn element_space(context: &Context, operation: &Operation) -> Option<Space> {
    let structure = operation.structure()?;
    if structure.reduces() {
        return None;
    }
    let (shape, _) = context.value(*operation.results().first()?).r#type().if_tensor()?;
    let elements = shape.iter().try_fold(1_i64, |all, &extent| all.checked_mul(extent));
    if elements.is_none_or(|elements| elements < MANY) {
        return None;
    }
    let loops = wide(&shape);
    let inputs = structure.selected()?;
    let has = |map: &Vec<usize>, id: &usize| -> Option<Vec<bool>> {
        let (shape, _) = context.value(*id).r#type().if_tensor()?;
        let along = |number: &usize| {
            let mut axes = map.iter().zip(&shape);
            axes.any(|(position, &extent)| position == number && extent > 1)
        };
        Some(loops.iter().map(along).collect())
    };
    let partial = inputs.iter().zip(operation.operands()).find_map(|(map, id)| {
        let has = has(map, id)?;
        (has.contains(&true) && has.contains(&false)).then_some(has)
    })?;
    let last = *partial.last()?;
    let first_of_row = partial.iter().rposition(|&has| has != last)? + 1;
    Some(Space {
        extents: shape.iter().copied().filter(|&extent| extent > 1).collect(),
        is_reduced: (0..loops.len()).map(|number| number >= first_of_row).collect(),
    })
}

/// Returns the axes with more than one element.
pub(super) fn wide(shape: &[i64]) -> Vec<usize> {
    let axes = shape.iter().enumerate();
    axes.filter(|(_, extent)| **extent > 1).map(|(axis, _)| axis).collect()
}
