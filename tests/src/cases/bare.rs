//! Convolutions in f32 without epilogue, and their gradients. On CPUs these use rotini's kernels,
//! which read through strides. Covers partial tiles, vectors and blocks of terms, contiguous and
//! gathered columns, phases of gradients with stride, and windows that are read flipped.

use super::case::{Cases, Order};
use super::convolution::Conv;
use rotini_graph::{ConvGeometry, ConvMode, DataType};

/// Adds all cases.
pub(super) fn bare(cases: &mut Cases) {
    for (name, orders) in [
        ("nhwc", [Order::Last; 3]),
        ("nchw", [Order::First; 3]),
        ("nhwc_to_nchw", [Order::Last, Order::First, Order::First]),
        ("nchw_by_krsc", [Order::First, Order::Last, Order::First]),
    ] {
        let typed = |dtype, n, c, k, input, window, padding| {
            let mut conv = Conv::new(n, c, k, input, window, padding, dtype, Order::Last);
            conv.orders = orders;
            conv
        };
        let conv = |n, c, k, input, window, padding| typed(DataType::F32, n, c, k, input, window, padding);
        let mut turned = conv(2, 6, 10, 9, 3, 1).stride(2);
        turned.geometry.mode = ConvMode::Convolution;
        let mut line = conv(2, 20, 12, 0, 0, 0);
        (line.input, line.window, line.geometry) = (vec![70], vec![5], ConvGeometry::same(1, 2));
        let mut volume = conv(1, 12, 9, 0, 0, 0);
        (volume.input, volume.window, volume.geometry) = (vec![5, 6, 9], vec![3, 3, 3], ConvGeometry::same(3, 1));
        let steps = volume.clone().stride(2);
        for (kind, conv) in [
            ("one_tap", conv(3, 33, 20, 10, 1, 0)),
            ("one_tap_stride2", conv(2, 40, 24, 14, 1, 0).stride(2)),
            ("rests", conv(2, 5, 19, 9, 3, 1)),
            ("runs", conv(1, 5, 9, 28, 3, 1)),
            ("whole_runs", conv(1, 4, 50, 16, 3, 1)),
            ("blocks", conv(2, 40, 17, 9, 3, 1)),
            ("stride2", conv(2, 6, 10, 19, 3, 1).stride(2)),
            ("stem", conv(1, 3, 8, 39, 7, 3).stride(2)),
            ("stride3", conv(1, 5, 7, 17, 5, 2).stride(3)),
            ("stride_beyond_filter", conv(1, 5, 7, 13, 2, 0).stride(5)),
            ("dilated", conv(1, 6, 9, 12, 3, 2).dilation(2)),
            ("groups", conv(2, 12, 20, 11, 3, 1).groups(4)),
            ("depthwise_stride2", conv(2, 36, 36, 37, 3, 1).stride(2).groups(36)),
            ("depthwise_stride3", conv(1, 18, 18, 40, 5, 2).stride(3).groups(18)),
            ("depthwise_dilated", conv(2, 7, 7, 21, 3, 2).dilation(2).groups(7)),
            ("uneven", conv(2, 4, 6, 0, 0, 0).uneven()),
            ("uneven_padding", conv(1, 8, 9, 10, 3, 0).padded_unevenly()),
            ("turned", turned),
            ("f16", typed(DataType::F16, 2, 9, 12, 10, 3, 1)),
            ("bf16_stride2", typed(DataType::Bf16, 1, 8, 10, 12, 3, 1).stride(2)),
            ("1d", line),
            ("3d", volume),
            ("3d_stride2", steps),
        ] {
            cases.add(format!("conv_bare_{kind}_{name}"), conv.alone());
            cases.add(format!("dgrad_bare_{kind}_{name}"), conv.dgrad());
            cases.add(format!("wgrad_bare_{kind}_{name}"), conv.wgrad());
        }
    }
}
