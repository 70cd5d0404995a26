//! Sets the run path of `librotini_plugin.so` that an installation asks for.
//!
//! `ROTINI_PLUGIN_RPATH` is the first directory in which libraries that the plugin opens by name
//! are searched for, such as `$ORIGIN/../..`. CMake sets it to the library directory that the
//! plugin is installed below. If the variable is not set, the library has no run path.

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
