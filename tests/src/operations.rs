//! Writes `docs/operations.md` from the facts of right executions.
//!
//! Two runs provide facts: the conformance run on the CPU and the one on the emulated MI300. Each
//! keeps the facts of its cases in a file of `tests/operations`. The document combines both files
//! and the declined graphs. A run fails if its facts differ from its file, or the document from the
//! files. `scripts/operations` writes them.

#![expect(clippy::expect_used, reason = "what cannot be compared has failed")]

use crate::cases::{self, Case};
use crate::facts::{Fact, LAYOUTS, facts};
use rotini_emit::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The runs, named as the files of their facts.
const RUNS: [&str; 2] = ["cpu", "gfx942"];

/// Compares the facts of cases that all ran right with this run's file, or writes the file if
/// `ROTINI_OPERATIONS=write`.
///
/// # Panics
///
/// If they differ, or the file cannot be written.
#[expect(clippy::print_stdout, reason = "what is left out is told")]
pub fn record(run: &str, cases: &[Case]) {
    for (variable, why) in [
        ("ROTINI_CASE", "some cases were left out"),
        ("ROTINI_TEST_DEVICE", "this was another device"),
    ] {
        if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            println!("docs/operations.md is not compared: {why}");
            return;
        }
    }
    let found: String = facts(cases).iter().map(|fact| fact.line() + "\n").collect();
    let action = std::env::var("ROTINI_OPERATIONS").unwrap_or_default();
    assert!(["", "write"].contains(&action.as_str()), "ROTINI_OPERATIONS={action}");
    if action == "write" {
        std::fs::write(kept(run), found).expect("the directory of facts can be written");
        std::fs::write(document(), rendered()).expect("the document can be written");
        return;
    }
    for (path, found) in [(kept(run), found), (document(), rendered())] {
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let odd = there.lines().zip(found.lines()).find(|(there, found)| there != found);
        assert!(
            there == found,
            "{} is stale, from {odd:?}; scripts/operations makes it anew",
            path.display()
        );
    }
}

fn kept(run: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("operations")
        .join(format!("{run}.txt"))
}

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md")
}

/// Types that an operation reads, writes and computes in.
type Types = [String; 3];

/// The runs in which an operation was right, per layout.
type Row = [BTreeSet<&'static str>; LAYOUTS.len()];

/// The facts, each with the runs that prove it.
type Known = BTreeMap<Fact, BTreeSet<&'static str>>;

fn known() -> Known {
    let mut known = Known::new();
    for run in RUNS {
        let text = std::fs::read_to_string(kept(run)).unwrap_or_default();
        for line in text.lines() {
            let fact = Fact::parse(line).expect("a line that a run wrote");
            known.entry(fact).or_default().insert(run);
        }
    }
    known
}

/// Returns the mark of some runs in the tables.
fn mark(runs: &BTreeSet<&str>) -> &'static str {
    match (runs.contains("cpu"), runs.contains("gfx942")) {
        (true, true) => "✓",
        (true, false) => "CPU",
        (false, true) => "GPU",
        (false, false) => "",
    }
}

/// Sections in order, and the operations in each.
const SECTIONS: [(&str, &[&str]); 9] = [
    (
        "Convolution",
        &["convolution fprop", "convolution dgrad", "convolution wgrad"],
    ),
    (
        "Matmul",
        &["matmul", "MoE grouped matmul", "MoE grouped matmul backward"],
    ),
    ("Pointwise", &["pointwise"]),
    ("Reduction", &["reduction"]),
    ("Normalization", &cases::NORMS),
    ("Attention", &["SDPA", "SDPA backward"]),
    ("Pooling", &["resample forward", "resample backward"]),
    ("Block scaling", &["block-scale quantize", "block-scale dequantize"]),
    ("Custom operations", &["custom op"]),
];

fn rendered() -> String {
    let known = known();
    let mut text = String::from(
        "# What runs, and what is declined\n\n\
         Made by `scripts/operations` from what executed right; do not edit it. What is listed here ran in at least one conformance case, within what its types \
         and one rounding per stored tensor allow: on the CPU (`tests/tests/conformance`), and as gfx942 code on an emulated MI300 \
         (`tests/tests/emulated`). **✓** is both, **CPU** or **GPU** one of them. What is not listed may run, too: `rotini check` tells. What is declined, with the \
         reason, is at the end; semantics and accuracy are in [semantics.md](semantics.md).\n\n\
         The columns say how the tensors of an operation lie in memory: *row-major* (NCHW), *channels-last* (NHWC), in *other orders* (transposed, or each \
         its own), with *gaps* between elements, with elements *repeated* by a stride of 0; *broadcast* is an operand of other extents than the result.\n",
    );
    for (title, operations) in SECTIONS {
        section(&mut text, &known, title, operations);
    }
    graphs(&mut text, &known);
    declined(&mut text);
    text
}

fn section(text: &mut String, known: &Known, title: &str, operations: &[&str]) {
    // Keyed by the operation's position here, its mode and its types.
    let mut rows: BTreeMap<(usize, String, Types), Row> = BTreeMap::new();
    for (fact, runs) in known {
        let Fact::Node {
            operation,
            mode,
            types,
            layout,
        } = fact
        else {
            continue;
        };
        let Some(position) = operations.iter().position(|name| name == operation) else {
            continue;
        };
        let cells = rows.entry((position, mode.clone(), types.clone())).or_default();
        if let Some(cell) = LAYOUTS.iter().position(|name| name == layout) {
            cells[cell].extend(runs);
        }
    }
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## {title}\n");
    // Modes with the same marks share a row.
    let mut shared: BTreeMap<(usize, Types, [&str; LAYOUTS.len()]), Vec<String>> = BTreeMap::new();
    for ((position, mode, types), cells) in &rows {
        let cells = std::array::from_fn(|index| mark(&cells[index]));
        shared
            .entry((*position, types.clone(), cells))
            .or_default()
            .push(mode.clone());
    }
    let columns: Vec<usize> = (0..LAYOUTS.len())
        .filter(|&column| rows.values().any(|cells| !cells[column].is_empty()))
        .collect();
    let names: String = columns
        .iter()
        .map(|&column| format!(" {} |", LAYOUTS[column]))
        .collect();
    let _ = writeln!(text, "| Operation | Reads | Writes | Computes in |{names}");
    let _ = writeln!(text, "|---|---|---|---|{}", "---|".repeat(columns.len()));
    let mut sorted: Vec<_> = shared.into_iter().collect();
    sorted.sort_by_key(|((position, types, _), modes)| (*position, modes.join(", "), types.clone()));
    for ((position, [reads, writes, compute], cells), modes) in sorted {
        let all: BTreeSet<&String> = rows
            .keys()
            .filter(|(of, ..)| *of == position)
            .map(|(_, mode, _)| mode)
            .collect();
        let others: Vec<&str> = all
            .iter()
            .filter(|mode| !modes.contains(mode))
            .map(|mode| mode.as_str())
            .collect();
        let listed = if others.len() < modes.len() && modes.len() > 3 {
            format!("all but {}", others.join(", "))
        } else {
            modes.join(", ")
        };
        let operation = match modes.as_slice() {
            [mode] if mode.is_empty() => operations[position].to_owned(),
            _ if others.is_empty() => operations[position].to_owned(),
            _ if operations.len() == 1 => listed,
            _ => format!("{}: {listed}", operations[position]),
        };
        let cells: String = columns.iter().map(|&column| format!(" {} |", cells[column])).collect();
        let _ = writeln!(text, "| {operation} | {reads} | {writes} | {compute} |{cells}");
    }
    for operation in operations {
        let features: Vec<String> = known
            .iter()
            .filter_map(|(fact, runs)| match fact {
                Fact::Feature { operation: of, feature } if of == operation => Some(match mark(runs) {
                    "✓" => feature.clone(),
                    one => format!("{feature} ({one})"),
                }),
                _ => None,
            })
            .collect();
        if !features.is_empty() {
            let _ = writeln!(text, "\n{operation}, also with: {}.", features.join(", "));
        }
    }
}

fn graphs(text: &mut String, known: &Known) {
    let mut rows: BTreeMap<&str, BTreeMap<&'static str, Vec<&str>>> = BTreeMap::new();
    for (fact, runs) in known {
        if let Fact::Graph { operations, types } = fact {
            rows.entry(operations)
                .or_default()
                .entry(mark(runs))
                .or_default()
                .push(types);
        }
    }
    if rows.is_empty() {
        return;
    }
    text.push_str(
        "\n## Graphs of several operations\n\n| Operations, in order | Tensors in memory |  |\n|---|---|---|\n",
    );
    for (operations, by_mark) in rows {
        for (mark, types) in by_mark {
            let _ = writeln!(text, "| {operations} | {} | {mark} |", types.join("; "));
        }
    }
}

/// Writes the reasons of `check` for every declined case, without the names in them.
fn declined(text: &mut String) {
    let targets = [Target::Cpu, Target::parse("gfx942").expect("a known target")];
    let mut rows: BTreeMap<String, (BTreeSet<&'static str>, BTreeSet<&'static str>)> = BTreeMap::new();
    for (Case { name, mut graph }, _) in cases::declined() {
        assert!(graph.validate().is_ok(), "{name}");
        let (graph, _) = graph.normalise();
        for (target, run) in targets.iter().zip(RUNS) {
            if let Err(unsupported) = rotini_emit::check(&graph, target) {
                let node = unsupported.node.and_then(|node| graph.nodes().get(node));
                let reason = if unsupported.reason.ends_with("(docs/custom-op.md)") {
                    "a body with something that [custom-op.md](custom-op.md) does not allow".to_owned()
                } else {
                    unsupported.reason.replace('|', "\\|")
                };
                let (operations, runs) = rows.entry(reason).or_default();
                operations.insert(node.map_or("any", |node| node.op.kind()));
                runs.insert(run);
            }
        }
    }
    text.push_str("\n## Declined\n\n| Reason | Operations |  |\n|---|---|---|\n");
    for (reason, (operations, runs)) in rows {
        let operations = operations.into_iter().collect::<Vec<_>>().join(", ");
        let where_not_both = Some(mark(&runs)).filter(|mark| *mark != "✓").unwrap_or_default();
        let _ = writeln!(text, "| {reason} | {operations} | {where_not_both} |");
    }
}

#[cfg(test)]
mod tests {
    use super::SECTIONS;
    use rotini_graph::Op;

    #[test]
    fn every_operation_has_a_section() {
        let mut listed: Vec<&str> = SECTIONS
            .iter()
            .flat_map(|(_, operations)| *operations)
            .copied()
            .collect();
        let mut all = Op::KINDS.to_vec();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }
}
