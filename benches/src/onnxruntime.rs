//! ONNX Runtime as a peer, through its C API, on one thread with all of its optimisations.
//!
//! The library comes from the pinned wheel that `scripts/setup --bench` installs. `ROTINI_ONNXRUNTIME` says where it is.

use anyhow::{Context as _, Result};
use ort::editor::{Graph, Model, Node, ONNX_DOMAIN, Opset};
use ort::environment::Environment;
use ort::memory::Allocator;
use ort::operator::Attribute;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{Outlet, SymbolicDimensions, Tensor, TensorElementType, ValueType};

/// The first that has `Gelu`.
const OPSET: u32 = 20;

/// The loaded library.
pub(crate) struct OnnxRuntime(Environment);

/// A tensor by its name and extents, f32 in row-major order.
pub(crate) type Named<'a> = (&'a str, Vec<i64>);

/// An operation of ONNX.
pub(crate) struct Step<'a> {
    kind: &'a str,
    inputs: Vec<&'a str>,
    output: &'a str,
    attributes: Vec<Attribute>,
}

impl<'a> Step<'a> {
    /// An operation without attributes.
    pub(crate) fn new(kind: &'a str, inputs: &[&'a str], output: &'a str) -> Self {
        Step {
            kind,
            inputs: inputs.to_vec(),
            output,
            attributes: Vec::new(),
        }
    }

    /// With a list of integers.
    pub(crate) fn integers(mut self, name: &str, values: Vec<i64>) -> Result<Self> {
        self.attributes.push(Attribute::new(name, values)?);
        Ok(self)
    }

    /// With an integer.
    pub(crate) fn integer(mut self, name: &str, value: i64) -> Result<Self> {
        self.attributes.push(Attribute::new(name, value)?);
        Ok(self)
    }
}

/// What a session computes. Constants are known to it beforehand: it may pack them.
pub(crate) struct Network<'a> {
    /// What is given at each run.
    pub(crate) inputs: Vec<Named<'a>>,
    /// What is known beforehand.
    pub(crate) constants: Vec<Named<'a>>,
    /// The result.
    pub(crate) output: Named<'a>,
    /// The operations, in topological order.
    pub(crate) steps: Vec<Step<'a>>,
}

impl OnnxRuntime {
    pub(crate) fn load() -> Result<Self> {
        const HINT: &str =
            "ONNX Runtime is not there: `scripts/setup --bench` installs it, ROTINI_ONNXRUNTIME says where";
        let path = std::env::var_os("ROTINI_ONNXRUNTIME").context(HINT)?;
        Ok(OnnxRuntime(
            ort::init_from(path).context(HINT)?.with_telemetry(false).build()?,
        ))
    }

    /// A session whose inputs and constants are what `value` makes of a tensor's name and the position in it.
    pub(crate) fn session(&self, network: Network<'_>, value: impl Fn(&str, usize) -> f32) -> Result<Peer> {
        let Network {
            inputs,
            constants,
            output,
            steps,
        } = network;
        let mut graph = Graph::new()?;
        graph.set_inputs(inputs.iter().map(outlet))?;
        graph.set_outputs([outlet(&output)])?;
        for (name, shape) in &constants {
            graph.add_initializer(name, tensor(name, shape, &value)?, false)?;
        }
        for Step {
            kind,
            inputs,
            output,
            attributes,
        } in steps
        {
            graph.add_node(Node::new(kind, ONNX_DOMAIN, output, inputs, [output], attributes)?)?;
        }
        let mut model = Model::new([Opset::new(ONNX_DOMAIN, OPSET)?])?;
        model.set_graph(graph)?;
        let options = SessionBuilder::new(&self.0)?
            .with_intra_threads(1)
            .map_err(ort::Error::<()>::from)?
            .with_optimization_level(GraphOptimizationLevel::All)
            .map_err(ort::Error::<()>::from)?;
        Ok(Peer {
            session: model.into_session(&options)?,
            inputs: inputs
                .iter()
                .map(|(name, shape)| Ok(((*name).to_owned(), tensor(name, shape, &value)?)))
                .collect::<Result<_>>()?,
            output: output.0.to_owned(),
        })
    }
}

/// A session with its inputs, ready to run.
pub(crate) struct Peer {
    session: Session,
    inputs: Vec<(String, Tensor<f32>)>,
    output: String,
}

impl Peer {
    pub(crate) fn run(&mut self) -> Result<()> {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        self.session.run(inputs)?;
        Ok(())
    }

    /// The result in row-major order.
    pub(crate) fn values(&mut self) -> Result<Vec<f32>> {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        let outputs = self.session.run(inputs)?;
        let (_, values) = outputs
            .get(&self.output)
            .context("ONNX Runtime gives no result")?
            .try_extract_tensor::<f32>()?;
        Ok(values.to_vec())
    }
}

fn outlet((name, shape): &Named<'_>) -> Outlet {
    let dimension_symbols = SymbolicDimensions::empty(shape.len());
    Outlet::new(
        *name,
        ValueType::Tensor {
            ty: TensorElementType::Float32,
            shape: shape.as_slice().into(),
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
