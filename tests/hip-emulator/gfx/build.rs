//! Links LLVM 22's shared library, whose AMDGPU disassembler decodes the kernels. Only tests need
//! it.
//!
//! The library is searched for in the linker's path and in `ROTINI_LLVM_22/lib`. In Debian it is in
//! the package `libllvm22`, which `scripts/setup --test` installs.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROTINI_LLVM_22");
    if let Some(prefix) = env::var_os("ROTINI_LLVM_22") {
        let directory = PathBuf::from(prefix).join("lib");
        println!("cargo::rustc-link-search=native={}", directory.display());
    }
    println!("cargo::rustc-link-lib=dylib=LLVM-22");
}
