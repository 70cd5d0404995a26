//! Pooling, forward and backward.

use super::case::{Cases, Data, FLOATS, Order};
use anyhow::Result;
use rotini_graph::{
    ConvGeometry, DataType, Graph, GraphBuilder, PaddingMode, PointwiseMode, ResampleBwd, ResampleFwd, ResampleMode,
    TensorId, TensorKind,
};
use rotini_reference::Profile;

const MODES: [(&str, ResampleMode, PaddingMode); 4] = [
    ("max", ResampleMode::Maxpool, PaddingMode::NegInf),
    ("max_zero", ResampleMode::Maxpool, PaddingMode::Zero),
    ("avg_exclude", ResampleMode::AvgpoolExcludePadding, PaddingMode::Zero),
    ("avg_include", ResampleMode::AvgpoolIncludePadding, PaddingMode::Zero),
];

/// The geometry of a pooling, and its types.
#[derive(Clone, Debug)]
struct Pool {
    x: Vec<i64>,
    pre_padding: Vec<i64>,
    post_padding: Vec<i64>,
    stride: Vec<i64>,
    window: Vec<i64>,
    mode: ResampleMode,
    padding_mode: PaddingMode,
    dtype: DataType,
    compute: DataType,
    order: Order,
}

impl Pool {
    /// Sets square windows over all spatial axes, computed in f32.
    fn new(
        x: &[i64],
        padding: i64,
        stride: i64,
        window: i64,
        (mode, padding_mode): (ResampleMode, PaddingMode),
    ) -> Self {
        let spatial = x.len() - 2;
        Pool {
            x: x.to_vec(),
            pre_padding: vec![padding; spatial],
            post_padding: vec![padding; spatial],
            stride: vec![stride; spatial],
            window: vec![window; spatial],
            mode,
            padding_mode,
            dtype: DataType::F32,
            compute: DataType::F32,
            order: Order::First,
        }
    }

    fn of(mut self, dtype: DataType, order: Order) -> Self {
        (self.dtype, self.order) = (dtype, order);
        self
    }

    fn output(&self) -> Vec<i64> {
        let mut dims = self.x[..2].to_vec();
        for axis in 0..self.window.len() {
            let padded = self.x[axis + 2] + self.pre_padding[axis] + self.post_padding[axis];
            dims.push((padded - self.window[axis]) / self.stride[axis] + 1);
        }
        dims
    }

    fn forward_op(&self, x: TensorId, y: TensorId, index: Option<TensorId>) -> ResampleFwd {
        ResampleFwd {
            x,
            y,
            index,
            pre_padding: self.pre_padding.clone(),
            post_padding: self.post_padding.clone(),
            stride: self.stride.clone(),
            window: self.window.clone(),
            resample_mode: self.mode,
            padding_mode: self.padding_mode,
            generate_index: index.is_some(),
        }
    }

    fn backward_op(&self, dy: TensorId, dx: TensorId, index: Option<TensorId>) -> ResampleBwd {
        ResampleBwd {
            dy,
            index,
            dx,
            pre_padding: self.pre_padding.clone(),
            post_padding: self.post_padding.clone(),
            stride: self.stride.clone(),
            window: self.window.clone(),
            resample_mode: self.mode,
            padding_mode: self.padding_mode,
        }
    }

    /// Builds the forward pass, with an optional index of a type.
    fn forward(&self, index: Option<DataType>) -> Graph {
        let mut b = GraphBuilder::new("pool");
        let x = self.order.buffer(&mut b, "x", self.dtype, &self.x);
        let y = self.order.buffer(&mut b, "y", self.dtype, &self.output());
        let index = index.map(|dtype| self.order.buffer(&mut b, "index", dtype, &self.output()));
        b.node("pool", self.compute, self.forward_op(x, y, index));
        b.build()
    }

    /// Builds the backward pass; for a maximum, the index is an input.
    fn backward(&self) -> Graph {
        let mut b = GraphBuilder::new("pool backward");
        let dy = self.order.buffer(&mut b, "dy", self.dtype, &self.output());
        let is_max = self.mode == ResampleMode::Maxpool;
        let index = is_max.then(|| self.order.buffer(&mut b, "index", DataType::I32, &self.output()));
        let dx = self.order.buffer(&mut b, "dx", self.dtype, &self.x);
        b.node("pool", self.compute, self.backward_op(dy, dx, index));
        b.build()
    }

    /// Builds a maximum forward and backward in one graph, with the index stored or virtual.
    fn both(&self, stored: bool) -> Graph {
        let mut b = GraphBuilder::new("pool both");
        let dims = self.output();
        let x = self.order.buffer(&mut b, "x", self.dtype, &self.x);
        let y = self.order.buffer(&mut b, "y", self.dtype, &dims);
        let dy = self.order.buffer(&mut b, "dy", self.dtype, &dims);
        let index = if stored {
            self.order.buffer(&mut b, "index", DataType::I32, &dims)
        } else {
            b.virtual_tensor("index", DataType::I32, &dims)
        };
        let dx = self.order.buffer(&mut b, "dx", self.dtype, &self.x);
        b.node("pool", self.compute, self.forward_op(x, y, Some(index)));
        b.node("unpool", self.compute, self.backward_op(dy, dx, Some(index)));
        b.build()
    }
}

pub(super) fn forward(cases: &mut Cases) {
    for (mode, resample, padding) in MODES {
        let modes = (resample, padding);
        for order in Order::BOTH {
            let order_name = order.name();
            for dtype in FLOATS {
                let pool = Pool::new(&[2, 5, 9, 9], 1, 2, 3, modes).of(dtype, order);
                cases.add(format!("pool_{mode}_{order_name}_{dtype}"), pool.forward(None));
            }
            let f32 = |x: &[i64], padding, stride, window| {
                Pool::new(x, padding, stride, window, modes).of(DataType::F32, order)
            };
            cases.add(
                format!("pool_{mode}_2x2_{order_name}"),
                f32(&[1, 8, 8, 8], 0, 2, 2).forward(None),
            );
            cases.add(
                format!("pool_{mode}_global_{order_name}"),
                f32(&[2, 6, 5, 5], 0, 1, 5).forward(None),
            );
            cases.add(
                format!("pool_{mode}_1x1_{order_name}"),
                f32(&[2, 3, 5, 4], 0, 1, 1).forward(None),
            );
            cases.add(
                format!("pool_{mode}_stride_beyond_window_{order_name}"),
                f32(&[1, 3, 11, 11], 0, 4, 2).forward(None),
            );
            // The last windows end before the input does, whether there is one of them or two.
            for extent in [6, 7] {
                cases.add(
                    format!("pool_{mode}_rest_of_{extent}_{order_name}"),
                    f32(&[1, 3, extent, extent], 0, 4, 3).forward(None),
                );
            }
            cases.add(
                format!("pool_{mode}_one_pixel_{order_name}"),
                f32(&[2, 4, 1, 1], 1, 1, 3).forward(None),
            );
            cases.add(
                format!("pool_{mode}_1d_{order_name}"),
                f32(&[2, 4, 13], 1, 2, 3).forward(None),
            );
            cases.add(
                format!("pool_{mode}_3d_{order_name}"),
                f32(&[1, 3, 4, 5, 6], 1, 2, 3).forward(None),
            );
            let mut uneven = f32(&[2, 3, 7, 10], 0, 1, 1);
            uneven.pre_padding = vec![1, 0];
            uneven.post_padding = vec![0, 2];
            uneven.stride = vec![1, 3];
            uneven.window = vec![2, 4];
            cases.add(format!("pool_{mode}_uneven_{order_name}"), uneven.forward(None));
        }
        // More than one vector of pixels or channels, with and without a remainder.
        for (channels, extent, padding, stride, window) in [
            (20, 39, 1, 2, 3),
            (32, 34, 1, 1, 3),
            (7, 64, 0, 2, 2),
            (16, 50, 2, 3, 5),
            (48, 9, 0, 1, 3),
        ] {
            for order in Order::BOTH {
                let pool = Pool::new(&[1, channels, extent, extent], padding, stride, window, modes);
                let name = format!("pool_{mode}_vectors_of_{channels}x{extent}_{}", order.name());
                cases.add(name, pool.of(DataType::F32, order).forward(None));
            }
        }
        // Windows that cover only padding.
        let beyond = Pool::new(&[1, 2, 3, 3], 2, 1, 2, modes);
        cases.add(format!("pool_{mode}_padding_only"), beyond.forward(None));
        // One window: the next one would be at an offset beyond 32 bits.
        for step in [1 << 28, 1 << 31] {
            let far = Pool::new(&[1, 9, 5, 5], 1, step, 3, modes);
            cases.add(format!("pool_{mode}_step_of_{step}"), far.forward(None));
        }
        let wide = Pool::new(&[1, 2, 9, 8], 3, 1, 7, modes);
        cases.add(format!("pool_{mode}_wide"), wide.forward(None));
        let mut double = Pool::new(&[1, 3, 6, 6], 1, 2, 3, modes).of(DataType::F64, Order::First);
        double.compute = DataType::F64;
        cases.add(format!("pool_{mode}_f64"), double.forward(None));
    }
}

pub(super) fn index(cases: &mut Cases) {
    for (mode, resample, padding) in MODES.into_iter().take(2) {
        for order in Order::BOTH {
            let name = order.name();
            for dtype in FLOATS {
                let pool = Pool::new(&[2, 3, 7, 7], 1, 2, 3, (resample, padding)).of(dtype, order);
                cases.add(
                    format!("pool_{mode}_index_{name}_{dtype}"),
                    pool.forward(Some(DataType::I32)),
                );
            }
            let f32 = |x: &[i64], padding_extent, stride, window| {
                Pool::new(x, padding_extent, stride, window, (resample, padding)).of(DataType::F32, order)
            };
            cases.add(
                format!("pool_{mode}_index_i8_{name}"),
                f32(&[1, 4, 8, 8], 0, 2, 2).forward(Some(DataType::I8)),
            );
            cases.add(
                format!("pool_{mode}_index_3d_{name}"),
                f32(&[1, 2, 4, 5, 4], 1, 2, 3).forward(Some(DataType::I32)),
            );
            cases.add(
                format!("pool_{mode}_index_padding_only_{name}"),
                f32(&[1, 2, 3, 3], 2, 1, 2).forward(Some(DataType::I32)),
            );
            cases.add(
                format!("pool_{mode}_index_global_{name}"),
                f32(&[2, 3, 4, 5], 0, 1, 4).forward(Some(DataType::I32)),
            );
            cases.add(
                format!("pool_{mode}_index_1d_{name}"),
                f32(&[2, 2, 9], 1, 1, 3).forward(Some(DataType::I32)),
            );
        }
    }
}

pub(super) fn backward(cases: &mut Cases) {
    for (mode, resample, padding) in MODES {
        let modes = (resample, padding);
        for order in Order::BOTH {
            let name = order.name();
            for dtype in FLOATS {
                let pool = Pool::new(&[2, 3, 5, 5], 1, 2, 3, modes).of(dtype, order);
                cases.add(format!("pool_backward_{mode}_{name}_{dtype}"), pool.backward());
                if resample == ResampleMode::Maxpool {
                    let pool = Pool::new(&[2, 3, 9, 9], 1, 2, 3, modes).of(dtype, order);
                    cases.add(
                        format!("pool_both_{mode}_{name}_{dtype}"),
                        pool.both(dtype == DataType::F16),
                    );
                }
            }
            let f32 = |x: &[i64], padding, stride, window| {
                Pool::new(x, padding, stride, window, modes).of(DataType::F32, order)
            };
            cases.add(
                format!("pool_backward_{mode}_overlapping_{name}"),
                f32(&[1, 2, 4, 4], 1, 1, 3).backward(),
            );
            let apart = f32(&[1, 2, 11, 11], 0, 4, 2);
            if resample == ResampleMode::Maxpool {
                cases.add(
                    format!("pool_both_{mode}_stride_beyond_window_{name}"),
                    apart.both(true),
                );
            } else {
                cases.add(
                    format!("pool_backward_{mode}_stride_beyond_window_{name}"),
                    apart.backward(),
                );
            }
            cases.add(
                format!("pool_backward_{mode}_global_{name}"),
                f32(&[2, 4, 3, 3], 0, 1, 3).backward(),
            );
            cases.add(
                format!("pool_backward_{mode}_one_pixel_{name}"),
                f32(&[2, 4, 1, 1], 1, 1, 3).backward(),
            );
            cases.add(
                format!("pool_backward_{mode}_padding_only_{name}"),
                f32(&[1, 2, 3, 3], 2, 1, 2).backward(),
            );
            let mut uneven = f32(&[2, 3, 7, 10], 0, 1, 1);
            uneven.pre_padding = vec![1, 0];
            uneven.post_padding = vec![0, 2];
            uneven.stride = vec![1, 3];
            uneven.window = vec![2, 4];
            cases.add(format!("pool_backward_{mode}_uneven_{name}"), uneven.backward());
            cases.add(
                format!("pool_backward_{mode}_1d_{name}"),
                f32(&[2, 3, 7], 1, 2, 3).backward(),
            );
            cases.add(
                format!("pool_backward_{mode}_3d_{name}"),
                f32(&[1, 2, 3, 4, 3], 1, 2, 3).backward(),
            );
        }
    }
}

pub(super) fn types(cases: &mut Cases) {
    use DataType::{F4E2M1, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, U8};
    for (mode, resample, padding) in MODES {
        for (dtype, compute) in [
            (I8, F32),
            (F8E4M3, F32),
            (F8E5M2, F32),
            (F4E2M1, F32),
            (U8, F32),
            (I32, F64),
            (F16, F16),
            (I8, I32),
            (U8, I32),
            (I32, I32),
        ] {
            if compute == I32 && resample != ResampleMode::Maxpool {
                continue;
            }
            for order in Order::BOTH {
                let mut pool = Pool::new(&[2, 3, 7, 7], 1, 2, 3, (resample, padding)).of(dtype, order);
                pool.compute = compute;
                let index = (resample == ResampleMode::Maxpool).then_some(I32);
                let name = format!("pool_{mode}_{dtype}_in_{compute}_{}", order.name());
                cases.add(name, pool.forward(index));
            }
        }
        let mut double = Pool::new(&[1, 3, 6, 6], 1, 2, 3, (resample, padding)).of(F64, Order::Last);
        double.compute = F64;
        cases.add(format!("pool_backward_{mode}_f64"), double.backward());
        let eight = Pool::new(&[1, 3, 6, 6], 1, 2, 3, (resample, padding)).of(F8E5M2, Order::Last);
        cases.add(format!("pool_backward_{mode}_f8_e5m2"), eight.backward());
        let mut half = Pool::new(&[1, 2, 3, 3], 2, 1, 2, (resample, padding)).of(F16, Order::First);
        half.compute = F16;
        cases.add(format!("pool_{mode}_padding_only_f16"), half.forward(None));
    }
}

pub(super) fn fused(cases: &mut Cases) {
    const F32: DataType = DataType::F32;
    for (mode, resample, padding) in MODES {
        // A different order for each tensor, and gaps.
        let pool = Pool::new(&[2, 3, 6, 6], 1, 2, 3, (resample, padding));
        let is_max = resample == ResampleMode::Maxpool;
        let mut b = GraphBuilder::new("pool mixed");
        let x = Order::Last.buffer(&mut b, "x", F32, &pool.x);
        let y = Order::First.buffer(&mut b, "y", F32, &pool.output());
        let index = is_max.then(|| Order::Last.buffer(&mut b, "index", DataType::I32, &pool.output()));
        b.node("pool", F32, pool.forward_op(x, y, index));
        cases.add(format!("pool_{mode}_mixed"), b.build());

        let mut b = GraphBuilder::new("pool strided");
        let x = b.tensor("x", F32, &pool.x, &[200, 60, 9, 1], TensorKind::Buffer);
        let y = b.tensor("y", F32, &pool.output(), &[90, 30, 8, 2], TensorKind::Buffer);
        let strides = [100, 31, 9, 2];
        let index = is_max.then(|| b.tensor("index", DataType::I32, &pool.output(), &strides, TensorKind::Buffer));
        b.node("pool", F32, pool.forward_op(x, y, index));
        cases.add(format!("pool_{mode}_strided"), b.build());

        let mut b = GraphBuilder::new("pool backward mixed");
        let dy = Order::First.buffer(&mut b, "dy", F32, &pool.output());
        let index = is_max.then(|| b.tensor("index", DataType::I32, &pool.output(), &strides, TensorKind::Buffer));
        let dx = Order::Last.buffer(&mut b, "dx", F32, &pool.x);
        b.node("pool", F32, pool.backward_op(dy, dx, index));
        cases.add(format!("pool_backward_{mode}_mixed"), b.build());

        for dtype in FLOATS {
            for order in Order::BOTH {
                let name = format!("{}_{dtype}", order.name());
                let pool = pool.clone().of(dtype, order);
                // Behind an activation and in front of a sum.
                let mut b = GraphBuilder::new("pool fused");
                let x = order.buffer(&mut b, "x", dtype, &pool.x);
                let z = order.buffer(&mut b, "z", dtype, &pool.output());
                let activated = b.virtual_tensor("activated", F32, &pool.x);
                let pooled = b.virtual_tensor("pooled", F32, &pool.output());
                let y = order.buffer(&mut b, "y", dtype, &pool.output());
                b.pointwise(F32, PointwiseMode::ReluFwd, &[x], activated);
                b.node("pool", F32, pool.forward_op(activated, pooled, None));
                b.pointwise(F32, PointwiseMode::Add, &[pooled, z], y);
                cases.add(format!("pool_{mode}_fused_{name}"), b.build());

                // Behind a convolution.
                let mut b = GraphBuilder::new("conv pool");
                let image = order.buffer(&mut b, "image", dtype, &[2, 4, 6, 6]);
                let w = order.buffer(&mut b, "w", dtype, &[3, 4, 3, 3]);
                let conv = b.virtual_tensor("conv", F32, &pool.x);
                let y = order.buffer(&mut b, "y", dtype, &pool.output());
                b.conv_fprop(F32, image, w, conv, ConvGeometry::same(2, 1));
                b.node("pool", F32, pool.forward_op(conv, y, None));
                cases.add(format!("pool_{mode}_conv_{name}"), b.build());

                // The gradient of a sum of two.
                let mut b = GraphBuilder::new("pool backward fused");
                let [left, right] = ["left", "right"].map(|name| order.buffer(&mut b, name, dtype, &pool.output()));
                let dy = b.virtual_tensor("dy", F32, &pool.output());
                let index = is_max.then(|| order.buffer(&mut b, "index", DataType::I32, &pool.output()));
                let gradient = b.virtual_tensor("gradient", F32, &pool.x);
                let x = order.buffer(&mut b, "x", dtype, &pool.x);
                let dx = order.buffer(&mut b, "dx", dtype, &pool.x);
                b.pointwise(F32, PointwiseMode::Add, &[left, right], dy);
                b.node("pool", F32, pool.backward_op(dy, gradient, index));
                b.pointwise(F32, PointwiseMode::ReluBwd, &[x, gradient], dx);
                cases.add(format!("pool_backward_{mode}_fused_{name}"), b.build());
            }
        }
    }
}

/// Returns elements for which implementations differ: NaN first, last and alone in its window,
/// infinities, zeros of both signs, denormals.
pub(super) fn edges() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for (turn, (mode, resample, padding)) in MODES.into_iter().enumerate() {
        for (place, dtype) in FLOATS.into_iter().enumerate() {
            let order = Order::BOTH[(turn + place) % 2];
            let pool = |padding_extent, stride, window| {
                Pool::new(&[2, 5, 8, 8], padding_extent, stride, window, (resample, padding)).of(dtype, order)
            };
            let index = (resample == ResampleMode::Maxpool).then_some(DataType::I32);
            for (name, operand, graph) in [
                ("padded", "x", pool(1, 2, 3).forward(index)),
                ("exact", "x", pool(0, 2, 2).forward(index)),
                ("values", "x", pool(1, 1, 2).forward(None)),
                ("backward", "dy", pool(1, 2, 3).backward()),
            ] {
                let name = format!("pool_edges_{mode}_{name}_{}_{dtype}", order.name());
                data.push(Data::filled(name, graph, operand, Profile::Edge)?);
            }
        }
    }
    Ok(data)
}
