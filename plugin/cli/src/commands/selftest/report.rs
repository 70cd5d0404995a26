//! The report of a `rotini selftest` run: a page, a JSON document, and a summary for the terminal.

use super::describe;
use super::items::Part;
use super::state::{Found, Header};
use crate::commands::bench::{COLUMNS, Constant, constants, table};
use anyhow::{Context as _, Result};
use maud::{DOCTYPE, html};
use rotini_bench::About;
use rotini_bench::results::{Clock, Results};
use rotini_bench::verdict::verdict;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The speed of the plugin compared with other engines.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Speed {
    /// Measured.
    Measured(Box<Results>),
    /// The time was up before the measurement.
    NoTime,
    /// Switched off by `--no-bench`.
    NotAsked,
}

/// The measurements of a run.
pub(super) struct Measured {
    /// The comparison with other engines.
    pub(super) speed: Speed,
    /// The run of the suite `constants`, on a GPU.
    pub(super) constants: Option<Results>,
}

/// The outcomes of a part.
#[derive(Serialize)]
struct Counts {
    part: Part,
    what: &'static str,
    /// The number of items by outcome.
    outcomes: BTreeMap<String, usize>,
}

/// The report of a run.
#[derive(Serialize)]
pub(super) struct Report {
    /// Whether something was tried and nothing was bad.
    ok: bool,
    header: Header,
    about: String,
    emulated: bool,
    parts: Vec<Counts>,
    /// The items with bad outcomes.
    bad: Vec<Found>,
    /// The numbers of items that were tried, and that were left when the time was up.
    tried: usize,
    left: usize,
    seconds: f64,
    speed: Speed,
    /// The constants that predictions use, as measured on this device.
    constants: Vec<Constant>,
    /// The run from which the constants were derived.
    constants_from: Option<Results>,
}

impl Report {
    pub(super) fn new(
        header: Header,
        about: &About,
        found: Vec<Found>,
        left: usize,
        measured: Measured,
        took: Duration,
    ) -> Self {
        let counts = |(part, what)| {
            let mut outcomes = BTreeMap::new();
            for found in found.iter().filter(|found| found.part == part) {
                *outcomes.entry(found.outcome.clone()).or_insert(0) += 1;
            }
            Counts { part, what, outcomes }
        };
        let parts = Part::ALL.into_iter().map(counts).collect();
        let tried = found.len();
        let bad: Vec<Found> = found.into_iter().filter(Found::is_bad).collect();
        Report {
            // A run that tried nothing shows nothing.
            ok: bad.is_empty() && tried > 0,
            header,
            about: describe(about),
            emulated: about.emulated,
            parts,
            bad,
            tried,
            left,
            seconds: took.as_secs_f64(),
            speed: measured.speed,
            constants: measured.constants.as_ref().map(constants).unwrap_or_default(),
            constants_from: measured.constants,
        }
    }

    /// Returns true if something was tried and nothing was bad.
    pub(super) fn is_right(&self) -> bool {
        self.ok
    }

    /// Writes the page and the document, and the benchmark's page and results next to them.
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        let mut files = vec![
            ("selftest.json", serde_json::to_string_pretty(self)?),
            ("index.html", self.page()),
        ];
        if let Speed::Measured(results) = &self.speed {
            files.push(("bench.html", rotini_bench::page::page(results)));
            files.push(("bench.json", serde_json::to_string_pretty(results)?));
        }
        for (name, text) in files {
            let path = directory.join(name);
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(())
    }

    fn verdict(&self) -> String {
        let of = match self.left {
            0 => format!("all {} that there is to try", self.tried),
            left => format!("{} of {}", self.tried, self.tried + left),
        };
        match (self.tried, self.bad.len()) {
            (0, _) => "Nothing was tried: there was no time".to_owned(),
            (_, 0) => format!("Right: nothing wrong in {of}"),
            (_, bad) => format!("WRONG: {bad} of {} are not as they must be (tried: {of})", self.tried),
        }
    }

    /// Returns the sentences that compare the speed with other engines.
    fn speed(&self) -> Vec<String> {
        match &self.speed {
            Speed::NotAsked => vec!["Speed was not asked for".to_owned()],
            Speed::NoTime => vec!["No time was left to measure speed".to_owned()],
            Speed::Measured(results) if results.machine.clock == Clock::Emulated => {
                vec!["The device is emulated: its times say nothing about speed".to_owned()]
            }
            Speed::Measured(results) if results.engines.len() < 2 => {
                vec!["There is no other engine on this machine to be compared with".to_owned()]
            }
            Speed::Measured(results) => std::iter::once(format!(
                "{} graphs of the suite quick were measured",
                results.rows.len()
            ))
            .chain(
                results
                    .engines
                    .iter()
                    .enumerate()
                    .skip(1)
                    .filter_map(|(index, engine)| {
                        let against = verdict(results, index).against?;
                        Some(format!("rotini against {}: {}", engine.label, against.sentence()))
                    }),
            )
            .collect(),
        }
    }

    fn page(&self) -> String {
        const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:1rem;color-scheme:light dark}\
            table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}\
            td.n{text-align:right}.good{color:#0a7d33}.bad{color:#c0261c}div.wide{overflow-x:auto}code{overflow-wrap:anywhere}";
        let outcomes: Vec<&str> = ["right", "declined", "not judged", "wrong", "failed", "crashed", "hung"].into();
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "rotini selftest: " (self.verdict()) }
                    style { (maud::PreEscaped(STYLE)) }
                }
                body {
                    h1 class=(if self.ok { "good" } else { "bad" }) { (self.verdict()) }
                    p { (self.about) ", seed " (self.header.seed) ", " (format!("{:.0}", self.seconds)) " s in the last run." }
                    @if self.emulated { p { "The device is an emulator: this says what is right, and nothing about speed." } }
                    h2 { "Results" }
                    div.wide { table {
                        thead { tr { th scope="col" { "what was tried" } @for outcome in &outcomes { th scope="col" { (outcome) } } } }
                        tbody { @for part in &self.parts {
                            tr { th scope="row" { (part.what) }
                                @for outcome in &outcomes { td.n { (part.outcomes.get(*outcome).copied().unwrap_or(0)) } } }
                        } }
                    } }
                    @if !self.bad.is_empty() {
                        h2 { "What is not as it must be" }
                        ul { @for found in &self.bad {
                            li { b { (found.name) } ": " (found.outcome) ": " code { (found.reason.as_deref().unwrap_or_default()) } }
                        } }
                    }
                    h2 { "Speed" }
                    @for line in self.speed() { p { (line) "." } }
                    @if matches!(self.speed, Speed::Measured(_)) { p { a href="bench.html" { "All figures" } } }
                    @if !self.constants.is_empty() {
                        h2 { "Constants of this device" }
                        div.wide { table {
                            thead { tr { @for name in COLUMNS { th scope="col" { (name) } } } }
                            tbody { @for constant in &self.constants { tr { @for cell in constant.cells() { td { (cell) } } } } }
                        } }
                        p { "Predictions for an MI300X rest on the model's. Please send " code { "selftest.json" } " back." }
                    }
                    h2 { "Again" }
                    p { code { "rotini selftest --seed " (self.header.seed) } }
                }
            }
        }
        .into_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            let counts: Vec<String> = part
                .outcomes
                .iter()
                .map(|(outcome, count)| format!("{count} {outcome}"))
                .collect();
            let counts = if counts.is_empty() {
                "not tried".to_owned()
            } else {
                counts.join(", ")
            };
            writeln!(f, "{}: {counts}", part.what)?;
        }
        for line in self.speed() {
            writeln!(f, "{line}")?;
        }
        if let Some(table) = table(&self.constants) {
            writeln!(f, "{table}")?;
        }
        write!(f, "{}", self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::of_a_device;

    /// The report of a run on a device with known times.
    #[test]
    fn constants_are_in_the_document_and_on_the_page() {
        let about = About {
            name: "rotini".to_owned(),
            version: "1".to_owned(),
            api_version: "1.4.0".to_owned(),
            engine: "ROTINI_ENGINE".to_owned(),
            device: "AMD Instinct MI300X".to_owned(),
            emulated: false,
            gpus: 1,
        };
        let header = || Header {
            plugin: "rotini 1".to_owned(),
            files: String::new(),
            device: about.device.clone(),
            seed: 0,
        };
        let report = |constants| {
            let speed = Speed::NoTime;
            let measured = Measured { speed, constants };
            Report::new(header(), &about, Vec::new(), 0, measured, Duration::ZERO)
        };
        let with = report(Some(of_a_device()));
        let document = serde_json::to_value(&with).unwrap();
        let all = document["constants"].as_array().unwrap();
        let rate = all.iter().find(|constant| constant["name"] == "4096³ in f16").unwrap();
        assert_eq!(rate["measured"].as_f64().map(f64::round), Some(550.0));
        assert_eq!(document["constants_from"]["values"], "gaussian");
        assert!(with.page().contains("layernorm 8192×4096, cold"));
        assert!(with.to_string().contains("causal : full attention"));
        let without = report(None);
        assert!(!without.page().contains("Constants of this device"));
    }
}
