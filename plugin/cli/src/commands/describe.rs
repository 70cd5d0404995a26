//! `rotini completions` and `rotini man`: the command line, described to shells and readers of
//! manuals.

use super::answer::Answer;
use crate::args::{Args, Completions, Man};
use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use std::fs;
use std::io::Write as _;

const NAME: &str = "rotini";

pub(super) fn completions(args: &Completions) -> Result<Answer> {
    // Generated to memory first: the generator panics where stdout is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), NAME, &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Answer::Yes)
}

/// One page for the command and one for each of its commands.
pub(super) fn man(args: &Man) -> Result<Answer> {
    let directory = &args.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Args::command(), directory))
        .with_context(|| format!("no manual pages can be written to {}", directory.display()))?;
    Ok(Answer::Yes)
}
