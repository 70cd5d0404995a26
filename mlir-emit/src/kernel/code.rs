//! The builder that kernels are written with: numbers, loops, vectors, buffers, shared memory,
//! matrix instructions.
//!
//! Numbers that are known when the kernel is written are folded, so a kernel for one problem has no
//! more arithmetic than it needs. Operations go to the innermost block that is open; loops and
//! branches open one each.

use crate::counts::signed;
use crate::mlir::{Attribute, Block, Context, Region, Type, Value};
use rotini_schedule::gemm::LANES;
use std::cell::RefCell;

/// The operation that calls a kernel.
pub(super) const DISPATCH: &str = "flow.dispatch";

/// A value of a kernel. Printing verifies that it is defined where it is used.
pub(super) type Ssa<'c> = Value<'c, 'c>;

/// Without blocks there is nothing to append to.
const CLOSED: &str = "a kernel without a block";

/// The address space of memory that a workgroup shares.
pub(super) const SHARED: &str = "#gpu.address_space<workgroup>";

/// A number: an index or a condition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Int<'c> {
    /// Known while the kernel is written.
    Known(i64),
    /// Computed by the kernel.
    Made(Ssa<'c>),
}

impl From<i64> for Int<'_> {
    fn from(value: i64) -> Self {
        Int::Known(value)
    }
}

/// Writes one kernel.
pub(super) struct Code<'c> {
    context: &'c Context,
    blocks: RefCell<Vec<Block<'c>>>,
}

impl<'c> Code<'c> {
    /// A kernel whose arguments have these types.
    pub(super) fn new(context: &'c Context, arguments: &[Type<'c>]) -> Self {
        Code {
            context,
            blocks: RefCell::new(vec![Block::new(arguments)]),
        }
    }

    pub(super) fn context(&self) -> &'c Context {
        self.context
    }

    /// The kernel's block, when all of it is written.
    pub(super) fn finish(self) -> Block<'c> {
        let mut blocks = self.blocks.into_inner();
        let block = blocks.pop().unwrap_or_else(|| unreachable!("{CLOSED}"));
        if blocks.is_empty() {
            block
        } else {
            unreachable!("an open block")
        }
    }

    /// An argument of the innermost block.
    pub(super) fn argument(&self, index: usize) -> Ssa<'c> {
        let blocks = self.blocks.borrow();
        let block = blocks.last().unwrap_or_else(|| unreachable!("{CLOSED}"));
        block.argument(index).captured()
    }

    pub(super) fn op(
        &self,
        name: &str,
        operands: &[Ssa<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute)],
        regions: Vec<Region>,
    ) -> Vec<Ssa<'c>> {
        let blocks = self.blocks.borrow();
        let block = blocks.last().unwrap_or_else(|| unreachable!("{CLOSED}"));
        let operands: Vec<_> = operands.iter().map(|operand| operand.captured()).collect();
        let made = block.append(self.context, name, &operands, results, attributes, regions);
        made.into_iter().map(Value::captured).collect()
    }

    /// An operation with one result.
    pub(super) fn one(
        &self,
        name: &str,
        operands: &[Ssa<'c>],
        result: Type<'c>,
        attributes: &[(&str, Attribute)],
    ) -> Ssa<'c> {
        let made = self.op(name, operands, &[result], attributes, Vec::new());
        made.into_iter()
            .next()
            .unwrap_or_else(|| unreachable!("an operation without results"))
    }

    /// An operation whose result has the type of its first operand.
    pub(super) fn same(&self, name: &str, operands: &[Ssa<'c>]) -> Ssa<'c> {
        let first = &operands[0];
        self.one(name, operands, first.r#type(), &[])
    }

    pub(super) fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    /// A number as a value.
    pub(super) fn index(&self, number: Int<'c>) -> Ssa<'c> {
        match number {
            Int::Made(value) => value,
            Int::Known(value) => {
                let attribute = Attribute::integer(value, self.index_type());
                self.one("arith.constant", &[], self.index_type(), &[("value", attribute)])
            }
        }
    }

    /// A number with 32 bits, as the hardware addresses memory.
    pub(super) fn word(&self, number: Int<'c>) -> Ssa<'c> {
        let word = Type::integer(self.context, 32);
        match number {
            Int::Known(value) => {
                let attribute = Attribute::integer(value, word);
                self.one("arith.constant", &[], word, &[("value", attribute)])
            }
            Int::Made(value) => self.one("arith.index_cast", &[value], word, &[]),
        }
    }

    fn binary(&self, name: &str, [a, b]: [Int<'c>; 2], known: impl Fn(i64, i64) -> Option<i64>) -> Int<'c> {
        if let (Int::Known(a), Int::Known(b)) = (a, b) {
            return known(a, b)
                .map(Int::Known)
                .unwrap_or_else(|| unreachable!("a number that overflows"));
        }
        let operands = [self.index(a), self.index(b)];
        Int::Made(self.same(name, &operands))
    }

    pub(super) fn add(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (any, Int::Known(0)) | (Int::Known(0), any) => any,
            (a, b) => self.binary("arith.addi", [a, b], i64::checked_add),
        }
    }

    pub(super) fn sub(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (any, Int::Known(0)) => any,
            (a, b) => self.binary("arith.subi", [a, b], i64::checked_sub),
        }
    }

    pub(super) fn mul(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (any, Int::Known(1)) | (Int::Known(1), any) => any,
            (_, Int::Known(0)) | (Int::Known(0), _) => Int::Known(0),
            (a, b) => self.binary("arith.muli", [a, b], i64::checked_mul),
        }
    }

    /// The quotient of numbers that are not negative.
    pub(super) fn div(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (any, Int::Known(1)) => any,
            (a, b) => self.binary("arith.divui", [a, b], i64::checked_div),
        }
    }

    /// The remainder of such a division.
    pub(super) fn rem(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (_, Int::Known(1)) => Int::Known(0),
            (a, b) => self.binary("arith.remui", [a, b], i64::checked_rem),
        }
    }

    pub(super) fn xor(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (any, Int::Known(0)) | (Int::Known(0), any) => any,
            (a, b) => self.binary("arith.xori", [a, b], |a, b| Some(a ^ b)),
        }
    }

    /// Whether `a` is below `b` as unsigned numbers: a negative `a` is not, and a non-negative one
    /// is below any negative `b`.
    pub(super) fn is_below(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        let (a, b) = (a.into(), b.into());
        if let (Int::Known(a), Int::Known(b)) = (a, b) {
            return Int::Known(i64::from(a.cast_unsigned() < b.cast_unsigned()));
        }
        let operands = [self.index(a), self.index(b)];
        // MLIR's number of the predicate "unsigned less than".
        let predicate = [("predicate", Attribute::text("6 : i64"))];
        let truth = Type::integer(self.context, 1);
        Int::Made(self.one("arith.cmpi", &operands, truth, &predicate))
    }

    pub(super) fn and(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        match (a, b) {
            (Int::Known(0), _) | (_, Int::Known(0)) => Int::Known(0),
            (Int::Known(_), any) | (any, Int::Known(_)) => any,
            (Int::Made(a), Int::Made(b)) => Int::Made(self.same("arith.andi", &[a, b])),
        }
    }

    pub(super) fn or(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        match (a, b) {
            (Int::Known(0), any) | (any, Int::Known(0)) => any,
            (Int::Known(_), _) | (_, Int::Known(_)) => Int::Known(1),
            (Int::Made(a), Int::Made(b)) => Int::Made(self.same("arith.ori", &[a, b])),
        }
    }

    /// The greater of two numbers, which may be negative.
    pub(super) fn greater(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        self.binary("arith.maxsi", [a.into(), b.into()], |a, b| Some(a.max(b)))
    }

    /// The lesser of two numbers, which may be negative.
    pub(super) fn lesser(&self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        self.binary("arith.minsi", [a.into(), b.into()], |a, b| Some(a.min(b)))
    }

    /// `then` where the condition holds, else `otherwise`.
    pub(super) fn select(
        &self,
        condition: Int<'c>,
        then: impl Into<Int<'c>>,
        otherwise: impl Into<Int<'c>>,
    ) -> Int<'c> {
        match condition {
            Int::Known(0) => otherwise.into(),
            Int::Known(_) => then.into(),
            Int::Made(condition) => {
                let (then, otherwise) = (self.index(then.into()), self.index(otherwise.into()));
                let result = self.one("arith.select", &[condition, then, otherwise], self.index_type(), &[]);
                Int::Made(result)
            }
        }
    }

    /// The sum of numbers.
    pub(super) fn sum(&self, terms: impl IntoIterator<Item = Int<'c>>) -> Int<'c> {
        let mut sum = Int::Known(0);
        for term in terms {
            sum = self.add(sum, term);
        }
        sum
    }

    /// A loop over indices below `end`; `body` computes the loop-carried values of the next
    /// iteration from those of this one.
    pub(super) fn repeat(
        &self,
        [start, end, step]: [Int<'c>; 3],
        values: &[Ssa<'c>],
        body: impl FnOnce(Int<'c>, &[Ssa<'c>]) -> Vec<Ssa<'c>>,
    ) -> Vec<Ssa<'c>> {
        let mut operands = vec![self.index(start), self.index(end), self.index(step)];
        operands.extend(values);
        let types: Vec<_> = values.iter().map(|value| value.r#type()).collect();
        let arguments = [&[self.index_type()], types.as_slice()].concat();
        let inside = self.enclosed(&arguments, |arguments| {
            let (place, values) = arguments.split_first().unwrap_or_else(|| unreachable!("{CLOSED}"));
            let next = body(Int::Made(*place), values);
            self.op("scf.yield", &next, &[], &[], Vec::new())
        });
        self.op("scf.for", &operands, &types, &[], vec![inside])
    }

    /// Returns the values, or the results of `body` where the condition holds. The condition must
    /// be uniform in a subgroup.
    pub(super) fn replaced(
        &self,
        condition: Int<'c>,
        values: &[Ssa<'c>],
        body: impl FnOnce() -> Vec<Ssa<'c>>,
    ) -> Vec<Ssa<'c>> {
        let condition = match condition {
            Int::Known(0) => return values.to_vec(),
            Int::Known(_) => return body(),
            Int::Made(condition) => condition,
        };
        let types: Vec<_> = values.iter().map(|value| value.r#type()).collect();
        let replaced = self.enclosed(&[], |_| self.op("scf.yield", &body(), &[], &[], Vec::new()));
        let kept = self.enclosed(&[], |_| self.op("scf.yield", values, &[], &[], Vec::new()));
        self.op("scf.if", &[condition], &types, &[], vec![replaced, kept])
    }

    fn enclosed(&self, arguments: &[Type<'c>], body: impl FnOnce(&[Ssa<'c>]) -> Vec<Ssa<'c>>) -> Region {
        self.blocks.borrow_mut().push(Block::new(arguments));
        let values = (0..arguments.len()).map(|index| self.argument(index));
        let values = values.collect::<Vec<_>>();
        body(&values);
        let block = self
            .blocks
            .borrow_mut()
            .pop()
            .unwrap_or_else(|| unreachable!("{CLOSED}"));
        block.into()
    }

    /// Loads a vector or one element from a buffer of device memory. The address is the sum of a
    /// place for each lane and one that all lanes share. Beyond the buffer's end the hardware reads
    /// zeros.
    pub(super) fn load(&self, buffer: Ssa<'c>, (lane, shared): (Int<'c>, Int<'c>), result: Type<'c>) -> Ssa<'c> {
        let operands = [buffer, self.word(lane), self.word(shared)];
        self.one("amdgpu.raw_buffer_load", &operands, result, &bounded(3))
    }

    /// Stores to a buffer. Stores beyond its end have no effect.
    pub(super) fn store(&self, value: Ssa<'c>, buffer: Ssa<'c>, place: Int<'c>) {
        let operands = [value, buffer, self.word(place), self.word(Int::Known(0))];
        self.op("amdgpu.raw_buffer_store", &operands, &[], &bounded(4), Vec::new());
    }

    /// Memory that the workgroup shares.
    pub(super) fn shared(&self, elements: i64, element: Type<'c>) -> Ssa<'c> {
        let memory = element.memref(&[elements], Some(SHARED));
        self.one(
            "memref.alloc",
            &[],
            memory,
            &[("operandSegmentSizes", Attribute::i32_array(&[0, 0]))],
        )
    }

    pub(super) fn read_shared(&self, memory: Ssa<'c>, place: Int<'c>, vector: Type<'c>) -> Ssa<'c> {
        self.one("vector.load", &[memory, self.index(place)], vector, &[])
    }

    pub(super) fn write_shared(&self, vector: Ssa<'c>, memory: Ssa<'c>, place: Int<'c>) {
        self.op(
            "vector.store",
            &[vector, memory, self.index(place)],
            &[],
            &[],
            Vec::new(),
        );
    }

    /// A workgroup barrier: all accesses to shared memory before it are complete.
    pub(super) fn barrier(&self) {
        let fence = Attribute::text("[#gpu.address_space<workgroup>]");
        self.op("gpu.barrier", &[], &[], &[("address_spaces", fence)], Vec::new());
    }

    /// A scheduling barrier: the compiler moves no instruction across.
    pub(super) fn schedule_barrier(&self) {
        let mask = [("mask", Attribute::text("#rocdl.sched_group_mask<none>"))];
        self.op("rocdl.sched.barrier", &[], &[], &mask, Vec::new());
    }

    /// Elements of two vectors, by number: those of the second come after those of the first.
    pub(super) fn shuffle(&self, [a, b]: [Ssa<'c>; 2], elements: &[i64]) -> Ssa<'c> {
        let (_, element) = a.r#type().as_vector();
        let count = signed(elements.len());
        let mask = [("mask", Attribute::i64_array(elements))];
        self.one("vector.shuffle", &[a, b], element.vector(&[count]), &mask)
    }

    /// A vector all of whose elements are zero.
    pub(super) fn zeros(&self, vector: Type<'c>) -> Ssa<'c> {
        let (_, element) = vector.as_vector();
        let zero = if element.is_integer() { "0" } else { "0.0" };
        let value = Attribute::text(&format!("dense<{zero}> : {vector}"));
        self.one("arith.constant", &[], vector, &[("value", value)])
    }

    /// A number of a floating type, as MLIR writes it.
    pub(super) fn float(&self, number: &str, float: Type<'c>) -> Ssa<'c> {
        let value = Attribute::text(&format!("{number} : {float}"));
        self.one("arith.constant", &[], float, &[("value", value)])
    }

    /// Limits floats to at most `limit` if `is_above`, else to at least `limit`. NaN stays NaN,
    /// unlike with the compiler's `arith.minimumf`.
    pub(super) fn limited(&self, value: Ssa<'c>, limit: Ssa<'c>, is_above: bool) -> Ssa<'c> {
        // MLIR's numbers of the predicates "ordered greater" and "ordered less".
        let predicate = [(
            "predicate",
            Attribute::text(if is_above { "2 : i64" } else { "4 : i64" }),
        )];
        let truth = Type::integer(self.context, 1);
        let truths = match value.r#type().if_vector() {
            Some((count, _)) => truth.vector(&count),
            None => truth,
        };
        let is_beyond = self.one("arith.cmpf", &[value, limit], truths, &predicate);
        self.one("arith.select", &[is_beyond, limit, value], value.r#type(), &[])
    }

    /// An element of a vector, by number.
    pub(super) fn extract(&self, vector: Ssa<'c>, number: i64, element: Type<'c>) -> Ssa<'c> {
        let position = [("static_position", Attribute::i64_array(&[number]))];
        self.one("vector.extract", &[vector], element, &position)
    }

    /// Broadcasts the value of lane `number` of each 16 lanes to all of them.
    pub(super) fn broadcast_of_sixteen(&self, value: Ssa<'c>, number: i64) -> Ssa<'c> {
        /// The hardware's number of the control `row_newbcast:0`.
        const BROADCAST: i64 = 0x150;
        let word = |value: i64| Attribute::text(&format!("{value} : i32"));
        let attributes = [
            ("dppCtrl", word(BROADCAST + number)),
            ("rowMask", word(15)),
            ("bankMask", word(15)),
            ("boundCtrl", Attribute::text("true")),
        ];
        self.one("rocdl.update.dpp", &[value, value], value.r#type(), &attributes)
    }

    /// Returns the value of the lane whose number differs by `distance`: two such lanes exchange
    /// their values.
    pub(super) fn exchanged(&self, value: Ssa<'c>, distance: i64) -> Ssa<'c> {
        let operands = [
            value,
            self.word(Int::Known(distance)),
            self.word(Int::Known(LANES.cast_signed())),
        ];
        let types = [value.r#type(), Type::integer(self.context, 1)];
        let mode = [("mode", Attribute::text("#gpu.shuffle_mode<xor>"))];
        let made = self.op("gpu.shuffle", &operands, &types, &mode, Vec::new());
        made.into_iter()
            .next()
            .unwrap_or_else(|| unreachable!("an exchange of nothing"))
    }
}

/// Gathers the element with this index of each vector.
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
        return code.one("vector.from_elements", rows, vector, &[]);
    }
    let mut parts = Vec::new();
    for pair in rows.chunks(2) {
        let &[a, b] = pair else { unreachable!("{EMPTY}") };
        parts.push(code.shuffle([a, b], &[number, width + number]));
    }
    let mut length = 2;
    while parts.len() > 1 {
        let mut longer = Vec::new();
        for pair in parts.chunks(2) {
            let &[a, b] = pair else { unreachable!("{EMPTY}") };
            longer.push(code.shuffle([a, b], &(0..2 * length).collect::<Vec<_>>()));
        }
        (parts, length) = (longer, 2 * length);
    }
    parts.into_iter().next().unwrap_or_else(|| unreachable!("{EMPTY}"))
}

/// The attributes of an access to a buffer with bounds checks by the hardware.
fn bounded(operands: usize) -> [(&'static str, Attribute); 2] {
    let segments = vec![1; operands];
    [
        ("boundsCheck", Attribute::text("true")),
        ("operandSegmentSizes", Attribute::i32_array(&segments)),
    ]
}
