//! Convolutions and pooling: windows over spatial dimensions.

use super::Generator;
use rand::RngExt;
use rotini_graph::*;

const RESAMPLE_MODES: [ResampleMode; 3] = [
    ResampleMode::Maxpool,
    ResampleMode::AvgpoolExcludePadding,
    ResampleMode::AvgpoolIncludePadding,
];
const PADDING_MODES: [PaddingMode; 3] = [PaddingMode::NotSet, PaddingMode::NegInf, PaddingMode::Zero];

/// Windows that fit their input: one entry per spatial dimension in each list.
#[derive(Default)]
struct Windows {
    pre_padding: Vec<i64>,
    post_padding: Vec<i64>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    window: Vec<i64>,
    output: Vec<i64>,
}

/// A convolution's dims and attributes, for any direction.
struct Convolution {
    x: Vec<i64>,
    w: Vec<i64>,
    y: Vec<i64>,
    geometry: ConvGeometry,
}

/// A pooling's dims and attributes, for either direction.
struct Pooling {
    x: Vec<i64>,
    y: Vec<i64>,
    windows: Windows,
    mode: ResampleMode,
    padding_mode: PaddingMode,
    /// The types that can hold every position of a channel.
    index_types: &'static [DataType],
}

impl Generator {
    /// Returns dims of a batch, channels and one to three spatial dimensions.
    fn image(&mut self) -> Vec<i64> {
        let mut dims = self.dims_of(3..=5);
        if self.rng.random() {
            for extent in &mut dims[2..] {
                *extent += self.rng.random_range(0..=4);
            }
        }
        dims
    }

    /// Returns random windows. Paddings, strides and dilations are all small, or all so large that
    /// the output is small too.
    fn windows(&mut self, input: &[i64], are_filters: bool) -> Windows {
        let mut windows = Windows::default();
        for &extent in input {
            let unit = if self.rng.random_bool(0.2) { self.long() } else { 1 };
            let pre = self.rng.random_range(0..=2 * unit);
            let post = self.rng.random_range(0..=2 * unit);
            let stride = self.rng.random_range(unit..=3 * unit);
            let (dilation, largest) = if are_filters {
                (self.rng.random_range(1..=2 * unit), 3)
            } else {
                (1, 3 * unit)
            };
            let fitting = (extent + pre + post - 1) / dilation + 1;
            let window = self.rng.random_range(1..=fitting.min(largest));
            let output = conv_output_extent(extent, window, pre, post, stride, dilation).unwrap();
            windows.pre_padding.push(pre);
            windows.post_padding.push(post);
            windows.stride.push(stride);
            windows.dilation.push(dilation);
            windows.window.push(window);
            windows.output.push(output);
        }
        windows
    }

    fn convolution(&mut self) -> Convolution {
        let x = self.image();
        let windows = self.windows(&x[2..], true);
        let groups = self.divisor(x[1]);
        let filters = groups * self.rng.random_range(1..=3);
        Convolution {
            w: [&[filters, x[1] / groups], &windows.window[..]].concat(),
            y: [&[x[0], filters], &windows.output[..]].concat(),
            x,
            geometry: ConvGeometry {
                pre_padding: windows.pre_padding,
                post_padding: windows.post_padding,
                stride: windows.stride,
                dilation: windows.dilation,
                mode: self.pick(&[ConvMode::Convolution, ConvMode::CrossCorrelation]),
            },
        }
    }

    pub(super) fn conv_fprop(&mut self) -> ConvFprop {
        let Convolution { x, w, y, geometry } = self.convolution();
        ConvFprop {
            x: self.input_of(x),
            w: self.input_of(w),
            y: self.output_of(y),
            geometry,
        }
    }

    pub(super) fn conv_dgrad(&mut self) -> ConvDgrad {
        let Convolution { x, w, y, geometry } = self.convolution();
        ConvDgrad {
            dy: self.input_of(y),
            w: self.input_of(w),
            dx: self.output_of(x),
            geometry,
        }
    }

    pub(super) fn conv_wgrad(&mut self) -> ConvWgrad {
        let Convolution { x, w, y, geometry } = self.convolution();
        ConvWgrad {
            x: self.input_of(x),
            dy: self.input_of(y),
            dw: self.output_of(w),
            geometry,
        }
    }

    fn pooling(&mut self) -> Pooling {
        let x = self.image();
        let windows = self.windows(&x[2..], false);
        // Only max pooling has an index, which is optional. Its padding mode must be set if there
        // is padding.
        let mode = if self.full {
            ResampleMode::Maxpool
        } else {
            self.pick(&RESAMPLE_MODES)
        };
        let is_padded = windows
            .pre_padding
            .iter()
            .chain(&windows.post_padding)
            .any(|&padding| padding > 0);
        let padding_modes = if mode == ResampleMode::Maxpool && is_padded {
            &PADDING_MODES[1..]
        } else {
            &PADDING_MODES
        };
        let index_types: &[DataType] = if x[2..].iter().product::<i64>() <= 128 {
            &[DataType::I8, DataType::I32]
        } else {
            &[DataType::I32]
        };
        Pooling {
            y: [&x[..2], &windows.output].concat(),
            x,
            windows,
            mode,
            padding_mode: self.pick(padding_modes),
            index_types,
        }
    }

    pub(super) fn resample_fwd(&mut self) -> ResampleFwd {
        let pooling = self.pooling();
        let is_max = pooling.mode == ResampleMode::Maxpool;
        let has_index = is_max && self.flag();
        ResampleFwd {
            x: self.input_of(pooling.x),
            y: self.output_of(pooling.y.clone()),
            index: has_index.then(|| self.output_among(pooling.y, pooling.index_types)),
            pre_padding: pooling.windows.pre_padding,
            post_padding: pooling.windows.post_padding,
            stride: pooling.windows.stride,
            window: pooling.windows.window,
            resample_mode: pooling.mode,
            padding_mode: pooling.padding_mode,
            // Average pooling may request an index, which is ignored.
            generate_index: (has_index || !is_max) && self.flag(),
        }
    }

    pub(super) fn resample_bwd(&mut self) -> ResampleBwd {
        let pooling = self.pooling();
        let is_max = pooling.mode == ResampleMode::Maxpool;
        ResampleBwd {
            dy: self.input_of(pooling.y.clone()),
            index: is_max.then(|| self.input_among(pooling.y, pooling.index_types)),
            dx: self.output_of(pooling.x),
            pre_padding: pooling.windows.pre_padding,
            post_padding: pooling.windows.post_padding,
            stride: pooling.windows.stride,
            window: pooling.windows.window,
            resample_mode: pooling.mode,
            padding_mode: pooling.padding_mode,
        }
    }
}
