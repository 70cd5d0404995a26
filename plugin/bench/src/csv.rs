//! The file for spreadsheets and scripts: a line for each graph and engine, with units in the
//! columns' names.
//!
//! What was not measured is empty. Times of wrong results are there beside the outcome: who reads
//! the file decides. Rates are empty where times are emulated.

use crate::format;
use crate::rate::{Rate, intensity, rate};
use crate::results::{Clock, Engine, Measurement, Results, Row};
use crate::verdict::{OUTCOMES, comparison, place};
use serde::Serialize;

/// The columns. Their names are the header.
#[derive(Serialize)]
struct Line<'a> {
    started: &'a str,
    device: &'a str,
    /// Where the times of the graphs come from: `CPU`, `GPU` or `emulated`.
    clock: &'a str,
    graph: &'a str,
    summary: &'a str,
    origin: &'a str,
    dtype: &'a str,
    operations: Option<f64>,
    least_bytes: u64,
    operations_per_byte: Option<f64>,
    engine: &'a str,
    plugin: &'a str,
    plugin_version: &'a str,
    settings: String,
    outcome: &'a str,
    reason: Option<&'a str>,
    hot_us: Option<f64>,
    hot_low_us: Option<f64>,
    hot_high_us: Option<f64>,
    hot_samples: usize,
    rotating_us: Option<f64>,
    rotating_low_us: Option<f64>,
    rotating_high_us: Option<f64>,
    rotating_samples: usize,
    tflop_per_s: Option<f64>,
    gb_per_s: Option<f64>,
    roofline_percent: Option<f64>,
    create_cold_us: Option<f64>,
    create_warm_us: Option<f64>,
    first_us: Option<f64>,
    host_p50_us: Option<f64>,
    host_p99_us: Option<f64>,
    workspace_bytes: Option<u64>,
    /// On a GPU: whether executions were timed in captured graphs. If not, times have the host's
    /// calls in them.
    captured: Option<bool>,
    error_tensor: Option<&'a str>,
    error_max_absolute: Option<f64>,
    error_of_tolerance: Option<f64>,
    predicted_us: Option<f64>,
    published_us: Option<f64>,
    published_by: String,
    /// This engine's hot time divided by that of the first.
    times_first_engine: Option<f64>,
    times_first_engine_low: Option<f64>,
    times_first_engine_high: Option<f64>,
}

/// All lines, with a header.
///
/// # Errors
/// If there is no memory for it: the columns are the same in each line, and nothing else can go
/// wrong.
pub fn csv(results: &Results) -> Result<String, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in &results.rows {
        for (index, (engine, measurement)) in results.engines.iter().zip(&row.measurements).enumerate() {
            writer.serialize(line(results, row, index, engine, measurement))?;
        }
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| ::csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn line<'a>(
    results: &'a Results,
    row: &'a Row,
    index: usize,
    engine: &'a Engine,
    measurement: &'a Measurement,
) -> Line<'a> {
    let machine = &results.machine;
    let real = machine.clock != Clock::Emulated;
    let rate = rate(machine, row, measurement).filter(|_| real);
    let compared = comparison(row, index).filter(|_| real);
    let (hot, rotating) = (measurement.hot.as_ref(), measurement.rotating.as_ref());
    let error = measurement.error.as_ref();
    let published = row
        .published
        .iter()
        .min_by(|a, b| a.microseconds.total_cmp(&b.microseconds));
    let settings: Vec<String> = engine
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Line {
        started: &results.started,
        device: &machine.device,
        clock: format::clock(machine.clock),
        graph: &row.graph,
        summary: &row.summary,
        origin: &row.origin,
        dtype: &row.dtype,
        operations: row.flops,
        least_bytes: row.bytes,
        operations_per_byte: intensity(row),
        engine: &engine.label,
        plugin: &engine.plugin,
        plugin_version: &engine.version,
        settings: settings.join(" "),
        outcome: OUTCOMES[place(&measurement.outcome)],
        reason: measurement.outcome.reason(),
        hot_us: hot.map(|times| times.median),
        hot_low_us: hot.map(|times| times.low),
        hot_high_us: hot.map(|times| times.high),
        hot_samples: hot.map_or(0, |times| times.samples.len()),
        rotating_us: rotating.map(|times| times.median),
        rotating_low_us: rotating.map(|times| times.low),
        rotating_high_us: rotating.map(|times| times.high),
        rotating_samples: rotating.map_or(0, |times| times.samples.len()),
        tflop_per_s: rate.and_then(|Rate { flops, .. }| flops).map(|flops| flops / 1e12),
        gb_per_s: rate.map(|Rate { bytes, .. }| bytes / 1e9),
        roofline_percent: rate.and_then(|Rate { share, .. }| share).map(|share| 100.0 * share),
        create_cold_us: measurement.create_cold,
        create_warm_us: measurement.create_warm,
        first_us: measurement.first,
        host_p50_us: measurement.host_p50,
        host_p99_us: measurement.host_p99,
        workspace_bytes: measurement.workspace,
        captured: measurement.captured,
        error_tensor: error.map(|error| error.tensor.as_str()),
        error_max_absolute: error.map(|error| error.max_absolute),
        error_of_tolerance: error.map(|error| error.ratio),
        predicted_us: row.predicted,
        published_us: published.map(|published| published.microseconds),
        published_by: row
            .published
            .iter()
            .map(|published| published.by.as_str())
            .collect::<Vec<_>>()
            .join("; "),
        times_first_engine: compared.map(|compared| compared.ratio),
        times_first_engine_low: compared.map(|compared| compared.low),
        times_first_engine_high: compared.map(|compared| compared.high),
    }
}
