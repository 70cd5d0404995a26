//! The graphs of `rotini demo`, built in code.

use anyhow::{Context as _, Result};
use rotini_graph::{DataType, PointwiseMode};
use rotini_workloads::blocks::{Convolution, Direction, Epilogue, Layout};

/// Returns the name and the serialized graph of each sample.
///
/// # Errors
///
/// Fails if a sample is inconsistent.
pub(crate) fn samples() -> Result<Vec<(String, Vec<u8>)>> {
    use DataType::{Bf16, F16, F32};
    use Layout::{First, Last};
    const RELU: Epilogue = Epilogue::Activation(PointwiseMode::ReluFwd);
    const ADD_GELU: Epilogue = Epilogue::Residual(PointwiseMode::GeluFwd);
    // 32 channels of 28x28 to 64 channels of the same size.
    let plain = |layout, dtype| Convolution::square(1, 32, 64, 28, 3, 1, layout, dtype);
    let mut samples = Vec::new();
    for dtype in [F32, F16, Bf16] {
        for (name, layout) in [("nchw", First), ("nhwc", Last)] {
            let name = format!("conv_bias_relu_{name}_{dtype}");
            samples.push((name, plain(layout, dtype), RELU));
        }
    }
    let depthwise = Convolution {
        k: 32,
        groups: 32,
        ..plain(Last, F32)
    };
    let grouped = Convolution {
        groups: 4,
        ..plain(First, F32)
    };
    let one_tap = Convolution::square(1, 32, 64, 28, 1, 1, Last, F16);
    let dilated = Convolution {
        padding: vec![2; 2],
        dilation: vec![2; 2],
        ..plain(First, F32)
    };
    let strided = Convolution::square(1, 3, 64, 56, 7, 2, Last, F32);
    for (name, conv, epilogue) in [
        ("depthwise_bias_relu_nhwc_f32", depthwise, RELU),
        ("conv_bias_add_gelu_nhwc_f16", plain(Last, F16), ADD_GELU),
        ("grouped_bias_relu_nchw_f32", grouped, RELU),
        ("conv_1x1_bias_relu_nhwc_f16", one_tap, RELU),
        ("dilated_bias_relu_nchw_f32", dilated, RELU),
        ("strided_bias_relu_nhwc_f32", strided, RELU),
    ] {
        samples.push((name.to_owned(), conv, epilogue));
    }
    let encoded = |(name, conv, epilogue): (String, Convolution, Epilogue)| {
        let graph = conv.graph(&name, Direction::Forward, epilogue);
        let graph = graph.with_context(|| format!("{name}: the filter does not fit"))?;
        Ok((name, rotini_wire::encode(&graph)))
    };
    samples.into_iter().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_valid_and_all_different() {
        let mut identities = Vec::new();
        for (name, bytes) in samples().unwrap() {
            let graph = rotini_wire::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(graph.name, name);
            identities.push(graph.normalise().0.canonical_bytes().unwrap());
        }
        let count = identities.len();
        identities.sort();
        identities.dedup();
        assert_eq!(identities.len(), count);
    }
}
