//! Encoding of graphs to bytes.

use crate::field::{WireEnum, Writer};
use crate::generated::graph_generated as wire;
use crate::{operation, value};
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use rotini_graph::{Graph, Node, Tensor, TensorKind};

/// Encodes a graph as a hipDNN host would, for tests and tools. The graph need not be valid, so
/// that tests can encode invalid ones.
///
/// Every node and tensor states its own type; the graph's default types stay unset.
#[must_use]
pub fn encode(graph: &Graph) -> Vec<u8> {
    let mut writer = Writer {
        builder: FlatBufferBuilder::new(),
        graph,
    };
    let tensors: Vec<_> = graph
        .tensors
        .iter()
        .map(|tensor| write_tensor(tensor, &mut writer))
        .collect();
    let nodes: Vec<_> = graph.nodes.iter().map(|node| write_node(node, &mut writer)).collect();
    let [major, minor, patch] = graph.min_api_version;
    let builder = &mut writer.builder;
    let args = wire::GraphArgs {
        name: Some(builder.create_string(&graph.name)),
        tensors: Some(builder.create_vector(&tensors)),
        nodes: Some(builder.create_vector(&nodes)),
        is_override_shape_enabled: graph.override_shapes,
        min_required_engine_api_version: Some(&wire::EngineApiVersion::new(major, minor, patch)),
        ..wire::GraphArgs::default()
    };
    let root = wire::Graph::create(builder, &args);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

fn write_node<'buffer>(node: &Node, writer: &mut Writer<'_, 'buffer>) -> WIPOffset<wire::Node<'buffer>> {
    let (attributes_type, attributes) = operation::write(&node.op, writer);
    let args = wire::NodeArgs {
        name: Some(writer.builder.create_string(&node.name)),
        compute_data_type: node.compute.to_wire(),
        attributes_type,
        attributes: Some(attributes),
    };
    wire::Node::create(&mut writer.builder, &args)
}

/// Appends a tensor field by field, because the generated builder does not know the union of
/// values.
fn write_tensor<'buffer>(
    tensor: &Tensor,
    writer: &mut Writer<'_, 'buffer>,
) -> WIPOffset<wire::TensorAttributes<'buffer>> {
    use wire::TensorAttributes as Table;
    let ragged_offset = tensor.ragged_offset.map(|id| writer.uid(id));
    let builder = &mut writer.builder;
    let value = match tensor.kind {
        TensorKind::Constant(scalar) => Some(value::write(builder, tensor.dtype, scalar)),
        TensorKind::Buffer | TensorKind::Virtual | TensorKind::RuntimeScalar => None,
    };
    let name = builder.create_string(&tensor.name);
    let strides = builder.create_vector(&tensor.strides);
    let dims = builder.create_vector(&tensor.dims);

    let table = builder.start_table();
    builder.push_slot(Table::VT_UID, tensor.uid, 0);
    builder.push_slot_always(Table::VT_NAME, name);
    builder.push_slot(Table::VT_DATA_TYPE, tensor.dtype.to_wire(), wire::DataType::UNSET);
    builder.push_slot_always(Table::VT_STRIDES, strides);
    builder.push_slot_always(Table::VT_DIMS, dims);
    builder.push_slot(Table::VT_VIRTUAL_, tensor.kind == TensorKind::Virtual, false);
    if let Some((value_type, value)) = value {
        builder.push_slot_always(Table::VT_VALUE_TYPE, value_type);
        builder.push_slot_always(value::VT_VALUE, value);
    }
    let is_runtime = tensor.kind == TensorKind::RuntimeScalar;
    builder.push_slot(Table::VT_IS_RUNTIME_PASS_BY_VALUE, is_runtime, false);
    if let Some(uid) = ragged_offset {
        builder.push_slot_always(Table::VT_RAGGED_OFFSET_TENSOR_UID, uid);
    }
    builder.push_slot(Table::VT_ALIGNMENT, tensor.alignment, 16);
    WIPOffset::new(builder.end_table(table).value())
}
