//! Finds every enumeration in the bytes of a graph or an engine config, by the schema's text and
//! without the generated code.

use super::fbs::{self, Kind, Schema};

/// The position of an enumeration in the bytes.
pub(crate) struct Place {
    /// Table and field.
    pub(crate) field: String,
    /// Position of the enumeration's byte.
    pub(crate) at: usize,
    /// Whether the byte is signed.
    pub(crate) signed: bool,
    /// The largest number that the schema knows.
    pub(crate) largest: u8,
}

impl Place {
    /// Returns bytes that no member has: the next number, one far off, and the last.
    pub(crate) fn unknown(&self) -> [u8; 3] {
        [
            self.largest.checked_add(1).expect("an enumeration of 256 members"),
            99,
            0xFF,
        ]
    }

    /// Returns the number of a byte at this place.
    pub(crate) fn number(&self, byte: u8) -> i64 {
        if self.signed {
            i64::from(byte.cast_signed())
        } else {
            i64::from(byte)
        }
    }
}

/// The field whose enumeration is in the IR instead of the schema's text.
const MODE: (&str, &str) = ("PointwiseAttributes", "operation");

/// Reads the schema of graphs and engine configs.
pub(crate) fn schema() -> Schema {
    let mut schema = Schema::new();
    for text in [
        include_str!("../../schema/types.fbs"),
        include_str!("../../schema/operations.fbs"),
        include_str!("../../schema/graph.fbs"),
        include_str!("../../schema/engine.fbs"),
    ] {
        fbs::read(text, &mut schema).expect("the schema is read");
    }
    fbs::finish(&mut schema);
    schema
}

/// Returns the fields below the table `root` that hold enumerations, as [`Place::field`] names
/// them.
pub(crate) fn fields(schema: &Schema, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut tables = vec![root.to_owned()];
    let mut next = 0;
    while let Some(table) = tables.get(next).cloned() {
        next += 1;
        for field in &schema[&table].members {
            let element = field.kind.trim_matches(['[', ']']);
            if (table.as_str(), field.name.as_str()) == MODE {
                found.push(format!("{table}.{}", field.name));
            }
            match schema.get(element).map(|item| item.kind) {
                _ if field.deprecated => {}
                Some(Kind::Enum) => found.push(format!("{table}.{}", field.name)),
                Some(Kind::Union) => {
                    if is_type(schema, &table, field) {
                        found.push(format!("{table}.{}", field.name));
                    }
                    for member in schema[element].members.iter().skip(1) {
                        if !tables.contains(&member.kind) {
                            tables.push(member.kind.clone());
                        }
                    }
                }
                Some(Kind::Table) if !tables.contains(&element.to_owned()) => tables.push(element.to_owned()),
                _ => {}
            }
        }
    }
    found
}

/// Returns every enumeration in `bytes`, whose root is the table `root`. Fields with their default
/// value are not in the bytes.
pub(crate) fn places(schema: &Schema, root: &str, bytes: &[u8]) -> Vec<Place> {
    let mut places = Vec::new();
    table(schema, root, bytes, follow(bytes, 0), &mut places);
    places
}

fn table(schema: &Schema, name: &str, bytes: &[u8], position: usize, places: &mut Vec<Place>) {
    for field in schema[name].members.iter().filter(|field| !field.deprecated) {
        let Some(at) = slot(bytes, position, field.number) else {
            continue;
        };
        let mut push = |largest: i64, base: &str| {
            assert!(
                ["byte", "ubyte"].contains(&base),
                "{name}.{} has more than a byte",
                field.name
            );
            places.push(Place {
                field: format!("{name}.{}", field.name),
                at,
                signed: base == "byte",
                largest: u8::try_from(largest).expect("a number of a byte"),
            });
        };
        if (name, field.name.as_str()) == MODE {
            let modes = rotini_graph::PointwiseMode::ALL.iter();
            push(
                modes.map(|mode| i64::from(mode.wire_value())).max().unwrap_or(0),
                "byte",
            );
            continue;
        }
        let element = field.kind.trim_matches(['[', ']']);
        let Some(item) = schema.get(element) else {
            continue;
        };
        let largest = item.members.iter().map(|member| member.number).max().unwrap_or(0);
        match item.kind {
            Kind::Enum => push(largest, &item.base),
            Kind::Union if is_type(schema, name, field) => push(largest, &item.base),
            Kind::Union => {
                let kind = slot(bytes, position, field.number - 1).map_or(0, |at| i64::from(bytes[at]));
                if let Some(member) = item.members.iter().find(|member| member.number == kind) {
                    table(schema, &member.kind, bytes, follow(bytes, at), places);
                }
            }
            Kind::Table if field.kind.starts_with('[') => {
                let vector = follow(bytes, at);
                for index in 0..word(bytes, vector) {
                    table(schema, element, bytes, follow(bytes, vector + 4 + 4 * index), places);
                }
            }
            Kind::Table => table(schema, element, bytes, follow(bytes, at), places),
            Kind::Struct => {}
        }
    }
}

/// Returns true if a field of a union's type is the union's kind and not its value.
fn is_type(schema: &Schema, table: &str, field: &fbs::Member) -> bool {
    let value = field.number + 1;
    schema[table]
        .members
        .iter()
        .any(|other| other.number == value && other.kind == field.kind)
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..][..4].try_into().expect("four bytes")) as usize
}

/// Returns the position that an offset points to.
fn follow(bytes: &[u8], at: usize) -> usize {
    at + word(bytes, at)
}

/// Returns the position of the field with this id in the table at `position`.
fn slot(bytes: &[u8], position: usize, id: i64) -> Option<usize> {
    let half = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let back = i64::from(i32::from_le_bytes(
        bytes[position..][..4].try_into().expect("four bytes"),
    ));
    let vtable = usize::try_from(i64::try_from(position).expect("a position") - back).expect("a position");
    let entry = 4 + 2 * usize::try_from(id).expect("an id");
    let offset = if entry < half(vtable) { half(vtable + entry) } else { 0 };
    (offset > 0).then(|| position + offset)
}
