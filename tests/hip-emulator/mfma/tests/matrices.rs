//! Every form with every modifier on small integers: no arithmetic rounds, so the result must equal
//! a plain matrix product.

#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod common;

use common::generate::mix;
use common::{Kind, Shape, registers};
use half::{bf16, f16};
use rotini_mfma::{Control, Opcode, Source, execute, execute_portable};

/// Returns the bits of a small integer.
fn encode(kind: Kind, value: i64) -> u64 {
    match kind {
        Kind::F64 => (value as f64).to_bits(),
        Kind::F32 | Kind::Xf32 => (value as f32).to_bits().into(),
        Kind::F16 => f16::from_f32(value as f32).to_bits().into(),
        Kind::Bf16 => bf16::from_f32(value as f32).to_bits().into(),
        Kind::I8 => (value as i8 as u8).into(),
        Kind::I32 => (value as i32 as u32).into(),
        // All values have at most three significant bits; the code is found by searching for the
        // value.
        Kind::Fp8 | Kind::Bf8 => {
            let (fraction_bits, bias) = if kind == Kind::Fp8 { (3, 8) } else { (2, 16) };
            let decode = |code: i32| {
                let (field, fraction) = (code >> fraction_bits, f64::from(code & ((1 << fraction_bits) - 1)));
                let unit = f64::from(1 << fraction_bits);
                if field == 0 {
                    fraction / unit * 2f64.powi(1 - bias)
                } else {
                    (1.0 + fraction / unit) * 2f64.powi(field - bias)
                }
            };
            let code = (0..128).find(|&code| decode(code) == value.abs() as f64).unwrap() as u64;
            code | if value < 0 { 0x80 } else { 0 }
        }
    }
}

/// Returns integers from −4 to 4, on average three of eleven of them 0.
fn integers(count: usize, seed: u64) -> Vec<i64> {
    (0..count as u64)
        .map(|index| [0, 0, 1, 2, 3, 4, -1, -2, -3, -4, 0][(mix(seed ^ index.wrapping_mul(0x9e37)) % 11) as usize])
        .collect()
}

/// Returns every modifier that the form has.
fn controls(shape: &Shape, opcode: Opcode) -> Vec<Control> {
    let mut controls = Vec::new();
    for cbsz in 0..8 {
        for abid in 0..16 {
            for blgp in 0..8 {
                let control = Control { cbsz, abid, blgp };
                if opcode.check(control).is_ok() {
                    controls.push(control);
                }
            }
        }
    }
    let expected = match (shape.sparse, shape.d, shape.blocks) {
        // The sets of indices for `cbsz` 0, and any `abid` for the others, where it has no meaning.
        (true, ..) => {
            if shape.a.bits() == 16 {
                4 + 7 * 8
            } else {
                2 + 7 * 8
            }
        }
        (_, Kind::F64, _) => 8,
        // 2 · blocks − 1 pairs of `cbsz` and `abid`.
        (_, _, 2..) => (2 * shape.blocks - 1) * 8,
        _ if shape.a == Kind::F32 => 8,
        _ => 1,
    };
    assert_eq!(controls.len(), expected, "{opcode}");
    controls
}

#[test]
fn products_of_small_integers() {
    for (shape, [a_count, b_count, c_count, d_count]) in Shape::all() {
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        let Shape { m, n, k, blocks, .. } = shape;
        for (seed, control) in controls(&shape, opcode).into_iter().enumerate() {
            let seed = seed as u64 * 3;
            let a = integers(blocks * m * shape.stored(), mix(seed));
            let b = integers(blocks * n * k, mix(seed + 1));
            let c = integers(blocks * m * n, mix(seed + 2));
            let bits = |kind, values: &[i64]| values.iter().map(|&value| encode(kind, value)).collect::<Vec<_>>();
            let a_registers = shape.pack_a(a_count, &bits(shape.a, &a));
            let b_registers = shape.pack_b(b_count, &bits(shape.b, &b));
            let c_registers = shape.pack_c(d_count, &bits(shape.d, &c));

            // The lane of B that holds each column, found by search, so that a permutation of lanes
            // can be applied to these numbers.
            let mut lanes = vec![(0, 0, 0); 64];
            let span = n * k * blocks / 64;
            for block in 0..blocks {
                for column in 0..n {
                    for group in 0..k / span {
                        lanes[shape.b_place(group * span, column, block).0] = (block, column, group);
                    }
                }
            }
            let b_at = |row: usize, column: usize, block: usize| {
                if shape.d == Kind::F64 || control.blgp == 0 {
                    return b[(block * n + column) * k + row];
                }
                let lane = Shape::permuted(shape.b_place(row, column, block).0, control);
                let (block, column, group) = lanes[lane];
                b[(block * n + column) * k + group * span + row % span]
            };
            // SMFMAC: indices of two different elements of every four, in order, in the set that
            // the modifier selects, and noise in the other sets.
            let noise = |lane: usize| mix(seed ^ lane as u64) as u32;
            let mut index: [u32; 64] = std::array::from_fn(noise);
            let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
            let position = |row: usize, stored: usize| {
                let pair = pairs[(mix((row * 64 + stored / 2) as u64 ^ seed) % 6) as usize];
                stored / 2 * 4 + if stored.is_multiple_of(2) { pair.0 } else { pair.1 }
            };
            if shape.sparse {
                for row in 0..m {
                    for stored in 0..shape.stored() {
                        let (lane, _, bit) = shape.index_place(row, stored, control);
                        index[lane] = index[lane] & !(3 << bit) | ((position(row, stored) % 4) as u32) << bit;
                    }
                }
            }
            let sign = |bit: u8| {
                if shape.d == Kind::F64 && control.blgp >> bit & 1 != 0 {
                    -1
                } else {
                    1
                }
            };
            let mut expected = Vec::new();
            for block in 0..blocks {
                for row in 0..m {
                    for column in 0..n {
                        let source = if shape.sparse {
                            block
                        } else {
                            Shape::broadcast(block, control)
                        };
                        let products = (0..shape.stored()).map(|stored| {
                            let at = if shape.sparse { position(row, stored) } else { stored };
                            a[(source * m + row) * shape.stored() + stored] * b_at(at, column, block)
                        });
                        let sum = products.sum::<i64>() * sign(0) * sign(1);
                        expected.push(encode(shape.d, sum + sign(2) * c[(block * m + row) * n + column]));
                    }
                }
            }

            let index = [index];
            for run in [execute, execute_portable] {
                let mut d = c_registers.clone();
                let source = if shape.sparse {
                    Source::Registers(&index)
                } else {
                    Source::Destination
                };
                run(opcode, &a_registers, &b_registers, source, &mut d, control).unwrap();
                assert_eq!(shape.unpack_d(&d), expected, "{opcode} {control:?}");
                if shape.sparse {
                    assert_eq!(c_count, 1);
                    continue;
                }
                let mut d = vec![[0xdead_beef; 64]; d_count];
                run(
                    opcode,
                    &a_registers,
                    &b_registers,
                    Source::Registers(&c_registers),
                    &mut d,
                    control,
                )
                .unwrap();
                assert_eq!(shape.unpack_d(&d), expected, "{opcode} {control:?}, C apart");
            }
        }
    }
}

/// The identity times B is B: an element that is read from a wrong place shows up by itself.
#[test]
fn identity() {
    for (shape, [a_count, b_count, _, d_count]) in Shape::all() {
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        let Shape { m, n, k, blocks, .. } = shape;
        if shape.sparse {
            continue; // A row of SMFMAC's A has other places than its columns: see `products_of_small_integers`.
        }
        // The rows of A are unit vectors along k, repeated every k rows.
        let a: Vec<u64> = (0..blocks * m * k)
            .map(|at| encode(shape.a, i64::from(at / k % m % k == at % k)))
            .collect();
        let values = integers(blocks * n * k, 7);
        let b: Vec<u64> = values.iter().map(|&value| encode(shape.b, value)).collect();
        let expected: Vec<u64> = (0..blocks * m * n)
            .map(|at| encode(shape.d, values[(at / n / m * n + at % n) * k + at / n % m % k]))
            .collect();
        let (a, b) = (shape.pack_a(a_count, &a), shape.pack_b(b_count, &b));
        let mut d = registers(d_count);
        execute(opcode, &a, &b, Source::Constant(0), &mut d, Control::default()).unwrap();
        assert_eq!(shape.unpack_d(&d), expected, "{opcode}");
    }
}

/// An inline constant is the same accumulator for all elements, with both halves of an f64.
#[test]
fn constants() {
    for (shape, [a_count, b_count, _, d_count]) in Shape::all() {
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        if shape.sparse {
            continue;
        }
        let bits = match shape.d {
            Kind::F64 => (-0.5f64).to_bits(),
            Kind::I32 => u64::from(-16i32 as u32),
            _ => u64::from((-0.5f32).to_bits()),
        };
        let mut d = vec![[0xdead_beef; 64]; d_count];
        let (a, b) = (registers(a_count), registers(b_count));
        execute(opcode, &a, &b, Source::Constant(bits), &mut d, Control::default()).unwrap();
        assert!(shape.unpack_d(&d).iter().all(|&value| value == bits), "{opcode}");
    }
}

/// Sums of i8 products wrap.
#[test]
fn integers_wrap() {
    for (shape, [a_count, b_count, _, d_count]) in Shape::all() {
        if shape.d != Kind::I32 {
            continue;
        }
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        let (a, b) = (vec![[0x8080_8080; 64]; a_count], vec![[0x8080_8080; 64]; b_count]);
        let expected = i32::MAX.wrapping_add(128 * 128 * shape.stored() as i32) as u32;
        let mut d = vec![[i32::MAX as u32; 64]; d_count];
        let index = [[0x4444_4444; 64]];
        let source = if shape.sparse {
            Source::Registers(&index)
        } else {
            Source::Destination
        };
        execute(opcode, &a, &b, source, &mut d, Control::default()).unwrap();
        assert!(d.iter().flatten().all(|&value| value == expected), "{opcode}");
    }
}
