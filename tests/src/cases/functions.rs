//! Pointwise functions over all magnitudes: every mode of one argument and every gradient, at
//! small, steep, flat and special points.

use super::case::{Case, Data};
use super::pointwise;
use crate::harness::inputs::fill;
use crate::modes::is_gradient;
use anyhow::{Context as _, Result};
use rotini_graph::{DataType, PointwiseMode};

/// Iterates over the modes whose result depends on one number, and the gradients, whose result is a
/// multiple of such a function.
fn modes() -> impl Iterator<Item = PointwiseMode> {
    let is_of_one = |mode: &PointwiseMode| mode.arity() == 1 || is_gradient(*mode);
    // Except for the mode on truth values and the mode on positions.
    let is_of_numbers = |mode: &PointwiseMode| !matches!(mode, PointwiseMode::LogicalNot | PointwiseMode::GenIndex);
    let all = PointwiseMode::ALL.iter().copied();
    all.filter(is_of_one).filter(is_of_numbers)
}

/// Returns each mode in a type, on arguments of both signs from 1e-30 to 1e30, zeros, infinities,
/// NaN and the limits of the type.
pub(super) fn functions(dtype: DataType) -> Result<Vec<Data>> {
    let arguments = arguments(dtype);
    let extent = i64::try_from(arguments.len())?;
    modes()
        .map(|mode| {
            let graph = pointwise::packed(mode, &[dtype], dtype, dtype, &[extent]);
            let mut inputs = fill(&graph)?;
            let mut insert = |name: &str, elements: &[f64]| {
                let tensor = graph.tensors.iter().find(|tensor| tensor.name == name);
                let uid = tensor.with_context(|| format!("there is no tensor {name}"))?.uid;
                inputs.insert(uid, bytes(dtype, elements));
                Ok::<_, anyhow::Error>(())
            };
            if mode.arity() == 1 {
                insert("in_0", &arguments)?;
            } else {
                let slopes: Vec<f64> = [1.0, -1.5, 0.75].into_iter().cycle().take(arguments.len()).collect();
                insert("in_0", &slopes)?;
                insert("in_1", &arguments)?;
            }
            let name = format!("function_{}_{dtype}", mode.name());
            Ok(Data {
                case: Case { name, graph },
                inputs,
                has_meaning: true,
            })
        })
        .collect()
}

fn arguments(dtype: DataType) -> Vec<f64> {
    let (least, largest, steep) = if dtype == DataType::F64 {
        (f64::MIN_POSITIVE, f64::MAX, 760.0)
    } else {
        (f32::MIN_POSITIVE.into(), f32::MAX.into(), 110.0)
    };
    let mut magnitudes = vec![0.0, f64::INFINITY, least, largest, largest / 2.0];
    // Every magnitude: powers of ten with different digits.
    magnitudes.extend(
        (0_i32..480).map(|step| 10.0_f64.powf(f64::from(step) * 0.125 - 30.0) * (1.0 + f64::from(step % 7) / 9.0)),
    );
    // Curved regions, and the ends of exponentials' range.
    magnitudes.extend((1_i32..600).map(|step| f64::from(step) * 0.013_7));
    magnitudes.extend((1_i32..300).map(|step| f64::from(step) * steep / 299.0));
    // Near 1, where a logarithm vanishes; near multiples of a quarter turn.
    magnitudes.extend((1_i32..40).flat_map(|step| {
        let near = 0.5_f64.powi(step);
        [1.0 + near, 1.0 - near]
    }));
    magnitudes.extend((1_i32..200).map(|step| f64::from(step * step) * std::f64::consts::FRAC_PI_2));
    let mut arguments: Vec<f64> = magnitudes
        .iter()
        .flat_map(|&magnitude| [magnitude, -magnitude])
        .collect();
    arguments.push(f64::NAN);
    arguments
}

fn bytes(dtype: DataType, elements: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &element in elements {
        if dtype == DataType::F64 {
            bytes.extend(element.to_le_bytes());
        } else {
            bytes.extend((element as f32).to_le_bytes());
        }
    }
    bytes
}
