//! Tests that the table of settings is complete, and that `docs/settings.md` is generated from it.

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn the_page_on_settings_is_the_table() {
    let page = root().join("docs/settings.md");
    if std::env::var_os("ROTINI_TEST_BLESS").is_some() {
        fs::write(&page, document()).unwrap();
    }
    let text = fs::read_to_string(&page).unwrap();
    assert!(
        text == document(),
        "docs/settings.md is not what the table in settings.rs says"
    );
}

/// Every name that a source mentions is in the table, and every name of the table is mentioned
/// outside of it.
#[test]
fn the_table_has_every_name() {
    let mut found = BTreeSet::new();
    for directory in [
        "benches",
        "compile-worker",
        "iree",
        "iree-sys",
        "jit-cache",
        "mlir-emit",
        "plugin",
        "scripts",
        "tests",
    ] {
        collect(&root().join(directory), &mut found);
    }
    // Names that are no variables: the engine's name, names of the C preprocessor and of CMake, the
    // end of one of TheRock's names, and one that a test requires to be unknown.
    for other in [
        "ROTINI_CARGO_TARGET_DIR",
        "ROTINI_LINKER",
        "ROTINI_PORTABLE",
        "ROTINI_CASH_DIR",
        "ROTINI_ENGINE",
        "ROTINI_COPY_KERNEL",
        "ROTINI_IREE_CUDA",
        "ROTINI_IREE_INTERNAL_H_",
        "ROTINI_SOURCE_DIR",
    ] {
        found.remove(other);
    }
    let unknown: Vec<_> = found.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are read and not in the table");
    let unread: Vec<_> = SETTINGS
        .iter()
        .map(|setting| setting.name)
        .filter(|name| !name.ends_with('…') && !found.contains(*name))
        .collect();
    assert!(unread.is_empty(), "{unread:?} are in the table and not read");
}

fn collect(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if !["settings.rs", "settings_tests.rs", "config_tests.rs"]
            .iter()
            .any(|name| path.ends_with(name))
            && let Ok(text) = fs::read_to_string(&path)
        {
            let names = text.match_indices(PREFIX).map(|(at, _)| {
                let name = &text[at..];
                let end = name
                    .find(|letter: char| !(letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'));
                &name[..end.unwrap_or(name.len())]
            });
            found.extend(names.filter(|name| name.len() > PREFIX.len()).map(str::to_owned));
        }
    }
}
