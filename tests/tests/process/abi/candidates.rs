//! Engine API 1.5.0: the configurations of a graph, and their measured speed.

use super::{assert_fails, cpu};
use rotini_graph::{ConvFprop, ConvGeometry, DataType, Graph, GraphBuilder};
use rotini_host::{engine_config, engine_config_with};
use rotini_plugin::compile::tuned_keys;
use rotini_plugin::config::Config;
use rotini_plugin::prepared::decode;
use rotini_plugin::runtime::Runtime;
use rotini_plugin::tuned::{self, Clock, FORMAT, Outcome, Record, Time, Tried};
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{EngineConfig, encode};
use rotini_wire::prediction::{Kind, Status};
use std::collections::HashSet;

const BAD_PARAM: i32 = 1;
const INVALID_VALUE: i32 = 2;
const ENGINE: i32 = 0;
const CONFIGURATION: i32 = 1;

/// Builds a convolution of few pixels, so that each of its forms compiles quickly.
fn convolution(channels: i64) -> Graph {
    let mut b = GraphBuilder::new("candidates");
    let x = b.buffer("x", DataType::F32, &[1, channels, 9, 9]);
    let w = b.buffer("w", DataType::F32, &[24, channels, 3, 3]);
    let y = b.buffer("y", DataType::F32, &[1, 24, 9, 9]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("conv", DataType::F32, ConvFprop { x, w, y, geometry });
    b.build()
}

fn asked_in(engine: i64, metric: &str) -> Vec<u8> {
    encode(&EngineConfig {
        engine_id: engine,
        ranking_metric: metric.to_owned(),
        ..EngineConfig::default()
    })
}

/// The knobs of every candidate give a context, and no two give the same code, except for the two
/// names of IREE's own form, and product tiles where rotini's kernel leaves nothing to IREE.
#[test]
fn every_candidate_is_a_context_of_its_own() {
    let (_plugin, handle, engine) = cpu();
    let graph = rotini_wire::encode(&convolution(19));
    let config = engine_config(engine);
    let page = handle.candidates(&config, &graph, [0, 10_000]).unwrap();
    assert_eq!(page.engine_id, engine);
    let page = page.candidate_page.unwrap();
    assert_eq!(page.total, page.candidates.len() as u64);
    let ids: HashSet<_> = page.candidates.iter().map(|candidate| &candidate.id).collect();
    assert!(ids.len() > 3 && ids.len() == page.candidates.len(), "{ids:?}");
    let mut codes = HashSet::new();
    let mut doubles = 0;
    for candidate in &page.candidates {
        let [(name, KnobValue::Text(text))] = candidate.knobs.as_slice() else {
            panic!("{candidate:?}");
        };
        assert_eq!((name.as_str(), text), ("rotini.schedule", &candidate.id));
        let config = engine_config_with(engine, &[(name.clone(), text.clone())]);
        // The tuple selects this candidate only.
        let own = handle
            .candidates(&config, &graph, [0, 10])
            .unwrap()
            .candidate_page
            .unwrap();
        assert_eq!((own.total, &own.candidates[0]), (1, candidate));
        let context = handle.context(&config, &graph).unwrap();
        let is_new = codes.insert(context.serialize(None).unwrap());
        doubles += usize::from(!is_new);
        let may_be_another = candidate.id.ends_with("iree") || candidate.id.starts_with("tiling");
        assert!(is_new || may_be_another, "{}", candidate.id);
    }
    assert!(doubles <= 2, "{doubles}");
}

#[test]
fn pages_of_any_size_add_up() {
    let (_plugin, handle, engine) = cpu();
    let (graph, config) = (rotini_wire::encode(&convolution(19)), engine_config(engine));
    let page = |offset, limit| {
        let details = handle.candidates(&config, &graph, [offset, limit]).unwrap();
        details.candidate_page.unwrap()
    };
    let all = page(0, 10_000);
    for limit in 1..=all.total + 1 {
        let mut found = Vec::new();
        while (found.len() as u64) < all.total {
            let part = page(found.len() as u64, limit);
            assert_eq!((part.total, part.offset), (all.total, found.len() as u64));
            assert!(part.candidates.len() as u64 <= limit && !part.candidates.is_empty());
            found.extend(part.candidates);
        }
        assert_eq!(found, all.candidates, "{limit}");
    }
    assert!(page(all.total, 1).candidates.is_empty());
    for [offset, limit] in [[all.total + 1, 1], [u64::MAX, 1], [0, 0], [0, 10_001], [0, u64::MAX]] {
        assert_fails(
            handle.candidates(&config, &graph, [offset, limit]),
            INVALID_VALUE,
            "candidate",
        );
    }
}

#[test]
fn what_was_not_measured_is_not_predicted() {
    let (_plugin, handle, engine) = cpu();
    let graph = rotini_wire::encode(&convolution(21));
    for (kind, expected) in [(ENGINE, Kind::Engine), (CONFIGURATION, Kind::Configuration)] {
        for evaluate in [0, 1] {
            let told = handle
                .prediction(&engine_config(engine), &graph, [kind, evaluate])
                .unwrap();
            assert_eq!((told.kind, told.status), (expected, Status::Unavailable));
            assert_eq!((told.metric.as_str(), told.config), ("tflops", None));
            assert!(!told.reason.is_empty() && !told.features.is_empty());
        }
    }
    let config = engine_config(engine);
    for asked in [[2, 0], [-1, 1], [0, 2], [0, -1]] {
        assert_fails(handle.prediction(&config, &graph, asked), INVALID_VALUE, "");
    }
    assert_fails(
        handle.prediction(&asked_in(engine, "joules"), &graph, [0, 1]),
        BAD_PARAM,
        "joules",
    );
}

/// The reported value is the stored one, in the units of the metric: 0.5 ms and 2 GFLOP are 4
/// TFLOPS.
#[test]
fn what_was_measured_is_told_in_the_metric_that_is_asked_for() {
    let (_plugin, handle, engine) = cpu();
    let graph = rotini_wire::encode(&convolution(23));
    let runtime = Runtime::new(Config::from_env()).unwrap();
    let device = runtime.default_device().unwrap();
    let tried = |choices: &str, median_us: f64| Tried {
        choices: choices.to_owned(),
        outcome: Outcome::Right,
        estimated_us: None,
        time: Some(Time {
            median_us,
            interval_us: [median_us; 2],
            turns: 9,
            is_beaten: false,
        }),
    };
    let mut record = Record {
        format: FORMAT,
        graph: "conv".to_owned(),
        target: "cpu".to_owned(),
        device: device.measured_on(),
        compiler: String::new(),
        rotini: String::new(),
        changed_unix: 1,
        clock: Clock::Measured,
        by_reference: true,
        flops: Some(2e9),
        is_extrapolated: false,
        tried: vec![tried("usual", 1000.0), tried("conv0=iree", 500.0)],
        winner: Some("conv0=iree".to_owned()),
    };
    let normal = decode(&graph).unwrap().graph;
    let key = tuned_keys(&runtime, &normal, device.as_ref()).unwrap()[0];
    let mut keep = |change: &dyn Fn(&mut Record)| {
        change(&mut record);
        assert!(tuned::store(&runtime, &key, &record).unwrap());
    };
    keep(&|_| ());
    for (metric, kind, value) in [
        ("tflops", ENGINE, 2.0),
        ("tflops", CONFIGURATION, 4.0),
        ("time", ENGINE, 1.0),
        ("time", CONFIGURATION, 0.5),
    ] {
        let told = handle.prediction(&asked_in(engine, metric), &graph, [kind, 1]).unwrap();
        assert_eq!(
            (told.status, told.metric.as_str()),
            (Status::Available, metric),
            "{}",
            told.reason
        );
        assert!((told.value - value).abs() < 1e-9, "{metric}: {}", told.value);
        match told.config {
            Some(config) => {
                assert_eq!(kind, CONFIGURATION);
                let knob = ("rotini.schedule".to_owned(), KnobValue::Text("conv0=iree".to_owned()));
                assert_eq!(config.knobs, [knob]);
                // The config survives the creation of a context unchanged.
                handle.context(&encode(&config), &graph).unwrap();
            }
            None => assert_eq!(kind, ENGINE),
        }
    }
    let one = engine_config_with(engine, &[("rotini.schedule".to_owned(), "iree".to_owned())]);
    let told = handle.prediction(&one, &graph, [CONFIGURATION, 1]).unwrap();
    assert_eq!(told.status, Status::Unavailable);
    keep(&|record| {
        record.clock = Clock::Predicted;
        record.is_extrapolated = true;
    });
    let told = handle.prediction(&engine_config(engine), &graph, [ENGINE, 1]).unwrap();
    assert_eq!(told.status, Status::Unavailable);
    assert!(told.reason.contains("extrapolated"), "{}", told.reason);
}
