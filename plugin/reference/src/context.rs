//! The input of an operation's implementation, and the precision in which the reference computes.

use crate::ReferenceError;
use crate::element::Codec;
use crate::tensors::tensor_of;
use crate::value::{Numbers, Operand, Value, flushed, rounding_error};
use crate::walk::extents;
use rotini_graph::{DataType, Graph, TensorId};

/// The precision in which float nodes compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// In binary64, whatever the compute type: the value that the graph means.
    #[default]
    F64,
    /// Operands and result of every node are rounded to its compute type, so that comparisons,
    /// thresholds and overflows turn out as they do in a kernel. Double rounding does no harm:
    /// sums, products, quotients and square roots equal those computed in the compute type itself,
    /// because binary64 has more than twice its bits. A convolution still sums in binary64 and is
    /// rounded once, at the end.
    Compute,
}

/// Options of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The precision in which float nodes compute.
    pub precision: Precision,
    /// Rounds every virtual float tensor to this type. **This is wrong on purpose**: it imitates a
    /// kernel that stores its intermediates, which a test must be able to tell from a correct one.
    pub round_intermediates: Option<DataType>,
}

/// The input of an operation's implementation: its node, and the values of all tensors computed
/// before it.
pub(crate) struct Context<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) position: usize,
    pub(crate) options: &'a Options,
    pub(crate) values: &'a [Option<Value>],
    /// The type in which the node computes.
    pub(crate) compute: Codec,
    /// Whether error bounds are computed.
    pub(crate) bounds: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn dims(&self, id: TensorId) -> Result<Vec<usize>, ReferenceError> {
        extents(&tensor_of(self.graph, id)?.dims)
    }

    /// Returns a tensor's storage codec.
    pub(crate) fn codec(&self, id: TensorId) -> Result<Codec, ReferenceError> {
        Ok(Codec::of(tensor_of(self.graph, id)?.dtype))
    }

    fn value(&self, id: TensorId) -> Result<&'a Value, ReferenceError> {
        self.values
            .get(id.index())
            .and_then(Option::as_ref)
            .ok_or_else(|| ReferenceError::not_validated(format!("tensor {} is read before it is defined", id.0)))
    }

    /// Returns this context with another compute type.
    pub(crate) fn computing(&self, compute: Codec) -> Self {
        Context { compute, ..*self }
    }

    /// Returns an operand of a node that computes in floats.
    pub(crate) fn floats(&self, id: TensorId) -> Result<Operand<'a, f64>, ReferenceError> {
        let rounded = self.options.precision == Precision::Compute;
        Ok(self.value(id)?.floats(self.compute, rounded))
    }

    /// Returns a factor of the products that a node sums.
    ///
    /// Two effects widen its error: devices may flush subnormal factors to zero, and matrix
    /// instructions need 16-bit operands, so a kernel may round a computed factor that was never
    /// stored to the tensor's 16-bit type.
    pub(crate) fn factors(&self, id: TensorId) -> Result<Operand<'a, f64>, ReferenceError> {
        let mut operand = self.floats(id)?;
        let narrow = self.narrow(id)?;
        if let Some(errors) = &mut operand.errors {
            for (error, &value) in errors.to_mut().iter_mut().zip(operand.numbers.iter()) {
                *error = error.max(flushed(self.compute, value));
                if let Some(codec) = narrow {
                    *error += rounding_error(codec, value.abs() + *error, *error == 0.0);
                }
            }
        }
        Ok(operand)
    }

    /// Returns the 16-bit type to which a kernel may round a factor of products: the tensor's own
    /// type, if the products are computed in f32 or in a type that is computed in f32.
    pub(crate) fn narrow(&self, id: TensorId) -> Result<Option<Codec>, ReferenceError> {
        let codec = self.codec(id)?;
        let is_half = |codec| matches!(codec, Codec::F16 | Codec::Bf16);
        Ok((is_half(codec) && (self.compute == Codec::F32 || is_half(self.compute))).then_some(codec))
    }

    /// Returns an operand of a node that computes in integers.
    pub(crate) fn integers(&self, id: TensorId) -> Result<Operand<'a, i64>, ReferenceError> {
        Ok(self.value(id)?.integers(self.compute))
    }

    /// Returns an operand of a node that computes in integers, or an error if any element depends
    /// on how a float was rounded.
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

    /// Returns the elements of an integer tensor that holds positions rather than quantities,
    /// whatever the node's compute type.
    pub(crate) fn positions(&self, id: TensorId) -> Result<Vec<i64>, ReferenceError> {
        let value = self.value(id)?;
        let uncertain = value.errors.iter().flatten().any(|&error| error > 0.0);
        match &value.numbers {
            Numbers::Integer(values) if !uncertain => Ok(values.clone()),
            Numbers::Integer(_) => Err(self.unsupported("bounds for positions that depend on how a float was rounded")),
            Numbers::Float(_) => Err(ReferenceError::not_validated(format!("positions in tensor {}", id.0))),
        }
    }

    /// Returns an exact integer result.
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
