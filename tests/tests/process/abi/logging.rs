//! Logging callbacks that throw, panic or call the plugin. None of these disturbs the plugin's
//! work.

use rotini_host::{LogCallback, Plugin};
use rotini_tests::{plugin, process};
use std::ffi::c_char;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A variable that makes a new plugin state log a warning: it is no setting's name.
const UNKNOWN: (&str, &str) = ("ROTINI_CASH_DIR", "1");

#[test]
fn exceptions_and_calls_back_do_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("loud");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("host/loud.cpp");
    let compiled = Command::new("c++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-g"])
        .arg(source)
        .args(["-ldl", "-o"])
        .arg(&program)
        .output()
        .expect("c++, the system's C++ compiler, runs");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let output = Command::new("timeout")
        .arg("60")
        .arg(program)
        .arg(plugin::path().unwrap())
        .env("ROTINI_DEVICE", "cpu")
        .env("ROTINI_CACHE_DIR", directory.path().join("cache"))
        .env(UNKNOWN.0, UNKNOWN.1)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

static PANICS: AtomicU32 = AtomicU32::new(0);

extern "C-unwind" fn panics(_: i32, _: *const c_char) {
    PANICS.fetch_add(1, Ordering::Relaxed);
    panic!("from the logging function");
}

/// A host in Rust has its own runtime, which aborts the process if another runtime drops its
/// panics.
#[test]
fn panics_do_no_harm() {
    if process::part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        process::run(
            process::command("child", cache.path())
                .unwrap()
                .env(UNKNOWN.0, UNKNOWN.1),
        )
        .unwrap();
        return;
    }
    // SAFETY: the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(plugin::path().unwrap()) }.unwrap();
    // SAFETY: the same function, which the plugin calls as one that may unwind.
    let callback = unsafe { std::mem::transmute::<extern "C-unwind" fn(i32, *const c_char), LogCallback>(panics) };
    plugin.set_logging(Some(callback), 0).unwrap();
    for round in 1..4 {
        let before = PANICS.load(Ordering::Relaxed);
        let handle = plugin.handle().unwrap();
        assert!(handle.applicable(b"no graph").unwrap().is_empty());
        let error = plugin.engine_name(0x1234).unwrap_err().to_string();
        assert!(error.contains("1234"), "{error}");
        assert!(
            PANICS.load(Ordering::Relaxed) >= before + 3,
            "round {round}: nothing was logged"
        );
    }
}
