//! Gives the crate the fingerprint of all that decides what a graph is lowered to: it is part of the cache's key, so that code of an older
//! lowering is never taken for that of this one.
//!
//! These are the sources of this crate, of the one that reads bodies of custom operations and of the graph's, whose canonical bytes the other
//! part of the key is made from; their manifests; and `Cargo.lock`, which names the exact versions of melior and of all else that takes part. Tests and snapshots are none of it.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is hashed, from this crate's directory: files, and directories with all that is in them.
pub(crate) const SOURCES: [&str; 7] = [
    "src",
    "Cargo.toml",
    "custom/src",
    "custom/Cargo.toml",
    "graph/src",
    "graph/Cargo.toml",
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

/// The hash of [`SOURCES`] by names and contents, in hexadecimal. Where the directory lies plays no part, nor does the order in which the system
/// lists files.
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
    let mut hasher = blake3::Hasher::new_derive_key("rotini emitter sources v1");
    for name in names {
        let content = fs::read(directory.join(&name))?;
        let name = name.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        for part in [name.as_bytes(), &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
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
