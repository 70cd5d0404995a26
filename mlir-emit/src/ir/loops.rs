//! Structured operations: loops over the elements of tensors, and the operations for their bodies.

use super::{Emitter, Int, first};
use crate::counts::signed;
use crate::mlir::{Attribute, IndexMap, Loop, Name, Role, Type, Value};
use rotini_graph::DataType;

/// A tensor of a structured operation, and its index map.
pub(crate) type Input<'c> = (Value<'c>, IndexMap);

/// Says how a structured operation becomes code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writer<'a> {
    /// The compiler generates it.
    Compiler,
    /// The compiler generates it, with this `compilation_info` attribute.
    Configured(&'a str),
    /// It is a row reduction that one of this crate's kernels replaces.
    Rows,
}

impl<'c> Emitter<'c> {
    /// Appends a `linalg.generic` with one result. `inputs` are tensors with their index maps,
    /// `init` is the initial tensor of the result, and `body` computes the new element from the
    /// elements read and the old element.
    pub(crate) fn generic(
        &self,
        loops: &[Loop],
        inputs: &[Input<'c>],
        init: Input<'c>,
        body: impl FnOnce(&[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        self.written_by(Writer::Compiler, loops, inputs, init, body)
    }

    /// Appends a [`generic`](Self::generic) whose code comes from this writer.
    pub(crate) fn written_by(
        &self,
        writer: Writer<'_>,
        loops: &[Loop],
        inputs: &[Input<'c>],
        init: Input<'c>,
        body: impl FnOnce(&[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let tensors: Vec<_> = inputs.iter().chain([&init]).map(|&(value, _)| value).collect();
        let elements: Vec<_> = tensors.iter().map(|tensor| tensor.r#type().as_tensor().1).collect();
        let block = self.block(&elements, |elements| {
            let result = body(elements);
            self.run(Name::LinalgYield, &[result]);
        });
        let maps = inputs.iter().chain([&init]).map(|(_, map)| map.clone());
        let input_count = i32::try_from(inputs.len()).expect("too many inputs");
        let mut attributes = vec![
            ("indexing_maps", Attribute::Maps(maps.collect())),
            ("iterator_types", Attribute::Loops(loops.to_vec())),
            ("operandSegmentSizes", Attribute::i32_array(&[input_count, 1])),
        ];
        match writer {
            Writer::Compiler | Writer::Rows => {}
            Writer::Configured(how) => attributes.push(("compilation_info", Attribute::text(how))),
        }
        let role = match writer {
            Writer::Rows => Role::Rows,
            Writer::Compiler | Writer::Configured(_) => Role::Plain,
        };
        first(self.context().append(
            (Name::LinalgGeneric, role),
            &tensors,
            &[init.0.r#type()],
            &attributes,
            vec![block.into()],
        ))
    }

    /// Appends a tensor whose elements `body` computes from the loop indices, one for each physical
    /// axis.
    pub(crate) fn tabulate(&self, shape: &[i64], dtype: DataType, body: impl FnOnce() -> Value<'c>) -> Value<'c> {
        self.elementwise(shape, dtype, &[], |_| body())
    }

    /// Appends a [`generic`](Self::generic) whose loops are the axes of the result, and whose body
    /// computes each element from those that are read.
    pub(crate) fn elementwise(
        &self,
        shape: &[i64],
        dtype: DataType,
        inputs: &[Input<'c>],
        body: impl FnOnce(&[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let init = (self.empty(shape, dtype), IndexMap::identity(shape.len()));
        self.generic(&vec![Loop::Parallel; shape.len()], inputs, init, body)
    }

    /// Appends a loop over `from..to` inside the body of a structured operation: `body` computes
    /// the new value from the index and the old value, which starts as `start`.
    pub(crate) fn fold(
        &self,
        [from, to]: [Value<'c>; 2],
        start: Value<'c>,
        body: impl FnOnce(Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let bounds = [Int::Made(from), Int::Made(to), Int::Known(1)];
        let folded = self.repeat(bounds, &[start], |index, so_far| {
            vec![body(self.index(index), so_far[0])]
        });
        first(folded)
    }

    /// Returns `value`, or the result of `body` where the condition holds; `body` is executed only
    /// there.
    pub(crate) fn replaced(
        &self,
        condition: Value<'c>,
        value: Value<'c>,
        body: impl FnOnce() -> Value<'c>,
    ) -> Value<'c> {
        let condition = Int::Made(condition);
        first(self.code.replaced(condition, &[value], || vec![body()]))
    }

    /// Returns the index of a loop, inside the body of a structured operation.
    pub(crate) fn loop_index(&self, index: usize) -> Value<'c> {
        let index = signed(index);
        let attribute = Attribute::integer(index, Type::integer(self.context(), 64));
        self.one(Name::LinalgIndex, &[], self.index_type(), &[("dim", attribute)])
    }
}
