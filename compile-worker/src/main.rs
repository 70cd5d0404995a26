//! The process that the plugin compiles in; see [`iree_sys::compiler::worker`].

use std::process::ExitCode;

fn main() -> ExitCode {
    iree_sys::compiler::worker::serve()
}
