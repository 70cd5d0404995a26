//! Compares rotini's and hipDNN's sides, item by item.

use super::c::{Class, Functions};
use super::fbs::{Item, Kind, Member, Schema};
use super::theirs::Side;
use std::collections::BTreeSet;

/// The result of comparing an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Both have it, with the same number.
    Same,
    /// Only rotini has it.
    Ours,
    /// Only hipDNN has it.
    Theirs,
    /// The sides differ, for a known reason that makes the difference harmless.
    Explained,
    /// A name has two numbers, a number two names, or a field two types or defaults.
    Disagrees,
}

impl Status {
    /// All statuses.
    pub(crate) const ALL: [Status; 5] = [
        Status::Same,
        Status::Ours,
        Status::Theirs,
        Status::Explained,
        Status::Disagrees,
    ];

    /// Returns the name in the output.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Status::Same => "same",
            Status::Ours => "ours only",
            Status::Theirs => "theirs only",
            Status::Explained => "explained",
            Status::Disagrees => "DISAGREES",
        }
    }
}

/// An item of the comparison.
pub(crate) struct Line {
    /// The result of the comparison.
    pub(crate) status: Status,
    /// The description of the item.
    pub(crate) text: String,
}

/// The result of a comparison.
#[derive(Default)]
pub(crate) struct Report {
    /// Every item.
    pub(crate) lines: Vec<Line>,
    /// Descriptions of what was not compared.
    pub(crate) missing: Vec<String>,
}

impl Report {
    fn add(&mut self, status: Status, text: impl Into<String>) {
        self.lines.push(Line {
            status,
            text: text.into(),
        });
    }

    /// Returns the number of items with a status.
    pub(crate) fn count(&self, status: Status) -> usize {
        self.lines.iter().filter(|line| line.status == status).count()
    }
}

/// Fields whose defaults differ without harm, with the reason.
const EXPLAINED: [(&str, &str); 1] = [(
    "ResampleFwdAttributes.generate_index",
    "absent and false mean the same: no index",
)];

/// The union that rotini's schema names differently, because flatc cannot generate unions of
/// structs for Rust: rotini's name and hipDNN's.
const SPELLED_OUT: (&str, &str) = ("TensorValueType", "TensorValue");

/// The field whose enumeration is in the IR instead of the schema, and its type.
const MODE: (&str, &str) = ("PointwiseAttributes.operation", "PointwiseMode of byte");

/// Compares rotini's side with hipDNN's.
pub(crate) fn compare(ours: &Side, theirs: &Side) -> Report {
    let mut report = Report {
        missing: theirs.missing.clone(),
        ..Report::default()
    };
    schemas(&ours.schema, theirs, &mut report);
    functions(&ours.functions, theirs, &mut report);
    versions(ours, theirs, &mut report);
    report
}

fn what(item: &Item) -> &'static str {
    match item.kind {
        Kind::Enum => "enum",
        Kind::Union => "union",
        Kind::Table => "table",
        Kind::Struct => "struct",
    }
}

/// Returns true if a name is not compared, because the file that would define it is missing.
fn is_absent(side: &Side, name: &str) -> bool {
    side.absent.iter().any(|prefix| name.starts_with(prefix))
}

fn schemas(ours: &Schema, side: &Side, report: &mut Report) {
    let theirs = &side.schema;
    let mut seen = BTreeSet::new();
    for (name, item) in ours.iter().filter(|(name, _)| !is_absent(side, name)) {
        let their_name = if name == SPELLED_OUT.0 { SPELLED_OUT.1 } else { name };
        let Some(other) = theirs.get(their_name) else {
            report.add(Status::Ours, format!("{} {name}", what(item)));
            continue;
        };
        seen.insert(their_name);
        let is_numbers = |item: &Item| matches!(item.kind, Kind::Enum | Kind::Union);
        if item.kind != other.kind && !(is_numbers(item) && is_numbers(other)) {
            let text = format!("{name}: ours is a {}, theirs a {}", what(item), what(other));
            report.add(Status::Disagrees, text);
            continue;
        }
        if item.base != other.base {
            let text = format!(
                "{name}: the numbers of ours are {}, of theirs {}",
                item.base, other.base
            );
            report.add(Status::Disagrees, text);
        }
        members((ours, item), (theirs, other), their_name, report);
    }
    for (name, item) in theirs.iter().filter(|(name, _)| !seen.contains(name.as_str())) {
        // rotini's schema has only the numbers of the union of structs, not the structs themselves.
        let is_value = |union: &Item| union.members.iter().any(|member| member.kind == *name);
        if !theirs.get(SPELLED_OUT.1).is_some_and(is_value) {
            report.add(Status::Theirs, format!("{} {name}", what(item)));
        }
    }
}

fn members((ours, item): (&Schema, &Item), (theirs, other): (&Schema, &Item), of: &str, report: &mut Report) {
    let by_name = |item: &Item, name: &str| item.members.iter().position(|member| member.name == name);
    let by_number = |item: &Item, number| item.members.iter().find(|member| member.number == number).cloned();
    for (position, member) in (0..).zip(&item.members) {
        let label = format!("{of}.{}", member.name);
        match by_name(other, &member.name).map(|at| (at, &other.members[at])) {
            Some((_, their)) if their.number != member.number => {
                let text = format!("{label}: ours {}, theirs {}", member.number, their.number);
                report.add(Status::Disagrees, text);
            }
            Some((at, _)) => field((ours, item, position), (theirs, other, at), &label, report),
            None => match by_number(other, member.number).filter(|their| by_name(item, &their.name).is_none()) {
                Some(their) => {
                    let text = format!("{of}: {} is ours {}, theirs {}", member.number, member.name, their.name);
                    report.add(Status::Disagrees, text);
                }
                None => report.add(Status::Ours, format!("{label} = {}", member.number)),
            },
        }
    }
    for their in other
        .members
        .iter()
        .filter(|their| by_name(item, &their.name).is_none())
    {
        match by_number(item, their.number) {
            // The loop above has reported this pair.
            Some(member) if by_name(other, &member.name).is_none() => {}
            Some(member) => {
                let text = format!("{of}: {} is ours {}, theirs {}", their.number, member.name, their.name);
                report.add(Status::Disagrees, text);
            }
            None => report.add(Status::Theirs, format!("{of}.{} = {}", their.name, their.number)),
        }
    }
}

/// Compares the types and defaults of a member whose name and number are the same.
fn field(ours: (&Schema, &Item, usize), theirs: (&Schema, &Item, usize), label: &str, report: &mut Report) {
    let (member, their) = (&ours.1.members[ours.2], &theirs.1.members[theirs.2]);
    let same = format!("{label} = {}", member.number);
    let is_field = matches!(ours.1.kind, Kind::Table | Kind::Struct) && !their.kind.is_empty();
    // A deprecated field only keeps its id; its value is never read.
    if !is_field || member.deprecated || their.deprecated {
        report.add(Status::Same, same);
        return;
    }
    let our_type = if label == MODE.0 {
        MODE.1.to_owned()
    } else {
        wire_type(ours.0, ours.1, member)
    };
    let their_type = wire_type(theirs.0, theirs.1, their);
    let (our_default, their_default) = (default(ours.0, member), default(theirs.0, their));
    if our_type != their_type {
        report.add(
            Status::Disagrees,
            format!("{label}: ours has the type {our_type}, theirs {their_type}"),
        );
    } else if our_default == their_default {
        report.add(Status::Same, same);
    } else {
        let text = format!("{label}: ours has the default {our_default}, theirs {their_default}");
        match EXPLAINED.iter().find(|(known, _)| *known == label) {
            Some((_, reason)) => report.add(Status::Explained, format!("{text}; {reason}")),
            None => report.add(Status::Disagrees, text),
        }
    }
}

/// Returns the type of a field; for an enumeration, its name and the type of its numbers.
fn wire_type(schema: &Schema, item: &Item, field: &Member) -> String {
    let element = field.kind.trim_matches(['[', ']']);
    let is_value = |other: &Member| other.number == field.number + 1 && other.kind == field.kind;
    match schema.get(element) {
        // hipDNN declares the notes as plain integers.
        Some(found) if element == "BehaviorNote" => field.kind.replace(element, &found.base),
        Some(found) if found.kind == Kind::Union && !item.members.iter().any(is_value) => format!("union {element}"),
        Some(found) if matches!(found.kind, Kind::Enum | Kind::Union) => {
            let name = if element == SPELLED_OUT.0 {
                SPELLED_OUT.1
            } else {
                element
            };
            field.kind.replace(element, &format!("{name} of {}", found.base))
        }
        _ => field.kind.clone(),
    }
}

/// Returns a field's default as a number, or `null`.
fn default(schema: &Schema, field: &Member) -> String {
    let Some(default) = &field.default else {
        return "0".to_owned();
    };
    let named = schema.get(&field.kind).into_iter().flat_map(|item| &item.members);
    match named.into_iter().find(|member| member.name == *default) {
        Some(member) => member.number.to_string(),
        None if default == "true" => "1".to_owned(),
        None => default.clone(),
    }
}

fn functions(ours: &Functions, side: &Side, report: &mut Report) {
    let theirs = &side.functions;
    let text = |classes: &[Class]| classes.iter().map(Class::to_string).collect::<Vec<_>>().join(", ");
    for (name, arguments) in ours.iter().filter(|(name, _)| !is_absent(side, name)) {
        match theirs.get(name) {
            Some(other) if other == arguments => report.add(Status::Same, format!("{name}({})", text(arguments))),
            Some(other) => {
                let text = format!("{name}: ours takes ({}), theirs ({})", text(arguments), text(other));
                report.add(Status::Disagrees, text);
            }
            None => report.add(Status::Ours, format!("{name}({})", text(arguments))),
        }
    }
    for (name, arguments) in theirs.iter().filter(|(name, _)| !ours.contains_key(*name)) {
        report.add(Status::Theirs, format!("{name}({})", text(arguments)));
    }
}

fn versions(ours: &Side, theirs: &Side, report: &mut Report) {
    let Some(our_version) = ours.version else {
        return;
    };
    let text = |[major, minor, patch]: [u32; 3]| format!("{major}.{minor}.{patch}");
    let own = text(our_version);
    if let Some(version) = theirs.version {
        let line = format!("engine API: ours {own}, theirs {}", text(version));
        let status = if version[0] != our_version[0] {
            Status::Disagrees
        } else {
            match version.cmp(&our_version) {
                std::cmp::Ordering::Less => Status::Ours,
                std::cmp::Ordering::Equal => Status::Same,
                std::cmp::Ordering::Greater => Status::Theirs,
            }
        };
        report.add(status, line);
    }
    for (name, version) in &theirs.floors {
        let status = if *version > our_version {
            Status::Theirs
        } else {
            Status::Same
        };
        report.add(status, format!("{name} = {}, ours is {own}", text(*version)));
    }
}
