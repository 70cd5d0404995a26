//! Compares a kernel's bytes with the reference.

use crate::ReferenceError;
use crate::element::{Codec, Number};
use crate::evaluate::Evaluation;
use crate::functions::pointwise_tolerance;
use crate::tensors::{outputs, span_bytes, tensor_of};
use crate::value::distance;
use crate::walk::Offsets;
use rotini_graph::{Graph, Op, PointwiseMode, Tensor, TensorId, TensorKind};
use std::collections::HashSet;
use thiserror::Error;

/// The maximum distance of a result from the reference: |got - want| ≤ absolute + relative |want|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Absolute part, in the tensor's units.
    pub absolute: f64,
    /// Relative part, as a fraction of |want|.
    pub relative: f64,
}

impl Tolerance {
    /// Accepts only the wanted value.
    pub const EXACT: Tolerance = Tolerance {
        absolute: 0.0,
        relative: 0.0,
    };

    fn or(self, other: Tolerance) -> Tolerance {
        Tolerance {
            absolute: self.absolute.max(other.absolute),
            relative: self.relative.max(other.relative),
        }
    }
}

/// The result of comparing a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Number of elements that were compared.
    pub elements: usize,
    /// Number of elements that are not accepted.
    pub wrong: usize,
    /// Number of elements for which any value would have been accepted because their error has no
    /// bound (for one, their sum may overflow the compute type). 0 from [`compare`].
    pub unbounded: usize,
    /// Number of elements whose bounds are too loose to catch faults: unbounded ones, and those
    /// that may be off, before rounding to the tensor's type, by more than a sixteenth of the
    /// largest magnitude in the tensor.
    pub blunt: usize,
    /// The largest difference.
    pub max_absolute: f64,
    /// The largest difference as a fraction of the wanted magnitude, over elements where that is
    /// not 0.
    pub max_relative: f64,
    /// The largest quotient of a difference and the difference allowed.
    pub ratio: f64,
    /// The element with that ratio.
    pub worst: Worst,
}

/// One element of a comparison.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Worst {
    /// Its logical index.
    pub index: Vec<usize>,
    /// The kernel's value.
    pub got: f64,
    /// The reference's value.
    pub want: f64,
}

/// The reason why a result is not accepted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Mismatch {
    /// Elements outside the tolerance.
    #[error(
        "{tensor}: {} of {} elements are wrong; the worst is {:?} with {} instead of {}, {:.3} times what is allowed",
        report.wrong, report.elements, report.worst.index, report.worst.got, report.worst.want, report.ratio
    )]
    Values {
        /// The tensor.
        tensor: String,
        /// The comparison.
        report: Report,
    },
    /// A byte between the elements has changed.
    #[error("{tensor}: byte {offset} is between the elements, but was changed from {before:#04x} to {after:#04x}")]
    Gap {
        /// The tensor.
        tensor: String,
        /// The byte's offset in the buffer.
        offset: usize,
        /// Its value before.
        before: u8,
        /// Its value after.
        after: u8,
    },
    /// Buffers whose lengths differ or are too short.
    #[error("{tensor}: {got} bytes are compared with {want}, for a tensor that spans {span}")]
    Length {
        /// The tensor.
        tensor: String,
        /// Bytes of the result.
        got: usize,
        /// Bytes of the reference.
        want: usize,
        /// Bytes from the tensor's first to its last element.
        span: usize,
    },
    /// The reference could not provide a value for the tensor.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// Returns hipDNN's tolerance for an output of a graph, chosen by the operations that lead to the
/// output and the coarsest type among the inputs, the compute types and the output itself. Integers
/// are exact.
///
/// Types of intermediates do not count, since these are not rounded, except those of eight bits and
/// less. The values are those of hipDNN's `test_sdk`; where its table has none (convolutions and
/// others in f64), those of its pointwise row.
///
/// # Errors
///
/// [`ReferenceError::Unsupported`] for custom operations, for which the table has no row.
pub fn tolerance(graph: &Graph, output: TensorId) -> Result<Tolerance, ReferenceError> {
    let tensor = tensor_of(graph, output)?;
    if tensor.dtype.is_integer() {
        return Ok(Tolerance::EXACT);
    }
    let mut types = vec![tensor.dtype];
    let mut needed = HashSet::from([output]);
    let mut written = HashSet::new();
    let mut before = Vec::new();
    for (position, node) in graph.nodes.iter().enumerate().rev() {
        let mut wanted = false;
        node.op.for_each_output(&mut |_, id| wanted |= needed.contains(&id));
        if !wanted {
            continue;
        }
        node.op.for_each_output(&mut |_, id| _ = written.insert(id));
        before.push((position, &node.op));
        types.push(node.compute);
        node.op.for_each_input(&mut |_, id| {
            needed.insert(id);
            types.extend(
                graph
                    .tensor(id)
                    .filter(|tensor| tensor.kind != TensorKind::Virtual)
                    .map(|tensor| tensor.dtype),
            );
        });
    }
    let coarsest = types
        .into_iter()
        .filter_map(Codec::of_compute)
        .filter_map(|codec| Some((codec.precision()?, codec)))
        .min_by_key(|(precision, _)| *precision)
        .map_or(Codec::F64, |(_, codec)| codec);
    // The table has no row for the types that are only for storage: one step of each such type to
    // which a value is rounded on the way.
    let step = needed.iter().try_fold(Tolerance::EXACT, |tolerance, id| {
        Ok::<_, ReferenceError>(match Codec::of(tensor_of(graph, *id)?.dtype) {
            Codec::Narrow(format) if written.contains(id) => tolerance.or(Tolerance {
                absolute: format.value(1),
                relative: 2.0_f64.powi(1 - format.precision()),
            }),
            _ => tolerance,
        })
    })?;
    before.into_iter().try_fold(step, |tolerance, (position, op)| {
        Ok(tolerance.or(row(graph, position, op, coarsest)?))
    })
}

/// Returns the row of hipDNN's table for one operation.
fn row(graph: &Graph, position: usize, op: &Op, codec: Codec) -> Result<Tolerance, ReferenceError> {
    let both = |value| Tolerance {
        absolute: value,
        relative: value,
    };
    let pointwise = both(pointwise_tolerance(codec));
    let table = |[f64, f32, f16, bf16]: [f64; 4]| {
        both(match codec {
            Codec::F32 => f32,
            Codec::F16 => f16,
            Codec::Bf16 => bf16,
            _ => f64,
        })
    };
    // Used where the table has no value for f64.
    let finest = pointwise_tolerance(Codec::F64);
    match op {
        Op::BatchnormInference(_) => Ok(table([1e-7, 2e-4, 5e-4, 5e-3])),
        Op::BatchnormInferenceVariance(_) => Ok(table([1e-7, 2e-4, 8e-4, 7e-3])),
        Op::Batchnorm(_) => Ok(table([1e-7, 4e-3, 4e-3, 8e-3])),
        Op::BatchnormBackward(_) => Ok(table([1e-7, 2e-3, 4e-4, 3e-3])),
        // The table has one row for both directions of these.
        Op::RmsNorm(_) | Op::RmsNormBackward(_) => Ok(table([4e-3, 4e-3, 4e-3, 8e-3])),
        Op::Layernorm(_) | Op::LayernormBackward(_) => Ok(table([1e-5, 1e-4, 1e-3, 1e-2])),
        Op::Sdpa(_) | Op::SdpaBackward(_) => Ok(table([finest, 1e-5, 1e-2, 1e-2])),
        // The table has no row for pooling, for which hipDNN's tests use these numbers, nor for
        // block scales, which are products and quotients.
        Op::Pointwise(_)
        | Op::ResampleFwd(_)
        | Op::ResampleBwd(_)
        | Op::BlockScaleDequantize(_)
        | Op::BlockScaleQuantize(_) => Ok(pointwise),
        Op::ConvDgrad(_) => Ok(table([finest, 8.5e-6, 2e-2, 2e-2])),
        Op::ConvWgrad(_) => Ok(table([finest, 2e-4, 2e-1, 2e-1])),
        Op::Matmul(_) | Op::MoeGroupedMatmul(_) | Op::MoeGroupedMatmulBwd(_) => Ok(table([finest, 1e-5, 1e-2, 2e-2])),
        Op::Reduction(_) => Ok(table([finest, 1e-5, 1e-2, 5e-2])),
        Op::ConvFprop(_) => Ok(match codec {
            Codec::F32 => both(1e-5),
            Codec::F16 => Tolerance {
                absolute: 1e-1,
                relative: 1e-2,
            },
            Codec::Bf16 => Tolerance {
                absolute: 1e-1,
                relative: 2e-2,
            },
            _ => pointwise,
        }),
        Op::CustomOp(_) => Err(ReferenceError::Unsupported {
            node: graph.node_label(position),
            what: op.kind().to_owned(),
        }),
    }
}

/// Compares the bytes of one output with the reference's. Both buffers must have held the same
/// bytes before execution.
///
/// NaN and infinities must be the same, integers equal, and every byte between elements unchanged.
///
/// # Errors
///
/// The [`Mismatch`]. Changed gaps are reported first, because a kernel that writes there may have
/// written any element wrongly.
pub fn compare(tensor: &Tensor, got: &[u8], want: &[u8], tolerance: Tolerance) -> Result<Report, Mismatch> {
    check_gaps(tensor, got, want)?;
    let codec = Codec::of(tensor.dtype);
    let elements = Offsets::of(tensor)?.filter_map(|offset| {
        let (got, want) = (codec.of_byte().load_at(got, offset)?, codec.load_at(want, offset)?);
        let allowed = match want {
            Number::Integer(_) => 0.0,
            Number::Float(want) => tolerance.absolute + tolerance.relative * want.abs(),
        };
        let difference = difference(got, want);
        Some(Element {
            got: got.to_f64(),
            want: want.to_f64(),
            difference,
            allowed,
            // If an infinity is wanted, `allowed` is infinite too, so only a finite difference may
            // be compared with it.
            accepted: difference == 0.0 || (difference.is_finite() && difference <= allowed),
            unbounded: false,
            bound: if allowed.is_finite() { allowed } else { 0.0 },
        })
    });
    summarise(tensor, elements)
}

impl Evaluation<'_> {
    /// Checks whether `got` may be the output of a kernel that keeps the graph's meaning: one that
    /// computes in the compute types, in any order and with fused multiply-adds, keeps
    /// intermediates in these types, and rounds each stored element once.
    ///
    /// Each element has to be between the rounded ends of the interval that such a kernel can
    /// reach. For sums of products that are exact in the compute type, as [`fill`](crate::fill())
    /// makes them, the interval is one value. `before` holds the output's bytes before execution;
    /// all bytes between elements must be unchanged.
    ///
    /// # Errors
    ///
    /// The [`Mismatch`].
    pub fn judge(&self, output: TensorId, got: &[u8], before: &[u8]) -> Result<Report, Mismatch> {
        let tensor = tensor_of(self.graph, output)?;
        let (_, value) = outputs(self.graph, &self.values)
            .find(|(candidate, _)| candidate.uid == tensor.uid)
            .ok_or_else(|| ReferenceError::not_validated(format!("{tensor} is not an output")))?;
        check_gaps(tensor, got, before)?;
        let codec = Codec::of(tensor.dtype);
        let tells_zeros = tells_zeros(self.graph, output);
        let errors = value.errors.iter().flatten().copied();
        let elements =
            Offsets::of(tensor)?
                .zip(value.numbers.iter())
                .zip(errors)
                .filter_map(|((offset, want), error)| {
                    // A kernel stores truth values as 0 and 1.
                    let got = codec.of_byte().load_at(got, offset)?;
                    Some(judged(codec, got, want, (error, tells_zeros)))
                });
        summarise(tensor, elements)
    }
}

/// Returns true if the signs of an output's zeros are determined by the graph: if the output is
/// computed from inputs by pointwise operations other than MAX and MIN. Sums may start from a zero
/// of either sign, and which of two zeros is larger is not defined.
fn tells_zeros(graph: &Graph, output: TensorId) -> bool {
    let writer = |id: TensorId| {
        graph.nodes.iter().find(|node| {
            let mut writes = false;
            node.op.for_each_output(&mut |_, written| writes |= written == id);
            writes
        })
    };
    let mut open = vec![output];
    let mut seen = HashSet::new();
    while let Some(id) = open.pop() {
        match writer(id).map(|node| &node.op) {
            _ if !seen.insert(id) => {}
            None => {}
            Some(Op::Pointwise(op)) if !matches!(op.mode, PointwiseMode::Max | PointwiseMode::Min) => {
                open.extend([Some(op.in_0), op.in_1, op.in_2].into_iter().flatten());
            }
            Some(_) => return false,
        }
    }
    true
}

/// Compares one element with the interval of `error` around the unrounded `want`. If `tells_zeros`,
/// an exact zero must have the wanted sign.
fn judged(codec: Codec, got: Number, want: Number, (error, tells_zeros): (f64, bool)) -> Element {
    let value = want.to_f64();
    let special = !value.is_finite();
    let unbounded = !error.is_finite();
    let end = |error: f64| codec.convert(Number::Float(value + error));
    let (low, high) = if error == 0.0 || special {
        (codec.convert(want), codec.convert(want))
    } else if codec == Codec::Bool && value.abs() <= error {
        // If the value may be 0, both truth values are accepted.
        (Number::Integer(0), Number::Integer(1))
    } else {
        (end(-error), end(error))
    };
    // The rounding of the wanted value itself is always allowed.
    let allowed = [low, high, codec.convert(want)]
        .into_iter()
        .map(|end| difference(end, want))
        .fold(0.0, f64::max);
    let same = |a: Number, b: Number| difference(a, b) == 0.0;
    let within = match (low, got, high) {
        (Number::Integer(low), Number::Integer(got), Number::Integer(high)) => low <= got && got <= high,
        _ => low.to_f64() <= got.to_f64() && got.to_f64() <= high.to_f64(),
    };
    let is_other_zero = tells_zeros
        && error == 0.0
        && matches!((got, low), (Number::Float(got), Number::Float(want))
            if got == 0.0 && want == 0.0 && got.is_sign_negative() != want.is_sign_negative());
    Element {
        got: got.to_f64(),
        want: value,
        difference: if is_other_zero {
            f64::INFINITY
        } else {
            difference(got, want)
        },
        allowed,
        accepted: !is_other_zero && (unbounded || within || same(got, low)),
        unbounded,
        bound: match (unbounded, special) {
            (true, _) => f64::INFINITY,
            (false, true) => 0.0,
            (false, false) => error,
        },
    }
}

fn difference(a: Number, b: Number) -> f64 {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => a.abs_diff(b) as f64,
        _ => distance(a.to_f64(), b.to_f64()),
    }
}

/// An element that was compared.
struct Element {
    got: f64,
    want: f64,
    difference: f64,
    allowed: f64,
    accepted: bool,
    unbounded: bool,
    /// Maximum error before rounding to the tensor's type, which may be coarse; 0 if only one value
    /// is accepted.
    bound: f64,
}

/// Summarises the compared elements, which come in logical row-major order.
fn summarise(tensor: &Tensor, elements: impl Iterator<Item = Element>) -> Result<Report, Mismatch> {
    let mut report = Report {
        elements: 0,
        wrong: 0,
        unbounded: 0,
        blunt: 0,
        max_absolute: 0.0,
        max_relative: 0.0,
        ratio: 0.0,
        worst: Worst::default(),
    };
    let mut bounds = Vec::new();
    let mut largest: f64 = 0.0;
    for element in elements {
        bounds.push(element.bound);
        if element.want.is_finite() {
            largest = largest.max(element.want.abs());
        }
        // Forces the ratio to be at most 1 for accepted elements and above 1 for wrong ones, even
        // if the quotient is NaN because both numbers are infinite.
        let ratio = match element.difference / element.allowed {
            _ if element.difference == 0.0 => 0.0,
            ratio if element.accepted => ratio.min(1.0),
            ratio if ratio > 1.0 => ratio,
            _ => f64::INFINITY,
        };
        if ratio > report.ratio || report.elements == 0 {
            report.ratio = ratio;
            report.worst = Worst {
                index: logical_index(&tensor.dims, report.elements),
                got: element.got,
                want: element.want,
            };
        }
        report.elements += 1;
        report.wrong += usize::from(!element.accepted);
        report.unbounded += usize::from(element.unbounded);
        report.max_absolute = report.max_absolute.max(element.difference);
        if element.want != 0.0 && element.difference > 0.0 {
            report.max_relative = report.max_relative.max(element.difference / element.want.abs());
        }
    }
    report.blunt = bounds.iter().filter(|&&bound| bound > largest / 16.0).count();
    if report.wrong == 0 {
        return Ok(report);
    }
    Err(Mismatch::Values {
        tensor: tensor.to_string(),
        report,
    })
}

/// Returns the index of the element at `position` in logical row-major order.
fn logical_index(dims: &[i64], mut position: usize) -> Vec<usize> {
    let mut index: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&dim| {
            let dim = usize::try_from(dim).unwrap_or(1).max(1);
            let along = position % dim;
            position /= dim;
            along
        })
        .collect();
    index.reverse();
    index
}

/// Checks that both buffers hold the tensor and agree in every byte that belongs to no element.
fn check_gaps(tensor: &Tensor, got: &[u8], want: &[u8]) -> Result<(), Mismatch> {
    let span = span_bytes(tensor)?;
    if got.len() != want.len() || got.len() < span {
        return Err(Mismatch::Length {
            tensor: tensor.to_string(),
            got: got.len(),
            want: want.len(),
            span,
        });
    }
    let codec = Codec::of(tensor.dtype);
    let mut is_element = vec![false; got.len()];
    for offset in Offsets::of(tensor)? {
        if let Some(bytes) = is_element.get_mut(codec.range(offset)) {
            bytes.fill(true);
        }
    }
    let changed = got
        .iter()
        .zip(want)
        .zip(&is_element)
        .enumerate()
        .find(|(_, ((got, want), is_element))| !**is_element && got != want);
    match changed {
        Some((offset, ((&after, &before), _))) => Err(Mismatch::Gap {
            tensor: tensor.to_string(),
            offset,
            before,
            after,
        }),
        None => Ok(()),
    }
}
