//! Scalar arithmetic (SOP1, SOP2, SOPK, SOPC).

use super::entry::{Entry, Op, Rule, ScalarFn, ScalarIn, ScalarOp};

const fn op(name: &'static str, [target, a, b]: [u8; 3], scc: bool, function: ScalarFn) -> Entry {
    ruled(name, [target, a, b], scc, Rule::All, function)
}

const fn ruled(name: &'static str, [target, a, b]: [u8; 3], scc: bool, rule: Rule, function: ScalarFn) -> Entry {
    Entry {
        name,
        op: Op::Scalar(ScalarOp {
            target,
            a,
            b,
            scc,
            reads_scc: false,
            reads_target: false,
            immediate: None,
            rule,
            function,
        }),
    }
}

/// Returns the entry, marked as reading the condition code.
const fn reads_scc(mut entry: Entry) -> Entry {
    if let Op::Scalar(op) = &mut entry.op {
        op.reads_scc = true;
    }
    entry
}

/// Returns the entry, marked as reading its destination.
const fn reads_target(mut entry: Entry) -> Entry {
    if let Op::Scalar(op) = &mut entry.op {
        op.reads_target = true;
    }
    entry
}

/// SOPK: the second operand is a 16-bit immediate.
const fn immediate(name: &'static str, target: u8, scc: bool, signed: bool, function: ScalarFn) -> Entry {
    let op = ScalarOp {
        target,
        a: 0,
        b: 32,
        scc,
        reads_scc: false,
        reads_target: false,
        immediate: Some(signed),
        rule: Rule::All,
        function,
    };
    Entry {
        name,
        op: Op::Scalar(op),
    }
}

const fn save(name: &'static str, function: ScalarFn) -> Entry {
    Entry {
        name,
        op: Op::SaveExec(function),
    }
}

/// Returns a result whose condition code is "not zero".
const fn flag(value: u64) -> (u64, bool) {
    (value, value != 0)
}

const fn flag32(value: u32) -> (u64, bool) {
    flag(value as u64)
}

const fn add32(a: u32, b: u32, carry: bool) -> (u64, bool) {
    let sum = a as u64 + b as u64 + carry as u64;
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

const fn sub32(a: u32, b: u32, borrow: bool) -> (u64, bool) {
    let difference = (a as u64).wrapping_sub(b as u64).wrapping_sub(borrow as u64);
    (difference & 0xffff_ffff, difference >> 32 != 0)
}

/// Returns the position of the lowest one bit.
const fn first_one(a: u64) -> u64 {
    if a == 0 { 0xffff_ffff } else { a.trailing_zeros() as u64 }
}

/// Returns the number of zeros above the highest one of `bits` bits.
const fn zeros_before(a: u64, bits: u32) -> u64 {
    if a == 0 {
        0xffff_ffff
    } else {
        (a.leading_zeros() + bits - 64) as u64
    }
}

/// Returns the sum of a shifted number and another, and whether it exceeds 32 bits.
const fn shift_add(a: u64, b: u64, by: u32) -> (u64, bool) {
    let sum = (a << by) + b;
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

/// Returns one bit per four: set if any of them is.
fn quads(a: u64) -> u64 {
    (0..16).fold(0, |all, quad| all | u64::from(a >> (4 * quad) & 0xf != 0) << quad)
}

/// Repeats each of 16 bits four times.
fn spread(a: u64) -> u64 {
    (0..16).fold(0, |all, quad| all | ((a >> quad & 1) * 0xf) << (4 * quad))
}

/// Decodes a bit field: offset in bits 5:0 (4:0 for 32 bits), width in 22:16.
const fn field(b: u64, bits: u32) -> (u32, u32) {
    let width = (b >> 16) as u32 & 0x7f;
    (b as u32 & (bits - 1), if width > bits { bits } else { width })
}

const fn bfe_u(a: u64, b: u64, bits: u32) -> u64 {
    let (offset, width) = field(b, bits);
    if width == 0 {
        0
    } else {
        (a >> offset) & (u64::MAX >> (64 - width))
    }
}

const fn bfe_i(a: u64, b: u64, bits: u32) -> u64 {
    let (offset, width) = field(b, bits);
    if width == 0 {
        return 0;
    }
    // Bits above the operand are copies of its sign.
    let signed = if bits == 32 { a as u32 as i32 as i64 } else { a as i64 };
    let shifted = signed >> offset;
    let value = ((shifted << (64 - width)) >> (64 - width)) as u64;
    if bits == 32 { value & 0xffff_ffff } else { value }
}

macro_rules! u32s {
    (|$a:ident, $b:ident| $value:expr) => {
        |s: ScalarIn| {
            let ($a, $b) = (s.a as u32, s.b as u32);
            let _ = $b;
            $value
        }
    };
}

macro_rules! i32s {
    (|$a:ident, $b:ident| $value:expr) => {
        |s: ScalarIn| {
            let ($a, $b) = (s.a as i32, s.b as i32);
            $value
        }
    };
}

const W: [u8; 3] = [32, 32, 32];
const D: [u8; 3] = [64, 64, 64];
const W1: [u8; 3] = [32, 32, 0];
const D1: [u8; 3] = [64, 64, 0];
const C: [u8; 3] = [0, 32, 32];

pub(super) const OPS: &[Entry] = &[
    ruled("s_mov_b32", W1, false, Rule::Bits, |s| (s.a, false)),
    ruled("s_mov_b64", D1, false, Rule::Bits, |s| (s.a, false)),
    reads_scc(reads_target(op("s_cmov_b32", W1, false, |s| {
        (if s.scc { s.a } else { s.old }, false)
    }))),
    reads_scc(reads_target(op("s_cmov_b64", D1, false, |s| {
        (if s.scc { s.a } else { s.old }, false)
    }))),
    ruled("s_not_b32", W1, true, Rule::Bits, u32s!(|a, _b| flag32(!a))),
    ruled("s_not_b64", D1, true, Rule::Bits, |s| flag(!s.a)),
    op(
        "s_brev_b32",
        W1,
        false,
        u32s!(|a, _b| (u64::from(a.reverse_bits()), false)),
    ),
    op("s_brev_b64", D1, false, |s| (s.a.reverse_bits(), false)),
    op("s_bcnt0_i32_b32", W1, true, u32s!(|a, _b| flag32(a.count_zeros()))),
    op("s_bcnt1_i32_b32", W1, true, u32s!(|a, _b| flag32(a.count_ones()))),
    op("s_bcnt0_i32_b64", [32, 64, 0], true, |s| flag32(s.a.count_zeros())),
    op("s_bcnt1_i32_b64", [32, 64, 0], true, |s| flag32(s.a.count_ones())),
    op("s_ff1_i32_b32", W1, false, |s| (first_one(s.a), false)),
    op("s_ff1_i32_b64", [32, 64, 0], false, |s| (first_one(s.a), false)),
    op("s_flbit_i32_b32", W1, false, |s| (zeros_before(s.a, 32), false)),
    op("s_flbit_i32_b64", [32, 64, 0], false, |s| {
        (zeros_before(s.a, 64), false)
    }),
    op("s_ff0_i32_b32", W1, false, |s| (first_one(!s.a & 0xffff_ffff), false)),
    op("s_ff0_i32_b64", [32, 64, 0], false, |s| (first_one(!s.a), false)),
    // Counts leading bits that equal the sign, up to the first that differs from it.
    op(
        "s_flbit_i32",
        W1,
        false,
        u32s!(|a, _b| (zeros_before(((a ^ a << 1 | 1) >> 1).into(), 32), false)),
    ),
    op("s_flbit_i32_i64", [32, 64, 0], false, |s| {
        (zeros_before((s.a ^ s.a << 1 | 1) >> 1, 64), false)
    }),
    op("s_quadmask_b32", W1, true, |s| flag(quads(s.a & 0xffff_ffff))),
    op("s_quadmask_b64", D1, true, |s| flag(quads(s.a))),
    op("s_wqm_b32", W1, true, |s| flag(spread(quads(s.a & 0xffff_ffff)))),
    op("s_wqm_b64", D1, true, |s| flag(spread(quads(s.a)))),
    op("s_bitreplicate_b64_b32", [64, 32, 0], false, |s| {
        let bit = |n: u64| (s.a >> (n / 2) & 1) << n;
        ((0..64).fold(0, |all, n| all | bit(n)), false)
    }),
    reads_target(op("s_bitset0_b64", [64, 32, 0], false, |s| {
        (s.old & !(1 << (s.a & 63)), false)
    })),
    reads_target(op("s_bitset1_b64", [64, 32, 0], false, |s| {
        (s.old | 1 << (s.a & 63), false)
    })),
    ruled("s_sext_i32_i8", W1, false, Rule::Shift, |s| {
        (s.a as i8 as u32 as u64, false)
    }),
    ruled("s_sext_i32_i16", W1, false, Rule::Shift, |s| {
        (s.a as i16 as u32 as u64, false)
    }),
    reads_target(op("s_bitset0_b32", W1, false, |s| (s.old & !(1 << (s.a & 31)), false))),
    reads_target(op("s_bitset1_b32", W1, false, |s| (s.old | 1 << (s.a & 31), false))),
    op("s_abs_i32", W1, true, |s| flag32((s.a as i32).unsigned_abs())),
    op("s_add_u32", W, true, u32s!(|a, b| add32(a, b, false))),
    op("s_sub_u32", W, true, u32s!(|a, b| sub32(a, b, false))),
    reads_scc(op("s_addc_u32", W, true, |s| add32(s.a as u32, s.b as u32, s.scc))),
    reads_scc(op("s_subb_u32", W, true, |s| sub32(s.a as u32, s.b as u32, s.scc))),
    op(
        "s_add_i32",
        W,
        true,
        i32s!(|a, b| (u64::from(a.wrapping_add(b) as u32), a.overflowing_add(b).1)),
    ),
    op(
        "s_sub_i32",
        W,
        true,
        i32s!(|a, b| (u64::from(a.wrapping_sub(b) as u32), a.overflowing_sub(b).1)),
    ),
    op("s_min_i32", W, true, i32s!(|a, b| (u64::from(a.min(b) as u32), a < b))),
    op("s_max_i32", W, true, i32s!(|a, b| (u64::from(a.max(b) as u32), a > b))),
    op("s_min_u32", W, true, u32s!(|a, b| (u64::from(a.min(b)), a < b))),
    op("s_max_u32", W, true, u32s!(|a, b| (u64::from(a.max(b)), a > b))),
    reads_scc(op("s_cselect_b32", W, false, |s| {
        (if s.scc { s.a } else { s.b }, false)
    })),
    reads_scc(op("s_cselect_b64", D, false, |s| {
        (if s.scc { s.a } else { s.b }, false)
    })),
    ruled("s_and_b32", W, true, Rule::Bits, |s| flag(s.a & s.b)),
    ruled("s_and_b64", D, true, Rule::Bits, |s| flag(s.a & s.b)),
    ruled("s_or_b32", W, true, Rule::Bits, |s| flag(s.a | s.b)),
    ruled("s_or_b64", D, true, Rule::Bits, |s| flag(s.a | s.b)),
    ruled("s_xor_b32", W, true, Rule::Bits, |s| flag(s.a ^ s.b)),
    ruled("s_xor_b64", D, true, Rule::Bits, |s| flag(s.a ^ s.b)),
    ruled("s_andn2_b32", W, true, Rule::Bits, u32s!(|a, b| flag32(a & !b))),
    ruled("s_andn2_b64", D, true, Rule::Bits, |s| flag(s.a & !s.b)),
    ruled("s_orn2_b32", W, true, Rule::Bits, u32s!(|a, b| flag32(a | !b))),
    ruled("s_orn2_b64", D, true, Rule::Bits, |s| flag(s.a | !s.b)),
    ruled("s_nand_b32", W, true, Rule::Bits, u32s!(|a, b| flag32(!(a & b)))),
    ruled("s_nand_b64", D, true, Rule::Bits, |s| flag(!(s.a & s.b))),
    ruled("s_nor_b32", W, true, Rule::Bits, u32s!(|a, b| flag32(!(a | b)))),
    ruled("s_nor_b64", D, true, Rule::Bits, |s| flag(!(s.a | s.b))),
    ruled("s_xnor_b32", W, true, Rule::Bits, u32s!(|a, b| flag32(!(a ^ b)))),
    ruled("s_xnor_b64", D, true, Rule::Bits, |s| flag(!(s.a ^ s.b))),
    ruled("s_lshl_b32", W, true, Rule::Shift, u32s!(|a, b| flag32(a << (b & 31)))),
    ruled("s_lshl_b64", [64, 64, 32], true, Rule::Shift, |s| {
        flag(s.a << (s.b & 63))
    }),
    ruled("s_lshr_b32", W, true, Rule::Shift, u32s!(|a, b| flag32(a >> (b & 31)))),
    ruled("s_lshr_b64", [64, 64, 32], true, Rule::Shift, |s| {
        flag(s.a >> (s.b & 63))
    }),
    ruled(
        "s_ashr_i32",
        W,
        true,
        Rule::Shift,
        i32s!(|a, b| flag32((a >> (b & 31)) as u32)),
    ),
    ruled("s_ashr_i64", [64, 64, 32], true, Rule::Shift, |s| {
        flag(((s.a as i64) >> (s.b & 63)) as u64)
    }),
    op(
        "s_bfm_b32",
        W,
        false,
        u32s!(|a, b| (u64::from(((1_u32 << (a & 31)) - 1) << (b & 31)), false)),
    ),
    op("s_bfm_b64", [64, 32, 32], false, |s| {
        (((1_u64 << (s.a & 63)) - 1) << (s.b & 63), false)
    }),
    op(
        "s_mul_i32",
        W,
        false,
        u32s!(|a, b| (u64::from(a.wrapping_mul(b)), false)),
    ),
    op(
        "s_mul_hi_u32",
        W,
        false,
        u32s!(|a, b| ((u64::from(a) * u64::from(b)) >> 32, false)),
    ),
    op(
        "s_mul_hi_i32",
        W,
        false,
        i32s!(|a, b| (u64::from(((i64::from(a) * i64::from(b)) >> 32) as u32), false)),
    ),
    ruled("s_bfe_u32", W, true, Rule::Shift, |s| flag(bfe_u(s.a, s.b, 32))),
    ruled("s_bfe_i32", W, true, Rule::Shift, |s| flag(bfe_i(s.a, s.b, 32))),
    ruled("s_bfe_u64", [64, 64, 32], true, Rule::Shift, |s| {
        flag(bfe_u(s.a, s.b, 64))
    }),
    ruled("s_bfe_i64", [64, 64, 32], true, Rule::Shift, |s| {
        flag(bfe_i(s.a, s.b, 64))
    }),
    op(
        "s_absdiff_i32",
        W,
        true,
        i32s!(|a, b| flag32(a.wrapping_sub(b).unsigned_abs())),
    ),
    op("s_lshl1_add_u32", W, true, |s| shift_add(s.a, s.b, 1)),
    op("s_lshl2_add_u32", W, true, |s| shift_add(s.a, s.b, 2)),
    op("s_lshl3_add_u32", W, true, |s| shift_add(s.a, s.b, 3)),
    op("s_lshl4_add_u32", W, true, |s| shift_add(s.a, s.b, 4)),
    op("s_pack_ll_b32_b16", W, false, |s| {
        (s.a & 0xffff | (s.b & 0xffff) << 16, false)
    }),
    op("s_pack_lh_b32_b16", W, false, |s| {
        (s.a & 0xffff | s.b & 0xffff_0000, false)
    }),
    op("s_pack_hh_b32_b16", W, false, |s| {
        (s.a >> 16 & 0xffff | s.b & 0xffff_0000, false)
    }),
    // SOPK: the destination is also the first source, except for s_movk.
    immediate("s_movk_i32", 32, false, true, |s| (s.b, false)),
    reads_scc(reads_target(immediate("s_cmovk_i32", 32, false, true, |s| {
        (if s.scc { s.b } else { s.old }, false)
    }))),
    reads_target(immediate("s_addk_i32", 32, true, true, |s| {
        let (a, b) = (s.old as i32, s.b as i32);
        (u64::from(a.wrapping_add(b) as u32), a.overflowing_add(b).1)
    })),
    reads_target(immediate("s_mulk_i32", 32, false, true, |s| {
        (u64::from((s.old as u32).wrapping_mul(s.b as u32)), false)
    })),
    immediate("s_cmpk_eq_i32", 0, true, true, |s| (0, s.a as i32 == s.b as i32)),
    immediate("s_cmpk_lg_i32", 0, true, true, |s| (0, s.a as i32 != s.b as i32)),
    immediate("s_cmpk_gt_i32", 0, true, true, |s| (0, s.a as i32 > s.b as i32)),
    immediate("s_cmpk_ge_i32", 0, true, true, |s| (0, s.a as i32 >= s.b as i32)),
    immediate("s_cmpk_lt_i32", 0, true, true, |s| (0, (s.a as i32) < s.b as i32)),
    immediate("s_cmpk_le_i32", 0, true, true, |s| (0, s.a as i32 <= s.b as i32)),
    immediate("s_cmpk_eq_u32", 0, true, false, |s| (0, s.a == s.b)),
    immediate("s_cmpk_lg_u32", 0, true, false, |s| (0, s.a != s.b)),
    immediate("s_cmpk_gt_u32", 0, true, false, |s| (0, s.a > s.b)),
    immediate("s_cmpk_ge_u32", 0, true, false, |s| (0, s.a >= s.b)),
    immediate("s_cmpk_lt_u32", 0, true, false, |s| (0, s.a < s.b)),
    immediate("s_cmpk_le_u32", 0, true, false, |s| (0, s.a <= s.b)),
    op("s_cmp_eq_i32", C, true, |s| (0, s.a == s.b)),
    op("s_cmp_lg_i32", C, true, |s| (0, s.a != s.b)),
    op("s_cmp_gt_i32", C, true, i32s!(|a, b| (0, a > b))),
    op("s_cmp_ge_i32", C, true, i32s!(|a, b| (0, a >= b))),
    op("s_cmp_lt_i32", C, true, i32s!(|a, b| (0, a < b))),
    op("s_cmp_le_i32", C, true, i32s!(|a, b| (0, a <= b))),
    op("s_cmp_eq_u32", C, true, |s| (0, s.a == s.b)),
    op("s_cmp_lg_u32", C, true, |s| (0, s.a != s.b)),
    op("s_cmp_gt_u32", C, true, |s| (0, s.a > s.b)),
    op("s_cmp_ge_u32", C, true, |s| (0, s.a >= s.b)),
    op("s_cmp_lt_u32", C, true, |s| (0, s.a < s.b)),
    op("s_cmp_le_u32", C, true, |s| (0, s.a <= s.b)),
    op("s_cmp_eq_u64", [0, 64, 64], true, |s| (0, s.a == s.b)),
    op("s_cmp_lg_u64", [0, 64, 64], true, |s| (0, s.a != s.b)),
    op("s_bitcmp0_b32", C, true, |s| (0, s.a >> (s.b & 31) & 1 == 0)),
    op("s_bitcmp1_b32", C, true, |s| (0, s.a >> (s.b & 31) & 1 == 1)),
    op("s_bitcmp0_b64", [0, 64, 32], true, |s| (0, s.a >> (s.b & 63) & 1 == 0)),
    op("s_bitcmp1_b64", [0, 64, 32], true, |s| (0, s.a >> (s.b & 63) & 1 == 1)),
    // a: the operand, b: EXEC
    save("s_and_saveexec_b64", |s| flag(s.a & s.b)),
    save("s_or_saveexec_b64", |s| flag(s.a | s.b)),
    save("s_xor_saveexec_b64", |s| flag(s.a ^ s.b)),
    save("s_andn2_saveexec_b64", |s| flag(s.a & !s.b)),
    save("s_orn2_saveexec_b64", |s| flag(s.a | !s.b)),
    save("s_nand_saveexec_b64", |s| flag(!(s.a & s.b))),
    save("s_nor_saveexec_b64", |s| flag(!(s.a | s.b))),
    save("s_xnor_saveexec_b64", |s| flag(!(s.a ^ s.b))),
    save("s_andn1_saveexec_b64", |s| flag(!s.a & s.b)),
    save("s_orn1_saveexec_b64", |s| flag(!s.a | s.b)),
];
