//! Runs a graph: reads inputs, computes node after node, writes outputs.

use crate::element::{Codec, Number};
use crate::value::{Numbers, Operand, Value, flushed};
use crate::walk::{Offsets, extents};
use crate::{ReferenceError, attention, block_scale, conv, custom, matmul, moe, norm, pointwise, reduction, resample};
use rotini_graph::{CustomOp, DataType, Graph, Node, Op, Scalar, Tensor, TensorId, TensorKind, element_span};
use std::collections::{HashMap, HashSet};

/// The bytes of each tensor by uid, from its first to its last element.
pub type Buffers = HashMap<i64, Vec<u8>>;

/// In what precision float nodes compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// In binary64, whatever the compute type: the value that the graph means.
    #[default]
    F64,
    /// Operands and result of every node are rounded to its compute type, so that comparisons, thresholds and overflows fall as
    /// they do in a kernel. Rounding twice does no harm: sums, products, quotients and square roots are those of the compute type
    /// itself, because binary64 has more than twice its bits. A convolution still sums in binary64 and is rounded as a whole.
    Compute,
}

/// How to execute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// In what precision float nodes compute.
    pub precision: Precision,
    /// Rounds every virtual float tensor to this type. **This is wrong on purpose**: it is the kernel that stores its
    /// intermediates, which a test must be able to tell from a right one.
    pub round_intermediates: Option<DataType>,
}

/// Computes a graph in binary64 (integers exactly) and writes its outputs, each element rounded once.
///
/// `graph` must have passed [`Graph::validate`]. `buffers` holds every tensor that is in a buffer and every runtime scalar; bytes
/// between the elements of an output stay as they are.
///
/// # Errors
///
/// [`ReferenceError::Unsupported`] for what is not implemented, or what is wrong with a buffer. Nothing has been written then.
pub fn execute(graph: &Graph, buffers: &mut Buffers) -> Result<(), ReferenceError> {
    execute_with(graph, buffers, &Options::default())
}

/// [`execute`] with a choice of precision.
///
/// # Errors
///
/// Those of [`execute`].
pub fn execute_with(graph: &Graph, buffers: &mut Buffers, options: &Options) -> Result<(), ReferenceError> {
    let values = run(graph, buffers, options, false)?;
    let outputs = || outputs(graph, &values);
    for (tensor, _) in outputs() {
        checked_buffer(tensor, buffers)?;
    }
    for (tensor, value) in outputs() {
        let codec = Codec::of(tensor.dtype);
        let bytes = buffers.get_mut(&tensor.uid).ok_or_else(|| missing(tensor))?;
        for (offset, number) in Offsets::of(tensor)?.zip(value.numbers.iter()) {
            codec.store_at(number, bytes, offset);
        }
    }
    Ok(())
}

/// The outputs of a graph before they are rounded, with a bound on the error that a right kernel may have in each element.
///
/// See [`Evaluation::judge`].
#[derive(Debug)]
pub struct Evaluation<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) values: Vec<Option<Value>>,
}

/// Computes a graph in binary64 together with error bounds, which takes some times as long as [`execute`]. Writes nothing.
///
/// # Errors
///
/// Those of [`execute`].
pub fn evaluate<'a>(graph: &'a Graph, buffers: &Buffers) -> Result<Evaluation<'a>, ReferenceError> {
    let values = run(graph, buffers, &Options::default(), true)?;
    Ok(Evaluation { graph, values })
}

/// What the implementation of an operation sees: its node and the values of the tensors before it.
pub(crate) struct Context<'a> {
    graph: &'a Graph,
    position: usize,
    options: &'a Options,
    values: &'a [Option<Value>],
    /// The type in which the node computes.
    pub(crate) compute: Codec,
    /// Whether error bounds are asked for.
    pub(crate) bounds: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn dims(&self, id: TensorId) -> Result<Vec<usize>, ReferenceError> {
        extents(&tensor_of(self.graph, id)?.dims)
    }

    /// How a tensor is stored.
    pub(crate) fn codec(&self, id: TensorId) -> Result<Codec, ReferenceError> {
        Ok(Codec::of(tensor_of(self.graph, id)?.dtype))
    }

    fn value(&self, id: TensorId) -> Result<&'a Value, ReferenceError> {
        self.values
            .get(id.index())
            .and_then(Option::as_ref)
            .ok_or_else(|| ReferenceError::not_validated(format!("tensor {} is read before it is defined", id.0)))
    }

    /// The same for a node that computes in another type.
    pub(crate) fn computing(&self, compute: Codec) -> Self {
        Context { compute, ..*self }
    }

    /// An operand of a node that computes in floats.
    pub(crate) fn floats(&self, id: TensorId) -> Result<Operand<'a, f64>, ReferenceError> {
        let rounded = self.options.precision == Precision::Compute;
        Ok(self.value(id)?.floats(self.compute, rounded))
    }

    /// A factor of the products that a node sums up. Devices may take subnormal ones for zero.
    pub(crate) fn factors(&self, id: TensorId) -> Result<Operand<'a, f64>, ReferenceError> {
        let mut operand = self.floats(id)?;
        if let Some(errors) = &mut operand.errors {
            for (error, &value) in errors.to_mut().iter_mut().zip(operand.numbers.iter()) {
                *error = error.max(flushed(self.compute, value));
            }
        }
        Ok(operand)
    }

    /// An operand of a node that computes in integers.
    pub(crate) fn integers(&self, id: TensorId) -> Result<Operand<'a, i64>, ReferenceError> {
        Ok(self.value(id)?.integers(self.compute))
    }

    /// An operand of a node that computes in integers, none of which depends on how a float was rounded.
    pub(crate) fn exact_integers(&self, id: TensorId) -> Result<Operand<'a, i64>, ReferenceError> {
        let operand = self.integers(id)?;
        if operand
            .errors
            .iter()
            .flat_map(|errors| errors.iter())
            .any(|&error| error > 0.0)
        {
            return Err(self.unsupported("bounds for integers that depend on how a float was rounded"));
        }
        Ok(operand)
    }

    /// The elements of a tensor that holds positions rather than quantities, whatever the node computes in.
    pub(crate) fn positions(&self, id: TensorId) -> Result<Vec<i64>, ReferenceError> {
        let value = self.value(id)?;
        let uncertain = value.errors.iter().flatten().any(|&error| error > 0.0);
        match &value.numbers {
            Numbers::Integer(values) if !uncertain => Ok(values.clone()),
            Numbers::Integer(_) => Err(self.unsupported("bounds for positions that depend on how a float was rounded")),
            Numbers::Float(_) => Err(ReferenceError::not_validated(format!("positions in tensor {}", id.0))),
        }
    }

    /// Integers as a result, exact.
    pub(crate) fn integer_value(&self, dims: Vec<usize>, numbers: Vec<i64>) -> Value {
        Value {
            dims,
            errors: self.bounds.then(|| vec![0.0; numbers.len()]),
            numbers: Numbers::Integer(numbers),
        }
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>) -> ReferenceError {
        ReferenceError::Unsupported {
            node: self.graph.node_label(self.position),
            what: what.into(),
        }
    }
}

/// Computes every tensor that a node defines.
fn run(
    graph: &Graph,
    buffers: &Buffers,
    options: &Options,
    bounds: bool,
) -> Result<Vec<Option<Value>>, ReferenceError> {
    if let Some(ragged) = graph.tensors.iter().find(|tensor| tensor.ragged_offset.is_some()) {
        return Err(ReferenceError::UnsupportedTensor {
            tensor: ragged.to_string(),
            what: "ragged rows".to_owned(),
        });
    }
    let mut values = read_inputs(graph, buffers, bounds)?;
    for (position, node) in graph.nodes.iter().enumerate() {
        let unsupported = |what: String| ReferenceError::Unsupported {
            node: graph.node_label(position),
            what,
        };
        let context = Context {
            graph,
            position,
            options,
            values: &values,
            compute: Codec::of_compute(node.compute)
                .ok_or_else(|| unsupported(format!("in the compute type {}", node.compute)))?,
            bounds,
        };
        let (compute, results) = (context.compute, compute(&context, node)?);
        for (id, mut value) in results {
            if !matches!(node.op, Op::Pointwise(_)) {
                special_for_certain(&mut value);
            }
            let value = settle(graph, id, value, compute, options)?;
            if let Some(slot) = values.get_mut(id.index()) {
                *slot = Some(value);
            }
        }
    }
    Ok(values)
}

/// Computes one node: the tensors it writes with their values.
fn compute(context: &Context<'_>, node: &Node) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    match &node.op {
        Op::ConvFprop(op) => Ok(vec![(op.y, conv::fprop(context, op)?)]),
        Op::ConvDgrad(op) => Ok(vec![(op.dx, conv::dgrad(context, op)?)]),
        Op::ConvWgrad(op) => Ok(vec![(op.dw, conv::wgrad(context, op)?)]),
        Op::Matmul(op) => Ok(vec![(op.c, matmul::matmul(context, op)?)]),
        Op::Reduction(op) => Ok(vec![(op.output, reduction::reduction(context, op)?)]),
        Op::ResampleFwd(op) => resample::forward(context, op),
        Op::BlockScaleDequantize(op) => Ok(vec![(op.y, block_scale::dequantize(context, op)?)]),
        Op::MoeGroupedMatmul(op) => Ok(vec![(op.output, moe::grouped_matmul(context, op)?)]),
        Op::MoeGroupedMatmulBwd(op) => Ok(vec![(op.dweight, moe::grouped_matmul_bwd(context, op)?)]),
        Op::ResampleBwd(op) => Ok(vec![(op.dx, resample::backward(context, op)?)]),
        Op::Pointwise(op) => Ok(vec![(op.out_0, pointwise::pointwise(context, op)?)]),
        Op::BatchnormInference(op) => norm::batchnorm_inference(context, op),
        Op::BatchnormInferenceVariance(op) => norm::batchnorm_inference_variance(context, op),
        Op::Batchnorm(op) => norm::batchnorm(context, op),
        Op::BatchnormBackward(op) => norm::batchnorm_backward(context, op),
        Op::Layernorm(op) => norm::layernorm(context, op),
        Op::LayernormBackward(op) => norm::layernorm_backward(context, op),
        Op::RmsNorm(op) => norm::rms_norm(context, op),
        Op::RmsNormBackward(op) => norm::rms_norm_backward(context, op),
        Op::Sdpa(op) => attention::sdpa(context, op),
        Op::SdpaBackward(op) => attention::sdpa_backward(context, op),
        Op::BlockScaleQuantize(op) => block_scale::quantize(context, op),
        Op::CustomOp(op) => custom_op(context, op),
    }
}

/// Computes a custom operation, whose body gets and gives elements that are rounded to their tensors' types.
fn custom_op(context: &Context<'_>, op: &CustomOp) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let mut values = context.values.to_vec();
    for &id in &op.inputs {
        let codec = Codec::of(tensor_of(context.graph, id)?.dtype);
        if let Some(slot) = values.get_mut(id.index()) {
            *slot = slot.take().map(|value| value.convert(codec));
        }
    }
    let mut results = custom::custom(
        &Context {
            values: &values,
            ..*context
        },
        op,
    )?;
    for (id, value) in &mut results {
        *value = value.clone().convert(Codec::of(tensor_of(context.graph, *id)?.dtype));
    }
    Ok(results)
}

/// Takes NaN and infinities for what they are: only pointwise operations tell whether an operand that is flushed to zero makes another
/// special value of one.
fn special_for_certain(value: &mut Value) {
    let errors = value.errors.iter_mut().flatten();
    for (error, number) in errors.zip(value.numbers.iter()) {
        if !number.to_f64().is_finite() {
            *error = 0.0;
        }
    }
}

/// What later nodes read of a result: in an integer tensor its conversion, and in one of few bits, which is what such a tensor is for; in
/// any other float tensor the value itself, unrounded.
fn settle(
    graph: &Graph,
    id: TensorId,
    mut value: Value,
    compute: Codec,
    options: &Options,
) -> Result<Value, ReferenceError> {
    let tensor = tensor_of(graph, id)?;
    if value.dims != extents(&tensor.dims)? {
        return Err(ReferenceError::not_validated(format!(
            "{tensor} has dims {:?}, but its node makes {:?}",
            tensor.dims, value.dims
        )));
    }
    if tensor.dtype.is_integer() || Codec::of_compute(tensor.dtype).is_none() {
        return Ok(value.convert(Codec::of(tensor.dtype)));
    }
    if let (Precision::Compute, Numbers::Float(numbers)) = (options.precision, &mut value.numbers) {
        numbers.iter_mut().for_each(|number| *number = compute.round(*number));
    }
    match options.round_intermediates {
        Some(dtype) if tensor.kind == TensorKind::Virtual => Ok(value.convert(Codec::of(dtype))),
        _ => Ok(value),
    }
}

/// Reads every tensor that a node needs and none writes.
fn read_inputs(graph: &Graph, buffers: &Buffers, bounds: bool) -> Result<Vec<Option<Value>>, ReferenceError> {
    let (inputs, _) = inputs_and_outputs(graph);
    (0_u32..)
        .map(TensorId)
        .zip(&graph.tensors)
        .map(|(id, tensor)| inputs.contains(&id).then(|| read(tensor, buffers, bounds)).transpose())
        .collect()
}

/// The tensors that are read and not written by any node, and those that are written.
pub(crate) fn inputs_and_outputs(graph: &Graph) -> (HashSet<TensorId>, HashSet<TensorId>) {
    let (mut read, mut written) = (HashSet::new(), HashSet::new());
    for node in &graph.nodes {
        node.op.for_each_input(&mut |_, id| {
            read.insert(id);
        });
        node.op.for_each_output(&mut |_, id| {
            written.insert(id);
        });
    }
    (&read - &written, written)
}

fn read(tensor: &Tensor, buffers: &Buffers, bounds: bool) -> Result<Value, ReferenceError> {
    let codec = Codec::of(tensor.dtype);
    let dims = extents(&tensor.dims)?;
    let elements: usize = dims.iter().product();
    let numbers: Vec<Number> = match tensor.kind {
        // A constant is a value of the tensor's type, though the wire carries 16-bit floats as binary32.
        TensorKind::Constant(Scalar::Float(bits)) => {
            vec![codec.convert(Number::Float(f64::from_bits(bits))); elements]
        }
        TensorKind::Constant(Scalar::Integer(value)) => vec![codec.convert(Number::Integer(value)); elements],
        TensorKind::RuntimeScalar => {
            let value = codec
                .load_at(checked_buffer(tensor, buffers)?, 0)
                .ok_or_else(|| missing(tensor))?;
            vec![value; elements]
        }
        TensorKind::Buffer => {
            let bytes = checked_buffer(tensor, buffers)?;
            Offsets::of(tensor)?
                .filter_map(|offset| codec.load_at(bytes, offset))
                .collect()
        }
        TensorKind::Virtual => {
            return Err(ReferenceError::not_validated(format!(
                "{tensor} is virtual and never written"
            )));
        }
    };
    let numbers = if tensor.dtype.is_integer() {
        Numbers::Integer(
            numbers
                .into_iter()
                .map(|number| match number {
                    Number::Integer(value) => value,
                    Number::Float(value) => value as i64,
                })
                .collect(),
        )
    } else {
        Numbers::Float(numbers.into_iter().map(Number::to_f64).collect())
    };
    Ok(Value {
        dims,
        numbers,
        errors: bounds.then(|| vec![0.0; elements]),
    })
}

/// The stored tensors with their values.
pub(crate) fn outputs<'a>(
    graph: &'a Graph,
    values: &'a [Option<Value>],
) -> impl Iterator<Item = (&'a Tensor, &'a Value)> {
    let (_, written) = inputs_and_outputs(graph);
    (0_u32..)
        .map(TensorId)
        .zip(&graph.tensors)
        .zip(values)
        .filter(move |((id, tensor), _)| written.contains(id) && tensor.kind == TensorKind::Buffer)
        .filter_map(|((_, tensor), value)| value.as_ref().map(|value| (tensor, value)))
}

/// The number of bytes from a tensor's first to its last element, which is what its buffer must have; one element for a runtime
/// scalar.
///
/// # Errors
///
/// If it overflows.
pub fn span_bytes(tensor: &Tensor) -> Result<usize, ReferenceError> {
    let elements = match tensor.kind {
        TensorKind::RuntimeScalar => Some(1),
        _ => element_span(&tensor.dims, &tensor.strides),
    };
    elements
        .and_then(|elements| usize::try_from(elements).ok())
        .and_then(|elements| Codec::of(tensor.dtype).bytes(elements))
        .ok_or_else(|| ReferenceError::UnsupportedTensor {
            tensor: tensor.to_string(),
            what: "a span that overflows".to_owned(),
        })
}

fn checked_buffer<'a>(tensor: &Tensor, buffers: &'a Buffers) -> Result<&'a [u8], ReferenceError> {
    let bytes = buffers.get(&tensor.uid).ok_or_else(|| missing(tensor))?;
    let needed = span_bytes(tensor)?;
    if bytes.len() < needed {
        return Err(ReferenceError::ShortBuffer {
            tensor: tensor.to_string(),
            got: bytes.len(),
            needed,
        });
    }
    Ok(bytes)
}

fn missing(tensor: &Tensor) -> ReferenceError {
    ReferenceError::MissingBuffer {
        tensor: tensor.to_string(),
    }
}

pub(crate) fn tensor_of(graph: &Graph, id: TensorId) -> Result<&Tensor, ReferenceError> {
    graph
        .tensor(id)
        .ok_or_else(|| ReferenceError::not_validated(format!("there is no tensor {}", id.0)))
}
