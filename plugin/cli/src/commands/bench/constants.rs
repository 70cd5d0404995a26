//! The constants of a device that a run of the suite `constants` measured, next to the values of
//! the time model.

use crate::output::Output;
use crate::report;
use anyhow::Result;
use comfy_table::Table;
use rotini_bench::results::{Clock, Load, Results, Row};
use rotini_graph::DataType;
use rotini_time::{MACHINES, Machine, Measured, Operands, Sustained};
use rotini_workloads::suites::constants::{LAUNCHES, OPERANDS, PRODUCTS, STRIDES, SUMS};
use serde::Serialize;

/// Name of the suite that measures constants.
pub(super) const SUITE: &str = "constants";

/// The suite's graph that is bound by memory.
const ROWS: &str = "layernorm_8192x4096";

/// Returns the name of the graph that reads from the last-level cache.
fn sums() -> String {
    format!("sums_{}x{}", SUMS[0], SUMS[1])
}

/// Prints the constants, if the run measured any.
pub(crate) fn show(results: &Results, output: &Output) -> Result<()> {
    match table(&constants(results)) {
        Some(table) => output.line(&format!("\n{table}")),
        None => Ok(()),
    }
}

/// Headings of the table of constants.
pub(crate) const COLUMNS: [&str; 4] = ["constant", "measured", "model", ""];

/// Returns a table of constants; `None` if there are none.
pub(crate) fn table(constants: &[Constant]) -> Option<Table> {
    if constants.is_empty() {
        return None;
    }
    let mut table = report::table(&COLUMNS);
    for constant in constants {
        table.add_row(constant.cells());
    }
    Some(table)
}

/// A measured quantity, and its value in the model of the device, if that exists.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Constant {
    name: String,
    measured: f64,
    model: Option<f64>,
    unit: &'static str,
}

impl Constant {
    /// Returns name, measured value, modelled value and unit.
    pub(crate) fn cells(&self) -> [String; 4] {
        let number = |value: f64| rotini_bench::format::significant(value, 3);
        [
            self.name.clone(),
            number(self.measured),
            self.model.map(number).unwrap_or_default(),
            self.unit.to_owned(),
        ]
    }
}

/// The rows of a run, by the name of their graph. Times are those of the first engine.
#[derive(Clone, Copy)]
struct Run<'a>(&'a Results);

impl<'a> Run<'a> {
    fn row(self, name: &str) -> Option<&'a Row> {
        self.0.rows.iter().find(|row| row.graph == name)
    }

    /// Returns the time in µs with the operands in the caches.
    fn warm(self, name: &str) -> Option<f64> {
        Some(self.row(name)?.measurements.first()?.hot.as_ref()?.median)
    }

    /// Returns the time in µs with the operands in memory.
    fn cold(self, name: &str) -> Option<f64> {
        Some(self.row(name)?.measurements.first()?.rotating.as_ref()?.median)
    }

    /// Returns the rate in TFLOP/s.
    fn rate(self, name: &str) -> Option<f64> {
        Some(self.row(name)?.flops? / self.warm(name)? / 1e6)
    }

    /// Returns clock and power during this graph.
    fn load(self, name: &str) -> Option<Load> {
        self.row(name)?.measurements.first()?.load
    }

    /// Returns the time in µs that one more dependent launch adds, including its kernel.
    fn launch(self) -> Option<f64> {
        let many = self.warm(&format!("launches_{LAUNCHES}"))?;
        Some((many - self.warm("launches_1")?) / (LAUNCHES - 1) as f64)
    }
}

/// Returns the measurements from which the model's constants are derived.
pub(crate) fn measured(results: &Results) -> Measured {
    if results.machine.clock != Clock::Gpu {
        return Measured::default();
    }
    let run = Run(results);
    let of_product = |dtype: DataType| {
        let name = format!("product_{}_{dtype}", PRODUCTS.last()?);
        Some(Sustained {
            tflops: run.rate(&name)?,
            gigahertz: run.load(&name)?.megahertz / 1e3,
        })
    };
    let bytes = |name: &str| run.row(name).map(|row| row.bytes as f64);
    let (rows, sums) = (bytes(ROWS), sums());
    Measured {
        bf16: of_product(DataType::Bf16),
        f16: of_product(DataType::F16),
        fp8: of_product(DataType::F8E4M3Fnuz),
        warm: bytes(&sums).zip(run.warm(&sums)),
        // Only if the size of the last-level cache is known do the buffers rotate over more than
        // it.
        cold: results.machine.last_cache.and(rows).zip(run.cold(ROWS)),
    }
}

/// Returns the model of a device by its name, such as "AMD Instinct MI300X".
fn model(device: &str) -> Option<&'static Machine> {
    let device = device.to_lowercase();
    MACHINES.iter().find(|machine| device.contains(machine.name))
}

/// Returns the constants that a run on a GPU measured with its first engine.
pub(crate) fn constants(results: &Results) -> Vec<Constant> {
    if results.machine.clock != Clock::Gpu {
        return Vec::new();
    }
    let run = Run(results);
    let model = model(&results.machine.device);
    let warm = |name: &str| run.warm(name);
    let cold = |name: &str| run.cold(name);
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
        for dtype in OPERANDS {
            let (operands, bits) = match dtype {
                DataType::F16 => (Operands::F16, 16),
                DataType::Bf16 => (Operands::Bf16, 16),
                _ => (Operands::Byte, 8),
            };
            let name = format!("product_{extent}_{dtype}");
            let rate = run.rate(&name);
            let most = model.map(|model| model.ceiling(operands));
            // The clock at which matrix units without stalls would reach this rate.
            let clock = |rate: Option<f64>| Some(rate? * 1e3 * model?.clock / model?.peak(bits));
            add(format!("{extent}³ in {dtype}"), rate, most, "TFLOP/s");
            let name_of_clock = format!("{extent}³ in {dtype}, clock at least");
            add(name_of_clock, clock(rate), clock(most), "MHz");
            let load = run.load(&name);
            let limited = model.and_then(|model| Some(model.sustained_clock(operands)? * 1e3));
            let clock = load.map(|load| load.megahertz);
            add(format!("{extent}³ in {dtype}, clock"), clock, limited, "MHz");
            let power = load.and_then(|load| load.watts);
            let limit = model.and_then(|model| model.watts);
            add(format!("{extent}³ in {dtype}, power"), power, limit, "W");
        }
    }
    let ratio = warm("attention_causal_4096").zip(warm("attention_full_4096"));
    add(
        "causal : full attention".to_owned(),
        ratio.map(|(causal, full)| causal / full),
        None,
        "",
    );
    let bytes = run.row(ROWS).map(|row| row.bytes as f64);
    let rate = |time: Option<f64>| bytes.zip(time).map(|(bytes, time)| bytes / time / 1e6);
    let near = rate(warm(ROWS));
    let far = rate(cold(ROWS));
    add(
        "layernorm 8192×4096, warm".to_owned(),
        near,
        model.map(|model| model.cached / 1e3),
        "TB/s",
    );
    add(
        "layernorm 8192×4096, cold".to_owned(),
        far,
        model.map(|model| model.memory / 1e3),
        "TB/s",
    );
    let sums = sums();
    let read = run.row(&sums).map(|row| row.bytes as f64);
    add(
        "sums of rows, 64 MiB, warm".to_owned(),
        read.zip(warm(&sums)).map(|(bytes, time)| bytes / time / 1e6),
        model.map(|model| model.cached / 1e3),
        "TB/s",
    );
    add("a graph of one launch".to_owned(), warm("launches_1"), None, "µs");
    add(
        "one more dependent launch, with its kernel".to_owned(),
        run.launch(),
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rotini_bench::Values;
    use rotini_bench::results::{Machine, Measurement, Outcome, Times, VERSION};
    use rotini_time::{Calibration, MI300X};

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
                load: flops.map(|_| Load {
                    megahertz: 1180.0,
                    watts: Some(746.0),
                }),
                ..Measurement::of(Outcome::Right)
            }],
            comparisons: Vec::new(),
        }
    }

    /// Returns times as on a device with known constants.
    pub(crate) fn of_a_device() -> Results {
        Results {
            version: VERSION,
            started: String::new(),
            seconds: 0.0,
            command: Vec::new(),
            seed: 0,
            values: Values::Gaussian,
            machine: Machine {
                device: "AMD Instinct MI300X".to_owned(),
                clock: Clock::Gpu,
                facts: Vec::new(),
                peaks: Vec::new(),
                memory_bandwidth: None,
                last_cache: Some(256 << 20),
            },
            engines: Vec::new(),
            rows: vec![
                row("product_4096_f16", Some(1.374e11), 0, 250.0, 260.0),
                row("product_8192_f16", Some(1.0995e12), 0, 2000.0, 2010.0),
                row("attention_full_4096", None, 0, 300.0, 300.0),
                row("attention_causal_4096", None, 0, 180.0, 180.0),
                row("layernorm_8192x4096", None, 134_000_000, 26.8, 33.5),
                row("product_8192_f8e4m3fnuz", Some(1.0995e12), 0, 1000.0, 1010.0),
                row("sums_16384x2048", None, 64 << 20, 15.0, 18.0),
                row("launches_1", None, 0, 4.0, 5.0),
                row("launches_100", None, 0, 400.0, 401.0),
                row("rows_512", None, 0, 5.0, 6.0),
                row("rows_4096", None, 0, 9.0, 12.0),
            ],
        }
    }

    #[test]
    fn constants_follow_from_times() {
        let results = of_a_device();
        let found = constants(&results);
        let of = |name: &str| {
            let constant = found.iter().find(|constant| constant.name == name);
            constant.map(|constant| (constant.measured * 100.0).round() / 100.0)
        };
        assert_eq!(of("4096³ in f16"), Some(549.6));
        assert_eq!(of("4096³ in f16, clock at least"), Some(882.79));
        assert_eq!(of("4096³ in f16, clock"), Some(1180.0));
        assert_eq!(of("4096³ in f16, power"), Some(746.0));
        assert_eq!(of("causal : full attention"), Some(0.6));
        assert_eq!(of("layernorm 8192×4096, warm"), Some(5.0));
        assert_eq!(of("layernorm 8192×4096, cold"), Some(4.0));
        assert_eq!(of("one more dependent launch, with its kernel"), Some(4.0));
        assert_eq!(of("rows 4096 apart : dense rows"), Some(2.0));
        assert_eq!(of("rows 576 apart : dense rows"), None);
        // 134 MB in 33.5 µs, less the fixed time of every kernel.
        let (calibration, reasons) = Calibration::of(&measured(&results), &MI300X);
        assert_eq!(calibration.memory.map(f64::round), Some(4238.0));
        assert_eq!(calibration.f16.map(f64::round), Some(550.0));
        assert_eq!(calibration.fp8.map(f64::round), Some(1100.0));
        // 64 MiB in 13.1 µs.
        assert_eq!(calibration.cached.map(f64::round), Some(5115.0));
        assert_eq!((calibration.bf16, reasons.len()), (None, 1));
        // Other products have other constants, and the model knows no other vendor's devices.
        let other = |device: &str| {
            let mut results = results.clone();
            results.machine.device = device.to_owned();
            constants(&results)
        };
        let model = |found: &[Constant]| found.iter().map(|constant| constant.model).collect::<Vec<_>>();
        assert_eq!(model(&found)[0], Some(MI300X.ceiling(Operands::F16)));
        assert_ne!(model(&other("AMD Instinct MI325X")), model(&found));
        let unknown = other("NVIDIA H200");
        assert!(unknown.iter().all(|constant| constant.model.is_none()));
        assert!(!unknown.iter().any(|constant| constant.name.ends_with("at least")));
        // The emulator's times carry no information about a device.
        let mut emulated = results;
        emulated.machine.clock = Clock::Emulated;
        assert_eq!(constants(&emulated), []);
        assert_eq!(measured(&emulated), Measured::default());
    }

    /// The suite must contain the graphs from which the constants are derived.
    #[test]
    fn the_suite_has_the_graphs_that_are_looked_for() {
        let graphs = rotini_workloads::suites::suite(SUITE, &Default::default()).unwrap();
        let names: Vec<String> = graphs.into_iter().map(|graph| graph.name).collect();
        for row in of_a_device().rows {
            assert!(names.contains(&row.graph), "{}", row.graph);
        }
    }
}
