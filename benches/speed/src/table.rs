//! The table of predictions: its rows, its sums next to those of an earlier table, and its form in
//! the documents.

use crate::peers::FLOOR;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The row of a graph. Rotini's times are predicted, as their fields' names say; published times
/// are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) suite: String,
    pub(crate) graph: String,
    /// Number of occurrences in the network
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub(crate) times: u32,
    pub(crate) dispatches: usize,
    /// Time with none of the operands in the caches
    pub(crate) predicted_us: f64,
    /// Time right after an execution of the same graph
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warm_us: Option<f64>,
    /// The unit that bounds the slowest dispatch
    pub(crate) by: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) extrapolated: bool,
    pub(crate) least_us: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published_us: Option<f64>,
    /// Operations of products with a published time
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) operations: Option<f64>,
}

fn once() -> u32 {
    1
}

fn is_once(&times: &u32) -> bool {
    times == 1
}

/// Suites that have no single peer: their published times appear only in the table of peers.
/// hipBLASLt's NN table is from a pre-production device, and MIOpen's database has kernels of any
/// quality.
const WITHOUT_PEER: [&str; 2] = ["hipBLASLt NN", "miopen"];

/// Returns the published time of a row, or `None` if it is not comparable: another layout, no peer,
/// or a time from MIOpen where rotini's is predicted shorter than the shortest that MIOpen's events
/// show.
fn peer(row: &Row) -> Option<f64> {
    let is_alone = WITHOUT_PEER.contains(&row.suite.as_str()) || row.suite.contains("NHWC");
    let is_below = !row.suite.starts_with("hipBLASLt") && row.predicted_us < FLOOR;
    row.published_us.filter(|_| !is_alone && !is_below)
}

/// Factor by which a suite's sum may grow before that counts as a regression.
const SLACK: f64 = 1.03;

/// Rounds to four significant digits, because no prediction is more precise.
pub(crate) fn rounded(microseconds: f64) -> f64 {
    format!("{microseconds:.3e}").parse().unwrap_or(microseconds)
}

pub(crate) fn read(path: &Path) -> Result<Vec<Row>> {
    let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Writes a table as JSON, one row per line.
pub(crate) fn write(rows: &[Row], path: &Path) -> Result<()> {
    let lines: Vec<String> = rows.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Sums over the graphs of a suite.
#[derive(Clone, Debug, Default)]
struct Sums {
    graphs: usize,
    extrapolated: usize,
    predicted: f64,
    least: f64,
    /// Over the graphs with a published time: the sum of our times, the sum of the published times,
    /// the number of graphs, and the sum of the ratios' logarithms
    ours: f64,
    theirs: f64,
    published: usize,
    ratios: f64,
    /// Rates in operations per µs, ours and the published one
    rates: Vec<(f64, f64)>,
    /// Over the graphs that are in the kept table too: the sum of the current times, the sum of the
    /// kept times, and the number of graphs
    now: f64,
    then: f64,
    shared: usize,
    /// Sum of the logarithms of current time / kept time, and the largest of these ratios
    changes: f64,
    largest: f64,
}

/// Returns the suites' sums next to those of a kept table, as Markdown, and whether a suite is
/// worse than allowed.
pub(crate) fn sums(rows: &[Row], kept: &[Row]) -> (String, bool) {
    let before: BTreeMap<(&str, &str), f64> = kept
        .iter()
        .map(|row| ((row.suite.as_str(), row.graph.as_str()), row.predicted_us))
        .collect();
    let mut by_suite: BTreeMap<&str, Sums> = BTreeMap::new();
    for row in rows {
        let sums = by_suite.entry(&row.suite).or_default();
        sums.graphs += 1;
        sums.extrapolated += usize::from(row.extrapolated);
        let times = f64::from(row.times);
        sums.predicted += times * row.predicted_us;
        sums.least += times * row.least_us;
        if let Some(published) = peer(row) {
            sums.ours += times * row.predicted_us;
            sums.theirs += times * published;
            sums.published += 1;
            sums.ratios += (row.predicted_us / published).ln();
            let rates = row
                .operations
                .map(|operations| (operations / row.predicted_us, operations / published));
            sums.rates.extend(rates);
        }
        if let Some(before) = before.get(&(row.suite.as_str(), row.graph.as_str())) {
            sums.now += times * row.predicted_us;
            sums.then += times * before;
            sums.shared += 1;
            sums.changes += (row.predicted_us / before).ln();
            sums.largest = sums.largest.max(row.predicted_us / before);
        }
    }
    let mut text =
        "| suite | graphs | extrapolated | sum | least µs | published, measured | the same, ours | mean ratio | rank |"
            .to_owned();
    let (heading, rule) = if kept.is_empty() {
        ("", "")
    } else {
        (" of what was kept: sum, mean, largest |", "--:|")
    };
    // Writing to a String does not fail.
    let _ = writeln!(text, "{heading}\n|---|--:|--:|--:|--:|--:|--:|--:|--:|{rule}");
    let mut is_worse = false;
    for (suite, sums) in by_suite {
        is_worse |= sums.then > 0.0 && sums.now > SLACK * sums.then;
        let [theirs, ours, ratio] = if sums.published == 0 {
            [String::new(), String::new(), String::new()]
        } else {
            let mean = (sums.ratios / sums.published as f64).exp();
            [
                format!("{:.0} µs", sums.theirs),
                format!("predicted {:.0} µs", sums.ours),
                format!("predicted {mean:.2}"),
            ]
        };
        let rank = if sums.rates.len() < 3 {
            String::new()
        } else {
            format!("predicted {:.2}", rank(&sums.rates))
        };
        let change = if kept.is_empty() {
            String::new()
        } else if sums.then > 0.0 {
            let mean = (sums.changes / sums.shared as f64).exp();
            format!(
                " {:+.1} %, {mean:.2}, {:.2} |",
                100.0 * (sums.now / sums.then - 1.0),
                sums.largest
            )
        } else {
            " |".to_owned()
        };
        let Sums {
            graphs,
            extrapolated,
            predicted,
            least,
            ..
        } = sums;
        let _ = writeln!(
            text,
            "| {suite} | {graphs} | {extrapolated} | predicted {predicted:.0} µs | {least:.0} | {theirs} | {ours} | {ratio} | {rank} |{change}"
        );
    }
    (text, is_worse)
}

/// Returns Spearman's rank correlation.
fn rank(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let below = |pair| {
            let less = pairs.iter().filter(|other| of(other) < of(pair)).count() as f64;
            let same = pairs.iter().filter(|other| of(other) == of(pair)).count() as f64;
            less + (same - 1.0) / 2.0
        };
        pairs.iter().map(below).collect()
    };
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let (ours, theirs) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let spread = |ranks: &[f64]| ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>();
    let cross: f64 = ours.iter().zip(&theirs).map(|(a, b)| (a - mean) * (b - mean)).sum();
    cross / (spread(&ours) * spread(&theirs)).sqrt()
}

const BEGIN: &str = "<!-- scripts/speed writes from here -->\n";
const END: &str = "<!-- to here -->\n";

/// Replaces the table in a document.
pub(crate) fn into_document(document: &str, table: &str) -> Result<String> {
    let places = document.find(BEGIN).zip(document.find(END));
    let Some((begin, end)) = places.filter(|(begin, end)| begin < end) else {
        bail!("the document has no place for the table: {BEGIN}");
    };
    let begin = begin + BEGIN.len();
    Ok(format!(
        "{}\n{table}\n{}",
        document.get(..begin).unwrap_or_default(),
        document.get(end..).unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_graph::{Graph, Op};
    use std::collections::HashMap;

    fn skips_pixels(graph: &Graph) -> bool {
        graph.nodes.iter().any(|node| {
            let Op::ConvFprop(conv) = &node.op else { return false };
            let windows = graph.tensor(conv.w).map_or(&[][..], |w| &w.dims[2..]);
            conv.geometry
                .stride
                .iter()
                .zip(windows)
                .any(|(stride, window)| stride > window)
        })
    }

    /// Lower bounds from published measurements only, without the model: 0.85 of the highest rates
    /// that AMD's kernels sustain on an MI300X (ROCm blogs, "Measuring Max-Achievable FLOPs, Part
    /// 2"), 4.3 TB/s of memory bandwidth (Chips and Cheese), and the shortest launch.
    #[test]
    fn no_kept_prediction_is_faster_than_hardware() {
        let kept = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/kept/all.json"))).unwrap();
        let times: HashMap<_, _> = kept
            .iter()
            .map(|row| ((row.suite.as_str(), row.graph.as_str()), row.predicted_us))
            .collect();
        let mut compared = 0;
        for (suite, workloads) in crate::suites::suites(false).unwrap() {
            for workload in workloads {
                let Some(&time) = times.get(&(suite.as_str(), workload.name.as_str())) else {
                    continue;
                };
                let graph = rotini_wire::decode(&workload.graph).unwrap();
                let summary = rotini_bench::summarise(&graph);
                let rate = match (summary.bits, summary.dtype.as_str()) {
                    (..=8, _) => 0.85 * 1273.0,
                    (_, "bf16") => 0.85 * 708.0,
                    (..=16, _) => 0.85 * 654.0,
                    _ => 163.4,
                };
                // A stride larger than the window skips pixels, so that not all bytes of the image
                // are read.
                let bytes = if skips_pixels(&graph) { 0 } else { summary.bytes };
                let least = (summary.flops.unwrap_or(0.0) / rate / 1e6)
                    .max(bytes as f64 / 4.3e6)
                    .max(2.78);
                // Kept times are rounded to four digits.
                assert!(
                    time > 0.999 * least,
                    "{suite} {}: {time} µs, and {least} are the least",
                    workload.name
                );
                compared += 1;
            }
        }
        assert!(compared > 1000, "{compared}");
    }

    fn row(suite: &str, graph: &str, predicted_us: f64, published_us: Option<f64>) -> Row {
        Row {
            suite: suite.to_owned(),
            graph: graph.to_owned(),
            times: 1,
            dispatches: 1,
            predicted_us,
            warm_us: None,
            by: "memory".to_owned(),
            extrapolated: false,
            least_us: 1.0,
            published_us,
            operations: None,
        }
    }

    #[test]
    fn ranks_agree_or_do_not() {
        assert_eq!(rank(&[(1.0, 10.0), (2.0, 20.0), (3.0, 1000.0)]), 1.0);
        assert_eq!(rank(&[(1.0, 30.0), (2.0, 20.0), (3.0, 10.0)]), -1.0);
        assert_eq!(rank(&[(1.0, 10.0), (3.0, 20.0), (2.0, 30.0)]), 0.5);
    }

    #[test]
    fn three_percent_more_is_worse_and_only_shared_graphs_count() {
        let kept = [row("a", "1", 100.0, None), row("a", "2", 50.0, None)];
        let of = |time| {
            sums(
                &[
                    row("a", "1", time, None),
                    row("a", "3", 1000.0, None),
                    row("b", "1", 9.0, None),
                ],
                &kept,
            )
            .1
        };
        assert!(!of(102.9));
        assert!(of(103.1));
        // Suite b is better, but suite a alone is worse.
        let kept = [row("a", "1", 100.0, None), row("b", "1", 1000.0, None)];
        assert!(sums(&[row("a", "1", 110.0, None), row("b", "1", 10.0, None)], &kept).1);
    }

    #[test]
    fn layers_count_as_often_as_they_come() {
        let mut often = row("a", "1", 50.0, Some(100.0));
        often.times = 3;
        let (text, _) = sums(
            &[often, row("a", "2", 400.0, Some(100.0))],
            &[row("a", "1", 100.0, None)],
        );
        let line = text.lines().last().unwrap();
        assert_eq!(
            line,
            "| a | 2 | 0 | predicted 550 µs | 4 | 400 µs | predicted 550 µs | predicted 1.41 |  | -50.0 %, 0.50, 0.50 |"
        );
    }

    #[test]
    fn figures_of_ours_are_predicted() {
        let (text, _) = sums(
            &[row("a", "1", 50.0, Some(100.0)), row("a", "2", 400.0, Some(100.0))],
            &[],
        );
        let line = text.lines().last().unwrap();
        assert_eq!(
            line,
            "| a | 2 | 0 | predicted 450 µs | 2 | 200 µs | predicted 450 µs | predicted 1.41 |  |"
        );
    }

    #[test]
    fn only_like_is_compared_with_like() {
        let row = |suite, predicted| row(suite, "1", predicted, Some(100.0));
        assert_eq!(peer(&row("resnet50 forward NCHW 32 f16", 50.0)), Some(100.0));
        // Another layout, a time below the events' floor, and a suite without a peer.
        assert_eq!(peer(&row("resnet50 forward NHWC 32 f16", 50.0)), None);
        assert_eq!(peer(&row("resnet50 forward NCHW 32 f16", 12.0)), None);
        assert_eq!(peer(&row("miopen", 50.0)), None);
        assert_eq!(peer(&row("hipBLASLt NT", 5.0)), Some(100.0));
    }

    #[test]
    fn a_document_gets_the_table_in_its_place() {
        let document = format!("before\n{BEGIN}old\n{END}after\n");
        let expected = format!("before\n{BEGIN}\nnew\n\n{END}after\n");
        assert_eq!(into_document(&document, "new\n").unwrap(), expected);
        assert_eq!(into_document(&expected, "new\n").unwrap(), expected);
        assert!(into_document("before\n", "new\n").is_err());
    }
}
