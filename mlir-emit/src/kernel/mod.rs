//! Kernels that rotini writes itself, down to matrix instructions and LDS, instead of leaving them
//! to the compiler: for AMD GPUs and for CPUs.
//!
//! The lowering of an operation appends a product to the block as one operation, which carries the
//! [`Product`] and stands for its sums. When the whole graph is lowered, [`place_kernels`] finds
//! the elementwise consumers of the sums, makes one kernel of the product and these consumers, and
//! replaces both by a dispatch of this kernel. The compiler does not change these kernels. Bodies
//! are written last, and only if the module's text is needed.
//!
//! | File | Owns |
//! |---|---|
//! | `problem` | the description of a product |
//! | `fusion`, `epilogue` | the operations that are fused into a product's kernel, and their code |
//! | `gemm` | the kernel of a product: loops over tiles, matrix instructions |
//! | `reader`, `places`, `merged` | operands: loads to swizzled LDS, addresses, merged axes |
//! | `depthwise`, `depthwise_wgrad` | products without matrix instructions: short and long sums |
//! | `split_k` | the second kernel of a split-K product: adds partial sums, applies the epilogue |
//! | `rows` | fused row reductions, as in a normalization |
//! | `scatter` | stores into buffers with gaps, in place |
//! | `transpose` | transposes of 16-bit elements; others are left to the compiler |
//! | `attention`, `attended` | attention of few and many queries, its gradients, their calls |
//! | `cpu_matmul`, `cpu_few_rows` | products on CPUs whose operands need no packing |
//! | `panels` | strided products on CPUs: convolutions and their gradients |
//! | `taps`, `taps_last` | gradients of depthwise filters on CPUs, pixels or channels innermost |
//! | `pool` | max pooling on CPUs |
//! | `code` | the vocabulary of kernels: vectors, buffers, LDS, exchanges between lanes |
//! | `vectors` | masked loads and stores, and literals of lanes, on CPUs |
//! | `executable` | kernels as IREE executables |

mod attended;
mod attention;
mod code;
mod cpu_few_rows;
mod cpu_matmul;
mod depthwise;
mod depthwise_wgrad;
mod epilogue;
mod executable;
mod fusion;
mod gemm;
mod merged;
mod panels;
mod places;
mod pool;
pub(crate) mod problem;
mod reader;
mod rows;
mod scatter;
mod split_k;
mod taps;
mod taps_last;
mod transpose;
mod vectors;

pub(crate) use attended::Attention;
pub(crate) use attention::{
    Backward, Decode, Gradients, GradientsOnCpu, LEAST_OF_MASK, Mask, OnCpu, Operand, Prefill, Problem as Attended,
    Side, Strides as RowStrides, Visible,
};
pub(crate) use cpu_matmul::{CpuMatmul, Right};
pub(crate) use depthwise::TERMS as DEPTHWISE_TERMS;
pub(crate) use depthwise_wgrad::parts as parts_of_summed;
pub(crate) use panels::{Along, Panels, Part, Registers};
pub(crate) use pool::Pool;
pub(crate) use problem::{Axis, Factor, Product, Strides, Window};
pub(crate) use reader::fitted;
pub(crate) use rows::is_possible as has_rows;
pub(crate) use rows::is_possible_on_cpus as has_rows_on_cpus;
pub(crate) use scatter::Scatter;
pub(crate) use taps::Taps;
pub(crate) use transpose::Transpose;

use crate::choice::Chooser;
use crate::counts::exactly;
use crate::ir::first;
use crate::mlir::{Attribute, Block, Callee, Context, Float, Name, Operation, Role, Type, Value};
use crate::target::Target;
use code::{Buffer, Code, DISPATCH, Ssa};
use epilogue::{Epilogue, Source, Tensor};
use executable::{Body, Executable, Fusable, WorkgroupSize, body, dispatched, executable};
use fusion::Fused;
use merged::Axes;
use rotini_schedule::gemm::{Problem, Schedule};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// The complete kernels of a graph: no operation is fused into them.
#[derive(Debug, Default)]
pub(crate) struct Kernels<'c> {
    complete: RefCell<Vec<Executable<'c>>>,
}

/// Returns whether a block calls kernels of rotini, or has products that will become kernels.
pub(crate) fn has_kernels(block: &Block) -> bool {
    let mut operations = block.operations.iter();
    operations.any(|operation| matches!(operation.role(), Role::Product(_) | Role::Call(_)))
}

/// Appends a product to a block, and returns its sums.
pub(crate) fn append_product<'c>(context: &'c Context, product: Product) -> Value<'c> {
    let result = gemm::element(context, product.compute).tensor(&product.shape());
    let factors = product.factors.iter().map(|factor| factor.tensor);
    let operands: Vec<Value<'c>> = factors
        .chain(product.chosen)
        .map(|value| context.value(value))
        .collect();
    let role = Role::Product(Rc::new(product));
    first(context.append((Name::RotiniProduct, role), &operands, &[result], &[], Vec::new()))
}

impl<'c> Kernels<'c> {
    /// Appends a transpose to a block. The result has the shape `shape`.
    pub(crate) fn transpose(&self, context: &'c Context, (transpose, shape): (&Transpose, &[i64])) -> Value<'c> {
        let element = gemm::element(context, transpose.dtype);
        let [read, written] = transpose.elements().map(|count| Buffer { count, element });
        let kernel = Whole {
            kind: "transpose",
            name: transpose.name(),
            lanes: WorkgroupSize::Wave64(transpose::LANES.unsigned_abs()),
            read: vec![(transpose.tensor, read)],
            stored: vec![(written, element.tensor(shape))],
            body: body(transpose, Transpose::write),
        };
        first(self.append_whole(context, kernel))
    }

    /// Appends a copy of a dense tensor into a span with gaps. The result is the span, updated in
    /// place. No other elements of the span are accessed.
    pub(crate) fn scatter(
        &self,
        context: &'c Context,
        (scatter, [tensor, span]): (&Scatter, [Value<'c>; 2]),
    ) -> Value<'c> {
        let element = scatter.element(context);
        let [read, stored] = scatter.elements().map(|count| Buffer { count, element });
        let kernel = Whole {
            kind: "scatter",
            name: scatter.name(),
            lanes: if scatter.is_on_gpu {
                WorkgroupSize::AnyWave(scatter::LANES.unsigned_abs())
            } else {
                WorkgroupSize::Single
            },
            read: vec![(tensor.id(), read)],
            stored: vec![(stored, span.r#type())],
            body: body(scatter, Scatter::write),
        };
        first(self.append_updating(context, kernel, Some(span.id())))
    }

    /// Appends a kernel for CPUs that reads `values`. The result has the shape `shape`.
    pub(crate) fn cpu_kernel(
        &self,
        context: &'c Context,
        (kernel, values, shape): (&CpuKernel, &[usize], &[i64]),
    ) -> Value<'c> {
        let element = Type::float(context, Float::F32);
        let (kind, name, counts) = match kernel {
            CpuKernel::Matmul(matmul) => ("matmul", matmul.name(), matmul.elements().to_vec()),
            CpuKernel::Panels(panels) => ("panels", panels.name.clone(), panels.elements.to_vec()),
            CpuKernel::Pool(pool) => ("pool", pool.name(), pool.elements().to_vec()),
            CpuKernel::Taps(taps) => ("depthwise_wgrad", taps.name(), taps.elements().to_vec()),
        };
        let mut buffers = counts.into_iter().map(|count| Buffer { count, element });
        let out = buffers.next_back().expect("a kernel without buffers");
        let kernel = Whole {
            kind,
            name,
            lanes: WorkgroupSize::Single,
            read: values.iter().copied().zip(buffers).collect(),
            stored: vec![(out, element.tensor(shape))],
            body: body(kernel, CpuKernel::write),
        };
        first(self.append_whole(context, kernel))
    }

    /// Appends a complete kernel, and returns its results.
    fn append_whole(&self, context: &'c Context, kernel: Whole<'c>) -> Vec<Value<'c>> {
        self.append_updating(context, kernel, None)
    }

    /// Appends a complete kernel, and returns its results. If `updated` is given, the only result
    /// is the memory of that value, updated in place.
    fn append_updating(&self, context: &'c Context, kernel: Whole<'c>, updated: Option<usize>) -> Vec<Value<'c>> {
        let mut complete = self.complete.borrow_mut();
        let symbol = format!("rotini_{}_{}", kernel.kind, complete.len());
        // Names are unique within a module.
        let name = format!("{}_{}", kernel.name, complete.len());
        let read = kernel.read.iter().map(|(_, buffer)| *buffer);
        let buffers = read.chain(kernel.stored.iter().map(|(buffer, _)| *buffer)).collect();
        complete.push(executable(
            context,
            (&symbol, &name, kernel.lanes),
            (buffers, kernel.read.len()),
            kernel.body,
        ));
        let operands: Vec<_> = kernel
            .read
            .iter()
            .map(|&(tensor, _)| tensor)
            .chain(updated)
            .map(|tensor| context.value(tensor))
            .collect();
        let mut attributes = dispatched(&symbol, &name, operands.len());
        if updated.is_some() {
            let text = format!("[{} : index]", kernel.read.len());
            attributes.push(("tied_operands", Attribute::text(&text)));
        }
        let results: Vec<_> = kernel.stored.iter().map(|&(_, tensor)| tensor).collect();
        let callee = Callee {
            name,
            fused: Vec::new(),
        };
        let role = Role::Call(Rc::new(callee));
        context.append((DISPATCH, role), &operands, &results, &attributes, Vec::new())
    }
}

/// A kernel for CPUs in f32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpuKernel {
    Matmul(CpuMatmul),
    Panels(Panels),
    Pool(Pool),
    Taps(Taps),
}

impl CpuKernel {
    /// Returns whether there is a kernel for these sizes.
    pub(crate) fn is_possible(&self) -> bool {
        match self {
            CpuKernel::Matmul(matmul) => matmul.is_possible(),
            CpuKernel::Panels(panels) => panels.is_possible(),
            CpuKernel::Pool(pool) => pool.is_possible(),
            CpuKernel::Taps(taps) => taps.is_possible(),
        }
    }

    fn write(&self, code: &Code<'_>) -> i64 {
        match self {
            CpuKernel::Matmul(matmul) => matmul.write(code),
            CpuKernel::Panels(panels) => panels.write(code),
            CpuKernel::Pool(pool) => pool.write(code),
            CpuKernel::Taps(taps) => taps.write(code),
        }
    }
}

/// A complete kernel: no operation is fused into it.
struct Whole<'c> {
    /// The prefix of the symbol.
    kind: &'static str,
    name: String,
    lanes: WorkgroupSize,
    /// The ids of the values that the kernel reads, and their buffers.
    read: Vec<(usize, Buffer<'c>)>,
    /// The buffers that the kernel stores, and the types of its results.
    stored: Vec<(Buffer<'c>, Type<'c>)>,
    body: Body<'c>,
}

/// A function that writes the body of a product and its epilogue, and returns the number of
/// workgroups.
type WriteProduct<'c> = fn(&Code<'c>, &[Ssa<'c>], (&Product, &Axes), &[Factor; 2], &Epilogue<'c>) -> i64;

/// Returns the index of the first operation that stands for a product, and the product.
fn next_product(operations: &[Operation]) -> Option<(usize, Rc<Product>)> {
    let product = |operation: &Operation| match operation.role() {
        Role::Product(product) => Some(Rc::clone(product)),
        Role::Plain | Role::Rows | Role::Call(_) => None,
    };
    let mut products = operations.iter().map(product).enumerate();
    products.find_map(|(number, product)| Some((number, product?)))
}

/// Returns the name of the kernel that an operation dispatches.
pub(crate) fn called(operation: &Operation) -> Option<&str> {
    match operation.role() {
        Role::Call(kernel) => Some(&kernel.name),
        Role::Plain | Role::Rows | Role::Product(_) => None,
    }
}

/// The kernels of a lowered graph.
pub(crate) struct PlacedKernels<'c> {
    pub(crate) executables: Vec<Executable<'c>>,
    /// The tiled products and their schedules, in the order of their kernels' numbers.
    pub(crate) products: Vec<(Problem, Schedule)>,
}

/// Replaces products and row reductions by dispatches of kernels.
pub(crate) fn place_kernels<'c>(
    context: &'c Context,
    operations: &mut Vec<Operation>,
    (kernels, chooser): (&Kernels<'c>, &Chooser),
    target: &Target,
) -> PlacedKernels<'c> {
    let mut executables = kernels.complete.take();
    // Dispatches whose results nothing reads have been removed.
    let called: HashSet<&str> = operations.iter().filter_map(called).collect();
    executables.retain(|executable| called.contains(executable.name.as_str()));
    let mut products = Vec::new();
    for number in 0.. {
        let Some((at, product)) = next_product(operations) else {
            break;
        };
        // Names are unique within a module.
        let product = Rc::new(Product {
            name: format!("{}_{number}", product.name),
            ..product.as_ref().clone()
        });
        if !product.is_depthwise {
            products.push((product.problem(), product.schedule));
        }
        let [sums] = exactly(operations[at].results());
        let Fused {
            epilogue,
            operations: fused,
            last,
        } = fusion::fuse(context, (operations, at), &product, sums);
        let symbol = format!("rotini_{number}");
        let mut calls = Vec::new();
        if product.schedule.parts > 1 {
            let results: i64 = product.shape().iter().product();
            let count = product.schedule.parts.cast_signed() * results;
            let value = context.fresh(Type::float(context, Float::F32).tensor(&[count])).id();
            let epilogue = Rc::new(epilogue);
            let parts = split_k::parts(&product, value, context);
            let stored = Epilogue {
                stored: vec![(Source::Sums, parts.clone())],
                ..Epilogue::default()
            };
            calls.push(multiply(context, (&symbol, &product), stored, &mut executables));
            let kernel = Fusable {
                symbol: format!("{symbol}_parts"),
                name: format!("{}_parts", product.name),
                lanes: WorkgroupSize::Wave64(split_k::LANES.unsigned_abs()),
                fused: epilogue.names(),
                body: {
                    let (product, epilogue) = (Rc::clone(&product), Rc::clone(&epilogue));
                    Box::new(move |code, buffers| split_k::write(code, buffers, &product, &epilogue))
                },
            };
            let read = (vec![value], vec![parts.buffer()]);
            let tensors = (epilogue.operands.as_slice(), epilogue.stored.as_slice());
            calls.push(call(context, kernel, read, tensors, &mut executables));
        } else {
            calls.push(multiply(context, (&symbol, &product), epilogue, &mut executables));
        }
        let kept = operations.drain(..).enumerate();
        let mut next = Vec::new();
        for (number, operation) in kept {
            if !fused.contains(&number) {
                next.push(operation);
            }
            if number == last {
                next.append(&mut calls);
            }
        }
        *operations = next;
    }
    rows::place(context, operations, (target, chooser), |kernel, rows| {
        let read = (Vec::new(), Vec::new());
        call(context, kernel, read, (&rows.operands, &rows.stored), &mut executables)
    });
    PlacedKernels { executables, products }
}

/// Appends the kernel of a product, and returns its dispatch.
fn multiply<'c>(
    context: &'c Context,
    (symbol, product): (&str, &Rc<Product>),
    mut epilogue: Epilogue<'c>,
    executables: &mut Vec<Executable<'c>>,
) -> Operation {
    let (axes, factors) = merged::merge(product, &mut epilogue);
    let (write, lanes): (WriteProduct<'c>, _) = if !product.is_depthwise {
        (gemm::write, product.schedule.lanes())
    } else if product.schedule.parts > 1 {
        (depthwise_wgrad::write, depthwise::LANES.unsigned_abs())
    } else {
        (depthwise::write, depthwise::LANES.unsigned_abs())
    };
    let values = factors
        .iter()
        .map(|factor| factor.tensor)
        .chain(product.chosen)
        .collect();
    let buffer = |factor: &Factor| Buffer::new(factor.elements, gemm::element(context, factor.dtype));
    let matrices = |_| Buffer::new(product.batch.iter().product(), Type::integer(context, 32));
    let buffers = factors.iter().map(buffer).chain(product.chosen.map(matrices));
    let read = (values, buffers.collect());
    let epilogue = Rc::new(epilogue);
    let kernel = Fusable {
        symbol: symbol.to_owned(),
        name: product.name.clone(),
        lanes: WorkgroupSize::Wave64(lanes),
        fused: epilogue.names(),
        body: {
            let (product, epilogue) = (Rc::clone(product), Rc::clone(&epilogue));
            Box::new(move |code, buffers| write(code, buffers, (&product, &axes), &factors, &epilogue))
        },
    };
    let tensors = (epilogue.operands.as_slice(), epilogue.stored.as_slice());
    call(context, kernel, read, tensors, executables)
}

/// Appends a kernel, and returns its dispatch. The kernel reads the values `values` with these
/// buffers, and then the operands.
fn call<'c>(
    context: &'c Context,
    kernel: Fusable<'c>,
    (mut values, mut buffers): (Vec<usize>, Vec<Buffer<'c>>),
    (operands, stored): (&[Tensor<'c>], &[(Source, Tensor<'c>)]),
    executables: &mut Vec<Executable<'c>>,
) -> Operation {
    values.extend(operands.iter().map(|tensor| tensor.value));
    buffers.extend(operands.iter().map(Tensor::buffer));
    buffers.extend(stored.iter().map(|(_, tensor)| tensor.buffer()));
    let stored = stored.iter().map(|(_, tensor)| tensor.value).collect();
    let (symbol, name) = (kernel.symbol.as_str(), kernel.name.as_str());
    let attributes = dispatched(symbol, name, values.len());
    let number = (symbol, name, kernel.lanes);
    executables.push(executable(context, number, (buffers, values.len()), kernel.body));
    let callee = Callee {
        name: kernel.name,
        fused: kernel.fused,
    };
    Operation::new((DISPATCH, Role::Call(Rc::new(callee))), values, attributes, stored)
}
