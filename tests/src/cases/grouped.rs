//! Grouped convolutions and their gradients, which have rotini's kernels on AMD GPUs. Depthwise:
//! partial blocks, images at unaligned addresses, every memory order, windows of one to three axes,
//! sums that many workgroups share. And groups of eight channels and more.

use super::case::{Cases, FLOATS, Order};
use super::convolution::Conv;
use rotini_graph::{DataType, PointwiseMode};

/// Shapes: batch, channels, the extents of image and window; padding, stride, dilation.
const SHAPES: [([i64; 4], [i64; 3]); 12] = [
    ([2, 16, 14, 3], [1, 1, 1]),
    ([1, 24, 28, 5], [2, 1, 1]),
    ([3, 7, 7, 5], [2, 1, 1]),
    ([2, 58, 13, 3], [1, 2, 1]),
    ([1, 64, 56, 3], [1, 2, 1]),
    ([2, 100, 9, 7], [3, 1, 1]),
    ([1, 12, 21, 3], [2, 1, 2]),
    ([5, 33, 8, 3], [0, 1, 1]),
    ([2, 40, 12, 1], [0, 1, 1]),
    ([1, 8, 33, 5], [1, 3, 1]),
    ([17, 36, 5, 3], [1, 1, 1]),
    ([2, 20, 16, 8], [4, 2, 1]),
];

/// Shapes: batch, channels, filters, groups; the extents of image and window, padding, stride.
const TILED: [([i64; 4], [i64; 4]); 8] = [
    ([2, 32, 32, 4], [14, 3, 1, 1]),
    ([1, 64, 128, 4], [9, 3, 1, 2]),
    ([3, 64, 32, 2], [7, 3, 1, 1]),
    ([2, 96, 48, 6], [8, 3, 1, 2]),
    ([1, 256, 256, 32], [14, 3, 1, 1]),
    ([2, 64, 64, 8], [10, 1, 0, 1]),
    ([2, 48, 24, 3], [12, 5, 2, 2]),
    ([9, 128, 128, 2], [6, 1, 0, 2]),
];

/// Adds groups of whole tiles of channels and of filters.
pub(super) fn tiled(cases: &mut Cases) {
    for order in Order::BOTH {
        for dtype in [DataType::F16, DataType::Bf16] {
            for ([n, c, k, groups], [input, window, padding, stride]) in TILED {
                let conv = Conv::new(n, c, k, input, window, padding, dtype, order).groups(groups);
                let conv = conv.stride(stride);
                let name = format!("{n}x{c}to{k}x{input}_{window}s{stride}_{}_{dtype}", order.name());
                cases.add(format!("tiled_groups_{name}"), conv.alone());
                cases.add(
                    format!("tiled_groups_fused_{name}"),
                    conv.fused(PointwiseMode::ReluFwd, true),
                );
                cases.add(format!("tiled_groups_dgrad_{name}"), conv.dgrad());
                cases.add(format!("tiled_groups_wgrad_{name}"), conv.wgrad());
            }
        }
    }
}

/// Shapes of small groups: batch, channels, filters, groups; the extents of image and window,
/// padding, stride.
const SMALL: [([i64; 4], [i64; 4]); 7] = [
    ([2, 32, 32, 8], [14, 3, 1, 1]),
    ([1, 16, 32, 16], [11, 3, 1, 2]),
    ([2, 12, 36, 12], [9, 5, 2, 1]),
    ([3, 30, 10, 10], [7, 3, 1, 1]),
    ([1, 24, 48, 6], [28, 3, 1, 1]),
    ([2, 14, 21, 7], [8, 1, 0, 1]),
    ([1, 20, 20, 5], [13, 3, 2, 1]),
];

/// Adds groups of few channels or few filters.
pub(super) fn small(cases: &mut Cases) {
    for order in Order::BOTH {
        for dtype in FLOATS {
            for ([n, c, k, groups], [input, window, padding, stride]) in SMALL {
                let conv = Conv::new(n, c, k, input, window, padding, dtype, order).groups(groups);
                let conv = conv.stride(stride);
                let name = format!("{n}x{c}to{k}x{input}_{window}s{stride}_{}_{dtype}", order.name());
                cases.add(
                    format!("small_groups_fused_{name}"),
                    conv.fused(PointwiseMode::ReluFwd, true),
                );
                cases.add(format!("small_groups_dgrad_{name}"), conv.dgrad());
                if dtype == DataType::F16 {
                    cases.add(format!("small_groups_wgrad_{name}"), conv.wgrad());
                }
            }
        }
    }
}

pub(super) fn depthwise(cases: &mut Cases) {
    for order in Order::BOTH {
        for dtype in FLOATS {
            for ([n, c, input, window], [padding, stride, dilation]) in SHAPES {
                let conv = Conv::new(n, c, c, input, window, padding, dtype, order).groups(c);
                let conv = conv.stride(stride).dilation(dilation);
                let name = format!("{n}x{c}x{input}_{window}s{stride}d{dilation}_{}_{dtype}", order.name());
                cases.add(format!("depthwise_{name}"), conv.alone());
                cases.add(format!("depthwise_dgrad_{name}"), conv.dgrad());
                cases.add(format!("depthwise_wgrad_{name}"), conv.wgrad());
            }
        }
    }
    for dtype in [DataType::F16, DataType::Bf16] {
        for (number, orders) in [
            [Order::Last, Order::First, Order::First],
            [Order::First, Order::Last, Order::Last],
            [Order::First, Order::First, Order::Last],
            [Order::BatchLast; 3],
        ]
        .into_iter()
        .enumerate()
        {
            let mut conv = Conv::new(3, 20, 20, 10, 3, 1, dtype, Order::Last).groups(20);
            conv.orders = orders;
            let name = format!("orders_{number}_{dtype}");
            cases.add(format!("depthwise_{name}"), conv.alone());
            cases.add(format!("depthwise_dgrad_{name}"), conv.dgrad());
            cases.add(format!("depthwise_wgrad_{name}"), conv.wgrad());
            cases.add(
                format!("depthwise_fused_{name}"),
                conv.fused(PointwiseMode::ReluFwd, true),
            );
        }
        for (input, window) in [(vec![37], vec![9]), (vec![5, 9, 6], vec![3, 3, 3])] {
            let mut conv = Conv::new(2, 12, 12, 8, 3, 1, dtype, Order::First).groups(12);
            conv.geometry = rotini_graph::ConvGeometry::same(input.len(), 1);
            (conv.input, conv.window) = (input, window);
            let name = format!("{}d_{dtype}", conv.input.len());
            cases.add(format!("depthwise_{name}"), conv.alone());
            cases.add(format!("depthwise_dgrad_{name}"), conv.dgrad());
            cases.add(format!("depthwise_wgrad_{name}"), conv.wgrad());
        }
        for order in Order::BOTH {
            let uneven = Conv::new(2, 9, 9, 8, 3, 1, dtype, order).groups(9).uneven();
            let name = format!("uneven_{}_{dtype}", order.name());
            cases.add(format!("depthwise_{name}"), uneven.alone());
            cases.add(format!("depthwise_wgrad_{name}"), uneven.wgrad());
            let padded = Conv::new(2, 18, 18, 11, 4, 0, dtype, order)
                .groups(18)
                .padded_unevenly();
            let name = format!("padded_unevenly_{}_{dtype}", order.name());
            cases.add(format!("depthwise_{name}"), padded.alone());
            cases.add(format!("depthwise_dgrad_{name}"), padded.dgrad());
            cases.add(format!("depthwise_wgrad_{name}"), padded.wgrad());
            let fused = Conv::new(2, 32, 32, 15, 5, 2, dtype, order).groups(32).stride(2);
            let name = format!("depthwise_fused_{}_{dtype}", order.name());
            cases.add(name, fused.fused(PointwiseMode::ReluFwd, true));
        }
    }
}
