//! The suite `bare`: single convolutions without an epilogue, and their gradients.
//!
//! Programs that call MIOpen's interface send such graphs. Fused layers cannot represent them: the
//! compiler treats a sum that is stored unchanged differently from a sum to which a bias is added.

use crate::blocks::{Convolution, Direction, Epilogue, Layout};
use rotini_graph::{DataType, Graph};

/// Input channels, filters, extent of the input, extent of the filter, stride, groups.
const SHAPES: [(i64, i64, i64, i64, i64, i64); 17] = [
    (64, 64, 56, 1, 1, 1),
    (64, 256, 56, 1, 1, 1),
    (256, 64, 56, 1, 1, 1),
    (256, 512, 28, 1, 2, 1),
    (256, 1024, 14, 1, 1, 1),
    (2048, 512, 7, 1, 1, 1),
    (64, 64, 56, 3, 1, 1),
    (128, 128, 28, 3, 1, 1),
    (128, 128, 56, 3, 2, 1),
    (256, 256, 14, 3, 1, 1),
    (512, 512, 7, 3, 1, 1),
    (3, 64, 224, 7, 2, 1),
    (32, 64, 28, 5, 1, 1),
    (128, 128, 28, 3, 1, 32),
    (96, 96, 56, 3, 1, 96),
    (144, 144, 56, 3, 2, 144),
    (384, 384, 14, 3, 1, 384),
];

/// Default numbers of images.
const BATCHES: [i64; 4] = [1, 2, 8, 32];

/// Returns the shapes for each number of images (1, 2, 8 and 32 if none is chosen), in each layout
/// and direction.
pub(super) fn bare(
    dtype: DataType,
    batch: Option<i64>,
    layouts: &[Layout],
    directions: &[Direction],
) -> Option<Vec<Graph>> {
    let batches = batch.map_or(BATCHES.to_vec(), |batch| vec![batch]);
    let mut graphs = Vec::new();
    for &direction in directions {
        let what = match direction {
            Direction::Forward => "forward",
            Direction::Dgrad => "dgrad",
            Direction::Wgrad => "wgrad",
        };
        for &layout in layouts {
            let layout_name = match layout {
                Layout::First => "nchw",
                Layout::Last => "nhwc",
            };
            let shapes = batches.iter().flat_map(|&n| SHAPES.map(|shape| (n, shape)));
            for (n, (c, k, extent, filter, stride, groups)) in shapes {
                let convolution = Convolution {
                    groups,
                    ..Convolution::square(n, c, k, extent, filter, stride, layout, dtype)
                };
                let of_groups = if groups > 1 {
                    format!("_g{groups}")
                } else {
                    String::new()
                };
                let name = format!(
                    "bare_{what}_{c}to{k}{of_groups}_{filter}x{filter}_s{stride}_at{extent}_n{n}_{layout_name}_{dtype}"
                );
                graphs.push(convolution.graph(&name, direction, Epilogue::None)?);
            }
        }
    }
    Some(graphs)
}
