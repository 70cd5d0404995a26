//! The roofline: what each engine reached on each graph, below what the memory and the arithmetic
//! of the device allow.

use super::axis::{Axis, anchor, percent, short};
use super::labels::{Place, Room, width};
use super::marks::{key, mark};
use crate::format::{large, list, significant};
use crate::rate::{intensity, is_positive, peak, rate};
use crate::results::{Peak, Results};
use maud::{Markup, html};

/// What an engine reached on a graph with this arithmetic intensity, in operations per byte.
struct Point {
    engine: usize,
    intensity: f64,
    flops: f64,
    title: String,
}

/// The points of one graph, the fastest first.
struct Graph {
    number: usize,
    points: Vec<Point>,
}

pub(super) fn section(results: &Results) -> Markup {
    let graphs = graphs(results);
    let peaks = peaks(results);
    let bandwidth = results
        .machine
        .memory_bandwidth
        .filter(|bandwidth| is_positive(*bandwidth));
    html! {
        section #roofline {
            h2 { "Roofline" }
            @match bandwidth {
                _ if graphs.is_empty() => p { "No graph was measured whose operations are counted, so there is no roofline." },
                None => p { "The memory bandwidth of this device is not known, so there is no roofline." },
                _ if peaks.is_empty() => p { "The peak rate of this device is not known for the types of these graphs, so there is no roofline." },
                Some(bandwidth) => (plot(results, &graphs, &peaks, bandwidth)),
            }
        }
    }
}

fn graphs(results: &Results) -> Vec<Graph> {
    let mut graphs = Vec::new();
    for (index, row) in results.rows.iter().enumerate() {
        let Some(intensity) = intensity(row) else { continue };
        let mut points = Vec::new();
        for (engine, measurement) in row.measurements.iter().enumerate() {
            let Some(rate) = rate(&results.machine, row, measurement) else {
                continue;
            };
            let Some(flops) = rate.flops.filter(|flops| is_positive(*flops)) else {
                continue;
            };
            let label = results.engines.get(engine).map_or("", |engine| engine.label.as_str());
            let mut title = format!("{} {}, {label}: {}FLOP/s", index + 1, row.graph, large(flops, 3));
            title += &format!(" at {} operations per byte", significant(intensity, 3));
            if let Some(share) = rate.share {
                title += &format!(", {} % of the roofline", significant(100.0 * share, 2));
            }
            points.push(Point {
                engine,
                intensity,
                flops,
                title,
            });
        }
        points.sort_by(|a, b| b.flops.total_cmp(&a.flops));
        if !points.is_empty() {
            graphs.push(Graph {
                number: index + 1,
                points,
            });
        }
    }
    graphs
}

/// The peaks of the types that the graphs have, the highest first.
fn peaks(results: &Results) -> Vec<&Peak> {
    let mut dtypes: Vec<&str> = results.rows.iter().map(|row| row.dtype.as_str()).collect();
    dtypes.sort_unstable();
    dtypes.dedup();
    let mut peaks: Vec<&Peak> = dtypes
        .into_iter()
        .filter_map(|dtype| peak(&results.machine, dtype))
        .collect();
    peaks.sort_by(|a, b| b.flops.total_cmp(&a.flops));
    peaks
}

fn plot(results: &Results, graphs: &[Graph], peaks: &[&Peak], bandwidth: f64) -> Markup {
    let points = || graphs.iter().flat_map(|graph| &graph.points);
    let ridges = peaks.iter().map(|peak| peak.flops / bandwidth);
    let across = Axis::of(
        points()
            .map(|point| point.intensity)
            .chain(ridges.map(|ridge| ridge * 1.5)),
    );
    let upwards = Axis::of(
        points()
            .map(|point| point.flops)
            .chain(peaks.iter().map(|peak| peak.flops * 1.3)),
    );
    let (Some(across), Some(upwards)) = (across, upwards) else {
        return html! {};
    };
    let y = |flops: f64| percent(100.0 - upwards.at(flops));
    let x = |intensity: f64| percent(across.at(intensity));
    let top = peaks.first().map_or(upwards.high(), |peak| peak.flops);
    // The slope enters the plot from the left or from below.
    let from = across.low().max(upwards.low() / bandwidth);
    let types: Vec<String> = peaks
        .iter()
        .map(|peak| format!("{} for {} ({})", flops(peak.flops), peak.dtype, peak.source))
        .collect();
    let roof = format!("{}B/s of memory; {}", large(bandwidth, 3), list(&types));
    let names = names(graphs, peaks, bandwidth, &across, &upwards);
    html! {
        p { "Operations per second over operations per byte, both logarithmic. Numbers are those of the graphs in the table. The roof: " (roof) "." }
        p.legend { @for (index, engine) in results.engines.iter().enumerate() { span.engine { (key(index)) (engine.label) } } }
        div.plot {
            svg.area role="img" aria-label={ "Roofline of " (results.machine.device) " with " (points().count()) " marks. The roof: " (roof) } {
                rect.frame x="0" y="0" width="100%" height="100%" {}
                @for tick in across.ticks(7) {
                    line.grid x1=(x(tick)) x2=(x(tick)) y1="0" y2="100%" {}
                    text x=(x(tick)) y="100%" dy="16" text-anchor=(anchor(across.at(tick))) { (short(tick)) }
                }
                @for tick in upwards.ticks(7) {
                    line.grid x1="0" x2="100%" y1=(y(tick)) y2=(y(tick)) {}
                    text x="0" y=(y(tick)) dx="-6" dy="4" text-anchor="end" { (large(tick, 1)) }
                }
                text.word x="100%" y="100%" dy="34" text-anchor="end" { "operations per byte →" }
                text.word x="0" y="0" dx="4" dy="-8" { "FLOP/s" }
                line.roof x1=(x(from)) y1=(y(from * bandwidth)) x2=(x(top / bandwidth)) y2=(y(top)) {
                    title { "memory: " (large(bandwidth, 3)) "B/s" }
                }
                @for peak in peaks {
                    line.roof x1=(x(peak.flops / bandwidth)) y1=(y(peak.flops)) x2="100%" y2=(y(peak.flops)) {
                        title { (peak.dtype) ": " (flops(peak.flops)) ", " (peak.source) }
                    }
                }
                // Where there is no room for it, a roof's name lies behind the marks.
                @for (class, name, place) in names.iter().filter(|(class, ..)| *class == ROOF) { (text(class, name, place)) }
                @for graph in graphs {
                    @if let (Some(high), Some(low)) = (graph.points.first(), graph.points.last()) {
                        line.join x1=(x(high.intensity)) x2=(x(high.intensity)) y1=(y(high.flops)) y2=(y(low.flops)) {}
                    }
                }
                @for point in points() {
                    (mark(point.engine, across.at(point.intensity), &y(point.flops), false, &point.title))
                }
                @for (class, name, place) in names.iter().filter(|(class, ..)| *class != ROOF) { (text(class, name, place)) }
            }
        }
        @let without: Vec<String> = results.rows.iter().enumerate().filter(|(_, row)| intensity(row).is_none())
            .map(|(index, _)| (index + 1).to_string()).collect();
        @if !without.is_empty() { p.note { "Without a count of operations, and so not here: " (list(&without)) "." } }
    }
}

/// The heights of the roofs with their names. Types with the same peak share one.
fn roofs(peaks: &[&Peak]) -> Vec<(f64, String)> {
    peaks
        .chunk_by(|a, b| flops(a.flops) == flops(b.flops))
        .filter_map(|same| {
            let types: Vec<String> = same.iter().map(|peak| peak.dtype.clone()).collect();
            let first = same.first()?;
            Some((first.flops, format!("{} {}", types.join(", "), flops(first.flops))))
        })
        .collect()
}

fn flops(value: f64) -> String {
    format!("{}FLOP/s", large(value, 3))
}

/// The class of a roof's name.
const ROOF: &str = "roof";

/// From a line to the baseline of a text above and below it, in pixels.
const ABOVE: f64 = -6.0;
const BELOW: f64 = 15.0;

fn text(class: &str, name: &str, place: &Place) -> Markup {
    html! {
        text class=(class) x=(percent(place.x)) y=(percent(place.y)) dx=(place.dx) dy=(place.dy) text-anchor="middle" { (name) }
    }
}

/// The names in the plot with their classes: of roofs, and the numbers of graphs. A graph in a
/// crowd goes without: its marks have titles.
fn names(
    graphs: &[Graph],
    peaks: &[&Peak],
    bandwidth: f64,
    across: &Axis,
    upwards: &Axis,
) -> Vec<(&'static str, String, Place)> {
    let spot = |point: &Point| (across.at(point.intensity), 100.0 - upwards.at(point.flops));
    let mut room = Room::beside(graphs.iter().flat_map(|graph| &graph.points).map(spot));
    let mut names = Vec::new();
    for (flops, name) in roofs(peaks) {
        // At the right edge or where the roof begins, above the line or below it.
        let (y, half) = (100.0 - upwards.at(flops), width(&name) / 2.0);
        let right = Place {
            x: 100.0,
            y,
            dx: -half,
            dy: ABOVE,
        };
        let left = Place {
            x: across.at(flops / bandwidth),
            dx: half + 6.0,
            ..right
        };
        let places = [right, left, Place { dy: BELOW, ..right }, Place { dy: BELOW, ..left }];
        let place = room.take(&name, &places).unwrap_or(right);
        names.push((ROOF, name, place));
    }
    for graph in graphs {
        let (Some(high), Some(low)) = (graph.points.first(), graph.points.last()) else {
            continue;
        };
        let places = [
            (high, 0.0, -9.0),
            (low, 0.0, 18.0),
            (high, 14.0, 4.0),
            (high, -14.0, 4.0),
            (low, 14.0, 4.0),
            (low, -14.0, 4.0),
        ];
        let places = places.map(|(point, dx, dy)| {
            let (x, y) = spot(point);
            Place { x, y, dx, dy }
        });
        let number = graph.number.to_string();
        if let Some(place) = room.take(&number, &places) {
            names.push(("no", number, place));
        }
    }
    names
}
