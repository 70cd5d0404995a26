//! Multiplies matrices with dot products, one element of D at a time. Also runs SMFMAC of every
//! type.

use crate::dot::{self, Value};
use crate::form::{Element, Form};
use crate::layout::Place;
use crate::{Control, Register};

/// Maximum number of elements of an operand: 2 blocks of 32 × 4, 4 of 16 × 4, 32 × 16; B of SMFMAC
/// 64 × 16.
const ELEMENTS: usize = 1024;

/// Returns the bits of an element; the register's bits above it are not masked.
fn bits(registers: &[Register], place: Place) -> u32 {
    registers[place.register][place.lane] >> place.bit
}

/// Decodes the rows of A, one block after the other, each of `products` elements.
fn rows<T: Copy>(form: &Form, a: &[Register], decode: impl Fn(u32) -> T, values: &mut [T; ELEMENTS]) {
    let mut values = values.iter_mut();
    for block in 0..form.blocks {
        for row in 0..form.m {
            for (k, value) in (0..form.products()).zip(&mut values) {
                *value = decode(bits(a, form.a_place(row, k, block)));
            }
        }
    }
}

/// Decodes the columns of B, as [`rows`] does the rows of A.
fn columns<T: Copy>(form: &Form, b: &[Register], decode: impl Fn(u32) -> T, values: &mut [T; ELEMENTS]) {
    let mut values = values.iter_mut();
    for block in 0..form.blocks {
        for column in 0..form.n {
            for (k, value) in (0..form.k).zip(&mut values) {
                *value = decode(bits(b, form.b_place(k, column, block)));
            }
        }
    }
}

/// Accumulates the dot products of all rows and columns onto D.
pub(crate) fn dense(form: &Form, a: &[Register], b: &[Register], d: &mut [Register]) {
    let (mut a_values, mut b_values) = ([Value::ZERO; ELEMENTS], [Value::ZERO; ELEMENTS]);
    rows(form, a, |bits| Value::decode(bits, form.a), &mut a_values);
    columns(form, b, |bits| Value::decode(bits, form.b), &mut b_values);
    for block in 0..form.blocks {
        for row in 0..form.m {
            let a = &a_values[(block * form.m + row) * form.k..][..form.k];
            for column in 0..form.n {
                let b = &b_values[(block * form.n + column) * form.k..][..form.k];
                let place = form.d_place(row, column, block);
                let element = &mut d[place.register][place.lane];
                *element = dot::dot(a, b, (form.a, form.b), *element);
            }
        }
    }
}

/// Returns the position along k of each stored element of row `row` of A.
fn positions(form: &Form, index: &Register, row: usize, control: Control) -> [usize; 32] {
    // Two bits per stored element. A lane has several sets of them; `abid` selects one if `cbsz` is
    // 0.
    let per_lane = form.a_per_lane();
    let set = if control.cbsz == 0 {
        usize::from(control.abid)
    } else {
        0
    };
    let mut positions = [0; 32];
    for (element, position) in positions.iter_mut().enumerate().take(form.products()) {
        let indices = index[form.a_place(row, element, 0).lane] >> (set * per_lane * 2);
        let within = (indices >> (element % per_lane * 2) & 3) as usize;
        *position = element / 2 * 4 + within;
    }
    positions
}

/// Runs SMFMAC as the dense form over the stored elements of A and the corresponding elements of B.
pub(crate) fn sparse(
    form: &Form,
    a: &[Register],
    b: &[Register],
    index: &Register,
    d: &mut [Register],
    control: Control,
) {
    if form.a == Element::I8 {
        let decode = |bits: u32| i32::from(bits as u8 as i8);
        sparse_with(form, a, b, index, d, control, (0, decode, decode), |a, b, c| {
            a.iter().zip(b).fold(c, |sum, (a, b)| sum.wrapping_add_signed(a * b))
        });
    } else {
        let decode = (
            Value::ZERO,
            |bits| Value::decode(bits, form.a),
            |bits| Value::decode(bits, form.b),
        );
        sparse_with(form, a, b, index, d, control, decode, |a, b, c| {
            dot::dot(a, b, (form.a, form.b), c)
        });
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "the operands of the instruction and what is done with them"
)]
fn sparse_with<T: Copy>(
    form: &Form,
    a: &[Register],
    b: &[Register],
    index: &Register,
    d: &mut [Register],
    control: Control,
    (zero, decode_a, decode_b): (T, impl Fn(u32) -> T, impl Fn(u32) -> T),
    dot: impl Fn(&[T], &[T], u32) -> u32,
) {
    let (mut a_values, mut b_values) = ([zero; ELEMENTS], [zero; ELEMENTS]);
    rows(form, a, decode_a, &mut a_values);
    columns(form, b, decode_b, &mut b_values);
    let stored = form.products();
    for row in 0..form.m {
        let positions = positions(form, index, row, control);
        let a = &a_values[row * stored..][..stored];
        for column in 0..form.n {
            let full = &b_values[column * form.k..][..form.k];
            let mut b = [zero; 32];
            for (value, &position) in b.iter_mut().zip(&positions).take(stored) {
                *value = full[position];
            }
            let place = form.d_place(row, column, 0);
            let element = &mut d[place.register][place.lane];
            *element = dot(a, &b[..stored], *element);
        }
    }
}
