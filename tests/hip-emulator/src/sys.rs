//! Types, constants and prototypes of HIP's API, generated from its headers.

#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "generated"
)]

include!(concat!(env!("OUT_DIR"), "/hip.rs"));
include!(concat!(env!("OUT_DIR"), "/errors.rs"));
