//! Values of the lowering: tensors in memory order.
//!
//! A [`Value`] knows the logical axis of each of its physical axes. Repeated axes (with stride 0,
//! or broadcast) have no physical axis: index maps leave them out, so no repetition is ever copied.

use crate::ir::{Emitter, IndexMap, Input};
use crate::mlir::Value as Ssa;
use rotini_graph::{DataType, Scalar};

/// A tensor during lowering.
#[derive(Clone, Debug)]
pub(crate) struct Value<'c> {
    /// The tensor, or the scalar that equals all elements.
    pub(crate) data: Data<'c>,
    /// The current element type, which may be wider than that of the graph's tensor.
    pub(crate) dtype: DataType,
    /// Logical extents.
    pub(crate) dims: Vec<i64>,
}

/// The content of a value.
#[derive(Clone, Debug)]
pub(crate) enum Data<'c> {
    /// A tensor whose physical axis `i` is the logical axis `order[i]`.
    Tensor { ssa: Ssa<'c>, order: Vec<usize> },
    /// A compile-time constant that equals all elements.
    Constant(Scalar),
    /// A scalar argument of the function that equals all elements.
    Scalar(Ssa<'c>),
}

/// A tensor with its memory order: a [`Value`] that is not a constant.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<'c> {
    pub(crate) ssa: Ssa<'c>,
    pub(crate) order: Vec<usize>,
    pub(crate) dtype: DataType,
    /// Logical extents of all axes.
    pub(crate) dims: Vec<i64>,
}

impl<'c> Value<'c> {
    /// Returns the tensor and the order of its axes. The value must be a tensor.
    pub(crate) fn into_tensor(self) -> (Ssa<'c>, Vec<usize>) {
        match self.data {
            Data::Tensor { ssa, order } => (ssa, order),
            Data::Constant(_) | Data::Scalar(_) => unreachable!("a constant instead of a tensor"),
        }
    }

    pub(crate) fn of(ordered: Ordered<'c>) -> Self {
        Value {
            data: Data::Tensor {
                ssa: ordered.ssa,
                order: ordered.order,
            },
            dtype: ordered.dtype,
            dims: ordered.dims,
        }
    }

    /// Returns the order of the physical axes; none if all elements equal a constant or scalar.
    pub(crate) fn order(&self) -> &[usize] {
        match &self.data {
            Data::Tensor { order, .. } => order,
            Data::Constant(_) | Data::Scalar(_) => &[],
        }
    }

    /// Returns the value with other axes of extent 1; all other axes stay, in the same sequence.
    pub(crate) fn with_dims(self, at: &Emitter<'c>, dims: &[i64]) -> Self {
        if self.dims == dims {
            return self;
        }
        let wide =
            |dims: &[i64]| -> Vec<usize> { (0..dims.len()).filter(|&axis| dims.get(axis) != Some(&1)).collect() };
        let (from, to) = (wide(&self.dims), wide(dims));
        if extents(&self.dims, &from) != extents(dims, &to) {
            unreachable!("a value with other extents");
        }
        let data = match self.data {
            data @ (Data::Constant(_) | Data::Scalar(_)) => data,
            Data::Tensor { ssa, order } => {
                let keep: Vec<bool> = order.iter().map(|axis| from.contains(axis)).collect();
                let ssa = drop_unit_axes(at, ssa, &keep);
                let moved = |axis: &usize| {
                    let position = from.iter().position(|candidate| candidate == axis);
                    to.get(position?).copied()
                };
                let order = order.iter().filter_map(moved).collect();
                Data::Tensor { ssa, order }
            }
        };
        Value {
            data,
            dtype: self.dtype,
            dims: dims.to_vec(),
        }
    }

    /// Returns the value without the physical axes for which an iteration over `dims` has no loop.
    /// They must have extent 1.
    pub(crate) fn over(&self, at: &Emitter<'c>, dims: &[i64], loops: &[usize]) -> Self {
        let Data::Tensor { ssa, order } = &self.data else {
            return self.clone();
        };
        let shift = dims
            .len()
            .checked_sub(self.dims.len())
            .expect("an operand of higher rank");
        let has_loop = |axis: usize| axis.checked_add(shift).is_some_and(|axis| loops.contains(&axis));
        let mut keep = Vec::with_capacity(order.len());
        for &axis in order {
            let stays = has_loop(axis);
            if !stays && extent(&self.dims, axis) != 1 {
                unreachable!("an operand with an axis that its iteration lacks");
            }
            keep.push(stays);
        }
        let ssa = drop_unit_axes(at, *ssa, &keep);
        let order = order.iter().copied().filter(|&axis| has_loop(axis)).collect();
        Value::of(Ordered::new(ssa, order, self.dtype, self.dims.clone()))
    }

    /// Returns the value as a tensor with all its axes: repeated axes are written out, constants
    /// filled in.
    pub(crate) fn materialise(&self, at: &Emitter<'c>) -> Ordered<'c> {
        let rank = self.dims.len();
        if let Data::Tensor { ssa, order } = &self.data
            && order.len() == rank
        {
            return Ordered::new(*ssa, order.clone(), self.dtype, self.dims.clone());
        }
        let order: Vec<usize> = (0..rank).collect();
        let ssa = self.copy_to(at, &order);
        Ordered::new(ssa, order, self.dtype, self.dims.clone())
    }

    /// Copies the elements to a new tensor in another order.
    pub(crate) fn copy_to(&self, at: &Emitter<'c>, order: &[usize]) -> Ssa<'c> {
        let operand = Operand::new(at, self, &self.dims);
        let inputs = operand.input(order);
        at.elementwise(&extents(&self.dims, order), self.dtype, inputs.as_slice(), |elements| {
            operand.element(at, elements.first().copied())
        })
    }
}

/// A value as an operand of a structured operation that iterates over another shape.
pub(crate) struct Operand<'c> {
    /// The content; the order of a tensor is that of the iteration's logical axes.
    source: Data<'c>,
    dtype: DataType,
}

impl<'c> Operand<'c> {
    /// Broadcasts `value`, right-aligned, to the logical extents `dims`. Axes of extent 1 that meet
    /// a larger extent are dropped, so that the index map stays a projected permutation, which the
    /// compiler fuses best.
    pub(crate) fn new(at: &Emitter<'c>, value: &Value<'c>, dims: &[i64]) -> Self {
        let Data::Tensor { ssa, order } = &value.data else {
            return Operand {
                source: value.data.clone(),
                dtype: value.dtype,
            };
        };
        let shift = dims
            .len()
            .checked_sub(value.dims.len())
            .expect("an operand of higher rank");
        let mut keep = Vec::with_capacity(order.len());
        let mut axes = Vec::with_capacity(order.len());
        for &axis in order {
            let outer = axis.checked_add(shift).expect("an axis out of range");
            let moves = extent(&value.dims, axis) == extent(dims, outer);
            keep.push(moves);
            if moves {
                axes.push(outer);
            }
        }
        let ssa = drop_unit_axes(at, *ssa, &keep);
        Operand {
            source: Data::Tensor { ssa, order: axes },
            dtype: value.dtype,
        }
    }

    /// Returns the operand with its index map, for an iteration whose loops are the logical axes
    /// `order`; `None` for a constant or scalar.
    pub(crate) fn input(&self, order: &[usize]) -> Option<Input<'c>> {
        let Data::Tensor { ssa, order: axes } = &self.source else {
            return None;
        };
        let results = axes.iter().map(|&axis| position(order, axis));
        Some((*ssa, IndexMap::select(order.len(), results)))
    }

    /// Returns the operand's element inside the body: the element that was read, or the constant or
    /// scalar.
    pub(crate) fn element(&self, body: &Emitter<'c>, read: Option<Ssa<'c>>) -> Ssa<'c> {
        match (&self.source, read) {
            (Data::Tensor { .. }, Some(element)) => element,
            (Data::Tensor { .. }, None) => unreachable!("an operand that was not read"),
            (Data::Scalar(ssa), _) => *ssa,
            (Data::Constant(Scalar::Integer(value)), _) if self.dtype.is_integer() => {
                body.integer(*value, body.element_type(self.dtype))
            }
            (Data::Constant(scalar), _) => body.float(scalar.to_f64(), body.element_type(self.dtype)),
        }
    }

    /// Returns true if the element comes from a tensor.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.source, Data::Tensor { .. })
    }

    /// Returns the type of the element.
    pub(crate) fn dtype(&self) -> DataType {
        self.dtype
    }
}

/// Returns the place of a logical axis in an order, which must have it.
pub(crate) fn position(order: &[usize], axis: usize) -> usize {
    let position = order.iter().position(|&candidate| candidate == axis);
    position.expect("an axis without a loop")
}

/// Returns the extent of a logical axis.
pub(crate) fn extent(dims: &[i64], axis: usize) -> i64 {
    dims[axis]
}

/// Returns the physical shape of a tensor with these logical extents in this order.
pub(crate) fn extents(dims: &[i64], order: &[usize]) -> Vec<i64> {
    order.iter().map(|&axis| extent(dims, axis)).collect()
}

/// Removes the physical axes that are not kept, all of extent 1.
pub(crate) fn drop_unit_axes<'c>(at: &Emitter<'c>, ssa: Ssa<'c>, keep: &[bool]) -> Ssa<'c> {
    if keep.iter().all(|&kept| kept) {
        return ssa;
    }
    let (shape, _) = ssa.r#type().as_tensor();
    let kept: Vec<i64> = shape
        .iter()
        .zip(keep)
        .filter(|(_, kept)| **kept)
        .map(|(&extent, _)| extent)
        .collect();
    at.collapse(ssa, &unit_groups(keep), &kept)
}

/// Returns the reassociation groups that drop or add unit axes: each kept axis is grouped with the
/// unit axes after it, the first also with those before it.
fn unit_groups(keep: &[bool]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut leading = Vec::new();
    for (axis, &kept) in keep.iter().enumerate() {
        if kept {
            let mut group = std::mem::take(&mut leading);
            group.push(axis);
            groups.push(group);
        } else if let Some(group) = groups.last_mut() {
            group.push(axis);
        } else {
            leading.push(axis);
        }
    }
    groups
}

impl<'c> Ordered<'c> {
    pub(crate) fn new(ssa: Ssa<'c>, order: Vec<usize>, dtype: DataType, dims: Vec<i64>) -> Self {
        Ordered {
            ssa,
            order,
            dtype,
            dims,
        }
    }

    /// Returns the tensor behind a barrier.
    pub(crate) fn apart(self, at: &Emitter<'c>) -> Self {
        Ordered {
            ssa: at.barrier(self.ssa),
            ..self
        }
    }

    /// Loads the element with these indices along the logical axes, in the body of an operation
    /// that will be appended to the block of `at`.
    pub(crate) fn element(&self, body: &Emitter<'c>, indices: &[Ssa<'c>]) -> Ssa<'c> {
        let physical: Option<Vec<_>> = self.order.iter().map(|&axis| indices.get(axis).copied()).collect();
        let physical = physical.expect("an axis out of range");
        body.extract(self.ssa, &physical, self.dtype)
    }

    /// Returns true if the tensor has this order already, apart from axes of extent 1.
    pub(crate) fn lies_in(&self, order: &[usize]) -> bool {
        let is_wide = |axis: &&usize| self.dims[**axis] > 1;
        self.order.iter().filter(is_wide).eq(order.iter().filter(is_wide))
    }

    /// Returns the tensor in another order. That is free if only axes of extent 1 move; otherwise
    /// it is a copy behind a barrier, which keeps the compiler from folding the transpose into a
    /// convolution.
    pub(crate) fn in_order(&self, at: &Emitter<'c>, order: &[usize]) -> Ordered<'c> {
        if self.order == order {
            return self.clone();
        }
        let ssa = if self.lies_in(order) {
            self.move_unit_axes(at, order)
        } else {
            let copy = Value::of(self.clone()).copy_to(at, order);
            at.transposed_copy(copy)
        };
        Ordered::new(ssa, order.to_vec(), self.dtype, self.dims.clone())
    }

    fn move_unit_axes(&self, at: &Emitter<'c>, order: &[usize]) -> Ssa<'c> {
        let shape = extents(&self.dims, &self.order);
        let keep: Vec<bool> = shape.iter().map(|&extent| extent > 1).collect();
        let narrow = drop_unit_axes(at, self.ssa, &keep);
        let target = extents(&self.dims, order);
        if keep.iter().all(|&kept| kept) && target.iter().all(|&extent| extent > 1) {
            return narrow;
        }
        with_unit_axes(at, narrow, &target)
    }
}

/// Adds axes of extent 1 to a tensor that has none, giving it the extents `target`.
pub(crate) fn with_unit_axes<'c>(at: &Emitter<'c>, narrow: Ssa<'c>, target: &[i64]) -> Ssa<'c> {
    let keep: Vec<bool> = target.iter().map(|&extent| extent > 1).collect();
    at.expand(narrow, &unit_groups(&keep), target)
}
