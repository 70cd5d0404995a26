//! Finds JSON objects in a text that is not JSON, on one line or several.

/// Maximum length of an object in bytes: a longer one cannot be a graph.
const MOST: usize = rotini_wire::MAX_APPARENT_SIZE;

/// A scanner that finds objects line by line.
#[derive(Default)]
pub(super) struct Objects {
    /// The object that has begun but not ended.
    open: Option<Open>,
}

struct Open {
    /// The line on which the object begins.
    line: usize,
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Objects {
    /// Returns the objects that end on this line, each with the number of the line on which it
    /// began.
    pub(super) fn read(&mut self, number: usize, line: &str) -> Vec<(usize, String)> {
        let mut ended = Vec::new();
        let mut rest = line;
        loop {
            let mut open = match self.open.take() {
                // If an object's first line ends with its brace, the next line must begin with a
                // key; otherwise the brace did not begin an object.
                Some(open) if open.text.trim_end() == "{" && !rest.trim_start().starts_with('"') => continue,
                Some(open) => open,
                None => match begin(rest) {
                    None => return ended,
                    Some(at) => {
                        rest = rest.get(at..).unwrap_or_default();
                        Open::at(number)
                    }
                },
            };
            match open.end(rest) {
                Some(end) => {
                    let (last, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
                    open.text.push_str(last);
                    ended.push((open.line, open.text));
                    rest = behind;
                }
                None => {
                    open.text.push_str(rest);
                    if open.text.len() <= MOST {
                        self.open = Some(open);
                    }
                    return ended;
                }
            }
        }
    }

    /// Returns the line on which an unfinished graph begins, if any.
    pub(super) fn unfinished_graph(&self) -> Option<usize> {
        let open = self.open.as_ref()?;
        let is_graph = ["\"tensors\"", "\"nodes\""].iter().any(|key| open.text.contains(key));
        is_graph.then_some(open.line)
    }
}

/// Returns the offset at which an object may begin: a brace before a key, or at the line's end.
fn begin(line: &str) -> Option<usize> {
    line.match_indices('{').map(|(at, _)| at).find(|at| {
        let behind = line.get(at + 1..).unwrap_or_default().trim_start();
        behind.is_empty() || behind.starts_with('"')
    })
}

impl Open {
    fn at(line: usize) -> Self {
        Open {
            line,
            text: String::new(),
            depth: 0,
            in_string: false,
            escaped: false,
        }
    }

    /// Returns the offset in `text` at which the object ends, if it ends there.
    fn end(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' if !self.in_string => self.depth = self.depth.saturating_add(1),
                b'}' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => (),
            }
        }
        None
    }
}
