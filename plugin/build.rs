//! Compiles the function that calls the host's logging function: the one thing here that Rust
//! cannot do.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/abi/callback.cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/abi/callback.cpp")
        .compile("rotini_callback");
}
