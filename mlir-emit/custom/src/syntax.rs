//! The grammar. Every choice is made by the next word, nothing is read twice, and nothing nests but the body of `linalg.generic`, in which
//! nothing nests: there is no recursion.

use crate::body::{Element, Loop, TensorType, Type};
use crate::{Fault, MOST_AXES};
use winnow::ascii::{digit1, hex_digit1, till_line_ending};
use winnow::combinator::{alt, opt, peek, repeat};
use winnow::error::{ErrMode, ParserError};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location as _};
use winnow::token::{any, one_of, take_while};

/// A word of the text and where it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'i> {
    pub(crate) text: &'i str,
    pub(crate) offset: usize,
}

impl Word<'_> {
    pub(crate) fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.offset, reason)
    }
}

/// A type and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Typed<T> {
    pub(crate) ty: T,
    pub(crate) offset: usize,
}

#[derive(Debug)]
pub(crate) struct Source<'i> {
    pub(crate) aliases: Vec<(Word<'i>, Map<'i>)>,
    pub(crate) name: Word<'i>,
    pub(crate) arguments: Vec<(Word<'i>, Typed<Type>)>,
    pub(crate) results: Vec<Typed<Type>>,
    pub(crate) statements: Vec<Statement<'i>>,
    pub(crate) returned: Returned<'i>,
}

/// `return` or `linalg.yield`.
#[derive(Debug)]
pub(crate) struct Returned<'i> {
    pub(crate) name: Word<'i>,
    pub(crate) values: Vec<Word<'i>>,
    pub(crate) types: Vec<Typed<Type>>,
}

#[derive(Debug)]
pub(crate) struct Statement<'i> {
    pub(crate) result: Word<'i>,
    pub(crate) name: Word<'i>,
    pub(crate) form: Form<'i>,
}

/// What follows an operation's name.
#[derive(Debug)]
pub(crate) enum Form<'i> {
    Constant(Literal<'i>, Typed<Type>),
    Index(Word<'i>, Typed<Type>),
    /// An operation of scalars: a relation, operands, flags and types.
    Scalar(ScalarForm<'i>),
    Empty(Typed<TensorType>),
    Fill(Word<'i>, Typed<Type>, Word<'i>, Typed<TensorType>, Typed<TensorType>),
    /// Of `tensor.expand_shape` and `tensor.collapse_shape`: the axes, and the extents that the former names once more.
    Reshape {
        source: Word<'i>,
        groups: Vec<Vec<i64>>,
        extents: Option<Vec<i64>>,
        from: Typed<TensorType>,
        to: Typed<TensorType>,
    },
    Slice {
        source: Word<'i>,
        offsets: Vec<i64>,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        from: Typed<TensorType>,
        to: Typed<TensorType>,
    },
    Concat {
        axis: i64,
        sources: Vec<Word<'i>>,
        from: Vec<Typed<TensorType>>,
        to: Typed<TensorType>,
    },
    Generic(Box<GenericForm<'i>>),
}

#[derive(Debug)]
pub(crate) struct ScalarForm<'i> {
    pub(crate) predicate: Option<Word<'i>>,
    pub(crate) operands: Vec<Word<'i>>,
    pub(crate) flag: Option<(Word<'i>, Vec<Word<'i>>)>,
    pub(crate) types: Vec<Typed<Type>>,
    /// What a conversion makes.
    pub(crate) to: Option<Typed<Type>>,
}

#[derive(Debug)]
pub(crate) struct GenericForm<'i> {
    pub(crate) maps: Vec<MapReference<'i>>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) inputs: Vec<Word<'i>>,
    pub(crate) input_types: Vec<Typed<TensorType>>,
    pub(crate) init: Word<'i>,
    pub(crate) init_type: Typed<TensorType>,
    pub(crate) arguments: Vec<(Word<'i>, Typed<Type>)>,
    pub(crate) body: Vec<Statement<'i>>,
    pub(crate) yielded: Returned<'i>,
    pub(crate) result: Typed<TensorType>,
}

#[derive(Debug)]
pub(crate) struct Literal<'i> {
    pub(crate) is_negative: bool,
    pub(crate) digits: Word<'i>,
}

#[derive(Debug)]
pub(crate) enum MapReference<'i> {
    Alias(Word<'i>),
    Map(Map<'i>),
}

#[derive(Clone, Debug)]
pub(crate) struct Map<'i> {
    pub(crate) offset: usize,
    pub(crate) loops: Vec<Word<'i>>,
    /// Names of loops, and numbers.
    pub(crate) results: Vec<Word<'i>>,
}

type Input<'i> = LocatingSlice<&'i str>;

/// What would have been right.
#[derive(Debug)]
struct Expected {
    what: &'static str,
    offset: usize,
}

impl<'i> ParserError<Input<'i>> for Expected {
    type Inner = Self;

    fn from_input(input: &Input<'i>) -> Self {
        Expected {
            what: "something else",
            offset: input.current_token_start(),
        }
    }

    fn into_inner(self) -> Result<Self::Inner, Self> {
        Ok(self)
    }
}

type Parsed<T> = Result<T, ErrMode<Expected>>;

/// Reads a text.
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

/// The statements of a block up to the one that ends it.
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

/// What may stand in the function.
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

/// What may stand in the body of `linalg.generic`, too.
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

/// One tensor and its type.
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

fn integers(input: &mut Input<'_>) -> Parsed<Vec<i64>> {
    mark(input, "[")?;
    let integers = list(input, "]", integer)?;
    mark(input, "]")?;
    Ok(integers)
}

fn integer(input: &mut Input<'_>) -> Parsed<i64> {
    let is_negative = accept(input, "-");
    let digits = expect(input, "a number", digit1)?;
    match digits.text.parse::<i64>() {
        Ok(number) if is_negative => Ok(number.saturating_neg()),
        Ok(number) => Ok(number),
        Err(_) => fail_at(digits.offset, "a number below 2^63"),
    }
}

fn alias<'i>(input: &mut Input<'i>) -> Parsed<Word<'i>> {
    expect(input, "the name of a map", ('#', identifier_rest).take())
}

fn value<'i>(input: &mut Input<'i>) -> Parsed<Word<'i>> {
    let is_punctuation = |c: char| matches!(c, '$' | '.' | '_' | '-');
    let name = (
        one_of(move |c: char| c.is_ascii_alphabetic() || is_punctuation(c)),
        take_while(0.., move |c: char| c.is_ascii_alphanumeric() || is_punctuation(c)),
    );
    expect(input, "a value", ('%', alt((digit1, name.take()))).take())
}

fn word<'i>(input: &mut Input<'i>, what: &'static str) -> Parsed<Word<'i>> {
    expect(input, what, identifier)
}

/// Words, with the dots in the names of operations.
fn identifier<'i>(input: &mut Input<'i>) -> Parsed<&'i str> {
    (
        one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
        opt(identifier_rest),
    )
        .take()
        .parse_next(input)
}

fn identifier_rest<'i>(input: &mut Input<'i>) -> Parsed<&'i str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')).parse_next(input)
}

fn keyword<'i>(input: &mut Input<'i>, text: &'static str) -> Parsed<Word<'i>> {
    expect(input, text, identifier.verify(|word: &str| word == text))
}

/// Takes this word if it is the next one.
fn accepts(input: &mut Input<'_>, text: &'static str) -> bool {
    next_is(input, text) && keyword(input, text).is_ok()
}

fn mark(input: &mut Input<'_>, text: &'static str) -> Parsed<()> {
    expect(input, text, text).map(drop)
}

/// Takes this mark if it is next.
fn accept(input: &mut Input<'_>, text: &'static str) -> bool {
    next_is(input, text) && mark(input, text).is_ok()
}

/// Whether this is next: a whole word, if it is one.
fn next_is(input: &mut Input<'_>, text: &str) -> bool {
    blanks(input);
    let rest: &str = input.as_ref();
    match rest.strip_prefix(text) {
        Some(rest) if text.ends_with(|c: char| c.is_ascii_alphanumeric()) => {
            !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'))
        }
        found => found.is_some(),
    }
}

/// Items with commas between them; none if the closing mark is next.
fn list<'i, T>(
    input: &mut Input<'i>,
    end: &'static str,
    mut item: impl FnMut(&mut Input<'i>) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let mut items = Vec::new();
    if next_is(input, end) {
        return Ok(items);
    }
    loop {
        items.push(item(input)?);
        if !accept(input, ",") {
            return Ok(items);
        }
    }
}

/// A word that this parser takes whole, after what may stand before it.
fn expect<'i>(
    input: &mut Input<'i>,
    what: &'static str,
    parser: impl Parser<Input<'i>, &'i str, ErrMode<Expected>>,
) -> Parsed<Word<'i>> {
    blanks(input);
    let offset = input.current_token_start();
    let text = expect_value(input, what, parser)?;
    Ok(Word { text, offset })
}

fn expect_value<'i, T>(
    input: &mut Input<'i>,
    what: &'static str,
    mut parser: impl Parser<Input<'i>, T, ErrMode<Expected>>,
) -> Parsed<T> {
    blanks(input);
    let offset = input.current_token_start();
    parser.parse_next(input).or_else(|_| fail_at(offset, what))
}

fn fail<T>(input: &mut Input<'_>, what: &'static str) -> Parsed<T> {
    blanks(input);
    fail_at(input.current_token_start(), what)
}

fn fail_at<T>(offset: usize, what: &'static str) -> Parsed<T> {
    Err(ErrMode::Cut(Expected { what, offset }))
}

/// White space and comments.
fn blanks(input: &mut Input<'_>) {
    let blank = take_while(1.., [' ', '\t', '\n', '\r']).void();
    let comment = ("//", till_line_ending, opt(any)).void();
    // Neither takes nothing, and none at all is fine.
    let all: Parsed<()> = repeat(0.., alt((blank, comment))).parse_next(input);
    debug_assert!(all.is_ok(), "blanks are optional");
}
