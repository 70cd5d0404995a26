//! Mutation testing of the opcode table: every entry's semantics are changed in systematic ways,
//! and the vectors must notice each change.
//!
//! A mutant that a larger, differently seeded sample cannot distinguish from the original either is
//! equivalent (operands of a sum swapped, a result that is never −0) and is not counted.

use std::cell::Cell;

use super::{
    inputs::Generator,
    machine::{decode, execute},
    vectors::{self, case, check, entries, line},
};
use crate::{
    lanes::{In, Kernel, Mode, Out, Row},
    table::{MaskIn, Obeys, Ty, VectorOp},
};

thread_local! {
    /// The function that the current mutant wraps, and the operand that it affects
    static INNER: Cell<(Kernel, usize)> = const { Cell::new((nothing, 0)) };
    /// Types of the current entry
    static TYPES: Cell<(Option<Ty>, &'static [Ty])> = const { Cell::new((None, &[])) };
}

fn nothing(_: &In<'_>, _: &mut Out) {}

fn inner(input: &In<'_>, out: &mut Out) {
    INNER.get().0(input, out);
}

/// Returns the row of an operand's sign, the sign bit, and the exponent's mask in that row.
fn shape(ty: Ty) -> (usize, u32, u32) {
    match ty {
        Ty::F16 | Ty::PkF16 => (0, 1 << 15, 0x7c00),
        Ty::B16 | Ty::PkB16 => (0, 1 << 15, 0),
        Ty::F32 | Ty::PkF32 | Ty::Mix => (0, 1 << 31, 0x7f80_0000),
        Ty::B32 => (0, 1 << 31, 0),
        Ty::F64 => (1, 1 << 31, 0x7ff0_0000),
        Ty::B64 => (1, 1 << 31, 0),
    }
}

/// Runs the original, then changes the result's rows.
fn after(input: &In<'_>, out: &mut Out, change: impl Fn(&mut [u32; 2], (usize, u32, u32))) {
    inner(input, out);
    let Some(ty) = TYPES.get().0 else { return };
    for l in 0..64 {
        let mut value = [out.r[0][l], out.r[1][l]];
        change(&mut value, shape(ty));
        (out.r[0][l], out.r[1][l]) = (value[0], value[1]);
    }
}

/// Changes the current operand, then runs the original.
fn before(input: &In<'_>, out: &mut Out, change: impl Fn(&mut [Row], Ty)) {
    let (kernel, operand) = INNER.get();
    let mut rows = input.r.map(|row| *row);
    let types = TYPES.get().1;
    let first: usize = types[..operand].iter().map(|ty| ty.rows()).sum();
    let ty = types[operand];
    change(&mut rows[first..first + ty.rows()], ty);
    let changed = In {
        r: rows.each_ref(),
        ..*input
    };
    kernel(&changed, out);
}

/// Runs the original with two operands exchanged.
fn exchanged(input: &In<'_>, out: &mut Out, a: usize, b: usize) {
    let types = TYPES.get().1;
    let first = |n: usize| types[..n].iter().map(|ty| ty.rows()).sum::<usize>();
    let mut rows = input.r;
    for row in 0..types[a].rows() {
        rows.swap(first(a) + row, first(b) + row);
    }
    inner(&In { r: rows, ..*input }, out);
}

fn signs(rows: &mut [Row], ty: Ty, change: impl Fn(&mut u32, u32)) {
    let (row, sign, _) = shape(ty);
    let row = row.min(rows.len() - 1);
    rows[row].iter_mut().for_each(|value| change(value, sign));
}

/// The target of a mutation: a mutant is made if the entry has it.
#[derive(Clone, Copy)]
enum To {
    Always,
    Result,
    /// A result of a float type
    Float,
    Flag,
    MaskIn,
}

impl To {
    fn applies(self, op: &VectorOp) -> bool {
        match self {
            Self::Always => true,
            Self::Result => op.target.is_some(),
            Self::Float => op.target.is_some_and(Ty::float),
            Self::Flag => op.mask_out,
            Self::MaskIn => op.mask_in != MaskIn::No,
        }
    }
}

/// Mutations of results.
const RESULTS: &[(&str, To, Kernel)] = &[
    ("lowest bit wrong", To::Result, |i, o| after(i, o, |v, _| v[0] ^= 1)),
    ("one unit more", To::Result, |i, o| {
        after(i, o, |v, (row, _, _)| {
            let value = (u64::from(v[0]) | u64::from(v[1]) << 32).wrapping_add(1);
            v[0] = value as u32;
            if row == 1 {
                v[1] = (value >> 32) as u32;
            }
        });
    }),
    ("odd results cut to even", To::Result, |i, o| {
        after(i, o, |v, _| v[0] &= !1)
    }),
    ("sign wrong", To::Result, |i, o| {
        after(i, o, |v, (row, sign, _)| v[row] ^= sign)
    }),
    ("sign lost", To::Result, |i, o| {
        after(i, o, |v, (row, sign, _)| v[row] &= !sign)
    }),
    ("result 0", To::Result, |i, o| {
        after(i, o, |v, (row, _, _)| {
            v[0] = 0;
            v[row] = 0;
        });
    }),
    ("-0 is 0", To::Float, |i, o| {
        after(i, o, |v, (row, sign, exponent)| {
            let zero = if row == 1 { v[0] == 0 } else { true };
            if exponent != 0 && zero && v[row] & (sign | (sign - 1)) == sign {
                v[row] &= !sign;
            }
        });
    }),
    ("denormals flushed", To::Float, |i, o| {
        after(i, o, |v, (row, sign, exponent)| {
            if exponent != 0 && v[row] & exponent == 0 {
                v[row] &= !(sign - 1) | !(exponent | (sign - 1) | sign);
                if row == 1 {
                    v[0] = 0;
                }
            }
        });
    }),
    ("infinity is the largest number", To::Float, |i, o| {
        after(i, o, |v, (row, sign, exponent)| {
            let whole = if row == 1 { v[0] == 0 } else { true };
            if exponent != 0 && whole && v[row] & (sign - 1) == exponent {
                v[row] -= 1;
                if row == 1 {
                    v[0] = u32::MAX;
                }
            }
        });
    }),
    ("NaN is infinity", To::Float, |i, o| {
        after(i, o, |v, (row, sign, exponent)| {
            if exponent != 0 && v[row] & (sign - 1) > exponent {
                v[row] = v[row] & !(sign - 1) | exponent;
            }
        });
    }),
    ("flag inverted", To::Flag, |i, o| {
        inner(i, o);
        o.mask = !o.mask;
    }),
    ("flag never", To::Flag, |i, o| {
        inner(i, o);
        o.mask = 0;
    }),
    ("flag always", To::Flag, |i, o| {
        inner(i, o);
        o.mask = u64::MAX;
    }),
    ("mask in ignored", To::MaskIn, |i, o| inner(&In { mask: 0, ..*i }, o)),
    ("mask in inverted", To::MaskIn, |i, o| {
        inner(&In { mask: !i.mask, ..*i }, o)
    }),
    ("mask in all set", To::MaskIn, |i, o| {
        inner(&In { mask: u64::MAX, ..*i }, o)
    }),
    ("lanes reversed", To::Always, |i, o| {
        inner(i, o);
        o.r.iter_mut().for_each(|row| row.reverse());
        o.mask = o.mask.reverse_bits();
    }),
    ("lane 63 not computed", To::Always, |i, o| {
        inner(i, o);
        o.r[0][63] = 0x5a5a_a5a5;
        o.mask ^= 1 << 63;
    }),
];

/// Mutations of one operand.
const OPERANDS: &[(&str, Kernel)] = &[
    ("operand's sign ignored", |i, o| {
        before(i, o, |r, ty| signs(r, ty, |v, sign| *v &= !sign))
    }),
    ("operand negated", |i, o| {
        before(i, o, |r, ty| signs(r, ty, |v, sign| *v ^= sign))
    }),
    ("operand 0", |i, o| before(i, o, |r, _| r.fill([0; 64]))),
    ("operand's lowest bit ignored", |i, o| {
        before(i, o, |r, _| r[0].iter_mut().for_each(|v| *v &= !1))
    }),
    ("operand one less", |i, o| {
        before(i, o, |r, _| r[0].iter_mut().for_each(|v| *v = v.wrapping_sub(1)));
    }),
    ("operand's denormals flushed", |i, o| {
        before(i, o, |r, ty| {
            let (row, sign, exponent) = shape(ty);
            let row = row.min(r.len() - 1);
            let denormal = r[row].map(|v| exponent != 0 && v & exponent == 0);
            for (number, row_of) in r.iter_mut().enumerate() {
                let kept = if number == row { sign } else { 0 };
                for (value, _) in row_of.iter_mut().zip(denormal).filter(|(_, denormal)| *denormal) {
                    *value &= kept;
                }
            }
        });
    }),
    ("operand's second byte ignored", |i, o| {
        before(i, o, |r, _| r[0].iter_mut().for_each(|v| *v &= !0xff00))
    }),
    ("operand's upper half ignored", |i, o| {
        before(i, o, |r, _| {
            let last = r.len() - 1;
            r[last].iter_mut().for_each(|v| *v &= 0xffff);
        });
    }),
];

/// Mutations that exchange operands.
const EXCHANGES: [(&str, [usize; 2], Kernel); 3] = [
    ("first and second exchanged", [0, 1], |i, o| exchanged(i, o, 0, 1)),
    ("second and third exchanged", [1, 2], |i, o| exchanged(i, o, 1, 2)),
    ("first and third exchanged", [0, 2], |i, o| exchanged(i, o, 0, 2)),
];

/// A mutated entry: a description, the entry, and the data of its wrapped function.
struct Mutant {
    what: String,
    op: VectorOp,
    inner: (Kernel, usize),
}

/// Returns the mutants of an entry.
fn mutants(name: &str, op: VectorOp, all: &[(&'static str, VectorOp)]) -> Vec<Mutant> {
    let mut list = Vec::new();
    // Mutants of the function, and of the function under clamp
    for clamped in [false, true] {
        let Some(original) = (if clamped { op.clamped } else { Some(op.kernel) }) else {
            continue;
        };
        let mut add = |what: String, kernel: Kernel, operand: usize| {
            let mutated = if clamped {
                VectorOp {
                    clamped: Some(kernel),
                    ..op
                }
            } else {
                VectorOp { kernel, ..op }
            };
            let what = if clamped { format!("{what}, under clamp") } else { what };
            list.push(Mutant {
                what,
                op: mutated,
                inner: (original, operand),
            });
        };
        for &(what, to, kernel) in RESULTS {
            if to.applies(&op) {
                add(what.to_owned(), kernel, 0);
            }
        }
        for operand in 0..op.sources.len() {
            for &(what, kernel) in OPERANDS {
                if what.contains("denormals") && !op.sources[operand].float() {
                    continue;
                }
                add(format!("{what} ({operand})"), kernel, operand);
            }
        }
        for (what, [a, b], kernel) in EXCHANGES {
            if b < op.sources.len() && op.sources[a].rows() == op.sources[b].rows() {
                add(what.to_owned(), kernel, 0);
            }
        }
        for &(other, replacement) in all {
            let same = replacement.target == op.target
                && replacement.sources == op.sources
                && replacement.mask_in == op.mask_in
                && replacement.mask_out == op.mask_out
                && other != name;
            if same {
                let kernel = if clamped {
                    replacement.clamped
                } else {
                    Some(replacement.kernel)
                };
                if let Some(kernel) = kernel {
                    add(format!("{other} in its place"), kernel, 0);
                }
            }
        }
    }
    // Mutants of the entry's other fields
    let mut field = |what: &str, mutated: VectorOp| {
        list.push(Mutant {
            what: what.to_owned(),
            op: mutated,
            inner: (op.kernel, 0),
        });
    };
    if matches!(op.target, Some(Ty::F16 | Ty::B16)) {
        field(
            "other half kept or not",
            VectorOp {
                keeps_high: !op.keeps_high,
                ..op
            },
        );
    }
    if let Some(clamped) = op.clamped {
        field(
            "clamp ignored",
            VectorOp {
                clamped: Some(op.kernel),
                ..op
            },
        );
        field("always clamped", VectorOp { kernel: clamped, ..op });
    }
    if op.mask_in == MaskIn::Operand {
        field(
            "mask from vcc",
            VectorOp {
                mask_in: MaskIn::Vcc,
                ..op
            },
        );
    }
    if op.mask_out {
        field("no flag", VectorOp { mask_out: false, ..op });
    }
    if op.target.is_some() {
        field("no result", VectorOp { target: None, ..op });
    }
    if !matches!(op.obeys, Obeys::Nothing) {
        field(
            "MODE ignored",
            VectorOp {
                obeys: Obeys::Nothing,
                ..op
            },
        );
    }
    if let Obeys::Rounding(_) = op.obeys {
        let only = Obeys::Denormals;
        field("rounding of MODE ignored", VectorOp { obeys: only, ..op });
        for &(other, replacement) in all {
            let same = replacement.target == op.target && replacement.sources == op.sources && other != name;
            if let (true, Obeys::Rounding(_)) = (same, replacement.obeys) {
                let obeys = replacement.obeys;
                field(&format!("{other}'s rounding in its place"), VectorOp { obeys, ..op });
            }
        }
    }
    if op.mask_out {
        let writes_exec = !op.writes_exec;
        field("writes EXEC", VectorOp { writes_exec, ..op });
    }
    list
}

/// Returns true if a larger sample distinguishes a mutant from the original; all NaNs are equal.
fn differs(name: &str, original: VectorOp, mutant: VectorOp) -> bool {
    let seed = name
        .bytes()
        .fold(0x5eed, |seed: u64, byte| seed.wrapping_mul(37) ^ u64::from(byte));
    let mut generator = Generator(seed);
    let clamps = [false, true];
    clamps[..1 + usize::from(original.clamped.is_some())]
        .iter()
        .any(|&clamp| {
            let mut line = line(name, &original);
            if clamp {
                line.push_str(" clamp");
            }
            let (Ok(first), Ok(second)) = (decode(&line, Some(original)), decode(&line, Some(mutant))) else {
                return true;
            };
            (0..4 * vectors::RUNS).any(|run| {
                let mut case = case(&original, &mut generator, clamp);
                if run % 2 == 1 {
                    case.registers.mode = Mode((generator.next() & 0xff) as u32);
                }
                let results = [&first, &second].map(|(code, constants)| {
                    let mut after = case.registers.clone();
                    execute(code, constants.clone(), &mut after);
                    canonical(&mut after.v, original.target);
                    (after.v, after.s)
                });
                results[0] != results[1]
            })
        })
}

/// Replaces all NaNs of v0 and v1 by the same one.
fn canonical(rows: &mut [Row], ty: Option<Ty>) {
    for l in 0..64 {
        match ty {
            Some(Ty::F32) if f32::from_bits(rows[0][l]).is_nan() => rows[0][l] = 0x7fc0_0000,
            Some(Ty::PkF32) => {
                for row in &mut rows[..2] {
                    if f32::from_bits(row[l]).is_nan() {
                        row[l] = 0x7fc0_0000;
                    }
                }
            }
            Some(Ty::F16 | Ty::PkF16) => {
                for shift in [0, 16] {
                    if rows[0][l] >> shift & 0x7fff > 0x7c00 {
                        rows[0][l] = rows[0][l] & !(0xffff << shift) | 0x7e00 << shift;
                    }
                }
            }
            Some(Ty::F64) if rows[1][l] & 0x7fff_ffff > 0x7ff0_0000 => {
                (rows[0][l], rows[1][l]) = (0, 0x7ff8_0000);
            }
            _ => {}
        }
    }
}

#[test]
fn mutants_of_the_table_are_caught() {
    let all: Vec<_> = entries().collect();
    let (mut caught, mut same) = (0_usize, 0_usize);
    let mut survivors = Vec::new();
    for &(name, op) in &all {
        TYPES.set((op.target, op.sources));
        for mutant in mutants(name, op, &all) {
            INNER.set(mutant.inner);
            if check(name, mutant.op, &op).is_some() {
                caught += 1;
            } else if differs(name, op, mutant.op) {
                survivors.push(format!("{name}: {}", mutant.what));
            } else {
                same += 1;
            }
        }
    }
    let total = caught + survivors.len();
    println!(
        "{caught} of {total} mutants of {} entries caught, {same} are the original in other words; survivors:\n{}",
        all.len(),
        survivors.join("\n")
    );
    assert!(
        100 * caught >= 95 * total,
        "{} of {total} mutants survive",
        survivors.len()
    );
}
