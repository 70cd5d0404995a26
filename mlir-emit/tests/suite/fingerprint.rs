//! The fingerprint of the sources, which keeps code of an older lowering out of the cache.

#[expect(dead_code, clippy::print_stdout, reason = "`main` is for the build")]
#[path = "../../build.rs"]
mod build;

use std::fs;
use std::path::{Path, PathBuf};

/// A directory that has all sources, with little in them.
struct Sources(tempfile::TempDir);

impl Sources {
    fn new() -> Self {
        let sources = Self(tempfile::tempdir().unwrap());
        for directory in [
            "src/conv",
            "custom/src",
            "graph/src",
            "schedule/src",
            "schedule/schedules",
            "tests/snapshots",
        ] {
            fs::create_dir_all(sources.directory().join(directory)).unwrap();
        }
        for name in [
            "src/lib.rs",
            "src/conv/mod.rs",
            "Cargo.toml",
            "custom/src/lib.rs",
            "custom/Cargo.toml",
            "graph/src/lib.rs",
            "graph/Cargo.toml",
            "schedule/src/lib.rs",
            "schedule/schedules/mi300x.toml",
            "schedule/Cargo.toml",
            "../Cargo.lock",
            "tests/conv.rs",
        ] {
            sources.write(name, "// one\n");
        }
        sources
    }

    /// The crate is one directory below `Cargo.lock`.
    fn directory(&self) -> PathBuf {
        self.0.path().join("emit")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.directory().join(name), text).unwrap();
    }

    fn fingerprint(&self) -> String {
        build::fingerprint(&self.directory()).unwrap()
    }
}

#[test]
fn any_change_of_a_source_is_another_fingerprint() {
    let changes: [&dyn Fn(&Sources); 11] = [
        &|sources| sources.write("src/lib.rs", "// two\n"),
        &|sources| sources.write("src/conv/mod.rs", "// one\n "),
        &|sources| sources.write("custom/src/lib.rs", ""),
        &|sources| sources.write("graph/src/lib.rs", ""),
        &|sources| sources.write("schedule/src/lib.rs", ""),
        &|sources| sources.write("schedule/schedules/mi300x.toml", ""),
        &|sources| sources.write("Cargo.toml", "// two\n"),
        &|sources| sources.write("graph/Cargo.toml", "// two\n"),
        &|sources| sources.write("../Cargo.lock", "blake3 2.0"),
        // Not Rust.
        &|sources| sources.write("src/body.grammar", ""),
        &|sources| {
            fs::rename(
                sources.directory().join("src/conv"),
                sources.directory().join("src/matmul"),
            )
            .unwrap()
        },
    ];
    let mut seen = vec![Sources::new().fingerprint()];
    for change in changes {
        let sources = Sources::new();
        change(&sources);
        let fingerprint = sources.fingerprint();
        assert!(!seen.contains(&fingerprint), "change {} is not seen", seen.len());
        seen.push(fingerprint);
    }
}

#[test]
fn the_same_sources_elsewhere_and_other_tests_are_the_same_fingerprint() {
    let sources = Sources::new();
    assert_eq!(sources.fingerprint(), Sources::new().fingerprint());
    let before = sources.fingerprint();
    sources.write("tests/conv.rs", "// two\n");
    sources.write("tests/snapshots/conv.snap", "");
    assert_eq!(sources.fingerprint(), before);
}

/// The build has seen the sources as they are.
#[test]
fn the_crate_has_the_fingerprint_of_its_sources() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(rotini_emit::FINGERPRINT, build::fingerprint(directory).unwrap());
}
