//! Each quirk still exists: if only this quirk is not avoided, the case that guards it fails. If a
//! guard passes, delete the quirk and the code that asks for it.
//!
//! `ROTINI_QUIRKS` names the quirks to test, separated by commas; `all` tests each. Without it,
//! three are tested, others each day. `ROTINI_QUIRKS_SEARCH` searches for guards instead: for each
//! quirk that it names, it runs cases whose code differs without the quirk, and reports those that
//! fail: 60 cases, or the number in `ROTINI_QUIRKS_TRIES`. `ROTINI_GRAPHS` adds this number of
//! random graphs, from the seed `ROTINI_SEED`. With `ROTINI_QUIRKS_FLAGS`, separated by spaces, it
//! only compiles, with these flags added: for another CPU, say.
//!
//! `ROTINI_TEST_QUIRK_REPORTS` names a directory for a report of each quirk whose guard fails, for
//! the compiler's authors (`scripts/quirks --report`).
//!
//! Quirks of NVIDIA's GPUs are tested and searched on such a GPU, with `ROTINI_TEST_DEVICE=cuda`.
//!
//! The tests use the compiler's own schedules: rotini's kernels avoid its defects.
//!
//! Each attempt is a process, because it may crash or never end.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed"
)]

use anyhow::{Context as _, Result, bail, ensure};
use rayon::prelude::*;
use rotini_cache::CodeFacts;
use rotini_emit::{Backend, Description, ENTRY_POINT, Emitted, Guard, Quirk, Quirks, REGISTER, Target, emit_avoiding};
use rotini_graph::NormalGraph;
use rotini_host::engine_config;
use rotini_iree::compiler::{CompileRequest, Compiled, Compiler as _, Program, find_program};
use rotini_iree::runtime::{Instance, Module};
use rotini_plugin::serialized::{Portable, Serialized};
use rotini_reference::Profile;
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;
use rotini_tests::process::{command_of, part, this_test};
use rotini_tests::quirks::{report, target};
use rotini_tests::random::{self, Settings};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout that no guard reaches if it is right. Guards that never end wait for it in each run.
const PATIENCE: Duration = Duration::from_secs(45);

/// Default number of cases that a search tries for a quirk.
const TRIES: usize = 60;

/// Name prefix of random graphs.
const SEED: &str = "seed:";

/// A child's output about its case.
const RIGHT: &str = "the case is right";
const NOT_RIGHT: &str = "the case is not right: ";

/// A child's output if a case does not compile even with the quirk avoided: it is no guard.
const NEITHER: &str = "it does not compile at all: ";

/// Argument of a child that avoids all quirks: a graph that fails anyway is no guard.
const NOTHING: &str = "-";

/// Argument of a child that only compiles its case.
const COMPILED: &str = "compiled";

/// Compiles a graph without avoiding some quirks, as the plugin does: if that fails, again with the
/// fallback flags.
fn compile(normal: &NormalGraph, target: &Target, quirks: Quirks, flags: &[&str]) -> Result<(Emitted, Compiled)> {
    let emitted = emit_avoiding(normal, target, quirks)?;
    let compiler = Program::new(&find_program()?)?;
    let with = |fallback: &[String]| {
        let added = flags.iter().map(|&flag| flag.to_owned());
        let flags: Vec<String> = emitted.flags.iter().chain(fallback).cloned().chain(added).collect();
        compiler.compile(&CompileRequest {
            mlir: &emitted.mlir,
            name: "rotini.mlir",
            flags: &flags,
            dump_executables: None,
        })
    };
    let fallback = target.fallback_flags_avoiding(quirks);
    let compiled = with(&[]).or_else(|error| with(&fallback).map_err(|_| error))?;
    Ok((emitted, compiled))
}

/// Compiles a case without avoiding a quirk, with flags added.
fn attempt_to_compile(case: &Case, quirk: Option<Quirk>, backend: Backend, flags: &[&str]) -> Result<()> {
    let mut graph = case.graph.clone();
    graph.validate()?;
    let (normal, target) = (graph.normalise().0, target(backend));
    let quirks = Quirks::of(&target);
    if let Err(error) = compile(&normal, &target, quirks, flags) {
        bail!("{NEITHER}{error:#}");
    }
    compile(&normal, &target, without(quirks, quirk), flags).map(drop)
}

fn without(quirks: Quirks, quirk: Option<Quirk>) -> Quirks {
    quirk.map_or(quirks, |quirk| quirks.without(quirk))
}

/// Compiles a case without avoiding a quirk, executes it on a device and judges it.
fn attempt(case: &Case, quirk: Option<Quirk>, backend: Backend) -> Result<()> {
    let runner = match backend {
        Backend::Cpu => Runner::cpu()?,
        Backend::Amd | Backend::Nvidia => Runner::gpu()?,
    };
    // Any compiled context identifies the device.
    let example = rotini_wire::encode(&cases::named("pw_ADD_f32")?.graph);
    let example = runner.handle().context(&engine_config(runner.engine()), &example)?;
    let example = Serialized::decode(&example.serialize(None)?)?.portable;
    let target = Target::parse(&example.facts.compiled_for.target).context("an unknown target")?;
    ensure!(Backend::of(&target) == backend, "the device is {target}");
    let target = target.unscheduled().unwrap_or(target);

    let mut graph = case.graph.clone();
    graph.validate()?;
    let (normal, bindings) = graph.normalise();
    let (emitted, compiled) = compile(&normal, &target, without(Quirks::of(&target), quirk), &[])?;
    ensure!(
        compiled.statistics.allocated_bytes == 0,
        "it allocates while it executes"
    );
    // SAFETY: the compiler made it just now; it is only asked for its attributes.
    let module = unsafe { Module::load(&Instance::new()?, Arc::from(compiled.vmfb.as_slice())) }?;
    let portable = Portable {
        facts: CodeFacts {
            workspace_bytes: module.workspace_bytes(ENTRY_POINT)? as u64,
            dispatches: u32::try_from(compiled.statistics.dispatches)?,
            ..example.facts
        },
        operations: rotini_emit::operations(&normal),
        signature: emitted.signature,
        code: compiled.vmfb.into(),
    };
    let tensors = bindings.uids.into_iter().zip(bindings.labels).collect();
    let context = runner
        .handle()
        .context_from_serialized(&portable.encode(tensors, None)?)?;
    if let Some(data) = cases::with_data()?.iter().find(|data| data.case.name == case.name) {
        return runner.judge_on(data, &context);
    }
    runner.judge(case, &context, 64)?;
    if cases::edges().iter().any(|one| one.name == case.name) {
        let runner = runner.filled_with(Profile::FewEdges);
        runner.judge(case, &context, 64).context("with special values")?;
    }
    Ok(())
}

/// Runs a child: its part is a quirk, a backend, a case and, for a guard that is only compiled,
/// [`COMPILED`] and its flags.
fn play(part: &str) -> Result<()> {
    let words: Vec<&str> = part.split(' ').collect();
    let [quirk, backend, case, how @ ..] = words.as_slice() else {
        bail!("no part: {part}")
    };
    let quirk = match *quirk {
        NOTHING => None,
        name => Some(named(name).context("no quirk")?.quirk),
    };
    let backends = [Backend::Cpu, Backend::Amd, Backend::Nvidia];
    let backend = backends.into_iter().find(|one| one.name() == *backend);
    let backend = backend.context("no backend")?;
    let case = case_of(case).context("no case")?;
    let outcome = match how {
        [COMPILED, flags @ ..] => attempt_to_compile(&case, quirk, backend, flags),
        _ => attempt(&case, quirk, backend),
    };
    match outcome {
        Ok(()) => eprintln!("{RIGHT}"),
        Err(error) => eprintln!("{NOT_RIGHT}{error:#}"),
    }
    Ok(())
}

/// Returns a case of the suite, or the random graph of a seed.
fn case_of(name: &str) -> Option<Case> {
    if let Some(seed) = name.strip_prefix(SEED) {
        return Some(random_case(seed.parse().ok()?));
    }
    let cases = cases::all_graphs().expect("they are filled");
    cases.into_iter().find(|one| one.name == name)
}

fn random_case(seed: u64) -> Case {
    Case {
        name: format!("{SEED}{seed}"),
        graph: random::recipe(seed).graph(),
    }
}

/// Returns the reason why a guard fails without its quirk; `None` if it passes.
fn guard_failure(test: &str, one: &Description) -> Result<Option<String>> {
    match one.guard {
        Guard::Case(backend, case) => failure(test, Some(one.quirk), backend, case),
        Guard::Compiled(backend, case, flags) => {
            let case = [&[case, COMPILED], flags].concat().join(" ");
            failure(test, Some(one.quirk), backend, &case)
        }
        Guard::None(reason) => bail!("it has no guard: {reason}"),
    }
}

/// Returns the reason why a case fails without a quirk; `None` if it passes. [`COMPILED`] and flags
/// may follow the case's name.
fn failure(test: &str, quirk: Option<Quirk>, backend: Backend, case: &str) -> Result<Option<String>> {
    let cache = tempfile::tempdir()?;
    let mut command = command_of(
        test,
        &format!("{} {} {case}", quirk.map_or(NOTHING, Quirk::name), backend.name()),
        cache.path(),
    )?;
    match backend {
        Backend::Cpu => {}
        Backend::Amd => {
            command
                .env("ROTINI_DEVICE", "hip")
                .env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator()?);
        }
        Backend::Nvidia => {
            command.env("ROTINI_DEVICE", "cuda");
        }
    }
    command.env("ROTINI_OWN_WORKSPACE", "0").process_group(0);
    let log = cache.path().join("log");
    let file = std::fs::File::create(&log)?;
    let mut child = command.stdout(std::process::Stdio::null()).stderr(file).spawn()?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if started.elapsed() > PATIENCE => {
                let group = Pid::from_raw(child.id().cast_signed()).context("no process")?;
                kill_process_group(group, Signal::KILL)?;
                child.wait()?;
                return Ok(Some(format!("it takes more than {PATIENCE:?}")));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let text = std::fs::read_to_string(&log)?;
    if text.lines().any(|line| line == RIGHT) {
        return Ok(None);
    }
    match text.split_once(NOT_RIGHT) {
        Some((_, reason)) if reason.starts_with(NEITHER) => bail!("{reason}"),
        Some((_, reason)) => Ok(Some(reason.lines().next().unwrap_or_default().to_owned())),
        // Wrong kernels may write anywhere in the process, so it may crash.
        None if !status.success() => Ok(Some(format!("it ends with {status}: {}", text.trim()))),
        None => bail!("the child says nothing: {text}"),
    }
}

fn named(name: &str) -> Option<&'static Description> {
    REGISTER.iter().find(|one| one.quirk.name() == name)
}

/// Returns true if quirks of NVIDIA's GPUs are tested, on such a GPU, instead of the others.
fn has_gpu() -> bool {
    std::env::var_os("ROTINI_TEST_DEVICE").is_some_and(|device| device == "cuda")
}

/// Returns the quirks that this run tests.
fn chosen() -> Vec<&'static Description> {
    let has_gpu = has_gpu();
    let has_guard = |one: &&Description| match one.guard {
        Guard::Case(backend, _) => (backend == Backend::Nvidia) == has_gpu,
        Guard::Compiled(..) => !has_gpu,
        Guard::None(_) => false,
    };
    match std::env::var("ROTINI_QUIRKS") {
        Ok(all) if all == "all" => REGISTER.iter().filter(has_guard).collect(),
        Ok(names) => names
            .split(',')
            .map(|name| named(name).unwrap_or_else(|| panic!("there is no quirk {name}")))
            .collect(),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let day = now.map_or(0, |time| time.as_secs() / 86_400) as usize;
            let guarded: Vec<_> = REGISTER.iter().filter(has_guard).collect();
            guarded
                .iter()
                .cycle()
                .skip(day * 3 % guarded.len().max(1))
                .take(3.min(guarded.len()))
                .copied()
                .collect()
        }
    }
}

#[test]
fn a_guard_fails_without_its_quirk() {
    if let Some(part) = part() {
        return play(&part).unwrap_or_else(|error| panic!("{error:#}"));
    }
    let test = this_test().expect("this thread is the test's");
    let elsewhere =
        |one: &&Description| matches!(one.guard, Guard::Case(backend, _) if (backend == Backend::Nvidia) != has_gpu());
    for one in REGISTER.iter().filter(elsewhere) {
        eprintln!("{} is not tried: its guard needs another device", one.quirk.name());
    }
    if let Ok(names) = std::env::var("ROTINI_QUIRKS_SEARCH") {
        return search(&test, &names);
    }
    let passes: Vec<String> = chosen()
        .par_iter()
        .filter_map(|one| {
            let name = one.quirk.name();
            match guard_failure(&test, one) {
                Ok(Some(reason)) => {
                    eprintln!("{name}: {:?}: {reason}", one.guard);
                    write_report(one, &reason)
                        .err()
                        .map(|error| format!("{name}: {error:#}"))
                }
                Ok(None) => Some(format!("{name}: {:?} is right without it: delete it", one.guard)),
                Err(error) => Some(format!("{name}: {error:#}")),
            }
        })
        .collect();
    assert!(passes.is_empty(), "{}", passes.join("\n"));
}

/// Writes the report of a quirk if `ROTINI_TEST_QUIRK_REPORTS` names a directory.
fn write_report(one: &Description, seen: &str) -> Result<()> {
    let Some(directory) = std::env::var_os("ROTINI_TEST_QUIRK_REPORTS") else {
        return Ok(());
    };
    let file = std::path::PathBuf::from(directory).join(format!("{}.md", one.quirk.name()));
    Ok(std::fs::write(file, report(one, &cases::all_graphs()?, seen)?)?)
}

/// Reports the cases that fail without a quirk.
fn search(test: &str, names: &str) {
    let mut cases = cases::all_graphs().expect("they are filled");
    let Settings { seed, count } = Settings::from_environment([1, 1]);
    cases.extend((seed..seed + count).map(random_case));
    let tries = std::env::var("ROTINI_QUIRKS_TRIES").map_or(TRIES, |tries| tries.parse().expect("a number"));
    let flags = std::env::var("ROTINI_QUIRKS_FLAGS").map(|flags| format!(" {COMPILED} {flags}"));
    let how = flags.unwrap_or_default();
    for one in REGISTER
        .iter()
        .filter(|one| names == "all" || names.split(',').any(|name| name == one.quirk.name()))
    {
        for &backend in one
            .backends
            .iter()
            .filter(|&&one| (one == Backend::Nvidia) == has_gpu())
        {
            let target = target(backend);
            let quirks = Quirks::of(&target);
            let fallback = |quirks| target.fallback_flags_avoiding(quirks);
            let is_fallback = fallback(quirks) != fallback(quirks.without(one.quirk));
            let mut changed: Vec<(usize, &str)> = cases
                .par_iter()
                .filter_map(|case| {
                    let mut graph = case.graph.clone();
                    graph.validate().ok()?;
                    let normal = graph.normalise().0;
                    let emitted = |quirks| emit_avoiding(&normal, &target, quirks).ok();
                    let (before, after) = (emitted(quirks)?, emitted(quirks.without(one.quirk))?);
                    (is_fallback || before != after).then_some((after.mlir.len(), case.name.as_str()))
                })
                .collect();
            changed.sort_unstable();
            let step = changed.len().div_ceil(tries).max(1);
            let tried: Vec<&str> = changed.iter().step_by(step).map(|&(_, name)| name).collect();
            let fails = |quirk, name: &str| {
                failure(test, quirk, backend, &format!("{name}{how}")).unwrap_or_else(|error| {
                    eprintln!("{name}: {error:#}");
                    None
                })
            };
            let found: Vec<String> = tried
                .par_iter()
                .filter_map(|name| {
                    let reason = fails(Some(one.quirk), name)?;
                    let is_guard = !name.starts_with(SEED) || fails(None, name).is_none();
                    is_guard.then(|| format!("\n  {name}: {reason}"))
                })
                .collect();
            eprintln!(
                "{} on {}: {} cases differ, {} tried, {} fail{}",
                one.quirk.name(),
                backend.name(),
                changed.len(),
                tried.len(),
                found.len(),
                found.concat()
            );
        }
    }
}

/// The register has every quirk, in order.
#[test]
fn the_register_is_complete() {
    let registered: Vec<Quirk> = REGISTER.iter().map(|one| one.quirk).collect();
    assert_eq!(registered, Quirk::ALL);
}
