//! The table of everything that was measured.

use super::marks::{key, name};
use crate::format::{self, Unit, bytes, large, significant, small, time};
use crate::rate::{Rate, intensity, rate};
use crate::results::{Clock, Measurement, Results, Row, Times};
use crate::verdict::{OUTCOMES, place};
use maud::{Markup, html};

/// What stands below the name of a column.
enum Below {
    /// A unit, or nothing.
    Text(&'static str),
    /// Whose time it is: the device's.
    Device,
    /// The host's.
    Host,
    /// No time and no rate: not shown where times are emulated.
    Rate(&'static str),
}

const COLUMNS: [(&str, Below); 16] = [
    ("engine", Below::Text("")),
    ("outcome", Below::Text("")),
    ("hot", Below::Device),
    ("rotating", Below::Device),
    ("TFLOP/s", Below::Rate("")),
    ("GB/s", Below::Rate("")),
    ("roofline", Below::Rate("share")),
    ("create cold", Below::Host),
    ("create warm", Below::Host),
    ("first", Below::Host),
    ("host p50", Below::Host),
    ("host p99", Below::Host),
    ("workspace", Below::Text("")),
    ("error", Below::Text("of tolerance")),
    ("predicted", Below::Device),
    ("published", Below::Text("by others")),
];

pub(super) fn section(results: &Results) -> Markup {
    let emulated = results.machine.clock == Clock::Emulated;
    let columns = || {
        COLUMNS
            .iter()
            .filter(|(_, below)| !(emulated && matches!(below, Below::Rate(_))))
    };
    let device = format::clock(results.machine.clock);
    // The emulator stands between the host and its work as well.
    let host = if emulated { device } else { "CPU" };
    html! {
        section #table {
            h2 { "All figures" }
            div.scroll.wide tabindex="0" role="region" aria-label="All figures" {
                table.all {
                    thead {
                        tr {
                            @for (name, below) in columns() {
                                th scope="col" {
                                    (name)
                                    small {
                                        @match below {
                                            Below::Text(text) | Below::Rate(text) => (text),
                                            // A prediction is of the real device.
                                            Below::Device if *name == "predicted" && emulated => "GPU",
                                            Below::Device => (device),
                                            Below::Host => (host),
                                        }
                                    }
                                }
                            }
                        }
                    }
                    @for (index, row) in results.rows.iter().enumerate() {
                        tbody {
                            tr.graph { th scope="rowgroup" colspan=(columns().count()) { (graph(index + 1, row)) } }
                            @for (engine, measurement) in row.measurements.iter().enumerate() {
                                (line(results, row, engine, measurement))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn graph(number: usize, row: &Row) -> Markup {
    html! {
        div.sticky {
            span.no { (number) } " " (name(&row.graph))
            small {
                (row.summary) " · " (row.dtype)
                @if let Some(flops) = row.flops { " · " (large(flops, 3)) "FLOP" }
                " · " (bytes(row.bytes))
                @if let Some(intensity) = intensity(row) { " · " (significant(intensity, 3)) " FLOP/B" }
                @if row.origin != row.graph { " · " code { (name(&row.origin)) } }
            }
        }
    }
}

fn line(results: &Results, row: &Row, engine: usize, measurement: &Measurement) -> Markup {
    let label = results.engines.get(engine).map_or("", |engine| engine.label.as_str());
    let emulated = results.machine.clock == Clock::Emulated;
    let counts = measurement.outcome.times_count();
    let Rate {
        flops,
        bytes: moved,
        share,
    } = rate(&results.machine, row, measurement).unwrap_or(Rate {
        flops: None,
        bytes: f64::NAN,
        share: None,
    });
    html! {
        tr.void[!counts] {
            th scope="row" { (key(engine)) (label) }
            td.outcome.bad[!counts && place(&measurement.outcome) != 3] {
                (OUTCOMES[place(&measurement.outcome)])
                @if let Some(reason) = measurement.outcome.reason() { small { (reason) } }
                @if measurement.captured == Some(false) { small { "not captured: the host's calls are in its times" } }
            }
            (median(measurement.hot.as_ref(), emulated))
            (median(measurement.rotating.as_ref(), emulated))
            @if !emulated {
                (cell(flops.map(|flops| significant(flops / 1e12, 3))))
                (cell(moved.is_finite().then(|| significant(moved / 1e9, 3))))
                (cell(share.map(|share| format!("{} %", significant(100.0 * share, 2)))))
            }
            @for figure in [measurement.create_cold, measurement.create_warm, measurement.first, measurement.host_p50, measurement.host_p99] {
                (plain(figure, emulated))
            }
            (cell(measurement.workspace.map(bytes)))
            td.number {
                @match &measurement.error {
                    Some(error) => { (small(error.ratio)) small { (error.tensor) ": " (small(error.max_absolute)) } }
                    None => span.none { "–" },
                }
            }
            @if engine == 0 {
                @let rows = row.measurements.len();
                td.number rowspan=(rows) {
                    @match row.predicted {
                        Some(predicted) => (time(predicted, 3)),
                        None => span.none { "–" },
                    }
                }
                td rowspan=(rows) {
                    @for published in &row.published { (time(published.microseconds, 3)) small { (published.by) } }
                    @if row.published.is_empty() { span.none { "–" } }
                }
            }
        }
    }
}

/// A median with its interval.
fn median(times: Option<&Times>, emulated: bool) -> Markup {
    let Some(times) = times else { return cell(None) };
    let unit = Unit::of(times.median);
    let part = |value: f64| significant(value / unit.microseconds, 4);
    html! {
        td.number {
            span.time { (part(times.median)) " " (unit.name) }
            (mark_of(emulated))
            small { (part(times.low)) "–" (part(times.high)) }
        }
    }
}

fn plain(figure: Option<f64>, emulated: bool) -> Markup {
    let Some(figure) = figure else { return cell(None) };
    html! { td.number { span.time { (time(figure, 3)) } (mark_of(emulated)) } }
}

/// Where the head of the table may be out of sight, emulated times say so themselves.
fn mark_of(emulated: bool) -> Markup {
    html! { @if emulated { small { "emulated" } } }
}

fn cell(text: Option<String>) -> Markup {
    html! {
        td.number {
            @match text {
                Some(text) => (text),
                None => span.none { "–" },
            }
        }
    }
}
