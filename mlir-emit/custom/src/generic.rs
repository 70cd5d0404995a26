//! Verification of structured operations: loops, indexing maps and bodies.

use crate::arithmetic::Kind;
use crate::body::MOST_AXES;
use crate::body::{Arithmetic, Generic, Loop, Operand, Place, Scalar, TensorType, Type, Value};
use crate::refusal::Fault;
use crate::syntax::{GenericForm, Map, MapReference, Typed, Word};
use crate::verify::Scope;

pub(crate) fn verify<'i>(scope: &mut Scope<'i>, form: &'i GenericForm<'i>, name: &Word<'i>) -> Result<Generic, Fault> {
    let count = form.loops.len();
    if count > MOST_AXES {
        return Err(name.fault(format!("more than {MOST_AXES} loops")));
    }
    if form.inputs.len() != form.input_types.len() {
        return Err(name.fault("a number of types that is not that of the operands"));
    }
    let Some((init_map, input_maps)) = form
        .maps
        .split_last()
        .filter(|(_, rest)| rest.len() == form.inputs.len())
    else {
        return Err(name.fault("a number of maps that is not that of the operands"));
    };
    if form.result.ty != form.init_type.ty {
        return Err(Fault::new(
            form.result.offset,
            "a result that is not of the type of what it starts from",
        ));
    }
    let mut loops = Loops {
        extents: vec![None; count],
    };
    let read = form.inputs.iter().zip(&form.input_types).zip(input_maps);
    let inputs = read
        .map(|((word, ty), map)| loops.operand(scope, word, ty, map))
        .collect::<Result<Vec<_>, _>>()?;
    let init = loops.operand(scope, &form.init, &form.init_type, init_map)?;
    check_written(&form.loops, &init, &form.init_type.ty)
        .map_err(|reason| Fault::new(form.init_type.offset, reason))?;
    let extents = loops.extents.into_iter().collect::<Option<Vec<_>>>();
    let extents = extents.ok_or_else(|| name.fault("a loop that indexes no tensor"))?;
    let fixed = inputs.iter().zip(&form.input_types);
    for (_, ty) in fixed.filter(|(operand, _)| operand.map.iter().any(|place| matches!(place, Place::Fixed(_)))) {
        // Axes with constant indices are sliced out first, into a copy that is counted here.
        scope.elements = scope.elements.saturating_add(ty.ty.count());
    }

    let types = form.input_types.iter().chain([&form.init_type]);
    if form.arguments.len() != form.maps.len() {
        return Err(name.fault("a block that does not have an argument for each operand"));
    }
    let mut arguments = Vec::new();
    for ((word, ty), tensor) in form.arguments.iter().zip(types) {
        if ty.ty != Type::Scalar(tensor.ty.element) {
            return Err(Fault::new(
                ty.offset,
                format!("an argument that is no element of {}", tensor.ty),
            ));
        }
        arguments.push(scope.define(word, ty.ty.clone())?);
    }
    for (operand, &argument) in inputs.iter().chain([&init]).zip(&arguments) {
        if scope.is_computed(operand.value) {
            scope.depends(argument);
        }
    }
    let mut body = Vec::new();
    for line in &form.body {
        let scalar = scope
            .arithmetic(line, count)
            .map_err(|fault| fault.of(line.name.text))?;
        body.push(scalar);
    }
    let yielded = yielded(scope, form).map_err(|fault| fault.of(form.yielded.name.text))?;
    let names = form.arguments.iter().map(|(word, _)| word);
    for word in names.chain(form.body.iter().map(|line| &line.result)) {
        scope.forget(word);
    }
    if form.loops.contains(&Loop::Reduction) {
        scope.contracts |= inputs.len() > 1;
        let so_far = arguments.last().copied();
        if !so_far.is_some_and(|so_far| combines(&body, yielded, so_far)) {
            let at = &form.yielded.name;
            return Err(
                at.fault("a reduction whose elements are not combined by one sum, product, minimum, maximum, or, and")
            );
        }
        // On GPUs, reductions that propagate NaN are computed on integers, which takes copies of
        // the result.
        let copies = form.result.ty.count().saturating_mul(2);
        scope.elements = scope.elements.saturating_add(copies);
    }
    Ok(Generic {
        loops: form.loops.clone(),
        extents,
        inputs,
        init,
        arguments,
        body,
        yielded,
    })
}

fn yielded(scope: &Scope<'_>, form: &GenericForm<'_>) -> Result<Value, Fault> {
    let end = &form.yielded;
    let element = form.result.ty.element;
    match (end.values.as_slice(), end.types.as_slice()) {
        ([word], [ty]) if ty.ty == Type::Scalar(element) => scope.scalar(word, element),
        _ => Err(end.name.fault(format!("what is not one element of {}", form.result.ty))),
    }
}

/// Checks whether the result is defined by one operation that combines the accumulator `so_far`
/// with another value.
fn combines(body: &[Scalar], result: Value, so_far: Value) -> bool {
    let uses = |arithmetic: &Arithmetic| arithmetic.operands().iter().filter(|&&value| value == so_far).count();
    let combiner = body.iter().find(|scalar| scalar.result == result);
    let total: usize = body.iter().map(|scalar| uses(&scalar.arithmetic)).sum();
    // No other operation may read the result, not even a dead one: the combiner is emitted
    // separately from the other operations, and its result is only yielded.
    let is_the_end = body
        .iter()
        .all(|scalar| !scalar.arithmetic.operands().contains(&result));
    is_the_end
        && combiner
            .is_some_and(|combiner| Kind::combines(combiner.arithmetic.name()) && uses(&combiner.arithmetic) == 1)
        && total == 1
}

/// Declines a result with an element that is written twice or not at all.
fn check_written(loops: &[Loop], init: &Operand, ty: &TensorType) -> Result<(), &'static str> {
    for (index, kind) in loops.iter().enumerate() {
        if init.map.contains(&Place::Loop(index)) != (*kind == Loop::Parallel) {
            return Err("a result that is not indexed by all parallel loops and no others");
        }
    }
    let is_whole = |(place, &extent): (&Place, &i64)| matches!(place, Place::Loop(_)) || extent == 1;
    if !init.map.iter().zip(&ty.dims).all(is_whole) {
        return Err("a result of which only a part is written");
    }
    Ok(())
}

/// The extents of the loops that are known so far.
struct Loops {
    extents: Vec<Option<i64>>,
}

impl Loops {
    fn operand<'i>(
        &mut self,
        scope: &Scope<'i>,
        word: &Word<'i>,
        ty: &Typed<TensorType>,
        map: &MapReference<'i>,
    ) -> Result<Operand, Fault> {
        let value = scope.tensor(word, &ty.ty)?;
        let map = scope.map(map)?;
        let map = self
            .places(map, &ty.ty)
            .map_err(|reason| Fault::new(map.offset, reason))?;
        Ok(Operand { value, map })
    }

    /// Returns the index at which each axis of a tensor is read: a loop or a constant within the
    /// extent. A loop may index at most one axis, and must have that axis's extent.
    fn places(&mut self, map: &Map<'_>, ty: &TensorType) -> Result<Vec<Place>, String> {
        let names = &map.loops;
        if names.len() != self.extents.len() {
            return Err(format!("a map of {} loops, not {}", names.len(), self.extents.len()));
        }
        let is_repeated = |index: usize| {
            let earlier = names.get(..index).unwrap_or_default();
            names
                .get(index)
                .is_some_and(|name| earlier.iter().any(|word| word.text == name.text))
        };
        if (0..names.len()).any(is_repeated) {
            return Err("a map with two loops of one name".to_owned());
        }
        if map.results.len() != ty.dims.len() {
            return Err(format!(
                "a map to {} axes, of a tensor with {}",
                map.results.len(),
                ty.dims.len()
            ));
        }
        let mut places = Vec::new();
        for (result, &extent) in map.results.iter().zip(&ty.dims) {
            if result.text.starts_with(|c: char| c.is_ascii_digit()) {
                let index = result.text.parse().ok().filter(|&index: &i64| index < extent);
                places.push(Place::Fixed(index.ok_or("an index that is not inside the tensor")?));
                continue;
            }
            let index = names.iter().position(|name| name.text == result.text);
            let index = index.ok_or("a map to a loop that is not there")?;
            if places.contains(&Place::Loop(index)) {
                return Err("a map with one loop for two axes".to_owned());
            }
            let slot = self.extents.get_mut(index).ok_or("a map to a loop that is not there")?;
            if *slot.get_or_insert(extent) != extent {
                return Err("a loop that indexes axes of different extents".to_owned());
            }
            places.push(Place::Loop(index));
        }
        Ok(places)
    }
}
