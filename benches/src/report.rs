//! Results, as a Markdown table and as JSON.

use crate::sampling::Samples;
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A limit that a measurement must keep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    /// The plugin's time is at most this.
    Most(Duration),
    /// The plugin's time exceeds the peer's by at most this.
    Over(Duration),
    /// The plugin's time is at most this multiple of the peer's.
    Times(f64),
}

impl Bar {
    fn is_met(self, ours: Duration, peer: Duration) -> bool {
        match self {
            Bar::Most(limit) => ours <= limit,
            Bar::Over(limit) => ours <= peer + limit,
            Bar::Times(limit) => ratio(ours, peer) <= limit,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Bar::Most(limit) => write!(f, "≤ {limit:?}"),
            Bar::Over(limit) => write!(f, "≤ peer + {limit:?}"),
            Bar::Times(limit) => write!(f, "≤ {limit} ×"),
        }
    }
}

/// Times of one call in µs.
#[derive(Debug, Serialize)]
struct Timing {
    median: f64,
    lower_quartile: f64,
    upper_quartile: f64,
}

impl From<&Samples> for Timing {
    fn from(samples: &Samples) -> Self {
        let at = |share| samples.quantile(share).as_secs_f64() * 1e6;
        Timing {
            median: at(0.5),
            lower_quartile: at(0.25),
            upper_quartile: at(0.75),
        }
    }
}

/// One measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    what: String,
    peer: &'static str,
    ours_us: Timing,
    peer_us: Timing,
    ratio: f64,
    samples: usize,
    /// Absent if the row has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    bar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
    #[serde(skip)]
    medians: (Duration, Duration),
}

impl Row {
    /// Returns the row for the samples of `what` and of its `peer`. The bar is checked against the
    /// medians.
    pub(crate) fn new(
        what: impl Into<String>,
        peer: &'static str,
        (ours, theirs): &(Samples, Samples),
        bar: Option<Bar>,
    ) -> Self {
        let medians = (ours.quantile(0.5), theirs.quantile(0.5));
        Row {
            what: what.into(),
            peer,
            ours_us: ours.into(),
            peer_us: theirs.into(),
            ratio: ratio(medians.0, medians.1),
            samples: ours.count(),
            bar: bar.map(|bar| bar.to_string()),
            met: bar.map(|bar| bar.is_met(medians.0, medians.1)),
            medians,
        }
    }
}

/// All measurements of a run, and the plugin and machine that they are from.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The measured library.
    plugin: PathBuf,
    machine: String,
    /// The load average of the minute before the run. The higher above 0, the more the times are
    /// those of a busy machine.
    load_average: Option<f64>,
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// Returns an empty report for a plugin and this machine.
    pub(crate) fn new(plugin: PathBuf) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = cpuinfo
                .lines()
                .find(|line| line.split(':').next().map(str::trim_end) == Some(name));
            line.and_then(|line| line.split(':').nth(1))
                .map_or("unknown", str::trim)
        };
        let (name, family, model) = (field("model name"), field("cpu family"), field("model"));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Report {
            plugin,
            machine: format!("{name} (family {family}, model {model}), {threads} threads"),
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok()),
            rows: Vec::new(),
        }
    }

    /// Returns true if every bar is met.
    pub(crate) fn all_met(&self) -> bool {
        self.rows.iter().all(|row| row.met != Some(false))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["what", "ours", "peer", "its time", "ratio", "samples", "bar", "ok?"]);
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        for row in &self.rows {
            table.add_row([
                Cell::new(&row.what),
                right(time(row.medians.0)),
                Cell::new(row.peer),
                right(time(row.medians.1)),
                right(format!("{:.2}", row.ratio)),
                right(row.samples.to_string()),
                Cell::new(row.bar.as_deref().unwrap_or_default()),
                Cell::new(match row.met {
                    Some(true) => "yes",
                    Some(false) => "NO",
                    None => "",
                }),
            ]);
        }
        writeln!(f, "{}", self.plugin.display())?;
        write!(f, "{}", self.machine)?;
        if let Some(load) = self.load_average {
            write!(f, "; load average before the run: {load}")?;
        }
        write!(f, "; medians\n\n{table}")
    }
}

fn ratio(ours: Duration, peer: Duration) -> f64 {
    ours.as_secs_f64() / peer.as_secs_f64()
}

/// Formats a duration in a unit that keeps it short.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        _ if seconds < 1e-3 => format!("{:.2} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}
