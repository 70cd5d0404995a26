//! rotini's side of the comparison, read from its sources: its schema, the IR's modes, and the
//! functions that the plugin exports.

use super::c::{Class, Functions, enum_members, is_exported};
use super::fbs::{self, Item, Kind, Schema, member};
use super::theirs::{Side, text};
use rotini_graph::PointwiseMode;
use std::fs;
use std::path::Path;

/// The enumerations of the C host's header: the prefix of the members, and the name in the
/// comparison.
const ENUMS: [(&str, &str); 3] = [
    ("STATUS_", "PluginStatus"),
    ("TYPE_", "PluginType"),
    ("SEVERITY_", "Severity"),
];

/// Reads rotini's sources below `root`.
///
/// # Errors
///
/// A message if a source cannot be read or parsed.
pub(crate) fn read(root: &Path) -> Result<Side, String> {
    let mut side = Side::default();
    for name in ["types", "operations", "graph", "engine"] {
        let file = root.join(format!("plugin/wire/schema/{name}.fbs"));
        fbs::read(&text(&file)?, &mut side.schema).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let modes = PointwiseMode::ALL
        .iter()
        .map(|mode| member(mode.name(), i64::from(mode.wire_value())));
    add(
        "PointwiseMode",
        "byte",
        [member("UNSET", 0)].into_iter().chain(modes),
        &mut side.schema,
    );
    fbs::finish(&mut side.schema);

    let header = text(&root.join("tests/host/hipdnn_plugin.h"))?;
    for (prefix, name) in ENUMS {
        let members = enum_members(&header, prefix);
        let members = members.iter().map(|(name, number)| member(name, *number));
        add(name, "int", members, &mut side.schema);
    }

    let directory = root.join("plugin/src/abi");
    let entries = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for entry in entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|ext| ext == "rs"))
    {
        functions(&text(&entry.path())?, &mut side.functions);
    }
    let module = text(&directory.join("mod.rs"))?;
    side.version = module
        .split_once("API_VERSION: [u32; 3] = [")
        .and_then(|(_, after)| after.split_once(']'))
        .and_then(|(numbers, _)| super::c::version(&numbers.replace(", ", ".")));
    if side.version.is_none() || side.functions.is_empty() {
        return Err("plugin/src/abi has no API version or no functions".to_owned());
    }
    Ok(side)
}

fn add(name: &str, base: &str, members: impl Iterator<Item = fbs::Member>, schema: &mut Schema) {
    let item = Item {
        kind: Kind::Enum,
        base: base.to_owned(),
        members: members.collect(),
    };
    schema.insert(name.to_owned(), item);
}

/// Adds the exported functions of a source file of the plugin.
fn functions(text: &str, functions: &mut Functions) {
    for part in text.split("extern \"C\" fn ").skip(1) {
        let Some((name, after)) = part.split_once('(') else {
            continue;
        };
        let Some((arguments, _)) = after.split_once(')').filter(|_| is_exported(name)) else {
            continue;
        };
        let types = arguments.split(',').filter_map(|argument| argument.split_once(':'));
        functions.insert(name.to_owned(), types.map(|(_, kind)| class(kind.trim())).collect());
    }
}

fn class(kind: &str) -> Class {
    match kind {
        "i64" => Class::Integer(true, 64),
        "i32" => Class::Integer(true, 32),
        "u64" | "usize" => Class::Integer(false, 64),
        "u32" => Class::Integer(false, 32),
        // A function pointer that may be null.
        "Option<Callback>" => Class::Pointer,
        pointer if pointer.starts_with('*') => Class::Pointer,
        other => Class::Other(other.to_owned()),
    }
}
