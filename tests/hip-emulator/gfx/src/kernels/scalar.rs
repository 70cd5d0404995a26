//! Scalar opcodes against a second model that uses wide integers and lists of bits; and mutants of
//! the table that the model must catch.

use std::collections::HashMap;

use super::test;
use crate::{
    decode::Decoder,
    inst::{Code, Program},
    scalar,
    table::{self, Op, ScalarFn, ScalarIn, ScalarOp},
    wave::Wave,
};

/// Returns the result and SCC of an opcode by the ISA; `None` where the opcode leaves them
/// unchanged.
fn model(name: &str, a: u64, b: u64, old: u64, scc: bool) -> (Option<u64>, Option<bool>) {
    let wide = name.ends_with("64") && !name.ends_with("saveexec_b64");
    let width: u32 = if wide || name.ends_with("saveexec_b64") { 64 } else { 32 };
    let mask = if width == 64 { u64::MAX } else { 0xffff_ffff };
    let (ua, ub) = (i128::from(a & mask), i128::from(b & mask));
    let signed = |value: u64| {
        if width == 64 {
            i128::from(value as i64)
        } else {
            i128::from(value as u32 as i32)
        }
    };
    let (sa, sb) = (signed(a), signed(b));
    let cut = |value: i128| value as u64 & mask;
    let bit = |value: u64, n: u32| value >> n & 1 == 1;
    let bits =
        |f: &dyn Fn(bool, bool) -> bool| (0..width).fold(0, |all, n| all | u64::from(f(bit(a, n), bit(b, n))) << n);
    let nonzero = |value: u64| (Some(value), Some(value != 0));
    let plain = |value: i128| (Some(value as u64), None);
    let compare = |yes: bool| (None, Some(yes));
    let count = |want: bool| (0..width).filter(|&n| bit(a, n) == want).count() as u64;
    let none = 0xffff_ffff;
    let find = |mut range: Box<dyn Iterator<Item = u32>>, f: &dyn Fn(u32) -> bool| {
        range.find(|&n| f(n)).map_or(none, i128::from)
    };
    let overflows = |value: i128| value != i128::from(value as i32);
    let unsigned_overflow = |value: i128| !(0..=0xffff_ffff).contains(&value);
    let carry = i128::from(scc);
    let stem = name
        .trim_start_matches("s_")
        .rsplit_once('_')
        .map_or(name, |(stem, _)| stem);
    let unsigned = name.ends_with("u32") || name.ends_with("u64") || name.ends_with("b64") || name.ends_with("b32");
    let (x, y) = if unsigned { (ua, ub) } else { (sa, sb) };
    let fields = |sign: bool| {
        let offset = (b & u64::from(width - 1)) as u32;
        let length = (b >> 16 & 0x7f) as u32;
        // Bits beyond the operand are copies of its sign, or 0.
        let at = |n: u32| {
            if n < width {
                bit(a, n)
            } else {
                sign && bit(a, width - 1)
            }
        };
        let length = length.min(width);
        (0..width).fold(0, |all, n| {
            let source = if n < length { n } else { length.wrapping_sub(1) };
            let on = length > 0 && (n < length || sign) && at(offset + source);
            all | u64::from(on) << n
        })
    };
    match stem {
        "mov" | "movk" => plain(if stem == "movk" { ub } else { ua }),
        "cmov" => plain(if scc { ua } else { i128::from(old & mask) }),
        "cmovk" => plain(if scc { ub } else { i128::from(old & mask) }),
        "not" => nonzero(bits(&|p, _| !p)),
        "brev" => plain((0..width).fold(0, |all, n| all | i128::from(bit(a, n)) << (width - 1 - n))),
        "bcnt0_i32" => nonzero(count(false)),
        "bcnt1_i32" => nonzero(count(true)),
        "ff0_i32" => plain(find(Box::new(0..width), &|n| !bit(a, n))),
        "ff1_i32" => plain(find(Box::new(0..width), &|n| bit(a, n))),
        "flbit_i32" if name.contains("_b") => plain(find(Box::new(0..width), &|n| bit(a, width - 1 - n))),
        "flbit" | "flbit_i32" => plain(find(Box::new(1..width), &|n| {
            bit(a, width - 1 - n) != bit(a, width - 1)
        })),
        "quadmask" | "wqm" => {
            let any = |n: u32| (0..4).any(|k| bit(a, 4 * n + k));
            let step = if stem == "wqm" { 4 } else { 1 };
            nonzero((0..width / 4 * step).fold(0, |all, n| all | u64::from(any(n / step)) << n))
        }
        "bitreplicate_b64" => plain((0..64).fold(0, |all, n| all | i128::from(bit(a, n / 2)) << n)),
        "sext_i32" => plain(if name.ends_with("i8") {
            i128::from(a as i8 as u32)
        } else {
            i128::from(a as i16 as u32)
        }),
        "bitset0" | "bitset1" => {
            let which = (a % u64::from(width)) as u32;
            let on = |n: u32| if n == which { stem == "bitset1" } else { bit(old, n) };
            plain((0..width).fold(0, |all, n| all | i128::from(on(n)) << n))
        }
        "abs" => nonzero(cut(sa.abs())),
        "add" if unsigned => (Some(cut(ua + ub)), Some(unsigned_overflow(ua + ub))),
        "sub" if unsigned => (Some(cut(ua - ub)), Some(unsigned_overflow(ua - ub))),
        "addc" => (Some(cut(ua + ub + carry)), Some(unsigned_overflow(ua + ub + carry))),
        "subb" => (Some(cut(ua - ub - carry)), Some(unsigned_overflow(ua - ub - carry))),
        "add" => (Some(cut(sa + sb)), Some(overflows(sa + sb))),
        "sub" => (Some(cut(sa - sb)), Some(overflows(sa - sb))),
        "addk" => {
            let sum = i128::from(old as u32 as i32) + sb;
            (Some(cut(sum)), Some(overflows(sum)))
        }
        "mulk" => plain(i128::from(cut(i128::from(old as u32 as i32) * sb))),
        "min" => (Some(cut(if x < y { x } else { y })), Some(x < y)),
        "max" => (Some(cut(if x > y { x } else { y })), Some(x > y)),
        "cselect" => plain(if scc { ua } else { ub }),
        "and" | "and_saveexec" => nonzero(bits(&|p, q| p && q)),
        "or" | "or_saveexec" => nonzero(bits(&|p, q| p || q)),
        "xor" | "xor_saveexec" => nonzero(bits(&|p, q| p != q)),
        "andn2" | "andn2_saveexec" => nonzero(bits(&|p, q| p && !q)),
        "orn2" | "orn2_saveexec" => nonzero(bits(&|p, q| p || !q)),
        "andn1_saveexec" => nonzero(bits(&|p, q| !p && q)),
        "orn1_saveexec" => nonzero(bits(&|p, q| !p || q)),
        "nand" | "nand_saveexec" => nonzero(bits(&|p, q| !(p && q))),
        "nor" | "nor_saveexec" => nonzero(bits(&|p, q| !(p || q))),
        "xnor" | "xnor_saveexec" => nonzero(bits(&|p, q| p == q)),
        "lshl" => nonzero(cut(ua << (b % u64::from(width)))),
        "lshr" => nonzero(cut(ua >> (b % u64::from(width)))),
        "ashr" => nonzero(cut(sa >> (b % u64::from(width)))),
        "bfm" => {
            let (length, start) = (a % u64::from(width), b % u64::from(width));
            let on = |n: u64| n >= start && n < start + length;
            plain((0..u64::from(width)).fold(0, |all, n| all | i128::from(on(n)) << n))
        }
        "mul" => plain(i128::from(cut(sa * sb))),
        "mul_hi" => plain(i128::from(cut((x * y) >> 32))),
        "bfe" => nonzero(fields(!unsigned)),
        // The difference wraps before its sign is tested.
        "absdiff" => nonzero(cut(i128::from((sa - sb) as i32).abs())),
        "lshl1_add" | "lshl2_add" | "lshl3_add" | "lshl4_add" => {
            let sum = (ua << (stem.as_bytes()[4] - b'0')) + ub;
            (Some(cut(sum)), Some(unsigned_overflow(sum)))
        }
        "pack_ll_b32" => plain(ua % 65536 + ub % 65536 * 65536),
        "pack_lh_b32" => plain(ua % 65536 + ub / 65536 * 65536),
        "pack_hh_b32" => plain(ua / 65536 + ub / 65536 * 65536),
        "cmp_eq" | "cmpk_eq" => compare(x == y),
        "cmp_lg" | "cmpk_lg" => compare(x != y),
        "cmp_gt" | "cmpk_gt" => compare(x > y),
        "cmp_ge" | "cmpk_ge" => compare(x >= y),
        "cmp_lt" | "cmpk_lt" => compare(x < y),
        "cmp_le" | "cmpk_le" => compare(x <= y),
        "bitcmp0" => compare(!bit(a, (b % u64::from(width)) as u32)),
        "bitcmp1" => compare(bit(a, (b % u64::from(width)) as u32)),
        _ => panic!("{name} has no model"),
    }
}

/// Edge values, fields and shift counts.
const VALUES: [u64; 18] = [
    0,
    1,
    2,
    7,
    31,
    32,
    63,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
    0x0123_4567_89ab_cdef,
    0x0008_0005,
    0x0040_0003,
    0xfedc_8000_0011_8018,
];

/// A line, the values of its operands, and the initial values of target and SCC.
struct Case<'a> {
    name: &'a str,
    op: ScalarOp,
    a: u64,
    b: u64,
    old: u64,
    scc: bool,
}

fn cases<'a>(name: &'a str, op: ScalarOp) -> impl Iterator<Item = Case<'a>> {
    let cut = |value: u64, bits: u8| match bits {
        0 => 0,
        32 => value & 0xffff_ffff,
        _ => value,
    };
    VALUES.into_iter().flat_map(move |a| {
        VALUES.into_iter().flat_map(move |b| {
            [(0x1111_2222_3333_4444, false), (!0x5a5a, true)].map(|(old, scc)| {
                let b = match op.immediate {
                    // The function gets 16-bit immediates extended.
                    Some(true) => cut(b as u16 as i16 as u64, 32),
                    Some(false) => b & 0xffff,
                    None => cut(b, op.b),
                };
                // s_cmpk compares its register; the other opcodes of this form read the register
                // that they write.
                let a = if op.immediate.is_some() && op.target == 0 {
                    cut(a, 32)
                } else {
                    cut(a, op.a)
                };
                let old = cut(old, op.target);
                Case {
                    name,
                    op,
                    a,
                    b,
                    old,
                    scc,
                }
            })
        })
    })
}

impl Case<'_> {
    fn line(&self) -> String {
        let register = |first: u8, bits: u8| match bits {
            32 => format!("s{first}"),
            _ => format!("s[{first}:{}]", first + 1),
        };
        let mut operands = Vec::new();
        if self.op.target != 0 || self.op.immediate.is_some() {
            operands.push(register(20, self.op.target.max(32)));
        }
        if self.op.a != 0 {
            operands.push(register(2, self.op.a));
        }
        match (self.op.b, self.op.immediate) {
            (0, _) => {}
            (_, Some(_)) => operands.push(format!("{:#x}", self.b & 0xffff)),
            (bits, None) => operands.push(register(4, bits)),
        }
        format!("{} {}", self.name, operands.join(", "))
    }

    /// Returns the target and SCC after the instruction; `function` replaces the table's.
    fn run(&self, function: Option<ScalarFn>) -> (u64, bool) {
        let mut decoder = Decoder::new(1, 0, HashMap::new());
        let (inst, _) = decoder.instruction(&self.line()).unwrap();
        let program = Program {
            insts: Vec::new(),
            uses: Vec::new(),
            texts: Vec::new(),
            addresses: Vec::new(),
            constants: Vec::new(),
            rows: 1,
        };
        let mut wave = Wave::new(&program, 0, 0);
        wave.set_pair(2, self.a);
        wave.set_pair(4, self.b);
        wave.set_pair(20, self.old);
        if self.op.target == 0 {
            wave.set_pair(20, self.a);
        }
        wave.scc = self.scc;
        let Code::Salu {
            function: own,
            target,
            wide,
            a,
            b,
            scc,
        } = inst.code
        else {
            panic!("{} is no scalar instruction", self.line());
        };
        scalar::salu(&mut wave, function.unwrap_or(own), target, wide, [a, b], scc);
        let target = wave.pair(20);
        (
            if self.op.target == 64 {
                target
            } else {
                target & 0xffff_ffff
            },
            wave.scc,
        )
    }

    fn expected(&self) -> (u64, bool) {
        let (value, scc) = model(self.name, self.a, self.b, self.old, self.scc);
        let before = if self.op.target == 0 { self.a } else { self.old };
        (
            value.unwrap_or(before) & if self.op.target == 64 { u64::MAX } else { 0xffff_ffff },
            scc.unwrap_or(self.scc),
        )
    }
}

fn scalar_ops() -> Vec<(&'static str, ScalarOp)> {
    let ops = table::all().filter_map(|entry| match entry.op {
        Op::Scalar(op) => Some((entry.name, op)),
        _ => None,
    });
    ops.collect()
}

#[test]
fn every_scalar_opcode_agrees_with_the_model() {
    let ops = scalar_ops();
    assert!(ops.len() > 110, "{} scalar opcodes", ops.len());
    for (name, op) in ops {
        for case in cases(name, op) {
            let (got, expected) = (case.run(None), case.expected());
            assert_eq!(
                got,
                expected,
                "{}, a {:#x}, b {:#x}, scc {}",
                case.line(),
                case.a,
                case.b,
                case.scc
            );
        }
    }
}

#[test]
fn saveexec_keeps_the_old_exec_and_combines() {
    for entry in table::all() {
        let Op::SaveExec(function) = entry.op else { continue };
        for a in VALUES {
            for b in VALUES {
                let (value, scc) = function(ScalarIn {
                    a,
                    b,
                    old: 0,
                    scc: false,
                });
                assert_eq!(
                    (Some(value), Some(scc)),
                    model(entry.name, a, b, 0, false),
                    "{}",
                    entry.name
                );
            }
        }
    }
    // EXEC is the second operand, the register the first; the old EXEC is saved.
    let text = "s_mov_b64 exec, 0xff\ns_mov_b64 s[20:21], 0xf0f\ns_andn2_saveexec_b64 s[22:23], s[20:21]\ns_mov_b64 s[24:25], exec\n\
                s_mov_b64 exec, 1\nv_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, s22\nv_mov_b32_e32 v3, s24\n\
                global_store_dwordx2 v1, v[2:3], s[6:7]";
    assert_eq!(test(text).words()[..2], [0xff, 0xf00]);
}

#[test]
fn mutants_of_scalar_opcodes_are_caught() {
    let ops = scalar_ops();
    let (mut caught, mut survivors) = (0, Vec::new());
    for &(name, op) in &ops {
        // Decoding the cases once is enough: a mutant changes only the function.
        let cases: Vec<Case<'_>> = cases(name, op).collect();
        let wrong = |function: ScalarFn| {
            cases.iter().any(|case| {
                let input = ScalarIn {
                    a: case.a,
                    b: case.b,
                    old: case.old,
                    scc: case.scc,
                };
                let (value, scc) = function(input);
                let (expected, flag) = model(name, case.a, case.b, case.old, case.scc);
                let mask = if op.target == 64 { u64::MAX } else { 0xffff_ffff };
                expected.is_some_and(|expected| (expected ^ value) & mask != 0) || flag.is_some_and(|flag| flag != scc)
            })
        };
        assert!(!wrong(op.function), "{name}");
        for &(other, mutant) in &ops {
            let shape = |op: ScalarOp| (op.target, op.a, op.b, op.immediate);
            if other != name && shape(op) == shape(mutant) && !same(op, mutant.function) {
                if wrong(mutant.function) {
                    caught += 1;
                } else {
                    survivors.push(format!("{name} as {other}"));
                }
            }
        }
    }
    println!("{caught} mutants caught, survivors: {survivors:?}");
    assert!(
        caught > 1000 && survivors.len() * 100 <= caught,
        "{} of {caught} survive: {survivors:?}",
        survivors.len()
    );
}

/// Returns true if a function equals the opcode's on random operands: such a mutant is equivalent.
fn same(op: ScalarOp, mutant: ScalarFn) -> bool {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let width = |bits: u8| if bits == 64 { u64::MAX } else { 0xffff_ffff };
    (0..2000).all(|round| {
        let mut value = |bits: u8| match (round % 4, bits) {
            (_, 0) if op.immediate.is_none() => 0,
            (0, _) => next() & 0x7f_003f,
            (1, _) => next() & 0xff,
            (2, _) => next() & 1,
            _ => next() & width(bits),
        };
        let input = ScalarIn {
            a: value(if op.immediate.is_some() { 32 } else { op.a }),
            b: if op.immediate == Some(false) {
                value(op.b) & 0xffff
            } else {
                value(op.b)
            },
            old: value(op.target.max(32)),
            scc: round % 3 == 0,
        };
        let (own, other) = ((op.function)(input), mutant(input));
        let value = op.target == 0 || (own.0 ^ other.0) & width(op.target) == 0;
        value && (own.1 == other.1 || !op.scc)
    })
}

#[test]
fn the_dispatch_packet_tells_the_sizes_of_the_launch() {
    let text = "s_load_dwordx4 s[8:11], s[2:3], 0x0\ns_load_dwordx4 s[12:15], s[0:1], 0x4\ns_waitcnt lgkmcnt(0)\n\
        v_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, s12\nv_mov_b32_e32 v3, s13\nv_mov_b32_e32 v4, s14\nv_mov_b32_e32 v5, s4\n\
        global_store_dwordx4 v1, v[2:5], s[10:11]\ns_endpgm";
    let test = super::Test {
        text: text.to_owned(),
        packet: true,
        grid: 2,
        ..test("").lanes(96)
    };
    // Lanes of a workgroup in x and y, and in z, all lanes in x; behind both addresses the last
    // workgroup's number.
    assert_eq!(test.words()[..4], [96 | 1 << 16, 1, 192, 1]);
}
