//! Serialized execution contexts.

use crate::{INTERNAL_ERROR, INVALID_VALUE, NOT_APPLICABLE, create, directory, expect_status, small};
use rotini_host::engine_config;
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run, without_compiler};
use rotini_tests::shapes::{self, Family, overrides};
use std::path::{Path, PathBuf};

/// Returns a convolution with bias and relu, a reduction of more than one dispatch, and a small
/// graph.
fn some_cases() -> Vec<Case> {
    let all = cases::all();
    let mut some: Vec<Case> = all.iter().step_by(all.len() / 6).cloned().collect();
    some.push(small(33));
    some
}

/// Returns a graph whose shapes and scalar are passed with each execution.
fn scaled() -> Family {
    shapes::all()
        .into_iter()
        .find(|family| family.name == "scaled")
        .unwrap()
}

fn runner(gpu: bool) -> Runner {
    if gpu { Runner::gpu() } else { Runner::cpu() }.unwrap()
}

fn places(directory: &Path) -> Vec<(Case, PathBuf)> {
    let place = |case: Case| {
        let place = directory.join(format!("{}.context", case.name));
        (case, place)
    };
    some_cases().into_iter().map(place).collect()
}

/// One process compiles and serializes; another one, without compiler and cache directory, loads
/// and executes.
fn travel(device: &str) {
    let gpu = device != "cpu";
    match part().as_deref() {
        None => {
            let directory = tempfile::tempdir().unwrap();
            let cache = directory.path().join("cache");
            let start = |part: &str, cache: &Path| {
                let mut command = command(part, cache).unwrap();
                command
                    .env("ROTINI_DEVICE", device)
                    .env("ROTINI_TEST_DIRECTORY", directory.path());
                if gpu {
                    command.env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator().unwrap());
                }
                command
            };
            run(&mut start("save", &cache)).unwrap();
            let other = directory.path().join("never made");
            run(without_compiler(&mut start("load", &other))).unwrap();
        }
        Some("save") => {
            let runner = runner(gpu);
            for (case, place) in places(&directory()) {
                let context = create(&runner, &case).unwrap();
                let bytes = context.serialize(Some(runner.engine())).unwrap();
                assert_eq!(bytes, context.serialize(None).unwrap());
                std::fs::write(place, bytes).unwrap();
            }
            let family = scaled();
            let bytes = rotini_wire::encode(&family.declared());
            let context = runner
                .handle()
                .context(&engine_config(runner.engine()), &bytes)
                .unwrap();
            family.judge_others(&runner, &context, 1).unwrap();
            std::fs::write(directory().join("scaled"), context.serialize(None).unwrap()).unwrap();
        }
        Some(_) => {
            let runner = runner(gpu);
            for (case, place) in places(&directory()) {
                let bytes = std::fs::read(place).unwrap();
                let context = runner.handle().context_from_serialized(&bytes).unwrap();
                let judged = runner.judge(&case, &context, 64);
                judged.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
                assert_eq!(context.serialize(None).unwrap(), bytes, "{}: other bytes", case.name);
            }
            // Scalars are not part of the code, and earlier shapes are in the bytes.
            let family = scaled();
            let context = std::fs::read(directory().join("scaled")).unwrap();
            let context = runner.handle().context_from_serialized(&context).unwrap();
            runner.judge_shapes(&family.declared(), &context, &[], 2).unwrap();
            family.judge_others(&runner, &context, 3).unwrap();
            let cache = PathBuf::from(std::env::var_os("ROTINI_CACHE_DIR").unwrap());
            assert!(!cache.exists(), "loading touched the cache");
            // Confirms that there is no compiler.
            let text = expect_status(create(&runner, &small(7)), INTERNAL_ERROR);
            assert!(text.contains("no compiler"), "{text}");
            let unseen = (family.build)(&[17]);
            let error = runner.judge_shapes(&unseen, &context, &overrides(&family.declared(), &unseen), 1);
            let text = format!("{:#}", error.unwrap_err());
            assert!(text.contains("no compiler"), "{text}");
        }
    }
}

#[test]
fn contexts_travel_without_compiler_and_cache() {
    travel("cpu");
}

#[test]
fn contexts_for_mi300_travel_too() {
    travel("hip");
}

#[test]
fn damage_anywhere_is_seen() {
    let runner = Runner::cpu().unwrap();
    let case = small(5);
    let context = create(&runner, &case).unwrap();
    let bytes = context.serialize(None).unwrap();
    let load = |bytes: &[u8]| runner.handle().context_from_serialized(bytes);
    let loaded = load(&bytes).unwrap();
    // The first bytes, and then every 61st: magic, version, checksum, header and code.
    let places = (0..bytes.len()).filter(|at| *at < 512 || at % 61 == 0);
    for at in places {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        expect_status(load(&damaged), INVALID_VALUE);
        expect_status(load(&bytes[..at]), INVALID_VALUE);
    }
    expect_status(load(&[&bytes[..], b"\n"].concat()), INVALID_VALUE);
    expect_status(load(&[&bytes[..], &bytes[..]].concat()), INVALID_VALUE);
    expect_status(load(b"FUSPLAN\0"), INVALID_VALUE);
    // The failed loads have not affected the host.
    runner.judge(&case, &loaded, 64).unwrap();
}

#[test]
fn foreign_contexts_are_declined() {
    if part().is_some() {
        let runner = Runner::gpu().unwrap();
        let context = create(&runner, &small(5)).unwrap();
        return std::fs::write(directory().join("mi300"), context.serialize(None).unwrap()).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = command("mi300", &directory.path().join("cache")).unwrap();
    command
        .env("ROTINI_DEVICE", "hip")
        .env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator().unwrap())
        .env("ROTINI_TEST_DIRECTORY", directory.path());
    run(&mut command).unwrap();
    let bytes = std::fs::read(directory.path().join("mi300")).unwrap();
    let runner = Runner::cpu().unwrap();
    let text = expect_status(runner.handle().context_from_serialized(&bytes), NOT_APPLICABLE);
    assert!(text.contains("gfx942") || text.contains("mi300"), "{text}");
}

#[test]
fn another_engines_id_is_refused() {
    let runner = Runner::cpu().unwrap();
    let context = create(&runner, &small(6)).unwrap();
    expect_status(context.serialize(Some(runner.engine() ^ 1)), INVALID_VALUE);
}
