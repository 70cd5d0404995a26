//! Operations as text, in MLIR's generic form.

use super::{Block, Body, Context, Operation, Region, Type, Value};
use crate::EmitError;
use std::fmt::Write as _;

/// The text of a private function with this block as its body.
///
/// # Errors
///
/// [`EmitError::InvalidIr`] if an operand is no value where it is used.
pub(crate) fn function_text<'c>(
    context: &'c Context,
    name: &str,
    results: &[Type<'c>],
    block: Block<'c>,
) -> Result<String, EmitError> {
    let Region(Some(body)) = Region::from(block) else {
        return Err(EmitError::Internal("a function without a body"));
    };
    let mut printer = Printer {
        context,
        names: vec![None; context.values.borrow().len()],
        next: 0,
        text: String::new(),
    };
    write!(printer.text, "func.func private @{name}(")?;
    printer.arguments(&body.arguments)?;
    printer.text.push_str(") -> (");
    printer.list(results.iter(), |text, result| Ok(write!(text, "{result}")?))?;
    printer.text.push_str(") {\n");
    for operation in &body.operations {
        printer.operation(operation, 1)?;
    }
    printer.text.push('}');
    Ok(printer.text)
}

/// The text of a block's operations, whose arguments have the names `%0`, `%1`, ….
///
/// # Errors
///
/// [`EmitError::InvalidIr`] if an operand is no value where it is used.
pub(crate) fn body_text<'c>(context: &'c Context, block: Block<'c>, depth: usize) -> Result<String, EmitError> {
    let Region(Some(body)) = Region::from(block) else {
        return Err(EmitError::Internal("a kernel without a body"));
    };
    let mut printer = Printer {
        context,
        names: vec![None; context.values.borrow().len()],
        next: 0,
        text: String::new(),
    };
    for &id in &body.arguments {
        let number = printer.number();
        printer.define(id, number)?;
    }
    for operation in &body.operations {
        printer.operation(operation, depth)?;
    }
    Ok(printer.text)
}

struct Printer<'c> {
    context: &'c Context,
    /// The numbers of the values that are defined where the printer is.
    names: Vec<Option<usize>>,
    next: usize,
    text: String,
}

impl Printer<'_> {
    fn list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut item: impl FnMut(&mut String, T) -> Result<(), EmitError>,
    ) -> Result<(), EmitError> {
        for (index, each) in items.enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            item(&mut self.text, each)?;
        }
        Ok(())
    }

    fn number(&mut self) -> usize {
        let number = self.next;
        self.next = number.saturating_add(1);
        number
    }

    fn define(&mut self, id: usize, number: usize) -> Result<(), EmitError> {
        let name = self.names.get_mut(id);
        *name.ok_or(EmitError::Internal("a value of another context"))? = Some(number);
        Ok(())
    }

    fn name(&self, id: usize) -> Result<usize, EmitError> {
        let name = self.names.get(id).copied().flatten();
        name.ok_or_else(|| EmitError::InvalidIr {
            diagnostics: "an operand is not defined where it is used".to_owned(),
        })
    }

    fn types(&mut self, values: &[usize]) -> Result<(), EmitError> {
        let context = self.context;
        self.list(values.iter(), |text, &id| {
            Ok(write!(text, "{}", Value::of(context, id).r#type())?)
        })
    }

    fn values(&mut self, values: &[usize]) -> Result<(), EmitError> {
        let names = values.iter().map(|&id| self.name(id)).collect::<Result<Vec<_>, _>>()?;
        self.list(names.into_iter(), |text, name| Ok(write!(text, "%{name}")?))
    }

    fn arguments(&mut self, arguments: &[usize]) -> Result<(), EmitError> {
        let context = self.context;
        let first = self.next;
        for &id in arguments {
            let number = self.number();
            self.define(id, number)?;
        }
        self.list((first..).zip(arguments), |text, (number, &id)| {
            Ok(write!(text, "%{number}: {}", Value::of(context, id).r#type())?)
        })
    }

    fn line(&mut self, depth: usize) {
        for _ in 0..depth {
            self.text.push_str("  ");
        }
    }

    fn operation(&mut self, operation: &Operation, depth: usize) -> Result<(), EmitError> {
        self.line(depth);
        let results: Vec<usize> = operation.results.iter().map(|_| self.number()).collect();
        if !results.is_empty() {
            self.list(results.iter(), |text, number| Ok(write!(text, "%{number}")?))?;
            self.text.push_str(" = ");
        }
        write!(self.text, "\"{}\"(", operation.head.name)?;
        self.values(&operation.head.operands)?;
        self.text.push(')');
        if !operation.regions.is_empty() {
            self.text.push_str(" (");
            for (index, region) in operation.regions.iter().enumerate() {
                self.text.push_str(if index == 0 { "{" } else { ", {" });
                if let Region(Some(body)) = region {
                    self.body(body, depth)?;
                }
                self.text.push('}');
            }
            self.text.push(')');
        }
        if !operation.head.attributes.is_empty() {
            self.text.push_str(" {");
            self.list(operation.head.attributes.iter(), |text, (key, value)| {
                Ok(write!(text, "{key} = {value}")?)
            })?;
            self.text.push('}');
        }
        self.text.push_str(" : (");
        self.types(&operation.head.operands)?;
        self.text.push_str(") -> (");
        self.types(&operation.results)?;
        self.text.push_str(")\n");
        // Not before: what is inside may not use them.
        for (&id, number) in operation.results.iter().zip(results) {
            self.define(id, number)?;
        }
        Ok(())
    }

    /// The inside of a region. Its values are none outside.
    fn body(&mut self, body: &Body, depth: usize) -> Result<(), EmitError> {
        self.text.push('\n');
        if !body.arguments.is_empty() {
            self.line(depth);
            self.text.push_str("^bb0(");
            self.arguments(&body.arguments)?;
            self.text.push_str("):\n");
        }
        for operation in &body.operations {
            self.operation(operation, depth.saturating_add(1))?;
        }
        let made = body.operations.iter().flat_map(|operation| &operation.results);
        for &id in body.arguments.iter().chain(made) {
            if let Some(name) = self.names.get_mut(id) {
                *name = None;
            }
        }
        self.line(depth);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::{Attribute, Float};

    /// One that is enclosed, and one that is used by what encloses it.
    #[test]
    fn what_is_used_is_defined_before() {
        let context = Context::new();
        let float = Type::float(&context, Float::F32);
        let build = |escapes: bool, early: bool| {
            let block = Block::new(&[float]);
            let argument = block.argument(0);
            let inner = Block::new(&[float]);
            let own = inner.argument(0);
            let late = Block::new(&[float]);
            let used = if early { late.argument(0).captured() } else { own };
            inner.append(&context, "a.yield", &[used, argument.captured()], &[], &[], Vec::new());
            let escaped = own.captured();
            let flag = [("flag", Attribute::text("unit"))];
            let made = block.append(
                &context,
                "a.loop",
                &[argument],
                &[float, float],
                &flag,
                vec![inner.into()],
            );
            let returned = if escapes { escaped } else { made[1] };
            block.append(&context, "func.return", &[returned], &[], &[], Vec::new());
            function_text(&context, "f", &[float], block)
        };
        assert_eq!(
            build(false, false).unwrap(),
            "func.func private @f(%0: f32) -> (f32) {\n  \
             %1, %2 = \"a.loop\"(%0) ({\n  ^bb0(%3: f32):\n    \"a.yield\"(%3, %0) : (f32, f32) -> ()\n  }) \
             {flag = unit} : (f32) -> (f32, f32)\n  \"func.return\"(%2) : (f32) -> ()\n}"
        );
        for (escapes, early) in [(true, false), (false, true)] {
            let error = build(escapes, early).unwrap_err();
            assert!(matches!(error, EmitError::InvalidIr { .. }), "{error}");
        }
    }
}
