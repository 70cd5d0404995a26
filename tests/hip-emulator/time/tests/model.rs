//! Compares the model with kernels that others measured on an MI300X, and fails if an error exceeds
//! its bar.
//!
//! Tuned kernels are divided in two halves by shape family. Each half is predicted with the
//! parameters fitted on the other one. Default configurations were never used for fitting; the
//! table has only matrix products of these, because with padding the IREE version of the
//! measurements, which is not named, made another kernel than 3.8.0 makes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a table that cannot be read fails the test; figures are printed"
)]

use std::collections::BTreeMap;

use rotini_time::{Caches, Half, MI300X, Parameters, Predicted, Record, predict};

const TABLE: &str = include_str!("../data/iree-mi300x-conv.txt");
const CANDIDATES: &str = include_str!("../data/candidates.txt");
const TRITON_GEMM: &str = include_str!("../data/triton-gemm.txt");
const TRITON_ROWS: &str = include_str!("../data/triton-rows.txt");
const TRITON_ATTENTION: &str = include_str!("../data/triton-attention.txt");

struct Kernel {
    row: u32,
    tuned: bool,
    half: Half,
    operations: f64,
    measured: f64,
    record: Record,
}

impl Kernel {
    fn predicted(&self, parameters: &Parameters) -> f64 {
        predict(&self.record, &MI300X, parameters).warm.microseconds()
    }
}

fn table() -> Vec<Kernel> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let kernel = |line: &str| {
        let fields: Vec<&str> = line.splitn(6, ' ').collect();
        let family: u32 = fields[2].parse().unwrap();
        Kernel {
            row: fields[0].parse().unwrap(),
            tuned: fields[1] == "tuned",
            half: if family.is_multiple_of(2) {
                Half::Odd
            } else {
                Half::Even
            },
            operations: fields[3].parse().unwrap(),
            measured: fields[4].parse().unwrap(),
            record: serde_json::from_str(fields[5]).unwrap(),
        }
    };
    lines.map(kernel).collect()
}

const fn other(half: Half) -> Half {
    match half {
        Half::Odd => Half::Even,
        Half::Even => Half::Odd,
    }
}

/// Returns the mean of |predicted / measured - 1| in percent, and the rank correlation of the
/// rates.
fn judge<'a>(kernels: impl Iterator<Item = (&'a Kernel, f64)>) -> (f64, f64) {
    let all: Vec<_> = kernels.collect();
    let error = |(kernel, predicted): &(&Kernel, f64)| (predicted / kernel.measured - 1.0).abs();
    let mean = 100.0 * all.iter().map(error).sum::<f64>() / all.len() as f64;
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let below = |value: f64| {
            let less = values.iter().filter(|&&other| other < value).count() as f64;
            let same = values.iter().filter(|&&other| other == value).count() as f64;
            less + same / 2.0
        };
        values.iter().map(|&value| below(value)).collect()
    };
    let measured = ranks(all.iter().map(|(k, _)| k.operations / k.measured).collect());
    let predicted = ranks(all.iter().map(|(k, p)| k.operations / p).collect());
    (mean, correlation(&measured, &predicted))
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let cross: f64 = a.iter().zip(b).map(|(x, y)| (x - ma) * (y - mb)).sum();
    let square = |x: &[f64], m: f64| x.iter().map(|v| (v - m) * (v - m)).sum::<f64>();
    cross / (square(a, ma) * square(b, mb)).sqrt()
}

/// Bars: mean error at most 10 %, rank correlation at least 0.95, for each half as well as for
/// both.
#[test]
fn held_out_families_are_predicted() {
    let all = table();
    let tuned = || all.iter().filter(|kernel| kernel.tuned);
    let predicted = |kernel: &Kernel| kernel.predicted(&Parameters::fitted_on(other(kernel.half)));
    for half in [Half::Odd, Half::Even] {
        let (error, rank) = judge(tuned().filter(|k| k.half == half).map(|k| (k, predicted(k))));
        println!("held out, {half:?} half: predicted with a mean error of {error:.1} %, rank {rank:.3}");
        assert!(error <= 10.0 && rank >= 0.95, "{half:?}: {error} %, {rank}");
    }
    let (error, rank) = judge(tuned().map(|kernel| (kernel, predicted(kernel))));
    println!("held out, both halves: predicted with a mean error of {error:.1} %, rank {rank:.3}");
    assert!(error <= 10.0, "{error} %");
    assert!(rank >= 0.95, "{rank}");
}

/// Bars: mean error at most 13 %, rank correlation at least 0.95; 14 % for kernels inside of the
/// model's domain.
#[test]
fn default_configurations_are_predicted() {
    let all = table();
    let parameters = Parameters::default();
    let default = || all.iter().filter(|kernel| !kernel.tuned);
    let (error, rank) = judge(default().map(|kernel| (kernel, kernel.predicted(&parameters))));
    println!("default configurations: predicted with a mean error of {error:.1} %, rank {rank:.3}");
    assert!(error <= 13.0, "{error} %");
    assert!(rank >= 0.95, "{rank}");
    let on_matrix_units = default().filter(|k| predict(&k.record, &MI300X, &parameters).outside.is_empty());
    let (error, rank) = judge(on_matrix_units.map(|kernel| (kernel, kernel.predicted(&parameters))));
    println!("inside of the domain: predicted with a mean error of {error:.1} %, rank {rank:.3}");
    assert!(error <= 14.0, "{error} %");
}

/// For the tuned and the default kernel of one shape, the model has to predict which is faster, in
/// nine of ten pairs.
#[test]
fn the_faster_of_two_is_chosen() {
    let all = table();
    let parameters = Parameters::default();
    let mut right = 0;
    let mut pairs = 0;
    for tuned in all.iter().filter(|kernel| kernel.tuned) {
        let Some(default) = all.iter().find(|other| !other.tuned && other.row == tuned.row) else {
            continue;
        };
        pairs += 1;
        let measured = tuned.measured < default.measured;
        right += u32::from(measured == (tuned.predicted(&parameters) < default.predicted(&parameters)));
    }
    println!("{right} of {pairs} pairs are predicted in the right order");
    assert!(pairs >= 30 && 10 * right >= 9 * pairs, "{right} of {pairs}");
}

/// Bar: in 18 of 20 shapes with 12 candidates each, the tuned candidate is among the predicted best
/// three. The candidates are the configurations that were tuned for other products of the table.
/// Nobody measured them for these shapes, but the tuned one was the fastest of all that its tuners
/// tried. Of products that differ only in their two to four rows, the one that was measured fastest
/// represents all: for three of the others it is known that its configuration is better than
/// theirs, which the model predicts too.
#[test]
fn the_tuned_candidate_is_among_the_best_three() {
    let measured = table();
    let parameters = Parameters::default();
    let mut shapes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for line in CANDIDATES.lines().filter(|line| !line.starts_with('#')) {
        let (row, record) = line.split_once(' ').unwrap();
        let record: Record = serde_json::from_str(record).unwrap();
        let time = predict(&record, &MI300X, &parameters).warm.microseconds();
        shapes.entry(row.parse().unwrap()).or_default().push(time);
    }
    let mut found = 0;
    for (row, others) in &shapes {
        let tuned = measured
            .iter()
            .find(|kernel| kernel.tuned && kernel.row == *row)
            .unwrap();
        let time = tuned.predicted(&parameters);
        let place = 1 + others.iter().filter(|&&other| other < time).count();
        let best = others.iter().copied().fold(time, f64::min);
        println!(
            "shape {row}: the tuned one is predicted {place} of {}, {:.2} × the best",
            others.len() + 1,
            time / best
        );
        assert_eq!(others.len(), 11, "{row}");
        found += u32::from(place <= 3);
    }
    println!(
        "{found} of {} tuned candidates are among the predicted best three",
        shapes.len()
    );
    assert_eq!(shapes.len(), 20);
    assert!(found >= 18, "{found}");
}

/// Nine of ten kernels of the table are within the interval of their prediction.
#[test]
fn intervals_hold_what_was_measured() {
    let all = table();
    let inside = |kernel: &&Kernel| {
        let [from, to] = predict(&kernel.record, &MI300X, &Parameters::default()).interval;
        (from.microseconds()..to.microseconds()).contains(&kernel.measured)
    };
    let share = all.iter().filter(inside).count() as f64 / all.len() as f64;
    println!("{:.0} % of the kernels lie in their predicted intervals", 100.0 * share);
    assert!(share >= 0.9, "{share}");
}

/// The parameters are those of the fit: moving any of them by a tenth does not fit its half much
/// better.
#[test]
fn parameters_are_the_fit_of_their_half() {
    let all = table();
    for half in [Half::Odd, Half::Even] {
        let fitted = Parameters::fitted_on(half);
        let cost = |parameters: &Parameters| {
            let kernels = all.iter().filter(|kernel| kernel.tuned && kernel.half == half);
            kernels
                .map(|kernel| (kernel.predicted(parameters) / kernel.measured).ln().abs())
                .sum::<f64>()
        };
        let best = cost(&fitted);
        for (name, change) in [
            ("near", (|p, f| p.near *= f) as fn(&mut Parameters, f64)),
            ("far", |p, f| p.far *= f),
            ("bandwidth", |p, f| p.bandwidth *= f),
            ("slowdown", |p, f| p.slowdown *= f),
            ("floor", |p, f| p.floor *= f),
            ("store", |p, f| p.store *= f),
        ] {
            for factor in [0.9, 1.1] {
                let mut moved = fitted;
                change(&mut moved, factor);
                let moved = cost(&moved);
                assert!(moved > 0.93 * best, "{half:?} {name} × {factor}: {moved} < {best}");
            }
        }
    }
}

/// A published time, and the predictions of a Triton kernel for each configuration that its
/// autotuner may have chosen.
struct Published {
    name: String,
    /// Number of operations, or of bytes
    count: f64,
    /// Measured time in µs
    measured: f64,
    predicted: Vec<Predictions>,
}

/// The predicted time of a configuration.
struct Predictions {
    configuration: String,
    microseconds: f64,
}

impl Published {
    /// Returns the fastest configuration, which is the autotuner's choice if the model is right.
    fn best(&self) -> &Predictions {
        let candidates = self.predicted.iter();
        candidates
            .min_by(|a, b| a.microseconds.total_cmp(&b.microseconds))
            .unwrap()
    }
}

/// Returns the rows whose lines begin with `name`, from a file that `scripts/ground-truth-triton`
/// wrote.
fn published(text: &str, name: &str, caches: Caches) -> Vec<Published> {
    let mut rows: Vec<(Published, Vec<Vec<Predicted>>)> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && line.starts_with(name))
    {
        let fields: Vec<&str> = line.splitn(6, ' ').collect();
        let record: Record = serde_json::from_str(fields[5]).unwrap();
        let prediction = predict(&record, &MI300X, &Parameters::default());
        let time = match caches {
            Caches::Cold => prediction.time,
            Caches::Warm => prediction.warm,
        };
        if rows.last().is_none_or(|(row, _)| row.name != fields[0]) {
            let row = Published {
                name: fields[0].to_owned(),
                count: fields[2].parse().unwrap(),
                measured: fields[3].parse().unwrap(),
                predicted: Vec::new(),
            };
            rows.push((row, Vec::new()));
        }
        let (row, launches) = rows.last_mut().unwrap();
        if fields[4] == "0" {
            row.predicted.push(Predictions {
                configuration: fields[1].to_owned(),
                microseconds: 0.0,
            });
            launches.push(Vec::new());
        }
        launches.last_mut().unwrap().push(time);
    }
    let finish = |(mut row, launches): (Published, Vec<Vec<Predicted>>)| {
        for (one, launches) in row.predicted.iter_mut().zip(launches) {
            one.microseconds = Predicted::in_sequence(launches.into_iter()).microseconds();
        }
        row
    };
    rows.into_iter().map(finish).collect()
}

/// The errors of some predictions in percent.
struct Errors {
    mean: f64,
    largest: f64,
}

/// Returns the errors of the predicted fastest configurations, and prints them.
fn errors<'a>(what: &str, rows: impl Iterator<Item = &'a Published>) -> Errors {
    let mut all = Vec::new();
    for row in rows {
        let best = row.best();
        let error = 100.0 * (best.microseconds / row.measured - 1.0);
        let rate = |time: f64| row.count / time / 1e6;
        println!(
            "{}: measured {:.1} µs ({:.3} T/s), predicted {:.1} µs ({:.3}) with {}, {error:+.0} %",
            row.name,
            row.measured,
            rate(row.measured),
            best.microseconds,
            rate(best.microseconds),
            best.configuration,
        );
        all.push(error);
    }
    let count = all.len() as f64;
    let mean = all.iter().map(|error| error.abs()).sum::<f64>() / count;
    let largest = all.iter().map(|error| error.abs()).fold(0.0, f64::max);
    let bias = all.iter().sum::<f64>() / count;
    println!("{count} {what}: mean error {mean:.1} %, largest {largest:.1} %, bias {bias:+.1} %");
    Errors { mean, largest }
}

/// Returns the host's time per launch of #2891's kernels in µs, derived from its products of
/// 1024^3, whose time is determined by the host (39.4 TFLOP/s, and 33.5 with a bias).
fn host(name: &str) -> f64 {
    let rate = match name {
        _ if name.starts_with("2891/mm") => 39.4,
        _ if name.starts_with("2891/addmm") => 33.5,
        _ => return 0.0,
    };
    2.0 * 1024_f64.powi(3) / rate / 1e6
}

/// Large products in Triton (TLX). Bars: mean error at most 12 %, none above 25 %; 8.6 and 23 % are
/// reached. For three rows the configuration is not published, and no autotuner chose it. Launches
/// in sequence take no less than the host's time each.
#[test]
fn large_products_of_triton_are_predicted() {
    let mut rows = published(TRITON_GEMM, "", Caches::Warm);
    for row in &mut rows {
        let host = host(&row.name);
        for one in &mut row.predicted {
            one.microseconds = one.microseconds.max(host);
        }
    }
    let all = errors("large products", rows.iter());
    let is_known = |row: &&Published| !row.name.starts_with("3481") || row.predicted.len() == 1;
    let known = errors("of a known choice", rows.iter().filter(is_known));
    assert!(rows.len() >= 15);
    assert!(
        all.mean <= 12.0 && all.largest <= 25.0,
        "{} %, {} %",
        all.mean,
        all.largest
    );
    assert!(
        known.mean <= 12.0 && known.largest <= 25.0,
        "{} %, {} %",
        known.mean,
        known.largest
    );
}

/// A fact published by the kernel's authors: with tiles of 64x64, 4096^3 reaches 0.54 of aten's
/// rate (facebookexperimental/triton #2891). The prediction is a sixth too fast: the model
/// overestimates the bandwidth of the second-level caches for kernels that they limit.
#[test]
fn tiles_of_64_are_too_fast_at_4096() {
    let rows = published(TRITON_GEMM, "2891/mm/bf16/4096x4096x4096 64x64x64", Caches::Warm);
    let row = &rows[0];
    let small = row.best();
    let measured = row.count / (0.54 * 612.3) / 1e6;
    let error = 100.0 * (small.microseconds / measured - 1.0);
    println!(
        "tiles of 64x64 at 4096: measured {measured:.0} µs, predicted {:.0}, {error:+.0} %",
        small.microseconds
    );
    assert!(error.abs() <= 18.0, "{error} %");
}

/// Bar: mean error at most 20 % on 30 rows; 15.3 % is reached. The code of the measured norms, sums
/// and rotary embedding is not known; for BabelStream and RMSNorm it is the code that is predicted.
#[test]
fn rows_and_reductions_are_predicted() {
    let rows = published(TRITON_ROWS, "", Caches::Cold);
    let all = errors("rows", rows.iter());
    assert!(rows.len() >= 30);
    assert!(all.mean <= 20.0, "{} %", all.mean);
    let is_stream = |row: &&Published| row.name.starts_with("azure");
    let streams = errors("streams", rows.iter().filter(is_stream));
    assert!(streams.mean <= 8.0, "{} %", streams.mean);
}

/// Causal attention in Triton. Bar: mean error at most 20 %; 15 % is reached. The times were
/// measured between events around one call on an idle device, so all of them include the host's
/// time until the launch, which is not published. If it is assumed to be that of another autotuned
/// Triton kernel ([`host`]), the error is 11 %. All predictions are too fast, those of 1024 and
/// 2048 rows with 64 columns by 20 to 42 %.
#[test]
fn attention_of_triton_is_predicted() {
    let mut rows = published(TRITON_ATTENTION, "triton", Caches::Warm);
    let whole = errors("of causal attention with the host's part", rows.iter());
    for row in &mut rows {
        row.measured -= host("2891/mm");
    }
    let all = errors("of causal attention", rows.iter());
    assert_eq!(rows.len(), 10);
    assert!(whole.mean <= 16.0, "{} %", whole.mean);
    assert!(all.mean <= 13.0 && all.largest <= 35.0, "{} %", all.mean);
}

/// The ratio of the times of causal and full attention: predicted for a Triton kernel with AITER's
/// tiles and pairs of tiles, measured for AITER's assembly. Bar: within 15 % where workgroups fill
/// the compute units once or twice, which 11 of 12 shapes meet. The other one is 2048 rows of one
/// batch: causal attention has 128 workgroups there, so the clock does not fall, and AITER's full
/// attention, which is faster than this project's, is slowed more by the power limit.
#[test]
fn causal_attention_takes_its_share_of_full() {
    let rows = published(TRITON_ATTENTION, "aiter", Caches::Warm);
    let mut all = Vec::new();
    for full in rows.iter().filter(|row| row.name.ends_with("/full")) {
        let shape = full.name.strip_suffix("/full").unwrap();
        let causal = rows.iter().find(|row| row.name == format!("{shape}/causal")).unwrap();
        let measured = causal.measured / full.measured;
        let predicted = causal.best().microseconds / full.best().microseconds;
        let error = 100.0 * (predicted / measured - 1.0);
        println!("{shape}: {measured:.2} of full, predicted {predicted:.2}, {error:+.0} %");
        all.push(error.abs());
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let within = all.iter().filter(|&&error| error <= 15.0).count();
    println!(
        "causal to full: mean error {mean:.1} %, {within} of {} within 15 %",
        all.len()
    );
    assert_eq!(all.len(), 12);
    assert!(mean <= 11.0 && within >= 11, "{mean} %, {within}");
}
