//! The command line of `rotini inspect`.

use super::{PluginArgs, TargetArgs};
use clap::ValueEnum;
use std::path::PathBuf;

/// Name of the hidden command that executes a graph on the emulator for `inspect`.
pub(crate) const EMULATE_GRAPH: &str = "emulate-graph";

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// Serialized graph (FlatBuffers), or a `.json` file in hipDNN's JSON form
    #[arg(value_name = "GRAPH", required_unless_present = "diff")]
    pub(crate) graph: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// Also executes the graph on the emulated GPU: exact counts and predicted times; =sample
    /// executes only the workgroups that predictions need, for graphs of any size
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) emulate: Option<Emulate>,

    /// The emulator's library: the libamdhip64.so that rotini's tests build
    #[arg(long, value_name = "PATH", env = "ROTINI_HIP_EMULATOR")]
    pub(crate) emulator: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) plugin: PluginArgs,

    /// Predicts with the constants in a file that `rotini tune --calibrate --json` wrote [default:
    /// those of this machine's GPU if it was calibrated, else published ones]
    #[arg(long, value_name = "FILE", requires = "emulate")]
    pub(crate) calibration: Option<PathBuf>,

    /// Writes an HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// Compares two graphs, or two documents that --json wrote with different versions or settings
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["graph", "page"])]
    pub(crate) diff: Option<Vec<PathBuf>>,
}

/// How much of a graph the emulator executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emulate {
    /// All workgroups, then a sample for the prediction
    All,
    /// A sample of each launch's workgroups
    Sample,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EmulateGraph {
    /// The graph, serialized
    pub(crate) graph: PathBuf,
    /// The emulator's library
    pub(crate) emulator: PathBuf,
    /// The plugin's library
    pub(crate) plugin: PathBuf,
    /// Where the emulator writes its reports
    pub(crate) reports: PathBuf,
    /// The forms of its operations, as the knob `rotini.schedule` has them
    #[arg(long)]
    pub(crate) schedule: Option<String>,
}
