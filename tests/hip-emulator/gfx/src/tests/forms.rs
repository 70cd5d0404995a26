//! Modifiers of operands and results, constants, op_sel and SDWA against literal vectors (CDNA3
//! ISA, sections of the encodings).

use super::machine::{Registers, decode, execute, run};
use crate::{
    inst::{Code, Finish, Prepare, Select, Unused, Valu},
    lanes::Row,
};

/// Returns v0 after an instruction, given v1, v2, v3 and the old v0; all lanes have the same
/// values.
fn one(code: &Code, constants: Vec<Row>, v: [u32; 4]) -> u32 {
    let mut registers = Registers::new();
    for (row, value) in [v[3], v[0], v[1], v[2]].into_iter().enumerate() {
        registers.v[row] = [value; 64];
    }
    registers.s[4] = 0x4040_0000;
    execute(code, constants, &mut registers);
    let first = registers.v[0][0];
    assert!(registers.v[0].iter().all(|&value| value == first), "{code:?}");
    first
}

/// Line, sources v1, v2, v3, old v0, expected v0.
type Vector = (&'static str, [u32; 4], u32);

fn all_right(vectors: &[Vector]) {
    let failures: Vec<String> = vectors
        .iter()
        .filter_map(|&(line, sources, want)| {
            let (code, constants) = decode(line, None).unwrap_or_else(|what| panic!("{line}: {what}"));
            let got = one(&code, constants, sources);
            (got != want).then(|| format!("{line} of {sources:x?}: {got:#x} instead of {want:#x}"))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

const ONE: u32 = 0x3f80_0000;
const TWO: u32 = 0x4000_0000;
const MINUS_TWO: u32 = 0xc000_0000;
const OLD: u32 = 0x1234_5678;

const SIGNS: &[Vector] = &[
    ("v_add_f32_e64 v0, -v1, v2", [ONE, TWO, 0, OLD], ONE),
    ("v_add_f32_e64 v0, |v1|, v2", [MINUS_TWO, TWO, 0, OLD], 0x4080_0000),
    ("v_add_f32_e64 v0, -|v1|, v2", [MINUS_TWO, TWO, 0, OLD], 0),
    ("v_fma_f32 v0, v1, v2, -v3", [TWO, TWO, ONE, OLD], 0x4040_0000),
    ("v_mul_f32_e64 v0, -v1, -v2", [TWO, ONE, 0, OLD], TWO),
    // The sign of an f16 is bit 15; the high half is ignored.
    ("v_add_f16_e64 v0, -v1, v2", [0xffff_3c00, 0x4000, 0, OLD], 0x3c00),
    ("v_add_f16_e64 v0, |v1|, |v1|", [0x1234_c000, 0, 0, OLD], 0x4400),
    // A move or select of f32 takes source modifiers too.
    ("v_cndmask_b32_e64 v0, -v1, v2, s[6:7]", [ONE, TWO, 0, OLD], 0xbf80_0000),
    ("v_mov_b32_e32 v0, v1", [OLD, 0, 0, 0], OLD),
];

const CONSTANTS: &[Vector] = &[
    ("v_add_f32_e32 v0, 1.0, v1", [ONE, 0, 0, OLD], TWO),
    ("v_add_f32_e32 v0, 0x3f800000, v1", [ONE, 0, 0, OLD], TWO),
    ("v_mul_f32_e32 v0, 0.15915494, v1", [ONE, 0, 0, OLD], 0x3e22_f983),
    ("v_add_f16_e32 v0, 1.0, v1", [0x3c00, 0, 0, OLD], 0x4000),
    ("v_mul_f16_e32 v0, 0.15915494, v1", [0x3c00, 0, 0, OLD], 0x3118),
    ("v_add_u32_e32 v0, -16, v1", [17, 0, 0, OLD], 1),
    ("v_and_b32_e32 v0, 64, v1", [0xff, 0, 0, OLD], 64),
    ("v_or_b32_e32 v0, 1.0, v1", [1, 0, 0, OLD], 0x3f80_0001),
    ("v_add_f32_e32 v0, s4, v1", [ONE, 0, 0, OLD], 0x4080_0000),
    ("v_fmaak_f32 v0, v1, v2, 0x40000000", [TWO, TWO, 0, OLD], 0x40c0_0000),
    ("v_fmamk_f32 v0, v1, 0x40000000, v2", [TWO, ONE, 0, OLD], 0x40a0_0000),
    ("v_fmac_f32_e32 v0, v1, v2", [TWO, TWO, 0, ONE], 0x40a0_0000),
    ("v_pk_add_u16 v0, v1, -1", [0x0001_0001, 0, 0, OLD], 0),
    (
        "v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]",
        [0x3c00_4000, 0, 0, OLD],
        0x4000_4200,
    ),
];

const CLAMPS: &[Vector] = &[
    ("v_add_f32_e64 v0, v1, v2 clamp", [ONE, TWO, 0, OLD], ONE),
    ("v_add_f32_e64 v0, v1, v2 clamp", [MINUS_TWO, ONE, 0, OLD], 0),
    ("v_add_f32_e64 v0, v1, v2 clamp", [0x7fc0_0000, ONE, 0, OLD], 0),
    (
        "v_mul_f32_e64 v0, v1, v2 clamp",
        [0x3f00_0000, 0x3f00_0000, 0, OLD],
        0x3e80_0000,
    ),
    ("v_max_f32_e64 v0, v1, v1 clamp", [0x8000_0000, 0, 0, OLD], 0),
    ("v_add_f16_e64 v0, v1, v2 clamp", [0x3c00, 0x3c00, 0, OLD], 0x3c00),
    ("v_add_f16_e64 v0, v1, v2 clamp", [0xc000, 0x3c00, 0, OLD], 0),
    ("v_add_f16_e64 v0, v1, v2 clamp", [0x7e00, 0x3c00, 0, OLD], 0),
    (
        "v_pk_add_f16 v0, v1, v2 clamp",
        [0x3c00_bc00, 0x3c00_3800, 0, OLD],
        0x3c00_0000,
    ),
    (
        "v_fma_f16 v0, v1, v2, v3 clamp",
        [0x4000, 0x4000, 0, 0xabcd_0000],
        0xabcd_3c00,
    ),
    ("v_add_u32_e64 v0, v1, v2 clamp", [u32::MAX, 2, 0, OLD], u32::MAX),
    ("v_sub_u32_e64 v0, v1, v2 clamp", [1, 2, 0, OLD], 0),
    ("v_add_i32 v0, v1, v2 clamp", [0x7fff_ffff, 2, 0, OLD], 0x7fff_ffff),
];

const HALVES: &[Vector] = &[
    (
        "v_fma_f16 v0, v1, v2, v3",
        [0x4000, 0x4000, 0x3c00, 0xabcd_ffff],
        0xabcd_4500,
    ),
    (
        "v_fma_f16 v0, v1, v2, v3 op_sel:[0,0,0,1]",
        [0x4000, 0x4000, 0x3c00, 0xabcd_ffff],
        0x4500_ffff,
    ),
    (
        "v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,1,0]",
        [0x4000_0000, 0x4000, 0x3c00_0000, 0xabcd_ffff],
        0xabcd_4500,
    ),
    (
        "v_mad_u16 v0, v1, v2, v3 op_sel:[1,1,0,1]",
        [0x0003_0000, 0x0005_0000, 7, 0xabcd_ffff],
        0x0016_ffff,
    ),
    (
        "v_pk_add_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]",
        [0x3c00_3c00, 0x4000_4000, 0, OLD],
        0xbc00_3c00,
    ),
    (
        "v_pk_mul_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]",
        [0x4000_4200, 0x3c00_3c00, 0, OLD],
        0x4200_4000,
    ),
    (
        "v_pk_add_u16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[1,0]",
        [0x0005_0001, 0x0100_0010, 0, OLD],
        0x0015_0015,
    ),
    (
        "v_pk_lshlrev_b16 v0, v1, v2",
        [0x0011_0004, 0x0001_0001, 0, OLD],
        0x0002_0010,
    ),
    (
        "v_dot2_i32_i16 v0, v1, v2, v3",
        [0xffff_0002, 0x0003_0005, 100, OLD],
        107,
    ),
    (
        "v_dot2_i32_i16 v0, v1, v2, v3 op_sel_hi:[0,1,1]",
        [0xffff_0002, 0x0003_0005, 100, OLD],
        116,
    ),
    (
        "v_pack_b32_f16 v0, v1, v2 op_sel:[1,0,0]",
        [0x1111_2222, 0x3333_4444, 0, OLD],
        0x4444_1111,
    ),
    (
        "v_mad_u32_u16 v0, v1, v2, v3 op_sel:[1,0,0,0]",
        [0x0003_ffff, 5, 7, OLD],
        22,
    ),
    // v_fma_mix: operands are f32 unless op_sel_hi selects f16, whose half op_sel then selects
    ("v_fma_mix_f32 v0, v1, v2, v3", [TWO, TWO, ONE, OLD], 0x40a0_0000),
    (
        "v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]",
        [0x3c00_4000, TWO, ONE, OLD],
        0x40a0_0000,
    ),
    (
        "v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]",
        [0x3c00_4000, TWO, ONE, OLD],
        0x4040_0000,
    ),
    (
        "v_fma_mix_f32 v0, -v1, |v2|, v3 op_sel_hi:[1,1,0]",
        [0x4000, 0xc000, ONE, OLD],
        0xc040_0000,
    ),
    (
        "v_fma_mixlo_f16 v0, v1, v2, v3",
        [TWO, TWO, ONE, 0xabcd_ffff],
        0xabcd_4500,
    ),
    (
        "v_fma_mixhi_f16 v0, v1, v2, v3",
        [TWO, TWO, ONE, 0xabcd_ffff],
        0x4500_ffff,
    ),
    // Conversion to bytes in the half that op_sel names
    (
        "v_cvt_pk_fp8_f32 v0, v1, v2",
        [ONE, MINUS_TWO, 0, 0xabcd_ffff],
        0xabcd_c840,
    ),
    (
        "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]",
        [ONE, MINUS_TWO, 0, 0xabcd_ffff],
        0xc840_ffff,
    ),
    (
        "v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_2",
        [0x0048_0000, 0, 0, OLD],
        TWO,
    ),
];

const SDWA: &[Vector] = &[
    (
        "v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
        [0x1122_8344, 0x0005_0000, 0, OLD],
        0x88,
    ),
    (
        "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:DWORD",
        [0x8000, 1, 0, OLD],
        0xffff_ff81,
    ),
    (
        "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:BYTE_3",
        [0xffff, 0x0200_0000, 0, OLD],
        1,
    ),
    (
        "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_1",
        [0xab00, 0, 0, OLD],
        0x00ab_0000,
    ),
    (
        "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1",
        [0xab00, 0, 0, OLD],
        0x12ab_5678,
    ),
    (
        "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_2 dst_unused:UNUSED_SEXT src0_sel:BYTE_1",
        [0xab00, 0, 0, OLD],
        0xffab_0000,
    ),
    (
        "v_mov_b32_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1",
        [0xbeef_0000, 0, 0, OLD],
        0xbeef_5678,
    ),
    (
        "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_3 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3",
        [0xcd00_0000, 0, 0, OLD],
        0xcd34_5678,
    ),
    (
        "v_add_f16_sdwa v0, -v1, |v2| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0",
        [0x3c00_0000, 0xc000, 0, OLD],
        0x3c00_5678,
    ),
    (
        "v_cvt_f32_u32_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3",
        [0x0300_0000, 0, 0, OLD],
        0x4040_0000,
    ),
    (
        "v_max_f32_sdwa v0, v1, v2 clamp dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
        [TWO, ONE, 0, OLD],
        ONE,
    ),
];

#[test]
fn source_modifiers_negate_after_the_absolute_value() {
    all_right(SIGNS);
}

#[test]
fn constants_are_of_their_operands_type() {
    all_right(CONSTANTS);
    let mut registers = Registers::new();
    run("v_mul_f64 v[0:1], 0x40000000, 0.5", &mut registers);
    assert_eq!(
        [registers.v[0][3], registers.v[1][3]],
        [0, 0x3ff0_0000],
        "a literal is the high half"
    );
    run("v_lshlrev_b64 v[0:1], 4, -1", &mut registers);
    assert_eq!(
        [registers.v[0][3], registers.v[1][3]],
        [0xffff_fff0, u32::MAX],
        "integers are sign-extended"
    );
}

#[test]
fn clamp_is_to_zero_and_one_and_turns_nans_to_zero() {
    all_right(CLAMPS);
    let mut registers = Registers::new();
    registers.v[3] = [0x4008_0000; 64];
    run("v_mul_f64 v[0:1], v[2:3], v[2:3] clamp", &mut registers);
    assert_eq!([registers.v[0][0], registers.v[1][0]], [0, 0x3ff0_0000]);
}

#[test]
fn halves_are_chosen_and_kept() {
    all_right(HALVES);
    let mut registers = Registers::new();
    for (row, value) in [(2, 2.0_f32), (3, 3.0), (4, 5.0), (5, 7.0)] {
        registers.v[row] = [value.to_bits(); 64];
    }
    for (line, want) in [
        ("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]", [10.0, 21.0]),
        (
            "v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]",
            [15.0, 14.0],
        ),
        ("v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[1,0]", [10.0, 15.0]),
        (
            "v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[0,1] neg_hi:[1,0]",
            [-3.0, 4.0],
        ),
        ("v_pk_add_f32 v[0:1], v[2:3], 0", [2.0, 3.0]),
        // A constant fills both halves.
        ("v_pk_mul_f32 v[0:1], v[2:3], 0.5", [1.0, 1.5]),
        ("v_pk_mul_f32 v[0:1], 4.0, v[2:3] op_sel_hi:[0,1]", [8.0, 12.0]),
        ("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]", [2.0, 7.0]),
        ("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]", [3.0, 5.0]),
    ] {
        run(line, &mut registers);
        let got = [0, 1].map(|row| f32::from_bits(registers.v[row][9]));
        assert_eq!(got, want, "{line}");
    }
}

#[test]
fn sdwa_selects_extends_and_places() {
    all_right(SDWA);
    let mut registers = Registers::new();
    registers.v[1] = std::array::from_fn(|lane| (lane as u32) << 8);
    run(
        "v_cmp_eq_u32_sdwa s[8:9], v1, v2 src0_sel:BYTE_1 src1_sel:BYTE_0",
        &mut registers,
    );
    assert_eq!(registers.pair(8), 1, "only lane 0's byte is 0");
}

#[test]
fn what_is_not_understood_is_an_error() {
    for line in [
        "v_unheard_of_f32 v0, v1",
        "v_add_f32_e64 v0, v1, v2 mul:2",
        "v_add_f32_e64 v0, v1, v2 div:2",
        "v_add_u32_e32 v0, -v1, v2",
        "v_pk_add_u16 v0, v1, v2 neg_lo:[1,0]",
        "v_and_b32_e64 v0, v1, v2 clamp",
        "v_add_f32_e32 v0, v1",
        "v_add_f32_e32 v0, v1, v2, v3",
        "v_add_f64 v0, v[2:3], v[4:5]",
        "v_add_f32_e32 v0, v1, v40",
        "v_add_f32_e64 v0, v1, v2 op_sel:[1,0,0]",
        "v_mov_b32_dpp v0, v1 row_share:3 row_mask:0xf bank_mask:0xf",
        "v_cmp_eq_f32_e64 s[8:9], v1, v2 clamp",
        "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_7 dst_unused:UNUSED_PAD src0_sel:BYTE_0",
    ] {
        assert!(decode(line, None).is_err(), "{line}");
    }
}

/// Returns variants of a decoded instruction, each with one of its modifiers ignored or replaced.
fn forgetful(valu: &Valu) -> Vec<Valu> {
    let mut list = Vec::new();
    let operands = valu.prepare.as_deref().unwrap_or_default();
    for (number, operand) in operands.iter().enumerate() {
        let Some(old) = *operand else { continue };
        let changes = [
            Prepare { neg: false, ..old },
            Prepare { abs: false, ..old },
            Prepare { sext: false, ..old },
            Prepare { neg_high: false, ..old },
            Prepare {
                halves: [false, true],
                ..old
            },
            Prepare {
                select: Select::Dword,
                ..old
            },
        ];
        for new in changes.into_iter().filter(|&new| new != old) {
            let mut prepare = operands.to_vec();
            prepare[number] = Some(new);
            list.push(Valu {
                prepare: Some(prepare.into_boxed_slice()),
                ..valu.clone()
            });
        }
    }
    if let Some(old) = &valu.finish {
        let changes = [
            Finish { clamp: None, ..*old },
            Finish {
                select: Select::Dword,
                ..*old
            },
            Finish {
                unused: Unused::Pad,
                ..*old
            },
        ];
        list.extend(changes.into_iter().filter(|new| new != old).map(|new| Valu {
            finish: Some(new),
            ..valu.clone()
        }));
    }
    list
}

/// Every modifier of the vectors above affects its vector: ignoring one would be noticed.
#[test]
fn forgotten_modifiers_are_noticed() {
    let (mut caught, mut survivors) = (0_usize, Vec::new());
    for &(line, sources, want) in [SIGNS, CONSTANTS, CLAMPS, HALVES, SDWA].into_iter().flatten() {
        let (code, constants) = decode(line, None).unwrap();
        let Code::Valu(valu) = code else {
            panic!("{line} is no vector instruction")
        };
        for changed in forgetful(&valu) {
            let what = format!("{line}: {:?} {:?}", changed.prepare, changed.finish);
            if one(&Code::Valu(changed), constants.clone(), sources) == want {
                survivors.push(what);
            } else {
                caught += 1;
            }
        }
    }
    let total = caught + survivors.len();
    println!(
        "{caught} of {total} forgotten modifiers noticed; not:\n{}",
        survivors.join("\n")
    );
    assert!(100 * caught >= 95 * total);
}
