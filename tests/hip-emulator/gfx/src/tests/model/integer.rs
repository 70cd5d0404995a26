//! Integers and bits.

use super::{
    Lane,
    Result::{self, Bits, Flag},
    s, u,
};

/// Returns the low `bits` bits of an exact integer; under clamp the nearest value of the signed or
/// unsigned range.
fn cut(exact: i128, bits: u32, signed: bool, clamp: bool) -> Result {
    let exact = match (clamp, signed) {
        (false, _) => exact,
        (true, false) => exact.clamp(0, (1 << bits) - 1),
        (true, true) => exact.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    };
    Bits((exact & ((1 << bits) - 1)) as u64)
}

/// Applies a function to each of two halves.
fn halves(lane: Lane, f: impl Fn(Lane) -> Result) -> Result {
    let of = |shift: u32| match f(Lane {
        s: lane.s.map(|v| v >> shift & 0xffff),
        ..lane
    }) {
        Bits(value) => value,
        other => panic!("{other:?} of a half"),
    };
    Bits(of(0) | of(16) << 16)
}

pub(super) fn result(name: &str, lane: Lane) -> Option<Result> {
    if let Some(rest) = name.strip_prefix("cmp_") {
        return compare(rest, lane);
    }
    if name == "pk_mov_b32" {
        return Some(Bits((lane.s[0] & 0xffff_ffff) | lane.s[1] << 32));
    }
    if let Some(rest) = name.strip_prefix("pk_") {
        let integer = rest.ends_with("16") && !rest.ends_with("f16");
        return integer.then(|| halves(lane, |half| short(rest, half).expect("a 16-bit operation")));
    }
    short(name, lane)
        .or_else(|| word(name, lane))
        .or_else(|| bytes(name, lane))
}

fn compare(name: &str, lane: Lane) -> Option<Result> {
    let (op, ty) = name.rsplit_once('_')?;
    let bits = match ty {
        "u16" | "i16" => 16,
        "u32" | "i32" => 32,
        "u64" | "i64" => 64,
        _ => return None,
    };
    let [a, b] = [lane.s[0], lane.s[1]].map(|v| if ty.starts_with('i') { s(v, bits) } else { u(v, bits) });
    let flag = match op {
        "f" => false,
        "lt" => a < b,
        "eq" => a == b,
        "le" => a <= b,
        "gt" => a > b,
        "ne" => a != b,
        "ge" => a >= b,
        "t" => true,
        _ => return None,
    };
    Some(Flag(0, flag))
}

/// Computes the 16-bit opcodes.
fn short(name: &str, lane: Lane) -> Option<Result> {
    let [a, b, c] = lane.s.map(|v| u(v, 16));
    let [x, y, z] = lane.s.map(|v| s(v, 16));
    let sorted = |mut v: [i128; 3]| {
        v.sort_unstable();
        v
    };
    let plain = |value| cut(value, 16, false, false);
    Some(match name {
        "add_u16" => cut(a + b, 16, false, lane.clamp),
        "sub_u16" => cut(a - b, 16, false, lane.clamp),
        "subrev_u16" => cut(b - a, 16, false, lane.clamp),
        "add_i16" => cut(x + y, 16, true, lane.clamp),
        "sub_i16" => cut(x - y, 16, true, lane.clamp),
        "mul_lo_u16" => plain(a * b),
        "mad_u16" | "mad_legacy_u16" => cut(a * b + c, 16, false, lane.clamp),
        "mad_i16" | "mad_legacy_i16" => cut(x * y + z, 16, true, lane.clamp),
        "min_u16" => plain(a.min(b)),
        "max_u16" => plain(a.max(b)),
        "min_i16" => plain(x.min(y)),
        "max_i16" => plain(x.max(y)),
        "min3_u16" => plain(sorted([a, b, c])[0]),
        "med3_u16" => plain(sorted([a, b, c])[1]),
        "max3_u16" => plain(sorted([a, b, c])[2]),
        "min3_i16" => plain(sorted([x, y, z])[0]),
        "med3_i16" => plain(sorted([x, y, z])[1]),
        "max3_i16" => plain(sorted([x, y, z])[2]),
        "lshlrev_b16" => plain(b << (a % 16)),
        "lshrrev_b16" => plain(b >> (a % 16)),
        "ashrrev_i16" => plain(y >> (a % 16)),
        _ => return None,
    })
}

fn word(name: &str, lane: Lane) -> Option<Result> {
    let [a, b, c] = lane.s.map(|v| u(v, 32));
    let [x, y, z] = lane.s.map(|v| s(v, 32));
    let [la, lb, lc] = lane.s.map(|v| u(v, 64));
    let [ha, hb] = [lane.s[0], lane.s[1]].map(|v| u(v, 24));
    let [hx, hy] = [lane.s[0], lane.s[1]].map(|v| s(v, 24));
    let plain = |value| cut(value, 32, false, false);
    let long = |value| cut(value, 64, false, false);
    let carry = i128::from(lane.mask);
    // Returns the low 32 bits, and whether the exact value is outside 32 unsigned bits.
    let flagged = |exact: i128| Flag((exact & 0xffff_ffff) as u64, !(0..1 << 32).contains(&exact));
    let sorted = |mut v: [i128; 3]| {
        v.sort_unstable();
        v
    };
    let bit = |value: i128, n: i128| value >> n & 1;
    // Builds a number bit by bit from a function of the position.
    let build = |f: &dyn Fn(i128) -> i128| plain((0..32).map(|n| f(n) << n).sum());
    Some(match name {
        "mov_b32" | "accvgpr_read_b32" | "accvgpr_write_b32" | "accvgpr_mov_b32" => plain(a),
        "mov_b64" => long(la),
        "not_b32" => build(&|n| 1 - bit(a, n)),
        "bfrev_b32" => build(&|n| bit(a, 31 - n)),
        "ffbh_u32" => plain((0..32).find(|n| bit(a, 31 - n) == 1).unwrap_or(-1)),
        "ffbl_b32" => plain((0..32).find(|&n| bit(a, n) == 1).unwrap_or(-1)),
        "ffbh_i32" => plain((0..32).find(|n| bit(a, 31 - n) != bit(a, 31)).unwrap_or(-1)),
        "bcnt_u32_b32" => plain((0..32).map(|n| bit(a, n)).sum::<i128>() + b),
        "mbcnt_lo_u32_b32" => plain((0..lane.number.min(32).into()).map(|n| bit(a, n)).sum::<i128>() + b),
        "mbcnt_hi_u32_b32" => plain(
            (0..lane.number.saturating_sub(32).into())
                .map(|n| bit(a, n))
                .sum::<i128>()
                + b,
        ),
        "add_u32" => cut(a + b, 32, false, lane.clamp),
        "sub_u32" => cut(a - b, 32, false, lane.clamp),
        "subrev_u32" => cut(b - a, 32, false, lane.clamp),
        "add_i32" => cut(x + y, 32, true, lane.clamp),
        "sub_i32" => cut(x - y, 32, true, lane.clamp),
        "add_co_u32" => flagged(a + b),
        "sub_co_u32" => flagged(a - b),
        "subrev_co_u32" => flagged(b - a),
        "addc_co_u32" => flagged(a + b + carry),
        "subb_co_u32" => flagged(a - b - carry),
        "subbrev_co_u32" => flagged(b - a - carry),
        "mul_lo_u32" => plain(a * b),
        "mul_hi_u32" => plain((a * b) >> 32),
        "mul_hi_i32" => plain((x * y) >> 32),
        "mul_u32_u24" => plain(ha * hb),
        "mul_i32_i24" => plain(hx * hy),
        "mul_hi_u32_u24" => plain((ha * hb) >> 32),
        "mul_hi_i32_i24" => plain((hx * hy) >> 32),
        "mad_u32_u24" => cut(ha * hb + c, 32, false, lane.clamp),
        "mad_i32_i24" => cut(hx * hy + z, 32, true, lane.clamp),
        "mad_u64_u32" => {
            let exact = a * b + lc;
            Flag(exact as u64, exact >> 64 != 0)
        }
        "mad_i64_i32" => {
            let exact = x * y + s(lane.s[2], 64);
            Flag(exact as u64, exact < 0)
        }
        "mad_u32_u16" => cut(u(lane.s[0], 16) * u(lane.s[1], 16) + c, 32, false, lane.clamp),
        "mad_i32_i16" => cut(s(lane.s[0], 16) * s(lane.s[1], 16) + z, 32, true, lane.clamp),
        "min_u32" => plain(a.min(b)),
        "max_u32" => plain(a.max(b)),
        "min_i32" => plain(x.min(y)),
        "max_i32" => plain(x.max(y)),
        "min3_u32" => plain(sorted([a, b, c])[0]),
        "med3_u32" => plain(sorted([a, b, c])[1]),
        "max3_u32" => plain(sorted([a, b, c])[2]),
        "min3_i32" => plain(sorted([x, y, z])[0]),
        "med3_i32" => plain(sorted([x, y, z])[1]),
        "max3_i32" => plain(sorted([x, y, z])[2]),
        "and_b32" => build(&|n| bit(a, n) * bit(b, n)),
        "or_b32" => build(&|n| bit(a, n).max(bit(b, n))),
        "xor_b32" => build(&|n| (bit(a, n) + bit(b, n)) % 2),
        "xnor_b32" => build(&|n| (bit(a, n) + bit(b, n) + 1) % 2),
        "and_or_b32" => build(&|n| (bit(a, n) * bit(b, n)).max(bit(c, n))),
        "or3_b32" => build(&|n| bit(a, n).max(bit(b, n)).max(bit(c, n))),
        "xad_u32" => plain((a ^ b) + c),
        "add3_u32" => plain(a + b + c),
        "lshl_add_u32" => plain((a << (b % 32)) + c),
        "add_lshl_u32" => plain((a + b) << (c % 32)),
        "lshl_or_b32" => plain(a << (b % 32) | c),
        "lshl_add_u64" => long((la << (b % 8)) + lc),
        "lshlrev_b32" => plain(b << (a % 32)),
        "lshrrev_b32" => plain(b >> (a % 32)),
        "ashrrev_i32" => plain(y >> (a % 32)),
        "lshlrev_b64" => long(lb << (a % 64)),
        "lshrrev_b64" => long(lb >> (a % 64)),
        "ashrrev_i64" => long(s(lane.s[1], 64) >> (a % 64)),
        "bfe_u32" => plain((a >> (b % 32)) % (1 << (c % 32))),
        "bfe_i32" => {
            let (offset, width) = (b % 32, (c % 32) as u32);
            // Bits above the register are copies of its sign.
            if width == 0 {
                plain(0)
            } else {
                plain(s((x >> offset) as u64, width))
            }
        }
        "bfi_b32" => build(&|n| if bit(a, n) == 1 { bit(b, n) } else { bit(c, n) }),
        "bfm_b32" => plain(((1 << (a % 32)) - 1) << (b % 32)),
        "alignbit_b32" => plain((a << 32 | b) >> (c % 32)),
        "alignbyte_b32" => plain((a << 32 | b) >> (c % 4 * 8)),
        "cndmask_b32" => plain(if lane.mask { b } else { a }),
        _ => return None,
    })
}

/// Computes the opcodes on fields: permutations, dot products, differences.
fn bytes(name: &str, lane: Lane) -> Option<Result> {
    let [a, b, c] = lane.s.map(|v| v as u32);
    let field = |v: u32, bits: u32, n: u32| u(u64::from(v) >> (bits * n), bits);
    let signed = |v: u32, bits: u32, n: u32| s(u64::from(v) >> (bits * n), bits);
    let dot = |bits: u32, sign: bool| {
        let of = |v, n| if sign { signed(v, bits, n) } else { field(v, bits, n) };
        let sum: i128 = (0..32 / bits).map(|n| of(a, n) * of(b, n)).sum();
        let c = if sign { s(c.into(), 32) } else { c.into() };
        cut(sum + c, 32, sign, lane.clamp)
    };
    let differences = |bits: u32, masked: bool| -> i128 {
        (0..32 / bits)
            .filter(|&n| !masked || field(b, bits, n) != 0)
            .map(|n| (field(a, bits, n) - field(b, bits, n)).abs())
            .sum()
    };
    Some(match name {
        "perm_b32" => {
            // Bytes 0..=3 belong to the second source, 4..=7 to the first.
            let all: Vec<u8> = b.to_le_bytes().into_iter().chain(a.to_le_bytes()).collect();
            let chosen = c.to_le_bytes().map(|selector| match selector {
                0..=7 => all[usize::from(selector)],
                8 => ((all[1] as i8) >> 7) as u8,
                9 => ((all[3] as i8) >> 7) as u8,
                10 => ((all[5] as i8) >> 7) as u8,
                11 => ((all[7] as i8) >> 7) as u8,
                12 => 0,
                _ => 0xff,
            });
            Bits(u32::from_le_bytes(chosen).into())
        }
        "sat_pk_u8_i16" => {
            let byte = |n| signed(a, 16, n).clamp(0, 255) as u64;
            Bits(byte(0) | byte(1) << 8)
        }
        "cvt_pk_u16_u32" => Bits(u64::from(a.min(65535)) | u64::from(b.min(65535)) << 16),
        "cvt_pk_i16_i32" => {
            let half = |v: u32| u64::from((v as i32).clamp(-32768, 32767) as u16);
            Bits(half(a) | half(b) << 16)
        }
        "pack_b32_f16" => Bits(u64::from(a & 0xffff) | u64::from(b & 0xffff) << 16),
        "dot2_i32_i16" | "dot2c_i32_i16" => dot(16, true),
        "dot2_u32_u16" => dot(16, false),
        "dot4_i32_i8" | "dot4c_i32_i8" => dot(8, true),
        "dot4_u32_u8" => dot(8, false),
        "dot8_i32_i4" | "dot8c_i32_i4" => dot(4, true),
        "dot8_u32_u4" => dot(4, false),
        "sad_u8" => cut(differences(8, false) + i128::from(c), 32, false, lane.clamp),
        "sad_hi_u8" => cut((differences(8, false) << 16) + i128::from(c), 32, false, lane.clamp),
        "sad_u16" => cut(differences(16, false) + i128::from(c), 32, false, lane.clamp),
        "sad_u32" => cut(differences(32, false) + i128::from(c), 32, false, lane.clamp),
        "msad_u8" => cut(differences(8, true) + i128::from(c), 32, false, lane.clamp),
        "lerp_u8" => {
            let byte = |n| (field(a, 8, n) + field(b, 8, n) + field(c, 8, n) % 2) / 2;
            Bits((0..4).map(|n| (byte(n) as u64) << (8 * n)).sum())
        }
        _ => return None,
    })
}
