//! The table of all settings: every variable that rotini, its build and its tests read.
//!
//! [`SETTINGS`] is the only list of names that begin with `ROTINI_`. [`document`] makes
//! `docs/settings.md` from it, and a test compares the two.

use std::fmt::Write as _;

/// Prefix of every variable's name.
pub(crate) const PREFIX: &str = "ROTINI_";
/// Prefix of variables that belong to single tests.
const TEST_PREFIX: &str = "ROTINI_TEST_";
/// The part of the project that reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The plugin, and the `rotini` command with it.
    Plugin,
    /// The build.
    Build,
    /// Tests and benches.
    Tests,
}

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name.
    pub name: &'static str,
    /// The part of the project that reads it.
    pub reader: Reader,
    /// The allowed values.
    pub values: &'static str,
    /// The value that applies if the variable is not set.
    pub default: &'static str,
    /// The effect.
    pub meaning: &'static str,
}

/// Declares variables, by the part of the project that reads them: name, allowed values, default,
/// effect.
macro_rules! settings {
    ($($reader:ident { $($name:literal, $values:literal, $default:literal, $meaning:literal;)* })*) => {
        &[$($(Setting {
            name: $name,
            reader: Reader::$reader,
            values: $values,
            default: $default,
            meaning: $meaning,
        }),*),*]
    };
}

/// Every variable that rotini, its build and its tests read.
pub const SETTINGS: &[Setting] = settings! {
    Plugin {
        "ROTINI_DEVICE", "`auto`, `cpu`, `hip`; with the cargo feature `cuda` also `cuda`", "`auto`",
            "Where graphs run. `auto`: on AMD GPUs if there are any, else on the CPU.";
        "ROTINI_TARGET", "`cpu`, `gfx942`, `mi300x`, …", "the device's own",
            "What to compile for.";
        "ROTINI_CPU", "`host`, `x86-64-v3`, `x86-64-v4`", "`host`",
            "The CPU to compile for where graphs run on the CPU: the one that is here, or all x86-64 processors from a level on, which can share compiled graphs.";
        "ROTINI_SCHEDULES", "`predicted`, `compiler`", "`predicted`",
            "Who chooses how operations become kernels on an MI300: rotini, where a choice is predicted to be faster, or IREE's compiler alone.";
        "ROTINI_HIP_LIBRARY", "a path or a name", "the one that is loaded already, else `libamdhip64.so`",
            "The HIP library.";
        "ROTINI_COMPILER", "`worker`, `in-process`, `cli`", "`worker`",
            "How the compiler is called. `worker`: its library, in processes that are kept for the next graph. `cli`: the program \
         `iree-compile`. `in-process`: its library, in this process. With the first two, a crash of the compiler does not end the host. \
         If the compiler cannot be called in this way, rotini tries another and warns, but only `in-process` brings it into this process.";
        "ROTINI_COMPILE_WORKER", "a path", "`rotini-compile-worker` beside the plugin",
            "The program of the compiling processes.";
        "ROTINI_COMPILE_WORKERS", "a number from 1", "the cores that this process may use, at most 4",
            "How many graphs are compiled at a time by this process, in workers or by the program.";
        "ROTINI_COMPILE_TIMEOUT", "seconds, from 1", "120",
            "How long one graph may be compiled by a worker or by the program `iree-compile`. One that takes longer is tried once more without schedules. \
         If that fails, too, it is declined for five minutes.";
        "ROTINI_COMPILE_MEMORY", "bytes, also as `512 MiB` or `8 GiB`", "8 GiB",
            "What one worker may allocate for data. The compiler's code and the stacks of its threads are not counted. A graph that needs more is tried once \
         more without schedules. If that fails, too, it is declined for five minutes.";
        "ROTINI_IREE_COMPILE", "a path", "found beside Python's packages",
            "The program `iree-compile`.";
        "ROTINI_IREE_COMPILER_LIB", "a path", "found beside Python's packages",
            "The compiler's library, `libIREECompiler.so`.";
        "ROTINI_CACHE_DIR", "a directory, or empty for none", "`$XDG_CACHE_HOME/rotini`, else `~/.cache/rotini`",
            "Where compiled graphs are kept. It must belong to the user or to root, and nobody else may write to it.";
        "ROTINI_CACHE_PATH", "directories, separated by `:`", "`share/rotini/kernels` of the prefix that rotini is installed in, if it is there",
            "Directories of graphs that were compiled ahead of time. They are read only, after the cache directory, and must belong to the user or \
         to root.";
        "ROTINI_CACHE_SIZE", "bytes, also as `512 MiB` or `4 GiB`", "4 GiB",
            "What the cache directory may hold; beyond it the least recently used graphs go.";
        "ROTINI_TUNE", "a path", "none: nothing is measured",
            "The `rotini` program. `rotini tune` then measures each graph that has no record on this device before a program uses it for the \
         first time, in another process; that takes seconds to minutes for each graph. After two hours it is ended. Later processes use the records.";
        "ROTINI_REPRODUCERS", "a directory, or empty for none", "`reproducers` in the cache directory",
            "Where a graph that does not compile is kept with all that `rotini replay` needs to try again: the last 16.";
        "ROTINI_OWN_WORKSPACE", "bytes, also as `512 KiB` or `1 MiB`", "1 MiB",
            "If the host gives an execution no workspace, rotini uses memory of its own, up to this many bytes. A graph that needs 16 KiB or \
         less asks for none then.";
        "ROTINI_LOG", "`off`, `fatal`, `error`, `warn`, `info`", "what the host asks for",
            "The least severity that the host's logging function gets.";
    }
    Build {
        "ROTINI_HIP_HEADERS", "a directory", "that of the ROCm installation",
            "The headers of HIP.";
        "ROTINI_LLVM_22", "a directory", "where the linker looks",
            "LLVM 22, which the emulated MI300 of the tests is linked with. Nothing else uses it.";
        "ROTINI_PLUGIN_RPATH", "a path, such as `$ORIGIN/../..`", "none",
            "Where the plugin looks first for libraries that it opens by name. CMake sets it to the `lib` that the plugin is installed in.";
        "ROTINI_CUDA_HEADERS", "a directory", "none",
            "The directory of `cuda.h`, for the cargo feature `cuda`.";
        "ROTINI_IREE_SOURCE", "a directory", "the copy in the crate `eerie-sys`",
            "The sources of IREE's runtime.";
    }
    Tests {
        "ROTINI_PLUGIN", "a path", "the one that Cargo built; for `rotini` the one beside it, then the installed one",
            "The plugin that is tested, measured, or loaded by the `rotini` command.";
        "ROTINI_HIP_EMULATOR", "a path", "the one that Cargo built; for `rotini inspect` none",
            "The emulated HIP library that tests of GPUs and `rotini inspect --emulate` run on.";
        "ROTINI_ONNXRUNTIME", "a path", "what `scripts/setup --test` installs",
            "The library of ONNX Runtime, another engine to test and measure.";
        "ROTINI_IREE_RUN", "a path", "what `scripts/setup --speed` installs",
            "The program `iree-run-module`, which executes the form of rotini's predecessor.";
        "ROTINI_CASE", "part of a name", "",
            "The conformance cases that are run, whatever was proven before. If it is in no name, the tests fail.";
        "ROTINI_FAMILY", "`attention`", "all",
            "Random graphs of attention alone, with lengths, bounds and columns for all its kernels.";
        "ROTINI_GRAPHS", "a number", "100 (36 emulated, and 6 without schedules), 2000 bodies; 8000 (1800, 200) and 20000 in a full run",
            "How many random graphs are run, and hostile bodies of custom operations. Three of five graphs must be accepted, even if only a few are run.";
        "ROTINI_STEP", "a number", "1",
            "Of the conformance cases whose workspace is compared, one in this many.";
        "ROTINI_SUITES", "names, separated by commas, or `all`, `cases`", "`quick`; `all` in a full run",
            "The suites whose workspace before compiling is compared with what their code needs.";
        "ROTINI_QUIRKS", "names, separated by commas, or `all`", "three, others each day",
            "The quirks that are turned off, one at a time, to see their guards fail (`docs/quirks.md`).";
        "ROTINI_QUIRKS_SEARCH", "names, separated by commas", "",
            "Looks for guards of these quirks: cases that fail without them.";
        "ROTINI_QUIRKS_TRIES", "a number", "60",
            "How many cases such a search tries for a quirk.";
        "ROTINI_QUIRKS_FLAGS", "flags of the compiler, separated by spaces", "none",
            "Such a search only compiles, with these flags added: for another CPU, say.";
        "ROTINI_WRITE_QUIRKS", "anything", "",
            "Writes `docs/quirks.md` and the modules that show the quirks; `scripts/quirks` does.";
        "ROTINI_ROWS", "a number", "20; 500 in a full run",
            "How many normalizations over rows of any length are compiled for MI300 and run there, emulated.";
        "ROTINI_SEED", "a number", "0",
            "The seed of the first random graph or normalization. Each next one adds 1.";
        "ROTINI_OPERATIONS", "`write`", "",
            "Writes what ran right to `docs/operations.md` instead of comparing it; `scripts/operations` does.";
        "ROTINI_TEST_…", "", "",
            "What single tests tell the processes that they start, and what scripts tell tests; each is described where it is read.";
    }
};

/// Returns the text of `docs/settings.md`.
#[must_use]
pub fn document() -> String {
    let mut text = String::from(
        "# Settings\n\n\
         All settings are environment variables. Each is read once. If a value is not understood, the log says so and the default is used. The log\n\
         also names each variable that begins with `ROTINI_` and is not in these tables.\n\n\
         In a process with raised privileges (`AT_SECURE`: set-user-ID, file capabilities), no variable can name a library, a program or a\n\
         directory. This covers `PATH`, `VIRTUAL_ENV`, `HOME` and `XDG_CACHE_HOME` too, and `ROTINI_COMPILER=in-process`. The compiler is then found\n\
         beside the plugin or where the build was told. Compiled graphs are kept in memory only. One warning says so.\n\n\
         This page is made from the table in `plugin/src/settings.rs`, and a test compares the two.\n\
         `ROTINI_TEST_BLESS=1 cargo test --package rotini-plugin settings` writes it again.\n",
    );
    for (reader, title) in [
        (Reader::Plugin, "Plugin and command"),
        (Reader::Build, "Build"),
        (Reader::Tests, "Tests and benches"),
    ] {
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            text,
            "\n## {title}\n\n| Variable | Values | Default | Meaning |\n|---|---|---|---|\n"
        );
        for setting in SETTINGS.iter().filter(|setting| setting.reader == reader) {
            let Setting {
                name,
                values,
                default,
                meaning,
                ..
            } = setting;
            let _ = writeln!(text, "| `{name}` | {values} | {default} | {meaning} |");
        }
    }
    text
}

/// Returns true if a variable is in the table or belongs to a test.
pub(crate) fn is_known(name: &str) -> bool {
    name.starts_with(TEST_PREFIX) || SETTINGS.iter().any(|setting| setting.name == name)
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
