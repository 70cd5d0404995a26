//! Computes the fingerprint of everything that decides what a graph is lowered to. It is part of the cache's key, so code of an older
//! lowering is never taken for code of this one.
//!
//! The fingerprint covers the sources and manifests of this crate and of the crates `custom` and `graph`; `Cargo.lock`, which has the exact
//! versions of melior and of all other dependencies; and the version of the LLVM whose MLIR is linked, which the lock file does not have.
//! Tests and snapshots are not in it.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where mlir-sys looks for LLVM first; else it is in `PATH`.
const PREFIX: &str = "MLIR_SYS_220_PREFIX";

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
    println!("cargo::rerun-if-env-changed={PREFIX}");
    let program = env::var_os(PREFIX).map_or_else(PathBuf::new, |prefix| Path::new(&prefix).join("bin"));
    let program = program.join("llvm-config");
    if program.is_absolute() {
        // Another version may be installed in the same place.
        println!("cargo::rerun-if-changed={}", program.display());
    }
    let llvm = llvm_version(&program)?;
    println!("cargo::rustc-env=EMIT_LLVM={llvm}");
    // Cargo runs this in the crate's directory.
    println!(
        "cargo::rustc-env=EMIT_FINGERPRINT={}",
        fingerprint(Path::new(""), &llvm)?
    );
    Ok(())
}

/// What `llvm-config` says of itself: `22.1.0`.
fn llvm_version(program: &Path) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).arg("--version").output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let version = String::from_utf8(output.stdout)?.trim().to_owned();
    if !output.status.success() || version.is_empty() {
        return Err(format!("{} does not tell its version", program.display()).into());
    }
    Ok(version)
}

/// The hash of [`SOURCES`] by names and contents and of LLVM's version, in hexadecimal. Where the directory lies plays no part, nor does the
/// order in which the system lists files.
///
/// # Errors
///
/// What the file system says.
pub(crate) fn fingerprint(directory: &Path, llvm: &str) -> io::Result<String> {
    let mut names = Vec::new();
    for source in SOURCES {
        collect(directory, PathBuf::from(source), &mut names)?;
    }
    names.sort();
    let mut hasher = blake3::Hasher::new_derive_key("rotini emitter sources v2");
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(llvm.as_bytes());
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
