//! Verification, from words to values: each name refers to one value that is defined before its
//! use, and all types and shapes are consistent.

use crate::arithmetic::Kind;
use crate::body::MOST_OPERATIONS;
use crate::body::{Arithmetic, Body, Element, Operation, Scalar, Statement, TensorType, Type, Value};
use crate::refusal::Fault;
use crate::syntax::{Form, Map, MapReference, Returned, Source, Statement as Line, Typed, Word};
use crate::{generic, literal};
use std::collections::HashMap;

/// Verifies a body for an operation whose tensors have these types.
pub(crate) fn verify<'i>(source: &'i Source<'i>, inputs: &[TensorType], outputs: &[TensorType]) -> Result<Body, Fault> {
    let mut scope = Scope::default();
    for (name, map) in &source.aliases {
        if scope.maps.insert(name.text, map).is_some() {
            return Err(name.fault("a map whose name another has"));
        }
    }
    let taken: Vec<&Type> = source.arguments.iter().map(|(_, ty)| &ty.ty).collect();
    let given: Vec<&Type> = source.results.iter().map(|ty| &ty.ty).collect();
    compare(&source.name, "takes", &taken, inputs)?;
    compare(&source.name, "gives", &given, outputs)?;
    for (name, ty) in &source.arguments {
        let value = scope.define(name, ty.ty.clone())?;
        scope.depends(value);
    }
    let mut statements = Vec::new();
    for line in &source.statements {
        let statement = scope.statement(line).map_err(|fault| fault.of(line.name.text))?;
        statements.push(statement);
    }
    if scope.indexes && scope.contracts {
        return Err(source.name.fault("linalg.index in a body with a sum of products"));
    }
    let results = returned(&scope, &source.returned, &given, source.arguments.len())
        .map_err(|fault| fault.of(source.returned.name.text))?;
    Ok(Body {
        types: scope.types,
        arguments: source.arguments.len(),
        statements,
        results,
        elements: scope.elements,
    })
}

fn compare(name: &Word<'_>, what: &str, found: &[&Type], expected: &[TensorType]) -> Result<(), Fault> {
    let is_same = |(found, expected): (&&Type, &TensorType)| matches!(found, Type::Tensor(ty) if ty == expected);
    if found.len() == expected.len() && found.iter().zip(expected).all(is_same) {
        return Ok(());
    }
    let list = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
    Err(name.fault(format!(
        "its function {what} ({}), and the operation ({})",
        list(&mut found.iter().take(16).map(ToString::to_string)),
        list(&mut expected.iter().map(ToString::to_string))
    )))
}

fn returned(scope: &Scope<'_>, end: &Returned<'_>, types: &[&Type], arguments: usize) -> Result<Vec<Value>, Fault> {
    let is_same = |(written, declared): (&Typed<Type>, &&Type)| written.ty == **declared;
    if end.values.len() != types.len() || end.types.len() != types.len() || !end.types.iter().zip(types).all(is_same) {
        return Err(end.name.fault("results that are not those of the function"));
    }
    let resolve = |(word, ty): (&Word<'_>, &Typed<Type>)| {
        let value = scope.typed(word, &ty.ty)?;
        // An argument that is returned unchanged does not count as computed either.
        if !scope.is_computed(value) || value.0 < arguments {
            return Err(word.fault("a result that is not computed from the inputs"));
        }
        Ok(value)
    };
    end.values.iter().zip(&end.types).map(resolve).collect()
}

/// The state of verifying a body.
#[derive(Default)]
pub(crate) struct Scope<'i> {
    maps: HashMap<&'i str, &'i Map<'i>>,
    values: HashMap<&'i str, Value>,
    types: Vec<Type>,
    /// Whether each value depends on an argument.
    computed: Vec<bool>,
    operations: usize,
    pub(crate) elements: u64,
    /// Whether `linalg.index` is used.
    indexes: bool,
    /// Whether a reduction has several inputs.
    pub(crate) contracts: bool,
}

impl<'i> Scope<'i> {
    pub(crate) fn define(&mut self, name: &Word<'i>, ty: Type) -> Result<Value, Fault> {
        let value = Value(self.types.len());
        if self.values.insert(name.text, value).is_some() {
            return Err(name.fault("a value whose name another has"));
        }
        self.types.push(ty);
        self.computed.push(false);
        Ok(value)
    }

    /// Removes a name at the end of the block that it belongs to.
    pub(crate) fn forget(&mut self, name: &Word<'_>) {
        self.values.remove(name.text);
    }

    /// Records that a value depends on an argument.
    pub(crate) fn depends(&mut self, value: Value) {
        if let Some(computed) = self.computed.get_mut(value.0) {
            *computed = true;
        }
    }

    pub(crate) fn is_computed(&self, value: Value) -> bool {
        self.computed.get(value.0) == Some(&true)
    }

    fn value(&self, word: &Word<'_>) -> Result<(Value, &Type), Fault> {
        self.values
            .get(word.text)
            .and_then(|&value| Some((value, self.types.get(value.0)?)))
            .ok_or_else(|| word.fault("a value that is not there yet"))
    }

    fn typed(&self, word: &Word<'_>, ty: &Type) -> Result<Value, Fault> {
        match self.value(word)? {
            (value, found) if found == ty => Ok(value),
            (_, found) => Err(word.fault(format!("a value of the type {found} where {ty} is written"))),
        }
    }

    pub(crate) fn scalar(&self, word: &Word<'_>, element: Element) -> Result<Value, Fault> {
        self.typed(word, &Type::Scalar(element))
    }

    pub(crate) fn tensor(&self, word: &Word<'_>, ty: &TensorType) -> Result<Value, Fault> {
        match self.value(word)? {
            (value, Type::Tensor(found)) if found == ty => Ok(value),
            (_, found) => Err(word.fault(format!("a value of the type {found} where {ty} is written"))),
        }
    }

    pub(crate) fn map<'m>(&self, map: &'m MapReference<'i>) -> Result<&'m Map<'i>, Fault>
    where
        'i: 'm,
    {
        match map {
            MapReference::Map(map) => Ok(map),
            MapReference::Alias(name) => self
                .maps
                .get(name.text)
                .copied()
                .ok_or_else(|| name.fault("a map that is not there")),
        }
    }

    /// Counts an operation against the limit.
    fn count(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        self.operations = self.operations.saturating_add(1);
        if self.operations > MOST_OPERATIONS {
            return Err(line.name.fault(format!("more than {MOST_OPERATIONS} operations")));
        }
        Ok(())
    }

    /// Verifies an operation of the function's own block.
    fn statement(&mut self, line: &'i Line<'i>) -> Result<Statement, Fault> {
        if let Form::Constant(..) | Form::Index(..) | Form::Scalar(_) = line.form {
            let scalar = self.arithmetic(line, 0)?;
            return Ok(Statement {
                result: scalar.result,
                operation: Operation::Scalar(scalar),
            });
        }
        self.count(line)?;
        let (operation, operands, ty): (Operation, Vec<Value>, &TensorType) = match &line.form {
            Form::Empty(ty) => (Operation::Empty, Vec::new(), &ty.ty),
            Form::Fill(number, number_type, init, init_type, result) => {
                let element = Type::Scalar(result.ty.element);
                if number_type.ty != element || init_type.ty != result.ty {
                    return Err(Fault::new(
                        number_type.offset,
                        "types that do not fit the tensor that is filled",
                    ));
                }
                let number = self.typed(number, &element)?;
                self.tensor(init, &init_type.ty)?;
                (Operation::Fill(number), vec![number], &result.ty)
            }
            Form::Reshape {
                source,
                groups,
                extents,
                from,
                to,
            } => {
                let value = self.tensor(source, &from.ty)?;
                let wrong = || Fault::new(from.offset, "axes that do not fit the tensors");
                let (narrow, wide) = if extents.is_some() {
                    (&from.ty, &to.ty)
                } else {
                    (&to.ty, &from.ty)
                };
                if extents.as_ref().is_some_and(|extents| *extents != to.ty.dims) {
                    return Err(Fault::new(to.offset, "extents that are not those of the result"));
                }
                let groups = self::groups(groups, narrow, wide).ok_or_else(wrong)?;
                let operation = if extents.is_some() {
                    Operation::Expand(value, groups)
                } else {
                    Operation::Collapse(value, groups)
                };
                (operation, vec![value], &to.ty)
            }
            Form::Slice {
                source,
                offsets,
                sizes,
                strides,
                from,
                to,
            } => {
                let value = self.tensor(source, &from.ty)?;
                let slices = slices([offsets, sizes, strides], &from.ty.dims)
                    .ok_or_else(|| source.fault("a slice that is not inside its tensor"))?;
                if to.ty.element != from.ty.element || !is_reduced(sizes, &to.ty.dims) {
                    return Err(Fault::new(to.offset, "a type that is not the slice's"));
                }
                (Operation::Slice(value, slices), vec![value], &to.ty)
            }
            Form::Concat {
                axis,
                sources,
                from,
                to,
            } => {
                if sources.len() != from.len() {
                    return Err(line.name.fault("a number of types that is not that of the operands"));
                }
                let types: Vec<_> = from.iter().map(|from| &from.ty).collect();
                let axis = concatenated(*axis, &types, &to.ty)
                    .ok_or_else(|| Fault::new(to.offset, "tensors that do not fit along that axis"))?;
                let values = sources.iter().zip(&types);
                let values = values
                    .map(|(word, ty)| self.tensor(word, ty))
                    .collect::<Result<Vec<_>, _>>()?;
                (Operation::Concat(axis, values.clone()), values, &to.ty)
            }
            Form::Generic(form) => {
                let generic = generic::verify(self, form, &line.name)?;
                let yielded = generic.yielded;
                (Operation::Generic(generic), vec![yielded], &form.result.ty)
            }
            Form::Constant(..) | Form::Index(..) | Form::Scalar(_) => {
                return Err(line.name.fault("an operation that is not allowed there"));
            }
        };
        self.elements = self.elements.saturating_add(ty.count());
        let is_computed = operands.iter().any(|&value| self.is_computed(value));
        let result = self.define(&line.result, Type::Tensor(ty.clone()))?;
        if is_computed {
            self.depends(result);
        }
        Ok(Statement { result, operation })
    }

    /// Verifies an operation on scalars inside `loops` loops.
    pub(crate) fn arithmetic(&mut self, line: &Line<'i>, loops: usize) -> Result<Scalar, Fault> {
        self.count(line)?;
        let (arithmetic, ty) = match &line.form {
            Form::Constant(literal, ty) => {
                let Type::Scalar(element) = ty.ty else {
                    return Err(Fault::new(ty.offset, format!("a constant of the type {}", ty.ty)));
                };
                (Arithmetic::Constant(literal::bits(literal, element)?), element)
            }
            Form::Index(number, ty) => {
                let index = number.text.parse().ok().filter(|&index: &usize| index < loops);
                let index = index.ok_or_else(|| number.fault("the index of a loop that is not there"))?;
                if ty.ty != Type::Scalar(Element::Index) {
                    return Err(Fault::new(ty.offset, "an index that is none"));
                }
                self.indexes = true;
                (Arithmetic::Index(index), Element::Index)
            }
            Form::Scalar(form) => {
                let kind = Kind::named(&line.name)?;
                let (types, result) = kind.types(form, &line.name)?;
                if form.operands.len() != types.len() {
                    return Err(line
                        .name
                        .fault(format!("{} operands, not {}", types.len(), form.operands.len())));
                }
                let operands = form.operands.iter().zip(types);
                let arithmetic = Arithmetic::Operation {
                    name: kind.name,
                    operands: operands
                        .map(|(word, element)| self.scalar(word, element))
                        .collect::<Result<_, _>>()?,
                    predicate: kind.predicate(form, &line.name)?,
                    flag: kind.flag(form)?,
                };
                (arithmetic, result)
            }
            _ => return Err(line.name.fault("an operation that is not allowed there")),
        };
        let is_computed = arithmetic.operands().iter().any(|&value| self.is_computed(value));
        let result = self.define(&line.result, Type::Scalar(ty))?;
        if is_computed {
            self.depends(result);
        }
        Ok(Scalar { result, arithmetic })
    }
}

/// Returns for each axis of `narrow` the axes of `wide` that it corresponds to, if the reshape is
/// valid.
fn groups(groups: &[Vec<i64>], narrow: &TensorType, wide: &TensorType) -> Option<Vec<Vec<usize>>> {
    // A reshape must add at least one axis; otherwise it would change nothing.
    if groups.len() != narrow.dims.len() || narrow.dims.len() >= wide.dims.len() || narrow.element != wide.element {
        return None;
    }
    let mut next = 0_usize;
    let mut checked = Vec::new();
    for (group, &extent) in groups.iter().zip(&narrow.dims) {
        let mut axes = Vec::new();
        let mut product = 1_i64;
        for &axis in group {
            let axis = usize::try_from(axis).ok().filter(|&axis| axis == next)?;
            product = product.checked_mul(*wide.dims.get(axis)?)?;
            axes.push(axis);
            next = next.checked_add(1)?;
        }
        if axes.is_empty() || product != extent {
            return None;
        }
        checked.push(axes);
    }
    // A tensor without axes has one element, and may gain any number of axes of extent 1.
    let rest = wide.dims.get(next..)?;
    (rest.is_empty() || narrow.dims.is_empty() && rest.iter().all(|&extent| extent == 1)).then_some(checked)
}

/// Returns offset, extent and stride of each axis, if the slice is within the tensor.
fn slices([offsets, sizes, strides]: [&Vec<i64>; 3], dims: &[i64]) -> Option<Vec<[i64; 3]>> {
    if [offsets, sizes, strides].iter().any(|list| list.len() != dims.len()) {
        return None;
    }
    let lists = offsets.iter().zip(sizes).zip(strides).zip(dims);
    lists
        .map(|(((&offset, &size), &stride), &extent)| {
            let last = size.checked_sub(1)?.checked_mul(stride)?.checked_add(offset)?;
            (offset >= 0 && size > 0 && stride > 0 && last < extent).then_some([offset, size, stride])
        })
        .collect()
}

/// Checks whether `dims` are the extents `sizes`, possibly without some of extent 1.
fn is_reduced(sizes: &[i64], dims: &[i64]) -> bool {
    let mut rest = dims.iter().peekable();
    for size in sizes {
        if rest.peek() == Some(&size) {
            rest.next();
        } else if *size != 1 {
            return false;
        }
    }
    rest.next().is_none()
}

/// Returns the axis of a concatenation, if the tensors are compatible and make the result.
fn concatenated(axis: i64, types: &[&TensorType], result: &TensorType) -> Option<usize> {
    let axis = usize::try_from(axis).ok()?;
    let mut sum = 0_i64;
    for ty in types {
        if ty.element != result.element || ty.dims.len() != result.dims.len() {
            return None;
        }
        for (index, (own, expected)) in ty.dims.iter().zip(&result.dims).enumerate() {
            if index == axis {
                sum = sum.checked_add(*own)?;
            } else if own != expected {
                return None;
            }
        }
    }
    (result.dims.get(axis) == Some(&sum)).then_some(axis)
}
