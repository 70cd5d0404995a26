//! Collects the data about a graph's kernels from the compiler's dump, and from the emulator if
//! requested.

use super::document::{Document, Kernel, Launch, Least, Product};
use super::emulation::{Executed, execute};
use crate::args::{Emulate, Inspect};
use crate::calibration::{Calibrated, modelled};
use crate::commands::target_choice::chosen;
use crate::failure::Failure;
use crate::input::GraphFile;
use anyhow::{Context as _, Result, bail, ensure};
use rotini_emit::{Emitted, Target};
use rotini_graph::Graph;
use rotini_inspect::configuration::configurations;
use rotini_inspect::{is_like_the_measured, object};
use rotini_plugin::attempts::{call, compile_graph};
use rotini_plugin::config::Config;
use rotini_plugin::prepared::check;
use rotini_plugin::runtime::Runtime;
use rotini_time::{Machine, Parameters, predict};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Compiles and inspects a graph.
pub(super) fn document(path: &Path, args: &Inspect) -> Result<Document> {
    let config = Config::from_env();
    let is_compilers_choice = config.unscheduled;
    let runtime = Runtime::new(config)?;
    let target = chosen(&runtime, args.target.target.as_ref())?.target;
    let plain = target.unscheduled().filter(|_| is_compilers_choice);
    let target = plain.unwrap_or(target);
    let (machine, constants_of) = machine(&runtime, &target, args)?;
    let file = GraphFile::read(path);
    let bytes = file.bytes?;
    let plan = check(&bytes, &target).with_context(|| file.path.clone())?;
    let compiler = runtime.compiler()?;
    let emitted = rotini_emit::emit(&plan.graph, &target).with_context(|| file.path.clone())?;
    let dumped = tempfile::tempdir()?;
    let compile = |module: &Emitted| {
        let mut module = module.clone();
        // Only the dump of the last attempt is kept.
        for file in fs::read_dir(dumped.path()).into_iter().flatten().flatten() {
            let _ = fs::remove_file(file.path());
        }
        module.flags.push(format!(
            "--iree-hal-dump-executable-configurations-to={}",
            dumped.path().display()
        ));
        call(compiler.as_ref(), &module, Some(dumped.path()))
    };
    compile_graph(&plan.graph, &target, &emitted, compile).with_context(|| file.path.clone())?;
    let kernels = kernels(dumped.path())?;
    let graph = rotini_wire::decode(&bytes)?;
    let summary = rotini_bench::summarise(&graph);
    let launches = match args.emulate {
        None => None,
        Some(how) => {
            let executed = execute(&bytes, &target, how == Emulate::All, args)?;
            Some(launches(executed, &kernels, &machine, &graph)?)
        }
    };
    Ok(Document {
        ok: true,
        rotini: env!("CARGO_PKG_VERSION").to_owned(),
        compiler: compiler.identity().to_owned(),
        graph: file.path,
        target: target.to_string(),
        summary: summary.words,
        least: Least {
            bytes: summary.bytes,
            operations: summary.flops,
            least_us: machine.least(summary.bytes as f64, summary.flops.unwrap_or(0.0), summary.bits),
        },
        dtype: summary.dtype,
        products: rotini_emit::products(&plan.graph, &target)?
            .into_iter()
            .map(|product| Product::new(&target, product))
            .collect(),
        kernels,
        launches,
        constants_of,
    })
}

/// Returns the machine model of a target, and the device whose measured constants the model uses,
/// if any.
fn machine(runtime: &Runtime, target: &Target, args: &Inspect) -> Result<(Machine, Option<String>)> {
    let known = || {
        let names: Vec<_> = rotini_time::MACHINES.iter().map(|machine| machine.name).collect();
        Failure::Usage(format!(
            "kernels for {target} cannot be inspected: --target has to be gfx942, {}",
            names.join(", ")
        ))
    };
    let published = modelled(target).ok_or_else(known)?;
    if args.emulate.is_none() {
        return Ok((*published, None));
    }
    let found = match &args.calibration {
        Some(path) => Some(Calibrated::read(path)?),
        None => here(runtime, published),
    };
    Ok(match found {
        Some(calibrated) => (calibrated.machine(published)?, Some(calibrated.device)),
        None => (*published, None),
    })
}

/// Returns the calibration of this machine's GPU, if it is the same product as `published`.
fn here(runtime: &Runtime, published: &Machine) -> Option<Calibrated> {
    let device = runtime.default_device().ok()?;
    let calibrated = Calibrated::of(runtime, device.as_ref())?;
    let usable = calibrated.machine(published);
    usable
        .inspect_err(|error| tracing::warn!("predictions use published constants: {error:#}"))
        .ok()?;
    Some(calibrated)
}

/// Returns the kernels of a dump, in the order of the compiler's numbers.
fn kernels(dumped: &Path) -> Result<Vec<Kernel>> {
    let mut objects = Vec::new();
    let mut configured = BTreeMap::new();
    for entry in fs::read_dir(dumped)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("hsaco")) {
            objects.push(path);
        } else if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("configured_"))
        {
            configured.extend(configurations(&fs::read_to_string(&path)?));
        }
    }
    let mut kernels = Vec::new();
    for path in objects {
        let found = object::kernels(&fs::read(&path)?).context("what the compiler made cannot be read")?;
        kernels.extend(found.into_iter().map(|kernel| {
            let configuration = configured.remove(&kernel.name);
            Kernel::new(kernel, configuration)
        }));
    }
    kernels.sort_by_key(|kernel| (number(&kernel.name), kernel.name.clone()));
    ensure!(
        !kernels.is_empty(),
        "the graph has no kernels: it is copies and fills alone"
    );
    Ok(kernels)
}

/// Returns the number in a name such as `main_dispatch_12_conv…`, or `u64::MAX` without one.
fn number(kernel: &str) -> u64 {
    let digits = kernel.split_once("dispatch_").map_or("", |(_, rest)| rest);
    digits
        .split('_')
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(u64::MAX)
}

/// Predicts the time of each launch.
fn launches(executed: Executed, kernels: &[Kernel], machine: &Machine, graph: &Graph) -> Result<Vec<Launch>> {
    let unlike = (!is_like_the_measured(graph)).then(|| "no such operation, type or layout was measured".to_owned());
    let Executed { sampled, all } = executed;
    if let Some(all) = &all
        && all.len() != sampled.len()
    {
        bail!(
            "two executions of the graph launched {} and {} kernels",
            all.len(),
            sampled.len()
        );
    }
    let mut counts = all.into_iter().flatten();
    let launch = |launch: rotini_inspect::Launch| {
        ensure!(
            kernels.iter().any(|kernel| kernel.name == launch.kernel),
            "{} was launched, which is none of the kernels that the compiler made: is the plugin of this version?",
            launch.kernel
        );
        let record = launch
            .record
            .context("the emulator counted nothing to predict from: it is too old")?;
        let prediction = predict(&record, machine, &Parameters::default());
        Ok(Launch {
            kernel: launch.kernel,
            workgroups: record.workgroups,
            counts: counts.next().map(|launch| launch.counts),
            time: prediction.time,
            warm: Some(prediction.warm),
            interval: prediction.interval,
            bound: prediction.bound.0.to_string(),
            predicted_bound_share: prediction.bound.1,
            predicted_matrix_share: prediction.matrix,
            extrapolated: prediction
                .outside
                .into_iter()
                .map(str::to_owned)
                .chain(unlike.clone())
                .collect(),
        })
    };
    sampled.into_iter().map(launch).collect()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn names_tell_numbers() {
        assert_eq!(
            ["main_dispatch_12_conv_3x3", "main_dispatch_0", "other"].map(number),
            [12, 0, u64::MAX]
        );
    }
}
