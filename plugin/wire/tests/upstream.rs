//! `scripts/upstream`: its findings in schemas and headers written for this test, and its exit
//! codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

#[path = "../examples/upstream/tool.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod tool;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the tool and returns the exit code and the lines of output.
fn run(arguments: &[&str]) -> (u8, Vec<String>) {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let mut out = Vec::new();
    let code = tool::run(&root(), &arguments, &mut out);
    let text = String::from_utf8(out).unwrap();
    (code, text.lines().map(str::to_owned).collect())
}

/// Runs the tool on a fixture.
fn compare(fixture: &str, options: &[&str]) -> (u8, Vec<String>) {
    let path = root().join("plugin/wire/tests/fixtures/upstream").join(fixture);
    let mut arguments = vec![path.to_str().unwrap()];
    arguments.extend(options);
    run(&arguments)
}

/// Returns the texts of the lines with a status.
fn with<'a>(lines: &'a [String], status: &str) -> Vec<&'a str> {
    let found = lines.iter().filter_map(|line| line.strip_prefix(status));
    found.map(str::trim_start).collect()
}

#[test]
fn what_is_new_or_gone_is_no_disagreement() {
    let (code, lines) = compare("same", &["--list"]);
    assert_eq!(with(&lines, "DISAGREES"), Vec::<&str>::new());
    assert_eq!(code, 0);
    assert_eq!(
        with(&lines, "theirs only"),
        [
            "ReductionMode.OF_THE_FUTURE = 10",
            "table OfTheFuture",
            "hipdnnEnginePluginOfTheFuture()",
            "engine API: ours 1.5.0, theirs 1.9.0",
            "K_OF_THE_FUTURE_MIN_API_VERSION = 1.9.0, ours is 1.5.0",
            "K_MAX_SUPPORTED_API_VERSION = 1.9.0, ours is 1.5.0",
        ]
    );
    let same = with(&lines, "same");
    for expected in [
        "ConvMode.CROSS_CORRELATION = 2",
        "KnobSetting.value_type = 1",
        "KnobSetting.value = 2",
        "KnobValue.StringValue = 3",
        "ReductionAttributes.is_deterministic = 3",
        "BehaviorNote.RUNTIME_COMPILATION = 0",
        "hipdnnEnginePluginCreate(pointer)",
        "hipdnnEnginePluginGetEngineName(int64, pointer)",
        "K_OVERRIDE_EXECUTE_MIN_API_VERSION = 1.1.0, ours is 1.5.0",
    ] {
        assert!(same.contains(&expected), "{expected} is not among {same:#?}");
    }
    let ours = with(&lines, "ours only");
    for expected in [
        "table SdpaAttributes",
        "MatmulAttributes.umd_flops = 3",
        "hipdnnEnginePluginDestroy(pointer)",
    ] {
        assert!(ours.contains(&expected), "{expected} is not among {ours:#?}");
    }
    let missing = with(&lines, "not there:");
    assert!(
        missing.iter().any(|file| file.starts_with("PluginApi.h")),
        "{missing:?}"
    );

    let (code, short) = compare("same", &[]);
    assert_eq!((code, with(&short, "same").len()), (0, 0), "only with --list");
    assert_eq!(short.last(), lines.last());
}

#[test]
fn each_disagreement_is_found() {
    let (code, lines) = compare("renumbered", &[]);
    assert_eq!(code, 1);
    assert_eq!(
        with(&lines, "DISAGREES"),
        [
            "BehaviorNote.RUNTIME_COMPILATION: ours 0, theirs 1",
            "BlockScaleDequantizeAttributes.block_size: ours has the type [int], theirs [long]",
            "BlockScaleDequantizeAttributes.is_negative_scale: ours has the default 0, theirs 1",
            "ConvMode.CONVOLUTION: ours 1, theirs 2",
            "ConvMode.CROSS_CORRELATION: ours 2, theirs 1",
            "DiagonalAlignment: the numbers of ours are byte, of theirs short",
            "MatmulAttributes.b_tensor_uid: ours 1, theirs 2",
            "MatmulAttributes.c_tensor_uid: ours 2, theirs 3",
            "MatmulAttributes: 1 is ours b_tensor_uid, theirs inserted",
            "PaddingMode: 2 is ours ZERO_PAD, theirs OTHER_NAME",
            "hipdnnEnginePluginGetEngineName: ours takes (int64, pointer), theirs (uint32, pointer)",
            "engine API: ours 1.5.0, theirs 2.0.0",
        ]
    );
}

#[test]
fn generated_headers_do_where_there_is_no_schema() {
    let (code, lines) = compare("generated", &["--list"]);
    assert_eq!(code, 1);
    assert_eq!(with(&lines, "DISAGREES"), ["KnobValue.FloatValue: ours 2, theirs 3"]);
    let same = with(&lines, "same");
    for expected in [
        "ConvMode.CROSS_CORRELATION = 2",
        "TensorAttributes.virtual = 5",
        "TensorAttributes.value = 7",
    ] {
        assert!(same.contains(&expected), "{expected} is not among {same:#?}");
    }
    assert!(with(&lines, "not there:")[0].starts_with("*.fbs"));
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let usage = "usage: scripts/upstream DIRECTORY [--list]";
    for arguments in [&[][..], &["a", "b"], &["a", "--lists"]] {
        assert_eq!(run(arguments), (2, vec![usage.to_owned()]));
    }
    let (code, lines) = run(&["no/such/directory"]);
    assert!(code == 2 && lines[0].contains("no/such/directory"), "{lines:?}");
    let empty = tempfile::tempdir().unwrap();
    let (code, lines) = run(&[empty.path().to_str().unwrap()]);
    assert!(
        code == 2 && lines[0].contains("neither *.fbs nor *_generated.h"),
        "{lines:?}"
    );

    for (text, error) in [
        ("enum A : byte { B = x }", "line 1: \"x\" is no number"),
        ("table A { b: int }", "line 1: \";\" is expected, not \"}\""),
        ("\n\nkeyword A;", "line 3: \"keyword\" begins no definition"),
        (
            "table A { b: int; } table A { c: int; }",
            "line 1: A is defined once more, differently",
        ),
        ("include \"a", "line 1: a text does not end"),
    ] {
        std::fs::write(empty.path().join("a.fbs"), text).unwrap();
        let (code, lines) = run(&[empty.path().to_str().unwrap()]);
        assert!(code == 2 && lines[0].ends_with(error), "{text}: {lines:?}");
    }
}

/// Checks that rotini's own sources are read completely.
#[test]
fn our_side_is_whole() {
    let ours = tool::ours::read(&root()).unwrap();
    let sources = ["base", "context", "engine", "predictions"].map(|name| {
        let path = root().join("plugin/src/abi").join(name).with_extension("rs");
        std::fs::read_to_string(path).unwrap()
    });
    let exported: usize = sources
        .iter()
        .map(|text| text.matches("#[unsafe(no_mangle)]").count())
        .sum();
    assert_eq!(ours.functions.len(), exported);
    let unknown = |class: &tool::c::Class| matches!(class, tool::c::Class::Other(_));
    for (name, arguments) in &ours.functions {
        assert!(!arguments.iter().any(unknown), "{name}: {arguments:?}");
    }
    for name in [
        "PluginStatus",
        "PluginType",
        "Severity",
        "PointwiseMode",
        "BehaviorNote",
        "TensorValueType",
    ] {
        assert!(ours.schema[name].members.len() > 2, "{name}");
    }
}
