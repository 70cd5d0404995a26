//! The program of the compile workers; see [`rotini_iree::compiler::worker`].

use std::process::ExitCode;

fn main() -> ExitCode {
    rotini_iree::compiler::worker::serve()
}
