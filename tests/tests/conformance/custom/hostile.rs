//! Hostile bodies. In valid bodies every attribute, type, number, operation and value is replaced
//! by every other kind, nested deeply, or truncated. Each result is declined or lowered within a
//! short time, and each message quotes only the body or rotini's own text.

use super::{accepted, data, normal, originals};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_emit::{Target, check};
use rotini_graph::Graph;
use rotini_tests::harness::Runner;
use rotini_tests::random::Settings;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Every kind of attribute with a textual form in MLIR.
const ATTRIBUTES: [&str; 34] = [
    "1",
    "-1",
    "1 : i64",
    "94906265624",
    "9223372036854775807 : index",
    "0.5",
    "0x7FC00000 : f32",
    "true",
    "unit",
    "\"text\"",
    "\"\\00\\FF\"",
    "\"parallel\"",
    "[]",
    "[1]",
    "[[0], [1]]",
    "[\"parallel\", 1]",
    "{}",
    "{key = 1}",
    "f32",
    "tensor<4xf32>",
    "() -> ()",
    "@symbol",
    "@a::@b",
    "#alias",
    "#linalg.iterator_type<window>",
    "#arith.fastmath<fast>",
    "affine_map<(d0) -> (d0)>",
    "affine_map<()[s0] -> (s0 floordiv 0)>",
    "affine_set<(d0) : (d0 >= 0)>",
    "array<i64: 1, -1>",
    "dense<0> : tensor<4xi32>",
    "dense_resource<blob> : tensor<4xi32>",
    "strided<[?], offset: ?>",
    "loc(\"file\":1:1)",
];

const TYPES: [&str; 22] = [
    "f32",
    "f16",
    "bf16",
    "f64",
    "f128",
    "i1",
    "i8",
    "i32",
    "i64",
    "si32",
    "i16777215",
    "i99999999999",
    "index",
    "none",
    "tensor<f32>",
    "tensor<*xf32>",
    "tensor<?xf32>",
    "tensor<0xf32>",
    "tensor<9223372036854775807x9223372036854775807xf32>",
    "tensor<4xf32, #alias>",
    "vector<[4]xf32>",
    "memref<4xf32, 3 : i64>",
];

const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "-1",
    "-0",
    "127",
    "128",
    "256",
    "65536",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "0x0",
    "0xFFFFFFFFFFFFFFFFF",
    "1.0e999",
    "340282356779733661637539395458142568448.0",
];

const OPERATIONS: [&str; 24] = [
    "arith.addf",
    "arith.addi",
    "arith.divsi",
    "arith.shli",
    "arith.select",
    "arith.cmpf",
    "arith.constant",
    "arith.extf",
    "math.exp",
    "math.fma",
    "math.powf",
    "linalg.index",
    "linalg.yield",
    "linalg.fill",
    "linalg.generic",
    "linalg.matmul",
    "tensor.empty",
    "tensor.extract",
    "tensor.concat",
    "tensor.collapse_shape",
    "tensor.extract_slice",
    "scf.while",
    "func.return",
    "builtin.unrealized_conversion_cast",
];

const VALUES: [&str; 10] = ["%x", "%a", "%e", "%0", "%r", "%y", "%nobody", "%0#1", "%0:2", "^bb0"];

const MARKS: [&str; 16] = [
    "(", ")", "[", "]", "{", "}", "<", ">", "->", "=", ":", ",", "-", "!", "\"", "/*",
];

/// Splits into words, numbers and punctuation, each with the white space behind it.
fn pieces(text: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "_.%#@^\"".contains(c) => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut pieces: Vec<String> = Vec::new();
    let mut last = 2;
    for c in text.chars() {
        let next = kind(c);
        match pieces.last_mut() {
            Some(piece) if next == 1 || next == last && next == 0 => piece.push(c),
            _ => pieces.push(c.to_string()),
        }
        last = next;
    }
    pieces
}

fn replaced(piece: &str, by: &str) -> String {
    let space: String = piece.chars().skip_while(|c| !c.is_whitespace()).collect();
    format!("{by}{space}")
}

fn pick<'a>(list: &[&'a str], rng: &mut ChaCha8Rng) -> &'a str {
    list.choose(rng).copied().unwrap_or_default()
}

/// Makes one random change.
fn worse(pieces: &mut Vec<String>, rng: &mut ChaCha8Rng) {
    if pieces.is_empty() {
        return;
    }
    let at = rng.random_range(0..pieces.len());
    // The next piece with such a beginning, cyclically from `at`.
    let next = |pieces: &[String], begins: &dyn Fn(char) -> bool| {
        let found = |index: &usize| pieces[*index].chars().next().is_some_and(begins);
        (at..pieces.len()).chain(0..at).find(found)
    };
    match rng.random_range(0..14) {
        // The piece after an equals sign or an opening bracket.
        0 | 1 => {
            let place = next(pieces, &|c| c == '=' || c == '[').map(|index| index + 1);
            if let Some(piece) = place.and_then(|index| pieces.get_mut(index)) {
                *piece = format!("{} ", pick(&ATTRIBUTES, rng));
            }
        }
        // A whole list.
        2 => {
            if let Some(start) = next(pieces, &|c| c == '[') {
                let end = (start..pieces.len()).find(|&index| pieces[index].starts_with(']'));
                let end = end.map_or(pieces.len(), |end| end + 1);
                pieces.splice(start..end, [pick(&ATTRIBUTES, rng).to_owned()]);
            }
        }
        3 => {
            let is_type = |c: char| "fitb".contains(c);
            if let Some(index) = next(pieces, &is_type) {
                pieces[index] = replaced(&pieces[index], pick(&TYPES, rng));
            }
        }
        4 | 5 => {
            if let Some(index) = next(pieces, &|c| c.is_ascii_digit()) {
                // An extent is followed by its type.
                let rest: String = pieces[index].chars().skip_while(char::is_ascii_digit).collect();
                pieces[index] = format!("{}{rest}", pick(&NUMBERS, rng));
            }
        }
        6 => {
            let dotted = (at..pieces.len()).find(|&index| pieces[index].contains('.'));
            if let Some(index) = dotted {
                pieces[index] = replaced(&pieces[index], pick(&OPERATIONS, rng));
            }
        }
        7 => {
            if let Some(index) = next(pieces, &|c| c == '%') {
                pieces[index] = replaced(&pieces[index], pick(&VALUES, rng));
            }
        }
        8 => {
            let depth = 1 << rng.random_range(0..14);
            let (open, close) = [
                ("(", ")"),
                ("[", "]"),
                ("{", "}"),
                ("<", ">"),
                ("tensor<", ">"),
                ("- ", ""),
            ]
            .choose(rng)
            .copied()
            .unwrap_or_default();
            pieces[at] = format!("{}{}{}", open.repeat(depth), pieces[at], close.repeat(depth));
        }
        9 => pieces[at] = replaced(&pieces[at], pick(&MARKS, rng)),
        10 => _ = pieces.remove(at),
        11 => {
            let copy = pieces[rng.random_range(0..pieces.len())].clone();
            pieces.insert(at, copy);
        }
        // An additional attribute, where an operation may have some.
        12 => {
            if let Some(index) = next(pieces, &|c| c == ':') {
                pieces.insert(index, format!("{{value = {}}} ", pick(&ATTRIBUTES, rng)));
            }
        }
        _ => {
            let count = rng.random_range(1..=pieces.len().min(40));
            let from = rng.random_range(0..=pieces.len() - count);
            let copy = pieces[from..from + count].to_vec();
            pieces.splice(at..at, copy);
        }
    }
}

/// Returns a valid body with up to four changes, mostly one, possibly truncated.
fn hostile(originals: &[(Graph, Vec<String>)], rng: &mut ChaCha8Rng) -> Graph {
    let (graph, right) = originals.choose(rng).unwrap();
    let (mut graph, mut pieces) = (graph.clone(), right.clone());
    for _ in 0..[0, 1, 1, 1, 1, 1, 2, 4].choose(rng).copied().unwrap_or(1) {
        worse(&mut pieces, rng);
    }
    let mut body = pieces.concat().into_bytes();
    if !body.is_empty() && rng.random_range(0..8) == 0 {
        body.truncate(rng.random_range(0..body.len()));
    }
    if !body.is_empty() && rng.random_range(0..16) == 0 {
        let at = rng.random_range(0..body.len());
        body[at] ^= 1 << rng.random_range(0..8);
    }
    *data(&mut graph) = body;
    graph
}

fn all(seed: u64) -> impl Iterator<Item = Graph> {
    let originals: Vec<_> = originals()
        .into_iter()
        .map(|mut graph| {
            let pieces = pieces(&String::from_utf8_lossy(data(&mut graph)));
            (graph, pieces)
        })
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    std::iter::repeat_with(move || hostile(&originals, &mut rng))
}

/// Returns hostile graphs: 2,000, or 20,000 in a full run, unless `ROTINI_GRAPHS` is set.
fn some(seed: u64) -> impl ExactSizeIterator<Item = Graph> {
    let settings = Settings::from_environment([2_000, 20_000]);
    let mut bodies = all(seed.wrapping_add(settings.seed));
    let count = usize::try_from(settings.count).unwrap();
    (0..count).map(move |_| bodies.next().unwrap())
}

/// Returns the words of diagnostics that do not come from a body.
fn own_words() -> HashSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mlir-emit");
    let parser = fs::read_dir(sources.join("custom/src")).unwrap();
    parser
        .map(|entry| entry.unwrap().path())
        .chain([sources.join("src/custom/mod.rs")])
        .flat_map(|file| {
            let text = fs::read_to_string(file).unwrap();
            words(&text).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// Checks that some of many bodies remain valid, and most do not: otherwise the test covers little.
fn expect_some(fine: usize, count: usize) {
    assert!(
        count < 1_000 || (count / 20..count / 2).contains(&fine),
        "{fine} of {count} are right"
    );
}

#[test]
fn hostile_bodies_are_answered_soon_and_from_what_they_say() {
    let own = own_words();
    let (mut times, mut fine, mut lowered) = (Vec::new(), 0_usize, 0_usize);
    for graph in some(15) {
        let checked = normal(&graph);
        let start = Instant::now();
        let answer = check(&checked, &Target::Cpu);
        times.push(start.elapsed());
        let Err(unsupported) = answer else {
            fine += 1;
            // MLIR's verifier must accept what rotini accepts.
            if lowered < 300 {
                lowered += 1;
                assert!(accepted(&graph));
            }
            continue;
        };
        let mut graph = graph;
        let body = String::from_utf8_lossy(data(&mut graph)).into_owned();
        let reason = &unsupported.reason;
        assert!(reason.is_ascii() && reason.len() < 2000, "{reason:?}");
        for word in words(reason) {
            // Line numbers, columns and extents are small; an address is not.
            let is_small = word.parse().is_ok_and(|number: u64| number < 1_000_000);
            let is_shape = word.chars().all(|c| c.is_ascii_digit() || "xfib".contains(c));
            assert!(
                is_small || is_shape || own.contains(word) || body.contains(word),
                "{word:?} in {reason:?}, of\n{body}"
            );
        }
    }
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{} bodies, {fine} of them right: median {median:?}, 99 % {:?}, longest {longest:?}",
        times.len(),
        times[times.len() / 100 * 99]
    );
    expect_some(fine, times.len());
    assert!(median < Duration::from_micros(100), "{median:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}

/// Runs hostile bodies through the C ABI, on the host's own thread.
#[test]
fn hostile_bodies_through_the_abi() {
    let runner = Runner::cpu().expect("the plugin loads");
    let (mut times, mut fine) = (Vec::new(), 0_usize);
    for graph in some(16) {
        let bytes = rotini_wire::encode(&graph);
        let start = Instant::now();
        fine += usize::from(!runner.handle().applicable(&bytes).unwrap().is_empty());
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{} bodies, {fine} applicable: median {median:?}, longest {longest:?}",
        times.len()
    );
    expect_some(fine, times.len());
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}
