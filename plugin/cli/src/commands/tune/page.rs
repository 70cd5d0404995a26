//! The candidates of all graphs on one HTML page, which needs neither network nor scripts.

use super::report::gain;
use maud::{Markup, html};
use rotini_plugin::tuned::{Clock, Outcome, Record, Tried};

/// Returns the page of these records, which were measured on `device`.
pub(super) fn page(device: &str, records: &[&Record]) -> String {
    let is_predicted = records.iter().any(|record| record.clock == Clock::Predicted);
    let body = html! {
        main {
            header {
                p.kicker { "rotini tune" }
                h1 { (records.len()) " graphs on " (device) }
                @if is_predicted {
                    p.clock.emulated {
                        b { "Predicted, not measured. " } "Times are a model's, from what an emulator counted; nothing here was measured on a GPU."
                    }
                }
                nav {
                    @for (index, record) in records.iter().enumerate() {
                        a href={ "#graph" (index) } { (record.graph) }
                    }
                }
            }
            @for (index, record) in records.iter().enumerate() {
                section id={ "graph" (index) } { (one(record)) }
            }
        }
    };
    rotini_bench::page::sheet(&format!("rotini tune: {device}"), &body)
}

fn one(record: &Record) -> Markup {
    let mut tried: Vec<&Tried> = record.tried.iter().collect();
    // Candidates without a time come last, in the order in which they were tried.
    let microseconds = |tried: &Tried| tried.time.map_or(f64::INFINITY, |time| time.median_us);
    tried.sort_by(|a, b| microseconds(a).total_cmp(&microseconds(b)));
    let best = tried.first().map_or(f64::NAN, |first| microseconds(first));
    let judge = if record.by_reference {
        "the reference"
    } else {
        "the usual form, as the reference takes too long"
    };
    html! {
        h2 { (record.graph) }
        p.facts { (record.target) " · " (record.compiler) " · rotini " (record.rotini) " · results verified against " (judge) }
        p { (reason(record)) }
        @if record.is_extrapolated {
            p.note { "Extrapolated: kernels like these were never compared with hardware." }
        }
        div.scroll tabindex="0" role="region" aria-label="Candidates" {
            table {
                thead { tr {
                    th scope="col" { "candidate" }
                    th.number scope="col" { (clock(record.clock)) " µs" }
                    th.number scope="col" { "95 % interval" }
                    th.number scope="col" { "times the fastest" }
                    th.number scope="col" { "closed form, µs" }
                    th scope="col" { "outcome" }
                } }
                tbody {
                    @for tried in tried {
                        tr {
                            th scope="row" { (tried.choices) }
                            td.number { @if let Some(time) = tried.time { (format!("{:.1}", time.median_us)) } }
                            td.number {
                                @if let Some(time) = tried.time { (format!("{:.1} to {:.1}", time.interval_us[0], time.interval_us[1])) }
                            }
                            td.number { @if let Some(time) = tried.time { (format!("{:.2}", time.median_us / best)) } }
                            td.number { @if let Some(estimate) = tried.estimated_us { (format!("{estimate:.1}")) } }
                            td { (outcome(record, tried)) }
                        }
                    }
                }
            }
        }
    }
}

const fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Measured => "measured",
        Clock::Predicted => "predicted",
    }
}

/// Returns a sentence that names the chosen candidate and the reason.
fn reason(record: &Record) -> String {
    let Some((usual, winner)) = gain(record) else {
        return "No candidate computes right results.".to_owned();
    };
    let [before, now] = [usual, winner].map(|tried| tried.time.map_or(f64::NAN, |time| time.median_us));
    if usual.choices == winner.choices {
        let percent = (record.margin() - 1.0) * 100.0;
        return match record.clock {
            Clock::Measured => {
                format!("Chosen: the usual form. No candidate is more than {percent:.0} % or significantly faster.")
            }
            Clock::Predicted => {
                format!("Chosen: the usual form. No candidate is predicted to be more than {percent:.0} % faster.")
            }
        };
    }
    format!(
        "Chosen: {}, {:.2} times as fast as the usual form.",
        winner.choices,
        before / now
    )
}

fn outcome(record: &Record, tried: &Tried) -> String {
    match &tried.outcome {
        Outcome::Untried => "not tried yet".to_owned(),
        Outcome::Same(other) => format!("the same code as {other}"),
        Outcome::Wrong(reason) => format!("wrong results, never used: {reason}"),
        Outcome::Failed(reason) => format!("failed: {reason}"),
        Outcome::Right if record.winner.as_ref() == Some(&tried.choices) => "right, chosen".to_owned(),
        Outcome::Right => "right".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_candidate_and_escapes_names() {
        let text = r#"{"format": 1, "graph": "<b>conv", "target": "cpu", "device": "CPU", "compiler": "iree", "rotini": "0",
            "changed_unix": 1, "clock": "predicted", "by_reference": true, "winner": "conv0=panels", "tried": [
            {"choices": "usual", "outcome": "right", "time": {"median_us": 20.0, "interval_us": [19.0, 21.0], "turns": 6}},
            {"choices": "iree", "outcome": {"wrong": "far off"}},
            {"choices": "conv0=panels", "outcome": "right", "time": {"median_us": 10.0, "interval_us": [9.0, 11.0], "turns": 6}}]}"#;
        let record = Record::read(text.as_bytes()).unwrap();
        let page = page("CPU", &[&record]);
        for part in [
            "&lt;b&gt;conv",
            "Predicted, not measured",
            "2.00 times as fast as the usual form",
            "wrong results, never used: far off",
            "right, chosen",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<b>conv"));
        // The fastest comes first.
        let places = ["conv0=panels</th>", "usual</th>", "iree</th>"].map(|part| page.find(part).unwrap());
        assert!(places.is_sorted(), "{places:?}");
    }
}
