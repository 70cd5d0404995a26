//! Runs that look like real ones: 12 graphs and 3 engines, one of which was wrong once, crashed
//! once and declined once.

use rotini_bench::Values;
use rotini_bench::results::{
    Clock, Comparison, Engine, Error, Machine, Measurement, Outcome, Peak, Results, Row, Times, VERSION,
};
use rotini_workloads::Published;

/// Name, what it does, type, operations, bytes, and how many times the first engine's time the
/// others take.
type Graph = (&'static str, &'static str, &'static str, Option<f64>, u64, [f64; 2]);

const GRAPHS: [Graph; 12] = [
    (
        "resnet50.conv1",
        "conv fprop + bias + relu",
        "f16",
        Some(7.55e9),
        36_200_000,
        [1.9, 1.2],
    ),
    (
        "resnet50.layer1.0.conv2",
        "conv fprop + bias + relu",
        "f16",
        Some(7.4e9),
        25_800_000,
        [1.42, 1.5],
    ),
    (
        "resnet50.layer1.0.conv3",
        "conv fprop + bias + add + relu",
        "f16",
        Some(3.29e9),
        64_200_000,
        [1.31, 0.97],
    ),
    (
        "resnet50.layer2.0.conv2.dgrad",
        "conv dgrad",
        "f16",
        Some(7.4e9),
        32_700_000,
        [0.78, 0.9],
    ),
    (
        "resnet50.layer3.1.conv2.wgrad",
        "conv wgrad",
        "f16",
        Some(7.4e9),
        14_000_000,
        [1.002, 0.61],
    ),
    (
        "resnet50.layer4.2.conv2",
        "conv fprop + bias + relu",
        "f16",
        Some(7.4e9),
        7_900_000,
        [1.12, 1.35],
    ),
    (
        "bert.ffn1 (matmul + bias + gelu)",
        "matmul + add + gelu",
        "bf16",
        Some(9.66e9),
        18_900_000,
        [1.55, 2.8],
    ),
    ("bert.layernorm", "layernorm", "bf16", None, 12_600_000, [2.4, 1.1]),
    (
        "llama.attention.prefill.2048",
        "sdpa",
        "bf16",
        Some(3.4e10),
        67_100_000,
        [1.06, 4.9],
    ),
    (
        "llama.attention.decode.2048",
        "sdpa",
        "bf16",
        Some(6.7e7),
        16_800_000,
        [0.995, 1.7],
    ),
    ("llama.rmsnorm", "rmsnorm", "f32", None, 33_600_000, [1.8, 1.4]),
    (
        "miopen.conv.quite_a_long_name_of_a_shape_n32_c64_h56_w56_k64_y3_x3_p1_q1_u1_v1",
        "conv fprop",
        "f32",
        Some(7.4e9),
        51_000_000,
        [1.2, 1.3],
    ),
];

/// Where each of the three engines did not do its work.
pub(crate) const DECLINED: (usize, usize) = (8, 1);
pub(crate) const WRONG: (usize, usize) = (3, 2);
pub(crate) const CRASHED: (usize, usize) = (11, 2);

/// Numbers without a pattern, the same each time.
struct Noise(u64);

impl Noise {
    /// Between -1 and 1, more often near 0.
    fn next(&mut self) -> f64 {
        let mut one = || {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(self.0 >> 33).expect("31 bits")) / f64::from(1_u32 << 31) * 2.0 - 1.0
        };
        (one() + one() + one()) / 3.0
    }
}

fn times(middle: f64, spread: f64, noise: &mut Noise) -> Times {
    let samples: Vec<f64> = (0..40)
        .map(|round| middle * (1.0 + spread * noise.next() + if round % 13 == 12 { 3.0 * spread } else { 0.0 }))
        .collect();
    let mut sorted = samples.clone();
    sorted.sort_by(f64::total_cmp);
    // The 14th and the 27th of 40 samples hold the median with 95 % confidence.
    Times {
        median: (sorted[19] + sorted[20]) / 2.0,
        low: sorted[13],
        high: sorted[26],
        samples,
    }
}

fn measurement(outcome: Outcome, middle: f64, noise: &mut Noise) -> Measurement {
    Measurement {
        outcome,
        create_cold: Some(431_000.0 + 90_000.0 * noise.next()),
        create_warm: Some(2_310.0 + 100.0 * noise.next()),
        first: Some(middle * 3.1),
        hot: Some(times(middle, 0.03, noise)),
        rotating: Some(times(middle * 1.17, 0.05, noise)),
        host_p50: Some(4.2 + noise.next()),
        host_p99: Some(11.9 + noise.next()),
        workspace: Some(1_179_648),
        captured: Some(true),
        load: None,
        error: Some(Error {
            tensor: "y".to_owned(),
            max_absolute: 1.9e-4,
            ratio: 0.12 + 0.1 * noise.next(),
        }),
    }
}

fn engine(label: &str, plugin: &str, settings: &[(&str, &str)]) -> Engine {
    Engine {
        label: label.to_owned(),
        plugin: plugin.to_owned(),
        name: label.to_owned(),
        version: "1.2.0".to_owned(),
        api_version: "1.1".to_owned(),
        engine: format!("{}_ENGINE", label.to_uppercase().replace(' ', "_")),
        settings: settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        unusable: None,
    }
}

/// A run on a machine with such a clock.
pub(crate) fn results(clock: Clock) -> Results {
    let mut noise = Noise(17);
    let mut rows = Vec::new();
    for (index, (graph, summary, dtype, flops, bytes, others)) in GRAPHS.into_iter().enumerate() {
        // A part of what a machine could do that has the peaks below.
        let rate = if dtype == "f32" { 1.1e8 } else { 8e8 };
        let ours = (1.6 + noise.next()) * (flops.unwrap_or(0.0) / rate).max(bytes as f64 / 4.5e6) + 2.0;
        let mut measurements = vec![measurement(Outcome::Right, ours, &mut noise)];
        for (other, factor) in others.into_iter().enumerate() {
            let place = (index, other + 1);
            measurements.push(if place == DECLINED {
                Measurement::of(Outcome::Declined("attention with a mask is not supported".to_owned()))
            } else if place == CRASHED {
                Measurement::of(Outcome::Crashed(
                    "signal 11 (SIGSEGV) in the first execution".to_owned(),
                ))
            } else {
                let outcome = if place == WRONG {
                    Outcome::Wrong("dx: 3 % of the elements are further off than the tolerance".to_owned())
                } else {
                    Outcome::Right
                };
                measurement(outcome, ours * factor, &mut noise)
            });
        }
        if let Some(Error {
            ratio, max_absolute, ..
        }) = &mut measurements[2].error
            && (index, 2) == WRONG
        {
            (*ratio, *max_absolute) = (214.0, 3.7);
        }
        let comparisons = (1..3).filter_map(|engine| compared(&measurements, engine)).collect();
        rows.push(Row {
            graph: graph.to_owned(),
            origin: format!("--suite quick: {graph}"),
            summary: summary.to_owned(),
            dtype: dtype.to_owned(),
            flops,
            bytes,
            predicted: (index < 4).then_some(ours * 0.9),
            published: (index == 1)
                .then(|| Published {
                    by: "MIOpen's database, MI300X, ConvAsmImplicitGemm".to_owned(),
                    microseconds: 31.0,
                })
                .into_iter()
                .collect(),
            measurements,
            comparisons,
        });
    }
    Results {
        version: VERSION,
        started: "2026-11-23T06:22:19Z".to_owned(),
        seconds: 112.4,
        command: [
            "rotini",
            "bench",
            "--suite",
            "quick",
            "--plugin",
            "/opt/rocm/lib/lib miopen.so",
        ]
        .map(str::to_owned)
        .into(),
        seed: 42,
        values: Values::Exact,
        machine: machine(clock),
        engines: vec![
            engine("rotini", "librotini_plugin.so", &[]),
            engine("MIOpen", "libmiopen_plugin.so", &[("MIOPEN_FIND_MODE", "1")]),
            engine("ONNX Runtime", "libonnxruntime_engine.so", &[]),
        ],
        rows,
    }
}

/// The ratio of two engines, if both were right.
fn compared(measurements: &[Measurement], engine: usize) -> Option<Comparison> {
    let times = |engine: usize| {
        measurements[engine]
            .hot
            .as_ref()
            .filter(|_| measurements[engine].outcome == Outcome::Right)
    };
    let (first, other) = (times(0)?, times(engine)?);
    Some(Comparison {
        engine,
        ratio: other.median / first.median,
        low: other.low / first.high,
        high: other.high / first.low,
    })
}

fn machine(clock: Clock) -> Machine {
    let device = match clock {
        Clock::Cpu => "CPU",
        Clock::Gpu => "AMD Instinct MI300X",
        Clock::Emulated => "emulated gfx942",
    };
    let peak = |dtype: &str, flops: f64| Peak {
        dtype: dtype.to_owned(),
        flops,
        source: "data sheet".to_owned(),
    };
    Machine {
        device: device.to_owned(),
        clock,
        facts: [
            ("processor", "AMD EPYC 9654 96-Core Processor, 2 sockets"),
            ("memory", "1.5 TiB"),
            ("load before the run", "0.12"),
            ("kernel", "Linux 6.8.0-45-generic"),
            ("GPU clocks", "2100 MHz shader, 1300 MHz memory"),
            ("power cap", "750 W"),
            ("driver", "amdgpu 6.10.5, ROCm 7.1.0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        peaks: vec![peak("f16", 1.307e15), peak("bf16", 1.307e15), peak("f32", 1.634e14)],
        memory_bandwidth: Some(5.3e12),
        last_cache: Some(256 << 20),
    }
}
