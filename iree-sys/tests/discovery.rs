//! Finding the compiler. One test, since it changes the environment of its process.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{env, fs, os::unix::fs::symlink, path::Path};

use iree_sys::compiler::{find_library, find_program};

const WHEEL: &str = "lib/python3.99/site-packages/iree/compiler/_mlir_libs";

/// An installation as pip lays it out, with files that only look like ELF.
fn install(prefix: &Path) {
    fs::create_dir_all(prefix.join(WHEEL)).unwrap();
    fs::create_dir_all(prefix.join("bin")).unwrap();
    for name in ["iree-compile", "libIREECompiler.so"] {
        fs::write(prefix.join(WHEEL).join(name), b"\x7fELF").unwrap();
    }
    fs::write(prefix.join("bin/iree-compile"), "#!/usr/bin/python3\n").unwrap();
}

fn set(name: &str, value: Option<&Path>) {
    // SAFETY: this test is alone in its process, and its thread is the only one that reads the environment.
    unsafe {
        match value {
            Some(value) => env::set_var(name, value),
            None => env::remove_var(name),
        }
    }
}

#[test]
fn order_of_places() {
    let folder = tempfile::tempdir().unwrap();
    let [explicit, venv, path, empty] = ["explicit", "venv", "path", "empty"].map(|name| folder.path().join(name));
    for prefix in [&explicit, &venv, &path] {
        install(prefix);
    }
    fs::create_dir_all(empty.join("bin")).unwrap();
    let program = |prefix: &Path| prefix.join(WHEEL).join("iree-compile");
    let library = |prefix: &Path| prefix.join(WHEEL).join("libIREECompiler.so");

    // A script names the program of its installation, and nothing else is looked at.
    set("HOME", Some(&empty));
    set("PATH", Some(&path.join("bin")));
    set("VIRTUAL_ENV", Some(&venv));
    set("ROTINI_IREE_COMPILE", Some(&explicit.join("bin/iree-compile")));
    set("ROTINI_IREE_COMPILER_LIB", Some(&library(&explicit)));
    assert_eq!(find_program().unwrap(), program(&explicit));
    assert_eq!(find_library().unwrap(), library(&explicit));

    set("ROTINI_IREE_COMPILE", Some(&empty.join("iree-compile")));
    let error = find_program().unwrap_err();
    assert_eq!(error.tried(), [empty.join("iree-compile")]);
    assert!(error.to_string().contains("ROTINI_IREE_COMPILE"), "{error}");

    set("ROTINI_IREE_COMPILE", None);
    set("ROTINI_IREE_COMPILER_LIB", None);
    if option_env!("ROTINI_IREE_COMPILE").is_some() || option_env!("ROTINI_IREE_COMPILER_LIB").is_some() {
        // The path that was built in comes before everything below.
        eprintln!("skipped: order without a built-in path, since this build has one");
        return;
    }
    assert_eq!(find_program().unwrap(), program(&venv));
    assert_eq!(find_library().unwrap(), library(&venv));

    set("VIRTUAL_ENV", None);
    fs::set_permissions(
        path.join("bin/iree-compile"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(find_program().unwrap(), program(&path));
    assert_eq!(find_library().unwrap(), library(&path));

    // A Python alone, reached through a link as in a virtual environment.
    fs::remove_file(path.join("bin/iree-compile")).unwrap();
    fs::write(path.join("bin/python3.99"), "").unwrap();
    fs::set_permissions(
        path.join("bin/python3.99"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    symlink(path.join("bin/python3.99"), empty.join("bin/python3")).unwrap();
    set("PATH", Some(&empty.join("bin")));
    assert_eq!(find_program().unwrap(), program(&path));

    fs::remove_dir_all(&path).unwrap();
    let error = find_library().unwrap_err();
    assert!(error.tried().iter().any(|tried| tried.starts_with(&empty)), "{error}");
}
