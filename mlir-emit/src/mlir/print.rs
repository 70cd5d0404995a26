//! Operations as text, in MLIR's generic form.

use super::attributes::list;
use super::{Block, Context, Operation, Type, Value};
use std::fmt::Write as _;

/// Returns the text of a private function whose body is this block. The block must be
/// [verified](super::verified).
pub(crate) fn function_text<'c>(context: &'c Context, name: &str, results: &[Type<'c>], block: &Block) -> String {
    let mut printer = Printer::new(context);
    printer.write(format_args!("func.func private @{name}("));
    printer.arguments(&block.arguments);
    printer.write(format_args!(") -> ({}) {{\n", list(results)));
    for operation in &block.operations {
        printer.operation(operation, 1);
    }
    printer.text.push('}');
    printer.text
}

/// Returns the text of a block's operations; the block's arguments are named `%0`, `%1`, ….
pub(crate) fn body_text(context: &Context, block: &Block, depth: usize) -> String {
    let mut printer = Printer::new(context);
    for &id in &block.arguments {
        printer.define(id);
    }
    for operation in &block.operations {
        printer.operation(operation, depth);
    }
    printer.text
}

struct Printer<'c> {
    context: &'c Context,
    /// The number that each value has in the text, as far as they are defined.
    names: Vec<usize>,
    next: usize,
    text: String,
}

impl<'c> Printer<'c> {
    fn new(context: &'c Context) -> Self {
        Printer {
            context,
            names: vec![0; context.values.borrow().len()],
            next: 0,
            text: String::new(),
        }
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` never fails.
        let _ = self.text.write_fmt(text);
    }

    /// Gives a value the next number.
    fn define(&mut self, id: usize) {
        self.names[id] = self.next;
        self.next += 1;
    }

    fn values(&self, values: &[usize]) -> String {
        list(values.iter().map(|&id| format!("%{}", self.names[id])))
    }

    fn types(&self, values: &[usize]) -> String {
        list(values.iter().map(|&id| Value::of(self.context, id).r#type()))
    }

    fn arguments(&mut self, arguments: &[usize]) {
        for &id in arguments {
            self.define(id);
        }
        let of = |&id: &usize| format!("%{}: {}", self.names[id], Value::of(self.context, id).r#type());
        let arguments = list(arguments.iter().map(of));
        self.text.push_str(&arguments);
    }

    fn line(&mut self, depth: usize) {
        for _ in 0..depth {
            self.text.push_str("  ");
        }
    }

    fn operation(&mut self, operation: &Operation, depth: usize) {
        self.line(depth);
        let head = &operation.head;
        for &id in &operation.results {
            self.define(id);
        }
        if !operation.results.is_empty() {
            self.write(format_args!("{} = ", self.values(&operation.results)));
        }
        self.write(format_args!("\"{}\"({})", head.name, self.values(&head.operands)));
        if !operation.regions.is_empty() {
            self.text.push_str(" (");
            for (index, region) in operation.regions.iter().enumerate() {
                self.text.push_str(if index == 0 { "{" } else { ", {" });
                if let Some(block) = &region.0 {
                    self.block(block, depth);
                }
                self.text.push('}');
            }
            self.text.push(')');
        }
        if !head.attributes.is_empty() {
            let attributes = head.attributes.iter().map(|(key, value)| format!("{key} = {value}"));
            self.write(format_args!(" {{{}}}", list(attributes)));
        }
        let (operands, results) = (self.types(&head.operands), self.types(&operation.results));
        self.write(format_args!(" : ({operands}) -> ({results})\n"));
    }

    /// Writes the block of a region.
    fn block(&mut self, block: &Block, depth: usize) {
        self.text.push('\n');
        if !block.arguments.is_empty() {
            self.line(depth);
            self.text.push_str("^bb0(");
            self.arguments(&block.arguments);
            self.text.push_str("):\n");
        }
        for operation in &block.operations {
            self.operation(operation, depth + 1);
        }
        self.line(depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EmitError;
    use crate::mlir::Role;
    use crate::mlir::{Attribute, Float, Name, verified};

    /// Tests a value that is used outside of the region that defines it, and one that is never
    /// defined.
    #[test]
    fn what_is_used_is_defined_before() {
        let context = Context::new();
        let float = Type::float(&context, Float::F32);
        let build = |escapes: bool, early: bool| {
            let mut escaped = None;
            let block = context.block(&[float], |arguments| {
                let argument = arguments[0];
                let inner = context.block(&[float], |own| {
                    let used = if early { context.fresh(float) } else { own[0] };
                    context.append((Name::ScfYield, Role::Plain), &[used, argument], &[], &[], Vec::new());
                    escaped = Some(own[0]);
                });
                let flag = [("flag", Attribute::text("unit"))];
                let made = context.append(
                    (Name::ScfIf, Role::Plain),
                    &[argument],
                    &[float, float],
                    &flag,
                    vec![inner.into()],
                );
                let returned = if escapes { escaped.unwrap() } else { made[1] };
                context.append((Name::FuncReturn, Role::Plain), &[returned], &[], &[], Vec::new());
            });
            verified(&context, &block)?;
            Ok::<_, EmitError>(function_text(&context, "f", &[float], &block))
        };
        assert_eq!(
            build(false, false).unwrap(),
            "func.func private @f(%0: f32) -> (f32) {\n  \
             %1, %2 = \"scf.if\"(%0) ({\n  ^bb0(%3: f32):\n    \"scf.yield\"(%3, %0) : (f32, f32) -> ()\n  }) \
             {flag = unit} : (f32) -> (f32, f32)\n  \"func.return\"(%2) : (f32) -> ()\n}"
        );
        for (escapes, early) in [(true, false), (false, true)] {
            let error = build(escapes, early).unwrap_err();
            assert!(matches!(error, EmitError::InvalidIr { .. }), "{error}");
        }
    }
}
