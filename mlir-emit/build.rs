//! Computes the fingerprint of everything that decides what a graph is lowered to. It is part of
//! the cache's key, so code of an older lowering is never taken for code of this one.
//!
//! The fingerprint covers the sources and manifests of this crate and of the crates `custom`,
//! `graph` and `schedule`, and `Cargo.lock`, which has the exact versions of all dependencies.
//! Tests and snapshots are not in it.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is hashed, from this crate's directory: files, and directories with all that is in them.
pub(crate) const SOURCES: [&str; 10] = [
    "src",
    "Cargo.toml",
    "custom/src",
    "custom/Cargo.toml",
    "graph/src",
    "graph/Cargo.toml",
    "schedule/src",
    "schedule/schedules",
    "schedule/Cargo.toml",
    "../Cargo.lock",
];

fn main() -> Result<(), Box<dyn Error>> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // Cargo runs this in the crate's directory.
    println!("cargo::rustc-env=EMIT_FINGERPRINT={}", fingerprint(Path::new(""))?);
    Ok(())
}

/// The hash of [`SOURCES`] by names and contents, in hexadecimal. Where the directory lies plays no
/// part, nor does the order in which the system lists files.
///
/// # Errors
///
/// What the file system says.
pub(crate) fn fingerprint(directory: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for source in SOURCES {
        collect(directory, PathBuf::from(source), &mut names)?;
    }
    names.sort();
    let mut hasher = blake3::Hasher::new_derive_key("rotini emitter sources v3");
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    for name in names {
        let content = fs::read(directory.join(&name))?;
        let name = name.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        add(name.as_bytes());
        add(&content);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// The names of the files at or below a place, relative to the directory.
fn collect(directory: &Path, name: PathBuf, names: &mut Vec<PathBuf>) -> io::Result<()> {
    if directory.join(&name).is_dir() {
        for entry in fs::read_dir(directory.join(&name))? {
            collect(directory, name.join(entry?.file_name()), names)?;
        }
    } else {
        names.push(name);
    }
    Ok(())
}
