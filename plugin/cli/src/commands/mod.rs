//! The commands, one file each.

mod cache;
mod check;
mod compile;
mod demo;
mod doctor;
mod emit;
mod replay;
mod run;

use crate::args::Command;
use crate::output::Output;
use rotini_emit::Target;
use rotini_plugin::Error;
use rotini_plugin::device::Device;
use rotini_plugin::pipeline::Runtime;

/// Whether all that a command was asked is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is.
    Yes,
    /// It is not, and the output says what.
    No,
    /// This machine lacks something, and the output says what.
    Missing,
}

impl Answer {
    fn of(yes: bool) -> Self {
        if yes { Answer::Yes } else { Answer::No }
    }
}

/// Does what the command line asks for.
///
/// # Errors
///
/// Whatever kept the command from giving an answer.
pub(crate) fn dispatch(command: Command, output: &Output) -> anyhow::Result<Answer> {
    match command {
        Command::Run(args) => run::run(&args, output),
        Command::Check(args) => check::check(&args, output),
        Command::Emit(args) => emit::emit(&args, output),
        Command::Compile(args) => compile::compile(&args, output),
        Command::Cache(args) => cache::cache(&args, output),
        Command::Replay(args) => replay::replay(&args, output),
        Command::Doctor(args) => doctor::doctor(&args, output),
        Command::Demo(args) => demo::demo(&args, output),
    }
}

/// What a graph is compiled for, as a cache key needs it.
struct TargetChoice {
    target: Target,
    features: String,
}

impl TargetChoice {
    /// The target that was asked for, or that of the device that the plugin would use.
    fn new(runtime: &Runtime, asked: Option<&Target>) -> Result<Self, Error> {
        match asked {
            Some(target @ (Target::Rocm { .. } | Target::Cuda { .. })) => {
                // All that is compiled for is named by the target.
                Ok(TargetChoice {
                    target: target.clone(),
                    features: String::new(),
                })
            }
            Some(Target::Cpu) => Ok(Self::of_device(runtime.host()?.as_ref())),
            None => Ok(Self::of_device(runtime.default_device()?.as_ref())),
        }
    }

    fn of_device(device: &dyn Device) -> Self {
        TargetChoice {
            target: device.target(),
            features: device.features().to_owned(),
        }
    }
}
