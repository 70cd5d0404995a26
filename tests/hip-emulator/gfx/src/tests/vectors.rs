//! Compares every vector entry of the table with the model: 64 lanes per run, edge values and
//! random bits, some lanes off, clamp where it saturates.

use rustc_apfloat::{
    Float,
    ieee::{Double, Half, Single},
};

use super::{
    inputs::Generator,
    machine::{Registers, decode, execute},
    model::{self, Lane, Result as Expected},
};
use crate::{
    inst::sgpr,
    lanes::Mode,
    table::{self, MaskIn, Op, Ty, VectorOp},
};

/// 16-bit opcodes that keep the other half of the destination (the ISA's op_sel opcodes).
const KEEPS: &[&str] = &[
    "v_fma_f16",
    "v_add_i16",
    "v_sub_i16",
    "v_mad_u16",
    "v_mad_i16",
    "v_min3_f16",
    "v_min3_u16",
    "v_min3_i16",
    "v_max3_f16",
    "v_max3_u16",
    "v_max3_i16",
    "v_med3_f16",
    "v_med3_u16",
    "v_med3_i16",
    "v_div_fixup_f16",
    "v_fma_mixlo_f16",
    "v_fma_mixhi_f16",
    "v_cvt_pk_fp8_f32",
    "v_cvt_pk_bf8_f32",
];

/// Number of runs of 64 lanes per entry.
pub(super) const RUNS: usize = 48;

/// Other modes: each rounding direction for each type, each bit of the denormal fields.
const MODES: &[u32] = &[
    0xf5, 0xfa, 0xff, 0xf4, 0xf1, 0x00, 0xc0, 0x30, 0xa0, 0x50, 0x0f, 0xf8, 0xf2, 0x09, 0xc6, 0x3b,
];

const MASK_OUT: u8 = 10;
const MASK_IN: u8 = 12;

/// Iterates over the vector entries of the table.
pub(super) fn entries() -> impl Iterator<Item = (&'static str, VectorOp)> {
    table::all().filter_map(|entry| match entry.op {
        Op::Vector(op) => Some((entry.name, op)),
        _ => None,
    })
}

fn register(first: usize, ty: Ty) -> String {
    match ty.rows() {
        1 => format!("v{first}"),
        _ => format!("v[{first}:{}]", first + 1),
    }
}

/// Returns the instruction's text with its destination in v0, sources from v2 on, lane masks in
/// scalars.
pub(super) fn line(name: &str, op: &VectorOp) -> String {
    let mut operands = Vec::new();
    if let Some(ty) = op.target {
        operands.push(register(0, ty));
    }
    if op.mask_out {
        operands.push(format!("s[{MASK_OUT}:{}]", MASK_OUT + 1));
    }
    let given = op.sources.len() - usize::from(op.accumulates);
    for (number, &ty) in op.sources[..given].iter().enumerate() {
        operands.push(register(2 + 2 * number, ty));
    }
    if op.mask_in == MaskIn::Operand {
        operands.push(format!("s[{MASK_IN}:{}]", MASK_IN + 1));
    }
    format!("{name} {}", operands.join(", "))
}

/// Operands of a run, lane by lane.
pub(super) struct Case {
    pub(super) registers: Registers,
    pub(super) lanes: Vec<Lane>,
}

/// Generates the operands of one run of an entry.
pub(super) fn case(op: &VectorOp, generator: &mut Generator, clamp: bool) -> Case {
    let mut registers = Registers::new();
    let mut lanes = Vec::new();
    for row in 0..2 {
        for value in &mut registers.v[row] {
            *value = generator.next() as u32;
        }
    }
    let mask = generator.next();
    for number in 0..64 {
        let mut operands: Vec<u64> = Vec::new();
        for (index, &ty) in op.sources.iter().enumerate() {
            let value = generator.operand(ty, &operands);
            operands.push(value);
            let first = if op.accumulates && index + 1 == op.sources.len() {
                0
            } else {
                2 + 2 * index
            };
            registers.v[first][number] = value as u32;
            if ty.rows() == 2 {
                registers.v[first + 1][number] = (value >> 32) as u32;
            }
        }
        operands.resize(3, 0);
        lanes.push(Lane {
            s: [operands[0], operands[1], operands[2]],
            mask: mask >> number & 1 != 0,
            number: number as u32,
            clamp,
        });
    }
    // Every third run has lanes that are off.
    if generator.next().is_multiple_of(3) {
        registers.set(sgpr::EXEC, generator.next() | 1 << 63);
    }
    match op.mask_in {
        MaskIn::No => {}
        MaskIn::Operand => registers.set(MASK_IN, mask),
        MaskIn::Vcc => registers.set(sgpr::VCC, mask),
    }
    Case { registers, lanes }
}

/// Returns true if bits are a quiet NaN of a format.
fn quiet_nan(bits: u64, width: u32) -> bool {
    match width {
        16 => bits & 0x7e00 == 0x7e00,
        32 => bits & 0x7fc0_0000 == 0x7fc0_0000,
        _ => bits >> 51 & 0xfff == 0xfff,
    }
}

/// Returns true if bits are within `ulps` of a value.
fn near(bits: u64, width: u32, value: f64, ulps: f64) -> bool {
    let exact = |bits: u64| match width {
        16 => half::f16::from_bits(bits as u16).to_f64(),
        32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    };
    let got = exact(bits);
    if got.is_nan() {
        return false;
    }
    let largest = match width {
        16 => 65504.0,
        32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    if got.is_infinite() {
        return value.abs() > largest && got.is_sign_positive() == value.is_sign_positive();
    }
    if value == 0.0 {
        return got == 0.0 && got.is_sign_negative() == value.is_sign_negative();
    }
    let magnitude = bits & (u64::MAX >> (65 - width));
    let step = (exact(magnitude + 1) - exact(magnitude))
        .abs()
        .min(exact(magnitude).max(largest / 1e6));
    // The second term allows for f64's error near the zeros of a sine.
    (got - value).abs() <= ulps * step + if width == 64 { 0.0 } else { 3e-16 }
}

/// Compares two f16 or two f32; any element may be a NaN.
fn packed_equal(ty: Ty, got: u64, want: u64) -> bool {
    let (width, mask) = if ty == Ty::PkF32 {
        (32, 0xffff_ffff)
    } else {
        (16, 0xffff)
    };
    (0..2).all(|part| {
        let [got, want] = [got, want].map(|v| v >> (part * width) & mask);
        got == want || (quiet_nan(got, width) && quiet_nan(want, width))
    })
}

/// Returns an error if an instruction's result is wrong.
fn wrong(name: &str, op: &VectorOp, case: &Case, after: &Registers) -> Option<String> {
    let mode = case.registers.mode.0;
    let exec = case.registers.pair(sgpr::EXEC);
    for lane in &case.lanes {
        let l = lane.number as usize;
        let on = exec >> l & 1 != 0;
        let expected = model::result(name, *lane, op.sources, op.target, mode);
        let expected = expected.unwrap_or_else(|| panic!("{name} has no model"));
        let [old, got] = [&case.registers, after].map(|r| u64::from(r.v[0][l]) | u64::from(r.v[1][l]) << 32);
        let flag = after.pair(MASK_OUT) >> l & 1 != 0;
        let rows = op.target.map_or(0, Ty::rows);
        let right = if !on {
            got == old && !(op.mask_out && flag)
        } else {
            value_right(name, op, rows, old, got, expected)
                && match expected {
                    Expected::Flag(_, expected) if op.mask_out => flag == expected,
                    _ => true,
                }
        };
        if !right {
            return Some(format!(
                "{name} in mode {mode:x}, lane {l} (on: {on}) of {:x?}, mask {}: {got:x} (flag {flag}) instead of {expected:x?}, before {old:x}",
                lane.s, lane.mask
            ));
        }
    }
    let mut same = after.s;
    let kept = case.registers.s;
    if op.mask_out {
        let pair = usize::from(MASK_OUT);
        same[pair..pair + 2].copy_from_slice(&kept[pair..pair + 2]);
    }
    (same != kept).then(|| format!("{name} wrote a scalar register that is not its own"))
}

fn value_right(name: &str, op: &VectorOp, rows: usize, old: u64, got: u64, expected: Expected) -> bool {
    let Some(ty) = op.target else {
        return got == old;
    };
    // Rows that the opcode does not write are unchanged.
    let (written, rest) = if rows == 2 {
        (u64::MAX, 0)
    } else {
        (0xffff_ffff, u64::MAX << 32)
    };
    if got & rest != old & rest {
        return false;
    }
    let got = got & written;
    let half = matches!(ty, Ty::F16 | Ty::B16);
    let (got, other) = match (half, name == "v_fma_mixhi_f16") {
        (true, true) => (got >> 16, got & 0xffff),
        (true, false) => (got & 0xffff, got >> 16),
        (false, _) => (got, 0),
    };
    if half {
        let kept = if name == "v_fma_mixhi_f16" {
            old & 0xffff
        } else {
            old >> 16 & 0xffff
        };
        if other != if KEEPS.contains(&name) { kept } else { 0 } {
            return false;
        }
    }
    match expected {
        Expected::Bits(want) | Expected::Flag(want, _) => match ty {
            Ty::PkF16 | Ty::PkF32 => packed_equal(ty, got, want),
            _ => got == want,
        },
        Expected::NaN(width) => quiet_nan(got, width),
        Expected::Near { value, bits, ulps } => near(got, bits, value, ulps),
    }
}

/// Returns the first wrong result of an entry over all its runs; `name` selects the model, `line`
/// is decoded.
pub(super) fn check(name: &str, op: VectorOp, original: &VectorOp) -> Option<String> {
    let seed = name
        .bytes()
        .fold(0, |seed: u64, byte| seed.wrapping_mul(31) ^ u64::from(byte));
    let mut generator = Generator(seed);
    let clamps = [false, true];
    for clamp in &clamps[..1 + usize::from(original.clamped.is_some())] {
        let mut line = line(name, original);
        if *clamp {
            line.push_str(" clamp");
        }
        let (code, constants) = match decode(&line, Some(op)) {
            Ok(decoded) => decoded,
            Err(what) => return Some(format!("{line}: {what}")),
        };
        for run in 0..RUNS {
            let mut case = case(original, &mut generator, *clamp);
            // A third of the runs are in other modes.
            case.registers.mode = match run % 3 {
                2 => Mode(MODES[run / 3 % MODES.len()]),
                _ => Mode::IEEE,
            };
            let mut after = case.registers.clone();
            execute(&code, constants.clone(), &mut after);
            if let Some(wrong) = wrong(name, original, &case, &after) {
                return Some(format!("{line}: {wrong}"));
            }
        }
    }
    None
}

#[test]
fn every_entry_agrees_with_the_model() {
    let mut failures = Vec::new();
    let mut count = 0;
    for (name, op) in entries() {
        count += 1;
        let lane = Lane {
            s: [0; 3],
            mask: false,
            number: 0,
            clamp: false,
        };
        if model::result(name, lane, op.sources, op.target, Mode::IEEE.0).is_none() {
            failures.push(format!("{name} has no model"));
        } else if let Some(wrong) = check(name, op, &op) {
            failures.push(wrong);
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} entries are wrong:\n{}",
        failures.len(),
        failures.join("\n")
    );
    println!("{count} entries, {} lanes each", 64 * RUNS);
}

/// Checks the library that the model uses: its formats are the expected IEEE formats.
#[test]
fn the_soft_floats_are_ieee() {
    assert_eq!(Half::from_bits(0x3c00), Half::from_u128(1).value);
    assert_eq!(Single::from_bits(0x3f80_0000), Single::from_u128(1).value);
    assert_eq!(Double::from_bits(0x3ff0 << 48), Double::from_u128(1).value);
    assert_eq!(Single::SMALLEST.to_bits(), 1);
}
