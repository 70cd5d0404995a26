//! The grammar. It is LL(1): each choice depends on the next word only, without backtracking. The
//! only nested construct is the body of `linalg.generic`, which contains no further nesting, so the
//! parser is not recursive.

use crate::body::{Element, Loop, MOST_AXES, TensorType, Type};
use crate::refusal::Fault;
use crate::syntax::{
    Form, GenericForm, Literal, Map, MapReference, Returned, ScalarForm, Source, Statement, Typed, Word,
};
use crate::words::{
    Expected, Input, Parsed, accept, accepts, alias, blanks, expect, expect_value, fail, fail_at, identifier,
    identifier_rest, integer, integers, keyword, list, mark, next_is, value, word,
};
use winnow::ascii::{digit1, hex_digit1};
use winnow::combinator::{alt, opt, peek};
use winnow::error::ErrMode;
use winnow::prelude::*;
use winnow::stream::Location as _;
use winnow::token::{one_of, take_while};

/// Parses a text.
pub(crate) fn parse(text: &str) -> Result<Source<'_>, Fault> {
    source(&mut Input::new(text)).map_err(|error| match error.into_inner() {
        Ok(Expected { what, offset }) => Fault::new(offset, format!("expected {what}")),
        Err(_) => Fault::new(text.len(), "its body ends too early"),
    })
}

fn source<'i>(input: &mut Input<'i>) -> Parsed<Source<'i>> {
    let mut aliases = Vec::new();
    while next_is(input, "#") {
        let name = alias(input)?;
        mark(input, "=")?;
        aliases.push((name, map(input)?));
    }
    let is_wrapped = accepts(input, "module");
    if is_wrapped {
        mark(input, "{")?;
    }
    keyword(input, "func.func")?;
    if !accepts(input, "private") {
        accepts(input, "public");
    }
    let name = expect(input, "the function's name", ('@', identifier_rest).take())?;
    mark(input, "(")?;
    let arguments = list(input, ")", argument)?;
    mark(input, ")")?;
    let results = if accept(input, "->") {
        if accept(input, "(") {
            let results = list(input, ")", any_type)?;
            mark(input, ")")?;
            results
        } else {
            vec![any_type(input)?]
        }
    } else {
        Vec::new()
    };
    mark(input, "{")?;
    let (statements, returned) = statements(input, is_return, function_form)?;
    mark(input, "}")?;
    if is_wrapped {
        mark(input, "}")?;
    }
    blanks(input);
    if !input.is_empty() {
        return fail(input, "the end: one function is all there may be");
    }
    Ok(Source {
        aliases,
        name,
        arguments,
        results,
        statements,
        returned,
    })
}

fn is_return(name: &str) -> bool {
    matches!(name, "return" | "func.return")
}

fn is_yield(name: &str) -> bool {
    name == "linalg.yield"
}

/// Parses the statements of a block up to its terminator.
fn statements<'i>(
    input: &mut Input<'i>,
    ends: fn(&str) -> bool,
    form: fn(&mut Input<'i>, &Word<'i>) -> Parsed<Form<'i>>,
) -> Parsed<(Vec<Statement<'i>>, Returned<'i>)> {
    let mut statements = Vec::new();
    loop {
        if next_is(input, "%") {
            let result = value(input)?;
            mark(input, "=")?;
            let name = word(input, "an operation")?;
            let form = form(input, &name)?;
            statements.push(Statement { result, name, form });
            continue;
        }
        let name = word(input, "a value, or what ends the block")?;
        if !ends(name.text) {
            return fail_at(name.offset, "a value, or what ends the block");
        }
        let (mut values, mut types) = (Vec::new(), Vec::new());
        if next_is(input, "%") {
            values = list(input, ":", value)?;
            mark(input, ":")?;
            types = list(input, "}", any_type)?;
        }
        return Ok((statements, Returned { name, values, types }));
    }
}

/// Parses what follows the name of an operation in the function's block.
fn function_form<'i>(input: &mut Input<'i>, name: &Word<'i>) -> Parsed<Form<'i>> {
    match name.text {
        "tensor.empty" => {
            mark(input, "(")?;
            mark(input, ")")?;
            mark(input, ":")?;
            Ok(Form::Empty(tensor(input)?))
        }
        "linalg.fill" => {
            keyword(input, "ins")?;
            mark(input, "(")?;
            let number = value(input)?;
            mark(input, ":")?;
            let ty = any_type(input)?;
            mark(input, ")")?;
            let (init, init_type) = outs(input)?;
            mark(input, "->")?;
            Ok(Form::Fill(number, ty, init, init_type, tensor(input)?))
        }
        "tensor.expand_shape" | "tensor.collapse_shape" => {
            let source = value(input)?;
            mark(input, "[")?;
            let groups = list(input, "]", integers)?;
            mark(input, "]")?;
            let extents = if name.text == "tensor.expand_shape" {
                keyword(input, "output_shape")?;
                Some(integers(input)?)
            } else {
                None
            };
            mark(input, ":")?;
            let from = tensor(input)?;
            keyword(input, "into")?;
            Ok(Form::Reshape {
                source,
                groups,
                extents,
                from,
                to: tensor(input)?,
            })
        }
        "tensor.extract_slice" => {
            let source = value(input)?;
            let (offsets, sizes, strides) = (integers(input)?, integers(input)?, integers(input)?);
            mark(input, ":")?;
            let from = tensor(input)?;
            keyword(input, "to")?;
            Ok(Form::Slice {
                source,
                offsets,
                sizes,
                strides,
                from,
                to: tensor(input)?,
            })
        }
        "tensor.concat" => {
            keyword(input, "dim")?;
            mark(input, "(")?;
            let axis = integer(input)?;
            mark(input, ")")?;
            let sources = list(input, ":", value)?;
            mark(input, ":")?;
            mark(input, "(")?;
            let from = list(input, ")", tensor)?;
            mark(input, ")")?;
            mark(input, "->")?;
            Ok(Form::Concat {
                axis,
                sources,
                from,
                to: tensor(input)?,
            })
        }
        "linalg.generic" => generic(input),
        "linalg.index" => fail_at(name.offset, "an operation that may stand outside of linalg.generic"),
        _ => scalar_form(input, name),
    }
}

/// Parses what follows the name of an operation that is also allowed in the body of
/// `linalg.generic`.
fn scalar_form<'i>(input: &mut Input<'i>, name: &Word<'i>) -> Parsed<Form<'i>> {
    match name.text {
        "arith.constant" => {
            if let Some(boolean) = ["true", "false"].into_iter().find(|word| next_is(input, word)) {
                let offset = input.current_token_start();
                keyword(input, boolean)?;
                let ty = Type::Scalar(Element::I1);
                let text = if boolean == "true" { "1" } else { "0" };
                let digits = Word { text, offset };
                return Ok(Form::Constant(
                    Literal {
                        is_negative: false,
                        digits,
                    },
                    Typed { ty, offset },
                ));
            }
            let literal = literal(input)?;
            mark(input, ":")?;
            Ok(Form::Constant(literal, any_type(input)?))
        }
        "linalg.index" => {
            let index = expect(input, "the number of a loop", digit1)?;
            mark(input, ":")?;
            Ok(Form::Index(index, any_type(input)?))
        }
        _ if !name.text.starts_with("arith.") && !name.text.starts_with("math.") => {
            fail_at(name.offset, "an operation that is allowed there")
        }
        _ => {
            let predicate = if next_is(input, "%") {
                None
            } else {
                let predicate = word(input, "a value")?;
                mark(input, ",")?;
                Some(predicate)
            };
            let operands = list(input, ":", value)?;
            let flag = if next_is(input, ":") { None } else { Some(flag(input)?) };
            mark(input, ":")?;
            let mut types = vec![any_type(input)?];
            while accept(input, ",") {
                types.push(any_type(input)?);
            }
            let to = if accepts(input, "to") {
                Some(any_type(input)?)
            } else {
                None
            };
            Ok(Form::Scalar(ScalarForm {
                predicate,
                operands,
                flag,
                types,
                to,
            }))
        }
    }
}

fn flag<'i>(input: &mut Input<'i>) -> Parsed<(Word<'i>, Vec<Word<'i>>)> {
    let name = word(input, "':' or a flag")?;
    let mut flags = Vec::new();
    if accept(input, "<") {
        flags = list(input, ">", |input| word(input, "a flag"))?;
        mark(input, ">")?;
    }
    Ok((name, flags))
}

fn generic<'i>(input: &mut Input<'i>) -> Parsed<Form<'i>> {
    mark(input, "{")?;
    let (mut maps, mut loops) = (None, None);
    loop {
        let key = word(input, "indexing_maps or iterator_types")?;
        mark(input, "=")?;
        mark(input, "[")?;
        match key.text {
            "indexing_maps" if maps.is_none() => maps = Some(list(input, "]", map_reference)?),
            "iterator_types" if loops.is_none() => loops = Some(list(input, "]", loop_kind)?),
            _ => return fail_at(key.offset, "indexing_maps and iterator_types, each once"),
        }
        mark(input, "]")?;
        if !accept(input, ",") {
            break;
        }
    }
    let (Some(maps), Some(loops)) = (maps, loops) else {
        return fail(input, "indexing_maps and iterator_types");
    };
    mark(input, "}")?;
    let (mut inputs, mut input_types) = (Vec::new(), Vec::new());
    if accepts(input, "ins") {
        mark(input, "(")?;
        inputs = list(input, ":", value)?;
        mark(input, ":")?;
        input_types = list(input, ")", tensor)?;
        mark(input, ")")?;
    }
    let (init, init_type) = outs(input)?;
    mark(input, "{")?;
    expect(input, "the block's name", ('^', identifier_rest).take())?;
    mark(input, "(")?;
    let arguments = list(input, ")", argument)?;
    mark(input, ")")?;
    mark(input, ":")?;
    let (body, yielded) = statements(input, is_yield, scalar_form)?;
    mark(input, "}")?;
    mark(input, "->")?;
    let result = tensor(input)?;
    Ok(Form::Generic(Box::new(GenericForm {
        maps,
        loops,
        inputs,
        input_types,
        init,
        init_type,
        arguments,
        body,
        yielded,
        result,
    })))
}

/// Parses `outs` with one tensor and its type.
fn outs<'i>(input: &mut Input<'i>) -> Parsed<(Word<'i>, Typed<TensorType>)> {
    keyword(input, "outs")?;
    mark(input, "(")?;
    let init = value(input)?;
    mark(input, ":")?;
    let ty = tensor(input)?;
    mark(input, ")")?;
    Ok((init, ty))
}

fn argument<'i>(input: &mut Input<'i>) -> Parsed<(Word<'i>, Typed<Type>)> {
    let name = value(input)?;
    mark(input, ":")?;
    Ok((name, any_type(input)?))
}

fn loop_kind(input: &mut Input<'_>) -> Parsed<Loop> {
    let kinds = alt((
        "\"parallel\"".value(Loop::Parallel),
        "\"reduction\"".value(Loop::Reduction),
    ));
    expect_value(input, "\"parallel\" or \"reduction\"", kinds)
}

fn map_reference<'i>(input: &mut Input<'i>) -> Parsed<MapReference<'i>> {
    if next_is(input, "#") {
        Ok(MapReference::Alias(alias(input)?))
    } else {
        Ok(MapReference::Map(map(input)?))
    }
}

fn map<'i>(input: &mut Input<'i>) -> Parsed<Map<'i>> {
    let offset = keyword(input, "affine_map")?.offset;
    mark(input, "<")?;
    mark(input, "(")?;
    let loops = list(input, ")", |input| word(input, "the name of a loop"))?;
    mark(input, ")")?;
    mark(input, "->")?;
    mark(input, "(")?;
    let results = list(input, ")", |input| {
        expect(input, "the name of a loop, or a number", alt((identifier, digit1)))
    })?;
    mark(input, ")")?;
    mark(input, ">")?;
    Ok(Map { offset, loops, results })
}

fn tensor(input: &mut Input<'_>) -> Parsed<Typed<TensorType>> {
    let offset = keyword(input, "tensor")?.offset;
    let mut dims = Vec::new();
    mark(input, "<")?;
    blanks(input);
    while peek(opt(digit1::<_, ErrMode<Expected>>)).parse_next(input)?.is_some() {
        dims.push(integer(input)?);
        mark(input, "x")?;
        blanks(input);
        if dims.len() > MOST_AXES {
            return fail(input, "no more than 32 axes");
        }
    }
    let element = word(input, "an extent, or the type of an element")?;
    mark(input, ">")?;
    let is_stored = |element: &Element| !matches!(element, Element::I1 | Element::Index);
    let Some(element) = Element::named(element.text).filter(is_stored) else {
        return fail_at(element.offset, "f32, f16, bf16, f64, i8, i32 or i64");
    };
    let count = dims.iter().try_fold(1_i64, |count, &dim| {
        count.checked_mul(dim).filter(|&count| dim > 0 && count < 1 << 40)
    });
    if count.is_none() {
        return fail_at(offset, "extents above 0 and below 2^40 elements");
    }
    Ok(Typed {
        ty: TensorType { dims, element },
        offset,
    })
}

fn any_type(input: &mut Input<'_>) -> Parsed<Typed<Type>> {
    if next_is(input, "tensor") {
        let Typed { ty, offset } = tensor(input)?;
        return Ok(Typed {
            ty: Type::Tensor(ty),
            offset,
        });
    }
    let name = word(input, "a type")?;
    match Element::named(name.text) {
        Some(element) => Ok(Typed {
            ty: Type::Scalar(element),
            offset: name.offset,
        }),
        None => fail_at(
            name.offset,
            "a type: a tensor, f32, f16, bf16, f64, i1, i8, i32, i64 or index",
        ),
    }
}

fn literal<'i>(input: &mut Input<'i>) -> Parsed<Literal<'i>> {
    let is_negative = !next_is(input, "->") && accept(input, "-");
    let exponent = (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1);
    let fraction = ('.', take_while(0.., '0'..='9'), opt(exponent));
    let number = alt((("0x", hex_digit1).take(), (digit1, opt(fraction)).take()));
    Ok(Literal {
        is_negative,
        digits: expect(input, "a number", number)?,
    })
}
