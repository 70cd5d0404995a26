//! hipDNN's side of the comparison, read from a directory with its sources: schemas, or the headers
//! that flatc generated from them, and the headers for plugins.

use super::c::{self, Functions};
use super::fbs::{self, Item, Kind, Schema, member};
use std::fs;
use std::path::{Path, PathBuf};

/// One side of the comparison: a version of hipDNN, or rotini.
#[derive(Default)]
pub(crate) struct Side {
    /// Enumerations, unions, tables and structs.
    pub(crate) schema: Schema,
    /// Exported functions.
    pub(crate) functions: Functions,
    /// The version of the engine API.
    pub(crate) version: Option<[u32; 3]>,
    /// The minimum API versions from which a host offers certain graphs.
    pub(crate) floors: Vec<(String, [u32; 3])>,
    /// Missing files, and what was not compared because of them.
    pub(crate) missing: Vec<String>,
    /// Prefixes of the names that the missing files would have defined.
    pub(crate) absent: Vec<&'static str>,
}

/// Folders whose schemas are not those of the wire: hipDNN's tests, build outputs, third-party
/// sources.
const LEFT_OUT: [&str; 5] = ["tests", "test", "build", "third_party", ".git"];

/// The enumerations of headers: the file, the prefix of the members, and the name in the
/// comparison.
const ENUMS: [(&str, &str, &str); 4] = [
    ("BehaviorNote.h", "HIPDNN_BEHAVIOR_NOTE_", "BehaviorNote"),
    ("PluginApiDataTypes.h", "HIPDNN_PLUGIN_STATUS_", "PluginStatus"),
    ("PluginApiDataTypes.h", "HIPDNN_PLUGIN_TYPE_", "PluginType"),
    ("CallbackTypes.h", "HIPDNN_SEV_", "Severity"),
];

/// A member that counts the others.
const COUNT: &str = "TYPE_COUNT";

/// Reads hipDNN's sources in a directory.
///
/// # Errors
///
/// A message if the directory cannot be read, has no schema, or contains a file that cannot be
/// parsed.
pub(crate) fn read(directory: &Path) -> Result<Side, String> {
    let mut files = Vec::new();
    find(directory, &mut files)?;
    files.sort();
    let mut side = Side::default();
    let schemas: Vec<_> = files.iter().filter(|file| ends_with(file, ".fbs")).collect();
    if schemas.is_empty() {
        for file in files.iter().filter(|file| ends_with(file, "_generated.h")) {
            c::generated(&text(file)?, &mut side.schema);
        }
        side.missing
            .push("*.fbs; the types and defaults of fields are not compared".to_owned());
    } else {
        for file in schemas {
            fbs::read(&text(file)?, &mut side.schema).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        fbs::finish(&mut side.schema);
    }
    if side.schema.is_empty() {
        return Err(format!("{} has neither *.fbs nor *_generated.h", directory.display()));
    }

    let named = |name: &str| {
        files
            .iter()
            .find(|file| file.file_name().is_some_and(|other| other == name))
    };
    for (name, prefix) in [
        ("PluginApi.h", "hipdnnPlugin"),
        ("EnginePluginApi.h", "hipdnnEnginePlugin"),
    ] {
        match named(name) {
            Some(file) => side.functions.extend(c::functions(&text(file)?)),
            None => {
                side.missing.push(format!("{name}; {prefix}… is not compared"));
                side.absent.push(prefix);
            }
        }
    }
    for (file, prefix, name) in ENUMS {
        let Some(path) = named(file) else {
            side.missing.push(format!("{file}; {name} is not compared"));
            side.absent.push(name);
            continue;
        };
        let members = c::enum_members(&text(path)?, prefix);
        let item = Item {
            kind: Kind::Enum,
            base: "int".to_owned(),
            members: members
                .iter()
                .filter(|(name, _)| name != COUNT)
                .map(|(name, number)| member(name, *number))
                .collect(),
        };
        side.schema.insert(name.to_owned(), item);
    }
    match named("engine_api_version.h") {
        Some(file) => {
            let text = text(file)?;
            let number = |part| c::define(&text, &format!("HIPDNN_ENGINE_API_VERSION_{part}"));
            side.version = number("MAJOR")
                .zip(number("MINOR"))
                .zip(number("PATCH"))
                .map(|((major, minor), patch)| [major, minor, patch]);
            if side.version.is_none() {
                return Err(format!("{} has no version", file.display()));
            }
        }
        None => side
            .missing
            .push("engine_api_version.h; the API version is not compared".to_owned()),
    }
    match named("PluginVersionConstants.hpp") {
        Some(file) => side.floors = c::version_constants(&text(file)?),
        None => side
            .missing
            .push("PluginVersionConstants.hpp; the features' versions are not compared".to_owned()),
    }
    Ok(side)
}

/// Reads the text of a file.
pub(crate) fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn ends_with(file: &Path, ending: &str) -> bool {
    file.to_str().is_some_and(|name| name.ends_with(ending))
}

/// Collects the files below a directory, without following links.
fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let error = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(error)? {
        let entry = entry.map_err(error)?;
        let kind = entry.file_type().map_err(error)?;
        if kind.is_dir() && !LEFT_OUT.iter().any(|left_out| entry.file_name() == *left_out) {
            find(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
