//! The report of a launch, occupancy, and assembler texts.

use super::test;
use crate::{Kernel, report::Class};

#[test]
fn a_report_counts_what_was_done() {
    // Two workgroups of two waves; a loop of three iterations.
    let text = "v_lshlrev_b32_e32 v1, 2, v0\nv_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0\ns_mov_b32 s20, 3\n\
                v_mfma_f32_4x4x4_16b_f16 a[0:3], v[2:3], v[2:3], 0\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 -5\n\
                ds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\nglobal_load_dwordx2 v[4:5], v1, s[4:5]\ns_waitcnt vmcnt(0)\n\
                s_mov_b64 exec, 0xff\nglobal_store_dword v1, v4, s[6:7]";
    let mut test = test(text).lds(1024).lanes(128);
    test.grid = 2;
    let report = test.launch().unwrap_or_else(|fault| panic!("{fault}"));
    let waves = 4;
    assert_eq!((report.workgroups, report.waves), (2, waves));
    let expected = [
        (Class::Smem, 1),
        (Class::Valu, 3),
        (Class::Salu, 1 + 2 * 3 + 1),
        (Class::Mfma, 3),
        (Class::Lds, 1),
        (Class::Load, 1),
        (Class::Store, 1),
        (Class::Scratch, 0),
        // Waits, branches, barrier, end.
        (Class::Control, 3 + 3 + 1 + 1),
    ];
    for (class, count) in expected {
        assert_eq!(report.count(class), waves * count, "{class:?}");
    }
    assert_eq!(
        report.total(),
        waves * expected.iter().map(|(_, count)| count).sum::<u64>()
    );
    // 16 blocks of 4 by 4 by 4 multiply-adds.
    assert_eq!(report.mfma_operations, waves * 3 * 2 * 16 * 64);
    // Each wave reads eight dwords of arguments and eight bytes per lane; eight lanes store.
    assert_eq!(report.bytes_read, waves * (32 + 64 * 8));
    assert_eq!(report.bytes_written, waves * 8 * 4);
    assert_eq!(report.lds_bank_conflicts, 0);
    assert_eq!(
        (report.vgprs, report.agprs, report.sgprs, report.lds_bytes),
        (32, 8, 32, 1024)
    );
    assert_eq!(report.occupancy, 8);
}

#[test]
fn conflicts_of_a_column_are_counted() {
    // A stride of 128 bytes between lanes: all lanes hit one bank, in two turns of 32.
    let text = "v_lshlrev_b32_e32 v1, 7, v0\nds_write_b32 v1, v0\nds_write_b32 v1, v0 offset:4";
    let report = test(text).lds(8192).launch().unwrap();
    assert_eq!(report.lds_bank_conflicts, 2 * 2 * 31);
}

#[test]
fn occupancy_is_what_registers_and_lds_leave() {
    use crate::report::occupancy;
    // Waves per SIMD with 512 registers, in blocks of 8, at most 8.
    let by_registers = [
        (64, 8),
        (65, 7),
        (72, 7),
        (73, 6),
        (80, 6),
        (96, 5),
        (128, 4),
        (129, 3),
        (168, 3),
        (169, 2),
        (256, 2),
        (257, 1),
        (512, 1),
    ];
    for (registers, waves) in by_registers {
        assert_eq!(occupancy(registers, 32, 0, 4), waves, "{registers} registers");
    }
    assert_eq!(
        (occupancy(32, 100, 0, 4), occupancy(32, 102, 0, 4)),
        (8, 7),
        "scalar registers"
    );
    // Whole workgroups in the compute unit's 64 KiB; their waves are spread over four SIMDs.
    let by_lds = [
        (65536, 4, 1),
        (65536, 16, 4),
        (32768, 4, 2),
        (26112, 8, 4),
        (16384, 4, 4),
        (1024, 4, 8),
    ];
    for (lds, waves, occupied) in by_lds {
        assert_eq!(occupancy(32, 32, lds, waves), occupied, "{lds} bytes, {waves} waves");
    }
}

#[test]
fn texts_assemble_to_the_bytes_they_came_from() {
    let text = "s_load_dwordx4 s[4:7], s[0:1], 0x10\ns_waitcnt lgkmcnt(0)\nbuffer_load_dwordx4 v[4:7], v1, s[4:7], 0 offen offset:16\n\
                ds_swizzle_b32 v3, v2 offset:swizzle(BITMASK_PERM,\"01pip\")\nv_add_f32_dpp v1, v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf\n\
                v_add_u32_sdwa v1, v2, v3 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:DWORD\ns_cbranch_scc1 0\n\
                v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15] cbsz:2 abid:1\ns_endpgm";
    let kernel = Kernel::assembled(text, 0, 0).unwrap();
    assert!(kernel.texts().is_err(), "a[0:15] are more than the kernel's eight");
    let text = text.replace(
        "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15] cbsz:2 abid:1",
        "s_nop 0",
    );
    let kernel = Kernel::assembled(&text, 0, 0).unwrap();
    assert_eq!(kernel.reassemble(), Ok(()));
}
