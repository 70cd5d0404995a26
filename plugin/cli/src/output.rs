//! What goes to stdout and stderr. Colours reach terminals alone, and only where `NO_COLOR` does
//! not forbid them.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use std::io::Write as _;

/// For what is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For what works, but not as well as it could.
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
/// For what is wrong or missing.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// For what most readers skip.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Where a command writes to, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// One JSON document instead of text.
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
