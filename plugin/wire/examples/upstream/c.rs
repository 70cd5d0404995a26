//! Reads C and C++ headers: prototypes, enumerations, macros, and the code that flatc generates for
//! C++.

use super::fbs::{Item, Kind, Member, Schema, member};
use std::collections::BTreeMap;

/// The way an argument is passed, on which both sides of a call must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A pointer to any type.
    Pointer,
    /// An integer or an enumeration: whether it is signed, and its number of bits.
    Integer(bool, u32),
    /// A type that this tool does not know.
    Other(String),
}

impl std::fmt::Display for Class {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Class::Pointer => write!(formatter, "pointer"),
            Class::Integer(true, bits) => write!(formatter, "int{bits}"),
            Class::Integer(false, bits) => write!(formatter, "uint{bits}"),
            Class::Other(name) => write!(formatter, "{name}"),
        }
    }
}

/// The arguments of functions, by the functions' names.
pub(crate) type Functions = BTreeMap<String, Vec<Class>>;

/// Types of the ABI that are pointers without a `*`.
const POINTERS: [&str; 4] = [
    "hipdnnEnginePluginHandle_t",
    "hipdnnEnginePluginExecutionContext_t",
    "hipStream_t",
    "hipdnnCallback_t",
];

/// Returns true if a plugin exports the function.
pub(crate) fn is_exported(name: &str) -> bool {
    name.starts_with("hipdnnPlugin") || name.starts_with("hipdnnEnginePlugin")
}

/// Returns the prototypes of exported functions in a header's text.
pub(crate) fn functions(text: &str) -> Functions {
    let text = without_comments(text);
    let mut found = Functions::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find("hipdnn") {
        let from = &rest[start..];
        let (name, after) = from.split_at(from.find(|sign| !is_word(sign)).unwrap_or(from.len()));
        rest = after;
        let Some((arguments, after)) = after
            .trim_start()
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'))
        else {
            continue;
        };
        if is_exported(name) && after.trim_start().starts_with(';') {
            let arguments = arguments.split(',').map(str::trim);
            let classes = arguments.filter(|argument| !["", "void"].contains(argument)).map(class);
            found.insert(name.to_owned(), classes.collect());
        }
    }
    found
}

fn class(argument: &str) -> Class {
    let type_name = argument.split_whitespace().find(|word| *word != "const").unwrap_or("");
    match type_name {
        _ if argument.contains('*') || POINTERS.contains(&type_name) => Class::Pointer,
        "int64_t" => Class::Integer(true, 64),
        "int32_t" | "int" => Class::Integer(true, 32),
        "uint64_t" | "size_t" => Class::Integer(false, 64),
        "uint32_t" => Class::Integer(false, 32),
        // The ABI's other types are enumerations.
        name if name.starts_with("hipdnn") && name.ends_with("_t") => Class::Integer(true, 32),
        other => Class::Other(other.to_owned()),
    }
}

/// Returns the members of all enumerations of a header whose names begin with `prefix`, without the
/// prefix.
pub(crate) fn enum_members(text: &str, prefix: &str) -> Vec<(String, i64)> {
    let text = without_comments(text);
    let bodies = text.split("enum").skip(1).filter_map(|part| {
        let (head, body) = part.split_once('{')?;
        let is_enum = !head.contains([';', '(', '}']);
        is_enum.then(|| body.split('}').next().unwrap_or(""))
    });
    let members = bodies.flat_map(members);
    members
        .filter_map(|(name, number)| Some((name.strip_prefix(prefix)?.to_owned(), number)))
        .collect()
}

/// Parses members such as `A = 0, B, C = 5`; a member without a number gets the next one.
fn members(body: &str) -> Vec<(String, i64)> {
    let mut members: Vec<(String, i64)> = Vec::new();
    for entry in body.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
        let (name, value) = (name.trim(), value.trim());
        let named = |value: &str| {
            members
                .iter()
                .find(|(name, _)| name == value)
                .map(|(_, number)| *number)
        };
        let next = members.last().map_or(0, |(_, number)| number.saturating_add(1));
        let number = if value.is_empty() {
            Some(next)
        } else {
            value.parse().ok().or_else(|| named(value))
        };
        if let Some(number) = number {
            members.push((name.to_owned(), number));
        }
    }
    members
}

/// Returns the number that a macro defines.
pub(crate) fn define(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let value = line.trim().strip_prefix("#define")?.trim_start().strip_prefix(name)?;
        value.starts_with(' ').then(|| value.trim().parse().ok())?
    })
}

/// Returns the text constants that are versions, such as `K_NAME = "1.2.0"`, in the order of the
/// file. A constant may refer to an earlier one.
pub(crate) fn version_constants(text: &str) -> Vec<(String, [u32; 3])> {
    let text = without_comments(text);
    let mut found: Vec<(String, [u32; 3])> = Vec::new();
    for statement in text.split(';') {
        let Some((left, right)) = statement.rsplit_once('=') else {
            continue;
        };
        let right = right.trim();
        let quoted = right.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let named = found
            .iter()
            .find(|(name, _)| name == right)
            .map(|(_, version)| *version);
        if let (Some(name), Some(version)) = (left.split_whitespace().last(), quoted.and_then(version).or(named)) {
            found.push((name.to_owned(), version));
        }
    }
    found
}

/// Parses a version of three numbers.
pub(crate) fn version(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Adds the enumerations, unions and field ids of a header that flatc generated for C++. Such a
/// header does not state the types of fields.
pub(crate) fn generated(text: &str, schema: &mut Schema) {
    let text = without_comments(text);
    for part in text.split("enum ").skip(1) {
        let part = part.strip_prefix("class ").unwrap_or(part);
        let Some((head, body)) = part.split_once('{') else {
            continue;
        };
        let (Some((name, base)), Some((body, _))) = (head.split_once(':'), body.split_once('}')) else {
            continue;
        };
        let name = name.trim();
        if name.split_whitespace().count() != 1 || head.contains(';') {
            continue;
        }
        let numbers = members(body).into_iter().map(|(member, number)| {
            let plain = member.strip_prefix(&format!("{name}_")).unwrap_or(&member);
            (plain.to_owned(), number)
        });
        let members = numbers
            .filter(|(member, _)| !["MIN", "MAX"].contains(&member.as_str()))
            .map(|(name, number)| member(&name, number))
            .collect();
        let item = Item {
            kind: Kind::Enum,
            base: base_name(base.trim()).to_owned(),
            members,
        };
        schema.insert(name.to_owned(), item);
    }
    for part in text.split("struct ").skip(1) {
        let name = part.split(|sign| !is_word(sign)).next().unwrap_or("");
        let Some((head, body)) = part.split_once('{') else {
            continue;
        };
        let ids = body
            .split_once("FlatBuffersVTableOffset")
            .filter(|_| head.contains("flatbuffers::Table"));
        let Some((_, ids)) = ids.and_then(|(_, rest)| rest.split_once('{')) else {
            continue;
        };
        let fields = members(ids.split('}').next().unwrap_or("")).into_iter().map(field);
        let item = Item {
            kind: Kind::Table,
            base: String::new(),
            members: fields.collect(),
        };
        schema.insert(name.to_owned(), item);
    }
}

/// Returns a field by the constant of its vtable offset: field 0 has 4, and each field takes 2.
fn field((constant, place): (String, i64)) -> Member {
    let name = constant.strip_prefix("VT_").unwrap_or(&constant).to_lowercase();
    // flatc appends an underscore to C++ keywords.
    let name = name.strip_suffix('_').unwrap_or(&name);
    member(name, place.saturating_sub(4) / 2)
}

fn base_name(name: &str) -> &str {
    match name {
        "int8_t" => "byte",
        "uint8_t" => "ubyte",
        "int32_t" => "int",
        "int64_t" => "long",
        other => other,
    }
}

fn is_word(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

/// Returns a C or C++ text without its comments.
fn without_comments(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        left.push_str(before);
        let end = if from.starts_with("//") {
            from.find('\n')
        } else if from.starts_with("/*") {
            left.push(' ');
            from.find("*/").map(|end| end + 2)
        } else {
            left.push('/');
            Some(1)
        };
        rest = &from[end.unwrap_or(from.len())..];
    }
    left + rest
}
