//! The commands, one file each.

mod answer;
mod bench;
mod cache;
mod check;
mod compile;
mod demo;
mod describe;
mod doctor;
mod emit;
mod inspect;
mod replay;
mod run;
mod selftest;
mod target_choice;
mod tune;
mod workloads;

pub(crate) use answer::Answer;

use crate::args::Command;
use crate::output::Output;

/// Runs a command.
///
/// # Errors
///
/// Returns whatever kept the command from giving an answer.
pub(crate) fn dispatch(command: Command, output: &Output) -> anyhow::Result<Answer> {
    match command {
        Command::Run(args) => run::run(&args, output),
        Command::Check(args) => check::check(&args, output),
        Command::Emit(args) => emit::emit(&args, output),
        Command::Compile(args) => compile::compile(&args, output),
        Command::Inspect(args) => inspect::inspect(&args, output),
        Command::Cache(args) => cache::cache(&args, output),
        Command::Replay(args) => replay::replay(&args, output),
        Command::Doctor(args) => doctor::doctor(&args, output),
        Command::Demo(args) => demo::demo(&args, output),
        Command::Bench(args) => bench::bench(&args, output),
        Command::Tune(args) => tune::tune(&args, output),
        Command::Selftest(args) => selftest::selftest(&args, output),
        Command::Completions(args) => describe::completions(&args),
        Command::Man(args) => describe::man(&args),
        Command::ServeEngine => bench::serve(),
        Command::EmulateGraph(args) => inspect::emulate_graph(&args),
    }
}
