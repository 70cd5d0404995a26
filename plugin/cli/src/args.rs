//! The command line.

mod emit;
mod inspect;
mod tune;
mod workloads;

pub(crate) use emit::Emit;
pub(crate) use inspect::{EMULATE_GRAPH, Emulate, EmulateGraph, Inspect};
pub(crate) use tune::Tune;
pub(crate) use workloads::Workloads;

use bytesize::ByteSize;
use clap::{ArgAction, ArgGroup, Parser, Subcommand, value_parser};
use rotini_bench::Device;
use rotini_emit::Target;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use workloads::suite;

const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    a graph is malformed, declined, does not compile or gives wrong results; a cache entry is bad
  2    invalid command line
  3    something is missing on this machine: the compiler, the plugin, a device
  141  the reader of the output closed it

The plugin's settings (ROTINI_DEVICE, ROTINI_CACHE_DIR, …) apply here too; `rotini doctor` lists them.";

/// Name of the hidden command that serves an engine to another process.
pub(crate) const SERVE_ENGINE: &str = "serve-engine";

/// Runs, checks, lowers and compiles hipDNN operation graphs with rotini, the JIT engine plugin.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Writes one JSON document to stdout instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Logs to stderr; twice for more detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Executes graphs through the plugin's C ABI and checks the results
    ///
    /// Loads librotini_plugin.so as hipDNN does. Inputs are seeded random numbers. Results are
    /// compared with a reference executor that shares no code with the lowering: within hipDNN's
    /// tolerances, or within the rounding error of any order of summation.
    Run(Run),
    /// Checks whether graphs can be executed; if not, reports the reason and the node
    Check(Check),
    /// Writes the MLIR that a graph is lowered to, or the plan of its kernels
    Emit(Emit),
    /// Compiles graphs to vmfb files, or into a directory of kernels to ship
    ///
    /// With --into, the directory can be named in ROTINI_CACHE_PATH: programs that find it there
    /// compile none of these graphs. Existing entries are verified and kept, so the same command
    /// resumes an interrupted run.
    Compile(Compile),
    /// Shows the machine code of a graph's kernels for an MI300, and their predicted times
    ///
    /// Compiles the graph and reads the machine code: the configuration of each kernel, its
    /// instructions by class and width, registers, LDS, occupancy. Executes nothing without
    /// --emulate, and measures nothing.
    Inspect(Inspect),
    /// Lists, verifies, prunes and transfers directories of compiled graphs
    Cache(Cache),
    /// Repeats a failed compilation from the directory that it left, and shows the compiler's
    /// messages
    Replay(Replay),
    /// Reports the plugin, compiler, devices, cache and settings that are in use, and where they
    /// were found
    Doctor(Doctor),
    /// Builds sample convolution graphs, runs them as `run` does and shows each step
    Demo(Demo),
    /// Measures hipDNN engines side by side, and compares their results with the reference
    ///
    /// Each engine runs in a separate process: one that crashes, hangs or computes wrong results is
    /// reported and does not affect the others. All engines get the same inputs and take turns.
    /// Without --plugin, rotini is compared with the engines of the installed ROCm.
    Bench(Bench),
    /// Measures which form of each graph is the fastest on this device, and records the winners
    ///
    /// Candidates are verified against the reference, then measured in turns. Programs use the
    /// winners from then on, without measuring. The same command resumes an interrupted run. Exits
    /// with 1 if a candidate computes wrong results.
    Tune(Tune),
    /// Tests the plugin on this machine: results, special values, caches, captured graphs; then
    /// measures its speed beside the other engines of the machine
    ///
    /// Needs only the built files. The same command resumes an interrupted run. Exits with 1 if
    /// anything is wrong.
    Selftest(Selftest),
    /// Writes shell completions to stdout
    ///
    /// Packages install them. Without a package, for example: rotini completions bash >
    /// ~/.local/share/bash-completion/completions/rotini
    Completions(Completions),
    /// Writes the manual pages to a directory; used by the build
    #[command(hide = true)]
    Man(Man),
    /// Serves an engine to `bench`
    #[command(name = SERVE_ENGINE, hide = true)]
    ServeEngine,
    /// Executes a graph on the emulator for `inspect`
    #[command(name = EMULATE_GRAPH, hide = true)]
    EmulateGraph(EmulateGraph),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Serialized graphs (FlatBuffers), or `.json` files in hipDNN's JSON form
    #[arg(required = true, value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) execution: Execution,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Serialized graphs (FlatBuffers), or `.json` files in hipDNN's JSON form
    #[arg(required = true, value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("place").required(true))]
pub(crate) struct Compile {
    /// Serialized graphs (FlatBuffers), or `.json` files in hipDNN's JSON form
    #[arg(required_unless_present = "suites", value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    /// Graphs of a known network, with --into
    #[arg(long = "suite", value_name = "NAME", value_parser = suite(), conflicts_with = "output")]
    pub(crate) suites: Vec<String>,

    /// Targets to compile for, separated by commas [default: the device that the plugin would use]
    #[arg(long = "target", value_name = "TARGET", value_parser = target, value_delimiter = ',')]
    pub(crate) targets: Vec<Target>,

    /// The vmfb file to write, or a directory for several graphs; with one target only
    #[arg(short, long, value_name = "FILE", group = "place")]
    pub(crate) output: Option<PathBuf>,

    /// The cache directory to fill; created if missing
    #[arg(long, value_name = "DIRECTORY", group = "place")]
    pub(crate) into: Option<PathBuf>,

    /// Number of concurrent compilations [default: the number of CPUs]
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cache {
    /// The directory [default: ROTINI_CACHE_DIR, or the user's]
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Lists the compiled graphs, most recently used first
    Ls,
    /// Shows counts and sizes by target and by compiler
    Stats,
    /// Reads every entry and checks it against its checksums; removes nothing
    Verify,
    /// Removes files left by killed processes and failures, and the least recently used entries
    /// beyond a size
    Gc {
        /// The size to keep, such as 500MiB or 2GB [default: ROTINI_CACHE_SIZE]
        #[arg(long, value_name = "SIZE")]
        size: Option<ByteSize>,
    },
    /// Removes all entries. Running programs keep the code that they have loaded
    Clear,
    /// Writes entries to an archive (tar), each verified
    Export {
        /// The archive; - is stdout
        #[arg(value_name = "ARCHIVE")]
        archive: PathBuf,

        /// Keys of the entries, or prefixes of keys [default: all entries]
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Imports the entries of an archive that `export` wrote, each verified
    ///
    /// Entries are code that your programs will execute: import only archives from sources whose
    /// programs you would run.
    Import {
        /// The archive; - is stdin
        #[arg(value_name = "ARCHIVE")]
        archive: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// The directory that the failed compilation left; the log names it
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) plugin: PluginArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) execution: Execution,

    /// Directory in which the graphs are kept
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) save: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) workloads: Workloads,

    /// Writes results.json, results.csv and index.html, one page with plots, to this directory
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) output: Option<PathBuf>,

    /// Runs nothing: compares the results.json of two runs, and exits with 1 on a regression
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["graphs", "suites", "miopen", "from_log", "output"])]
    pub(crate) compare: Option<Vec<PathBuf>>,

    /// An engine plugin; may be given several times, and the others are compared with the first.
    /// The settings after its path are environment variables of its process, so one library can be
    /// two engines: librotini_plugin.so,ROTINI_OWN_WORKSPACE=0. A name with a dot is a knob:
    /// librotini_plugin.so,rotini.schedule=iree
    #[arg(long = "plugin", value_name = "FILE[,NAME=VALUE]...", value_parser = engine)]
    pub(crate) plugins: Vec<EngineArg>,

    /// The ROCm whose engines are compared [default: ROCM_PATH, or /opt/rocm]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) rocm: Option<PathBuf>,

    /// Device that executes the graphs [default: an AMD GPU if there is one, else the CPU]
    #[arg(long, value_parser = device)]
    pub(crate) device: Option<Device>,

    /// Number of cores that the engines are bound to
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cores: Option<usize>,

    /// Visits of each graph, each in a separate process [default: 5; 2 for the suite constants]
    #[arg(long, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) visits: Option<u32>,

    /// Turns of each engine in a visit [default: 3]
    #[arg(long, value_parser = value_parser!(u32).range(0..=1000))]
    pub(crate) rounds: Option<u32>,

    /// Milliseconds of one turn [default: 10; 1000 for the suite constants]
    #[arg(long, value_parser = value_parser!(u32).range(0..=10_000))]
    pub(crate) turn: Option<u32>,

    /// Times executions on normally distributed inputs; always so for the suite constants
    #[arg(long)]
    pub(crate) gaussian: bool,

    /// Omits the measurement with rotating buffers that do not fit into the last-level cache
    #[arg(long)]
    pub(crate) no_rotate: bool,

    /// Seed of the inputs and of the order of turns
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Seconds without an answer after which an engine counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) patience: u64,

    /// Billions of operations up to which results are compared with the reference; beyond, engines
    /// are compared with each other
    #[arg(long, value_name = "NUMBER", default_value_t = 20.0)]
    pub(crate) judge: f64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Selftest {
    #[command(flatten)]
    pub(crate) plugin: PluginArgs,

    /// Directory for the report and the state of the run
    #[arg(short, long, value_name = "DIRECTORY", default_value = "rotini-selftest")]
    pub(crate) output: PathBuf,

    /// Time limit in minutes
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) minutes: u32,

    /// Device that executes the graphs [default: an AMD GPU if there is one, else the CPU]
    #[arg(long, value_parser = device)]
    pub(crate) device: Option<Device>,

    /// Number of concurrent processes
    #[arg(short, long, value_name = "NUMBER", default_value = "2")]
    pub(crate) jobs: NonZeroUsize,

    /// Number of random graphs
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub(crate) random: u64,

    /// Maximum number of tests
    #[arg(long, value_name = "NUMBER")]
    pub(crate) most: Option<usize>,

    /// Seed of the inputs, the random graphs and the order of tests
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Omits the measurement of speed
    #[arg(long)]
    pub(crate) no_bench: bool,

    /// The ROCm whose engines are compared [default: ROCM_PATH, or /opt/rocm]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) rocm: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The directory; created if missing
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: PathBuf,
}

/// An engine plugin with the settings of its process.
#[derive(Clone, Debug)]
pub(crate) struct EngineArg {
    /// The shared library.
    pub(crate) plugin: PathBuf,
    /// Environment variables.
    pub(crate) settings: Vec<(String, String)>,
}

fn engine(text: &str) -> Result<EngineArg, String> {
    let mut parts = text.split(',');
    let plugin = parts.next().unwrap_or_default();
    if plugin.is_empty() {
        return Err("it begins with the plugin's file".to_owned());
    }
    let setting = |part: &str| match part.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{part} is not NAME=VALUE")),
    };
    Ok(EngineArg {
        plugin: plugin.into(),
        settings: parts.map(setting).collect::<Result<_, _>>()?,
    })
}

fn device(text: &str) -> Result<Device, String> {
    match text {
        "cpu" => Ok(Device::Cpu),
        "hip" => Ok(Device::Hip),
        "cuda" => Ok(Device::Cuda),
        _ => Err("known are cpu, hip and cuda".to_owned()),
    }
}

/// How graphs are executed.
#[derive(Debug, clap::Args)]
pub(crate) struct Execution {
    #[command(flatten)]
    pub(crate) plugin: PluginArgs,

    /// Seed of the inputs
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Executions of each graph; the median time is shown
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) repeat: u32,
}

/// Which plugin is loaded.
#[derive(Debug, clap::Args)]
pub(crate) struct PluginArgs {
    /// The plugin's shared library [default: librotini_plugin.so beside this program]
    #[arg(long, value_name = "PATH", env = "ROTINI_PLUGIN")]
    pub(crate) plugin: Option<PathBuf>,
}

/// What is compiled for.
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// cpu, an AMD GPU (gfx942, mi300x, …) or an NVIDIA GPU (sm_80, …) [default: the device that
    /// the plugin would use]
    #[arg(long, value_parser = target)]
    pub(crate) target: Option<Target>,
}

fn target(text: &str) -> Result<Target, String> {
    Target::parse(text).ok_or_else(|| "known are cpu, x86-64-v3, x86-64-v4, gfx…, mi… and sm_…".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
