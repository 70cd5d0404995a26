//! Graphs that [`encode`](crate::encode) does not write: graphs with types left to defaults, graphs
//! of other generations, and hostile ones.

use super::*;
use crate::generated::graph_generated as wire;
use crate::{DecodeError, MAX_APPARENT_SIZE};
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use rotini_graph::{Op, Scalar};

/// The graph Y = IDENTITY(T), T = RELU(X) with a virtual T, and the properties that the tests vary.
struct Sample {
    /// The graph's default types: compute, intermediate, io.
    defaults: [i8; 3],
    /// The types of X, T and Y.
    tensor_types: [i8; 3],
    node_type: i8,
    mode: i8,
    /// The value of X: the union's type, and the bytes that its offset points to.
    value: Option<(u8, Vec<u8>)>,
    is_runtime: bool,
    is_virtual: bool,
    ragged_offset: Option<i64>,
    uids: [i64; 3],
    operation: wire::NodeAttributes,
}

impl Default for Sample {
    fn default() -> Self {
        Sample {
            defaults: [0; 3],
            tensor_types: [1; 3],
            node_type: 1,
            mode: 34,
            value: None,
            is_runtime: false,
            is_virtual: false,
            ragged_offset: None,
            uids: [10, 11, 12],
            operation: wire::NodeAttributes::PointwiseAttributes,
        }
    }
}

impl Sample {
    fn bytes(&self) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let tensors: Vec<_> = (0..3).map(|index| self.tensor(&mut builder, index)).collect();
        let nodes = [self.node(&mut builder, self.mode, 0), self.node(&mut builder, 23, 1)];
        let args = wire::GraphArgs {
            compute_data_type: wire::DataType(self.defaults[0]),
            intermediate_data_type: wire::DataType(self.defaults[1]),
            io_data_type: wire::DataType(self.defaults[2]),
            tensors: Some(builder.create_vector(&tensors)),
            nodes: Some(builder.create_vector(&nodes)),
            ..Default::default()
        };
        let root = wire::Graph::create(&mut builder, &args);
        builder.finish_minimal(root);
        builder.finished_data().to_vec()
    }

    fn node<'b>(&self, builder: &mut FlatBufferBuilder<'b>, mode: i8, index: usize) -> WIPOffset<wire::Node<'b>> {
        let args = wire::PointwiseAttributesArgs {
            operation: mode,
            in_0_tensor_uid: self.uids[index],
            out_0_tensor_uid: self.uids[index + 1],
            ..Default::default()
        };
        let attributes = wire::PointwiseAttributes::create(builder, &args).as_union_value();
        let args = wire::NodeArgs {
            compute_data_type: wire::DataType(self.node_type),
            attributes_type: self.operation,
            attributes: Some(attributes),
            ..Default::default()
        };
        wire::Node::create(builder, &args)
    }

    fn tensor<'b>(&self, builder: &mut FlatBufferBuilder<'b>, index: usize) -> WIPOffset<wire::TensorAttributes<'b>> {
        use wire::TensorAttributes as Table;
        let is_x = index == 0;
        let value = self.value.as_ref().filter(|_| is_x);
        // As for a struct, the bytes are stored in their order; the builder grows downwards, so
        // they are pushed in reverse.
        let payload = value.map(|(_, bytes)| bytes.iter().rev().map(|byte| builder.push(*byte)).last());
        let dims = builder.create_vector(&[4_i64]);
        let strides = builder.create_vector(&[1_i64]);
        let table = builder.start_table();
        builder.push_slot_always(Table::VT_UID, self.uids[index]);
        builder.push_slot_always(Table::VT_DATA_TYPE, self.tensor_types[index]);
        builder.push_slot_always(Table::VT_DIMS, dims);
        builder.push_slot_always(Table::VT_STRIDES, strides);
        builder.push_slot_always(Table::VT_VIRTUAL_, index == 1 || is_x && self.is_virtual);
        builder.push_slot_always(Table::VT_IS_RUNTIME_PASS_BY_VALUE, is_x && self.is_runtime);
        if let Some((kind, _)) = value {
            builder.push_slot_always(Table::VT_VALUE_TYPE, *kind);
        }
        if let Some(Some(payload)) = payload {
            builder.push_slot_always(value::VT_VALUE, payload);
        }
        if let Some(uid) = self.ragged_offset.filter(|_| is_x) {
            builder.push_slot_always(Table::VT_RAGGED_OFFSET_TENSOR_UID, uid);
        }
        WIPOffset::new(builder.end_table(table).value())
    }

    fn decode(&self) -> Result<Graph, DecodeError> {
        decode(&self.bytes())
    }

    /// Decodes the graph and returns the kind of X.
    fn x(&self) -> Result<TensorKind, DecodeError> {
        Ok(self.decode()?.tensors[0].kind)
    }

    /// Checks the error's message and whether the graph counts as malformed.
    fn fails(&self, message: &str, is_malformed: bool) {
        let error = self.decode().unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.is_malformed(), is_malformed, "{message}");
    }
}

#[test]
fn a_sample_decodes() {
    let graph = Sample::default().decode().unwrap();
    assert_eq!(graph.nodes.len(), 2);
    assert_eq!(graph.min_api_version, [1, 0, 0], "the default");
    assert_eq!(graph.tensors[0].alignment, 16, "the default");
}

#[test]
fn types_fall_back_to_the_graphs() {
    let graph = Sample {
        defaults: [4, 1, 2],
        tensor_types: [0; 3],
        node_type: 0,
        ..Sample::default()
    }
    .decode()
    .unwrap();
    let types: Vec<_> = graph.tensors.iter().map(|tensor| tensor.dtype).collect();
    assert_eq!(types, [DataType::F16, DataType::F32, DataType::F16]);
    assert_eq!(graph.nodes[0].compute, DataType::F64);

    let graph = Sample {
        defaults: [4, 4, 4],
        ..Sample::default()
    }
    .decode()
    .unwrap();
    assert!(
        graph.tensors.iter().all(|tensor| tensor.dtype == DataType::F32),
        "their own types win"
    );
    assert_eq!(graph.nodes[0].compute, DataType::F32, "its own type wins");
}

#[test]
fn types_without_a_default_are_unset() {
    let tensor = |types| Sample {
        defaults: [1, 0, 0],
        tensor_types: types,
        ..Sample::default()
    };
    tensor([0, 1, 1]).fails("tensor 10: data type is not set", false);
    tensor([1, 0, 1]).fails("tensor 11: data type is not set", false);
    let node = Sample {
        node_type: 0,
        defaults: [0, 1, 1],
        ..Sample::default()
    };
    node.fails("node 0 (PointwiseAttributes): compute data type is not set", false);
}

#[test]
fn modes_and_operations_must_be_set_and_known() {
    let mode = |mode| Sample {
        mode,
        ..Sample::default()
    };
    mode(0).fails("node 0 (PointwiseAttributes): mode is not set", false);
    mode(i8::MAX).fails("node 0 (PointwiseAttributes): mode 127 is not known", false);
    mode(-1).fails("node 0 (PointwiseAttributes): mode -1 is not known", false);
    let operation = |operation| Sample {
        operation,
        ..Sample::default()
    };
    operation(wire::NodeAttributes(u8::MAX)).fails("node 0 (unknown operation): operation 255 is not known", false);
    // The attributes are present, but have no kind: graphs of the first generation look like this.
    let error = operation(wire::NodeAttributes::NONE).decode().unwrap_err();
    assert!(matches!(error, DecodeError::FirstGeneration(_)), "{error:?}");
}

#[test]
fn data_types_from_19_on_are_unknown() {
    for value in [19, 24, 127, -1] {
        let sample = Sample {
            tensor_types: [1, 1, value],
            ..Sample::default()
        };
        sample.fails(&format!("tensor 12: data type {value} is not known"), false);
    }
}

#[test]
fn unknown_defaults_are_unknown_types() {
    for value in [19, 99, -1] {
        let sample = |defaults| Sample {
            defaults,
            tensor_types: [0; 3],
            node_type: 0,
            ..Sample::default()
        };
        sample([1, 1, value]).fails(&format!("tensor 10: data type {value} is not known"), false);
        sample([1, value, 1]).fails(&format!("tensor 11: data type {value} is not known"), false);
        let place = "node 0 (PointwiseAttributes): compute data type";
        sample([value, 1, 1]).fails(&format!("{place} {value} is not known"), false);
    }
}

#[test]
fn uids_must_be_known_and_unique() {
    let ragged = |uid| Sample {
        ragged_offset: Some(uid),
        ..Sample::default()
    };
    ragged(77).fails("tensor 10: ragged_offset names uid 77, which no tensor has", true);
    assert_eq!(ragged(12).decode().unwrap().tensors[0].ragged_offset, Some(TensorId(2)));
    Sample {
        uids: [5, 5, 6],
        ..Sample::default()
    }
    .fails("uid 5 is given to two tensors", true);
}

/// Returns a sample whose X holds the bytes of a value.
fn value(kind: u8, bytes: &[u8], dtype: i8) -> Sample {
    Sample {
        value: Some((kind, bytes.to_vec())),
        tensor_types: [dtype, 1, 1],
        ..Sample::default()
    }
}

#[test]
fn values_are_read_as_their_member_and_rounded_to_the_tensors_type() {
    let float = |value: f64| Ok(TensorKind::Constant(Scalar::float(value)));
    let integer = |value| Ok(TensorKind::Constant(Scalar::Integer(value)));
    let tenth = &0.1_f32.to_le_bytes();
    assert_eq!(value(1, tenth, 1).x(), float(f64::from(0.1_f32)));
    assert_eq!(
        value(2, tenth, 2).x(),
        float(0.0999755859375),
        "binary16 nearest to 0.1"
    );
    assert_eq!(value(3, tenth, 3).x(), float(0.10009765625), "bfloat16 nearest to 0.1");
    assert_eq!(value(1, tenth, 4).x(), float(f64::from(0.1_f32)));
    assert_eq!(value(6, &0.1_f64.to_le_bytes(), 4).x(), float(0.1));
    assert_eq!(value(6, &0.1_f64.to_le_bytes(), 1).x(), float(f64::from(0.1_f32)));
    assert_eq!(value(4, &[0x3c], 8).x(), float(1.5), "E4M3");
    assert_eq!(value(4, &[0x3c], 9).x(), float(1.0), "E5M2");
    assert_eq!(value(4, &[0x44], 17).x(), float(1.5), "E4M3 FNUZ");
    assert_eq!(value(4, &[0x40], 18).x(), float(1.0), "E5M2 FNUZ");
    assert_eq!(value(5, &(-3_i32).to_le_bytes(), 6).x(), integer(-3));
    assert_eq!(
        value(5, &3_i32.to_le_bytes(), 1).x(),
        integer(3),
        "an integer for a float"
    );
    assert_eq!(value(7, &i64::MIN.to_le_bytes(), 15).x(), integer(i64::MIN));
    assert_eq!(value(8, &[1], 5).x(), integer(1));
    assert_eq!(value(8, &[0], 5).x(), integer(0));
    assert_eq!(value(8, &[2], 5).x(), integer(1), "any bits but 0 are true");
    for (form, bytes, truth) in [
        (8, &[0][..], 0),
        (8, &[1], 1),
        (8, &[0x80], 1),
        (5, &2_i32.to_le_bytes(), 1),
        (7, &0_i64.to_le_bytes(), 0),
        (1, tenth, 1),
        (6, &(-0.0_f64).to_le_bytes(), 0),
        (1, &f32::NAN.to_le_bytes(), 1),
    ] {
        assert_eq!(value(form, bytes, 16).x(), integer(truth), "{form} {bytes:?}");
    }
    let quiet = value(1, &f32::from_bits(0xffc0_1234).to_le_bytes(), 1).x();
    assert_eq!(quiet, float(f64::NAN), "all NaNs are one");
}

#[test]
fn values_of_runtime_scalars() {
    let mut sample = value(1, &2_f32.to_le_bytes(), 1);
    sample.is_runtime = true;
    assert_eq!(
        sample.x(),
        Ok(TensorKind::Constant(Scalar::float(2.0))),
        "the value wins"
    );
    sample.value = None;
    assert_eq!(sample.x(), Ok(TensorKind::RuntimeScalar));
}

#[test]
fn values_that_cannot_be_read() {
    value(9, &[0; 8], 1).fails("tensor 10: value type 9 is not known", false);
    value(4, &[0], 1).fails("tensor 10: a value stored as Float8Value cannot be read as f32", false);
    value(1, &[0; 4], 8).fails(
        "tensor 10: a value stored as Float32Value cannot be read as f8e4m3",
        false,
    );
    value(4, &[0x38], 16).fails("tensor 10: a value stored as Float8Value cannot be read as bool", false);
    value(1, &[0; 4], 6).fails("tensor 10: its value does not fit its type i32", false);
    value(1, &[], 1).fails("tensor 10: its value is not in the buffer", true);

    let virtual_value = Sample {
        is_virtual: true,
        ..value(1, &[0; 4], 1)
    };
    virtual_value.fails("tensor 10 is virtual and holds a value", true);
    let virtual_runtime = Sample {
        is_virtual: true,
        is_runtime: true,
        ..Sample::default()
    };
    virtual_runtime.fails("tensor 10 is virtual and holds a value", true);
}

#[test]
fn a_value_outside_of_the_buffer_is_missing() {
    let mut bytes = value(1, &1e30_f32.to_le_bytes(), 1).bytes();
    let graph = wire::root_as_graph(&bytes).unwrap();
    let table = graph.tensors().unwrap().get(0)._tab;
    let slot = table.loc() + usize::from(table.vtable().get(value::VT_VALUE));
    for offset in [
        bytes.len() - slot - 3,
        bytes.len() - slot,
        bytes.len(),
        0x7fff_ffff,
        0xffff_ffff,
    ] {
        bytes[slot..slot + 4].copy_from_slice(&u32::try_from(offset).unwrap().to_le_bytes());
        let missing = DecodeError::MissingValue {
            tensor: "tensor 10".to_owned(),
        };
        assert_eq!(decode(&bytes), Err(missing));
    }
}

/// hipDNN's first generation had no compute type in nodes, so the id of the union is lower by one.
#[test]
fn graphs_of_the_first_generation_are_refused() {
    let mut builder = FlatBufferBuilder::new();
    let sample = Sample::default();
    let tensors: Vec<_> = (0..2).map(|index| sample.tensor(&mut builder, index)).collect();
    let args = wire::PointwiseAttributesArgs {
        operation: 34,
        in_0_tensor_uid: 10,
        out_0_tensor_uid: 12,
        ..Default::default()
    };
    let attributes = wire::PointwiseAttributes::create(&mut builder, &args).as_union_value();
    let name = builder.create_string("relu");
    let table = builder.start_table();
    builder.push_slot_always(4, name);
    builder.push_slot_always(6, 2_u8);
    builder.push_slot_always(8, attributes);
    let node = WIPOffset::<wire::Node<'_>>::new(builder.end_table(table).value());
    let args = wire::GraphArgs {
        tensors: Some(builder.create_vector(&tensors)),
        nodes: Some(builder.create_vector(&[node])),
        ..Default::default()
    };
    let root = wire::Graph::create(&mut builder, &args);
    builder.finish_minimal(root);
    let error = decode(builder.finished_data()).unwrap_err();
    assert!(
        matches!(error, DecodeError::FirstGeneration(_)) && !error.is_malformed(),
        "{error:?}"
    );
    assert!(error.to_string().contains("compute type"), "{error}");
}

#[test]
fn bytes_that_are_no_graph() {
    for bytes in [
        &[][..],
        &[0; 3],
        &[0; 64],
        &[0xff; 64],
        b"\x10\0\0\0HDGPtext that is long enough",
    ] {
        let error = decode(bytes).unwrap_err();
        assert!(error.is_malformed(), "{error}");
    }
}

/// The verifier checks positions relative to the buffer, so the buffer's address does not matter.
#[test]
fn buffers_need_no_alignment() {
    let bytes = Sample::default().bytes();
    let expected = decode(&bytes).unwrap();
    for shift in 0..8 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&bytes);
        assert_eq!(decode(&shifted[shift..]).as_ref(), Ok(&expected));
    }
}

/// Tables that share one vector: a small buffer that would decode to gigabytes.
#[test]
fn shared_vectors_cannot_multiply() {
    let mut builder = FlatBufferBuilder::new();
    let dims = builder.create_vector(&vec![1_i64; 1 << 16]);
    let tensors: Vec<_> = (0..MAX_GRAPH_SIZE)
        .map(|_| {
            let args = wire::TensorAttributesArgs {
                dims: Some(dims),
                ..Default::default()
            };
            wire::TensorAttributes::create(&mut builder, &args)
        })
        .collect();
    let args = wire::GraphArgs {
        tensors: Some(builder.create_vector(&tensors)),
        ..Default::default()
    };
    let root = wire::Graph::create(&mut builder, &args);
    builder.finish_minimal(root);
    assert!(builder.finished_data().len() < MAX_APPARENT_SIZE);
    let error = decode(builder.finished_data()).unwrap_err();
    assert!(
        matches!(error, DecodeError::TooLarge(_)) && !error.is_malformed(),
        "{error}"
    );
}

#[test]
fn too_many_tables_are_refused() {
    let mut builder = FlatBufferBuilder::new();
    let args = wire::TensorAttributesArgs::default();
    let tensor = wire::TensorAttributes::create(&mut builder, &args);
    let args = wire::GraphArgs {
        tensors: Some(builder.create_vector(&vec![tensor; MAX_TABLES + 1])),
        ..Default::default()
    };
    let root = wire::Graph::create(&mut builder, &args);
    builder.finish_minimal(root);
    let error = decode(builder.finished_data()).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge(_)), "{error}");
}

/// A graph of the IR's maximum size decodes, so the decoder's limits agree with the IR's.
#[test]
fn a_graph_of_the_largest_size_decodes() {
    let mut builder = rotini_graph::GraphBuilder::new("chain");
    let mut last = builder.buffer("x", DataType::F32, &[4]);
    for _ in 1..MAX_GRAPH_SIZE - 1 {
        let next = builder.virtual_tensor("t", DataType::F32, &[4]);
        builder.pointwise(DataType::F32, rotini_graph::PointwiseMode::Abs, &[last], next);
        last = next;
    }
    let out = builder.buffer("y", DataType::F32, &[4]);
    builder.pointwise(DataType::F32, rotini_graph::PointwiseMode::Abs, &[last], out);
    let graph = builder.build();
    assert_eq!(graph.tensors.len(), MAX_GRAPH_SIZE);
    let decoded = decode(&crate::encode(&graph)).unwrap();
    assert_eq!(decoded, graph);
    assert!(decoded.nodes.iter().all(|node| matches!(node.op, Op::Pointwise(_))));
}
