//! Structured operations: loops over the elements of tensors, and what their bodies have access to.

use super::{Emitter, Int, Loop, affine_map, dim, first};
use crate::counts::signed;
use crate::mlir::{Attribute, Type, Value};
use rotini_graph::DataType;

impl<'c> Emitter<'c> {
    /// A `linalg.generic` with one result. `inputs` are tensors with their maps, `init` is what the
    /// result starts from, and `body` makes the new element from the elements read and the old
    /// element.
    pub(crate) fn generic(
        &self,
        loops: &[Loop],
        inputs: &[(Value<'c>, DataType, String)],
        init: (Value<'c>, DataType, String),
        body: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        self.configured(None, loops, inputs, init, body)
    }

    /// [`generic`](Self::generic) with attributes that tell the compiler how to compile it, if any.
    pub(crate) fn configured(
        &self,
        how: Option<&str>,
        loops: &[Loop],
        inputs: &[(Value<'c>, DataType, String)],
        init: (Value<'c>, DataType, String),
        body: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let how: Vec<_> = how
            .map(|how| ("compilation_info", how.to_owned()))
            .into_iter()
            .collect();
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
        self.structured(
            &how,
            loops,
            &inputs,
            (init, self.element_type(init_dtype), init_map),
            body,
        )
    }

    /// The same with the types of elements as MLIR has them.
    pub(crate) fn structured(
        &self,
        how: &[(&'static str, String)],
        loops: &[Loop],
        inputs: &[(Value<'c>, Type<'c>, String)],
        init: (Value<'c>, Type<'c>, String),
        body: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Value<'c>,
    ) -> Value<'c> {
        let (init, init_type, init_map) = init;
        let mut maps: Vec<&str> = inputs.iter().map(|(_, _, map)| map.as_str()).collect();
        maps.push(&init_map);
        let maps = self.attribute(&format!("[{}]", maps.join(", ")));
        let iterators: Vec<&str> = loops
            .iter()
            .map(|kind| match kind {
                Loop::Parallel => "#linalg.iterator_type<parallel>",
                Loop::Reduction => "#linalg.iterator_type<reduction>",
            })
            .collect();
        let iterators = self.attribute(&format!("[{}]", iterators.join(", ")));

        let types = inputs.iter().map(|(_, ty, _)| *ty).chain([init_type]);
        let arguments: Vec<_> = types.collect();
        let block = self.block(&arguments, |elements| {
            let result = body(self, elements);
            self.run("linalg.yield", &[result]);
        });
        let mut operands: Vec<_> = inputs.iter().map(|(value, _, _)| *value).collect();
        operands.push(init);
        let input_count = i32::try_from(inputs.len()).unwrap_or_else(|_| unreachable!("too many inputs"));
        let mut attributes = vec![
            ("indexing_maps", maps),
            ("iterator_types", iterators),
            ("operandSegmentSizes", self.segments(&[input_count, 1])),
        ];
        for (name, text) in how {
            attributes.push((name, self.attribute(text)));
        }
        first(self.op(
            "linalg.generic",
            &operands,
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
        let init = self.empty(shape, dtype);
        let identity = affine_map(rank, &(0..rank).map(dim).collect::<Vec<_>>());
        self.generic(&vec![Loop::Parallel; rank], &[], (init, dtype, identity), |inner, _| {
            body(inner)
        })
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
