//! Random valid graphs of every operation.
//!
//! | Module | Contents |
//! |---|---|
//! | `attention` | scaled dot-product attention, both directions |
//! | `norm` | batch, layer and RMS normalization |
//! | `window` | convolutions and pooling |
//! | `matrix` | matmuls, alone and grouped, reductions, scales of blocks |
//!
//! Each operation has all its attributes, with random values that validation allows, and each of
//! its optional tensors half the time.

mod attention;
mod matrix;
mod norm;
mod window;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_graph::*;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Number of kinds of operations.
pub(crate) const OPERATIONS: usize = 23;

/// Returns a valid graph with one operation of each of `kinds`, which are the operations' positions
/// in the schema, from 0.
///
/// The same seed gives the same graph. With `full`, every optional field is present; of fields that
/// exclude each other, a random one is.
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
        // Later operations can read what this one writes.
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

    /// Returns a scalar that survives the wire because its type represents it exactly.
    fn scalar(&mut self, dtype: DataType) -> Scalar {
        if self.rng.random_bool(0.3) || dtype.is_integer() {
            return Scalar::Integer(match dtype {
                DataType::U8 => self.rng.random_range(0..=255),
                DataType::I8 => self.rng.random_range(-128..=127),
                DataType::I4 => self.rng.random_range(-8..=7),
                DataType::I32 => i64::from(self.rng.random::<i32>()),
                DataType::Bool => self.rng.random_range(0..=1),
                // 1, 2 and 4, which every such type represents.
                _ if dtype.is_code() => 1 << self.rng.random_range(0..=2),
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
            // These types have no negative zero.
            DataType::F8E4M3Fnuz | DataType::F8E5M2Fnuz if common == 0.0 => 0.0,
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

    /// Returns the strides of a packed tensor with its axes in a random order, times a random gap.
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

    /// Returns a tensor to read: an existing one or a new one.
    fn input_of(&mut self, dims: Vec<i64>) -> TensorId {
        self.input_among(dims, &DataType::ALL)
    }

    /// Returns a tensor of one of these types to read.
    fn input_among(&mut self, dims: Vec<i64>, types: &[DataType]) -> TensorId {
        let fitting: Vec<_> = self
            .readable
            .iter()
            .copied()
            .filter(|id| {
                let tensor = &self.graph.tensors[id.index()];
                tensor.dims == dims && types.contains(&tensor.dtype)
            })
            .collect();
        if let Some(id) = fitting.choose(&mut self.rng)
            && !self.full
            && self.rng.random_bool(0.6)
        {
            return *id;
        }
        let (dtype, choice) = (self.pick(types), self.rng.random_range(0..6));
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
        self.output_among(dims, &DataType::ALL)
    }

    /// Returns a tensor of one of these types to write.
    fn output_among(&mut self, dims: Vec<i64>, types: &[DataType]) -> TensorId {
        let kind = if self.rng.random() {
            TensorKind::Buffer
        } else {
            TensorKind::Virtual
        };
        let (dtype, strides) = (self.pick(types), self.strides(&dims));
        let id = self.add(kind, dtype, dims, strides);
        self.fresh.push(id);
        id
    }

    fn maybe_input_of(&mut self, dims: Vec<i64>) -> Option<TensorId> {
        self.flag().then(|| self.input_of(dims))
    }

    fn maybe_output_of(&mut self, dims: Vec<i64>) -> Option<TensorId> {
        self.flag().then(|| self.output_of(dims))
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

    /// Returns dims of a rank in `ranks`, often those of a readable tensor.
    fn dims_of(&mut self, ranks: RangeInclusive<usize>) -> Vec<i64> {
        let fitting: Vec<_> = self
            .readable
            .iter()
            .copied()
            .filter(|id| ranks.contains(&self.graph.tensors[id.index()].dims.len()))
            .collect();
        match fitting.choose(&mut self.rng) {
            Some(id) if self.rng.random_bool(0.7) => self.graph.tensors[id.index()].dims.clone(),
            _ => {
                let rank = self.rng.random_range(ranks);
                self.dims(rank)
            }
        }
    }

    /// Returns a tensor of any dims to read.
    fn input(&mut self) -> TensorId {
        let dims = self.dims_of(1..=5);
        self.input_of(dims)
    }

    /// Returns a tensor of any dims to write.
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

    /// Returns dims of a single element.
    fn single(&mut self) -> Vec<i64> {
        vec![1; self.rng.random_range(1..=4)]
    }

    fn long(&mut self) -> i64 {
        self.rng.random_range(1..1_000_000_000_000)
    }

    fn maybe_float(&mut self) -> Option<f32> {
        self.flag().then(|| self.rng.random_range(0.01..10.0))
    }

    fn pick<T: Copy>(&mut self, members: &[T]) -> T {
        *members.choose(&mut self.rng).unwrap()
    }

    /// Returns a random divisor of `extent`.
    fn divisor(&mut self, extent: i64) -> i64 {
        let divisors: Vec<i64> = (1..=extent).filter(|divisor| extent % divisor == 0).collect();
        self.pick(&divisors)
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

    fn custom_op(&mut self) -> CustomOp {
        let mut data = vec![0; self.rng.random_range(1..40)];
        self.rng.fill_bytes(&mut data);
        CustomOp {
            inputs: self.inputs(),
            outputs: vec![self.output(), self.output()],
            custom_op_id: "plugin.op".to_owned(),
            data,
        }
    }

    fn op(&mut self, kind: usize) -> Op {
        match kind {
            0 => self.batchnorm_inference().into(),
            1 => self.pointwise().into(),
            2 => self.batchnorm_backward().into(),
            3 => self.batchnorm().into(),
            4 => self.conv_fprop().into(),
            5 => self.conv_dgrad().into(),
            6 => self.conv_wgrad().into(),
            7 => self.batchnorm_inference_variance().into(),
            8 => self.matmul().into(),
            9 => self.rms_norm().into(),
            10 => self.layernorm().into(),
            11 => Box::new(self.sdpa()).into(),
            12 => self.block_scale_dequantize().into(),
            13 => self.block_scale_quantize().into(),
            14 => Box::new(self.sdpa_backward()).into(),
            15 => self.custom_op().into(),
            16 => self.rms_norm_backward().into(),
            17 => self.reduction().into(),
            18 => self.resample_fwd().into(),
            19 => self.layernorm_backward().into(),
            20 => self.resample_bwd().into(),
            21 => self.moe_grouped_matmul().into(),
            22 => self.moe_grouped_matmul_bwd().into(),
            other => panic!("there is no operation {other}"),
        }
    }
}
