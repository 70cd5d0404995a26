//! Reads FlatBuffers schemas: the names and numbers of enumerations, unions, tables and structs.
//!
//! Namespaces, includes and annotations other than `id` and `deprecated` are skipped: they do not
//! affect the wire. The caller reads every file of a version.

use std::collections::BTreeMap;

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An enumeration.
    Enum,
    /// A union; its members are numbered like those of an enumeration, from NONE = 0.
    Union,
    /// A table; its members' numbers are the ids of fields.
    Table,
    /// A struct; its members' numbers are their positions.
    Struct,
}

/// A definition of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The kind of definition.
    pub(crate) kind: Kind,
    /// The type of an enumeration's or a union's numbers; empty for others.
    pub(crate) base: String,
    /// The members in the order of the file.
    pub(crate) members: Vec<Member>,
}

/// A member of an enumeration or a union, or a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: String,
    /// Its number, see [`Kind`].
    pub(crate) number: i64,
    /// A field's type, such as `long` or `[Node]`; empty for others.
    pub(crate) kind: String,
    /// A field's default if the schema states one that is not zero; `null` marks an optional field.
    pub(crate) default: Option<String>,
    /// Whether the field is deprecated and only keeps its id.
    pub(crate) deprecated: bool,
    id: Option<i64>,
}

/// Every definition, by its name.
pub(crate) type Schema = BTreeMap<String, Item>;

/// Adds the definitions of a file's `text` to `schema`. Call [`finish`] after the last.
///
/// # Errors
///
/// A message with the line, if the text is not a schema or redefines a name differently.
pub(crate) fn read(text: &str, schema: &mut Schema) -> Result<(), String> {
    let mut reader = Reader {
        tokens: tokens(text)?,
        next: 0,
    };
    while let Some(word) = reader.take() {
        match word.as_str() {
            "enum" | "union" => reader.enumeration(&word, schema)?,
            "table" | "struct" => reader.fields(&word, schema)?,
            "rpc_service" => reader.skip_past("}")?,
            "namespace" | "include" | "attribute" | "root_type" | "file_identifier" | "file_extension"
            | "native_include" => reader.skip_past(";")?,
            ";" => {}
            other => return Err(reader.error(&format!("{other:?} begins no definition"))),
        }
    }
    Ok(())
}

/// Numbers the fields. A union takes two ids, the first for its type, which becomes a separate
/// field: `value_type` and `value`.
pub(crate) fn finish(schema: &mut Schema) {
    let unions: Vec<String> = schema
        .iter()
        .filter(|(_, item)| item.kind == Kind::Union)
        .map(|(name, _)| name.clone())
        .collect();
    for item in schema.values_mut() {
        if !matches!(item.kind, Kind::Table | Kind::Struct) {
            continue;
        }
        let mut next = 0;
        let mut fields = Vec::new();
        for mut field in std::mem::take(&mut item.members) {
            let is_union = unions.contains(&field.kind);
            let number = field.id.map_or(next, |id| id.saturating_sub(i64::from(is_union)));
            if is_union {
                fields.push(Member {
                    name: format!("{}_type", field.name),
                    number,
                    default: None,
                    ..field.clone()
                });
            }
            field.number = number.saturating_add(i64::from(is_union));
            next = field.number.saturating_add(1);
            fields.push(field);
        }
        item.members = fields;
    }
}

/// Returns the canonical name of a scalar type; for other types, the name without its namespace.
fn canonical(name: &str) -> &str {
    match name {
        "int8" => "byte",
        "uint8" => "ubyte",
        "int16" => "short",
        "uint16" => "ushort",
        "int32" => "int",
        "uint32" => "uint",
        "int64" => "long",
        "uint64" => "ulong",
        "float32" => "float",
        "float64" => "double",
        // The part before the last dot is a namespace.
        other => other.rsplit('.').next().unwrap_or(other),
    }
}

/// Splits a text into words and signs, each with its line.
fn tokens(text: &str) -> Result<Vec<(usize, String)>, String> {
    let mut tokens = Vec::new();
    let mut inside = false;
    for (line, content) in (1..).zip(text.lines()) {
        let mut rest = content;
        while let Some(first) = rest.chars().next() {
            if inside {
                match rest.split_once("*/") {
                    Some((_, after)) => (inside, rest) = (false, after),
                    None => break,
                }
                continue;
            }
            let length = if first.is_whitespace() {
                rest = rest.trim_start();
                continue;
            } else if rest.starts_with("//") {
                break;
            } else if rest.starts_with("/*") {
                inside = true;
                continue;
            } else if first == '"' {
                let closing = rest.get(1..).and_then(|after| after.find('"'));
                closing.ok_or(format!("line {line}: a text does not end"))? + 2
            } else if is_word(first) {
                rest.find(|sign| !is_word(sign)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            tokens.push((line, token.to_owned()));
            rest = after;
        }
    }
    Ok(tokens)
}

fn is_word(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "_.-+".contains(sign)
}

struct Reader {
    tokens: Vec<(usize, String)>,
    next: usize,
}

impl Reader {
    fn error(&self, what: &str) -> String {
        let at = self.next.saturating_sub(1);
        let line = self.tokens.get(at).or(self.tokens.last()).map_or(0, |(line, _)| *line);
        format!("line {line}: {what}")
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(|(_, token)| token.as_str())
    }

    fn take(&mut self) -> Option<String> {
        let token = self.peek()?.to_owned();
        self.next += 1;
        Some(token)
    }

    fn takes(&mut self, expected: &str) -> bool {
        let found = self.peek() == Some(expected);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        if self.takes(expected) {
            return Ok(());
        }
        let found = self.peek().unwrap_or("the end").to_owned();
        Err(self.error(&format!("{expected:?} is expected, not {found:?}")))
    }

    fn word(&mut self) -> Result<String, String> {
        self.take()
            .filter(|token| token.starts_with(is_word))
            .ok_or_else(|| self.error("a name is expected"))
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word()?;
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        parsed.map_err(|_| self.error(&format!("{word:?} is no number")))
    }

    fn skip_past(&mut self, end: &str) -> Result<(), String> {
        while let Some(token) = self.take() {
            if token == end {
                return Ok(());
            }
        }
        Err(self.error(&format!("{end:?} is missing")))
    }

    /// Reads annotations in parentheses; returns the id that they state, and whether `deprecated`
    /// is among them.
    fn annotations(&mut self) -> Result<(Option<i64>, bool), String> {
        let (mut id, mut deprecated) = (None, false);
        if self.takes("(") {
            while !self.takes(")") {
                match self.take().as_deref() {
                    Some("deprecated") => deprecated = true,
                    Some("id") => {
                        self.expect(":")?;
                        id = Some(self.number()?);
                    }
                    Some("bit_flags") => return Err(self.error("bit_flags are not supported")),
                    Some(_) => {}
                    None => return Err(self.error("\")\" is missing")),
                }
            }
        }
        Ok((id, deprecated))
    }

    fn enumeration(&mut self, what: &str, schema: &mut Schema) -> Result<(), String> {
        let name = self.word()?;
        let mut item = Item {
            kind: if what == "union" { Kind::Union } else { Kind::Enum },
            base: "ubyte".to_owned(),
            members: Vec::new(),
        };
        if self.takes(":") {
            item.base = canonical(&self.word()?).to_owned();
        }
        self.annotations()?;
        self.expect("{")?;
        let mut next = 0;
        if item.kind == Kind::Union {
            item.members.push(member("NONE", 0));
            next = 1;
        }
        while !self.takes("}") {
            let mut member = member(&self.word()?, next);
            // `alias: Type`: the alias is the member's name.
            if self.takes(":") {
                member.kind = canonical(&self.word()?).to_owned();
            } else if item.kind == Kind::Union {
                member.name = canonical(&member.name).to_owned();
                member.kind = member.name.clone();
            }
            if self.takes("=") {
                member.number = self.number()?;
            }
            self.annotations()?;
            next = member.number.saturating_add(1);
            item.members.push(member);
            if !self.takes(",") && self.peek() != Some("}") {
                return Err(self.error("\",\" or \"}\" is expected"));
            }
        }
        self.define(name, item, schema)
    }

    fn fields(&mut self, what: &str, schema: &mut Schema) -> Result<(), String> {
        let name = self.word()?;
        let mut item = Item {
            kind: if what == "table" { Kind::Table } else { Kind::Struct },
            base: String::new(),
            members: Vec::new(),
        };
        self.annotations()?;
        self.expect("{")?;
        while !self.takes("}") {
            let mut field = member(&self.word()?, 0);
            self.expect(":")?;
            field.kind = self.field_type()?;
            if self.takes("=") {
                let default = self.word()?;
                let is_zero = matches!(default.as_str(), "false") || default.parse() == Ok(0.0);
                field.default = (!is_zero).then_some(default);
            }
            (field.id, field.deprecated) = self.annotations()?;
            self.expect(";")?;
            item.members.push(field);
        }
        self.define(name, item, schema)
    }

    fn field_type(&mut self) -> Result<String, String> {
        if !self.takes("[") {
            return Ok(canonical(&self.word()?).to_owned());
        }
        let element = canonical(&self.word()?).to_owned();
        let length = if self.takes(":") {
            format!(":{}", self.number()?)
        } else {
            String::new()
        };
        self.expect("]")?;
        Ok(format!("[{element}{length}]"))
    }

    fn define(&self, name: String, item: Item, schema: &mut Schema) -> Result<(), String> {
        match schema.get(&name) {
            Some(known) if *known != item => Err(self.error(&format!("{name} is defined once more, differently"))),
            _ => {
                schema.insert(name, item);
                Ok(())
            }
        }
    }
}

/// Returns a member of which only name and number are known.
pub(crate) fn member(name: &str, number: i64) -> Member {
    Member {
        name: name.to_owned(),
        number,
        kind: String::new(),
        default: None,
        deprecated: false,
        id: None,
    }
}
