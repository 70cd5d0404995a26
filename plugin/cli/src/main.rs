//! The `rotini` command: the plugin's functions on the command line.
//!
//! | Module | Contents |
//! |---|---|
//! | `args` | the command line |
//! | `commands` | one file per command |
//! | `plugin` | locates and loads the shared library as hipDNN does |
//! | `execution`, `memory` | one graph through it, timed and compared with the reference |
//! | `outcome` | the result of an execution |
//! | `input`, `samples` | graphs from files, graphs built in code |
//! | `output`, `report`, `progress`, `failure` | output for people and for programs |
//!
//! `run` and `demo` go through the C ABI of the shared library. The other commands call the same
//! code as a library, because the ABI cannot report what they show.

mod args;
mod calibration;
mod commands;
mod execution;
mod failure;
mod input;
mod memory;
mod outcome;
mod output;
mod plugin;
mod progress;
mod report;
mod samples;

use args::Args;
use clap::Parser as _;
use commands::Answer;
use output::Output;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let args = Args::parse();
    log_to_stderr(args.verbose);
    let output = Output {
        json: args.json,
        verbose: args.verbose > 0,
    };
    match commands::dispatch(args.command, &output) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(failure::WRONG),
        Ok(Answer::Missing) => ExitCode::from(failure::ENVIRONMENT),
        Err(error) => failure::report(&error, &output),
    }
}

/// Sends log messages to stderr: this process's own, and those that the plugin passes to its host.
fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::TRACE,
    };
    let colours = std::io::stderr().is_terminal()
        && anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .without_time()
        .init();
}
