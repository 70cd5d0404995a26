//! Structured operations: loops over the elements of tensors, and what their bodies have access to.

use super::{Emitter, Loop, Relation, affine_map, argument, dim, first};
use crate::counts::signed;
use crate::mlir::{Attribute, Block, Type, Value};
use rotini_graph::DataType;

impl<'c, 'b> Emitter<'c, 'b> {
    /// A `linalg.generic` with one result. `inputs` are tensors with their maps, `init` is what the
    /// result starts from, and `body` makes the new element from the elements read and the old
    /// element.
    pub(crate) fn generic(
        &self,
        loops: &[Loop],
        inputs: &[(Value<'c, 'b>, DataType, String)],
        init: (Value<'c, 'b>, DataType, String),
        body: impl for<'r> FnOnce(&Emitter<'c, 'r>, &[Value<'c, 'r>]) -> Value<'c, 'r>,
    ) -> Value<'c, 'b> {
        self.configured(None, loops, inputs, init, body)
    }

    /// [`generic`](Self::generic) with attributes that tell the compiler how to compile it, if any.
    pub(crate) fn configured(
        &self,
        how: Option<&str>,
        loops: &[Loop],
        inputs: &[(Value<'c, 'b>, DataType, String)],
        init: (Value<'c, 'b>, DataType, String),
        body: impl for<'r> FnOnce(&Emitter<'c, 'r>, &[Value<'c, 'r>]) -> Value<'c, 'r>,
    ) -> Value<'c, 'b> {
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
        inputs: &[(Value<'c, 'b>, Type<'c>, String)],
        init: (Value<'c, 'b>, Type<'c>, String),
        body: impl for<'r> FnOnce(&Emitter<'c, 'r>, &[Value<'c, 'r>]) -> Value<'c, 'r>,
    ) -> Value<'c, 'b> {
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
        let block = Block::new(&arguments);
        {
            let elements = (0..arguments.len())
                .map(|index| argument(&block, index))
                .collect::<Vec<_>>();
            let emitter = self.inside(&block);
            let result = body(&emitter, &elements);
            emitter.terminate("linalg.yield", &[result]);
        }
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
        body: impl for<'r> FnOnce(&Emitter<'c, 'r>) -> Value<'c, 'r>,
    ) -> Value<'c, 'b> {
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
        [from, to]: [Value<'c, 'b>; 2],
        (start, dtype): (Value<'c, 'b>, DataType),
        body: impl for<'r> FnOnce(&Emitter<'c, 'r>, Value<'c, 'r>, Value<'c, 'r>) -> Value<'c, 'r>,
    ) -> Value<'c, 'b> {
        let r#type = self.element_type(dtype);
        let block = Block::new(&[self.index_type(), r#type]);
        {
            let inner = self.inside(&block);
            let result = body(&inner, argument(&block, 0), argument(&block, 1));
            inner.terminate("scf.yield", &[result]);
        }
        let step = self.integer(1, self.index_type());
        first(self.op("scf.for", &[from, to, step, start], &[r#type], &[], vec![block.into()]))
    }

    /// Returns `value`, or the result of `body` where the condition holds. `body` is only executed
    /// there.
    pub(crate) fn replaced(
        &self,
        condition: Value<'c, 'b>,
        value: Value<'c, 'b>,
        body: impl for<'r> FnOnce(&Emitter<'c, 'r>) -> Value<'c, 'r>,
    ) -> Value<'c, 'b> {
        let r#type = value.r#type();
        let [made, kept] = [Block::new(&[]), Block::new(&[])];
        {
            let inner = self.inside(&made);
            inner.terminate("scf.yield", &[body(&inner)]);
            self.inside(&kept).terminate("scf.yield", &[self.captured(value)]);
        }
        first(self.op("scf.if", &[condition], &[r#type], &[], vec![made.into(), kept.into()]))
    }

    /// The index of a loop, inside the body of a structured operation.
    pub(crate) fn loop_index(&self, index: usize) -> Value<'c, 'b> {
        let index = signed(index);
        let attribute = Attribute::integer(index, Type::integer(self.context, 64));
        self.one("linalg.index", &[], self.index_type(), &[("dim", attribute)])
    }

    /// Compares two indices.
    pub(crate) fn compare_indices(&self, relation: Relation, lhs: Value<'c, 'b>, rhs: Value<'c, 'b>) -> Value<'c, 'b> {
        // MLIR's numbers of the predicates.
        let predicate = match relation {
            Relation::Equal => "0 : i64",
            Relation::AtMost => "7 : i64",
        };
        self.one(
            "arith.cmpi",
            &[lhs, rhs],
            self.bool_type(),
            &[("predicate", self.attribute(predicate))],
        )
    }
}
