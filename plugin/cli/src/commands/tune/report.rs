//! The text and JSON output of `rotini tune`.

use super::contest::Found;
use super::setup::Setup;
use crate::output::{BAD, FAINT, GOOD, Output};
use anyhow::Result;
use rotini_plugin::tuned::{Clock, Outcome, Record, Tried};
use serde::Serialize;

/// Width of the column of names, in characters.
const NAME: usize = 44;

/// Prints the outcome for one graph.
pub(super) fn line(found: &Found, output: &Output) -> Result<()> {
    if output.json {
        return Ok(());
    }
    match found {
        Found::Busy(graph) => output.line(&format!("{graph:<NAME$} another process is measuring it")),
        Found::Declined { graph, reason } => output.line(&format!("{graph:<NAME$} {BAD}declined{BAD:#}: {reason}")),
        Found::Known(record) => output.line(&format!(
            "{:<NAME$} {} {FAINT}(measured before){FAINT:#}",
            record.graph,
            outcome(record)
        )),
        Found::Measured(record) => {
            output.line(&format!("{:<NAME$} {}", record.graph, outcome(record)))?;
            for tried in &record.tried {
                match &tried.outcome {
                    Outcome::Wrong(reason) => {
                        output.line(&format!(
                            "  {} {BAD}computes wrong results{BAD:#}: {reason}",
                            tried.choices
                        ))?;
                    }
                    Outcome::Failed(reason) => output.line(&format!("  {} failed: {reason}", tried.choices))?,
                    _ => {}
                }
            }
            Ok(())
        }
    }
}

/// Describes the winner of a record.
fn outcome(record: &Record) -> String {
    let Some((usual, winner)) = gain(record) else {
        return "no candidate is right".to_owned();
    };
    let word = word(record.clock);
    let [before, now] = [usual, winner].map(|tried| tried.time.map_or(f64::NAN, |time| time.median_us));
    let right = record
        .tried
        .iter()
        .filter(|tried| tried.outcome == Outcome::Right)
        .count();
    if usual.choices == winner.choices {
        return format!("{word}{now:.1} µs: the usual form is the fastest of {right}");
    }
    let ratio = before / now;
    format!(
        "{word}{now:.1} µs, usual {word}{before:.1}: {GOOD}{ratio:.2} times as fast{GOOD:#} with {}, of {right}",
        winner.choices
    )
}

const fn word(clock: Clock) -> &'static str {
    match clock {
        Clock::Measured => "",
        Clock::Predicted => "predicted ",
    }
}

/// Returns the usual form and the winner, if both were timed.
pub(super) fn gain(record: &Record) -> Option<(&Tried, &Tried)> {
    let timed = |tried: &&Tried| tried.time.is_some();
    let usual = record.tried.first().filter(timed)?;
    let winner = record
        .tried
        .iter()
        .find(|tried| Some(&tried.choices) == record.winner.as_ref());
    Some((usual, winner.filter(timed)?))
}

/// Prints the gains, and the error of the closed form.
pub(super) fn all(setup: &Setup, found: &[Found], output: &Output) -> Result<()> {
    let records: Vec<&Record> = found.iter().filter_map(Found::record).collect();
    if output.json {
        #[derive(Serialize)]
        struct Document<'a> {
            device: String,
            records: Vec<&'a Record>,
            busy: Vec<&'a str>,
        }
        let busy = found.iter().filter_map(|found| match found {
            Found::Busy(graph) => Some(graph.as_str()),
            _ => None,
        });
        return output.document(&Document {
            device: setup.measured_on(),
            busy: busy.collect(),
            records,
        });
    }
    if records.is_empty() {
        return Ok(());
    }
    let known = found.iter().filter(|found| matches!(found, Found::Known(_))).count();
    let gains: Vec<f64> = records
        .iter()
        .filter_map(|record| gain(record))
        .filter_map(|(usual, winner)| Some(usual.time?.median_us / winner.time?.median_us))
        .collect();
    let faster = gains.iter().filter(|&&ratio| ratio > 1.0).count();
    output.line(&format!(
        "\non {}: {} graphs, {known} measured before; {faster} faster than in their usual form, on average {:.2} times",
        setup.measured_on(),
        records.len(),
        mean(&gains)
    ))?;
    output.line(&estimates(&records))
}

/// Returns the geometric mean; 1 for an empty slice.
fn mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logarithms / ratios.len().max(1) as f64).exp()
}

/// Returns the bias and the spread of the closed form's error, as text.
fn estimates(records: &[&Record]) -> String {
    let tried = records.iter().flat_map(|record| &record.tried);
    let errors: Vec<f64> = tried
        .filter_map(|tried| Some((tried.time?.median_us / tried.estimated_us?).ln()))
        .collect();
    if errors.is_empty() {
        return "no estimate to compare with: there is a closed form for products on AMD GPUs alone".to_owned();
    }
    let count = errors.len() as f64;
    let bias = errors.iter().sum::<f64>() / count;
    let spread = (errors.iter().map(|error| (error - bias).powi(2)).sum::<f64>() / count).sqrt();
    format!(
        "times divided by the closed form's estimates, of {} candidates: {:.2} on average, times or divided by {:.2}",
        errors.len(),
        bias.exp(),
        spread.exp()
    )
}
