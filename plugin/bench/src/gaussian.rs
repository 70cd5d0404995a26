//! Normally distributed inputs, for executions that are timed and not judged: with all bits of the
//! significands in use, a GPU draws the power that it does in a network.

use crate::inputs;
use half::{bf16, f16};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rotini_graph::{DataType, Graph, Tensor, TensorId, TensorKind};
use rotini_reference::{Buffers, Profile, ReferenceError, profile, span_bytes};
use std::collections::HashSet;
use std::f64::consts::TAU;

/// Returns bytes for every buffer of a graph. Inputs of `f8e4m3fnuz` and of floats with at least 16
/// bits are normally distributed with a variance of 1, gaps included. The reference fills inputs
/// that must be positive, and the other buffers.
///
/// # Errors
///
/// Those of [`rotini_reference::fill`].
pub(crate) fn fill(graph: &Graph, seed: u64) -> Result<Buffers, ReferenceError> {
    let mut written = HashSet::new();
    for node in &graph.nodes {
        node.op.for_each_output(&mut |_, id| {
            written.insert(id);
        });
    }
    let one = |(id, tensor): (TensorId, &Tensor)| {
        let is_free = tensor.kind == TensorKind::Buffer && profile(graph, id) != Profile::Positive;
        let drawn = if is_free && !written.contains(&id) {
            let mut source = ChaCha8Rng::seed_from_u64(seed);
            source.set_stream(id.0.into());
            normal(tensor, &mut source)?
        } else {
            None
        };
        let bytes = match drawn {
            Some(bytes) => bytes,
            None => rotini_reference::fill(graph, id, seed)?,
        };
        Ok((tensor.uid, bytes))
    };
    inputs::bound(graph).map(one).collect()
}

/// Returns normally distributed elements; `None` for integers and other types of fewer than 16
/// bits.
fn normal(tensor: &Tensor, source: &mut ChaCha8Rng) -> Result<Option<Vec<u8>>, ReferenceError> {
    let mut bytes = vec![0; span_bytes(tensor)?];
    match tensor.dtype {
        DataType::F16 => draw(&mut bytes, source, |number| f16::from_f64(number).to_le_bytes()),
        DataType::Bf16 => draw(&mut bytes, source, |number| bf16::from_f64(number).to_le_bytes()),
        DataType::F32 => draw(&mut bytes, source, |number| (number as f32).to_le_bytes()),
        DataType::F64 => draw(&mut bytes, source, f64::to_le_bytes),
        DataType::F8E4M3Fnuz => draw(&mut bytes, source, |number| [e4m3fnuz(number)]),
        _ => return Ok(None),
    }
    Ok(Some(bytes))
}

/// Rounds to FP8 with four bits of exponent (bias 8) and three of significand. 0x80 is NaN, so
/// there is no negative zero; numbers above the largest become it.
fn e4m3fnuz(number: f64) -> u8 {
    let magnitude = number.abs();
    // The exponent of the number, or that of subnormal ones.
    let exponent = magnitude.log2().floor().max(-7.0);
    let eighths = (magnitude / exponent.exp2() * 8.0).round();
    // A significand of 16 eighths carries into the exponent.
    let code = ((exponent + 7.0) * 8.0 + eighths).min(127.0) as u8;
    if number < 0.0 && code > 0 { code | 0x80 } else { code }
}

/// Draws elements from a table of normally distributed ones: a logarithm for each of millions of
/// elements would take longer than the executions.
fn draw<const BYTES: usize>(bytes: &mut [u8], source: &mut ChaCha8Rng, encode: impl Fn(f64) -> [u8; BYTES]) {
    /// Elements to draw from: a power of two of at most 16 bits.
    const ELEMENTS: usize = 1 << 16;
    let mut uniform = || (f64::from(source.next_u32()) + 0.5) / 2.0_f64.powi(32);
    // Box and Muller.
    let pair = |_| {
        let (length, angle) = ((-2.0 * uniform().ln()).sqrt(), TAU * uniform());
        [length * angle.cos(), length * angle.sin()]
    };
    let elements: Vec<[u8; BYTES]> = (0..ELEMENTS / 2).flat_map(pair).map(encode).collect();
    for two in bytes.chunks_mut(2 * BYTES) {
        let drawn = source.next_u32() as usize;
        for (to, index) in two.chunks_exact_mut(BYTES).zip([drawn, drawn >> 16]) {
            if let Some(element) = elements.get(index % ELEMENTS) {
                to.copy_from_slice(element);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_graph::{GraphBuilder, Matmul};

    #[test]
    fn numbers_become_the_nearest_of_eight_bits() {
        let decoded = |code: u8| {
            let [exponent, significand] = [code >> 3, code & 7].map(i32::from);
            let whole = if exponent > 0 { 8 } else { 0 };
            f64::from(whole + significand) * 2.0_f64.powi(exponent.max(1) - 11)
        };
        assert_eq!([decoded(127), decoded(1)], [240.0, 2.0_f64.powi(-10)]);
        for code in 0..=127 {
            assert_eq!(e4m3fnuz(decoded(code)), code);
            assert_eq!(e4m3fnuz(-decoded(code)), if code > 0 { code | 0x80 } else { 0 });
        }
        for code in 0..127 {
            let near = |share: f64| e4m3fnuz(decoded(code) + share * (decoded(code + 1) - decoded(code)));
            assert_eq!([near(0.49), near(0.51)], [code, code + 1]);
        }
        assert_eq!([e4m3fnuz(1e9), e4m3fnuz(1e-9), e4m3fnuz(-1e-9)], [127, 0, 0]);
    }

    #[test]
    fn inputs_are_normally_distributed_and_have_all_bits() {
        let mut builder = GraphBuilder::new("");
        let [a, b, c] = ["a", "b", "c"].map(|name| builder.buffer(name, DataType::F16, &[1, 200, 200]));
        builder.node("matmul", DataType::F32, Matmul { a, b, c });
        let mut graph = builder.build();
        graph.validate().unwrap();
        let bytes = |all: &Buffers, id: TensorId| all[&graph.tensor(id).unwrap().uid].clone();
        let [judged, all] = [rotini_reference::fill_all(&graph, 3).unwrap(), fill(&graph, 3).unwrap()];
        for id in [a, b] {
            let bytes = bytes(&all, id);
            let elements = bytes.chunks_exact(2).map(|two| [two[0], two[1]]);
            let values: Vec<f64> = elements.map(|two| f16::from_le_bytes(two).into()).collect();
            let count = values.len() as f64;
            let moment = |power: i32| values.iter().map(|value| value.powi(power)).sum::<f64>() / count;
            assert!(moment(1).abs() < 0.03, "mean {}", moment(1));
            assert!((moment(2) - 1.0).abs() < 0.04, "variance {}", moment(2));
            assert!((moment(4) - 3.0).abs() < 0.3, "fourth moment {}", moment(4));
            // The last bit is set as often as not; inputs that are judged have zeros there.
            let odd = bytes.chunks_exact(2).filter(|two| two[0] & 1 == 1).count() as f64;
            assert!((odd / count - 0.5).abs() < 0.05, "{odd} of {count}");
        }
        assert_ne!(bytes(&all, a), bytes(&all, b));
        assert_ne!(bytes(&all, b), bytes(&judged, b));
        // What is written stays as the reference leaves it.
        assert_eq!(bytes(&all, c), bytes(&judged, c));
    }
}
