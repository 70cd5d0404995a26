//! Normalizations of everyday sizes: rows of every length compile for MI300 in bounded time, and
//! are right there.
//!
//! - `ROTINI_ROWS`: number of normalizations that are compiled and executed: 20, and 500 in a full
//!   run
//! - `ROTINI_SEED`: the seed of the sample
//! - `ROTINI_TEST_ROWS`: rows that `sweep` compiles without execution:
//!   `FAMILY,…:ROWS,…:FROM-TO[/STEP],…:TYPE,…`, each part `all` or a list; or names as in failures
//! - `ROTINI_TEST_JOBS`: number of processes in which `sweep` compiles
//!
//! Time is CPU time, measured in a separate process, so a busy machine has no effect. The sweep
//! needs only this program and IREE's compiler (`ROTINI_IREE_COMPILER_LIB`): no plugin, no
//! emulator.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up has failed, and tells what was slow"
)]

use rayon::prelude::*;
use rotini_emit::{Target, emit};
use rotini_graph::DataType;
use rotini_iree::compiler::{CompileRequest, Compiler as _, InProcess, find_library};
use rotini_tests::harness::Runner;
use rotini_tests::process;
use rotini_tests::rows::{Family, LARGE, Rows, sample};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::str::FromStr;
use std::sync::mpsc;
use std::time::Duration;

/// Maximum CPU time of one compilation.
const LIMIT: Duration = Duration::from_secs(5);
/// Wall time after which a compilation counts as endless, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(90);

fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// Returns the sample of this run.
fn chosen() -> Vec<Rows> {
    let (seed, count) = (
        number("ROTINI_SEED", 0),
        number("ROTINI_ROWS", rotini_tests::scaled([20, 500])),
    );
    println!("ROTINI_SEED={seed} ROTINI_ROWS={count}");
    sample(seed, count)
}

/// A sample of all lengths is right on the emulated MI300.
#[test]
fn rows_of_any_length_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    let cases: Vec<_> = chosen().iter().map(Rows::case).collect();
    runner.expect_all(&cases, 16);
}

/// Adjacent axes are merged into one loop; the compiler once lost the distribution of such a sum,
/// and one thread computed all of it.
#[test]
fn no_reduction_is_left_to_one_thread() {
    if process::part().is_some() {
        return serve();
    }
    let names = "batchnorm_16x17x17x5_f16 layernorm-training_4x17x5x3_f32 batchnorm-last_16x17x85_bf16 \
                 rmsnorm_4x11x13_f16 batchnorm-backward-last_12x11x91_f16 batchnorm-last_64x964_bf16 \
                 batchnorm-backward-last_10x512_f16 batchnorm-backward-last_64x960_f32";
    compile_all(&named(names), 1);
}

/// The same sample compiles in bounded time.
#[test]
fn rows_of_any_length_compile_in_bounded_time() {
    if process::part().is_some() {
        return serve();
    }
    compile_all(&chosen(), 1);
}

/// All rows in `ROTINI_TEST_ROWS` compile in bounded time.
#[test]
fn sweep() {
    if process::part().is_some() {
        return serve();
    }
    let Ok(text) = std::env::var("ROTINI_TEST_ROWS") else {
        return;
    };
    compile_all(&named(&text), number("ROTINI_TEST_JOBS", 1));
}

/// Parses the rows to sweep.
fn named(text: &str) -> Vec<Rows> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        let &[families, rows, lengths, types] = word.split(':').collect::<Vec<_>>().as_slice() else {
            all.push(word.parse().unwrap_or_else(|error: String| panic!("{error}")));
            continue;
        };
        let families: Vec<Family> = match families {
            "all" => Family::ALL.iter().map(|(family, _)| *family).collect(),
            list => list
                .split(',')
                .map(|name| name.parse().unwrap_or_else(|error: String| panic!("{error}")))
                .collect(),
        };
        let types: Vec<DataType> = [DataType::F16, DataType::F32, DataType::Bf16]
            .into_iter()
            .filter(|dtype| types == "all" || types.split(',').any(|name| name == dtype.to_string()))
            .collect();
        assert!(!types.is_empty(), "{word} names no type");
        for length in numbers(lengths, &LARGE) {
            for rows in numbers(rows, &[1, 2, 3, 4, 7, 8, 16, 31, 32, 64]) {
                for &family in families.iter().filter(|family| family.least() <= length) {
                    all.extend(types.iter().map(|&dtype| Rows {
                        family,
                        rows,
                        extents: vec![length],
                        dtype,
                    }));
                }
            }
        }
    }
    all
}

/// Parses `7`, `1-1100`, `1-1100/7`, several of them; or `all`.
fn numbers(text: &str, all: &[i64]) -> Vec<i64> {
    if text == "all" {
        return all.to_vec();
    }
    let number = |text: &str| -> i64 { text.parse().unwrap_or_else(|_| panic!("{text} is no number")) };
    let range = |part: &str| {
        let (ends, step) = part.split_once('/').unwrap_or((part, "1"));
        let (from, to) = ends.split_once('-').unwrap_or((ends, ends));
        let step = usize::try_from(number(step)).expect("a step");
        (number(from)..=number(to)).step_by(step).collect::<Vec<_>>()
    };
    text.split(',').flat_map(range).collect()
}

/// Compiles rows in other processes, reports the slowest of each family and fails if any is too
/// slow or fails.
fn compile_all(all: &[Rows], jobs: usize) {
    let test = process::this_test().expect("this thread is the test's");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .expect("threads");
    let parts: Vec<&[Rows]> = all.chunks(all.len().div_ceil(jobs * 8).max(1)).collect();
    let results: Vec<(String, Result<Duration, String>)> = pool.install(|| {
        parts
            .par_iter()
            .flat_map(|part| {
                let mut process = None;
                let mut results = Vec::new();
                for rows in *part {
                    let name = rows.name();
                    let result = process
                        .get_or_insert_with(|| Process::start(&test))
                        .compile(&name)
                        .inspect_err(|_| process = None);
                    let is_slow = result.as_ref().map_or(true, |time| *time > LIMIT);
                    if is_slow {
                        // Printed at once: the test may take hours.
                        println!("{name}: {result:?}");
                    }
                    results.push((name, result));
                }
                results
            })
            .collect()
    });
    let mut families: BTreeMap<String, Vec<(Duration, &str)>> = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, result) in &results {
        match result {
            Ok(time) => {
                let family = name.split('_').next().unwrap_or_default().to_owned();
                families.entry(family).or_default().push((*time, name));
                if *time > LIMIT {
                    faults.push(format!("{name}: {:.1} s", time.as_secs_f64()));
                }
            }
            Err(error) => faults.push(format!("{name}: {error}")),
        }
    }
    for (family, times) in &mut families {
        times.sort_unstable();
        let (slowest, median) = (times.iter().rev().take(3), times[times.len() / 2].0);
        let slowest: Vec<String> = slowest
            .map(|(time, name)| format!("{name} {:.2} s", time.as_secs_f64()))
            .collect();
        println!(
            "{family}: {} compiled, median {:.2} s, slowest {}",
            times.len(),
            median.as_secs_f64(),
            slowest.join(", ")
        );
    }
    assert!(
        faults.is_empty(),
        "{} of {} rows:\n{}",
        faults.len(),
        results.len(),
        faults.join("\n")
    );
}

/// A process that compiles the graphs whose names it receives.
struct Process {
    child: Child,
    orders: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Process {
    fn start(test: &str) -> Self {
        let mut child = process::test_command(test, "compile")
            .expect("this program has a path")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program can be started");
        let (sender, answers) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.try_for_each(|line| match line.split_once("ROWS ") {
                Some((_, answer)) => sender.send(answer.to_owned()).map_err(drop),
                None => Ok(()),
            })
        });
        let orders = child.stdin.take().expect("it is piped");
        Process { child, orders, answers }
    }

    /// Compiles rows and returns the CPU time.
    fn compile(&mut self, name: &str) -> Result<Duration, String> {
        writeln!(self.orders, "{name}").map_err(|error| error.to_string())?;
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => match answer.parse() {
                Ok(seconds) => Ok(Duration::from_secs_f64(seconds)),
                Err(_) => Err(answer),
            },
            Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("not compiled after {} s", PATIENCE.as_secs())),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("the compiler has crashed".to_owned()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended, and a destructor cannot report an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles the rows whose names arrive on stdin, and answers with seconds or an error.
fn serve() {
    let library = find_library().unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: the library that was found as IREE's compiler is IREE's compiler.
    let compiler = unsafe { InProcess::open(&library) }.unwrap_or_else(|error| panic!("{error}"));
    // Loads what every compilation needs.
    let warm = "layernorm_4x64_f32".parse().expect("a name");
    compile(&compiler, &warm).unwrap_or_else(|error| panic!("{error}"));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let started = processor_time();
        let result = line.parse().and_then(|rows| compile(&compiler, &rows));
        match result {
            Ok(()) => println!("ROWS {}", (processor_time() - started).as_secs_f64()),
            Err(error) => println!("ROWS failed: {}", error.lines().next().unwrap_or_default()),
        }
    }
}

fn compile(compiler: &InProcess, rows: &Rows) -> Result<(), String> {
    let target = Target::parse("mi300x").expect("a known target");
    let mut graph = rows.graph();
    graph.validate().map_err(|error| error.to_string())?;
    let emitted = emit(&graph.normalise().0, &target).map_err(|error| error.to_string())?;
    let dump = tempfile::tempdir().map_err(|error| error.to_string())?;
    let configurations = format!("--iree-hal-dump-executable-configurations-to={}", dump.path().display());
    let compiled = compiler.compile(&CompileRequest {
        mlir: &emitted.mlir,
        name: "rows.mlir",
        flags: &[emitted.flags.as_slice(), &[configurations]].concat(),
        dump_executables: None,
    });
    compiled.map_err(|error| error.to_string())?;
    let is_told = |line: &&str| line.contains("compilation_info");
    let reductions = || {
        emitted
            .mlir
            .lines()
            .filter(|line| line.contains("iterator_type<reduction>"))
    };
    // If some reductions are left to the compiler, its kernels do not show which ones.
    if reductions().next().is_none() || !reductions().all(|line| is_told(&line)) {
        return Ok(());
    }
    match forgotten(dump.path()).map_err(|error| error.to_string())? {
        0 => Ok(()),
        count => Err(format!("the compiler forgot how to spread {count} reductions")),
    }
}

/// Returns true for a reduction in the compiler's own form.
fn is_reduction(line: &str) -> bool {
    line.contains("linalg.generic") && line.contains("\"reduction\"")
}

/// Counts the reductions, in the kernels that the compiler dumped to a directory, that are not
/// distributed over lanes as rotini's emitter specifies.
fn forgotten(directory: &Path) -> std::io::Result<usize> {
    let mut kernels = String::new();
    for entry in std::fs::read_dir(directory)? {
        kernels.push_str(&std::fs::read_to_string(entry?.path())?);
    }
    let (told, not_told): (Vec<&str>, Vec<&str>) = kernels
        .lines()
        .filter(|line| is_reduction(line))
        .partition(|line| line.contains("lane_basis"));
    if told.is_empty() && not_told.is_empty() {
        return Err(std::io::Error::other("no reductions among the kernels"));
    }
    Ok(not_told.len())
}

/// Returns the CPU time of this process and of the children that it waited for.
fn processor_time() -> Duration {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .map(|who| {
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: the function fills this structure, for which all zeros are a valid value.
            let usage = unsafe {
                libc::getrusage(who, usage.as_mut_ptr());
                usage.assume_init()
            };
            let of = |time: libc::timeval| {
                let micros = time.tv_sec * 1_000_000 + time.tv_usec;
                Duration::from_micros(u64::try_from(micros).unwrap_or_default())
            };
            of(usage.ru_utime) + of(usage.ru_stime)
        })
        .iter()
        .sum()
}
