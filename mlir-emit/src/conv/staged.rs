//! The staged forms, for CPUs: operands are copied to layouts and extents for which code generation
//! is fast, and then the products are summed.
//!
//! Each copy is a separate kernel, behind a barrier.

use super::direct;
use super::named::{Axis, Dim, Tensor, between, sum};
use super::shape::{Shape, channels_first, channels_last};
use crate::counts::{ceil_div, product};
use crate::ir::Emitter;
use crate::kernel::{CpuKernel, CpuMatmul, Right};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::value::Ordered;
use rotini_graph::DataType;

/// Maximum number of groups that are summed one by one: they share one kernel, but compile time
/// grows with the number of calls.
const MAX_SINGLE_GROUPS: i64 = 64;

/// The maximum number of rows and of columns of the tiles that matmuls are padded to.
const MAX_TILE: u64 = 64;

/// A result in the compute type, and its memory order.
type Lowered<'c> = (Ssa<'c>, Vec<usize>);

/// The form in which a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Several groups of one channel: the channel is repeated for each filter that reads it.
    Depthwise,
    /// For each group a convolution, over a window of the two innermost axes: the only window for
    /// which code generation is fast.
    Convolution,
    /// For each group a matmul of the patches of x and the filters. A patch has all elements under
    /// one window.
    Patches,
    /// Many groups with several channels each: slow, and rare.
    Direct,
}

impl Form {
    pub(super) fn of(shape: &Shape<'_>) -> Form {
        match (shape.groups, shape.channels) {
            (2.., 1) => Form::Depthwise,
            (..=MAX_SINGLE_GROUPS, _) if is_plane(shape) && !has_wide_rows(shape) => Form::Convolution,
            (..=MAX_SINGLE_GROUPS, _) => Form::Patches,
            _ => Form::Direct,
        }
    }

    /// Returns another form of the same convolution, if one exists.
    pub(super) fn other(self, shape: &Shape<'_>) -> Option<Form> {
        match self {
            Form::Convolution => Some(Form::Patches),
            Form::Patches if is_plane(shape) => Some(Form::Convolution),
            _ => None,
        }
    }
}

/// Returns whether a convolution can be a matmul of patches for each group.
pub(super) fn has_patches(shape: &Shape<'_>) -> bool {
    shape.groups <= MAX_SINGLE_GROUPS
}

/// Returns whether windows and results extend along the two innermost axes, and windows along no
/// other axis.
fn is_plane(shape: &Shape<'_>) -> bool {
    let is_wide = |axis: usize| shape.window.get(axis) > Some(&1) && shape.output.get(axis) > Some(&1);
    match shape.window.as_slice() {
        [outer @ .., _, _] => {
            let axis = outer.len();
            outer.iter().all(|&extent| extent == 1) && is_wide(axis) && is_wide(axis + 1)
        }
        _ => false,
    }
}

/// Returns whether the strides of w are too large for the convolution form: w is [window, C, K],
/// and a kernel takes 16 filters of each row. With 256 filters or more, few rows fit into the
/// first-level cache at a time. There must be few positions, since each has a patch.
///
/// Measured on one core (f32, `rotini bench`), as a convolution and by patches: 256→256 3×3 at
/// 14×14 6.1 and 3.2 ms, 512→512 at 7×7 11 and 5.6 ms (Intel Sapphire Rapids); 1.4 and 1.4 ms, 2.7
/// and 1.9 ms (AMD Zen 5).
fn has_wide_rows(shape: &Shape<'_>) -> bool {
    const WIDE: i64 = 256;
    shape.filters >= WIDE && shape.positions() <= 2 * shape.filters
}

/// Returns whether the convolution is a matmul of patches by default.
pub(super) fn is_product(shape: &Shape<'_>) -> bool {
    Form::of(shape) == Form::Patches
}

/// Returns whether the lowering would make patches that take more than twice the memory of the
/// operands, or would use the slow direct form.
pub(super) fn has_large_patches(shape: &Shape<'_>) -> bool {
    match Form::of(shape) {
        Form::Patches => {
            let image = product(&shape.input).unwrap_or(u64::MAX);
            let channels = product(&[shape.batch, shape.groups, shape.channels]).unwrap_or(u64::MAX);
            let operands = [
                image.saturating_mul(channels),
                shape.filter_elements().unwrap_or(u64::MAX),
                product(&[shape.pixels(), shape.groups, shape.filters]).unwrap_or(u64::MAX),
            ];
            let patches = product(&[shape.pixels(), shape.groups, shape.terms()]).unwrap_or(u64::MAX);
            let operands = operands.into_iter().fold(0_u64, u64::saturating_add);
            product(&shape.window) > Some(1) && patches > operands.saturating_mul(2)
        }
        Form::Direct => true,
        Form::Depthwise | Form::Convolution => false,
    }
}

/// Lowers the convolution in the form `form`.
pub(super) fn lower<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, w]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (form, compute): (Form, DataType),
) -> Lowered<'c> {
    let at = &lowering.emitter();
    match form {
        Form::Patches => match cpu_matmul(lowering, x, w, shape, compute) {
            Some(result) => result,
            None => patches(at, x, w, shape, compute),
        },
        Form::Depthwise => depthwise(at, x, w, shape, compute),
        Form::Convolution => convolution(at, x, w, shape, compute),
        Form::Direct => direct::lower(at, x, w, shape, compute),
    }
}

/// Returns the number of elements of all tensors that [`lower`] makes from the operands, each
/// tensor counted once.
pub(super) fn elements(shape: &Shape<'_>) -> Option<u64> {
    let wide = shape.widened();
    let x = wide.padded_elements()?;
    let w = product(&shape.window)?.checked_mul(product(&[shape.groups, wide.filters, shape.channels])?)?;
    let y = product(&wide.output)?.checked_mul(product(&[shape.groups, shape.batch, wide.filters])?)?;
    let made = match Form::of(shape) {
        Form::Convolution => vec![x, w, y],
        Form::Patches => {
            let tiles = |extent: i64| u64::try_from(extent).ok()?.checked_next_multiple_of(MAX_TILE);
            let positions = tiles(shape.positions())?;
            let (terms, filters) = (tiles(shape.terms())?, tiles(shape.filters)?);
            let groups = u64::try_from(shape.groups).ok()?;
            let matrix = |rows: u64, columns: u64| rows.checked_mul(columns)?.checked_mul(groups);
            vec![
                x,
                matrix(positions, terms)?,
                matrix(filters, terms)?,
                matrix(positions, filters)?,
            ]
        }
        Form::Depthwise => {
            let own = shape.groups.checked_mul(shape.filters)?;
            let (own, padded) = (u64::try_from(own).ok()?, u64::try_from(whole_vectors(own)).ok()?);
            let with_padding = |elements: u64| elements.checked_div(own)?.checked_add(1)?.checked_mul(padded);
            let x = x.checked_mul(u64::try_from(shape.filters).ok()?)?;
            vec![with_padding(x)?, with_padding(w)?, with_padding(y)?]
        }
        Form::Direct => return direct::elements(shape),
    };
    made.into_iter().try_fold(0_u64, u64::checked_add)
}

/// Computes \[positions, terms\] times \[K, terms\] transposed by a kernel that reads w in place;
/// `None` if there is no such kernel, or packed tiles are faster.
///
/// Measured on one core (f32, AMD Zen 4), this product alone by packed tiles and by that kernel: 49
/// positions of 4608 terms by 512 filters 4.1 and 2.5 ms, of 2048 terms 1.7 and 1.1 ms, of 512
/// terms by 2048 filters 1.5 and 1.1 ms; 196 positions of 2304 terms by 256 filters 2.6 and 2.3 ms,
/// of 256 terms by 1024 filters 1.07 and 1.15 ms; 784 positions of 1152 terms by 128 filters 2.5
/// and 2.2 ms.
fn cpu_matmul<'c>(
    lowering: &Lowering<'_, 'c>,
    x: &Ordered<'c>,
    w: &Ordered<'c>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Option<(Ssa<'c>, Vec<usize>)> {
    const FEW: i64 = 64;
    const MANY: i64 = 1024;
    /// Maximum number of elements of the patches. They are read again for every few filters, and
    /// second-level caches hold part of them.
    const PATCHES: i64 = 1 << 20;
    let (positions, count) = (shape.positions(), shape.terms());
    let is_f32 = [x.dtype, w.dtype, compute] == [DataType::F32; 3];
    let rank = w.dims.len();
    let (first, last) = (channels_first(rank), channels_last(rank));
    let product = CpuMatmul {
        rows: positions,
        columns: shape.filters,
        terms: count,
        right: Right::Terms,
    };
    let is_faster = positions <= FEW || count >= MANY && positions.saturating_mul(count) <= PATCHES;
    let lies_so = w.lies_in(&first) || w.lies_in(&last);
    if !is_f32 || shape.groups > 1 || !lies_so || !lowering.has_cpu_matmul(&product) {
        return None;
    }
    if !lowering.chooser().takes_kernel("product", is_faster) {
        return None;
    }
    let at = &lowering.emitter();
    let spatial = shape.spatial();
    let (batch, channel) = ((Axis::Batch, shape.batch), (Axis::Channel, shape.channels));
    let (position, term) = ((Axis::Position, positions), (Axis::Channel, count));
    let terms = if w.lies_in(&last) {
        between(&[], Axis::Tap, &shape.window, &[channel])
    } else {
        between(&[channel], Axis::Tap, &shape.window, &[])
    };
    let x = reached(at, Tensor::input(at, x, 1), shape).padded(at, |axis| shape.zeros(axis));
    let axes = between(&[batch], Axis::Spatial, &shape.output, &terms);
    let x = x.copied(at, &axes, compute, shape.geometry);
    let x = x.merged(at, &[position, term], &[1 + spatial, spatial + 1]);
    let y = [&[shape.batch], shape.output.as_slice(), &[shape.filters]].concat();
    let ssa = lowering.cpu_kernel(&CpuKernel::Matmul(product), &[x.ssa, w.ssa], &y);
    Some((ssa, last))
}

/// Computes \[positions, window C\] times \[K, window C\] transposed.
fn patches<'c>(
    at: &Emitter<'c>,
    x: &Ordered<'c>,
    w: &Ordered<'c>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c> {
    let spatial = shape.spatial();
    let (group, channel) = (shape.group(), (Axis::Channel, shape.channels));
    let (batch, filter) = ((Axis::Batch, shape.batch), (Axis::Filter, shape.filters));
    let (position, term) = ((Axis::Position, shape.positions()), (Axis::Channel, shape.terms()));
    let outer = vec![1; group.len()];

    let dtype = x.dtype;
    let x = reached(at, Tensor::input(at, x, shape.groups), shape).padded(at, |axis| shape.zeros(axis));
    let taps = between(&[], Axis::Tap, &shape.window, &[channel]);
    let axes = between(&[&group[..], &[batch]].concat(), Axis::Spatial, &shape.output, &taps);
    let x = x.copied(at, &axes, dtype, shape.geometry);
    let runs = [&outer[..], &[1 + spatial, spatial + 1]].concat();
    let x = x.merged(at, &[&group[..], &[position, term]].concat(), &runs);

    let dtype = w.dtype;
    let axes = [&group[..], &[filter], &taps].concat();
    let w = Tensor::filter(at, w, shape.groups).copied(at, &axes, dtype, shape.geometry);
    let w = w.merged(
        at,
        &[&group[..], &[filter, term]].concat(),
        &[&outer[..], &[1, spatial + 1]].concat(),
    );

    let y = sum_groups(at, [x, w], shape, &[position, filter], &[term], compute);
    let axes = between(
        &[&group[..], &[batch]].concat(),
        Axis::Spatial,
        &shape.output,
        &[filter],
    );
    let y = y.split(at, &axes, &[&outer[..], &[1 + spatial, 1]].concat());
    channels_merged(at, y, shape, compute)
}

/// Computes a convolution of one channel per group. Vectors lie along the filters, in whole vectors
/// of 16 lanes. If several filters read one channel, x is repeated for them.
fn depthwise<'c>(
    at: &Emitter<'c>,
    x: &Ordered<'c>,
    w: &Ordered<'c>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c> {
    let (wide, geometry) = (shape.widened(), shape.geometry);
    let batch = (Axis::Batch, shape.batch);
    let own = (Axis::Filter, shape.groups * shape.filters);
    let filter = (Axis::Filter, whole_vectors(own.1));
    let more = |axis: Axis| match axis {
        Axis::Filter => (0, filter.1 - own.1),
        _ => wide.zeros(axis),
    };

    let repeated = [(Axis::Channel, shape.groups), (Axis::Filter, shape.filters)];
    let x = reached(at, Tensor::input(at, x, 1), &wide);
    let input = wide.reached();
    let x = x.copied(
        at,
        &between(&[batch], Axis::Spatial, &input, &repeated),
        compute,
        geometry,
    );
    let runs = [vec![1; 1 + shape.spatial()], vec![2]].concat();
    let x = x.merged(at, &between(&[batch], Axis::Spatial, &input, &[own]), &runs);
    let x = x.padded(at, more).behind_barrier(at);

    let taps = between(&[], Axis::Tap, &shape.window, &[(Axis::Channel, 1)]);
    let w = Tensor::filter(at, w, 1).copied(at, &[&taps[..], &[own]].concat(), compute, geometry);
    let w = w.padded(at, |axis| if axis == Axis::Filter { more(axis) } else { (0, 0) });
    let w = w.behind_barrier(at);

    let y = sum(
        at,
        [&x, &w],
        &between(&[batch], Axis::Spatial, &wide.output, &[filter]),
        &taps,
        geometry,
        compute,
    );
    let y = y.cropped(at, &between(&[batch], Axis::Spatial, &shape.output, &[own]));
    (y.ssa, channels_last(2 + shape.spatial()))
}

/// Rounds the number of filters up to whole vectors, if there is more than one vector of them.
fn whole_vectors(filters: i64) -> i64 {
    const VECTOR: i64 = 16;
    if filters > VECTOR {
        ceil_div(filters, VECTOR) * VECTOR
    } else {
        filters
    }
}

/// Convolves \[N, spatial, C\] with \[window, C, K\].
fn convolution<'c>(
    at: &Emitter<'c>,
    x: &Ordered<'c>,
    w: &Ordered<'c>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c> {
    let (wide, geometry) = (shape.widened(), shape.geometry);
    let (group, channel) = (shape.group(), (Axis::Channel, shape.channels));
    let (batch, filter) = ((Axis::Batch, shape.batch), (Axis::Filter, wide.filters));
    let outer = [&group[..], &[batch]].concat();

    let x = reached(at, Tensor::input(at, x, shape.groups), &wide);
    let x = x.copied(
        at,
        &between(&outer, Axis::Spatial, &wide.reached(), &[channel]),
        compute,
        geometry,
    );
    let x = x.padded(at, |axis| wide.zeros(axis)).behind_barrier(at);

    let more = wide.filters - shape.filters;
    let w = Tensor::filter(at, w, shape.groups);
    let w = w.padded(at, |axis| if axis == Axis::Filter { (0, more) } else { (0, 0) });
    let w = w.copied(
        at,
        &between(&group, Axis::Tap, &shape.window, &[channel, filter]),
        compute,
        geometry,
    );
    let w = w.behind_barrier(at);

    let result = between(&[batch], Axis::Spatial, &wide.output, &[filter]);
    let taps = between(&[], Axis::Tap, &shape.window, &[channel]);
    let y = sum_groups(at, [x, w], shape, &result, &taps, compute);
    let y = y.cropped(
        at,
        &between(&outer, Axis::Spatial, &shape.output, &[(Axis::Filter, shape.filters)]),
    );
    channels_merged(at, y, shape, compute)
}

/// Returns x without the elements that no window covers: if a loop has one step, the compiler
/// confuses the extent that is read with another extent.
fn reached<'c>(at: &Emitter<'c>, x: Tensor<'c>, shape: &Shape<'_>) -> Tensor<'c> {
    let surplus = shape.surplus();
    x.without(at, |axis| match axis {
        Axis::Spatial(index) => surplus[index],
        _ => 0,
    })
}

/// Sums each group separately if there are several. Groups are outermost, so that the data of each
/// is contiguous and all calls share one kernel.
fn sum_groups<'c>(
    at: &Emitter<'c>,
    [x, w]: [Tensor<'c>; 2],
    shape: &Shape<'_>,
    result: &[Dim],
    reduced: &[Dim],
    compute: DataType,
) -> Tensor<'c> {
    let group = shape.group();
    if group.is_empty() {
        return sum(at, [&x, &w], result, reduced, shape.geometry, compute);
    }
    let mut y = Tensor::empty(at, [&group[..], result].concat(), compute);
    for index in 0..shape.groups {
        // If the slices were fused, there would be a separate kernel for each group.
        let x = x.outermost(at, index).behind_barrier(at);
        let w = w.outermost(at, index).behind_barrier(at);
        y = y.with_outermost(at, index, &sum(at, [&x, &w], result, reduced, shape.geometry, compute));
    }
    y
}

/// Merges groups and filters of the result into one axis, channels last.
fn channels_merged<'c>(at: &Emitter<'c>, y: Tensor<'c>, shape: &Shape<'_>, compute: DataType) -> Lowered<'c> {
    let order = channels_last(2 + shape.spatial());
    let group = shape.group();
    if group.is_empty() {
        return (y.ssa, order);
    }
    let batch = (Axis::Batch, shape.batch);
    let split = [&group[..], &[(Axis::Filter, shape.filters)]].concat();
    let y = y.copied(
        at,
        &between(&[batch], Axis::Spatial, &shape.output, &split),
        compute,
        shape.geometry,
    );
    let merged = (Axis::Filter, shape.groups * shape.filters);
    let runs = [vec![1; 1 + shape.spatial()], vec![2]].concat();
    let y = y.merged(at, &between(&[batch], Axis::Spatial, &shape.output, &[merged]), &runs);
    (y.ssa, order)
}

impl Shape<'_> {
    /// Returns the axis of groups, if there are several groups.
    pub(super) fn group(&self) -> Vec<Dim> {
        if self.groups > 1 {
            vec![(Axis::Group, self.groups)]
        } else {
            Vec::new()
        }
    }

    /// Returns the shape with the output width and the filters rounded up to whole tiles, for which
    /// CPU kernels are fast.
    fn widened(&self) -> Self {
        let mut wide = self.clone();
        if let Some(width) = wide.output.last_mut()
            && *width > 8
        {
            // At most five more.
            while (5..=8).all(|tile| *width % tile != 0) {
                *width += 1;
            }
        }
        wide.filters = whole_vectors(wide.filters);
        wide
    }

    /// Returns the spatial extents of x without the elements that no window covers.
    fn reached(&self) -> Vec<i64> {
        self.input
            .iter()
            .zip(self.surplus())
            .map(|(input, surplus)| input - surplus)
            .collect()
    }

    /// Returns the number of windows in the whole batch: at most the number of elements of y.
    pub(super) fn positions(&self) -> i64 {
        self.batch * self.output.iter().product::<i64>()
    }

    /// Returns the number of products in the sum of one element: at most the number of elements of
    /// w.
    pub(super) fn terms(&self) -> i64 {
        self.channels * self.window.iter().product::<i64>()
    }

    /// Returns the zeros to add before and after an axis of x.
    fn zeros(&self, axis: Axis) -> (i64, i64) {
        match axis {
            Axis::Spatial(index) => self.padding()[index],
            _ => (0, 0),
        }
    }
}
