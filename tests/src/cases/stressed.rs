//! Convolutions of shapes that stress a form: partial tiles, windows along one axis or three,
//! strides beyond the window, a different order for each tensor, more groups than are computed one
//! by one.

use super::case::{Cases, Order};
use super::convolution::Conv;
use rotini_graph::{ConvGeometry, DataType};

const LAST: [Order; 3] = [Order::Last; 3];
const FIRST: [Order; 3] = [Order::First; 3];
const MIXED: [Order; 3] = [Order::Last, Order::First, Order::Last];
const BACK: [Order; 3] = [Order::First, Order::Last, Order::First];
const STRANGE: [Order; 3] = [Order::BatchLast; 3];

/// N, C, K and groups, then the spatial extents of input and filter; in f32, with stride and
/// dilation 1 and no padding.
fn conv<const S: usize>(dims: [i64; 4], input: [i64; S], window: [i64; S], orders: [Order; 3]) -> Conv {
    let [n, c, k, groups] = dims;
    let mut conv = Conv::new(n, c, k, 0, 0, 0, DataType::F32, Order::Last).groups(groups);
    (conv.input, conv.window, conv.orders) = (input.to_vec(), window.to_vec(), orders);
    conv.geometry = ConvGeometry::same(S, 0);
    conv
}

impl Conv {
    fn padded(mut self, padding: &[(i64, i64)]) -> Self {
        (self.geometry.pre_padding, self.geometry.post_padding) = padding.iter().copied().unzip();
        self
    }

    fn pad(self, padding: i64) -> Self {
        let padding = vec![(padding, padding); self.input.len()];
        self.padded(&padding)
    }

    fn strides(mut self, stride: &[i64]) -> Self {
        self.geometry.stride = stride.to_vec();
        self
    }

    fn dilations(mut self, dilation: &[i64]) -> Self {
        self.geometry.dilation = dilation.to_vec();
        self
    }

    /// Sets the operands' type, and a result type that holds every sum of small integers.
    fn of(mut self, dtype: DataType) -> Self {
        self.dtype = dtype;
        self.out = match dtype {
            DataType::F64 => DataType::F64,
            DataType::I8 | DataType::U8 => DataType::I32,
            _ => DataType::F32,
        };
        self.compute = self.out;
        self
    }
}

/// Adds all cases.
pub(super) fn stressed(cases: &mut Cases) {
    let mut add = |kind: &str, convs: Vec<Conv>| {
        for (index, conv) in convs.iter().enumerate() {
            cases.add(format!("conv_stressed_{kind}_{index}"), conv.alone());
        }
    };
    add("windows", windows());
    add("matmul", matmuls());
    add("axes", axes());
    add("groups", groups());
    add("depthwise", depthwise());
    // Many terms of few operands: the partial sums take more memory than everything else.
    add(
        "parts",
        vec![conv([1, 8, 16, 1], [4863], [768], FIRST).of(DataType::F16)],
    );
    for dtype in [DataType::F16, DataType::Bf16, DataType::F64, DataType::I8, DataType::U8] {
        add(&dtype.to_string(), types().map(|conv| conv.of(dtype)).into());
    }
}

fn windows() -> Vec<Conv> {
    vec![
        conv([1, 4, 8, 1], [6, 8], [3, 3], LAST),
        conv([1, 5, 7, 1], [13, 17], [3, 3], LAST).pad(1),
        conv([2, 5, 7, 1], [13, 17], [3, 3], FIRST).pad(1),
        conv([3, 3, 21, 1], [9, 23], [3, 3], LAST).pad(1),
        conv([2, 16, 33, 1], [7, 11], [3, 3], MIXED),
        conv([2, 16, 33, 1], [7, 11], [3, 3], BACK),
        conv([3, 2, 5, 1], [5, 6], [2, 2], STRANGE),
        conv([1, 3, 18, 1], [24, 37], [7, 7], FIRST).pad(3).strides(&[2, 2]),
        conv([1, 8, 17, 1], [19, 29], [3, 3], LAST).pad(2).dilations(&[2, 2]),
        conv([1, 4, 5, 1], [8, 8], [3, 3], LAST).padded(&[(2, 1), (0, 3)]),
        // Trailing rows and columns that no window reaches; a stride beyond the window; whole tiles
        // that need no more padding.
        conv([1, 3, 4, 1], [14, 40], [2, 2], LAST).strides(&[5, 4]),
        conv([1, 3, 4, 1], [9, 27], [3, 2], LAST).strides(&[4, 2]),
        conv([1, 3, 17, 1], [5, 12], [3, 3], LAST).padded(&[(0, 0), (0, 9)]),
        conv([1, 1, 1, 1], [6, 9], [3, 3], LAST).pad(1),
    ]
}

fn types() -> [Conv; 6] {
    [
        conv([2, 6, 18, 1], [6, 9], [3, 3], LAST).pad(1),
        conv([1, 6, 18, 1], [6, 9], [3, 3], FIRST),
        conv([2, 6, 18, 1], [5, 7], [1, 1], LAST),
        conv([2, 6, 18, 1], [5, 7], [1, 1], FIRST),
        conv([1, 6, 12, 6], [6, 9], [3, 3], LAST).pad(1),
        conv([1, 6, 4, 2], [6, 9], [3, 3], LAST).pad(1),
    ]
}

fn matmuls() -> Vec<Conv> {
    vec![
        conv([1, 16, 8, 1], [6, 6], [1, 1], LAST),
        conv([3, 16, 8, 1], [6, 6], [1, 1], FIRST),
        conv([1, 7, 19, 1], [5, 9], [1, 1], MIXED),
        conv([2, 7, 19, 1], [5, 9], [1, 1], BACK),
        conv([2, 9, 5, 1], [7, 8], [1, 1], LAST).strides(&[2, 3]),
        conv([2, 9, 5, 1], [7, 8], [1, 1], FIRST).strides(&[2, 3]),
        conv([1, 9, 5, 1], [7, 8], [1, 1], LAST).padded(&[(1, 2), (0, 1)]),
        conv([3, 4, 5, 1], [3, 3], [1, 1], STRANGE),
        conv([1, 24, 40, 1], [1, 1], [1, 1], FIRST),
        conv([4, 8, 12, 4], [5, 6], [1, 1], LAST),
        conv([1, 8, 12, 2], [5, 6], [1, 1], FIRST),
    ]
}

/// Windows along one axis or three, and outputs that extend along one axis or none.
fn axes() -> Vec<Conv> {
    vec![
        conv([2, 6, 4, 1], [15], [3], LAST).pad(1),
        conv([2, 6, 20, 1], [15], [3], FIRST).pad(1),
        conv([2, 6, 4, 2], [15], [3], LAST).strides(&[2]).dilations(&[2]),
        conv([1, 5, 7, 1], [9, 12], [1, 5], FIRST),
        conv([1, 5, 7, 1], [9, 12], [5, 1], LAST),
        conv([2, 5, 7, 1], [3, 12], [3, 3], LAST),
        conv([2, 5, 7, 1], [12, 3], [3, 3], FIRST),
        conv([3, 4, 5, 1], [4, 4], [4, 4], LAST),
        conv([1, 4, 5, 1], [1, 1], [3, 3], FIRST).pad(1),
        conv([1, 4, 6, 1], [5, 6, 4], [3, 2, 3], LAST).pad(1),
        conv([2, 4, 6, 2], [5, 6, 4], [3, 2, 3], FIRST)
            .pad(1)
            .strides(&[2, 1, 2]),
        conv([1, 3, 6, 1], [4, 9, 10], [1, 3, 3], LAST),
        conv([2, 3, 6, 1], [4, 9, 10], [1, 3, 3], FIRST).strides(&[2, 1, 1]),
        conv([1, 3, 6, 1], [6, 9, 5], [3, 3, 1], LAST),
        conv([1, 3, 6, 1], [5, 5, 5], [1, 1, 1], FIRST),
    ]
}

fn groups() -> Vec<Conv> {
    vec![
        conv([1, 8, 6, 2], [7, 9], [3, 3], LAST).pad(1),
        conv([2, 8, 6, 2], [7, 9], [3, 3], FIRST).pad(1),
        conv([2, 12, 8, 4], [7, 11], [3, 3], MIXED).pad(1).strides(&[2, 1]),
        conv([1, 12, 72, 4], [7, 13], [3, 2], BACK),
        conv([1, 32, 48, 16], [6, 9], [3, 3], LAST).pad(1).dilations(&[1, 2]),
        conv([1, 128, 128, 64], [4, 5], [2, 2], FIRST),
        conv([1, 144, 72, 72], [4, 5], [2, 2], LAST),
        conv([2, 144, 72, 72], [4, 5], [1, 1], FIRST),
    ]
}

fn depthwise() -> Vec<Conv> {
    vec![
        conv([2, 16, 16, 16], [10, 11], [3, 3], FIRST).pad(1),
        conv([1, 30, 30, 30], [11, 23], [5, 5], LAST).padded(&[(2, 2), (3, 1)]),
        conv([2, 7, 7, 7], [9, 21], [3, 3], MIXED).strides(&[2, 2]),
        conv([1, 6, 12, 6], [8, 13], [3, 3], LAST).pad(1),
        conv([2, 6, 18, 6], [8, 13], [3, 3], FIRST).pad(1).strides(&[1, 2]),
        conv([1, 2, 40, 2], [8, 8], [3, 3], BACK).pad(1).dilations(&[2, 2]),
        conv([2, 100, 100, 100], [17], [3], LAST).pad(1),
        conv([1, 8, 8, 8], [5, 6, 9], [3, 3, 3], FIRST).pad(1),
        conv([1, 8, 16, 8], [6, 7], [1, 1], LAST),
        conv([2, 5, 5, 5], [3, 3], [3, 3], STRANGE),
    ]
}
