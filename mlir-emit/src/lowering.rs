//! The state that a family of operations uses while it lowers an operation: the graph, the target,
//! and the values of tensors so far.
//!
//! Inputs have values from the beginning. Each family defines the values of the tensors that it
//! writes. Stored tensors are rounded, brought into their memory order and returned. The module
//! `dispatch` knows the families; this module knows none of them.

use crate::choice::{Chooser, Form};
use crate::convert::convert;
use crate::deferred::Deferred;
use crate::ir::{Emitter, IndexMap};
use crate::kernel::{Attention, CpuKernel, CpuMatmul, Kernels, Product, Scatter, Transpose, append_product, fitted};
use crate::mlir::Value as Ssa;
use crate::quirks::Quirks;
use crate::target::Target;
use crate::value::{Data, Ordered, Value, extents, position};
use rotini_graph::{DataType, Layout, NormalGraph, NormalKind, NormalNode, NormalTensor, TensorId};
use rotini_schedule::{Machine, gemm};

/// The state of a graph that is being lowered.
pub(crate) struct Lowering<'g, 'c> {
    graph: &'g NormalGraph,
    target: &'g Target,
    at: Emitter<'c>,
    kernels: &'g Kernels<'c>,
    chooser: &'g Chooser,
    values: Vec<Option<Value<'c>>>,
}

impl<'g, 'c> Lowering<'g, 'c> {
    /// Begins to lower a graph, none of whose tensors has a value yet.
    pub(crate) fn new(
        graph: &'g NormalGraph,
        target: &'g Target,
        at: Emitter<'c>,
        (kernels, chooser): (&'g Kernels<'c>, &'g Chooser),
    ) -> Self {
        Lowering {
            graph,
            target,
            at,
            kernels,
            chooser,
            values: vec![None; graph.tensors().len()],
        }
    }

    pub(crate) fn chooser(&self) -> &'g Chooser {
        self.chooser
    }

    pub(crate) fn emitter(&self) -> Emitter<'c> {
        self.at
    }

    /// Returns the sums of a product, computed by a kernel of rotini with the schedule that is
    /// estimated to be the fastest; `None` if there is no such kernel.
    pub(crate) fn kernel(&self, machine: &Machine, product: Product) -> Option<Ssa<'c>> {
        let product = self.scheduled(machine, product)?;
        Some(append_product(self.at.context(), product))
    }

    /// Returns the sums of a product with these operands, which are prepared if there is a
    /// [kernel](Self::kernel).
    pub(crate) fn kernel_on(
        &self,
        machine: &Machine,
        product: Product,
        operands: [Deferred<'_, 'c>; 2],
    ) -> Option<Ssa<'c>> {
        let mut product = self.scheduled(machine, product)?;
        for (factor, operand) in product.factors.iter_mut().zip(operands) {
            factor.tensor = operand.emit().ssa.id();
        }
        Some(append_product(self.at.context(), product))
    }

    /// Returns the product with its schedule; `None` if there is no kernel for it.
    fn scheduled(&self, machine: &Machine, mut product: Product) -> Option<Product> {
        if !product.can_be_addressed() {
            return None;
        }
        if product.is_depthwise {
            return Some(product);
        }
        let problem = product.problem();
        let usual = fitted(&product, gemm::choose(machine, &problem)?);
        let forms = || {
            let ranked = gemm::ranked(machine, &problem).into_iter();
            let mut all: Vec<_> = ranked
                .map(|(schedule, time)| (fitted(&product, schedule), Some(time)))
                .collect();
            // A schedule from the table need not be among the ranked ones.
            all.push((usual, None));
            let mut listed = Vec::new();
            all.retain(|(schedule, _)| {
                !listed.contains(schedule) && {
                    listed.push(*schedule);
                    true
                }
            });
            let form = |(schedule, time): (gemm::Schedule, _)| Form::new(schedule.word(), schedule).estimated(time);
            all.into_iter().map(form).collect()
        };
        let is_exact = |schedule: &gemm::Schedule| schedule.fits(&problem) && fitted(&product, *schedule) == *schedule;
        let parse = |word: &str| gemm::Schedule::parse(word).filter(is_exact);
        product.schedule = self.chooser.choose("gemm", usual, forms, parse);
        product.name = format!("{}_{}", product.name, product.schedule.word());
        Some(product)
    }

    /// Returns true if rotini has a [kernel](CpuKernel::Matmul) for a product on a CPU.
    pub(crate) fn has_cpu_matmul(&self, matmul: &CpuMatmul) -> bool {
        self.target.has_wide_registers() && matmul.is_possible()
    }

    /// Returns a span with gaps, updated in place with the elements of a dense tensor. `values`:
    /// the elements, and the span.
    pub(crate) fn scattered(&self, scatter: &Scatter, values: [Ssa<'c>; 2]) -> Ssa<'c> {
        self.kernels.scatter(self.at.context(), (scatter, values))
    }

    /// Returns the result of a CPU kernel on these operands as a tensor of this shape. The kernel
    /// must support the problem.
    pub(crate) fn cpu_kernel(&self, kernel: &CpuKernel, values: &[Ssa<'c>], shape: &[i64]) -> Ssa<'c> {
        assert!(
            kernel.is_possible(),
            "a kernel for a problem that it does not support: {kernel:?}"
        );
        let values: Vec<usize> = values.iter().map(|value| value.id()).collect();
        self.kernels.cpu_kernel(self.at.context(), (kernel, &values, shape))
    }

    /// Returns the results of an attention kernel of rotini as tensors of these shapes.
    pub(crate) fn attention(&self, attention: Attention<'_>, shapes: &[&[i64]]) -> Vec<Ssa<'c>> {
        self.kernels.attention(self.at.context(), (attention, shapes))
    }

    /// Returns the tensor in another memory order, transposed by a kernel of rotini if there is
    /// one.
    pub(crate) fn reordered(&self, tensor: &Ordered<'c>, order: &[usize]) -> Ordered<'c> {
        let transpose = self.target.machine().and_then(|_| as_transpose(tensor, order));
        let Some(transpose) = transpose.filter(Transpose::is_possible) else {
            return tensor.in_order(&self.at, order);
        };
        self.transposed(&transpose, tensor.dims.clone(), order.to_vec())
    }

    /// Plans to bring the tensor into another memory order.
    pub(crate) fn in_order<'l>(&'l self, tensor: &Ordered<'c>, order: &[usize]) -> Deferred<'l, 'c> {
        let wanted = order.to_vec();
        Deferred::new(tensor).then(
            |layout| layout.order = order.to_vec(),
            move |tensor| self.reordered(&tensor, &wanted),
        )
    }

    /// Plans to bring axis 1 of the tensor innermost, padded with zeros to `channels` elements;
    /// `None` if no kernel can do this copy.
    pub(crate) fn channels_padded<'l>(&'l self, tensor: &Ordered<'c>, channels: i64) -> Option<Deferred<'l, 'c>> {
        let rank = tensor.dims.len();
        let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
        let mut dims = tensor.dims.clone();
        let (Some(slot), &[images, moved, ref image @ ..]) = (dims.get_mut(1), tensor.dims.as_slice()) else {
            return None;
        };
        *slot = channels;
        let image: i64 = image.iter().product();
        let (outer, inner) = if tensor.lies_in(&order) {
            (images * image, 1)
        } else if tensor.lies_in(&(0..rank).collect::<Vec<_>>()) {
            (images, image)
        } else {
            return None;
        };
        let transpose = Transpose {
            tensor: tensor.ssa.id(),
            dtype: tensor.dtype,
            outer,
            moved,
            inner,
            padded: channels,
        };
        if !transpose.is_possible() {
            return None;
        }
        let (extents, innermost) = (dims.clone(), order.clone());
        Some(Deferred::new(tensor).then(
            |layout| (layout.dims, layout.order) = (extents, innermost),
            move |_| self.transposed(&transpose, dims, order),
        ))
    }

    /// Returns the result of a kernel that transposes a tensor, with these extents and this order.
    fn transposed(&self, transpose: &Transpose, dims: Vec<i64>, order: Vec<usize>) -> Ordered<'c> {
        let shape = extents(&dims, &order);
        let ssa = self.kernels.transpose(self.at.context(), (transpose, &shape));
        Ordered::new(ssa, order, transpose.dtype, dims)
    }

    pub(crate) fn graph(&self) -> &'g NormalGraph {
        self.graph
    }

    pub(crate) fn target(&self) -> &'g Target {
        self.target
    }

    pub(crate) fn quirks(&self) -> Quirks {
        self.at.quirks()
    }

    pub(crate) fn tensor(&self, id: TensorId) -> &'g NormalTensor {
        self.graph.tensor(id).expect("an unknown tensor")
    }

    pub(crate) fn value(&self, id: TensorId) -> &Value<'c> {
        self.values
            .get(id.index())
            .and_then(Option::as_ref)
            .expect("a value before its definition")
    }

    pub(crate) fn define(&mut self, id: TensorId, value: Value<'c>) {
        self.values[id.index()] = Some(value);
    }

    /// Puts a barrier between a tensor and its readers, so that it is computed in a separate
    /// dispatch.
    pub(crate) fn settle(&mut self, id: TensorId) {
        let mut value = self.value(id).clone();
        if let Data::Tensor { ssa, .. } = &mut value.data {
            *ssa = self.at.barrier(*ssa);
        }
        self.define(id, value);
    }

    /// Defines a tensor as the sums of a contraction, which have the compute type.
    pub(crate) fn define_sums(&mut self, id: TensorId, sums: Ordered<'c>, compute: DataType) {
        let carried_type = self.carried_type(id, compute);
        let is_carried = carried_type == sums.dtype;
        let carried = self.carry(sums, carried_type);
        self.define(id, Value::of(self.sums_apart(id, carried, is_carried)));
    }

    /// Returns true if a node reads the tensor.
    pub(crate) fn is_read(&self, id: TensorId) -> bool {
        self.readers(id).next().is_some()
    }

    /// Returns the nodes that read a tensor.
    pub(crate) fn readers(&self, id: TensorId) -> impl Iterator<Item = &'g NormalNode> {
        self.graph.nodes().iter().filter(move |node| {
            let mut reads = false;
            node.op.for_each_input(&mut |_, input| reads |= input == id);
            reads
        })
    }

    /// Returns the type in which a tensor's value is carried to its readers. That is the compute
    /// type, so that the value is rounded only when it is stored; but integer types and codes keep
    /// their own type, because there the conversion is the purpose of the tensor.
    pub(crate) fn carried_type(&self, id: TensorId, compute: DataType) -> DataType {
        let dtype = self.tensor(id).dtype;
        if dtype.is_integer() || dtype.is_code() {
            dtype
        } else {
            compute
        }
    }

    /// Returns the value of a tensor as an operand that an operation reads many times: with all its
    /// axes, and computed in a separate dispatch where necessary.
    pub(crate) fn settled(&self, id: TensorId) -> Ordered<'c> {
        self.settled_as(id, self.quirks().contracted(self.value(id).dtype))
    }

    /// Returns both factors of a contraction, in types in which they can be multiplied.
    pub(crate) fn factors(&self, [a, b]: [TensorId; 2], compute: DataType) -> [Ordered<'c>; 2] {
        let types = [self.factor_type(a, compute), self.factor_type(b, compute)];
        let mut read = self.quirks().factor_types(types, compute, self.target);
        if [a, b]
            .iter()
            .any(|id| self.tensor(*id).dims.iter().all(|&dim| dim == 1))
        {
            read = self.quirks().types_beside_single(read);
        }
        let [of_a, of_b] = read;
        [self.settled_as(a, of_a), self.settled_as(b, of_b)]
    }

    /// Returns the type that a factor is converted to before the product. If rotini's kernels
    /// multiply 16-bit floats, a tensor that is carried in the compute type is rounded to its
    /// declared type, which matrix instructions need.
    fn factor_type(&self, id: TensorId, compute: DataType) -> DataType {
        let (carried, own) = (self.value(id).dtype, self.tensor(id).dtype);
        let is_half = matches!(own, DataType::F16 | DataType::Bf16);
        let is_rounded = is_half && carried == DataType::F32 && compute == DataType::F32;
        if is_rounded && self.target.machine().is_some() {
            own
        } else {
            carried
        }
    }

    /// Converts the elements of a tensor, in a separate dispatch.
    pub(crate) fn converted(&self, value: Ordered<'c>, dtype: DataType) -> Ordered<'c> {
        let value = self.carry(value, dtype);
        value.apart(&self.at)
    }

    /// [`settled`](Self::settled), with the elements converted.
    pub(crate) fn settled_as(&self, id: TensorId, dtype: DataType) -> Ordered<'c> {
        let value = self.value(id).materialise(&self.at);
        let tensor = self.tensor(id);
        let is_argument = tensor.kind == NormalKind::Input
            && !tensor.dtype.is_packed()
            && matches!(Layout::of(&tensor.dims, &tensor.strides), Layout::Dense { order } if order.len() == tensor.dims.len());
        if is_argument && value.dtype == dtype {
            return value;
        }
        let value = self.carry(value, dtype);
        Ordered {
            ssa: self.at.computed_factor(value.ssa),
            ..value
        }
    }

    /// Puts a tensor behind a barrier if the graph has a contraction that it could be fused with.
    pub(crate) fn apart_from_contractions(&self, ssa: Ssa<'c>) -> Ssa<'c> {
        let contracts = self.graph.nodes().iter().any(|node| node.op.contracts());
        if contracts { self.at.barrier(ssa) } else { ssa }
    }

    /// Returns the memory order of a dense output; `None` for other tensors.
    pub(crate) fn stored_order(&self, id: TensorId) -> Option<Vec<usize>> {
        let tensor = self
            .graph
            .tensor(id)
            .filter(|tensor| tensor.kind == NormalKind::Output)?;
        match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } if order.len() == tensor.dims.len() => Some(order),
            _ => None,
        }
    }

    /// Returns true if all stored tensors are row-major, and each tensor has an extent above 1
    /// along either all of these axes (counted from the last one) or none of them. Then the
    /// compiler collapses the axes into one loop.
    pub(crate) fn is_row_major_and_whole(&self, from_the_right: &[usize]) -> bool {
        let is_scalar = |tensor: &&NormalTensor| tensor.dims.iter().all(|&dim| dim == 1);
        self.graph
            .tensors()
            .iter()
            .filter(|tensor| !is_scalar(tensor))
            .all(|tensor| {
                let is_stored = matches!(tensor.kind, NormalKind::Input | NormalKind::Output);
                let wide = tensor.dims.iter().zip(&tensor.strides).filter(|(dim, _)| **dim > 1);
                let is_row_major = !is_stored || wide.map(|(_, stride)| stride).rev().is_sorted();
                let has = |axis: &&usize| tensor.dims.iter().rev().nth(**axis).is_some_and(|&dim| dim > 1);
                let count = from_the_right.iter().filter(has).count();
                is_row_major && (count == 0 || count == from_the_right.len())
            })
    }

    /// Converts a value to another type and memory order, in one elementwise operation that the
    /// compiler fuses with the producer.
    pub(crate) fn round(&self, value: &Ordered<'c>, dtype: DataType, order: Vec<usize>) -> Ordered<'c> {
        let results = value.order.iter().map(|&axis| position(&order, axis));
        let input = (value.ssa, IndexMap::select(order.len(), results));
        let shape = extents(&value.dims, &order);
        let ssa = self.at.elementwise(&shape, dtype, &[input], |elements| {
            convert(&self.at, elements[0], value.dtype, dtype)
        });
        Ordered::new(ssa, order, dtype, value.dims.clone())
    }

    /// Converts a value to the type in which it is carried, keeping its memory order; returns it
    /// unchanged if it has that type.
    pub(crate) fn carry(&self, value: Ordered<'c>, dtype: DataType) -> Ordered<'c> {
        if value.dtype == dtype {
            return value;
        }
        let order = value.order.clone();
        self.round(&value, dtype, order)
    }
}

/// Returns the transpose that brings a tensor into this order: an exchange of two neighbouring
/// groups of axes, the second of which is innermost. `None` if the order needs another permutation.
fn as_transpose(tensor: &Ordered<'_>, order: &[usize]) -> Option<Transpose> {
    let extent_of = |axis: &usize| tensor.dims[*axis];
    let wide = |order: &[usize]| -> Vec<usize> { order.iter().copied().filter(|axis| extent_of(axis) > 1).collect() };
    let (from, to) = (wide(&tensor.order), wide(order));
    let same = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let (outer, rest) = from.split_at_checked(same)?;
    let first = to.get(same)?;
    let (moved, inner) = rest.split_at_checked(rest.iter().position(|axis| axis == first)?)?;
    let product = |axes: &[usize]| axes.iter().map(extent_of).product();
    (to.get(same..)? == [inner, moved].concat()).then(|| Transpose {
        tensor: tensor.ssa.id(),
        dtype: tensor.dtype,
        outer: product(outer),
        moved: product(moved),
        inner: product(inner),
        padded: product(moved),
    })
}
