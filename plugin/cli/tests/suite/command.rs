//! The command as scripts use it: exit codes and JSON, for graphs that are right, declined and
//! malformed.

use crate::bench::{Bench, ENVIRONMENT, Finished, OK, USAGE, WRONG, each, has_compiler, plugin};
use std::ffi::OsStr;

#[test]
fn check_tells_graphs_apart_and_names_the_node() {
    let bench = Bench::new();
    // None of these graphs is applicable, so no compiler is needed.
    let document = bench
        .run(&[
            "check",
            "--json",
            "declined.fb",
            "malformed.fb",
            "noise.fb",
            "nowhere.fb",
        ])
        .json(WRONG);
    let verdicts = each(&document["graphs"], "verdict");
    assert_eq!(verdicts, ["declined", "malformed", "malformed", "failed"]);
    let reason = |index: usize| document["graphs"][index]["reason"].as_str().unwrap().to_owned();
    assert!(reason(0).contains("'foreign'"), "{}", reason(0));
    assert!(reason(1).contains("cycle"), "{}", reason(1));
    assert!(reason(3).contains("nowhere.fb"), "{}", reason(3));
}

#[test]
fn check_accepts_for_any_target() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    for target in ["cpu", "gfx942"] {
        let document = bench.run(&["check", "--json", "--target", target, "good.fb"]).json(OK);
        assert_eq!(document["target"], target);
        assert_eq!(document["graphs"][0]["verdict"], "applicable");
    }
}

#[test]
fn check_does_not_accept_without_a_compiler() {
    let bench = Bench::new();
    let output = bench
        .command(["check", "--json"])
        .arg(bench.path("good.fb"))
        .env("ROTINI_IREE_COMPILE", bench.path("no-compiler"))
        .env("ROTINI_IREE_COMPILER_LIB", bench.path("no-library"))
        .output()
        .unwrap();
    let document = Finished::new(output).json(ENVIRONMENT);
    let error = document["error"].as_str().unwrap();
    assert!(error.contains("no-compiler"), "{error}");
}

#[test]
fn emit_writes_mlir_and_its_arguments() {
    let bench = Bench::new();
    let document = bench.run(&["emit", "--json", "--target", "gfx942", "good.fb"]).json(OK);
    let arguments = &document["arguments"];
    assert_eq!(each(arguments, "role"), ["input", "input", "input", "output"]);
    assert_eq!(arguments[3]["shape"], serde_json::json!([1, 16, 6, 6]));
    let text = bench.run(&["emit", "--target", "gfx942", "good.fb"]);
    assert_eq!((text.code, text.stderr.as_str()), (OK, ""));
    assert_eq!(document["mlir"].as_str().unwrap().trim_end(), text.stdout.trim_end());

    let declined = bench.run(&["emit", "declined.fb"]);
    assert_eq!((declined.code, declined.stdout.as_str()), (WRONG, ""));
    assert_eq!(declined.stderr.lines().count(), 1, "{}", declined.stderr);
}

/// On a GPU, bias and ReLU are fused into the convolution's kernel. On a CPU the compiler writes
/// the kernels.
#[test]
fn emit_lists_kernels() {
    let bench = Bench::new();
    let plan = |target: &str| {
        bench
            .run(&["emit", "--plan", "--json", "--target", target, "good.fb"])
            .json(OK)
    };
    let document = plan("mi300x");
    let kernels = document["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 1, "{document}");
    assert_eq!(kernels[0]["stores"], serde_json::json!(["tensor<1x16x6x6xf32>"]));
    assert_eq!(kernels[0]["reads"].as_array().unwrap().len(), 3, "{document}");
    let operations = kernels[0]["operations"].as_array().unwrap();
    assert!(operations.contains(&"arith.addf".into()), "{document}");
    assert_eq!(document["workspace_bytes"], 0);

    let document = plan("x86-64-v3");
    let kernels = document["kernels"].as_array().unwrap();
    assert!(
        kernels.iter().all(|kernel| kernel["written_by"] == "IREE"),
        "{document}"
    );
    assert!(kernels.len() > 1, "{document}");

    let text = bench.run(&["emit", "--plan", "--target", "mi300x", "good.fb"]);
    assert_eq!((text.code, text.stderr.as_str()), (OK, ""));
    assert!(text.stdout.contains("workspace: at most 0 bytes"), "{}", text.stdout);
}

#[test]
fn compile_writes_what_it_says() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let compile = ["compile", "--json", "--target", "gfx942", "good.fb"];
    let document = bench.run(&[&compile[..], &["-o", "one.vmfb"]].concat()).json(OK);
    let graph = &document["graphs"][0];
    let vmfb = std::fs::read(bench.path("one.vmfb")).unwrap();
    assert_eq!(graph["bytes"], vmfb.len());
    assert_eq!(graph["dispatches"], 1);
    assert_eq!(graph["origin"], "compiled");

    // Once more, into a directory, next to a graph that cannot be compiled.
    let document = bench
        .run(&[&compile[..], &["declined.fb", "-o", "all"]].concat())
        .json(WRONG);
    assert_eq!(document["graphs"][0]["origin"], "cache");
    assert_eq!(std::fs::read(bench.path("all/good.vmfb")).unwrap(), vmfb);
    assert!(document["graphs"][1]["error"].as_str().unwrap().contains("'foreign'"));
    assert!(!bench.path("all/declined.vmfb").exists());
}

#[test]
fn run_executes_through_the_library_and_judges() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let plugin = plugin.to_str().unwrap();
    let document = bench.run(&["run", "--json", "--plugin", plugin, "good.fb"]).json(OK);
    let first = &document["graphs"][0];
    assert_eq!(
        (&first["verdict"], &first["origin"]),
        (&"right".into(), &"compiled".into())
    );
    assert_eq!(first["engine"], "ROTINI_ENGINE");
    assert!(first["dispatches"].as_u64().unwrap() >= 1);
    assert!(first["workspace"].as_u64().unwrap() <= first["workspace_estimate"].as_u64().unwrap());
    assert_eq!(first["outputs"].as_array().unwrap().len(), 1);
    assert!(first["outputs"][0]["ratio"].as_f64().unwrap() <= 1.0);

    // The second process finds the code in the cache, and knows the exact workspace in advance.
    let graphs = ["good.fb", "declined.fb", "malformed.fb", "noise.fb", "nowhere.fb"];
    let document = bench
        .run(&[&["run", "--json", "--plugin", plugin][..], &graphs].concat())
        .json(WRONG);
    let graphs = &document["graphs"];
    let verdicts = each(graphs, "verdict");
    assert_eq!(verdicts, ["right", "declined", "malformed", "malformed", "failed"]);
    assert_eq!(graphs[0]["origin"], "cache");
    assert_eq!(graphs[0]["workspace"], graphs[0]["workspace_estimate"]);
    assert!(graphs[1]["reason"].as_str().unwrap().contains("'foreign'"));
}

#[test]
fn demo_is_all_right_and_leaves_its_graphs() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let demo = bench.run(&["demo", "--plugin", plugin.to_str().unwrap(), "--save", "graphs"]);
    assert_eq!(demo.code, OK, "{}{}", demo.stdout, demo.stderr);
    let saved = std::fs::read_dir(bench.path("graphs")).unwrap().count();
    assert!(saved >= 8);
    assert!(
        demo.stdout.ends_with(&format!("{saved} of {saved} right\n")),
        "{}",
        demo.stdout
    );
    assert!(!demo.stdout.contains('\x1b'), "colours go to terminals alone");
}

#[test]
fn what_is_missing_is_told_as_such() {
    let bench = Bench::new();
    for arguments in [&["run", "good.fb"][..], &["demo"], &["doctor"]] {
        let output = bench
            .command(arguments)
            .args(["--json", "--plugin", "nowhere.so"])
            .output()
            .unwrap();
        let text = Finished::new(output).json(ENVIRONMENT).to_string();
        assert!(text.contains("nowhere.so"), "{text}");
    }
}

#[test]
fn a_library_that_is_no_plugin_is_refused() {
    let bench = Bench::new();
    // Any library that exists will do: the C library is loaded by this test too.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.contains("/libc.so"));
    let Some(library) = library else {
        panic!("no C library among the maps")
    };
    let document = bench.run(&["doctor", "--json", "--plugin", library]).json(ENVIRONMENT);
    assert!(document.to_string().contains("hipdnnPluginGet"), "{document}");
}

#[test]
fn usage_errors_have_a_code_of_their_own() {
    let bench = Bench::new();
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &["check", "--target", "--flag", "good.fb"],
        &["compile", "good.fb"],
        &["compile", "good.fb", "-o", "one.vmfb", "--into", "directory"],
        &["compile", "good.fb", "-o", "one.vmfb", "--target", "gfx942,gfx950"],
        &["compile", "good.fb", "--into", "directory", "-j", "0"],
        &["cache", "gc", "--size", "much"],
        &["cache", "export", "-", "--json"],
        &["run", "--repeat", "0", "good.fb"],
    ] {
        assert_eq!(bench.run(arguments).code, USAGE, "{arguments:?}");
    }
    assert_eq!(bench.run(&["--help"]).code, OK);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let bench = Bench::new();
    let command = bench
        .command(["emit", "--target", "cpu"])
        .arg(bench.path("good.fb"))
        .get_args()
        .map(OsStr::to_owned)
        .collect::<Vec<_>>();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = bench.command(command).stdout(writer).output().unwrap();
    let finished = Finished::new(output);
    assert_eq!((finished.code, finished.stderr.as_str()), (141, ""));
}

#[test]
fn doctor_says_for_each_finding_that_is_not_right_what_to_do() {
    let bench = Bench::new();
    let output = bench
        .command(["doctor", "--json"])
        .env("ROTINI_IREE_COMPILE", bench.path("no-compiler"))
        .env("ROTINI_IREE_COMPILER_LIB", bench.path("no-library"))
        .env("ROTINI_CACHE_PATH", bench.path("nowhere"))
        .env("ROTINI_COMPILE_TIMEOUT", "soon")
        .env("ROTINI_DEVICE", "auto")
        .output()
        .unwrap();
    let document = Finished::new(output).json(ENVIRONMENT);
    let findings = document["findings"].as_array().unwrap();
    for finding in findings {
        let is_ok = finding["state"] == "ok";
        assert_eq!(finding.get("next").is_none(), is_ok, "{finding}");
    }
    let next = |item: &str| {
        let found = findings
            .iter()
            .find(|finding| finding["item"] == item && finding["state"] != "ok");
        found.unwrap_or_else(|| panic!("no finding about {item}"))["next"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        next("IREE compiler"),
        "python3 -m pip install iree-base-compiler==3.13.0"
    );
    assert!(next("shipped cache").contains("directory"));
    assert!(next("setting").contains("variable"));
    // The named package must be the one that scripts/setup installs, that the wheel depends on, and
    // that the README names.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, text) in [
        ("scripts/setup", "'iree-base-compiler==3.13.0 "),
        ("scripts/wheel/pyproject.toml", "\"iree-base-compiler==3.13.0\""),
        ("README.md", "`iree-base-compiler` 3.13.0"),
    ] {
        let pinned = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(pinned.contains(text), "{file} pins another compiler");
    }
}

#[test]
fn completions_complete_in_bash() {
    let bench = Bench::new();
    let script = bench.run(&["completions", "bash"]);
    assert_eq!(script.code, OK);
    let completed = std::process::Command::new("bash")
        .args(["--norc", "-c"])
        .arg(format!(
            "{}\nCOMP_WORDS=(rotini doc) COMP_CWORD=1; _rotini rotini doc rotini; echo \"${{COMPREPLY[*]}}\"",
            script.stdout
        ))
        .output()
        .unwrap();
    let completed = Finished::new(completed);
    assert_eq!(
        (completed.code, completed.stdout.trim()),
        (OK, "doctor"),
        "{}",
        completed.stderr
    );
}

#[test]
fn there_is_a_manual_page_for_each_command_that_people_type() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["man", "manual"]).code, OK);
    let pages: Vec<_> = std::fs::read_dir(bench.path("manual"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["rotini.1", "rotini-run.1", "rotini-cache-gc.1", "rotini-completions.1"] {
        assert!(pages.iter().any(|other| other == page), "{pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("serve-engine")), "{pages:?}");
    let run = std::fs::read_to_string(bench.path("manual/rotini-run.1")).unwrap();
    assert!(run.contains(r"\-\-plugin"), "{run}");
}
