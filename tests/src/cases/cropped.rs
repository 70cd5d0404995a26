//! Convolutions with negative padding, which crops elements of x: forward, and both gradients. The
//! gradient with respect to x is how frameworks encode a transposed convolution with output
//! padding.

use super::case::{Cases, FLOATS, Order};
use super::convolution::Conv;
use rotini_graph::{ConvGeometry, ConvMode, DataType, Graph, PointwiseMode};

/// Padding before and after each of two spatial axes.
const PADDINGS: [(&str, [[i64; 2]; 2]); 4] = [
    ("after", [[1, 0], [-1, -2]]),
    ("before", [[-1, -3], [0, 1]]),
    ("around", [[-2, -1], [-1, -2]]),
    ("mixed", [[2, -1], [-1, 2]]),
];

fn conv(n: i64, c: i64, k: i64, (dtype, order): (DataType, Order), [pre, post]: [[i64; 2]; 2]) -> Conv {
    let mut conv = Conv::new(n, c, k, 11, 3, 0, dtype, order);
    conv.geometry.pre_padding = pre.to_vec();
    conv.geometry.post_padding = post.to_vec();
    conv
}

/// Adds the three directions of a convolution.
fn all(cases: &mut Cases, name: &str, conv: &Conv) {
    let graphs: [(&str, Graph); 3] = [("conv", conv.alone()), ("dgrad", conv.dgrad()), ("wgrad", conv.wgrad())];
    for (direction, graph) in graphs {
        cases.add(format!("cropped_{direction}_{name}"), graph);
    }
}

pub(super) fn cropped(cases: &mut Cases) {
    for (name, paddings) in PADDINGS {
        for order in Order::BOTH {
            // Few channels, and the minimum for rotini's kernels.
            for (n, c, k, dtype) in [
                (2, 3, 5, DataType::F32),
                (1, 32, 64, DataType::F16),
                (2, 64, 32, DataType::F32),
            ] {
                let one = conv(n, c, k, (dtype, order), paddings);
                let name = format!("{name}_{c}to{k}_{}_{dtype}", order.name());
                all(cases, &name, &one);
                all(cases, &format!("{name}_stride2"), &one.clone().stride(2));
            }
        }
        let few = |dtype| conv(2, 4, 6, (dtype, Order::First), paddings);
        all(cases, &format!("{name}_dilated"), &few(DataType::F32).dilation(2));
        all(cases, &format!("{name}_groups"), &few(DataType::Bf16).groups(2));
        all(cases, &format!("{name}_depthwise"), &{
            let mut depthwise = conv(2, 16, 16, (DataType::F16, Order::Last), paddings).groups(16);
            depthwise.out = DataType::F16;
            depthwise
        });
        let mut turned = few(DataType::F32);
        turned.geometry.mode = ConvMode::Convolution;
        all(cases, &format!("{name}_turned"), &turned);
    }
    let (_, paddings) = PADDINGS[2];
    for dtype in FLOATS {
        let one = conv(2, 8, 16, (dtype, Order::Last), paddings);
        cases.add(
            format!("cropped_conv_bias_relu_{dtype}"),
            one.fused(PointwiseMode::ReluFwd, true),
        );
    }
    // One and three spatial axes.
    for (name, input, window, pre, post) in [
        ("1d", vec![13], vec![3], vec![-2], vec![1]),
        ("3d", vec![5, 6, 7], vec![2, 3, 1], vec![-1, 0, -2], vec![0, -2, 1]),
    ] {
        let mut one = conv(2, 4, 6, (DataType::F32, Order::First), paddings);
        one.geometry = ConvGeometry {
            pre_padding: pre,
            post_padding: post,
            ..ConvGeometry::same(input.len(), 0)
        };
        (one.input, one.window) = (input, window);
        all(cases, name, &one);
        all(cases, &format!("{name}_stride2"), &one.clone().stride(2));
    }
    // A transposed convolution as frameworks encode it: x has two rows and one column more than the
    // windows reach, with stride three.
    let mut transposed = conv(2, 6, 4, (DataType::F32, Order::First), [[1, 1], [-1, 0]]).stride(3);
    transposed.input = vec![12, 11];
    all(cases, "output_padding", &transposed);
}
