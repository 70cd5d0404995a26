//! Command lines of MIOpenDriver, as typed and as logged with `MIOPEN_ENABLE_LOGGING_CMD`.
//!
//! For example, `MIOpenDriver convfp16 -n 32 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 -F 1` is
//! one convolution. Without `-F 1` it is three graphs: the forward convolution and both gradients.
//! Options and defaults are those of `driver/` in ROCm/MIOpen.
//!
//! | Module | Contents |
//! |---|---|
//! | `options` | the options of each driver, and a line's values of them |
//! | `common` | what several drivers have: tensors, layouts, directions, activations |
//! | `conv` | `conv` and `CBAInfer` |
//! | `norms` | `bnorm`, `layernorm`, `t5layernorm` |
//! | `others` | the other drivers |

mod common;
mod conv;
mod norms;
mod options;
mod others;

use crate::{Workload, WorkloadError};
use options::{Made, Options, TABLES};
use rotini_graph::{DataType, Graph};

/// Drivers of operations that hipDNN does not have.
const WITHOUT_GRAPH: [&str; 22] = [
    "lrn",
    "rnn",
    "rnn_seq",
    "ctc",
    "dropout",
    "groupnorm",
    "cat",
    "addlayernorm",
    "sum",
    "argmax",
    "max",
    "min",
    "argmin",
    "adam",
    "ampadam",
    "adamw",
    "getitem",
    "reduceextreme",
    "reducecalculation",
    "rope",
    "glu",
    "kthvalue",
];

/// Returns the graphs of a command line: several if it requests a layer's output and its gradients.
///
/// The line may begin with a log's prefix, environment settings (`NAME=VALUE`) and the program's
/// name.
///
/// # Errors
///
/// [`WorkloadError::Line`] if an option is unknown, a value cannot be parsed, or a graph cannot
/// express what the line requests.
pub fn from_miopen(line: &str) -> Result<Vec<Workload>, WorkloadError> {
    let fail = |what: String| WorkloadError::Line {
        line: line.chars().take(MOST_SHOWN).collect(),
        what,
    };
    let words = command(line).ok_or_else(|| fail("the quotes do not match".to_owned()))?;
    let (driver, arguments) = words
        .split_first()
        .ok_or_else(|| fail("there is no driver, such as conv".to_owned()))?;
    let graphs = graphs(driver, arguments).map_err(fail)?;
    Ok(graphs
        .into_iter()
        .map(|graph| Workload {
            name: graph.name.clone(),
            origin: words.join(" "),
            graph: rotini_wire::encode(&graph),
            published: Vec::new(),
        })
        .collect())
}

/// Maximum number of characters of the line that a message repeats.
const MOST_SHOWN: usize = 300;

/// Returns the driver's name and its arguments, without the words before them; `None` if quotes do
/// not match.
fn command(line: &str) -> Option<Vec<String>> {
    /// The program's name.
    const PROGRAM: &str = "MIOpenDriver";
    // The command follows the last mention of the program, if there is one; before it are log
    // prefixes, settings and directories.
    let rest = match line.rfind(PROGRAM) {
        Some(at) => line.get(at + PROGRAM.len()..)?.trim_start_matches(".exe"),
        None => line,
    };
    let words = shlex::split(rest.trim_start_matches(['"', '\'']))?;
    let is_setting = |word: &String| word.contains('=') && !word.starts_with('-');
    Some(words.into_iter().skip_while(is_setting).collect())
}

fn graphs(driver: &str, arguments: &[String]) -> Made<Vec<Graph>> {
    let (base, dtype) = driver_type(driver);
    if WITHOUT_GRAPH.contains(&base) {
        return Err(format!("hipDNN has no operation for {base}"));
    }
    let table = TABLES.iter().find(|(name, _)| *name == base);
    let (_, table) = table.ok_or_else(|| format!("there is no driver {driver}"))?;
    let options = Options::read(table, arguments)?;
    let graphs = match base {
        "conv" => conv::conv(&options, dtype),
        "CBAInfer" => conv::fused(&options, dtype).map(|graph| vec![graph]),
        "bnorm" => norms::batchnorm(&options, dtype),
        "activ" => others::activation(&options, dtype),
        "pool" => others::pooling(&options, dtype),
        "softmax" => others::softmax(&options, dtype),
        "layernorm" => norms::layernorm(&options, dtype),
        "t5layernorm" => norms::rms_norm(&options, dtype),
        "gemm" => others::product(&options, dtype),
        "tensorop" => others::tensors(&options, dtype),
        _ => others::reduction(&options, dtype),
    }?;
    for graph in &graphs {
        // Validation refuses what MIOpen refuses too: a filter that does not fit, groups that do
        // not divide the channels.
        graph.clone().validate().map_err(|error| error.to_string())?;
    }
    Ok(graphs)
}

/// Returns the driver's name without its type suffix, and the type.
fn driver_type(driver: &str) -> (&str, DataType) {
    const TYPES: [(&str, DataType); 6] = [
        ("bfp16", DataType::Bf16),
        ("fp16", DataType::F16),
        ("int8", DataType::I8),
        ("bfp8", DataType::F8E5M2Fnuz),
        ("fp8", DataType::F8E4M3Fnuz),
        ("fp64", DataType::F64),
    ];
    // Batchnorm's suffix also names the type of its parameters, which is f32 anyway.
    let driver = driver.strip_suffix("fp32").unwrap_or(driver);
    let found = TYPES
        .iter()
        .find_map(|(suffix, dtype)| Some((driver.strip_suffix(suffix)?, *dtype)));
    found.unwrap_or((driver, DataType::F32))
}
