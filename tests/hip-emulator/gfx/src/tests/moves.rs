//! DPP, exchange between lanes, lane masks, EXEC and MODE against literal vectors (CDNA3 ISA).

use super::machine::{Registers, decode, execute, run};
use crate::{
    inst::{Code, Dpp, Valu, sgpr},
    lanes::Mode,
};

const ONE: u32 = 0x3f80_0000;
const TWO: u32 = 0x4000_0000;
const OLD: u32 = 0x1234_5678;

/// Returns the lane that each lane reads under a DPP control, -1 for none.
fn sources(control: &str, bound: bool) -> [i64; 64] {
    let mut registers = Registers::new();
    registers.v[0] = [1000; 64];
    registers.v[1] = std::array::from_fn(|lane| lane as u32 + 1);
    let bound = if bound { " bound_ctrl:0" } else { "" };
    run(
        &format!("v_mov_b32_dpp v0, v1 {control} row_mask:0xf bank_mask:0xf{bound}"),
        &mut registers,
    );
    registers.v[0].map(|value| match value {
        1000 => -1,
        value => i64::from(value) - 1,
    })
}

#[test]
fn dpp_controls_move_lanes() {
    let by = |from: fn(i64) -> i64| std::array::from_fn(|lane| from(lane as i64));
    let cases: [(&str, [i64; 64]); 16] = [
        ("quad_perm:[3,2,1,0]", by(|l| l / 4 * 4 + 3 - l % 4)),
        (
            "quad_perm:[1,1,3,0]",
            by(|l| l / 4 * 4 + [1, 1, 3, 0][(l % 4) as usize]),
        ),
        ("row_shl:1", by(|l| if l % 16 < 15 { l + 1 } else { -1 })),
        ("row_shl:15", by(|l| if l % 16 == 0 { l + 15 } else { -1 })),
        ("row_shr:1", by(|l| if l % 16 > 0 { l - 1 } else { -1 })),
        ("row_shr:4", by(|l| if l % 16 > 3 { l - 4 } else { -1 })),
        ("row_ror:1", by(|l| l / 16 * 16 + (l + 15) % 16)),
        ("row_ror:12", by(|l| l / 16 * 16 + (l + 4) % 16)),
        ("wave_shl:1", by(|l| if l < 63 { l + 1 } else { -1 })),
        ("wave_rol:1", by(|l| (l + 1) % 64)),
        ("wave_shr:1", by(|l| l - 1)),
        ("wave_ror:1", by(|l| (l + 63) % 64)),
        ("row_mirror", by(|l| l / 16 * 16 + 15 - l % 16)),
        ("row_half_mirror", by(|l| l / 8 * 8 + 7 - l % 8)),
        ("row_bcast:15", by(|l| if l < 16 { -1 } else { l / 16 * 16 - 1 })),
        ("row_bcast:31", by(|l| if l < 32 { -1 } else { 31 })),
    ];
    for (control, want) in cases {
        assert_eq!(sources(control, false), want, "{control}");
        // With bound_ctrl, a lane without a source reads 0: one less than the first lane's 1.
        assert_eq!(sources(control, true), want, "{control} bound_ctrl:0");
    }
    for row in [0, 7, 15] {
        let want: [i64; 64] = std::array::from_fn(|l| l as i64 / 16 * 16 + row);
        assert_eq!(sources(&format!("row_newbcast:{row}"), false), want);
    }
}

#[test]
fn dpp_keeps_masked_lanes_and_lanes_without_source() {
    let setup = || {
        let mut registers = Registers::new();
        registers.v[0] = [100; 64];
        registers.v[1] = std::array::from_fn(|lane| lane as u32);
        registers.v[2] = [1000; 64];
        registers
    };
    let mut registers = setup();
    run(
        "v_add_u32_dpp v0, v1, v2 row_shr:1 row_mask:0x5 bank_mask:0xe",
        &mut registers,
    );
    for (lane, &value) in registers.v[0].iter().enumerate() {
        let (row, bank) = (lane / 16, lane % 16 / 4);
        let written = (row == 0 || row == 2) && bank != 0;
        assert_eq!(value, if written { lane as u32 - 1 + 1000 } else { 100 }, "lane {lane}");
    }
    // An inactive lane is no source: its reader keeps its destination, or reads 0 with bound_ctrl.
    for (bound, lane_5) in [("", 100), (" bound_ctrl:0", 1000)] {
        let mut registers = setup();
        registers.set(sgpr::EXEC, !(1 << 4));
        run(
            &format!("v_add_u32_dpp v0, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf{bound}"),
            &mut registers,
        );
        assert_eq!(registers.v[0][4], 100, "off");
        assert_eq!(registers.v[0][5], lane_5, "its source is off");
        assert_eq!(registers.v[0][6], 1005);
        assert_eq!(registers.v[0][16], lane_5, "the row ends");
    }
    // A masked lane has no carry either.
    let mut registers = setup();
    registers.v[1] = [u32::MAX; 64];
    run(
        "v_add_co_u32_dpp v0, vcc, v1, v2 row_shr:1 row_mask:0x1 bank_mask:0xf",
        &mut registers,
    );
    assert_eq!(registers.pair(sgpr::VCC), 0xfffe);
    // Modifiers apply to the moved value.
    let mut registers = setup();
    registers.v[1] = std::array::from_fn(|lane| (lane as f32).to_bits());
    registers.v[2] = [1.0_f32.to_bits(); 64];
    run(
        "v_add_f32_dpp v0, -v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        &mut registers,
    );
    assert_eq!(f32::from_bits(registers.v[0][6]), -6.0);
}

#[test]
fn dpp_moves_both_halves_of_64_bits() {
    let mut registers = Registers::new();
    registers.v[2] = std::array::from_fn(|lane| lane as u32);
    registers.v[3] = std::array::from_fn(|lane| 100 + lane as u32);
    run(
        "v_mov_b64_dpp v[0:1], v[2:3] row_newbcast:3 row_mask:0xf bank_mask:0xf",
        &mut registers,
    );
    for lane in 0..64 {
        let from = lane as u32 / 16 * 16 + 3;
        assert_eq!(
            (registers.v[0][lane], registers.v[1][lane]),
            (from, 100 + from),
            "lane {lane}"
        );
    }
}

#[test]
fn lanes_by_number() {
    let setup = || {
        let mut registers = Registers::new();
        registers.v[1] = std::array::from_fn(|lane| 10 * lane as u32);
        registers
    };
    let mut registers = setup();
    registers.set(sgpr::EXEC, 0xff00);
    run("v_readfirstlane_b32 s5, v1", &mut registers);
    assert_eq!(registers.s[5], 80, "the first lane that is on");
    registers.set(sgpr::EXEC, 0);
    run("v_readfirstlane_b32 s5, v1", &mut registers);
    assert_eq!(registers.s[5], 0, "lane 0 if none is on");
    registers.s[6] = 64 + 7;
    run("v_readlane_b32 s5, v1, s6", &mut registers);
    assert_eq!(registers.s[5], 70, "whatever is on; six bits count");
    run("v_readlane_b32 s5, v1, 63", &mut registers);
    assert_eq!(registers.s[5], 630);
    registers.s[7] = 4242;
    run("v_writelane_b32 v1, s7, 3", &mut registers);
    assert_eq!(
        [registers.v[1][2], registers.v[1][3], registers.v[1][4]],
        [20, 4242, 40]
    );
    let mut registers = setup();
    registers.v[2] = [7; 64];
    registers.set(sgpr::EXEC, 1 << 9);
    run("v_swap_b32 v1, v2", &mut registers);
    assert_eq!([registers.v[1][9], registers.v[2][9]], [7, 90]);
    assert_eq!([registers.v[1][8], registers.v[2][8]], [80, 7], "off");
}

#[test]
fn compares_write_masks_and_cmpx_exec() {
    let mut registers = Registers::new();
    registers.v[1] = std::array::from_fn(|lane| lane as u32);
    registers.set(sgpr::EXEC, 0xffff_0000_ffff_0000);
    registers.set(8, u64::MAX);
    run("v_cmp_gt_u32_e64 s[8:9], 24, v1", &mut registers);
    assert_eq!(registers.pair(8), 0xff_0000, "lanes that are off are 0");
    assert_eq!(registers.pair(sgpr::EXEC), 0xffff_0000_ffff_0000);
    run("v_cmpx_le_u32_e32 vcc, 20, v1", &mut registers);
    assert_eq!(registers.pair(sgpr::VCC), 0xffff_0000_fff0_0000);
    assert_eq!(registers.pair(sgpr::EXEC), 0xffff_0000_fff0_0000);
    let mut registers = Registers::new();
    registers.v[1] = [u32::MAX; 64];
    registers.v[2] = [1; 64];
    registers.set(sgpr::EXEC, 1);
    registers.set(sgpr::VCC, 3);
    run("v_addc_co_u32_e32 v0, vcc, v1, v2, vcc", &mut registers);
    assert_eq!(
        (registers.v[0][0], registers.pair(sgpr::VCC)),
        (1, 1),
        "the carry in is read before it is written"
    );
}

/// Returns v0 of lane 0 for an instruction on v1 and v2 in a mode.
fn in_mode(mode: u32, line: &str, a: u32, b: u32) -> u32 {
    let mut registers = Registers::new();
    registers.mode = Mode(mode);
    registers.v[1] = [a; 64];
    registers.v[2] = [b; 64];
    run(line, &mut registers);
    registers.v[0][0]
}

#[test]
fn mode_rounds_and_flushes() {
    // 1 + 2^-24 is a tie of f32.
    let tie = 0x3380_0000;
    for (mode, want) in [
        (0xf0, ONE),
        (0xf1, ONE + 1),
        (0xf2, ONE),
        (0xf3, ONE),
        (0xf5, ONE + 1),
        (0xf4, ONE),
    ] {
        assert_eq!(
            in_mode(mode, "v_add_f32_e32 v0, v1, v2", ONE, tie),
            want,
            "mode {mode:x}"
        );
    }
    for (mode, want) in [
        (0xf0, 0xbf80_0000),
        (0xf1, 0xbf80_0000),
        (0xf2, 0xbf80_0001),
        (0xf3, 0xbf80_0000),
    ] {
        let got = in_mode(mode, "v_sub_f32_e64 v0, -v1, v2", ONE, tie);
        assert_eq!(got, want, "mode {mode:x}");
    }
    // 1/3 as f16 from f32: 0x3555 below, 0x3556 above
    for (mode, want) in [
        (0xf0, 0x3555),
        (0xf4, 0x3556),
        (0xf8, 0x3555),
        (0xfc, 0x3555),
        (0xf1, 0x3555),
    ] {
        assert_eq!(
            in_mode(mode, "v_cvt_f16_f32_e32 v0, v1", 0x3eaa_aaab, 0),
            want,
            "mode {mode:x}"
        );
    }
    // Overflow
    for (mode, want) in [
        (0xf0, 0x7f80_0000),
        (0xf1, 0x7f80_0000),
        (0xf2, 0x7f7f_ffff),
        (0xf3, 0x7f7f_ffff),
    ] {
        assert_eq!(
            in_mode(mode, "v_mul_f32_e32 v0, v1, v2", 0x7f7f_ffff, TWO),
            want,
            "mode {mode:x}"
        );
    }
    // Denormals of f32: bit 4 allows them as inputs, bit 5 as results
    let denormal = 0x8000_0001;
    for (mode, line, want) in [
        (0xf0, "v_mul_f32_e32 v0, 1.0, v1", denormal),
        (0xe0, "v_mul_f32_e32 v0, 1.0, v1", 0x8000_0000),
        (0xd0, "v_mul_f32_e32 v0, 1.0, v1", 0x8000_0000),
        (0xc0, "v_mul_f32_e32 v0, 1.0, v1", 0x8000_0000),
        (0xc0, "v_mov_b32_e32 v0, v1", denormal),
        (0x30, "v_mul_f32_e32 v0, 1.0, v1", denormal),
        (0xc0, "v_max_f32_e32 v0, v1, v1", 0x8000_0000),
    ] {
        assert_eq!(in_mode(mode, line, denormal, 0), want, "{line} in mode {mode:x}");
    }
    for (mode, want) in [(0xf0, 0x8001), (0xb0, 0x8000), (0x70, 0x8000), (0xc0, 0x8001)] {
        assert_eq!(
            in_mode(mode, "v_mul_f16_e32 v0, 1.0, v1", 0x8001, 0),
            want,
            "mode {mode:x}"
        );
    }
    // Half the smallest normal is denormal: mode 0xd0 flushes the result, 0xe0 does not, and its
    // normal input passes
    assert_eq!(in_mode(0xd0, "v_mul_f32_e32 v0, 0.5, v1", 0x0080_0000, 0), 0);
    assert_eq!(in_mode(0xe0, "v_mul_f32_e32 v0, 0.5, v1", 0x0080_0000, 0), 0x0040_0000);
}

#[test]
fn lanes_that_are_off_keep_everything() {
    let mut registers = Registers::new();
    registers.v[0] = [OLD; 64];
    registers.v[1] = [OLD; 64];
    registers.v[2] = [ONE; 64];
    registers.v[3] = [TWO; 64];
    registers.set(sgpr::EXEC, 0x8000_0000_0000_0001);
    for line in [
        "v_add_f32_e32 v0, v2, v3",
        "v_pk_add_f32 v[0:1], v[2:3], v[2:3]",
        "v_mul_f64 v[0:1], v[2:3], v[2:3]",
        "v_mov_b32_sdwa v0, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3",
        "v_add_f32_e64 v0, v2, v3 clamp",
    ] {
        let mut after = registers.clone();
        run(line, &mut after);
        assert!(after.v[0][1..63].iter().all(|&value| value == OLD), "{line}");
        assert!(after.v[1][1..63].iter().all(|&value| value == OLD), "{line}");
        assert_ne!(after.v[0][63], OLD, "{line}");
    }
}

#[test]
fn every_field_of_dpp_makes_a_difference() {
    let (code, constants) = decode(
        "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0x7 bank_mask:0xd bound_ctrl:0",
        None,
    )
    .unwrap();
    let Code::Valu(valu) = code else {
        panic!("a vector instruction")
    };
    let result = |dpp: Option<Dpp>| {
        let mut registers = Registers::new();
        registers.v[0] = [OLD; 64];
        registers.v[1] = std::array::from_fn(|lane| lane as u32);
        let changed = Valu { dpp, ..valu.clone() };
        execute(&Code::Valu(changed), constants.clone(), &mut registers);
        registers.v[0]
    };
    let dpp = valu.dpp.unwrap();
    let right = result(Some(dpp));
    let changes = [
        None,
        Some(Dpp { row_mask: 15, ..dpp }),
        Some(Dpp { bank_mask: 15, ..dpp }),
        Some(Dpp { zero: false, ..dpp }),
    ];
    for changed in changes {
        assert_ne!(result(changed), right, "{changed:?}");
    }
}
