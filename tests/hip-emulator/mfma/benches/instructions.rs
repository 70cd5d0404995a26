//! Nanoseconds per execution of each matrix instruction, and the portable path's slowdown in the
//! same run.
//!
//! `cargo bench -p rotini-mfma`; arguments after `--` select instructions by a part of their names.
//! Operands are random numbers near 1, as in a convolution: once with all fraction bits, and once
//! with few enough that sums are exact, as this project's tests fill their tensors. C and D are the
//! same registers.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use rotini_mfma::{Control, MfmaError, Opcode, Register, Source, execute, execute_portable};

type Execute = fn(Opcode, &[Register], &[Register], Source<'_>, &mut [Register], Control) -> Result<(), MfmaError>;

/// Returns registers whose elements are between 0.5 and 2 with either sign, whatever their type,
/// and use all or `few` of the fraction's bits.
fn registers(opcode: Opcode, count: usize, seed: u64, few: bool) -> Vec<Register> {
    let name = opcode.mnemonic();
    let wide = |pattern: u64, free: u64| move |random: u64| (pattern | random & free) as u32;
    let mut state = seed;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let (pattern, free) = if name.ends_with("xf32") || name.ends_with("_f32") {
        (0x3f00_0000, if few { 0x80f0_0000 } else { 0x80ff_ffff })
    } else if name.ends_with("bf16") {
        (0x3f00_3f00, if few { 0x80f0_80f0 } else { 0x80ff_80ff })
    } else if name.ends_with("f16") {
        (0x3800_3800, if few { 0x8780_8780 } else { 0x87ff_87ff })
    } else if name.ends_with("f64") {
        (0x3fe0_0000, 0x801f_ffff)
    } else if name.ends_with("i8") {
        (0, 0xffff_ffff)
    } else {
        (0x3838_3838, 0x8787_8787)
    };
    let element = wide(pattern, free);
    (0..count)
        .map(|_| std::array::from_fn(|_| element(u64::from(next()))))
        .collect()
}

fn nanoseconds(opcode: Opcode, execute: Execute, few: bool) -> f64 {
    let (a_count, b_count, _, d_count) = opcode.registers();
    let (a, b) = (registers(opcode, a_count, 1, few), registers(opcode, b_count, 2, few));
    let index = [[0x4444_4444; 64]];
    let zero = vec![[0; 64]; d_count];
    let mut d = zero.clone();
    let source = if opcode.is_sparse() {
        Source::Registers(&index)
    } else {
        Source::Destination
    };
    // The fastest of several runs: the time without interference from other processes.
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(60) {
        d.copy_from_slice(&zero);
        let run = Instant::now();
        // Few executions, so that sums of few bits stay within an f32.
        let count = 4;
        for _ in 0..count {
            execute(opcode, black_box(&a), black_box(&b), source, &mut d, Control::default()).unwrap();
        }
        best = best.min(run.elapsed().as_secs_f64() * 1e9 / f64::from(count));
    }
    black_box(&d);
    best
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` passes no argument.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let wanted = arguments
        .iter()
        .find(|argument| !argument.starts_with('-'))
        .map_or("", String::as_str);
    println!(
        "{:<32} {:>10} {:>14} {:>10} {:>10}",
        "instruction", "ns", "operations/ns", "portable", "few bits"
    );
    for opcode in Opcode::all().filter(|opcode| opcode.mnemonic().contains(wanted)) {
        let fast = nanoseconds(opcode, execute, false);
        let portable = nanoseconds(opcode, execute_portable, false);
        let few = nanoseconds(opcode, execute, true);
        let rate = opcode.operations() as f64 / fast;
        println!(
            "{:<32} {fast:>10.0} {rate:>14.1} {:>9.1}× {few:>10.0}",
            opcode.mnemonic(),
            portable / fast
        );
    }
}
