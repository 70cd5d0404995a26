//! Block scales: an axis that is cut into blocks becomes two axes, the blocks and the elements of a
//! block. A scale has only the first of them.

use crate::Unsupported;
use crate::convert::{check_compute, checked_compute_type};
use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::MISSING;
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::{Name, Value as Ssa};
use crate::narrow::{largest, power};
use crate::step::{Combiner, Shape, order_of};
use crate::value::{Ordered, Value, extent, extents};
use rotini_graph::{BlockScaleDequantize, BlockScaleQuantize, DataType, NormalGraph, TensorId};

/// Checks whether block-scale dequantization can be lowered.
pub(crate) fn check_dequantize(
    graph: &NormalGraph,
    compute: DataType,
    op: &BlockScaleDequantize,
) -> Result<(), Unsupported> {
    check(graph, compute, &[op.x, op.scale])
}

/// Checks whether block-scale quantization can be lowered.
pub(crate) fn check_quantize(
    graph: &NormalGraph,
    compute: DataType,
    op: &BlockScaleQuantize,
) -> Result<(), Unsupported> {
    check(graph, compute, &[op.x])?;
    // hipDNN's reference and front end have the attribute, but do not define its meaning.
    if op.transpose {
        return Err(Unsupported::new("a transposed output is defined nowhere"));
    }
    let dtype = |id: TensorId| graph.tensor(id).map(|tensor| tensor.dtype);
    if let Some(dtype) = dtype(op.scale).filter(|&dtype| rounding(dtype).is_none()) {
        return Err(Unsupported::of_tensor(op.scale, format!("scales of {dtype}")));
    }
    match dtype(op.y) {
        // With the largest number of such a type, the scale of a block would be subnormal or 0.
        Some(dtype) if largest_output(dtype).is_none() => Err(Unsupported::of_tensor(
            op.y,
            format!("blocks that are scaled to {dtype}"),
        )),
        _ => Ok(()),
    }
}

fn check(graph: &NormalGraph, compute: DataType, operands: &[TensorId]) -> Result<(), Unsupported> {
    if check_compute(graph, compute, operands)?.is_float() {
        Ok(())
    } else {
        Err(Unsupported::new(format!("scales have no meaning in {compute}")))
    }
}

/// Returns the largest number of a type that blocks can be scaled to; `None` for other types.
fn largest_output(dtype: DataType) -> Option<f64> {
    match dtype {
        DataType::F16 => Some(65504.0),
        DataType::I8 | DataType::U8 | DataType::I32 => Some(dtype.whole_range().1 as f64),
        _ => largest(dtype),
    }
}

/// The partition of x into blocks.
struct Blocks {
    /// The logical extents of x.
    dims: Vec<i64>,
    /// For each axis that is cut, the elements of a block; `None` for an axis that is not cut,
    /// along which a scale has extent 1 or the extent of x.
    sizes: Vec<Option<i64>>,
}

impl Blocks {
    /// Returns the number of blocks of `size` elements along an axis; the last one may be
    /// incomplete.
    fn count(&self, axis: usize, size: i64) -> i64 {
        (extent(&self.dims, axis) - 1)
            .checked_div(size)
            .and_then(|count| count.checked_add(1))
            .expect("a block without elements")
    }

    /// Replaces each axis by its parts: an axis that is cut becomes two.
    fn cut<T>(&self, axes: impl Iterator<Item = usize>, mut part: impl FnMut(usize, Option<i64>) -> Vec<T>) -> Vec<T> {
        let mut parts = Vec::new();
        for axis in axes {
            parts.extend(part(axis, self.sizes.get(axis).copied().flatten()));
        }
        parts
    }

    /// Returns the extents of x with its axes cut.
    fn dims(&self) -> Vec<i64> {
        self.cut(0..self.dims.len(), |axis, size| match size {
            Some(size) => vec![self.count(axis, size), size],
            None => vec![extent(&self.dims, axis)],
        })
    }

    /// Returns the extents of a scale with its axes cut: one element per block.
    fn scale_dims(&self, scale: &[i64]) -> Vec<i64> {
        self.cut(0..self.dims.len(), |axis, size| match size {
            Some(_) => vec![extent(scale, axis), 1],
            None => vec![extent(scale, axis)],
        })
    }

    /// Returns the position of an axis among the cut axes; for an axis that is cut, that of its
    /// blocks.
    fn position(&self, axis: usize) -> usize {
        let cut = self.sizes.iter().take(axis).filter(|size| size.is_some()).count();
        axis.saturating_add(cut)
    }

    /// Returns a memory order with its axes cut.
    fn order(&self, order: &[usize]) -> Vec<usize> {
        self.cut(order.iter().copied(), |axis, size| {
            let position = self.position(axis);
            match size {
                Some(_) => vec![position, position.saturating_add(1)],
                None => vec![position],
            }
        })
    }

    /// Returns the physical extents with all blocks complete, and for each the cut axes that it
    /// combines.
    fn whole(&self, order: &[usize]) -> (Vec<i64>, Vec<Vec<usize>>) {
        let mut shape = Vec::new();
        let mut groups = Vec::new();
        let mut start: usize = 0;
        for &axis in order {
            let end = match self.sizes.get(axis).copied().flatten() {
                Some(size) => {
                    let whole = self.count(axis, size).checked_mul(size);
                    shape.push(whole.expect("an extent that overflows"));
                    start.saturating_add(2)
                }
                None => {
                    shape.push(extent(&self.dims, axis));
                    start.saturating_add(1)
                }
            };
            groups.push((start..end).collect());
            start = end;
        }
        (shape, groups)
    }

    /// Returns x with its axes cut; incomplete blocks are padded with zeros.
    fn split<'c>(&self, lowering: &Lowering<'_, 'c>, x: &Value<'c>) -> Value<'c> {
        let at = lowering.emitter();
        let x = x.materialise(&at);
        let dims = self.dims();
        let order = self.order(&x.order);
        let (whole, groups) = self.whole(&x.order);
        let own = extents(&x.dims, &x.order);
        let padding: Vec<_> = whole.iter().zip(&own).map(|(whole, own)| (0, whole - own)).collect();
        let (ssa, _) = at.pad(x.ssa, &own, &padding, (0.0, x.dtype));
        let ssa = if dims.len() == x.dims.len() {
            ssa
        } else {
            at.expand(ssa, &groups, &extents(&dims, &order))
        };
        Value::of(Ordered::new(ssa, order, x.dtype, dims))
    }

    /// Merges the cut axes of a tensor, and crops its incomplete blocks. `order` is the memory
    /// order of the result.
    fn merge<'c>(&self, lowering: &Lowering<'_, 'c>, y: &Ordered<'c>, order: &[usize]) -> Value<'c> {
        let at = lowering.emitter();
        let (whole, groups) = self.whole(order);
        let ssa = if y.dims.len() == self.dims.len() {
            y.ssa
        } else {
            at.collapse(y.ssa, &groups, &whole)
        };
        Value::of(Ordered::new(
            at.crop(ssa, &whole, &extents(&self.dims, order), y.dtype),
            order.to_vec(),
            y.dtype,
            self.dims.clone(),
        ))
    }

    /// Defines the tensor `id`, whose elements `body` computes from x and the scale of its block.
    fn finish<'c>(
        &self,
        lowering: &mut Lowering<'_, 'c>,
        id: TensorId,
        compute: DataType,
        [x, scale]: [&Value<'c>; 2],
        order: &[usize],
        body: impl FnOnce(&Math<'c>, Ssa<'c>, Ssa<'c>) -> Scalar<'c>,
    ) {
        let shape = Shape {
            dims: &self.dims(),
            order: &self.order(order),
            dtype: lowering.carried_type(id, compute),
        };
        let y = lowering.map(&[x, scale], &shape, compute, |math, elements| match elements {
            &[x, scale] => body(math, x, scale),
            _ => unreachable!("{MISSING}"),
        });
        let y = self.merge(lowering, &y, order);
        lowering.define(id, y);
    }
}

/// Lowers dequantization: y = x · scale, or y = x · 2^-scale
/// (`CpuReferenceBlockScaleDequantize.hpp` of hipDNN's test SDK).
pub(crate) fn dequantize(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &BlockScaleDequantize) {
    let compute = checked_compute_type(compute);
    lowering.settle_gathered(op.scale);
    let (x, scale) = (lowering.value(op.x).clone(), lowering.value(op.scale).clone());
    let leading = x.dims.len().saturating_sub(op.block_size.len());
    let sizes = std::iter::repeat_n(1, leading).chain(op.block_size.iter().copied().map(i64::from));
    let blocks = Blocks {
        sizes: sizes
            .zip(&x.dims)
            .map(|(size, &dim)| Some(size).filter(|&size| 1 < size && size < dim))
            .collect(),
        dims: x.dims.clone(),
    };
    let order = lowering.result_order(op.y, &[&x]);
    let x = blocks.split(lowering, &x);
    let scale_dims = blocks.scale_dims(&scale.dims);
    let scale = scale.with_dims(&lowering.emitter(), &scale_dims);
    let is_negative = op.is_negative_scale;
    blocks.finish(lowering, op.y, compute, [&x, &scale], &order, |math, x, scale| {
        if is_negative {
            x * math.power_of_two(-scale)
        } else {
            x * scale
        }
    })
}

/// Lowers quantization: each block is divided by a scale that maps its largest magnitude to the
/// largest number of y's type (`CpuFpReferenceBlockScaleQuantize.hpp` of hipDNN's test SDK).
///
/// The scale is the quotient of the two in f64, rounded up to the scale's type, or to nearest if
/// that is f32. NaN is ignored in the magnitude. Where the scale is 0, y is 0.
pub(crate) fn quantize(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &BlockScaleQuantize) {
    let compute = checked_compute_type(compute);
    let x = lowering.value(op.x).clone();
    let (y, scale) = (lowering.tensor(op.y), lowering.tensor(op.scale));
    let (Some(largest), Some(rounding)) = (largest_output(y.dtype), rounding(scale.dtype)) else {
        unreachable!("a type that check declines");
    };
    let last = x.dims.len().saturating_sub(1);
    let axis = op.axis.and_then(|axis| usize::try_from(axis).ok()).unwrap_or(last);
    let size = i64::from(op.block_size);
    let is_cut = size < extent(&x.dims, axis);
    let blocks = Blocks {
        sizes: (0..x.dims.len())
            .map(|candidate| Some(size).filter(|_| is_cut && candidate == axis))
            .collect(),
        dims: x.dims.clone(),
    };
    let order = lowering.result_order(op.y, &[&x]);
    let scale_dims = scale.dims.clone();
    let x = blocks.split(lowering, &x);
    let reduced = blocks.position(axis).saturating_add(usize::from(is_cut));
    let shape = Shape {
        dims: &x.dims,
        order: &order_of(&x.dims, &[&x]),
        dtype: compute,
    };
    let magnitude = lowering.reduce(
        &[&x],
        &shape,
        &[reduced],
        (Combiner::Greatest, 0.0),
        |math, elements| {
            let [element] = exactly(elements);
            math.abs(element)
        },
    );
    let shape = Shape {
        dims: &magnitude.dims,
        order: &(0..magnitude.dims.len()).collect::<Vec<_>>(),
        dtype: compute,
    };
    let made = lowering.map(&[&magnitude], &shape, DataType::F64, |math, elements| {
        let [magnitude] = exactly(elements);
        math.rounded_up(magnitude / math.constant(largest), &rounding)
    });
    let is_power = scale.dtype == DataType::F8E8M0;
    let scale = Value::of(made);
    blocks.finish(lowering, op.y, compute, [&x, &scale], &order, |math, x, scale| {
        if is_power {
            // The least scale, 2^-127, is subnormal in f32: on targets that flush it to 0, the
            // quotient would be 0 or NaN.
            let is_least = math.compare(F::Less, scale, math.constant(power(-126)));
            return is_least.select(math.scale(power(127), x), x / scale);
        }
        let zero = math.constant(0.0);
        let is_zero = math.compare(F::Equal, scale, zero);
        is_zero.select(zero, x / scale)
    });
    let scale = scale.with_dims(&lowering.emitter(), &scale_dims);
    lowering.define(op.scale, scale);
}

/// The rounding of a scale to its type.
struct Rounding {
    /// Bits of the fraction.
    fraction: i64,
    /// The exponent of the least normal number.
    least: i64,
    /// The largest finite number.
    largest: f64,
    /// The number from which on results are infinite, if the type has infinities.
    overflow: Option<f64>,
    /// True if rounded to nearest, false if rounded up.
    to_nearest: bool,
}

fn rounding(dtype: DataType) -> Option<Rounding> {
    let (fraction, least, largest, overflow, to_nearest) = match dtype {
        DataType::F32 => (23, -126, f32::MAX.into(), None, true),
        DataType::F16 => (10, -14, 65504.0, Some(65520.0), false),
        DataType::Bf16 => {
            let infinite = power(127) * (2.0 - power(-8));
            (7, -126, power(127) * (2.0 - power(-7)), Some(infinite), false)
        }
        DataType::F8E8M0 => (0, -127, power(127), None, false),
        _ => return None,
    };
    Some(Rounding {
        fraction,
        least,
        largest,
        overflow,
        to_nearest,
    })
}

impl<'c> Math<'c> {
    /// Rounds a non-negative f64 to another type.
    fn rounded_up(&self, value: Ssa<'c>, rounding: &Rounding) -> Scalar<'c> {
        if rounding.to_nearest {
            let capped = self.min(value, self.constant(rounding.largest));
            let narrow = capped.truncf(self.at.element_type(DataType::F32));
            return narrow.extf(self.ty);
        }
        let bits = self.at.element_type(DataType::I64);
        let cut = (1_i64 << (52 - rounding.fraction)) - 1;
        let raised = value.bitcast(bits);
        let raised = raised + self.at.integer(cut, bits);
        let raised = raised & self.at.integer(!cut, bits);
        let normal = raised.bitcast(self.ty);
        // Below the least normal number, results are whole multiples of the least subnormal one.
        let unit = rounding.least - rounding.fraction;
        let count = self.function(Name::MathCeil, self.scale(power(-unit), value));
        let subnormal = self.scale(power(unit), count);
        let is_subnormal = self.compare(F::Less, value, self.constant(power(rounding.least)));
        let rounded = is_subnormal.select(subnormal, normal);
        let capped = self.min(rounded, self.constant(rounding.largest));
        match rounding.overflow {
            Some(overflow) => {
                let is_infinite = self.compare(F::GreaterEqual, value, self.constant(overflow));
                is_infinite.select(self.constant(f64::INFINITY), capped)
            }
            // A scale that is a power of two is never 0.
            None => self.max(capped, self.constant(power(rounding.least))),
        }
    }

    /// Returns 2 to a power, exact if the exponent is an integer.
    fn power_of_two(&self, exponent: Ssa<'c>) -> Scalar<'c> {
        let (bits, fraction, bias) = if self.compute == DataType::F64 {
            (self.at.element_type(DataType::I64), 52, 1023)
        } else {
            (self.at.element_type(DataType::I32), 23, 127)
        };
        // Beyond these limits the result is 0 or infinity. Half of a limit is still in the range of
        // exponents, so the power is computed as the product of two powers.
        let limit = self.constant(2.0 * bias as f64);
        let capped = self.min(self.max(exponent, -limit), limit);
        let whole = capped.floor();
        let rest = capped - whole;
        let is_whole = self.compare(F::Equal, rest, self.constant(0.0));
        let between = is_whole.select(self.constant(1.0), rest.exp2());
        let whole = whole.fptosi(bits);
        let one = self.at.integer(1, bits);
        let half = whole.shrsi(one);
        let other = whole - half;
        let mut power = between;
        for part in [half, other] {
            let biased = part + self.at.integer(bias, bits);
            let shifted = biased.shli(self.at.integer(fraction, bits));
            power = power * shifted.bitcast(self.ty);
        }
        // NaN is passed through.
        let is_nan = self.compare(F::UnorderedNotEqual, exponent, exponent);
        is_nan.select(exponent, power)
    }
}
