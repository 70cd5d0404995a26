//! Output to stdout and stderr. Colours are used only on terminals, and only if `NO_COLOR` does not
//! forbid them.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use std::io::Write as _;

/// Style of what is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Style of what works, but not as well as it could.
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
/// Style of what is wrong or missing.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Style of what most readers skip.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// The form of a command's output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Whether the command writes one JSON document instead of text.
    pub(crate) json: bool,
    /// Whether log messages are written to stderr.
    pub(crate) verbose: bool,
}

impl Output {
    /// Writes a text and a line break to stdout.
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        Ok(writeln!(anstream::stdout().lock(), "{text}")?)
    }

    /// Writes a text and a line break to stderr.
    pub(crate) fn note(&self, text: &str) -> Result<()> {
        Ok(writeln!(anstream::stderr().lock(), "{text}")?)
    }

    /// Writes the JSON document of a command to stdout.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<()> {
        self.line(&serde_json::to_string_pretty(value)?)
    }
}
