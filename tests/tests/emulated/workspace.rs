//! Compares the workspace that is reported before a graph is compiled with the need of its code,
//! for MI300; and on CPUs with the operands. Nothing is executed here.
//!
//! - `ROTINI_SUITES`: suites whose graphs are compiled, such as `resnet50,bert`, or `all`; `cases`
//!   is the conformance suite. Default: `quick`, and all but the cases in a full run
//! - `ROTINI_STEP`: step through the cases: every one, every second, …
//! - `ROTINI_TARGET`: another target than `mi300x`
//! - `ROTINI_GRAPHS`, `ROTINI_SEED`: number of random graphs, and the first seed; 16 graphs, and
//!   500 in a full run
//!
//! `ROTINI_TEST_CACHE` keeps the code, so an interrupted run continues where it was.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up has failed, and prints what it measured"
)]

use rayon::iter::Either;
use rayon::prelude::*;
use rotini_emit::{Target, workspace_bound};
use rotini_graph::{ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, SdpaBackward};
use rotini_plugin::compile::{compiled, key};
use rotini_plugin::config::Config;
use rotini_plugin::prepared::{Prepared, check};
use rotini_plugin::runtime::Runtime;
use rotini_reference::span_bytes;
use rotini_tests::cases::Case;
use rotini_tests::harness::stored;
use rotini_tests::random::{Settings, recipe};
use rotini_tests::share_of;
use rotini_workloads::blocks::Direction;
use rotini_workloads::suites::{SUITES, SuiteOptions, suite};
use std::path::PathBuf;

/// Reports up to this number of bytes count as exact: no allocation fails for them.
const SMALL: u64 = 64 << 20;
/// Largest allowed ratio of a larger report to the need.
const WORST: u64 = 4;
/// Up to this number of bytes the host is asked for no workspace.
const LITTLE: u64 = 16 << 10;

/// One in this many attention cases is compiled for other GPUs.
const SHARE: u64 = 60;

/// Largest allowed ratio of a suite graph's workspace to its operands' bytes on CPUs.
const OPERANDS: u64 = 4;

/// A graph with its reported workspace, its needed workspace, and the span of its inputs and
/// outputs, in bytes.
struct Measured {
    name: String,
    reported: u64,
    needed: u64,
    operands: u64,
}

impl Measured {
    fn ratio(&self) -> f64 {
        match (self.reported, self.needed) {
            (0, 0) => 1.0,
            (reported, needed) => reported as f64 / needed.max(1) as f64,
        }
    }

    fn is_far(&self) -> bool {
        self.reported > SMALL.max(self.needed.saturating_mul(WORST))
    }
}

fn runtime() -> Runtime {
    let mut config = Config::from_env();
    if let Some(directory) = std::env::var_os("ROTINI_TEST_CACHE").filter(|directory| !directory.is_empty()) {
        config.cache_dir = Some(PathBuf::from(directory));
    } else {
        config.cache_dir = None;
    }
    config.reproducers = None;
    Runtime::new(config).expect("the plugin's state")
}

/// Returns the graphs of the requested suites, without duplicates.
fn suites() -> Vec<(String, Vec<u8>)> {
    let asked = std::env::var("ROTINI_SUITES").unwrap_or_else(|_| rotini_tests::scaled(["quick", "all"]).to_owned());
    let is_named = |name: &str| asked.split(',').any(|word| word == name);
    let is_asked = |name: &str| asked == "all" || is_named(name);
    let mut graphs: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, _) in SUITES.iter().filter(|(name, _)| is_asked(name)) {
        let directions: &[Option<Direction>] = match *name {
            "resnet50" => &[None, Some(Direction::Dgrad), Some(Direction::Wgrad)],
            _ => &[None],
        };
        for &direction in directions {
            for dtype in [None, Some(DataType::F16), Some(DataType::F32)] {
                // In f32 the database of 400 convolutions adds no information.
                if *name == "miopen" && dtype.is_some() {
                    continue;
                }
                let options = SuiteOptions {
                    dtype,
                    direction,
                    ..SuiteOptions::default()
                };
                let workloads = suite(name, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
                for workload in workloads {
                    if graphs.iter().all(|(_, graph)| *graph != workload.graph) {
                        let dtype = dtype.map_or(String::new(), |dtype| format!(" {dtype}"));
                        graphs.push((format!("{name} {}{dtype}", workload.name), workload.graph));
                    }
                }
            }
        }
    }
    if is_named("cases") {
        let step = std::env::var("ROTINI_STEP").map_or(1, |text| text.parse().expect("a number"));
        let cases = rotini_tests::cases::all().into_iter().step_by(step);
        graphs.extend(cases.map(|case| (format!("case {}", case.name), rotini_wire::encode(&case.graph))));
    }
    graphs
}

/// Returns the bytes that the inputs and outputs of a graph span.
fn operands(bytes: &[u8]) -> anyhow::Result<u64> {
    let graph = rotini_wire::decode(bytes)?;
    let tensors = stored(&graph).into_iter().filter_map(|(id, _)| graph.tensor(id));
    let bytes: Result<u64, _> = tensors.map(|tensor| span_bytes(tensor).map(|bytes| bytes as u64)).sum();
    Ok(bytes?)
}

/// Measures a graph; `None` if it is declined.
fn measured(runtime: &Runtime, target: &Target, (name, bytes): &(String, Vec<u8>)) -> Option<Result<Measured, String>> {
    let prepared = check(bytes, target).ok()?;
    let needed = |prepared: &Prepared| -> Result<u64, String> {
        let compiled_for = target.clone().into();
        let key = key(runtime, &prepared.graph, &compiled_for).map_err(|error| error.to_string())?;
        let found = compiled(runtime, &key, &prepared.source(bytes, &compiled_for));
        let (entry, _) = found.map_err(|error| format!("{name}: {error}"))?;
        Ok(entry.metadata.facts.workspace_bytes)
    };
    let measure = || {
        let reported = workspace_bound(&prepared.graph, target).map_err(|error| format!("{name}: {error}"))?;
        let needed = needed(&prepared)?;
        let asked = |bytes: u64| if bytes <= LITTLE { 0 } else { bytes };
        let operands = operands(bytes).map_err(|error| format!("{name}: {error:#}"))?;
        // Printed at once: the test may take an hour.
        println!("{reported:16} {needed:16} {operands:16}  {name}");
        if reported < needed {
            return Err(format!("{name}: {reported} bytes are reported and {needed} needed"));
        }
        Ok(Measured {
            name: name.clone(),
            reported: asked(reported),
            needed: asked(needed),
            operands,
        })
    };
    Some(measure())
}

/// Measures all graphs that are not declined; returns the measurements and the errors.
fn each_measured(runtime: &Runtime, target: &Target, graphs: &[(String, Vec<u8>)]) -> (Vec<Measured>, Vec<String>) {
    graphs
        .par_iter()
        .with_max_len(1)
        .filter_map(|graph| measured(runtime, target, graph))
        .partition_map(|result| match result {
            Ok(measured) => Either::Left(measured),
            Err(fault) => Either::Right(fault),
        })
}

/// Returns the graphs of public bug reports: without scores and patches in memory, these need
/// little workspace.
fn reported_by_users() -> Vec<(String, Vec<u8>)> {
    let bf16 = DataType::Bf16;
    let mut b = GraphBuilder::new("wgrad of a 3D convolution");
    let x = b.buffer_channels_last("x", bf16, &[1, 128, 67, 258, 258]);
    let dy = b.buffer_channels_last("dy", bf16, &[1, 128, 65, 256, 256]);
    let dw = b.buffer_channels_last("dw", bf16, &[128, 128, 3, 3, 3]);
    let geometry = ConvGeometry::same(3, 0);
    b.node("wgrad", DataType::F32, ConvWgrad { x, dy, dw, geometry });
    let mut graphs = vec![b.build()];
    for keys in [4096, 32768] {
        let mut b = GraphBuilder::new(&format!("gradients of attention over {keys} keys"));
        let mut buffer = |name: &str| b.buffer(name, DataType::F16, &[1, 32, keys, 128]);
        let [q, k, v, o, d_o, dq, dk, dv] = ["q", "k", "v", "o", "do", "dq", "dk", "dv"].map(&mut buffer);
        let stats = b.buffer("stats", DataType::F32, &[1, 32, keys, 1]);
        let op = SdpaBackward::new([q, k, v, o, d_o, stats], [dq, dk, dv]);
        b.node("sdpa", DataType::F32, Box::new(op));
        graphs.push(b.build());
    }
    let encoded = |graph: Graph| (graph.name.clone(), rotini_wire::encode(&graph));
    graphs.into_iter().map(encoded).collect()
}

/// The report is never too small, and not much larger than the need.
#[test]
fn the_report_follows_what_is_compiled() {
    let name = std::env::var("ROTINI_TARGET").unwrap_or_else(|_| "mi300x".to_owned());
    let target = Target::parse(&name).expect("a known target");
    let runtime = runtime();
    let mut graphs = suites();
    graphs.extend(reported_by_users());
    let Settings { seed, count } = Settings::from_environment([16, 500]);
    graphs.extend((seed..seed + count).map(|seed| {
        let graph = recipe(seed).graph();
        (format!("seed {seed}"), rotini_wire::encode(&graph))
    }));
    let (mut all, faults) = each_measured(&runtime, &target, &graphs);
    all.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    println!("{:>16} {:>16} {:>8}  graph", "reported", "needed", "ratio");
    for Measured {
        name, reported, needed, ..
    } in &all
    {
        let ratio = *reported as f64 / (*needed).max(1) as f64;
        println!("{reported:16} {needed:16} {ratio:8.2}  {name}");
    }
    let median = all.get(all.len() / 2).map_or(1.0, Measured::ratio);
    let far: Vec<&str> = all
        .iter()
        .filter(|one| one.is_far())
        .map(|one| one.name.as_str())
        .collect();
    println!(
        "{} graphs: median of reported over needed {median:.2}; {} farther than {WORST} times and {SMALL} bytes; {} below or not compiled",
        all.len(),
        far.len(),
        faults.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        far.is_empty(),
        "much more is reported than is needed: {}",
        far.join(", ")
    );
    assert!(median <= 1.2, "the median of reported over needed is {median}");
}

/// Covers attention without rotini's kernels: IREE fuses other operations for each kind of GPU.
#[test]
fn the_report_is_enough_for_attention_by_iree() {
    let runtime = runtime();
    let is_attention = |case: &Case| case.name.starts_with("sdpa") || case.name.starts_with("bool_sdpa");
    let cases: Vec<_> = rotini_tests::cases::all().into_iter().filter(is_attention).collect();
    let encoded = |case: Case| (case.name, rotini_wire::encode(&case.graph));
    let graphs: Vec<_> = share_of(cases, SHARE).into_iter().map(encoded).collect();
    for name in ["sm_80", "gfx90a"] {
        let target = Target::parse(name).expect("a known target");
        let (all, faults) = each_measured(&runtime, &target, &graphs);
        assert!(!all.is_empty() && faults.is_empty(), "{name}:\n{}", faults.join("\n"));
    }
}

/// On CPUs no graph of the suites needs more than a few times the bytes of its operands.
#[test]
fn cpus_need_a_few_times_the_operands() {
    let runtime = runtime();
    let graphs = suites();
    for name in ["x86-64-v3", "x86-64-v4"] {
        let target = Target::parse(name).expect("a known target");
        let (all, faults) = each_measured(&runtime, &target, &graphs);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let large: Vec<String> = all
            .iter()
            .filter(|one| one.needed > one.operands.saturating_mul(OPERANDS))
            .map(|one| format!("{}: {} for {}", one.name, one.needed, one.operands))
            .collect();
        assert!(!all.is_empty() && large.is_empty(), "{name}:\n{}", large.join("\n"));
    }
}
