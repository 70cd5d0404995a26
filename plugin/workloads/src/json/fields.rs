//! The fields of a JSON object: each is taken once, and none may remain.

use crate::WorkloadError;
use rotini_graph::TensorId;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt::Display;

pub(super) type Made<T> = Result<T, WorkloadError>;

/// Returns an error at a place of the text.
pub(super) fn error(place: &str, what: impl Display) -> WorkloadError {
    WorkloadError::Json {
        place: place.to_owned(),
        what: what.to_string(),
    }
}

/// Returns the name of a node for messages.
pub(super) fn label(position: usize, name: &str, table: &str) -> String {
    let beginning = |text: &str| text.chars().take(MOST_SHOWN).collect::<String>();
    match name {
        "" => format!("node {position} ({})", beginning(table)),
        _ => format!("node '{}' ({})", beginning(name), beginning(table)),
    }
}

/// Maximum number of characters of the input that a message repeats.
const MOST_SHOWN: usize = 60;

/// Returns a value's text for messages, shortened.
pub(super) fn shown(value: &Value) -> String {
    value.to_string().chars().take(MOST_SHOWN).collect()
}

/// The fields of an object that have not been taken yet.
pub(super) struct Fields<'a> {
    /// A description of the object, for messages.
    pub(super) place: String,
    left: Map<String, Value>,
    uids: Option<&'a HashMap<i64, TensorId>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(place: String, left: Map<String, Value>) -> Self {
        Fields {
            place,
            left,
            uids: None,
        }
    }

    pub(super) fn of(place: String, value: Value) -> Made<Self> {
        match value {
            Value::Object(object) => Ok(Fields::new(place, object)),
            other => Err(error(&place, format!("{} is no object", shown(&other)))),
        }
    }

    /// Returns the fields with the tensors to which uids can refer.
    pub(super) fn with_uids(self, uids: &'a HashMap<i64, TensorId>) -> Fields<'a> {
        Fields {
            uids: Some(uids),
            ..self
        }
    }

    pub(super) fn error(&self, what: impl Display) -> WorkloadError {
        error(&self.place, what)
    }

    /// Takes a field's value; `None` if it is absent or null, which are equivalent in this form.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a list that must be present.
    pub(super) fn list(&mut self, name: &str) -> Made<Vec<Value>> {
        match self.take(name) {
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(self.wrong(name, &other, "list")),
            None => Err(self.missing(name)),
        }
    }

    /// Moves the fields of the inner object `group` to this one.
    pub(super) fn flatten(&mut self, group: &str) -> Made<()> {
        let inner = match self.take(group) {
            None => return Ok(()),
            Some(Value::Object(inner)) => inner,
            Some(other) => return Err(self.wrong(group, &other, "object")),
        };
        for (name, value) in inner {
            if self.left.get(&name).is_some_and(|old| *old != value) {
                return Err(self.error(format!("has {name} twice")));
            }
            self.left.insert(name, value);
        }
        Ok(())
    }

    /// Checks that no fields remain except remarks.
    pub(super) fn end(self) -> Made<()> {
        let is_remark = |name: &str| name.starts_with('_') || name == "umd_flops" || name == "umd_bytes";
        let mut left = self
            .left
            .iter()
            .filter(|(name, value)| !value.is_null() && !is_remark(name));
        match left.next() {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(MOST_SHOWN).collect();
                Err(self.error(format!("the field {name} is not known")))
            }
        }
    }

    pub(super) fn missing(&self, name: &str) -> WorkloadError {
        self.error(format!("has no {name}"))
    }

    pub(super) fn wrong(&self, name: &str, value: &Value, kind: &str) -> WorkloadError {
        self.error(format!("{name} is {}, which is no {kind}", shown(value)))
    }

    fn tensor(&self, name: &str, value: &Value) -> Made<TensorId> {
        let uid = value.as_i64().ok_or_else(|| self.wrong(name, value, "uid"))?;
        let found = self.uids.and_then(|uids| uids.get(&uid)).copied();
        found.ok_or_else(|| self.error(format!("{name} is {uid}, which no tensor has")))
    }
}

/// A value that a field can have.
pub(super) trait Field: Sized {
    /// Takes the field with the schema's name `name`.
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self>;
}

/// A type of single values of fields.
trait Single: Sized {
    const KIND: &'static str;
    fn of(value: &Value) -> Option<Self>;
}

macro_rules! singles {
    ($($ty:ty, $kind:literal, $of:expr;)*) => {$(
        impl Single for $ty {
            const KIND: &'static str = $kind;
            fn of(value: &Value) -> Option<Self> {
                let of: fn(&Value) -> Option<Self> = $of;
                of(value)
            }
        }

        impl Field for Option<$ty> {
            fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
                let Some(value) = fields.take(name) else { return Ok(None) };
                <$ty>::of(&value).map(Some).ok_or_else(|| fields.wrong(name, &value, <$ty>::KIND))
            }
        }
    )*};
}

singles! {
    i64, "integer", Value::as_i64;
    i32, "integer of 32 bits", |value| i32::try_from(value.as_i64()?).ok();
    u8, "byte", |value| u8::try_from(value.as_i64()?).ok();
    f32, "number", |value| Some(value.as_f64()? as f32);
    bool, "boolean", Value::as_bool;
    String, "text", |value| value.as_str().map(str::to_owned);
}

macro_rules! required {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
                let value: Option<$ty> = Field::read(fields, name)?;
                value.ok_or_else(|| fields.missing(name))
            }
        }
    )*};
}

required!(i64, i32, String);

impl Field for bool {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        let value: Option<bool> = Field::read(fields, name)?;
        Ok(value.unwrap_or(false))
    }
}

impl<T: Single> Field for Vec<T> {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        let list = match fields.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(fields.wrong(name, &other, "list")),
        };
        let one = |value| T::of(value).ok_or_else(|| fields.wrong(name, value, T::KIND));
        list.iter().map(one).collect()
    }
}

impl Field for Option<TensorId> {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        let value = fields.take(name);
        value.map(|value| fields.tensor(name, &value)).transpose()
    }
}

impl Field for TensorId {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        let id: Option<TensorId> = Field::read(fields, name)?;
        id.ok_or_else(|| fields.missing(name))
    }
}

impl Field for Vec<TensorId> {
    fn read(fields: &mut Fields<'_>, name: &str) -> Made<Self> {
        let list = match fields.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(fields.wrong(name, &other, "list")),
        };
        list.iter().map(|value| fields.tensor(name, value)).collect()
    }
}
