//! Structured operations: loops over the elements of tensors, and what their bodies have access to.

use super::{Emitter, Int, first};
use crate::counts::signed;
use crate::mlir::{Attribute, IndexMap, Loop, Role, Type, Value};
use rotini_graph::DataType;

/// A tensor of a structured operation, the type of its elements, and the element that each
/// iteration accesses.
pub(crate) type Input<'c> = (Value<'c>, DataType, IndexMap);

/// Who writes the code of a structured operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writer<'a> {
    /// The compiler.
    Compiler,
    /// The compiler, configured by this text.
    Configured(&'a str),
    /// This crate: a reduction of rows.
    Rows,
}

impl<'c> Emitter<'c> {
    /// A `linalg.generic` with one result. `inputs` are tensors with their maps, `init` is what the
    /// result starts from, and `body` makes the new element from the elements read and the old
    /// element.
    pub(crate) fn generic(
        &self,
        loops: &[Loop],
        inputs: &[Input<'c>],
        init: Input<'c>,
        body: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        self.written_by(Writer::Compiler, loops, inputs, init, body)
    }

    /// [`generic`](Self::generic) whose code is written by this writer.
    pub(crate) fn written_by(
        &self,
        writer: Writer<'_>,
        loops: &[Loop],
        inputs: &[Input<'c>],
        init: Input<'c>,
        body: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let (init, init_dtype, init_map) = init;
        let inputs = inputs
            .iter()
            .map(|(value, _, map)| {
                // The element as the tensor has it: a code that is multiplied is the float that it
                // means.
                let element = value.r#type().as_tensor().1;
                (*value, element, map.clone())
            })
            .collect::<Vec<_>>();
        let init = (init, self.element_type(init_dtype), init_map);
        self.structured(writer, loops, &inputs, init, body)
    }

    /// The same with the types of elements as MLIR has them.
    pub(crate) fn structured(
        &self,
        writer: Writer<'_>,
        loops: &[Loop],
        inputs: &[(Value<'c>, Type<'c>, IndexMap)],
        (init, init_type, init_map): (Value<'c>, Type<'c>, IndexMap),
        body: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let maps = inputs.iter().map(|(_, _, map)| map.clone()).chain([init_map]);
        let types = inputs.iter().map(|(_, r#type, _)| *r#type).chain([init_type]);
        let block = self.block(&types.collect::<Vec<_>>(), |elements| {
            let result = body(self, elements);
            self.run("linalg.yield", &[result]);
        });
        let operands = inputs.iter().map(|(value, _, _)| *value).chain([init]);
        let input_count = i32::try_from(inputs.len()).expect("too many inputs");
        let mut attributes = vec![
            ("indexing_maps", Attribute::Maps(maps.collect())),
            ("iterator_types", Attribute::Loops(loops.to_vec())),
            ("operandSegmentSizes", self.segments(&[input_count, 1])),
        ];
        match writer {
            Writer::Compiler | Writer::Rows => {}
            Writer::Configured(how) => attributes.push(("compilation_info", self.attribute(how))),
        }
        let role = match writer {
            Writer::Rows => Role::Rows,
            Writer::Compiler | Writer::Configured(_) => Role::Plain,
        };
        first(self.context().append_as(
            ("linalg.generic", role),
            &operands.collect::<Vec<_>>(),
            &[init.r#type()],
            &attributes,
            vec![block.into()],
        ))
    }

    /// A tensor whose elements are made from the indices of its loops, one for each physical axis.
    pub(crate) fn tabulate(
        &self,
        shape: &[i64],
        dtype: DataType,
        body: impl FnOnce(&Emitter<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let rank = shape.len();
        let init = (self.empty(shape, dtype), dtype, IndexMap::identity(rank));
        self.generic(&vec![Loop::Parallel; rank], &[], init, |inner, _| body(inner))
    }

    /// One loop from the first bound to before the second, in the body of a structured operation:
    /// `body` makes the new value from the index and the old value, which starts as `start`.
    pub(crate) fn fold(
        &self,
        [from, to]: [Value<'c>; 2],
        start: Value<'c>,
        body: impl FnOnce(&Emitter<'c>, Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let bounds = [Int::Made(from), Int::Made(to), Int::Known(1)];
        let folded = self.repeat(bounds, &[start], |index, so_far| {
            vec![body(self, self.index(index), so_far[0])]
        });
        first(folded)
    }

    /// Returns `value`, or the result of `body` where the condition holds. `body` is only executed
    /// there.
    pub(crate) fn replaced(
        &self,
        condition: Value<'c>,
        value: Value<'c>,
        body: impl FnOnce(&Emitter<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let condition = Int::Made(condition);
        first(self.code.replaced(condition, &[value], || vec![body(self)]))
    }

    /// The index of a loop, inside the body of a structured operation.
    pub(crate) fn loop_index(&self, index: usize) -> Value<'c> {
        let index = signed(index);
        let attribute = Attribute::integer(index, Type::integer(self.context(), 64));
        self.one("linalg.index", &[], self.index_type(), &[("dim", attribute)])
    }
}
