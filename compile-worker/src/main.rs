//! The program of the compile workers; see [`iree_sys::compiler::worker`].

use std::process::ExitCode;

fn main() -> ExitCode {
    iree_sys::compiler::worker::serve()
}
