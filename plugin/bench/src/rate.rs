//! Operations and bytes per second, and the share of what the device can do.
//!
//! All use the time with rotating buffers where there is one: with the same buffers each time, a
//! small graph runs from the cache, and the memory's bandwidth says nothing about it.

use crate::results::{Machine, Measurement, Peak, Row, Times};

/// The rates of an engine on a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Operations per second, where they are counted.
    pub flops: Option<f64>,
    /// Bytes per second: the least that the graph must move, whatever the engine moved.
    pub bytes: f64,
    /// The share of the device's roofline for this graph; 1 is the roofline.
    pub share: Option<f64>,
}

/// Returns the time that rates are computed from: rotating, else hot. `None` for a wrong result.
#[must_use]
pub fn time(measurement: &Measurement) -> Option<&Times> {
    let times = measurement.rotating.as_ref().or(measurement.hot.as_ref());
    times.filter(|times| measurement.outcome.times_count() && is_positive(times.median))
}

/// Returns the rates of an engine. `None` where nothing was measured, or the results are wrong.
#[must_use]
pub fn rate(machine: &Machine, row: &Row, measurement: &Measurement) -> Option<Rate> {
    let seconds = time(measurement)?.median * 1e-6;
    Some(Rate {
        flops: row.flops.map(|flops| flops / seconds),
        bytes: as_float(row.bytes) / seconds,
        share: least_seconds(machine, row).map(|least| least / seconds),
    })
}

/// Operations per byte, where they are counted.
#[must_use]
pub fn intensity(row: &Row) -> Option<f64> {
    let intensity = row.flops? / as_float(row.bytes);
    is_positive(intensity).then_some(intensity)
}

/// The highest known rate of a type.
#[must_use]
pub fn peak<'a>(machine: &'a Machine, dtype: &str) -> Option<&'a Peak> {
    let known = machine
        .peaks
        .iter()
        .filter(|peak| peak.dtype == dtype && is_positive(peak.flops));
    known.max_by(|a, b| a.flops.total_cmp(&b.flops))
}

/// Returns the least time that the device needs for a graph: the longer one of memory traffic and
/// arithmetic.
fn least_seconds(machine: &Machine, row: &Row) -> Option<f64> {
    let moving = as_float(row.bytes) / machine.memory_bandwidth.filter(|bandwidth| is_positive(*bandwidth))?;
    let computing = match row.flops {
        Some(flops) => flops / peak(machine, &row.dtype)?.flops,
        None => 0.0,
    };
    let least = moving.max(computing);
    is_positive(least).then_some(least)
}

/// Returns true if a figure is positive and finite.
#[must_use]
pub fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[expect(clippy::cast_precision_loss, reason = "sizes below 2^53 bytes are exact")]
fn as_float(bytes: u64) -> f64 {
    bytes as f64
}
