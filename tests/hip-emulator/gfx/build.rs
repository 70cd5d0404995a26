//! Links LLVM 22's shared library, whose AMDGPU disassembler decodes the kernels.
//!
//! `MLIR_SYS_220_PREFIX` names LLVM's prefix, as it does for `mlir-sys`; without it `llvm-config-22` is asked.

use std::{env, error::Error, path::PathBuf, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let directory = match env::var_os("MLIR_SYS_220_PREFIX") {
        Some(prefix) => PathBuf::from(prefix).join("lib"),
        None => {
            let output = Command::new("llvm-config-22")
                .arg("--libdir")
                .output()
                .map_err(|error| {
                    format!("llvm-config-22 does not run ({error}): run scripts/setup, or set MLIR_SYS_220_PREFIX")
                })?;
            PathBuf::from(String::from_utf8(output.stdout)?.trim())
        }
    };
    println!("cargo::rustc-link-search=native={}", directory.display());
    println!("cargo::rustc-link-lib=dylib=LLVM-22");
    Ok(())
}
