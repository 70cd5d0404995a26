//! The samples behind the medians: a strip for each engine and kind of buffers, folded away for
//! each graph.

use super::axis::{Axis, anchor, percent, short};
use super::marks::{colour, key, name};
use crate::format::{self, Unit, significant, time};
use crate::rate::is_positive;
use crate::results::{Measurement, Results, Row, Times};
use maud::{Markup, html};

/// The samples of an engine with one kind of buffers.
struct Strip<'a> {
    engine: usize,
    kind: &'static str,
    times: &'a Times,
}

pub(super) fn section(results: &Results) -> Markup {
    let clock = format::clock(results.machine.clock);
    html! {
        section #samples {
            h2 { "Samples" }
            p {
                "Every sample, in " (clock) " time on a logarithmic axis. In a strip they lie from top to bottom in the order in which they were taken, so \
                that drift shows; the line is the median, the band its 95 % interval."
            }
            @let rows: Vec<_> = results.rows.iter().enumerate().map(|(index, row)| (index + 1, row, strips(row))).collect();
            @for (position, (number, row, strips)) in rows.iter().filter(|(_, _, strips)| !strips.is_empty()).enumerate() {
                details open[position == 0] {
                    summary { span.no { (number) } " " (name(&row.graph)) " " (medians(strips, clock)) }
                    @if let Some(axis) = Axis::of(strips.iter().flat_map(|strip| values(strip.times))) {
                        (distribution(results, strips, &axis, clock))
                    }
                }
            }
            @let without: Vec<String> = rows.iter().filter(|(_, _, strips)| strips.is_empty()).map(|(number, row, _)| format!("{number} {}", row.graph)).collect();
            @if !without.is_empty() { p.note { "Nothing was measured that counts: " (format::list(&without)) "." } }
        }
    }
}

fn strips(row: &Row) -> Vec<Strip<'_>> {
    let mut strips = Vec::new();
    for (engine, measurement) in row
        .measurements
        .iter()
        .enumerate()
        .filter(|(_, measurement)| measurement.outcome.times_count())
    {
        let Measurement { hot, rotating, .. } = measurement;
        for (kind, times) in [("hot", hot), ("rotating", rotating)] {
            if let Some(times) = times.as_ref().filter(|times| is_positive(times.median)) {
                strips.push(Strip { engine, kind, times });
            }
        }
    }
    strips.sort_by_key(|strip| strip.kind);
    strips
}

fn values(times: &Times) -> impl Iterator<Item = f64> {
    times
        .samples
        .iter()
        .copied()
        .chain([times.median, times.low, times.high])
}

/// The hot medians, for those who do not open it.
fn medians(strips: &[Strip<'_>], clock: &str) -> Markup {
    html! {
        span.medians {
            @for strip in strips.iter().filter(|strip| strip.kind == "hot") { span { (key(strip.engine)) (time(strip.times.median, 3)) } }
            span.none { (clock) }
        }
    }
}

fn distribution(results: &Results, strips: &[Strip<'_>], axis: &Axis, clock: &str) -> Markup {
    let unit = Unit::of((axis.low() * axis.high()).sqrt());
    let ticks = axis.ticks(6).into_iter();
    // Round in the unit that is shown, which is a power of ten: round in microseconds as well.
    let ticks: Vec<(f64, String)> = ticks
        .map(|tick| (axis.at(tick), short(tick / unit.microseconds)))
        .collect();
    html! {
        ol.chart.samples {
            @for strip in strips {
                @let label = results.engines.get(strip.engine).map_or("", |engine| engine.label.as_str());
                @let times = strip.times;
                @let median = time(times.median, 4);
                @let interval = within(times);
                li {
                    span.name { (key(strip.engine)) (label) ", " (strip.kind) }
                    svg.strip height="40" role="img"
                        aria-label={ (label) ", " (strip.kind) ": median " (median) " " (clock) ", interval " (interval) ", " (times.samples.len()) " samples" } {
                        @for (x, _) in &ticks { line.grid x1=(percent(*x)) x2=(percent(*x)) y1="0" y2="100%" {} }
                        rect class={ "band " (colour(strip.engine)) } x=(percent(axis.at(times.low))) y="0" width=(percent(axis.at(times.high) - axis.at(times.low))) height="100%" {
                            title { "95 % interval " (interval) " " (clock) }
                        }
                        g class={ "dots " (colour(strip.engine)) } {
                            @for (x, y) in dots(times, axis) { circle cx=(x) cy=(y) r="2" {} }
                        }
                        line class={ "median " (colour(strip.engine)) } x1=(percent(axis.at(times.median))) x2=(percent(axis.at(times.median))) y1="0" y2="100%" {
                            title { (label) ", " (strip.kind) ": median " (median) " " (clock) }
                        }
                    }
                    span.values { span { b { (median) } " " small { (interval) } } }
                }
            }
            li.scale aria-hidden="true" {
                span.name {}
                svg.strip height="22" {
                    @for (x, text) in &ticks { text x=(percent(*x)) y="16" text-anchor=(anchor(*x)) { (text) } }
                }
                span.values { span.none { (unit.name) ", " (clock) } }
            }
        }
    }
}

/// The positions of samples: the time across, their order downwards.
fn dots(times: &Times, axis: &Axis) -> impl Iterator<Item = (String, String)> {
    let all = u32::try_from(times.samples.len()).map_or(1.0, f64::from);
    times
        .samples
        .iter()
        .zip(0_u32..)
        .filter(|(sample, _)| is_positive(**sample))
        .map(move |(sample, index)| {
            (
                percent(axis.at(*sample)),
                percent(10.0 + 80.0 * (f64::from(index) + 0.5) / all),
            )
        })
}

/// The interval of a median in the median's unit.
fn within(times: &Times) -> String {
    let unit = Unit::of(times.median);
    let part = |value: f64| significant(value / unit.microseconds, 4);
    format!("{}–{} {}", part(times.low), part(times.high), unit.name)
}
