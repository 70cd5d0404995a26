//! Pooling and its gradient. The forward pass combines the taps of each window. The backward pass
//! sums, for each element of x, over the windows that reach it.
//!
//! A tap in the padding gets its value when it is read: a padded copy of x would cost GPUs one more
//! pass over memory. Windows that cover x exactly, without padding and without a rest, are read
//! through an index map, which the compiler vectorises. A single window becomes a plain reduction.
//!
//! The combinations do not depend on their order, so neither does the result on how the compiler
//! tiles them. No element is written twice.

mod cpu;
mod gradient;

pub(crate) use gradient::{check_backward, lower_backward};

use crate::Unsupported;
use crate::convert::{check_compute, checked_compute_type, convert, least_finite};
use crate::counts::{exactly, product};
use crate::ir::{Affine, IndexMap, IntegerPredicate, MISSING};
use crate::ir::{FloatPredicate as F, IntegerPredicate as I};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::Shape;
use crate::value::{Ordered, Value, extents, position};
use crate::windows::{Axis, Fold, Places, Windows, check_padded, divisor};
use rotini_graph::{DataType, NormalGraph, PaddingMode, ResampleFwd, ResampleMode as M};

/// Checks whether pooling can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &ResampleFwd) -> Result<(), Unsupported> {
    let compute = check_compute(graph, compute, &[op.x])?;
    if compute.is_integer() && op.resample_mode != M::Maxpool {
        return Err(Unsupported::new(format!(
            "an average has no meaning in the integer compute type {compute}"
        )));
    }
    check_window(&op.window)?;
    check_padded(graph, op.x, [&op.pre_padding, &op.post_padding])
}

/// Checks the number of spatial axes, and that taps can be counted in i32.
fn check_window(window: &[i64]) -> Result<(), Unsupported> {
    let taps = window.iter().try_fold(1_i64, |taps, &extent| taps.checked_mul(extent));
    match taps {
        _ if window.len() > 3 => Err(Unsupported::new(format!(
            "{} spatial dimensions, more than 3",
            window.len()
        ))),
        Some(taps) if taps < i64::from(i32::MAX) => Ok(()),
        _ => Err(Unsupported::new("a window of more than 2^31 elements")),
    }
}

/// Returns the number of elements of intermediate tensors: the padded x, and taps.
pub(crate) fn elements(graph: &NormalGraph, op: &ResampleFwd) -> Option<u64> {
    let (x, y) = (&graph.tensor(op.x)?.dims, &graph.tensor(op.y)?.dims);
    let mut padded = x.clone();
    let paddings = op.pre_padding.iter().zip(&op.post_padding);
    for (dim, (&pre, &post)) in padded.iter_mut().skip(2).zip(paddings) {
        *dim = dim.checked_add(pre)?.checked_add(post)?;
    }
    product(&padded)?.checked_add(product(y)?)
}

/// The element that a tap reads.
struct Candidate<'c> {
    /// The element in the compute type; unspecified in the padding.
    value: Ssa<'c>,
    /// Whether the tap reads an element of x; `None` if it always does.
    inside: Option<Ssa<'c>>,
    /// Whether the tap is the first candidate of its window.
    is_first: Ssa<'c>,
    /// The number of the tap in row-major order.
    ordinal: Ssa<'c>,
}

/// A pooling operation that is being lowered.
struct Pooling<'l, 'g, 'c> {
    lowering: &'l Lowering<'g, 'c>,
    windows: Windows<'g>,
    x: Ordered<'c>,
    /// The tensor that windows are read from if they are read through an index map: x, or the
    /// result of [`Pooling::copied`].
    padded: Option<Ordered<'c>>,
    /// Extents and memory order of y.
    dims: &'g [i64],
    order: Vec<usize>,
    compute: DataType,
    /// Whether taps in the padding are no candidates.
    skips_padding: bool,
}

impl<'c> Pooling<'_, '_, 'c> {
    /// Combines the candidates of each window, starting from `start`. `beside` is a tensor with y's
    /// extents whose elements `body` gets too.
    fn combine(
        &self,
        beside: Option<&Ordered<'c>>,
        start: (f64, DataType),
        body: impl FnOnce(&Math<'c>, &Candidate<'c>, &[Ssa<'c>], Ssa<'c>) -> Scalar<'c>,
    ) -> Ordered<'c> {
        let fold = Fold {
            lowering: self.lowering,
            dims: self.dims,
            order: &self.order,
            over: self.windows.window,
            compute: self.compute,
        };
        let windowed = self.padded.as_ref().map(|x| (x.ssa, self.window_map(x)));
        fold.lower(beside, windowed, start, |math, places, elements, so_far| {
            let (read, elements) = match (&self.padded, elements.split_first()) {
                (Some(_), Some((&first, rest))) => (Some(first), rest),
                _ => (None, elements),
            };
            let candidate = self.candidate(places, read);
            body(math, &candidate, elements, so_far)
        })
    }

    /// Returns true if windows are read from a copy of x.
    fn is_copied(&self) -> bool {
        self.padded.as_ref().is_some_and(|padded| padded.ssa != self.x.ssa)
    }

    /// Returns x as the compiler's pooling on CPUs needs it: in the compute type, padded, and for a
    /// maximum with -∞ instead of NaN. The compiler recognises pooling only if the body is one
    /// operation on two operands.
    fn copied(&self, mode: M) -> Ordered<'c> {
        let (x, at) = (&self.x, self.lowering.emitter());
        let is_max = mode == M::Maxpool;
        let shape = Shape::new(&x.dims, &x.order, self.compute);
        let clean = self
            .lowering
            .map(&[&Value::of(x.clone())], &shape, self.compute, |math, elements| {
                let [element] = exactly(elements);
                if !is_max || !self.compute.is_float() {
                    return element;
                }
                let is_number = math.compare(F::Ordered, element, element);
                is_number.select(element, least(math))
            });
        let axes = self.windows.axes();
        let padding = |axis: &usize| {
            let spatial = axis.checked_sub(2).and_then(|spatial| axes.get(spatial));
            spatial.map_or((0, 0), |axis| (axis.pre, (axis.reach() - axis.input).max(0)))
        };
        let padding: Vec<_> = x.order.iter().map(padding).collect();
        let fill = if is_max && self.skips_padding {
            f64::NEG_INFINITY
        } else {
            0.0
        };
        let (ssa, padded) = at.pad(clean.ssa, &extents(&x.dims, &x.order), &padding, (fill, self.compute));
        // Crops what no window reaches: the extents of x must follow from those of y and of the
        // window.
        let reached = |(&axis, &extent): (&usize, &i64)| {
            let spatial = axis.checked_sub(2).and_then(|spatial| axes.get(spatial));
            spatial.map_or(extent, |axis| axis.pre + axis.reach())
        };
        let reached: Vec<_> = x.order.iter().zip(&padded).map(reached).collect();
        let ssa = at.crop(ssa, &padded, &reached, self.compute);
        Ordered { ssa, ..clean }
    }

    /// Returns the index map of the padded x over the loops of y and of the taps.
    fn window_map(&self, x: &Ordered<'c>) -> IndexMap {
        let mut results = Vec::new();
        for &axis in &x.order {
            let position = position(&self.order, axis);
            results.push(match axis.checked_sub(2) {
                None => Affine::Loop(position),
                Some(spatial) => {
                    let stride = self.windows.axis(spatial).stride;
                    Affine::Loop(position) * stride + Affine::Loop(self.order.len() + spatial)
                }
            });
        }
        IndexMap::new(self.order.len() + self.windows.window.len(), results)
    }

    /// Returns the candidate of this iteration's tap: `read` if windows are read through an index
    /// map, else the element that is loaded from x.
    fn candidate(&self, places: &Places<'c>, read: Option<Ssa<'c>>) -> Candidate<'c> {
        let body = &places.at;
        let zero = places.constant(0);
        let (mut inside, mut first, mut taps) = (Vec::new(), Vec::new(), Vec::new());
        let mut indices = vec![places.along(0), places.along(1)];
        for (spatial, axis) in self.windows.axes().iter().enumerate() {
            let (start, tap) = (places.start(spatial, axis), places.folded(spatial));
            let place = start + tap;
            if axis.is_padded() {
                let is_inside = places.is_below(place, axis.input);
                inside.push(is_inside);
                indices.push(is_inside.select(place, zero));
            } else {
                indices.push(place);
            }
            let foremost = if self.skips_padding && axis.is_padded() {
                (zero - start).maxsi(zero)
            } else {
                zero
            };
            first.push(body.compare_integers(IntegerPredicate::Equal, tap, foremost));
            taps.push(tap);
        }
        let (element, dtype) = match (read, &self.padded) {
            (Some(element), Some(padded)) => (element, padded.dtype),
            _ => (self.x.element(body, &indices), self.x.dtype),
        };
        let ordinal = places.flat(&taps, self.windows.window);
        Candidate {
            value: convert(body, element, dtype, self.compute),
            inside: places.all(&inside),
            is_first: places.all(&first).expect(MISSING),
            ordinal: places.cast(ordinal, DataType::I32),
        }
    }

    /// Computes each element from the element of `value` and its indices.
    fn finish(
        &self,
        value: Ordered<'c>,
        dtype: DataType,
        body: impl FnOnce(&Math<'c>, &Places<'c>, Ssa<'c>) -> Scalar<'c>,
    ) -> Ordered<'c> {
        let shape = Shape::new(self.dims, &self.order, dtype);
        let compute = value.dtype;
        self.lowering
            .map(&[&Value::of(value)], &shape, compute, |math, elements| {
                let places = Places::new(math.at, &self.order);
                body(math, &places, elements[0])
            })
    }

    /// Returns the maximum of each window, independent of the order of its taps. NaN counts only as
    /// the first candidate of a window; then the result is NaN, since no other candidate is
    /// greater.
    fn greatest(&self) -> Ordered<'c> {
        let start = (f64::NEG_INFINITY, self.compute);
        if !self.compute.is_float() {
            return self.combine(None, start, |math, candidate, _, so_far| {
                math.max(so_far, self.competing(math, candidate))
            });
        }
        if !self.is_copied() {
            // Not `arith.maximumf`, which may lose NaN.
            return self.combine(None, start, |math, candidate, _, so_far| {
                let value = self.competing(math, candidate);
                let is_no_number = math.compare(F::UnorderedNotEqual, value, value);
                let stays = is_no_number & candidate.is_first;
                let is_greater = math.compare(F::Greater, value, so_far);
                (is_greater | stays).select(value, so_far)
            });
        }
        let greatest = self.combine(None, start, |_, candidate, _, so_far| so_far.maximumf(candidate.value));
        let axes = self.windows.axes();
        self.finish(greatest, self.compute, |math, places, greatest| {
            let (mut indices, mut conditions) = (vec![places.along(0), places.along(1)], Vec::new());
            for (spatial, axis) in axes.iter().enumerate() {
                let mut place = places.start(spatial, axis);
                let zero = places.constant(0);
                if axis.is_padded() && self.skips_padding {
                    place = place.maxsi(zero);
                }
                if axis.is_padded() {
                    let is_inside = places.is_below(place, axis.input);
                    place = is_inside.select(place, zero);
                    conditions.push(is_inside);
                }
                indices.push(place);
            }
            let first = self.x.element(&math.at, &indices);
            let first = convert(&math.at, first, self.x.dtype, self.compute);
            let mut is_none = math.compare(F::UnorderedNotEqual, first, first);
            if let Some(inside) = places.all(&conditions) {
                is_none = is_none & inside;
            }
            is_none.select(first, greatest)
        })
    }

    /// Returns the value with which a candidate competes: taps in the padding get the least value,
    /// or 0 if padding counts.
    fn competing(&self, math: &Math<'c>, candidate: &Candidate<'c>) -> Scalar<'c> {
        match candidate.inside {
            _ if self.is_copied() => candidate.value,
            None => candidate.value,
            Some(inside) if self.skips_padding => inside.select(candidate.value, least(math)),
            Some(inside) => inside.select(candidate.value, math.constant(0.0)),
        }
    }

    /// Returns the row-major number of the first tap in each window that has the greatest value;
    /// `NONE` if the window has no candidate.
    fn position(&self, greatest: &Ordered<'c>) -> Ordered<'c> {
        let start = (f64::from(NONE), DataType::I32);
        self.combine(Some(greatest), start, |math, candidate, beside, so_far| {
            let [greatest] = exactly(beside);
            let value = self.competing(math, candidate);
            let mut is_greatest = math.equal(value, greatest);
            if self.compute.is_float() {
                let is_no_number = math.compare(F::UnorderedNotEqual, greatest, greatest);
                let is_first = is_no_number & candidate.is_first;
                is_greatest = is_greatest | is_first;
            }
            if let (Some(inside), true) = (candidate.inside, self.skips_padding) {
                is_greatest = is_greatest & inside;
            }
            let none = math.at.integer(i64::from(NONE), math.at.element_type(DataType::I32));
            let ordinal = is_greatest.select(candidate.ordinal, none);
            so_far.minsi(ordinal)
        })
    }

    /// Returns the positions in x of taps; -1 for taps in the padding.
    fn index(&self, taps: Ordered<'c>, dtype: DataType) -> Ordered<'c> {
        let axes = self.windows.axes();
        self.finish(taps, dtype, |math, places, tap| {
            let none = math.at.integer(i64::from(NONE), math.ty);
            let is_none = math.at.compare_integers(I::Equal, tap, none);
            let tap = is_none.select(math.constant(0.0), tap);
            let tap = tap.index_cast(math.at.index_type());
            let taps = places.split(tap, self.windows.window);
            let (mut conditions, mut position) = (Vec::new(), Vec::new());
            for ((spatial, axis), along) in axes.iter().enumerate().zip(taps) {
                let place = places.start(spatial, axis) + along;
                if axis.is_padded() {
                    conditions.push(places.is_below(place, axis.input));
                }
                position.push(place);
            }
            let flat = places.cast(places.flat(&position, self.windows.input), DataType::I32);
            let minus_one = math.constant(-1.0);
            let found = match places.all(&conditions) {
                Some(inside) => inside.select(flat, minus_one),
                None => flat,
            };
            is_none.select(minus_one, found)
        })
    }

    /// Replaces the maximum of windows that read only padding by `least`.
    fn or_least(&self, greatest: Ordered<'c>, least: f64) -> Ordered<'c> {
        if !self.skips_padding || !self.windows.any(Axis::misses) {
            return greatest;
        }
        let axes = self.windows.axes();
        self.finish(greatest, self.compute, |math, places, greatest| {
            let mut conditions = Vec::new();
            for (spatial, axis) in axes.iter().enumerate().filter(|(_, axis)| axis.misses()) {
                let covered = places.covered(places.start(spatial, axis), axis);
                conditions.push(math.at.compare_integers(I::Greater, covered, places.constant(0)));
            }
            let covers = places.all(&conditions).expect(MISSING);
            covers.select(greatest, math.constant(least))
        })
    }

    /// Returns the average of the elements of each window.
    fn average(&self, mode: M) -> Ordered<'c> {
        let sums = self.combine(None, (0.0, self.compute), |math, candidate, _, so_far| {
            so_far + self.competing(math, candidate)
        });
        let axes = self.windows.axes();
        self.finish(sums, self.compute, |math, places, sum| {
            let starts = (0..axes.len())
                .zip(&axes)
                .map(|(spatial, axis)| places.start(spatial, axis));
            let divisor = divisor(math, places, &axes, mode, &starts.collect::<Vec<_>>());
            sum / divisor
        })
    }
}

/// The number that stands for no tap.
const NONE: i32 = i32::MAX;

/// Returns a value that no candidate is less than.
fn least<'c>(math: &Math<'c>) -> Scalar<'c> {
    if math.compute.is_float() {
        math.constant(f64::NEG_INFINITY)
    } else {
        math.at.integer(math.compute.whole_range().0, math.ty)
    }
}

/// Lowers pooling. If the graph has an index tensor, it is written whatever `generate_index` says:
/// hipDNN's reference skips it only if the attribute exists and is false (`ResampleFwdPlan.hpp`),
/// and in older schemas a missing attribute reads as false.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &ResampleFwd) {
    let least = least_finite(compute);
    let compute = checked_compute_type(compute);
    let (x, dims) = (lowering.settled(op.x), &lowering.tensor(op.y).dims);
    let lists = [&op.pre_padding, &op.stride, &op.window].map(Vec::as_slice);
    let mut pooling = Pooling {
        windows: Windows::new(&lowering.tensor(op.x).dims, dims, lists),
        order: lowering.stored_order(op.y).unwrap_or_else(|| x.order.clone()),
        dims,
        padded: None,
        x,
        compute,
        skips_padding: op.resample_mode == M::Maxpool && op.padding_mode == PaddingMode::NegInf,
        lowering,
    };
    if op.resample_mode == M::Maxpool
        && op.index.is_none()
        && let Some(greatest) = pooling.cpu_maximum()
    {
        pooling.order = greatest.order.clone();
        let y = pooling.or_least(greatest, least);
        let y = lowering.carry(y, lowering.carried_type(op.y, compute));
        lowering.define(op.y, Value::of(y));
        return;
    }
    let is_plain = pooling.x.dtype == compute && (compute.is_integer() || op.resample_mode != M::Maxpool);
    if lowering.target().is_cpu() && !(is_plain && pooling.windows.is_exact()) {
        pooling.padded = Some(pooling.copied(op.resample_mode));
    } else if pooling.windows.is_exact() {
        pooling.padded = Some(pooling.x.clone());
    }
    let (y, index) = if op.resample_mode == M::Maxpool {
        let greatest = pooling.greatest();
        let index = op.index.map(|id| {
            let position = pooling.position(&greatest);
            (id, pooling.index(position, lowering.tensor(id).dtype))
        });
        (pooling.or_least(greatest, least), index)
    } else {
        (pooling.average(op.resample_mode), None)
    };
    let y = lowering.carry(y, lowering.carried_type(op.y, compute));
    lowering.define(op.y, Value::of(y));
    if let Some((id, index)) = index {
        lowering.define(id, Value::of(index));
    }
}
