//! Decoding of bytes to graphs.

use crate::error::DecodeError;
use crate::field::{Place, WireEnum};
use crate::generated::graph_generated as wire;
use crate::{operation, value, verifier_options};
use rotini_graph::{DataType, Graph, GraphError, MAX_GRAPH_SIZE, Node, Tensor, TensorId, TensorKind};
use std::collections::HashMap;

/// Maximum number of tables: the graph, its tensors, its nodes and their attributes.
const MAX_TABLES: usize = 1 + MAX_GRAPH_SIZE + 2 * MAX_GRAPH_SIZE;

/// Reads a graph and [validates](Graph::validate) it.
///
/// A node without a compute type computes in the graph's. A tensor without a type has the graph's
/// intermediate type if it is virtual and the graph's input-output type if not. A tensor that holds
/// a value is a constant even if it is marked as passed at execution: the stored value wins, as in
/// hipDNN. Constants are rounded to their tensor's type.
///
/// Trailing fields that the schema does not know are invisible; a caller checks
/// [`Graph::min_api_version`] to rule out fields with a meaning.
///
/// # Errors
///
/// When the bytes are not a graph, the graph is not valid, or it exceeds what rotini supports; see
/// [`DecodeError`].
pub fn decode(bytes: &[u8]) -> Result<Graph, DecodeError> {
    let root = wire::root_as_graph_with_opts(&verifier_options(MAX_TABLES), bytes)?;
    let wire_tensors = root.tensors().unwrap_or_default();
    let wire_nodes = root.nodes().unwrap_or_default();

    let uids: HashMap<i64, TensorId> = (0..)
        .map(TensorId)
        .zip(wire_tensors)
        .map(|(id, t)| (t.uid(), id))
        .collect();
    let tensors = wire_tensors
        .iter()
        .map(|tensor| read_tensor(&root, &tensor, &uids))
        .collect::<Result<Vec<_>, _>>()?;
    let nodes = wire_nodes
        .iter()
        .enumerate()
        .map(|(position, node)| read_node(&root, &node, position, &uids))
        .collect::<Result<Vec<_>, _>>()?;

    let mut graph = Graph {
        name: root.name().unwrap_or_default().to_owned(),
        tensors,
        nodes,
        override_shapes: root.is_override_shape_enabled(),
        min_api_version: root
            .min_required_engine_api_version()
            .map_or([1, 0, 0], |version| [version.major(), version.minor(), version.patch()]),
    };
    graph.validate()?;
    Ok(graph)
}

/// Returns the version of the engine API that a graph states it needs; `None` if the bytes are not
/// a graph. A graph that needs a newer version than the reader's may look malformed to the reader.
#[must_use]
pub fn required_api_version(bytes: &[u8]) -> Option<[u32; 3]> {
    let root = wire::root_as_graph_with_opts(&verifier_options(MAX_TABLES), bytes).ok()?;
    let version = root.min_required_engine_api_version()?;
    Some([version.major(), version.minor(), version.patch()])
}

/// Returns the first of `types` that is set.
fn first_set(
    types: [wire::DataType; 2],
    what: &'static str,
    place: impl Fn() -> String,
) -> Result<DataType, DecodeError> {
    let [own, default] = types;
    let chosen = if own == wire::DataType::UNSET { default } else { own };
    match (DataType::from_wire(chosen), chosen) {
        (Some(dtype), _) => Ok(dtype),
        (None, wire::DataType::UNSET) => Err(DecodeError::Unset { place: place(), what }),
        (None, newer) => Err(DecodeError::Unknown {
            place: place(),
            what,
            value: DataType::number(newer),
        }),
    }
}

fn read_node(
    root: &wire::Graph<'_>,
    node: &wire::Node<'_>,
    position: usize,
    uids: &HashMap<i64, TensorId>,
) -> Result<Node, DecodeError> {
    let name = node.name().unwrap_or_default();
    let place = Place {
        uids,
        name,
        position,
        operation: node.attributes_type().variant_name().unwrap_or("unknown operation"),
    };
    let compute = first_set(
        [node.compute_data_type(), root.compute_data_type()],
        "compute data type",
        || place.label(),
    )?;
    Ok(Node {
        name: name.to_owned(),
        compute,
        op: operation::read(node, &place)?,
    })
}

fn read_tensor(
    root: &wire::Graph<'_>,
    tensor: &wire::TensorAttributes<'_>,
    uids: &HashMap<i64, TensorId>,
) -> Result<Tensor, DecodeError> {
    let (uid, name) = (tensor.uid(), tensor.name().unwrap_or_default());
    let label = || Tensor::label(uid, name);
    let is_virtual = tensor.virtual_();
    let default = if is_virtual {
        root.intermediate_data_type()
    } else {
        root.io_data_type()
    };
    let dtype = first_set([tensor.data_type(), default], "data type", label)?;

    let value = value::read(tensor, dtype, label)?;
    let kind = match (is_virtual, value, tensor.is_runtime_pass_by_value()) {
        (false, Some(scalar), _) => TensorKind::Constant(scalar),
        (false, None, true) => TensorKind::RuntimeScalar,
        (false, None, false) => TensorKind::Buffer,
        (true, None, false) => TensorKind::Virtual,
        (true, _, _) => return Err(DecodeError::VirtualValue { tensor: label() }),
    };
    let ragged_offset = match tensor.ragged_offset_tensor_uid() {
        None => None,
        Some(offset) => Some(*uids.get(&offset).ok_or_else(|| GraphError::UnknownUid {
            node: label(),
            field: "ragged_offset",
            uid: offset,
        })?),
    };
    Ok(Tensor {
        uid,
        name: name.to_owned(),
        dtype,
        dims: tensor.dims().map(|list| list.iter().collect()).unwrap_or_default(),
        strides: tensor.strides().map(|list| list.iter().collect()).unwrap_or_default(),
        kind,
        ragged_offset,
        alignment: tensor.alignment(),
    })
}

#[cfg(test)]
mod tests;
