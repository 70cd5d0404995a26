//! `rotini completions` and `rotini man`: shell completions and manual pages of the command line.

use super::answer::Answer;
use crate::args::{Args, Completions, Man};
use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use std::fs;
use std::io::Write as _;

const NAME: &str = "rotini";

pub(super) fn completions(args: &Completions) -> Result<Answer> {
    // The script is generated in memory first, because the generator panics if stdout is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), NAME, &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Answer::Yes)
}

/// Writes one manual page for the program and one for each of its commands.
pub(super) fn man(args: &Man) -> Result<Answer> {
    let directory = &args.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Args::command(), directory))
        .with_context(|| format!("no manual pages can be written to {}", directory.display()))?;
    Ok(Answer::Yes)
}
