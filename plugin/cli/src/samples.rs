//! The graphs of `rotini demo`, built in code.

use anyhow::{Context as _, Result};
use rotini_graph::{ConvGeometry, DataType, Graph, GraphBuilder, PointwiseMode, TensorId, conv_output_extent};

/// Memory order of activations and filters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// NCHW and KCRS.
    Nchw,
    /// NHWC and KRSC.
    Nhwc,
}

/// The operations after a convolution and its bias.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Epilogue {
    Relu,
    /// The addition of a second tensor, then GELU.
    AddGelu,
}

/// A convolution with square filters over square images, a bias per channel and an epilogue.
struct Sample {
    name: &'static str,
    dtype: DataType,
    order: Order,
    /// Input channels.
    channels: i64,
    /// Extent of the input in both spatial dimensions.
    extent: i64,
    /// Number of filters, which is the number of output channels.
    filters: i64,
    /// Extent of a filter in both spatial dimensions.
    filter: i64,
    groups: i64,
    padding: i64,
    stride: i64,
    dilation: i64,
    epilogue: Epilogue,
}

/// A convolution of 32 channels of 28x28 to 64 channels of the same size.
const PLAIN: Sample = Sample {
    name: "",
    dtype: DataType::F32,
    order: Order::Nchw,
    channels: 32,
    extent: 28,
    filters: 64,
    filter: 3,
    groups: 1,
    padding: 1,
    stride: 1,
    dilation: 1,
    epilogue: Epilogue::Relu,
};

const SAMPLES: [Sample; 12] = [
    Sample {
        name: "conv_bias_relu_nchw_f32",
        ..PLAIN
    },
    Sample {
        name: "conv_bias_relu_nhwc_f32",
        order: Order::Nhwc,
        ..PLAIN
    },
    Sample {
        name: "conv_bias_relu_nchw_f16",
        dtype: DataType::F16,
        ..PLAIN
    },
    Sample {
        name: "conv_bias_relu_nhwc_f16",
        dtype: DataType::F16,
        order: Order::Nhwc,
        ..PLAIN
    },
    Sample {
        name: "conv_bias_relu_nchw_bf16",
        dtype: DataType::Bf16,
        ..PLAIN
    },
    Sample {
        name: "conv_bias_relu_nhwc_bf16",
        dtype: DataType::Bf16,
        order: Order::Nhwc,
        ..PLAIN
    },
    Sample {
        name: "depthwise_bias_relu_nhwc_f32",
        order: Order::Nhwc,
        filters: 32,
        groups: 32,
        ..PLAIN
    },
    Sample {
        name: "conv_bias_add_gelu_nhwc_f16",
        dtype: DataType::F16,
        order: Order::Nhwc,
        epilogue: Epilogue::AddGelu,
        ..PLAIN
    },
    Sample {
        name: "grouped_bias_relu_nchw_f32",
        groups: 4,
        ..PLAIN
    },
    Sample {
        name: "conv_1x1_bias_relu_nhwc_f16",
        dtype: DataType::F16,
        order: Order::Nhwc,
        filter: 1,
        padding: 0,
        ..PLAIN
    },
    Sample {
        name: "dilated_bias_relu_nchw_f32",
        padding: 2,
        dilation: 2,
        ..PLAIN
    },
    Sample {
        name: "strided_bias_relu_nhwc_f32",
        order: Order::Nhwc,
        channels: 3,
        extent: 56,
        filter: 7,
        padding: 3,
        stride: 2,
        ..PLAIN
    },
];

/// Returns the name and the serialized graph of each sample.
///
/// # Errors
///
/// Fails if a sample is inconsistent.
pub(crate) fn samples() -> Result<Vec<(&'static str, Vec<u8>)>> {
    SAMPLES
        .iter()
        .map(|sample| Ok((sample.name, rotini_wire::encode(&sample.graph()?))))
        .collect()
}

impl Sample {
    fn graph(&self) -> Result<Graph> {
        let out = conv_output_extent(
            self.extent,
            self.filter,
            self.padding,
            self.padding,
            self.stride,
            self.dilation,
        )
        .with_context(|| format!("{}: the filter does not fit", self.name))?;
        let group = self.channels.checked_div(self.groups).context("no groups")?;
        let y_dims = [1, self.filters, out, out];
        let mut graph = GraphBuilder::new(self.name);
        let x = self.buffer(&mut graph, "x", &[1, self.channels, self.extent, self.extent]);
        let w = self.buffer(&mut graph, "w", &[self.filters, group, self.filter, self.filter]);
        let bias = self.buffer(&mut graph, "bias", &[1, self.filters, 1, 1]);
        let geometry = ConvGeometry {
            stride: vec![self.stride; 2],
            dilation: vec![self.dilation; 2],
            ..ConvGeometry::same(2, self.padding)
        };
        let conv = graph.virtual_tensor("conv", DataType::F32, &y_dims);
        graph.conv_fprop(DataType::F32, x, w, conv, geometry);
        let biased = graph.virtual_tensor("biased", DataType::F32, &y_dims);
        graph.pointwise(DataType::F32, PointwiseMode::Add, &[conv, bias], biased);
        let (activation, last) = match self.epilogue {
            Epilogue::Relu => (PointwiseMode::ReluFwd, biased),
            Epilogue::AddGelu => {
                let residual = self.buffer(&mut graph, "residual", &y_dims);
                let sum = graph.virtual_tensor("sum", DataType::F32, &y_dims);
                graph.pointwise(DataType::F32, PointwiseMode::Add, &[biased, residual], sum);
                (PointwiseMode::GeluFwd, sum)
            }
        };
        let y = self.buffer(&mut graph, "y", &y_dims);
        graph.pointwise(DataType::F32, activation, &[last], y);
        Ok(graph.build())
    }

    fn buffer(&self, graph: &mut GraphBuilder, name: &str, dims: &[i64]) -> TensorId {
        match self.order {
            Order::Nchw => graph.buffer(name, self.dtype, dims),
            Order::Nhwc => graph.buffer_channels_last(name, self.dtype, dims),
        }
    }
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
