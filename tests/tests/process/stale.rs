//! Code of an older lowering: a directory full of it serves its own build, and no other.
//!
//! A build of other sources has another fingerprint, which the build puts into the library. Here
//! the other build is a copy of the library with its fingerprint changed; its key and its cache are
//! real. `scripts/test --full` also builds another library for real, and names it in
//! `ROTINI_TEST_OTHER_BUILD`.

use crate::{counted, create, files, small};
use bytes::Bytes;
use rotini_cache::Entry;
use rotini_emit::FINGERPRINT;
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_tests::cases::Case;
use rotini_tests::harness::Runner;
use rotini_tests::plugin;
use rotini_tests::process::{Notes, command, part, run};
use std::fs;
use std::path::{Path, PathBuf};

const ELEMENTS: i64 = 48;
const RIGHT: &str = "the code is right";
const WRONG: &str = "the code is wrong";

/// Builds a graph with the arguments of the small graph, and another result.
fn other() -> Graph {
    let mut builder = GraphBuilder::new("small");
    let [x, b, y] = ["x", "b", "y"].map(|name| builder.buffer(name, DataType::F32, &[1, ELEMENTS]));
    builder.pointwise(DataType::F32, PointwiseMode::Sub, &[x, b], y);
    builder.build()
}

/// Returns a library that was built from other sources, or a copy in a directory that looks like
/// one.
fn build_of_other_sources(directory: &Path) -> PathBuf {
    if let Some(built) = std::env::var_os("ROTINI_TEST_OTHER_BUILD") {
        return built.into();
    }
    let mut library = fs::read(plugin::path().unwrap()).unwrap();
    let fingerprint = FINGERPRINT.as_bytes();
    let windows = library.windows(fingerprint.len()).enumerate();
    let places: Vec<_> = windows
        .filter_map(|(place, window)| (window == fingerprint).then_some(place))
        .collect();
    assert!(!places.is_empty(), "the library has no fingerprint");
    for place in places {
        library[place..place + fingerprint.len()].reverse();
    }
    let path = directory.join("librotini_plugin.so");
    fs::write(&path, library).unwrap();
    path
}

#[test]
fn code_of_an_older_lowering_is_never_served() {
    if let Some(part) = part() {
        let runner = Runner::cpu().unwrap();
        let case = match part.as_str() {
            "small" => small(ELEMENTS),
            _ => Case {
                name: part,
                graph: other(),
            },
        };
        let context = create(&runner, &case).unwrap();
        let judged = runner.judge(&case, &context, 64);
        println!("{}", if judged.is_ok() { RIGHT } else { WRONG });
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (cache, log) = (directory.path().join("cache"), Notes::new(directory.path().join("log")));
    let (older, newer) = (plugin::path().unwrap(), build_of_other_sources(directory.path()));
    // The statement about a graph's code, and the number of compiler runs by then.
    let play = |build: &Path, graph: &str| {
        let mut command = command(graph, &cache).unwrap();
        let text = run(counted(&mut command, log.path()).env("ROTINI_PLUGIN", build)).unwrap();
        (text.contains(RIGHT), text.contains(WRONG), log.lines().len())
    };
    assert_eq!(play(&older, "small"), (true, false, 1));
    let entries = files(&cache, ".entry");
    let [small] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(play(&older, "other"), (true, false, 2));
    let entries = files(&cache, ".entry");
    let other = entries.iter().find(|entry| *entry != small).unwrap();

    // Simulates an older lowering that gave other MLIR for the small graph, so its content key does
    // not match either.
    for content in files(&cache, ".content") {
        fs::remove_file(content).unwrap();
    }
    let read = |path: &Path| Entry::from_bytes(&Bytes::from(fs::read(path).unwrap())).unwrap();
    let wrong = Entry {
        payload: read(other).payload,
        ..read(small)
    };
    fs::write(small, wrong.to_bytes().unwrap()).unwrap();
    // The older build uses its own entry without compiling, which shows that this test can fail.
    assert_eq!(play(&older, "small"), (false, true, 2));
    assert_eq!(play(&newer, "small"), (true, false, 3));
    // Both entries exist now, each for its build.
    assert_eq!(files(&cache, ".entry").len(), 3);
    assert_eq!(play(&newer, "small"), (true, false, 3));
    assert_eq!(play(&older, "small"), (false, true, 3));
}
