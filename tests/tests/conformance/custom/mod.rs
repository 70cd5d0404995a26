//! Unusual bodies of custom operations. `check` must answer for each, and accepted ones are
//! lowered.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod defects;
mod hostile;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_emit::{Target, check, emit, workspace_bound};
use rotini_graph::{CustomOp, DataType, Graph, GraphBuilder, NormalGraph, Op, TensorId};
use rotini_host::engine_config;
use rotini_tests::cases;
use rotini_tests::harness::Runner;

fn normal(graph: &Graph) -> NormalGraph {
    let mut graph = graph.clone();
    graph.validate().unwrap();
    graph.normalise().0
}

/// Checks a graph and lowers it if it is accepted. Returns whether it was.
fn accepted(graph: &Graph) -> bool {
    let graph = normal(graph);
    match check(&graph, &Target::Cpu) {
        Ok(()) => {
            let target = Target::Rocm { arch: "gfx942".into() };
            for target in [Target::Cpu, target] {
                let emitted = emit(&graph, &target).unwrap();
                assert!(emitted.mlir.contains("@custom_"), "{}", emitted.mlir);
            }
            assert!(workspace_bound(&graph, &Target::Cpu).unwrap() > 0);
            true
        }
        Err(unsupported) => {
            assert!(unsupported.node.is_some(), "{unsupported}");
            assert!(unsupported.reason.len() > 10, "{unsupported}");
            false
        }
    }
}

/// Returns a graph of one body with one operand and one result of these extents.
fn of_one(dtype: DataType, [x, y]: [&[i64]; 2], data: String) -> NormalGraph {
    let mut b = GraphBuilder::new("custom");
    let (x, y) = (b.buffer("x", dtype, x), b.buffer("y", dtype, y));
    let op = CustomOp {
        custom_op_id: "rotini.mlir".to_owned(),
        inputs: vec![x],
        outputs: vec![y],
        data: data.into_bytes(),
    };
    b.node("custom", DataType::F32, op);
    normal(&b.build())
}

/// GPUs would omit parts of such a sum if a neighbouring tensor had another memory order; on the
/// CPU it is right.
#[test]
fn several_loops_reduced_at_once_are_declined_on_gpus() {
    let graph = |rows: i64, columns: i64| {
        let data = format!(
            "func.func @f(%a: tensor<{rows}x{columns}xf32>) -> tensor<1xf32> {{\n  %c = arith.constant 0.0 : f32\n  \
             %e = tensor.empty() : tensor<f32>\n  %z = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>\n  \
             %s = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], \
             iterator_types = [\"reduction\", \"reduction\"]}} ins(%a : tensor<{rows}x{columns}xf32>) outs(%z : tensor<f32>) {{\n  \
             ^bb0(%x: f32, %o: f32):\n    %t = arith.addf %o, %x : f32\n    linalg.yield %t : f32\n  }} -> tensor<f32>\n  \
             %y = tensor.expand_shape %s [] output_shape [1] : tensor<f32> into tensor<1xf32>\n  \
             return %y : tensor<1xf32>\n}}\n"
        );
        of_one(DataType::F32, [&[rows, columns], &[1]], data)
    };
    let gfx942 = Target::Rocm { arch: "gfx942".into() };
    let refused = check(&graph(64, 28), &gfx942).unwrap_err();
    assert!(refused.reason.contains("[64, 28] reduced at once"), "{refused}");
    for (rows, columns) in [(64, 64), (1, 64), (3, 5)] {
        check(&graph(rows, columns), &gfx942).unwrap();
    }
    check(&graph(64, 28), &Target::Cpu).unwrap();
}

/// Returns the graphs with exactly one custom operation.
fn originals() -> Vec<Graph> {
    cases::all()
        .into_iter()
        .map(|case| case.graph)
        .filter(|graph| matches!(graph.nodes.as_slice(), [node] if matches!(node.op, Op::CustomOp(_))))
        .collect()
}

fn data(graph: &mut Graph) -> &mut Vec<u8> {
    match &mut graph.nodes[0].op {
        Op::CustomOp(op) => &mut op.data,
        other => panic!("{}", other.kind()),
    }
}

/// Words of the grammar, and forbidden ones.
const WORDS: [&str; 40] = [
    "%x",
    "%a",
    "%0",
    "%e",
    "%r",
    "f32",
    "f16",
    "i1",
    "index",
    "tensor<4xf32>",
    "tensor<?xf32>",
    "vector<4xf32>",
    "arith.addf",
    "arith.divsi",
    "arith.constant",
    "math.exp",
    "linalg.index 9 : index",
    "linalg.fill",
    "tensor.empty()",
    "tensor.extract",
    "d0",
    "d0 + d1",
    "-d0",
    "(d0 mod 2)",
    "\"parallel\"",
    "\"reduction\"",
    "affine_map<(d0) -> (d0)>",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "->",
    "0",
    "-1",
    "99999999999999999999",
    "scf.while",
];

fn mutate(body: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let text = String::from_utf8_lossy(body).into_owned();
    // Changes are made between words, so that much of the result still parses.
    let mut pieces: Vec<&str> = text.split_inclusive([' ', '\n', ',']).collect();
    let at = rng.random_range(0..pieces.len());
    match rng.random_range(0..7) {
        0 => _ = pieces.remove(at),
        1 => pieces.insert(at, WORDS.choose(rng).unwrap()),
        2 => pieces[at] = WORDS.choose(rng).unwrap(),
        3 => {
            let other = rng.random_range(0..pieces.len());
            pieces.swap(at, other);
        }
        4 => {
            let other = pieces[rng.random_range(0..pieces.len())];
            pieces.insert(at, other);
        }
        5 => pieces.truncate(at),
        _ => {
            let mut bytes = text.clone().into_bytes();
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= 1 << rng.random_range(0..8);
            *body = bytes;
            return;
        }
    }
    *body = pieces.join(" ").into_bytes();
}

/// Returns graphs whose bodies were mutated up to three times.
fn mutants(seed: u64) -> impl Iterator<Item = Graph> {
    let originals = originals();
    assert!(originals.len() > 20);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    std::iter::from_fn(move || {
        let mut graph = originals.choose(&mut rng)?.clone();
        for _ in 0..rng.random_range(1..4) {
            let body = data(&mut graph);
            if !body.is_empty() {
                mutate(body, &mut rng);
            }
        }
        Some(graph)
    })
}

#[test]
fn mutated_bodies_are_declined_or_lowered() {
    let rounds = 1500;
    let fine = mutants(5).take(rounds).filter(accepted).count();
    // Comments and names may change; most of the rest must not.
    assert!((20..rounds / 2).contains(&fine), "{fine} of {rounds} were accepted");
}

/// Through the C ABI.
#[test]
fn mutated_bodies_that_are_accepted_compile() {
    let runner = Runner::cpu().expect("the plugin loads");
    let config = engine_config(runner.engine());
    let compiled = mutants(6)
        .take(400)
        .map(|graph| rotini_wire::encode(&graph))
        .filter(|bytes| !runner.handle().applicable(bytes).unwrap().is_empty())
        .map(|bytes| runner.handle().context(&config, &bytes).map(drop).unwrap())
        .count();
    assert!(compiled > 10, "{compiled}");
}

fn custom_op(x: TensorId, y: TensorId, body: &str) -> CustomOp {
    CustomOp {
        inputs: vec![x],
        outputs: vec![y],
        custom_op_id: "rotini.mlir".to_owned(),
        data: body.as_bytes().to_vec(),
    }
}

/// Returns a graph of a body from a vector of 4 to another.
fn vector(body: &str) -> Graph {
    let mut b = GraphBuilder::new("custom");
    let (x, y) = (b.buffer("x", DataType::F32, &[4]), b.buffer("y", DataType::F32, &[4]));
    b.node("custom", DataType::F32, custom_op(x, y, body));
    b.build()
}

fn generic(maps: &str, inner: &str) -> String {
    format!(
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{\n  %e = tensor.empty() : tensor<4xf32>\n  \
         %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\"]}} ins(%a : tensor<4xf32>) \
         outs(%e : tensor<4xf32>) {{\n  ^bb0(%x: f32, %o: f32):\n{inner}\n    linalg.yield %r : f32\n  }} -> tensor<4xf32>\n  \
         return %y : tensor<4xf32>\n}}\n"
    )
}

const IDENTITY: &str = "affine_map<(d0) -> (d0)>";

#[test]
fn bodies_without_measure_are_declined() {
    let maps = format!("{IDENTITY}, {IDENTITY}");
    let right = "    %r = arith.negf %x : f32";
    assert!(accepted(&vector(&generic(&maps, right))));
    let map = |expression: &str| format!("{IDENTITY}, affine_map<(d0) -> ({expression})>");
    let chain = |count: usize| {
        let mut body = "    %0 = arith.negf %x : f32\n".to_owned();
        for index in 1..count {
            body += &format!("    %{index} = arith.negf %{} : f32\n", index - 1);
        }
        body + &format!("    %r = arith.negf %{} : f32", count - 1)
    };
    assert!(accepted(&vector(&generic(&maps, &chain(100)))));
    let wide = format!("tensor<{}f32>", "9223372036854775807x".repeat(30));
    for body in [
        generic(&map(&format!("d0{}", " + d0".repeat(12_000))), right),
        generic(&map(&format!("{}d0", "2 * ".repeat(12_000))), right),
        generic(&map(&format!("{}d0", "- ".repeat(20_000))), right),
        generic(&map(&format!("{}d0{}", "(".repeat(30_000), ")".repeat(30_000))), right),
        generic(&map(&format!("d0{}", " floordiv 2 mod 3".repeat(3000))), right),
        generic(&map("d0 - 1"), right),
        generic(&map("3 - d0"), right),
        generic(&maps, &chain(600)),
        generic(&maps, &format!("    %r = arith.constant {} : f32", "9".repeat(60_000))),
        generic(
            &maps,
            &format!("    %r = arith.constant 0x{} : f32", "9".repeat(60_000)),
        ),
        generic(
            &maps,
            "    %i = arith.constant 1 : i16777215\n    %r = arith.negf %x : f32",
        ),
        format!("func.func @f(%a: {}) -> tensor<4xf32>", "tensor<".repeat(9000)),
        format!("func.func @f(%a: {})", "(".repeat(9000)),
        format!("func.func @f(%a: {})", "() -> ".repeat(9000)),
        format!("func.func @f(%a: {wide}) -> {wide} {{ return %a : {wide} }}"),
        "{".repeat(60_000),
        "module {".repeat(7000),
        "#a = #b\n".repeat(8000),
        "#a = [#a]\n".to_owned(),
        "#a = [#b]\n#b = [#a]\n#c = #a".to_owned(),
        "%0 = ".repeat(10_000),
        "^bb0:".repeat(10_000),
        "func.func @f() { ^a: cf.br ^a }".to_owned(),
    ] {
        let start: String = body.chars().take(200).collect();
        assert!(!accepted(&vector(&body)), "{start}");
    }
}
