//! Operations, loops and branches, appended to the block that is being written.

use super::int::Int;
use crate::mlir::{Attribute, Block, Context, Name, Region, Role, Type, Value};

/// Appends operations to the innermost open block of a context: loops and branches open one each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code<'c> {
    context: &'c Context,
}

impl<'c> Code<'c> {
    pub(crate) fn new(context: &'c Context) -> Self {
        Code { context }
    }

    pub(crate) fn context(&self) -> &'c Context {
        self.context
    }

    /// Appends any operation and returns its results.
    pub(crate) fn op(
        &self,
        name: Name,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&'static str, Attribute)],
        regions: Vec<Region>,
    ) -> Vec<Value<'c>> {
        self.context
            .append((name, Role::Plain), operands, results, attributes, regions)
    }

    /// Appends an operation with one result and no regions.
    pub(crate) fn one(
        &self,
        name: Name,
        operands: &[Value<'c>],
        result: Type<'c>,
        attributes: &[(&'static str, Attribute)],
    ) -> Value<'c> {
        first(self.op(name, operands, &[result], attributes, Vec::new()))
    }

    /// Appends an operation whose result has the type of its first operand.
    pub(crate) fn same(&self, name: Name, operands: &[Value<'c>]) -> Value<'c> {
        self.one(name, operands, operands[0].r#type(), &[])
    }

    /// Appends an operation without results.
    pub(crate) fn run(&self, name: Name, operands: &[Value<'c>]) {
        self.op(name, operands, &[], &[], Vec::new());
    }

    pub(crate) fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    /// Appends a constant of an integer or index type.
    pub(crate) fn integer(&self, value: i64, r#type: Type<'c>) -> Value<'c> {
        self.literal(Attribute::integer(value, r#type), r#type)
    }

    /// Appends a constant with this attribute as its value.
    pub(crate) fn literal(&self, value: Attribute, r#type: Type<'c>) -> Value<'c> {
        self.one(Name::ArithConstant, &[], r#type, &[("value", value)])
    }

    /// Returns a number as an index value, which is a constant if the number is known.
    pub(crate) fn index(&self, number: impl Into<Int<'c>>) -> Value<'c> {
        match number.into() {
            Int::Made(value) => value,
            Int::Known(value) => self.integer(value, self.index_type()),
        }
    }

    /// Returns a block whose arguments have these types. `body` appends its operations.
    pub(crate) fn block(&self, arguments: &[Type<'c>], body: impl FnOnce(&[Value<'c>])) -> Block {
        self.context.block(arguments, body)
    }

    /// Appends a loop over indices below `end`; `body` computes the loop-carried values of the next
    /// iteration from those of this one.
    pub(crate) fn repeat(
        &self,
        [start, end, step]: [Int<'c>; 3],
        values: &[Value<'c>],
        body: impl FnOnce(Int<'c>, &[Value<'c>]) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let mut operands = vec![self.index(start), self.index(end), self.index(step)];
        operands.extend(values);
        let types: Vec<_> = values.iter().map(|value| value.r#type()).collect();
        let arguments = [&[self.index_type()], types.as_slice()].concat();
        let inside = self.block(&arguments, |arguments| {
            let next = body(Int::Made(arguments[0]), &arguments[1..]);
            self.run(Name::ScfYield, &next);
        });
        self.op(Name::ScfFor, &operands, &types, &[], vec![inside.into()])
    }

    /// Appends a loop over indices below `end`, without loop-carried values.
    pub(crate) fn each(&self, bounds: [Int<'c>; 3], body: impl FnOnce(Int<'c>)) {
        self.repeat(bounds, &[], |index, _| {
            body(index);
            Vec::new()
        });
    }

    /// Appends a branch: `body` is executed where the condition holds. On GPUs the condition may
    /// differ among lanes, unless `body` has matrix instructions, shuffles or barriers.
    pub(crate) fn when(&self, condition: Int<'c>, body: impl FnOnce()) {
        self.replaced(condition, &[], || {
            body();
            Vec::new()
        });
    }

    /// Returns `values`, or the results of `body` where the condition holds; `body` is executed
    /// only there. For divergence see [`when`](Self::when).
    pub(crate) fn replaced(
        &self,
        condition: Int<'c>,
        values: &[Value<'c>],
        body: impl FnOnce() -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let condition = match condition {
            Int::Known(0) => return values.to_vec(),
            Int::Known(_) => return body(),
            Int::Made(condition) => condition,
        };
        let types: Vec<_> = values.iter().map(|value| value.r#type()).collect();
        let replaced = self.block(&[], |_| self.run(Name::ScfYield, &body()));
        let kept = self.block(&[], |_| self.run(Name::ScfYield, values));
        self.op(
            Name::ScfIf,
            &[condition],
            &types,
            &[],
            vec![replaced.into(), kept.into()],
        )
    }
}

/// Returns the first result of an operation.
pub(crate) fn first<T>(results: Vec<T>) -> T {
    results.into_iter().next().expect("an operation without results")
}
