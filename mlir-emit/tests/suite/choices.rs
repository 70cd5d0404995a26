//! Choices: every candidate of every place can be demanded, and nothing changes without a demand.

use rotini_emit::{
    Candidate, Choices, EmitError, Place, Target, check, configurations, emit, emit_chosen, estimated_us, places,
    plan_chosen, promising, workspace_bound_chosen,
};
use rotini_graph::{
    ConvDgrad, ConvFprop, ConvGeometry, ConvWgrad, DataType, Graph, GraphBuilder, Matmul, NormalGraph, Reduction,
    ReductionMode,
};
use std::collections::HashSet;

const F32: DataType = DataType::F32;
const F16: DataType = DataType::F16;

fn normal(mut graph: Graph) -> NormalGraph {
    graph.validate().expect("the graph is valid");
    graph.normalise().0
}

fn target(name: &str) -> Target {
    Target::parse(name).expect("it is known")
}

fn product(dtype: DataType, [rows, terms, columns]: [i64; 3]) -> NormalGraph {
    let mut b = GraphBuilder::new("matmul");
    let (x, y) = (
        b.buffer("x", dtype, &[rows, terms]),
        b.buffer("y", dtype, &[rows, columns]),
    );
    let w = b.tensor(
        "w",
        dtype,
        &[terms, columns],
        &[1, terms],
        rotini_graph::TensorKind::Buffer,
    );
    b.node("matmul", F32, Matmul { a: x, b: w, c: y });
    normal(b.build())
}

fn convolution() -> NormalGraph {
    let mut b = GraphBuilder::new("conv");
    let x = b.buffer("x", F32, &[1, 32, 14, 14]);
    let w = b.buffer("w", F32, &[64, 32, 3, 3]);
    let y = b.buffer("y", F32, &[1, 64, 14, 14]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("conv", F32, ConvFprop { x, w, y, geometry });
    normal(b.build())
}

fn gradients() -> [NormalGraph; 2] {
    let build = |of_filter: bool| {
        let mut b = GraphBuilder::new("gradient");
        let [x, dy] = ["x", "dy"].map(|name| b.buffer(name, F32, &[2, 32, 14, 14]));
        let w = b.buffer("w", F32, &[32, 32, 3, 3]);
        let geometry = ConvGeometry::same(2, 1);
        if of_filter {
            b.node("wgrad", F32, ConvWgrad { x, dy, dw: w, geometry });
        } else {
            b.node("dgrad", F32, ConvDgrad { dy, w, dx: x, geometry });
        }
        normal(b.build())
    };
    [build(false), build(true)]
}

fn sums() -> NormalGraph {
    let mut b = GraphBuilder::new("sums");
    let (x, y) = (b.buffer("x", F32, &[64, 256]), b.buffer("y", F32, &[64, 1]));
    b.node("sum", F32, Reduction::new(ReductionMode::Add, x, y));
    normal(b.build())
}

fn listed(graph: &NormalGraph, target: &Target) -> Vec<Place> {
    places(graph, target, &Choices::default()).expect("the graph is supported")
}

fn text(graph: &NormalGraph, target: &Target, choices: &str) -> (String, Vec<String>) {
    let choices = Choices::parse(choices).expect("they can be read");
    let emitted = emit_chosen(graph, target, &choices).expect("they can be had");
    (emitted.mlir, emitted.flags)
}

/// The names of a graph's places and their candidates.
fn names(graph: &NormalGraph, target: &Target) -> Vec<String> {
    let name = |place: Place| {
        let ids: Vec<String> = place.candidates.into_iter().map(|candidate| candidate.id).collect();
        format!("{}: {} ({})", place.name, ids.join(" "), place.usual)
    };
    listed(graph, target).into_iter().map(name).collect()
}

#[test]
fn places_of_cpus_are_listed() {
    let cpu = target("x86-64-v4");
    let [dgrad, wgrad] = gradients();
    for (graph, expected) in [
        (
            convolution(),
            &["conv0: panels iree patches (panels)", "tiling0: packed plain (packed)"][..],
        ),
        (
            dgrad,
            &["dgrad0: kernel iree (kernel)", "tiling0: packed plain (packed)"],
        ),
        (
            wgrad,
            &["wgrad0: kernel iree (kernel)", "tiling0: packed plain (packed)"],
        ),
        (
            product(F32, [128, 512, 128]),
            &["product0: kernel iree (iree)", "tiling0: packed plain (packed)"],
        ),
        (
            product(F32, [128, 1024, 128]),
            &["product0: kernel iree (kernel)", "tiling0: packed plain (packed)"],
        ),
        (sums(), &["rows0: kernel lanes iree (kernel)"]),
    ] {
        assert_eq!(names(&graph, &cpu), expected);
    }
    // The kernel of products is for wide registers.
    let narrow = names(&product(F32, [128, 1024, 128]), &target("x86-64-v3"));
    assert_eq!(narrow, ["tiling0: packed plain (packed)"]);
    let patches = "conv0: iree patches (iree)";
    assert_eq!(names(&convolution(), &target("gfx90a")), [patches]);
    let fusion = "fusion0: plain aggressive (plain)";
    assert_eq!(names(&convolution(), &target("sm_80")), [patches, fusion]);
}

/// Every candidate that is listed makes another module, and the usual one the module of before.
#[test]
fn every_configuration_is_another_module() {
    let [dgrad, wgrad] = gradients();
    let cpu = target("x86-64-v4");
    let mut seen = 0;
    for graph in [convolution(), dgrad, wgrad, product(F32, [128, 1024, 128]), sums()] {
        let usual = emit(&graph, &cpu).expect("the graph is supported");
        let places = listed(&graph, &cpu);
        let mut texts = HashSet::new();
        for choices in configurations(&places) {
            let emitted = text(&graph, &cpu, &choices.to_string());
            if choices.is_usual() {
                assert_eq!(emitted, (usual.mlir.clone(), usual.flags.clone()));
            }
            // Where there is one place with IREE's own code, that is the same as IREE's own.
            let is_new = texts.insert(emitted);
            assert!(is_new || choices.to_string().ends_with("=iree"), "{choices}");
            seen += 1;
        }
        for place in &places {
            let usual_id = Choices::of(&place.name, &place.usual);
            assert_eq!(text(&graph, &cpu, &usual_id.to_string()), text(&graph, &cpu, "usual"));
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn a_schedule_of_a_product_is_demanded_by_its_word() {
    let (graph, mi300x) = (product(F16, [1024, 1024, 2048]), target("mi300x"));
    let places = listed(&graph, &mi300x);
    let [place] = places.as_slice() else {
        unreachable!("one product: {places:?}");
    };
    assert_eq!((place.name.as_str(), place.kind), ("gemm0", "gemm"));
    let kernel = |choices: &str| {
        let choices = Choices::parse(choices).expect("they can be read");
        let plan = plan_chosen(&graph, &mi300x, &choices).expect("it can be had");
        plan.kernels.into_iter().find_map(|kernel| kernel.name)
    };
    for candidate in &place.candidates {
        let name = kernel(&format!("gemm0={}", candidate.id)).expect("a kernel of rotini");
        assert!(name.contains(&format!("_{}_", candidate.id)), "{name}");
        let chosen = Choices::of("gemm", &candidate.id);
        assert_eq!(estimated_us(&places, &chosen), candidate.estimated_us);
    }
    // The fastest by the estimates comes first.
    let times: Vec<f64> = place
        .candidates
        .iter()
        .filter_map(|candidate| candidate.estimated_us)
        .collect();
    assert!(times.len() > 30 && times[0] <= 1.02 * times.iter().copied().fold(f64::MAX, f64::min));
    assert_eq!(kernel("gemm=#0"), kernel(&format!("gemm0={}", place.candidates[0].id)));
    // IREE's own is the target without schedules.
    let plain = emit(&graph, &mi300x.unscheduled().expect("it has schedules")).expect("it is supported");
    assert_eq!(text(&graph, &mi300x, "iree"), (plain.mlir, plain.flags));
    // Shared sums need workspace, and the bound knows.
    let bound = |choices: &str| {
        let choices = Choices::parse(choices).expect("they can be read");
        workspace_bound_chosen(&graph, &mi300x, &choices).expect("it can be had")
    };
    assert_eq!(bound("gemm=64x64_2x2_b1"), 0);
    assert_eq!(bound("gemm=64x64_2x2_b1_p4"), 4 * 4 * 1024 * 2048);
    let dozen = promising(&places, 12);
    assert_eq!(dozen.len(), 12);
    assert!(dozen.contains(&Choices::iree()) && dozen.contains(&Choices::usual()));
    // More than one tile is among them.
    let tiles: HashSet<String> = dozen
        .iter()
        .filter_map(|choices| Some(choices.to_string().split_once('=')?.1.split('_').next()?.to_owned()))
        .collect();
    assert!(tiles.len() >= 4, "{tiles:?}");
}

#[test]
fn rows_have_schedules_on_gpus() {
    let (graph, mi300x) = (sums(), target("mi300x"));
    let places = listed(&graph, &mi300x);
    assert_eq!(places.len(), 1);
    assert!(places[0].candidates.len() > 4, "{:?}", places[0]);
    for candidate in &places[0].candidates {
        let (mlir, _) = text(&graph, &mi300x, &format!("rows0={}", candidate.id));
        assert!(mlir.contains(&format!("_{}_", candidate.id)), "{}", candidate.id);
    }
}

/// Rows of 1-byte codes that lanes load one by one have the smallest tiles alone: no candidate is
/// another one in disguise.
#[test]
fn each_schedule_is_obeyed_or_refused() {
    let mi300x = target("mi300x");
    let mut b = GraphBuilder::new("matmul");
    let codes = DataType::F8E4M3Fnuz;
    let [x, w] = [[1023, 1023], [1023, 1023]].map(|dims| b.buffer("operand", codes, &dims));
    let y = b.buffer("y", F16, &[1023, 1023]);
    b.node("matmul", F32, Matmul { a: x, b: w, c: y });
    for graph in [normal(b.build()), product(codes, [1024, 1024, 1024])] {
        let places = listed(&graph, &mi300x);
        let texts: HashSet<_> = configurations(&places[..1])
            .iter()
            .filter(|choices| **choices != Choices::iree())
            .map(|choices| text(&graph, &mi300x, &choices.to_string()))
            .collect();
        assert_eq!(texts.len(), places[0].candidates.len(), "{:?}", places[0]);
    }
}

/// Convolutions that no kernel of rotini computes have IREE's code as their usual form.
#[test]
fn the_usual_form_is_a_candidate() {
    for name in ["cpu", "x86-64-v3", "x86-64-v4", "mi300x", "sm_80"] {
        let target = target(name);
        for dtype in [F32, F16, DataType::F64] {
            let mut b = GraphBuilder::new("conv");
            let x = b.buffer_channels_last("x", dtype, &[1, 32, 14, 14]);
            let w = b.buffer_channels_last("w", dtype, &[64, 32, 3, 3]);
            let y = b.buffer_channels_last("y", dtype, &[1, 64, 14, 14]);
            let geometry = ConvGeometry::same(2, 1);
            let compute = if dtype == DataType::F64 { dtype } else { F32 };
            b.node("conv", compute, ConvFprop { x, w, y, geometry });
            let graph = normal(b.build());
            if check(&graph, &target).is_err() {
                continue;
            }
            for place in listed(&graph, &target) {
                let is_usual = |candidate: &Candidate| candidate.id == place.usual;
                assert!(place.candidates.iter().any(is_usual), "{name} {dtype}: {place:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let graph = product(F16, [1024, 1024, 2048]);
    for (name, choices) in [
        ("mi300x", "rows=l64_w256_r3"),
        ("mi300x", "gemm=64x64_2x2_b9"),
        ("mi300x", "gemm1=64x64_2x2_b1"),
        ("mi300x", "gemm=#9999"),
        ("x86-64-v4", "gemm=64x64_2x2_b1"),
        ("x86-64-v4", "conv0=panels"),
        ("sm_80", "tiling=plain"),
    ] {
        let chosen = Choices::parse(choices).expect("they can be read");
        let refused = emit_chosen(&graph, &target(name), &chosen);
        assert!(matches!(refused, Err(EmitError::Choice { .. })), "{name}: {choices}");
        assert!(places(&graph, &target(name), &chosen).is_err(), "{name}: {choices}");
    }
}
