//! Tests of the compiler as a program and in process: same bytes, same identity, diagnostics,
//! concurrency, discovery.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use common::{cpu, gfx942, library, program};
use rotini_iree::compiler::{CompileError, CompileRequest, Compiler, InProcess, Program};

const MODULE: &str = include_str!("shell.mlir");

fn request<'a>(mlir: &'a str, flags: &'a [String]) -> CompileRequest<'a> {
    CompileRequest {
        mlir,
        name: "module.mlir",
        flags,
        dump_executables: None,
    }
}

fn compilers() -> [&'static dyn Compiler; 2] {
    [program(), library()]
}

#[test]
fn both_modes_make_the_same_bytes() {
    assert_eq!(program().identity(), library().identity());
    assert!(
        program().identity().starts_with("build-id:"),
        "{}",
        program().identity()
    );
    assert!(program().describe().contains("3.13.0"), "{}", program().describe());
    for flags in [cpu(), gfx942()] {
        let request = request(MODULE, &flags);
        let [a, b] = compilers().map(|compiler| compiler.compile(&request).unwrap());
        assert!(a.vmfb == b.vmfb, "{} and {} bytes differ", a.vmfb.len(), b.vmfb.len());
        assert_eq!(a.statistics, b.statistics);
        // A second compilation, in another temporary directory, gives the same bytes.
        assert!(a.vmfb == program().compile(&request).unwrap().vmfb);
    }
}

/// Returns whether the module calls IREE's queue-ordered allocation: the names of imports are in
/// its bytes.
fn imports_alloca(vmfb: &[u8]) -> bool {
    let imports = |name: &[u8]| vmfb.windows(name.len()).any(|window| window == name);
    assert!(
        imports(b"hal.device.queue.execute"),
        "imports are spelled in another way"
    );
    imports(b"hal.device.queue.alloca")
}

#[test]
fn a_module_of_the_right_form_computes_in_place() {
    for (flags, compiler) in [cpu(), gfx942()]
        .iter()
        .flat_map(|flags| compilers().map(|compiler| (flags, compiler)))
    {
        let compiled = compiler.compile(&request(MODULE, flags)).unwrap();
        let statistics = compiled.statistics;
        assert_eq!((statistics.dispatches, statistics.copies, statistics.fills), (2, 0, 0));
        assert_eq!((statistics.allocated_bytes, statistics.constant_bytes), (0, 0));
        assert!(!imports_alloca(&compiled.vmfb), "{flags:?}");
    }
}

/// Swaps the parameters into the order that the function ABI must not have: workspace first, output
/// second. The result is then allocated and copied, and the statistics have to show that.
#[test]
fn statistics_show_a_module_that_allocates() {
    let swapped = MODULE
        .replace(
            "%a0 = hal.tensor.alias wait(%wait) => %r0 : tensor<16x8xf32> to %out0 : !hal.buffer_view",
            "%a0 = hal.tensor.transients %r0 : tensor<16x8xf32> from %ws : !hal.buffer",
        )
        .replace(
            "%t0 = hal.tensor.transients %a0 : tensor<16x8xf32> from %ws : !hal.buffer",
            "%t0 = hal.tensor.alias wait(%wait) => %a0 : tensor<16x8xf32> to %out0 : !hal.buffer_view",
        );
    assert_ne!(swapped, MODULE);
    for flags in [cpu(), gfx942()] {
        let compiled = program().compile(&request(&swapped, &flags)).unwrap();
        assert_eq!(compiled.statistics.copies, 1);
        // One 16×8 f32 result.
        assert_eq!(compiled.statistics.allocated_bytes, 512);
        assert!(imports_alloca(&compiled.vmfb));
    }
}

#[test]
fn dumps_leave_the_bytes_alone() {
    for compiler in compilers() {
        for (flags, suffix) in [(cpu(), "so"), (gfx942(), "hsaco")] {
            let directory = tempfile::tempdir().unwrap();
            let dumps = directory.path().join("not/there/yet");
            let plain = request(MODULE, &flags);
            let dumping = CompileRequest {
                dump_executables: Some(&dumps),
                ..plain
            };
            let [a, b] = [plain, dumping].map(|request| compiler.compile(&request).unwrap());
            assert!(a.vmfb == b.vmfb);
            assert!(
                fs::read_dir(&dumps).unwrap().any(|entry| entry
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|e| e == suffix)),
                "no .{suffix} dumped"
            );
        }
    }
}

#[test]
fn diagnostics_reach_the_error() {
    for compiler in compilers() {
        let mode = compiler.describe();
        let broken = MODULE.replace("%r0 = func.call @compute", "%r0 = func.call @nowhere");
        for (mlir, says) in [("module { func.func @f() { foo } }", "'foo'"), (&broken, "nowhere")] {
            let error = compiler.compile(&request(mlir, &cpu())).unwrap_err();
            assert!(matches!(error, CompileError::Rejected { .. }), "{mode}: {error:?}");
            assert!(error.diagnostics().contains(says), "{mode}: {}", error.diagnostics());
            // The summary is the line with the error.
            let text = error.to_string();
            assert!(
                text.contains("error:") && text.contains(says) && !text.contains('\n'),
                "{mode}: {text}"
            );
        }
        let flags = [cpu(), vec!["--iree-no-such-flag".into()]].concat();
        let error = compiler.compile(&request(MODULE, &flags)).unwrap_err();
        assert!(error.to_string().contains("iree-no-such-flag"), "{mode}: {error}");
    }
}

#[test]
fn two_threads_compile_at_once() {
    for compiler in compilers() {
        let modules = [
            MODULE.to_owned(),
            MODULE.replace("16x8", "16x4").replace("32x8", "32x4"),
        ];
        let alone = modules
            .each_ref()
            .map(|mlir| compiler.compile(&request(mlir, &cpu())).unwrap().vmfb);
        assert!(alone[0] != alone[1]);
        thread::scope(|scope| {
            let threads = modules.each_ref().map(|mlir| {
                scope.spawn(move || [(); 3].map(|()| compiler.compile(&request(mlir, &cpu())).unwrap().vmfb))
            });
            for (thread, expected) in threads.into_iter().zip(&alone) {
                for vmfb in thread.join().unwrap() {
                    assert!(vmfb == *expected, "{}", compiler.describe());
                }
            }
        });
    }
}

#[test]
fn unfit_requests_are_refused() {
    for name in ["", "../x.mlir", "/x.mlir", "a/b", "-o", "module.vmfb"] {
        let request = CompileRequest {
            name,
            ..request(MODULE, &[])
        };
        let error = program().compile(&request).unwrap_err();
        assert!(matches!(error, CompileError::Request(_)), "`{name}`: {error}");
    }
    let error = library().compile(&request("a\0b", &[])).unwrap_err();
    assert!(matches!(error, CompileError::Request(_)), "{error}");
}

#[test]
fn what_is_no_compiler_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("iree-compile");
    fs::write(&script, "#!/bin/sh\necho something else\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let error = Program::new(&script).unwrap().version().unwrap_err();
    assert!(error.diagnostics().contains("something else"), "{error}");
    let error = Program::new(Path::new("/no/such/program")).unwrap_err();
    assert!(
        matches!(error, CompileError::Io { .. }) && error.to_string().contains("/no/such/program"),
        "{error}"
    );

    // SAFETY: the file contains no code that could run.
    let error = unsafe { InProcess::open(&script) }.unwrap_err();
    assert!(
        matches!(error, CompileError::Library { .. }) && error.to_string().contains("iree-compile"),
        "{error}"
    );
}

/// A program that hangs is ended at the time limit, whether or not its standard error is open.
#[test]
fn a_program_that_hangs_is_ended() {
    for text in [
        "echo waiting >&2; exec sleep 600",
        "echo waiting >&2; exec sleep 600 2>&-",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("iree-compile");
        fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let hanging = Program::new(&script).unwrap().with_timeout(Duration::from_secs(1));
        let start = Instant::now();
        let error = hanging.compile(&request(MODULE, &[])).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        assert!(
            matches!(&error, CompileError::Timeout { diagnostics, .. } if diagnostics.contains("waiting")),
            "{error:?}"
        );
    }
}

/// A program that the system kills causes an error that says so, not a hang and not a crash of this
/// process.
#[test]
fn a_crash_of_the_program_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("iree-compile");
    fs::write(
        &script,
        "#!/bin/sh\ncase $1 in --version) echo 'IREE compiler version 0 @ 0';; *) echo gone >&2; kill -SEGV $$;; esac\n",
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let crashing = Program::new(&script).unwrap();
    assert!(crashing.identity().starts_with("blake3:"), "{}", crashing.identity());
    assert!(crashing.describe().contains("0 @ 0"), "{}", crashing.describe());
    let error = crashing.compile(&request(MODULE, &[])).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, CompileError::Crashed { status: Some(_), .. }),
        "{error:?}"
    );
    assert!(text.contains("SIGSEGV") && text.contains("gone"), "{text}");
}
