//! Parses the assembler text of one instruction: mnemonic, operands, modifiers.
//!
//! Operands are separated by commas; words after an operand and a blank are modifiers (`offset:4`,
//! `clamp`, `vmcnt(0)`).

/// A register file, as named in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// `v`
    Vector,
    /// `a`
    Accumulation,
    /// `s`, `vcc`, `exec`, `m0`, by the number of the encoding (106 for `vcc`)
    Scalar,
}

/// Value of an operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `count` registers from `first`
    Register { file: File, first: u16, count: u16 },
    /// An inline integer
    Integer(i64),
    /// A literal, printed in hexadecimal
    Literal(u32),
    /// An inline floating-point constant
    Float(f64),
    /// `off`: no register
    Off,
    /// `scc`, `gpr_idx(SRC0)`, `hwreg(...)`: a word that only its instruction can interpret
    Word(String),
}

/// An operand with its source modifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) neg: bool,
    pub(crate) abs: bool,
    pub(crate) sext: bool,
}

/// An instruction's text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) mnemonic: String,
    pub(crate) operands: Vec<Operand>,
    modifiers: Vec<(String, String)>,
}

/// Numbers of the named scalar registers (CDNA3 ISA, table of scalar operands): first, count.
const NAMED: &[(&str, u16, u16)] = &[
    ("vcc", 106, 2),
    ("vcc_lo", 106, 1),
    ("vcc_hi", 107, 1),
    ("flat_scratch", 102, 2),
    ("flat_scratch_lo", 102, 1),
    ("flat_scratch_hi", 103, 1),
    ("m0", 124, 1),
    ("exec", 126, 2),
    ("exec_lo", 126, 1),
    ("exec_hi", 127, 1),
];

impl Text {
    /// Parses `text`; the error is the token that cannot be parsed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (mnemonic, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        let mut parsed = Self {
            mnemonic: mnemonic.to_owned(),
            operands: Vec::new(),
            modifiers: Vec::new(),
        };
        for part in split(rest, ',') {
            for (index, word) in split(part, ' ').enumerate() {
                if index == 0 && !is_modifier(word) {
                    parsed.operands.push(operand(word)?);
                } else {
                    parsed.modifiers.push(modifier(word));
                }
            }
        }
        Ok(parsed)
    }

    /// Removes a modifier without a value; returns true if it was present.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Removes a modifier and returns its value.
    pub(crate) fn value(&mut self, name: &str) -> Option<String> {
        let index = self.modifiers.iter().position(|(n, _)| n == name)?;
        Some(self.modifiers.remove(index).1)
    }

    /// Removes a modifier whose value is a number; the error is the value.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<i64>, String> {
        self.value(name)
            .map(|value| integer(&value).ok_or_else(|| format!("{name}:{value}")))
            .transpose()
    }

    /// Removes a modifier whose value is a list of bits or numbers, `[0,1]`.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<i64>>, String> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let inner = value.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
        inner
            .and_then(|inner| inner.split(',').map(|v| integer(v.trim())).collect::<Option<Vec<_>>>())
            .map(Some)
            .ok_or_else(|| format!("{name}:{value}"))
    }

    /// Returns a modifier that was not removed: if there is one, the instruction is not understood.
    pub(crate) fn left(&self) -> Option<String> {
        self.modifiers.first().map(|(name, value)| {
            if value.is_empty() {
                name.clone()
            } else {
                format!("{name}:{value}")
            }
        })
    }
}

/// Splits at `separator` outside brackets, and omits empty parts.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == separator
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn is_modifier(word: &str) -> bool {
    ["vmcnt(", "lgkmcnt(", "expcnt(", "offset:", "row_mask:"]
        .iter()
        .any(|m| word.starts_with(m))
}

fn modifier(word: &str) -> (String, String) {
    if let Some((name, value)) = word.split_once(':') {
        return (name.to_owned(), value.to_owned());
    }
    match word.split_once('(') {
        Some((name, value)) => (name.to_owned(), value.trim_end_matches(')').to_owned()),
        None => (word.to_owned(), String::new()),
    }
}

/// Parses a decimal or hexadecimal number.
pub(crate) fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn operand(word: &str) -> Result<Operand, String> {
    let mut inner = word;
    let (mut neg, mut abs, mut sext) = (false, false, false);
    if let Some(rest) = inner.strip_prefix("sext(").and_then(|w| w.strip_suffix(')')) {
        (sext, inner) = (true, rest);
    }
    if let Some(rest) = inner.strip_prefix("neg(").and_then(|w| w.strip_suffix(')')) {
        (neg, inner) = (true, rest);
    }
    if let Some(rest) = inner.strip_prefix('-')
        && !rest.starts_with(|c: char| c.is_ascii_digit())
    {
        (neg, inner) = (true, rest);
    }
    if let Some(rest) = inner.strip_prefix('|').and_then(|w| w.strip_suffix('|')) {
        (abs, inner) = (true, rest);
    }
    let value = value(inner).ok_or_else(|| word.to_owned())?;
    Ok(Operand { value, neg, abs, sext })
}

fn value(word: &str) -> Option<Value> {
    if word == "off" {
        return Some(Value::Off);
    }
    if let Some(&(_, first, count)) = NAMED.iter().find(|(name, ..)| *name == word) {
        return Some(Value::Register {
            file: File::Scalar,
            first,
            count,
        });
    }
    for (prefix, file) in [('v', File::Vector), ('a', File::Accumulation), ('s', File::Scalar)] {
        if let Some(rest) = word.strip_prefix(prefix)
            && let Some((first, count)) = registers(rest)
        {
            let limit = if file == File::Scalar { 102 } else { 256 };
            return (first + count <= limit).then_some(Value::Register { file, first, count });
        }
    }
    // A literal whose value is also an inline constant is printed as `lit(0x0)`.
    let literal = word.strip_prefix("lit(").and_then(|word| word.strip_suffix(')'));
    if let Some(hex) = literal.unwrap_or(word).strip_prefix("0x") {
        return u32::from_str_radix(hex, 16).ok().map(Value::Literal);
    }
    if let Ok(number) = word.parse::<i64>() {
        return Some(Value::Integer(number));
    }
    if word.contains('.')
        && let Ok(number) = word.parse::<f64>()
    {
        return Some(Value::Float(number));
    }
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        .then(|| Value::Word(word.to_owned()))
}

/// Parses `12` or `[12:15]` to the first register and the count.
fn registers(text: &str) -> Option<(u16, u16)> {
    if let Some(range) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let (first, last) = range.split_once(':')?;
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        return (last >= first && last < 512).then(|| (first, last - first + 1));
    }
    let number = text.parse::<u16>().ok()?;
    (number < 512).then_some((number, 1))
}
