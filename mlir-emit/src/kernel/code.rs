//! The vocabulary of kernels besides the [builder](Code): vectors, buffers, LDS, and exchanges
//! between lanes.

use crate::EmitError;
use crate::counts::{exactly, signed};
use crate::ir::FloatPredicate;
use crate::ir::first;
pub(super) use crate::ir::{Code, Int};
use crate::mlir::{Attribute, Block, Context, Name, Type, Value, verified};
use rotini_schedule::gemm::{INTRINSIC, LANES};
use std::fmt;

/// The operation that dispatches a kernel.
pub(super) const DISPATCH: Name = Name::FlowDispatch;

/// A value of a kernel.
pub(super) type Ssa<'c> = Value<'c>;

/// An offset in bytes that is beyond the end of every buffer. The sum of this offset and the offset
/// of an access does not overflow 2^32.
pub(super) const BEYOND: i64 = 1 << 31;

/// The address space of LDS.
pub(super) const SHARED: &str = "#gpu.address_space<workgroup>";

/// A buffer of a kernel: dense, with one axis.
#[derive(Clone, Copy)]
pub(super) struct Buffer<'c> {
    /// The number of elements.
    pub(super) count: i64,
    /// The type of an element.
    pub(super) element: Type<'c>,
}

impl<'c> Buffer<'c> {
    pub(super) fn new(count: i64, element: Type<'c>) -> Self {
        Buffer { count, element }
    }
}

impl fmt::Display for Buffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memref<{}x{}>", self.count, self.element)
    }
}

impl<'c> Code<'c> {
    /// Begins a kernel with these buffers. Operations are appended to it until it is
    /// [finished](Self::finish). The methods that return its arguments are for its outermost block.
    pub(super) fn kernel(context: &'c Context, buffers: &[Buffer<'c>]) -> Self {
        let index = Type::index(context);
        let buffers = buffers
            .iter()
            .map(|buffer| buffer.element.memref(&[buffer.count], None));
        let arguments: Vec<_> = [index, index].into_iter().chain(buffers).collect();
        context.open(&arguments);
        Code::new(context)
    }

    /// Returns the lane's index in its workgroup; on CPUs it is zero.
    pub(super) fn lane(&self) -> Int<'c> {
        Int::Made(self.context().argument(0))
    }

    /// Returns the index of the workgroup.
    pub(super) fn workgroup(&self) -> Int<'c> {
        Int::Made(self.context().argument(1))
    }

    /// Returns the buffer with this index.
    pub(super) fn buffer(&self, number: usize) -> Ssa<'c> {
        self.context().argument(2 + number)
    }

    /// Returns the first `COUNT` buffers.
    pub(super) fn buffers<const COUNT: usize>(&self) -> [Ssa<'c>; COUNT] {
        std::array::from_fn(|number| self.buffer(number))
    }

    /// Appends the return, closes the kernel, and verifies it.
    ///
    /// # Errors
    ///
    /// [`EmitError::Internal`] if the kernel is invalid.
    pub(super) fn finish(&self) -> Result<Block, EmitError> {
        self.run(Name::FuncReturn, &[]);
        let block = self.context().close();
        verified(self.context(), &block).map(|()| block)
    }

    /// Converts a number to 32 bits, the width in which the hardware addresses memory.
    pub(super) fn word(&self, number: Int<'c>) -> Ssa<'c> {
        let word = Type::integer(self.context(), 32);
        match number {
            Int::Known(value) => self.integer(value, word),
            Int::Made(value) => value.index_cast(word),
        }
    }

    /// Appends a matrix instruction (MFMA). Each lane holds a quarter of the terms of one row of
    /// `a` and of one column of `b`.
    pub(super) fn mfma(&self, [a, b]: [Ssa<'c>; 2], sums: Ssa<'c>) -> Ssa<'c> {
        let word = Type::integer(self.context(), 32);
        let number = |value: i64| Attribute::integer(value, word);
        let (terms, _) = a.r#type().as_vector();
        let attributes = [
            ("m", number(INTRINSIC.cast_signed())),
            ("n", number(INTRINSIC.cast_signed())),
            ("k", number(4 * terms.iter().product::<i64>())),
            ("blocks", number(1)),
            ("cbsz", number(0)),
            ("abid", number(0)),
            ("blgp", Attribute::text("#rocdl.mfma_perm_b<none>")),
        ];
        self.one(Name::AmdgpuMfma, &[a, b, sums], sums.r#type(), &attributes)
    }

    /// Loads a vector or one element from a buffer of device memory, at a place in elements of the
    /// buffer. Beyond the buffer's end the hardware reads zeros.
    pub(super) fn load(&self, buffer: Ssa<'c>, place: Int<'c>, result: Type<'c>) -> Ssa<'c> {
        self.load_uniform(buffer, place, Int::Known(0), result)
    }

    /// Loads as [`load`](Self::load) does, from the sum of a place of the lane (the hardware's
    /// `voffset`) and a place that all lanes share (`soffset`), which takes no vector register.
    pub(super) fn load_uniform(&self, buffer: Ssa<'c>, lane: Int<'c>, uniform: Int<'c>, result: Type<'c>) -> Ssa<'c> {
        let operands = [buffer, self.word(lane), self.word(uniform)];
        self.one(Name::AmdgpuRawBufferLoad, &operands, result, &bounded(3))
    }

    /// Returns `place`, in elements of the buffer, where `exists` holds, else a place beyond the
    /// buffer's end: loads from there are zeros, and stores have no effect.
    pub(super) fn masked(&self, exists: Int<'c>, place: Int<'c>, buffer: Ssa<'c>) -> Int<'c> {
        let element = buffer.r#type().memory_element();
        let bits = element.bits().unwrap_or_else(|| unreachable!("elements of {element}"));
        exists.select(place, BEYOND / i64::from(bits.div_ceil(8)))
    }

    /// Stores to a buffer of device memory, at a place in elements of the buffer. Stores beyond its
    /// end have no effect. For AMD GPUs only, as `load`; kernels for CPUs use `read` and `write`.
    pub(super) fn store(&self, value: Ssa<'c>, buffer: Ssa<'c>, place: Int<'c>) {
        let operands = [value, buffer, self.word(place), self.word(Int::Known(0))];
        self.op(Name::AmdgpuRawBufferStore, &operands, &[], &bounded(4), Vec::new());
    }

    /// Allocates LDS for a number of elements. [`finish`](Self::finish) refuses a kernel whose
    /// allocations exceed 64 KiB.
    pub(super) fn shared(&self, elements: i64, element: Type<'c>) -> Ssa<'c> {
        let memory = element.memref(&[elements], Some(SHARED));
        self.one(
            Name::MemrefAlloc,
            &[],
            memory,
            &[("operandSegmentSizes", Attribute::i32_array(&[0, 0]))],
        )
    }

    /// Allocates memory on the stack of a CPU for a number of elements. [`finish`](Self::finish)
    /// refuses a kernel whose allocations exceed 32 KiB, IREE's limit.
    pub(super) fn stack(&self, elements: i64, element: Type<'c>) -> Ssa<'c> {
        let attributes = [
            ("alignment", Attribute::text("64 : i64")),
            ("operandSegmentSizes", Attribute::i32_array(&[0, 0])),
        ];
        self.one(Name::MemrefAlloca, &[], element.memref(&[elements], None), &attributes)
    }

    /// A workgroup barrier: all accesses to shared memory before it are complete.
    pub(super) fn barrier(&self) {
        let fence = Attribute::text("[#gpu.address_space<workgroup>]");
        self.op(Name::GpuBarrier, &[], &[], &[("address_spaces", fence)], Vec::new());
    }

    /// A scheduling barrier: the compiler moves no instruction across.
    pub(super) fn schedule_barrier(&self) {
        let mask = [("mask", Attribute::text("#rocdl.sched_group_mask<none>"))];
        self.op(Name::RocdlSchedBarrier, &[], &[], &mask, Vec::new());
    }

    /// Returns elements of two vectors, by index: the elements of `b` are numbered after those of
    /// `a`.
    pub(super) fn shuffle(&self, [a, b]: [Ssa<'c>; 2], elements: &[i64]) -> Ssa<'c> {
        let (_, element) = a.r#type().as_vector();
        let count = signed(elements.len());
        let mask = [("mask", Attribute::i64_array(elements))];
        self.one(Name::VectorShuffle, &[a, b], element.vector(&[count]), &mask)
    }

    /// Returns a vector of zeros.
    pub(super) fn zeros(&self, vector: Type<'c>) -> Ssa<'c> {
        let (_, element) = vector.as_vector();
        let zero = if element.is_integer() { "0" } else { "0.0" };
        self.literal(Attribute::scalar(zero, element).splat(vector), vector)
    }

    /// Returns a constant of a floating type.
    pub(crate) fn float(&self, number: f64, float: Type<'c>) -> Ssa<'c> {
        self.literal(Attribute::float(number, float), float)
    }

    /// Returns a constant of a floating-point type from a number as MLIR writes it, with a decimal
    /// point.
    pub(super) fn float_text(&self, number: &str, float: Type<'c>) -> Ssa<'c> {
        self.literal(Attribute::scalar(number, float), float)
    }

    /// Limits floats to at most `limit` if `is_above`, else to at least `limit`. NaN stays NaN,
    /// unlike with the compiler's `arith.minimumf`.
    pub(super) fn limited(&self, value: Ssa<'c>, limit: Ssa<'c>, is_above: bool) -> Ssa<'c> {
        let beyond = if is_above {
            FloatPredicate::Greater
        } else {
            FloatPredicate::Less
        };
        self.compare_floats(beyond, value, limit).select(limit, value)
    }

    /// Returns an element of a vector, by index.
    pub(super) fn extract(&self, vector: Ssa<'c>, number: i64, element: Type<'c>) -> Ssa<'c> {
        let position = [("static_position", Attribute::i64_array(&[number]))];
        self.one(Name::VectorExtract, &[vector], element, &position)
    }

    /// Broadcasts the value of lane `number` of each 16 lanes to these 16 lanes.
    pub(super) fn broadcast_of_sixteen(&self, value: Ssa<'c>, number: i64) -> Ssa<'c> {
        /// The hardware's number of the DPP control `row_newbcast:0`.
        const BROADCAST: i64 = 0x150;
        let word = |value: i64| Attribute::integer(value, Type::integer(self.context(), 32));
        let attributes = [
            ("dppCtrl", word(BROADCAST + number)),
            ("rowMask", word(15)),
            ("bankMask", word(15)),
            ("boundCtrl", Attribute::text("true")),
        ];
        self.one(Name::RocdlUpdateDpp, &[value, value], value.r#type(), &attributes)
    }

    /// Returns the value of the lane whose index differs from this lane's by XOR with `distance`:
    /// two such lanes exchange their values.
    pub(super) fn exchanged(&self, value: Ssa<'c>, distance: i64) -> Ssa<'c> {
        let operands = [
            value,
            self.word(Int::Known(distance)),
            self.word(Int::Known(LANES.cast_signed())),
        ];
        let types = [value.r#type(), Type::integer(self.context(), 1)];
        let mode = [("mode", Attribute::text("#gpu.shuffle_mode<xor>"))];
        first(self.op(Name::GpuShuffle, &operands, &types, &mode, Vec::new()))
    }
}

/// Gathers the element with index `number` of each vector of `rows` into one vector. `width`: the
/// elements of such a vector.
pub(super) fn gathered<'c>(code: &Code<'c>, rows: &[Ssa<'c>], width: i64, number: i64) -> Ssa<'c> {
    const EMPTY: &str = "a copy of nothing";
    if let &[one] = rows {
        return match one.r#type().if_vector() {
            Some((_, element)) => code.extract(one, number, element),
            None => one,
        };
    }
    if width == 1 {
        let count = signed(rows.len());
        let vector = rows[0].r#type().vector(&[count]);
        return code.vector(rows, vector);
    }
    let mut parts = Vec::new();
    for pair in rows.chunks(2) {
        let [a, b] = exactly(pair);
        parts.push(code.shuffle([a, b], &[number, width + number]));
    }
    let mut length = 2;
    while parts.len() > 1 {
        let mut longer = Vec::new();
        for pair in parts.chunks(2) {
            let [a, b] = exactly(pair);
            longer.push(code.shuffle([a, b], &(0..2 * length).collect::<Vec<_>>()));
        }
        (parts, length) = (longer, 2 * length);
    }
    parts.into_iter().next().expect(EMPTY)
}

/// The attributes of an access to a buffer with bounds checks by the hardware.
fn bounded(operands: usize) -> [(&'static str, Attribute); 2] {
    let segments = vec![1; operands];
    [
        ("boundsCheck", Attribute::text("true")),
        ("operandSegmentSizes", Attribute::i32_array(&segments)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::Float;

    /// In elements: with 2^31 elements of 4 bytes the offset in bytes would be 2^33, of which the
    /// hardware has 32 bits, which are zero.
    #[test]
    fn the_place_of_a_missing_element_is_beyond_the_buffer_by_bytes() {
        let context = Context::new();
        for (element, bytes) in [
            (Type::float(&context, Float::F32), 4),
            (Type::float(&context, Float::Bf16), 2),
            (Type::integer(&context, 8), 1),
        ] {
            let code = Code::kernel(&context, &[Buffer { count: 8, element }]);
            let place = |exists: i64| code.masked(Int::Known(exists), Int::Known(3), code.buffer(0));
            assert!(matches!(place(1), Int::Known(3)));
            assert!(
                matches!(place(0), Int::Known(place) if place * bytes == BEYOND),
                "{element}"
            );
            code.finish().unwrap();
        }
    }
}
