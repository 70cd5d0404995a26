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
  0    all is as it should be
  1    a graph is malformed, declined, does not compile or gives wrong results; a cache entry is bad
  2    the command line makes no sense
  3    something is missing on this machine: the compiler, the plugin, a device
  141  whoever read the output stopped reading

Settings of the plugin (ROTINI_DEVICE, ROTINI_CACHE_DIR, …) hold here too; `rotini doctor` lists them.";

/// The name of the command that serves an engine to another process; nobody types it.
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

    /// Logs to stderr what happens; twice for more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Executes graphs through the plugin's C ABI and checks the results
    ///
    /// Loads librotini_plugin.so as hipDNN does. Inputs are seeded random numbers; results are held
    /// against a reference executor that shares no code with the lowering: within hipDNN's
    /// tolerances, or within what any right order of summation can make.
    Run(Run),
    /// Says whether graphs can be executed, and if not, why and at which node
    Check(Check),
    /// Writes the MLIR that a graph is lowered to, or the plan of its kernels
    Emit(Emit),
    /// Compiles graphs to vmfb files, or into a directory of kernels to ship
    ///
    /// With --into, the directory is one for ROTINI_CACHE_PATH: programs that find it there compile
    /// none of these graphs. What the directory has already is verified and left alone, so an
    /// interrupted run is resumed by the same command.
    Compile(Compile),
    /// Shows what a graph's kernels for an MI300 are made of, and what they are predicted to take
    /// there
    ///
    /// Compiles the graph and reads the machine code: how each kernel was configured, its
    /// instructions by class and width, registers, LDS, occupancy. Nothing is executed without
    /// --emulate, and nothing is ever measured.
    Inspect(Inspect),
    /// Looks into directories of compiled graphs, and looks after them
    Cache(Cache),
    /// Compiles the graph of a failed compilation once more, from the directory that it left, and
    /// shows what the compiler says
    Replay(Replay),
    /// Tells what was found where: plugin, compiler, devices, cache, settings
    Doctor(Doctor),
    /// Builds some convolution graphs, runs them as `run` does and shows what happens on the way
    Demo(Demo),
    /// Measures engines of hipDNN side by side, and holds their results against the reference
    ///
    /// Each engine runs in a separate process: one that crashes, hangs or is wrong is reported as
    /// such and spoils nothing else. All get the same inputs, and take turns. Without --plugin,
    /// rotini is compared with the engines of the installed ROCm.
    Bench(Bench),
    /// Measures which form of each graph is the fastest on this device, and keeps the winners
    ///
    /// Candidates are held against the reference first, then take turns. Programs use the winners
    /// from then on, without a measurement. It can be interrupted: the same command goes on where
    /// it was. Exits with 1 if a candidate computes wrong results.
    Tune(Tune),
    /// Proves the plugin on this machine: results, special values, caches, captured graphs; then
    /// its speed beside what else is there
    ///
    /// Needs nothing but the built files. It can be interrupted: the same command goes on where it
    /// was. Exits with 1 if anything is wrong.
    Selftest(Selftest),
    /// Writes the completions of a shell to stdout
    ///
    /// Packages install them. Without a package, for example: rotini completions bash >
    /// ~/.local/share/bash-completion/completions/rotini
    Completions(Completions),
    /// Writes the manual pages to a directory: the build does
    #[command(hide = true)]
    Man(Man),
    /// What `bench` starts for each engine
    #[command(name = SERVE_ENGINE, hide = true)]
    ServeEngine,
    /// What `inspect` starts for the emulator
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

    /// What to compile for, several with commas between them [default: the device that the plugin
    /// would use]
    #[arg(long = "target", value_name = "TARGET", value_parser = target, value_delimiter = ',')]
    pub(crate) targets: Vec<Target>,

    /// The vmfb file to write; a directory if there are several graphs. For one target
    #[arg(short, long, value_name = "FILE", group = "place")]
    pub(crate) output: Option<PathBuf>,

    /// The cache directory to fill, made if missing
    #[arg(long, value_name = "DIRECTORY", group = "place")]
    pub(crate) into: Option<PathBuf>,

    /// Graphs that are compiled at the same time [default: the number of CPUs]
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cache {
    /// The directory [default: the user's, or what ROTINI_CACHE_DIR says]
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Lists the compiled graphs, the last used first
    Ls,
    /// Says how much there is, by target and by what made it
    Stats,
    /// Reads every entry and checks it against its checksums; removes nothing
    Verify,
    /// Removes what killed processes and failures left, and the least recently used entries beyond
    /// a size
    Gc {
        /// The size to keep, such as 500MiB or 2GB [default: what ROTINI_CACHE_SIZE says]
        #[arg(long, value_name = "SIZE")]
        size: Option<ByteSize>,
    },
    /// Removes all entries. Programs that run keep what they have loaded
    Clear,
    /// Writes entries to an archive (tar), each verified
    Export {
        /// The archive; - is stdout
        #[arg(value_name = "ARCHIVE")]
        archive: PathBuf,

        /// Keys of the entries, or how they begin [default: all entries]
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Takes the entries of an archive that `export` wrote, each verified
    ///
    /// Entries are code that your programs will run: import only what comes from somebody you would
    /// take a program from.
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

    /// Keeps the graphs in this directory
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

    /// Runs nothing: tells what differs between two runs' results.json, and exits with 1 if
    /// something got worse
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["graphs", "suites", "miopen", "from_log", "output"])]
    pub(crate) compare: Option<Vec<PathBuf>>,

    /// An engine plugin; several for several engines, the others are compared with the first.
    /// Settings behind it are environment variables of its process, so that one library can be two
    /// engines: librotini_plugin.so,ROTINI_OWN_WORKSPACE=0. A name with a point is a knob:
    /// librotini_plugin.so,rotini.schedule=iree
    #[arg(long = "plugin", value_name = "FILE[,NAME=VALUE]...", value_parser = engine)]
    pub(crate) plugins: Vec<EngineArg>,

    /// The ROCm whose engines are compared [default: ROCM_PATH, or /opt/rocm]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) rocm: Option<PathBuf>,

    /// Where graphs run [default: on AMD GPUs if there are any, else on the CPU]
    #[arg(long, value_parser = device)]
    pub(crate) device: Option<Device>,

    /// Number of cores that the engines are bound to
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cores: Option<usize>,

    /// Visits of each graph, each with a separate process [default: 5; with the suite constants 2]
    #[arg(long, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) visits: Option<u32>,

    /// Turns of each engine in a visit [default: 3]
    #[arg(long, value_parser = value_parser!(u32).range(0..=1000))]
    pub(crate) rounds: Option<u32>,

    /// Milliseconds of one turn [default: 10; with the suite constants 1000]
    #[arg(long, value_parser = value_parser!(u32).range(0..=10_000))]
    pub(crate) turn: Option<u32>,

    /// Times executions on normally distributed inputs, as always with the suite constants
    #[arg(long)]
    pub(crate) gaussian: bool,

    /// Leaves out the times with buffers that do not fit into the last cache
    #[arg(long)]
    pub(crate) no_rotate: bool,

    /// Seed of the inputs and of the order of turns
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Seconds after which an engine that does not answer counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) patience: u64,

    /// Billions of operations up to which a graph is held against the reference; beyond, engines
    /// are held against each other
    #[arg(long, value_name = "NUMBER", default_value_t = 20.0)]
    pub(crate) judge: f64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Selftest {
    #[command(flatten)]
    pub(crate) plugin: PluginArgs,

    /// Where the report and the state of the run go
    #[arg(short, long, value_name = "DIRECTORY", default_value = "rotini-selftest")]
    pub(crate) output: PathBuf,

    /// How long it may take
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) minutes: u32,

    /// Where graphs run [default: on AMD GPUs if there are any, else on the CPU]
    #[arg(long, value_parser = device)]
    pub(crate) device: Option<Device>,

    /// Processes that try things at the same time
    #[arg(short, long, value_name = "NUMBER", default_value = "2")]
    pub(crate) jobs: NonZeroUsize,

    /// Random graphs to try
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub(crate) random: u64,

    /// Maximum number of items to try
    #[arg(long, value_name = "NUMBER")]
    pub(crate) most: Option<usize>,

    /// Seed of the inputs, the random graphs and the order
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Leaves out the measurement of speed
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
    /// The directory, made if missing
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
