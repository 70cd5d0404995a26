//! Texts through LLVM's assembler and disassembler, back to the same bytes and the same decoded
//! form: every vector entry in each of its encodings, and lines of every shape in real kernels.

use std::collections::{BTreeMap, HashMap};

use super::vectors::entries;
use crate::{
    assembler::assemble,
    decode::Decoder,
    disassembler::Disassembler,
    table::{MaskIn, Ty, VectorOp},
};

/// Lines of each shape (opcode, encoding, kinds of operands, modifiers) in the conformance suite's
/// kernels, at most five per opcode.
const CENSUS: &str = include_str!("census.txt");

/// Returns the debug text of a decoded line, for comparisons within this process.
fn decoded(line: &str) -> Result<String, String> {
    let mut decoder = Decoder::new(256, 256, HashMap::new());
    let (inst, uses) = decoder.instruction(line)?;
    Ok(format!(
        "{inst:?} {uses:?} {:x?}",
        decoder.into_constants().iter().map(|row| row[0]).collect::<Vec<_>>()
    ))
}

/// Returns a line's bytes, and LLVM's text for them.
fn through(line: &str, disassembler: &mut Disassembler) -> Option<(Vec<u8>, String)> {
    let bytes = assemble(line).ok()?;
    let (text, length) = disassembler.next(&bytes, 0)?;
    (length == bytes.len()).then_some((bytes, text))
}

/// The result of the round trip of a line that LLVM knows.
enum Trip {
    Same,
    /// The decoder refuses it, by design
    Refused,
    Wrong(String),
}

/// Texts that the decoder refuses although LLVM prints them: their meaning is uncertain, and no
/// compiler generates them.
const REFUSALS: &[&str] = &[
    "op_sel of an operand of 32 bits",
    "op_sel of an operand that is not of 16 bits",
];

fn trip(line: &str, bytes: &[u8], text: &str) -> Trip {
    let second = match decoded(text) {
        Ok(second) => second,
        Err(what) if REFUSALS.contains(&what.as_str()) => return Trip::Refused,
        Err(what) => return Trip::Wrong(format!("{text}: {what}")),
    };
    // A modifier that the encoding cannot hold is dropped: then LLVM's text is used.
    let modifiers = |text: &str| {
        text.split_whitespace()
            .filter(|word| word.contains([':', '|', '-']))
            .count()
    };
    if modifiers(line) != modifiers(text) {
        return Trip::Same;
    }
    if assemble(text).as_deref() != Ok(bytes) {
        return Trip::Wrong(format!("{line}: its text {text} has other bytes"));
    }
    match decoded(line) {
        Ok(first) if first == second => Trip::Same,
        Ok(first) => Trip::Wrong(format!("{line} and {text} are not the same:\n  {first}\n  {second}")),
        Err(what) => Trip::Wrong(format!("{line}: {what}")),
    }
}

fn register(file: char, first: usize, ty: Ty) -> String {
    match ty.rows() {
        1 => format!("{file}{first}"),
        _ => format!("{file}[{first}:{}]", first + 1),
    }
}

/// Returns the operands of an entry: `source` gives the text of each source from its number and
/// type.
fn operands(op: &VectorOp, masks: [&str; 2], source: &dyn Fn(usize, Ty) -> String) -> String {
    let mut list = Vec::new();
    list.extend(op.target.map(|ty| register('v', 20, ty)));
    list.extend(op.mask_out.then(|| masks[0].to_owned()));
    let given = op.sources.len() - usize::from(op.accumulates);
    list.extend(
        op.sources[..given]
            .iter()
            .enumerate()
            .map(|(number, &ty)| source(number, ty)),
    );
    if op.mask_in == MaskIn::Operand {
        list.push(masks[1].to_owned());
    }
    list.join(", ")
}

/// Returns lines that may be encodings of an entry.
fn candidates(name: &str, op: &VectorOp) -> Vec<(&'static str, String)> {
    let plain = |number: usize, ty: Ty| register('v', 2 + 4 * number, ty);
    let scalar = |number: usize, ty: Ty| {
        if number == 0 {
            register('s', 6, ty)
        } else {
            plain(number, ty)
        }
    };
    let constant = |number: usize, ty: Ty| match (number, ty.float()) {
        (0, true) => "0.5".to_owned(),
        (0, false) => "-5".to_owned(),
        _ => plain(number, ty),
    };
    let literal = |number: usize, ty: Ty| match (number, ty) {
        (0, Ty::F16 | Ty::B16) => "0x1234".to_owned(),
        (0, _) => "0x40490fdb".to_owned(),
        _ => plain(number, ty),
    };
    let negated = |number: usize, ty: Ty| {
        let register = plain(number, ty);
        match (ty.float(), number) {
            (false, _) => register,
            (true, 0) => format!("-{register}"),
            (true, 1) => format!("|{register}|"),
            (true, _) => format!("-|{register}|"),
        }
    };
    let extended = |number: usize, ty: Ty| match ty.float() {
        true => negated(number, ty),
        false => format!("sext({})", plain(number, ty)),
    };
    // Opcodes with special operands
    let own: &[&str] = match name {
        "v_fmaak_f32" => &[
            "v_fmaak_f32 v0, v1, v2, 0x40490fdb",
            "v_fmaak_f32 v0, 1.0, v2, 0x3f000001",
        ],
        "v_fmamk_f32" => &[
            "v_fmamk_f32 v0, v1, 0x40490fdb, v2",
            "v_fmamk_f32 v0, s1, 0x3f000001, v2",
        ],
        "v_accvgpr_read_b32" => &["v_accvgpr_read_b32 v0, a1"],
        "v_accvgpr_write_b32" => &[
            "v_accvgpr_write_b32 a1, v0",
            "v_accvgpr_write_b32 a1, -3",
            "v_accvgpr_write_b32 a1, 1.0",
        ],
        "v_accvgpr_mov_b32" => &["v_accvgpr_mov_b32 a1, a2"],
        _ => &[],
    };
    let mut lines: Vec<_> = own.iter().map(|&line| ("own", line.to_owned())).collect();
    let vcc = ["vcc", "vcc"];
    let pairs = ["s[10:11]", "s[12:13]"];
    // VOP3P and other opcodes with a single encoding
    for masks in [vcc, pairs] {
        for suffix in ["", "_e32", "_e64"] {
            let encoding = match suffix {
                "" => "only",
                "_e32" => "e32",
                _ => "e64",
            };
            if (suffix == "_e32") == (masks == pairs) {
                continue;
            }
            let with = |source: &dyn Fn(usize, Ty) -> String, modifiers: &str| {
                (
                    encoding,
                    format!("{name}{suffix} {}{modifiers}", operands(op, masks, source)),
                )
            };
            lines.extend([
                with(&plain, ""),
                with(&scalar, ""),
                with(&constant, ""),
                with(&literal, ""),
            ]);
            if suffix != "_e32" {
                lines.push(with(&negated, ""));
                let clamps = op.clamped.is_some() || op.target.is_some_and(Ty::float);
                if clamps {
                    lines.push(with(&plain, " clamp"));
                }
                if matches!(op.target, Some(Ty::B16 | Ty::F16)) {
                    let lists = match op.sources.len() {
                        2 => [" op_sel:[0,0,1]", " op_sel:[1,1,0]"],
                        _ => [" op_sel:[0,0,0,1]", " op_sel:[1,1,0,0]"],
                    };
                    lines.extend(lists.map(|list| with(&plain, list)));
                }
                if op.sources.iter().any(|ty| ty.packed() || *ty == Ty::Mix) {
                    let lists: &[&str] = match op.sources.len() {
                        2 => &[" op_sel:[1,0]", " op_sel_hi:[0,1]", " op_sel:[0,1] op_sel_hi:[1,0]"],
                        _ => &[
                            " op_sel:[1,0,0]",
                            " op_sel_hi:[0,1,1]",
                            " op_sel:[0,1,0] op_sel_hi:[1,0,1]",
                        ],
                    };
                    lines.extend(lists.iter().map(|list| with(&plain, list)));
                    if op.sources[0].float() && op.sources[0].packed() {
                        let list = if op.sources.len() == 2 { "[1,0]" } else { "[1,0,0]" };
                        lines.push(with(&plain, &format!(" neg_lo:{list}")));
                        lines.push(with(&plain, &format!(" neg_hi:{list}")));
                    }
                }
            }
        }
    }
    let given = op.sources.len() - usize::from(op.accumulates);
    let selections = [
        ("DWORD", "BYTE_0", "WORD_1"),
        ("WORD_1", "WORD_0", "DWORD"),
        ("BYTE_3", "BYTE_2", "BYTE_1"),
    ];
    for (number, (target, first, second)) in selections.into_iter().enumerate() {
        let mut modifiers = String::new();
        if op.target.is_some() {
            let unused = ["UNUSED_PAD", "UNUSED_PRESERVE", "UNUSED_SEXT"][number];
            modifiers.push_str(&format!(" dst_sel:{target} dst_unused:{unused}"));
        }
        modifiers.push_str(&format!(" src0_sel:{first}"));
        if given > 1 {
            modifiers.push_str(&format!(" src1_sel:{second}"));
        }
        // A 32-bit source has no sign extension.
        let source: &dyn Fn(usize, Ty) -> String = if number == 2 { &extended } else { &plain };
        lines.push(("sdwa", format!("{name}_sdwa {}{modifiers}", operands(op, vcc, source))));
    }
    let controls = [
        "quad_perm:[3,0,1,2] row_mask:0xf bank_mask:0xf",
        "row_shl:3 row_mask:0x3 bank_mask:0xe",
        "row_ror:7 row_mask:0xf bank_mask:0xf bound_ctrl:0",
        "wave_shr:1 row_mask:0xa bank_mask:0xf",
        "row_mirror row_mask:0xf bank_mask:0x1",
        "row_half_mirror row_mask:0xf bank_mask:0xf",
        "row_bcast:15 row_mask:0xa bank_mask:0xf",
        "row_bcast:31 row_mask:0xc bank_mask:0xf",
        "row_newbcast:5 row_mask:0xf bank_mask:0xf",
    ];
    for control in controls {
        lines.push(("dpp", format!("{name}_dpp {} {control}", operands(op, vcc, &plain))));
    }
    lines
}

#[test]
fn every_entry_survives_the_assembler() {
    let mut disassembler = Disassembler::new("gfx942").expect("LLVM knows gfx942");
    let mut counts = BTreeMap::<&str, usize>::new();
    let (mut failures, mut without) = (Vec::new(), Vec::new());
    for (name, op) in entries() {
        let mut known = 0;
        for (encoding, line) in candidates(name, &op) {
            // A line that LLVM rejects is no encoding of this opcode.
            let Some((bytes, text)) = through(&line, &mut disassembler) else {
                continue;
            };
            match trip(&line, &bytes, &text) {
                Trip::Same => {
                    known += 1;
                    *counts.entry(encoding).or_default() += 1;
                }
                Trip::Refused => *counts.entry("refused").or_default() += 1,
                Trip::Wrong(what) => failures.push(what),
            }
        }
        if known == 0 {
            without.push(name);
        }
    }
    println!("lines by encoding: {counts:?}");
    assert!(without.is_empty(), "no encoding of {without:?} is known to LLVM");
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn lines_of_real_kernels_survive_the_assembler() {
    let lines: Vec<&str> = CENSUS.lines().collect();
    let bytes = assemble(CENSUS).expect("LLVM made these lines");
    let mut disassembler = Disassembler::new("gfx942").expect("LLVM knows gfx942");
    let (mut at, mut texts) = (0, Vec::new());
    while at < bytes.len() {
        let (text, length) = disassembler.next(&bytes[at..], 0).expect("LLVM made these bytes");
        texts.push(text);
        at += length;
    }
    assert_eq!(texts.len(), lines.len());
    assert_eq!(
        assemble(&texts.join("\n")).as_deref(),
        Ok(&*bytes),
        "the texts' bytes are the lines'"
    );
    let failures: Vec<String> = lines
        .iter()
        .zip(&texts)
        .filter_map(|(line, text)| match (decoded(line), decoded(text)) {
            (Ok(first), Ok(second)) if first == second => None,
            (first, second) => Some(format!("{line} / {text}: {first:?} / {second:?}")),
        })
        .collect();
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    println!("{} lines", lines.len());
}
