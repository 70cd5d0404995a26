//! Matmuls, single and grouped by expert, reductions, and block scales.

use super::Generator;
use rand::RngExt;
use rotini_graph::*;

const ROUTING: [DataType; 1] = [DataType::I32];

impl Generator {
    fn extent(&mut self) -> i64 {
        self.rng.random_range(1..=4)
    }

    pub(super) fn matmul(&mut self) -> Matmul {
        let a = self.dims_of(2..=5);
        let (batch, matrix) = a.split_at(a.len() - 2);
        let (mut b, mut c) = (Vec::new(), Vec::new());
        for &extent in batch {
            let of_b = if self.rng.random() {
                self.divisor(extent)
            } else {
                extent * self.rng.random_range(1..=2)
            };
            b.push(of_b);
            c.push(of_b.max(extent));
        }
        let columns = self.extent();
        b.extend([matrix[1], columns]);
        c.extend([matrix[0], columns]);
        Matmul {
            a: self.input_of(a),
            b: self.input_of(b),
            c: self.output_of(c),
        }
    }

    pub(super) fn reduction(&mut self) -> Reduction {
        let mut input = self.dims_of(1..=5);
        // At least one axis is reduced.
        let axis = self.rng.random_range(0..input.len());
        input[axis] = input[axis].max(2);
        let output = input
            .iter()
            .enumerate()
            .map(|(at, &extent)| if at == axis || self.rng.random() { 1 } else { extent })
            .collect();
        Reduction {
            input: self.input_of(input),
            output: self.output_of(output),
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
    }

    /// Returns the size of a block along one axis, which may be longer than the axis.
    fn block(&mut self) -> i32 {
        let largest = self.pick(&[3, i32::MAX]);
        self.rng.random_range(1..=largest)
    }

    pub(super) fn block_scale_dequantize(&mut self) -> BlockScaleDequantize {
        let x = self.dims_of(1..=5);
        let leading = self.rng.random_range(0..x.len());
        let block_size: Vec<i32> = x[leading..].iter().map(|_| self.block()).collect();
        let blocks = x[leading..].iter().zip(&block_size);
        let scale = x[..leading]
            .iter()
            .copied()
            .chain(
                blocks.map(|(extent, &size)| extent.unsigned_abs().div_ceil(size.unsigned_abs().into()).cast_signed()),
            )
            .collect();
        BlockScaleDequantize {
            scale: self.input_of(scale),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
            block_size,
            is_negative_scale: self.flag(),
        }
    }

    pub(super) fn block_scale_quantize(&mut self) -> BlockScaleQuantize {
        let x = self.dims_of(1..=5);
        let block_size = self.block();
        let axis = self.flag().then(|| self.rng.random_range(0..x.len()));
        let mut scale = x.clone();
        let cut = &mut scale[axis.unwrap_or(x.len() - 1)];
        *cut = cut
            .unsigned_abs()
            .div_ceil(block_size.unsigned_abs().into())
            .cast_signed();
        BlockScaleQuantize {
            scale: self.output_of(scale),
            y: self.output_of(x.clone()),
            x: self.input_of(x),
            block_size,
            axis: axis.map(|axis| i64::try_from(axis).unwrap()),
            transpose: self.flag(),
        }
    }

    pub(super) fn moe_grouped_matmul(&mut self) -> MoeGroupedMatmul {
        let [tokens, inner, experts, columns] = [(); 4].map(|()| self.extent());
        // All optional tensors belong to SCATTER.
        let mode = if self.full {
            MoeMode::Scatter
        } else {
            self.pick(&[MoeMode::None, MoeMode::Gather, MoeMode::Scatter])
        };
        let rows = if mode == MoeMode::Gather { self.extent() } else { tokens };
        let has_index = mode != MoeMode::None;
        let is_scattered = mode == MoeMode::Scatter;
        let groups = experts * self.rng.random_range(1..=2);
        MoeGroupedMatmul {
            token: self.input_of(vec![1, tokens, inner]),
            weight: self.input_of(vec![experts, inner, columns]),
            first_token_offset: self.input_among(vec![groups, 1, 1], &ROUTING),
            token_index: has_index.then(|| self.input_among(vec![1, rows, 1], &ROUTING)),
            token_ks: is_scattered.then(|| self.input_among(vec![1, rows, 1], &ROUTING)),
            output: self.output_of(vec![1, rows, columns]),
            mode,
            top_k: if is_scattered {
                i32::try_from(self.rng.random_range(1..=experts)).unwrap()
            } else {
                0
            },
        }
    }

    pub(super) fn moe_grouped_matmul_bwd(&mut self) -> MoeGroupedMatmulBwd {
        let [tokens, inner, experts, columns] = [(); 4].map(|()| self.extent());
        MoeGroupedMatmulBwd {
            doutput: self.input_of(vec![1, tokens, columns]),
            token: self.input_of(vec![1, tokens, inner]),
            first_token_offset: self.input_among(vec![experts, 1, 1], &ROUTING),
            dweight: self.output_of(vec![experts, inner, columns]),
        }
    }
}
