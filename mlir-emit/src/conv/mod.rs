//! Convolutions and their gradients: which are supported, and which form computes them.
//!
//! On MI300 most convolutions are kernels of rotini (`kernels`, `dgrad`). For the others, and on
//! other GPUs, `direct` gives code generation the convolution as one operation. `staged` has the
//! forms for CPUs, where code generation is fast only for operands of certain layouts and extents;
//! `panels` and `taps` are kernels of rotini for CPUs.

mod collected;
mod crop;
mod dgrad;
mod direct;
mod gradient;
mod kernels;
mod named;
mod panels;
pub(crate) mod shape;
mod staged;
mod taps;

use crate::Unsupported;
use crate::choice;
use crate::contract::repeated;
use crate::convert::{check_compute, check_not_constant, checked_compute_type};
use crate::ir::Emitter;
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::target::ConvStrategy;
use crate::value::{Ordered, Value, extent, extents};
use crate::windows::check_padded;
use crop::Cropped;
use rotini_graph::{ConvDgrad, ConvFprop, ConvGeometry, ConvWgrad, DataType, NormalGraph, TensorId};
use shape::{Shape, channels_first, channels_last};
use staged::Form;

/// Checks whether the convolution can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &ConvFprop) -> Result<(), Unsupported> {
    check_geometry(graph, op.x, &op.geometry)?;
    check_compute(graph, compute, &[op.x, op.w])?;
    check_not_constant(graph, &[op.x, op.w])?;
    check_reached(graph, op)
}

/// Declines a convolution whose windows cover no element of x, so that its result is zero for every
/// x: the compiler has no empty tensors.
fn check_reached(graph: &NormalGraph, op: &ConvFprop) -> Result<(), Unsupported> {
    let (Some(x), Some(w), Some(y)) = (graph.tensor(op.x), graph.tensor(op.w), graph.tensor(op.y)) else {
        return Ok(());
    };
    let Cropped { dims, geometry, .. } = Cropped::new(&x.dims, &op.geometry);
    let shape = Shape::new(&dims, &w.dims, &y.dims, &geometry);
    let is_reached = shape.is_some_and(|shape| {
        shape
            .input
            .iter()
            .zip(shape.surplus())
            .all(|(input, surplus)| surplus < *input)
    });
    if is_reached {
        return Ok(());
    }
    Err(Unsupported::new("windows that reach nothing but padding"))
}

fn check_geometry(graph: &NormalGraph, input: TensorId, geometry: &ConvGeometry) -> Result<(), Unsupported> {
    let spatial = geometry.stride.len();
    if spatial > 3 {
        return Err(Unsupported::new(format!("{spatial} spatial dimensions, more than 3")));
    }
    let dims = graph.tensor(input).map_or(&[][..], |tensor| &tensor.dims);
    Cropped::new(dims, geometry).check()?;
    check_padded(graph, input, [&geometry.pre_padding, &geometry.post_padding])
}

/// Lowers the convolution.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &ConvFprop) {
    let at = lowering.emitter();
    let compute = checked_compute_type(compute);
    let [x, w] = lowering.factors([op.x, op.w], compute);
    let y = lowering.tensor(op.y);
    let cropped = Cropped::new(&x.dims, &op.geometry);
    let mut x = cropped.of(&at, x);
    let mut shape = Shape::of(&x.dims, &w.dims, &y.dims, &cropped.geometry);
    let w = reversed(&at, w, &shape);
    let strategy = lowering.target().conv_strategy();
    if strategy == ConvStrategy::Direct && lowering.quirks().repeats_channels(&shape) {
        shape = shape.with_a_channel_per_filter();
        let dims: Vec<i64> = [shape.batch, shape.groups]
            .into_iter()
            .chain(shape.input.iter().copied())
            .collect();
        x = repeated(lowering, x, &dims, 2);
    }
    let (ssa, order) = match strategy {
        ConvStrategy::Direct => {
            let order = lowering.stored_order(op.y).unwrap_or_else(|| x.order.clone());
            on_gpus(lowering, [&x, &w], &shape, (&order, compute))
        }
        ConvStrategy::Staged => {
            let order = lowering.stored_order(op.y).unwrap_or_else(|| x.order.clone());
            let is_bare = !lowering.is_read(op.y);
            let form = form(lowering, [&x, &w], &shape, (&y.dims, &order, is_bare), compute);
            if form.is_none()
                && let Some(result) = panels::forward(lowering, [&x, &w], &shape, (&y.dims, &order), compute)
            {
                return lowering.define_sums(op.y, result, compute);
            }
            let [x, w] = summable(lowering, [x, w], &shape, compute);
            let form = form.unwrap_or(Form::of(&shape));
            let (ssa, made) = staged::lower(lowering, [&x, &w], &shape, (form, compute));
            (stored_apart(lowering, op.y, (ssa, &made), form), made)
        }
    };
    let result = Ordered::new(ssa, order, compute, y.dims.clone());
    lowering.define_sums(op.y, result, compute)
}

/// Chooses the form of a convolution on a CPU: `None` is the panels kernel.
fn form(
    lowering: &Lowering<'_, '_>,
    factors: [&Ordered<'_>; 2],
    shape: &Shape<'_>,
    (dims, order, is_bare): (&[i64], &[usize], bool),
    compute: DataType,
) -> Option<Form> {
    let own = Form::of(shape);
    let has_kernel = !shape.is_depthwise() && panels::are_floats(lowering, factors, compute);
    let usual = (!has_kernel || !has_panels(shape, (dims, order), is_bare)).then_some(own);
    let forms = || {
        let other = own.other(shape).map(|other| {
            let id = if other == Form::Patches {
                "patches"
            } else {
                "convolution"
            };
            choice::Form::new(id, Some(other))
        });
        let kernel = has_kernel.then(|| choice::Form::new("panels", None));
        kernel
            .into_iter()
            .chain([choice::Form::new("iree", Some(own))])
            .chain(other)
            .collect()
    };
    lowering.chooser().choose("conv", usual, forms, |_| None)
}

/// Returns whether a convolution on a CPU uses the panels kernel by default: the compiler's form
/// takes longer, or its patches would take much more memory than the operands. An epilogue is a
/// separate dispatch after the panels kernel.
///
/// Measured on one core (f32, N=8), the compiler's form and panels: 256→256 3×3 at 14, channels
/// last, 29 and 13.6 ms with AVX-512; the same with a stride of 2 and a ReLU 503 and 19 ms with
/// AVX2; 3→64 7×7 with a ReLU 13.9 and 16.8 ms; 2048→512 1×1 at 7, N=1, 0.8 and 1.2 ms.
fn has_panels(shape: &Shape<'_>, (dims, order): (&[i64], &[usize]), is_bare: bool) -> bool {
    const FEW_CHANNELS: i64 = 16;
    const FEW_PIXELS: i64 = 128;
    if shape.is_depthwise() {
        return false;
    }
    // The compiler's form of a convolution with one channel takes ten times as long.
    let is_single = shape.groups == 1 && shape.channels == 1 && shape.window.len() > 1;
    let is_faster = if panels::is_last(dims, order) {
        shape.groups == 1 && shape.pixels() >= FEW_PIXELS && (is_bare || shape.channels >= FEW_CHANNELS)
    } else {
        // Small images leave lanes idle, which costs more than a copy of the result.
        let is_small =
            staged::is_product(shape) && shape.terms() > shape.channels && shape.output.iter().product::<i64>() <= 64;
        is_bare && !is_small
    };
    is_faster || is_single || staged::has_large_patches(shape)
}

/// Returns whether dgrad by the panels kernel is faster than a convolution with the rotated filter:
/// pixels are innermost, there are many channels, or the convolution would be a matmul of patches.
///
/// Measured on one core (f32, AVX-512): copying a 512→512 3×3 filter takes 50 ms, dgrad by panels
/// at 7×7 takes 2.1 ms. With 32 channels, channels last, the convolution is faster.
fn needs_no_turned_filter(forward: &Shape<'_>, is_last: bool, is_bare: bool) -> bool {
    const FEW: i64 = 32;
    let has_taps = forward.window.iter().any(|&extent| extent > 1);
    let is_faster = !is_last || forward.channels > FEW || !has_taps;
    is_bare && is_faster || has_taps && staged::is_product(&forward.exchanged())
}

/// Puts the sums of a product into a separate dispatch if nothing else reads them and they are
/// stored in another order. The compiler would fold the copy into the product, which then is not
/// packed and takes ten times as long.
fn stored_apart<'c>(
    lowering: &Lowering<'_, 'c>,
    id: TensorId,
    (ssa, order): (Ssa<'c>, &[usize]),
    form: Form,
) -> Ssa<'c> {
    let is_stored_otherwise = lowering.stored_order(id).is_some_and(|stored| stored != order);
    if is_stored_otherwise && !lowering.is_read(id) && form == Form::Patches {
        return lowering.emitter().barrier(ssa);
    }
    ssa
}

/// Lowers the convolution for a GPU. Returns the result and its memory order: `order` if a kernel
/// of rotini computes it.
fn on_gpus<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, w]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (order, compute): (&[usize], DataType),
) -> (Ssa<'c>, Vec<usize>) {
    let at = lowering.emitter();
    if let Some(machine) = lowering.target().machine()
        && let Some(ssa) = kernels::lower(lowering, [x, w], shape, (order, compute, machine))
    {
        return (ssa, order.to_vec());
    }
    let [x, w] = summable(lowering, [x.clone(), w.clone()], shape, compute);
    let is_dense = !shape.is_depthwise() && staged::has_patches(shape);
    if lowering.target().machine().is_none() && is_dense {
        let forms = || {
            let direct = choice::Form::new("iree", Form::Direct);
            vec![direct, choice::Form::new("patches", Form::Patches)]
        };
        let form = lowering.chooser().choose("conv", Form::Direct, forms, |_| None);
        return staged::lower(lowering, [&x, &w], shape, (form, compute));
    }
    direct::lower(&at, &x, &w, shape, compute)
}

/// Returns the operands in types in which the compiler can sum their products.
fn summable<'c>(
    lowering: &Lowering<'_, 'c>,
    factors: [Ordered<'c>; 2],
    shape: &Shape<'_>,
    compute: DataType,
) -> [Ordered<'c>; 2] {
    lowering.summable(factors, [shape.pixels(), shape.filters], &[shape.channels], compute)
}

/// Checks whether a gradient with respect to x can be lowered.
pub(crate) fn check_dgrad(graph: &NormalGraph, compute: DataType, op: &ConvDgrad) -> Result<(), Unsupported> {
    check_geometry(graph, op.dx, &op.geometry)?;
    check_compute(graph, compute, &[op.dy, op.w])?;
    check_not_constant(graph, &[op.dy, op.w])
}

/// Lowers a gradient with respect to x.
pub(crate) fn lower_dgrad(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &ConvDgrad) {
    const FEW: i64 = 4;
    let at = lowering.emitter();
    let compute = checked_compute_type(compute);
    let [dy, w] = lowering.factors([op.dy, op.w], compute);
    let dx = lowering.tensor(op.dx);
    let cropped = Cropped::new(&dx.dims, &op.geometry);
    let dims = &cropped.dims;
    let forward = Shape::of(dims, &w.dims, &dy.dims, &cropped.geometry);
    let order = lowering.stored_order(op.dx).unwrap_or_else(|| dy.order.clone());
    let stored = if lowering.is_read(op.dx) {
        lowering.carried_type(op.dx, compute)
    } else {
        dx.dtype
    };
    if !forward.is_reversed() {
        let factors = [&dy, &w];
        if let Some(result) = dgrad::lower(lowering, factors, (dims, &order), &forward, [stored, compute]) {
            let result = cropped.surrounded(&at, result, &dx.dims);
            if forward.geometry.stride.iter().all(|&stride| stride == 1) {
                return lowering.define_sums(op.dx, result, compute);
            }
            lowering.define(op.dx, Value::of(result));
            return;
        }
    }
    if lowering.target().conv_strategy() == ConvStrategy::Staged {
        let is_bare = !lowering.is_read(op.dx);
        let is_last = panels::is_last(dims, &order);
        let is_wanted = if forward.is_depthwise() {
            !forward.is_turned() && (!is_last || forward.filters == 1)
        } else {
            !forward.is_turned()
                || has_panels(&forward.exchanged(), (dims, &order), is_bare)
                || needs_no_turned_filter(&forward, is_last, is_bare)
        };
        // With few channels, vectors along them would leave lanes idle. So vectors lie along the
        // positions: dy is copied to channels first, and dx is computed in this order.
        let is_thin = forward.groups == 1 && forward.channels <= FEW && panels::is_last(&dy.dims, &dy.order);
        let (order, order_of_dy) = if is_thin {
            (channels_first(dims.len()), channels_first(dims.len()))
        } else {
            (order.clone(), dy.order.clone())
        };
        let result = (dims.as_slice(), order.as_slice());
        let is_usual = is_wanted || is_thin;
        let is_possible = is_usual || !forward.is_depthwise();
        let is_possible = is_possible && panels::are_floats(lowering, [&dy, &w], compute);
        let takes_kernel = is_possible && lowering.chooser().takes_kernel("dgrad", is_usual);
        if takes_kernel
            && let Some(result) = panels::dgrad(lowering, [&dy, &w], &order_of_dy, &forward, result, compute)
        {
            let result = cropped.surrounded(&at, result, &dx.dims);
            return lowering.define_sums(op.dx, result, compute);
        }
    }
    if !forward.is_turned() {
        let w = reversed(&at, w, &forward);
        let extents = [forward.positions(), forward.terms()];
        let [dy, w] = lowering.summable([dy, w], extents, &[forward.filters], compute);
        let result = collected::collected(lowering, [&dy, &w], dims, &order, &forward, compute);
        let result = cropped.surrounded(&at, result, &dx.dims);
        return lowering.define_sums(op.dx, result, compute);
    }
    let extents = [forward.pixels(), forward.channels];
    let [dy, w] = lowering.summable([dy, w], extents, &[forward.filters], compute);
    let turned = gradient::turned(&at, &w, &forward);
    let shape = Shape::of(&dy.dims, &turned.w.dims, dims, &turned.geometry);
    let (ssa, order) = match lowering.target().conv_strategy() {
        ConvStrategy::Direct => {
            let order = lowering.stored_order(op.dx).unwrap_or_else(|| dy.order.clone());
            on_gpus(lowering, [&dy, &turned.w], &shape, (&order, compute))
        }
        ConvStrategy::Staged => {
            let form = Form::of(&shape);
            let (ssa, made) = staged::lower(lowering, [&dy, &turned.w], &shape, (form, compute));
            (stored_apart(lowering, op.dx, (ssa, &made), form), made)
        }
    };
    let result = Ordered::new(ssa, order, compute, dims.clone());
    lowering.define_sums(op.dx, cropped.surrounded(&at, result, &dx.dims), compute)
}

/// Checks whether a gradient with respect to w can be lowered.
pub(crate) fn check_wgrad(graph: &NormalGraph, compute: DataType, op: &ConvWgrad) -> Result<(), Unsupported> {
    check_geometry(graph, op.x, &op.geometry)?;
    check_compute(graph, compute, &[op.x, op.dy])?;
    check_not_constant(graph, &[op.x, op.dy])
}

/// Lowers a gradient with respect to w.
pub(crate) fn lower_wgrad(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &ConvWgrad) {
    let at = lowering.emitter();
    let compute = checked_compute_type(compute);
    let [x, dy] = lowering.factors([op.x, op.dy], compute);
    let dw = lowering.tensor(op.dw);
    let cropped = Cropped::new(&x.dims, &op.geometry);
    let x = cropped.of(&at, x);
    let shape = Shape::of(&x.dims, &dw.dims, &dy.dims, &cropped.geometry);
    if let Some(machine) = lowering.target().machine()
        && let Some(result) = kernels::wgrad(lowering, [&x, &dy], &shape, (compute, machine, lowering.is_read(op.dw)))
    {
        return lowering.define_sums(op.dw, result, compute);
    }
    if let Some(result) = wgrad_on_cpus(lowering, [&x, &dy], &shape, (op, compute)) {
        return lowering.define_sums(op.dw, result, compute);
    }
    let summed = [&[shape.batch], shape.output.as_slice()].concat();
    let [x, dy] = lowering.summable([x, dy], [shape.channels, shape.filters], &summed, compute);
    // On CPUs, in the memory order in which the gradient is stored: copying a large filter to
    // another order takes longer than computing its gradient.
    let last = channels_last(dw.dims.len());
    let is_last = lowering.target().conv_strategy() == ConvStrategy::Staged
        && lowering.stored_order(op.dw).is_some_and(|order| order == last);
    let manner = (compute, lowering.target(), is_last);
    let result = Ordered::new(
        gradient::filter(&at, &x, &dy, &shape, manner),
        if is_last { last } else { channels_first(dw.dims.len()) },
        compute,
        dw.dims.clone(),
    );
    lowering.define_sums(op.dw, result, compute)
}

/// Returns the gradient with respect to w from one of the CPU kernels, or `None` if none fits.
fn wgrad_on_cpus<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, dy]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (op, compute): (&ConvWgrad, DataType),
) -> Option<Ordered<'c>> {
    if lowering.target().conv_strategy() != ConvStrategy::Staged {
        return None;
    }
    let dims = &lowering.tensor(op.dw).dims;
    let is_possible = panels::are_floats(lowering, [x, dy], compute);
    if is_possible && !lowering.chooser().takes_kernel("wgrad", true) {
        return None;
    }
    if shape.is_depthwise() {
        if let Some(result) = taps::lower(lowering, [x, dy], shape, dims, compute) {
            return Some(result);
        }
        // The panels kernel is used only where its vectors lie along contiguous channels.
        let are_last = [x, dy]
            .iter()
            .all(|tensor| panels::is_last(&tensor.dims, &tensor.order));
        if shape.filters > 1 || !are_last {
            return None;
        }
    }
    let order = lowering
        .stored_order(op.dw)
        .unwrap_or_else(|| channels_first(dims.len()));
    panels::wgrad(lowering, [x, dy], shape, (dims, &order), compute)
}

/// Returns the number of elements of all tensors that the lowering of a gradient with respect to x
/// makes from the operands.
pub(crate) fn dgrad_elements(graph: &NormalGraph, op: &ConvDgrad, strategy: ConvStrategy) -> Option<u64> {
    let (dy, w, dx) = (graph.tensor(op.dy)?, graph.tensor(op.w)?, graph.tensor(op.dx)?);
    let cropped = Cropped::new(&dx.dims, &op.geometry);
    let forward = Shape::new(&cropped.dims, &w.dims, &dy.dims, &cropped.geometry)?;
    let surrounded = cropped.elements(&dx.dims)?;
    if !forward.is_turned() {
        let collected = collected::elements(&forward)?;
        return collected
            .checked_add(forward.reversed_elements()?)?
            .checked_add(surrounded);
    }
    let geometry = forward.turned_geometry();
    let shape = Shape {
        filters: forward.channels,
        channels: forward.filters,
        input: forward.spread(),
        output: forward.input.clone(),
        geometry: &geometry,
        ..forward.clone()
    };
    let convolution = match strategy {
        ConvStrategy::Direct => direct::elements(&shape),
        ConvStrategy::Staged => staged::elements(&shape),
    };
    convolution?
        .checked_add(gradient::turned_elements(&forward)?)?
        .checked_add(surrounded)
}

/// Returns the number of elements of all tensors that the lowering of a gradient with respect to w
/// makes from the operands.
pub(crate) fn wgrad_elements(graph: &NormalGraph, op: &ConvWgrad) -> Option<u64> {
    let (x, dy, dw) = (graph.tensor(op.x)?, graph.tensor(op.dy)?, graph.tensor(op.dw)?);
    let cropped = Cropped::new(&x.dims, &op.geometry);
    let shape = Shape::new(&cropped.dims, &dw.dims, &dy.dims, &cropped.geometry)?;
    let merged = match shape.merged_groups() {
        Some(_) => wgrad_sums(graph, op)?,
        None => 0,
    };
    gradient::filter_elements(&shape)?
        .checked_add(merged)?
        .checked_add(cropped.elements(&x.dims)?)
}

/// Returns the number of sums that a kernel of rotini computes for a gradient with respect to w:
/// more than the filter has elements if groups are merged.
pub(crate) fn wgrad_sums(graph: &NormalGraph, op: &ConvWgrad) -> Option<u64> {
    let (x, dy, dw) = (graph.tensor(op.x)?, graph.tensor(op.dy)?, graph.tensor(op.dw)?);
    let shape = Shape::new(&x.dims, &dw.dims, &dy.dims, &op.geometry)?;
    let merged = u64::try_from(shape.merged_groups().unwrap_or(1)).ok()?;
    shape.filter_elements()?.checked_mul(merged)
}

/// Returns the number of elements of all tensors that the lowering makes from a convolution's
/// operands, each tensor counted once: copies, padded and widened tensors, patches, and the sum.
/// `None` if the number overflows.
pub(crate) fn elements(graph: &NormalGraph, op: &ConvFprop, strategy: ConvStrategy) -> Option<u64> {
    let (x, w, y) = (graph.tensor(op.x)?, graph.tensor(op.w)?, graph.tensor(op.y)?);
    let cropped = Cropped::new(&x.dims, &op.geometry);
    let shape = Shape::new(&cropped.dims, &w.dims, &y.dims, &cropped.geometry)?;
    let reversed = shape.reversed_elements()?.checked_add(cropped.elements(&x.dims)?)?;
    let elements = match strategy {
        ConvStrategy::Direct if shape.is_dilated_multiplier() => {
            let shape = shape.with_a_channel_per_filter();
            direct::elements(&shape)?.checked_add(shape.padded_elements()?)
        }
        ConvStrategy::Direct => direct::elements(&shape),
        ConvStrategy::Staged => staged::elements(&shape),
    };
    elements?.checked_add(reversed)
}

/// Returns the filter as a cross-correlation reads it: if the convolution reads the filter rotated
/// by 180° (`CONVOLUTION`), a copy with the taps in reverse order.
fn reversed<'c>(at: &Emitter<'c>, w: Ordered<'c>, shape: &Shape<'_>) -> Ordered<'c> {
    if !shape.is_reversed() {
        return w;
    }
    let ssa = at.tabulate(&extents(&w.dims, &w.order), w.dtype, || {
        let mut indices = Vec::new();
        for (position, &axis) in w.order.iter().enumerate() {
            let here = at.loop_index(position);
            indices.push(if axis < 2 {
                here
            } else {
                let last = at.integer(extent(&w.dims, axis) - 1, at.index_type());
                last - here
            });
        }
        at.extract(w.ssa, &indices, w.dtype)
    });
    Ordered {
        ssa: at.barrier(ssa),
        ..w
    }
}
