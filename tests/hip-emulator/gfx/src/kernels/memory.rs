//! Loads and stores of every width and address form, against bytes computed here.

use std::sync::Mutex;

use super::{Arena, Test, test};
use crate::{Fault, Kernel, Launch, Trap};

/// Returns bytes without a pattern that an error could reproduce.
fn noise(count: usize) -> Vec<u8> {
    (0..count)
        .map(|n| (n * n * 31 + n * 7 + (n >> 8) * 13 + 5) as u8)
        .collect()
}

/// An addressing mode for byte offset `v1` of a kernel's first buffer: set-up code, then the
/// instruction's text before and after the data.
struct Form {
    name: &'static str,
    setup: &'static str,
    load: fn(&str, &str) -> String,
    store: fn(&str, &str) -> String,
}

/// `v[8:9]` is the address, `s[4:7]` a descriptor of 4096 bytes.
const FORMS: &[Form] = &[
    Form {
        name: "global, scalar base",
        setup: "",
        load: |suffix, data| format!("global_load_{suffix} {data}, v1, s[4:5] offset:8"),
        store: |suffix, data| format!("global_store_{suffix} v1, {data}, s[4:5] offset:8"),
    },
    Form {
        name: "global, vector address",
        setup: "v_mov_b32_e32 v8, v1\nv_mov_b32_e32 v9, 1",
        load: |suffix, data| format!("global_load_{suffix} {data}, v[8:9], off offset:8"),
        store: |suffix, data| format!("global_store_{suffix} v[8:9], {data}, off offset:8"),
    },
    Form {
        name: "flat",
        setup: "v_mov_b32_e32 v8, v1\nv_mov_b32_e32 v9, 1",
        load: |suffix, data| format!("flat_load_{suffix} {data}, v[8:9] offset:8"),
        store: |suffix, data| format!("flat_store_{suffix} v[8:9], {data} offset:8"),
    },
    Form {
        name: "buffer",
        setup: "s_mov_b32 s6, 0x1000\ns_mov_b32 s7, 0x27000\ns_mov_b32 s8, 4",
        load: |suffix, data| format!("buffer_load_{suffix} {data}, v1, s[4:7], s8 offen offset:4"),
        store: |suffix, data| format!("buffer_store_{suffix} {data}, v1, s[4:7], s8 offen offset:4"),
    },
];

/// Suffix, data register, and the expected value of a load, from the bytes and a register that held
/// `KEPT` before.
type Width = (&'static str, &'static str, usize, fn(&[u8]) -> u32);

const KEPT: u32 = 0x6b6b_5a5a;

fn short(b: &[u8]) -> u32 {
    u32::from(u16::from_le_bytes([b[0], b[1]]))
}

const NARROW: &[Width] = &[
    ("ubyte", "v12", 1, |b| u32::from(b[0])),
    ("sbyte", "v12", 1, |b| i32::from(b[0] as i8) as u32),
    ("ushort", "v12", 2, short),
    ("sshort", "v12", 2, |b| i32::from(short(b) as i16) as u32),
    ("short_d16", "v12", 2, |b| KEPT & 0xffff_0000 | short(b)),
    ("short_d16_hi", "v12", 2, |b| KEPT & 0xffff | short(b) << 16),
    ("ubyte_d16", "v12", 1, |b| KEPT & 0xffff_0000 | u32::from(b[0])),
    ("sbyte_d16_hi", "v12", 1, |b| {
        KEPT & 0xffff | (i32::from(b[0] as i8) as u32) << 16
    }),
];

const WIDE: &[(&str, &str, usize)] = &[
    ("dword", "v12", 4),
    ("dwordx2", "v[12:13]", 8),
    ("dwordx3", "v[12:14]", 12),
    ("dwordx4", "v[12:15]", 16),
];

/// Lane masks: all lanes, and some of them.
const MASKS: [u64; 2] = [u64::MAX, 0x8000_f00f_0bad_5555];

/// Runs `inner` under an EXEC mask.
fn under(mask: u64, inner: &str) -> String {
    format!(
        "s_mov_b32 exec_lo, {:#x}\ns_mov_b32 exec_hi, {:#x}\n{inner}\ns_mov_b64 exec, -1",
        mask as u32,
        mask >> 32
    )
}

/// Lane n uses offset 20 * n, which is aligned to a dword only; `v[12:15]` hold `KEPT`.
pub(super) const START: &str = "v_mul_u32_u24_e32 v1, 20, v0\nv_lshlrev_b32_e32 v2, 4, v0\nv_mov_b32_e32 v12, 0x6b6b5a5a\n\
                     v_mov_b32_e32 v13, v12\nv_mov_b32_e32 v14, v12\nv_mov_b32_e32 v15, v12\ns_mov_b64 s[28:29], s[6:7]";

#[test]
fn loads_of_every_width_and_form() {
    for form in FORMS {
        for mask in MASKS {
            let narrow = NARROW
                .iter()
                .map(|&(suffix, data, bytes, f)| (suffix, data, bytes, Some(f)));
            let wide = WIDE.iter().map(|&(suffix, data, bytes)| (suffix, data, bytes, None));
            for (suffix, data, bytes, convert) in narrow.chain(wide) {
                let load = under(mask, &(form.load)(suffix, data));
                let text = format!(
                    "{START}\n{}\n{load}\ns_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dwordx4 v2, v[12:15], s[28:29]",
                    form.setup
                );
                let source = noise(4096);
                let words = test(&text).buffers(vec![source.clone(), vec![0; 1024]]).words();
                for lane in 0..64 {
                    let at = &source[20 * lane + 8..][..bytes];
                    for word in 0..4 {
                        let expected = match convert {
                            _ if mask >> lane & 1 == 0 || 4 * word >= bytes => KEPT,
                            Some(convert) => convert(at),
                            None => u32::from_le_bytes(at[4 * word..][..4].try_into().unwrap()),
                        };
                        let got = words[4 * lane + word];
                        assert_eq!(got, expected, "{} {suffix}, lane {lane}, word {word}", form.name);
                    }
                }
            }
        }
    }
}

#[test]
fn stores_of_every_width_and_form() {
    const STORES: &[(&str, &str, usize, usize)] = &[
        ("byte", "v12", 1, 0),
        ("byte_d16_hi", "v12", 1, 2),
        ("short", "v12", 2, 0),
        ("short_d16_hi", "v12", 2, 2),
        ("dword", "v12", 4, 0),
        ("dwordx2", "v[12:13]", 8, 0),
        ("dwordx3", "v[12:14]", 12, 0),
        ("dwordx4", "v[12:15]", 16, 0),
    ];
    for form in FORMS {
        for mask in MASKS {
            for &(suffix, data, bytes, first) in STORES {
                let store = under(mask, &(form.store)(suffix, data));
                let text = format!(
                    "{START}\nglobal_load_dwordx4 v[12:15], v2, s[28:29]\ns_waitcnt vmcnt(0)\n{}\n{store}",
                    form.setup
                );
                let data = noise(1024);
                let mut test = test(&text).buffers(vec![vec![0xee; 4096], data.clone()]);
                test.launch().unwrap();
                let mut expected = vec![0xee; 4096];
                for lane in (0..64).filter(|lane| mask >> lane & 1 != 0) {
                    expected[20 * lane + 8..][..bytes].copy_from_slice(&data[16 * lane + first..][..bytes]);
                }
                assert!(test.buffers[0] == expected, "{} {suffix}", form.name);
            }
        }
    }
}

#[test]
fn lds_of_every_width() {
    // Copies 16 bytes per lane through LDS with each pair of widths.
    const COPIES: &[(&str, &str)] = &[
        ("ds_write_b128 v2, v[12:15]", "ds_read_b128 v[16:19], v2"),
        (
            "ds_write_b64 v2, v[12:13]\nds_write_b64 v2, v[14:15] offset:8",
            "ds_read2_b64 v[16:19], v2 offset1:1",
        ),
        (
            "ds_write2_b64 v2, v[12:13], v[14:15] offset1:1",
            "ds_read_b96 v[16:18], v2\nds_read_b32 v19, v2 offset:12",
        ),
        (
            "ds_write_b96 v2, v[12:14]\nds_write_b32 v2, v15 offset:12",
            "ds_read2_b32 v[16:17], v2 offset1:1\nds_read2_b32 v[18:19], v2 offset0:2 offset1:3",
        ),
        (
            "ds_write2_b32 v2, v12, v13 offset1:1\nds_write_b16 v2, v14 offset:8\nds_write_b16_d16_hi v2, v14 offset:10\nds_write_b8 v2, v15 offset:12\n\
             v_lshrrev_b32_e32 v3, 8, v15\nds_write_b8 v2, v3 offset:13\nds_write_b8_d16_hi v2, v15 offset:14\nv_lshrrev_b32_e32 v3, 24, v15\nds_write_b8 v2, v3 offset:15",
            "ds_read_b64 v[16:17], v2\nds_read_u16 v18, v2 offset:8\nds_read_u16_d16_hi v18, v2 offset:10\nds_read_b32 v19, v2 offset:12",
        ),
        // Four rows of 1024 bytes; each lane has a dword in every row.
        (
            "v_lshlrev_b32_e32 v3, 2, v0\nds_write2st64_b32 v3, v12, v13 offset1:4\nds_write2st64_b32 v3, v14, v15 offset0:8 offset1:12",
            "ds_read2st64_b32 v[16:17], v3 offset1:4\nds_read2st64_b32 v[18:19], v3 offset0:8 offset1:12",
        ),
    ];
    for &(write, read) in COPIES {
        for mask in MASKS {
            let middle = under(
                mask,
                &format!("{write}\ns_waitcnt lgkmcnt(0)\n{read}\ns_waitcnt lgkmcnt(0)"),
            );
            let text = format!(
                "{START}\nglobal_load_dwordx4 v[12:15], v2, s[4:5]\nv_mov_b32_e32 v16, 0\nv_mov_b32_e32 v17, 0\nv_mov_b32_e32 v18, 0\nv_mov_b32_e32 v19, 0\n\
                 s_waitcnt vmcnt(0)\n{middle}\nglobal_store_dwordx4 v2, v[16:19], s[28:29]"
            );
            let source = noise(1024);
            let mut test = test(&text).lds(4096).buffers(vec![source.clone(), vec![1; 1024]]);
            test.launch().unwrap_or_else(|fault| panic!("{fault}"));
            for lane in 0..64 {
                let expected = if mask >> lane & 1 != 0 {
                    &source[16 * lane..][..16]
                } else {
                    &[0; 16]
                };
                assert_eq!(
                    &test.buffers[1][16 * lane..][..16],
                    expected,
                    "lane {lane}: {write} {read}"
                );
            }
        }
    }
    let signed = "v_mov_b32_e32 v3, 0xfffe8081\nds_write_b32 v2, v3\ns_waitcnt lgkmcnt(0)\nds_read_i8 v12, v2\nds_read_u8 v13, v2\nds_read_i16 v14, v2\nds_read_i8_d16 v15, v2\n\
                  s_waitcnt lgkmcnt(0)\nglobal_store_dwordx4 v2, v[12:15], s[28:29]";
    let words = test(&format!("{START}\n{signed}")).lds(1024).words();
    assert_eq!(words[..4], [0xffff_ff81, 0x81, 0xffff_8081, 0x6b6b_ff81]);
}

/// Stores `v3` of each lane.
const STORE: &str = "v_lshlrev_b32_e32 v1, 2, v0\nglobal_store_dword v1, v3, s[6:7]";

#[test]
fn lanes_exchange_through_lds_hardware() {
    let lanes = |text: &str| test(&format!("{text}\ns_waitcnt lgkmcnt(0)\n{STORE}")).words()[..64].to_vec();
    let each = |f: fn(u32) -> u32| (0..64).map(f).collect::<Vec<_>>();
    let reverse = "v_sub_u32_e32 v2, 63, v0\nv_lshlrev_b32_e32 v2, 2, v2\n";
    assert_eq!(lanes(&format!("{reverse}ds_bpermute_b32 v3, v2, v0")), each(|l| 63 - l));
    assert_eq!(lanes(&format!("{reverse}ds_permute_b32 v3, v2, v0")), each(|l| 63 - l));
    let rotate = "v_lshlrev_b32_e32 v2, 2, v0\n";
    assert_eq!(
        lanes(&format!("{rotate}ds_bpermute_b32 v3, v2, v0 offset:12")),
        each(|l| (l + 3) % 64)
    );
    assert_eq!(
        lanes(&format!("{rotate}ds_permute_b32 v3, v2, v0 offset:12")),
        each(|l| (l + 61) % 64)
    );
    let swizzle = |pattern: &str| lanes(&format!("ds_swizzle_b32 v3, v0 offset:{pattern}"));
    assert_eq!(
        swizzle("swizzle(QUAD_PERM,3,2,0,1)"),
        each(|l| l / 4 * 4 + [3, 2, 0, 1][l as usize % 4])
    );
    assert_eq!(swizzle("swizzle(SWAP,16)"), each(|l| l ^ 16));
    assert_eq!(swizzle("swizzle(REVERSE,8)"), each(|l| l / 8 * 8 + 7 - l % 8));
    assert_eq!(swizzle("swizzle(BROADCAST,32,5)"), each(|l| l / 32 * 32 + 5));
    assert_eq!(
        swizzle("swizzle(BITMASK_PERM,\"01pip\")"),
        each(|l| l / 32 * 32 + 8 + (l & 5 | !l & 2))
    );
    assert_eq!(swizzle("0x041f"), each(|l| l ^ 1));
}

#[test]
fn flat_addresses_lead_to_lds_and_private_memory() {
    // Even lanes address LDS, odd lanes private memory.
    let text = "s_mov_b64 s[20:21], src_shared_base\ns_mov_b64 s[22:23], src_private_base\nv_and_b32_e32 v2, 1, v0\nv_cmp_eq_u32_e32 vcc, 0, v2\n\
                v_mov_b32_e32 v4, s23\nv_mov_b32_e32 v5, s21\nv_cndmask_b32_e32 v9, v4, v5, vcc\nv_lshlrev_b32_e32 v3, 2, v0\nv_mov_b32_e32 v6, 4\n\
                v_cndmask_b32_e32 v8, v6, v3, vcc\nv_mul_u32_u24_e32 v7, 3, v0\nflat_store_dword v[8:9], v7\ns_waitcnt vmcnt(0) lgkmcnt(0)\n\
                flat_load_dword v3, v[8:9]\ns_waitcnt vmcnt(0) lgkmcnt(0)";
    let words = test(&format!("{text}\n{STORE}")).lds(256).scratch(16).words();
    assert!((0..64).all(|lane| words[lane] == 3 * lane as u32), "{words:?}");
    let shared = format!(
        "{text}\nv_lshlrev_b32_e32 v1, 2, v0\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\ns_mov_b32 exec_lo, 0x55555555\ns_mov_b32 exec_hi, exec_lo\n{STORE}"
    );
    let words = test(&shared).lds(256).scratch(16).words();
    assert!(
        (0..64).step_by(2).all(|lane| words[lane] == 3 * lane as u32),
        "{words:?}"
    );
}

#[test]
fn buffers_give_zero_beyond_their_range() {
    // 100 bytes: lane 24 is the last with a whole dword; with 8 bytes per lane, lane 12 has one
    // dword.
    let text = |what: &str, store: &str| {
        test(&format!(
            "v_lshlrev_b32_e32 v1, 2, v0\nv_lshlrev_b32_e32 v2, 3, v0\ns_mov_b64 s[28:29], s[6:7]\ns_movk_i32 s6, 100\ns_mov_b32 s7, 0x27000\n{what}\ns_waitcnt vmcnt(0)\n{store}"
        ))
    };
    let ones = || vec![vec![0xff; 4096], vec![7; 4096]];
    let words = text(
        "buffer_load_dword v3, v1, s[4:7], 0 offen",
        "global_store_dword v1, v3, s[28:29]",
    )
    .buffers(ones())
    .words();
    assert!((0..64).all(|lane| words[lane] == if lane < 25 { u32::MAX } else { 0 }));
    let words = text(
        "buffer_load_dwordx2 v[4:5], v2, s[4:7], 0 offen",
        "global_store_dwordx2 v2, v[4:5], s[28:29]",
    )
    .buffers(ones())
    .words();
    assert!((0..128).all(|word| words[word] == if word < 25 { u32::MAX } else { 0 }));
    let mut stored = text(
        "v_mov_b32_e32 v4, 1\nv_mov_b32_e32 v5, 2\nbuffer_store_dwordx2 v[4:5], v2, s[4:7], 0 offen",
        "s_nop 0",
    );
    stored.launch().unwrap();
    let words: Vec<u32> = stored.buffers[0]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b))
        .collect();
    assert!((0..128).all(|word| words[word] == if word < 25 { 1 + word as u32 % 2 } else { 0 }));
    // A scalar offset beyond the range leaves no byte in range.
    let words = text(
        "s_movk_i32 s8, 200\nbuffer_load_dword v3, v1, s[4:7], s8 offen",
        "global_store_dword v1, v3, s[28:29]",
    )
    .buffers(ones())
    .words();
    assert!(words[..64].iter().all(|&word| word == 0));
}

#[test]
fn scalar_loads_and_hardware_registers() {
    let store =
        "v_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, s20\nv_mov_b32_e32 v3, s21\nglobal_store_dwordx2 v1, v[2:3], s[28:29]";
    let with = |text: &str| {
        let bytes = (0..4096).map(|n| n as u8).collect();
        test(&format!(
            "s_mov_b64 s[28:29], s[6:7]\n{text}\ns_waitcnt lgkmcnt(0)\n{store}"
        ))
        .buffers(vec![bytes, vec![0; 64]])
        .words()[..2]
            .to_vec()
    };
    assert_eq!(
        with("s_load_dwordx2 s[20:21], s[4:5], 0x10"),
        [0x1312_1110, 0x1716_1514]
    );
    assert_eq!(
        with("s_mov_b32 s22, 4\ns_load_dwordx2 s[20:21], s[4:5], s22 offset:0x10"),
        [0x1716_1514, 0x1b1a_1918]
    );
    let buffer = "s_mov_b32 s6, 0x14\ns_mov_b32 s7, 0x27000\ns_buffer_load_dwordx2 s[20:21], s[4:7], 0x10";
    assert_eq!(with(buffer), [0x1312_1110, 0]);
    let mode = "s_getreg_b32 s20, hwreg(HW_REG_MODE, 4, 4)\ns_movk_i32 s21, 0";
    assert_eq!(with(mode), [0xf, 0]);
    let time = "s_memtime s[20:21]\ns_memtime s[22:23]\ns_waitcnt lgkmcnt(0)\ns_cmp_lg_u64 s[20:21], s[22:23]\ns_cselect_b32 s20, 1, 0\ns_mov_b32 s21, 0";
    assert_eq!(with(time), [1, 0]);
    // A jump beyond the reach of a branch: over the instruction that follows, and back.
    let jump = |distance: &str| {
        format!(
            "s_getpc_b64 s[22:23]\ns_add_u32 s22, s22, {distance}\ns_addc_u32 s23, s23, lit(0)\ns_setpc_b64 s[22:23]"
        )
    };
    let over = format!(
        "s_mov_b64 s[20:21], 5\n{}\ns_mov_b32 s20, 9\ns_add_u32 s21, s21, 7",
        jump("20")
    );
    assert_eq!(with(&over), [5, 7]);
    let nowhere = test(&jump("21")).trap().expect("no instruction");
    assert!(matches!(nowhere.1, Trap::Unsupported(_)), "{nowhere:?}");
    let loops = "s_getpc_b64 s[22:23]\ns_nop 0\ns_setpc_b64 s[22:23]";
    let mut endless = test(loops);
    endless.limit = Some(1000);
    assert_eq!(endless.trap().map(|(_, trap)| trap), Some(Trap::Endless(1000)));
}

#[test]
fn what_is_not_modelled_is_refused() {
    for text in [
        "buffer_load_format_x v2, v1, s[4:7], 0 offen",
        "ds_append v2",
        "s_swappc_b64 s[4:5], s[6:7]",
        "s_getreg_b32 s20, hwreg(HW_REG_HW_ID)",
    ] {
        let fault = test(text).launch().expect_err(text);
        assert!(fault.to_string().contains(text.split(' ').next().unwrap()), "{fault}");
    }
    for too_much in [
        test("s_nop 0").scratch(1 << 20),
        test("s_nop 0").lds(65537),
        test("s_nop 0").lanes(1025),
    ] {
        let mut too_much = too_much;
        assert!(matches!(too_much.launch(), Err(Fault::Launch { .. })));
    }
    let mut kernel = Kernel::assembled("s_endpgm", 0, 0).unwrap();
    kernel.required_workgroup = Some([32, 2, 1]);
    let launch = |grid, block| {
        let launch = Launch {
            kernel: &kernel,
            grid,
            block,
            dynamic_lds: 0,
            kernarg: &[],
            memory: &Arena(Mutex::default()),
            strict: true,
            threads: 1,
            order: None,
            limit: None,
            sample: None,
        };
        launch.run()
    };
    assert!(launch([2, 1, 1], [32, 2, 1]).is_ok());
    for (grid, block) in [([1; 3], [64, 1, 1]), ([u32::MAX; 3], [32, 2, 1])] {
        assert!(
            matches!(launch(grid, block), Err(Fault::Launch { .. })),
            "{grid:?} {block:?}"
        );
    }
    let unaligned = Test {
        strict: false,
        ..test("v_mov_b32_e32 v1, 2\nv_mov_b32_e32 v2, 1\nglobal_atomic_add v1, v2, s[6:7]")
    };
    assert!(matches!(unaligned.trap(), Some((_, Trap::Unsupported(_)))));
}
