//! Checks the layouts that the other tests pack with against AMD's matrix instruction calculator,
//! and the crate's opcodes against LLVM's assembler. `oracle/README.md` describes how the files
//! were made.

mod common;

use common::layout::Place;
use common::{Kind, Shape};
use rotini_mfma::{Control, Opcode};

/// Returns a digest of places, as `oracle/layouts.py` writes them.
fn digest(places: impl Iterator<Item = (Place, usize)>) -> String {
    let text: String = places
        .map(|((lane, register, bit), bits)| format!("{register}.{lane}.{bit}.{bits}\n"))
        .collect();
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// Iterates over the elements of a matrix of `rows` × `columns` per block.
fn elements(blocks: usize, rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..blocks)
        .flat_map(move |block| (0..rows).flat_map(move |row| (0..columns).map(move |column| (block, row, column))))
}

#[test]
fn the_tests_pack_as_the_calculator() {
    let mut lines = 0;
    for line in include_str!("../oracle/layouts.txt").lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [name, matrix, cbsz, abid, blgp, expected] = parts[..] else {
            panic!("{line}")
        };
        let [cbsz, abid, blgp] = [cbsz, abid, blgp].map(|value| value.parse().unwrap());
        let shape = Shape::parse(name);
        let control = Control { cbsz, abid, blgp };
        let Shape { m, n, k, blocks, .. } = shape;
        let digest = match matrix {
            // The calculator gives one place for the two stored elements of every four.
            "A" if shape.sparse => digest(
                elements(blocks, m, k).map(|(block, i, k)| (shape.a_place(i, k / 4 * 2, block), 2 * shape.a.bits())),
            ),
            "A" => digest(
                elements(blocks, m, k)
                    .map(|(block, i, k)| (shape.a_place(i, k, Shape::broadcast(block, control)), shape.a.bits())),
            ),
            "B" => digest(elements(blocks, k, n).map(|(block, k, j)| {
                let (lane, register, bit) = shape.b_place(k, j, block);
                ((Shape::permuted(lane, control), register, bit), shape.b.bits())
            })),
            "C" | "D" => {
                digest(elements(blocks, m, n).map(|(block, i, j)| (shape.d_place(i, j, block), shape.d.bits())))
            }
            "K" => digest(elements(blocks, m, k).map(|(_, i, k)| (shape.index_place(i, k / 4 * 2, control), 4))),
            other => panic!("{other}"),
        };
        assert_eq!(digest, expected, "{line}");
        let opcode = Opcode::from_mnemonic(name).unwrap();
        assert_eq!(opcode.check(control), Ok(()), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 470);
}

#[test]
fn opcodes_are_those_of_the_assembler() {
    let all = Shape::all();
    assert_eq!(all.len(), Opcode::all().len());
    for (shape, [a, b, c, d]) in all {
        let opcode = Opcode::from_mnemonic(shape.name).unwrap_or_else(|| panic!("{} is missing", shape.name));
        assert_eq!(opcode.registers(), (a, b, c, d), "{opcode}");
        assert_eq!(
            opcode.operations(),
            (2 * shape.m * shape.n * shape.k * shape.blocks) as u64,
            "{opcode}"
        );
        assert_eq!(opcode.mnemonic(), shape.name);
        assert_eq!(opcode.is_sparse(), shape.sparse, "{opcode}");
        assert_eq!(opcode.is_f64(), shape.d == Kind::F64, "{opcode}");
    }
    // Names of CDNA2, of CDNA4, an assembler's alias, and no instruction at all.
    for name in [
        "v_mfma_f32_16x16x8bf16",
        "v_mfma_f32_16x16x32_f16",
        "v_mfma_f32_16x16x16f16",
        "v_fma_f32",
        "",
    ] {
        assert_eq!(Opcode::from_mnemonic(name), None, "{name}");
    }
}
