//! Fits the parameters of the model on each half of the shape families:
//! `cargo run --release -p rotini-time --example fit -- TABLE`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for who changes the model"
)]

use rotini_time::{Half, MI300X, Parameters, Record, predict};

struct Kernel {
    half: Half,
    measured: f64,
    record: Record,
}

/// Returns the mean of |ln(predicted / measured)| in percent.
fn cost(kernels: &[&Kernel], parameters: &Parameters) -> f64 {
    let error = |kernel: &&Kernel| {
        let predicted = predict(&kernel.record, &MI300X, parameters).warm.microseconds();
        (predicted / kernel.measured).ln().abs()
    };
    100.0 * kernels.iter().map(error).sum::<f64>() / kernels.len() as f64
}

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let mut kernels = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.splitn(6, ' ').collect();
        let family: u32 = fields[2].parse().unwrap();
        if fields[1] == "tuned" {
            kernels.push(Kernel {
                half: if family.is_multiple_of(2) {
                    Half::Odd
                } else {
                    Half::Even
                },
                measured: fields[4].parse().unwrap(),
                record: serde_json::from_str(fields[5]).unwrap(),
            });
        }
    }
    for half in [Half::Odd, Half::Even] {
        let own: Vec<&Kernel> = kernels.iter().filter(|kernel| kernel.half == half).collect();
        let others: Vec<&Kernel> = kernels.iter().filter(|kernel| kernel.half != half).collect();
        let mut best = Parameters::fitted_on(half);
        let mut least = cost(&own, &best);
        let moves: [fn(&mut Parameters, f64); 6] = [
            |p, f| p.near *= f,
            |p, f| p.far *= f,
            |p, f| p.bandwidth *= f,
            |p, f| p.slowdown *= f,
            |p, f| p.floor *= f,
            |p, f| p.store *= f,
        ];
        for step in [1.5, 1.25, 1.1, 1.05, 1.02] {
            let mut moved = true;
            let mut rounds = 0;
            while moved && rounds < 6 {
                moved = false;
                rounds += 1;
                for change in moves {
                    for factor in [step, 1.0 / step] {
                        loop {
                            let mut next = best;
                            change(&mut next, factor);
                            if next.bandwidth > 1.0 {
                                break;
                            }
                            let found = cost(&own, &next);
                            if found >= least - 1e-3 {
                                break;
                            }
                            (best, least, moved) = (next, found, true);
                        }
                    }
                }
            }
        }
        println!(
            "{half:?}: fitted {least:.2} %, held out {:.2} %: {best:?}",
            cost(&others, &best)
        );
    }
}
