//! Gradients of convolutions: dgrad and wgrad, alone and fused.

use super::case::{Cases, Data, FLOATS, Order};
use super::convolution::Conv;
use anyhow::Result;
use rotini_graph::{ConvDgrad, ConvGeometry, ConvMode, ConvWgrad, DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_reference::Profile;

impl Conv {
    /// Builds the gradient with respect to x, from dy and w.
    #[must_use]
    pub fn dgrad(&self) -> Graph {
        let mut b = GraphBuilder::new("dgrad");
        let (x_dims, w_dims) = self.dims();
        let dy = self.orders[2].buffer(&mut b, "dy", self.dtype, &self.output());
        let w = self.orders[1].buffer(&mut b, "w", self.dtype, &w_dims);
        let dx = self.orders[0].buffer(&mut b, "dx", self.out, &x_dims);
        let geometry = self.geometry.clone();
        b.node("dgrad", self.compute, ConvDgrad { dy, w, dx, geometry });
        b.build()
    }

    /// Builds the gradient with respect to x, with a residual's gradient added.
    fn dgrad_added(&self) -> Graph {
        let mut b = GraphBuilder::new("dgrad_added");
        let (x_dims, w_dims) = self.dims();
        let dy = self.orders[2].buffer(&mut b, "dy", self.dtype, &self.output());
        let w = self.orders[1].buffer(&mut b, "w", self.dtype, &w_dims);
        let residual = self.orders[0].buffer(&mut b, "residual", self.dtype, &x_dims);
        let through = b.virtual_tensor("through", self.compute, &x_dims);
        let dx = self.orders[0].buffer(&mut b, "dx", self.out, &x_dims);
        let geometry = self.geometry.clone();
        let dgrad = ConvDgrad {
            dy,
            w,
            dx: through,
            geometry,
        };
        b.node("dgrad", self.compute, dgrad);
        b.pointwise(self.compute, PointwiseMode::Add, &[through, residual], dx);
        b.build()
    }

    /// Builds the gradient with respect to w, from x and dy.
    #[must_use]
    pub fn wgrad(&self) -> Graph {
        let mut b = GraphBuilder::new("wgrad");
        let (x_dims, w_dims) = self.dims();
        let x = self.orders[0].buffer(&mut b, "x", self.dtype, &x_dims);
        let dy = self.orders[2].buffer(&mut b, "dy", self.dtype, &self.output());
        let dw = self.orders[1].buffer(&mut b, "dw", self.out, &w_dims);
        let geometry = self.geometry.clone();
        b.node("wgrad", self.compute, ConvWgrad { x, dy, dw, geometry });
        b.build()
    }

    /// Builds a graph of both gradients behind the gradient of a relu; a residual's gradient is
    /// added to dx.
    #[must_use]
    pub fn backward(&self) -> Graph {
        let mut b = GraphBuilder::new("conv_relu_backward");
        let (x_dims, w_dims) = self.dims();
        let y_dims = self.output();
        let x = self.orders[0].buffer(&mut b, "x", self.dtype, &x_dims);
        let w = self.orders[1].buffer(&mut b, "w", self.dtype, &w_dims);
        let y = self.orders[2].buffer(&mut b, "y", self.dtype, &y_dims);
        let dz = self.orders[2].buffer(&mut b, "dz", self.dtype, &y_dims);
        let residual = self.orders[0].buffer(&mut b, "residual", self.dtype, &x_dims);
        let dy = b.virtual_tensor("dy", self.compute, &y_dims);
        let through = b.virtual_tensor("through", self.compute, &x_dims);
        let dx = self.orders[0].buffer(&mut b, "dx", self.out, &x_dims);
        let dw = self.orders[1].buffer(&mut b, "dw", self.out, &w_dims);
        b.pointwise(self.compute, PointwiseMode::ReluBwd, &[dz, y], dy);
        let geometry = self.geometry.clone();
        let dgrad = ConvDgrad {
            dy,
            w,
            dx: through,
            geometry: geometry.clone(),
        };
        b.node("dgrad", self.compute, dgrad);
        b.pointwise(self.compute, PointwiseMode::Add, &[through, residual], dx);
        b.node("wgrad", self.compute, ConvWgrad { x, dy, dw, geometry });
        b.build()
    }
}

/// Adds both gradients of a convolution.
fn both(cases: &mut Cases, name: &str, conv: &Conv) {
    cases.add(format!("dgrad_{name}"), conv.dgrad());
    cases.add(format!("wgrad_{name}"), conv.wgrad());
}

pub(super) fn alone(cases: &mut Cases) {
    for order in Order::BOTH {
        let name = order.name();
        for dtype in FLOATS {
            let conv = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, dtype, order);
            both(cases, &format!("{name}_{dtype}"), &conv(2, 8, 16, 9, 3, 1));
            both(cases, &format!("odd_{name}_{dtype}"), &conv(3, 5, 7, 11, 3, 1));
            both(
                cases,
                &format!("grouped_{name}_{dtype}"),
                &conv(2, 12, 8, 7, 3, 1).groups(4),
            );
            both(
                cases,
                &format!("depthwise_{name}_{dtype}"),
                &conv(1, 16, 16, 8, 3, 1).groups(16),
            );
            both(
                cases,
                &format!("stride2_{name}_{dtype}"),
                &conv(1, 4, 6, 11, 3, 1).stride(2),
            );
        }
        let f32 = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, DataType::F32, order);
        both(cases, &format!("1x1_{name}"), &f32(2, 16, 8, 6, 1, 0));
        both(cases, &format!("far_taps_{name}"), &f32(2, 4, 6, 5, 1, 0).far());
        both(cases, &format!("far_windows_{name}"), &f32(2, 4, 6, 3, 3, 0).far());
        both(cases, &format!("1x1_stride2_{name}"), &f32(2, 8, 6, 7, 1, 0).stride(2));
        // No window reads the last inputs: their gradient is zero.
        both(
            cases,
            &format!("stride2_rest_{name}"),
            &f32(1, 4, 6, 12, 3, 0).stride(2),
        );
        both(
            cases,
            &format!("stride_beyond_filter_{name}"),
            &f32(1, 3, 4, 13, 2, 0).stride(5),
        );
        both(cases, &format!("dilation2_{name}"), &f32(1, 4, 6, 11, 3, 2).dilation(2));
        both(
            cases,
            &format!("stride2_dilation3_{name}"),
            &f32(1, 3, 4, 14, 3, 2).stride(2).dilation(3),
        );
        both(cases, &format!("whole_input_{name}"), &f32(3, 4, 5, 4, 4, 0));
        both(cases, &format!("one_pixel_{name}"), &f32(2, 4, 5, 1, 3, 1));
        both(cases, &format!("one_channel_{name}"), &f32(2, 1, 1, 6, 3, 1));
        both(
            cases,
            &format!("depthwise_multiplier_{name}"),
            &f32(1, 6, 12, 8, 3, 1).groups(6).stride(2),
        );
        both(cases, &format!("wide_{name}"), &f32(1, 64, 32, 7, 3, 1));

        both(
            cases,
            &format!("asymmetric_padding_{name}"),
            &f32(1, 4, 5, 8, 3, 0).padded_unevenly(),
        );
        both(
            cases,
            &format!("uneven_{name}"),
            &f32(2, 4, 6, 0, 0, 0).uneven().groups(2),
        );
        // More padding than the filter reaches: dy's outermost rows correspond to padding only.
        both(cases, &format!("padding_beyond_filter_{name}"), &f32(1, 3, 4, 5, 2, 3));

        let mut line = f32(2, 6, 4, 0, 0, 0);
        line.input = vec![15];
        line.window = vec![3];
        line.geometry = ConvGeometry::same(1, 1);
        both(cases, &format!("1d_{name}"), &line);
        both(cases, &format!("1d_grouped_{name}"), &line.groups(2).stride(2));
        let mut volume = f32(1, 4, 6, 0, 0, 0);
        volume.input = vec![5, 6, 4];
        volume.window = vec![3, 2, 3];
        volume.geometry = ConvGeometry::same(3, 1);
        both(cases, &format!("3d_{name}"), &volume);
        both(cases, &format!("3d_grouped_{name}"), &volume.groups(2).stride(2));

        let mut exact = f32(1, 8, 8, 6, 3, 1);
        (exact.dtype, exact.out, exact.compute) = (DataType::I8, DataType::I32, DataType::I32);
        both(cases, &format!("i8_{name}"), &exact);
        let mut double = f32(1, 4, 5, 7, 3, 1);
        (double.dtype, double.out, double.compute) = (DataType::F64, DataType::F64, DataType::F64);
        both(cases, &format!("f64_{name}"), &double);
        let mut widening = Conv::new(1, 8, 8, 7, 3, 1, DataType::F16, order);
        widening.out = DataType::F32;
        both(cases, &format!("f16_to_f32_{name}"), &widening);
    }
    // The memory order changes from tensor to tensor.
    for (name, orders) in [
        ("nchw_nhwc_nchw", [Order::First, Order::Last, Order::First]),
        ("nhwc_nchw_nchw", [Order::Last, Order::First, Order::First]),
    ] {
        let mut conv = Conv::new(2, 6, 4, 7, 3, 1, DataType::F32, Order::First).stride(2);
        conv.orders = orders;
        both(cases, &format!("mixed_{name}"), &conv);
    }
}

/// Adds gradients with respect to w of many images, and of windows of one tap: GPUs sum these
/// without im2col patches, and over several workgroups if the sums are long.
pub(super) fn many(cases: &mut Cases) {
    for order in Order::BOTH {
        for dtype in [DataType::F16, DataType::Bf16] {
            let mut add = |name: &str, conv: Conv| {
                cases.add(format!("wgrad_{name}_{}_{dtype}", order.name()), conv.wgrad());
            };
            let conv = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, dtype, order);
            add("many", conv(16, 8, 24, 6, 3, 1));
            add("many_odd", conv(48, 5, 7, 7, 3, 1));
            add("many_long", conv(32, 16, 16, 20, 3, 1));
            add("many_stride2", conv(16, 12, 8, 14, 3, 1).stride(2));
            add("many_rest", conv(16, 4, 6, 12, 3, 0).stride(2));
            add("many_dilated", conv(16, 4, 6, 11, 3, 2).dilation(2));
            add("many_wide", conv(32, 96, 72, 8, 3, 1));
            add("many_one_filter", conv(16, 8, 1, 8, 3, 1));
            add("many_one_channel", conv(16, 1, 8, 8, 3, 1));
            add("many_one_pixel", conv(16, 8, 24, 1, 2, 1));
            add("one_tap", conv(3, 24, 40, 8, 1, 0));
            add("one_tap_odd", conv(3, 17, 9, 7, 1, 0));
            add("one_tap_many", conv(16, 40, 24, 7, 1, 0));
            add("one_tap_long", conv(16, 24, 16, 32, 1, 0));
            add("one_tap_stride2", conv(4, 24, 16, 13, 1, 0).stride(2));
            add("one_tap_stride2_rest", conv(16, 8, 16, 14, 1, 0).stride(2));
        }
    }
    for dtype in [DataType::F16, DataType::Bf16] {
        for (name, window, padding) in [("taps", 3, 1), ("one_tap", 1, 0)] {
            let mut conv = Conv::new(16, 6, 12, 8, window, padding, dtype, Order::First);
            conv.orders = [Order::First, Order::Last, Order::Last];
            cases.add(format!("wgrad_many_mixed_{name}_{dtype}"), conv.wgrad());
        }
    }
    let uneven = Conv::new(16, 4, 6, 0, 0, 0, DataType::F16, Order::Last).uneven();
    cases.add("wgrad_many_uneven_f16", uneven.wgrad());
}

/// Returns gradients with respect to x that AMD GPUs sum phase by phase: stride above one, and
/// enough windows.
fn phases() -> Vec<(String, Conv)> {
    let mut convs = Vec::new();
    for dtype in [DataType::F16, DataType::Bf16] {
        for (order, window, padding) in [(Order::First, 3, 1), (Order::Last, 5, 2)] {
            let conv = Conv::new(16, 32, 64, 56, window, padding, dtype, order).stride(2);
            convs.push((format!("{}_{dtype}", order.name()), conv));
        }
    }
    // Rows of dx that are multiples of eight make the other form slow enough even with few windows.
    let conv =
        |input, window, padding| Conv::new(16, 32, 64, input, window, padding, DataType::F16, Order::First).stride(2);
    let mut uneven = conv(56, 3, 0);
    uneven.input = vec![62, 56];
    uneven.geometry.post_padding = vec![1, 1];
    uneven.out = DataType::F32;
    convs.push(("after".to_owned(), uneven));
    let mut rows = conv(40, 3, 1);
    rows.geometry.stride = vec![1, 2];
    convs.push(("rows".to_owned(), rows));
    let mut columns = conv(40, 3, 1);
    columns.geometry.stride = vec![4, 1];
    columns.window = vec![5, 3];
    columns.geometry.post_padding = vec![0, 1];
    convs.push(("columns".to_owned(), columns));
    let mut turned = conv(48, 5, 2);
    turned.geometry.mode = ConvMode::Convolution;
    turned.orders = [Order::First, Order::Last, Order::Last];
    convs.push(("turned".to_owned(), turned));
    convs.push(("one_tap_each".to_owned(), conv(96, 2, 0)));
    convs
}

/// Adds small gradients with respect to x that AMD GPUs have a kernel for: phases without taps,
/// with fewer taps than others, along other axes.
fn kernels(cases: &mut Cases) {
    for order in Order::BOTH {
        let mut add =
            |name: &str, conv: &Conv| cases.add(format!("dgrad_kernel_{name}_{}", order.name()), conv.dgrad());
        let conv = |n, c, k, input, window, padding| Conv::new(n, c, k, input, window, padding, DataType::F16, order);
        add("one_tap", &conv(2, 12, 16, 12, 1, 0).stride(2));
        add("one_tap_padded", &conv(2, 16, 8, 12, 1, 1).stride(2));
        add("few_channels", &conv(2, 3, 16, 16, 7, 3).stride(2));
        add("dilated", &conv(2, 24, 8, 13, 5, 2).dilation(2));
        add("padding_beyond_filter", &conv(1, 8, 8, 6, 2, 3).stride(2));
        add("rest", &conv(1, 8, 8, 12, 3, 0).stride(2));
        add("long", &conv(1, 40, 264, 4, 3, 1).stride(2));
        add("uneven", &conv(2, 8, 16, 0, 0, 0).uneven());
        add("far_taps", &conv(2, 8, 8, 5, 1, 0).far());
        let mut mixed = conv(2, 16, 24, 14, 3, 1);
        mixed.geometry.stride = vec![2, 1];
        mixed.geometry.post_padding = vec![1, 1];
        add("columns", &mixed);
        let mut line = conv(2, 8, 16, 0, 0, 0).stride(2);
        line.input = vec![18];
        line.window = vec![3];
        line.geometry = ConvGeometry::same(1, 1);
        line.geometry.stride = vec![2];
        add("1d", &line);
        let mut volume = conv(1, 8, 16, 0, 0, 0);
        volume.input = vec![6, 4, 8];
        volume.window = vec![3, 1, 3];
        volume.geometry = ConvGeometry::same(3, 1);
        volume.geometry.stride = vec![2, 2, 1];
        volume.geometry.pre_padding = vec![1, 0, 1];
        volume.geometry.post_padding = vec![1, 0, 1];
        add("3d", &volume);
        let wide = conv(1, 8, 16, 64, 3, 1);
        cases.add(format!("wgrad_kernel_wide_{}", order.name()), wide.wgrad());
        let mut shifted = conv(2, 16, 8, 4, 1, 2).stride(2);
        cases.add(format!("dgrad_kernel_shifted_{}", order.name()), shifted.dgrad());
        shifted = conv(1, 64, 64, 16, 3, 2);
        cases.add(format!("dgrad_kernel_inside_{}", order.name()), shifted.dgrad());
        let far = conv(2, 8, 8, 5, 1, 0).far();
        cases.add(format!("conv_kernel_far_taps_{}", order.name()), far.alone());
        cases.add(format!("wgrad_kernel_far_taps_{}", order.name()), far.wgrad());
    }
}

/// Returns NaN and infinities in the filter with strides above one: an element that no window
/// covers has a gradient of 0. And in dy: each phase may multiply it only with its own taps.
pub(super) fn edges() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for (name, conv) in phases() {
        let name = format!("dgrad_edges_phases_{name}");
        data.push(Data::filled(name, conv.dgrad(), "dy", Profile::FewEdges)?);
    }
    for order in Order::BOTH {
        let mut add = |name: &str, conv: &Conv| {
            let name = format!("dgrad_edges_{name}_{}", order.name());
            data.push(Data::filled(name, conv.dgrad(), "w", Profile::FewEdges)?);
            Ok::<_, anyhow::Error>(())
        };
        let conv = |input, window, padding| Conv::new(2, 4, 6, input, window, padding, DataType::F32, order);
        // Without windows outside dy, whose zero padding CPUs multiply.
        add("stride2", &conv(9, 3, 2).stride(2))?;
        add("stride_beyond_filter", &conv(13, 2, 0).stride(5))?;
        add("1x1_stride2", &conv(7, 1, 0).stride(2))?;
        add("stride2_dilation3", &conv(14, 3, 2).stride(2).dilation(3))?;
        add("stride3_grouped", &conv(11, 4, 3).stride(3).groups(2))?;
        add("padding_beyond_filter", &conv(5, 2, 3))?;
        for dtype in [DataType::F16, DataType::Bf16] {
            let conv = Conv::new(1, 16, 8, 8, 4, 1, dtype, order).stride(2);
            let name = format!("dgrad_edges_stride2_{dtype}_{}", order.name());
            data.push(Data::filled(name, conv.dgrad(), "dy", Profile::FewEdges)?);
        }
    }
    Ok(data)
}

pub(super) fn fused(cases: &mut Cases) {
    kernels(cases);
    for (name, conv) in phases() {
        cases.add(format!("dgrad_phases_{name}"), conv.dgrad());
    }
    let conv = Conv::new(16, 32, 64, 56, 3, 1, DataType::F16, Order::First).stride(2);
    cases.add("dgrad_phases_added", conv.dgrad_added());
    for order in Order::BOTH {
        for dtype in FLOATS {
            let conv = Conv::new(2, 8, 6, 7, 3, 1, dtype, order);
            cases.add(format!("conv_relu_backward_{}_{dtype}", order.name()), conv.backward());
        }
        let strided = Conv::new(1, 8, 8, 8, 3, 1, DataType::F32, order).groups(2).stride(2);
        cases.add(
            format!("conv_relu_backward_grouped_{}", order.name()),
            strided.backward(),
        );
    }
}
