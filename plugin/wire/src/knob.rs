//! Knob values, which engine details and engine configs share.

use crate::generated::engine_generated as wire;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// The value of a knob.
#[derive(Clone, Debug, PartialEq)]
pub enum KnobValue {
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(String),
}

/// Reads the union of values from any of the tables that have it. Evaluates to `Err` with the
/// number of the union's type if it is unset or unknown.
macro_rules! read {
    ($table:expr, $kind:ident, $integer:ident, $float:ident, $text:ident) => {{
        let table = $table;
        if let Some(value) = table.$integer() {
            Ok($crate::KnobValue::Integer(value.value()))
        } else if let Some(value) = table.$float() {
            Ok($crate::KnobValue::Float(value.value()))
        } else if let Some(value) = table.$text() {
            Ok($crate::KnobValue::Text(value.value().unwrap_or_default().to_owned()))
        } else {
            Err(table.$kind().0)
        }
    }};
}
pub(crate) use read;

/// Appends a value.
pub(crate) fn write(
    value: &KnobValue,
    builder: &mut FlatBufferBuilder<'_>,
) -> (wire::KnobValue, WIPOffset<UnionWIPOffset>) {
    match value {
        KnobValue::Integer(value) => {
            let table = wire::IntValue::create(builder, &wire::IntValueArgs { value: *value });
            (wire::KnobValue::IntValue, table.as_union_value())
        }
        KnobValue::Float(value) => {
            let table = wire::FloatValue::create(builder, &wire::FloatValueArgs { value: *value });
            (wire::KnobValue::FloatValue, table.as_union_value())
        }
        KnobValue::Text(value) => {
            let value = Some(builder.create_string(value));
            let table = wire::StringValue::create(builder, &wire::StringValueArgs { value });
            (wire::KnobValue::StringValue, table.as_union_value())
        }
    }
}
