//! Compares hipDNN's schema, versions and exported functions with rotini's. `scripts/upstream` runs
//! it; `docs/upstream.md` says how.

#[path = "tool.rs"]
mod tool;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(tool::run(&root, &arguments, &mut std::io::stdout().lock()))
}
