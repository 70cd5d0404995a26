//! The fused layers of ResNet-50.

use super::case::{Case, FLOATS, Order};
use super::convolution::Conv;
use rotini_graph::PointwiseMode;

/// The layers in Composable Kernel's benchmark `profile_resnet50.sh`: 20 with bias and relu, 4 with
/// a residual too. Columns: residual, C, K, filter, extent, stride, padding.
const LAYERS: [(bool, i64, i64, i64, i64, i64, i64); 24] = [
    (false, 3, 64, 7, 224, 2, 3),
    (false, 64, 64, 1, 56, 1, 0),
    (false, 64, 64, 3, 56, 1, 1),
    (false, 64, 256, 1, 56, 1, 0),
    (false, 256, 64, 1, 56, 1, 0),
    (false, 256, 128, 1, 56, 1, 0),
    (false, 128, 128, 3, 56, 2, 1),
    (false, 128, 512, 1, 28, 1, 0),
    (false, 512, 128, 1, 28, 1, 0),
    (false, 128, 128, 3, 28, 1, 1),
    (false, 512, 256, 1, 28, 1, 0),
    (false, 256, 256, 3, 28, 2, 1),
    (false, 256, 1024, 1, 14, 1, 0),
    (false, 1024, 256, 1, 14, 1, 0),
    (false, 256, 256, 3, 14, 1, 1),
    (false, 1024, 512, 1, 14, 1, 0),
    (false, 512, 512, 3, 14, 2, 1),
    (false, 512, 2048, 1, 7, 1, 0),
    (false, 2048, 512, 1, 7, 1, 0),
    (false, 512, 512, 3, 7, 1, 1),
    (true, 64, 256, 1, 56, 1, 0),
    (true, 128, 512, 1, 28, 1, 0),
    (true, 256, 1024, 1, 14, 1, 0),
    (true, 512, 2048, 1, 7, 1, 0),
];

/// Returns the ResNet-50 layers at a batch size, in both layouts and three types.
#[must_use]
pub fn resnet50(n: i64) -> Vec<Case> {
    let mut cases = Vec::new();
    for (residual, c, k, window, input, stride, padding) in LAYERS {
        for order in Order::BOTH {
            for dtype in FLOATS {
                let conv = Conv::new(n, c, k, input, window, padding, dtype, order).stride(stride);
                let tail = if residual { "add_relu" } else { "relu" };
                let name = format!(
                    "n{n}_{c}to{k}_{window}x{window}_{input}_s{stride}_{tail}_{}_{dtype}",
                    order.name()
                );
                cases.push(Case {
                    name,
                    graph: conv.fused(PointwiseMode::ReluFwd, residual),
                });
            }
        }
    }
    cases
}
