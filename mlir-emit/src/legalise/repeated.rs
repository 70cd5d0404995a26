//! Inspects the operations that the compiler fuses into a reduction: the chain of elementwise
//! operations that computes an operand.
//!
//! Example: `x · w` summed over rows, with one `w` per row. The compiler makes one loop nest of
//! product and sum and takes it for a contraction in which `w` lacks the summed axis, which is
//! invalid ([`Quirk::RepeatedFactors`](crate::quirks::Quirk)).

use crate::mlir::{Name, Value as Ssa};
use crate::value::{Data, Value};

/// Returns true if an operand of a reduction over `reduced` axes of `dims`, or something that it is
/// computed from, is repeated along one of them.
pub(crate) fn is_repeated(value: &Value<'_>, dims: &[i64], reduced: &[usize]) -> bool {
    let Data::Tensor { ssa, order } = &value.data else {
        return false;
    };
    // An operand's axes are the last axes of the reduction.
    let lacking = dims.len().saturating_sub(value.dims.len());
    let is_wide = |axis: &&usize| dims.get(**axis).is_some_and(|&extent| extent > 1);
    let own = |axis: &usize| order.iter().position(|&own| own + lacking == *axis);
    let positions: Option<Vec<usize>> = reduced.iter().filter(is_wide).map(own).collect();
    positions.is_none_or(|positions| is_computed_from_repeated(*ssa, &positions))
}

/// Returns true if something in the chain that computes a tensor is repeated along one of the
/// `reduced` axes of the tensor.
fn is_computed_from_repeated(tensor: Ssa<'_>, reduced: &[usize]) -> bool {
    // Each tensor with its reduced axes; `None` if a reshape in between hides which axes those are.
    let mut next = vec![(tensor, Some(reduced.to_vec()))];
    let mut seen = Vec::new();
    while let Some((tensor, reduced)) = next.pop() {
        let visit = (tensor, reduced.clone());
        if seen.contains(&visit) {
            continue;
        }
        seen.push(visit);
        let Some(owner) = tensor.owner() else {
            continue;
        };
        let operand = |position: usize| tensor.context().value(owner.operands()[position]);
        match owner.name() {
            Name::LinalgGeneric => {
                let structure = owner.structure();
                let structure = structure.expect("a linalg.generic without loops");
                // A reduction has a separate loop nest.
                if structure.reduces() {
                    continue;
                }
                let (Some(written), Some(read)) = (structure.written.selected(), structure.selected()) else {
                    return true;
                };
                let loops: Option<Vec<usize>> =
                    reduced.and_then(|reduced| reduced.iter().map(|&axis| written.get(axis).copied()).collect());
                for (position, map) in read.iter().enumerate() {
                    let (has, all) = match &loops {
                        Some(loops) => (loops.iter().filter(|one| map.contains(one)).count(), loops.len()),
                        None => (map.len(), written.len()),
                    };
                    if has < all {
                        return true;
                    }
                    let place = |one: &usize| map.iter().position(|read| read == one);
                    let axes = loops.as_ref().and_then(|loops| loops.iter().map(place).collect());
                    next.push((operand(position), axes));
                }
            }
            Name::TensorCollapseShape | Name::TensorExpandShape => {
                next.push((operand(0), None));
            }
            _ => {}
        }
    }
    false
}
