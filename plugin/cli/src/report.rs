//! Tables of outcomes, and formatting of numbers with units.

use crate::outcome::{Origin, Outcome, Verdict};
use bytesize::ByteSize;
use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table, TableComponent, presets};
use indicatif::HumanDuration;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// A graph and its outcome.
#[derive(Debug, Serialize)]
pub(crate) struct GraphOutcome {
    /// The graph's file.
    pub(crate) graph: String,
    /// The file's name without directory and extension.
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// Placeholder for unknown values.
const UNKNOWN: &str = "–";

/// Returns the table of `run` and `demo`.
pub(crate) fn outcomes(outcomes: &[GraphOutcome]) -> Table {
    let mut table = table(&[
        "graph",
        "verdict",
        "dispatches",
        "create",
        "code from",
        "workspace",
        "execute",
        "max error",
        "/ tolerance",
    ]);
    for GraphOutcome { name, outcome, .. } in outcomes {
        let worst = outcome.worst();
        table.add_row([
            Cell::new(name),
            verdict(outcome.verdict),
            number(outcome.dispatches.map(|count| count.to_string())),
            number(outcome.create.map(time)),
            Cell::new(outcome.origin.map_or(UNKNOWN, origin)),
            number(workspace(outcome)),
            number(outcome.execute.map(time)),
            number(worst.map(|worst| error(worst.max_absolute))),
            number(worst.map(|worst| error(worst.ratio))),
        ]);
    }
    table
}

/// Returns an empty table with these columns.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table
}

/// Returns the cell of a number, or of the placeholder if it is unknown.
pub(crate) fn number(text: Option<String>) -> Cell {
    Cell::new(text.as_deref().unwrap_or(UNKNOWN)).set_alignment(CellAlignment::Right)
}

fn verdict(verdict: Verdict) -> Cell {
    let (text, colour) = match verdict {
        Verdict::Right => ("right", Color::Green),
        Verdict::Wrong => ("WRONG", Color::Red),
        Verdict::Unchecked => ("unchecked", Color::Yellow),
        Verdict::Declined => ("declined", Color::Yellow),
        Verdict::Malformed => ("malformed", Color::Red),
        Verdict::Failed => ("failed", Color::Red),
    };
    Cell::new(text).fg(colour)
}

/// Returns the label of the code's origin.
pub(crate) const fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Compiled => "compiler",
        Origin::Cache => "cache",
    }
}

/// Formats a difference, or its ratio to the tolerance.
pub(crate) fn error(error: f64) -> String {
    if error == 0.0 {
        "0".to_owned()
    } else {
        format!("{error:.1e}")
    }
}

/// Formats the workspace that is needed, and the estimate if it differs.
fn workspace(outcome: &Outcome) -> Option<String> {
    let exact = outcome.workspace? as u64;
    Some(match outcome.workspace_estimate.map(|estimate| estimate as u64) {
        Some(estimate) if estimate != exact => format!("{} (≤ {})", bytes(exact), bytes(estimate)),
        _ => bytes(exact),
    })
}

/// Formats a size in a unit that keeps it short.
pub(crate) fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).to_string()
}

/// Formats a number of items, with the singular or plural noun.
pub(crate) fn count(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Returns a cell that marks an error.
pub(crate) fn bad(text: &str) -> Cell {
    Cell::new(text).fg(Color::Red)
}

/// Replaces control characters in a text of unknown origin, so that it cannot control the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Formats the time since `then` in the largest unit of which at least one has passed.
pub(crate) fn age(then: SystemTime) -> String {
    match then.elapsed() {
        Ok(age) if age.as_secs() > 0 => format!("{} ago", HumanDuration(age)),
        // Times in the future count as now, because the clocks of two machines may differ.
        _ => "now".to_owned(),
    }
}

/// Returns the beginning of a key, which is enough to distinguish entries.
pub(crate) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}

/// Formats a time in a unit that keeps it short.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        _ if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        let text = |nanos| time(Duration::from_nanos(nanos));
        assert_eq!(text(1_250), "1.2 µs");
        assert_eq!(text(1_250_000), "1.2 ms");
        assert_eq!(text(1_250_000_000), "1.25 s");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(
            plain("gfx\u{1b}[2J942\n\u{9b}1m, größer"),
            "gfx\u{fffd}[2J942\u{fffd}\u{fffd}1m, größer"
        );
    }

    #[test]
    fn ages_have_one_unit() {
        let ago = |seconds| age(SystemTime::now() - Duration::from_secs(seconds));
        assert_eq!(ago(0), "now");
        assert_eq!(ago(3 * 86_400 + 10), "3 days ago");
        assert_eq!(age(SystemTime::now() + Duration::from_secs(60)), "now");
    }
}
