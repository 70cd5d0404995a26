//! What the plugin answers to graphs, engines and configs, right and wrong. Null pointers are the C host's matter.

use crate::{assert_fails, cpu};
use rotini_host::{HostError, engine_config};
use rotini_tests::cases;
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{EngineConfig, encode};
use std::path::Path;

const BAD_PARAM: i32 = 1;
const INVALID_VALUE: i32 = 2;
const NOT_APPLICABLE: i32 = 5;

fn some_graph() -> Vec<u8> {
    rotini_wire::encode(&cases::all()[0].graph)
}

#[test]
fn declined_graphs_have_no_engine_and_a_reason() {
    let (_plugin, handle, engine) = cpu();
    for (case, reason) in cases::declined() {
        let bytes = rotini_wire::encode(&case.graph);
        assert!(handle.applicable(&bytes).unwrap().is_empty(), "{}", case.name);
        let config = engine_config(engine);
        for error in [
            handle.workspace_estimate(&config, &bytes).map(drop).unwrap_err(),
            handle.context(&config, &bytes).map(drop).unwrap_err(),
        ] {
            let HostError::Status { status, text, .. } = &error else {
                panic!("{}: {error}", case.name)
            };
            assert_eq!(*status, NOT_APPLICABLE, "{}: {text}", case.name);
            assert!(
                text.contains(&reason),
                "{}: {text:?} has nothing of {reason:?}",
                case.name
            );
        }
    }
}

/// hipDNN's own serialization of what no engine should accept.
#[test]
fn hipdnns_bad_graphs_are_declined() {
    let (_plugin, handle, engine) = cpu();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/hipdnn");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.starts_with("neg_") && name.ends_with(".fb")) {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(handle.applicable(&bytes).unwrap().is_empty(), "{name}");
        assert_fails(
            handle.context(&engine_config(engine), &bytes),
            INVALID_VALUE,
            "not valid",
        );
        count += 1;
    }
    assert!(count >= 4, "only {count} graphs were there");
}

#[test]
fn bytes_that_are_no_graph_are_declined() {
    let (_plugin, handle, engine) = cpu();
    let config = engine_config(engine);
    let whole = some_graph();
    for bytes in [
        &[][..],
        &[0],
        b"not a FlatBuffer",
        &[0xFF; 4096],
        &whole[..whole.len() / 2],
        &whole[1..],
    ] {
        assert!(handle.applicable(bytes).unwrap().is_empty());
        assert_fails(handle.workspace_estimate(&config, bytes), INVALID_VALUE, "graph");
        assert_fails(handle.context(&config, bytes), INVALID_VALUE, "graph");
    }
}

/// A host hands over bytes at any address.
#[test]
fn bytes_may_be_unaligned() {
    let (_plugin, handle, engine) = cpu();
    let graph = some_graph();
    for shift in 1..8 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&graph);
        assert_eq!(handle.applicable(&shifted[shift..]).unwrap(), [engine], "{shift}");
    }
}

#[test]
fn other_engines_are_refused() {
    let (plugin, handle, engine) = cpu();
    let graph = some_graph();
    let foreign = engine.wrapping_add(1);
    assert_fails(plugin.engine_name(foreign), NOT_APPLICABLE, "is not rotini's");
    assert_fails(handle.details(foreign, &graph), INVALID_VALUE, "is not rotini's");
    assert_fails(
        handle.workspace_estimate(&engine_config(foreign), &graph),
        INVALID_VALUE,
        "is not rotini's",
    );
    assert_fails(
        handle.context(&engine_config(foreign), &graph),
        INVALID_VALUE,
        "is not rotini's",
    );
}

#[test]
fn bad_configs_are_refused() {
    let (_plugin, handle, engine) = cpu();
    let graph = some_graph();
    for config in [&[][..], &[1, 2, 3], &[0xFF; 64]] {
        assert_fails(handle.workspace_estimate(config, &graph), BAD_PARAM, "engine config");
        assert_fails(handle.context(config, &graph), BAD_PARAM, "engine config");
    }
    let knobs = vec![("global.benchmarking".to_owned(), KnobValue::Integer(1))];
    let config = encode(&EngineConfig {
        engine_id: engine,
        knobs,
    });
    assert_fails(handle.context(&config, &graph), INVALID_VALUE, "global.benchmarking");
}

#[test]
fn details_are_true() {
    let (plugin, handle, engine) = cpu();
    let details = handle.details(engine, &some_graph()).unwrap();
    assert_eq!(details.engine_id, engine);
    assert_eq!(details.name, plugin.engine_name(engine).unwrap());
    // No knob is refused above, so none may be offered.
    assert_eq!(details.knobs, []);
}

/// Old hosts check nothing: a graph that asks for a newer API than the plugin has arrives all the same.
#[test]
fn graphs_that_need_a_newer_api_are_declined() {
    let (plugin, handle, engine) = cpu();
    assert_eq!(plugin.api_version().unwrap(), "1.4.0");
    let mut graph = cases::all()[0].graph.clone();
    graph.min_api_version = [1, 0, 0];
    assert_eq!(handle.applicable(&rotini_wire::encode(&graph)).unwrap(), [engine]);
    for version in [[1, 1, 0], [1, 2, 0], [1, 3, 0], [1, 4, 0]] {
        graph.min_api_version = version;
        assert_eq!(handle.applicable(&rotini_wire::encode(&graph)).unwrap(), [engine]);
    }
    for version in [[1, 4, 1], [1, 5, 0], [2, 0, 0]] {
        graph.min_api_version = version;
        let bytes = rotini_wire::encode(&graph);
        assert!(handle.applicable(&bytes).unwrap().is_empty(), "{version:?}");
        assert_fails(
            handle.context(&engine_config(engine), &bytes),
            NOT_APPLICABLE,
            "engine API",
        );
    }
}
