//! A graph's tensors in their buffers: which tensors a graph reads and writes, their sizes in
//! bytes, and their elements as values.

use crate::ReferenceError;
use crate::element::{Codec, Number};
use crate::value::{Numbers, Value};
use crate::walk::{Offsets, extents};
use rotini_graph::{Graph, Scalar, Tensor, TensorId, TensorKind, element_span};
use std::collections::{HashMap, HashSet};

/// The bytes of each tensor by uid, from its first to its last element.
pub type Buffers = HashMap<i64, Vec<u8>>;

/// Reads every tensor that some node reads and no node writes.
pub(crate) fn read_inputs(
    graph: &Graph,
    buffers: &Buffers,
    bounds: bool,
) -> Result<Vec<Option<Value>>, ReferenceError> {
    let (inputs, _) = inputs_and_outputs(graph);
    (0_u32..)
        .map(TensorId)
        .zip(&graph.tensors)
        .map(|(id, tensor)| inputs.contains(&id).then(|| read(tensor, buffers, bounds)).transpose())
        .collect()
}

/// Returns the tensors that nodes read and none writes, and the tensors that nodes write.
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
        // A constant is rounded to the tensor's type, because the wire carries 16-bit floats as
        // binary32.
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

/// Returns the written tensors that are in buffers, with their values.
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

/// Returns the number of bytes from a tensor's first to its last element, which its buffer must
/// have at least; for a runtime scalar, the size of one element.
///
/// # Errors
///
/// [`ReferenceError::UnsupportedTensor`] if the number overflows.
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

pub(crate) fn checked_buffer<'a>(tensor: &Tensor, buffers: &'a Buffers) -> Result<&'a [u8], ReferenceError> {
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

pub(crate) fn missing(tensor: &Tensor) -> ReferenceError {
    ReferenceError::MissingBuffer {
        tensor: tensor.to_string(),
    }
}

pub(crate) fn tensor_of(graph: &Graph, id: TensorId) -> Result<&Tensor, ReferenceError> {
    graph
        .tensor(id)
        .ok_or_else(|| ReferenceError::not_validated(format!("there is no tensor {}", id.0)))
}
