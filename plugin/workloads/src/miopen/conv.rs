//! The drivers `conv` and `CBAInfer`.

use super::common::{activate, by, layout};
use super::options::{Made, Options};
use crate::blocks::{Convolution, Layout, buffer};
use rotini_graph::{BatchnormInference, ConvDgrad, ConvFprop, ConvWgrad, DataType, Graph, GraphBuilder, PointwiseMode};

const F32: DataType = DataType::F32;

fn letter(layout: Layout) -> &'static str {
    match layout {
        Layout::First => "first",
        Layout::Last => "last",
    }
}

impl Convolution {
    /// Reads the layer of a command line, whose input has the layout `layout`.
    fn read(options: &Options, axes: &[&str], layout: Layout, dtype: DataType) -> Made<Self> {
        let extents = |prefix: &str| {
            let names = axes.iter().map(|axis| format!("{prefix}_{axis}"));
            names.map(|name| options.extent(&name)).collect::<Made<Vec<_>>>()
        };
        options.only("pad_val", 0.0)?;
        let mut layer = Convolution {
            n: options.extent("batchsize")?,
            c: options.extent("in_channels")?,
            k: options.extent("out_channels")?,
            // MIOpen takes 0 groups for 1.
            groups: options.number::<i64>("group_count")?.max(1),
            input: extents("in")?,
            filter: extents("fil")?,
            padding: Vec::new(),
            stride: extents("conv_stride")?,
            dilation: extents("dilation")?,
            layout,
            dtype,
        };
        for (axis, letter) in axes.iter().enumerate() {
            let at = |values: &[i64]| values.get(axis).copied().unwrap_or(1);
            let (input, filter, stride) = (at(&layer.input), at(&layer.filter), at(&layer.stride));
            let padding = match options.text("pad_mode") {
                "valid" => 0,
                "same" => {
                    let rest = input.checked_rem(stride).unwrap_or(0);
                    filter.saturating_sub(if rest == 0 { stride } else { rest }).max(0) / 2
                }
                "default" | "conv" | "trans" => options.number(&format!("pad_{letter}"))?,
                other => return Err(format!("the padding mode {other}")),
            };
            layer.padding.push(padding);
        }
        if layer.c % layer.groups != 0 || layer.k % layer.groups != 0 {
            return Err(format!("{} groups do not divide the channels", layer.groups));
        }
        Ok(layer)
    }

    /// Returns the spatial extents of the convolution's output.
    fn extents(&self) -> Made<Vec<i64>> {
        self.output().ok_or_else(misfit)
    }

    /// Returns the spatial extents of a transposed convolution's output: the smallest input extents
    /// from which a convolution gives the layer's input extents, plus `more` elements per axis.
    fn origin(&self, more: &[i64]) -> Made<Vec<i64>> {
        let least = |axis: usize| {
            let lists = [&self.input, &self.filter, &self.padding, &self.stride, &self.dilation];
            let [input, filter, padding, stride, dilation] = lists.map(|list| list.get(axis).copied().unwrap_or(1));
            let reach = filter.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
            let all = input.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)?;
            all.checked_sub(padding.checked_mul(2)?).filter(|&extent| extent > 0)
        };
        let least: Vec<i64> = (0..self.input.len())
            .map(least)
            .collect::<Option<_>>()
            .ok_or_else(misfit)?;
        Ok(least
            .iter()
            .zip(more)
            .map(|(extent, more)| extent.saturating_add(*more))
            .collect())
    }

    fn name(&self, what: &str) -> String {
        let Convolution {
            n,
            c,
            k,
            groups,
            input,
            filter,
            stride,
            layout,
            dtype,
            ..
        } = self;
        let (input, filter, stride, order) = (by(input), by(filter), by(stride), letter(*layout));
        format!("conv_{what}_n{n}_c{c}_{input}_k{k}_{filter}_s{stride}_g{groups}_{order}_{dtype}")
    }
}

fn misfit() -> String {
    "the filter does not fit the padded input".to_owned()
}

/// Returns the graphs of a layer's output and gradients, as many as `forw` requests.
pub(super) fn conv(options: &Options, dtype: DataType) -> Made<Vec<Graph>> {
    let axes: &[&str] = match options.text("spatial_dim") {
        "2" => &["h", "w"],
        "3" => &["d", "h", "w"],
        other => return Err(format!("{other} spatial dimensions")),
    };
    for name in ["in_cast_type", "out_cast_type", "wei_cast_type"] {
        if options.text(name) != "-1" {
            return Err(format!(
                "{name}: a graph says types by its tensors, and this changes them on the way"
            ));
        }
    }
    if !matches!(options.text("tensor_vect"), "0" | "none") {
        return Err("tensor_vect: a graph has no vectors of channels here".to_owned());
    }
    let layouts = ["in_layout", "fil_layout", "out_layout"].map(|name| layout(options.text(name)));
    let [inputs, filters, outputs] = layouts;
    let (inputs, filters, outputs) = (inputs?, filters?, outputs?);
    let layer = Convolution::read(options, axes, inputs, dtype)?;
    let directions = match options.number::<u32>("forw")? {
        0 => 7,
        bits @ 1..=7 => bits,
        other => return Err(format!("forw is {other}")),
    };
    let is_transposed = match options.text("mode") {
        "conv" => false,
        "trans" => true,
        other => return Err(format!("the mode {other}")),
    };
    let bias = options.number::<i64>("bias")? != 0;
    let is_integer = dtype == DataType::I8;
    let mut graphs = Vec::new();
    // The three directions, which MIOpen calls forward, backward and weights.
    for (bit, what) in [(1, "fwd"), (2, "bwd"), (4, "wrw")] {
        if directions & bit == 0 {
            continue;
        }
        if is_integer && bit != 1 {
            return Err("integers have no gradients: forw must be 1".to_owned());
        }
        let mut b = GraphBuilder::new(&layer.name(what));
        let in_dims = [&[layer.n, layer.c], layer.input.as_slice()].concat();
        let (fil_channels, out_spatial) = if is_transposed {
            let more: Made<Vec<i64>> = axes
                .iter()
                .map(|axis| options.number(&format!("trans_output_pad_{axis}")))
                .collect();
            ([layer.c, layer.k / layer.groups], layer.origin(&more?)?)
        } else {
            ([layer.k, layer.c / layer.groups], layer.extents()?)
        };
        let fil_dims = [fil_channels.as_slice(), layer.filter.as_slice()].concat();
        let out_dims = [&[layer.n, layer.k], out_spatial.as_slice()].concat();
        let geometry = layer.geometry();
        let (compute, out_type) = if is_integer {
            (DataType::I32, DataType::I32)
        } else {
            (F32, dtype)
        };
        let x = |b: &mut GraphBuilder, name: &str| buffer(b, name, dtype, &in_dims, inputs);
        let w = |b: &mut GraphBuilder, name: &str| buffer(b, name, dtype, &fil_dims, filters);
        let y = |b: &mut GraphBuilder, name: &str| buffer(b, name, out_type, &out_dims, outputs);
        match bit {
            1 => {
                let (x, w) = (x(&mut b, "x"), w(&mut b, "w"));
                let out = if bias {
                    b.virtual_tensor("conv", compute, &out_dims)
                } else {
                    y(&mut b, "y")
                };
                if is_transposed {
                    b.node(
                        "conv",
                        compute,
                        ConvDgrad {
                            dy: x,
                            w,
                            dx: out,
                            geometry,
                        },
                    );
                } else {
                    b.node("conv", compute, ConvFprop { x, w, y: out, geometry });
                }
                if bias {
                    let mut channel = vec![1; out_dims.len()];
                    if let Some(extent) = channel.get_mut(1) {
                        *extent = layer.k;
                    }
                    let bias = b.buffer("bias", out_type, &channel);
                    let y = y(&mut b, "y");
                    b.pointwise(compute, PointwiseMode::Add, &[out, bias], y);
                }
            }
            2 => {
                let (dy, w, dx) = (y(&mut b, "dy"), w(&mut b, "w"), x(&mut b, "dx"));
                if is_transposed {
                    b.node(
                        "dgrad",
                        compute,
                        ConvFprop {
                            x: dy,
                            w,
                            y: dx,
                            geometry,
                        },
                    );
                } else {
                    b.node("dgrad", compute, ConvDgrad { dy, w, dx, geometry });
                }
            }
            _ => {
                let (x, dy, dw) = (x(&mut b, "x"), y(&mut b, "dy"), w(&mut b, "dw"));
                if is_transposed {
                    b.node(
                        "wgrad",
                        compute,
                        ConvWgrad {
                            x: dy,
                            dy: x,
                            dw,
                            geometry,
                        },
                    );
                } else {
                    b.node("wgrad", compute, ConvWgrad { x, dy, dw, geometry });
                }
            }
        }
        graphs.push(b.build());
    }
    Ok(graphs)
}

/// Returns the graph of a fused convolution, bias, batchnorm and activation; `fusion_mode` selects
/// the steps.
pub(super) fn fused(options: &Options, dtype: DataType) -> Made<Graph> {
    let (name, [has_conv, has_bias, has_norm, has_activation]) = match options.text("fusion_mode") {
        "0" => ("cbna", [true, true, true, true]),
        "1" => ("cna", [true, false, true, true]),
        "2" => ("na", [false, false, true, true]),
        "3" => ("cn", [true, false, true, false]),
        "4" => ("cba", [true, true, false, true]),
        "5" => ("ca", [true, false, false, true]),
        "6" => ("cb", [true, true, false, false]),
        other => return Err(format!("fusion_mode is {other}")),
    };
    if has_norm && options.text("bnMode") != "1" {
        return Err("bnMode 0: a graph has statistics for each channel, not for each activation".to_owned());
    }
    let layer = Convolution::read(options, &["h", "w"], Layout::First, dtype)?;
    let in_dims = [&[layer.n, layer.c], layer.input.as_slice()].concat();
    let (dims, channels) = if has_conv {
        ([&[layer.n, layer.k], layer.extents()?.as_slice()].concat(), layer.k)
    } else {
        (in_dims.clone(), layer.c)
    };
    let mut b = GraphBuilder::new(&layer.name(name));
    let mut last = b.buffer("x", dtype, &in_dims);
    let parameter = |b: &mut GraphBuilder, name: &str, dtype| b.buffer(name, dtype, &[1, channels, 1, 1]);
    let mut left = [has_conv, has_bias, has_norm, has_activation]
        .into_iter()
        .filter(|step| *step)
        .count();
    // The last step writes the output.
    let mut out = |b: &mut GraphBuilder, name: &str| {
        left = left.saturating_sub(1);
        if left == 0 {
            b.buffer("y", dtype, &dims)
        } else {
            b.virtual_tensor(name, F32, &dims)
        }
    };
    if has_conv {
        let fil_dims = [&[layer.k, layer.c / layer.groups], layer.filter.as_slice()].concat();
        let w = b.buffer("w", dtype, &fil_dims);
        let y = out(&mut b, "conv");
        b.conv_fprop(F32, last, w, y, layer.geometry());
        last = y;
    }
    if has_bias {
        let bias = parameter(&mut b, "bias", dtype);
        let y = out(&mut b, "biased");
        b.pointwise(F32, PointwiseMode::Add, &[last, bias], y);
        last = y;
    }
    if has_norm {
        let [mean, inv_variance, scale, bias] =
            ["mean", "inv_variance", "scale", "shift"].map(|name| parameter(&mut b, name, F32));
        let y = out(&mut b, "normal");
        let op = BatchnormInference {
            x: last,
            mean,
            inv_variance,
            scale,
            bias,
            y,
        };
        b.node("batchnorm", F32, op);
        last = y;
    }
    if has_activation {
        let y = out(&mut b, "activated");
        activate(&mut b, options, "activMode", last, y)?;
    }
    Ok(b.build())
}
