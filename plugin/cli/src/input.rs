//! Graphs from files.

use anyhow::{Context as _, Result, bail};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// A graph as hipDNN serializes it.
#[derive(Debug)]
pub(crate) struct GraphFile {
    /// The path as it was given.
    pub(crate) path: String,
    /// The file's name without directory and extension.
    pub(crate) name: String,
    /// The bytes, or the error. The error is kept, so that a bad file does not stop the work on
    /// others.
    pub(crate) bytes: Result<Vec<u8>>,
}

impl GraphFile {
    /// Reads a serialized graph, or hipDNN's JSON form of one if the extension is `json`.
    pub(crate) fn read(path: &Path) -> Self {
        let name = path
            .file_stem()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        GraphFile {
            path: path.display().to_string(),
            name,
            bytes: read(path).and_then(|bytes| {
                if path.extension() == Some(OsStr::new("json")) {
                    serialized(&bytes).with_context(|| format!("cannot read {}", path.display()))
                } else {
                    Ok(bytes)
                }
            }),
        }
    }
}

/// Converts a graph from JSON to its serialized form.
fn serialized(json: &[u8]) -> Result<Vec<u8>> {
    Ok(rotini_workloads::from_json(std::str::from_utf8(json)?)?.graph)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    // Longer files are no graphs, and reading a device file would not end.
    let limit = rotini_wire::MAX_APPARENT_SIZE;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() > limit {
        bail!("{} has more than {limit} bytes, which no graph has", path.display());
    }
    Ok(bytes)
}
