//! Compares the fast paths with the portable one, and SMFMAC with the dense form.

mod common;

use common::generate::{Matrices, few_bits, matrices, mix};
use common::{Kind, Shape};
use rotini_mfma::{Control, MfmaError, Opcode, Operand, Register, Source, execute, execute_portable};

/// Returns random registers of several kinds: any bits, one exponent everywhere except for a few
/// bits, few bits, and mixtures of them.
fn random(count: usize, seed: u64) -> Vec<Register> {
    let mut state = mix(seed);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(state)
    };
    let (flavour, base, mask) = (next() % 6, next() as u32, next() as u32 | 0x00ff_00ff);
    // Both halves are equal, so that 16-bit types get one exponent too.
    let base = base & 0x7fff_0000 | base >> 16 & 0x7fff;
    let mut element = || {
        let value = next();
        let bits = value as u32;
        match flavour {
            0 => bits,
            1 => base ^ bits & 0x83ff_83ff,
            2 => bits & (value >> 32) as u32 & mask,
            3 => base ^ bits & mask & 0x8fff_8fff,
            4 if !(value >> 40).is_multiple_of(50) => 0x3f80_3f80 ^ bits & 0x81ff_81ff,
            4 => bits,
            _ if (value >> 40).is_multiple_of(3) => 0,
            _ => 0x3c00_3c00 ^ bits & 0x8fff_8fff,
        }
    };
    (0..count).map(|_| std::array::from_fn(|_| element())).collect()
}

#[test]
fn fast_is_portable() {
    if cfg!(target_arch = "x86_64") {
        let features = ["avx512f", "avx512vbmi2", "avx2", "fma"];
        let here = [
            std::is_x86_feature_detected!("avx512f"),
            std::is_x86_feature_detected!("avx512vbmi2"),
            std::is_x86_feature_detected!("avx2"),
            std::is_x86_feature_detected!("fma"),
        ];
        println!("features: {features:?} {here:?}");
    }
    for (shape, [a_count, b_count, c_count, d_count]) in Shape::all() {
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        for round in 0..500u64 {
            let a = random(a_count, round * 4);
            let b = random(b_count, round * 4 + 1);
            let c = random(c_count, round * 4 + 2);
            let before = random(d_count, round * 4 + 3);
            // A random modifier, if the form has it.
            let candidate = mix(round);
            let control = Control {
                cbsz: candidate as u8 % 5,
                abid: (candidate >> 8) as u8 % 4,
                blgp: (candidate >> 16) as u8 % 8,
            };
            let control = if opcode.check(control).is_ok() {
                control
            } else {
                Control::default()
            };
            let (mut fast, mut portable) = (before.clone(), before);
            execute(opcode, &a, &b, Source::Registers(&c), &mut fast, control).unwrap();
            execute_portable(opcode, &a, &b, Source::Registers(&c), &mut portable, control).unwrap();
            assert!(fast == portable, "{opcode} round {round} {control:?}");
        }
    }
}

/// bf16 and xf32 near the exponents where the fast path declines, ±35 to ±36: all small, all large,
/// and both together.
#[test]
fn fast_is_portable_at_its_reach() {
    let fields: [&[u32]; 5] = [
        &[92, 92, 92, 93],
        &[92],
        &[162, 161],
        &[91, 92, 162, 163],
        &[92, 162, 0, 127],
    ];
    for (shape, [a_count, b_count, _, d_count]) in Shape::all() {
        if shape.sparse || !matches!(shape.a, Kind::Bf16 | Kind::Xf32) {
            continue;
        }
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        for round in 0..200u64 {
            let fields = fields[round as usize % 5];
            let operand = |count: usize, seed: u64| -> Vec<Register> {
                let element = |at: u64| {
                    let h = mix(mix(round * 2 + seed) ^ at);
                    let field = |h: u64| fields[h as usize % fields.len()];
                    // Both halves have fields: an xf32 uses the upper one.
                    let (low, high) = (field(h >> 32) << 7, field(h >> 40) << 23);
                    // A field of 0 becomes zero, not a denormal.
                    let low = if low == 0 { 0 } else { low | h as u32 & 0x807f };
                    let high = if high == 0 { 0 } else { high | h as u32 & 0x807f_0000 };
                    low | high
                };
                (0..count as u64)
                    .map(|register| std::array::from_fn(|lane| element(register * 64 + lane as u64)))
                    .collect()
            };
            let (a, b) = (operand(a_count, 0), operand(b_count, 1));
            // C is denormal, near the products' exponents, or arbitrary.
            let before: Vec<Register> = (0..d_count as u64)
                .map(|register| {
                    std::array::from_fn(|lane| {
                        let h = mix(round << 32 | register << 16 | lane as u64);
                        let field = [
                            0,
                            50 + (h >> 32) as u32 % 16,
                            190 + (h >> 32) as u32 % 16,
                            (h >> 32) as u32 % 255,
                        ];
                        field[(h >> 60) as usize % 4] << 23 | h as u32 & 0x807f_ffff
                    })
                })
                .collect();
            let (mut fast, mut portable) = (before.clone(), before);
            execute(opcode, &a, &b, Source::Destination, &mut fast, Control::default()).unwrap();
            execute_portable(opcode, &a, &b, Source::Destination, &mut portable, Control::default()).unwrap();
            assert!(fast == portable, "{opcode} round {round}");
        }
    }
}

/// Operands near the border where the fast path treats sums as exact.
#[test]
fn fast_is_portable_about_exact_sums() {
    for (shape, [a_count, b_count, _, d_count]) in Shape::all() {
        if shape.sparse || matches!(shape.a, Kind::F64 | Kind::F32 | Kind::I8) {
            continue;
        }
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        for round in 0..1000 {
            let Matrices { a, b, c } = few_bits(&shape, round);
            let (a, b) = (shape.pack_a(a_count, &a), shape.pack_b(b_count, &b));
            let before = shape.pack_c(d_count, &c);
            let (mut fast, mut portable) = (before.clone(), before);
            execute(opcode, &a, &b, Source::Destination, &mut fast, Control::default()).unwrap();
            execute_portable(opcode, &a, &b, Source::Destination, &mut portable, Control::default()).unwrap();
            assert!(fast == portable, "{opcode} round {round}");
        }
    }
}

/// With the same indices in every row, SMFMAC equals the dense form of half the k over the selected
/// rows of B.
#[test]
fn sparse_is_dense_of_what_is_stored() {
    let pairs = [
        ("v_smfmac_f32_16x16x32_f16", "v_mfma_f32_16x16x16_f16"),
        ("v_smfmac_f32_32x32x16_f16", "v_mfma_f32_32x32x8_f16"),
        ("v_smfmac_f32_16x16x32_bf16", "v_mfma_f32_16x16x16_bf16"),
        ("v_smfmac_f32_32x32x16_bf16", "v_mfma_f32_32x32x8_bf16"),
        ("v_smfmac_i32_16x16x64_i8", "v_mfma_i32_16x16x32_i8"),
        ("v_smfmac_i32_32x32x32_i8", "v_mfma_i32_32x32x16_i8"),
        ("v_smfmac_f32_16x16x64_bf8_fp8", "v_mfma_f32_16x16x32_bf8_fp8"),
        ("v_smfmac_f32_32x32x32_fp8_bf8", "v_mfma_f32_32x32x16_fp8_bf8"),
    ];
    for (sparse, dense) in pairs {
        let (sparse, dense) = (Shape::parse(sparse), Shape::parse(dense));
        let opcode = |shape: &Shape| Opcode::from_mnemonic(shape.name).unwrap();
        let (a_count, b_count, _, d_count) = opcode(&sparse).registers();
        for instruction in 0..64 {
            let Matrices { a, b, c } = if sparse.a == Kind::I8 {
                let bytes = |count: usize, seed: u64| {
                    (0..count as u64)
                        .map(|at| mix(seed * 0x10_0000 + at) & 0xff)
                        .collect::<Vec<_>>()
                };
                Matrices {
                    a: bytes(sparse.m * sparse.stored(), instruction),
                    b: bytes(sparse.n * sparse.k, instruction + 1000),
                    c: bytes(sparse.m * sparse.n, instruction + 2000),
                }
            } else {
                matrices(&sparse, instruction)
            };
            // Any pattern, including one that selects the same element of four twice.
            let within = |stored: usize| mix(instruction << 8 | stored as u64) as usize % 4;
            let mut index = [[0u32; 64]];
            for row in 0..sparse.m {
                for stored in 0..sparse.stored() {
                    let (lane, _, bit) = sparse.index_place(row, stored, Control::default());
                    index[0][lane] |= (within(stored) as u32) << bit;
                }
            }
            let picked: Vec<u64> = (0..sparse.n)
                .flat_map(|column| (0..dense.k).map(move |stored| (column, stored)))
                .map(|(column, stored)| b[column * sparse.k + stored / 2 * 4 + within(stored)])
                .collect();

            let a = sparse.pack_a(a_count, &a);
            let mut d = sparse.pack_c(d_count, &c);
            let mut expected = d.clone();
            let b = sparse.pack_b(b_count, &b);
            execute(
                opcode(&sparse),
                &a,
                &b,
                Source::Registers(&index),
                &mut d,
                Control::default(),
            )
            .unwrap();
            let picked = dense.pack_b(a_count, &picked);
            execute(
                opcode(&dense),
                &a,
                &picked,
                Source::Destination,
                &mut expected,
                Control::default(),
            )
            .unwrap();
            assert!(d == expected, "{} instruction {instruction}", sparse.name);
        }
    }
}

#[test]
fn what_is_refused() {
    let opcode = |name| Opcode::from_mnemonic(name).unwrap();
    let control = |cbsz, abid, blgp| Control { cbsz, abid, blgp };
    let refused = [
        ("v_mfma_f32_16x16x16_f16", control(1, 0, 0), "cbsz", 1),
        ("v_mfma_f32_16x16x16_f16", control(0, 1, 0), "abid", 1),
        ("v_mfma_f32_16x16x16_f16", control(0, 0, 1), "blgp", 1),
        ("v_mfma_f32_16x16x4_4b_f16", control(3, 0, 0), "cbsz", 3),
        ("v_mfma_f32_16x16x4_4b_f16", control(200, 0, 0), "cbsz", 200),
        ("v_mfma_f32_16x16x4_4b_f16", control(1, 2, 0), "abid", 2),
        ("v_mfma_f32_16x16x4_4b_f16", control(0, 0, 8), "blgp", 8),
        ("v_mfma_f32_16x16x4_f32", control(1, 0, 0), "cbsz", 1),
        ("v_mfma_f64_16x16x4_f64", control(0, 0, 8), "blgp", 8),
        ("v_smfmac_f32_16x16x32_f16", control(0, 4, 0), "abid", 4),
        ("v_smfmac_i32_16x16x64_i8", control(0, 2, 0), "abid", 2),
        ("v_smfmac_i32_16x16x64_i8", control(0, 0, 1), "blgp", 1),
    ];
    for (name, control, field, value) in refused {
        let opcode = opcode(name);
        let (a, b, c, d) = opcode.registers();
        let [a, b, c, mut d] = [a, b, c, d].map(common::registers);
        let error = Err(MfmaError::Control {
            mnemonic: opcode.mnemonic(),
            field,
            value,
        });
        assert_eq!(execute(opcode, &a, &b, Source::Registers(&c), &mut d, control), error);
    }

    let opcode = opcode("v_mfma_f32_16x16x16_f16");
    let counts = [2, 2, 4, 4];
    for (wrong, operand) in [Operand::A, Operand::B, Operand::C, Operand::D].into_iter().enumerate() {
        for given in [counts[wrong] - 1, counts[wrong] + 1] {
            let mut given_counts = counts;
            given_counts[wrong] = given;
            let [a, b, c, mut d] = given_counts.map(common::registers);
            let error = MfmaError::Registers {
                mnemonic: opcode.mnemonic(),
                operand,
                expected: counts[wrong],
                given,
            };
            let result = execute(opcode, &a, &b, Source::Registers(&c), &mut d, Control::default());
            assert_eq!(result, Err(error));
        }
    }
    let sparse = Opcode::from_mnemonic("v_smfmac_f32_16x16x32_f16").unwrap();
    let [a, b, mut d] = [2, 4, 4].map(common::registers);
    for source in [Source::Constant(0), Source::Destination] {
        let error = Err(MfmaError::IndexSource {
            mnemonic: sparse.mnemonic(),
        });
        assert_eq!(execute(sparse, &a, &b, source, &mut d, Control::default()), error);
    }
}
