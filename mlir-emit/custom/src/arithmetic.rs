//! The operations on scalars, one table row each.

use crate::body::Element::{self, Bf16, F16, F32, F64, I1, I8, I32, I64, Index};
use crate::body::{Flag, Type};
use crate::refusal::Fault;
use crate::syntax::{ScalarForm, Typed, Word};

/// The types of operands and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signature {
    /// This number of operands of one type, and a result of the same type.
    Same(usize, &'static [Element]),
    /// Two operands of one type, and an i1 result.
    Compare(&'static [Element], &'static [&'static str]),
    /// An i1 condition and two operands of one type, and a result of that type.
    Select,
    /// One operand, and a result of another type.
    Convert(&'static [(Element, Element)]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flags {
    None,
    Fastmath,
    Overflow,
    NonNegative,
}

/// An operation on scalars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    signature: Signature,
    flags: Flags,
    /// Whether a reduction may use the operation as its combiner.
    combines: bool,
}

const FLOATS: &[Element] = &[F32, F64];
const INTEGERS: &[Element] = &[I1, I32, I64, Index];
const SELECTED: &[Element] = &[F32, F64, I1, I32, I64, Index];
const WIDER: &[(Element, Element)] = &[(I1, I8), (I1, I32), (I1, I64), (I8, I32), (I8, I64), (I32, I64)];
const NARROWER: &[(Element, Element)] = &[(I64, I32), (I64, I8), (I64, I1), (I32, I8), (I32, I1), (I8, I1)];
const TO_FLOAT: &[(Element, Element)] = &[(I1, F32), (I1, F64), (I32, F32), (I32, F64), (I64, F32), (I64, F64)];
const TO_INTEGER: &[(Element, Element)] = &[(F32, I32), (F32, I64), (F64, I32), (F64, I64)];
const BITS: &[(Element, Element)] = &[(F32, I32), (I32, F32), (F64, I64), (I64, F64)];
const INDICES: &[(Element, Element)] = &[(Index, I32), (Index, I64), (I32, Index), (I64, Index)];

/// MLIR's predicates of `arith.cmpf`, in the order of their numbers.
const OF_FLOATS: &[&str] = &[
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
];
const OF_INTEGERS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];

const FASTMATH: &[&str] = &[
    "none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast",
];
const OVERFLOW: &[&str] = &["none", "nsw", "nuw"];

const fn kind(name: &'static str, signature: Signature, flags: Flags) -> Kind {
    Kind {
        name,
        signature,
        flags,
        combines: false,
    }
}

const fn combiner(name: &'static str, elements: &'static [Element], flags: Flags) -> Kind {
    Kind {
        name,
        signature: Signature::Same(2, elements),
        flags,
        combines: true,
    }
}

const fn function(name: &'static str) -> Kind {
    kind(name, Signature::Same(1, FLOATS), Flags::Fastmath)
}

/// Returns a unary function that is only supported in f32, because code compiled for CPUs is not
/// linked with a math library.
const fn function_of_f32(name: &'static str) -> Kind {
    kind(name, Signature::Same(1, &[F32]), Flags::Fastmath)
}

use Signature::{Compare, Convert, Same};

/// All of them but constants. No division of integers (x86 traps), and nothing that takes a place.
const KINDS: [Kind; 49] = [
    combiner("arith.addf", FLOATS, Flags::Fastmath),
    combiner("arith.mulf", FLOATS, Flags::Fastmath),
    combiner("arith.maximumf", FLOATS, Flags::Fastmath),
    combiner("arith.maxnumf", FLOATS, Flags::Fastmath),
    combiner("arith.minimumf", FLOATS, Flags::Fastmath),
    combiner("arith.minnumf", FLOATS, Flags::Fastmath),
    combiner("arith.addi", INTEGERS, Flags::Overflow),
    combiner("arith.muli", INTEGERS, Flags::Overflow),
    combiner("arith.maxsi", INTEGERS, Flags::None),
    combiner("arith.maxui", INTEGERS, Flags::None),
    combiner("arith.minsi", INTEGERS, Flags::None),
    combiner("arith.minui", INTEGERS, Flags::None),
    combiner("arith.andi", INTEGERS, Flags::None),
    combiner("arith.ori", INTEGERS, Flags::None),
    kind("arith.subf", Same(2, FLOATS), Flags::Fastmath),
    kind("arith.divf", Same(2, FLOATS), Flags::Fastmath),
    kind("arith.negf", Same(1, FLOATS), Flags::Fastmath),
    kind("arith.cmpf", Compare(FLOATS, OF_FLOATS), Flags::Fastmath),
    kind("arith.subi", Same(2, INTEGERS), Flags::Overflow),
    kind("arith.xori", Same(2, INTEGERS), Flags::None),
    kind("arith.cmpi", Compare(INTEGERS, OF_INTEGERS), Flags::None),
    kind("arith.select", Signature::Select, Flags::None),
    kind(
        "arith.extf",
        Convert(&[(F16, F32), (Bf16, F32), (F32, F64)]),
        Flags::Fastmath,
    ),
    kind(
        "arith.truncf",
        Convert(&[(F32, F16), (F32, Bf16), (F64, F32)]),
        Flags::Fastmath,
    ),
    kind("arith.extsi", Convert(WIDER), Flags::None),
    kind("arith.extui", Convert(WIDER), Flags::NonNegative),
    kind("arith.trunci", Convert(NARROWER), Flags::Overflow),
    kind("arith.fptosi", Convert(TO_INTEGER), Flags::None),
    kind("arith.fptoui", Convert(TO_INTEGER), Flags::None),
    kind("arith.sitofp", Convert(TO_FLOAT), Flags::None),
    kind("arith.uitofp", Convert(TO_FLOAT), Flags::NonNegative),
    kind("arith.bitcast", Convert(BITS), Flags::None),
    kind("arith.index_cast", Convert(INDICES), Flags::None),
    kind("math.absf", Same(1, FLOATS), Flags::Fastmath),
    kind("math.absi", Same(1, &[I32, I64]), Flags::None),
    kind("math.copysign", Same(2, FLOATS), Flags::Fastmath),
    kind("math.fma", Same(3, FLOATS), Flags::Fastmath),
    function("math.ceil"),
    function("math.exp"),
    function("math.expm1"),
    function("math.floor"),
    function("math.log"),
    function("math.log1p"),
    function("math.roundeven"),
    function("math.sqrt"),
    function_of_f32("math.cos"),
    function_of_f32("math.erf"),
    function_of_f32("math.sin"),
    function_of_f32("math.tanh"),
];

/// Returns the names of all operations on scalars that a body may use, except constants.
pub fn operations() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

impl Kind {
    pub(crate) fn named(name: &Word<'_>) -> Result<Self, Fault> {
        KINDS
            .into_iter()
            .find(|kind| kind.name == name.text)
            .ok_or_else(|| name.fault("an operation that is not allowed there"))
    }

    /// Returns true if a reduction may use the operation of this name as its combiner.
    pub(crate) fn combines(name: &str) -> bool {
        KINDS.iter().any(|kind| kind.name == name && kind.combines)
    }

    /// Returns the types of the operands and of the result as written in the text, if they are
    /// valid for the operation.
    pub(crate) fn types(&self, form: &ScalarForm<'_>, name: &Word<'_>) -> Result<(Vec<Element>, Element), Fault> {
        let scalars = form.types.iter().map(scalar).collect::<Result<Vec<_>, _>>()?;
        let to = form.to.as_ref().map(scalar).transpose()?;
        let offset = form.types.first().map_or(name.offset, |ty| ty.offset);
        let one_of = |ty: Element, allowed: &[Element]| {
            if allowed.contains(&ty) {
                Ok(())
            } else {
                Err(Fault::new(offset, unsuitable(ty, allowed)))
            }
        };
        let wrong = || Fault::new(offset, "types that are not those of such an operation");
        match (self.signature, scalars.as_slice(), to) {
            (Signature::Same(count, allowed), &[ty], None) => {
                one_of(ty, allowed)?;
                Ok((vec![ty; count], ty))
            }
            (Signature::Compare(allowed, _), &[ty], None) => {
                one_of(ty, allowed)?;
                Ok((vec![ty; 2], I1))
            }
            (Signature::Select, &[ty] | &[I1, ty], None) => {
                one_of(ty, SELECTED)?;
                Ok((vec![I1, ty, ty], ty))
            }
            (Signature::Convert(allowed), &[from], Some(to)) => {
                if allowed.contains(&(from, to)) {
                    Ok((vec![from], to))
                } else {
                    let (from, to) = (from.name(), to.name());
                    Err(Fault::new(offset, format!("a conversion of {from} to {to}")))
                }
            }
            _ => Err(wrong()),
        }
    }

    /// Returns MLIR's number of the predicate, for comparisons.
    pub(crate) fn predicate(&self, form: &ScalarForm<'_>, name: &Word<'_>) -> Result<Option<u8>, Fault> {
        match (self.signature, &form.predicate) {
            (Signature::Compare(_, relations), Some(word)) => relations
                .iter()
                .zip(0..)
                .find_map(|(relation, number)| (*relation == word.text).then_some(Some(number)))
                .ok_or_else(|| word.fault("a relation that is none")),
            (Signature::Compare(..), None) => Err(name.fault("a comparison without a relation")),
            (_, Some(word)) => Err(word.fault("expected a value")),
            (_, None) => Ok(None),
        }
    }

    /// Returns the flags of the operation, which state what the compiler may assume.
    pub(crate) fn flag(&self, form: &ScalarForm<'_>) -> Result<Option<Flag>, Fault> {
        let Some((name, values)) = &form.flag else {
            return Ok(None);
        };
        let listed = |known: &[&'static str]| {
            if values.is_empty() {
                return Err(name.fault("a flag without a value"));
            }
            let of = |word: &Word<'_>| known.iter().copied().find(|known| *known == word.text);
            let flags = values.iter();
            flags
                .map(|word| of(word).ok_or_else(|| word.fault("a flag that is none")))
                .collect::<Result<Vec<_>, _>>()
        };
        match (self.flags, name.text) {
            (Flags::Fastmath, "fastmath") => Ok(Some(Flag::Fastmath(listed(FASTMATH)?))),
            (Flags::Overflow, "overflow") => Ok(Some(Flag::Overflow(listed(OVERFLOW)?))),
            (Flags::NonNegative, "nneg") if values.is_empty() => Ok(Some(Flag::NonNegative)),
            _ => Err(name.fault("a flag that such an operation does not have")),
        }
    }
}

fn scalar(ty: &Typed<Type>) -> Result<Element, Fault> {
    match &ty.ty {
        Type::Scalar(element) => Ok(*element),
        Type::Tensor(tensor) => Err(Fault::new(ty.offset, format!("arithmetic of {tensor}"))),
    }
}

/// Returns the reason why a type is not among the allowed ones.
fn unsuitable(ty: Element, allowed: &[Element]) -> String {
    match ty {
        F16 | Bf16 => "arithmetic of f16 or bf16, which are converted to f32 first".to_owned(),
        I8 => "arithmetic of i8, which is converted to a wider type first".to_owned(),
        F64 if allowed == [F32] => "a function that is there in f32 alone".to_owned(),
        ty => format!("an operation that is not there in {}", ty.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn each_operation_is_there_once() {
        for (index, kind) in KINDS.iter().enumerate() {
            assert!(
                KINDS[..index].iter().all(|other| other.name != kind.name),
                "{}",
                kind.name
            );
        }
    }
}
