//! Convolutions, alone and with a fused epilogue.

use super::case::{Cases, FLOATS, Order};
use rotini_graph::{ConvGeometry, ConvMode, DataType, Graph, GraphBuilder, PointwiseMode, TensorId};

/// A convolution with an optional epilogue.
#[derive(Clone, Debug)]
pub struct Conv {
    /// Batch.
    pub n: i64,
    /// Input channels.
    pub c: i64,
    /// Filters.
    pub k: i64,
    /// Spatial extents of the input.
    pub input: Vec<i64>,
    /// Spatial extents of the filter.
    pub window: Vec<i64>,
    /// Groups of channels.
    pub groups: i64,
    /// Padding, stride, dilation.
    pub geometry: ConvGeometry,
    /// Type of x, w and the bias.
    pub dtype: DataType,
    /// Type of y.
    pub out: DataType,
    /// Compute type.
    pub compute: DataType,
    /// Memory orders of x, w and y.
    pub orders: [Order; 3],
}

impl Conv {
    /// Sets attributes that have no effect (the dilation of a single tap, the stride of a single
    /// window) to their maximum.
    pub(super) fn far(mut self) -> Self {
        if self.window.iter().all(|&extent| extent == 1) {
            self.geometry.dilation.fill(i64::MAX);
        } else {
            self.geometry.stride.fill(i64::MAX);
        }
        self
    }

    /// A 2D convolution of `dtype` with stride 1 and equal padding, computed in f32.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "the list that convolutions are known by: N, C, K, extent, filter, padding"
    )]
    pub fn new(n: i64, c: i64, k: i64, input: i64, window: i64, padding: i64, dtype: DataType, order: Order) -> Self {
        Conv {
            n,
            c,
            k,
            input: vec![input; 2],
            window: vec![window; 2],
            groups: 1,
            geometry: ConvGeometry::same(2, padding),
            dtype,
            out: dtype,
            compute: DataType::F32,
            orders: [order; 3],
        }
    }

    /// Sets the stride.
    #[must_use]
    pub fn stride(mut self, stride: i64) -> Self {
        self.geometry.stride = vec![stride; self.input.len()];
        self
    }

    /// Sets the dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: i64) -> Self {
        self.geometry.dilation = vec![dilation; self.input.len()];
        self
    }

    /// Sets padding that differs on each side.
    pub(super) fn padded_unevenly(mut self) -> Self {
        self.geometry.pre_padding = vec![2, 0];
        self.geometry.post_padding = vec![1, 3];
        self
    }

    /// Sets extents, padding, strides and dilations that differ along each axis.
    pub(super) fn uneven(mut self) -> Self {
        self.input = vec![7, 12];
        self.window = vec![2, 5];
        self.geometry.pre_padding = vec![1, 2];
        self.geometry.post_padding = vec![0, 1];
        self.geometry.stride = vec![1, 3];
        self.geometry.dilation = vec![2, 1];
        self
    }

    /// Sets the number of groups.
    #[must_use]
    pub fn groups(mut self, groups: i64) -> Self {
        self.groups = groups;
        self
    }

    /// Returns the dims of the output.
    pub(super) fn output(&self) -> Vec<i64> {
        let geometry = &self.geometry;
        let mut dims = vec![self.n, self.k];
        for axis in 0..self.input.len() {
            let reach = geometry.dilation[axis] * (self.window[axis] - 1) + 1;
            let padded = self.input[axis] + geometry.pre_padding[axis] + geometry.post_padding[axis];
            dims.push((padded - reach) / geometry.stride[axis] + 1);
        }
        dims
    }

    /// Returns the dims of the input and the filter.
    pub(super) fn dims(&self) -> (Vec<i64>, Vec<i64>) {
        let dims = |first: i64, second: i64, rest: &[i64]| [&[first, second], rest].concat();
        (
            dims(self.n, self.c, &self.input),
            dims(self.k, self.c / self.groups, &self.window),
        )
    }

    pub(super) fn operands(&self, b: &mut GraphBuilder) -> (TensorId, TensorId) {
        let (x_dims, w_dims) = self.dims();
        let x = self.orders[0].buffer(b, "x", self.dtype, &x_dims);
        let w = self.orders[1].buffer(b, "w", self.dtype, &w_dims);
        (x, w)
    }

    /// Builds the convolution alone.
    #[must_use]
    pub fn alone(&self) -> Graph {
        let mut b = GraphBuilder::new("conv");
        let (x, w) = self.operands(&mut b);
        let y = self.orders[2].buffer(&mut b, "y", self.out, &self.output());
        b.conv_fprop(self.compute, x, w, y, self.geometry.clone());
        b.build()
    }

    /// Builds the convolution with a bias per filter, then `activation`, with a residual added
    /// before the activation if `residual`.
    #[must_use]
    pub fn fused(&self, activation: PointwiseMode, residual: bool) -> Graph {
        let mut b = GraphBuilder::new("conv_bias_act");
        let (x, w) = self.operands(&mut b);
        let dims = self.output();
        let mut bias_dims = vec![1; dims.len()];
        bias_dims[1] = self.k;
        let bias = b.buffer("bias", self.dtype, &bias_dims);
        let conv = b.virtual_tensor("conv", self.compute, &dims);
        let biased = b.virtual_tensor("biased", self.compute, &dims);
        b.conv_fprop(self.compute, x, w, conv, self.geometry.clone());
        b.pointwise(self.compute, PointwiseMode::Add, &[conv, bias], biased);
        let mut last = biased;
        if residual {
            let z = self.orders[2].buffer(&mut b, "z", self.dtype, &dims);
            last = b.virtual_tensor("summed", self.compute, &dims);
            b.pointwise(self.compute, PointwiseMode::Add, &[biased, z], last);
        }
        let y = self.orders[2].buffer(&mut b, "y", self.out, &dims);
        b.pointwise(self.compute, activation, &[last], y);
        b.build()
    }
}

pub(super) fn alone(cases: &mut Cases) {
    // One column of padding, and no extent a multiple of another.
    for order in Order::BOTH {
        for dtype in FLOATS {
            let mut conv = Conv::new(3, 3, 3, 0, 3, 0, dtype, order);
            conv.input = vec![9, 7];
            (conv.geometry.pre_padding, conv.geometry.post_padding) = (vec![0, 1], vec![0, 1]);
            cases.add(format!("conv_columns_padded_{}_{dtype}", order.name()), conv.alone());
        }
    }
    for order in Order::BOTH {
        let name = order.name();
        for dtype in FLOATS {
            cases.add(
                format!("conv_{name}_{dtype}"),
                Conv::new(2, 8, 16, 9, 3, 1, dtype, order).alone(),
            );
            cases.add(
                format!("conv_odd_{name}_{dtype}"),
                Conv::new(1, 5, 7, 13, 3, 1, dtype, order).alone(),
            );
            let grouped = Conv::new(2, 12, 8, 7, 3, 1, dtype, order).groups(4);
            cases.add(format!("conv_grouped_{name}_{dtype}"), grouped.alone());
            let depthwise = Conv::new(1, 16, 16, 10, 3, 1, dtype, order).groups(16);
            cases.add(format!("conv_depthwise_{name}_{dtype}"), depthwise.alone());
        }
        let f32 = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, DataType::F32, order);
        cases.add(format!("conv_1x1_{name}"), f32(2, 16, 8, 6, 1, 0).alone());
        cases.add(format!("conv_far_taps_{name}"), f32(2, 4, 6, 5, 1, 0).far().alone());
        cases.add(format!("conv_far_windows_{name}"), f32(2, 4, 6, 3, 3, 0).far().alone());
        cases.add(
            format!("conv_1x1_stride2_{name}"),
            f32(2, 16, 8, 7, 1, 0).stride(2).alone(),
        );
        cases.add(format!("conv_stride2_{name}"), f32(1, 4, 6, 11, 3, 1).stride(2).alone());
        cases.add(
            format!("conv_stride_beyond_filter_{name}"),
            f32(1, 3, 4, 13, 2, 0).stride(5).alone(),
        );
        cases.add(
            format!("conv_dilation2_{name}"),
            f32(1, 4, 6, 11, 3, 2).dilation(2).alone(),
        );
        cases.add(format!("conv_stem_{name}"), f32(1, 3, 8, 19, 7, 3).stride(2).alone());
        cases.add(format!("conv_whole_input_{name}"), f32(3, 4, 5, 4, 4, 0).alone());
        cases.add(format!("conv_one_pixel_{name}"), f32(1, 4, 5, 1, 3, 1).alone());
        let mut row = f32(2, 16, 16, 6, 3, 1);
        row.input = vec![1, 6];
        (row.dtype, row.out) = (DataType::F16, DataType::F16);
        cases.add(format!("conv_one_row_{name}_f16"), row.alone());
        row.input = vec![6, 1];
        cases.add(format!("conv_one_column_{name}_f16"), row.groups(2).alone());
        for (n, groups) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            // The result has axes of extent 1, which compilers tend to drop.
            for (height, width) in [(1, 1), (1, 4), (4, 1)] {
                let mut thin = f32(n, 16, 16, 6, 3, 0).groups(groups);
                thin.input = vec![height + 2, width + 2];
                (thin.dtype, thin.out) = (DataType::F16, DataType::F16);
                let suffix = format!("n{n}_g{groups}_{height}x{width}_{name}_f16");
                cases.add(format!("conv_to_{suffix}"), thin.alone());
            }
        }
        for (c, k, window) in [(7, 3, 1), (5, 2, 3)] {
            let thin = Conv::new(2, c, k, 9, window, window / 2, DataType::F16, order);
            cases.add(format!("conv_thin_{c}to{k}_{name}_f16"), thin.alone());
        }
        cases.add(
            format!("conv_two_groups_of_six_filters_{name}"),
            f32(1, 8, 12, 7, 3, 1).groups(2).alone(),
        );
        cases.add(format!("conv_one_channel_{name}"), f32(2, 1, 1, 6, 3, 1).alone());
        cases.add(
            format!("conv_depthwise_multiplier_{name}"),
            f32(1, 6, 12, 8, 3, 1).groups(6).alone(),
        );
        for dtype in [DataType::F32, DataType::F16] {
            let conv = |n, c, k, input| Conv::new(n, c, k, input, 3, 1, dtype, order);
            cases.add(format!("conv_one_filter_{name}_{dtype}"), conv(2, 8, 1, 7).alone());
            cases.add(
                format!("conv_one_filter_each_{name}_{dtype}"),
                conv(2, 12, 3, 7).groups(3).alone(),
            );
            let multiplier = conv(2, 6, 18, 9).groups(6).dilation(2);
            cases.add(
                format!("conv_dilated_multiplier_of_three_{name}_{dtype}"),
                multiplier.alone(),
            );
        }
        cases.add(format!("conv_wide_{name}"), f32(1, 64, 64, 14, 3, 1).alone());

        cases.add(
            format!("conv_asymmetric_padding_{name}"),
            f32(1, 4, 5, 8, 3, 0).padded_unevenly().alone(),
        );
        cases.add(format!("conv_uneven_{name}"), f32(2, 4, 6, 0, 0, 0).uneven().alone());

        let mut line = f32(2, 6, 4, 0, 0, 0);
        line.input = vec![15];
        line.window = vec![3];
        line.geometry = ConvGeometry::same(1, 1);
        cases.add(format!("conv_1d_{name}"), line.alone());
        cases.add(
            format!("conv_1d_grouped_{name}"),
            line.clone().groups(2).stride(2).alone(),
        );
        let mut volume = f32(1, 4, 6, 0, 0, 0);
        volume.input = vec![5, 6, 4];
        volume.window = vec![3, 2, 3];
        volume.geometry = ConvGeometry::same(3, 1);
        cases.add(format!("conv_3d_{name}"), volume.alone());
        cases.add(
            format!("conv_3d_grouped_{name}"),
            volume.clone().groups(2).stride(2).alone(),
        );

        let mut exact = f32(1, 8, 8, 6, 3, 1);
        exact.dtype = DataType::I8;
        exact.out = DataType::I32;
        exact.compute = DataType::I32;
        cases.add(format!("conv_i8_{name}"), exact.alone());
        cases.add(format!("conv_i8_grouped_{name}"), exact.clone().groups(4).alone());
        exact.out = DataType::I8;
        cases.add(format!("conv_i8_saturating_{name}"), exact.alone());
        let mut double = f32(1, 4, 5, 7, 3, 1);
        double.dtype = DataType::F64;
        double.out = DataType::F64;
        double.compute = DataType::F64;
        cases.add(format!("conv_f64_{name}"), double.alone());
        let mut widening = Conv::new(1, 8, 8, 7, 3, 1, DataType::F16, order);
        widening.out = DataType::F32;
        cases.add(format!("conv_f16_to_f32_{name}"), widening.alone());
    }
}

/// Adds convolutions with many images and regular channels, for which GPUs use rotini's tiles:
/// forward, and as the gradient with respect to x.
pub(super) fn many(cases: &mut Cases) {
    for order in Order::BOTH {
        let name = order.name();
        for dtype in [DataType::F16, DataType::Bf16] {
            let mut add = |kind: &str, conv: Conv| {
                cases.add(format!("conv_many_{kind}_{name}_{dtype}"), conv.alone());
                cases.add(format!("dgrad_many_{kind}_{name}_{dtype}"), conv.dgrad());
            };
            let conv = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, dtype, order);
            add("taps", conv(16, 64, 64, 6, 3, 1));
            add("taps_odd", conv(48, 64, 128, 5, 3, 1));
            add("taps_of_one_pixel", conv(16, 64, 64, 1, 2, 1));
            add("taps_few", conv(32, 128, 32, 7, 3, 0));
            add("taps_stride2", conv(32, 64, 64, 9, 3, 1).stride(2));
            add("taps_rest", conv(16, 64, 64, 8, 3, 0).stride(2));
            add("taps_dilated", conv(16, 64, 128, 9, 3, 2).dilation(2));
            let mut row = conv(16, 64, 64, 9, 3, 1);
            row.window = vec![1, 3];
            row.geometry.pre_padding = vec![0, 1];
            row.geometry.post_padding = vec![0, 1];
            add("taps_of_a_row", row.clone());
            row.window = vec![3, 1];
            row.geometry.stride = vec![2, 1];
            add("taps_of_a_column", row);
            add("one_tap", conv(4, 128, 64, 8, 1, 0));
            add("one_tap_image", conv(2, 256, 64, 13, 1, 0));
            add("one_tap_stride2", conv(4, 64, 128, 15, 1, 0).stride(2));
        }
        let conv = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, DataType::F16, order);
        for (kind, conv) in [
            ("uneven", conv(16, 64, 64, 0, 0, 0).uneven()),
            ("uneven_padding", conv(48, 64, 64, 8, 3, 0).padded_unevenly()),
            ("taps", conv(16, 64, 64, 7, 3, 1)),
            ("one_tap", conv(3, 128, 64, 12, 1, 0)),
        ] {
            let fused = conv.fused(PointwiseMode::ReluFwd, true);
            cases.add(format!("conv_many_fused_{kind}_{name}"), fused);
        }
        // Large enough for a copy with channels innermost.
        for (kind, conv) in [
            ("taps", conv(16, 128, 64, 30, 3, 1)),
            ("one_tap", conv(32, 512, 512, 7, 1, 0)),
            ("one_tap_stride2", conv(16, 512, 512, 14, 1, 0).stride(2)),
        ] {
            let fused = conv.fused(PointwiseMode::ReluFwd, false);
            cases.add(format!("conv_many_large_{kind}_{name}"), fused);
        }
    }
}

/// Adds convolutions with filters rotated by 180°, in all three directions.
pub(super) fn turned(cases: &mut Cases) {
    for order in Order::BOTH {
        let conv = |n, c, k, input, window, padding, dtype| {
            let mut conv = Conv::new(n, c, k, input, window, padding, dtype, order);
            conv.geometry.mode = ConvMode::Convolution;
            conv
        };
        let mut volume = conv(1, 3, 4, 5, 2, 1, DataType::F32);
        volume.input = vec![4, 5, 6];
        volume.window = vec![2, 3, 1];
        volume.geometry = ConvGeometry {
            mode: ConvMode::Convolution,
            ..ConvGeometry::same(3, 1)
        };
        let mut uneven = conv(1, 4, 5, 9, 3, 1, DataType::F32);
        uneven.geometry.pre_padding = vec![2, 0];
        uneven.geometry.post_padding = vec![0, 1];
        uneven.window = vec![3, 2];
        for (kind, conv) in [
            ("f32", conv(2, 8, 16, 9, 3, 1, DataType::F32)),
            ("f16", conv(2, 16, 32, 9, 3, 1, DataType::F16)),
            ("1x1", conv(2, 8, 4, 5, 1, 0, DataType::F32)),
            ("stride2", conv(1, 4, 6, 11, 3, 1, DataType::F32).stride(2)),
            ("dilated", conv(1, 4, 6, 11, 3, 2, DataType::F32).dilation(2)),
            ("grouped", conv(2, 12, 8, 7, 3, 1, DataType::Bf16).groups(4)),
            ("depthwise", conv(1, 16, 16, 10, 3, 1, DataType::F32).groups(16)),
            ("uneven", uneven),
            ("3d", volume),
        ] {
            let name = format!("conv_turned_{kind}_{}", order.name());
            cases.add(name.clone(), conv.alone());
            cases.add(format!("{name}_dgrad"), conv.dgrad());
            cases.add(format!("{name}_wgrad"), conv.wgrad());
        }
    }
}

pub(super) fn fused(cases: &mut Cases) {
    for order in Order::BOTH {
        let name = order.name();
        for dtype in FLOATS {
            let conv = Conv::new(2, 8, 16, 9, 3, 1, dtype, order);
            cases.add(
                format!("conv_bias_relu_{name}_{dtype}"),
                conv.fused(PointwiseMode::ReluFwd, false),
            );
            cases.add(
                format!("conv_bias_add_gelu_{name}_{dtype}"),
                conv.fused(PointwiseMode::GeluFwd, true),
            );
            let point = Conv::new(1, 32, 16, 7, 1, 0, dtype, order);
            cases.add(
                format!("conv_1x1_bias_relu_{name}_{dtype}"),
                point.fused(PointwiseMode::ReluFwd, false),
            );
        }
        let grouped = Conv::new(1, 8, 8, 8, 3, 1, DataType::F16, order).groups(2).stride(2);
        cases.add(
            format!("conv_grouped_bias_swish_{name}"),
            grouped.fused(PointwiseMode::SwishFwd, false),
        );
        let depthwise = Conv::new(1, 16, 16, 8, 3, 1, DataType::F32, order).groups(16);
        cases.add(
            format!("conv_depthwise_bias_relu_{name}"),
            depthwise.fused(PointwiseMode::ReluFwd, true),
        );
    }
}
