//! The chart of speed-ups: a line for each graph, a mark for each other engine with its interval,
//! the largest first.

use super::axis::{Axis, anchor, percent, short};
use super::marks::{colour, key, mark, name};
use crate::format::{interval, list, ratio};
use crate::results::{Comparison, Results, Row};
use crate::verdict::{OUTCOMES, comparison, place};
use maud::{Markup, html};

/// The height of one mark's line in pixels.
const LINE: usize = 20;

/// A graph with its comparisons.
struct Line<'a> {
    number: usize,
    row: &'a Row,
    comparisons: Vec<&'a Comparison>,
}

pub(super) fn section(results: &Results) -> Markup {
    let lines = lines(results);
    let values = lines
        .iter()
        .flat_map(|line| &line.comparisons)
        .flat_map(|comparison| [comparison.low, comparison.high]);
    html! {
        section #speedups {
            h2 { "Speed-ups" }
            @if let Some(axis) = Axis::of(values.chain([1.0])).filter(|_| !lines.is_empty()) {
                (chart(results, &lines, &axis))
            } @else if results.engines.len() < 2 {
                p { "There is one engine, and nothing to compare it with." }
            } @else {
                p { "No graph was executed by both engines with results that count." }
            }
            @let missing = missing(results);
            @if !missing.is_empty() {
                details {
                    summary { "Not in the chart: " (missing.len()) }
                    ul { @for reason in missing { li { (reason) } } }
                }
            }
        }
    }
}

fn lines(results: &Results) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = results
        .rows
        .iter()
        .enumerate()
        .map(|(index, row)| Line {
            number: index + 1,
            row,
            comparisons: (1..results.engines.len())
                .filter_map(|engine| comparison(row, engine))
                .collect(),
        })
        .filter(|line| !line.comparisons.is_empty())
        .collect();
    let first = |line: &Line<'_>| line.comparisons.first().map_or(0.0, |comparison| comparison.ratio);
    lines.sort_by(|a, b| first(b).total_cmp(&first(a)));
    lines
}

fn chart(results: &Results, lines: &[Line<'_>], axis: &Axis) -> Markup {
    let label = |engine: usize| results.engines.get(engine).map_or("", |engine| engine.label.as_str());
    let first = label(0);
    let ticks = axis.ticks(7);
    html! {
        p {
            "Time of "
            (list(&(1..results.engines.len()).map(|engine| label(engine).to_owned()).collect::<Vec<_>>()))
            " divided by the time of " b { (first) } ", hot, with 95 % intervals. Right of the line at 1, " b { (first) }
            " is faster. A hollow mark is no difference."
        }
        p.legend {
            @for (index, engine) in results.engines.iter().enumerate().skip(1) { span.engine { (key(index)) (engine.label) } }
        }
        ol.chart {
            @for line in lines {
                li {
                    span.name { span.no { (line.number) } " " (name(&line.row.graph)) }
                    (strip(line, axis, &ticks, first, &label))
                    span.values {
                        @for comparison in &line.comparisons {
                            span { (key(comparison.engine)) b { (ratio(comparison.ratio)) } " " small { (interval(comparison.low, comparison.high)) } }
                        }
                    }
                }
            }
            li.scale aria-hidden="true" {
                span.name {}
                svg.strip height="34" {
                    @for tick in &ticks {
                        line.grid x1=(percent(axis.at(*tick))) x2=(percent(axis.at(*tick))) y1="0" y2="5" {}
                        text x=(percent(axis.at(*tick))) y="17" text-anchor=(anchor(axis.at(*tick))) { (short(*tick)) }
                    }
                    text.word x=(percent(axis.at(1.0))) y="31" dx="6" { "faster →" }
                    text.word x=(percent(axis.at(1.0))) y="31" dx="-6" text-anchor="end" { "← slower" }
                }
                span.values {}
            }
        }
    }
}

fn strip<'a>(line: &Line<'_>, axis: &Axis, ticks: &[f64], first: &str, label: &impl Fn(usize) -> &'a str) -> Markup {
    // In percent, since a long name makes a line higher.
    let count = index_as_float(line.comparisons.len());
    let y = |index: usize| percent(100.0 * (index_as_float(index) + 0.5) / count);
    let sentences: Vec<String> = line
        .comparisons
        .iter()
        .map(|comparison| sentence(comparison, first, label))
        .collect();
    html! {
        div.cell style=(format!("min-height: {}px", LINE * line.comparisons.len() + 4)) {
        svg.strip role="img" aria-label=(format!("{}: {}", line.row.graph, list(&sentences))) {
            @for tick in ticks { line.grid x1=(percent(axis.at(*tick))) x2=(percent(axis.at(*tick))) y1="0" y2="100%" {} }
            line.one x1=(percent(axis.at(1.0))) x2=(percent(axis.at(1.0))) y1="0" y2="100%" {}
            @for (index, comparison) in line.comparisons.iter().enumerate() {
                @let y = y(index);
                @let place = axis.at(comparison.ratio);
                line class={ "bar " (colour(comparison.engine)) } x1=(percent(axis.at(1.0))) x2=(percent(place)) y1=(y) y2=(y) {}
                line class={ "whisker " (colour(comparison.engine)) } x1=(percent(axis.at(comparison.low))) x2=(percent(axis.at(comparison.high))) y1=(y) y2=(y) {}
                @for end in [comparison.low, comparison.high] { (cap(comparison.engine, axis.at(end), &y)) }
                (mark(comparison.engine, place, &y, !comparison.is_difference(), &format!("{}: {}", line.row.graph, sentence(comparison, first, label))))
            }
        }
        }
    }
}

/// The end of a whisker: higher than a mark, so that it shows where the interval is narrower than
/// the mark.
fn cap(engine: usize, x: f64, y: &str) -> Markup {
    html! { use class={ "cap " (colour(engine)) } href="#cap" x=(percent(x)) y=(y) {} }
}

/// There are few engines.
fn index_as_float(index: usize) -> f64 {
    u32::try_from(index).map_or(f64::MAX, f64::from)
}

fn sentence<'a>(comparison: &Comparison, first: &str, label: &impl Fn(usize) -> &'a str) -> String {
    let word = if !comparison.is_difference() {
        "no difference"
    } else if comparison.low > 1.0 {
        "faster"
    } else {
        "slower"
    };
    let (ratio, interval) = (ratio(comparison.ratio), interval(comparison.low, comparison.high));
    format!(
        "{first} against {}: {ratio} ({interval}), {word}",
        label(comparison.engine)
    )
}

/// Why graphs have no mark, one line for each.
fn missing(results: &Results) -> Vec<String> {
    let mut missing = Vec::new();
    for (index, row) in results.rows.iter().enumerate() {
        for engine in 1..results.engines.len() {
            if comparison(row, engine).is_some() {
                continue;
            }
            let reasons: Vec<String> = [0, engine]
                .into_iter()
                .filter_map(|engine| Some((results.engines.get(engine)?, row.measurements.get(engine)?)))
                .filter(|(_, measurement)| !measurement.outcome.times_count())
                .map(|(engine, measurement)| {
                    let word = OUTCOMES[place(&measurement.outcome)];
                    match measurement.outcome.reason() {
                        Some(reason) if !reason.is_empty() => format!("{} {word} ({reason})", engine.label),
                        _ => format!("{} {word}", engine.label),
                    }
                })
                .collect();
            let reasons = if reasons.is_empty() {
                format!("no times to compare with {}", results.engines[engine].label)
            } else {
                list(&reasons)
            };
            missing.push(format!("{} {}: {reasons}", index + 1, row.graph));
        }
    }
    missing
}
