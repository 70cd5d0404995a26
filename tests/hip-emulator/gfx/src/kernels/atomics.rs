//! Atomics of device memory and LDS, against expected values computed here.

use super::{memory::START, test};
use std::collections::BTreeSet;

#[test]
fn atomics_of_device_memory_and_lds() {
    // Mnemonic without its prefix, LDS mnemonic, words, memory, operand, second operand, memory
    // afterwards.
    type Row = (&'static str, &'static str, usize, u64, u64, u64, u64);
    let f = |value: f32| u64::from(value.to_bits());
    let d = |value: f64| value.to_bits();
    let rows: &[Row] = &[
        ("swap", "wrxchg_rtn_b32", 1, 5, 9, 0, 9),
        ("cmpswap", "cmpst_rtn_b32", 1, 5, 9, 5, 9),
        ("cmpswap", "cmpst_rtn_b32", 1, 5, 9, 6, 5),
        ("add", "add_rtn_u32", 1, 0xffff_ffff, 3, 0, 2),
        ("sub", "sub_rtn_u32", 1, 1, 3, 0, 0xffff_fffe),
        ("smin", "min_rtn_i32", 1, 0xffff_fff0, 3, 0, 0xffff_fff0),
        ("smax", "max_rtn_i32", 1, 0xffff_fff0, 3, 0, 3),
        ("umin", "min_rtn_u32", 1, 0xffff_fff0, 3, 0, 3),
        ("umax", "max_rtn_u32", 1, 0xffff_fff0, 3, 0, 0xffff_fff0),
        ("and", "and_rtn_b32", 1, 0b1100, 0b1010, 0, 0b1000),
        ("or", "or_rtn_b32", 1, 0b1100, 0b1010, 0, 0b1110),
        ("xor", "xor_rtn_b32", 1, 0b1100, 0b1010, 0, 0b0110),
        ("inc", "inc_rtn_u32", 1, 6, 7, 0, 7),
        ("inc", "inc_rtn_u32", 1, 7, 7, 0, 0),
        ("dec", "dec_rtn_u32", 1, 7, 7, 0, 6),
        ("dec", "dec_rtn_u32", 1, 0, 7, 0, 7),
        ("dec", "dec_rtn_u32", 1, 9, 7, 0, 7),
        ("add_f32", "add_rtn_f32", 1, f(1.5), f(0.25), 0, f(1.75)),
        (
            "pk_add_f16",
            "pk_add_rtn_f16",
            1,
            0x3c00_4000,
            0x3c00_c200,
            0,
            0x4000_bc00,
        ),
        (
            "pk_add_bf16",
            "pk_add_rtn_bf16",
            1,
            0x3f80_4000,
            0x3f80_c040,
            0,
            0x4000_bf80,
        ),
        ("swap_x2", "wrxchg_rtn_b64", 2, 1 << 40, 9, 0, 9),
        ("cmpswap_x2", "cmpst_rtn_b64", 2, 1 << 40, 9, 1 << 40, 9),
        ("add_x2", "add_rtn_u64", 2, 0xffff_ffff, 3, 0, 0x1_0000_0002),
        ("sub_x2", "sub_rtn_u64", 2, 0, 1, 0, u64::MAX),
        ("smin_x2", "min_rtn_i64", 2, u64::MAX, 3, 0, u64::MAX),
        ("smax_x2", "max_rtn_i64", 2, u64::MAX, 3, 0, 3),
        ("umin_x2", "min_rtn_u64", 2, u64::MAX, 3, 0, 3),
        ("umax_x2", "max_rtn_u64", 2, u64::MAX, 3, 0, u64::MAX),
        ("and_x2", "and_rtn_b64", 2, 3 << 40, 1 << 40, 0, 1 << 40),
        ("or_x2", "or_rtn_b64", 2, 1 << 40, 1, 0, 1 << 40 | 1),
        ("xor_x2", "xor_rtn_b64", 2, 3 << 40, 1 << 40, 0, 2 << 40),
        ("inc_x2", "inc_rtn_u64", 2, 1 << 40, 1 << 40, 0, 0),
        ("dec_x2", "dec_rtn_u64", 2, 1 << 40, 1 << 41, 0, (1 << 40) - 1),
        ("add_f64", "add_rtn_f64", 2, d(1.5), d(-2.0), 0, d(-0.5)),
        ("min_f64", "min_rtn_f64", 2, d(1.5), d(-2.0), 0, d(-2.0)),
        ("max_f64", "max_rtn_f64", 2, d(1.5), d(-2.0), 0, d(1.5)),
    ];
    for &(name, lds, words, before, operand, second, after) in rows {
        let data = |first: u32| {
            if words == 2 {
                format!("v[{first}:{}]", first + 1)
            } else {
                format!("v{first}")
            }
        };
        let literal = |row: u32, value: u64| {
            format!(
                "v_mov_b32_e32 v{row}, {:#x}\nv_mov_b32_e32 v{}, {:#x}\n",
                value as u32,
                row + 1,
                value >> 32
            )
        };
        // The comparand follows the new value.
        let stride = if words == 2 { 2 } else { 1 };
        let setup = literal(12, operand) + &literal(12 + stride, second) + &literal(20, before);
        let both = if name.starts_with("cmpswap") {
            format!("v[12:{}]", 11 + 2 * words)
        } else {
            data(12)
        };
        let (old, wait) = (data(16), "s_waitcnt vmcnt(0) lgkmcnt(0)");
        let start = format!("{START}\n{setup}v_mov_b32_e32 v17, 0\nv_mov_b32_e32 v15, 0\n");
        let start = if words == 2 {
            start.replace("v_mov_b32_e32 v15, 0\n", "")
        } else {
            start
        };
        let finish = format!("{wait}\nglobal_store_dwordx4 v2, v[16:19], s[28:29]");
        let check = |text: &str, what: &str| {
            let words = test(text).lds(1024).words();
            let pair = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
            for lane in 0..64 {
                assert_eq!(
                    (pair(4 * lane), pair(4 * lane + 2)),
                    (before, after),
                    "{what}, lane {lane}"
                );
            }
        };
        let result = |load: &str| format!("{wait}\nv_mov_b32_e32 v19, 0\n{load}\n");
        let global = format!(
            "{start}global_store_dwordx2 v2, v[20:21], s[4:5]\n{wait}\nglobal_atomic_{name} {old}, v2, {both}, s[4:5] sc0\n{}{finish}",
            result("global_load_dwordx2 v[18:19], v2, s[4:5]").replace("v_mov_b32_e32 v19, 0\n", "")
        );
        check(&global, name);
        let second_first = if lds.contains("cmpst") {
            format!("{}, {}", data(12 + stride), data(12))
        } else {
            data(12)
        };
        let shared = format!(
            "{start}ds_write_b64 v2, v[20:21]\n{wait}\nds_{lds} {old}, v2, {second_first}\n{}{finish}",
            result("ds_read_b64 v[18:19], v2").replace("v_mov_b32_e32 v19, 0\n", "")
        );
        check(&shared, lds);
    }
}

#[test]
fn atomics_of_all_waves_add_up() {
    let mut test = test("v_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, 1\nglobal_atomic_add v1, v2, s[6:7]").lanes(256);
    (test.grid, test.threads) = (40, 4);
    assert_eq!(test.words()[0], 40 * 256);
}

#[test]
fn workgroups_begin_in_the_order_of_a_seed() {
    // Each workgroup stores the number of workgroups that started before it.
    let text = "v_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, 1\nglobal_atomic_add v3, v1, v2, s[4:5] sc0\ns_waitcnt vmcnt(0)\n\
                s_lshl_b32 s20, s2, 2\nv_mov_b32_e32 v4, s20\nglobal_store_dword v4, v3, s[6:7]";
    let positions = |grid: u32, order| {
        let mut test = test(text).lanes(1);
        (test.grid, test.order) = (grid, order);
        test.words()[..grid as usize].to_vec()
    };
    for grid in [1, 2, 12, 30, 64] {
        let by_number: Vec<u32> = (0..grid).collect();
        assert_eq!(positions(grid, None), by_number);
        let orders: BTreeSet<Vec<u32>> = (0..8).map(|seed| positions(grid, Some(seed))).collect();
        assert!(
            orders.len() >= grid.min(4) as usize,
            "{grid} workgroups have {orders:?}"
        );
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, by_number);
        }
    }
}
