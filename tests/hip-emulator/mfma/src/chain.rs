//! Computes f32, f64 and i8: sequential multiply-adds, on 16 elements of D at a time.
//!
//! Each function is written once, in plain Rust, and compiled for every instruction set that is
//! dispatched to: fused multiply-adds and integer sums give the same result on all of them.

use crate::Register;
use crate::form::Form;
use crate::isa::Isa;

/// Elements of D that are computed together: neighbouring lanes of a register.
const WIDTH: usize = 16;

/// The elements that are computed together.
struct Segment {
    /// Register of D.
    register: usize,
    /// Index of its group of 16 lanes.
    part: usize,
    /// Lane of the row of A for the first k; in 4 × 4 forms, that of the first of the four blocks.
    a_lane: usize,
    /// First lane of the columns of B for the first k.
    b_lane: usize,
}

/// Returns the segment of D in register `register` and the lanes from 16·`part`, for a form whose
/// accumulator has 32 bits.
#[inline(always)]
fn segment<const M: usize, const N: usize, const BLOCKS: usize>(register: usize, part: usize) -> Segment {
    let lane = WIDTH * part;
    if N < WIDTH {
        // Lanes are 4 columns of 16 blocks, and in A 4 rows of 16 blocks.
        return Segment {
            register,
            part,
            a_lane: lane + register,
            b_lane: lane,
        };
    }
    let group = lane / N + 64 / N * (register / 4);
    let (row, block) = (register % 4 + 4 * (group % (M / 4)), group / (M / 4));
    Segment {
        register,
        part,
        a_lane: row + M * block,
        b_lane: lane % N + N * block,
    }
}

/// Iterates over all segments of D.
#[inline(always)]
fn segments<const M: usize, const N: usize, const BLOCKS: usize>() -> impl Iterator<Item = Segment> {
    (0..M * N * BLOCKS / 64)
        .flat_map(|register| (0..64 / WIDTH).map(move |part| segment::<M, N, BLOCKS>(register, part)))
}

/// Returns the 16 lanes of a register that include `lane`.
#[inline(always)]
fn lanes(register: &Register, lane: usize) -> &[u32; WIDTH] {
    &register.as_chunks().0[lane / WIDTH]
}

/// Returns the lanes of A for the 16 elements of D: one row for all, or the same row of four blocks
/// for four columns each.
#[inline(always)]
fn row<const N: usize>(register: &Register, lane: usize) -> [u32; WIDTH] {
    if N < WIDTH {
        let (lanes, row) = (lanes(register, lane), lane % 4);
        std::array::from_fn(|index| lanes[index / 4 * 4 + row])
    } else {
        [register[lane]; WIDTH]
    }
}

macro_rules! dispatch {
    ($(#[$doc:meta])* $name:ident => $body:ident($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        pub(crate) fn $name($($argument: $type,)* isa: Isa) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn avx512($($argument: $type),*) {
                    $body($($argument),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) {
                    $body($($argument),*);
                }
                match isa {
                    // SAFETY: `Isa::detect` returns this variant only if the CPU has these
                    // features.
                    Isa::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    Isa::Avx2 => return unsafe { avx2($($argument),*) },
                    Isa::Portable => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let Isa::Portable = isa;
            $body($($argument),*);
        }
    };
}

dispatch!(
    /// D = A·B + D in f32.
    f32 => f32_body(form: &Form, a: &[Register], b: &[Register], d: &mut [Register])
);
dispatch!(
    /// D = A·B + D in f64; bits 0, 1 and 2 of `negate` negate A, B and D first.
    f64 => f64_body(form: &Form, a: &[Register], b: &[Register], d: &mut [Register], negate: u8)
);
dispatch!(
    /// D = A·B + D in i32.
    i8 => i8_body(form: &Form, a: &[Register], b: &[Register], d: &mut [Register])
);

/// Calls a function of M, N, K and the number of blocks with those of a form as constants.
macro_rules! with_shape {
    ($form:ident, [$(($n:literal, $k:literal, $blocks:literal)),*], $body:ident, $arguments:tt) => {
        match ($form.n, $form.k, $form.blocks) {
            $(($n, $k, $blocks) => $body::<$n, $n, $k, $blocks> $arguments,)*
            other => unreachable!("no form has the shape {other:?}"),
        }
    };
}

#[inline(always)]
fn f32_body(form: &Form, a: &[Register], b: &[Register], d: &mut [Register]) {
    with_shape!(
        form,
        [(16, 4, 1), (32, 2, 1), (16, 1, 4), (32, 1, 2), (4, 1, 16)],
        f32_shape,
        (a, b, d)
    )
}

#[inline(always)]
fn f32_shape<const M: usize, const N: usize, const K: usize, const BLOCKS: usize>(
    a: &[Register],
    b: &[Register],
    d: &mut [Register],
) {
    let (a, b) = (&a[0], &b[0]);
    for Segment {
        register,
        part,
        a_lane,
        b_lane,
    } in segments::<M, N, BLOCKS>()
    {
        let d: &mut [u32; WIDTH] = &mut d[register].as_chunks_mut().0[part];
        let mut sum = d.map(f32::from_bits);
        for k in 0..K {
            let a = row::<N>(a, a_lane + M * BLOCKS * k);
            let b = lanes(b, b_lane + N * BLOCKS * k);
            for index in 0..WIDTH {
                sum[index] = f32::from_bits(a[index]).mul_add(f32::from_bits(b[index]), sum[index]);
            }
        }
        *d = sum.map(|sum| {
            if sum.is_nan() {
                f32::NAN.to_bits()
            } else {
                sum.to_bits()
            }
        });
    }
}

#[inline(always)]
fn f64_body(form: &Form, a: &[Register], b: &[Register], d: &mut [Register], negate: u8) {
    let sign = |bit: u8| u64::from(negate >> bit & 1) << 63;
    let join = |low: u32, high: u32, sign: u64| f64::from_bits((u64::from(low) | u64::from(high) << 32) ^ sign);
    let a_values: [f64; 64] = std::array::from_fn(|lane| join(a[0][lane], a[1][lane], sign(0)));
    let b_values: [f64; 64] = std::array::from_fn(|lane| join(b[0][lane], b[1][lane], sign(1)));
    for (pair, registers) in d.chunks_exact_mut(2).enumerate() {
        let [low, high] = registers else { continue };
        let mut sum: [f64; 64] = std::array::from_fn(|lane| join(low[lane], high[lane], sign(2)));
        for (segment, sum) in sum.chunks_exact_mut(WIDTH).enumerate() {
            for k in 0..form.k {
                // A segment is a row of 16 columns, or the same row of four blocks with four
                // columns each.
                let (a_lane, step) = if form.n < WIDTH {
                    (segment, 4)
                } else {
                    (segment + 4 * pair, 0)
                };
                let a = &a_values[WIDTH * k..][..WIDTH];
                let b = &b_values[WIDTH * k..][..WIDTH];
                for (index, sum) in sum.iter_mut().enumerate() {
                    *sum = a[(a_lane + index / 4 * step) % WIDTH].mul_add(b[index], *sum);
                }
            }
        }
        for (lane, sum) in sum.iter().enumerate() {
            let bits = if sum.is_nan() {
                f64::NAN.to_bits()
            } else {
                sum.to_bits()
            };
            (low[lane], high[lane]) = (bits as u32, (bits >> 32) as u32);
        }
    }
}

#[inline(always)]
fn i8_body(form: &Form, a: &[Register], b: &[Register], d: &mut [Register]) {
    with_shape!(
        form,
        [(16, 32, 1), (32, 16, 1), (16, 4, 4), (32, 4, 2), (4, 4, 16)],
        i8_shape,
        (a, b, d)
    )
}

#[inline(always)]
fn i8_shape<const M: usize, const N: usize, const K: usize, const BLOCKS: usize>(
    a: &[Register],
    b: &[Register],
    d: &mut [Register],
) {
    // The four elements of a register are consecutive in k.
    let byte = |word: u32, byte: u32| i32::from((word >> (8 * byte)) as i8);
    let registers = M * K * BLOCKS / 256;
    for Segment {
        register,
        part,
        a_lane,
        b_lane,
    } in segments::<M, N, BLOCKS>()
    {
        let d: &mut [u32; WIDTH] = &mut d[register].as_chunks_mut().0[part];
        let mut sum = d.map(|bits| bits as i32);
        for word in 0..K / 4 {
            let (register, group) = (word % registers, word / registers);
            let a = row::<N>(&a[register], a_lane + M * BLOCKS * group);
            let b = lanes(&b[register], b_lane + N * BLOCKS * group);
            for index in 0..WIDTH {
                let (a, b) = (a[index], b[index]);
                let products = (0..4).map(|at| byte(a, at) * byte(b, at));
                sum[index] = products.fold(sum[index], i32::wrapping_add);
            }
        }
        *d = sum.map(|sum| sum as u32);
    }
}
