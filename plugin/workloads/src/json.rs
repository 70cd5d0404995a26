//! hipDNN's JSON form of graphs, which its tools read and write.
//!
//! The graph is an object with `tensors` and `nodes`. A node's `type` is the name of its
//! operation's table. The fields of that table have the schema's names and are in the node itself
//! or in its objects `inputs`, `outputs`, `parameters` and `attributes`: versions of hipDNN differ
//! in that, so fields are accepted in any of these. Enums are names, in upper or lower case, or
//! numbers. A field that is absent or null has the schema's default.
//!
//! | Module | Contents |
//! |---|---|
//! | `fields` | an object's fields: each is taken once, and none may be left |
//! | `names` | members of enums, by name or number |
//! | `operations` | operations, by the schema's list of their fields |

mod fields;
mod names;
mod operations;

use crate::{Workload, WorkloadError};
use fields::{Field, Fields, Made, error, label, shown};
use rotini_graph::{DataType, Graph, Node, Scalar, Tensor, TensorId, TensorKind};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Reads a graph from a text in hipDNN's JSON form.
///
/// # Errors
///
/// [`WorkloadError::Json`] if the text is not JSON, a field is missing, unknown or of the wrong
/// kind, or the graph is not valid.
pub fn from_json(text: &str) -> Result<Workload, WorkloadError> {
    let value: Value = serde_json::from_str(text).map_err(|what| error("the text", what))?;
    match value {
        Value::Object(object) => from_object(object),
        _ => Err(error("the text", "is no object")),
    }
}

/// Returns true if an object is meant to be a graph: it has the lists `tensors` and `nodes`.
pub(crate) fn is_graph(object: &Map<String, Value>) -> bool {
    ["tensors", "nodes"]
        .iter()
        .all(|&key| object.get(key).is_some_and(Value::is_array))
}

/// Returns the error for a graph whose text ends too early.
pub(crate) fn unfinished() -> WorkloadError {
    error("the graph", "does not end")
}

/// Reads a graph from a JSON object.
pub(crate) fn from_object(object: Map<String, Value>) -> Made<Workload> {
    let mut fields = Fields::new("the graph".to_owned(), object);
    let name: Option<String> = Field::read(&mut fields, "name")?;
    let name = name
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "graph".to_owned());
    let types = Types {
        compute: Field::read(&mut fields, "compute_data_type")?,
        io: Field::read(&mut fields, "io_data_type")?,
        intermediate: Field::read(&mut fields, "intermediate_data_type")?,
    };
    let override_shapes = Field::read(&mut fields, "is_override_shape_enabled")?;
    let min_api_version = match fields.take("min_required_engine_api_version") {
        None => [1, 0, 0],
        Some(version) => api_version(version)?,
    };
    // The preferred engine and the graph's id do not affect the computation.
    fields.take("preferred_engine_id");
    fields.take("id");
    let mut tensors = Vec::new();
    for (position, value) in fields.list("tensors")?.into_iter().enumerate() {
        tensors.push(TensorFields::read(position, value)?);
    }
    let nodes = fields.list("nodes")?;
    fields.end()?;

    let uids: HashMap<i64, TensorId> = (0..)
        .map(TensorId)
        .zip(&tensors)
        .map(|(id, tensor)| (tensor.uid, id))
        .collect();
    if let Some((_, twice)) = (0..)
        .map(TensorId)
        .zip(&tensors)
        .find(|(id, tensor)| uids.get(&tensor.uid) != Some(id))
    {
        return Err(error("the graph", format!("two tensors have the uid {}", twice.uid)));
    }
    let graph = Graph {
        name: name.clone(),
        nodes: nodes
            .into_iter()
            .enumerate()
            .map(|(position, value)| node(position, value, &types, &uids))
            .collect::<Made<_>>()?,
        tensors: tensors
            .into_iter()
            .map(|tensor| tensor.tensor(&types, &uids))
            .collect::<Made<_>>()?,
        override_shapes,
        min_api_version,
    };
    let bytes = rotini_wire::encode(&graph);
    // Decoding validates the graph, so every workload holds a valid one.
    rotini_wire::decode(&bytes).map_err(|what| error("the graph", what))?;
    Ok(Workload {
        origin: format!("hipDNN's JSON, {name}"),
        name,
        graph: bytes,
        published: Vec::new(),
    })
}

/// The graph's default types.
struct Types {
    compute: Option<DataType>,
    io: Option<DataType>,
    intermediate: Option<DataType>,
}

fn api_version(value: Value) -> Made<[u32; 3]> {
    let place = "min_required_engine_api_version";
    let mut fields = Fields::of(place.to_owned(), value)?;
    let mut numbers = [0; 3];
    for (number, name) in numbers.iter_mut().zip(["major", "minor", "patch"]) {
        let value: i64 = Field::read(&mut fields, name)?;
        *number = u32::try_from(value).map_err(|_| error(place, format!("{name} is {value}")))?;
    }
    fields.end()?;
    Ok(numbers)
}

/// A tensor whose fields cannot be read yet, because other tensors' uids are not known.
struct TensorFields {
    uid: i64,
    fields: Fields<'static>,
}

impl TensorFields {
    fn read(position: usize, value: Value) -> Made<Self> {
        let mut fields = Fields::of(format!("tensor {position}"), value)?;
        let uid = Field::read(&mut fields, "uid")?;
        fields.place = format!("the tensor with uid {uid}");
        Ok(TensorFields { uid, fields })
    }

    fn tensor(self, types: &Types, uids: &HashMap<i64, TensorId>) -> Made<Tensor> {
        let mut fields = self.fields.with_uids(uids);
        let is_virtual: bool = Field::read(&mut fields, "virtual")?;
        let is_runtime: bool = Field::read(&mut fields, "is_runtime_pass_by_value")?;
        let default = if is_virtual { types.intermediate } else { types.io };
        let own: Option<DataType> = Field::read(&mut fields, "data_type")?;
        let dtype = own.or(default).ok_or_else(|| fields.error("has no data_type"))?;
        let kind = match (is_virtual, value(&mut fields)?, is_runtime) {
            (false, Some(scalar), _) => TensorKind::Constant(scalar),
            (false, None, true) => TensorKind::RuntimeScalar,
            (false, None, false) => TensorKind::Buffer,
            (true, None, false) => TensorKind::Virtual,
            (true, ..) => return Err(fields.error("is virtual and has a value")),
        };
        let multiplier: Option<i64> = Field::read(&mut fields, "ragged_offset_multiplier")?;
        if multiplier.is_some_and(|by| by != 1) {
            return Err(fields.error("ragged_offset_multiplier is not 1"));
        }
        let alignment: Option<i64> = Field::read(&mut fields, "alignment")?;
        let name: Option<String> = Field::read(&mut fields, "name")?;
        let tensor = Tensor {
            uid: self.uid,
            name: name.unwrap_or_default(),
            dtype,
            dims: Field::read(&mut fields, "dims")?,
            strides: Field::read(&mut fields, "strides")?,
            kind,
            ragged_offset: Field::read(&mut fields, "ragged_offset_tensor_uid")?,
            alignment: alignment.unwrap_or(16),
        };
        fields.end()?;
        Ok(tensor)
    }
}

/// Reads the value that a tensor holds, if any.
fn value(fields: &mut Fields<'_>) -> Made<Option<Scalar>> {
    let form: Option<String> = Field::read(fields, "value_type")?;
    let value = fields.take("value");
    let (form, value) = match (form, value) {
        (None, None) => return Ok(None),
        (Some(form), None) if form == "NONE" => return Ok(None),
        // JSON has no NaN and infinities; they are written as null.
        (Some(form), None) => return Err(fields.error(format!("has a value_type, {form}, and no value"))),
        (None, Some(_)) => return Err(fields.error("has a value and no value_type")),
        (Some(form), Some(value)) => (form, value),
    };
    let scalar = match form.as_str() {
        "Float32Value" | "Float16Value" | "BFloat16Value" | "Float64Value" => value.as_f64().map(Scalar::float),
        "Int32Value" => value
            .as_i64()
            .filter(|&value| i32::try_from(value).is_ok())
            .map(Scalar::Integer),
        "Int64Value" => value.as_i64().map(Scalar::Integer),
        // Older versions of hipDNN lack the name `BoolValue` and write the first name of their
        // table, `NONE`, instead.
        "BoolValue" | "NONE" => value.as_bool().map(|value| Scalar::Integer(value.into())),
        _ => return Err(fields.error(format!("value_type {form} is not read"))),
    };
    scalar
        .map(Some)
        .ok_or_else(|| fields.error(format!("the value {} is no {form}", shown(&value))))
}

fn node(position: usize, value: Value, types: &Types, uids: &HashMap<i64, TensorId>) -> Made<Node> {
    let mut fields = Fields::of(format!("node {position}"), value)?.with_uids(uids);
    let name: Option<String> = Field::read(&mut fields, "name")?;
    let name = name.unwrap_or_default();
    let table: String = Field::read(&mut fields, "type")?;
    fields.place = label(position, &name, &table);
    let own: Option<DataType> = Field::read(&mut fields, "compute_data_type")?;
    let compute = own
        .or(types.compute)
        .ok_or_else(|| fields.error("has no compute_data_type"))?;
    for group in ["inputs", "outputs", "parameters", "attributes"] {
        fields.flatten(group)?;
    }
    let op = operations::read(&table, &mut fields)?;
    fields.end()?;
    Ok(Node { name, compute, op })
}
