//! The plugin's answers to valid and invalid graphs, engines and configs. The C host tests null
//! pointers.

use super::{assert_fails, cpu};
use crate::{INVALID_VALUE, LOG, NOT_APPLICABLE, log};
use rotini_host::{HostError, engine_config};
use rotini_tests::cases;
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{EngineConfig, encode};
use std::path::Path;

const BAD_PARAM: i32 = 1;

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

/// hipDNN's own serializations of graphs that no engine should accept.
#[test]
fn hipdnns_bad_graphs_are_declined() {
    let (_plugin, handle, engine) = cpu();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/hipdnn");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
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

/// A host may pass bytes at any address.
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
    for (name, value) in [
        ("global.deterministic", KnobValue::Integer(2)),
        ("global.benchmarking", KnobValue::Float(0.0)),
        ("rotini.measured", KnobValue::Text("1".to_owned())),
        ("rotini.schedule", KnobValue::Integer(1)),
        ("rotini.schedule", KnobValue::Text("quickly".to_owned())),
        // The graph has no such place.
        ("rotini.schedule", KnobValue::Text("gemm7=64x64_2x2_b1".to_owned())),
    ] {
        let config = with_knobs(engine, &[(name, value)]);
        let word = if name == "rotini.schedule" { "" } else { name };
        assert_fails(handle.context(&config, &graph), INVALID_VALUE, word);
    }
    for value in [
        KnobValue::Integer(-1),
        KnobValue::Float(1.0),
        KnobValue::Text("1".to_owned()),
    ] {
        let config = with_knobs(engine, &[("global.workspace_size_limit", value)]);
        assert_fails(
            handle.context(&config, &graph),
            INVALID_VALUE,
            "global.workspace_size_limit",
        );
    }
}

/// Encodes an engine config with these knobs set.
fn with_knobs(engine: i64, knobs: &[(&str, KnobValue)]) -> Vec<u8> {
    let knobs = knobs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    encode(&EngineConfig {
        engine_id: engine,
        knobs,
        unreadable: vec!["newer.than_the_schema".to_owned()],
        ..EngineConfig::default()
    })
}

/// Hosts pass on knobs that their users set for another engine.
#[test]
fn knobs_that_are_not_rotinis_are_ignored_with_one_warning_each() {
    let (plugin, handle, engine) = cpu();
    plugin.set_logging(Some(log), 0).unwrap();
    let knobs = [
        ("global.benchmarking", KnobValue::Integer(1)),
        ("global.of_the_future", KnobValue::Float(0.5)),
        ("miopen.conv.tile_size", KnobValue::Text("large".to_owned())),
    ];
    let (graph, config) = (some_graph(), with_knobs(engine, &knobs));
    for _ in 0..3 {
        handle.workspace_estimate(&config, &graph).unwrap();
        handle.context(&config, &graph).unwrap();
    }
    let log = LOG.lock().unwrap();
    for name in knobs.iter().map(|(name, _)| *name).chain(["newer.than_the_schema"]) {
        let told: Vec<_> = log.iter().filter(|(_, text)| text.contains(name)).collect();
        assert!(matches!(&told[..], [(1, _)]), "{name}: {told:?}");
    }
}

/// The default of the benchmark knob is off, and a workspace limit applies from the first missing
/// byte on.
#[test]
fn global_knobs_are_honoured() {
    let (_plugin, handle, engine) = cpu();
    let case = cases::all().into_iter().find(|case| {
        let graph = rotini_wire::encode(&case.graph);
        handle
            .workspace_estimate(&engine_config(engine), &graph)
            .is_ok_and(|bytes| bytes > 0)
            && handle
                .context(&engine_config(engine), &graph)
                .is_ok_and(|context| context.workspace().unwrap() > 0)
    });
    let graph = rotini_wire::encode(&case.expect("one of them needs workspace").graph);
    let needed = handle
        .context(&engine_config(engine), &graph)
        .unwrap()
        .workspace()
        .unwrap();
    let limited = |bytes: usize| {
        let limit = KnobValue::Integer(i64::try_from(bytes).unwrap());
        let knobs = [
            ("global.workspace_size_limit", limit),
            ("global.benchmarking", KnobValue::Integer(0)),
        ];
        with_knobs(engine, &knobs)
    };
    assert_eq!(
        handle.context(&limited(needed), &graph).unwrap().workspace().unwrap(),
        needed
    );
    assert_fails(
        handle.context(&limited(needed - 1), &graph),
        NOT_APPLICABLE,
        "global.workspace_size_limit",
    );
    assert!(handle.workspace_estimate(&limited(needed - 1), &graph).unwrap() < needed);
}

#[test]
fn details_are_true() {
    let (plugin, handle, engine) = cpu();
    let details = handle.details(engine, &some_graph()).unwrap();
    assert_eq!(details.engine_id, engine);
    assert_eq!(details.name, plugin.engine_name(engine).unwrap());
    // The offered knobs are those that are honoured.
    let offered: Vec<_> = details.knobs.iter().map(|knob| knob.id.as_str()).collect();
    assert_eq!(
        offered,
        [
            "global.workspace_size_limit",
            "global.deterministic",
            "rotini.schedule",
            "rotini.measured"
        ]
    );
}

/// Hosts of 1.0 to 1.4 refuse a plugin of another major version only: the comments of hipDNN's
/// `engine_api_version.h` say so (ROCm/rocm-libraries@0fa4c2d9).
#[test]
fn older_hosts_take_the_plugin() {
    let (plugin, ..) = cpu();
    let version = plugin.api_version().unwrap();
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    for host in ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"] {
        assert_eq!(major(&version), major(host));
    }
}

/// Old hosts do not check: a graph that requires a newer API than the plugin's arrives
/// nevertheless.
#[test]
fn graphs_that_need_a_newer_api_are_declined() {
    let (plugin, handle, engine) = cpu();
    assert_eq!(plugin.api_version().unwrap(), "1.5.0");
    let mut graph = cases::all()[0].graph.clone();
    graph.min_api_version = [1, 0, 0];
    assert_eq!(handle.applicable(&rotini_wire::encode(&graph)).unwrap(), [engine]);
    for version in [[1, 1, 0], [1, 2, 0], [1, 3, 0], [1, 4, 0], [1, 5, 0]] {
        graph.min_api_version = version;
        assert_eq!(handle.applicable(&rotini_wire::encode(&graph)).unwrap(), [engine]);
    }
    for version in [[1, 5, 1], [1, 6, 0], [2, 0, 0]] {
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
