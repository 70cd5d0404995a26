//! Seeded bytes for the buffers of a graph.

use crate::ReferenceError;
use crate::element::{Codec, Number};
use crate::hidden::hide;
use crate::narrow::Format;
use crate::tensors::{Buffers, inputs_and_outputs, span_bytes, tensor_of};
use crate::walk::Offsets;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rotini_graph::{DataType, Graph, MoeMode, Op, Pointwise, PointwiseMode, ReductionMode, TensorId, TensorKind};

/// The byte that fills everything except inputs' elements: gaps, and outputs before they are
/// written. As a float of any type it decodes to NaN, which spreads if it is read.
pub const UNTOUCHED: u8 = 0xFF;

/// The values that a tensor is filled with, ordered by how much the consumer requires of them.
///
/// Floats are multiples of a power of two with few enough bits that sums of products are exact in
/// binary32: a kernel's result does not depend on its order of summation, and lost bits of an
/// operand show in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Uniform from -1 to 1 in steps of 2^-20 (f64), 2^-12 (f32), 2^-8 (f16) or 2^-7 (bf16); 8-bit
    /// integers over their range, wider ones from -4096 to 4096.
    Normal,
    /// From -1 to 1 in steps of 1/4, so that a product has only two bits more than the other
    /// factor. Integers as in `Normal`.
    Weights,
    /// Integers from -3 to 3 (u8: 0 to 6), so that elements are often equal.
    SmallIntegers,
    /// 0 and 1. In any profile, the bytes of boolean tensors are 0 and various nonzero values.
    Booleans,
    /// From 0.5 to 2 in the steps of `Normal`; integers from 1 to 8 (i4: to 7). For divisors, roots
    /// and logarithms.
    Positive,
    /// For conversions. Types of up to eight bits: any bit pattern. Wider floats: significands of
    /// few bits with exponents beyond the range of the narrow types, so that ties are frequent, and
    /// sometimes a value of `Edge`.
    Patterns,
    /// Half of the elements are NaN, infinities, zeros of both signs, denormals and the ends of the
    /// range (integers: ends and zero), the others as in `Normal`. Never chosen by [`profile`].
    Edge,
    /// One element in 24 as in `Edge`, so that some sums contain no special value and others
    /// contain one; but never the largest number, because whether sums with it overflow depends on
    /// their order. Never chosen by [`profile`].
    FewEdges,
}

/// Returns the profile that the consumers of a tensor require.
#[must_use]
pub fn profile(graph: &Graph, id: TensorId) -> Profile {
    let is_narrow = |id: TensorId| {
        let storage = graph.tensor(id).filter(|tensor| tensor.kind == TensorKind::Buffer);
        storage.is_some_and(|tensor| Codec::of_compute(tensor.dtype).is_none())
    };
    let is_truth = |id: TensorId| graph.tensor(id).is_some_and(|tensor| tensor.dtype == DataType::Bool);
    let is_alone = graph.nodes.len() == 1;
    let asked = |op: &Op| match op {
        Op::ConvFprop(conv) if conv.w == id => Profile::Weights,
        Op::ConvDgrad(conv) if conv.w == id => Profile::Weights,
        Op::ConvWgrad(conv) if conv.dy == id => Profile::Weights,
        Op::Matmul(matmul) if matmul.b == id => Profile::Weights,
        Op::MoeGroupedMatmul(matmul) if matmul.weight == id => Profile::Weights,
        Op::MoeGroupedMatmulBwd(matmul) if matmul.doutput == id => Profile::Weights,
        // The scales are exponents.
        Op::BlockScaleDequantize(blocks) if blocks.scale == id && blocks.is_negative_scale => Profile::SmallIntegers,
        // The graph is a single conversion: no other operation restricts the values, so every
        // number is allowed.
        Op::BlockScaleQuantize(blocks) if is_alone && blocks.x == id => Profile::Patterns,
        // The result is boolean, so zeros have to be among the operands.
        Op::Pointwise(op) if is_alone && is_truth(op.out_0) => pointwise_profile(op, id).max(Profile::SmallIntegers),
        Op::Pointwise(op)
            if is_alone && op.mode == PointwiseMode::Identity && (is_narrow(id) || is_narrow(op.out_0)) =>
        {
            Profile::Patterns
        }
        Op::Reduction(reduction) if reduction.input == id => match reduction.mode {
            ReductionMode::Mul => Profile::Positive,
            ReductionMode::MulNoZeros => Profile::SmallIntegers,
            _ => Profile::Normal,
        },
        // Positions; negative ones stand for the padding.
        Op::ResampleBwd(pooling) if pooling.index == Some(id) => Profile::SmallIntegers,
        // Quantities that are positive by definition: (inverse) variances, counts.
        Op::BatchnormInference(norm) if norm.inv_variance == id => Profile::Positive,
        Op::BatchnormInferenceVariance(norm) if norm.variance == id => Profile::Positive,
        Op::Batchnorm(norm) if norm.prev_running_variance == Some(id) => Profile::Positive,
        Op::BatchnormBackward(norm) if norm.inv_variance == Some(id) => Profile::Positive,
        Op::LayernormBackward(norm) if norm.inv_variance == Some(id) => Profile::Positive,
        Op::RmsNormBackward(norm) if norm.inv_rms == id => Profile::Positive,
        Op::Sdpa(sdpa) if [sdpa.seq_len_q, sdpa.seq_len_kv].contains(&Some(id)) => Profile::Positive,
        Op::SdpaBackward(sdpa) if [sdpa.seq_len_q, sdpa.seq_len_kv].contains(&Some(id)) => Profile::Positive,
        Op::Pointwise(pointwise) => pointwise_profile(pointwise, id),
        _ => Profile::Normal,
    };
    graph
        .nodes
        .iter()
        .map(|node| asked(&node.op))
        .max()
        .unwrap_or(Profile::Normal)
}

fn pointwise_profile(op: &Pointwise, id: TensorId) -> Profile {
    use PointwiseMode as Mode;
    let (first, second, third) = (op.in_0 == id, op.in_1 == Some(id), op.in_2 == Some(id));
    match op.mode {
        Mode::Log | Mode::Reciprocal | Mode::Rsqrt | Mode::Sqrt if first => Profile::Positive,
        Mode::Div if second => Profile::Positive,
        Mode::BinarySelect if third => Profile::Booleans,
        Mode::LogicalAnd | Mode::LogicalNot | Mode::LogicalOr if first || second => Profile::Booleans,
        Mode::CmpEq | Mode::CmpGe | Mode::CmpGt | Mode::CmpLe | Mode::CmpLt | Mode::CmpNeq if first || second => {
            Profile::SmallIntegers
        }
        _ => Profile::Normal,
    }
}

/// Returns the initial bytes of one tensor's buffer: elements by the [`profile`] of its consumers
/// and gaps of [`UNTOUCHED`], or only [`UNTOUCHED`] if a node writes the tensor. The bytes depend
/// only on the graph, the seed and the tensor's position, and are the same on every machine.
///
/// # Errors
///
/// If a span overflows.
pub fn fill(graph: &Graph, id: TensorId, seed: u64) -> Result<Vec<u8>, ReferenceError> {
    let (_, written) = inputs_and_outputs(graph);
    if written.contains(&id) {
        return Ok(vec![UNTOUCHED; span_bytes(tensor_of(graph, id)?)?]);
    }
    if let Some(rows) = routing(graph, id) {
        return fill_numbers(graph, id, rows.into_iter().map(Number::Integer));
    }
    if let Some(longest) = longest(graph, id) {
        let mut source = Source::of(seed, id);
        let lengths = std::iter::repeat_with(|| Number::Integer(source.between(1, longest).into()));
        return fill_numbers(graph, id, lengths);
    }
    fill_with(graph, id, seed, profile(graph, id))
}

/// Returns the maximum of a tensor of sequence lengths of an attention: the extent of the queries
/// or keys. `None` for any other tensor.
fn longest(graph: &Graph, id: TensorId) -> Option<i32> {
    const SEQUENCE: usize = 2;
    let of = |q, k, lengths: [Option<TensorId>; 2]| {
        let tensor = match lengths.map(|length| length == Some(id)) {
            [true, false] => q,
            [false, true] => k,
            _ => return None,
        };
        let dims = &graph.tensor(tensor)?.dims;
        i32::try_from(*dims.get(SEQUENCE)?).ok()
    };
    graph.nodes.iter().find_map(|node| match &node.op {
        Op::Sdpa(op) => of(op.q, op.k, [op.seq_len_q, op.seq_len_kv]),
        Op::SdpaBackward(op) => of(op.q, op.k, [op.seq_len_q, op.seq_len_kv]),
        _ => None,
    })
}

/// Returns the elements of a tensor that routes rows of a grouped matmul; `None` for any other
/// tensor. The routing tensors of one node have to be consistent, so they are not random.
///
/// Offsets leave the second group empty, gathered rows step through the tokens by 3, and scattered
/// rows go to a permutation of the rows: the reverse order.
fn routing(graph: &Graph, id: TensorId) -> Option<Vec<i64>> {
    let extent = |id: TensorId, axis: usize| graph.tensor(id)?.dims.get(axis).copied();
    let offsets = |groups: i64, rows: i64| {
        // The second group ends where it begins.
        let start = |group: i64| rows * if group == 2 { 1 } else { group } / groups;
        (0..groups).map(start).collect()
    };
    graph.nodes.iter().find_map(|node| match &node.op {
        Op::MoeGroupedMatmul(op) => {
            let (tokens, rows) = (extent(op.token, 1)?, extent(op.output, 1)?);
            let top_k = i64::from(op.top_k).max(1);
            let destination = |row: i64| (rows - 1 - row, top_k);
            if id == op.first_token_offset {
                Some(offsets(extent(id, 0)?, rows))
            } else if Some(id) == op.token_index && op.mode == MoeMode::Gather {
                Some((0..rows).map(|row| row * 3 % tokens).collect())
            } else if Some(id) == op.token_index {
                Some((0..rows).map(destination).map(|(row, top_k)| row / top_k).collect())
            } else if Some(id) == op.token_ks {
                Some((0..rows).map(destination).map(|(row, top_k)| row % top_k).collect())
            } else {
                None
            }
        }
        Op::MoeGroupedMatmulBwd(op) if op.first_token_offset == id => {
            Some(offsets(extent(id, 0)?, extent(op.token, 1)?))
        }
        _ => None,
    })
}

/// Returns the initial bytes of one input's buffer with a chosen profile.
///
/// # Errors
///
/// The errors of [`fill`].
pub fn fill_with(graph: &Graph, id: TensorId, seed: u64, profile: Profile) -> Result<Vec<u8>, ReferenceError> {
    let codec = Codec::of(tensor_of(graph, id)?.dtype);
    let mut source = Source::of(seed, id);
    fill_numbers(graph, id, std::iter::repeat_with(|| source.number(profile, codec)))
}

/// Returns the bytes of one tensor's buffer from its elements in logical row-major order.
fn fill_numbers(graph: &Graph, id: TensorId, numbers: impl Iterator<Item = Number>) -> Result<Vec<u8>, ReferenceError> {
    let tensor = tensor_of(graph, id)?;
    // Boolean elements are given as bytes and stored unchanged.
    let codec = Codec::of(tensor.dtype).of_byte();
    let mut bytes = vec![UNTOUCHED; span_bytes(tensor)?];
    let offsets = match tensor.kind {
        TensorKind::RuntimeScalar => Offsets::new(&[1], &[1]),
        _ => Offsets::of(tensor)?,
    };
    for (offset, number) in offsets.zip(numbers) {
        codec.store_at(number, &mut bytes, offset);
    }
    Ok(bytes)
}

/// Returns the initial bytes of every buffer and runtime scalar of a graph, by uid. Elements that
/// lengths and bounds hide from every query of an attention are NaN or infinite.
///
/// # Errors
///
/// The errors of [`fill`].
pub fn fill_all(graph: &Graph, seed: u64) -> Result<Buffers, ReferenceError> {
    fill_around(graph, seed, Buffers::new())
}

/// Fills as [`fill_all`] does, but keeps the `given` buffers, such as those of lengths, which
/// determine what is hidden in the others.
///
/// # Errors
///
/// The errors of [`fill`].
pub fn fill_around(graph: &Graph, seed: u64, given: Buffers) -> Result<Buffers, ReferenceError> {
    let mut buffers = fill_each(graph, seed)?;
    buffers.extend(given);
    hide(graph, &mut buffers)?;
    Ok(buffers)
}

fn fill_each(graph: &Graph, seed: u64) -> Result<Buffers, ReferenceError> {
    (0_u32..)
        .map(TensorId)
        .zip(&graph.tensors)
        .filter(|(_, tensor)| matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar))
        .map(|(id, tensor)| Ok((tensor.uid, fill(graph, id, seed)?)))
        .collect()
}

/// Fills as [`fill_all`] does, but with the profile `chosen` for every input whose values are free:
/// all except routing, lengths, positions, quantities that are positive by definition, and weights.
///
/// Weights stay finite because of padding: hipDNN's loops skip it, kernels multiply weights by the
/// padding's zeros, and zero times infinity is NaN.
///
/// # Errors
///
/// The errors of [`fill`].
pub fn fill_all_with(graph: &Graph, seed: u64, chosen: Profile) -> Result<Buffers, ReferenceError> {
    let mut buffers = fill_each(graph, seed)?;
    let (inputs, _) = inputs_and_outputs(graph);
    for (id, tensor) in (0_u32..).map(TensorId).zip(&graph.tensors) {
        let asked = profile(graph, id);
        let is_free = ![Profile::Weights, Profile::Positive].contains(&asked)
            && (tensor.dtype.is_float() || asked == Profile::Normal);
        if inputs.contains(&id) && tensor.kind == TensorKind::Buffer && is_free && routing(graph, id).is_none() {
            buffers.insert(tensor.uid, fill_with(graph, id, seed, chosen)?);
        }
    }
    hide(graph, &mut buffers)?;
    Ok(buffers)
}

/// A generator of random numbers of a profile.
struct Source(ChaCha8Rng);

impl Source {
    /// Returns the generator for a tensor.
    fn of(seed: u64, id: TensorId) -> Self {
        let mut source = Source(ChaCha8Rng::seed_from_u64(seed));
        source.0.set_stream(id.0.into());
        source
    }

    /// Returns a uniform random integer from `least` to `most`, both included.
    fn between(&mut self, least: i32, most: i32) -> i32 {
        let count = u64::from(most.abs_diff(least)) + 1;
        let drawn = (u64::from(self.0.next_u32()) * count) >> 32;
        least.saturating_add(i32::try_from(drawn).unwrap_or_default())
    }

    fn number(&mut self, profile: Profile, codec: Codec) -> Number {
        if codec == Codec::Bool {
            return Number::Integer(self.truth().into());
        }
        let Some(steps) = steps(codec) else {
            return Number::Integer(self.integer(profile, codec).into());
        };
        if profile == Profile::Patterns {
            return self.pattern(codec);
        }
        if codec == Codec::Narrow(Format::E8M0) {
            return Number::Float(2.0_f64.powi(self.between(-2, 2)));
        }
        let fraction = |count: i32, steps: i32| Number::Float(f64::from(count) / f64::from(steps));
        match profile {
            Profile::Normal => fraction(self.between(-steps, steps), steps),
            Profile::Weights => fraction(self.between(-4, 4), 4),
            Profile::SmallIntegers => fraction(self.between(-3, 3), 1),
            Profile::Booleans => fraction(self.between(0, 1), 1),
            Profile::Positive => fraction(self.between(steps / 2, steps * 2), steps),
            Profile::FewEdges if self.between(0, 23) > 0 => self.number(Profile::Normal, codec),
            Profile::Edge | Profile::Patterns if self.between(0, 1) == 0 => self.number(Profile::Normal, codec),
            Profile::Edge | Profile::Patterns => self.edge(&edges(codec)),
            Profile::FewEdges => {
                let mut few = edges(codec);
                few.retain(|edge| !edge.is_finite() || edge.abs() <= 1.0);
                self.edge(&few)
            }
        }
    }

    /// Returns the byte of a random truth value: half of the bytes are 0, and some of the others
    /// are neither 0 nor 1, which is also true.
    fn truth(&mut self) -> i32 {
        match self.between(0, 15) {
            0..=7 => 0,
            13 => 2,
            14 => 0x80,
            15 => 0xFF,
            _ => 1,
        }
    }

    fn edge(&mut self, edges: &[f64]) -> Number {
        let last = i32::try_from(edges.len()).unwrap_or(1) - 1;
        let drawn = usize::try_from(self.between(0, last)).unwrap_or_default();
        Number::Float(edges.get(drawn).copied().unwrap_or_default())
    }

    fn pattern(&mut self, codec: Codec) -> Number {
        if let Codec::Narrow(format) = codec {
            let code = self.between(0, (1 << format.bits()) - 1);
            return Number::Float(format.value(u8::try_from(code).unwrap_or_default()));
        }
        if self.between(0, 63) == 0 {
            return self.edge(&edges(codec));
        }
        Number::Float(f64::from(self.between(-31, 31)) * 2.0_f64.powi(self.between(-20, 14)))
    }

    fn integer(&mut self, profile: Profile, codec: Codec) -> i32 {
        let (least, most) = match codec {
            Codec::I8 => (i8::MIN.into(), i8::MAX.into()),
            Codec::U8 => (0, u8::MAX.into()),
            Codec::I4 => (-8, 7),
            _ => (-4096, 4096),
        };
        match profile {
            Profile::Normal | Profile::Weights | Profile::Patterns => self.between(least, most),
            Profile::SmallIntegers if codec == Codec::U8 => self.between(0, 6),
            Profile::SmallIntegers => self.between(-3, 3),
            Profile::Booleans => self.between(0, 1),
            Profile::Positive if codec == Codec::I4 => self.between(1, 7),
            Profile::Positive => self.between(1, 8),
            Profile::FewEdges if self.between(0, 23) > 0 => self.between(least, most),
            Profile::Edge | Profile::FewEdges => match (self.between(0, 7), codec) {
                (0, _) => 0,
                (1, Codec::I32 | Codec::I64) => i32::MIN,
                (2, Codec::I32 | Codec::I64) => i32::MAX,
                (1, _) => least,
                (2, _) => most,
                _ => self.between(least, most),
            },
        }
    }
}

/// Returns the number of steps between 0 and 1 of a fill with a float type; `None` for integers.
fn steps(codec: Codec) -> Option<i32> {
    match codec {
        Codec::F64 => Some(1 << 20),
        Codec::F32 => Some(1 << 12),
        Codec::F16 => Some(1 << 8),
        Codec::Bf16 => Some(1 << 7),
        // The spacing of the codes between 1 and 2, so that all multiples up to 2 are
        // representable.
        Codec::Narrow(format) => Some(1 << (format.precision() - 1)),
        Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 | Codec::I4 | Codec::Bool => None,
    }
}

/// Returns the values of a float type for which implementations tend to differ.
fn edges(codec: Codec) -> Vec<f64> {
    if let Codec::Narrow(format) = codec {
        return vec![format.value(0), format.value(1), format.largest(), f64::NAN];
    }
    // The smallest and largest denormal, the smallest normal and the largest number.
    let (denormal, last_denormal, normal, largest) = match codec {
        Codec::F64 => (
            f64::from_bits(1),
            f64::MIN_POSITIVE.next_down(),
            f64::MIN_POSITIVE,
            f64::MAX,
        ),
        Codec::F16 => {
            let (denormal, normal) = (2.0_f64.powi(-24), 2.0_f64.powi(-14));
            (denormal, normal - denormal, normal, 65504.0)
        }
        Codec::Bf16 => {
            let (denormal, normal) = (2.0_f64.powi(-133), 2.0_f64.powi(-126));
            (
                denormal,
                normal - denormal,
                normal,
                2.0_f64.powi(128) - 2.0_f64.powi(120),
            )
        }
        _ => (
            f32::from_bits(1).into(),
            f32::MIN_POSITIVE.next_down().into(),
            f32::MIN_POSITIVE.into(),
            f32::MAX.into(),
        ),
    };
    let magnitudes = [0.0, denormal, last_denormal, normal, 0.5, 1.0, largest, f64::INFINITY];
    let mut edges: Vec<f64> = magnitudes.into_iter().flat_map(|value| [value, -value]).collect();
    edges.push(f64::NAN);
    edges
}
