//! Two runs side by side: what got slower, faster or wrong, what is gone and what is new.
//!
//! Graphs are the same if their names are, and engines if their labels are. A time differs only if
//! the intervals of the two runs do not overlap and the medians are more than 2 % apart.

use crate::format::{self, count, list, moment, ratio, time};
use crate::rate::is_positive;
use crate::results::{Clock, Engine, Machine, Measurement, Outcome, Results, Row, Times};
use crate::verdict::{OUTCOMES, place};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Medians that are closer are the same, however sure each is: machines differ by that from day to
/// day.
const SAME: f64 = 0.02;

/// What differs between two runs.
#[derive(Clone, Debug, Serialize)]
pub struct Changes {
    /// When the earlier run began.
    pub before: String,
    /// When the later one began.
    pub after: String,
    /// Where the times come from, if those of both runs mean the same: `CPU`, `GPU`.
    pub clock: Option<&'static str>,
    /// Why the runs may not be comparable.
    pub warnings: Vec<String>,
    /// What differs, in the order of [`Kind`].
    pub changes: Vec<Change>,
    /// The times that were compared and are the same.
    pub same: usize,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Wrong now.
    Wrong,
    /// A call fails now.
    Failed,
    /// The engine's process ends now.
    Crashed,
    /// It does not answer now.
    Hung,
    /// Not applicable any more.
    Declined,
    /// In the earlier run only.
    Gone,
    /// It takes longer.
    Slower,
    /// It takes less time.
    Faster,
    /// Executed, and the reference cannot judge it now.
    NotJudged,
    /// Right now.
    Right,
    /// In the later run only.
    New,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What happened.
    pub kind: Kind,
    /// The graph; none if it concerns the whole engine.
    pub graph: Option<String>,
    /// The engine; none if it concerns the graph with all engines.
    pub engine: Option<String>,
    /// The evidence: times or outcomes.
    pub detail: String,
    /// The time after divided by the time before.
    pub ratio: Option<f64>,
    /// Whether it is a regression, which makes the exit code 1.
    pub regression: bool,
}

/// Compares a run with an earlier one.
#[must_use]
pub fn compare(before: &Results, after: &Results) -> Changes {
    let mut changes = Changes {
        before: before.started.clone(),
        after: after.started.clone(),
        clock: clock(&before.machine, &after.machine),
        warnings: warnings(before, after),
        changes: Vec::new(),
        same: 0,
    };
    let engines = changes.engines(before, after);
    let (rows_before, rows_after) = (named(before), named(after));
    for (name, old) in &rows_before {
        match rows_after.get(name) {
            Some(new) => changes.rows(old, new, &engines, before),
            None => changes.add(
                Kind::Gone,
                Some(&old.graph),
                None,
                "the graph was in the earlier run".to_owned(),
            ),
        }
    }
    for (name, new) in &rows_after {
        if !rows_before.contains_key(name) {
            changes.add(
                Kind::New,
                Some(&new.graph),
                None,
                "the graph was not in the earlier run".to_owned(),
            );
        }
    }
    changes.changes.sort_by(|a, b| {
        let ratio = |change: &Change| change.ratio.map_or(0.0, |ratio| -ratio.ln().abs());
        a.kind.cmp(&b.kind).then(ratio(a).total_cmp(&ratio(b)))
    });
    changes
}

/// The rows by their names. A name that comes again is another graph.
fn named(results: &Results) -> BTreeMap<(&str, usize), &Row> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let rows = results.rows.iter().map(|row| {
        let number = seen.entry(row.graph.as_str()).or_default();
        *number += 1;
        ((row.graph.as_str(), *number), row)
    });
    rows.collect()
}

/// The clock of both runs, if their times can be compared.
fn clock(before: &Machine, after: &Machine) -> Option<&'static str> {
    (before.clock == after.clock && after.clock != Clock::Emulated).then(|| format::clock(after.clock))
}

fn warnings(before: &Results, after: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    let (old, new) = (&before.machine, &after.machine);
    if old.clock != new.clock {
        let (old, new) = (format::clock(old.clock), format::clock(new.clock));
        warnings.push(format!(
            "the times before are {old} and those after {new}: they are not compared"
        ));
    } else if new.clock == Clock::Emulated {
        warnings.push("the times are emulated: they are not compared".to_owned());
    }
    if old.device != new.device {
        warnings.push(format!(
            "the machines differ: device {} before, {} after",
            old.device, new.device
        ));
    }
    let value = |machine: &'_ Machine, name: &str| {
        let fact = machine.facts.iter().find(|(known, _)| known == name);
        fact.map_or_else(|| "not known".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = old.facts.iter().chain(&new.facts).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    // The load is of the moment and not of the machine.
    for name in names.into_iter().filter(|name| !name.starts_with("load")) {
        let (old, new) = (value(old, name), value(new, name));
        if old != new {
            warnings.push(format!("the machines differ: {name} {old} before, {new} after"));
        }
    }
    if before.seed != after.seed {
        warnings.push(format!(
            "the seeds differ: {} before, {} after",
            before.seed, after.seed
        ));
    }
    if before.values != after.values {
        warnings.push("one of the runs has normally distributed inputs".to_owned());
    }
    warnings
}

impl Changes {
    /// Returns true if there is a regression, which makes the exit code 1.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.changes.iter().any(|change| change.regression)
    }

    fn add(&mut self, kind: Kind, graph: Option<&str>, engine: Option<&str>, detail: String) {
        self.changes.push(Change {
            kind,
            graph: graph.map(str::to_owned),
            engine: engine.map(str::to_owned),
            detail,
            ratio: None,
            regression: matches!(kind, Kind::Gone),
        });
    }

    /// Compares the engines, and returns the places of those that take part in both.
    fn engines(&mut self, before: &Results, after: &Results) -> Vec<(usize, usize)> {
        let mut both = Vec::new();
        for (old_place, old) in before.engines.iter().enumerate() {
            let label = Some(old.label.as_str());
            let Some(new_place) = after.engines.iter().position(|new| new.label == old.label) else {
                self.add(Kind::Gone, None, label, "the engine was in the earlier run".to_owned());
                continue;
            };
            let new = &after.engines[new_place];
            match (&old.unusable, &new.unusable) {
                (None, Some(reason)) => self.add(Kind::Gone, None, label, format!("takes no part any more: {reason}")),
                (Some(_), None) => self.add(Kind::New, None, label, "took no part in the earlier run".to_owned()),
                (Some(_), Some(_)) => {}
                (None, None) => both.push((old_place, new_place)),
            }
            self.warnings.extend(difference(old, new));
        }
        for new in &after.engines {
            if !before.engines.iter().any(|old| old.label == new.label) {
                self.add(
                    Kind::New,
                    None,
                    Some(&new.label),
                    "the engine was not in the earlier run".to_owned(),
                );
            }
        }
        both
    }

    fn rows(&mut self, old: &Row, new: &Row, engines: &[(usize, usize)], before: &Results) {
        let same = old.flops == new.flops && old.bytes == new.bytes && old.dtype == new.dtype;
        if !same {
            let warning = format!(
                "{} is another graph under the same name: its times are not compared",
                new.graph
            );
            self.warnings.push(warning);
        }
        for &(old_place, new_place) in engines {
            let (Some(engine), Some(old_one), Some(new_one)) = (
                before.engines.get(old_place),
                old.measurements.get(old_place),
                new.measurements.get(new_place),
            ) else {
                self.warnings
                    .push(format!("{} has no measurement of every engine", new.graph));
                continue;
            };
            self.outcomes(&new.graph, &engine.label, &old_one.outcome, &new_one.outcome);
            if same {
                self.measurements(&new.graph, &engine.label, old_one, new_one);
            }
        }
    }

    fn outcomes(&mut self, graph: &str, engine: &str, old: &Outcome, new: &Outcome) {
        if place(old) == place(new) {
            return;
        }
        let mut detail = format!("{} before", OUTCOMES[place(old)]);
        if let Some(reason) = new.reason().filter(|reason| !reason.is_empty()) {
            detail += &format!("; {reason}");
        }
        let (kind, severity) = kind(new);
        self.add(kind, Some(graph), Some(engine), detail);
        if let Some(change) = self.changes.last_mut() {
            change.regression = severity > self::kind(old).1;
        }
    }

    fn measurements(&mut self, graph: &str, engine: &str, old: &Measurement, new: &Measurement) {
        let Some(clock) = self.clock else { return };
        if !old.outcome.times_count() || !new.outcome.times_count() {
            return;
        }
        for (what, old, new) in [("hot", &old.hot, &new.hot), ("rotating", &old.rotating, &new.rotating)] {
            match (old, new) {
                (Some(old), Some(new)) => self.times(graph, engine, &format!("{what}, {clock}"), old, new),
                (Some(_), None) => {
                    let detail = format!("the {what} time was measured in the earlier run");
                    self.add(Kind::Gone, Some(graph), Some(engine), detail);
                }
                (None, Some(_)) => {
                    let detail = format!("the {what} time was not measured in the earlier run");
                    self.add(Kind::New, Some(graph), Some(engine), detail);
                }
                (None, None) => {}
            }
        }
    }

    fn times(&mut self, graph: &str, engine: &str, what: &str, old: &Times, new: &Times) {
        let quotient = new.median / old.median;
        if !is_positive(quotient) {
            self.warnings
                .push(format!("{graph}, {engine}: a time ({what}) is no time"));
            return;
        }
        let kind = if new.low > old.high && quotient > 1.0 + SAME {
            Kind::Slower
        } else if new.high < old.low && quotient < 1.0 - SAME {
            Kind::Faster
        } else {
            self.same += 1;
            return;
        };
        let (before, after) = (time(old.median, 4), time(new.median, 4));
        self.changes.push(Change {
            kind,
            graph: Some(graph.to_owned()),
            engine: Some(engine.to_owned()),
            detail: format!("{before} before, {after} after ({what}): {} the time", ratio(quotient)),
            ratio: Some(quotient),
            regression: kind == Kind::Slower,
        });
    }
}

/// The kind of an outcome that is new, and how bad it is: what is declined runs elsewhere, what is
/// wrong spoils everything after it.
fn kind(outcome: &Outcome) -> (Kind, u8) {
    match outcome {
        Outcome::Right => (Kind::Right, 0),
        Outcome::Unjudged(_) => (Kind::NotJudged, 0),
        Outcome::Declined(_) => (Kind::Declined, 1),
        Outcome::Failed(_) => (Kind::Failed, 2),
        Outcome::Crashed(_) => (Kind::Crashed, 2),
        Outcome::Hung(_) => (Kind::Hung, 2),
        Outcome::Wrong(_) => (Kind::Wrong, 3),
    }
}

/// Returns the differences of engines with the same label. They may be what the user compares.
fn difference(old: &Engine, new: &Engine) -> Option<String> {
    let settings = |engine: &Engine| {
        let settings: Vec<String> = engine
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if settings.is_empty() {
            "no settings".to_owned()
        } else {
            settings.join(" ")
        }
    };
    let parts: Vec<String> = [
        ("plugin", old.plugin.clone(), new.plugin.clone()),
        ("version", old.version.clone(), new.version.clone()),
        ("engine", old.engine.clone(), new.engine.clone()),
        ("settings", settings(old), settings(new)),
    ]
    .into_iter()
    .filter(|(_, old, new)| old != new)
    .map(|(what, old, new)| format!("{what} {old} before, {new} after"))
    .collect();
    (!parts.is_empty()).then(|| format!("the engine {} differs: {}", new.label, list(&parts)))
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::Hung => "hung",
            Self::Declined => "declined",
            Self::Gone => "gone",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::NotJudged => "not judged",
            Self::Right => "right",
            Self::New => "new",
        }
    }
}

/// For the terminal.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} against {}",
            plain(&moment(&self.after)),
            plain(&moment(&self.before))
        )?;
        for warning in &self.warnings {
            writeln!(f, "warning: {}", plain(warning))?;
        }
        let subjects: Vec<String> = self.changes.iter().map(subject).collect();
        let width = subjects
            .iter()
            .map(|subject| subject.chars().count())
            .max()
            .unwrap_or_default()
            .min(60);
        for (change, subject) in self.changes.iter().zip(&subjects) {
            writeln!(
                f,
                "{:<10} {subject:<width$}  {}",
                change.kind.word(),
                plain(&change.detail)
            )?;
        }
        let mut kinds: Vec<(Kind, usize)> = Vec::new();
        for change in &self.changes {
            match kinds.last_mut() {
                Some((kind, number)) if *kind == change.kind => *number += 1,
                _ => kinds.push((change.kind, 1)),
            }
        }
        let mut parts: Vec<String> = kinds
            .iter()
            .map(|(kind, number)| format!("{number} {}", kind.word()))
            .collect();
        parts.push(format!("{} the same", count(self.same, "time")));
        writeln!(f, "{}", parts.join(", "))
    }
}

fn subject(change: &Change) -> String {
    let parts = [change.graph.as_deref(), change.engine.as_deref()];
    plain(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Text from a file, without what moves a terminal's cursor.
fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { '\u{fffd}' } else { letter })
        .collect()
}
