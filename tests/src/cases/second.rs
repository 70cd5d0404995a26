//! Graphs from a second encoder (`tests/cases/second/encode.py`), which shares no code with
//! `rotini-wire`.
//!
//! It writes each graph twice: as bytes, and in the names of the IR. The plugin gets the bytes; the
//! second form states their expected meaning.

use super::case::Case;
use anyhow::{Context as _, Result, ensure};
use rotini_graph::{DataType, Graph, Node, Op, Scalar, Tensor, TensorKind};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A graph and the second encoder's bytes for it.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The expected meaning of the bytes.
    pub case: Case,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Returns the graphs of the second encoder.
///
/// # Errors
///
/// If there is no `python3`, the encoder fails, or its description is not a graph.
pub fn second() -> Result<Vec<Encoded>> {
    encoded("encode.py", "second", &[])
}

/// Returns `count` random graphs of the second encoder, with truth values and FNUZ. The graph of a
/// seed is the same in every run.
///
/// # Errors
///
/// As [`second`].
pub fn second_random(seed: u64, count: u64) -> Result<Vec<Encoded>> {
    encoded("random_types.py", "random", &[seed, count])
}

/// Runs a script beside the second encoder and reads its output.
fn encoded(script: &str, prefix: &str, arguments: &[u64]) -> Result<Vec<Encoded>> {
    let directory = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/second").join(script);
    let mut command = Command::new("python3");
    // -B: no bytecode is written beside the sources.
    command.arg("-B").arg(script).arg(directory.path());
    let status = command.args(arguments.iter().map(u64::to_string)).status();
    ensure!(
        status.context("python3 is not there")?.success(),
        "the second encoder fails"
    );
    let mut encoded = Vec::new();
    for entry in std::fs::read_dir(directory.path())? {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let described = serde_json::from_slice(&std::fs::read(&file)?)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let graph = graph(&described).with_context(|| format!("the description of {name}"))?;
        encoded.push(Encoded {
            case: Case {
                name: format!("{prefix}_{name}"),
                graph,
            },
            bytes: std::fs::read(file.with_extension("fb"))?,
        });
    }
    encoded.sort_by(|a, b| a.case.name.cmp(&b.case.name));
    Ok(encoded)
}

fn graph(described: &Value) -> Result<Graph> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
    let list = |value: &Value| value.as_array().cloned().context("no list");
    let dtype = |value: &Value| -> Result<DataType> { Ok(serde_json::from_value(value.clone())?) };
    let mut graph = Graph {
        name: text(&described["name"])?,
        min_api_version: [1, 3, 0],
        ..Graph::default()
    };
    for tensor in list(&described["tensors"])? {
        graph.tensors.push(Tensor {
            uid: tensor["uid"].as_i64().context("no uid")?,
            name: text(&tensor["name"])?,
            dtype: dtype(&tensor["dtype"])?,
            dims: serde_json::from_value(tensor["dims"].clone())?,
            strides: serde_json::from_value(tensor["strides"].clone())?,
            kind: match (&tensor["value"], tensor["virtual"].as_bool()) {
                (Value::Bool(value), _) => TensorKind::Constant(Scalar::Integer((*value).into())),
                (Value::Number(value), _) => {
                    TensorKind::Constant(Scalar::float(value.as_f64().context("no binary64")?))
                }
                (_, Some(true)) => TensorKind::Virtual,
                _ => TensorKind::Buffer,
            },
            ragged_offset: None,
            alignment: 16,
        });
    }
    for (position, node) in list(&described["nodes"])?.iter().enumerate() {
        graph.nodes.push(Node {
            name: format!("node {position}"),
            compute: dtype(&node["compute"])?,
            op: serde_json::from_value::<Op>(node["op"].clone())?,
        });
    }
    Ok(graph)
}
