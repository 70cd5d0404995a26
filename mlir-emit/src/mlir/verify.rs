//! Verifies properties that the text of operations cannot express, or that IREE's compiler would
//! reject only much later.

use super::{Block, Context, Name, Operation, Type, Value};
use crate::EmitError;

/// LDS of a workgroup on a compute unit of an MI300, in bytes.
const LDS: i64 = 64 << 10;
/// Stack of a workgroup on a CPU, in bytes: IREE's limit (`--iree-llvmcpu-stack-allocation-limit`).
const STACK: i64 = 32 << 10;

/// Verifies a block that uses no values from outside: each operand must be defined where it is
/// used, the types of the most frequent operations must fit, and so must the memory that is
/// allocated.
///
/// # Errors
///
/// [`EmitError::InvalidIr`] describes a defect of the lowering.
pub(crate) fn verified(context: &Context, block: &Block) -> Result<(), EmitError> {
    let mut verifier = Verifier {
        context,
        is_defined: vec![false; context.values.borrow().len()],
        allocated: [0, 0],
    };
    let found = verifier.block(block);
    found.map_err(|diagnostics| EmitError::InvalidIr { diagnostics })
}

struct Verifier<'c> {
    context: &'c Context,
    /// For each value, whether it is defined at the current operation.
    is_defined: Vec<bool>,
    /// Bytes of LDS and of stack that are allocated so far.
    allocated: [i64; 2],
}

impl<'c> Verifier<'c> {
    /// Verifies a block, whose values are not visible outside of it.
    fn block(&mut self, block: &Block) -> Result<(), String> {
        for &id in &block.arguments {
            self.is_defined[id] = true;
        }
        for operation in &block.operations {
            self.operation(operation)?;
        }
        let made = block.operations.iter().flat_map(|operation| &operation.results);
        for &id in block.arguments.iter().chain(made) {
            self.is_defined[id] = false;
        }
        Ok(())
    }

    fn operation(&mut self, operation: &Operation) -> Result<(), String> {
        let refused = |reason: &str| Err(format!("{}: {reason}", operation.name()));
        if operation.operands().iter().any(|&id| !self.is_defined[id]) {
            return refused("an operand is not defined where it is used");
        }
        let [operands, results] = [operation.operands(), operation.results()].map(|ids| self.types(ids));
        if !fits(operation, &operands, &results) {
            return refused(&format!("{operands:?} -> {results:?} are types that it does not have"));
        }
        let memory = match operation.name() {
            Name::MemrefAlloc => Some((0, LDS, "LDS")),
            Name::MemrefAlloca => Some((1, STACK, "stack")),
            _ => None,
        };
        if let (Some((index, most, kind)), [memory]) = (memory, results.as_slice()) {
            let element = memory.memory_element();
            let Some(bits) = element.bits() else {
                return refused(&format!("the size of {element} is not known"));
            };
            let elements: i64 = memory.shape().iter().product();
            let sum = &mut self.allocated[index];
            *sum = sum.saturating_add(elements.saturating_mul(bits.into()) / 8);
            if *sum > most {
                return refused(&format!("{sum} bytes of {kind}, where a workgroup has {most}"));
            }
        }
        for block in operation.regions.iter().filter_map(|region| region.0.as_ref()) {
            self.block(block)?;
            let last = block.operations.last();
            let yielded = last.filter(|last| last.name() == Name::ScfYield);
            if yielded.is_some_and(|last| self.types(last.operands()) != results) {
                return refused("its body yields other types than it has");
            }
        }
        // Only now: the operation's own regions may not use its results.
        for &id in operation.results() {
            self.is_defined[id] = true;
        }
        Ok(())
    }

    fn types(&self, ids: &[usize]) -> Vec<Type<'c>> {
        ids.iter().map(|&id| Value::of(self.context, id).r#type()).collect()
    }
}

/// Returns true if an operation may have these types, as far as its name is known here.
fn fits(operation: &Operation, operands: &[Type<'_>], results: &[Type<'_>]) -> bool {
    match (operation.name(), operands, results) {
        (Name::ArithConstant, [], [_]) => true,
        (Name::ArithCmpi | Name::ArithCmpf, [a, b], [truth]) => a == b && *truth == a.truths(),
        (Name::ArithSelect, [condition, a, b], [result]) => {
            a == b && a == result && (condition.bits() == Some(1) || *condition == a.truths())
        }
        (name, [operand], [result]) if CONVERSIONS.contains(&name) => operand.shape() == result.shape(),
        (name, [first, others @ ..], [result]) if is_elementwise(name) => {
            first == result && others.iter().all(|other| first == other)
        }
        (name, ..) => !name.is_of("arith"),
    }
}

/// Conversions, which keep the shape and may change the element type.
const CONVERSIONS: [Name; 12] = [
    Name::ArithBitcast,
    Name::ArithExtf,
    Name::ArithExtsi,
    Name::ArithExtui,
    Name::ArithFptosi,
    Name::ArithFptoui,
    Name::ArithIndexCast,
    Name::ArithIndexCastui,
    Name::ArithSitofp,
    Name::ArithTruncf,
    Name::ArithTrunci,
    Name::ArithUitofp,
];

/// Returns true if all operands and the result of an operation have the same type.
fn is_elementwise(name: Name) -> bool {
    let is_math = name.is_of("arith") || name.is_of("math") || name == Name::VectorFma;
    is_math && !matches!(name, Name::MathLdexp | Name::MathFpowi | Name::MathIsnan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::Float;
    use crate::mlir::Role;

    #[test]
    fn types_must_fit() {
        let context = Context::new();
        let [index, truth] = [Type::index(&context), Type::integer(&context, 1)];
        let [single, double] = [Float::F32, Float::F64].map(|float| Type::float(&context, float));
        let verify = |name: Name, operands: &[Type<'_>], result: usize| {
            let result = [index, truth, single, double][result];
            let block = context.block(&[index, truth, single, double], |values| {
                let of = |r#type: &Type<'_>| values.iter().find(|value| value.r#type() == *r#type);
                let operands: Vec<_> = operands.iter().filter_map(of).copied().collect();
                context.append((name, Role::Plain), &operands, &[result], &[], Vec::new());
            });
            verified(&context, &block)
        };
        verify(Name::ArithAddf, &[single, single], 2).unwrap();
        verify(Name::ArithExtf, &[single], 3).unwrap();
        verify(Name::ArithCmpi, &[index, index], 1).unwrap();
        verify(Name::ArithSelect, &[truth, single, single], 2).unwrap();
        for (name, operands, result) in [
            (Name::ArithAddf, [single, double], 2),
            (Name::ArithAddf, [single, single], 3),
            (Name::ArithCmpi, [index, index], 0),
        ] {
            let error = verify(name, &operands, result).unwrap_err();
            assert!(error.to_string().contains(name.text()), "{error}");
        }
    }

    #[test]
    fn memory_must_fit() {
        let context = Context::new();
        let single = Type::float(&context, Float::F32);
        let verify = |name: Name, counts: &[i64]| {
            let block = context.block(&[], |_| {
                for &count in counts {
                    context.append(
                        (name, Role::Plain),
                        &[],
                        &[single.memref(&[count], None)],
                        &[],
                        Vec::new(),
                    );
                }
            });
            verified(&context, &block)
        };
        verify(Name::MemrefAlloc, &[8 << 10, 8 << 10]).unwrap();
        verify(Name::MemrefAlloca, &[8 << 10]).unwrap();
        for (name, counts) in [
            (Name::MemrefAlloc, [8 << 10, (8 << 10) + 1]),
            (Name::MemrefAlloca, [8 << 10, 1]),
            (Name::MemrefAlloca, [i64::MAX, i64::MAX]),
        ] {
            let error = verify(name, &counts).unwrap_err();
            assert!(error.to_string().contains("where a workgroup has"), "{error}");
        }
    }
}
