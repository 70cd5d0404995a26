//! `rotini inspect`: its counts are compared with LLVM's disassembly of the same code objects,
//! counted here by mnemonic.

use crate::bench::{Bench, OK, USAGE, built_library, has_compiler, plugin};
use rotini_gfx::CodeObject;
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, TensorKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns a matrix product whose kernel has matrix instructions, LDS and loops.
fn product() -> Graph {
    let mut graph = GraphBuilder::new("product");
    let a = graph.buffer("a", DataType::F16, &[1, 256, 512]);
    let b = graph.buffer("b", DataType::F16, &[1, 512, 128]);
    let c = graph.buffer("c", DataType::F16, &[1, 256, 128]);
    graph.node("product", DataType::F32, Matmul { a, b, c });
    graph.build()
}

/// Returns the class of an instruction, as `inspect` names it, from LLVM's mnemonic.
fn class(text: &str) -> String {
    let name = text.split_whitespace().next().unwrap();
    let name = name.trim_end_matches("_e32").trim_end_matches("_e64");
    // Bytes per lane, from the suffix of the mnemonic.
    let width = || {
        let pair = if name.contains("read2") || name.contains("write2") {
            2
        } else {
            1
        };
        let plain = name.trim_end_matches("_hi").trim_end_matches("_d16");
        let ends = [
            ("dwordx4", 16),
            ("dwordx3", 12),
            ("dwordx2", 8),
            ("dword", 4),
            ("byte", 1),
            ("short", 2),
            ("b128", 16),
            ("b96", 12),
            ("b64", 8),
            ("b32", 4),
            ("16", 2),
            ("8", 1),
        ];
        pair * ends
            .iter()
            .find(|(end, _)| plain.ends_with(end))
            .unwrap_or_else(|| panic!("{text}"))
            .1
    };
    let is = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    match () {
        () if is(&["v_mfma", "v_smfmac"]) => name.to_owned(),
        () if is(&["v_accvgpr_read", "v_accvgpr_write"]) => "accumulator move".to_owned(),
        () if is(&["s_load_dwordx16"]) => "scalar load 64 B".to_owned(),
        () if is(&["s_load_dwordx8"]) => "scalar load 32 B".to_owned(),
        () if is(&["s_load", "s_buffer_load"]) => format!("scalar load {} B", width()),
        () if is(&["ds_read"]) => format!("LDS read {} B", width()),
        () if is(&["ds_write"]) => format!("LDS write {} B", width()),
        () if is(&["ds_"]) => "LDS other".to_owned(),
        () if is(&["buffer_load", "global_load", "flat_load"]) => format!("load {} B", width()),
        () if is(&["buffer_store", "global_store", "flat_store"]) => format!("store {} B", width()),
        () if name.contains("atomic") => "atomic".to_owned(),
        () if is(&["scratch_"]) => format!("private {} B", width()),
        () if is(&["s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call"]) => "branch".to_owned(),
        () if is(&["s_waitcnt"]) => "wait".to_owned(),
        () if is(&["s_barrier"]) => "barrier".to_owned(),
        () if is(&[
            "s_nop",
            "s_endpgm",
            "s_sleep",
            "s_setprio",
            "s_trap",
            "buffer_wbl2",
            "buffer_inv",
            "v_nop",
        ]) =>
        {
            "other".to_owned()
        }
        () if is(&["s_"]) => "salu".to_owned(),
        () if is(&["v_"]) => "valu".to_owned(),
        () => panic!("{text}"),
    }
}

/// Returns the code objects in a vmfb: ELF files for AMD GPUs.
fn code_objects(vmfb: &[u8]) -> Vec<CodeObject> {
    let magic = b"\x7fELF\x02\x01\x01\x40";
    let begins = vmfb
        .windows(magic.len())
        .enumerate()
        .filter(|(_, bytes)| bytes == magic);
    let object = |(at, _): (usize, &[u8])| {
        // Copied, so that the bytes are aligned.
        let object = vmfb[at..].to_vec();
        CodeObject::parse(&object).unwrap()
    };
    begins.map(object).collect()
}

#[test]
fn counts_are_those_of_llvms_disassembly() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    std::fs::write(bench.path("product.fb"), rotini_wire::encode(&product())).unwrap();
    let target = ["--target", "mi300x", "--json"];
    let mut matrix = 0;
    for graph in ["good.fb", "product.fb"] {
        let document = bench.run(&[&["inspect", graph][..], &target].concat()).json(OK);
        bench
            .run(&[&["compile", graph, "-o", "code.vmfb"][..], &target].concat())
            .json(OK);
        let mut expected = BTreeMap::new();
        for object in code_objects(&std::fs::read(bench.path("code.vmfb")).unwrap()) {
            for kernel in object.kernels() {
                let mut counts: BTreeMap<String, u64> = BTreeMap::new();
                for text in kernel.texts().unwrap() {
                    *counts.entry(class(text)).or_default() += 1;
                }
                let registers = [kernel.vgprs, kernel.sgprs, kernel.lds_bytes];
                expected.insert(kernel.name.clone(), (counts, registers));
            }
        }
        let found = document["kernels"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{graph}");
        for kernel in found {
            let (counts, registers) = &expected[kernel["name"].as_str().unwrap()];
            let instructions: BTreeMap<String, u64> =
                serde_json::from_value(kernel["code"]["instructions"].clone()).unwrap();
            assert_eq!(&instructions, counts, "{graph}");
            assert_eq!(kernel["code"]["total"], counts.values().sum::<u64>());
            let needs = &kernel["needs"];
            let needs = ["vector_registers", "scalar_registers", "lds_bytes"].map(|name| needs[name].as_u64().unwrap());
            assert_eq!(needs, registers.map(u64::from));
            // The workgroup that the compiler reports as configured is that of the code object.
            let configured = &kernel["configuration"]["workgroup_size"];
            assert_eq!(configured, &kernel["needs"]["workgroup"], "{graph}");
            assert!(!kernel["configuration"]["pipeline"].as_str().unwrap().is_empty());
            matrix += kernel["hottest_loop"]["matrix_operations"].as_u64().unwrap_or(0);
        }
        // Without an emulator, nothing is predicted.
        assert_eq!(document.get("launches"), None);
    }
    assert!(
        matrix > 0,
        "no matrix instructions in any loop: the graphs are of no use here"
    );
}

/// With two buffers, loops contain no register copies: a copy would wait for its load, so that no
/// load could be in flight at the end of an iteration.
#[test]
fn loops_with_two_buffers_move_nothing() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let mut graph = GraphBuilder::new("product");
    let a = graph.buffer("a", DataType::F16, &[1, 256, 4096]);
    let b = graph.tensor("b", DataType::F16, &[1, 4096, 128], &[1, 1, 4096], TensorKind::Buffer);
    let c = graph.buffer("c", DataType::F16, &[1, 256, 128]);
    graph.node("product", DataType::F32, Matmul { a, b, c });
    std::fs::write(bench.path("product.fb"), rotini_wire::encode(&graph.build())).unwrap();
    let target = ["--target", "mi300x:cut-64x64_2x2_b2", "--json"];
    let document = bench.run(&[&["inspect", "product.fb"][..], &target].concat()).json(OK);
    let [kernel] = document["kernels"].as_array().unwrap().as_slice() else {
        panic!("{document}");
    };
    let hottest = &kernel["hottest_loop"]["instructions"];
    assert_eq!(hottest["barrier"], 2, "{hottest}");
    // Nothing of this product is transposed or compared, so no other vector instructions remain
    // either.
    assert_eq!(hottest.get("valu"), None, "{hottest}");
}

#[test]
fn what_is_emulated_is_counted_and_predicted() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let Some(emulator) = built_library("libamdhip64.so") else {
        return;
    };
    std::fs::write(bench.path("product.fb"), rotini_wire::encode(&product())).unwrap();
    let (plugin, emulator) = (
        plugin.to_str().unwrap().to_owned(),
        emulator.to_str().unwrap().to_owned(),
    );
    let inspect = [
        "inspect",
        "--target",
        "mi300x",
        "--plugin",
        &plugin,
        "--emulator",
        &emulator,
    ];
    let run = |more: &[&str]| bench.run(&[&inspect[..], more].concat());
    let document = run(&["--json", "--emulate", "product.fb", "--page", "page.html"]).json(OK);
    let [launch] = document["launches"].as_array().unwrap().as_slice() else {
        panic!("{document}");
    };
    assert_eq!(launch["kernel"], document["kernels"][0]["name"]);
    // 256 × 128 × 512 multiply-adds, without padding.
    assert_eq!(launch["counts"]["mfma_operations"], 2 * 256 * 128 * 512);
    assert_eq!(launch["counts"]["bytes_written"], 2 * 256 * 128);
    assert_eq!(launch["counts"]["workgroups"], launch["workgroups"]);
    let time = launch["time"]["predicted_us"].as_f64().unwrap();
    assert!(time > document["least"]["least_us"].as_f64().unwrap(), "{time}");

    // A device with a thousandth of the memory bandwidth, and a device of another product.
    for (file, machine) in [("slow.json", "mi300x"), ("other.json", "mi325x")] {
        let calibration = serde_json::json!({
            "format": 1, "device": "a slow one", "machine": machine, "rotini": "0", "measured_unix": 0,
            "constants": {"memory": 4.1},
        });
        std::fs::write(bench.path(file), calibration.to_string()).unwrap();
    }
    let slow = run(&["--json", "--emulate=sample", "product.fb", "--calibration", "slow.json"]).json(OK);
    let slower = slow["launches"][0]["time"]["predicted_us"].as_f64().unwrap();
    assert!(slower > 3.0 * time, "{slower} {time}");
    assert_eq!(slow["constants_of"], "a slow one");
    assert_eq!(document.get("constants_of"), None);
    let refused = run(&["--emulate=sample", "product.fb", "--calibration", "other.json"]);
    assert!(
        refused.code != OK && refused.stderr.contains("another device"),
        "{}",
        refused.stderr
    );

    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    let text = run(&["--emulate=sample", "product.fb"]);
    assert_eq!(text.code, OK, "{}", text.stderr);
    // Every time in microseconds is labelled as predicted, except for the lower bound.
    for told in [&page, &text.stdout] {
        let mut times = 0;
        for (at, _) in told.match_indices(" µs") {
            let before = &told[told[..at].rfind(['│', '>', ';', ',', ':']).unwrap_or(0)..at];
            let after = &told[at..];
            times += 1;
            assert!(
                before.contains("predicted")
                    || after.starts_with(" µs at the data sheet's rates")
                    || after.starts_with(" µs at the data sheet’s"),
                "{before}"
            );
        }
        assert!(times >= 3, "{told}");
    }

    // The differences to the document itself, and to another graph.
    std::fs::write(bench.path("before.json"), serde_json::to_vec(&document).unwrap()).unwrap();
    let same = run(&["--json", "--diff", "before.json", "before.json"]).json(OK);
    assert_eq!(same["differences"], Value::Array(Vec::new()));
    let other = run(&["--json", "--diff", "before.json", "good.fb"]).json(OK);
    let differences = other["differences"].as_array().unwrap();
    let of = |what: &str| differences.iter().find(|one| one["what"] == what);
    assert!(of("least").is_some() && of("registers").is_some(), "{other}");
}

#[test]
fn targets_without_a_model_are_refused() {
    let bench = Bench::new();
    let refused = bench.run(&["inspect", "--target", "cpu", "good.fb"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (USAGE, ""));
    assert!(refused.stderr.contains("mi300x"), "{}", refused.stderr);
}
