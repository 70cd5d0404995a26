//! Calls of the attention kernels: their operands and their results.

use super::attention::{self, Backward, Decode, Gradients, GradientsOnCpu, OnCpu, Prefill, Problem};
use super::code::Buffer;
use super::executable::body;
use super::gemm;
use super::{Kernels, Whole, WorkgroupSize};
use crate::counts::exactly;
use crate::mlir::{Context, Float, Type, Value};

/// An attention, or its gradients.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attention<'a> {
    /// Few queries, in two kernels. The results are the output and, for each query, the greatest
    /// score in powers of 2 and the sum of exponentials.
    Decode(&'a Decode),
    /// Many queries. The results are those of `Decode`.
    Prefill(&'a Prefill),
    /// An attention on a CPU. The results are those of `Decode`, but the greatest score is not in
    /// powers of 2.
    OnCpu(&'a OnCpu),
    /// The gradients of one side on a GPU. The results are these gradients.
    Gradients(&'a Gradients),
    /// The gradients of one side on a CPU.
    GradientsOnCpu(&'a GradientsOnCpu),
}

impl<'c> Kernels<'c> {
    /// Appends the kernels of an attention to a block. The results have the shapes `shapes`.
    pub(crate) fn attention(
        &self,
        context: &'c Context,
        (attention, shapes): (Attention<'_>, &[&[i64]]),
    ) -> Vec<Value<'c>> {
        let kernel = match attention {
            Attention::Decode(decode) => self.decode(context, (decode, shapes)),
            Attention::Prefill(prefill) => Whole {
                kind: "prefill",
                name: prefill.name(),
                lanes: WorkgroupSize::Wave64(prefill.lanes()),
                read: read_by(context, &prefill.of),
                stored: stored_by(context, &prefill.of, shapes),
                body: body(prefill, Prefill::write),
            },
            Attention::OnCpu(attention) => Whole {
                kind: "attention",
                name: attention.name(),
                lanes: WorkgroupSize::Single,
                read: read_by(context, attention.problem()),
                stored: stored_by(context, attention.problem(), shapes),
                body: body(attention, OnCpu::write),
            },
            Attention::Gradients(gradients) => Whole {
                kind: "gradients",
                name: gradients.name(),
                lanes: WorkgroupSize::Wave64(gradients.lanes()),
                read: read_by_gradients(context, &gradients.problem),
                stored: stored_by_gradients(context, &gradients.problem, shapes),
                body: body(gradients, Gradients::write),
            },
            Attention::GradientsOnCpu(gradients) => Whole {
                kind: "gradients",
                name: gradients.problem.name(),
                lanes: WorkgroupSize::Single,
                read: read_by_gradients(context, &gradients.problem),
                stored: stored_by_gradients(context, &gradients.problem, shapes),
                body: body(gradients, GradientsOnCpu::write),
            },
        };
        self.append_whole(context, kernel)
    }

    /// Appends the kernel that computes all parts, and returns the kernel that combines them.
    fn decode(&self, context: &'c Context, (decode, shapes): (&Decode, &[&[i64]])) -> Whole<'c> {
        let float = Type::float(context, Float::F32);
        let between = decode.between().map(|count| Buffer { count, element: float });
        let mut stored = Vec::new();
        for buffer in between {
            stored.push((buffer, float.tensor(&[buffer.count])));
        }
        let lanes = WorkgroupSize::Wave64(attention::LANES.unsigned_abs());
        let parts = Whole {
            kind: "decode",
            name: decode.name(),
            lanes,
            read: read_by(context, &decode.of),
            stored,
            body: body(decode, Decode::write_parts),
        };
        let parts = self.append_whole(context, parts);
        let numbers = parts.iter().map(|value| value.id());
        Whole {
            kind: "decode",
            name: format!("{}_sum", decode.name()),
            lanes,
            read: numbers.zip(between).collect(),
            stored: stored_by(context, &decode.of, shapes),
            body: body(decode, Decode::write_sum),
        }
    }
}

/// Returns the operands with the sequence lengths of each batch, if the graph gives them.
fn lengths<'c>(
    context: &'c Context,
    of: &Problem,
    lengths: Option<[usize; 2]>,
) -> impl Iterator<Item = (usize, Buffer<'c>)> {
    let buffer = Buffer::new(of.batch, Type::integer(context, 32));
    lengths.into_iter().flatten().map(move |value| (value, buffer))
}

/// Returns the operands of an attention kernel: q, k, v, the mask if one exists, and the numbers of
/// queries and keys of each batch if the graph gives them.
fn read_by<'c>(context: &'c Context, of: &Problem) -> Vec<(usize, Buffer<'c>)> {
    let element = gemm::element(context, of.dtype);
    let operands = [of.q, of.k, of.v].map(|operand| {
        let count = operand.elements;
        (operand.tensor, Buffer { count, element })
    });
    let mut read = operands.to_vec();
    if let Some(mask) = of.mask {
        let buffer = Buffer::new(mask.elements, gemm::element(context, mask.dtype));
        read.push((mask.tensor, buffer));
    }
    read.extend(lengths(context, of, of.visible.lengths));
    read
}

/// Returns the results of an attention kernel, in tensors of these shapes: the output, and two
/// statistics per query.
fn stored_by<'c>(context: &'c Context, of: &Problem, shapes: &[&[i64]]) -> Vec<(Buffer<'c>, Type<'c>)> {
    let [out, rows, _] = exactly(shapes);
    let wide = Buffer::new(out.iter().product(), gemm::element(context, of.out.0));
    let row = row(context, of);
    let rows = row.element.tensor(rows);
    vec![(wide, wide.element.tensor(out)), (row, rows), (row, rows)]
}

/// Returns a buffer with one f32 number per query.
fn row<'c>(context: &'c Context, of: &Problem) -> Buffer<'c> {
    Buffer::new(of.rows(), Type::float(context, Float::F32))
}

/// Returns the operands of a gradient kernel: q, k, v, the gradient of the output, two statistics
/// per query, and the sequence lengths of each batch if the graph gives them.
fn read_by_gradients<'c>(context: &'c Context, gradients: &Backward) -> Vec<(usize, Buffer<'c>)> {
    let of = &gradients.of;
    let element = gemm::element(context, of.dtype);
    let operands = [of.q, of.k, of.v, gradients.d_o].map(|operand| {
        let count = operand.elements;
        (operand.tensor, Buffer { count, element })
    });
    let rows = gradients.numbers.map(|number| (number, row(context, of)));
    operands
        .into_iter()
        .chain(rows)
        .chain(lengths(context, of, gradients.lengths()))
        .collect()
}

/// Returns the results of a gradient kernel, in tensors of these shapes.
fn stored_by_gradients<'c>(
    context: &'c Context,
    gradients: &Backward,
    shapes: &[&[i64]],
) -> Vec<(Buffer<'c>, Type<'c>)> {
    let stored = gradients.stored().into_iter().zip(shapes);
    stored
        .map(|((dtype, _, count), shape)| {
            let element = gemm::element(context, dtype);
            (Buffer { count, element }, element.tensor(shape))
        })
        .collect()
}
