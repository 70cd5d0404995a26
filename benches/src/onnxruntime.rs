//! ONNX Runtime as a peer, by its C API, on one thread with all of its optimisations.
//!
//! The library is that of the pinned wheel, which `scripts/setup --bench` installs; `ROTINI_ONNXRUNTIME` says where it is.

use crate::convolution::Shape;
use anyhow::{Context as _, Result};
use ort::editor::{Graph, Model, Node, ONNX_DOMAIN, Opset};
use ort::environment::Environment;
use ort::memory::Allocator;
use ort::operator::Attribute;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{Outlet, SymbolicDimensions, Tensor, TensorElementType, ValueType};

/// Any that has `Conv` and `Relu` as they have been since 2020.
const OPSET: u32 = 17;

/// The loaded library.
pub(crate) struct OnnxRuntime(Environment);

impl OnnxRuntime {
    pub(crate) fn load() -> Result<Self> {
        const HINT: &str =
            "ONNX Runtime is not there: `scripts/setup --bench` installs it, ROTINI_ONNXRUNTIME says where";
        let path = std::env::var_os("ROTINI_ONNXRUNTIME").context(HINT)?;
        Ok(OnnxRuntime(
            ort::init_from(path).context(HINT)?.with_telemetry(false).build()?,
        ))
    }

    /// A session for `relu(conv(x) + bias)`, with the weights and the bias as constants.
    pub(crate) fn convolution(&self, shape: Shape, value: impl Fn(&str, usize) -> f32) -> Result<Convolution> {
        let Shape { c, k, extent, window } = shape;
        let (image, result) = ([1, c, extent, extent], [1, k, extent, extent]);
        let mut graph = Graph::new()?;
        graph.set_inputs([outlet("x", image)])?;
        graph.set_outputs([outlet("y", result)])?;
        graph.add_initializer("w", tensor("w", &[k, c, window, window], &value)?, false)?;
        graph.add_initializer("bias", tensor("bias", &[k], &value)?, false)?;
        let attributes = [
            Attribute::new("kernel_shape", vec![window; 2])?,
            Attribute::new("pads", vec![shape.padding(); 4])?,
        ];
        graph.add_node(Node::new(
            "Conv",
            ONNX_DOMAIN,
            "conv",
            ["x", "w", "bias"],
            ["sum"],
            attributes,
        )?)?;
        graph.add_node(Node::new("Relu", ONNX_DOMAIN, "relu", ["sum"], ["y"], [])?)?;
        let mut model = Model::new([Opset::new(ONNX_DOMAIN, OPSET)?])?;
        model.set_graph(graph)?;
        let options = SessionBuilder::new(&self.0)?
            .with_intra_threads(1)
            .map_err(ort::Error::<()>::from)?
            .with_optimization_level(GraphOptimizationLevel::All)
            .map_err(ort::Error::<()>::from)?;
        Ok(Convolution {
            session: model.into_session(&options)?,
            x: tensor("x", &image, &value)?,
        })
    }
}

/// A convolution that is ready to run.
pub(crate) struct Convolution {
    session: Session,
    x: Tensor<f32>,
}

impl Convolution {
    pub(crate) fn run(&mut self) -> Result<()> {
        self.session.run(ort::inputs![&self.x])?;
        Ok(())
    }

    /// The result in NCHW.
    pub(crate) fn values(&mut self) -> Result<Vec<f32>> {
        let outputs = self.session.run(ort::inputs![&self.x])?;
        let (_, values) = outputs
            .get("y")
            .context("ONNX Runtime gives no y")?
            .try_extract_tensor::<f32>()?;
        Ok(values.to_vec())
    }
}

fn outlet(name: &str, shape: [i64; 4]) -> Outlet {
    let dimension_symbols = SymbolicDimensions::empty(shape.len());
    Outlet::new(
        name,
        ValueType::Tensor {
            ty: TensorElementType::Float32,
            shape: shape.into(),
            dimension_symbols,
        },
    )
}

fn tensor(name: &str, shape: &[i64], value: &impl Fn(&str, usize) -> f32) -> Result<Tensor<f32>> {
    let mut tensor = Tensor::<f32>::new(&Allocator::default(), shape.to_vec())?;
    let (_, elements) = tensor.extract_tensor_mut();
    for (position, element) in elements.iter_mut().enumerate() {
        *element = value(name, position);
    }
    Ok(tensor)
}
