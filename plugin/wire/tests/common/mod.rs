//! Random valid graphs of every operation.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_graph::*;
use std::collections::HashSet;

/// How many kinds of operations there are.
pub(crate) const OPERATIONS: usize = 23;

/// A valid graph with one operation of each of `kinds`, which are the operations' positions in the schema from 0.
///
/// The same seed makes the same graph. With `full`, every optional field is there.
pub(crate) fn graph(seed: u64, kinds: &[usize], full: bool) -> Graph {
    let mut generator = Generator {
        rng: ChaCha8Rng::seed_from_u64(seed),
        full,
        graph: Graph::default(),
        uids: HashSet::new(),
        readable: Vec::new(),
        fresh: Vec::new(),
    };
    generator.graph.name = generator.name();
    generator.graph.override_shapes = generator.rng.random();
    generator.graph.min_api_version = [1, generator.rng.random_range(0..5), generator.rng.random()];
    for &kind in kinds {
        let op = generator.op(kind);
        // What an operation writes can be read by those after it.
        generator.readable.append(&mut generator.fresh);
        let node = Node {
            name: generator.name(),
            compute: generator.dtype(),
            op,
        };
        generator.graph.nodes.push(node);
    }
    generator.store_something();
    generator.graph
}

struct Generator {
    rng: ChaCha8Rng,
    full: bool,
    graph: Graph,
    uids: HashSet<i64>,
    readable: Vec<TensorId>,
    fresh: Vec<TensorId>,
}

impl Generator {
    fn flag(&mut self) -> bool {
        self.full || self.rng.random()
    }

    fn name(&mut self) -> String {
        let names: &[&str] = if self.full {
            &["x"]
        } else {
            &["", "x", "conv::Y", "größe", "a\0b"]
        };
        (*names.choose(&mut self.rng).unwrap()).to_owned()
    }

    fn dtype(&mut self) -> DataType {
        *DataType::ALL.choose(&mut self.rng).unwrap()
    }

    fn dims(&mut self, rank: usize) -> Vec<i64> {
        (0..rank).map(|_| self.rng.random_range(1..=4)).collect()
    }

    fn any_dims(&mut self) -> Vec<i64> {
        let rank = self.rng.random_range(1..=5);
        self.dims(rank)
    }

    /// A scalar that survives the wire: exact in its type.
    fn scalar(&mut self, dtype: DataType) -> Scalar {
        if self.rng.random_bool(0.3) || dtype.is_integer() {
            return Scalar::Integer(match dtype {
                DataType::U8 => self.rng.random_range(0..=255),
                DataType::I8 => self.rng.random_range(-128..=127),
                DataType::I4 => self.rng.random_range(-8..=7),
                DataType::I32 => i64::from(self.rng.random::<i32>()),
                _ => self.rng.random(),
            });
        }
        let common = *[0.0, -0.0, 1.0, -1.5, 0.25, 3.0, f64::NAN]
            .choose(&mut self.rng)
            .unwrap();
        Scalar::float(match dtype {
            DataType::F32 if self.rng.random() => f64::from(self.rng.random::<f32>()),
            DataType::F64 if self.rng.random() => self.rng.random::<f64>(),
            DataType::F16 if self.rng.random() => 0.0999755859375,
            DataType::Bf16 if self.rng.random() => f64::INFINITY,
            _ => common,
        })
    }

    fn add(&mut self, kind: TensorKind, dtype: DataType, dims: Vec<i64>, strides: Vec<i64>) -> TensorId {
        let uid = loop {
            let uid = match self.rng.random_range(0..3) {
                0 => self.rng.random_range(-3..100),
                1 => self.rng.random(),
                _ => 9_000_000_000 + self.rng.random_range(0..1000),
            };
            if self.uids.insert(uid) {
                break uid;
            }
        };
        let name = self.name();
        let alignment = if self.rng.random_bool(0.8) {
            16
        } else {
            1 << self.rng.random_range(0..8)
        };
        self.graph.tensors.push(Tensor {
            uid,
            name,
            dtype,
            dims,
            strides,
            kind,
            ragged_offset: None,
            alignment,
        });
        TensorId(u32::try_from(self.graph.tensors.len() - 1).unwrap())
    }

    /// Strides of a packed tensor whose axes lie in a random order, times a gap.
    fn strides(&mut self, dims: &[i64]) -> Vec<i64> {
        let mut strides = vec![1; dims.len()];
        let mut next = self.rng.random_range(1..=3);
        let mut axes: Vec<usize> = (0..dims.len()).collect();
        while !axes.is_empty() {
            let axis = axes.swap_remove(self.rng.random_range(0..axes.len()));
            strides[axis] = next;
            next *= dims[axis];
        }
        strides
    }

    /// A tensor to read: one that is there already, or a new one.
    fn input_of(&mut self, dims: Vec<i64>) -> TensorId {
        let fitting: Vec<_> = self
            .readable
            .iter()
            .copied()
            .filter(|id| self.graph.tensors[id.index()].dims == dims)
            .collect();
        if let Some(id) = fitting.choose(&mut self.rng)
            && !self.full
            && self.rng.random_bool(0.6)
        {
            return *id;
        }
        let (dtype, choice) = (self.dtype(), self.rng.random_range(0..6));
        let unstorable = matches!(
            dtype,
            DataType::F8E8M0 | DataType::F4E2M1 | DataType::F6E2M3 | DataType::F6E3M2
        );
        let kind = match choice {
            0 if !unstorable => TensorKind::Constant(self.scalar(dtype)),
            1 => TensorKind::RuntimeScalar,
            _ => TensorKind::Buffer,
        };
        let strides = if self.rng.random_bool(0.1) {
            vec![0; dims.len()]
        } else {
            self.strides(&dims)
        };
        let id = self.add(kind, dtype, dims, strides);
        if self.rng.random_bool(0.05) {
            let offset = self.add(TensorKind::Buffer, DataType::I32, vec![3], vec![1]);
            self.graph.tensors[id.index()].ragged_offset = Some(offset);
        }
        self.readable.push(id);
        id
    }

    fn output_of(&mut self, dims: Vec<i64>) -> TensorId {
        let kind = if self.rng.random() {
            TensorKind::Buffer
        } else {
            TensorKind::Virtual
        };
        let (dtype, strides) = (self.dtype(), self.strides(&dims));
        let id = self.add(kind, dtype, dims, strides);
        self.fresh.push(id);
        id
    }

    fn store_something(&mut self) {
        let mut written = None;
        if let Some(node) = self.graph.nodes.last() {
            node.op.for_each_output(&mut |_, id| written = Some(id));
        }
        if let Some(id) = written {
            self.graph.tensors[id.index()].kind = TensorKind::Buffer;
        }
    }

    fn input(&mut self) -> TensorId {
        let dims = match self.readable.choose(&mut self.rng) {
            Some(id) => self.graph.tensors[id.index()].dims.clone(),
            None => self.any_dims(),
        };
        self.input_of(dims)
    }

    fn output(&mut self) -> TensorId {
        let dims = self.any_dims();
        self.output_of(dims)
    }

    fn maybe_input(&mut self) -> Option<TensorId> {
        self.flag().then(|| self.input())
    }

    fn maybe_output(&mut self) -> Option<TensorId> {
        self.flag().then(|| self.output())
    }

    fn inputs(&mut self) -> Vec<TensorId> {
        let count = self.rng.random_range(0..3) + usize::from(self.full);
        (0..count).map(|_| self.input()).collect()
    }

    fn long(&mut self) -> i64 {
        self.rng.random_range(1..1_000_000_000_000)
    }

    fn maybe_long(&mut self) -> Option<i64> {
        self.flag().then(|| self.long())
    }

    fn maybe_float(&mut self) -> Option<f32> {
        self.flag().then(|| self.rng.random_range(0.01..10.0))
    }

    fn longs(&mut self) -> Vec<i64> {
        let count = self.rng.random_range(1..4);
        (0..count).map(|_| self.long()).collect()
    }

    fn pick<T: Copy>(&mut self, members: &[T]) -> T {
        *members.choose(&mut self.rng).unwrap()
    }

    fn phase(&mut self) -> NormPhase {
        self.pick(&[NormPhase::Inference, NormPhase::Training])
    }

    fn any_geometry(&mut self) -> ConvGeometry {
        ConvGeometry {
            pre_padding: self.longs(),
            post_padding: self.longs(),
            stride: self.longs(),
            dilation: self.longs(),
            mode: self.pick(&[ConvMode::Convolution, ConvMode::CrossCorrelation]),
        }
    }

    fn conv_fprop(&mut self) -> ConvFprop {
        let spatial = self.rng.random_range(1..=3);
        let mut list = |from, to| -> Vec<i64> { (0..spatial).map(|_| self.rng.random_range(from..=to)).collect() };
        let (pre_padding, post_padding, stride, dilation) = (list(0, 2), list(0, 2), list(1, 3), list(1, 2));
        let (filter, extra, groups) = (list(1, 3), list(0, 4), list(1, 2)[0]);
        let (n, c, k) = (
            self.rng.random_range(1..3),
            self.rng.random_range(1..4),
            self.rng.random_range(1..4),
        );
        let (mut x, mut w, mut y) = (vec![n, c * groups], vec![k * groups, c], vec![n, k * groups]);
        for axis in 0..spatial {
            let input = dilation[axis] * (filter[axis] - 1) + 1 + extra[axis];
            x.push(input);
            w.push(filter[axis]);
            let (pre, post) = (pre_padding[axis], post_padding[axis]);
            y.push(conv_output_extent(input, filter[axis], pre, post, stride[axis], dilation[axis]).unwrap());
        }
        ConvFprop {
            x: self.input_of(x),
            w: self.input_of(w),
            y: self.output_of(y),
            geometry: ConvGeometry {
                pre_padding,
                post_padding,
                stride,
                dilation,
                mode: self.pick(&[ConvMode::Convolution, ConvMode::CrossCorrelation]),
            },
        }
    }

    fn pointwise(&mut self) -> Pointwise {
        use PointwiseParameter::*;
        let mode = self.pick(PointwiseMode::ALL);
        let rank = self.rng.random_range(1..=5);
        let out = self.dims(rank);
        let operands: Vec<_> = (0..mode.arity())
            .map(|_| {
                let dims = out
                    .iter()
                    .map(|&dim| if self.rng.random_bool(0.2) { 1 } else { dim })
                    .collect();
                self.input_of(dims)
            })
            .collect();
        let mut op = Pointwise::new(
            mode,
            operands[0],
            operands.get(1).copied(),
            operands.get(2).copied(),
            self.output_of(out),
        );
        if mode.takes(ReluLowerClip) {
            op.relu_lower_clip = self.maybe_float();
            op.relu_upper_clip = self.maybe_float();
            op.relu_lower_clip_slope = self.maybe_float();
        }
        if mode.takes(SwishBeta) {
            op.swish_beta = self.maybe_float();
        }
        if mode.takes(EluAlpha) {
            op.elu_alpha = self.maybe_float();
        }
        if mode.takes(SoftplusBeta) {
            op.softplus_beta = self.maybe_float();
        }
        if mode.takes(Axis) {
            op.axis = Some(i64::try_from(self.rng.random_range(0..rank)).unwrap());
        }
        op
    }

    fn sdpa(&mut self) -> Sdpa {
        Sdpa {
            q: self.input(),
            k: self.input(),
            v: self.input(),
            attn_mask: self.maybe_input(),
            scale: self.maybe_input(),
            seq_len_q: self.maybe_input(),
            seq_len_kv: self.maybe_input(),
            seed: self.maybe_input(),
            offset: self.maybe_input(),
            dropout_mask: self.maybe_input(),
            dropout_scale: self.maybe_input(),
            page_table_k: self.maybe_input(),
            page_table_v: self.maybe_input(),
            block_mask: self.maybe_input(),
            sink_token: self.maybe_input(),
            descale_q: self.maybe_input(),
            descale_k: self.maybe_input(),
            descale_v: self.maybe_input(),
            descale_s: self.maybe_input(),
            scale_s: self.maybe_input(),
            scale_o: self.maybe_input(),
            o: self.output(),
            stats: self.maybe_output(),
            max: self.maybe_output(),
            sum_exp: self.maybe_output(),
            rng_dump: self.maybe_output(),
            amax_s: self.maybe_output(),
            amax_o: self.maybe_output(),
            generate_stats: self.flag().then(|| self.flag()),
            alibi_mask: self.flag(),
            padding_mask: self.flag(),
            causal_mask: self.flag(),
            causal_mask_bottom_right: self.flag(),
            dropout_probability: self.maybe_float(),
            attn_scale_value: self.maybe_float(),
            left_bound: self.maybe_long(),
            right_bound: self.maybe_long(),
            max_seq_len_kv: self.flag().then(|| self.rng.random()),
            diagonal_alignment: self.pick(&[DiagonalAlignment::TopLeft, DiagonalAlignment::BottomRight]),
            mma_core_mode: self.flag().then(|| self.dtype()),
            implementation: self.pick(&[
                AttentionImplementation::Auto,
                AttentionImplementation::Composite,
                AttentionImplementation::Unified,
            ]),
        }
    }

    fn sdpa_backward(&mut self) -> SdpaBackward {
        SdpaBackward {
            q: self.input(),
            k: self.input(),
            v: self.input(),
            o: self.input(),
            d_o: self.input(),
            stats: self.input(),
            scale: self.maybe_input(),
            attn_mask: self.maybe_input(),
            seq_len_q: self.maybe_input(),
            seq_len_kv: self.maybe_input(),
            seed: self.maybe_input(),
            offset: self.maybe_input(),
            dropout_mask: self.maybe_input(),
            dropout_scale: self.maybe_input(),
            dropout_scale_inv: self.maybe_input(),
            dq: self.output(),
            dk: self.output(),
            dv: self.output(),
            dbias: self.maybe_output(),
            alibi_mask: self.flag(),
            padding_mask: self.flag(),
            causal_mask: self.flag(),
            causal_mask_bottom_right: self.flag(),
            dropout_probability: self.maybe_float(),
            attn_scale_value: self.maybe_float(),
            left_bound: self.maybe_long(),
            right_bound: self.maybe_long(),
            diagonal_alignment: self.pick(&[DiagonalAlignment::TopLeft, DiagonalAlignment::BottomRight]),
        }
    }

    fn resample_mode(&mut self) -> ResampleMode {
        self.pick(&[
            ResampleMode::Maxpool,
            ResampleMode::AvgpoolExcludePadding,
            ResampleMode::AvgpoolIncludePadding,
        ])
    }

    fn padding_mode(&mut self) -> PaddingMode {
        self.pick(&[PaddingMode::NotSet, PaddingMode::NegInf, PaddingMode::Zero])
    }

    fn op(&mut self, kind: usize) -> Op {
        match kind {
            0 => BatchnormInference {
                x: self.input(),
                mean: self.input(),
                inv_variance: self.input(),
                scale: self.input(),
                bias: self.input(),
                y: self.output(),
            }
            .into(),
            1 => self.pointwise().into(),
            2 => BatchnormBackward {
                dy: self.input(),
                x: self.input(),
                mean: self.maybe_input(),
                inv_variance: self.maybe_input(),
                scale: self.input(),
                peer_stats: self.inputs(),
                dx: self.output(),
                dscale: self.output(),
                dbias: self.output(),
            }
            .into(),
            3 => Batchnorm {
                x: self.input(),
                scale: self.input(),
                bias: self.input(),
                epsilon: self.input(),
                peer_stats: self.inputs(),
                prev_running_mean: self.maybe_input(),
                prev_running_variance: self.maybe_input(),
                momentum: self.maybe_input(),
                y: self.output(),
                mean: self.maybe_output(),
                inv_variance: self.maybe_output(),
                next_running_mean: self.maybe_output(),
                next_running_variance: self.maybe_output(),
            }
            .into(),
            4 => self.conv_fprop().into(),
            5 => ConvDgrad {
                dy: self.input(),
                w: self.input(),
                dx: self.output(),
                geometry: self.any_geometry(),
            }
            .into(),
            6 => ConvWgrad {
                x: self.input(),
                dy: self.input(),
                dw: self.output(),
                geometry: self.any_geometry(),
            }
            .into(),
            7 => BatchnormInferenceVariance {
                x: self.input(),
                mean: self.input(),
                variance: self.input(),
                scale: self.input(),
                bias: self.input(),
                epsilon: self.input(),
                y: self.output(),
            }
            .into(),
            8 => Matmul {
                a: self.input(),
                b: self.input(),
                c: self.output(),
            }
            .into(),
            9 => RmsNorm {
                x: self.input(),
                scale: self.input(),
                epsilon: self.input(),
                bias: self.maybe_input(),
                y: self.output(),
                inv_rms: self.maybe_output(),
                phase: self.phase(),
            }
            .into(),
            10 => Layernorm {
                x: self.input(),
                scale: self.input(),
                bias: self.input(),
                epsilon: self.input(),
                y: self.output(),
                mean: self.maybe_output(),
                inv_variance: self.maybe_output(),
                normalized_dim_count: self.long(),
                phase: self.phase(),
            }
            .into(),
            11 => Box::new(self.sdpa()).into(),
            12 => BlockScaleDequantize {
                x: self.input(),
                scale: self.input(),
                y: self.output(),
                block_size: vec![self.rng.random(), self.rng.random()],
                is_negative_scale: self.flag(),
            }
            .into(),
            13 => BlockScaleQuantize {
                x: self.input(),
                y: self.output(),
                scale: self.output(),
                block_size: self.rng.random(),
                axis: self.maybe_long(),
                transpose: self.flag(),
            }
            .into(),
            14 => Box::new(self.sdpa_backward()).into(),
            15 => {
                let mut data = vec![0; self.rng.random_range(1..40)];
                self.rng.fill_bytes(&mut data);
                CustomOp {
                    inputs: self.inputs(),
                    outputs: vec![self.output(), self.output()],
                    custom_op_id: "plugin.op".to_owned(),
                    data,
                }
                .into()
            }
            16 => RmsNormBackward {
                dy: self.input(),
                x: self.input(),
                scale: self.input(),
                inv_rms: self.input(),
                dx: self.output(),
                dscale: self.output(),
                dbias: self.maybe_output(),
            }
            .into(),
            17 => Reduction {
                input: self.input(),
                output: self.output(),
                mode: self.pick(&[
                    ReductionMode::Add,
                    ReductionMode::Mul,
                    ReductionMode::Min,
                    ReductionMode::Max,
                    ReductionMode::Amax,
                    ReductionMode::Avg,
                    ReductionMode::Norm1,
                    ReductionMode::Norm2,
                    ReductionMode::MulNoZeros,
                ]),
                is_deterministic: self.flag(),
            }
            .into(),
            18 => ResampleFwd {
                x: self.input(),
                y: self.output(),
                index: self.maybe_output(),
                pre_padding: self.longs(),
                post_padding: self.longs(),
                stride: self.longs(),
                window: self.longs(),
                resample_mode: self.resample_mode(),
                padding_mode: self.padding_mode(),
                generate_index: self.flag(),
            }
            .into(),
            19 => LayernormBackward {
                dy: self.input(),
                x: self.input(),
                scale: self.input(),
                mean: self.maybe_input(),
                inv_variance: self.maybe_input(),
                epsilon: self.maybe_input(),
                dx: self.output(),
                dscale: self.output(),
                dbias: self.output(),
                normalized_dim_count: self.long(),
            }
            .into(),
            20 => ResampleBwd {
                dy: self.input(),
                index: self.maybe_input(),
                dx: self.output(),
                pre_padding: self.longs(),
                post_padding: self.longs(),
                stride: self.longs(),
                window: self.longs(),
                resample_mode: self.resample_mode(),
                padding_mode: self.padding_mode(),
            }
            .into(),
            21 => MoeGroupedMatmul {
                token: self.input(),
                weight: self.input(),
                first_token_offset: self.input(),
                token_index: self.maybe_input(),
                token_ks: self.maybe_input(),
                output: self.output(),
                mode: self.pick(&[MoeMode::None, MoeMode::Gather, MoeMode::Scatter]),
                top_k: self.rng.random(),
            }
            .into(),
            22 => MoeGroupedMatmulBwd {
                doutput: self.input(),
                token: self.input(),
                first_token_offset: self.input(),
                dweight: self.output(),
            }
            .into(),
            other => panic!("there is no operation {other}"),
        }
    }
}
