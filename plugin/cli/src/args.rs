//! The command line.

use bytesize::ByteSize;
use clap::{ArgAction, ArgGroup, Parser, Subcommand, value_parser};
use rotini_emit::Target;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    all is as it should be
  1    a graph is malformed, declined, does not compile or gives wrong results; a cache entry is bad
  2    the command line makes no sense
  3    something is missing on this machine: the compiler, the plugin, a device
  141  whoever read the output stopped reading

Settings of the plugin (ROTINI_DEVICE, ROTINI_CACHE_DIR, …) hold here too; `rotini doctor` lists them.";

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
    /// Loads librotini_plugin.so as hipDNN does. Inputs are seeded random numbers; results are held against a reference executor
    /// that shares no code with the lowering: within hipDNN's tolerances, or within what any right order of summation can make.
    Run(Run),
    /// Says whether graphs can be executed, and if not, why and at which node
    Check(Check),
    /// Writes the MLIR that a graph is lowered to
    Emit(Emit),
    /// Compiles graphs to vmfb files, or into a directory of kernels to ship
    ///
    /// With --into, the directory is one for ROTINI_CACHE_PATH: programs that find it there compile none of these graphs. What the
    /// directory has already is verified and left alone, so an interrupted run is resumed by the same command.
    Compile(Compile),
    /// Looks into directories of compiled graphs, and looks after them
    Cache(Cache),
    /// Compiles the graph of a failed compilation once more, from the directory that it left, and shows what the compiler says
    Replay(Replay),
    /// Tells what was found where: plugin, compiler, devices, cache, settings
    Doctor(Doctor),
    /// Builds some convolution graphs, runs them as `run` does and shows what happens on the way
    Demo(Demo),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Serialized graphs (FlatBuffers)
    #[arg(required = true, value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) execution: Execution,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Serialized graphs (FlatBuffers)
    #[arg(required = true, value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Emit {
    /// Serialized graph (FlatBuffers)
    #[arg(value_name = "GRAPH")]
    pub(crate) graph: PathBuf,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("place").required(true))]
pub(crate) struct Compile {
    /// Serialized graphs (FlatBuffers)
    #[arg(required = true, value_name = "GRAPH")]
    pub(crate) graphs: Vec<PathBuf>,

    /// What to compile for, several with commas between them [default: the device that the plugin would use]
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
    /// Removes what killed processes and failures left, and the least recently used entries beyond a size
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
    /// Entries are code that your programs will run: import only what comes from somebody you would take a program from.
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
    /// cpu, an AMD GPU (gfx942, mi300x, …) or an NVIDIA GPU (sm_80, …) [default: the device that the plugin would use]
    #[arg(long, value_parser = target)]
    pub(crate) target: Option<Target>,
}

fn target(text: &str) -> Result<Target, String> {
    Target::parse(text).ok_or_else(|| "known are cpu, gfx…, mi… and sm_…".to_owned())
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
