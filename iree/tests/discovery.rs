//! Tests of finding the compiler. They are one test, since it changes the environment of its
//! process.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use rotini_iree::compiler::{find_library, find_program, find_worker};

const WHEEL: &str = "lib/python3.99/site-packages/iree/compiler/_mlir_libs";

/// Creates an installation with pip's layout, of files that only look like ELF.
fn install(prefix: &Path) {
    fs::create_dir_all(prefix.join(WHEEL)).unwrap();
    fs::create_dir_all(prefix.join("bin")).unwrap();
    for name in ["iree-compile", "libIREECompiler.so"] {
        fs::write(prefix.join(WHEEL).join(name), b"\x7fELF").unwrap();
    }
    mode(&prefix.join(WHEEL).join("iree-compile"), 0o755);
    fs::write(prefix.join("bin/iree-compile"), "#!/usr/bin/python3\n").unwrap();
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn set(name: &str, value: Option<&Path>) {
    // SAFETY: this test is alone in its process, and its thread is the only one that reads the
    // environment.
    unsafe {
        match value {
            Some(value) => env::set_var(name, value),
            None => env::remove_var(name),
        }
    }
}

#[test]
fn order_of_places() {
    let directory = tempfile::tempdir().unwrap();
    let [explicit, venv, path, empty] = ["explicit", "venv", "path", "empty"].map(|name| directory.path().join(name));
    for prefix in [&explicit, &venv, &path] {
        install(prefix);
    }
    fs::create_dir_all(empty.join("bin")).unwrap();
    let program = |prefix: &Path| prefix.join(WHEEL).join("iree-compile");
    let library = |prefix: &Path| prefix.join(WHEEL).join("libIREECompiler.so");

    // A script leads to the program of its installation, and nothing else is examined.
    set("HOME", Some(&empty));
    set("PATH", Some(&path.join("bin")));
    set("VIRTUAL_ENV", Some(&venv));
    set("ROTINI_IREE_COMPILE", Some(&explicit.join("bin/iree-compile")));
    set("ROTINI_IREE_COMPILER_LIB", Some(&library(&explicit)));
    assert_eq!(find_program().unwrap(), program(&explicit));
    assert_eq!(find_library().unwrap(), library(&explicit));

    set("ROTINI_IREE_COMPILE", Some(&empty.join("iree-compile")));
    let error = find_program().unwrap_err();
    assert!(error.tried().eq([empty.join("iree-compile")]), "{error}");
    assert!(error.to_string().contains("ROTINI_IREE_COMPILE"), "{error}");
    true_reasons(&empty);

    set("ROTINI_IREE_COMPILE", None);
    set("ROTINI_IREE_COMPILER_LIB", None);
    if option_env!("ROTINI_IREE_COMPILE").is_some() || option_env!("ROTINI_IREE_COMPILER_LIB").is_some() {
        // The built-in path takes precedence over everything below.
        eprintln!("skipped: order without a built-in path, since this build has one");
        return;
    }
    assert_eq!(find_program().unwrap(), program(&venv));
    assert_eq!(find_library().unwrap(), library(&venv));

    set("VIRTUAL_ENV", None);
    mode(&path.join("bin/iree-compile"), 0o755);
    assert_eq!(find_program().unwrap(), program(&path));
    assert_eq!(find_library().unwrap(), library(&path));

    // An installation with Python alone, reached through a link as in a virtual environment.
    fs::remove_file(path.join("bin/iree-compile")).unwrap();
    fs::write(path.join("bin/python3.99"), "").unwrap();
    mode(&path.join("bin/python3.99"), 0o755);
    symlink(path.join("bin/python3.99"), empty.join("bin/python3")).unwrap();
    set("PATH", Some(&empty.join("bin")));
    assert_eq!(find_program().unwrap(), program(&path));

    fs::remove_dir_all(&path).unwrap();
    let error = find_library().unwrap_err();
    assert!(error.tried().any(|tried| tried.starts_with(&empty)), "{error}");
}

/// If a named file is not used, the reason says what the file is.
fn true_reasons(directory: &Path) {
    let file = |name: &str, content: &[u8], bits| {
        let path = directory.join(name);
        fs::write(&path, content).unwrap();
        mode(&path, bits);
        path
    };
    let reasons = [
        (
            directory.join("nothing"),
            "there is no such file",
            "there is no such file",
        ),
        (directory.to_owned(), "it is a directory", "it is a directory"),
        (file("text", b"no program\n", 0o755), "it is not an ELF program", ""),
        (file("short", b"\x7fE", 0o755), "it is not an ELF program", ""),
        (
            file("data", b"\x7fELF", 0o644),
            "it is not executable",
            "it is not executable",
        ),
        (
            file("open", b"\x7fELF", 0o757),
            "others than its owner can write",
            "others than its owner can write",
        ),
    ];
    for (path, of_program, of_worker) in reasons {
        set("ROTINI_IREE_COMPILE", Some(&path));
        set("ROTINI_COMPILE_WORKER", Some(&path));
        let said = find_program().unwrap_err().to_string();
        let expected = format!(
            "ROTINI_IREE_COMPILE names {}, which is not used: {of_program}",
            path.display()
        );
        assert!(said.starts_with(&expected), "{said}");
        // A worker may be a script.
        match find_worker() {
            Ok(found) => assert!(
                of_worker.is_empty() && found.ends_with(path.file_name().unwrap()),
                "{found:?}"
            ),
            Err(error) => assert!(
                !of_worker.is_empty() && error.to_string().contains(of_worker),
                "{error}"
            ),
        }
    }
    set("ROTINI_COMPILE_WORKER", None);
}
