//! The machine that a run was measured on: facts for readers of the results, and its peak rates.

use crate::protocol::Device;
use crate::results::{Clock, Machine, Peak};
use multiversion::multiversion;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

/// What data sheets say of a GPU. Dense matrix operations per second of f16, bf16, f32, fp8; bytes
/// per second; bytes of the last cache.
struct Sheet {
    /// A part of its name.
    name: &'static str,
    half: f64,
    single: f64,
    fp8: f64,
    bandwidth: f64,
    cache: u64,
}

/// AMD: the data sheets of the Instinct series; single precision is the matrix units'. NVIDIA:
/// those of H100 and H200, the SXM modules alone, whose siblings on PCIe are slower; single
/// precision there is the vector units', since TF32 rounds operands.
const SHEETS: [Sheet; 5] = [
    Sheet {
        name: "MI300X",
        half: 1307.4e12,
        single: 163.4e12,
        fp8: 2614.9e12,
        bandwidth: 5.3e12,
        cache: 256 << 20,
    },
    Sheet {
        name: "MI300A",
        half: 980.6e12,
        single: 122.6e12,
        fp8: 1961.2e12,
        bandwidth: 5.3e12,
        cache: 256 << 20,
    },
    Sheet {
        name: "MI325X",
        half: 1307.4e12,
        single: 163.4e12,
        fp8: 2614.9e12,
        bandwidth: 6.0e12,
        cache: 256 << 20,
    },
    Sheet {
        name: "NVIDIA H200",
        half: 989.4e12,
        single: 66.9e12,
        fp8: 1978.9e12,
        bandwidth: 4.8e12,
        cache: 50 << 20,
    },
    Sheet {
        name: "H100 80GB HBM3",
        half: 989.4e12,
        single: 66.9e12,
        fp8: 1978.9e12,
        bandwidth: 3.35e12,
        cache: 50 << 20,
    },
];

/// Looks at the machine. `name` is what the device calls itself; `cores` are those that engines may
/// use, empty for all.
#[must_use]
pub(crate) fn machine(device: Device, name: &str, emulated: bool, cores: &[usize]) -> Machine {
    let mut facts = facts(cores);
    let clock = match device {
        Device::Cpu => Clock::Cpu,
        Device::Hip | Device::Cuda if emulated => Clock::Emulated,
        Device::Hip | Device::Cuda => Clock::Gpu,
    };
    let mut machine = Machine {
        device: match clock {
            Clock::Emulated => format!("emulated {name}"),
            Clock::Gpu => name.to_owned(),
            Clock::Cpu => {
                let processor = facts.iter().find(|(name, _)| name == PROCESSOR);
                processor.map_or_else(|| name.to_owned(), |(_, model)| model.clone())
            }
        },
        clock,
        facts: Vec::new(),
        peaks: Vec::new(),
        memory_bandwidth: None,
        last_cache: None,
    };
    match clock {
        Clock::Cpu => {
            let threads = if cores.is_empty() { available() } else { cores.len() };
            let peak = |dtype: &str, flops| Peak {
                dtype: dtype.to_owned(),
                flops,
                source: "measured here".to_owned(),
            };
            machine.peaks = vec![peak("f32", on_all(threads, multiply_and_add))];
            machine.memory_bandwidth = Some(on_all(threads, read_and_write));
            machine.last_cache = last_cache();
        }
        Clock::Gpu => {
            facts.extend(gpu_facts(device));
            if let Some(sheet) = sheet(name) {
                let peak = |dtype: &str, flops| Peak {
                    dtype: dtype.to_owned(),
                    flops,
                    source: "data sheet".to_owned(),
                };
                machine.peaks = vec![
                    peak("f16", sheet.half),
                    peak("bf16", sheet.half),
                    peak("f32", sheet.single),
                    peak("f8e4m3", sheet.fp8),
                    peak("f8e5m2", sheet.fp8),
                    peak("f8e4m3fnuz", sheet.fp8),
                    peak("f8e5m2fnuz", sheet.fp8),
                ];
                machine.memory_bandwidth = Some(sheet.bandwidth);
                machine.last_cache = Some(sheet.cache);
            }
        }
        // How fast the emulator could be says nothing to anyone.
        Clock::Emulated => (),
    }
    machine.facts = facts;
    machine
}

/// Returns the peak rates of a GPU by its name. NVL and PCIe cards contain the names of the SXM
/// modules, but are other products.
fn sheet(name: &str) -> Option<&'static Sheet> {
    let is_module = !["NVL", "PCIe"].iter().any(|other| name.contains(other));
    SHEETS.iter().find(|sheet| is_module && name.contains(sheet.name))
}

/// The fact that names the processor.
const PROCESSOR: &str = "processor";

fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn facts(cores: &[usize]) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name.to_owned(), value));
        }
    };
    let line = |file: &str, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let found = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(found.trim_matches([' ', '\t', ':']).to_owned())
    };
    add(PROCESSOR, line("/proc/cpuinfo", "model name"));
    add("cores of this machine", Some(available().to_string()));
    let bound: Vec<String> = cores.iter().map(usize::to_string).collect();
    add("cores used", (!bound.is_empty()).then(|| bound.join(", ")));
    add("memory", line("/proc/meminfo", "MemTotal"));
    add(
        "load before the run",
        fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| Some(text.split(' ').next()?.to_owned())),
    );
    add(
        "kernel",
        fs::read_to_string("/proc/sys/kernel/osrelease")
            .ok()
            .map(|text| text.trim().to_owned()),
    );
    add(
        "CPU governor",
        fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .ok()
            .map(|text| text.trim().to_owned()),
    );
    facts
}

/// What the driver's own tool says of clocks, power cap and versions; nothing where there is no
/// such tool.
fn gpu_facts(device: Device) -> Vec<(String, String)> {
    const FIELDS: &str = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,vbios_version";
    let run = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let mut facts = Vec::new();
    match device {
        Device::Cuda => {
            let query = format!("--query-gpu={FIELDS}");
            if let Some(text) = run("nvidia-smi", &["--id=0", "--format=csv,noheader", &query]) {
                let values = text.trim().split(", ");
                facts.extend(
                    FIELDS
                        .split(',')
                        .zip(values)
                        .map(|(name, value)| (format!("GPU {name}"), value.to_owned())),
                );
            }
        }
        Device::Hip => {
            if let Ok(version) = fs::read_to_string("/opt/rocm/.info/version") {
                facts.push(("ROCm".to_owned(), version.trim().to_owned()));
            }
            if let Ok(version) = fs::read_to_string("/sys/module/amdgpu/version") {
                facts.push(("amdgpu driver".to_owned(), version.trim().to_owned()));
            }
            let asked = ["--showclocks", "--showmaxpower", "--csv"];
            if let Some(text) = run("rocm-smi", &[&["-d", "0"], asked.as_slice()].concat()) {
                let mut lines = text.lines().filter(|line| line.contains(','));
                if let (Some(names), Some(values)) = (lines.next(), lines.next()) {
                    let pairs = names.split(',').zip(values.split(','));
                    facts.extend(
                        pairs
                            .skip(1)
                            .map(|(name, value)| (format!("GPU {name}"), value.to_owned())),
                    );
                }
            }
        }
        Device::Cpu => (),
    }
    facts
}

/// The size of the last cache of the first core.
#[must_use]
pub(crate) fn last_cache() -> Option<u64> {
    (0..=4_u32)
        .rev()
        .find_map(|index| fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok())
        .and_then(|text| text.trim().strip_suffix('K')?.parse::<u64>().ok())
        .map(|kibibytes| kibibytes << 10)
}

/// Returns the sum of the rates of several threads.
fn on_all(threads: usize, work: fn() -> f64) -> f64 {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(0.0)).sum()
    })
}

/// Operations per second on one core, in f32: the best of some trials. How many sums hide the
/// latency of a multiply and add, and still fit into the registers, depends on the processor.
fn multiply_and_add() -> f64 {
    const ROUNDS: u32 = 100_000;
    let trial = |work: fn(u32, f32, f32) -> f64| {
        let started = Instant::now();
        let count = work(black_box(ROUNDS), black_box(1.0e-3), black_box(0.5));
        count / started.elapsed().as_secs_f64()
    };
    (0..5)
        .flat_map(|_| [trial(few_sums), trial(many_sums)])
        .fold(0.0, f64::max)
}

#[multiversion(targets("x86_64+avx512f", "x86_64+avx2+fma", "aarch64+neon"))]
fn few_sums(rounds: u32, factor: f32, start: f32) -> f64 {
    sums([start; 96], rounds, factor, start)
}

#[multiversion(targets("x86_64+avx512f", "x86_64+avx2+fma", "aarch64+neon"))]
fn many_sums(rounds: u32, factor: f32, start: f32) -> f64 {
    sums([start; 256], rounds, factor, start)
}

#[inline(always)]
fn sums<const LANES: usize>(mut sums: [f32; LANES], rounds: u32, factor: f32, start: f32) -> f64 {
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = sum.mul_add(factor, start);
        }
    }
    black_box(&sums);
    2.0 * LANES as f64 * f64::from(rounds)
}

/// Bytes per second that one core reads and writes in memory beyond any cache: the best of some
/// trials.
fn read_and_write() -> f64 {
    const BYTES: usize = 128 << 20;
    let from = vec![1_u64; BYTES / 8];
    let mut to = vec![2_u64; BYTES / 8];
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let started = Instant::now();
        black_box(&mut to).copy_from_slice(black_box(&from));
        best = best.max(2.0 * BYTES as f64 / started.elapsed().as_secs_f64());
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_roofline() {
        let machine = machine(Device::Cpu, "CPU", false, &[0]);
        assert_eq!(machine.clock, Clock::Cpu);
        // No core that runs Rust is slower, and none faster.
        let flops = machine.peaks.first().map(|peak| peak.flops).unwrap();
        assert!((1e8..1e13).contains(&flops), "{flops}");
        assert!((1e8..1e13).contains(&machine.memory_bandwidth.unwrap()));
    }

    #[test]
    fn a_card_is_not_taken_for_a_module() {
        for name in ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "AMD Instinct MI300X"] {
            assert!(sheet(name).is_some(), "{name}");
        }
        for name in ["NVIDIA H100 PCIe", "NVIDIA H200 NVL", "AMD Instinct MI250X"] {
            assert!(sheet(name).is_none(), "{name}");
        }
    }

    #[test]
    fn emulated_devices_have_no_roofline() {
        let machine = machine(Device::Hip, "AMD Instinct MI300X", true, &[]);
        assert_eq!(machine.clock, Clock::Emulated);
        assert!(machine.peaks.is_empty() && machine.memory_bandwidth.is_none());
    }
}
