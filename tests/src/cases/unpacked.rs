//! Few positions or many terms in f32, for which CPUs read the filters in place: tiles and vectors
//! that overlap, workgroups with a remainder, images of one position, filters and x in either
//! order. And near misses, whose filters are packed.

use super::case::{Cases, Order};
use super::convolution::Conv;
use rotini_graph::{ConvGeometry, ConvMode, DataType, GraphBuilder, PointwiseMode};

/// Adds all cases.
pub(super) fn unpacked(cases: &mut Cases) {
    for (name, orders) in [
        ("nhwc", [Order::Last; 3]),
        ("nchw", [Order::First; 3]),
        ("nhwc_by_kcrs", [Order::Last, Order::First, Order::Last]),
        ("nchw_by_krsc", [Order::First, Order::Last, Order::First]),
    ] {
        let conv = |n, c, k, input, window, padding| {
            let mut conv = Conv::new(n, c, k, input, window, padding, DataType::F32, Order::Last);
            conv.orders = orders;
            conv
        };
        let mut turned = conv(1, 32, 256, 5, 3, 1);
        turned.geometry.mode = ConvMode::Convolution;
        let mut line = conv(2, 96, 256, 0, 0, 0);
        (line.input, line.window, line.geometry) = (vec![9], vec![3], ConvGeometry::same(1, 1));
        let mut volume = conv(1, 16, 256, 0, 0, 0);
        (volume.input, volume.window, volume.geometry) = (vec![2, 3, 4], vec![2, 3, 3], ConvGeometry::same(3, 1));
        for (kind, conv) in [
            ("one_tap", conv(1, 256, 36, 7, 1, 0)),
            ("one_tap_of_eight", conv(2, 272, 4, 2, 1, 0)),
            ("one_tap_stride2", conv(1, 512, 64, 14, 1, 0).stride(2)),
            ("one_position", conv(1, 1024, 40, 1, 1, 0)),
            ("few_positions", conv(5, 256, 68, 1, 1, 0)),
            ("many_terms", conv(1, 1040, 68, 11, 1, 0)),
            ("38_filters", conv(1, 256, 38, 7, 1, 0)),
            ("264_terms", conv(1, 264, 36, 7, 1, 0)),
            ("taps", conv(1, 32, 260, 5, 3, 1)),
            ("taps_stride2", conv(2, 48, 256, 9, 3, 1).stride(2)),
            ("taps_dilated", conv(1, 32, 256, 7, 3, 2).dilation(2)),
            ("uneven_padding", conv(1, 32, 256, 6, 3, 0).padded_unevenly()),
            ("taps_turned", turned),
            ("1d", line),
            ("3d", volume),
        ] {
            let fused = conv.fused(PointwiseMode::ReluFwd, false);
            cases.add(format!("conv_unpacked_{kind}_{name}"), fused);
        }
        // The flipped filter of the gradient is a copy with this layout.
        cases.add(format!("dgrad_unpacked_taps_{name}"), conv(1, 256, 32, 5, 3, 1).dgrad());
        let mut half = conv(1, 256, 36, 7, 1, 0);
        (half.dtype, half.out) = (DataType::F16, DataType::F16);
        for (kind, conv) in [
            ("240_terms", conv(1, 240, 36, 7, 1, 0)),
            ("100_positions", conv(1, 512, 36, 10, 1, 0)),
            ("two_groups", conv(1, 512, 72, 7, 1, 0).groups(2)),
            ("f16", half),
        ] {
            cases.add(format!("conv_packed_{kind}_{name}"), conv.alone());
        }
    }
    // An operand that the graph computes.
    let mut b = GraphBuilder::new("conv of a sum");
    let conv = Conv::new(1, 256, 36, 7, 1, 0, DataType::F32, Order::Last);
    let (x_dims, w_dims) = conv.dims();
    let [first, second] = ["first", "second"].map(|name| b.buffer_channels_last(name, DataType::F32, &x_dims));
    let x = b.virtual_tensor("x", DataType::F32, &x_dims);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[first, second], x);
    let w = b.buffer("w", DataType::F32, &w_dims);
    let y = b.buffer_channels_last("y", DataType::F32, &conv.output());
    b.conv_fprop(DataType::F32, x, w, y, conv.geometry.clone());
    cases.add("conv_unpacked_of_a_sum", b.build());
}
