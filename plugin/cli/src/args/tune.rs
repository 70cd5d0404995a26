//! The command line of `rotini tune`.

use super::{PluginArgs, Workloads, device};
use clap::value_parser;
use rotini_bench::Device;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) workloads: Workloads,

    #[command(flatten)]
    pub(crate) plugin: PluginArgs,

    /// Device that executes the graphs [default: an AMD GPU if there is one, else the CPU]
    #[arg(long, value_parser = device)]
    pub(crate) device: Option<Device>,

    /// Maximum number of candidates of a graph
    #[arg(long, value_name = "NUMBER", default_value_t = 12, value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) most: u16,

    /// Measures graphs again that have a record. Candidates with wrong results stay excluded
    #[arg(long)]
    pub(crate) again: bool,

    /// Maximum number of turns of a candidate; the race ends earlier once the winner is clear
    #[arg(long, value_name = "NUMBER", default_value_t = 15, value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) turns: u32,

    /// Milliseconds of one turn
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) turn: u32,

    /// Seed of the inputs and of the order of turns
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Seconds without an answer after which a candidate counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) patience: u64,

    /// Billions of operations up to which results are compared with the reference; beyond, with
    /// those of the usual form
    #[arg(long, value_name = "NUMBER", default_value_t = 20.0)]
    pub(crate) judge: f64,

    /// First measures this GPU for at most about ten minutes, and records the constants with which
    /// `rotini inspect` predicts times: rates of f16, bf16 and FP8 products, and the bandwidths of
    /// memory and Infinity Cache
    #[arg(long)]
    pub(crate) calibrate: bool,

    /// Writes an HTML page: the candidates of each graph by time, and the choice
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// Writes all records, also those of other devices, to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,

    /// Merges the records of a file that --export wrote; may be given several times
    #[arg(long = "import", value_name = "FILE")]
    pub(crate) imports: Vec<PathBuf>,
}
