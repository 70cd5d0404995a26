//! Builds the MLIR function of a body.

use super::elements::{
    UNKNOWN, any_type, constant, element_of, float_of, neutral, scalar_type, tensor_of, tensor_type, type_of, with_sign,
};
use super::extremes::{Extreme, combined_as_integers};
use crate::EmitError;
use crate::convert::integer_to_float;
use crate::counts::exactly;
use crate::ir::{Affine, Emitter, IndexMap, Writer, first};
use crate::math::Math;
use crate::mlir::{Context, Type, Value as Ssa, function_text, verified};
use crate::quirks::{Quirk, Quirks};
use crate::target::Target;
use crate::value::groups_attribute;
use rotini_custom::{
    Arithmetic, Body, Element, Flag, Generic, Loop, Operand, Operation, Place, Scalar, Statement, TensorType, Value,
};
use rotini_graph::DataType;

/// The text of a private function of this name.
pub(super) fn function(
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
        at.run("func.return", &builder.values.all(&body.results));
    });
    verified(context, &block)?;
    Ok(function_text(context, name, &results, &block))
}

/// What has been built of the body's values.
#[derive(Clone)]
pub(super) struct Values<'c>(Vec<Option<Ssa<'c>>>);

impl<'c> Values<'c> {
    fn of(body: &Body) -> Self {
        Values(vec![None; body.types.len()])
    }

    pub(super) fn get(&self, value: Value) -> Ssa<'c> {
        self.0
            .get(value.index())
            .copied()
            .flatten()
            .unwrap_or_else(|| unreachable!("{UNKNOWN}"))
    }

    fn all(&self, values: &[Value]) -> Vec<Ssa<'c>> {
        values.iter().map(|&value| self.get(value)).collect()
    }

    pub(super) fn set(&mut self, value: Value, ssa: Ssa<'c>) {
        *self
            .0
            .get_mut(value.index())
            .unwrap_or_else(|| unreachable!("{UNKNOWN}")) = Some(ssa);
    }
}

/// A function that is being built.
pub(super) struct Builder<'l, 'c> {
    pub(super) at: Emitter<'c>,
    target: &'l Target,
    pub(super) body: &'l Body,
    pub(super) values: Values<'c>,
}

impl<'c> Builder<'_, 'c> {
    fn statement(&self, statement: &Statement) -> Ssa<'c> {
        let at = &self.at;
        if let Operation::Scalar(scalar) = &statement.operation {
            return self.scalar(at, &self.values, scalar);
        }
        let TensorType { dims, element } = tensor_of(self.body, statement.result);
        let result = tensor_type(at, dims, *element);
        match &statement.operation {
            Operation::Scalar(scalar) => self.scalar(at, &self.values, scalar),
            Operation::Empty => at.one("tensor.empty", &[], result, &[]),
            Operation::Fill(number) => at.fill(self.values.get(*number), at.one("tensor.empty", &[], result, &[])),
            Operation::Expand(source, groups) => {
                let attributes = [
                    ("reassociation", groups_attribute(at, groups)),
                    ("static_output_shape", at.i64_array(dims)),
                ];
                at.one("tensor.expand_shape", &[self.values.get(*source)], result, &attributes)
            }
            Operation::Collapse(source, groups) => {
                let attributes = [("reassociation", groups_attribute(at, groups))];
                at.one(
                    "tensor.collapse_shape",
                    &[self.values.get(*source)],
                    result,
                    &attributes,
                )
            }
            Operation::Slice(source, slices) => self.slice(self.values.get(*source), slices, result),
            Operation::Concat(axis, sources) => self.concat(*axis, sources, dims, result),
            Operation::Apart(source) => at.barrier(self.values.get(*source)),
            Operation::Generic(generic) => match generic.combiner() {
                Some(combiner) => self.reduction(generic, &combiner.arithmetic, dims, *element),
                None => self.generic(generic, self.values.get(generic.init.value), *element, |at, values| {
                    for scalar in &generic.body {
                        let made = self.scalar(at, values, scalar);
                        values.set(scalar.result, made);
                    }
                    values.get(generic.yielded)
                }),
            },
        }
    }

    /// A reduction. It starts from one number everywhere. The initial tensor is combined with the
    /// result afterwards, because its memory may be the caller's ([`Quirk::SumsInPlace`]).
    fn reduction(&self, generic: &Generic, combiner: &Arithmetic, dims: &[i64], element: Element) -> Ssa<'c> {
        let at = &self.at;
        let mut statements = self.body.statements.iter();
        let made = statements.find(|statement| statement.result == generic.init.value);
        let filled = match made.map(|made| &made.operation) {
            Some(Operation::Fill(number)) => Some(self.values.get(*number)),
            _ => None,
        };
        let number = match filled {
            Some(number) => number,
            None => constant(at, neutral(combiner.name(), element), element),
        };
        let reduced = match Extreme::of(combiner) {
            Some(extreme) if at.quirks().avoids(Quirk::LostNan) => {
                combined_as_integers(self, generic, extreme, (dims, element), number)
            }
            _ => {
                let start = if filled.is_none() && !at.quirks().avoids(Quirk::SumsInPlace) {
                    self.values.get(generic.init.value)
                } else {
                    at.fill(number, at.one("tensor.empty", &[], tensor_type(at, dims, element), &[]))
                };
                self.generic(generic, start, element, |at, values| {
                    for scalar in &generic.body {
                        // The one operation that combines is known as such.
                        let made = if scalar.result == generic.yielded {
                            self.operation(at, values, &of_any(scalar))
                        } else {
                            self.scalar(at, values, scalar)
                        };
                        values.set(scalar.result, made);
                    }
                    values.get(generic.yielded)
                })
            }
        };
        if filled.is_some() || !at.quirks().avoids(Quirk::SumsInPlace) {
            return reduced;
        }
        let start = self.values.get(generic.init.value);
        self.each(dims, &[start, reduced], element, element, |at, elements| {
            let [start, reduced] = exactly(elements);
            match Extreme::chosen(combiner, at.quirks()) {
                Some(extreme) => extreme.choose(at, element, start, reduced),
                None => at.same(combiner.name(), &[start, reduced]),
            }
        })
    }

    /// Makes each element from those at its place.
    pub(super) fn each(
        &self,
        dims: &[i64],
        from: &[Ssa<'c>],
        element: Element,
        made: Element,
        body: impl FnOnce(&Emitter<'c>, &[Ssa<'c>]) -> Ssa<'c>,
    ) -> Ssa<'c> {
        let at = &self.at;
        let all: Vec<Place> = (0..dims.len()).map(Place::Loop).collect();
        let loops = vec![Loop::Parallel; dims.len()];
        let init = at.one("tensor.empty", &[], tensor_type(at, dims, made), &[]);
        let inputs: Vec<_> = from.iter().map(|&ssa| (ssa, all.clone(), element)).collect();
        self.structured(&loops, &inputs, (init, all.as_slice(), made), |inner, elements| {
            body(inner, &elements[..from.len()])
        })
    }

    fn slice(&self, source: Ssa<'c>, slices: &[[i64; 3]], result: Type<'c>) -> Ssa<'c> {
        let at = &self.at;
        let list = |pick: fn(&[i64; 3]) -> i64| at.i64_array(&slices.iter().map(pick).collect::<Vec<_>>());
        let attributes = [
            ("static_offsets", list(|&[offset, _, _]| offset)),
            ("static_sizes", list(|&[_, size, _]| size)),
            ("static_strides", list(|&[_, _, stride]| stride)),
            ("operandSegmentSizes", at.segments(&[1, 0, 0, 0])),
        ];
        at.one("tensor.extract_slice", &[source], result, &attributes)
    }

    /// One tensor after the other. Each element is read from where it is: what is written in parts
    /// is copied once more on GPUs.
    fn concat(&self, axis: usize, sources: &[Value], dims: &[i64], result: Type<'c>) -> Ssa<'c> {
        let at = &self.at;
        let loops = vec![Loop::Parallel; dims.len()];
        let all: Vec<Place> = (0..dims.len()).map(Place::Loop).collect();
        let init = at.one("tensor.empty", &[], result, &[]);
        let element = sources.first().map(|&source| tensor_of(self.body, source));
        let element = element.unwrap_or_else(|| unreachable!("{UNKNOWN}")).element;
        self.structured(&loops, &[], (init, all.as_slice(), element), |inner, _| {
            let along = inner.loop_index(axis);
            let constant = |number: i64| inner.integer(number, inner.index_type());
            let mut chosen: Option<Ssa<'c>> = None;
            let mut start = 0_i64;
            for &source in sources {
                let extent = tensor_of(self.body, source).dims[axis];
                // What is outside is read at the nearest place, and not chosen.
                let own = along - constant(start);
                let own = own.maxsi(constant(0));
                let own = own.minsi(constant(extent.saturating_sub(1)));
                let mut operands = vec![self.values.get(source)];
                for index in 0..dims.len() {
                    operands.push(if index == axis { own } else { inner.loop_index(index) });
                }
                let mut read = inner.one("tensor.extract", &operands, scalar_type(inner, element), &[]);
                if element == Element::Bf16 {
                    // As bits: the compiler selects bf16 through f32, which changes NaN.
                    read = read.bitcast(inner.bits16_type());
                }
                chosen = Some(match chosen {
                    None => read,
                    Some(before) => {
                        let predicate = inner.attribute("5 : i64");
                        let attributes = [("predicate", predicate)];
                        let is_here =
                            inner.one("arith.cmpi", &[along, constant(start)], inner.bool_type(), &attributes);
                        is_here.select(read, before)
                    }
                });
                start = start.saturating_add(extent);
            }
            let chosen = chosen.unwrap_or_else(|| unreachable!("{UNKNOWN}"));
            if element == Element::Bf16 {
                chosen.bitcast(scalar_type(inner, element))
            } else {
                chosen
            }
        })
    }

    /// A structured operation that starts from `init`, whose elements may be others than the body
    /// says. What `body` is given has the arguments of the block.
    pub(super) fn generic(
        &self,
        generic: &Generic,
        init: Ssa<'c>,
        element: Element,
        body: impl FnOnce(&Emitter<'c>, &mut Values<'c>) -> Ssa<'c>,
    ) -> Ssa<'c> {
        let mut inputs = Vec::new();
        for Operand { value, map } in &generic.inputs {
            let ty = tensor_of(self.body, *value);
            let (ssa, places) = self.cut(self.values.get(*value), ty, map);
            inputs.push((ssa, places, ty.element));
        }
        let ty = TensorType {
            dims: tensor_of(self.body, generic.init.value).dims.clone(),
            element,
        };
        let (start, places) = self.cut(init, &ty, &generic.init.map);
        let result = self.structured(
            &generic.loops,
            &inputs,
            (start, places.as_slice(), element),
            |at, elements| {
                let mut values = self.values.clone();
                for (&argument, &element) in generic.arguments.iter().zip(elements) {
                    values.set(argument, element);
                }
                body(at, &mut values)
            },
        );
        if places.len() == ty.dims.len() {
            return result;
        }
        // The axes that were cut off.
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
        let attributes = [
            ("reassociation", groups_attribute(&self.at, &groups)),
            ("static_output_shape", self.at.i64_array(&ty.dims)),
        ];
        let whole = tensor_type(&self.at, &ty.dims, element);
        self.at.one("tensor.expand_shape", &[result], whole, &attributes)
    }

    /// A tensor without the axes that are fixed, and the places of the others: a fixed index is a
    /// slice, so that maps have loops alone.
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

    /// A `linalg.generic`: inputs with their maps and elements, and what the result starts from.
    pub(super) fn structured(
        &self,
        loops: &[Loop],
        inputs: &[(Ssa<'c>, Vec<Place>, Element)],
        (init, init_map, element): (Ssa<'c>, &[Place], Element),
        body: impl FnOnce(&Emitter<'c>, &[Ssa<'c>]) -> Ssa<'c>,
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
        let read: Vec<_> = inputs
            .iter()
            .map(|(ssa, places, element)| (*ssa, scalar_type(at, *element), map(places)))
            .collect();
        let written = (init, scalar_type(at, element), map(init_map));
        at.structured(Writer::Compiler, &kinds, &read, written, body)
    }

    /// A number, as this target makes it right.
    pub(super) fn scalar(&self, at: &Emitter<'c>, values: &Values<'c>, scalar: &Scalar) -> Ssa<'c> {
        if let (Some(extreme), [x, y]) = (
            Extreme::chosen(&scalar.arithmetic, at.quirks()),
            scalar.arithmetic.operands(),
        ) {
            let element = element_of(self.body, scalar.result);
            return extreme.choose(at, element, values.get(*x), values.get(*y));
        }
        self.operation(at, values, scalar)
    }

    /// A number, as the body says.
    fn operation(&self, at: &Emitter<'c>, values: &Values<'c>, scalar: &Scalar) -> Ssa<'c> {
        let element = element_of(self.body, scalar.result);
        match &scalar.arithmetic {
            Arithmetic::Constant(bits) => constant(at, *bits, element),
            Arithmetic::Index(index) => at.loop_index(*index),
            Arithmetic::Operation { name, operands, .. } if is_own_function(name, element, at.quirks()) => {
                let math = Math::new(*at, self.target, DataType::F32, Vec::new());
                match (*name, values.all(operands).as_slice()) {
                    // The compiler's own lose a digit with each digit of the angle.
                    ("math.sin", &[x]) => math.sin(x),
                    ("math.cos", &[x]) => math.cos(x),
                    ("math.erf", &[x]) => math.erf(x),
                    (_, &[x, sign]) => with_sign(at, x, sign),
                    _ => unreachable!("{UNKNOWN}"),
                }
            }
            Arithmetic::Operation { name, operands, .. }
                if *name == "arith.negf" && at.quirks().avoids(Quirk::NegatedTerms) =>
            {
                let [x] = values.all(operands)[..] else {
                    unreachable!("{UNKNOWN}");
                };
                let negated = -x;
                negated.copysign(negated)
            }
            Arithmetic::Operation { name, operands, .. }
                if matches!(*name, "arith.sitofp" | "arith.uitofp") && at.quirks().avoids(Quirk::FoldedBf16) =>
            {
                let [x] = exactly(operands);
                let bits = element_of(self.body, x).bits();
                integer_to_float(at, name, (values.get(x), bits), float_of(element))
            }
            Arithmetic::Operation {
                name,
                operands,
                predicate,
                flag,
            } => {
                let mut attributes = Vec::new();
                if let Some(predicate) = predicate {
                    attributes.push(("predicate", at.attribute(&format!("{predicate} : i64"))));
                }
                // The words are rotini's, from the list of known words.
                match flag {
                    Some(Flag::Fastmath(flags)) => {
                        let text = format!("#arith.fastmath<{}>", flags.join(","));
                        attributes.push(("fastmath", at.attribute(&text)));
                    }
                    Some(Flag::Overflow(flags)) => {
                        let text = format!("#arith.overflow<{}>", flags.join(", "));
                        attributes.push(("overflowFlags", at.attribute(&text)));
                    }
                    Some(Flag::NonNegative) => attributes.push(("nonNeg", at.attribute("unit"))),
                    None => {}
                }
                first(at.op(
                    name,
                    &values.all(operands),
                    &[scalar_type(at, element)],
                    &attributes,
                    Vec::new(),
                ))
            }
        }
    }
}

/// Whether the compiler's function of f32 is not used: it is less exact, or copies a sign
/// ([`Quirk::CopiedSign`]).
fn is_own_function(name: &str, element: Element, quirks: Quirks) -> bool {
    let copies = element == Element::F32 && quirks.avoids(Quirk::CopiedSign);
    ["math.sin", "math.cos"].contains(&name) || copies && ["math.erf", "math.copysign"].contains(&name)
}

/// What combines elements, without the promise that none is infinite or no number: what it starts
/// from is.
fn of_any(scalar: &Scalar) -> Scalar {
    let mut scalar = scalar.clone();
    if let Arithmetic::Operation { flag, .. } = &mut scalar.arithmetic
        && let Some(Flag::Fastmath(flags)) = flag
    {
        let all = ["reassoc", "nsz", "arcp", "contract", "afn"];
        let has = |name: &str| flags.iter().any(|flag| *flag == name || *flag == "fast");
        let kept: Vec<&'static str> = all.into_iter().filter(|name| has(name)).collect();
        *flag = (!kept.is_empty()).then_some(Flag::Fastmath(kept));
    }
    scalar
}
