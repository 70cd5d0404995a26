//! A graph of one operation in its serialized form, and changes to its fields.

use rotini_graph::{DataType, Graph, GraphBuilder, Node, Op, TensorId};
use serde_json::{Value, json};

/// A graph of one operation, and the changes to it.
pub(super) struct Base {
    pub(super) name: &'static str,
    pub(super) tensors: Vec<(&'static str, DataType, Vec<i64>)>,
    pub(super) op: Value,
    pub(super) changes: Vec<Change>,
}

/// New values of fields that are changed together; the first field is the one under test.
pub(super) struct Change(pub(super) Vec<(&'static str, To)>);

/// The new content of a field.
#[derive(Clone)]
pub(super) enum To {
    /// Another value.
    Value(Value),
    /// A separate tensor.
    Tensor(DataType, Vec<i64>),
}

impl Base {
    /// Adds single values for a field, each tested alone.
    pub(super) fn values(mut self, field: &'static str, values: impl IntoIterator<Item = Value>) -> Self {
        self.changes
            .extend(values.into_iter().map(|value| Change(vec![(field, To::Value(value))])));
        self
    }

    /// Adds a new tensor for a field.
    pub(super) fn tensor(mut self, field: &'static str, dtype: DataType, dims: &[i64]) -> Self {
        self.changes
            .push(Change(vec![(field, To::Tensor(dtype, dims.to_vec()))]));
        self
    }

    /// Adds fields that are changed together.
    pub(super) fn together(mut self, fields: &[(&'static str, To)]) -> Self {
        self.changes.push(Change(fields.to_vec()));
        self
    }

    pub(super) fn operation(&self) -> Op {
        serde_json::from_value(self.op.clone()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Builds the graph with some fields changed.
    pub(super) fn graph(&self, changed: &[(&'static str, To)]) -> Graph {
        let mut builder = GraphBuilder::new("attributes");
        for (name, dtype, dims) in &self.tensors {
            builder.buffer(name, *dtype, dims);
        }
        // Serialized with all its fields.
        let mut op = serde_json::to_value(self.operation()).expect("operations are serialized");
        for (field, to) in changed {
            let slot = slot(&mut op, field);
            match to {
                To::Value(value) => *slot = value.clone(),
                To::Tensor(dtype, dims) => {
                    let TensorId(id) = builder.buffer(field, *dtype, dims);
                    match slot {
                        Value::Array(list) => list.push(id.into()),
                        other => *other = id.into(),
                    }
                }
            }
        }
        let mut graph = builder.build();
        graph.nodes.push(Node {
            name: "node".to_owned(),
            compute: DataType::F32,
            op: serde_json::from_value(op).unwrap_or_else(|error| panic!("{}: {error}", self.name)),
        });
        graph
    }
}

/// Returns a field of a serialized operation, by its path.
pub(super) fn slot<'a>(op: &'a mut Value, path: &str) -> &'a mut Value {
    let fields = op
        .as_object_mut()
        .and_then(|variants| variants.values_mut().next())
        .expect("an operation is a variant with fields");
    path.split('.').fold(fields, |at, field| {
        at.get_mut(field).unwrap_or_else(|| panic!("there is no field {path}"))
    })
}

pub(super) type Tensor<'a> = (&'static str, DataType, &'a [i64]);

pub(super) fn base(name: &'static str, tensors: &[Tensor<'_>], op: Value) -> Base {
    let owned = |&(name, dtype, dims): &Tensor<'_>| (name, dtype, dims.to_vec());
    Base {
        name,
        tensors: tensors.iter().map(owned).collect(),
        op,
        changes: Vec::new(),
    }
}

pub(super) fn strings(list: &[&str]) -> Vec<Value> {
    list.iter().map(|&text| json!(text)).collect()
}

pub(super) const SINGLE: [i64; 4] = [1; 4];
