//! Holds the model against kernels that others measured on an MI300X, and fails above the bars.
//!
//! Tuned kernels are in two halves by shape family. Each half is predicted with the parameters that were fitted on the other.
//! Default configurations were never fitted. Of these the table has products only: with padding, IREE of the day made another
//! kernel than 3.8.0 makes, which nobody named.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a table that cannot be read fails the test; figures are printed"
)]

use std::collections::BTreeMap;

use rotini_time::{Half, MI300X, Parameters, Record, predict};

const TABLE: &str = include_str!("../data/iree-mi300x-conv.txt");
const CANDIDATES: &str = include_str!("../data/candidates.txt");

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

/// Mean of |predicted / measured - 1| in percent, and the rank correlation of operations a second.
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

/// Bars: mean error at most 10 %, rank at least 0.95; here for each half by itself as well.
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

/// Bar: mean error at most 13 %.
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

/// Which of two kernels of one shape is faster: the tuned one, by measurement.
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
    assert!(pairs >= 30 && 10 * right >= 8 * pairs, "{right} of {pairs}");
}

/// Bar: of 20 shapes with 12 candidates each, the tuned one is among the best three of 18. The candidates are the configurations that were
/// tuned for other products of the table. Nobody measured them here, but the tuned one was the fastest of all that its tuners tried. Of
/// products that differ in their two to four rows alone, the one that was measured fastest stands for all: for three of the others it is
/// known that its configuration is better than theirs, which the model says too.
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

/// Nine of ten kernels in the domain lie in the interval of their prediction.
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

/// The parameters are what the fit says: none can be moved by a tenth and fit its half much better.
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
