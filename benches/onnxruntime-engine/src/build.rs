//! Building of a session from a network.

use crate::network::{Attribute, Constant, Element, Network, OPSET, Port, Step};
use crate::settings::Settings;
use crate::weights::Weights;
use ort::editor::{Graph, Model, Node, ONNX_DOMAIN, Opset};
use ort::logging::LogLevel;
use ort::memory::Allocator;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{DynTensor, Outlet, SymbolicDimensions, Tensor, TensorElementType, ValueType};

/// Builds a network, with all of ONNX Runtime's optimisations.
pub(crate) fn build(network: &Network, settings: &Settings, weights: &Weights) -> ort::Result<Session> {
    let mut graph = Graph::new()?;
    let inputs = network.inputs.iter().filter(|port| !weights.has(port));
    graph.set_inputs(inputs.map(outlet))?;
    graph.set_outputs(network.outputs.iter().map(outlet))?;
    for (name, dims, constant) in &network.constants {
        match constant {
            Constant::Floats(values) => {
                let mut tensor = Tensor::<f32>::new(&Allocator::default(), dims.clone())?;
                tensor.extract_tensor_mut().1.copy_from_slice(values);
                graph.add_initializer(name, tensor, false)?;
            }
            Constant::Integers(values) => {
                let mut tensor = Tensor::<i64>::new(&Allocator::default(), dims.clone())?;
                tensor.extract_tensor_mut().1.copy_from_slice(values);
                graph.add_initializer(name, tensor, false)?;
            }
        }
    }
    for (port, bytes) in weights.contents() {
        let mut tensor = DynTensor::new(&Allocator::default(), element_type(port), port.shape.clone())?;
        // SAFETY: the tensor has the extents and the type of the buffer that `bytes` is a copy of,
        // so it has as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr_mut().cast(), bytes.len()) };
        graph.add_initializer(&port.name, tensor, false)?;
    }
    for (position, step) in network.steps.iter().enumerate() {
        graph.add_node(node(position, step)?)?;
    }
    let mut model = Model::new([Opset::new(ONNX_DOMAIN, OPSET)?])?;
    model.set_graph(graph)?;
    let plain = ort::Error::<()>::from;
    let options = SessionBuilder::new(settings.environment)?
        .with_intra_threads(settings.threads)
        .map_err(plain)?
        .with_inter_threads(1)
        .map_err(plain)?
        .with_intra_op_spinning(settings.spin)
        .map_err(plain)?
        .with_log_level(LogLevel::Error)
        .map_err(plain)?
        .with_optimization_level(GraphOptimizationLevel::All)
        .map_err(plain)?;
    model.into_session(&options)
}

fn node(position: usize, step: &Step) -> ort::Result<Node> {
    let attributes = step.attributes.iter().map(|(name, value)| match value {
        Attribute::Integer(value) => ort::operator::Attribute::new(name, *value),
        Attribute::Integers(values) => ort::operator::Attribute::new(name, values.clone()),
        Attribute::Float(value) => ort::operator::Attribute::new(name, *value),
        Attribute::Text(value) => ort::operator::Attribute::new(name, (*value).to_owned()),
    });
    let attributes: Vec<_> = attributes.collect::<ort::Result<_>>()?;
    let name = format!("{}_{position}", step.kind);
    Node::new(step.kind, ONNX_DOMAIN, name, &step.inputs, &step.outputs, attributes)
}

fn outlet(port: &Port) -> Outlet {
    let ty = element_type(port);
    Outlet::new(
        port.name.as_str(),
        ValueType::Tensor {
            ty,
            shape: port.shape.as_slice().into(),
            dimension_symbols: SymbolicDimensions::empty(port.shape.len()),
        },
    )
}

fn element_type(port: &Port) -> TensorElementType {
    match port.element {
        Element::F32 => TensorElementType::Float32,
        Element::F16 => TensorElementType::Float16,
        Element::Bf16 => TensorElementType::Bfloat16,
    }
}
