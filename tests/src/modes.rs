//! What the reference says of a pointwise operation by itself: which modes integers have, which
//! elements an operand needs, and an estimate of the range of the results. So a new mode needs no
//! entry in the lists of cases or in the random graphs.

use crate::range::Range;
use rotini_graph::{DataType, Graph, GraphBuilder, Pointwise, PointwiseMode, TensorId};
use rotini_reference::{Buffers, Profile, execute, profile};
use std::sync::LazyLock;

/// Numbers of equidistant samples along each operand's range, by the number of operands.
const SAMPLES: [usize; 3] = [128, 17, 5];
/// Magnitudes near zero that are samples too: functions bend there, and quotients are largest.
const NEAR: [f64; 9] = [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 3.0];
/// Distance between the two arguments that tell whether a function of one operand is steep.
const STEP: f64 = 1.0 / 128.0;
/// Largest difference of the results of two such arguments: errors of the operand grow by this over
/// [`STEP`] at most.
const STEEP: f64 = 1.0;
/// Lower bound of arguments that have to be positive: logarithms, roots and divisors are steep near
/// zero.
const LEAST: f64 = 0.1;

/// Returns true for the gradients, which take (dy, x).
pub(crate) fn is_gradient(mode: PointwiseMode) -> bool {
    mode.name().ends_with("_BWD")
}

/// Returns the modes that are defined for integers, in the order of the wire format.
pub(crate) fn integer_modes() -> &'static [PointwiseMode] {
    static MODES: LazyLock<Vec<PointwiseMode>> = LazyLock::new(|| {
        let mut modes = PointwiseMode::ALL.to_vec();
        modes.retain(|&mode| {
            Alone::new(&operation(mode), DataType::I64, 1)
                .results(&[[1.0].as_slice(); 3])
                .is_some()
        });
        modes
    });
    &MODES
}

/// Returns an operation of this mode, whose operands and result [`Alone`] provides.
pub(crate) fn operation(mode: PointwiseMode) -> Pointwise {
    let operand = |index: usize| (index < mode.arity()).then_some(TensorId(0));
    let mut op = Pointwise::new(mode, TensorId(0), operand(1), operand(2), TensorId(0));
    op.axis = (mode == PointwiseMode::GenIndex).then_some(0);
    op
}

/// Returns the profiles of elements that the operands need.
pub(crate) fn roles(mode: PointwiseMode) -> Vec<Profile> {
    let Alone { graph, operands, .. } = Alone::new(&operation(mode), DataType::F64, 1);
    operands.iter().map(|&id| profile(&graph, id)).collect()
}

/// Returns true if elements of this range may be an operand that needs this profile.
pub(crate) fn is_far_from_zero(range: Range, role: Profile) -> bool {
    role != Profile::Positive || range.low >= LEAST
}

/// Estimates the range of an operation's results for operands of these ranges, by samples and a
/// margin; `None` if a result is not finite, or if the function of one operand is steep. The
/// operation is computed in `dtype`: F64, or I64 with integers as samples.
pub(crate) fn result_range(op: &Pointwise, operands: &[Range], dtype: DataType) -> Option<Range> {
    let count = SAMPLES[operands.len() - 1];
    let ends = operands.iter().flat_map(|range| [range.low, range.high]);
    let near: Vec<f64> = ends.chain(NEAR).chain(NEAR.map(|x| -x)).collect();
    let axis = |range: &Range| -> Vec<f64> {
        let step = (range.high - range.low) / (count - 1) as f64;
        let even = (0..count).map(|index| range.low + step * index as f64);
        let near = near.iter().copied().filter(|x| (range.low..=range.high).contains(x));
        even.chain(near).collect()
    };
    // All combinations, the last operand fastest.
    let axes: Vec<Vec<f64>> = operands.iter().map(axis).collect();
    let total = axes.iter().map(Vec::len).product();
    let mut inner = total;
    let samples: Vec<Vec<f64>> = axes
        .iter()
        .map(|axis| {
            inner /= axis.len();
            (0..total).map(|index| axis[index / inner % axis.len()]).collect()
        })
        .collect();
    let alone = Alone::new(op, dtype, total);
    let results = alone.results(&samples)?;
    if let ([only], [range], DataType::F64) = (&samples[..], operands, dtype) {
        let next = |x: &f64| if x + STEP > range.high { x - STEP } else { x + STEP };
        let moved: Vec<f64> = only.iter().map(|x| next(x).max(range.low)).collect();
        let moved = alone.results(&[moved])?;
        let mut pairs = results.iter().zip(moved);
        if pairs.any(|(result, moved)| (result - moved).abs() > STEEP) {
            return None;
        }
    }
    let least = results.iter().copied().fold(f64::INFINITY, f64::min);
    let most = results.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // An extreme may lie between two samples, and two truths may be equal in all of them.
    let margin = (most - least) / count as f64;
    let range = Range::new(least - margin, most + margin);
    let has_truths = roles(op.mode)
        .iter()
        .any(|role| matches!(role, Profile::SmallIntegers | Profile::Booleans));
    Some(if has_truths {
        range.hull(Range::new(0.0, 1.0))
    } else {
        range
    })
}

/// A graph of one pointwise node over vectors.
struct Alone {
    graph: Graph,
    operands: Vec<TensorId>,
    result: TensorId,
    dtype: DataType,
}

impl Alone {
    fn new(op: &Pointwise, dtype: DataType, length: usize) -> Self {
        let dims = [length as i64];
        let mut builder = GraphBuilder::new(op.mode.name());
        let operands: Vec<TensorId> = (0..op.mode.arity())
            .map(|_| builder.buffer("in", dtype, &dims))
            .collect();
        let result = builder.buffer("out", dtype, &dims);
        let mut op = op.clone();
        op.in_0 = operands[0];
        op.in_1 = operands.get(1).copied();
        op.in_2 = operands.get(2).copied();
        op.out_0 = result;
        builder.node(op.mode.name(), dtype, op);
        let graph = builder.build();
        Alone {
            graph,
            operands,
            result,
            dtype,
        }
    }

    /// Returns the reference's results, one for each element of the operands; `None` if it has
    /// none, or if one is not finite.
    fn results(&self, operands: &[impl AsRef<[f64]>]) -> Option<Vec<f64>> {
        let uid = |id: TensorId| self.graph.tensor(id).map(|tensor| tensor.uid);
        let bytes = |x: &f64| match self.dtype {
            DataType::F64 => x.to_le_bytes(),
            _ => (*x as i64).to_le_bytes(),
        };
        let number = |bytes: &[u8; 8]| match self.dtype {
            DataType::F64 => f64::from_le_bytes(*bytes),
            _ => i64::from_le_bytes(*bytes) as f64,
        };
        let mut buffers = Buffers::new();
        for (&id, elements) in self.operands.iter().zip(operands) {
            buffers.insert(uid(id)?, elements.as_ref().iter().flat_map(bytes).collect());
        }
        let size = size_of_val(operands[0].as_ref());
        buffers.insert(uid(self.result)?, vec![0; size]);
        execute(&self.graph, &mut buffers).ok()?;
        let results = buffers.remove(&uid(self.result)?)?;
        let results: Vec<f64> = results.as_chunks().0.iter().map(number).collect();
        results.iter().all(|result| result.is_finite()).then_some(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_emit::{Target, check};

    #[test]
    fn the_lowering_takes_the_modes_that_the_reference_has_in_integers() {
        for &mode in PointwiseMode::ALL {
            let mut graph = Alone::new(&operation(mode), DataType::I32, 8).graph;
            graph.validate().unwrap();
            let is_taken = check(&graph.normalise().0, &Target::Cpu).is_ok();
            assert_eq!(is_taken, integer_modes().contains(&mode), "{}", mode.name());
        }
    }

    #[test]
    fn ranges_hold_and_steep_functions_have_none() {
        let range = |mode, low, high| result_range(&operation(mode), &[Range::new(low, high)], DataType::F64);
        let sin = range(PointwiseMode::Sin, -4.0, 4.0).unwrap();
        assert!(sin.low <= -1.0 && sin.high >= 1.0 && sin.magnitude() < 1.1, "{sin:?}");
        let abs = range(PointwiseMode::Abs, -3.0, 2.0).unwrap();
        assert!(abs.low <= 0.0 && abs.high >= 3.0, "{abs:?}");
        for (mode, low, high) in [
            (PointwiseMode::Tan, -4096.0, 4096.0),
            (PointwiseMode::Log, -1.0, 1.0),
            (PointwiseMode::Exp, 0.0, 8.0),
            (PointwiseMode::Exp, -4096.0, 8.0),
            (PointwiseMode::Reciprocal, -0.01, 0.01),
        ] {
            assert_eq!(range(mode, low, high), None, "{} from {low} to {high}", mode.name());
        }
        let around = Range::around;
        for (mode, operands, dtype, least, most) in [
            (
                PointwiseMode::Mul,
                [around(3.0), Range::new(-5.0, 2.0)],
                DataType::I64,
                -15.0,
                15.0,
            ),
            (PointwiseMode::Div, [around(4096.0); 2], DataType::I64, -4096.0, 4096.0),
            (
                PointwiseMode::CmpEq,
                [around(3.0), Range::new(2.0, 2.0)],
                DataType::F64,
                0.0,
                1.0,
            ),
            (
                PointwiseMode::ReluBwd,
                [around(1.0), around(512.0)],
                DataType::F64,
                -1.0,
                1.0,
            ),
            (
                PointwiseMode::GeluBwd,
                [around(1.0), around(512.0)],
                DataType::F64,
                -1.12,
                1.12,
            ),
        ] {
            let range = result_range(&operation(mode), &operands, dtype).unwrap();
            assert!(range.low <= least && range.high >= most, "{}: {range:?}", mode.name());
        }
    }
}
