//! Translation of hipDNN's graph to ONNX operations.
//!
//! Everything is computed in f32, on tensors in the order of their dims. Buffers of another type or
//! memory order are converted on input and output.

mod attention;
mod conv;
mod norm;
mod pointwise;
mod reduction;
mod resample;

use crate::network::{Attribute, Constant, Element, Network, Port, Step};
use half::{bf16, f16};
use rotini_graph::{DataType, Graph, Layout, Matmul, Op, Scalar, Tensor, TensorId, TensorKind, broadcast_dims};
use std::collections::{BTreeSet, HashMap};

/// The result of a translation, or the reason why the graph is declined.
type Result<T, E = String> = std::result::Result<T, E>;

/// Translates a graph.
///
/// # Errors
///
/// Returns the reason why ONNX Runtime, or this engine, does not run the graph.
pub(crate) fn translate(graph: &Graph) -> Result<Network> {
    let mut translation = Translation {
        graph,
        network: Network::default(),
        names: HashMap::new(),
        fresh: 0,
        done: BTreeSet::new(),
    };
    for (position, node) in graph.nodes.iter().enumerate() {
        if node.compute != DataType::F32 {
            let label = graph.node_label(position);
            return Err(format!("{label} computes in {}, not in f32", node.compute));
        }
        if !translation.done.contains(&position) {
            translation
                .node(&node.op)
                .map_err(|reason| format!("{}: {reason}", graph.node_label(position)))?;
        }
    }
    translation.write_outputs()?;
    Ok(translation.network)
}

/// The state of a translation.
struct Translation<'a> {
    graph: &'a Graph,
    network: Network,
    /// Names of the tensors defined so far, which are in f32 and in the order of their dims.
    names: HashMap<TensorId, String>,
    /// Number of generated names.
    fresh: usize,
    /// Positions of nodes that were fused into the translation of another node.
    done: BTreeSet<usize>,
}

impl<'a> Translation<'a> {
    fn node(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::ConvFprop(op) => self.conv_fprop(op),
            Op::ConvDgrad(op) => self.conv_dgrad(op),
            Op::Matmul(op) => self.matmul(op),
            Op::Pointwise(op) => self.pointwise(op),
            Op::Reduction(op) => self.reduction(op),
            Op::Layernorm(op) => self.layernorm(op),
            Op::RmsNorm(op) => self.rms_norm(op),
            Op::BatchnormInference(op) => self.batchnorm_inference(op),
            Op::BatchnormInferenceVariance(op) => self.batchnorm_inference_variance(op),
            Op::ResampleFwd(op) => self.resample(op),
            Op::Sdpa(op) => self.sdpa(op),
            _ => Err("there is no translation of this operation".to_owned()),
        }
    }

    fn matmul(&mut self, op: &Matmul) -> Result<()> {
        let batches = |dims: &'a [i64]| dims.get(..dims.len().saturating_sub(2)).unwrap_or_default();
        if broadcast_dims(batches(self.dims(op.a)?), batches(self.dims(op.b)?)).is_none() {
            return Err("batches that repeat in groups".to_owned());
        }
        let is_weight = batches(self.dims(op.b)?).iter().all(|&extent| extent == 1);
        let a = self.dense(op.a)?;
        let b = if is_weight {
            self.weight(op.b)?
        } else {
            self.dense(op.b)?
        };
        let c = self.define(op.c)?;
        self.step("MatMul", &[&a, &b], &c, []);
        Ok(())
    }

    fn tensor(&self, id: TensorId) -> Result<&'a Tensor> {
        self.graph.tensor(id).ok_or_else(|| "a tensor is missing".to_owned())
    }

    fn dims(&self, id: TensorId) -> Result<&'a [i64]> {
        Ok(&self.tensor(id)?.dims)
    }

    /// Returns the name of a tensor that is read. The value may be a scalar that broadcasts to the
    /// tensor's dims.
    fn value(&mut self, id: TensorId) -> Result<String> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let tensor = self.tensor(id)?;
        let ones = vec![1; tensor.dims.len()];
        let name = format!("t{}", id.0);
        match tensor.kind {
            TensorKind::Constant(value) => {
                let value = constant(tensor, value)?;
                let constant = Constant::Floats(vec![value]);
                self.network.constants.push((name.clone(), ones, constant));
            }
            TensorKind::RuntimeScalar => self.read(tensor, &name, ones, None)?,
            TensorKind::Buffer => {
                let order = order(tensor)?;
                let shape = permuted(&tensor.dims, &order);
                let back = inverse(&order);
                self.read(tensor, &name, shape, is_permuted(&order).then_some(back))?;
            }
            TensorKind::Virtual => return Err(format!("{tensor} is read before it is written")),
        }
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// Returns the name of a tensor that is read with exactly its dims.
    fn dense(&mut self, id: TensorId) -> Result<String> {
        let tensor = self.tensor(id)?;
        let is_scalar = matches!(tensor.kind, TensorKind::Constant(_) | TensorKind::RuntimeScalar);
        if is_scalar && tensor.dims.iter().any(|&extent| extent != 1) {
            return Err(format!("{tensor} is one value for many elements"));
        }
        self.value(id)
    }

    /// Returns the name as [`Translation::dense`] does, and marks a caller's buffer as a weight.
    fn weight(&mut self, id: TensorId) -> Result<String> {
        let name = self.dense(id)?;
        let tensor = self.tensor(id)?;
        let mut ports = self.network.inputs.iter_mut();
        if let Some(port) = ports.find(|port| port.tensor.uid == tensor.uid) {
            port.is_weight = tensor.kind == TensorKind::Buffer;
        }
        Ok(name)
    }

    /// Returns the value of a constant.
    fn constant(&self, id: TensorId) -> Result<f32> {
        let tensor = self.tensor(id)?;
        match tensor.kind {
            TensorKind::Constant(value) => constant(tensor, value),
            _ => Err(format!("{tensor} is not known beforehand")),
        }
    }

    /// Adds an input, with the conversions of its type and memory order.
    fn read(&mut self, tensor: &Tensor, name: &str, shape: Vec<i64>, turn: Option<Vec<i64>>) -> Result<()> {
        let element = element(tensor)?;
        let mut port = name.to_owned();
        if element != Element::F32 || turn.is_some() {
            port = format!("{name}_in");
        }
        self.network.inputs.push(Port {
            name: port.clone(),
            tensor: tensor.clone(),
            shape,
            element,
            is_weight: false,
        });
        if element != Element::F32 {
            let cast = match turn {
                Some(_) => self.fresh(),
                None => name.to_owned(),
            };
            self.step(
                "Cast",
                &[&port],
                &cast,
                [("to", Attribute::Integer(Element::F32.number()))],
            );
            port = cast;
        }
        if let Some(turn) = turn {
            self.step("Transpose", &[&port], name, [("perm", Attribute::Integers(turn))]);
        }
        Ok(())
    }

    /// Returns the name under which a tensor is written.
    fn define(&mut self, id: TensorId) -> Result<String> {
        let tensor = self.tensor(id)?;
        // Virtual tensors are checked too: an integer type between two nodes would be a conversion.
        element(tensor)?;
        let name = format!("t{}", id.0);
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// Adds the outputs, with the conversions of their types and memory orders.
    fn write_outputs(&mut self) -> Result<()> {
        let graph = self.graph;
        let mut written = BTreeSet::new();
        for node in &graph.nodes {
            node.op.for_each_output(&mut |_, id| _ = written.insert(id));
        }
        for id in written {
            let tensor = self.tensor(id)?;
            if tensor.kind != TensorKind::Buffer {
                continue;
            }
            let mut name = self
                .names
                .get(&id)
                .cloned()
                .ok_or_else(|| format!("{tensor} is not computed"))?;
            let element = element(tensor)?;
            let order = order(tensor)?;
            if is_permuted(&order) {
                let turned = format!("t{}_out", id.0);
                let turn = order.iter().filter_map(|&axis| i64::try_from(axis).ok()).collect();
                self.step("Transpose", &[&name], &turned, [("perm", Attribute::Integers(turn))]);
                name = turned;
            }
            if element != Element::F32 {
                let cast = format!("t{}_cast", id.0);
                self.step("Cast", &[&name], &cast, [("to", Attribute::Integer(element.number()))]);
                name = cast;
            }
            self.network.outputs.push(Port {
                name,
                tensor: tensor.clone(),
                shape: permuted(&tensor.dims, &order),
                element,
                is_weight: false,
            });
        }
        Ok(())
    }

    fn fresh(&mut self) -> String {
        self.fresh += 1;
        format!("v{}", self.fresh)
    }

    /// Adds an operation.
    fn step<const N: usize>(
        &mut self,
        kind: &'static str,
        inputs: &[&str],
        output: &str,
        attributes: [(&'static str, Attribute); N],
    ) {
        self.network.steps.push(Step {
            kind,
            inputs: inputs.iter().map(|&name| name.to_owned()).collect(),
            outputs: vec![output.to_owned()],
            attributes: attributes.into(),
        });
    }

    /// Adds an operation without attributes, and returns the generated name of its result.
    fn then(&mut self, kind: &'static str, inputs: &[&str]) -> String {
        let name = self.fresh();
        self.step(kind, inputs, &name, []);
        name
    }

    fn floats(&mut self, dims: &[i64], values: Vec<f32>) -> String {
        let name = self.fresh();
        let constant = (name.clone(), dims.to_vec(), Constant::Floats(values));
        self.network.constants.push(constant);
        name
    }

    fn float(&mut self, value: f32) -> String {
        self.floats(&[], vec![value])
    }

    fn integers(&mut self, values: &[i64]) -> String {
        let name = self.fresh();
        let dims = vec![i64::try_from(values.len()).unwrap_or(0)];
        let constant = (name.clone(), dims, Constant::Integers(values.to_vec()));
        self.network.constants.push(constant);
        name
    }

    /// Adds a reshape, and returns the name of its result.
    fn reshaped(&mut self, name: &str, dims: &[i64]) -> String {
        let dims = self.integers(dims);
        self.then("Reshape", &[name, &dims])
    }
}

/// Returns the element type of a tensor, or fails for a type that buffers and virtual tensors may
/// not have.
fn element(tensor: &Tensor) -> Result<Element> {
    match tensor.dtype {
        DataType::F32 => Ok(Element::F32),
        DataType::F16 => Ok(Element::F16),
        DataType::Bf16 => Ok(Element::Bf16),
        other => Err(format!("{tensor} has the type {other}")),
    }
}

fn constant(tensor: &Tensor, value: Scalar) -> Result<f32> {
    let value = match value {
        Scalar::Float(bits) => f64::from_bits(bits),
        Scalar::Integer(_) => return Err(format!("{tensor} is an integer")),
    };
    Ok(match element(tensor)? {
        Element::F32 => value as f32,
        Element::F16 => f16::from_f64(value).to_f32(),
        Element::Bf16 => bf16::from_f64(value).to_f32(),
    })
}

/// Returns the axes of a buffer from the slowest to the fastest.
fn order(tensor: &Tensor) -> Result<Vec<usize>> {
    if tensor.ragged_offset.is_some() {
        return Err(format!("{tensor} is ragged"));
    }
    match Layout::of(&tensor.dims, &tensor.strides) {
        Layout::Dense { order } if order.len() == tensor.dims.len() => Ok(order),
        Layout::Dense { .. } => Err(format!("{tensor} repeats elements")),
        Layout::Strided => Err(format!("{tensor} has gaps")),
    }
}

fn permuted(dims: &[i64], order: &[usize]) -> Vec<i64> {
    order.iter().filter_map(|&axis| dims.get(axis).copied()).collect()
}

/// Returns the position of each axis in an order.
fn inverse(order: &[usize]) -> Vec<i64> {
    let position = |axis| order.iter().position(|&other| other == axis);
    let positions = (0..order.len()).filter_map(position);
    positions.filter_map(|position| i64::try_from(position).ok()).collect()
}

/// Returns true if an order differs from the identity.
fn is_permuted(order: &[usize]) -> bool {
    order.iter().enumerate().any(|(position, &axis)| position != axis)
}
