//! No attribute of an operation is silently ignored. If an attribute changes, or an optional tensor
//! is added or removed, the compiled module changes, or the graph is declined or malformed.
//!
//! The test writes and changes operations in their serialized form, so it sees every field. A field
//! without a change fails the test. Nothing is compiled: the test compares the lowered modules as
//! text.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

mod base;
mod changes;

use base::{Change, To};
use changes::bases;
use rotini_emit::{EmitError, Target, emit};
use rotini_graph::{Graph, Op};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Fields that need not change the result: the base, the field and the reason.
const IGNORED: &[(&str, &str, &str)] = &[
    (
        "batchnorm without running statistics",
        "momentum",
        "it is the weight of running statistics",
    ),
    (
        "layernorm backward with statistics",
        "epsilon",
        "it is in the statistics already",
    ),
    (
        "reduction",
        "is_deterministic",
        "every reduction is: nothing is combined in an order that varies",
    ),
    (
        "average pooling",
        "padding_mode",
        "its own mode says what an average makes of padding",
    ),
    (
        "pooling backward",
        "padding_mode",
        "its own mode says what an average makes of padding",
    ),
    (
        "layernorm",
        "phase",
        "statistics are written where there are tensors for them",
    ),
    (
        "attention",
        "implementation",
        "a hint about speed: there is one implementation",
    ),
    (
        "attention with stats",
        "generate_stats",
        "statistics are written where there is a tensor for them",
    ),
];

/// Returns the paths of all fields of an operation, except for those that name tensors.
fn fields(op: &Op) -> BTreeSet<String> {
    let value = serde_json::to_value(op).expect("operations are serialized");
    let mut tensors = BTreeSet::new();
    op.for_each_input(&mut |field, _| _ = tensors.insert(field));
    op.for_each_output(&mut |field, _| _ = tensors.insert(field));
    let mut fields = BTreeSet::new();
    let variant = value.as_object().and_then(|variants| variants.values().next());
    for (name, value) in variant.and_then(Value::as_object).into_iter().flatten() {
        match value {
            _ if tensors.contains(name.as_str()) => {}
            Value::Object(inner) => fields.extend(inner.keys().map(|inner| format!("{name}.{inner}"))),
            _ => _ = fields.insert(name.clone()),
        }
    }
    fields
}

/// The result of checking and lowering a graph.
#[derive(PartialEq, Debug)]
enum Outcome {
    Malformed,
    Declined,
    /// The modules for all targets.
    Lowered(Vec<String>),
    /// Lowered, but these arguments do not affect the results.
    Unread(Vec<String>),
}

fn outcome(name: &str, mut graph: Graph) -> Outcome {
    if graph.validate().is_err() {
        return Outcome::Malformed;
    }
    let (normal, _) = graph.normalise();
    let mut modules = Vec::new();
    for target in ["cpu", "gfx942"] {
        match emit(&normal, &Target::parse(target).expect("a known target")) {
            Ok(emitted) => modules.push(emitted.mlir),
            Err(EmitError::Unsupported(_)) => return Outcome::Declined,
            Err(error) => panic!("{name} for {target}: {error}"),
        }
    }
    for module in &modules {
        let unread = unread(module);
        if !unread.is_empty() {
            return Outcome::Unread(unread);
        }
    }
    Outcome::Lowered(modules)
}

/// Returns the arguments of the lowered function that do not affect its results.
fn unread(module: &str) -> Vec<String> {
    let (signature, body) = module
        .split_once("@compute(")
        .and_then(|(_, rest)| rest.split_once('\n'))
        .expect("a module has a function");
    let values = |text: &str| -> BTreeSet<String> {
        let end = |rest: &str| {
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .unwrap_or(rest.len())
        };
        text.split('%')
            .skip(1)
            .map(|rest| rest[..end(rest)].to_owned())
            .collect()
    };
    // A statement of the function consists of a line that is indented by two spaces and the lines
    // below it.
    let mut statements: Vec<String> = Vec::new();
    for line in body.lines().take_while(|line| *line != "}") {
        let inner = line.strip_prefix("  ").unwrap_or(line);
        match statements.last_mut() {
            Some(statement) if inner.starts_with([' ', '}', '^']) => {
                statement.push('\n');
                statement.push_str(inner);
            }
            _ => statements.push(inner.to_owned()),
        }
    }
    // Backwards from the results, through their operands.
    let mut live = BTreeSet::new();
    for statement in statements.iter().rev() {
        let (made, of) = statement.split_once(" = ").unwrap_or(("", statement));
        if made.is_empty() || values(made).iter().any(|value| live.contains(value)) {
            live.extend(values(of));
        }
    }
    let arguments = values(signature).into_iter();
    arguments.filter(|argument| !live.contains(argument)).collect()
}

#[test]
fn every_change_of_an_attribute_is_noticed() {
    let mut failures = Vec::new();
    let mut accepted = 0;
    for base in bases() {
        let before = outcome(base.name, base.graph(&[]));
        let is_right = matches!(before, Outcome::Lowered(_) | Outcome::Declined);
        assert!(is_right, "{}: {before:?}", base.name);
        let mut seen = vec![(String::from("the base"), before)];
        for Change(fields) in &base.changes {
            let (field, to) = &fields[0];
            let what = match to {
                To::Value(value) => format!("{}: {field} = {value}", base.name),
                To::Tensor(..) => format!("{}: with {field}", base.name),
            };
            let after = outcome(&what, base.graph(fields));
            accepted += usize::from(matches!(after, Outcome::Lowered(_)));
            let is_ignored = IGNORED
                .iter()
                .any(|(name, ignored, _)| *name == base.name && ignored == field);
            if is_ignored {
                if after != seen[0].1 && !matches!(after, Outcome::Unread(_)) {
                    failures.push(format!("{what}: said to be ignored, and is not"));
                }
                continue;
            }
            match (&seen[0].1, &after) {
                (_, Outcome::Unread(arguments)) => failures.push(format!("{what}: {arguments:?} lead to nothing")),
                // An operation without a lowering yet: its attributes cannot be tested.
                (Outcome::Declined, Outcome::Lowered(_)) => failures.push(format!("{what}: lowered, but not the base")),
                (_, Outcome::Malformed | Outcome::Declined) => continue,
                _ => {}
            }
            if let Some((other, _)) = seen.iter().find(|(_, other)| *other == after) {
                failures.push(format!("{what} is as {other}"));
            }
            seen.push((what, after));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(accepted > 100, "only {accepted} changes are lowered");
}

#[test]
fn every_attribute_of_every_operation_is_changed() {
    let mut wanted: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut changed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for base in bases() {
        let op = base.operation();
        wanted.entry(op.kind()).or_default().extend(fields(&op));
        let fields = base.changes.iter().map(|Change(fields)| fields[0].0.to_owned());
        changed.entry(op.kind()).or_default().extend(fields);
    }
    let kinds: BTreeSet<&str> = wanted.keys().copied().collect();
    assert_eq!(kinds, Op::KINDS.iter().copied().collect());
    for (kind, fields) in wanted {
        let missing: Vec<&String> = fields.difference(&changed[kind]).collect();
        assert!(missing.is_empty(), "{kind}: nothing changes {missing:?}");
    }
}
