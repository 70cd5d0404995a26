//! LLVM's division sequence against IEEE division: the quotient is scaled, refined and fixed up,
//! and near the limits of the type each of these steps matters.

use super::test;

/// Lanes of a launch.
const LANES: usize = 1024;

/// n / d in f32 for each lane: `s[4:5]` points to all n followed by all d, `s[6:7]` to the
/// quotients.
const SINGLE: &str = "v_lshlrev_b32_e32 v0, 2, v0
global_load_dword v2, v0, s[4:5]
v_add_u32_e32 v1, 0x1000, v0
global_load_dword v1, v1, s[4:5]
s_waitcnt vmcnt(0)
v_div_scale_f32 v3, s[12:13], v1, v1, v2
v_rcp_f32_e32 v4, v3
v_div_scale_f32 v5, vcc, v2, v1, v2
v_fma_f32 v6, -v3, v4, 1.0
v_fmac_f32_e32 v4, v6, v4
v_mul_f32_e32 v6, v5, v4
v_fma_f32 v7, -v3, v6, v5
v_fmac_f32_e32 v6, v7, v4
v_fma_f32 v3, -v3, v6, v5
v_div_fmas_f32 v3, v3, v4, v6
v_div_fixup_f32 v1, v3, v1, v2
global_store_dword v0, v1, s[6:7]";

/// The same kernel for f64.
const DOUBLE: &str = "v_lshlrev_b32_e32 v0, 3, v0
global_load_dwordx2 v[2:3], v0, s[4:5]
v_add_u32_e32 v1, 0x2000, v0
global_load_dwordx2 v[4:5], v1, s[4:5]
s_waitcnt vmcnt(0)
v_div_scale_f64 v[6:7], s[12:13], v[4:5], v[4:5], v[2:3]
v_rcp_f64_e32 v[8:9], v[6:7]
v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
v_div_scale_f64 v[10:11], vcc, v[2:3], v[4:5], v[2:3]
v_mul_f64 v[12:13], v[10:11], v[8:9]
v_fma_f64 v[6:7], -v[6:7], v[12:13], v[10:11]
v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[12:13]
v_div_fixup_f64 v[2:3], v[6:7], v[4:5], v[2:3]
global_store_dwordx2 v0, v[2:3], s[6:7]";

/// Runs the kernel on pairs of operands, given as bits of `bytes` bytes, and returns the quotients'
/// bits.
fn quotients(kernel: &str, bytes: usize, pairs: &[(u64, u64)]) -> Vec<u64> {
    let mut result = Vec::new();
    for some in pairs.chunks(LANES) {
        let side = |of: fn(&(u64, u64)) -> u64| {
            let mut all: Vec<u8> = some
                .iter()
                .flat_map(|pair| of(pair).to_le_bytes().into_iter().take(bytes))
                .collect();
            all.resize(bytes * LANES, 0);
            all
        };
        let operands = [side(|pair| pair.0), side(|pair| pair.1)].concat();
        let mut test = test(kernel)
            .lanes(LANES as u32)
            .buffers(vec![operands, vec![0; bytes * LANES]]);
        test.launch().expect("the kernel runs");
        let written = test.buffers[1].chunks(bytes).take(some.len());
        result.extend(written.map(|bytes| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))));
    }
    result
}

/// Returns all pairs of these operands with both signs, and 20,000 pairs from a generator with a
/// fixed seed.
fn pairs(limits: &[u64], sign: u64, bits: u32) -> Vec<(u64, u64)> {
    let signed: Vec<u64> = limits.iter().flat_map(|&limit| [limit, limit | sign]).collect();
    let mut pairs: Vec<_> = signed
        .iter()
        .flat_map(|&n| signed.iter().map(move |&d| (n, d)))
        .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state ^ state >> 29) >> (64 - bits)
    };
    pairs.extend((0..20_000).map(|_| (next(), next())));
    pairs
}

#[test]
fn quotients_of_f32_are_those_of_ieee() {
    let numbers = [
        3.4e38,
        1e-30,
        1e30,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        1e-40,
        1.1754942e-38,
        1.0,
        1.5,
        3.0,
        0.0,
        1e-20,
        1e20,
        2.0,
        f32::INFINITY,
        f32::NAN,
        1.7e38,
        2.9e-39,
        5.9e-39,
        0.1,
        7.0,
        1e10,
        4.2e-38,
    ];
    let limits: Vec<u64> = numbers.iter().map(|f| f32::to_bits(*f).into()).collect();
    // Exponents around each threshold that a step of the division tests.
    let powers = [
        1, 22, 23, 24, 25, 63, 64, 95, 96, 126, 127, 128, 150, 189, 190, 191, 222, 223, 252, 253, 254,
    ];
    let powers = powers
        .iter()
        .flat_map(|exponent| [0, 1, 0x7f_ffff].map(|fraction| exponent << 23 | fraction));
    let pairs = pairs(&limits.into_iter().chain(powers).collect::<Vec<u64>>(), 1 << 31, 32);
    for ((n, d), quotient) in pairs.iter().zip(quotients(SINGLE, 4, &pairs)) {
        let [n, d, quotient] = [*n, *d, quotient].map(|bits| f32::from_bits(bits as u32));
        let expected = n / d;
        // A quotient that is scaled down to a subnormal is rounded a second time, as the ISA's text
        // says.
        let apart = u32::from(expected.abs() <= f32::MIN_POSITIVE && expected != 0.0);
        assert!(
            quotient.to_bits().abs_diff(expected.to_bits()) <= apart || quotient.is_nan() && expected.is_nan(),
            "{n:e} / {d:e} is {expected:e}, not {quotient:e}"
        );
    }
}

#[test]
fn quotients_of_f64_are_those_of_ieee() {
    let numbers = [
        1.7e308,
        1e-300,
        1e300,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        1e-310,
        1.0,
        1.5,
        3.0,
        0.0,
        1e-160,
        1e160,
        2.0,
        f64::INFINITY,
        f64::NAN,
        8.9e307,
        1.1e-308,
        0.1,
        7.0,
    ];
    let limits: Vec<u64> = numbers.iter().map(|f| f64::to_bits(*f)).collect();
    let powers = [
        1_u64, 52, 53, 54, 127, 128, 767, 768, 1022, 1023, 1024, 1075, 1788, 1919, 2044, 2045, 2046,
    ];
    let powers = powers
        .iter()
        .flat_map(|exponent| [0, 1, (1 << 52) - 1].map(|fraction| exponent << 52 | fraction));
    let pairs = pairs(&limits.into_iter().chain(powers).collect::<Vec<u64>>(), 1 << 63, 64);
    for ((n, d), quotient) in pairs.iter().zip(quotients(DOUBLE, 8, &pairs)) {
        let [n, d, quotient] = [*n, *d, quotient].map(f64::from_bits);
        let expected = n / d;
        let apart = u64::from(expected.abs() <= f64::MIN_POSITIVE && expected != 0.0);
        assert!(
            quotient.to_bits().abs_diff(expected.to_bits()) <= apart || quotient.is_nan() && expected.is_nan(),
            "{n:e} / {d:e} is {expected:e}, not {quotient:e}"
        );
    }
}
