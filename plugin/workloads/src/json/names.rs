//! The members of the schema's enums, by name or number.
//!
//! hipDNN writes members of the enums for which it has a table of names as names, in upper or lower
//! case, and others as numbers.

use super::fields::{Field, Fields, Made, shown};
use rotini_graph::{
    AttentionImplementation, ConvMode, DataType, DiagonalAlignment, MoeMode, NormPhase, PaddingMode, PointwiseMode,
    ReductionMode, ResampleMode,
};
use rotini_wire::SchemaEnum;
use serde_json::Value;

/// Names that hipDNN writes instead of the schema's. Those of types are in its golden data, and
/// differ from its own table of names (`json/Common.hpp`).
const OTHER_NAMES: &[(&str, &str)] = &[
    ("FLOAT16", "HALF"),
    ("FLOAT32", "FLOAT"),
    ("FLOAT64", "DOUBLE"),
    ("BOOL", "BOOLEAN"),
    ("NOT_SET", "PADDING_NOT_SET"),
];

/// Returns the member with a value's name or number; `Ok(None)` if the value means "not set".
fn find<E: SchemaEnum>(fields: &Fields<'_>, name: &str, value: &Value) -> Made<Option<E>> {
    let found = match value {
        Value::String(text) => {
            let text = text.to_ascii_uppercase();
            let other = OTHER_NAMES.iter().find(|(other, _)| *other == text);
            let text = other.map_or(text.as_str(), |(_, name)| name);
            // `MAX_OP` is called `MAX` in some of hipDNN's tables.
            E::members().find(|(_, name, _)| *name == text || name.strip_suffix("_OP") == Some(text))
        }
        _ => {
            let number = value.as_i64();
            E::members().find(|(of, ..)| Some(*of) == number)
        }
    };
    let is_unset = match value {
        Value::String(text) => ["UNSET", "NOT_SET"]
            .iter()
            .any(|unset| text.eq_ignore_ascii_case(unset)),
        _ => value.as_i64() == Some(0),
    };
    match found {
        Some((.., member)) => Ok(Some(member)),
        None if is_unset => Ok(None),
        None => Err(fields.error(format!("{name} is {}, which is not known", shown(value)))),
    }
}

fn read<E: SchemaEnum>(fields: &mut Fields<'_>, name: &str) -> Made<E> {
    let found = match fields.take(name) {
        // The schema's default is number 0.
        None => E::members()
            .find(|(number, ..)| *number == 0)
            .map(|(.., member)| member),
        Some(value) => find(fields, name, &value)?,
    };
    found.ok_or_else(|| fields.missing(name))
}

macro_rules! enums {
    ($($ty:ty),* $(,)?) => {$(
        impl Field for $ty {
            fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
                read(fields, name)
            }
        }
    )*};
}

enums!(
    AttentionImplementation,
    ConvMode,
    DiagonalAlignment,
    MoeMode,
    NormPhase,
    PaddingMode,
    PointwiseMode,
    ReductionMode,
    ResampleMode,
);

impl Field for Option<DataType> {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        match fields.take(name) {
            None => Ok(None),
            Some(value) => find(fields, name, &value),
        }
    }
}
