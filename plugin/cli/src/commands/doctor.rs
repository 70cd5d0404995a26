//! `rotini doctor`: reports plugin, compiler, devices, caches and settings, and for each problem
//! the next step.

use super::answer::Answer;
use crate::args::Doctor;
use crate::failure::chain;
use crate::output::{BAD, DOUBTFUL, FAINT, GOOD, Output};
use crate::plugin::Plugin;
use crate::report::{bytes, count, time};
use anyhow::Result;
use rotini_cache::admin;
use rotini_emit::Target;
use rotini_iree::compiler::{CompileRequest, find_worker};
use rotini_plugin::compiler::PACKAGE;
use rotini_plugin::config::{CompilerMode, Config, DeviceChoice, Reader, SETTINGS, Setting};
use rotini_plugin::device::gpu;
use rotini_plugin::engine_id;
use rotini_plugin::runtime::Runtime;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;
use std::{env, fs, thread};

/// The state of a checked item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Graphs run, but not as well as they could.
    Warn,
    /// Graphs do not run at all.
    Missing,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    item: &'static str,
    state: State,
    text: String,
    /// The next step for the user, if there is a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(super) fn doctor(args: &Doctor, output: &Output) -> Result<Answer> {
    let config = Config::from_env();
    let mut findings = vec![
        ok(
            "rotini",
            format!(
                "{}, engine {} ({:#018x})",
                env!("CARGO_PKG_VERSION"),
                engine_id::NAME,
                engine_id::ID
            ),
        ),
        plugin(args, output),
        cpu(),
    ];
    match Runtime::new(config.clone()) {
        Ok(runtime) => {
            findings.push(gpus(&runtime));
            findings.push(compiler(&runtime));
            findings.push(worker(&config));
            findings.push(device(&runtime));
            findings.extend(caches(&runtime));
        }
        Err(error) => findings.push(missing(
            "IREE runtime",
            &error,
            "report this with the output of `rotini doctor --json`",
        )),
    }
    findings.extend(settings(&config));
    tell(findings, output)
}

fn ok(item: &'static str, text: String) -> Finding {
    Finding {
        item,
        state: State::Ok,
        text,
        next: None,
    }
}

fn warn(item: &'static str, text: String, next: impl Into<String>) -> Finding {
    Finding {
        item,
        state: State::Warn,
        text,
        next: Some(next.into()),
    }
}

fn missing(item: &'static str, error: &(dyn std::error::Error + 'static), next: impl Into<String>) -> Finding {
    Finding {
        item,
        state: State::Missing,
        text: chain(error),
        next: Some(next.into()),
    }
}

fn plugin(args: &Doctor, output: &Output) -> Finding {
    match Plugin::load(&args.plugin, output.verbose) {
        Ok(plugin) => ok("plugin", plugin.to_string()),
        Err(error) => missing("plugin", error.as_ref(), "name the plugin's file with --plugin"),
    }
}

/// Compiles an empty function, which shows whether the configured way of calling the compiler, or
/// its fallback, works on this machine.
fn compiler(runtime: &Runtime) -> Finding {
    const ITEM: &str = "IREE compiler";
    let install = format!("python3 -m pip install {PACKAGE}");
    let compiler = match (runtime.compiler(), runtime.builds()) {
        (Ok(compiler), _) => compiler,
        // Cached graphs still run.
        (Err(error), Ok(_)) => return warn(ITEM, format!("only graphs that are cached run: {error}"), install),
        (Err(error), Err(_)) => return missing(ITEM, &error, install),
    };
    let started = Instant::now();
    let result = compiler.compile(&CompileRequest {
        mlir: "module { func.func @nothing() { return } }",
        name: "doctor.mlir",
        flags: &Target::Cpu.flags(),
        dump_executables: None,
    });
    match result {
        Ok(_) => ok(
            ITEM,
            format!(
                "{}, {}; an empty function takes {}",
                compiler.describe(),
                compiler.identity(),
                time(started.elapsed())
            ),
        ),
        Err(error) => missing(ITEM, &error, format!("{install} --force-reinstall")),
    }
}

/// Checks the program that the compiler runs in, unless another way of calling the compiler is
/// configured.
fn worker(config: &Config) -> Finding {
    const ITEM: &str = "compile worker";
    match (find_worker(), config.compiler) {
        (Ok(path), CompilerMode::Worker) => ok(
            ITEM,
            format!(
                "{}, at most {}, with {} and {} s each",
                path.display(),
                config.compile_workers,
                bytes(config.compile_memory),
                config.compile_timeout.as_secs()
            ),
        ),
        (Ok(path), _) => ok(ITEM, format!("{}, not used: see ROTINI_COMPILER", path.display())),
        (Err(error), CompilerMode::Worker) => {
            let next = "install rotini as a whole: the plugin and rotini-compile-worker belong together";
            warn(ITEM, chain(&error), next)
        }
        (Err(_), _) => ok(ITEM, "not used: see ROTINI_COMPILER".to_owned()),
    }
}

fn gpus(runtime: &Runtime) -> Finding {
    const ITEM: &str = "GPUs";
    let gpus = match (runtime.gpus(), runtime.config.device) {
        // With `auto`, the reason is only logged, so the error is asked for here.
        (Ok(None), DeviceChoice::Auto) => gpu::hip(&runtime.config, runtime.instance()).map(Some),
        (gpus, _) => gpus,
    };
    match gpus {
        Ok(Some(gpus)) => ok(ITEM, format!("{}, through {}", gpus.list().join("; "), gpus.library())),
        Ok(None) => ok(ITEM, "not looked for: ROTINI_DEVICE=cpu".to_owned()),
        Err(error) => warn(ITEM, format!("none can be used: {}", chain(&error)), gpus_next()),
    }
}

/// Returns the next step for a user without usable AMD GPUs: about the driver if it cannot be
/// opened, else about the missing HIP runtime.
fn gpus_next() -> &'static str {
    const DRIVER: &str = "/dev/kfd";
    match OpenOptions::new().read(true).write(true).open(DRIVER) {
        Ok(_) => "install ROCm's HIP runtime (libamdhip64.so), or name it with ROTINI_HIP_LIBRARY",
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            "add your user to the group of /dev/kfd (`render` on most systems)"
        }
        Err(_) => "no AMD driver is loaded here (/dev/kfd). If there is no AMD GPU, nothing: graphs run on the CPU",
    }
}

fn cpu() -> Finding {
    const ITEM: &str = "CPU";
    // The smaller of the affinity mask and the CPU quota, by which thread pools are sized.
    let threads = thread::available_parallelism();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = match online.trim() {
        "" => String::new(),
        online => format!(", of the CPUs {online}"),
    };
    match threads {
        Ok(threads) if threads.get() > 1 => ok(ITEM, format!("{threads} threads can be used{online}")),
        Ok(_) => warn(
            ITEM,
            format!("1 thread can be used{online}: large graphs run on the calling thread"),
            "give the process more cores, if there are more: its affinity mask or its CPU quota is one core",
        ),
        Err(error) => warn(
            ITEM,
            format!("the number of threads is not known: {error}"),
            "mount /proc and /sys",
        ),
    }
}

fn device(runtime: &Runtime) -> Finding {
    match runtime.default_device() {
        Ok(device) => ok(
            "device in use",
            format!("{}, code for {}", device.describe(), device.compiled_for().target),
        ),
        Err(error) => missing(
            "device in use",
            &error,
            "set ROTINI_DEVICE=cpu to go on without this device",
        ),
    }
}

/// Name of the item for a directory that administrators fill.
const SHIPPED: &str = "shipped cache";
/// Advice to a user whose own cache directory is not used.
const OWN_DIRECTORY: &str = "set ROTINI_CACHE_DIR to a directory that belongs to you and that nobody else can write";

/// Checks the directories that are searched for compiled graphs, in the order of the search.
fn caches(runtime: &Runtime) -> Vec<Finding> {
    let own = match (runtime.cache.disk_error(), runtime.cache.dir()) {
        (Some(error), _) => warn("cache", format!("in memory only: {}", chain(error)), OWN_DIRECTORY),
        (None, Some(directory)) => cache("cache", directory),
        (None, None) => warn(
            "cache",
            "in memory only: every process compiles its graphs anew".to_owned(),
            "set ROTINI_CACHE_DIR to a directory, to compile each graph once",
        ),
    };
    let shipped = runtime.config.cache_path.iter();
    let shipped = shipped.map(|directory| cache(SHIPPED, directory));
    [own].into_iter().chain(shipped).collect()
}

/// Summarises a directory's contents, if its owner and permissions allow its code to be used.
fn cache(item: &'static str, directory: &Path) -> Finding {
    match admin::stats(directory) {
        Ok(stats) => {
            let targets: Vec<String> = stats
                .targets
                .iter()
                .map(|(target, (entries, _))| format!("{entries} for {target}"))
                .collect();
            let targets = if targets.is_empty() {
                String::new()
            } else {
                format!(" ({})", targets.join(", "))
            };
            let entries = count(stats.entries, "graph", "graphs");
            let size = bytes(stats.entry_bytes);
            ok(item, format!("{}: {entries}, {size}{targets}", directory.display()))
        }
        Err(error) => {
            let text = format!("{} is not used: {}", directory.display(), chain(&error));
            let next = match (item == SHIPPED, directory.exists()) {
                (true, true) => format!(
                    "chown root {0} && chmod go-w {0}, and the same for the directories above",
                    in_shell(directory)
                ),
                (true, false) => "name a directory that is there in ROTINI_CACHE_PATH".to_owned(),
                (false, _) => OWN_DIRECTORY.to_owned(),
            };
            warn(item, text, next)
        }
    }
}

/// Quotes a path for a shell.
fn in_shell(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn settings(config: &Config) -> Vec<Finding> {
    let read_here = |setting: &&Setting| setting.reader == Reader::Plugin || setting.name == "ROTINI_PLUGIN";
    let setting = |Setting { name, default, .. }: &Setting| {
        let text = env::var_os(name).map_or_else(
            || format!("not set: {}", default.replace('`', "")),
            |value| format!("'{}'", value.display()),
        );
        ok(name, text)
    };
    let complaint = |complaint: &String| warn("setting", complaint.clone(), "correct or unset this variable");
    SETTINGS
        .iter()
        .filter(read_here)
        .map(setting)
        .chain(config.complaints.iter().map(complaint))
        .collect()
}

fn tell(findings: Vec<Finding>, output: &Output) -> Result<Answer> {
    let is_missing = findings.iter().any(|finding| finding.state == State::Missing);
    let answer = if is_missing { Answer::Missing } else { Answer::Yes };
    if output.json {
        #[derive(Serialize)]
        struct Document {
            ok: bool,
            findings: Vec<Finding>,
        }
        output.document(&Document {
            ok: !is_missing,
            findings,
        })?;
        return Ok(answer);
    }
    let width = findings
        .iter()
        .map(|finding| finding.item.len())
        .max()
        .unwrap_or_default();
    for Finding {
        item,
        state,
        text,
        next,
    } in &findings
    {
        let (style, word) = match state {
            State::Ok => (GOOD, "ok"),
            State::Warn => (DOUBTFUL, "warn"),
            State::Missing => (BAD, "missing"),
        };
        output.line(&format!(
            "{style}{word:>7}{style:#} {item:<width$} {FAINT}│{FAINT:#} {text}"
        ))?;
        if let Some(next) = next {
            output.line(&format!("{:7} {:width$} {FAINT}│{FAINT:#} next: {next}", "", ""))?;
        }
    }
    Ok(answer)
}
