//! Compares results with MMA-Sim: nearly 200,000 elements of D per form, from operands at the
//! limits of their types and of the arithmetic. `oracle/vectors.py` made the digests and some of
//! the values; where one differs, `vectors.py --show FORM BLOCK` prints the expected values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers")]

mod common;

use common::generate::matrices;
use common::{Kind, Shape};
use rotini_mfma::{Control, Opcode, Source, execute, execute_portable};

/// Minimum number of elements of D in a block of instructions.
const OUTPUTS: usize = 4096;

fn digest(results: &[u64], kind: Kind) -> String {
    let bytes: Vec<u8> = match kind {
        Kind::F64 => results.iter().flat_map(|value| value.to_le_bytes()).collect(),
        _ => results.iter().flat_map(|value| (*value as u32).to_le_bytes()).collect(),
    };
    blake3::hash(&bytes).to_hex()[..16].to_owned()
}

/// Reports the first sampled element of a form that differs, with its operands: more useful than a
/// digest, so it is compared first.
fn compare_samples(shape: &Shape, results: &[u64], instructions: usize) {
    let samples = include_str!("../oracle/samples.txt")
        .lines()
        .find_map(|line| line.strip_prefix(shape.name)?.strip_prefix(' '));
    let samples: Vec<&str> = samples.unwrap().split(' ').collect();
    assert_eq!(samples.len(), results.len().div_ceil(16), "{}", shape.name);
    for (sample, expected) in samples.into_iter().enumerate() {
        let (result, index) = (results[sample * 16], sample * 16);
        if result == u64::from_str_radix(expected, 16).unwrap() {
            continue;
        }
        let per_instruction = results.len() / instructions;
        let matrices = matrices(shape, (index / per_instruction) as u64);
        let (element, k) = (index % per_instruction, shape.k);
        let (row, column) = (
            element / shape.n,
            element / shape.n / shape.m * shape.n + element % shape.n,
        );
        panic!(
            "{} element {index}: {result:x}, not {expected}\nc {:x}\na {:x?}\nb {:x?}",
            shape.name,
            matrices.c[element],
            &matrices.a[row * k..][..k],
            &matrices.b[column * k..][..k],
        );
    }
}

#[test]
fn agrees_with_mma_sim() {
    let mut forms = 0;
    for line in include_str!("../oracle/digests.txt").lines() {
        let mut parts = line.split(' ');
        let shape = Shape::parse(parts.next().unwrap());
        let opcode = Opcode::from_mnemonic(shape.name).unwrap();
        let (a_count, b_count, _, d_count) = opcode.registers();
        let instructions = OUTPUTS.div_ceil(shape.m * shape.n * shape.blocks);
        let mut blocks = 0;
        for (block, expected) in parts.enumerate() {
            let (mut fast, mut portable) = (Vec::new(), Vec::new());
            for instruction in block * instructions..(block + 1) * instructions {
                let matrices = matrices(&shape, instruction as u64);
                let a = shape.pack_a(a_count, &matrices.a);
                let b = shape.pack_b(b_count, &matrices.b);
                let c = shape.pack_c(d_count, &matrices.c);
                let mut d = c.clone();
                execute(opcode, &a, &b, Source::Destination, &mut d, Control::default()).unwrap();
                fast.extend(shape.unpack_d(&d));
                execute_portable(opcode, &a, &b, Source::Registers(&c), &mut d, Control::default()).unwrap();
                portable.extend(shape.unpack_d(&d));
            }
            if block == 0 {
                compare_samples(&shape, &portable, instructions);
                compare_samples(&shape, &fast, instructions);
            }
            assert_eq!(digest(&portable, shape.d), expected, "{} block {block}", shape.name);
            assert_eq!(
                digest(&fast, shape.d),
                expected,
                "{} block {block}, fast path",
                shape.name
            );
            blocks += 1;
        }
        assert!(blocks * OUTPUTS >= 100_000, "{}: {blocks} blocks", shape.name);
        forms += 1;
    }
    assert_eq!(forms, 27, "every form that MMA-Sim has");
}
