//! Strict mode finds uses of uninitialised values, and reports nothing in the corrected kernels.

use super::{LANE, defect, test, uninitialised};

#[test]
fn addresses_and_stored_data_are_initialised() {
    let store = "global_store_dword v1, v2, s[4:5]";
    let both = "v_lshlrev_b32_e32 v1, 2, v0\nv_mov_b32_e32 v2, 7\n";
    let good = || test(&format!("{both}{store}"));
    defect(
        test(&format!("v_mov_b32_e32 v2, 7\n{store}")),
        store,
        &uninitialised(true, 1, 0),
        good(),
    );
    defect(
        test(&format!("v_lshlrev_b32_e32 v1, 2, v0\n{store}")),
        store,
        &uninitialised(true, 2, 0),
        good(),
    );
    // Only lanes 16 to 31 have data.
    let some = "v_lshlrev_b32_e32 v1, 2, v0\ns_mov_b64 exec, 0xffff0000\nv_mov_b32_e32 v2, 7\ns_mov_b64 exec, -1\n";
    defect(
        test(&format!("{some}{store}")),
        store,
        &uninitialised(true, 2, 0),
        good(),
    );
    // Arithmetic propagates the state.
    let copied = format!("v_lshlrev_b32_e32 v1, 2, v0\nv_add_u32_e32 v3, 1, v9\nv_mov_b32_e32 v2, v3\n{store}");
    defect(test(&copied), store, &uninitialised(true, 2, 0), good());
    // A selection has the state of the selected side only.
    let chosen = |side: &str| {
        let text = "v_lshlrev_b32_e32 v1, 2, v0\nv_mov_b32_e32 v3, 7\nv_cmp_eq_u32_e32 vcc, v0, v0\n";
        test(&format!("{text}v_cndmask_b32_e32 v2, {side}, vcc\n{store}"))
    };
    defect(chosen("v3, v9"), store, &uninitialised(true, 2, 0), chosen("v9, v3"));
    let scalar = "global_store_dword v1, v2, s[20:21]";
    let copy = "s_mov_b64 s[20:21], s[4:5]";
    defect(
        test(&format!("{both}{scalar}")),
        scalar,
        &uninitialised(false, 20, 0),
        test(&format!("{both}{copy}\n{scalar}")),
    );
}

#[test]
fn bits_that_do_not_decide_may_be_anything() {
    let store = "global_store_dword v1, v2, s[4:5]";
    let of = |text: &str| test(&format!("{LANE}{text}\nv_mov_b32_e32 v2, s24\n{store}"));
    let trap = uninitialised(true, 2, 0);
    for (op, decides, leaves) in [
        ("s_and_b32", 0, -1),
        ("s_or_b32", -1, 0),
        ("s_andn2_b32", -1, 0),
        ("s_orn2_b32", 0, -1),
        ("s_nor_b32", -1, 0),
    ] {
        let with = |mask: i32| of(&format!("{op} s24, s20, {mask}"));
        defect(with(leaves), store, &trap, with(decides));
    }
    let xor = |a: &str| of(&format!("s_mov_b32 s21, 5\ns_xor_b32 s24, {a}, s21"));
    defect(xor("s20"), store, &trap, xor("s21"));
}

#[test]
fn shifted_scalars_keep_the_state_of_each_bit() {
    let store = "global_store_dword v1, v2, s[4:5]";
    let of = |text: &str| test(&format!("{LANE}{text}\nv_mov_b32_e32 v2, s24\n{store}"));
    let trap = uninitialised(true, 2, 0);
    // s20 is initialised, s21 is not: the upper byte of s20 is the lowest byte of the shifted pair.
    let pair = "s_mov_b32 s20, 0x12345678\ns_lshr_b64 s[22:23], s[20:21], 24\n";
    let masked = |mask: u32| of(&format!("{pair}s_and_b32 s24, s22, {mask}"));
    defect(masked(0x1ff), store, &trap, masked(0xff));
    let field = |field: u32| of(&format!("{pair}s_bfe_i32 s24, s22, {field}"));
    defect(field(0x9_0000), store, &trap, field(0x8_0000));
    let byte = |shift: u32| of(&format!("{pair}s_lshr_b32 s23, s22, {shift}\ns_sext_i32_i8 s24, s23"));
    defect(byte(1), store, &trap, byte(0));
    // A left shift fills with known zeros; a sign extension is as unknown as the sign bit.
    let left = |amount: u32| of(&format!("{pair}s_lshl_b32 s24, s22, {amount}"));
    defect(left(23), store, &trap, left(24));
    let signed = |amount: u32| of(&format!("{pair}s_lshl_b32 s23, s22, {amount}\ns_ashr_i32 s24, s23, 31"));
    defect(signed(23), store, &trap, signed(24));
    // An unknown shift amount makes the whole result unknown.
    let by = |amount: &str| of(&format!("s_mov_b32 s20, 1\ns_lshr_b32 s24, s20, {amount}"));
    defect(by("s21"), store, &trap, by("s20"));
}

#[test]
fn halves_of_wide_results_come_from_halves_of_sources() {
    let set = "v_mov_b32_e32 v10, 3\n";
    let store = |row: &str| format!("global_store_dword v1, {row}, s[4:5]");
    let with = |text: &str, row: &str| test(&format!("{LANE}{set}{text}\n{}", store(row)));
    // v11 is uninitialised, and with it the high half of the pair.
    let sum = "v_mad_u64_u32 v[2:3], vcc, v0, 12, v[10:11]";
    defect(
        with(sum, "v3"),
        &store("v3"),
        &uninitialised(true, 3, 0),
        with(sum, "v2"),
    );
    let packed = "v_pk_add_f32 v[2:3], v[10:11], 1.0 op_sel_hi:[1,0]";
    defect(
        with(packed, "v3"),
        &store("v3"),
        &uninitialised(true, 3, 0),
        with(packed, "v2"),
    );
    // Only one f16 of four is stored: the one that the shift leaves in the low half.
    let four =
        "v_mov_b32_e32 v10, 0\nv_pack_b32_f16 v2, v10, v11\nv_mov_b32_e32 v3, v11\nv_lshrrev_b64 v[4:5], s20, v[2:3]";
    let short = "global_store_short v1, v4, s[4:5]";
    let shifted = |amount: u32| test(&format!("{LANE}s_mov_b32 s20, {amount}\n{four}\n{short}"));
    defect(shifted(16), short, &uninitialised(true, 4, 0), shifted(0));
    // A bf16 is widened, or a half extracted: the uninitialised other half is dropped.
    let half = "v_mov_b32_e32 v10, 0\nv_pack_b32_f16 v2, v10, v11\n";
    let cut = |how: &str| test(&format!("{LANE}{half}{how}\n{}", store("v5")));
    let widened = |amount: u32| cut(&format!("v_lshlrev_b32_e32 v5, {amount}, v2"));
    defect(widened(15), &store("v5"), &uninitialised(true, 5, 0), widened(16));
    let masked = |mask: u32| cut(&format!("v_and_b32_e32 v5, {mask:#x}, v2"));
    defect(
        masked(0x1_ffff),
        &store("v5"),
        &uninitialised(true, 5, 0),
        masked(0xffff),
    );
    let upper = "v_lshlrev_b32_sdwa v5, v12, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1";
    let (at, trap) = cut(&format!("v_mov_b32_e32 v12, 16\n{upper}"))
        .trap()
        .expect("the high half is shifted up");
    assert_eq!((at, trap), (store("v5"), uninitialised(true, 5, 0)));
    // A selected value that is converted from f16: only its low half matters.
    let half = "v_mov_b32_e32 v10, 0\nv_pack_b32_f16 v2, v10, v11\nv_cmp_eq_u32_e32 vcc, v0, v0\n";
    let converted = |from: &str| {
        let select = "v_cndmask_b32_e32 v4, v11, v2, vcc";
        test(&format!("{LANE}{half}{select}\nv_cvt_f32_f16{from}\n{}", store("v5")))
    };
    let high = "_sdwa v5, v4 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1";
    defect(
        converted(high),
        &store("v5"),
        &uninitialised(true, 5, 0),
        converted("_e32 v5, v4"),
    );
    let crossed = "v_pk_add_f32 v[2:3], v[10:11], 1.0 op_sel:[1,0] op_sel_hi:[0,0]";
    defect(
        with(crossed, "v2"),
        &store("v2"),
        &uninitialised(true, 2, 0),
        with(crossed, "v3"),
    );
}

/// Numbers of 8 and 16 bits that are packed into registers beside uninitialised ones, such as
/// padding.
#[test]
fn packed_numbers_keep_their_own_state() {
    // v10 and v12 are initialised, v11 is not.
    let set = format!("{LANE}v_mov_b32_e32 v10, 3\nv_mov_b32_e32 v12, 5\nv_mov_b32_e32 v13, 0\n");
    let with = |text: &str, store: &str| test(&format!("{set}{text}\n{store}"));
    let [byte, short, dword] = ["byte", "short", "dword"].map(|width| format!("global_store_{width} v1, v2, s[4:5]"));
    let trap = uninitialised(true, 2, 0);
    // The high halves of two floats are packed, then a mask selects one of them.
    let halves = "s_mov_b32 s20, 0x7060302\nv_perm_b32 v3, v11, v10, s20\nv_cmp_eq_u32_e32 vcc, ";
    let half = |condition: &str| {
        let select =
            "v_cndmask_b32_sdwa v2, v3, v3, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1";
        with(&format!("{halves}{condition}\n{select}"), &short)
    };
    defect(half("v0, v0"), &short, &trap, half("v10, v12"));
    defect(
        with("v_mov_b32_e32 v2, v11", &short),
        &short,
        &trap,
        with("v_mov_b32_e32 v2, v10", &short),
    );
    // The selector must be initialised.
    let by = |selector: &str| with(&format!("v_perm_b32 v2, v10, v12, {selector}"), &short);
    defect(by("v11"), &short, &trap, by("v13"));
    // Four bytes, of which the third is uninitialised.
    let pack = "v_lshl_or_b32 v4, v12, 8, v10\nv_lshlrev_b32_e32 v5, 16, v11\nv_and_b32_e32 v5, 0xff0000, v5\n\
                v_or_b32_e32 v4, v4, v5";
    let part = |text: &str, store: &str| with(&format!("{pack}\n{text}"), store);
    let shifted = |amount: u32| part(&format!("v_lshrrev_b32_e32 v2, {amount}, v4"), &byte);
    defect(shifted(16), &byte, &trap, shifted(8));
    defect(shifted(9), &byte, &trap, shifted(24));
    let field = |offset: u32| part(&format!("v_bfe_u32 v2, v4, {offset}, 8"), &dword);
    defect(field(9), &dword, &trap, field(8));
    let pair = |amount: u32| part(&format!("v_alignbit_b32 v2, v12, v4, {amount}"), &short);
    defect(pair(16), &short, &trap, pair(24));
    let of = |store: &str| part("v_mov_b32_e32 v2, v4", store);
    defect(of(&dword), &dword, &trap, of(&short));
    // Private memory keeps the state of each byte.
    let spilled = |load: &str, store: &str| {
        let spill = format!("scratch_store_dword off, v4, off offset:4\n{load}\ns_waitcnt vmcnt(0)");
        part(&spill, store).scratch(16)
    };
    let one = |at: u32| spilled(&format!("scratch_load_sbyte v2, off, off offset:{at}"), &dword);
    defect(one(6), &dword, &trap, one(7));
    let two = |store: &str| spilled("scratch_load_dword v2, off, off offset:4", store);
    defect(two(&dword), &dword, &trap, two(&short));
}

#[test]
fn conditions_and_exec_are_initialised() {
    let branch = "s_cbranch_scc1 0";
    defect(
        test(branch),
        branch,
        &uninitialised(false, 253, 0),
        test(&format!("s_cmp_eq_u32 s4, s5\n{branch}")),
    );
    let vccz = "s_cbranch_vccz 0";
    defect(
        test(vccz),
        vccz,
        &uninitialised(false, 106, 0),
        test(&format!("v_cmp_eq_u32_e32 vcc, 0, v0\n{vccz}")),
    );
    let of_nothing = test(&format!("v_cmp_eq_u32_e32 vcc, 0, v7\n{vccz}"));
    defect(of_nothing, vccz, &uninitialised(false, 106, 0), test("s_nop 0"));
    let exec = "s_mov_b64 exec, s[20:21]";
    defect(
        test(exec),
        exec,
        &uninitialised(false, 126, 0),
        test(&format!("s_mov_b64 s[20:21], -1\n{exec}")),
    );
    // The upper lanes are off, so the mask's uninitialised bits for them do not matter.
    let lower = |words: &str| {
        test(&format!(
            "s_mov_b64 exec, 0xffff\n{words}\ns_and_saveexec_b64 s[22:23], s[20:21]"
        ))
    };
    let save = "s_and_saveexec_b64 s[22:23], s[20:21]";
    defect(
        lower("s_mov_b32 s21, 0"),
        save,
        &uninitialised(false, 20, 0),
        lower("s_mov_b32 s20, 0"),
    );
    defect(
        test(save),
        save,
        &uninitialised(false, 20, 0),
        test(&format!("s_mov_b64 s[20:21], -1\n{save}")),
    );
    // The condition code and the destination are sources, too.
    let cases = [
        ("s_cselect_b32 s20, s4, s5", "s_cmp_eq_u32 s4, s5"),
        ("s_addc_u32 s20, s4, s5", "s_add_u32 s4, s4, s5"),
        ("s_bitset1_b32 s20, 3", "s_mov_b32 s20, 0"),
        ("s_addk_i32 s20, 0x1", "s_mov_b32 s20, 0"),
    ];
    for (reads, defines) in cases {
        let with = |before: &str| test(&format!("{before}\n{reads}\ns_cmp_eq_u32 s20, 0\n{branch}"));
        defect(with("s_nop 0"), branch, &uninitialised(false, 253, 0), with(defines));
    }
    // AND with 0 is 0, whatever the other operand.
    let masked = "s_and_b32 s20, s21, 0\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc1 0";
    assert_eq!(test(masked).trap(), None);
}

#[test]
fn lds_and_private_memory_are_initialised() {
    let store = "global_store_dword v1, v3, s[4:5]";
    let read = |before: &str| {
        test(&format!(
            "{LANE}{before}\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\n{store}"
        ))
        .lds(256)
    };
    let write = "v_mov_b32_e32 v2, 7\nds_write_b32 v1, v2";
    defect(read("s_nop 0"), store, &uninitialised(true, 3, 0), read(write));
    // A store of half the bytes, and a store of uninitialised data.
    let short = "v_mov_b32_e32 v2, 7\nds_write_b16 v1, v2";
    defect(read(short), store, &uninitialised(true, 3, 0), read(write));
    defect(
        read("ds_write_b32 v1, v9"),
        store,
        &uninitialised(true, 3, 0),
        read(write),
    );
    let private = |before: &str| {
        let load = "scratch_load_dword v3, off, off offset:4\ns_waitcnt vmcnt(0)";
        test(&format!("{LANE}{before}\n{load}\n{store}")).scratch(16)
    };
    let spill = "v_mov_b32_e32 v2, 7\nscratch_store_dword off, v2, off offset:4";
    let elsewhere = "v_mov_b32_e32 v2, 7\nscratch_store_dword off, v2, off offset:8";
    defect(private(elsewhere), store, &uninitialised(true, 3, 0), private(spill));
    // A store of one half leaves the state of the other unchanged.
    let half = |at: u32| {
        let spill = format!("v_mov_b32_e32 v2, 7\nscratch_store_short off, v2, off offset:{at}");
        let load = "scratch_load_dword v2, off, off offset:4\ns_waitcnt vmcnt(0)\nv_cvt_f32_f16_e32 v3, v2";
        test(&format!("{LANE}{spill}\n{load}\n{store}")).scratch(16)
    };
    defect(half(6), store, &uninitialised(true, 3, 0), half(4));
    // Each register of a wide spill keeps its own state, wherever it is reloaded.
    let pair = |first: &str| format!("v_mov_b32_e32 v{first}, 7\nscratch_store_dwordx2 off, v[8:9], off offset:4");
    defect(
        private(&pair("9")),
        store,
        &uninitialised(true, 3, 0),
        private(&pair("8")),
    );
    // The same holds for wide accesses to LDS, whether the stores or the loads are combined.
    let wide = |moved: &str| {
        test(&format!(
            "{LANE}v_lshlrev_b32_e32 v4, 1, v1\n{moved}\ns_waitcnt lgkmcnt(0)\n{store}"
        ))
        .lds(512)
    };
    let written = |first: &str| {
        wide(&format!(
            "v_mov_b32_e32 v{first}, 7\nds_write_b64 v4, v[8:9]\nds_read_b32 v3, v4"
        ))
    };
    let read = |word: &str| {
        wide(&format!(
            "v_mov_b32_e32 v8, 7\nds_write_b32 v4, v8 offset:{word}\nds_read_b64 v[2:3], v4"
        ))
    };
    defect(written("9"), store, &uninitialised(true, 3, 0), written("8"));
    defect(read("0"), store, &uninitialised(true, 3, 0), read("4"));
    // It also holds for each byte of a word: one half is written and both are read, or one half is
    // initialised and both are written.
    let f16_of = |moved: &str| {
        test(&format!(
            "{LANE}v_mov_b32_e32 v10, 0\n{moved}\ns_waitcnt lgkmcnt(0)\nv_cvt_f32_f16_e32 v3, v2\n{store}"
        ))
        .lds(256)
    };
    let half_written = |at: u32| f16_of(&format!("ds_write_b16 v1, v10 offset:{at}\nds_read_b32 v2, v1"));
    let half_known = |at: u32| {
        f16_of(&format!(
            "v_pack_b32_f16 v4, v10, v11\nds_write_b32 v1, v4\nds_read_u16 v2, v1 offset:{at}"
        ))
    };
    defect(half_written(2), store, &uninitialised(true, 3, 0), half_written(0));
    defect(half_known(2), store, &uninitialised(true, 3, 0), half_known(0));
}

#[test]
fn lanes_bring_their_state_along() {
    // Only lane 0 is initialised; all lanes read it, or their neighbour.
    let lane0 = "s_mov_b64 exec, 1\nv_mov_b32_e32 v2, 7\ns_mov_b64 exec, -1\n";
    let store = "global_store_dword v1, v3, s[4:5]";
    let from = |how: &str| test(&format!("{LANE}{lane0}{how}\n{store}"));
    let neighbour = "ds_swizzle_b32 v3, v2 offset:swizzle(QUAD_PERM,1,0,3,2)\ns_waitcnt lgkmcnt(0)";
    let first = "v_readfirstlane_b32 s20, v2\nv_mov_b32_e32 v3, s20";
    defect(from(neighbour), store, &uninitialised(true, 3, 0), from(first));
    let broadcast = "v_mov_b32_e32 v4, 0\nds_bpermute_b32 v3, v4, v2\ns_waitcnt lgkmcnt(0)";
    let second = "v_mov_b32_e32 v4, 4\nds_bpermute_b32 v3, v4, v2\ns_waitcnt lgkmcnt(0)";
    defect(from(second), store, &uninitialised(true, 3, 0), from(broadcast));
    let dpp = "v_mov_b32_dpp v3, v2 quad_perm:[1,1,1,1] row_mask:0xf bank_mask:0xf";
    defect(from(dpp), store, &uninitialised(true, 3, 0), from(first));
    // Lanes without a source, or outside the row mask, keep their old value and state.
    let shifted = "v_mov_b32_dpp v3, v4 row_shr:1 row_mask:0xf bank_mask:0xf";
    let rows = "v_mov_b32_dpp v3, v4 quad_perm:[0,0,0,0] row_mask:0x5 bank_mask:0xf";
    for (partly, lane) in [(shifted, 0), (rows, 16)] {
        let moved = |before: &str| from(&format!("v_mov_b32_e32 v4, 7\n{before}\n{partly}"));
        let initialised = moved("v_mov_b32_e32 v3, 0");
        defect(moved("s_nop 0"), store, &uninitialised(true, 3, lane), initialised);
    }
    let zeros = shifted.replace("bank_mask:0xf", "bank_mask:0xf bound_ctrl:0");
    assert_eq!(from(&format!("v_mov_b32_e32 v4, 7\n{zeros}")).trap(), None);
    let lane5 = "v_readlane_b32 s20, v2, 5\nv_mov_b32_e32 v3, s20";
    defect(
        from(lane5),
        store,
        &uninitialised(true, 3, 0),
        from("v_readlane_b32 s20, v2, 0\nv_mov_b32_e32 v3, s20"),
    );
    let written = "v_writelane_b32 v3, s4, 9";
    defect(
        from(written),
        store,
        &uninitialised(true, 3, 0),
        from(&format!("v_mov_b32_e32 v3, 0\n{written}")),
    );
}
