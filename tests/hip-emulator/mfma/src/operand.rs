//! Applies modifiers to the lanes of A and B before the matrix core sees them.

use crate::form::{Element, Form};
use crate::{Control, Register};

/// Returns A with block `abid` of each group of 2^`cbsz` blocks repeated for the whole group.
pub(crate) fn broadcast<'a>(
    form: &Form,
    a: &'a [Register],
    control: Control,
    changed: &'a mut [Register; 2],
) -> &'a [Register] {
    if control.cbsz == 0 || form.sparse {
        return a;
    }
    for (to, from) in changed.iter_mut().zip(a) {
        for (lane, value) in to.iter_mut().enumerate() {
            // The lanes run over the rows of a block, then over the blocks; forms with several
            // blocks use no further lanes.
            let (row, block) = (lane % form.m, lane / form.m);
            let source = (block >> control.cbsz << control.cbsz) + usize::from(control.abid);
            *value = from[row + form.m * source];
        }
    }
    &changed[..a.len()]
}

/// Returns B with its lanes permuted by `blgp`.
pub(crate) fn permute<'a>(
    form: &Form,
    b: &'a [Register],
    control: Control,
    changed: &'a mut [Register; 2],
) -> &'a [Register] {
    // In f64 forms the field means negation.
    if control.blgp == 0 || form.a == Element::F64 {
        return b;
    }
    for (to, from) in changed.iter_mut().zip(b) {
        for (lane, value) in to.iter_mut().enumerate() {
            let source = match control.blgp {
                1 => lane % 32,
                2 => lane % 32 + 32,
                3 => (lane + 16) % 64,
                pattern => lane % 16 + 16 * usize::from(pattern - 4),
            };
            *value = from[source];
        }
    }
    &changed[..b.len()]
}
