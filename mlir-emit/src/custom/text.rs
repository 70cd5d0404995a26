//! What is looked for in a body's text before MLIR's parser sees it: whatever would make the parser go deep, or go looking elsewhere.

/// Characters that a body may have.
pub(super) const LONGEST: usize = 64 * 1024;

/// Brackets that may be open at once: the parser descends with each.
const DEEPEST: usize = 32;

/// Minus signs in a row: the parser descends with each in front of an affine expression.
const SIGNS: usize = 4;

/// The text, if it has nothing in it that is never needed.
///
/// # Errors
///
/// What it has, and in which line.
pub(super) fn screened(data: &[u8]) -> Result<&str, String> {
    if data.len() > LONGEST {
        return Err(format!("its body has {} bytes, more than {LONGEST}", data.len()));
    }
    let text = std::str::from_utf8(data).map_err(|_| "its body is not text".to_owned())?;
    for (line, number) in text.lines().zip(1..) {
        if let Some(odd) = line.chars().find(|c| c.is_control() && *c != '\t') {
            return Err(format!("line {number} has the character {odd:?}"));
        }
    }
    let mut rest = Rest { text, line: 1 };
    let (mut depth, mut symbols, mut signs) = (0_usize, 0_usize, 0_usize);
    while let Some(next) = rest.take() {
        let line = rest.line;
        signs = match next {
            '-' => signs.saturating_add(1),
            ' ' | '\t' | '\n' | '\r' => signs,
            _ => 0,
        };
        if signs > SIGNS {
            return Err(format!("line {line} has too many signs"));
        }
        match next {
            '/' if rest.text.starts_with('/') => rest.skip_line(),
            '-' if rest.text.starts_with('>') => {
                _ = rest.take();
                signs = 0;
            }
            '<' | '>' if rest.text.starts_with('=') => _ = rest.take(),
            '(' | '[' | '{' | '<' => {
                depth = depth.saturating_add(1);
                if depth > DEEPEST {
                    return Err(format!("line {line} has more than {DEEPEST} brackets open"));
                }
                if next == '{' && rest.text.starts_with("-#") {
                    return Err(format!("line {line} has resources"));
                }
            }
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            '"' => {
                let string = rest.string();
                if string != "parallel" && string != "reduction" {
                    return Err(format!("line {line} has the string \"{string}\""));
                }
            }
            '@' => {
                symbols = symbols.saturating_add(1);
                if symbols > 1 {
                    return Err(format!("line {line} has a symbol: a function is all there may be"));
                }
            }
            '!' => return Err(format!("line {line} has a type of a dialect")),
            '#' => {
                let name = rest.word();
                if name.contains('.') || rest.text.starts_with('<') {
                    return Err(format!("line {line} has the attribute #{name} of a dialect"));
                }
            }
            '?' => return Err(format!("line {line} has an extent that is not known")),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let tail = rest.word();
                // Whatever names a place or a file.
                if matches!((c, tail), ('l', "oc") | ('d', "ense_resource")) {
                    return Err(format!("line {line} has {c}{tail}"));
                }
            }
            // Names and numbers of values, and numbers, so that what follows them is no word of its own.
            c if c == '%' || c == '^' || c.is_ascii_digit() => _ = rest.word(),
            _ => {}
        }
    }
    Ok(text)
}

/// What has not been read yet.
struct Rest<'a> {
    text: &'a str,
    line: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self) -> Option<char> {
        let next = self.text.chars().next()?;
        self.text = self.text.get(next.len_utf8()..).unwrap_or_default();
        if next == '\n' {
            self.line = self.line.saturating_add(1);
        }
        Some(next)
    }

    /// Letters, digits and what else names have.
    fn word(&mut self) -> &'a str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        let end = self.text.find(|c| !is_part(c)).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at_checked(end).unwrap_or_default();
        self.text = rest;
        word
    }

    /// What is before the next quotation mark. None of the strings that a body may have needs an escape.
    fn string(&mut self) -> &'a str {
        let (string, rest) = self.text.split_once('"').unwrap_or((self.text, ""));
        self.text = rest;
        string.split('\n').next().unwrap_or_default()
    }

    fn skip_line(&mut self) {
        self.text = self
            .text
            .find('\n')
            .and_then(|end| self.text.get(end..))
            .unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::screened;

    fn refused(text: &str) -> String {
        screened(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn brackets_are_counted_where_they_are_brackets() {
        assert!(screened("[] -> () ".repeat(1000).as_bytes()).is_ok());
        assert!(screened(&"// (((( \n".repeat(1000).into_bytes()).is_ok());
        assert!(screened("() -> ".repeat(1000).as_bytes()).is_ok());
        for deep in ["(", "[", "{", "<", "(() -> ", "[// ]\n", "(->", "< >="] {
            assert!(refused(&deep.repeat(100)).contains("brackets open"), "{deep}");
        }
        assert!(refused(&"- ".repeat(100)).contains("signs"));
        assert!(refused(&"--".repeat(100)).contains("signs"));
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for (text, reason) in [
            ("\n\"util.call\"()", "line 2 has the string \"util.call\""),
            ("func.func @a() { call @b }", "a symbol"),
            ("%0 : !llvm.ptr", "a type of a dialect"),
            ("#gpu.address_space<x>", "#gpu.address_space"),
            ("{-# x #-}", "resources"),
            ("tensor<?xf32>", "an extent that is not known"),
            ("%0 = a loc(unknown)", "loc"),
            ("dense_resource<x>", "dense_resource"),
            ("a\u{0}b", "the character '\\0'"),
        ] {
            assert!(refused(text).contains(reason), "{text}");
        }
        assert!(screened(&[0xff]).unwrap_err().contains("not text"));
        assert!(screened(&vec![b' '; super::LONGEST + 1]).unwrap_err().contains("bytes"));
        assert!(screened(b"// loc(\"x\") @ @ @\n#map = affine_map<(d0) -> (d0)>\n%loc = tensor.empty").is_ok());
    }
}
