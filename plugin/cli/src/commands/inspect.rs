//! `rotini inspect`: machine code, resources and predicted times of a graph's kernels on an MI300.
//!
//! | Module | Contents |
//! |---|---|
//! | `document` | the data about a graph's kernels, written to JSON and read back |
//! | `gather` | collects that data from the compiler's dump and the emulator |
//! | `emulation` | the process that executes the graph on the emulator |
//! | `text`, `page`, `diff` | the output for users |

mod diff;
mod document;
mod emulation;
mod gather;
mod page;
mod text;

pub(super) use emulation::emulate_graph;

use super::answer::Answer;
use crate::args::Inspect;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::{Context as _, Result, anyhow};
use document::Document;
use std::fs;
use std::path::Path;

pub(super) fn inspect(args: &Inspect, output: &Output) -> Result<Answer> {
    if let Some([before, after]) = args.diff.as_deref() {
        let (before, after) = (either(before, args)?, either(after, args)?);
        return diff::tell(&before, &after, output);
    }
    let graph = args.graph.as_deref();
    let graph = graph.ok_or_else(|| anyhow!(Failure::Usage("no graph is named".to_owned())))?;
    let document = gather::document(graph, args)?;
    if let Some(path) = &args.page {
        fs::write(path, page::page(&document)).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    if output.json {
        output.document(&document)?;
    } else {
        text::tell(&document, output)?;
    }
    Ok(Answer::Yes)
}

/// Returns the document that an earlier `--json` wrote to a file, or inspects the graph in the
/// file.
fn either(path: &Path, args: &Inspect) -> Result<Document> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    // No graph has the key `rotini`, which holds the version that wrote a document.
    match serde_json::from_slice::<serde_json::Value>(&bytes) {
        Ok(value) if value.get("rotini").is_some() => serde_json::from_value(value)
            .with_context(|| format!("{} is not a document of this version of rotini", path.display())),
        _ => gather::document(path, args),
    }
}
