//! The lexer, from text to words: names, numbers and punctuation, separated by white space and
//! comments.

use crate::syntax::Word;
use winnow::ascii::{digit1, till_line_ending};
use winnow::combinator::{alt, opt, repeat};
use winnow::error::{ErrMode, ParserError};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location as _};
use winnow::token::{any, one_of, take_while};

pub(crate) type Input<'i> = LocatingSlice<&'i str>;

/// The syntax that was expected at an offset.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) what: &'static str,
    pub(crate) offset: usize,
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

pub(crate) type Parsed<T> = Result<T, ErrMode<Expected>>;

pub(crate) fn integers(input: &mut Input<'_>) -> Parsed<Vec<i64>> {
    mark(input, "[")?;
    let integers = list(input, "]", integer)?;
    mark(input, "]")?;
    Ok(integers)
}

pub(crate) fn integer(input: &mut Input<'_>) -> Parsed<i64> {
    let is_negative = accept(input, "-");
    let digits = expect(input, "a number", digit1)?;
    match digits.text.parse::<i64>() {
        Ok(number) if is_negative => Ok(number.saturating_neg()),
        Ok(number) => Ok(number),
        Err(_) => fail_at(digits.offset, "a number below 2^63"),
    }
}

pub(crate) fn alias<'i>(input: &mut Input<'i>) -> Parsed<Word<'i>> {
    expect(input, "the name of a map", ('#', identifier_rest).take())
}

pub(crate) fn value<'i>(input: &mut Input<'i>) -> Parsed<Word<'i>> {
    let is_punctuation = |c: char| matches!(c, '$' | '.' | '_' | '-');
    let name = (
        one_of(move |c: char| c.is_ascii_alphabetic() || is_punctuation(c)),
        take_while(0.., move |c: char| c.is_ascii_alphanumeric() || is_punctuation(c)),
    );
    expect(input, "a value", ('%', alt((digit1, name.take()))).take())
}

pub(crate) fn word<'i>(input: &mut Input<'i>, what: &'static str) -> Parsed<Word<'i>> {
    expect(input, what, identifier)
}

/// Parses an identifier, including the dots in names of operations.
pub(crate) fn identifier<'i>(input: &mut Input<'i>) -> Parsed<&'i str> {
    (
        one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
        opt(identifier_rest),
    )
        .take()
        .parse_next(input)
}

pub(crate) fn identifier_rest<'i>(input: &mut Input<'i>) -> Parsed<&'i str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')).parse_next(input)
}

pub(crate) fn keyword<'i>(input: &mut Input<'i>, text: &'static str) -> Parsed<Word<'i>> {
    expect(input, text, identifier.verify(|word: &str| word == text))
}

/// Consumes this word if it is next.
pub(crate) fn accepts(input: &mut Input<'_>, text: &'static str) -> bool {
    next_is(input, text) && keyword(input, text).is_ok()
}

pub(crate) fn mark(input: &mut Input<'_>, text: &'static str) -> Parsed<()> {
    expect(input, text, text).map(drop)
}

/// Consumes this punctuation if it is next.
pub(crate) fn accept(input: &mut Input<'_>, text: &'static str) -> bool {
    next_is(input, text) && mark(input, text).is_ok()
}

/// Returns whether `text` is next. If `text` ends in a letter or digit, it must be a whole word.
pub(crate) fn next_is(input: &mut Input<'_>, text: &str) -> bool {
    blanks(input);
    let rest: &str = input.as_ref();
    match rest.strip_prefix(text) {
        Some(rest) if text.ends_with(|c: char| c.is_ascii_alphanumeric()) => {
            !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'))
        }
        found => found.is_some(),
    }
}

/// Parses items separated by commas; no items if the closing mark is next.
pub(crate) fn list<'i, T>(
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

/// Skips blanks and returns the word that the parser consumes, with its offset.
pub(crate) fn expect<'i>(
    input: &mut Input<'i>,
    what: &'static str,
    parser: impl Parser<Input<'i>, &'i str, ErrMode<Expected>>,
) -> Parsed<Word<'i>> {
    blanks(input);
    let offset = input.current_token_start();
    let text = expect_value(input, what, parser)?;
    Ok(Word { text, offset })
}

pub(crate) fn expect_value<'i, T>(
    input: &mut Input<'i>,
    what: &'static str,
    mut parser: impl Parser<Input<'i>, T, ErrMode<Expected>>,
) -> Parsed<T> {
    blanks(input);
    let offset = input.current_token_start();
    parser.parse_next(input).or_else(|_| fail_at(offset, what))
}

pub(crate) fn fail<T>(input: &mut Input<'_>, what: &'static str) -> Parsed<T> {
    blanks(input);
    fail_at(input.current_token_start(), what)
}

pub(crate) fn fail_at<T>(offset: usize, what: &'static str) -> Parsed<T> {
    Err(ErrMode::Cut(Expected { what, offset }))
}

/// Skips white space and comments.
pub(crate) fn blanks(input: &mut Input<'_>) {
    let blank = take_while(1.., [' ', '\t', '\n', '\r']).void();
    let comment = ("//", till_line_ending, opt(any)).void();
    // Each alternative consumes at least one character, and zero repetitions are fine, so this
    // cannot fail.
    let all: Parsed<()> = repeat(0.., alt((blank, comment))).parse_next(input);
    debug_assert!(all.is_ok(), "blanks are optional");
}
