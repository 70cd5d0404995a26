//! Which graphs a command works on: files, suites, command lines, logs.

use clap::value_parser;
use rotini_graph::DataType;
use rotini_workloads::blocks::{Direction, Layout};
use rotini_workloads::suites::SUITES;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Workloads {
    /// Serialized graphs (FlatBuffers), or `.json` files in hipDNN's JSON form
    #[arg(value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    /// Graphs of a known network
    #[arg(long = "suite", value_name = "NAME", value_parser = suite())]
    pub(crate) suites: Vec<String>,

    /// A command line of MIOpenDriver, in quotes: 'conv -n 32 -c 64 -H 56 -W 56 -k 64 -p 1 -q 1 -F
    /// 1'
    #[arg(long = "miopen", value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) miopen: Vec<String>,

    /// A program's log with MIOpen's command lines (MIOPEN_ENABLE_LOGGING_CMD=1) or graphs in
    /// hipDNN's JSON form
    #[arg(long, value_name = "FILE")]
    pub(crate) from_log: Option<PathBuf>,

    /// Batch size of the graphs of suites
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(i64).range(1..=1 << 20), requires = "suites")]
    pub(crate) batch: Option<i64>,

    /// Layout of the graphs of suites: nchw or nhwc
    #[arg(long, value_parser = layout, requires = "suites")]
    pub(crate) layout: Option<Layout>,

    /// Data type of the graphs of suites: f32, f16 or bf16
    #[arg(long, value_parser = dtype, requires = "suites")]
    pub(crate) dtype: Option<DataType>,

    /// Direction of the convolutions of suites: forward, dgrad or wgrad
    #[arg(long, value_parser = direction, requires = "suites")]
    pub(crate) direction: Option<Direction>,
}

pub(super) fn suite() -> clap::builder::PossibleValuesParser {
    SUITES
        .map(|(name, what)| clap::builder::PossibleValue::new(name).help(what))
        .into()
}

fn layout(text: &str) -> Result<Layout, String> {
    match text {
        "nchw" => Ok(Layout::First),
        "nhwc" => Ok(Layout::Last),
        _ => Err("known are nchw and nhwc".to_owned()),
    }
}

fn dtype(text: &str) -> Result<DataType, String> {
    let known = [DataType::F32, DataType::F16, DataType::Bf16];
    let found = known.into_iter().find(|dtype| dtype.to_string() == text);
    found.ok_or_else(|| "known are f32, f16 and bf16".to_owned())
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "forward" => Ok(Direction::Forward),
        "dgrad" => Ok(Direction::Dgrad),
        "wgrad" => Ok(Direction::Wgrad),
        _ => Err("known are forward, dgrad and wgrad".to_owned()),
    }
}
