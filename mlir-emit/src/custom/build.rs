//! Builds the MLIR function of a custom operation's body.

use super::elements::{UNKNOWN, any_type, constant, element_of, scalar_type, tensor_of, tensor_type, type_of};
use crate::EmitError;
use crate::counts::exactly;
use crate::ir::{Affine, Emitter, IndexMap, IntegerPredicate, first};
use crate::math::Math;
use crate::mlir::{Attribute, Context, Name, Type, Value as Ssa, function_text, verified};
use crate::quirks::Quirks;
use crate::target::Target;

use rotini_custom::{
    Arithmetic, Body, Element, Flag, Generic, Loop, Operand, Operation, Place, Scalar, Statement, TensorType, Value,
};
use rotini_graph::DataType;

/// Returns the text of a private function of this name.
pub(crate) fn function(
    context: &Context,
    body: &Body,
    name: &str,
    (target, quirks): (&Target, Quirks),
) -> Result<String, EmitError> {
    let at = Emitter::new(context, quirks);
    let types = body.types.iter().take(body.arguments);
    let arguments: Vec<_> = types.map(|ty| any_type(&at, ty)).collect();
    let results = body.results.iter().map(|&value| any_type(&at, type_of(body, value)));
    let results: Vec<_> = results.collect();
    let block = at.block(&arguments, |arguments| {
        let mut builder = Builder {
            at,
            target,
            body,
            values: Values::of(body),
        };
        for (slot, &argument) in builder.values.0.iter_mut().zip(arguments) {
            *slot = Some(argument);
        }
        for statement in &body.statements {
            let made = builder.statement(statement);
            builder.values.set(statement.result, made);
        }
        at.run(Name::FuncReturn, &builder.values.all(&body.results));
    });
    verified(context, &block)?;
    Ok(function_text(context, name, &results, &block))
}

/// The MLIR values of the body's values, as far as they have been built.
#[derive(Clone)]
pub(crate) struct Values<'c>(Vec<Option<Ssa<'c>>>);

impl<'c> Values<'c> {
    fn of(body: &Body) -> Self {
        Values(vec![None; body.types.len()])
    }

    pub(crate) fn get(&self, value: Value) -> Ssa<'c> {
        self.0.get(value.index()).copied().flatten().expect(UNKNOWN)
    }

    pub(crate) fn all(&self, values: &[Value]) -> Vec<Ssa<'c>> {
        values.iter().map(|&value| self.get(value)).collect()
    }

    pub(crate) fn set(&mut self, value: Value, ssa: Ssa<'c>) {
        *self.0.get_mut(value.index()).expect(UNKNOWN) = Some(ssa);
    }
}

/// The function that is being built.
pub(crate) struct Builder<'l, 'c> {
    pub(crate) at: Emitter<'c>,
    pub(crate) target: &'l Target,
    pub(crate) body: &'l Body,
    pub(crate) values: Values<'c>,
}

impl<'c> Builder<'_, 'c> {
    fn statement(&self, statement: &Statement) -> Ssa<'c> {
        let at = &self.at;
        if let Operation::Scalar(scalar) = &statement.operation {
            return self.scalar(&self.values, scalar);
        }
        let TensorType { dims, element } = tensor_of(self.body, statement.result);
        let result = tensor_type(at, dims, *element);
        match &statement.operation {
            Operation::Scalar(_) => unreachable!("it has no tensor type"),
            Operation::Empty => at.one(Name::TensorEmpty, &[], result, &[]),
            Operation::Fill(number) => at.fill(self.values.get(*number), at.one(Name::TensorEmpty, &[], result, &[])),
            Operation::Expand(source, groups) => at.expand(self.values.get(*source), groups, dims),
            Operation::Collapse(source, groups) => at.collapse(self.values.get(*source), groups, dims),
            Operation::Slice(source, slices) => self.slice(self.values.get(*source), slices, result),
            Operation::Concat(axis, sources) => self.concat(*axis, sources, dims, result),
            Operation::Apart(source) => at.barrier(self.values.get(*source)),
            Operation::Generic(generic) => match generic.combiner() {
                Some(_) => self.reduction(generic, dims, *element),
                None => self.generic(generic, self.values.get(generic.init.value), *element, |values| {
                    for scalar in &generic.body {
                        let made = self.scalar(values, scalar);
                        values.set(scalar.result, made);
                    }
                    values.get(generic.yielded)
                }),
            },
        }
    }

    /// Appends an elementwise operation: each element is computed from the elements of `from` at
    /// the same index.
    pub(crate) fn each(
        &self,
        dims: &[i64],
        from: &[Ssa<'c>],
        made: Element,
        body: impl FnOnce(&[Ssa<'c>]) -> Ssa<'c>,
    ) -> Ssa<'c> {
        let at = &self.at;
        let all: Vec<Place> = (0..dims.len()).map(Place::Loop).collect();
        let loops = vec![Loop::Parallel; dims.len()];
        let init = at.one(Name::TensorEmpty, &[], tensor_type(at, dims, made), &[]);
        let inputs: Vec<_> = from.iter().map(|&ssa| (ssa, all.clone())).collect();
        self.structured(&loops, &inputs, (init, all.as_slice()), |elements| {
            body(&elements[..from.len()])
        })
    }

    fn slice(&self, source: Ssa<'c>, slices: &[[i64; 3]], result: Type<'c>) -> Ssa<'c> {
        let at = &self.at;
        let list = |pick: fn(&[i64; 3]) -> i64| Attribute::i64_array(&slices.iter().map(pick).collect::<Vec<_>>());
        let attributes = [
            ("static_offsets", list(|&[offset, _, _]| offset)),
            ("static_sizes", list(|&[_, size, _]| size)),
            ("static_strides", list(|&[_, _, stride]| stride)),
            ("operandSegmentSizes", Attribute::i32_array(&[1, 0, 0, 0])),
        ];
        at.one(Name::TensorExtractSlice, &[source], result, &attributes)
    }

    /// Concatenates tensors along an axis. One loop reads each element from its source: inserting
    /// the tensors one by one would cost an additional copy on GPUs.
    fn concat(&self, axis: usize, sources: &[Value], dims: &[i64], result: Type<'c>) -> Ssa<'c> {
        let at = &self.at;
        let loops = vec![Loop::Parallel; dims.len()];
        let all: Vec<Place> = (0..dims.len()).map(Place::Loop).collect();
        let init = at.one(Name::TensorEmpty, &[], result, &[]);
        let element = sources.first().map(|&source| tensor_of(self.body, source));
        let element = element.expect(UNKNOWN).element;
        self.structured(&loops, &[], (init, all.as_slice()), |_| {
            let along = at.loop_index(axis);
            let constant = |number: i64| at.integer(number, at.index_type());
            let mut chosen: Option<Ssa<'c>> = None;
            let mut start = 0_i64;
            for &source in sources {
                let extent = tensor_of(self.body, source).dims[axis];
                // Outside of a source, the index is clamped, and the element read is not selected.
                let own = along - constant(start);
                let own = own.maxsi(constant(0));
                let own = own.minsi(constant(extent.saturating_sub(1)));
                let mut operands = vec![self.values.get(source)];
                for index in 0..dims.len() {
                    operands.push(if index == axis { own } else { at.loop_index(index) });
                }
                let mut read = at.one(Name::TensorExtract, &operands, scalar_type(at, element), &[]);
                if element == Element::Bf16 {
                    // As bits: the compiler selects bf16 through f32, which changes NaN.
                    read = read.bitcast(at.bits16_type());
                }
                chosen = Some(match chosen {
                    None => read,
                    Some(before) => {
                        let is_here = at.compare_integers(IntegerPredicate::GreaterEqual, along, constant(start));
                        is_here.select(read, before)
                    }
                });
                start = start.saturating_add(extent);
            }
            let chosen = chosen.expect(UNKNOWN);
            if element == Element::Bf16 {
                chosen.bitcast(scalar_type(at, element))
            } else {
                chosen
            }
        })
    }

    /// Appends a structured operation that starts from `init`, whose element type, `element`, may
    /// differ from the one that the body declares. The values passed to `body` include the block's
    /// arguments.
    pub(crate) fn generic(
        &self,
        generic: &Generic,
        init: Ssa<'c>,
        element: Element,
        body: impl FnOnce(&mut Values<'c>) -> Ssa<'c>,
    ) -> Ssa<'c> {
        let mut inputs = Vec::new();
        for Operand { value, map } in &generic.inputs {
            let ty = tensor_of(self.body, *value);
            let (ssa, places) = self.cut(self.values.get(*value), ty, map);
            inputs.push((ssa, places));
        }
        let ty = TensorType {
            dims: tensor_of(self.body, generic.init.value).dims.clone(),
            element,
        };
        let (start, places) = self.cut(init, &ty, &generic.init.map);
        let result = self.structured(&generic.loops, &inputs, (start, places.as_slice()), |elements| {
            let mut values = self.values.clone();
            for (&argument, &element) in generic.arguments.iter().zip(elements) {
                values.set(argument, element);
            }
            body(&mut values)
        });
        if places.len() == ty.dims.len() {
            return result;
        }
        // Adds the axes that were cut off, with extent 1.
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
        let mut group = 0_usize;
        let mut is_started = false;
        for (axis, place) in generic.init.map.iter().enumerate() {
            if matches!(place, Place::Loop(_)) {
                group = if is_started { group.saturating_add(1) } else { 0 };
                is_started = true;
            }
            if let Some(axes) = groups.get_mut(group) {
                axes.push(axis);
            }
        }
        self.at.expand(result, &groups, &ty.dims)
    }

    /// Returns a tensor without the axes that its map fixes, and the places of the others: a fixed
    /// index becomes a slice, so that index maps have loops only.
    fn cut(&self, ssa: Ssa<'c>, ty: &TensorType, map: &[Place]) -> (Ssa<'c>, Vec<Place>) {
        let has_loops_alone = map.iter().all(|place| matches!(place, Place::Loop(_)));
        if has_loops_alone {
            return (ssa, map.to_vec());
        }
        let (mut kept, mut places, mut slices) = (Vec::new(), Vec::new(), Vec::new());
        for (place, &extent) in map.iter().zip(&ty.dims) {
            match place {
                Place::Loop(_) => {
                    kept.push(extent);
                    places.push(*place);
                    slices.push([0, extent, 1]);
                }
                Place::Fixed(index) => slices.push([*index, 1, 1]),
            }
        }
        let result = tensor_type(&self.at, &kept, ty.element);
        (self.slice(ssa, &slices, result), places)
    }

    /// Appends a `linalg.generic`: inputs and the result's initial tensor, with their maps.
    pub(crate) fn structured(
        &self,
        loops: &[Loop],
        inputs: &[(Ssa<'c>, Vec<Place>)],
        (init, init_map): (Ssa<'c>, &[Place]),
        body: impl FnOnce(&[Ssa<'c>]) -> Ssa<'c>,
    ) -> Ssa<'c> {
        let at = &self.at;
        let map = |places: &[Place]| {
            let results = places.iter().map(|place| match place {
                Place::Loop(index) => Affine::Loop(*index),
                Place::Fixed(index) => Affine::Constant(*index),
            });
            IndexMap::new(loops.len(), results.collect())
        };
        let kinds: Vec<crate::ir::Loop> = loops
            .iter()
            .map(|kind| match kind {
                Loop::Parallel => crate::ir::Loop::Parallel,
                Loop::Reduction => crate::ir::Loop::Reduction,
            })
            .collect();
        let read: Vec<_> = inputs.iter().map(|(ssa, places)| (*ssa, map(places))).collect();
        at.generic(&kinds, &read, (init, map(init_map)), body)
    }

    /// Appends one scalar operation of the body, unchanged except for angles, and returns its
    /// result.
    pub(crate) fn operation(&self, values: &Values<'c>, scalar: &Scalar) -> Ssa<'c> {
        let at = &self.at;
        let element = element_of(self.body, scalar.result);
        match &scalar.arithmetic {
            Arithmetic::Constant(bits) => constant(at, *bits, element),
            Arithmetic::Index(index) => at.loop_index(*index),
            // The compiler's own sin and cos lose a digit with each digit of the angle.
            Arithmetic::Operation { name, operands, .. } if ["math.sin", "math.cos"].contains(name) => {
                let math = Math::new(*at, self.target, DataType::F32, Vec::new());
                let [x] = exactly(operands).map(|x| values.get(x));
                if *name == "math.sin" { math.sin(x) } else { math.cos(x) }
            }
            Arithmetic::Operation {
                name,
                operands,
                predicate,
                flag,
            } => {
                let mut attributes = Vec::new();
                if let Some(predicate) = predicate {
                    attributes.push(("predicate", Attribute::text(&format!("{predicate} : i64"))));
                }
                // The flags come from rotini's list of known words, so none of the caller's text is
                // in the attribute.
                match flag {
                    Some(Flag::Fastmath(flags)) => {
                        let text = format!("#arith.fastmath<{}>", flags.join(","));
                        attributes.push(("fastmath", Attribute::text(&text)));
                    }
                    Some(Flag::Overflow(flags)) => {
                        let text = format!("#arith.overflow<{}>", flags.join(", "));
                        attributes.push(("overflowFlags", Attribute::text(&text)));
                    }
                    Some(Flag::NonNegative) => attributes.push(("nonNeg", Attribute::text("unit"))),
                    None => {}
                }
                first(at.op(
                    Name::of_text(name),
                    &values.all(operands),
                    &[scalar_type(at, element)],
                    &attributes,
                    Vec::new(),
                ))
            }
        }
    }
}
