//! Strict mode finds out-of-bounds accesses, races, missing waits and endless loops, and reports
//! nothing in the corrected kernels.

use super::{BUFFERS, LANE, Test, defect, test, uninitialised};
use crate::Trap;

#[test]
fn accesses_stay_in_allocations() {
    let bounds = |address, lane| Trap::Bounds {
        address,
        bytes: 4,
        lane,
    };
    // The buffer has 4096 bytes: with offset 3856, lane 60 is the first beyond its end.
    let access = |offset: u32, what: &str| test(&format!("{LANE}v_add_u32_e32 v1, {offset}, v1\n{what}"));
    let load = "global_load_dword v2, v1, s[4:5]";
    defect(
        access(3856, load),
        load,
        &bounds(BUFFERS + 4096, 60),
        access(3840, load),
    );
    let store = "global_store_dword v1, v0, s[4:5]";
    defect(
        access(3856, store),
        store,
        &bounds(BUFFERS + 4096, 60),
        access(3840, store),
    );
    let before = "global_load_dword v2, v1, s[4:5] offset:-4";
    defect(access(0, before), before, &bounds(BUFFERS - 4, 0), access(4, before));
    let flat = "flat_load_dword v2, v[4:5]";
    let address = |low: u32| test(&format!("v_mov_b32_e32 v4, {low}\nv_mov_b32_e32 v5, 1\n{flat}"));
    defect(address(4096), flat, &bounds(BUFFERS + 4096, 0), address(4092));
    // The kernel's arguments are 64 bytes.
    let scalar = "s_load_dword s20, s[0:1], 0x40";
    let trap = test(scalar).trap();
    assert!(
        matches!(trap, Some((_, Trap::Bounds { bytes: 4, lane: 0, .. }))),
        "{trap:?}"
    );
    let lds = |offset: u32| test(&format!("{LANE}ds_write_b32 v1, v0 offset:{offset}")).lds(512);
    let trap = Trap::Lds {
        offset: 512,
        bytes: 4,
        lane: 63,
    };
    defect(lds(260), "ds_write_b32 v1, v0 offset:260", &trap, lds(256));
    let private = |offset: u32| test(&format!("scratch_store_dword off, v0, off offset:{offset}")).scratch(16);
    let trap = Trap::Private {
        offset: 16,
        bytes: 4,
        lane: 0,
    };
    defect(
        private(16),
        "scratch_store_dword off, v0, off offset:16",
        &trap,
        private(12),
    );
}

#[test]
fn buffers_end_at_their_range_and_must_have_what_they_promise() {
    let raw = |records: u32, what: &str| {
        test(&format!(
            "{LANE}s_and_b32 s5, s5, 0xffff\ns_mov_b32 s6, {records}\ns_mov_b32 s7, 0x27000\n{what}"
        ))
    };
    let store = "buffer_store_dword v0, v1, s[4:7], 0 offen offset:3856";
    let trap = Trap::Bounds {
        address: BUFFERS + 4096,
        bytes: 4,
        lane: 60,
    };
    // A descriptor of 8192 bytes on a buffer of 4096 faults; with the right size, lanes beyond it
    // are dropped.
    defect(raw(8192, store), store, &trap, raw(4096, store));
    // Dropped data may be uninitialised; lane 16 is the first without initialised data.
    let sixteen = "s_mov_b64 exec, 0xffff\nv_mov_b32_e32 v3, 7\ns_mov_b64 exec, -1";
    let store = "buffer_store_dword v3, v1, s[4:7], 0 offen";
    let stored = |records| raw(records, &format!("{sixteen}\n{store}"));
    defect(stored(68), store, &uninitialised(true, 3, 16), stored(64));
    // An access that crosses the end of the range drops the registers beyond it: v3 of lane 15 is
    // dropped.
    let fifteen =
        "s_mov_b64 exec, 0x1ffff\nv_mov_b32_e32 v2, 7\ns_mov_b64 exec, 0x7fff\nv_mov_b32_e32 v3, 7\ns_mov_b64 exec, -1";
    let store = "buffer_store_dwordx2 v[2:3], v1, s[4:7], 0 offen";
    let stored = |records| raw(records, &format!("{fifteen}\n{store}"));
    defect(stored(68), store, &uninitialised(true, 3, 15), stored(64));
    let structured = "s_or_b32 s5, s5, 0x40000\nbuffer_load_dword v2, v1, s[4:7], 0 offen";
    assert!(matches!(raw(4096, structured).trap(), Some((_, Trap::Unsupported(_)))));
}

#[test]
fn lds_addresses_wrap() {
    let write = |before: i32| format!("v_add_u32_e32 v3, {before}, v1\nds_write_b32 v3, v0 offset:64");
    let text = |before: i32| test(&format!("{LANE}{}", write(before))).lds(256);
    assert_eq!(text(-64).trap(), None);
    assert!(matches!(text(-60).trap(), Some((_, Trap::Lds { .. }))));
    // A loop up to 0: the last address does not wrap, and is as far from the others as they are
    // from each other.
    let loops = |last: u32| {
        let body = "v_mov_b32_e32 v3, s20\nds_write_b32 v3, v0 offset:16\ns_add_u32 s20, s20, 8\ns_cmp_lg_u32 s20, 8";
        let load = "s_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v4, 0\nds_read_b32 v3, v4 offset:";
        let store = "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v3, s[4:5]";
        test(&format!(
            "{LANE}s_mov_b64 exec, 1\ns_mov_b32 s20, -16\n{body}\ns_cbranch_scc1 -6\n{load}{last}\n{store}"
        ))
        .lds(32)
    };
    for written in [0, 8, 16] {
        assert_eq!(loops(written).trap(), None, "offset {written}");
    }
    for other in [4, 12, 20, 24] {
        let (_, trap) = loops(other).trap().expect("nothing is there");
        assert_eq!(trap, uninitialised(true, 3, 0), "offset {other}");
    }
}

#[test]
fn waves_of_a_workgroup_do_not_race_in_lds() {
    let text = |barrier: &str| {
        let turn = "v_xor_b32_e32 v2, 0x100, v1\n";
        test(&format!(
            "{LANE}{turn}ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n{barrier}\nds_read_b32 v3, v2"
        ))
        .lds(512)
        .lanes(128)
    };
    // Wave 0 runs first: it has read the byte that wave 1 then writes.
    let race = |offset, other| Trap::Race { offset, lane: 0, other };
    let write = "ds_write_b32 v1, v0";
    defect(text("s_nop 0"), write, &race(256, Some(0)), text("s_barrier"));
    let store = |address: &str| test(&format!("{LANE}ds_write_b32 {address}, v0")).lds(512).lanes(128);
    let both = |what: &str| {
        let address = "v_and_b32_e32 v3, 63, v0\nv_lshlrev_b32_e32 v3, 2, v3";
        test(&format!("{address}\n{what}")).lds(512).lanes(128)
    };
    let write = "ds_write_b32 v3, v0";
    defect(both(write), write, &race(0, Some(0)), store("v1"));
    // Atomics of several waves do not race with each other, but do with loads.
    let read = "ds_read_b32 v4, v3";
    let sum = |between: &str| both(&format!("ds_add_u32 v3, v0\ns_waitcnt lgkmcnt(0)\n{between}\n{read}"));
    defect(sum("s_nop 0"), read, &race(0, None), sum("s_barrier"));
}

#[test]
fn loads_are_waited_for() {
    let missing = |vector, register| Trap::MissingWait { vector, register };
    let use3 = "v_add_u32_e32 v3, 1, v3";
    let with = |loads: &str, wait: &str| test(&format!("{LANE}{loads}\n{wait}\n{use3}")).lds(256);
    let v3 = missing(true, 3);
    let global = "global_load_dword v3, v1, s[4:5]";
    let other = "global_load_dword v4, v1, s[4:5]";
    let first = format!("{global}\n{other}");
    let second = format!("{other}\n{global}");
    defect(with(global, "s_nop 0"), use3, &v3, with(global, "s_waitcnt vmcnt(0)"));
    defect(
        with(global, "s_waitcnt lgkmcnt(0)"),
        use3,
        &v3,
        with(global, "s_waitcnt vmcnt(0)"),
    );
    // Loads return in order: vmcnt(1) covers the first of two.
    defect(
        with(&second, "s_waitcnt vmcnt(1)"),
        use3,
        &v3,
        with(&first, "s_waitcnt vmcnt(1)"),
    );
    // The counter saturates at 63: one more load waits until the first is done.
    let many = |others: usize| format!("{global}\n{}", vec![other; others].join("\n"));
    defect(with(&many(62), "s_nop 0"), use3, &v3, with(&many(63), "s_nop 0"));
    // A store counts too.
    let store = format!("{global}\nglobal_store_dword v1, v0, s[6:7]");
    defect(
        with(&store, "s_waitcnt vmcnt(2)"),
        use3,
        &v3,
        with(&store, "s_waitcnt vmcnt(1)"),
    );
    let write = "ds_write_b32 v1, v0\n";
    let lds = format!("{write}ds_read_b32 v3, v1");
    defect(
        with(&lds, "s_waitcnt vmcnt(0)"),
        use3,
        &v3,
        with(&lds, "s_waitcnt lgkmcnt(0)"),
    );
    let two = format!("{write}ds_read_b32 v3, v1\nds_read_b32 v4, v1");
    defect(
        with(&two, "s_waitcnt lgkmcnt(2)"),
        use3,
        &v3,
        with(&two, "s_waitcnt lgkmcnt(1)"),
    );
    // Scalar loads may overtake: with one outstanding, only a count of 0 guarantees anything.
    let mixed = format!("{write}ds_read_b32 v3, v1\ns_load_dword s20, s[0:1], 0x0");
    defect(
        with(&mixed, "s_waitcnt lgkmcnt(1)"),
        use3,
        &v3,
        with(&mixed, "s_waitcnt lgkmcnt(0)"),
    );
    // A flat load may come from LDS or memory, so it needs both counters.
    let flat = "v_mov_b32_e32 v4, 0\nv_mov_b32_e32 v5, 1\nflat_load_dword v3, v[4:5]";
    defect(
        with(flat, "s_waitcnt vmcnt(0)"),
        use3,
        &v3,
        with(flat, "s_waitcnt vmcnt(0) lgkmcnt(0)"),
    );
    // Overwriting the target of an outstanding load is a fault too; a second load into it is not.
    let again = "v_mov_b32_e32 v3, 0";
    let over = |wait: &str| test(&format!("{LANE}{global}\n{wait}\n{again}"));
    defect(over("s_nop 0"), again, &v3, over("s_waitcnt vmcnt(0)"));
    let halves = "global_load_short_d16 v3, v1, s[4:5]\nglobal_load_short_d16_hi v3, v1, s[4:5] offset:2";
    defect(
        with(halves, "s_waitcnt vmcnt(1)"),
        use3,
        &v3,
        with(halves, "s_waitcnt vmcnt(0)"),
    );
    let scalar = |wait: &str| test(&format!("s_load_dword s20, s[0:1], 0x0\n{wait}\ns_add_u32 s21, s20, 1"));
    defect(
        scalar("s_nop 0"),
        "s_add_u32 s21, s20, 1",
        &missing(false, 20),
        scalar("s_waitcnt lgkmcnt(0)"),
    );
}

#[test]
fn waves_meet_at_one_barrier_and_loops_end() {
    // Wave 1 (s20 not 0) takes the other barrier.
    let apart = "v_readfirstlane_b32 s20, v0\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc1 2\ns_barrier\ns_branch 1\ns_barrier";
    let together = "v_readfirstlane_b32 s20, v0\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc1 1\ns_nop 0\ns_barrier";
    let (at, trap) = test(apart).lanes(128).trap().expect("two barriers");
    assert_eq!(at, "s_barrier");
    assert!(matches!(trap, Trap::Barrier { other: 0, .. }), "{trap}");
    assert_eq!(test(together).lanes(128).trap(), None);
    // A barrier does not wait for a wave that has ended.
    let early = "v_readfirstlane_b32 s20, v0\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc1 1\ns_barrier\ns_nop 0";
    assert_eq!(test(early).lanes(128).trap(), None);
    let looped = |count: u32| {
        let text = format!("s_mov_b32 s20, {count}\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 -3");
        Test {
            limit: Some(1000),
            ..test(&text)
        }
    };
    let trap = Trap::Endless(1000);
    defect(looped(0), "s_cbranch_scc1 65533", &trap, looped(300));
    let trapped = test("s_trap 2").trap();
    assert_eq!(trapped, Some(("s_trap 2".to_owned(), Trap::Raised)));
}

#[test]
fn messages_say_where() {
    let mut test = test("global_store_dword v0, v9, s[4:5]").lanes(128);
    test.grid = 3;
    let message = test.launch().expect_err("v9 is uninitialised").to_string();
    assert_eq!(
        message,
        "test, workgroup [0, 0, 0], wave 0, `global_store_dword v0, v9, s[4:5]` at 0x100c: v9 is used uninitialised (lane 0)"
    );
}
