//! `rotini doctor`: what was found where.

use super::Answer;
use crate::args::Doctor;
use crate::failure::chain;
use crate::output::{BAD, DOUBTFUL, FAINT, GOOD, Output};
use crate::plugin::Plugin;
use crate::report::bytes;
use anyhow::Result;
use rotini_plugin::config::{Config, DeviceChoice};
use rotini_plugin::device::gpu;
use rotini_plugin::engine;
use rotini_plugin::pipeline::Runtime;
use serde::Serialize;
use std::ffi::c_uint;
use std::{env, fs, thread};

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Graphs run, but not as well as they could.
    Warn,
    /// Graphs do not run without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    item: &'static str,
    state: State,
    text: String,
}

/// The settings of plugin and command, with what holds when they are not set.
const SETTINGS: [(&str, &str); 9] = [
    ("ROTINI_DEVICE", "not set: auto"),
    ("ROTINI_TARGET", "not set: the device's own"),
    ("ROTINI_HIP_LIBRARY", "not set: the one that is loaded, or looked for"),
    ("ROTINI_COMPILER", "not set: auto"),
    ("ROTINI_CACHE_DIR", "not set: the user's cache folder"),
    ("ROTINI_IREE_COMPILE", "not set: looked for"),
    ("ROTINI_IREE_COMPILER_LIB", "not set: looked for"),
    ("ROTINI_LOG", "not set: what the host asks for"),
    ("ROTINI_PLUGIN", "not set: beside this program"),
];

/// Variables that matter when rotini is built.
const BUILD_SETTINGS: [&str; 3] = ["ROTINI_CUDA_HEADERS", "ROTINI_HIP_HEADERS", "ROTINI_IREE_SOURCE"];

pub(super) fn doctor(args: &Doctor, output: &Output) -> Result<Answer> {
    let config = Config::from_env();
    let mut findings = vec![
        ok(
            "rotini",
            format!(
                "{}, engine {} ({:#018x})",
                env!("CARGO_PKG_VERSION"),
                engine::NAME,
                engine::ID
            ),
        ),
        plugin(args, output),
        ok("LLVM and MLIR", llvm_version()),
    ];
    findings.push(cpu());
    match Runtime::new(config.clone()) {
        Ok(runtime) => {
            findings.push(gpus(&runtime));
            findings.push(compiler(&runtime));
            findings.push(device(&runtime));
            findings.push(cache(&runtime));
        }
        Err(error) => findings.push(missing("IREE runtime", &error)),
    }
    findings.extend(settings(&config));
    tell(findings, output)
}

fn ok(item: &'static str, text: String) -> Finding {
    Finding {
        item,
        state: State::Ok,
        text,
    }
}

fn warn(item: &'static str, text: String) -> Finding {
    Finding {
        item,
        state: State::Warn,
        text,
    }
}

fn missing(item: &'static str, error: &(dyn std::error::Error + 'static)) -> Finding {
    Finding {
        item,
        state: State::Missing,
        text: chain(error),
    }
}

fn plugin(args: &Doctor, output: &Output) -> Finding {
    match Plugin::load(&args.plugin, output.verbose) {
        Ok(plugin) => ok("plugin", plugin.to_string()),
        Err(error) => missing("plugin", error.as_ref()),
    }
}

unsafe extern "C" {
    /// Of LLVM's C API (`llvm-c/Core.h`); the library that lowers graphs is linked into this program.
    fn LLVMGetVersion(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint);
}

/// The version that graphs are lowered with. IREE's compiler has an LLVM of its own.
fn llvm_version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three places that live until the function returns.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}, linked in")
}

fn compiler(runtime: &Runtime) -> Finding {
    match runtime.compiler() {
        Ok(compiler) => ok(
            "IREE compiler",
            format!("{}, {}", compiler.identity(), compiler.describe()),
        ),
        Err(error) => missing("IREE compiler", &error),
    }
}

fn gpus(runtime: &Runtime) -> Finding {
    const ITEM: &str = "GPUs";
    let gpus = match (runtime.gpus(), runtime.config.device) {
        // With `auto` the reason is only logged.
        (Ok(None), DeviceChoice::Auto) => gpu::hip(&runtime.config, runtime.instance()).map(Some),
        (gpus, _) => gpus,
    };
    match gpus {
        Ok(Some(gpus)) => ok(ITEM, format!("{}, through {}", gpus.list().join("; "), gpus.library())),
        Ok(None) => ok(ITEM, "not looked for: ROTINI_DEVICE=cpu".to_owned()),
        Err(error) => warn(ITEM, format!("none can be used: {}", chain(&error))),
    }
}

fn cpu() -> Finding {
    const ITEM: &str = "CPU";
    // The sum of affinity mask and CPU quota, which is what thread pools are sized by.
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
        ),
        Err(error) => warn(ITEM, format!("the number of threads is not known: {error}")),
    }
}

fn device(runtime: &Runtime) -> Finding {
    match runtime.default_device() {
        Ok(device) => ok(
            "device in use",
            format!("{}, code for {}", device.describe(), device.target()),
        ),
        Err(error) => missing("device in use", &error),
    }
}

fn cache(runtime: &Runtime) -> Finding {
    const ITEM: &str = "cache";
    if let Some(error) = runtime.cache.disk_error() {
        return warn(ITEM, format!("in memory only: {}", chain(error)));
    }
    let Some(folder) = runtime.cache.dir() else {
        return warn(
            ITEM,
            "in memory only: every process compiles its graphs anew".to_owned(),
        );
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return warn(ITEM, format!("{} cannot be read: {error}", folder.display())),
    };
    // A file that another process removes meanwhile is not there any more, and does not count.
    let sizes = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "entry"))
        .filter_map(|entry| usize::try_from(entry.metadata().ok()?.len()).ok());
    let (count, size) = sizes.fold((0_usize, 0_usize), |(count, size), file| {
        (count + 1, size.saturating_add(file))
    });
    ok(ITEM, format!("{}: {count} graphs, {}", folder.display(), bytes(size)))
}

fn settings(config: &Config) -> Vec<Finding> {
    let mut findings: Vec<Finding> = SETTINGS
        .into_iter()
        .map(|(name, default)| {
            ok(
                name,
                env::var_os(name).map_or_else(|| default.to_owned(), |value| format!("'{}'", value.display())),
            )
        })
        .collect();
    findings.extend(
        config
            .complaints
            .iter()
            .map(|complaint| warn("setting", complaint.clone())),
    );
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let is_known = SETTINGS.iter().any(|(known, _)| *known == name) || BUILD_SETTINGS.contains(&name.as_ref());
        if name.starts_with("ROTINI_") && !is_known {
            findings.push(warn("setting", format!("{name} is none of rotini's settings")));
        }
    }
    findings
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
    for Finding { item, state, text } in &findings {
        let (style, word) = match state {
            State::Ok => (GOOD, "ok"),
            State::Warn => (DOUBTFUL, "warn"),
            State::Missing => (BAD, "missing"),
        };
        output.line(&format!(
            "{style}{word:>7}{style:#} {item:<width$} {FAINT}│{FAINT:#} {text}"
        ))?;
    }
    Ok(answer)
}
