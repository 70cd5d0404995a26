//! What a run of the suite `constants` says of the device, beside what the time model takes for it.

use crate::output::Output;
use crate::report;
use anyhow::Result;
use rotini_bench::results::{Clock, Results, Row, Times};
use rotini_time::{MI300X, Operands};
use rotini_workloads::suites::constants::{LAUNCHES, PRODUCTS, STRIDES};

/// Shows the constants, if the run has any.
pub(super) fn show(results: &Results, output: &Output) -> Result<()> {
    let constants = constants(results);
    if constants.is_empty() {
        return Ok(());
    }
    let mut table = report::table(&["constant", "measured", "MI300X, model", ""]);
    for constant in constants {
        let number = |value: f64| rotini_bench::format::significant(value, 3);
        let model = constant.model.map(number).unwrap_or_default();
        table.add_row([
            constant.name,
            number(constant.measured),
            model,
            constant.unit.to_owned(),
        ]);
    }
    output.line(&format!("\n{table}"))
}

/// A quantity as it was measured, and as the model of an MI300X has it.
#[derive(Debug, PartialEq)]
struct Constant {
    name: String,
    measured: f64,
    model: Option<f64>,
    unit: &'static str,
}

/// Returns the constants that a run on a GPU measured with its first engine.
fn constants(results: &Results) -> Vec<Constant> {
    if results.machine.clock != Clock::Gpu {
        return Vec::new();
    }
    let row = |name: &str| results.rows.iter().find(|row| row.graph == name);
    let times = |name: &str, of: fn(&Row) -> Option<&Times>| row(name).and_then(of).map(|times| times.median);
    let warm = |name: &str| times(name, hot);
    let cold = |name: &str| times(name, rotating);
    let mut all = Vec::new();
    let mut add = |name: String, measured: Option<f64>, model: Option<f64>, unit| {
        all.extend(measured.filter(|value| value.is_finite()).map(|measured| Constant {
            name,
            measured,
            model,
            unit,
        }));
    };
    for extent in PRODUCTS {
        for (dtype, operands) in [("f16", Operands::F16), ("bf16", Operands::Bf16)] {
            let name = format!("product_{extent}_{dtype}");
            let flops = row(&name).and_then(|row| row.flops);
            let rate = warm(&name).zip(flops).map(|(time, flops)| flops / time / 1e6);
            let most = MI300X.ceiling(operands);
            // The clock at which matrix units that never wait would have this rate.
            let clock = rate.map(|rate| rate * 1e3 * MI300X.clock / MI300X.peak(16));
            let at_most = most * 1e3 * MI300X.clock / MI300X.peak(16);
            add(format!("{extent}³ in {dtype}"), rate, Some(most), "TFLOP/s");
            add(
                format!("{extent}³ in {dtype}, clock at least"),
                clock,
                Some(at_most),
                "MHz",
            );
        }
    }
    let ratio = warm("attention_causal_4096").zip(warm("attention_full_4096"));
    add(
        "causal : full attention".to_owned(),
        ratio.map(|(causal, full)| causal / full),
        None,
        "",
    );
    let bytes = row("layernorm_8192x4096").map(|row| row.bytes as f64);
    let rate = |time: Option<f64>| bytes.zip(time).map(|(bytes, time)| bytes / time / 1e6);
    let near = rate(warm("layernorm_8192x4096"));
    let far = rate(cold("layernorm_8192x4096"));
    add(
        "layernorm 8192×4096, warm".to_owned(),
        near,
        Some(MI300X.cached / 1e3),
        "TB/s",
    );
    add(
        "layernorm 8192×4096, cold".to_owned(),
        far,
        Some(MI300X.memory / 1e3),
        "TB/s",
    );
    let one = warm("launches_1");
    let many = warm(&format!("launches_{LAUNCHES}"));
    add("a graph of one launch".to_owned(), one, None, "µs");
    let next = one.zip(many).map(|(one, many)| (many - one) / (LAUNCHES - 1) as f64);
    add(
        "one more dependent launch, with its kernel".to_owned(),
        next,
        None,
        "µs",
    );
    let [first, ..] = STRIDES;
    let dense = cold(&format!("rows_{first}"));
    for stride in STRIDES.into_iter().skip(1) {
        let slower = cold(&format!("rows_{stride}"))
            .zip(dense)
            .map(|(time, dense)| time / dense);
        add(format!("rows {stride} apart : dense rows"), slower, None, "");
    }
    all
}

fn hot(row: &Row) -> Option<&Times> {
    row.measurements.first()?.hot.as_ref()
}

fn rotating(row: &Row) -> Option<&Times> {
    row.measurements.first()?.rotating.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_bench::results::{Machine, Measurement, Outcome, VERSION};

    fn row(graph: &str, flops: Option<f64>, bytes: u64, hot: f64, rotating: f64) -> Row {
        let times = |median: f64| Times {
            median,
            low: median,
            high: median,
            samples: vec![median],
        };
        Row {
            graph: graph.to_owned(),
            origin: String::new(),
            summary: String::new(),
            dtype: "f16".to_owned(),
            flops,
            bytes,
            predicted: None,
            published: Vec::new(),
            measurements: vec![Measurement {
                hot: Some(times(hot)),
                rotating: Some(times(rotating)),
                ..Measurement::of(Outcome::Right)
            }],
            comparisons: Vec::new(),
        }
    }

    /// Times as a device would have whose constants are known.
    #[test]
    fn constants_follow_from_times() {
        let rows = vec![
            row("product_4096_f16", Some(1.374e11), 0, 250.0, 260.0),
            row("attention_full_4096", None, 0, 300.0, 300.0),
            row("attention_causal_4096", None, 0, 180.0, 180.0),
            row("layernorm_8192x4096", None, 134_000_000, 26.8, 33.5),
            row("launches_1", None, 0, 4.0, 5.0),
            row("launches_100", None, 0, 400.0, 401.0),
            row("rows_512", None, 0, 5.0, 6.0),
            row("rows_4096", None, 0, 9.0, 12.0),
        ];
        let results = |clock| Results {
            version: VERSION,
            started: String::new(),
            seconds: 0.0,
            command: Vec::new(),
            seed: 0,
            machine: Machine {
                device: "AMD Instinct MI300X".to_owned(),
                clock,
                facts: Vec::new(),
                peaks: Vec::new(),
                memory_bandwidth: None,
                last_cache: None,
            },
            engines: Vec::new(),
            rows: rows.clone(),
        };
        let found = constants(&results(Clock::Gpu));
        let of = |name: &str| {
            let constant = found.iter().find(|constant| constant.name == name);
            constant.map(|constant| (constant.measured * 100.0).round() / 100.0)
        };
        assert_eq!(of("4096³ in f16"), Some(549.6));
        assert_eq!(of("4096³ in f16, clock at least"), Some(882.79));
        assert_eq!(of("causal : full attention"), Some(0.6));
        assert_eq!(of("layernorm 8192×4096, warm"), Some(5.0));
        assert_eq!(of("layernorm 8192×4096, cold"), Some(4.0));
        assert_eq!(of("one more dependent launch, with its kernel"), Some(4.0));
        assert_eq!(of("rows 4096 apart : dense rows"), Some(2.0));
        assert_eq!(of("rows 576 apart : dense rows"), None);
        // The emulator's times say nothing.
        assert_eq!(constants(&results(Clock::Emulated)), []);
    }
}
