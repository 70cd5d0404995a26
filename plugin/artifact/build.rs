//! Gives `librotini_plugin.so` the run path that an installation asks for.
//!
//! `ROTINI_PLUGIN_RPATH`: where libraries that the plugin opens by name are looked for first, such
//! as `$ORIGIN/../..`. CMake sets it to the library directory that the plugin is installed below.
//! If it is not set, the library has no run path.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ROTINI_PLUGIN_RPATH");
    if let Ok(path) = env::var("ROTINI_PLUGIN_RPATH")
        && !path.is_empty()
    {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,{path}");
    }
}
